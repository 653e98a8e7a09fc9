"""The processes of this machine, from /proc, and how to signal exactly one of them (row E5).

A pid alone identifies nothing, because the system reuses it. A pid and the start time of its process identify one
process of one boot, and a signal is sent only while both match. With /proc and pidfd, the pidfd is opened first and the
start time compared then, so no other process can take the pid in between.

Zombies have ended and are not listed. While a process execs, its environment reads as empty for a moment; it is read
again before the process counts as unmarked. An environment that cannot be read (another user's, or of a process that
forbids it) has no mark that is known here. A process that cleared its environment is not found either.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

from steadyhand.adapters.processes.redaction import redact_command
from steadyhand.domain.permissions.child_environment import ATTEMPT_MARK_NAME
from steadyhand.ports.processes import OrphanProcess
from steadyhand_values import frozen

COMMAND_CHARS_MAX = 200
ENVIRONMENT_BYTES_MAX = 8 * 1024 * 1024  # more than execve accepts
COMMAND_LINE_BYTES_MAX = 4096
PROC_PIECE_BYTES = 64 * 1024

EXEC_S_MAX = 0.05
"""How long an empty environment is read again before it counts as empty."""
EXEC_PAUSE_S = 0.001

PROC = "/proc"
_ENDED_STATES = frozenset({"Z", "X", "x"})


@frozen
class ProcessEntry:
    """One running process at the moment it was read."""

    pid: int
    started: str  # clock ticks since boot, as in /proc/<pid>/stat field 22
    parent: int
    group: int
    session: int

    @property
    def identity(self) -> tuple[int, str]:
        return self.pid, self.started


def has_proc() -> bool:
    """Whether this system has /proc."""
    return os.path.exists(f"{PROC}/self/stat")


def find_process(pid: int) -> ProcessEntry | None:
    """Return the process with that pid; None if it has ended, is a zombie, or is unknown."""
    found = _read_stat(pid)
    return found[1] if found is not None and found[0] not in _ENDED_STATES else None


def started_of(pid: int) -> str:
    """Return when the process with that pid started, also for a zombie; empty if it has ended or is unknown."""
    if not has_proc():
        starts = (_psutil_started(one) for one in _psutil_processes() or () if one.pid == pid)
        return next(starts, None) or ""
    found = _read_stat(pid)
    return found[1].started if found is not None else ""


def _read_stat(pid: int) -> tuple[str, ProcessEntry] | None:
    """Return its state letter and the process."""
    stat = _read(f"{PROC}/{pid}/stat", COMMAND_LINE_BYTES_MAX)
    # The command in brackets may contain anything, also brackets; the fields after the last bracket are fixed.
    fields = stat[stat.rfind(b")") + 1 :].split()
    if len(fields) < 20:
        return None
    one = ProcessEntry(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=fields[19].decode(),
    )
    return fields[0].decode(), one


def list_processes() -> list[ProcessEntry]:
    """Return every running process except this one."""
    try:
        pids = [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return []
    return [one for pid in sorted(pids) if pid != os.getpid() and (one := find_process(pid)) is not None]


def marked_processes(pids: Iterable[int], mark: str) -> set[int]:
    """Return the processes that were started with this attempt's mark.

    Those whose environment reads as empty are read again together, so the wait is the same for one and for hundreds."""
    wanted = f"{ATTEMPT_MARK_NAME}={mark}".encode()
    found: set[int] = set()
    waiting = list(pids)
    limit_s = time.monotonic() + EXEC_S_MAX
    while waiting:
        read = {pid: _read(f"{PROC}/{pid}/environ", ENVIRONMENT_BYTES_MAX) for pid in waiting}
        found.update(pid for pid, environment in read.items() if wanted in environment.split(b"\0"))
        waiting = [pid for pid, environment in read.items() if not environment and _may_exec(pid)]
        if time.monotonic() > limit_s:
            break
        if waiting:
            time.sleep(EXEC_PAUSE_S)
    return found


def _may_exec(pid: int) -> bool:
    """Whether an empty environment may be that of a program that is about to run: not of a kernel thread, nor of
    another user's process."""
    return os.access(f"{PROC}/{pid}/environ", os.R_OK) and _has_memory(pid)


def _has_memory(pid: int) -> bool:
    """Whether it is a program: `statm` of a kernel thread, and of a process that has ended, has no pages."""
    return _read(f"{PROC}/{pid}/statm", COMMAND_LINE_BYTES_MAX).split(b" ", 1)[0] not in (b"", b"0")


