"""Commands, run to their end and never beyond it (rows E4, E5; cases 97, 98).

`run` is over when the shell is over and a short grace for its output is past; who else holds the pipe is not
waited for. What then still runs of the command is ended and named: its group, its session, and what left both
but carries the attempt's mark. A timeout and a cancel end all of it: SIGTERM, then SIGKILL after
`end_grace_s`. The ending is shielded and lasts at most `end_s_max`; a cancel is raised on after it, and
`ended` has told how it went by then.

Not seen is what left the session, cleared its environment and outlived its parent.
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

from steadyhand.adapters import process_list
from steadyhand.adapters.child import Child
from steadyhand.ports import Finished, Survivor

output_grace_s_max = 0.3
end_grace_s = 2.0
end_s_max = 5.0
look_again_s_min = 0.01
look_again_s_max = 0.1

boot_id_path = "/proc/sys/kernel/random/boot_id"
kill_signal = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL

Output = Callable[[bytes], None]


class SystemProcesses:
    """`ports.Processes` of this system. To be made on the main thread."""

    def __init__(self) -> None:
        self._children: set[Child] = set()
        # An editor may start us with SIGCHLD ignored; then no exit code of a child could be learned.
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
    ) -> Finished:
        """As the port says. `ended` is called exactly once, before this returns or raises, if the spawn
        succeeded.
        """
        child = Child(command, cwd, environment)
        self._children.add(child)
        return await self.to_its_end(child, output, timeout_s, ended, anyio.CancelScope())

    def start(
        self,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float | None,
        output: Output,
    ) -> SystemJob:
        child = Child(command, cwd, environment)
        self._children.add(child)
        return SystemJob(self, child, output, math.inf if timeout_s is None else timeout_s)

    async def to_its_end(
        self,
        child: Child,
        output: Output,
        timeout_s: float,
        ended: Callable[[Finished], None] | None,
        wanted: anyio.CancelScope,
    ) -> Finished:
        """Hear the child while it runs, its time is not over and `wanted` is not cancelled; then end all of it."""
        timed_out = False
        try:
            with wanted:
                timed_out = await _follow(child, output, timeout_s)
        finally:
            finished = await self._finish(child, output, timed_out, ended)
        if child.trouble is not None:
            raise child.trouble
        return finished

    async def _finish(
        self, child: Child, output: Output, timed_out: bool, ended: Callable[[Finished], None] | None
    ) -> Finished:
        empty = False
        try:
            with anyio.move_on_after(end_s_max, shield=True):
                async with _heard(child, output):
                    await _end(child)
                    empty = True
                    with anyio.move_on_after(output_grace_s_max):
                        await child.silent.wait()
        finally:
            # Only a cancel from outside anyio gets through the shield; then it ends hard, and at once.
            empty = empty or _end_at_once(child)
            exit_code, number = child.status()
            self._children.discard(child)
            child.close()
            empty = empty and sys.platform != "win32"
            finished = Finished(exit_code, number, timed_out, tuple(child.left.values()), empty)
            if ended is not None:
                ended(finished)
        return finished

    async def end_all(self) -> None:
        """End every child and wait until each `run` is over, `end_s_max` at most."""
        with anyio.move_on_after(end_s_max, shield=True):
            async with anyio.create_task_group() as tasks:
                for child in list(self._children):
                    tasks.start_soon(_end, child)
                    tasks.start_soon(child.over.wait)

    def survivors(self, mark: str) -> Sequence[Survivor] | None:
        return process_list.survivors(mark)

    async def end(self, survivor: Survivor) -> bool:
        """End this one process and no other: SIGTERM, SIGKILL after `end_grace_s`. True if it is gone."""
        pid, started = survivor.pid, survivor.started
        for number in (signal.SIGTERM, kill_signal):
            process_list.signal_exactly(pid, started, number)
            with anyio.move_on_after(end_grace_s):
                async for _ in _now_and_then():
                    if not process_list.is_running(pid, started):
                        return True
        return not process_list.is_running(pid, started)

    def alive(self, pid: int) -> bool:
        """Whether a process of that number runs; where that cannot be told, it is taken to."""
        if pid <= 0:
            return False
        if process_list.proc_is_here():
            return process_list.seen(pid) is not None
        if sys.platform == "win32":  # os.kill(pid, 0) is a Ctrl+C there
            return True
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def here(self) -> tuple[int, str, str | None]:
        try:
            with open(boot_id_path, encoding="ascii") as file:
                boot: str | None = file.read().strip() or None
        except OSError:
            boot = None
        return os.getpid(), socket.gethostname(), boot

    def environment(self) -> Mapping[str, str]:
        return dict(os.environ)


class SystemJob:
    """`ports.Job`: a child that is followed by a task of its starter's."""

    def __init__(self, processes: SystemProcesses, child: Child, output: Output, timeout_s: float) -> None:
        self._processes = processes
        self._child = child
        self._output = output
        self._timeout_s = timeout_s
        self._wanted = anyio.CancelScope()
        self.pid = child.pid
        self.started = process_list.started_of(child.pid)

    async def follow(self) -> Finished:
        return await self._processes.to_its_end(self._child, self._output, self._timeout_s, None, self._wanted)

    async def end(self) -> None:
        self._wanted.cancel()
        with anyio.move_on_after(end_s_max + output_grace_s_max, shield=True):
            await self._child.over.wait()


