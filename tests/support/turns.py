"""Turns in this process: a House over the system's disk and the practice model, with a scripted editor.

`Place` is one state directory and one workspace on the real disk; a `Rig` is one life of a server in it. Ids and
time come from counters, `life` keeps those of two lives apart, so that a test can say beforehand which session it
means. Faults come in through `disk` and `processes`; the rig knows of none.

    async with rig(place) as house:          one life
        session = await house.create()
        ended = await house.say(session, "write a.txt with new")

`forked` runs something in a process of its own and brings its value back, or says which signal ended it.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import signal
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import anyio
import anyio.lowlevel
import attrs

from steadyhand.adapters.children import SystemProcesses
from steadyhand.adapters.disk import system_disk
from steadyhand.adapters.model_practice import PracticeModel
from steadyhand.core.ledger import Ledger
from steadyhand.core.prompt import Prompt
from steadyhand.core.questions import Answer, HeldBackQuestion, PermissionQuestion, UserQuestion
from steadyhand.core.record import Mode
from steadyhand.core.recovery import SettleSetting
from steadyhand.core.settings import Settings
from steadyhand.core.told import MessageTold, Told
from steadyhand.core.views import TurnEnded, TurnEvent, Warned
from steadyhand.ports import Disk, Models, OpenDocument, Processes
from steadyhand.session import prompts
from steadyhand.session.house import House, OpenedView
from steadyhand.session.world import World
from steadyhand.tools.catalogue import TOOLS
from steadyhand.tools.tool import Tool
from tests.support.fakes import FakeClock, FakeIds

T = TypeVar("T")

turn_s_max = 20.0
ids_per_life = 1_000_000
messages_shown = 1000


@attrs.define
class ScriptedEditor:
    """`ports.Editor`: keeps what it is told; answers with what the test says, else allows once."""

    told: list[Told] = attrs.field(factory=list)
    questions: list[PermissionQuestion | HeldBackQuestion | UserQuestion] = attrs.field(factory=list)
    permission: Callable[[PermissionQuestion], Answer | None] = lambda _: Answer("once")
    held_back: Callable[[HeldBackQuestion], Answer | None] = lambda _: Answer("refuse")
    user: Callable[[UserQuestion], str | None] = lambda _: None
    somebody: bool = True
    documents: dict[str, OpenDocument] = attrs.field(factory=dict)
    heard: anyio.Event = attrs.field(factory=anyio.Event)

    def tell(self, told: Told) -> None:
        self.told.append(told)
        self.heard.set()
        self.heard = anyio.Event()

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()

    def attached(self) -> bool:
        return self.somebody

    async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
        self.questions.append(question)
        return self.permission(question)

    async def ask_held_back(self, question: HeldBackQuestion) -> Answer | None:
        self.questions.append(question)
        return self.held_back(question)

    async def ask_user(self, question: UserQuestion) -> str | None:
        self.questions.append(question)
        return self.user(question)

    def document(self, path: str) -> OpenDocument | None:
        return self.documents.get(path)

    def unsaved_paths(self) -> list[str]:
        return [path for path, document in self.documents.items() if document.unsaved is not False]

    def saves(self) -> bool:
        return False

    async def save(self, path: str, version: int) -> bool:
        return False

    @property
    def messages(self) -> list[str]:
        """The sentences shown to the person, in order."""
        return [told.text for told in self.told if isinstance(told, MessageTold)]

    @property
    def warnings(self) -> list[Warned]:
        """The warnings of all turns, in order."""
        events = [told.event for told in self.told if isinstance(told, TurnEvent)]
        return [event for event in events if isinstance(event, Warned)]


@attrs.frozen
class Place:
    """A state directory and a workspace, with links resolved."""

    base: Path

    @staticmethod
    def under(folder: Path) -> Place:
        place = Place(folder.resolve())
        place.workspace.mkdir(parents=True)
        return place

    @property
    def state(self) -> Path:
        return self.base / "state"

    @property
    def workspace(self) -> Path:
        return self.base / "workspace"

    @property
    def uri(self) -> str:
        return self.workspace.as_uri()

    def session(self, session_id: str) -> Path:
        return self.state / "sessions" / session_id

    def journal(self, session_id: str) -> bytes:
        """The bytes of a session's journal; none where there is no journal."""
        path = self.session(session_id) / "journal.jsonl"
        return path.read_bytes() if path.exists() else b""

    def write(self, name: str, content: str) -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
        return path

    def files(self) -> dict[str, str]:
        """Name → content of every file of the workspace, temporary ones too."""
        found = (path for path in sorted(self.workspace.rglob("*")) if path.is_file())
        return {path.relative_to(self.workspace).as_posix(): path.read_bytes().decode() for path in found}

    def keep(self, name: str) -> Path:
        """A copy of everything as it is now, beside it; for `put_back`."""
        copy = self.base.with_name(f"{self.base.name}-{name}")
        shutil.copytree(self.base, copy, symlinks=True)
        return copy

    def put_back(self, copy: Path) -> None:
        """Make everything as it was in that copy, under the same paths."""
        shutil.rmtree(self.base)
        shutil.copytree(copy, self.base, symlinks=True)


