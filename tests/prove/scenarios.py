"""The scenarios of the proof: what one process run does on a simulated disk, before a power loss, a fault or a kill.

Files are written, edited, written in place, moved, moved over others and deleted, in new folders; commands run, also
in the background; somebody else saves at the worst moment; a turn is cancelled; the user is asked for each effect.
Files are changed through an editor (`in_the_editor`), and changes are taken back (`taking_back`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio
import attrs

from steadyhand.domain.views.questions import Choice, PermissionQuestion
from steadyhand.session.calls.cancel import stop_turn
from tests.prove.in_the_editor import IN_THE_EDITOR
from tests.prove.simulated_server import SCENE, Scenario, SimulatedServer, command, many, played
from tests.prove.taking_back import TAKEN_BACK
from tests.prove.truth import WORK, digest
from tests.support.fakes import FakeProcesses, Script
from tests.support.sim_disk import SimDisk

LONG_OUTPUT = b"a line of output\n" * 4000


def lines(*each: str) -> str:
    return "\n".join(each)


PLAIN = lines(
    "show notes.txt",
    f'write new.txt with "{many("new")}"',
    f'write old.txt with "{many("changed")}"',
    "replace one with two in edited.txt",
    "run count",
)


async def _plain(server: SimulatedServer) -> None:
    await server.turn(PLAIN)


async def _again(server: SimulatedServer) -> None:
    """One file several times, in new folders, with a long output between."""
    await server.turn(lines(f'write deep/er/a.txt with "{many("first")}"', "show old.txt"))
    await server.turn(lines("run makefolder", f'write made/b.txt with "{many("inside")}"', "run long"), "p2")
    await server.turn(lines(f'write deep/er/a.txt with "{many("third")}"', 'write old.txt with ""'), "p3")


def _long(disk: SimDisk) -> FakeProcesses:
    processes = played(disk)
    processes.scripts["long"] = Script((LONG_OUTPUT,), effect=lambda run: command(disk, run))
    return processes


async def _asked(server: SimulatedServer) -> None:
    """The user is asked for each effect, and refuses one."""
    await server.turn(
        lines(f'write old.txt with "{many("allowed")}"', "run count", "replace one with two in edited.txt")
    )


def _not_edited(question: PermissionQuestion) -> Choice:
    return Choice("reject" if "edited" in question.title else "once")


async def _stopped(server: SimulatedServer) -> None:
    """Three turns are cancelled in the middle of a body: before the comparison, before and after the replacement."""
    disk = server.disk
    session = await server.main_session()
    for number, verb in enumerate(("give_attributes", "exchange", "unlink"), 1):
        met: list[str] = []

        def stop(seen: str, target: str, verb: str = verb, met: list[str] = met) -> None:
            if seen == verb and not met:
                met.append(verb)
                anyio.from_thread.run(stop_turn, session, None)

        disk.before = stop
        await server.turn(f'write old.txt with "{many(f"stopped{number}")}"', f"p{number}")
    disk.before = None


MOVED = lines("move old.txt to older.txt", "move older.txt to deep/er/oldest.txt", "delete edited.txt", "run count")


async def _moved(server: SimulatedServer) -> None:
    """Files are moved, within a folder and into a new one, and removed."""
    await server.turn(MOVED)


async def _handed(server: SimulatedServer) -> None:
    """What the practice model has no word for: a move over a file, and a command in the background."""
    await server.turn(
        lines(
            'move_file {"from": "old.txt", "to": "edited.txt", "overwrite": true}',
            'run_command {"command": "serve", "background": true}',
            'command_output {"jobId": "<job>"} & todo {"items": [{"text": "serve", "state": "doing"}]}',
            'delete_file {"path": "notes.txt"}',
            'stop_command {"jobId": "<job>"}',
        )
    )


async def _in_place(server: SimulatedServer) -> None:
    """Files with two names are written over: longer, edited, and shorter than before."""
    await server.turn(lines(f'write old.txt with "{many("changed") * 2}"', "replace one with two in edited.txt"))
    await server.turn(lines('write old.txt with "short"', "run count"), "p2")


TWO_NAMES = {"second.txt": f"{WORK}/old.txt", "other.txt": f"{WORK}/edited.txt"}
TWO_NAMED = attrs.evolve(
    SCENE, first={**SCENE.first, **{f"{WORK}/{name}": SCENE.first[path] for name, path in TWO_NAMES.items()}}
)


@attrs.frozen
class Save:
    """Somebody saves a file right before an operation of this kind on a target with this name."""

    verb: str
    target: str


def _saving(saves: Mapping[str, Save], text: str) -> Callable[[SimulatedServer], Awaitable[None]]:
    async def tell(server: SimulatedServer) -> None:
        disk, todo = server.disk, dict(saves)

        def save(verb: str, target: str) -> None:
            for path, when in list(todo.items()):
                if verb == when.verb and when.target in target:
                    del todo[path]
                    content = many(f"theirs{path.rpartition('/')[2].partition('.')[0]}").encode()
                    disk.mark(("saving", path, digest(content)))
                    disk.place(path, content)
                    disk.mark(("theirs", path, digest(content)))

        disk.before = save
        await server.turn(text)
        assert not todo, f"nobody saved {todo}"

    return tell


def _beside(**verbs: str) -> dict[str, Save]:
    """Name without its extension → the kind of operation on its temporary file."""
    return {f"{WORK}/{name}.txt": Save(verb, f".{name}.txt.") for name, verb in verbs.items()}


MOVING = {
    f"{WORK}/old.txt": Save("rename_to", "old.txt -> older.txt"),
    f"{WORK}/noted.txt": Save("rename_to", "notes.txt -> noted.txt"),
    f"{WORK}/edited.txt": Save("rename_new", "edited.txt -> "),
}
MOVING_TEXT = lines("move old.txt to older.txt", "move notes.txt to noted.txt", "delete edited.txt", "run count")

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("plain", _plain),
        Scenario("again", _again, processes=_long),
        Scenario("asked", _asked, attrs.evolve(SCENE, asks=True), mode="ask", permission=_not_edited),
        Scenario("stopped", _stopped),
        Scenario("saved at the exchange", _saving(_beside(old="exchange", edited="exchange", new="rename_new"), PLAIN)),
        Scenario(
            "saved before the gate", _saving(_beside(old="sync", edited="sync", new="sync"), PLAIN), exchanges=False
        ),
        Scenario("saved at the move", _saving(MOVING, MOVING_TEXT)),
        Scenario("moved", _moved),
        Scenario("handed", _handed),
        Scenario("no exchange", _plain, exchanges=False),
        Scenario("in place", _in_place, TWO_NAMED, names=TWO_NAMES),
        IN_THE_EDITOR,
        *TAKEN_BACK,
    )
}
