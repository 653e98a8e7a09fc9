"""Lives of the server on a simulated disk: the real house with its journal, tools and recovery, and who watches it.

A `Story` is what one life does (tests/prove/stories.py has them). `watched` wraps the product's own functions so that
the log of the disk also says when records became durable and when a body was entered; it changes nothing else.
`reopened` is what the next process does with what is left: the owner lock, the journal, the verdicts, without an event
loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache
from typing import Any

import anyio
import attrs

from steadyhand.core.ledger import Ledger
from steadyhand.core.questions import Answer, PermissionQuestion
from steadyhand.core.record import Mode, Record, Stamped
from steadyhand.core.recovery import SettleSetting
from steadyhand.core.settings import Settings
from steadyhand.core.views import TurnEnded
from steadyhand.journal import format as journal_format
from steadyhand.journal.log import Journal, load
from steadyhand.session import opening, prompts
from steadyhand.session.folder import announce, session_path, take
from steadyhand.session.house import House
from steadyhand.session.jobs import CallJobs
from steadyhand.session.owner import Owner
from steadyhand.session.world import World
from steadyhand.tools.catalogue import TOOLS
from steadyhand.tools.change import PlannedChange
from steadyhand.tools.delete_file import PlannedDeletion
from steadyhand.tools.move_file import PlannedMove
from steadyhand.tools.restore import PlannedRestore
from steadyhand.tools.run_command import PlannedCommand
from steadyhand.tools.stop_command import PlannedStop
from steadyhand.tools.tool import Done, Running, Tool
from tests.prove.truth import STATE, WORK, Bytes, Scene, bytes_of, digest
from tests.support.calling_model import either_models
from tests.support.fakes import FakeClock, FakeIds, FakeProcesses, Run, Script, id_of
from tests.support.sim_disk import SimDisk, Tree, tree_of
from tests.support.turns import ScriptedEditor

SESSION = id_of(1)  # the first id of the first life
ids_per_life = 1_000_000
turn_s_max = 30.0
lines_kept_max = 100_000
READING = frozenset(tool.name for tool in TOOLS if tool.effect == "reads")
COUNTER = f"{WORK}/counter.txt"


def many(word: str) -> str:
    """A content of two sectors and a bit, unlike any other word's."""
    return f"{word} " * (1100 // (len(word) + 1))


FIRST = {
    f"{WORK}/notes.txt": b"a note\n",
    f"{WORK}/old.txt": many("old").encode(),
    f"{WORK}/edited.txt": f"one\n{many('more')}\n".encode(),
}


def first_tree() -> Tree:
    """The disk before the first life."""
    return tree_of({STATE: None, WORK: None, **FIRST})


SCENE = Scene(SESSION, {path: digest(content) for path, content in FIRST.items()}, frozenset({COUNTER}))


@attrs.frozen
class Stage:
    """One life, running."""

    disk: SimDisk
    house: House
    editor: ScriptedEditor

    async def create(self) -> str:
        view = await self.house.create(None, "file:///work")
        self.disk.mark("created")
        return view.session_id

    async def send(self, text: str, client_message_id: str, session_id: str = SESSION) -> prompts.Accepted:
        owner = await self.house.owner(session_id)
        return await prompts.prompt(owner, owner.epoch, client_message_id, text)

    async def owner(self, session_id: str = SESSION) -> Owner:
        return await self.house.owner(session_id)

    async def say(self, text: str, client_message_id: str = "p1", session_id: str = SESSION) -> TurnEnded:
        """A whole turn."""
        accepted = await self.send(text, client_message_id, session_id)
        with anyio.fail_after(turn_s_max):
            return await (await self.house.owner(session_id)).wait_ended(accepted.turn_id)


@asynccontextmanager
async def life(
    disk: SimDisk,
    number: int = 1,
    mode: Mode = "auto",
    settle: SettleSetting = "checked",
    editor: ScriptedEditor | None = None,
    processes: FakeProcesses | None = None,
    tools: Sequence[Tool] = (),
) -> AsyncIterator[Stage]:
    """A server on this disk, to its orderly end. `number`: which life, from 1, for its ids."""
    editor = editor or ScriptedEditor()
    async with anyio.create_task_group() as tasks:
        world = world_on(disk, number, mode, settle, editor, processes)
        world.tools |= {tool.name: tool for tool in tools}

        def spawn(work: Callable[[], Awaitable[None]], name: str) -> None:
            async def named() -> None:
                await work()

            tasks.start_soon(named, name=name)

        world.spawn = spawn
        house = House(world)
        yield Stage(disk, house, editor)
        await house.stop()
        tasks.cancel_scope.cancel()


def world_on(
    disk: SimDisk,
    number: int,
    mode: Mode = "auto",
    settle: SettleSetting = "checked",
    editor: ScriptedEditor | None = None,
    processes: FakeProcesses | None = None,
) -> World:
    return World(
        disk=disk,
        processes=processes or played(disk),
        clock=FakeClock(),
        ids=FakeIds((number - 1) * ids_per_life + 1),
        models=either_models,
        editor=editor or ScriptedEditor(),
        tools={tool.name: tool for tool in TOOLS},
        version="0.0",
        state_directory=STATE,
        spawn=lambda work, name: None,
        settings=Settings(mode=mode, settle=settle, retry=True),
    )


def played(disk: SimDisk) -> FakeProcesses:
    """Commands that do what `command` does; "serve" runs until it is ended."""
    serving = Script((b"up\n",), hangs=True)
    return FakeProcesses({"serve": serving}, Script((b"done\n",), effect=lambda run: command(disk, run)))


def command(disk: SimDisk, run: Run) -> None:
    """What the commands of the stories do; like most commands they sync nothing."""
    if run.command == "makefolder":
        disk.folder_unsynced(f"{WORK}/made")
    disk.append_unsynced(COUNTER, b"ran\n")


# What the watchers see.


def watched() -> None:
    """Let the log of a `SimDisk` say what was promised. Once in each process, after all other patches."""
    append, commanded, stopped = Journal.append, PlannedCommand.run, PlannedStop.run

    def kept(self: Journal, records: Sequence[Record], barrier: bool) -> tuple[Stamped, ...]:
        stamped = append(self, records, barrier)
        disk = self._disk
        if barrier and isinstance(disk, SimDisk):
            disk.mark(("kept", tuple((one.seq, one.sum) for one in stamped)))
        return stamped

    async def run_command(self: PlannedCommand, running: Running) -> Done:
        if self.effect != "reads":
            _entered(self.ground.disk, running)
        return await commanded(self, running)

    async def run_stop(self: PlannedStop, running: Running) -> Done:
        if isinstance(running.jobs, CallJobs):
            _entered(running.jobs.owner.world.disk, running)
        return await stopped(self, running)

    Journal.append = kept  # type: ignore[method-assign]  # a test watches
    PlannedCommand.run = run_command  # type: ignore[method-assign]  # a test watches
    PlannedStop.run = run_stop  # type: ignore[method-assign]  # a test watches
    for planned in (PlannedChange, PlannedMove, PlannedDeletion, PlannedRestore):
        _watch_body(planned)
    # A pure function of one line; thousands of states have the same lines.
    journal_format._read_line = lru_cache(lines_kept_max)(journal_format._read_line)


def _watch_body(planned: Any) -> None:
    """Of a call that changes files."""
    body = planned.run

    async def run(self: Any, running: Running) -> Done:
        _entered(self._ground.disk, running)
        done: Done = await body(self, running)
        return done

    planned.run = run


def _entered(disk: object, running: Running) -> None:
    if isinstance(disk, SimDisk):
        disk.mark(("ran", running.attempt_id))


# A story.


@attrs.frozen
class Story:
    """What one life does, after its session's creation."""

    name: str
    tell: Callable[[Stage], Awaitable[None]]
    scene: Scene = SCENE
    exchanges: bool = True
    mode: Mode = "auto"
    permission: Callable[[PermissionQuestion], Answer | None] = lambda _: Answer("once")
    processes: Callable[[SimDisk], FakeProcesses] = played

    def disk(self) -> SimDisk:
        disk = SimDisk(first_tree())
        disk.exchanges = self.exchanges
        return disk

    def stage(self, disk: SimDisk) -> AbstractAsyncContextManager[Stage]:
        """Its life."""
        editor = ScriptedEditor(permission=self.permission)
        return life(disk, mode=self.mode, editor=editor, processes=self.processes(disk))

    async def live(self, disk: SimDisk) -> None:
        async with self.stage(disk) as stage:
            await stage.create()
            await self.tell(stage)

    def told(self) -> SimDisk:
        """The disk after it."""
        disk = self.disk()
        anyio.run(self.live, disk)
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
    disk: SimDisk, number: int, settle: SettleSetting = "checked", session_id: str = SESSION
) -> Reopened | None:
    """Open the session as the house does, and let it go. None: there is no session."""
    path = session_path(STATE, session_id)
    world = world_on(disk, number, settle=settle)
    try:
        folder = disk.open_folder(path)
    except FileNotFoundError:
        return None
    look = disk.look(folder, "journal.jsonl")
    if look is None or look.size == 0:
        return None
    loaded = load(disk, folder)
    if not loaded.records and not loaded.damaged and not loaded.newer:
        return None  # it was promised to nobody
    held = take(disk, folder, path)
    assert held is not None, "the lock is free"
    ground = world.ground(WORK, path)
    opened = opening.open_owned(world, held, world.ids.new(), ground, READING, None)
    if opened.journal is not None:
        announce(disk, world.processes, world.clock, world.ids, held)
        opened.journal.close()
    held.lock.release()
    disk.close(folder)
    why = opened.read_only.text if opened.read_only else None
    return Reopened(disk, opened.ledger, opened.damaged, opened.journal is not None, why)


def outcomes(ledger: Ledger) -> dict[str, tuple[object, ...]]:
    """What is said of each call, for comparing two openings."""
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