@attrs.frozen
class Rig:
    """One life of a server."""

    place: Place
    house: House
    editor: ScriptedEditor

    async def create(self, title: str | None = None) -> str:
        """A new session in the workspace; its id."""
        return (await self.house.create(title, self.place.uri)).session_id

    async def open(self, session_id: str) -> OpenedView:
        return await self.house.open(session_id, messages_shown)

    async def send(self, session_id: str, text: str | Prompt, client_message_id: str = "prompt-1") -> prompts.Accepted:
        """Hand in a prompt, as `turn/start` does; it is accepted when this returns."""
        owner = await self.house.owner(session_id)
        return await prompts.prompt(owner, owner.epoch, client_message_id, text)

    async def say(self, session_id: str, text: str | Prompt, client_message_id: str = "prompt-1") -> TurnEnded:
        """A whole turn; how it ended."""
        accepted = await self.send(session_id, text, client_message_id)
        owner = await self.house.owner(session_id)
        with anyio.fail_after(turn_s_max):
            return await owner.wait_ended(accepted.turn_id)

    def ledger(self, session_id: str) -> Ledger:
        """The ledger of an open session."""
        return self.house.owners[session_id].ledger

    async def until(self, found: Callable[[], T | None], limit_s: float = turn_s_max) -> T:
        """What `found` gives as soon as it is not None; looked for whenever the editor is told something."""
        with anyio.fail_after(limit_s):
            while (value := found()) is None:
                await self.editor.heard.wait()
        return value


@asynccontextmanager
async def rig(
    place: Place,
    *,
    life: int = 1,
    disk: Disk | None = None,
    processes: Processes | None = None,
    models: Models = lambda provider, name: PracticeModel(),
    requests_again_max: int = 0,
    pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    tools: Sequence[Tool] = (),
    mode: Mode = "auto",
    settle: SettleSetting = "checked",
    editor: ScriptedEditor | None = None,
) -> AsyncIterator[Rig]:
    """One life of a server, from its start to an orderly end. `life`: its number, from 1, for its ids. `pause`: how
    long a repeated request waits. `tools`: beside those of the catalogue."""
    place.state.mkdir(parents=True, exist_ok=True)
    editor = editor or ScriptedEditor()
    async with anyio.create_task_group() as tasks:

        def spawn(work: Callable[[], Awaitable[None]], name: str) -> None:
            async def task() -> None:
                await work()

            tasks.start_soon(task, name=name)

        world = World(
            disk=disk or system_disk(),
            processes=processes or SystemProcesses(),
            clock=FakeClock(),
            ids=FakeIds((life - 1) * ids_per_life + 1),
            models=models,
            requests_again_max=requests_again_max,
            pause=pause,
            editor=editor,
            tools={tool.name: tool for tool in (*TOOLS, *tools)},
            version="0.0",
            state_directory=str(place.state),
            spawn=spawn,
            settings=Settings(mode=mode, settle=settle),
        )
        house = House(world)
        yield Rig(place, house, editor)
        await house.stop()
        tasks.cancel_scope.cancel()


@attrs.frozen
class Died(Generic[T]):
    """How a forked process ended: `signal` if one ended it, else its value."""

    signal: int | None
    value: T | None = None


def forked(live: Callable[[], Awaitable[T]]) -> Died[T]:
    """Run a coroutine in a fork of this process; its value (pickled) or the signal that ended it.

    An exception there is an AssertionError here, with its traceback. Threads are not forked: there may be none.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_the_fork(live, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            content = pipe.read()
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        return Died(-code)
    done, value = pickle.loads(content)
    assert done, value
    return Died(None, value)


def _be_the_fork(live: Callable[[], Awaitable[Any]], writing: int) -> None:
    try:
        gc.disable()
        try:
            result = (True, anyio.run(live))
        except BaseException:
            result = (False, traceback.format_exc())
        content = pickle.dumps(result)
        while content:
            content = content[os.write(writing, content) :]
    finally:
        os._exit(0)
