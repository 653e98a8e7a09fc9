"""What is done with a file once it is open: pieces, sizes, syncs and attributes (rows J4, J7, W9).

Both disks share it; here is no name and no folder, only descriptors. A write reports what the system took and
is not completed here. `sync` is as deep as the system goes: fdatasync on Linux (it covers the size),
F_FULLFSYNC on macOS, where plain fsync stops at the drive's cache, fsync elsewhere.

A replacement never ends up with more rights than the file had: what cannot be given is named, and rights that
would then reach somebody else are left out.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from steadyhand.ports import Attributes, File

read_piece_bytes_max = 1024 * 1024

access_list_name = "system.posix_acl_access"
# These vouch for the bytes they were given for, and the bytes are what changes.
vouching_names = frozenset({"security.capability", "security.ima", "security.evm"})
set_id_bits = stat.S_ISUID | stat.S_ISGID

no_extended = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class OpenFiles:
    """The part of `ports.Disk` that knows only open files."""

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

    def give_attributes(self, file: File, attributes: Attributes) -> list[str]:
        return give_attributes(file, attributes)


def regular(descriptor: int, name: str) -> int:
    """The descriptor again if it is a regular file's; closed and EISDIR or EINVAL raised otherwise."""
    try:
        refuse_other_kinds(os.fstat(descriptor).st_mode, name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def refuse_other_kinds(mode: int, name: str) -> None:
    """Raise ELOOP for a link, EISDIR for a folder, EINVAL for a pipe, socket or device."""
    if stat.S_ISREG(mode):
        return
    number = errno.ELOOP if stat.S_ISLNK(mode) else errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(number, os.strerror(number), name)


def read_up_to(descriptor: int, limit: int) -> bytes:
    """At most `limit` bytes from where the file stands."""
    pieces: list[bytes] = []
    left = limit
    while left > 0 and (piece := os.read(descriptor, min(left, read_piece_bytes_max))):
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
    """Mode, owner and extended attributes of an open file; extended ones are known on Linux only."""
    seen = os.fstat(descriptor)
    return Attributes(mode=stat.S_IMODE(seen.st_mode), uid=seen.st_uid, gid=seen.st_gid, extended=_extended(descriptor))


def give_attributes(descriptor: int, wanted: Attributes) -> list[str]:
    """Make an open file's attributes the wanted ones; the names of those that could not be given, in order.

    Owner first (it clears the set-id bits), then extended attributes with the access list, the mode last.
    """
    missing = list(_give_owner(descriptor, wanted))
    extended = dict(wanted.extended)
    mode = wanted.mode
    if missing:
        mode &= ~set_id_bits
    if "gid" in missing:
        # The group bits were meant for another group.
        extended.pop(access_list_name, None)
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
    if seen.st_gid != wanted.gid and not _done(lambda: os.fchown(descriptor, -1, wanted.gid)):
        yield "gid"
    if seen.st_uid != wanted.uid and not _done(lambda: os.fchown(descriptor, wanted.uid, -1)):
        yield "uid"


def _give_mode(descriptor: int, mode: int) -> bool:
    if sys.platform == "win32":
        return stat.S_IMODE(os.fstat(descriptor).st_mode) == mode
    return _done(lambda: os.fchmod(descriptor, mode))


def _extended(descriptor: int) -> dict[str, bytes]:
    if sys.platform != "linux":
        return {}
    try:
        return {name: os.getxattr(descriptor, name) for name in sorted(os.listxattr(descriptor))}
    except OSError as trouble:
        if trouble.errno in no_extended:
            return {}
        raise


def _give_extended(descriptor: int, wanted: Mapping[str, bytes]) -> list[str]:
    if sys.platform != "linux":
        return list(wanted)
    present = _extended(descriptor)
    for name in present:
        # A new file can have inherited an access list the old one did not have.
        if name not in wanted and not name.startswith("security."):
            _done(partial(os.removexattr, descriptor, name))
    return [
        name
        for name, value in wanted.items()
        if present.get(name) != value
        and (name in vouching_names or not _done(partial(os.setxattr, descriptor, name, value)))
    ]


def _done(act: Callable[[], None]) -> bool:
    try:
        act()
    except OSError:
        return False
    return True