def command_of(pid: int) -> str:
    """Return its command on one line, without credentials (row E2), at most `COMMAND_CHARS_MAX` characters; empty if it
    has ended.
    """
    line = _read(f"{PROC}/{pid}/cmdline", COMMAND_LINE_BYTES_MAX).rstrip(b"\0").replace(b"\0", b" ")
    text = (line or _read(f"{PROC}/{pid}/comm", COMMAND_LINE_BYTES_MAX)).decode(errors="replace")
    # Control characters could move the cursor of a terminal that shows the name.
    clean = "".join(char if char.isprintable() else " " for char in text)
    return redact_command(clean)[:COMMAND_CHARS_MAX]


def processes_of_command(processes: Iterable[ProcessEntry], leader: int, mark: str | None) -> list[ProcessEntry]:
    """Return the processes of a command: its group, its session, those with its mark, and children of all these.

    `leader` is the pid of the command's shell, which is also the number of its group and its session.
    """
    listed = list(processes)
    found = {one.pid: one for one in listed if leader in (one.pid, one.group, one.session)}
    if mark is not None:
        marked = marked_processes([one.pid for one in listed if one.pid not in found], mark)
        found |= {one.pid: one for one in listed if one.pid in marked}
    return with_descendants(listed, found)


def with_descendants(processes: Sequence[ProcessEntry], roots: Mapping[int, ProcessEntry]) -> list[ProcessEntry]:
    """Return these processes, by pid, and those that they started, at any depth."""
    found = dict(roots)
    grown = True
    while grown:
        new = [one for one in processes if one.parent in found and one.pid not in found]
        found.update((one.pid, one) for one in new)
        grown = bool(new)
    return list(found.values())


def signal_process(pid: int, started: str, number: signal.Signals) -> bool:
    """Send a signal to exactly this process; False if it has ended or belongs to another user."""
    if sys.platform != "linux":
        return _signal_by_pid(pid, started, number)
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # an old kernel, or a Python built on one
        return _signal_by_pid(pid, started, number)
    try:
        return is_running(pid, started) and _try_signal(lambda: signal.pidfd_send_signal(held, number))
    finally:
        os.close(held)


def find_survivors(mark: str) -> list[OrphanProcess] | None:
    """Return the running processes with the mark; None if this system cannot say."""
    if has_proc():
        running = list_processes()
        marked = marked_processes([one.pid for one in running], mark)
        return [
            OrphanProcess(one.pid, one.started, command_of(one.pid))
            for one in running
            if one.pid in marked and is_running(one.pid, one.started)
        ]
    listed = _psutil_processes()
    if listed is None:
        return None
    return [one for one in (_orphan_of(process, mark) for process in listed) if one is not None]


def is_running(pid: int, started: str) -> bool:
    """Whether the process with that pid and start time is running."""
    if not has_proc():
        return _is_running_by_psutil(pid, started)
    now = find_process(pid)
    return now is not None and now.started == started


def _signal_by_pid(pid: int, started: str, number: signal.Signals) -> bool:
    """Without a pidfd: a gap of a few microseconds remains between the check and the signal."""
    return is_running(pid, started) and _try_signal(lambda: os.kill(pid, number))


def _try_signal(send: Callable[[], None]) -> bool:
    try:
        send()
    except (ProcessLookupError, PermissionError):
        return False
    return True


class _PsutilProcess(Protocol):
    """The part of psutil.Process that is used; psutil has no types and may be missing."""

    @property
    def pid(self) -> int: ...
    def environ(self) -> dict[str, str]: ...
    def create_time(self) -> float: ...
    def cmdline(self) -> list[str]: ...
    def status(self) -> str: ...


def _psutil_processes() -> Iterator[_PsutilProcess] | None:
    try:
        psutil = importlib.import_module("psutil")
    except ImportError:
        return None
    return cast("Iterator[_PsutilProcess]", psutil.process_iter())


def _is_running_by_psutil(pid: int, started: str) -> bool:
    return any(one.pid == pid and _psutil_started(one) == started for one in _psutil_processes() or ())


def _psutil_started(process: _PsutilProcess) -> str | None:
    try:
        return f"{process.create_time():.6f}"
    except Exception:  # psutil's own errors, which have no types here: it has ended, or access is denied
        return None


def _orphan_of(process: _PsutilProcess, mark: str) -> OrphanProcess | None:
    started = _psutil_started(process)
    try:
        marked = process.environ().get(ATTEMPT_MARK_NAME) == mark and process.status() != "zombie"
        command = redact_command(" ".join(process.cmdline()))[:COMMAND_CHARS_MAX]
    except Exception:  # as above: then it is not known to carry the mark
        return None
    return OrphanProcess(process.pid, started, command) if marked and started is not None else None


def _read(path: str, limit: int) -> bytes:
    """Return the beginning of a file of /proc; empty if it is missing or not readable."""
    try:
        with open(path, "rb", buffering=0) as file:
            pieces = []
            while limit > 0 and (piece := file.read(min(limit, PROC_PIECE_BYTES))):
                pieces.append(piece)
                limit -= len(piece)
            return b"".join(pieces)
    except OSError:
        return b""
