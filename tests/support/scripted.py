"""A stage for turns in this process: a house on the real disk, a model and an editor that follow a script.

`ScriptedModel` plays answers, part by part: a part is streamed, a `Gate` is waited at, an exception is raised, and an
answer without `Finish` is a cut stream. `ScriptedEditor` keeps what it is told and answers questions in order; a `Park`
leaves one open. `Stage` is one life of the server; `stage.crashed(folder)` is what the next life finds if this one is
killed now: the same workspace and a copy of the state directory as it stands on disk.

A task of the house that ends with an exception fails the test. Nothing here waits without a limit.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs

from steadyhand.adapters.disk import system_disk
from steadyhand.core.folded import Call
from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import (
    CallProposed,
    Finish,
    FinishReason,
    ModelRequest,
    StreamPart,
    TextPart,
    ToolOffer,
    UsagePart,
)
from steadyhand.core.questions import Answer, HeldBackQuestion, PermissionQuestion, UserQuestion
from steadyhand.core.record import Cancel, EffectClass, Mode, Record, Result, Scope, Started, Unknown
from steadyhand.core.record import Tool as Replied
from steadyhand.core.scope import EVERYTHING, NOTHING
from steadyhand.core.settings import Settings
from steadyhand.core.show import call_state
from steadyhand.core.told import MessageTold, Told
from steadyhand.core.views import CallChanged, CallView, Event, TurnEnded, TurnEvent
from steadyhand.journal.format import read_journal
from steadyhand.ports import Disk, Models, OpenDocument, Processes
from steadyhand.session import prompts
from steadyhand.session.house import House
from steadyhand.session.owner import Owner
from steadyhand.session.prompts import Accepted
from steadyhand.session.world import World
from steadyhand.tools.catalogue import TOOLS
from steadyhand.tools.tool import Done, Gathered, Ground, Preview, Refusal, Running, Tool
from tests.support.disks import Operation, WatchedDisk
from tests.support.fakes import FakeClock, FakeIds, FakeProcesses

T = TypeVar("T")

wait_s_max = 10.0
ids_per_life = 1_000_000


async def until(look: Callable[[], bool], limit_s: float = wait_s_max) -> None:
    """Wait until something is so."""
    with anyio.fail_after(limit_s):
        # What is waited for is the state of a thread or of a file, which sets no event.
        while not look():  # noqa: ASYNC110
            await anyio.sleep(0.001)


@attrs.define(eq=False)
class Gate:
    """A place where somebody waits until the test lets them go on."""

    reached: anyio.Event = attrs.field(factory=anyio.Event)
    go: anyio.Event = attrs.field(factory=anyio.Event)

    async def passed(self) -> None:
        self.reached.set()
        await self.go.wait()

    async def wait_reached(self) -> None:
        with anyio.fail_after(wait_s_max):
            await self.reached.wait()


# The model.

Step: TypeAlias = "StreamPart | Gate | Exception"
Play: TypeAlias = Sequence[Step]
some_usage = UsagePart(input=10, output=5)


class ScriptedModel:
    """`ports.Models` and `ports.Model` in one; `requests` are what was asked. Without an answer left it says "done"."""

    def __init__(self, *answers: Play) -> None:
        self.answers: list[Play] = list(answers)
        self.requests: list[ModelRequest] = []

    def __call__(self, provider: str, name: str) -> ScriptedModel:
        return self

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.requests.append(request)
        for step in self.answers.pop(0) if self.answers else says("done"):
            match step:
                case Gate():
                    await step.passed()
                case Exception():
                    raise step
                case _:
                    await anyio.lowlevel.checkpoint()
                    yield step


def says(*texts: str, finish: FinishReason | None = "stop") -> list[Step]:
    """An answer of text alone; `finish` None: the stream is cut."""
    return [*map(TextPart, texts), some_usage, *([Finish(finish)] if finish else [])]


def asks(*calls: CallProposed, text: str = "", finish: FinishReason | None = "calls") -> list[Step]:
    """An answer with calls."""
    return [*([TextPart(text)] if text else []), *calls, some_usage, *([Finish(finish)] if finish else [])]


def call(tool: str, **arguments: Any) -> CallProposed:
    return CallProposed(tool, json.dumps(arguments))


def write(path: str, content: str) -> CallProposed:
    return call("write_file", path=path, content=content)


def read(path: str) -> CallProposed:
    return call("read_file", path=path)


def run(command: str, **more: Any) -> CallProposed:
    return call("run_command", command=command, **more)


# The editor.


@attrs.define(eq=False)
class Park:
    """A question that stays open until `answer_with`; `withdrawn` if it was taken back before."""

    question: PermissionQuestion | HeldBackQuestion | None = None
    withdrawn: bool = False
    gate: Gate = attrs.field(factory=Gate)
    answer: Answer | None = None

    def answer_with(self, option: str | None, note: str | None = None) -> None:
        self.answer = Answer(option, note) if option is not None else None
        self.gate.go.set()

    async def wait_open(self) -> PermissionQuestion:
        question = await self.wait_any()
        assert isinstance(question, PermissionQuestion)
        return question

    async def wait_any(self) -> PermissionQuestion | HeldBackQuestion:
        await self.gate.wait_reached()
        assert self.question is not None
        return self.question


class ScriptedEditor:
    """`ports.Editor`. `answers` are taken in order: an option's id, an Answer, None, or a Park; then "once"."""

    def __init__(self, *answers: str | Answer | Park | None) -> None:
        self.answers: list[str | Answer | Park | None] = list(answers)
        self.told: list[Told] = []
        self.questions: list[PermissionQuestion] = []
        self.held_back: list[HeldBackQuestion] = []
        self.somebody = True
        self.documents: dict[str, OpenDocument] = {}
        self.user_answers: list[str | None] = []  # of the model's and the house's own questions; then None
        self.user_questions: list[UserQuestion] = []
        self.on_save: Callable[[str, int], Awaitable[bool]] | None = None  # None: it cannot save on request
        self.on_question: Callable[[PermissionQuestion], None] = lambda _: None

    def tell(self, told: Told) -> None:
        self.told.append(told)

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()

    def attached(self) -> bool:
        return self.somebody

    async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
        self.questions.append(question)
        self.on_question(question)
        return await self._answered(question)

    async def ask_held_back(self, question: HeldBackQuestion) -> Answer | None:
        self.held_back.append(question)
        return await self._answered(question) if self.answers else Answer("refuse")

    async def ask_user(self, question: UserQuestion) -> str | None:
        self.user_questions.append(question)
        await anyio.lowlevel.checkpoint()
        return self.user_answers.pop(0) if self.user_answers else None

    def document(self, path: str) -> OpenDocument | None:
        return self.documents.get(path)

    def unsaved_paths(self) -> list[str]:
        return [path for path, document in self.documents.items() if document.unsaved is not False]

    def saves(self) -> bool:
        return self.on_save is not None

    async def save(self, path: str, version: int) -> bool:
        assert self.on_save is not None, "only what can save is asked to"
        return await self.on_save(path, version)

    async def _answered(self, question: PermissionQuestion | HeldBackQuestion) -> Answer | None:
        answer = self.answers.pop(0) if self.answers else "once"
        if not isinstance(answer, Park):
            await anyio.lowlevel.checkpoint()
            return Answer(answer) if isinstance(answer, str) else answer
        answer.question = question
        try:
            await answer.gate.passed()
        except anyio.get_cancelled_exc_class():
            answer.withdrawn = True
            raise
        return answer.answer

    def messages(self) -> list[str]:
        """What was shown to the person."""
        return [told.text for told in self.told if isinstance(told, MessageTold)]


