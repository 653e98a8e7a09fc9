"""Lives of the server on a simulated disk: the real house with its journal, tools and recovery, and who watches it.

A `Story` is what one life does. `watched` wraps the product's own functions so that the log of the disk also says when
records became durable and when a body was entered; it changes nothing else. `reopened` is what the next process does
with what is left: the owner lock, the journal, the verdicts, without an event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache

import anyio
import attrs

from steadyhand.adapters.model_practice import PracticeModel
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
from steadyhand.session.world import World
from steadyhand.tools.catalogue import TOOLS
from steadyhand.tools.change import PlannedChange
from steadyhand.tools.run_command import PlannedCommand
from steadyhand.tools.tool import Done, Running
from tests.prove.truth import STATE, WORK, Bytes, Scene, bytes_of, digest
from tests.support.fakes import FakeClock, FakeIds, FakeProcesses, Run, Script, id_of
from tests.support.sim_disk import SimDisk, Tree, tree_of
from tests.support.turns import ScriptedEditor

SESSION = id_of(1)  # the first id of the first life
ids_per_life = 1_000_000
turn_s_max = 30.0
lines_kept_max = 100_000
READING = frozenset(tool.name for tool in TOOLS if tool.effect == "reads")
COUNTER = f"{WORK}/counter.txt"
LONG_OUTPUT = b"a line of output\n" * 4000


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
) -> AsyncIterator[Stage]:
    """A server on this disk, to its orderly end. `number`: which life, from 1, for its ids."""
    editor = editor or ScriptedEditor()
    async with anyio.create_task_group() as tasks:
        world = world_on(disk, number, mode, settle, editor, processes)

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
        processes=processes or FakeProcesses(otherwise=Script((b"done\n",), effect=lambda run: _command(disk, run))),
        clock=FakeClock(),
        ids=FakeIds((number - 1) * ids_per_life + 1),
        models=lambda provider, name: PracticeModel(),
        editor=editor or ScriptedEditor(),
        tools={tool.name: tool for tool in TOOLS},
        version="0.0",
        state_directory=STATE,
        spawn=lambda work, name: None,
        settings=Settings(mode=mode, settle=settle),
    )


def _command(disk: SimDisk, run: Run) -> None:
    """What the commands of the stories do; like most commands they sync nothing."""
    if run.command == "makefolder":
        disk.folder_unsynced(f"{WORK}/made")
    disk.append_unsynced(COUNTER, b"ran\n")


# What the watchers see.


def watched() -> None:
    """Let the log of a `SimDisk` say what was promised. Once in each process, after all other patches."""
    append, change, command = Journal.append, PlannedChange.run, PlannedCommand.run

    def kept(self: Journal, records: Sequence[Record], barrier: bool) -> tuple[Stamped, ...]:
        stamped = append(self, records, barrier)
        disk = self._disk
        if barrier and isinstance(disk, SimDisk):
            disk.mark(("kept", tuple((one.seq, one.sum) for one in stamped)))
        return stamped

    async def changed(self: PlannedChange, running: Running) -> Done:
        _entered(self._ground.disk, running)
        return await change(self, running)

    async def commanded(self: PlannedCommand, running: Running) -> Done:
        if self.effect != "reads":
            _entered(self.ground.disk, running)
        return await command(self, running)

    Journal.append = kept  # type: ignore[method-assign]  # a test watches
    PlannedChange.run = changed  # type: ignore[method-assign]  # a test watches
    PlannedCommand.run = commanded  # type: ignore[method-assign]  # a test watches
    # A pure function of one line; thousands of states have the same lines.
    journal_format._read_line = lru_cache(lines_kept_max)(journal_format._read_line)


def _entered(disk: object, running: Running) -> None:
    if isinstance(disk, SimDisk):
        disk.mark(("ran", running.attempt_id))


# The stories.


@attrs.frozen
class Story:
    """What one life does, beginning with its session's creation."""

    name: str
    live: Callable[[SimDisk], Awaitable[None]]
    scene: Scene = SCENE
    exchanges: bool = True

    def disk(self) -> SimDisk:
        disk = SimDisk(first_tree())
        disk.exchanges = self.exchanges
        return disk

    def told(self) -> SimDisk:
        """The disk after it."""
        disk = self.disk()
        anyio.run(self.live, disk)
        return disk


