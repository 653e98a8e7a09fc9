"""Protect this process from other processes of the same user (row O4; case 142)."""

from __future__ import annotations

import sys

_PR_SET_DUMPABLE = 4


def hide_memory() -> bool:
    """Make this process not dumpable; return whether the system did it.

    Then its environment, memory and descriptors are closed to other processes of the same user, debuggers included,
    and it leaves no core dump. Its command line stays readable. A program that it starts is dumpable again. For root
    nothing changes. A change of credentials makes a process not dumpable too.
    """
    if sys.platform != "linux":
        return False
    try:
        import ctypes
    except ImportError:  # an interpreter that was built without it
        return False
    libc = ctypes.CDLL(None)
    return bool(libc.prctl(ctypes.c_int(_PR_SET_DUMPABLE), *(ctypes.c_ulong(0) for _ in range(4))) == 0)
