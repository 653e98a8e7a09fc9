"""One child: how it is started, read, signalled and reaped (rows E4, E5; cases 97, 100).

It runs in a session and a process group of its own, with an empty stdin and one pipe for both outputs; it never gets
the stdout of this process. The shell is reaped last: as long as it is a zombie, the system gives its number, which is
also its group's, to no other process, so a signal to the group reaches only the group. If a process cannot be waited
for without reaping it (macOS before Python 3.13), this holds except for a short time.

Windows has no such groups; there taskkill ends the tree, and the server never claims that the group is empty.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence

import anyio
import anyio.lowlevel
import anyio.to_thread

from steadyhand.adapters.processes.process_table import (
    ProcessEntry,
    command_of,
    has_proc,
    list_processes,
    processes_of_command,
    signal_process,
)
from steadyhand.domain.permissions.child_environment import ATTEMPT_MARK_NAME

PIECE_BYTES_MAX = 64 * 1024
KILL_WAIT_MS_MAX = 100  # the loop is blocked so long
KILL_SIGNAL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL


class Child:
    """A running shell command. Call `close` when it has ended."""

    def __init__(self, command: str, cwd: str, environment: Mapping[str, str]) -> None:
        """Start it. Raises OSError; EINVAL if an argument has a NUL or a variable's name has `=`."""
        self.pipe, far_end = os.pipe()
        try:
            self._popen = self._spawn(command, cwd, environment, far_end)
        except BaseException:
            os.close(self.pipe)
            raise
        finally:
            os.close(far_end)
        if sys.platform != "win32":
            os.set_blocking(self.pipe, False)
        self.pid = self._popen.pid
        self.mark = environment.get(ATTEMPT_MARK_NAME)
        self.output_ended = anyio.Event()  # its output has ended
        self.closed = anyio.Event()  # it has been reaped, and its descriptors are closed
        self.left_processes: dict[
            tuple[int, str], str
        ] = {}  # processes that outlived the shell or the time limit, each "pid command"
        self.output_error: Exception | None = None  # what the receiver of its output raised
        self._exit_handle = _pidfd(self.pid)

    def _spawn(self, command: str, cwd: str, environment: Mapping[str, str], far_end: int) -> subprocess.Popen[bytes]:
        return spawn(_shell(command), cwd, environment, far_end)

    async def ready(self) -> None:
        """Wait until the command runs; it does from the start."""
        await anyio.lowlevel.checkpoint()

    async def read_piece(self) -> bytes:
        """Return the next output; empty at its end."""
        while True:
            if sys.platform == "win32":
                return await anyio.to_thread.run_sync(os.read, self.pipe, PIECE_BYTES_MAX, abandon_on_cancel=True)
            await anyio.wait_readable(self.pipe)
            try:
                return os.read(self.pipe, PIECE_BYTES_MAX)
            except BlockingIOError:
                continue

    async def wait_exit(self) -> None:
        """Wait until the shell itself has ended, whatever its children do; it is not reaped if the system allows
        that.
        """
        if self._exit_handle is not None:
            await anyio.wait_readable(self._exit_handle)
        else:
            await anyio.to_thread.run_sync(self._wait, abandon_on_cancel=True)

    def _wait(self) -> None:
        if sys.platform == "linux":
            try:
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                return
        else:
            self._popen.wait()

    def members(self) -> list[ProcessEntry]:
        """Return its running processes: the shell, its group and session, those with its mark, and children of all
        these.
        """
        if has_proc():
            return processes_of_command(list_processes(), self.pid, self.mark)
        alone = [ProcessEntry(self.pid, started="", parent=0, group=self.pid, session=self.pid)]
        if self._popen.poll() is None:
            return alone
        return alone if self._signal_group(0) else []

    def end_members(self, members: Sequence[ProcessEntry], number: signal.Signals) -> None:
        """Send a signal to all of them, and record the names of those other than the shell."""
        # Without /proc the group counts as one member, with the pid of the shell that has ended.
        reaped = self._popen.returncode is not None
        self._name_left(one for one in members if one.pid != self.pid or reaped)
        if sys.platform == "win32":
            _end_tree(self.pid)
            return
        # After reaping, the group's number may belong to another group: then signal each process exactly.
        as_group = not reaped or not has_proc()
        if as_group and any(one.group == self.pid for one in members):
            self._signal_group(number)
        for one in members:
            if not (as_group and one.group == self.pid):
                signal_process(one.pid, one.started, number)

    def _name_left(self, members: Iterable[ProcessEntry]) -> None:
        for one in members:
            if one.identity not in self.left_processes:
                named = command_of(one.pid) or ("process group" if one.pid == self.pid else "")
                self.left_processes[one.identity] = f"{one.pid} {named}".rstrip()

    async def end_sandbox(self) -> bool:
        """End what stands between this process and the command, once no member is left; return whether it is gone."""
        return True

    def kill(self) -> None:
        """Kill all known processes of it, and block for a short time until the shell has ended."""
        self.end_members(self.members(), KILL_SIGNAL)
        self.wait_killed()

    def _signal_group(self, number: int) -> bool:
        if sys.platform == "win32":
            return False
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def wait_killed(self) -> None:
        """Block until the shell has ended, at most `KILL_WAIT_MS_MAX`; only after SIGKILL."""
        if self._exit_handle is not None:
            over = select.poll()
            over.register(self._exit_handle, select.POLLIN)
            over.poll(KILL_WAIT_MS_MAX)

    def reap(self) -> tuple[int | None, int | None]:
        """Reap the shell if it has ended. Returns its exit code, or the signal that ended it; both None if unknown."""
        if self._popen.returncode is None and sys.platform != "win32":
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # Another part of the process reaped it. Popen must not wait again: it would report exit code 0.
                self._popen.returncode = 0
                return None, None
            if pid:
                self._popen.returncode = os.waitstatus_to_exitcode(status)
        code = self._popen.poll() if sys.platform == "win32" else self._popen.returncode
        if code is None:
            return None, None
        return (code, None) if code >= 0 or sys.platform == "win32" else (None, -code)

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self.pipe)
        if self._exit_handle is not None:
            os.close(self._exit_handle)
        self.closed.set()


def spawn(
    arguments: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    outputs: int,
    *,
    executable: str | None = None,
    inherited: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, with no input, both outputs in one descriptor, and nothing inherited but
    the descriptors named. OSError if that fails.
    """
    try:
        return subprocess.Popen(
            arguments,
            executable=executable,
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=outputs,
            stderr=outputs,
            start_new_session=True,
            close_fds=True,
            pass_fds=inherited,
        )
    except ValueError as trouble:
        raise OSError(errno.EINVAL, str(trouble)) from trouble


def _shell(command: str) -> list[str]:
    if sys.platform == "win32":
        return [os.environ.get("COMSPEC", "cmd.exe"), "/d", "/s", "/c", command]
    return ["/bin/sh", "-c", command]


def _pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError):  # an old kernel, a sandbox, or a Python built on an old kernel
        return None


def _end_tree(pid: int) -> None:
    quiet = subprocess.DEVNULL
    subprocess.Popen(["taskkill", "/T", "/F", "/PID", str(pid)], stdin=quiet, stdout=quiet, stderr=quiet)
