"""The lock that proves that its owner is alive [I15].

It is `flock` on Linux and macOS and `LockFileEx` on Windows, on a descriptor of its own, by filelock's
`lock_descriptor`. That function never falls back to a marker file, which would outlive its owner and prove nothing. The
descriptor is closed on exec, so no child keeps the lock; a process that is forked without exec closes it at once. Two
takers inside one process exclude each other like two processes. We never delete or rename the file; if somebody else
did, the lock would be on a name that nobody else uses, so it does not count.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Callable

from filelock import lock_descriptor, unlock_descriptor

# The errors of a file system that does not support these locks.
NO_LOCKS_HERE = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOLCK})


class HeldLock:
    """A lock that this process holds until `release` or its end."""

    def __init__(self, descriptor: int, locked: os.stat_result) -> None:
        self._descriptor = descriptor
        self.identity = (locked.st_dev, locked.st_ino)
        _held.add(self)

    def release(self) -> None:
        """Release the lock, also for copies that a fork has made; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        _held.discard(self)
        if descriptor >= 0:
            try:
                unlock_descriptor(descriptor)
            finally:
                os.close(descriptor)

    def forget(self) -> None:
        """Close this process's copy; the process that holds the lock keeps it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


# For a fork without exec: a copy of the descriptor would keep the lock after its owner has ended.
_held: weakref.WeakSet[HeldLock] = weakref.WeakSet()


def _forget_in_child() -> None:
    for lock in list(_held):
        lock.forget()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)


def acquire(descriptor: int, still_there: Callable[[os.stat_result], bool]) -> HeldLock | None:
    """Lock an open file without waiting; None if another process holds it. Owns the descriptor from here on.

    `still_there` returns whether the name still leads to the opened file. Raises OSError(ENOLCK) if locks do not work
    here, OSError(ESTALE) if the file was replaced meanwhile.
    """
    try:
        if not _try_lock(descriptor):
            os.close(descriptor)
            return None
        locked = os.fstat(descriptor)
        if not still_there(locked):
            raise OSError(errno.ESTALE, "The lock file was replaced while it was being locked")
    except BaseException:
        os.close(descriptor)
        raise
    return HeldLock(descriptor, locked)


def _try_lock(descriptor: int) -> bool:
    try:
        return lock_descriptor(descriptor, blocking=False)
    except NotImplementedError as trouble:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from trouble
    except OSError as trouble:
        if trouble.errno in NO_LOCKS_HERE:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from trouble
        raise
