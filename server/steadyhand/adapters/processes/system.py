"""Run commands to their end and not beyond it (rows E4, E5; cases 97, 98).

`run` returns when the shell has ended and a short grace period for its output is over; it does not wait for other
processes that hold the pipe. Whatever of the command still runs is then ended and named: its group, its session, and
processes that left both but carry the attempt's mark. A timeout and a cancel end all of these: SIGTERM, then SIGKILL
after `END_GRACE_S`. Ending is shielded from a cancel and takes at most `END_S_MAX`; then the cancel is raised, and
`ended` has been called.

A process that left the session, cleared its environment and outlived its parent is not found.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from steadyhand.adapters.processes import process_table
from steadyhand.adapters.processes.child import KILL_SIGNAL, Child
from steadyhand.adapters.processes.confined_child import ConfinedChild, ConfiningSandbox
from steadyhand.adapters.programs import trusted_program
from steadyhand.adapters.sandbox.system import SystemSandbox
from steadyhand.ports.processes import Finished, OrphanProcess
from steadyhand.ports.sandbox import Confinement, SandboxFailed

PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})
OUTPUT_GRACE_S_MAX = 0.3
END_GRACE_S = 2.0  # between SIGTERM and SIGKILL
END_S_MAX = 5.0
POLL_S_MIN = 0.01
POLL_S_MAX = 0.1

BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id"
SETUP_S_MAX = 20.0
"""How long a sandbox may take to be set up."""

Output = Callable[[bytes], None]


class SystemProcesses:
    """`ports.Processes` of this system. Create it on the main thread, which alone may set signal handlers."""

    def __init__(self, sandbox: ConfiningSandbox | None = None) -> None:
        self.sandbox: ConfiningSandbox = sandbox or SystemSandbox(self.environment)
        self._children: set[Child] = set()
        # An editor may start us with SIGCHLD ignored; then the exit codes of children would be lost.
        if sys.platform != "win32" and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    async def run(
        self,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float,
        output: Output,
        *,
        ended: Callable[[Finished], None] | None = None,
        confinement: Confinement | None = None,
    ) -> Finished:
        """Run a command as the port says."""
        child = self._new_child(command, cwd, environment, confinement)
        await self.wait_ready(child, output, ended)
        return await self.run_to_end(child, output, timeout_s, ended, anyio.CancelScope())

    def start(
        self,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float | None,
        output: Output,
        *,
        confinement: Confinement | None = None,
    ) -> SystemJob:
        child = self._new_child(command, cwd, environment, confinement)
        return SystemJob(self, child, output, math.inf if timeout_s is None else timeout_s)

    def _new_child(
        self, command: str, cwd: str, environment: Mapping[str, str], confinement: Confinement | None
    ) -> Child:
        if confinement is None:
            child = Child(command, cwd, environment)
        else:
            try:
                child = ConfinedChild(self.sandbox, confinement, command, cwd, environment)
            except SandboxFailed:
                self.sandbox.note_failure()
                raise
        self._children.add(child)
        return child

    async def wait_ready(self, child: Child, output: Output, ended: Callable[[Finished], None] | None = None) -> None:
        """Wait until its command runs. If its sandbox cannot be set up, nothing of it is left, and SandboxFailed is
        raised. A cancel ends it.
        """
        try:
            with anyio.fail_after(SETUP_S_MAX):
                await child.ready()
            return
        except TimeoutError:
            failed = SandboxFailed(f"It was not ready after {SETUP_S_MAX:.0f} seconds.")
        except SandboxFailed as trouble:
            failed = trouble
        except BaseException:  # a cancel
            await self._finish(child, output, False, ended)
            raise
        self.sandbox.note_failure()
        child.kill()
        child.reap()
        self._children.discard(child)
        child.close()
        raise failed

    async def run_to_end(
        self,
        child: Child,
        output: Output,
        timeout_s: float,
        ended: Callable[[Finished], None] | None,
        scope: anyio.CancelScope,
    ) -> Finished:
        """Forward the output until the child ends, its time is over or `scope` is cancelled; then end all of it."""
        timed_out = False
        try:
            with scope:
                timed_out = await _follow(child, output, timeout_s)
        finally:
            finished = await self._finish(child, output, timed_out, ended)
        if child.output_error is not None:
            raise child.output_error
        return finished

    async def _finish(
        self, child: Child, output: Output, timed_out: bool, ended: Callable[[Finished], None] | None
    ) -> Finished:
        empty = False
        try:
            with anyio.move_on_after(END_S_MAX, shield=True):
                async with _forward_output(child, output):
                    empty = await _end(child)
                    with anyio.move_on_after(OUTPUT_GRACE_S_MAX):
                        await child.output_ended.wait()
        finally:
            # Only a cancel from outside anyio passes the shield; then the child is killed at once.
            empty = empty or _end_at_once(child)
            exit_code, number = child.reap()
            self._children.discard(child)
            child.close()
            empty = empty and sys.platform != "win32"
            finished = Finished(exit_code, number, timed_out, tuple(child.left_processes.values()), empty)
            if ended is not None:
                ended(finished)
        return finished

    def program(self, name: str, folders: Sequence[str]) -> str | None:
        return trusted_program(name, os.environ.get("PATH", os.defpath), folders)

    async def end_all(self) -> None:
        """End every child and wait until each `run` has returned, at most `END_S_MAX`."""
        with anyio.move_on_after(END_S_MAX, shield=True):
            async with anyio.create_task_group() as tasks:
                for child in list(self._children):
                    tasks.start_soon(_end, child)
                    tasks.start_soon(child.closed.wait)

    def survivors(self, mark: str) -> Sequence[OrphanProcess] | None:
        return process_table.find_survivors(mark)

    async def end(self, survivor: OrphanProcess) -> bool:
        """End exactly this process: SIGTERM, then SIGKILL after `END_GRACE_S`. True if it has ended."""
        pid, started = survivor.pid, survivor.started
        for number in (signal.SIGTERM, KILL_SIGNAL):
            process_table.signal_process(pid, started, number)
            with anyio.move_on_after(END_GRACE_S):
                async for _ in _poll():
                    if not process_table.is_running(pid, started):
                        return True
        return not process_table.is_running(pid, started)

    def alive(self, pid: int) -> bool:
        """Whether a process with that pid is running; true if the system cannot say."""
        if pid <= 0:
            return False
        if process_table.has_proc():
            return process_table.find_process(pid) is not None
        if sys.platform == "win32":  # os.kill(pid, 0) is a Ctrl+C there
            return True
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def started(self, pid: int) -> str:
        """When the process with that pid started; empty if there is none or the system does not tell."""
        return process_table.started_of(pid)

    def own_folders(self) -> tuple[str, ...]:
        packages = [place for place in sys.path if os.path.basename(place) in PACKAGE_FOLDERS]
        programs = [os.path.dirname(sys.executable)] if sys.executable else []
        places = (sys.prefix, sys.exec_prefix, sys.base_prefix, *programs, *packages)
        return tuple(dict.fromkeys(os.path.realpath(place) for place in places))

    def here(self) -> tuple[int, str, str | None]:
        try:
            with open(BOOT_ID_PATH, encoding="ascii") as file:
                boot: str | None = file.read().strip() or None
        except OSError:
            boot = None
        return os.getpid(), socket.gethostname(), boot

    def environment(self) -> Mapping[str, str]:
        return dict(os.environ)


class SystemJob:
    """`ports.BackgroundProcess`: a child that a task of its starter follows."""

    def __init__(self, processes: SystemProcesses, child: Child, output: Output, timeout_s: float) -> None:
        self._processes = processes
        self._child = child
        self._output = output
        self._timeout_s = timeout_s
        self._scope = anyio.CancelScope()
        self.pid = child.pid
        self.started = process_table.started_of(child.pid)

    async def ready(self) -> None:
        await self._processes.wait_ready(self._child, lambda piece: None)

    async def follow(self) -> Finished:
        return await self._processes.run_to_end(self._child, self._output, self._timeout_s, None, self._scope)

    async def end(self) -> None:
        self._scope.cancel()
        with anyio.move_on_after(END_S_MAX + OUTPUT_GRACE_S_MAX, shield=True):
            await self._child.closed.wait()


async def _follow(child: Child, output: Output, timeout_s: float) -> bool:
    """Wait until the shell and its output have ended, or the grace period is over. True: its time ran out."""
    async with _forward_output(child, output):
        with anyio.move_on_after(timeout_s) as limit:
            await child.wait_exit()
        if not limit.cancelled_caught:
            with anyio.move_on_after(OUTPUT_GRACE_S_MAX):
                await child.output_ended.wait()
    # A receiver that raised also ends the wait, but then the time did not run out.
    return limit.cancelled_caught and child.output_error is None


@asynccontextmanager
async def _forward_output(child: Child, output: Output) -> AsyncIterator[None]:
    """Forward the child's output to `output` inside the context; a receiver that raises cancels the context."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_output, child, output, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()


