"""Operations on an open file: pieces, sizes, syncs and attributes (rows J4, J7, W9).

Both disks use it; it knows descriptors, and no names or folders. A write returns what the system accepted and does not
continue. `sync` reaches as deep as the system allows: fdatasync on Linux (it includes the size), F_FULLFSYNC on macOS,
where plain fsync stops at the drive's cache, fsync elsewhere.

A replacement never has more rights than the file had: attributes that cannot be set are named, and rights that would
then apply to somebody else are left out.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from steadyhand.ports.disk import Attributes, File

READ_PIECE_BYTES_MAX = 1024 * 1024

ACCESS_LIST_NAME = "system.posix_acl_access"
# These certify the bytes of a file, and a replacement changes the bytes.
VOUCHING_NAMES = frozenset({"security.capability", "security.ima", "security.evm"})
SET_ID_BITS = stat.S_ISUID | stat.S_ISGID

NO_EXTENDED = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class OpenFiles:
    """The part of `ports.Disk` that needs only open files."""

    def read_piece(self, file: File, size: int) -> bytes:
        return os.read(file, size)

    def move_to(self, file: File, position: int) -> None:
        os.lseek(file, position, os.SEEK_SET)

    def write(self, file: File, piece: bytes) -> int:
        return os.write(file, piece)

    def truncate(self, file: File, size: int) -> None:
        os.ftruncate(file, size)

    def sync(self, file: File) -> None:
        sync_descriptor(file)

    def reread(self, file: File) -> None:
        if sys.platform == "linux":
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

    def give_attributes(self, file: File, attributes: Attributes) -> list[str]:
        return give_attributes(file, attributes)


def require_regular(descriptor: int, name: str) -> int:
    """Return the descriptor if it is a regular file's; otherwise close it and raise EISDIR or EINVAL."""
    try:
        refuse_irregular(os.fstat(descriptor).st_mode, name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def refuse_irregular(mode: int, name: str) -> None:
    """Raise ELOOP for a link, EISDIR for a folder, EINVAL for a pipe, socket or device."""
    if stat.S_ISREG(mode):
        return
    number = errno.ELOOP if stat.S_ISLNK(mode) else errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(number, os.strerror(number), name)


def read_up_to(descriptor: int, limit: int) -> bytes:
    """Return at most `limit` bytes from the present position."""
    pieces: list[bytes] = []
    left = limit
    while left > 0 and (piece := os.read(descriptor, min(left, READ_PIECE_BYTES_MAX))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def sync_descriptor(descriptor: int) -> None:
    """Push a file's bytes and size, or a folder's names, as far down as this system can. Raises OSError."""
    if sys.platform == "darwin":
        import fcntl  # missing on Windows

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError as trouble:
            if trouble.errno not in (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY):
                raise
            os.fsync(descriptor)
    elif sys.platform == "linux":
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def attributes_of(descriptor: int) -> Attributes:
    """Return mode, owner and extended attributes of an open file; the extended ones on Linux only."""
    seen = os.fstat(descriptor)
    mode, extended = stat.S_IMODE(seen.st_mode), _read_extended(descriptor)
    return Attributes(mode=mode, uid=seen.st_uid, gid=seen.st_gid, extended=extended)


def give_attributes(descriptor: int, wanted: Attributes) -> list[str]:
    """Set the attributes of an open file; return the names of those that the system refused, in order.

    Owner first (that clears the set-id bits), then extended attributes with the access list, the mode last.
    """
    missing = list(_give_owner(descriptor, wanted))
    extended = dict(wanted.extended)
    mode = wanted.mode
    if missing:
        mode &= ~SET_ID_BITS
    if "gid" in missing:
        # The group bits were meant for another group.
        extended.pop(ACCESS_LIST_NAME, None)
        mode = mode & ~stat.S_IRWXG | (mode & (mode << 3) & stat.S_IRWXG)
    missing += _give_extended(descriptor, extended)
    missing += [name for name in wanted.extended if name not in extended]
    if not _give_mode(descriptor, mode) or mode != wanted.mode:
        missing.append("mode")
    return missing


def _give_owner(descriptor: int, wanted: Attributes) -> Iterator[str]:
    if sys.platform == "win32":
        return
    seen = os.fstat(descriptor)
    if seen.st_gid != wanted.gid and not _try_call(lambda: os.fchown(descriptor, -1, wanted.gid)):
        yield "gid"
    if seen.st_uid != wanted.uid and not _try_call(lambda: os.fchown(descriptor, wanted.uid, -1)):
        yield "uid"


def _give_mode(descriptor: int, mode: int) -> bool:
    if sys.platform == "win32":
        return stat.S_IMODE(os.fstat(descriptor).st_mode) == mode
    return _try_call(lambda: os.fchmod(descriptor, mode))


def _read_extended(descriptor: int) -> dict[str, bytes]:
    if sys.platform != "linux":
        return {}
    try:
        return {name: os.getxattr(descriptor, name) for name in sorted(os.listxattr(descriptor))}
    except OSError as trouble:
        if trouble.errno in NO_EXTENDED:
            return {}
        raise


def _give_extended(descriptor: int, wanted: Mapping[str, bytes]) -> list[str]:
    if sys.platform != "linux":
        return list(wanted)
    present = _read_extended(descriptor)
    for name in present:
        # A new file can inherit an access list that the old one did not have.
        if name not in wanted and not name.startswith("security."):
            _try_call(partial(os.removexattr, descriptor, name))
    return [
        name
        for name, value in wanted.items()
        if present.get(name) != value
        and (name in VOUCHING_NAMES or not _try_call(partial(os.setxattr, descriptor, name, value)))
    ]


def _try_call(act: Callable[[], None]) -> bool:
    try:
        act()
    except OSError:
        return False
    return True
