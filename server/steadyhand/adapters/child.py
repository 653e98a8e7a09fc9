"""One child: how it is started, heard, signalled and at last reaped (rows E4, E5; cases 97, 100).

It runs in a session and a process group of its own, with an empty stdin and one pipe for both its outputs;
the stdout of this process is never its. The shell is reaped last of all: as long as it is a zombie its
number, which is its group's too, is given to nobody else, so that a signal to the group can only reach the
group. Where a process cannot be waited for without reaping it (macOS before Python 3.13) that promise has a
gap of the time between.

Windows has no groups of this kind; there the tree is ended by taskkill, and emptiness is never claimed.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

import anyio
import anyio.to_thread

from steadyhand.adapters.process_list import (
    Seen,
    all_seen,
    command_of,
    family,
    proc_is_here,
    signal_exactly,
)
from steadyhand.core.environment import attempt_mark_name

piece_bytes_max = 64 * 1024
killed_ms_max = 100


class Child:
    """A running shell command. `close` must be called once it is over."""

    def __init__(self, command: str, cwd: str, environment: Mapping[str, str]) -> None:
        """Start it. Raises OSError, also (EINVAL) for what no program can be given: NUL in a text, `=` in a
        name.
        """
        self.pipe, far_end = os.pipe()
        try:
            self._popen = _spawned(command, cwd, environment, far_end)
        except BaseException:
            os.close(self.pipe)
            raise
        finally:
            os.close(far_end)
        if sys.platform != "win32":
            os.set_blocking(self.pipe, False)
        self.pid = self._popen.pid
        self.mark = environment.get(attempt_mark_name)
        self.silent = anyio.Event()  # its output came to an end
        self.over = anyio.Event()  # nothing more is done about it
        self.left: dict[tuple[int, str], str] = {}  # what outlived the shell or its time, as "pid command"
        self.trouble: Exception | None = None  # what its output's receiver raised
        self._exit_handle = _pidfd(self.pid)

    async def piece(self) -> bytes:
        """The next output; empty at its end."""
        while True:
            if sys.platform == "win32":
                return await anyio.to_thread.run_sync(os.read, self.pipe, piece_bytes_max, abandon_on_cancel=True)
            await anyio.wait_readable(self.pipe)
            try:
                return os.read(self.pipe, piece_bytes_max)
            except BlockingIOError:
                continue

    async def exited(self) -> None:
        """Wait until the shell itself is over, whatever its children do; it is not reaped where possible."""
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

    def members(self) -> list[Seen]:
        """What runs of it: the shell, its group and session, what carries its mark, and children of these."""
        if proc_is_here():
            return family(all_seen(), self.pid, self.mark)
        alone = [Seen(self.pid, started="", parent=0, group=self.pid, session=self.pid)]
        if self._popen.poll() is None:
            return alone
        return alone if self._to_group(0) else []

    def end_members(self, members: Sequence[Seen], number: signal.Signals) -> None:
        """Send a signal to all of them, and keep the names of those beside the shell."""
        # Without /proc the group stands for its members, under the number of the shell that is gone.
        reaped = self._popen.returncode is not None
        for one in members:
            if (one.pid != self.pid or reaped) and one.identity not in self.left:
                named = command_of(one.pid) or ("process group" if one.pid == self.pid else "")
                self.left[one.identity] = f"{one.pid} {named}".rstrip()
        if sys.platform == "win32":
            _end_tree(self.pid)
            return
        # Reaped, the group's number may have become somebody else's: then only exact signals go out.
        as_group = not reaped or not proc_is_here()
        if as_group and any(one.group == self.pid for one in members):
            self._to_group(number)
        for one in members:
            if not (as_group and one.group == self.pid):
                signal_exactly(one.pid, one.started, number)

    def _to_group(self, number: int) -> bool:
        if sys.platform == "win32":
            return False
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def exits_at_once(self) -> None:
        """Block until the shell is over, `killed_ms_max` at most; for one that was sent SIGKILL."""
        if self._exit_handle is not None:
            over = select.poll()
            over.register(self._exit_handle, select.POLLIN)
            over.poll(killed_ms_max)

    def status(self) -> tuple[int | None, int | None]:
        """Reap the shell if it is over: its exit code or the signal that ended it; both None if not known."""
        if self._popen.returncode is None and sys.platform != "win32":
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # Somebody else reaped it. Popen must not ask again: it would take that for exit code 0.
                self._popen.returncode = 0
                return None, None
            if pid:
                self._popen.returncode = os.waitstatus_to_exitcode(status)
        code = self._popen.poll() if sys.platform == "win32" else self._popen.returncode
        if code is None:
            return None, None
        return (code, None) if code >= 0 or sys.platform == "win32" else (None, -code)

    def close(self) -> None:
        os.close(self.pipe)
        if self._exit_handle is not None:
            os.close(self._exit_handle)
        self.over.set()


def _spawned(command: str, cwd: str, environment: Mapping[str, str], far_end: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            _shell(command),
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=far_end,
            stderr=far_end,
            start_new_session=True,
            close_fds=True,
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
