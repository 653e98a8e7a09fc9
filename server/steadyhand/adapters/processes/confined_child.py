"""One confined child: how its sandbox is watched and ended (row O1).

    this process ── bubblewrap ── the first process of the namespace ── launcher ── shell of the command
                    (self.pid)    (bubblewrap again)                    └ stays     └ what it starts

bubblewrap, its second process and the launcher are the sandbox; they are no members of the command. When the first
process of the namespace ends, the kernel kills everything inside. So a signal that lets the command end by itself goes
to the launcher, which forwards it, and SIGKILL goes to bubblewrap. The command's exit code comes from the launcher.

The launcher and bubblewrap tell on one socket what happens, a line each. The kernel adds the pid of the sender, as this
process sees it, so nothing inside can speak for the launcher.

With Landlock alone the launcher becomes the shell, and the child is watched and ended as an unconfined one.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import anyio

from steadyhand.adapters.processes.child import Child, spawn
from steadyhand.adapters.processes.process_table import (
    ProcessEntry,
    find_process,
    is_running,
    list_processes,
    signal_process,
    with_descendants,
)
from steadyhand.adapters.programs import SHELL
from steadyhand.adapters.sandbox.launch import Channels, Command, Launch, failure_text
from steadyhand.ports.sandbox import Confinement, Sandbox, SandboxFailed

REPORT_BYTES_MAX = 16 * 1024
REPORT_S_MAX = 1.0
"""How long the launcher may take to tell how the command ended, once nothing else of it runs."""
NAMESPACE_S_MAX = 2.0
"""How long the kernel may take to end a namespace; it needs milliseconds."""
POLL_S = 0.005
_CREDENTIALS = array.array("i", (0, 0, 0))  # pid, uid, gid


class ConfiningSandbox(Sandbox, Protocol):
    """A sandbox of this process's system."""

    def launch(self, confinement: Confinement, command: Command, channels: Channels) -> Launch:
        """Return how to spawn a confined child. Raises SandboxFailed or another OSError."""
        ...

    def note_failure(self) -> None:
        """Take note that a child could not be confined."""
        ...


