"""The processes of this machine, as /proc tells them, and how exactly one of them is signalled (row E5).

A pid alone names nothing: it is given again. A pid and the time its process started name one process of one
boot, and a signal goes out only while both still hold. Where there is /proc and a pidfd the pidfd is opened
first and the start time compared then, so that no other process can come in between.

Zombies are over and are not listed. While a process turns into another program its environment reads as empty for a
moment; it is read again before it counts as without a mark. An environment that cannot be read (another user's, or a
process that forbids it) carries no mark that is known here; a process that cleared its environment is not seen either.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, cast

import attrs

from steadyhand.core.environment import attempt_mark_name
from steadyhand.core.redaction import redacted_command
from steadyhand.ports import Survivor

command_chars_max = 200
environment_bytes_max = 8 * 1024 * 1024  # above what execve takes
command_line_bytes_max = 4096
proc_piece_bytes = 64 * 1024

exec_s_max = 0.05
"""How long an empty environment is read again: what really has none is soon believed."""
exec_pause_s = 0.001

proc = "/proc"
_over = frozenset({"Z", "X", "x"})


@attrs.frozen
class Seen:
    """One running process at the moment of looking."""

    pid: int
    started: str  # clock ticks since boot, as in /proc/<pid>/stat field 22
    parent: int
    group: int
    session: int

    @property
    def identity(self) -> tuple[int, str]:
        return self.pid, self.started


def proc_is_here() -> bool:
    """Whether this system tells of its processes through /proc."""
    return os.path.exists(f"{proc}/self/stat")


def seen(pid: int) -> Seen | None:
    """The process of that number, or None: gone, a zombie, or not told."""
    found = _listed(pid)
    return found[1] if found is not None and found[0] not in _over else None


def started_of(pid: int) -> str:
    """When the process of that number started, a zombie's too; empty if it is gone or cannot be told."""
    if not proc_is_here():
        told = (_psutil_started(one) for one in _psutil_processes() or () if one.pid == pid)
        return next(told, None) or ""
    found = _listed(pid)
    return found[1].started if found is not None else ""


def _listed(pid: int) -> tuple[str, Seen] | None:
    """Its state, a letter, and what it is."""
    stat = _read(f"{proc}/{pid}/stat", command_line_bytes_max)
    # The command in brackets may hold anything, brackets and blanks too; what follows the last one is fixed.
    fields = stat[stat.rfind(b")") + 1 :].split()
    if len(fields) < 20:
        return None
    one = Seen(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=fields[19].decode(),
    )
    return fields[0].decode(), one


def all_seen() -> list[Seen]:
    """Every running process but this one."""
    try:
        pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return []
    return [one for pid in sorted(pids) if pid != os.getpid() and (one := seen(pid)) is not None]


def carries(pid: int, mark: str) -> bool:
    """Whether the process was started with this attempt's mark in its environment."""
    wanted = f"{attempt_mark_name}={mark}".encode()
    return wanted in _environment(pid).split(b"\0")


def _environment(pid: int) -> bytes:
    """As it was given; empty for a kernel's own thread, for another user's, and where there is none."""
    limit_s = time.monotonic() + exec_s_max
    while not (found := _read(f"{proc}/{pid}/environ", environment_bytes_max)):
        if time.monotonic() > limit_s or not os.access(f"{proc}/{pid}/environ", os.R_OK) or not _has_memory(pid):
            break
        time.sleep(exec_pause_s)
    return found


def _has_memory(pid: int) -> bool:
    """Whether it is a program: `statm` of a kernel's thread, and of what is gone, tells no pages."""
    return _read(f"{proc}/{pid}/statm", command_line_bytes_max).split(b" ", 1)[0] not in (b"", b"0")


