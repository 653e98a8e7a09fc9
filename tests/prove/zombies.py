"""L7: an old owner or an old attempt that is stopped and goes on later, and children that hide.

`stopped_owners`: a real process is stopped (SIGSTOP) before each operation of the story, another one opens the session,
the first goes on. The owner lock holds: the second writes nothing, changes nothing and says who has it, and the first
ends its story as if nobody had come.

`stopped_attempts`: one operation of a body hangs, its session is closed and opened anew, the operation goes on then.
Whatever was settled in between stays true: the old attempt does not commit behind a verdict.

`left_jobs`: a background command outlives its killed server; it is told, and ended by its mark alone.

`hiding_children`: a command leaves children behind that leave its session, clear their environment, fork twice, close
their descriptors, and its server is killed. Each that carries the mark is named; the others are never denied.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio
import attrs

from steadyhand.adapters.disk import system_disk
from steadyhand.core.refusal import Refused
from steadyhand.core.views import InspectionView
from steadyhand.ports import Survivor
from steadyhand.session import house as houses
from steadyhand.session import resolving
from tests.crash.promises import SESSION, WORDS, lay_out, tell_story
from tests.prove.kills import operations, scratch
from tests.prove.lives import SCENE, first_tree, life, many, outcomes, reopened, seen
from tests.prove.power import JOURNAL
from tests.prove.tally import Tally
from tests.prove.truth import Truth, broken_on_disk, marks_in
from tests.support.disks import Operation, WatchedDisk
from tests.support.fakes import FakeProcesses
from tests.support.sim_disk import SimDisk
from tests.support.turns import Place, forked, rig

T = TypeVar("T")

owner_wait_s = 0.02
close_s = 0.05
child_s_max = 20.0
stop_s_max = 20.0
poll_s = 0.005


class StoppingDisk(WatchedDisk):
    """Stops this process before the n-th durable operation, until somebody lets it go on."""

    def __init__(self, at: int) -> None:
        super().__init__(system_disk())
        self.at = at

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if operation.number == self.at:
            # To this very thread: a signal to the process may let it go on for a moment.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return act()


def stopped_owners(tally: Tally, part: int, parts: int, each: int = 1) -> None:
    """`states` counts operations before which the owner was stopped."""
    folder = scratch()
    try:
        for operation in operations(folder)[part :: parts * each]:
            tally.states += 1
            _stopped_owner(folder, operation, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stopped_owner(folder: Path, operation: Operation, tally: Tally) -> None:
    where = f"stopped before operation {operation.number}: {operation}"
    place = lay_out(Place.under(folder / str(operation.number)))

    async def old() -> None:
        async with rig(place, disk=StoppingDisk(operation.number)) as house:
            await tell_story(house)

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            anyio.run(old)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, os.WUNTRACED)
    try:
        if not os.WIFSTOPPED(status):
            tally.violation("an owner was not stopped", where)
            return
        before = (place.journal(SESSION), place.files())
        problem = forked(lambda: _second(place)).value
        if problem:
            tally.violation(problem, where)
        if (place.journal(SESSION), place.files()) != before:
            tally.violation("a second process wrote while the owner lived", where)
    finally:
        os.kill(pid, signal.SIGCONT)
        _, status = os.waitpid(pid, 0)
    if status != 0 or place.files() != WORDS.last_files:
        tally.violation("a stopped owner did not end its story", where)
    shutil.rmtree(place.base, ignore_errors=True)


async def _second(place: Place) -> str | None:
    """What is wrong with how a second process sees a session that has an owner."""
    houses.owner_wait_s_max = owner_wait_s
    async with rig(place, life=2) as house:
        try:
            view = (await house.open(SESSION)).session
        except Refused as refused:
            return None if refused.kind == "unknownSession" else f"a second process is refused {refused.kind}"
        if view.read_only is None or view.read_only.reason != "owned":
            # Before the lock is taken nobody owns it; then there is nothing of it yet.
            return "a second process got a session that has an owner"
    return None


# An attempt that hangs.


@attrs.define
class _Hang:
    """Blocks one operation of the body until `go`."""

    disk: SimDisk
    number: int
    entered: bool = False
    count: int = 0
    hanging: threading.Event = attrs.field(factory=threading.Event)
    go: threading.Event = attrs.field(factory=threading.Event)

    def before(self, verb: str, target: str) -> None:
        if target == JOURNAL or not self._in_body():
            return
        self.count += 1
        if self.count == self.number and not self.hanging.is_set():
            self.hanging.set()
            self.go.wait(stop_s_max)

    def _in_body(self) -> bool:
        """Whether the last promise in the log is that a body was entered; its result is the next one."""
        marks = marks_in(self.disk.log)
        return bool(marks) and isinstance(marks[-1], tuple) and marks[-1][0] == "ran"


def stopped_attempts(tally: Tally) -> None:
    """Each operation of a body hangs once, of an old file and of a new one."""
    wait, houses.close_s_max = houses.close_s_max, close_s
    try:
        for name in ("old.txt", "new.txt"):
            for number in range(1, 20):
                if not _stopped_attempt(tally, name, number):
                    break
    finally:
        houses.close_s_max = wait


def _stopped_attempt(tally: Tally, name: str, number: int) -> bool:
    """Whether the body has such an operation."""
    disk = SimDisk(first_tree())
    hang = _Hang(disk, number)
    where = f"{name}: operation {number} of the body hangs while its session is closed and opened anew"
    anyio.run(_hang_and_reopen, disk, hang, name, tally, where)
    if not hang.hanging.is_set():
        return False
    tally.states += 1
    disk.before = None
    for sentence in broken_on_disk(SCENE, Truth(created=True), seen(disk)):
        tally.violation(sentence, where)
    disk.die()
    first = reopened(disk, 9)
    if first is None:
        tally.violation("the session is gone", where)
        return True
    for sentence in broken_on_disk(SCENE, Truth(created=True), seen(disk)):
        tally.violation(sentence, where)
    return True


async def _hang_and_reopen(disk: SimDisk, hang: _Hang, name: str, tally: Tally, where: str) -> None:
    async with life(disk) as stage:
        session_id = await stage.create()
        disk.before = hang.before
        await stage.send(f'write {name} with "{many("late")}"', "p1")
        owner = await stage.house.owner(session_id)
        await _until(lambda: hang.hanging.is_set() or owner.turn is None)
        if not hang.hanging.is_set():
            return
        try:
            await stage.house.close(session_id)
            found = await anyio.to_thread.run_sync(_open_aside, disk)
            if found is not None:
                for sentence in broken_on_disk(SCENE, Truth(created=True), seen(disk)):
                    tally.violation(sentence, where)
        finally:
            hang.go.set()
        await _until(lambda: owner.turn is None)


async def _until(holds: Callable[[], bool]) -> None:
    """What a hanging thread does tells nobody, so it is looked for; at most `stop_s_max`."""
    with anyio.move_on_after(stop_s_max):
        while not holds():  # noqa: ASYNC110  # see above
            await anyio.sleep(poll_s)


def _open_aside(disk: SimDisk) -> object:
    """The next process, if the lock is free."""
    try:
        return outcomes(found.ledger) if (found := reopened(disk, 5)) else None
    except AssertionError:
        return None  # the lock is not free: the old attempt may still act


# Background commands whose server was killed.


def left_jobs(tally: Tally) -> None:
    """The server is killed at each operation after a background command was begun; its number is somebody else's by
    then. The next one tells of what carries its mark, and stopping it ends that and nobody else."""
    disk, begun = anyio.run(_serve)
    for prefix in range(begun + 1, len(disk.log) + 1):
        tally.states += 1
        anyio.run(_left_job, SimDisk.killed_after(disk, prefix), tally, f"killed after operation {prefix}")


async def _serve() -> tuple[SimDisk, int]:
    """The disk while it runs, and the operation with which it began."""
    disk = SimDisk(first_tree())
    async with life(disk) as stage:
        await stage.create()
        await stage.say('run_command {"command": "serve", "background": true}')
        length = len(disk.log)
    begun = next(at for at, entry in enumerate(disk.log) if entry[0] == "mark" and "ran" in str(entry[1]))
    return SimDisk.killed_after(disk, length), begun


async def _left_job(disk: SimDisk, tally: Tally, where: str) -> None:
    processes = FakeProcesses()
    async with life(disk, 2, processes=processes) as stage:
        (mark,) = (str(entry[1][1]) for entry in disk.log if isinstance(entry[1], tuple) and entry[1][0] == "ran")
        mine = Survivor(4001, "start-4001", "serve --really")
        others = [Survivor(pid, f"later-{pid}", "somebody else") for pid in range(1000, 1010)]
        processes.survivors_of = {mark: [mine], "f" * 32: others}
        await stage.house.open(SESSION, 100)
        owner = await stage.owner()
        (attempt,) = owner.ledger.attempts.values()
        jobs = list(owner.ledger.jobs)
        if attempt.uncertain == (attempt.result is not None and attempt.result.by is None):
            tally.violation("a background command is uncertain though its start returned, or else is not", where)
        if not attempt.uncertain and mark not in "".join(stage.editor.messages):
            tally.violation("a background command runs and nobody is told", where)
        if processes.ended:
            tally.violation("opening ended a process", where)
        for job in jobs:
            await stage.say(f'stop_command {{"jobId": "{job}"}}', "p2")
            if processes.ended != [mine]:
                tally.violation("stopping a background command ended somebody else, or not what was left of it", where)


# Children that hide.

CHILDREN: dict[str, tuple[str, bool]] = {
    # how they hide → (shell, whether the mark is still in their environment)
    "a child": ("sleep 30 & ", True),
    "in a session of its own": ("setsid sleep 30 & ", True),
    "forked twice": ("(setsid sh -c 'sleep 30 & exit 0' &) ; ", True),
    "without its descriptors": ("setsid sleep 30 <&- >&- 2>&- & ", True),
    "without its environment": ("env -i sleep 30 & ", False),
    "without all of it": ("(setsid env -i sleep 30 <&- >&- 2>&- &) ; ", False),
}


def hiding_children(tally: Tally) -> None:
    """Each kind, after its server was killed in the middle of the command."""
    folder = scratch()
    try:
        for number, (name, (shell, marked)) in enumerate(CHILDREN.items()):
            tally.states += 1
            place = lay_out(Place.under(folder / str(number)))
            _hidden_child(place, name, shell, marked, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _hidden_child(place: Place, name: str, shell: str, marked: bool, tally: Tally) -> None:
    before = _sleepers()

    async def old() -> None:
        async with rig(place) as house:
            await house.say(await house.create(), f"run {shell}sleep 0.2; kill -KILL $PPID; sleep 30")

    try:
        if forked(old).signal != signal.SIGKILL:
            tally.violation("the server was not killed", name)
            return
        view = forked(lambda: _inspected(place)).value
        assert view is not None
        if view.state in ("absent_fenced", "present", "postcondition_satisfied"):
            tally.violation("a command after a crash is called certain", name)
        if marked and not view.survivors:
            tally.violation("a survivor that carries its mark is not named", name)
        if not view.survivors and "would not be seen" not in view.text and "cannot be told" not in view.text:
            tally.violation("a survivor that cannot be seen is denied", name)
        if not marked and view.survivors and name == "without all of it":
            tally.counted["children found that had shed their mark"] += 1
    finally:
        for pid in _sleepers() - before:
            _end(pid)


async def _inspected(place: Place) -> InspectionView:
    async with rig(place, life=2) as house:
        await house.open(SESSION)
        owner = await house.house.owner(SESSION)
        (attempt,) = owner.ledger.uncertain()
        found = await resolving.resolve(owner, resolving.Wanted(attempt.attempt_id, "inspect"))
        assert found.inspection is not None
        return found.inspection


def _sleepers() -> set[int]:
    """The processes whose command line is that of the children here, or of their shells."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path("/proc", pid, "cmdline").read_bytes()
        except OSError:
            continue
        if b"sleep\x0030\x00" in line or b"kill -KILL $PPID" in line:
            found.add(int(pid))
    return found


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    end = time.monotonic() + child_s_max
    while time.monotonic() < end and Path("/proc", str(pid), "cmdline").exists():
        try:
            if Path("/proc", str(pid), "stat").read_text().split()[2] == "Z":
                return
        except OSError:
            return
        time.sleep(poll_s)