async def _read_output(child: Child, output: Output, inside: anyio.CancelScope) -> None:
    while not child.output_ended.is_set():
        piece = await child.read_piece()
        if not piece:
            child.output_ended.set()
        elif child.output_error is None:
            try:
                output(piece)
            except Exception as trouble:
                child.output_error = trouble
                inside.cancel()


async def _end(child: Child) -> bool:
    """Return when no known process of the child is running any more; the caller sets the time limit."""
    with anyio.move_on_after(END_GRACE_S) as grace:
        await _signal_until_gone(child, signal.SIGTERM, once=True)
    if grace.cancelled_caught:
        await _signal_until_gone(child, KILL_SIGNAL, once=False)
    return await child.end_sandbox()


async def _signal_until_gone(child: Child, number: signal.Signals, once: bool) -> None:
    """Signal all known processes of the child, later ones too unless `once`, and wait until none is left.

    A program may start others in order to end cleanly, so SIGTERM goes only to the first ones.
    """
    signalled: set[tuple[int, str]] = set()
    async for _ in _poll():
        members = await anyio.to_thread.run_sync(child.members)
        if not members:
            break
        fresh = [one for one in members if one.identity not in signalled]
        if fresh and not (once and signalled):
            child.end_members(fresh, number)
            signalled.update(one.identity for one in fresh)


def _end_at_once(child: Child) -> bool:
    """Kill all known processes without yielding to the loop; return whether none is left a moment later."""
    child.kill()
    return not child.members()


async def _poll() -> AsyncIterator[None]:
    """Yield at once, and then again after growing pauses."""
    pause_s = POLL_S_MIN
    while True:
        yield
        await anyio.sleep(pause_s)
        pause_s = min(pause_s * 2, POLL_S_MAX)
