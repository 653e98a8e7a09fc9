"""The stories of the proof: what one life does on a simulated disk, before power is lost, something fails, or it dies.

Files are written, edited, moved, moved over others and deleted, in folders that are new; commands run, also in the
background; somebody else saves at the worst moment; a turn is stopped; each effect is asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import anyio
import attrs

from steadyhand.core.questions import Answer, PermissionQuestion
from steadyhand.session.stopping import stop_turn
from tests.prove.lives import SCENE, Stage, Story, command, many, played
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


async def _plain(stage: Stage) -> None:
    await stage.say(PLAIN)


async def _again(stage: Stage) -> None:
    """One file several times, in folders that are new, with a long output between."""
    await stage.say(lines(f'write deep/er/a.txt with "{many("first")}"', "show old.txt"))
    await stage.say(lines("run makefolder", f'write made/b.txt with "{many("inside")}"', "run long"), "p2")
    await stage.say(lines(f'write deep/er/a.txt with "{many("third")}"', 'write old.txt with ""'), "p3")


def _long(disk: SimDisk) -> FakeProcesses:
    processes = played(disk)
    processes.scripts["long"] = Script((LONG_OUTPUT,), effect=lambda run: command(disk, run))
    return processes


async def _asked(stage: Stage) -> None:
    """Each effect is asked for, and one is refused."""
    await stage.say(lines(f'write old.txt with "{many("allowed")}"', "run count", "replace one with two in edited.txt"))


def _not_edited(question: PermissionQuestion) -> Answer:
    return Answer("reject" if "edited" in question.title else "once")


async def _stopped(stage: Stage) -> None:
    """Three turns are stopped in the middle of a body: before the gate, before and after the replacement."""
    disk = stage.disk
    owner = await stage.owner()
    for number, verb in enumerate(("give_attributes", "exchange", "unlink"), 1):
        met: list[str] = []

        def stop(seen: str, target: str, verb: str = verb, met: list[str] = met) -> None:
            if seen == verb and not met:
                met.append(verb)
                anyio.from_thread.run(stop_turn, owner, None)

        disk.before = stop
        await stage.say(f'write old.txt with "{many(f"stopped{number}")}"', f"p{number}")
    disk.before = None


MOVED = lines("move old.txt to older.txt", "move older.txt to deep/er/oldest.txt", "delete edited.txt", "run count")


async def _moved(stage: Stage) -> None:
    """Files are moved, within a folder and into a new one, and removed."""
    await stage.say(MOVED)


async def _handed(stage: Stage) -> None:
    """What the practice model has no word for: a move over a file, and a command in the background."""
    await stage.say(
        lines(
            'move_file {"from": "old.txt", "to": "edited.txt", "overwrite": true}',
            'run_command {"command": "serve", "background": true}',
            'command_output {"jobId": "<job>"} & todo {"items": [{"text": "serve", "state": "doing"}]}',
            'delete_file {"path": "notes.txt"}',
            'stop_command {"jobId": "<job>"}',
        )
    )


@attrs.frozen
class Save:
    """Somebody saves a file directly before an operation of that kind on a target that names this."""

    verb: str
    target: str


def _saving(saves: Mapping[str, Save], text: str) -> Callable[[Stage], Awaitable[None]]:
    async def tell(stage: Stage) -> None:
        disk, todo = stage.disk, dict(saves)

        def save(verb: str, target: str) -> None:
            for path, when in list(todo.items()):
                if verb == when.verb and when.target in target:
                    del todo[path]
                    content = many(f"theirs{path.rpartition('/')[2].partition('.')[0]}").encode()
                    disk.mark(("saving", path, digest(content)))
                    disk.place(path, content)
                    disk.mark(("theirs", path, digest(content)))

        disk.before = save
        await stage.say(text)
        assert not todo, f"nobody saved {todo}"

    return tell


def _beside(**verbs: str) -> dict[str, Save]:
    """Name without its end → the kind of operation on its temporary file."""
    return {f"{WORK}/{name}.txt": Save(verb, f".{name}.txt.") for name, verb in verbs.items()}


MOVING = {
    f"{WORK}/old.txt": Save("rename_to", "old.txt -> older.txt"),
    f"{WORK}/noted.txt": Save("rename_to", "notes.txt -> noted.txt"),
    f"{WORK}/edited.txt": Save("rename_new", "edited.txt -> "),
}
MOVING_TEXT = lines("move old.txt to older.txt", "move notes.txt to noted.txt", "delete edited.txt", "run count")

STORIES = {
    story.name: story
    for story in (
        Story("plain", _plain),
        Story("again", _again, processes=_long),
        Story("asked", _asked, attrs.evolve(SCENE, asks=True), mode="ask", permission=_not_edited),
        Story("stopped", _stopped),
        Story("saved at the exchange", _saving(_beside(old="exchange", edited="exchange", new="rename_new"), PLAIN)),
        Story("saved before the gate", _saving(_beside(old="sync", edited="sync", new="sync"), PLAIN), exchanges=False),
        Story("saved at the move", _saving(MOVING, MOVING_TEXT)),
        Story("moved", _moved),
        Story("handed", _handed),
        Story("no exchange", _plain, exchanges=False),
    )
}
