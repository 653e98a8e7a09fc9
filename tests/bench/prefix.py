"""How much of each request a provider has seen before: a long session over HTTP, and a simulated cache (row P4).

The session is the real one: adapters, turn loop, journal, tools, modes. Its turns read, write, edit, move, run, batch,
think, fail, are refused, denied, cut off and repeated; files are attached and change afterwards; quick questions come
in between; the mode changes; the server is killed in a write, and in a command, and opens the session again each time.
The provider keeps every request byte for byte. A quick question is not part of the history: the request before a
request is the last one that was no quick question.

    prompt    the bytes of a request up to the end of its last message: they become tokens; the rest are options
    kept      the share of the previous prompt that this one begins with
    seen      the share of a prompt that was in the previous prompt, or in the answer to it
    hit       the share of a prompt that the simulated cache returns

The cache follows what DeepSeek documents today: a unit ends where the input of a request ends, where the answer to it
ends, and where two requests diverge. A request hits the longest unit that it begins with, as a whole. The real cache
also has units at fixed distances; they are omitted, because they could only hide a miss.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import attrs

from steadyhand.domain.records.prompt import FileAttachment, Prompt, TextAttachment
from steadyhand.domain.records.record import Mode
from steadyhand.domain.views.questions import Choice
from tests.models.dialogue import Talk, answer, stem, talking
from tests.models.streams import Ask, Dialect, End, Say, Step, Think, plain, written
from tests.support.faults import GatedDisk, Operation
from tests.support.scripted_provider import CUT, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

MODES: tuple[Mode, ...] = ("auto", "edits", "ask", "plan")
turns_per_mode = 4


@attrs.frozen
class Exchange:
    """One request as it came, and its answer; `steps` None: no whole answer."""

    body: bytes
    steps: tuple[Step, ...] | None

    @property
    def aside(self) -> bool:
        """Whether it was a quick question."""
        return b'"tool_choice":' in self.body[len(stem(self.body)) :]


# --- recording -----------------------------------------------------------------------------------------------


def ask(tool: str, id: str = "call_0", **arguments: Any) -> Ask:
    return Ask(tool, (json.dumps(arguments, ensure_ascii=False),), id)


DONE: tuple[Step, ...] = (Say("Done — é🙂."), End("stop"))


def calling(*steps: Step) -> tuple[Step, ...]:
    return (*steps, End("calls"))


def turn_of(number: int) -> list[tuple[Step, ...] | Scripted]:
    """The answers of one turn; a Scripted answer fails, and its request is repeated."""
    name = f"f{number % 7}.txt"
    turns: list[list[tuple[Step, ...] | Scripted]] = [
        [calling(Say("I write."), ask("write_file", path=name, content=f"turn {number}\n")), DONE],
        [calling(Think("Look first."), ask("read_file", path=name)), calling(ask("list_files")), DONE],
        [calling(ask("edit_file", path=name, edits=[{"old": "turn", "new": "Turn"}])), DONE],
        [Scripted([], 503, {}, "length"), calling(ask("run_command", command=f"echo {number} >> log.txt")), DONE],
        [(Think("Nothing to do."), Say("Nothing is to be done."), End("stop"))],
        [calling(ask("read_file", "c1", path=name), ask("search_text", "c2", pattern="turn"), Say("Both.")), DONE],
        [calling(Ask("write_file", ('{"path":"half.txt","content":"he',))), DONE],
        [calling(ask("no_such_tool", x=1.0)), DONE],
        [calling(ask("move_file", **{"from": name, "to": f"moved-{number}.txt"})), Scripted([b"", CUT]), DONE],
        [(Say("It goes on and"), End("length"))],
        [calling(ask("write_file", "c1", path="x.txt", content="x"), ask("delete_file", "c2", path="x.txt")), DONE],
        [(End("stop"),)],
    ]  # fmt: skip
    return turns[number % len(turns)]


@attrs.define
class Recorder:
    """Answers as the turns say, and keeps the requests."""

    dialect: Dialect
    exchanges: list[Exchange] = attrs.field(factory=list)
    due: list[tuple[Step, ...] | Scripted] = attrs.field(factory=list)

    def __call__(self, asked: Any) -> Scripted:
        given = self.due.pop(0) if self.due else DONE
        whole = None if isinstance(given, Scripted) else given
        self.exchanges.append(Exchange(asked.body, whole))
        if isinstance(given, Scripted):
            return given if given.steps != (b"", CUT) else self._cut()
        return answer(self.dialect, *given)

    def _cut(self) -> Scripted:
        return Scripted([plain(written(self.dialect, (Say("This is withdrawn"),))), CUT])


def _writes_result(armed: threading.Event, operation: Operation) -> bool:
    return armed.is_set() and "result" in operation.kinds


async def record(folder: Path, dialect: Dialect, turns: int) -> list[Exchange]:
    """A session of this many turns, in thirds: the first ends with a kill in a write, the second with a kill in a
    command."""
    workspace, recorder = Workspace.under(folder), Recorder(dialect)
    workspace.write("AGENTS.md", "Be brief.\n")
    bounds = [0, turns // 3, 2 * turns // 3, turns]
    killed_in = [
        ask("write_file", path="killed.txt", content="written before the kill\n"),
        ask("run_command", command="echo killed >> log.txt"),
    ]
    session: str | None = None
    async with ScriptedProvider(answering=recorder) as provider:
        for run, (first, end) in enumerate(pairwise(bounds)):
            armed = threading.Event()
            disk = GatedDisk(partial(_writes_result, armed))
            async with talking(workspace, dialect, provider, run=run + 1, disk=disk) as talk:
                talk.editor.held_back = lambda _: Choice("waive")
                talk.editor.permission = _denies_now_and_then()
                if session is None:
                    session = await talk.server.create()
                await talk.server.open(session)
                for number in range(first, end - (run < len(killed_in))):
                    await _turn(talk, session, recorder, number)
                if run < len(killed_in):
                    copy = await _killed(talk, session, recorder, killed_in[run], armed, disk, workspace)
            if run < len(killed_in):
                workspace.put_back(copy)
    return recorder.exchanges


async def _turn(talk: Talk, session: str, recorder: Recorder, number: int) -> None:
    owner = await talk.server.registry.open_session(session)
    if number % turns_per_mode == turns_per_mode - 1:
        await owner.set_mode(MODES[number // turns_per_mode % len(MODES)])
    if number % 5 == 2:
        talk.server.workspace.write("AGENTS.md", f"Be brief, for the {number}th time.\n")
    if number % 10 == 5:
        await talk.server.say(session, "/recovery", f"slash-{number}")
    if number % 6 == 3:
        recorder.due = [(Say("It is."), End("stop"))]
        await talk.server.say(session, Prompt("Is it?", aside=True), f"aside-{number}")
    attached = (FileAttachment(f"f{number % 7}.txt"), TextAttachment("note", f"{number}")) if number % 4 == 1 else ()
    recorder.due = list(turn_of(number))
    await talk.server.say(session, Prompt(f"Do number {number}: “é”", attached), f"prompt-{number}")


async def _killed(
    talk: Talk,
    session: str,
    recorder: Recorder,
    call: Ask,
    armed: threading.Event,
    disk: GatedDisk,
    workspace: Workspace,
) -> Path:
    """A turn in which the server dies before the result of its call is on disk; a copy of what is on disk then."""
    owner = await talk.server.registry.open_session(session)
    await owner.set_mode("auto")
    recorder.due = [calling(call)]
    armed.set()
    accepted = await talk.server.send(session, "Do it, and be killed", f"prompt-{call.tool}")
    await disk.wait_reached()
    copy = workspace.keep(call.tool)
    known = len(recorder.exchanges)
    disk.go.set()
    await owner.feed.wait_until_ended(accepted.turn_id)
    del recorder.exchanges[known:]  # a killed server sends no more requests
    return copy


def _denies_now_and_then() -> Any:
    asked = iter(range(10**6))
    return lambda _: Choice("reject" if next(asked) % 3 == 2 else "once")


# --- measuring -----------------------------------------------------------------------------------------------


@attrs.frozen
class Measured:
    """The values of one recorded session, as the module defines them: shares of all bytes, and of the request with the
    least."""

    requests: int
    bytes: int  # of all prompts
    kept: float
    kept_least: float
    whole: float  # as `kept`, for whole requests with the options behind their messages
    seen: float
    hit: float
    hit_least: float  # as a share of what was seen


def measured(dialect: Dialect, exchanges: Sequence[Exchange]) -> Measured:
    """Every request but the first, compared with the previous one."""
    stems = [stem(exchange.body) for exchange in exchanges]
    cache = SimulatedCache()
    cache.take(stems[0])
    befores, kept, seen, hit, whole = list[Exchange](), list[int](), list[int](), list[int](), 0
    for at in range(1, len(stems)):
        last = next(exchange for exchange in reversed(exchanges[:at]) if not exchange.aside)
        befores.append(last)
        before, now = stem(last.body), stems[at]
        kept.append(common(before, now))
        whole += common(last.body, exchanges[at].body)
        reached = _with_the_answer(dialect, before, now, last.steps) if kept[-1] == len(before) else 0
        cache.units.add(now[:reached])
        seen.append(max(reached, kept[-1]))
        hit.append(cache.hit(now))
        cache.take(now)
    sizes = [len(stem(exchange.body)) for exchange in befores]
    return Measured(
        requests=len(stems),
        bytes=sum(map(len, stems)),
        kept=sum(kept) / sum(sizes),
        kept_least=min(share / size for share, size in zip(kept, sizes, strict=True)),
        whole=whole / sum(len(exchange.body) for exchange in befores),
        seen=sum(seen) / sum(map(len, stems[1:])),
        hit=sum(hit) / sum(map(len, stems[1:])),
        hit_least=min(got / had for got, had in zip(hit, seen, strict=True)),
    )


def common(one: bytes, other: bytes) -> int:
    """The number of bytes that both begin with."""
    if other.startswith(one):
        return len(one)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _with_the_answer(dialect: Dialect, before: bytes, now: bytes, steps: tuple[Step, ...] | None) -> int:
    """How far this prompt is the previous one and the answer to it, if the answer goes back unchanged."""
    mark = b'{"role":"assistant"'
    at = now.find(mark, len(before))
    if steps is None or at < 0 or now[len(before) : at].strip(b"]},"):
        return len(before)
    text = now[at:].decode()
    told, end = json.JSONDecoder().raw_decode(text)
    return at + len(text[:end].encode()) if _as_said(dialect, told, steps) else len(before)


def _as_said(dialect: Dialect, told: Any, steps: tuple[Step, ...]) -> bool:
    """Whether an outgoing message has what was streamed; ids are ours and not part of an answer."""
    streamed = (
        "".join(step.text for step in steps if isinstance(step, Say)),
        "".join(step.text for step in steps if isinstance(step, Think)),
        [(step.tool, "".join(step.fragments)) for step in steps if isinstance(step, Ask)],
    )
    if dialect == "chat":
        calls = [(call["function"]["name"], call["function"]["arguments"]) for call in told.get("tool_calls", ())]
        return streamed == (told["content"] or "", told["reasoning_content"], calls)
    blocks = told["content"]
    return streamed == (
        "".join(block.get("text", "") for block in blocks),
        "".join(block.get("thinking", "") for block in blocks),
        [(block["name"], json.dumps(block["input"], ensure_ascii=False)) for block in blocks if "input" in block],
    )


@attrs.define
class SimulatedCache:
    """Units as the module defines them."""

    units: set[bytes] = attrs.field(factory=set)
    prompts: list[bytes] = attrs.field(factory=list)

    def hit(self, prompt: bytes) -> int:
        """The number of bytes of the prompt that are in the cache."""
        return max((len(unit) for unit in self.units if prompt.startswith(unit)), default=0)

    def take(self, prompt: bytes) -> None:
        """Add the units of a request that has ended."""
        self.units.add(prompt)
        if self.prompts:
            self.units.add(prompt[: common(self.prompts[-1], prompt)])
        self.prompts.append(prompt)


def prefix_lines(base: Path, turns: int) -> Iterator[str]:
    """The lines of the table."""
    for dialect in ("chat", "messages"):
        folder = base / dialect
        folder.mkdir()
        found = measured(dialect, anyio.run(record, folder, dialect, turns))
        yield from shown(dialect, turns, found)


def shown(dialect: Dialect, turns: int, found: Measured) -> Iterator[str]:
    name = {"chat": "chat completions", "messages": "Messages API"}[dialect]
    yield f"{name}: {turns} turns, {found.requests} requests, {found.bytes / 1e6:.2f} MB of prompts"
    for what, share, more in (
        ("of the previous prompt, kept as the beginning", found.kept, f"least {found.kept_least:.2%}"),
        ("the same for whole requests with their options", found.whole, ""),
        ("of a prompt, seen before", found.seen, ""),
        ("of a prompt, hit in the simulated cache", found.hit, f"of what was seen; least {found.hit_least:.2%}"),
    ):
        yield f"  {what:<46}{share:>8.2%}  {more}".rstrip()
