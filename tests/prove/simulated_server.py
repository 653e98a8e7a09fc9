"""The server on a simulated disk: the real sessions with their journal, tools and recovery, and the marks that judge
them.

A `Scenario` is what one process run does (tests/prove/scenarios.py has them). `watched` wraps the product's own
functions so that the log of the disk also says when records became durable and when a body was entered; it changes
nothing else. `reopened` is what the next process does with the disk: the lock, the journal, the verdicts, without an
event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio
import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Mode, Record, Stamped
from steadyhand.domain.recovery.tables import SettleSetting
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.questions import Choice, PermissionQuestion
from steadyhand.domain.views.types import TurnEnded
from steadyhand.journal import format as journal_format
from steadyhand.journal.journal import Journal, load
from steadyhand.session.context import SessionContext
from steadyhand.session.jobs.jobs import CallJobs
from steadyhand.session.recovery import open
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.session import Session
from steadyhand.session.storage.lock import session_path, take_lock, write_owner
from steadyhand.tools.builtin.delete_file import PlannedDeletion
from steadyhand.tools.builtin.move_file import PlannedMove
from steadyhand.tools.builtin.run_command import PlannedCommand
from steadyhand.tools.builtin.stop_command import PlannedStop
from steadyhand.tools.contract import CallContext, Tool, ToolOutcome
from steadyhand.tools.registry import TOOLS
from steadyhand.tools.writes.planned_write import PlannedChange
from steadyhand.tools.writes.restore import PlannedRestore
from tests.prove.truth import STATE, WORK, Bytes, Scene, bytes_of, digest
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Run, Script, id_of
from tests.support.in_process_server import InProcessServer, Spawn, build_context, running_server
from tests.support.model import either_models
from tests.support.sim_disk import SimDisk, Tree, tree_of
from tests.support.workspace import Workspace

SESSION = id_of(1)  # the first id of the first run
lines_kept_max = 100_000
READING = frozenset(tool.name for tool in TOOLS if tool.effect == "reads")
COUNTER = f"{WORK}/counter.txt"


def many(word: str) -> str:
    """A content of a little more than two sectors, different for each word."""
    return f"{word} " * (1100 // (len(word) + 1))


FIRST = {
    f"{WORK}/notes.txt": b"a note\n",
    f"{WORK}/old.txt": many("old").encode(),
    f"{WORK}/edited.txt": f"one\n{many('more')}\n".encode(),
}


def first_tree(names: Mapping[str, str] | None = None) -> Tree:
    """The disk before the first process run. `names`: as in `tree_of`."""
    return tree_of({STATE: None, WORK: None, **FIRST}, dict(names or {}))


SCENE = Scene(SESSION, {path: digest(content) for path, content in FIRST.items()}, frozenset({COUNTER}))


@attrs.define(eq=False)
class SimulatedServer(InProcessServer):
    """One process run on a simulated disk."""

    disk: SimDisk = attrs.field(kw_only=True)

    async def create(self, title: str | None = None) -> str:
        session_id = await super().create(title)
        self.disk.mark("created")
        return session_id

    async def turn(self, text: str, client_message_id: str = "p1") -> TurnEnded:
        """Run a whole turn of `SESSION`."""
        return await self.say(SESSION, text, client_message_id)

    async def main_session(self) -> Session:
        """`SESSION`, open."""
        return await self.registry.open_session(SESSION)


@asynccontextmanager
async def simulated_server(
    disk: SimDisk,
    run: int = 1,
    mode: Mode = "auto",
    settle: SettleSetting = "checked",
    editor: ScriptedEditor | None = None,
    processes: FakeProcesses | None = None,
    tools: Sequence[Tool] = (),
) -> AsyncIterator[SimulatedServer]:
    """A server on this disk, until it stops in order. `run`: the number of the process run, from 1, for its ids."""
    editor = editor or ScriptedEditor()

    def start(spawn: Spawn, defects: list[str]) -> SimulatedServer:
        context = context_on(disk, run, mode, settle, editor, processes, tools, spawn)
        return SimulatedServer(
            Workspace(Path(WORK), Path(STATE)), SessionRegistry(context), editor, disk=disk, defects=defects
        )

    async with running_server(start) as server:
        yield server


def context_on(
    disk: SimDisk,
    run: int,
    mode: Mode = "auto",
    settle: SettleSetting = "checked",
    editor: ScriptedEditor | None = None,
    processes: FakeProcesses | None = None,
    tools: Sequence[Tool] = (),
    spawn: Spawn = lambda work, subject: None,
) -> SessionContext:
    return build_context(
        STATE,
        disk=disk,
        processes=processes or played(disk),
        models=either_models,
        spawn=spawn,
        run=run,
        editor=editor,
        tools=tools,
        settings=Settings(mode=mode, settle=settle, retry=True),
    )


def played(disk: SimDisk) -> FakeProcesses:
    """Commands that do what `command` does; "serve" runs until it is ended."""
    serving = Script((b"up\n",), hangs=True)
    return FakeProcesses({"serve": serving}, Script((b"done\n",), effect=lambda run: command(disk, run)))


def command(disk: SimDisk, run: Run) -> None:
    """What the commands of the scenarios do. Like most commands they sync nothing."""
    if run.command == "makefolder":
        disk.folder_unsynced(f"{WORK}/made")
    disk.append_unsynced(COUNTER, b"ran\n")


# Marks in the log.


def watched() -> None:
    """Let the log of a `SimDisk` say what was promised. Call it once in each process, after all other patches."""
    append, commanded, stopped = Journal.append, PlannedCommand.run, PlannedStop.run

    def kept(self: Journal, records: Sequence[Record], barrier: bool) -> tuple[Stamped, ...]:
        stamped = append(self, records, barrier)
        disk = self._disk
        if barrier and isinstance(disk, SimDisk):
            disk.mark(("kept", tuple((one.seq, one.sum) for one in stamped)))
        return stamped

    async def run_command(self: PlannedCommand, running: CallContext) -> ToolOutcome:
        if self.effect != "reads":
            _entered(self.tool_context.disk, running)
        return await commanded(self, running)

    async def run_stop(self: PlannedStop, running: CallContext) -> ToolOutcome:
        if isinstance(running.jobs, CallJobs):
            _entered(running.jobs.session.context.disk, running)
        return await stopped(self, running)

    Journal.append = kept  # type: ignore[method-assign]  # a test watches
    PlannedCommand.run = run_command  # type: ignore[method-assign]  # a test watches
    PlannedStop.run = run_stop  # type: ignore[method-assign]  # a test watches
    for planned in (PlannedChange, PlannedMove, PlannedDeletion, PlannedRestore):
        _watch_body(planned)
    # A pure function of one line; thousands of states have the same lines.
    journal_format._read_line = lru_cache(lines_kept_max)(journal_format._read_line)


def _watch_body(planned: Any) -> None:
    """The same for a call that changes files."""
    body = planned.run

    async def run(self: Any, running: CallContext) -> ToolOutcome:
        _entered(self._tool_context.disk, running)
        done: ToolOutcome = await body(self, running)
        return done

    planned.run = run


def _entered(disk: object, running: CallContext) -> None:
    if isinstance(disk, SimDisk):
        disk.mark(("ran", running.attempt_id))


# A scenario.


@attrs.frozen
class Scenario:
    """What one process run does after it created its session."""

    name: str
    play: Callable[[SimulatedServer], Awaitable[None]]
    scene: Scene = SCENE
    exchanges: bool = True
    mode: Mode = "auto"
    permission: Callable[[PermissionQuestion], Choice | None] = lambda _: Choice("once")
    processes: Callable[[SimDisk], FakeProcesses] = played
    names: Mapping[str, str] = attrs.field(factory=dict)  # second name in the same folder → path of the file

    def disk(self) -> SimDisk:
        """The disk before the scenario."""
        disk = SimDisk(first_tree(self.names))
        disk.exchanges = self.exchanges
        return disk

    def server(self, disk: SimDisk) -> AbstractAsyncContextManager[SimulatedServer]:
        editor = ScriptedEditor(permission=self.permission)
        return simulated_server(disk, mode=self.mode, editor=editor, processes=self.processes(disk))

    async def run(self, disk: SimDisk) -> None:
        async with self.server(disk) as server:
            await server.create()
            await self.play(server)

    def played(self) -> SimDisk:
        """The disk after the scenario."""
        disk = self.disk()
        anyio.run(self.run, disk)
        return disk


# The next process.


@attrs.frozen
class Reopened:
    """What the next process found and did; its disk has the log of it."""

    disk: SimDisk
    ledger: Ledger
    damaged: int
    writable: bool
    why: str | None


def reopened(
    disk: SimDisk,
    run: int,
    settle: SettleSetting = "checked",
    session_id: str = SESSION,
    editor: ScriptedEditor | None = None,
    living: Iterable[int] = (),
) -> Reopened | None:
    """Open the session as the server does, and release it. None: there is no session. `living`: processes."""
    path = session_path(STATE, session_id)
    processes = played(disk)
    processes.living.update(living)
    context = context_on(disk, run, settle=settle, editor=editor, processes=processes)
    try:
        folder = disk.open_folder(path)
    except FileNotFoundError:
        return None
    look = disk.look(folder, "journal.jsonl")
    if look is None or look.size == 0:
        return None
    loaded = load(disk, folder)
    if not loaded.records and not loaded.damaged and not loaded.newer:
        return None  # nothing was promised
    held = take_lock(disk, folder, path)
    assert held is not None, "the lock is free"
    tool_context = context.tool_context(WORK, path)
    opened = open.open_owned(context, held, context.ids.new(), tool_context, READING, None)
    if opened.journal is not None:
        write_owner(disk, context.processes, context.clock, context.ids, held)
        opened.journal.close()
    held.lock.release()
    disk.close(folder)
    why = opened.read_only.text if opened.read_only else None
    return Reopened(disk, opened.ledger, opened.damaged, opened.journal is not None, why)


def outcomes(ledger: Ledger) -> dict[str, tuple[object, ...]]:
    """What is said of each call, to compare two openings."""
    return {
        call_id: tuple(
            (
                attempt.stage,
                attempt.result and attempt.result.outcome,
                attempt.settlement and attempt.settlement.settled,
            )
            for attempt in call.attempts
        )
        for call_id, call in ledger.calls.items()
    }


def seen(disk: SimDisk, session_id: str = SESSION) -> Bytes:
    """What a process sees of the disk now."""
    return bytes_of(disk.now(), session_id)
