"""The server in the test process: a session registry over the disk, with a model and an editor of the test.

`build_context` is the only place in the tests that constructs what the sessions of a process share. Two context
managers start a server and stop it at their end; they differ in the defaults alone:

    practice_server(workspace)           the practice model, real child processes, mode "auto"
    scripted_server(folder, *answers)    a model that plays `answers`, fake processes, default settings

Ids and times come from counters. `run` is the number of the process run, from 1; it keeps the ids of two runs apart, so
that a test knows beforehand which session it means. To continue after a kill, start the next run on what is on disk:
on the same workspace, or on the copy of the state directory that `InProcessServer.crashed` makes.

A background task that fails ends the test. Each wait has a limit.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import attrs

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.adapters.models.practice import PracticeModel
from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Mode
from steadyhand.domain.recovery.tables import SettleSetting
from steadyhand.domain.settings import SandboxSettings, Settings
from steadyhand.domain.views.types import CallChanged, CallView, Event, TurnEnded, TurnEvent
from steadyhand.journal.ownership import OWNER_LOCK
from steadyhand.ports.disk import Disk
from steadyhand.ports.model import Models
from steadyhand.ports.processes import Processes
from steadyhand.session.context import OpenFolder, SessionContext
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.build_context import build_context as build_session_context
from steadyhand.session.service.registry import SessionRegistry, SessionSnapshot
from steadyhand.session.session import Session
from steadyhand.tools.contract import NOT_CONFINED, Tool
from steadyhand.tools.registry import TOOLS
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeClock, FakeIds, FakeProcesses
from tests.support.model import Play, ScriptedModel
from tests.support.workspace import Workspace

T = TypeVar("T")
Spawn = Callable[[Callable[[], Awaitable[None]], str], None]

turn_s_max = 60.0
stop_s_max = 10.0
ids_per_run = 1_000_000
messages_shown = 1000


def build_context(
    state_directory: str,
    *,
    disk: Disk,
    processes: Processes,
    models: Models,
    spawn: Spawn = lambda work, subject: None,
    run: int = 1,
    editor: ScriptedEditor | None = None,
    tools: Sequence[Tool] = (),
    settings: Settings | None = None,
    requests_again_max: int = 0,
    pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    sandbox: SandboxSettings = NOT_CONFINED,
    open_folders: Callable[[], Sequence[OpenFolder]] = tuple,
) -> SessionContext:
    """What the sessions of one process share. `sandbox` replaces that of `settings`. `tools` are added to those of the
    catalogue; without `spawn` background tasks are dropped. `pause` waits before a repeated request to the model.
    """
    return build_session_context(
        disk=disk,
        processes=processes,
        clock=FakeClock(),
        ids=FakeIds((run - 1) * ids_per_run + 1),
        models=models,
        requests_again_max=requests_again_max,
        pause=pause,
        editor=editor or ScriptedEditor(),
        tools={tool.name: tool for tool in (*TOOLS, *tools)},
        version="0.1",
        state_directory=state_directory,
        spawn=spawn,
        settings=attrs.evolve(settings or Settings(), sandbox=sandbox),
        open_folders=open_folders,
    )


@attrs.define(eq=False)
class InProcessServer:
    """One process run of a server. A `session` is the id of a session, or the open session itself."""

    workspace: Workspace
    registry: SessionRegistry
    editor: ScriptedEditor
    model: ScriptedModel = attrs.field(factory=ScriptedModel)  # which plays if the server was given no other
    defects: list[str] = attrs.field(factory=list)  # of background tasks; must be empty at the end

    @property
    def root(self) -> Path:
        return self.workspace.root

    @property
    def state(self) -> Path:
        return self.workspace.state

    # Sessions.

    async def create(self, title: str | None = None) -> str:
        """Create a session in the workspace and return its id."""
        return (await self.registry.create(title, self.workspace.uri)).session_id

    async def open(self, session_id: str) -> SessionSnapshot:
        return await self.registry.open(session_id, messages_shown)

    async def session(self, mode: Mode | None = None, folder: bool = True) -> Session:
        """Create a session in this mode; with `folder` false it has no workspace folder."""
        view = await self.registry.create(None, self.workspace.uri if folder else None)
        session = await self.registry.open_session(view.session_id)
        if mode is not None:
            await session.set_mode(mode)
        return session

    async def opened(self, session_id: str) -> Session:
        await self.open(session_id)
        return self.registry.sessions[session_id]

    def ledger(self, session_id: str) -> Ledger:
        """The ledger of an open session."""
        return self.registry.sessions[session_id].ledger

    async def _open_session(self, session: str | Session) -> Session:
        return await self.registry.open_session(session) if isinstance(session, str) else session

    @contextmanager
    def owned_elsewhere(self, session_id: str) -> Iterator[None]:
        """The lock of a session is held, as by another process, until the end of the context."""
        disk = self.registry.context.disk
        folder = disk.open_folder(str(self.workspace.session_directory(session_id)))
        lock = disk.lock(folder, OWNER_LOCK)
        assert lock is not None
        try:
            yield
        finally:
            lock.release()
            disk.close(folder)

    # Turns.

    async def send(
        self, session: str | Session, text: str | Prompt, client_message_id: str | None = None
    ) -> prompt_queue.Accepted:
        """Send a prompt as `turn/start` does; it is accepted when this returns."""
        owner = await self._open_session(session)
        return await prompt_queue.submit(
            owner, owner.epoch, client_message_id or f"client-{len(owner.ledger.prompts)}", text
        )

    async def ended(self, session: str | Session, turn_id: str) -> TurnEnded:
        """Wait until a turn ends."""
        owner = await self._open_session(session)
        with anyio.fail_after(turn_s_max):
            return await owner.feed.wait_until_ended(turn_id)

    async def say(
        self, session: str | Session, text: str | Prompt = "go on", client_message_id: str | None = None
    ) -> TurnEnded:
        """Run a whole turn and return how it ended."""
        accepted = await self.send(session, text, client_message_id)
        return await self.ended(session, accepted.turn_id)

    async def until(self, found: Callable[[], T | None], limit_s: float = turn_s_max) -> T:
        """Wait until `found` returns a value; it is called again at each notification to the editor."""
        with anyio.fail_after(limit_s):
            while (value := found()) is None:
                await self.editor.news.wait()
        return value

    # What there is.

    def events(self, turn_id: str) -> list[Event]:
        return [told.event for told in self.numbered() if told.turn_id == turn_id]

    def numbered(self) -> list[TurnEvent]:
        """The events of all turns with their numbers, as they were sent."""
        return [told for told in self.editor.told if isinstance(told, TurnEvent)]

    def last_view(self, call_id: str) -> CallView:
        """What the editor was told last about a call."""
        return [
            told.event.call
            for told in self.numbered()
            if isinstance(told.event, CallChanged) and told.event.call.call_id == call_id
        ][-1]

    def content(self, name: str) -> str | None:
        """The text of a file of the workspace; None if there is no file."""
        return self.workspace.content(name)

    def crashed(self, folder: Path) -> Path:
        """Copy the state directory as it is on disk now; a later run gets the copy as `state`."""
        shutil.copytree(self.state, folder)
        return folder


S = TypeVar("S", bound=InProcessServer)


@asynccontextmanager
async def running_server(start: Callable[[Spawn, list[str]], S], *, collects_defects: bool = False) -> AsyncIterator[S]:
    """Run the server that `start` builds, until the end of the context, and stop it.

    A background task that fails cancels the test. With `collects_defects` the test goes on, and fails at its end
    unless it removed the defect from the list.
    """
    defects: list[str] = []
    async with anyio.create_task_group() as tasks:

        async def guarded(work: Callable[[], Awaitable[None]], subject: str) -> None:
            try:
                await work()
            except Exception as defect:
                if not collects_defects:
                    raise
                defects.append(f"{subject}: {defect!r}")

        def spawn(work: Callable[[], Awaitable[None]], subject: str) -> None:
            tasks.start_soon(guarded, work, subject, name=subject)

        server = start(spawn, defects)
        try:
            yield server
        finally:
            with anyio.move_on_after(stop_s_max, shield=True):
                await server.registry.stop()
            tasks.cancel_scope.cancel()
    assert not defects, f"a background task failed: {defects}"


@asynccontextmanager
async def practice_server(
    workspace: Workspace,
    *,
    run: int = 1,
    disk: Disk | None = None,
    processes: Processes | None = None,
    models: Models = lambda provider, name: PracticeModel(),
    requests_again_max: int = 0,
    pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    tools: Sequence[Tool] = (),
    mode: Mode = "auto",
    settle: SettleSetting = "checked",
    retry: bool = False,
    editor: ScriptedEditor | None = None,
    sandbox: SandboxSettings = NOT_CONFINED,
    open_folders: Callable[[], Sequence[OpenFolder]] = tuple,
    settings: Settings | None = None,
) -> AsyncIterator[InProcessServer]:
    """A server with the practice model on this workspace; faults come from `disk` and `processes`.

    `open_folders`: what the client has open. `settings` replaces mode, settle and retry.
    """
    editor = editor or ScriptedEditor()

    workspace.state.mkdir(parents=True, exist_ok=True)

    def start(spawn: Spawn, defects: list[str]) -> InProcessServer:
        context = build_context(
            str(workspace.state),
            disk=disk or system_disk(),
            processes=processes or SystemProcesses(),
            models=models,
            spawn=spawn,
            run=run,
            editor=editor,
            tools=tools,
            settings=settings or Settings(mode=mode, settle=settle, retry=retry),
            sandbox=sandbox,
            open_folders=open_folders,
            requests_again_max=requests_again_max,
            pause=pause,
        )
        return InProcessServer(workspace, SessionRegistry(context), editor, defects=defects)

    async with running_server(start) as server:
        yield server


@asynccontextmanager
async def scripted_server(
    folder: Path,
    *answers: Play,
    editor: ScriptedEditor | None = None,
    disk: Disk | None = None,
    processes: Processes | None = None,
    tools: Sequence[Tool] = (),
    settings: Settings | None = None,
    state: Path | None = None,
    run: int = 1,
    models: Models | None = None,
    sandbox: SandboxSettings = NOT_CONFINED,
) -> AsyncIterator[InProcessServer]:
    """A server with a scripted model on `folder/ws` and `folder/state`.

    A later run has another `run`, and perhaps another `state`. `models` replaces the scripted model.
    """
    workspace = Workspace.under(folder, state)
    model, editor = ScriptedModel(*answers), editor or ScriptedEditor()

    workspace.state.mkdir(parents=True, exist_ok=True)

    def start(spawn: Spawn, defects: list[str]) -> InProcessServer:
        context = build_context(
            str(workspace.state),
            disk=disk or system_disk(),
            processes=processes or FakeProcesses(),
            models=models or model,
            spawn=spawn,
            run=run,
            editor=editor,
            tools=tools,
            settings=settings,
            sandbox=sandbox,
        )
        return InProcessServer(workspace, SessionRegistry(context), editor, model, defects)

    async with running_server(start, collects_defects=True) as server:
        yield server