def _lines(*lines: str) -> str:
    return "\n".join(lines)


PLAIN = _lines(
    "show notes.txt",
    f'write new.txt with "{many("new")}"',
    f'write old.txt with "{many("changed")}"',
    "replace one with two in edited.txt",
    "run count",
)


async def _plain(disk: SimDisk) -> None:
    async with life(disk) as stage:
        await stage.create()
        await stage.say(PLAIN)


async def _again(disk: SimDisk) -> None:
    """One file several times, in folders that are new, with a long output between."""
    editor = ScriptedEditor()
    long = Script((LONG_OUTPUT,), effect=lambda run: _command(disk, run))
    processes = FakeProcesses({"long": long}, Script((b"done\n",), effect=lambda run: _command(disk, run)))
    async with life(disk, editor=editor, processes=processes) as stage:
        await stage.create()
        await stage.say(_lines(f'write deep/er/a.txt with "{many("first")}"', "show old.txt"))
        await stage.say(_lines("run makefolder", f'write made/b.txt with "{many("inside")}"', "run long"), "p2")
        await stage.say(_lines(f'write deep/er/a.txt with "{many("third")}"', 'write old.txt with ""'), "p3")


async def _asked(disk: SimDisk) -> None:
    """Each effect is asked for, and one is refused."""

    def permission(question: PermissionQuestion) -> Answer:
        return Answer("reject" if "edited" in question.title else "once")

    async with life(disk, mode="ask", editor=ScriptedEditor(permission=permission)) as stage:
        await stage.create()
        await stage.say(
            _lines(f'write old.txt with "{many("allowed")}"', "run count", "replace one with two in edited.txt")
        )


async def _stopped(disk: SimDisk) -> None:
    """Three turns are stopped in the middle of a body: before the gate, before and after the replacement."""
    from steadyhand.session.stopping import stop_turn

    async with life(disk) as stage:
        session_id = await stage.create()
        owner = await stage.house.owner(session_id)
        for number, verb in enumerate(("give_attributes", "exchange", "unlink"), 1):
            met: list[str] = []

            def stop(seen: str, target: str, verb: str = verb, met: list[str] = met) -> None:
                if seen == verb and not met:
                    met.append(verb)
                    anyio.from_thread.run(stop_turn, owner, None)

            disk.before = stop
            await stage.say(f'write old.txt with "{many(f"stopped{number}")}"', f"p{number}")
        disk.before = None


async def _moved(disk: SimDisk) -> None:
    """Files are moved, within a folder and into a new one, and removed."""
    async with life(disk) as stage:
        await stage.create()
        await stage.say(
            _lines(
                "move old.txt to older.txt", "move older.txt to deep/er/oldest.txt", "delete edited.txt", "run count"
            )
        )


def _saving(verb_of: dict[str, str]) -> Callable[[SimDisk], Awaitable[None]]:
    """Somebody saves each of these files directly before the operation of that kind that belongs to it."""

    async def live(disk: SimDisk) -> None:
        todo = dict(verb_of)

        def save(verb: str, target: str) -> None:
            for path, when in list(todo.items()):
                name = path.rpartition("/")[2]
                if verb == when and f".{name}." in target:
                    del todo[path]
                    content = many(f"theirs{name.partition('.')[0]}").encode()
                    disk.mark(("saving", path, digest(content)))
                    disk.place(path, content)
                    disk.mark(("theirs", path, digest(content)))

        disk.before = save
        async with life(disk) as stage:
            await stage.create()
            await stage.say(PLAIN)
        assert not todo, f"nobody saved {todo}"

    return live


STORIES = {
    story.name: story
    for story in (
        Story("plain", _plain),
        Story("again", _again),
        Story("asked", _asked, attrs.evolve(SCENE, asks=True)),
        Story("stopped", _stopped),
        Story(
            "saved at the exchange",
            _saving({f"{WORK}/old.txt": "exchange", f"{WORK}/edited.txt": "exchange", f"{WORK}/new.txt": "rename_new"}),
        ),
        Story(
            "saved before the gate",
            _saving({f"{WORK}/old.txt": "sync", f"{WORK}/edited.txt": "sync", f"{WORK}/new.txt": "sync"}),
            exchanges=False,
        ),
        Story("moved", _moved),
        Story("no exchange", _plain, exchanges=False),
    )
}


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
