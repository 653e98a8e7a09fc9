"""Renames that plain `rename` cannot do: never replace an existing name, and exchange two names.

Linux has both as `renameat2`, which Python does not offer. It is called through ctypes, in the C library of this
process (`CDLL(None)`), so a library that is loaded before it (an interposer in a test) sees the call too. If the call
or the file system cannot do it, `rename_new` makes a hard link, which never replaces either; only without hard links
does it check first and then rename. An exchange has no such substitute.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable

RENAME_NOREPLACE_FLAG = 1  # linux/fs.h
RENAME_EXCHANGE_FLAG = 2

# The system or the file system does not know the call or the flag.
UNKNOWN_TO_SYSTEM = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
# The errors of a file system without hard links, and of Linux for a hard link to a folder (EPERM).
UNLINKABLE = UNKNOWN_TO_SYSTEM | {errno.EPERM, errno.EMLINK}

_Renameat2 = Callable[[int, bytes, int, bytes, int], int]


@functools.cache
def _renameat2() -> _Renameat2 | None:
    """Return the C function, or None if there is none."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    function.restype = ctypes.c_int
    found: _Renameat2 = function
    return found


def try_rename(folder: int, old: str, new: str, flags: int, other: int | None = None) -> bool:
    """Call renameat2, into the folder `other` if it is given. False if the system cannot; raises other OSErrors."""
    function = _renameat2()
    if function is None:
        return False
    ctypes.set_errno(0)
    if function(folder, os.fsencode(old), folder if other is None else other, os.fsencode(new), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in UNKNOWN_TO_SYSTEM:
        return False
    raise OSError(number, os.strerror(number), old, None, new)


def exchange(folder: int, first: str, second: str) -> bool:
    """Exchange two names in one step. False if the system cannot; then nothing has changed."""
    return try_rename(folder, first, second, RENAME_EXCHANGE_FLAG)


def rename_new(folder: int, old: str, new: str, other: int | None = None) -> None:
    """Rename inside the folder, or into the folder `other`. FileExistsError if `new` exists, in the same step if
    possible.
    """
    if try_rename(folder, old, new, RENAME_NOREPLACE_FLAG, other):
        return
    goal = folder if other is None else other
    try:
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=goal, follow_symlinks=False)
    except OSError as trouble:
        if trouble.errno not in UNLINKABLE:
            raise
    else:
        os.unlink(old, dir_fd=folder)
        return
    _check_and_rename(folder, old, goal, new)


def _check_and_rename(folder: int, old: str, goal: int, new: str) -> None:
    """Rename without that guarantee: another process may create `new` after the check, and would lose it."""
    try:
        os.stat(new, dir_fd=goal, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=goal)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