def command_of(pid: int) -> str:
    """What the process runs, on one line, without what looks like a credential (row E2), at most `command_chars_max`
    characters; empty if it is gone."""
    line = _read(f"{proc}/{pid}/cmdline", command_line_bytes_max).rstrip(b"\0").replace(b"\0", b" ")
    text = (line or _read(f"{proc}/{pid}/comm", command_line_bytes_max)).decode(errors="replace")
    # Control characters could move the cursor of whoever reads the name.
    clean = "".join(char if char.isprintable() else " " for char in text)
    return redacted_command(clean)[:command_chars_max]


def family(processes: Iterable[Seen], leader: int, mark: str | None) -> list[Seen]:
    """What belongs to a command: its group, its session, what carries its mark, and children of all these.

    `leader` is the pid of the command's shell, which is its group and its session too.
    """
    listed = list(processes)
    found = {
        one.pid: one
        for one in listed
        if leader in (one.pid, one.group, one.session) or (mark is not None and carries(one.pid, mark))
    }
    grown = True
    while grown:
        new = [one for one in listed if one.parent in found and one.pid not in found]
        found.update((one.pid, one) for one in new)
        grown = bool(new)
    return list(found.values())


def signal_exactly(pid: int, started: str, number: signal.Signals) -> bool:
    """Send a signal to this one process; False if it is gone, or not ours to signal."""
    if sys.platform != "linux":
        return _signal_number(pid, started, number)
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError):  # an old kernel, or a Python built on one
        return _signal_number(pid, started, number)
    try:
        return is_running(pid, started) and _sent(lambda: signal.pidfd_send_signal(held, number))
    finally:
        os.close(held)


def survivors(mark: str) -> list[Survivor] | None:
    """The running processes that carry the mark; None where it cannot be told."""
    if proc_is_here():
        return [
            Survivor(one.pid, one.started, command_of(one.pid))
            for one in all_seen()
            if carries(one.pid, mark) and is_running(one.pid, one.started)
        ]
    listed = _psutil_processes()
    if listed is None:
        return None
    return [one for one in (_survivor(process, mark) for process in listed) if one is not None]


def is_running(pid: int, started: str) -> bool:
    """Whether the process of that number and start still runs."""
    if not proc_is_here():
        return _psutil_is(pid, started)
    now = seen(pid)
    return now is not None and now.started == started


def _signal_number(pid: int, started: str, number: signal.Signals) -> bool:
    """Without a pidfd: between the look and the signal stays a gap of a few microseconds."""
    return is_running(pid, started) and _sent(lambda: os.kill(pid, number))


def _sent(send: Callable[[], None]) -> bool:
    try:
        send()
    except (ProcessLookupError, PermissionError):
        return False
    return True


class _PsutilProcess(Protocol):
    """The part of psutil.Process that is used; psutil ships no types and may be absent."""

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


def _psutil_is(pid: int, started: str) -> bool:
    return any(one.pid == pid and _psutil_started(one) == started for one in _psutil_processes() or ())


def _psutil_started(process: _PsutilProcess) -> str | None:
    try:
        return f"{process.create_time():.6f}"
    except Exception:  # psutil's own errors, which have no types here: gone, or not told
        return None


def _survivor(process: _PsutilProcess, mark: str) -> Survivor | None:
    started = _psutil_started(process)
    try:
        marked = process.environ().get(attempt_mark_name) == mark and process.status() != "zombie"
        command = redacted_command(" ".join(process.cmdline()))[:command_chars_max]
    except Exception:  # as above; none of these is known to carry the mark
        return None
    return Survivor(process.pid, started, command) if marked and started is not None else None


def _read(path: str, limit: int) -> bytes:
    """The beginning of a file of /proc; empty if it is gone or not ours to read."""
    try:
        with open(path, "rb", buffering=0) as file:
            pieces = []
            while limit > 0 and (piece := file.read(min(limit, proc_piece_bytes))):
                pieces.append(piece)
                limit -= len(piece)
            return b"".join(pieces)
    except OSError:
        return b""
