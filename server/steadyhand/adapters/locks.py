"""The lock that proves its owner alive [I15].

It is `flock` on Linux and macOS and `LockFileEx` on Windows, taken on a descriptor of its own through
filelock's `lock_descriptor`: that never falls back to a marker file, which would outlive its owner and prove
nothing. The descriptor is closed on exec, so no child holds the lock on; a process forked without exec closes
it at once. Two takers inside one process exclude each other as two processes do. The file itself is never
deleted or renamed by us; where somebody did, the lock is taken on a name nobody else will look at, so it does
not count.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable

from filelock import lock_descriptor, unlock_descriptor

# What a file system says that has no such locks.
no_locks_here = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOLCK})


class HeldLock:
    """A lock this process holds, until `release` or its death."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Let go, also of what a fork may have copied; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        _held.discard(self)
        if descriptor >= 0:
            try:
                unlock_descriptor(descriptor)
            finally:
                os.close(descriptor)

    def forget(self) -> None:
        """Close this process's copy and leave the lock to who holds it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


# Only for a fork without exec: a copy of the descriptor there would hold the lock beyond its owner's death.
_held: weakref.WeakSet[HeldLock] = weakref.WeakSet()


def _let_go_in_child() -> None:
    for lock in list(_held):
        lock.forget()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


def take(descriptor: int, still_there: Callable[[os.stat_result], bool]) -> HeldLock | None:
    """Lock an open file at once; None if somebody holds it. Owns the descriptor from here on.

    `still_there` tells whether the name still leads to what was opened. Raises OSError(ENOLCK) where locks do
    not hold, OSError(ESTALE) if the file was replaced meanwhile.
    """
    try:
        if not _locked(descriptor):
            os.close(descriptor)
            return None
        if not still_there(os.fstat(descriptor)):
            raise OSError(errno.ESTALE, "The lock file was replaced while it was being locked")
    except BaseException:
        os.close(descriptor)
        raise
    return HeldLock(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        return lock_descriptor(descriptor, blocking=False)
    except NotImplementedError as trouble:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from trouble
    except OSError as trouble:
        if trouble.errno in no_locks_here:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from trouble
        raise