class ConfinedChild(Child):
    """A command in a sandbox. Await `ready` first; without a namespace it is then an ordinary child."""

    def __init__(
        self,
        sandbox: ConfiningSandbox,
        confinement: Confinement,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
    ) -> None:
        """Start it. Raises SandboxFailed, or another OSError if the folder or a program is missing."""
        assert threading.current_thread() is threading.main_thread(), "the child would end with this thread"
        os.stat(cwd)
        self._sandbox = sandbox
        self._confinement = confinement
        self._is_namespace = False
        self._report, self._report_end = socket.socketpair()
        self._said = b""  # what was told and is no whole line yet
        self._lines: list[str] = []  # what no one has a name for: why bubblewrap or the launcher failed
        self._is_over = False  # nobody is left who could tell something
        self._first_process: ProcessEntry | None = None
        self._launcher: int | None = None
        self._ended: tuple[int | None, int | None] | None = None
        try:
            super().__init__(command, cwd, environment)
        except BaseException:
            self._report.close()
            raise
        finally:
            self._report_end.close()

    def _spawn(self, command: str, cwd: str, environment: Mapping[str, str], far_end: int) -> subprocess.Popen[bytes]:
        self._report.setblocking(False)
        if sys.platform == "linux":
            self._report.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        shell = Command((SHELL, "-c", command), cwd, environment)
        told = self._report_end.fileno()
        launch = self._sandbox.launch(self._confinement, shell, Channels(far_end, told))
        try:
            self._is_namespace = launch.is_namespace
            return spawn(
                launch.arguments,
                "/",
                launch.environment,
                told,
                executable=launch.executable,
                inherited=(*launch.descriptors, far_end, told),
            )
        finally:
            launch.close()

    async def ready(self) -> None:
        """Wait until the command runs. Raises SandboxFailed; then nothing of it ran."""
        while self._launcher is None:
            if self._is_over:
                raise SandboxFailed(failure_text(self._lines))
            await anyio.wait_readable(self._report)
            self._read_report()

    async def wait_exit(self) -> None:
        assert self._launcher is not None, "`ready` comes first"
        if not self._is_namespace:
            await super().wait_exit()
            return
        while self._ended is None and not self._is_over:
            await anyio.wait_readable(self._report)
            self._read_report()

    def _read_report(self) -> None:
        """Take what was told, without waiting."""
        while not self._is_over:
            try:
                piece, extra, _, _ = self._report.recvmsg(
                    REPORT_BYTES_MAX, socket.CMSG_SPACE(len(_CREDENTIALS) * _CREDENTIALS.itemsize)
                )
            except BlockingIOError:
                return
            self._is_over = not piece
            *lines, self._said = (self._said + piece).split(b"\n")
            for line in lines:
                self._take_line(line.decode(errors="replace"), _sender_of(extra))
            self._said = self._said[:REPORT_BYTES_MAX]

    def _take_line(self, line: str, sender: int | None) -> None:
        word, _, value = line.partition(" ")
        if line.startswith("{") and sender == self.pid:
            self._first_process = self._first_process or _first_process_of(line)
        elif line == "ready" and self._launcher is None:
            self._launcher = sender or self.pid
        elif sender is not None and sender == self._launcher and word in ("exited", "signalled"):
            self._ended = (int(value), None) if word == "exited" else (None, int(value))
        elif len(self._lines) < 100:
            self._lines.append(line)

    def members(self) -> list[ProcessEntry]:
        """Return the processes of the command; with a namespace those inside it, without the sandbox's own."""
        if not self._is_namespace:
            return super().members()
        if self._launcher is None:
            return []
        listed = list_processes()
        own = {self.pid, self._launcher}
        if self._first_process is not None:
            own.add(self._first_process.pid)
        roots = {one.pid: one for one in listed if one.pid in own}
        return [one for one in with_descendants(listed, roots) if one.pid not in own]

    def end_members(self, members: Sequence[ProcessEntry], number: signal.Signals) -> None:
        if not self._is_namespace:
            super().end_members(members, number)
            return
        self._name_left(one for one in members if one.parent != self._launcher)  # its child is the shell
        launcher = find_process(self._launcher) if self._launcher is not None else None
        if number == signal.SIGKILL:
            self._kill_sandbox()
        elif launcher is not None:
            signal_process(launcher.pid, launcher.started, number)

    async def end_sandbox(self) -> bool:
        """End the namespace; return whether its first process, and so everything inside, is gone."""
        if not self._is_namespace:
            return await super().end_sandbox()
        await _wait_until(self._has_reported, REPORT_S_MAX)
        self._kill_sandbox()
        return await _wait_until(self._is_gone, NAMESPACE_S_MAX)

    def kill(self) -> None:
        if self._is_namespace:
            self._kill_sandbox()
            self.wait_killed()
        else:
            super().kill()

    def _kill_sandbox(self) -> None:
        if self._popen.returncode is None:
            self._signal_group(signal.SIGKILL)

    def _has_reported(self) -> bool:
        self._read_report()
        return self._ended is not None or self._is_over or self._launcher is None

    def _is_gone(self) -> bool:
        first = self._first_process
        return find_process(self.pid) is None and (first is None or not is_running(first.pid, first.started))

    def reap(self) -> tuple[int | None, int | None]:
        """Reap bubblewrap; return how the command ended, as the launcher told it."""
        code = super().reap()
        return code if self._ended is None else self._ended

    def close(self) -> None:
        self._report.close()
        super().close()


async def _wait_until(holds: Callable[[], bool], limit_s: float) -> bool:
    """Wait until it holds; return whether it does. The system reports neither by an event that all systems have."""
    waited_s = 0.0
    while not (found := holds()) and waited_s < limit_s:
        await anyio.sleep(POLL_S)
        waited_s += POLL_S
    return found


def _first_process_of(line: str) -> ProcessEntry | None:
    """Return the first process of the namespace, if this line of bubblewrap names it."""
    try:
        pid = json.loads(line).get("child-pid")
    except ValueError:
        return None
    return find_process(pid) if isinstance(pid, int) else None


def _sender_of(extra: Sequence[tuple[int, int, bytes]]) -> int | None:
    """Return the pid that the kernel added to a message."""
    if sys.platform == "linux":
        for level, kind, content in extra:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                return array.array("i", content)[0]
    return None