# A tool and a disk that wait where the test says.


@attrs.define
class ScriptedTool:
    """`tools.Tool` whose body is the test's. `fails`: what `prepare` raises."""

    name: str
    body: Callable[[Running], Awaitable[Done]]
    effect: EffectClass = "reads"
    fails: Exception | None = None
    outside: tuple[str, ...] = ()

    @property
    def offer(self) -> ToolOffer:
        return ToolOffer(self.name, "A tool of a test.", canonical_json({"type": "object"}))

    def prepare(self, arguments: Arguments, ground: Ground) -> ScriptedPlan | Refusal:
        if self.fails is not None:
            raise self.fails
        return ScriptedPlan(self.name, self.effect, self.body, self.outside)


@attrs.frozen
class ScriptedPlan:
    """One call of it."""

    title: str
    effect: EffectClass
    body: Callable[[Running], Awaitable[Done]]
    outside: tuple[str, ...]
    protected: tuple[str, ...] = ()
    command: tuple[str, str] | None = None

    @property
    def scope(self) -> Scope:
        return NOTHING if self.effect == "reads" else EVERYTHING

    def preview(self) -> Preview | Refusal:
        return Preview("It does what the test says.")

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        return Gathered()

    async def run(self, running: Running) -> Done:
        return await self.body(running)


