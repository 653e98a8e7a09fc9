"""Renames that plain `rename` cannot do: never over an existing name, and two names swapped.

Linux has both as `renameat2`, which Python does not offer; it is called through ctypes, in the C library of
this process (`CDLL(None)`), so that whatever stands before the library (an interposer in a test) sees it too.
Where the call or the file system cannot, `rename_new` makes the name by a hard link, which also never
replaces, and only where there are no links it looks first and renames then. For a swap there is no such
second way.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable

rename_noreplace_flag = 1  # linux/fs.h
rename_exchange_flag = 2

# The system or the file system does not know the call or the flag.
unknown_to_system = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})
# A file system without hard links says one of these; so does Linux for the link of a folder (EPERM).
unlinkable = unknown_to_system | {errno.EPERM, errno.EMLINK}

_Renameat2 = Callable[[int, bytes, int, bytes, int], int]


@functools.cache
def _renameat2() -> _Renameat2 | None:
    """The C function, or None where there is none."""
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


def renamed(folder: int, old: str, new: str, flags: int, other: int | None = None) -> bool:
    """Call renameat2, into the folder `other` if one is given; False where it cannot be done here. Raises OSError
    otherwise."""
    function = _renameat2()
    if function is None:
        return False
    ctypes.set_errno(0)
    if function(folder, os.fsencode(old), folder if other is None else other, os.fsencode(new), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in unknown_to_system:
        return False
    raise OSError(number, os.strerror(number), old, None, new)


def exchange(folder: int, first: str, second: str) -> bool:
    """Swap two names in one step; False where the system cannot, and nothing has happened then."""
    return renamed(folder, first, second, rename_exchange_flag)


def rename_new(folder: int, old: str, new: str, other: int | None = None) -> None:
    """Rename inside the folder, or into the folder `other`; FileExistsError if `new` is there, in the same step
    wherever possible."""
    if renamed(folder, old, new, rename_noreplace_flag, other):
        return
    goal = folder if other is None else other
    try:
        os.link(old, new, src_dir_fd=folder, dst_dir_fd=goal, follow_symlinks=False)
    except OSError as trouble:
        if trouble.errno not in unlinkable:
            raise
    else:
        os.unlink(old, dir_fd=folder)
        return
    _look_and_rename(folder, old, goal, new)


def _look_and_rename(folder: int, old: str, goal: int, new: str) -> None:
    """The last way: between the look and the rename another process can make `new`, and would lose it."""
    try:
        os.stat(new, dir_fd=goal, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=goal)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