async def _follow(child: Child, output: Output, timeout_s: float) -> bool:
    """Until the shell is over and its output too, or a grace later; True if its time ran out before."""
    async with _heard(child, output):
        with anyio.move_on_after(timeout_s) as limit:
            await child.exited()
        if not limit.cancelled_caught:
            with anyio.move_on_after(output_grace_s_max):
                await child.silent.wait()
    # A receiver that raised ended the wait as well, but no time ran out then.
    return limit.cancelled_caught and child.trouble is None


@asynccontextmanager
async def _heard(child: Child, output: Output) -> AsyncIterator[None]:
    """Inside, the child's output goes to `output` as it comes; a receiver that raises ends what is inside."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, child, output, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()


async def _listen(child: Child, output: Output, inside: anyio.CancelScope) -> None:
    while not child.silent.is_set():
        piece = await child.piece()
        if not piece:
            child.silent.set()
        elif child.trouble is None:
            try:
                output(piece)
            except Exception as trouble:
                child.trouble = trouble
                inside.cancel()


async def _end(child: Child) -> None:
    """Returns when nothing that is seen of the child runs any more; its caller sets the bound."""
    with anyio.move_on_after(end_grace_s):
        if await _gone(child, signal.SIGTERM, once=True):
            return
    await _gone(child, kill_signal, once=False)


async def _gone(child: Child, number: signal.Signals, once: bool) -> bool:
    """Signal all that is seen of the child, newcomers too unless `once`, and wait until nothing is.

    A program that is told to end may start others to end cleanly: SIGTERM is for those there at first.
    """
    signalled: set[tuple[int, str]] = set()
    async for _ in _now_and_then():
        members = await anyio.to_thread.run_sync(child.members)
        if not members:
            break
        fresh = [one for one in members if one.identity not in signalled]
        if fresh and not (once and signalled):
            child.end_members(fresh, number)
            signalled.update(one.identity for one in fresh)
    return True


def _end_at_once(child: Child) -> bool:
    """Kill what is seen, without giving up the loop; whether nothing is seen a moment later."""
    child.end_members(child.members(), kill_signal)
    child.exits_at_once()
    return not child.members()


async def _now_and_then() -> AsyncIterator[None]:
    """At once, and then again and again, at growing distances."""
    pause_s = look_again_s_min
    while True:
        yield
        await anyio.sleep(pause_s)
        pause_s = min(pause_s * 2, look_again_s_max)