class GatedDisk(WatchedDisk):
    """Holds the first operation that `matches`, in its thread, until `go`; others pass.

    `fails`: it then raises this, before or (`after`) when it has acted."""

    def __init__(
        self, matches: Callable[[Operation], bool], fails: OSError | None = None, after: bool = False, held: bool = True
    ) -> None:
        super().__init__(system_disk())
        self.matches = matches
        self.fails = fails
        self.after = after
        self.reached = threading.Event()
        self.go = threading.Event()
        if not held:
            self.go.set()

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if self.reached.is_set() or not self.matches(operation):
            return act()
        self.reached.set()
        assert self.go.wait(wait_s_max), f"nobody let {operation} go on"
        if self.fails is None:
            return act()
        if self.after:
            act()
        raise self.fails

    async def wait_reached(self) -> None:
        assert await anyio.to_thread.run_sync(self.reached.wait, wait_s_max), "the operation never came"


def beside(verb: str, end: str) -> Callable[[Operation], bool]:
    """An operation of this verb on a target that ends so."""
    return lambda operation: operation.verb == verb and operation.target.endswith(end)


# The stage.


@attrs.define(eq=False)
class Stage:
    """One life of a server. `root`: the workspace; None: no folder is open."""

    root: Path
    state: Path
    house: House
    model: ScriptedModel
    editor: ScriptedEditor
    defects: list[str]

    # Sessions.

    async def session(self, mode: Mode | None = None, folder: bool = True) -> Owner:
        """A new session, in this mode."""
        view = await self.house.create(None, self.root.as_uri() if folder else None)
        owner = await self.house.owner(view.session_id)
        if mode is not None:
            await owner.set_mode(mode)
        return owner

    async def opened(self, session_id: str) -> Owner:
        await self.house.open(session_id, 100)
        return self.house.owners[session_id]

    # Turns.

    async def send(self, owner: Owner, text: str, name: str | None = None) -> Accepted:
        return await prompts.prompt(owner, owner.epoch, name or f"client-{len(owner.ledger.prompts)}", text)

    async def ended(self, owner: Owner, turn_id: str) -> TurnEnded:
        with anyio.fail_after(wait_s_max):
            return await owner.wait_ended(turn_id)

    async def say(self, owner: Owner, text: str = "go on", name: str | None = None) -> TurnEnded:
        """A whole turn."""
        accepted = await self.send(owner, text, name)
        return await self.ended(owner, accepted.turn_id)

    # What is there.

    def events(self, turn_id: str) -> list[Event]:
        return [told.event for told in self.numbered() if told.turn_id == turn_id]

    def numbered(self) -> list[TurnEvent]:
        return [told for told in self.editor.told if isinstance(told, TurnEvent)]

    def last_view(self, call_id: str) -> CallView:
        return [
            told.event.call
            for told in self.numbered()
            if isinstance(told.event, CallChanged) and told.event.call.call_id == call_id
        ][-1]

    def content(self, name: str) -> str | None:
        path = self.root / name
        return path.read_text() if path.exists() else None

    def crashed(self, folder: Path) -> Path:
        """A copy of the state directory as it is on disk now; give it to the next `staged`."""
        shutil.copytree(self.state, folder)
        return folder


