"""Restrict this process, then run one command: the program between a sandbox and the command's shell (rows O1, O2, O4).

The server runs its compiled code by `python -I -S -c TEXT NUMBER`, where NUMBER is the descriptor of an order that
`marshal` wrote; nothing of Steadyhand is imported. It must start fast, so it imports little.

    Landlock alone  it restricts itself and executes the command
    in bubblewrap   it stays beside the command, because the namespace ends with it: it forwards signals to everything
                    inside, and tells how the command ended before what the command left is killed

It reports on one descriptor, a line each: `ready` before the command begins; `exited N` or `signalled N` after it;
`failed TEXT` if a restriction cannot be made, and then nothing of the command ran.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DESCRIPTORS_MAX = 1 << 16
"""Inherited descriptors have smaller numbers: the server opens far fewer files."""
FAILED_CODE = 125
NOT_EXECUTABLE_CODE, NOT_FOUND_CODE = 126, 127  # as shells have them

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
_SECCOMP_MODE_FILTER = 2
_CAPABILITIES_MAX = 64
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_FOR_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14  # execute, write, read, truncate: all that a file can have
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def main(order: dict[str, Any]) -> None:
    """Carry out an order; `adapters/sandbox/launch.py` has its members. Ends the process."""
    report = order["report"]
    os.set_inheritable(report, False)
    try:
        _restrict(order)
        os.chdir(order["cwd"])
    except Exception as trouble:
        _tell(report, f"failed {str(trouble)!r}")
        os._exit(FAILED_CODE)
    _tell(report, "ready")
    if order["stay"]:
        _run_beside(order, report)
    _execute(order)


def _restrict(order: dict[str, Any]) -> None:
    if order["parent"] is not None:
        _check(_libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "PR_SET_PDEATHSIG")
        if os.getppid() != order["parent"]:  # it ended before the line above
            os._exit(FAILED_CODE)
    if order["drop"]:
        _drop_capabilities()
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
    if order["landlock"] is not None:
        _restrict_files(*order["landlock"])
    if order["filter"] is not None:
        program = _FilterProgram(len(order["filter"]) // 8, order["filter"])
        _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0), "PR_SET_SECCOMP")


def _drop_capabilities() -> None:
    for number in range(_CAPABILITIES_MAX):
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # fails without CAP_SETPCAP, and beyond the last one
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def _restrict_files(handled: int, network: int, scoped: int, paths: tuple[tuple[bytes, int], ...]) -> None:
    attributes = _Ruleset(handled, network, scoped)
    size = 24 if scoped else 16 if network else 8  # an older kernel knows a shorter structure
    ruleset = _check(
        _libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0)),
        "landlock_create_ruleset",
    )
    for path, rights in paths:
        try:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # what cannot be opened gets no right
            continue
        rights &= handled if stat.S_ISDIR(os.fstat(folder).st_mode) else handled & _FOR_FILES
        if rights:
            rule = ctypes.byref(_PathRule(rights, folder))
            _check(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, ctypes.c_uint32(0)), "landlock_add_rule")
        os.close(folder)
    _check(_libc.syscall(_RESTRICT_SELF, ruleset, ctypes.c_uint32(0)), "landlock_restrict_self")
    os.close(ruleset)


def _run_beside(order: dict[str, Any], report: int) -> None:
    """Run the command in a child, and stay until the namespace ends."""
    # What runs inside must not reach the report through /proc.
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    for number in _FORWARDED:
        signal.signal(number, lambda number, frame: _forward(number))
    child = os.fork()
    if child == 0:
        _execute(order)
    os.close(order["output"])  # it ends when the command does
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _tell(report, f"exited {code}" if code >= 0 else f"signalled {-code}")
    while True:
        signal.pause()


def _forward(number: int) -> None:
    """Send the signal to everything in the namespace except this process and the first one."""
    try:
        os.kill(-1, number)
    except OSError:  # nothing else runs
        return


def _execute(order: dict[str, Any]) -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and that is inherited
        signal.signal(number, signal.SIG_DFL)
    os.dup2(order["output"], 1)
    os.dup2(order["output"], 2)
    os.closerange(3, DESCRIPTORS_MAX)
    try:
        os.execve(order["command"][0], order["command"], order["environment"])
    except OSError as trouble:
        name = os.fsdecode(order["command"][0])
        os.write(2, f"{name}: {trouble.strerror}\n".encode(errors="replace"))
        os._exit(NOT_FOUND_CODE if isinstance(trouble, FileNotFoundError) else NOT_EXECUTABLE_CODE)


def _tell(report: int, line: str) -> None:
    os.write(report, line.encode("ascii", "backslashreplace") + b"\n")


def _check(answer: int, what: str) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return answer


if __name__ == "steadyhand_launcher":
    main(order)  # type: ignore[name-defined]  # noqa: F821  the text that the interpreter is given sets it
