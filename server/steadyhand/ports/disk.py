"""The disk: the one port for all product I/O (journal, checkpoints, outputs, file tools).

Names are single path components. Folders are handles that are opened once, without following links, so that a link
that is put in the way later leads nowhere.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Literal, NewType, Protocol

import attrs

from steadyhand_values import frozen

Folder = NewType("Folder", int)
"""An open folder; valid until `close`."""


File = NewType("File", int)
"""An open file; valid until `close`."""


Kind = Literal["file", "folder", "link", "other"]


@frozen
class EntryStat:
    """The stat of one name in a folder at this moment; links are not followed."""

    kind: Kind
    size: int  # bytes
    mode: int  # permission bits with set-id and sticky, e.g. 0o644
    uid: int
    gid: int
    links: int  # hard links to it
    modified_ns: int
    identity: tuple[int, int]  # (device, inode)
    target: str | None = None  # target of a link, as stored; None: no link
    changed_ns: int = attrs.field(default=0, eq=False)
    """Last change of content or attributes, which no program can set back; 0: not known."""


@frozen
class Attributes:
    """The attributes that a replacement keeps of a file, besides its bytes."""

    mode: int
    uid: int
    gid: int
    extended: Mapping[str, bytes]  # extended attributes, including ACLs (`system.posix_acl_*`)


@frozen
class ReplaceLimits:
    """What stands against replacing a file by a new one under its name; all empty: nothing (row W11)."""

    unkept: tuple[str, ...] = ()  # names of attributes that a new file of this user would not have
    is_mount: bool = False  # the name is a mount point, so no other file can get it
    is_folder_fixed: bool = False  # this user cannot replace names in the folder: append-only, or not writable
    is_append_only: bool = False  # the file's bytes cannot be changed, only appended to


class Lock(Protocol):
    """An operating-system lock. It ends with the process, and children do not inherit it [I15]."""

    @property
    def identity(self) -> tuple[int, int]:
        """(device, inode) of the locked file, for as long as the lock is held."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