def journal_path(state: Path, session_id: str) -> Path:
    return state / "sessions" / session_id / "journal.jsonl"


def on_disk(owner: Owner) -> list[Record]:
    """The records of the session's journal, as the file has them."""
    loaded = read_journal((Path(owner.path) / "journal.jsonl").read_bytes())
    assert not loaded.breaks, "the journal is healthy"
    return [stamped.record for stamped in loaded.records if not isinstance(stamped.record, Unknown)]


def kinds(owner: Owner) -> list[str]:
    return [record.kind for record in on_disk(owner)]


def calls_of(owner: Owner) -> list[Call]:
    """All calls, in the order they were proposed."""
    return list(owner.ledger.calls.values())


def states(owner: Owner) -> list[str]:
    """Their states on the wire."""
    return [call_state(each, owner.live) for each in calls_of(owner)]


def replies(owner: Owner) -> list[str]:
    return [each.reply.text if each.reply else "" for each in calls_of(owner)]


def outcomes(owner: Owner) -> list[tuple[str, str | None]]:
    """(outcome, reason) of each attempt with a result, in the order of the journal."""
    return [(record.outcome, record.reason) for record in on_disk(owner) if isinstance(record, Result)]


def assert_closed(owner: Owner) -> None:
    """Each call has exactly one reply, each attempt one end, and nothing starts after a cancel [I16]."""
    records = on_disk(owner)
    for each in calls_of(owner):
        told = [r for r in records if isinstance(r, Replied) and r.call_id == each.call_id]
        assert len(told) == 1, f"{len(told)} replies to a call"
    for attempt in owner.ledger.attempts.values():
        ends = [r for r in records if isinstance(r, Result) and r.attempt_id == attempt.attempt_id]
        assert len(ends) == (0 if attempt.effect == "reads" else 1), f"{len(ends)} results of {attempt.title}"
    cancelled = [place for place, record in enumerate(records) if isinstance(record, Cancel)]
    turns = {r.turn_id for r in records if isinstance(r, Cancel)}
    late = [
        record
        for record in records[min(cancelled, default=len(records)) :]
        if isinstance(record, Started) and owner.ledger.attempts[record.attempt_id].turn_id in turns
    ]
    assert late == [], "a tool started after the cancel was recorded"


@asynccontextmanager
async def staged(
    folder: Path,
    *answers: Play,
    editor: ScriptedEditor | None = None,
    disk: Disk | None = None,
    processes: Processes | None = None,
    tools: Sequence[Tool] = (),
    settings: Settings | None = None,
    state: Path | None = None,
    life: int = 1,
    models: Models | None = None,
) -> AsyncIterator[Stage]:
    """A life in `folder/ws` and `folder/state`; `state` and `life` for a later one; `models` instead of the script."""
    root, kept = folder / "ws", state or folder / "state"
    for made in (root, kept):
        made.mkdir(exist_ok=True)
    model, person = ScriptedModel(*answers), editor or ScriptedEditor()
    defects: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def guarded(work: Callable[[], Awaitable[None]], subject: str) -> None:
            try:
                await work()
            except Exception as defect:
                defects.append(f"{subject}: {defect!r}")

        def spawn(work: Callable[[], Awaitable[None]], subject: str) -> None:
            tasks.start_soon(guarded, work, subject)

        world = World(
            disk=disk or system_disk(),
            processes=processes or FakeProcesses(),
            clock=FakeClock(),
            ids=FakeIds(life * ids_per_life),
            models=models or model,
            requests_again_max=0,
            editor=person,
            tools={tool.name: tool for tool in (*TOOLS, *tools)},
            version="0.1",
            state_directory=str(kept.resolve()),
            spawn=spawn,
            settings=settings or Settings(),
        )
        stage = Stage(root.resolve(), kept.resolve(), House(world), model, person, defects)
        try:
            yield stage
        finally:
            with anyio.move_on_after(wait_s_max, shield=True):
                await stage.house.stop()
            tasks.cancel_scope.cancel()
    assert not defects, f"a task of the house failed: {defects}"
