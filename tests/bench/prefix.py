"""How much of each request a provider has seen before: a long session over HTTP, and a simulated cache (row P4).

The session is the real one: adapters, loop, journal, tools, modes. Its turns read, write, edit, move, run, batch,
think, fail, are refused, denied, cut off and asked again; files are attached and change afterwards; quick questions
stand between; the mode changes; the server is killed in a write, and in a command, and is taken up again each time.
What the provider got is kept byte for byte. A quick question is no part of the history: the request before a request
is the last one that was none.

    prompt    a request's bytes up to the end of its last message: what becomes tokens; the rest are options
    kept      of the prompt before, the share that this one begins with
    seen      of a prompt, the share that stood in the prompt before it, or in the answer to that one
    hit       of a prompt, the share that the simulated cache gives back

The cache follows what DeepSeek documents today: a unit ends where the input of a request ends, where the answer to it
ends, and where two requests part; a request hits the longest unit that it begins with, as a whole. The units at fixed
distances that it also has are left out, as they could only hide something.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import attrs

from steadyhand.core.prompt import FileAttachment, Prompt, TextAttachment
from steadyhand.core.questions import Answer
from steadyhand.core.record import Mode
from tests.models.dialogue import Talk, answer, stem, talking
from tests.models.streams import Ask, Dialect, End, Say, Step, Think, plain, written
from tests.support.scripted import GatedDisk
from tests.support.scripted_provider import CUT, Scripted, ScriptedProvider
from tests.support.turns import Place

MODES: tuple[Mode, ...] = ("auto", "edits", "ask", "plan")
turns_per_mode = 4


@attrs.frozen
class Exchange:
    """One request as it came, and what was answered; `steps` None: nothing whole."""

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
    """The answers of one turn; a Scripted one fails and is asked for again."""
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
    """Answers as the turns say, and keeps what was asked."""

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


async def record(folder: Path, dialect: Dialect, turns: int) -> list[Exchange]:
    """A session of so many turns: in thirds, of which the first ends killed in a write, the second in a command."""
    place, recorder = Place.under(folder), Recorder(dialect)
    place.write("AGENTS.md", "Be brief.\n")
    bounds = [0, turns // 3, 2 * turns // 3, turns]
    killed_in = [
        ask("write_file", path="killed.txt", content="written before the kill\n"),
        ask("run_command", command="echo killed >> log.txt"),
    ]
    session: str | None = None
    async with ScriptedProvider(answering=recorder) as provider:
        for life, (first, end) in enumerate(pairwise(bounds)):
            armed = threading.Event()
            disk = GatedDisk(lambda operation, armed=armed: armed.is_set() and "result" in operation.kinds)
            async with talking(place, dialect, provider, life=life + 1, disk=disk) as talk:
                talk.editor.held_back = lambda _: Answer("waive")
                talk.editor.permission = _denies_now_and_then()
                if session is None:
                    session = await talk.rig.create()
                await talk.rig.open(session)
                for number in range(first, end - (life < len(killed_in))):
                    await _turn(talk, session, recorder, number)
                if life < len(killed_in):
                    copy = await _killed(talk, session, recorder, killed_in[life], armed, disk, place)
            if life < len(killed_in):
                place.put_back(copy)
    return recorder.exchanges


async def _turn(talk: Talk, session: str, recorder: Recorder, number: int) -> None:
    owner = await talk.rig.house.owner(session)
    if number % turns_per_mode == turns_per_mode - 1:
        await owner.set_mode(MODES[number // turns_per_mode % len(MODES)])
    if number % 5 == 2:
        talk.rig.place.write("AGENTS.md", f"Be brief, for the {number}th time.\n")
    if number % 10 == 5:
        await talk.rig.say(session, "/recovery", f"slash-{number}")
    if number % 6 == 3:
        recorder.due = [(Say("It is."), End("stop"))]
        await talk.rig.say(session, Prompt("Is it?", aside=True), f"aside-{number}")
    attached = (FileAttachment(f"f{number % 7}.txt"), TextAttachment("note", f"{number}")) if number % 4 == 1 else ()
    recorder.due = list(turn_of(number))
    await talk.rig.say(session, Prompt(f"Do number {number}: “é”", attached), f"prompt-{number}")


async def _killed(
    talk: Talk, session: str, recorder: Recorder, call: Ask, armed: threading.Event, disk: GatedDisk, place: Place
) -> Path:
    """A turn in which the server dies before the result of its call is on disk: what stands there then."""
    owner = await talk.rig.house.owner(session)
    await owner.set_mode("auto")
    recorder.due = [calling(call)]
    armed.set()
    accepted = await talk.rig.send(session, "Do it, and be killed", f"prompt-{call.tool}")
    await disk.wait_reached()
    copy = place.keep(call.tool)
    known = len(recorder.exchanges)
    disk.go.set()
    await owner.wait_ended(accepted.turn_id)
    del recorder.exchanges[known:]  # the dead ask nothing
    return copy


def _denies_now_and_then() -> Any:
    asked = iter(range(10**6))
    return lambda _: Answer("reject" if next(asked) % 3 == 2 else "once")


# --- measuring -----------------------------------------------------------------------------------------------


@attrs.frozen
class Measured:
    """Of one recorded session, as the module says; shares of all bytes, and of the request that had least."""

    requests: int
    bytes: int  # of all prompts
    kept: float
    kept_least: float
    whole: float  # as `kept`, of whole requests with the options behind their messages
    seen: float
    hit: float
    hit_least: float  # of what was seen


def measured(dialect: Dialect, exchanges: Sequence[Exchange]) -> Measured:
    """Every request but the first against the one before it."""
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
    """How many bytes they begin with in common."""
    if other.startswith(one):
        return len(one)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _with_the_answer(dialect: Dialect, before: bytes, now: bytes, steps: tuple[Step, ...] | None) -> int:
    """How far this prompt is the one before it and the answer to that, if the answer goes back as it was said."""
    mark = b'{"role":"assistant"'
    at = now.find(mark, len(before))
    if steps is None or at < 0 or now[len(before) : at].strip(b"]},"):
        return len(before)
    text = now[at:].decode()
    told, end = json.JSONDecoder().raw_decode(text)
    return at + len(text[:end].encode()) if _as_said(dialect, told, steps) else len(before)


def _as_said(dialect: Dialect, told: Any, steps: tuple[Step, ...]) -> bool:
    """Whether an outgoing message says what was streamed; ids are ours and no part of an answer."""
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
    """Units as the module says."""

    units: set[bytes] = attrs.field(factory=set)
    prompts: list[bytes] = attrs.field(factory=list)

    def hit(self, prompt: bytes) -> int:
        """How many bytes of it are there."""
        return max((len(unit) for unit in self.units if prompt.startswith(unit)), default=0)

    def take(self, prompt: bytes) -> None:
        """A request is over."""
        self.units.add(prompt)
        if self.prompts:
            self.units.add(prompt[: common(self.prompts[-1], prompt)])
        self.prompts.append(prompt)


def prefix_lines(base: Path, turns: int) -> Iterator[str]:
    """The table's lines."""
    for dialect in ("chat", "messages"):
        folder = base / dialect
        folder.mkdir()
        found = measured(dialect, anyio.run(record, folder, dialect, turns))
        yield from shown(dialect, turns, found)


def shown(dialect: Dialect, turns: int, found: Measured) -> Iterator[str]:
    name = {"chat": "chat completions", "messages": "Messages API"}[dialect]
    yield f"{name}: {turns} turns, {found.requests} requests, {found.bytes / 1e6:.2f} MB of prompts"
    for what, share, more in (
        ("of the prompt before, kept as the beginning", found.kept, f"least {found.kept_least:.2%}"),
        ("the same of whole requests, options and all", found.whole, ""),
        ("of a prompt, seen before", found.seen, ""),
        ("of a prompt, hit in the simulated cache", found.hit, f"of what was seen, least {found.hit_least:.2%}"),
    ):
        yield f"  {what:<46}{share:>8.2%}  {more}".rstrip()