class Disk(Protocol):
    """All product I/O. Every method may raise OSError; none retries.

    Durability: bytes are durable when `sync` on their file has returned, names when `sync_folder` on their folder has
    returned. After a failed `write` or `sync` a caller must conclude nothing about that file. `write` may be short.
    Readers see `rename` and `exchange` as atomic.
    """

    def open_folder(self, path: str) -> Folder:
        """Open the folder at an absolute path; links in the path are followed. For roots only."""
        ...

    def enter(self, folder: Folder, name: str) -> Folder:
        """Open a folder inside `folder`; a link raises OSError (ELOOP or ENOTDIR)."""
        ...

    def make_folder(self, folder: Folder, name: str, mode: int = 0o700) -> None:
        """Create a folder; the umask clears bits of `mode`. FileExistsError if the name is taken."""
        ...

    def make_root(self, path: str) -> None:
        """Create the folder at an absolute path and its missing parents, 0700; durable when this returns."""
        ...

    def names(self, folder: Folder) -> list[str]:
        """Return all names in the folder, sorted by code point."""
        ...

    def look(self, folder: Folder, name: str) -> EntryStat | None:
        """Return the stat of a name; None if nothing has that name."""
        ...

    def look_path(self, path: str) -> EntryStat | None:
        """Return the stat of an absolute path; only links before its last name are followed. None: nothing is there."""
        ...

    def look_open(self, handle: Folder | File) -> EntryStat:
        """Return the stat of what is open, whatever its name is now."""
        ...

    def read(self, folder: Folder, name: str, limit: int) -> bytes:
        """Return at most `limit` bytes of a regular file; ELOOP for a link, EISDIR or EINVAL for any other non-file."""
        ...

    def open_read(self, folder: Folder, name: str) -> File:
        """Open a regular file for reading in pieces; errors as for `read`."""
        ...

    def read_piece(self, file: File, size: int) -> bytes:
        """Return the next bytes, at most `size`; empty at the end."""
        ...

    def move_to(self, file: File, position: int) -> None:
        """Set where the next `read_piece` begins, in bytes from the start of the file.

        Of a file from `open_update` also where the next `write` begins.
        """
        ...

    def create(self, folder: Folder, name: str, mode: int) -> File:
        """Create an empty file and open it for appending; FileExistsError if the name is taken."""
        ...

    def open_append(self, folder: Folder, name: str) -> File:
        """Open an existing regular file for appending: each write goes to the end, whoever else writes to the file."""
        ...

    def open_update(self, folder: Folder, name: str) -> File:
        """Open an existing regular file to read it and to write over its bytes; errors as for `read`.

        The file itself changes, so each of its names has the new bytes. Neither opening nor closing changes anything.
        """
        ...

    def write(self, file: File, piece: bytes) -> int:
        """Write at the end of the file, or over the bytes at the position of a file from `open_update`.

        Return the number of bytes written, which may be short.
        """
        ...

    def truncate(self, file: File, size: int) -> None:
        """Set the size of a file, in bytes. Durable after `sync`."""
        ...

    def sync(self, file: File) -> None:
        """Make the bytes and the size of a file durable, as far as the system's own sync reaches."""
        ...

    def reread(self, file: File) -> None:
        """Let the next read of a synced file come from the disk itself, where the system can do that.

        After a failed sync the system may keep bytes in memory that the disk has not, and a later sync does not write
        them. Raises OSError.
        """
        ...

    def sync_folder(self, folder: Folder) -> None:
        """Make the names in a folder durable: created, renamed and removed ones."""
        ...

    def close(self, handle: Folder | File) -> None:
        """Close a folder or file. The handle must not be used again."""
        ...

    def attributes(self, folder: Folder, name: str) -> Attributes:
        """Return the attributes of a regular file; errors as for `read`."""
        ...

    def give_attributes(self, file: File, attributes: Attributes) -> list[str]:
        """Set the attributes of a file. Return the names of those that the system refused."""
        ...

    def rename(self, folder: Folder, old: str, new: str) -> None:
        """Replace `new` by `old` in one step."""
        ...

    def rename_new(self, folder: Folder, old: str, new: str) -> None:
        """Rename as `rename` does, but raise FileExistsError if `new` exists; one step if the system can."""
        ...

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        """Move `name` into the folder `other` as `new` in one step; a link is moved as a link.

        `exclusive`: FileExistsError if `new` exists, in the same step if the system can; else `new` is replaced.
        OSError (EXDEV) if the folders are on different file systems; then nothing has changed.
        """
        ...

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        """Swap two names in one step. False if the system cannot; then nothing has changed."""
        ...

    def make_link(self, folder: Folder, name: str, target: str) -> None:
        """Create a symbolic link with this exact target in one step; FileExistsError if the name is taken."""
        ...

    def unlink(self, folder: Folder, name: str) -> None:
        """Remove the name of a file or link; FileNotFoundError if there is none."""
        ...

    def remove_folder(self, folder: Folder, name: str) -> None:
        """Remove an empty folder; OSError (ENOTEMPTY) if it is not empty."""
        ...

    def set_mode(self, handle: Folder | File, mode: int) -> None:
        """Set the permission bits of an open folder or file. OSError if it does not belong to this user."""
        ...

    def user(self) -> int | None:
        """Return the user id that this process acts as; None if the system's files have no owners."""
        ...

    def writable(self, folder: Folder, name: str) -> bool:
        """Return whether the mode of an existing file lets this user write it (0444 does not, even for root)."""
        ...

    def replace_limits(self, folder: Folder, name: str) -> ReplaceLimits:
        """Return what stands against replacing a regular file, as far as the system tells; errors as for `read`.

        Of a name that does not exist: what stands against making a new file in its place, so only the folder counts.
        """
        ...

    def lock(self, folder: Folder, name: str) -> Lock | None:
        """Take the exclusive lock on that file without waiting; None if another process holds it.

        OSError (ENOLCK) if locks do not work on this file system.
        """
        ...

    def real_path(self, folder: Folder) -> str:
        """Return the absolute path of an open folder, for messages and records."""
        ...


WRITE_BYTES_MAX = 1024 * 1024
"""Bytes that `write_all` gives to one `Disk.write`: it copies no more at once."""


def write_all(disk: Disk, file: File, content: bytes) -> None:
    """Write all bytes; continue after a short write. Raises OSError if a write makes no progress (row J7)."""
    left = memoryview(content)
    while left:
        count = disk.write(file, bytes(left[:WRITE_BYTES_MAX]))
        if count <= 0:
            raise OSError(errno.EIO, "a write made no progress")
        left = left[count:]
