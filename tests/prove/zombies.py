"""L7: an old lock holder or an old attempt that stops and goes on later, and children that hide.

`stopped_owners`: a real process is stopped (SIGSTOP) before each operation of the scenario, another one opens the
session, the first one goes on. The lock holds: the second process writes nothing, changes nothing and names the lock
holder, and the first one ends its scenario as if the second had never come.

`stopped_attempts`: one operation of a body hangs, its session is closed and opened again, then the operation goes on.
Whatever was settled in between stays true: the old attempt commits nothing behind a verdict.

`left_jobs`: a background command outlives its killed server; it is reported, and ended by its mark alone.

`hiding_children`: a command leaves children that leave its session, clear their environment, fork twice or close their
descriptors, and its server is killed. Every child with the mark is named; the server never denies the others.
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

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.views.types import InspectionView
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service import acquire
from steadyhand.session.service import registry as registry_module
from steadyhand.session.service.resolutions import resolve
from tests.crash.promises import SESSION, WORDS, lay_out, play_scenario
from tests.prove.kills import operations, scratch
from tests.prove.power import JOURNAL
from tests.prove.simulated_server import SCENE, first_tree, many, outcomes, reopened, seen, simulated_server
from tests.prove.tally import Tally
from tests.prove.truth import Truth, broken_on_disk, marks_in
from tests.support.fakes import FakeProcesses
from tests.support.faults import Operation, WatchedDisk
from tests.support.forks import run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.sim_disk import SimDisk
from tests.support.waiting import until
from tests.support.workspace import Workspace

T = TypeVar("T")

owner_wait_s = 0.02
close_s = 0.05
child_s_max = 20.0
stop_s_max = 20.0
poll_s = 0.005


class StoppingDisk(WatchedDisk):
    """Stops this process before the n-th durable operation, until SIGCONT."""

    def __init__(self, at: int) -> None:
        super().__init__(system_disk())
        self.at = at

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if operation.number == self.at:
            # To this very thread: after a signal to the process the thread may go on for a moment.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return act()


def stopped_owners(tally: Tally, part: int, parts: int, each: int = 1) -> None:
    """`states` counts operations before which the lock holder was stopped."""
    folder = scratch()
    try:
        for operation in operations(folder)[part :: parts * each]:
            tally.states += 1
            _stopped_owner(folder, operation, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stopped_owner(folder: Path, operation: Operation, tally: Tally) -> None:
    where = f"stopped before operation {operation.number}: {operation}"
    workspace = lay_out(Workspace.under(folder / str(operation.number)))

    async def old() -> None:
        async with practice_server(workspace, disk=StoppingDisk(operation.number)) as server:
            await play_scenario(server)

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
            tally.violation("a lock holder was not stopped", where)
            return
        before = (workspace.journal(SESSION), workspace.files())
        problem = run_in_fork(lambda: _second(workspace)).value
        if problem:
            tally.violation(problem, where)
        if (workspace.journal(SESSION), workspace.files()) != before:
            tally.violation("a second process wrote while the lock holder lived", where)
    finally:
        os.kill(pid, signal.SIGCONT)
        _, status = os.waitpid(pid, 0)
    if status != 0 or workspace.files() != WORDS.last_files:
        tally.violation("a stopped lock holder did not end its scenario", where)
    shutil.rmtree(workspace.base, ignore_errors=True)


async def _second(workspace: Workspace) -> str | None:
    """What is wrong with how a second process sees a session that another process holds."""
    acquire.OWNER_WAIT_S_MAX = owner_wait_s
    async with practice_server(workspace, run=2) as server:
        try:
            view = (await server.open(SESSION)).session
        except Refused as refused:
            return None if refused.kind == "unknownSession" else f"a second process is refused {refused.kind}"
        if view.read_only is None or view.read_only.reason != "owned":
            # Before the lock is taken no process holds the session, and then nothing of it exists.
            return "a second process got a session that another process holds"
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
        """Whether the last mark in the log says that a body was entered; its result is the next one."""
        marks = marks_in(self.disk.log)
        return bool(marks) and isinstance(marks[-1], tuple) and marks[-1][0] == "ran"


def stopped_attempts(tally: Tally) -> None:
    """Each operation of a body hangs once, for an old file and for a new one."""
    wait, registry_module.CLOSE_S_MAX = registry_module.CLOSE_S_MAX, close_s
    try:
        for name in ("old.txt", "new.txt"):
            for number in range(1, 20):
                if not _stopped_attempt(tally, name, number):
                    break
    finally:
        registry_module.CLOSE_S_MAX = wait


def _stopped_attempt(tally: Tally, name: str, number: int) -> bool:
    """Whether the body has such an operation."""
    disk = SimDisk(first_tree())
    hang = _Hang(disk, number)
    where = f"{name}: operation {number} of the body hangs while its session is closed and opened again"
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
    async with simulated_server(disk) as server:
        session_id = await server.create()
        disk.before = hang.before
        await server.send(session_id, f'write {name} with "{many("late")}"', "p1")
        session = await server.registry.open_session(session_id)
        await _until(lambda: hang.hanging.is_set() or session.turn is None)
        if not hang.hanging.is_set():
            return
        try:
            await server.registry.close(session_id)
            found = await anyio.to_thread.run_sync(_open_aside, disk)
            if found is not None:
                for sentence in broken_on_disk(SCENE, Truth(created=True), seen(disk)):
                    tally.violation(sentence, where)
        finally:
            hang.go.set()
        await _until(lambda: session.turn is None)


async def _until(holds: Callable[[], bool]) -> None:
    """Poll until the condition holds, for `stop_s_max` at most; a hanging thread sets no event."""
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
    """The server is killed at each operation after a background command was begun; its process id belongs to another
    process by then. The next server reports the process with the mark. Stopping the job ends that process and no
    other."""
    disk, begun = anyio.run(_serve)
    for prefix in range(begun + 1, len(disk.log) + 1):
        tally.states += 1
        anyio.run(_left_job, SimDisk.killed_after(disk, prefix), tally, f"killed after operation {prefix}")


async def _serve() -> tuple[SimDisk, int]:
    """The disk while the command runs, and the operation with which the command began."""
    disk = SimDisk(first_tree())
    async with simulated_server(disk) as server:
        await server.create()
        await server.turn('run_command {"command": "serve", "background": true}')
        length = len(disk.log)
    begun = next(at for at, entry in enumerate(disk.log) if entry[0] == "mark" and "ran" in str(entry[1]))
    return SimDisk.killed_after(disk, length), begun


async def _left_job(disk: SimDisk, tally: Tally, where: str) -> None:
    processes = FakeProcesses()
    async with simulated_server(disk, 2, processes=processes) as server:
        (mark,) = (str(entry[1][1]) for entry in disk.log if isinstance(entry[1], tuple) and entry[1][0] == "ran")
        mine = OrphanProcess(4001, "start-4001", "serve --really")
        others = [OrphanProcess(pid, f"later-{pid}", "somebody else") for pid in range(1000, 1010)]
        processes.survivors_of = {mark: [mine], "f" * 32: others}
        await server.registry.open(SESSION, 100)
        session = await server.main_session()
        (attempt,) = session.ledger.attempts.values()
        jobs = list(session.ledger.jobs)
        if attempt.uncertain == (attempt.result is not None and attempt.result.by is None):
            tally.violation("a background command is uncertain though its start returned, or else is not", where)
        if not attempt.uncertain and mark not in "".join(server.editor.messages):
            tally.violation("a background command runs and no message reports it", where)
        if processes.ended:
            tally.violation("opening ended a process", where)
        for job in jobs:
            await server.turn(f'stop_command {{"jobId": "{job}"}}', "p2")
            if processes.ended != [mine]:
                tally.violation("stopping a background command ended somebody else, or not what was left of it", where)


# Children that hide.

BEGUN = "the-command-has-begun"
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
            workspace = lay_out(Workspace.under(folder / str(number)))
            _hidden_child(workspace, name, shell, marked, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _hidden_child(workspace: Workspace, name: str, shell: str, marked: bool, tally: Tally) -> None:
    before = _sleepers()

    async def old() -> None:
        async with practice_server(workspace) as server:
            await server.send(await server.create(), f"run {shell}touch {BEGUN}; sleep 30")
            await until(lambda: server.content(BEGUN) is not None)
            signal.raise_signal(signal.SIGKILL)

    try:
        if run_in_fork(old).signal != signal.SIGKILL:
            tally.violation("the server was not killed", name)
            return
        view = run_in_fork(lambda: _inspected(workspace)).value
        assert view is not None
        if view.state in ("absent_fenced", "present", "postcondition_satisfied"):
            tally.violation("a command after a crash is called certain", name)
        if marked and not view.survivors:
            tally.violation("a survivor that carries its mark is not named", name)
        if (
            not view.survivors
            and "removed the mark is not found" not in view.text
            and "cannot check here" not in view.text
        ):
            tally.violation("a survivor that cannot be seen is denied", name)
        if not marked and view.survivors and name == "without all of it":
            tally.counted["children found that had lost their mark"] += 1
    finally:
        for pid in _sleepers() - before:
            _end(pid)


async def _inspected(workspace: Workspace) -> InspectionView:
    async with practice_server(workspace, run=2) as server:
        await server.open(SESSION)
        session = await server.registry.open_session(SESSION)
        (attempt,) = session.ledger.uncertain()
        found = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
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
        if b"sleep\x0030\x00" in line or BEGUN.encode() in line:
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
