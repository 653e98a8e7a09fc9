"""Store content by its digest, in `checkpoints/` and `outputs/` of a session's folder (rows W8, J12).

    <session folder>/checkpoints/<64 hex>      the content before a change, whole
    <session folder>/outputs/<64 hex>          a reply too large for the journal
    <session folder>/…/<attempt id>.new        being written

A file that is named by its digest is whole and durable: it is written and synced under the other name, then renamed,
and the folder is synced. An existing file is read and compared before it is used, and written again if it differs from
its name. What is read back is compared too: content with another digest does not count. Modes 0700 and 0600 (row J10).
"""

from __future__ import annotations

import errno
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from steadyhand.domain.records.identity import Digest, sha256
from steadyhand.ports.disk import Disk, EntryStat, File, Folder, write_all
from steadyhand_values import frozen

OUTPUT_BYTES_MAX = 256 * 1024 * 1024
"""Of one command's output on disk; the rest is counted and dropped."""
PIECE_BYTES_MAX = 1024 * 1024
"""Read at once."""
READ_S_MAX = 60.0
"""Of reading one file in pieces; a slow disk must not hold up an opening for ever (case 169)."""
TEMPORARY_SUFFIX = ".new"


@frozen
class StoredBlob:
    """What a stream has stored."""

    digest: Digest
    bytes: int  # on disk
    is_complete: bool  # False: cut at `OUTPUT_BYTES_MAX`


def read_pieces(disk: Disk, folder: Folder, name: str, bytes_max: int) -> Iterator[bytes]:
    """Yield the bytes of a regular file in pieces; of a longer file, its first `bytes_max` + 1 bytes.

    The bound holds while it reads, so that reading ends although the file grows (case 169). Raises OSError as
    `Disk.open_read` does, and ETIMEDOUT after `READ_S_MAX`.
    """
    until, left = time.monotonic() + READ_S_MAX, bytes_max + 1
    file = disk.open_read(folder, name)
    try:
        while left > 0 and (piece := disk.read_piece(file, min(left, PIECE_BYTES_MAX))):
            yield piece
            left -= len(piece)
            if time.monotonic() > until:
                raise OSError(errno.ETIMEDOUT, f"it was not read to its end within {READ_S_MAX:g} s", name)
    finally:
        disk.close(file)


def digest_of(disk: Disk, folder: Folder, name: str, bytes_max: int) -> tuple[Digest, int]:
    """Return digest and size of a regular file, read in pieces.

    A file longer than `bytes_max` has the size `bytes_max` + 1 here, and the digest of that beginning.
    """
    found = hashlib.sha256()
    size = 0
    for piece in read_pieces(disk, folder, name, bytes_max):
        found.update(piece)
        size += len(piece)
    return Digest(found.hexdigest()), size


def link_content(look: EntryStat) -> bytes:
    """Return the content of a link: its target, as stored."""
    return (look.target or "").encode("utf-8", "surrogateescape")


StoreName = Literal["checkpoints", "outputs"]
STORES: tuple[StoreName, ...] = ("checkpoints", "outputs")


@frozen
class BlobStore:
    """One of the two folders. It is created when the first content is stored."""

    disk: Disk
    session_folder: str
    name: StoreName

    def store(self, content: bytes, attempt_id: str) -> Digest:
        """Store content durably; `attempt_id` names the file while it is written. Raises OSError."""
        digest = sha256(content)
        with self._open_or_create() as folder:
            if self._has_blob(folder, digest, len(content)):
                # A process may have renamed it and been killed before the sync.
                self.disk.sync_folder(folder)
                return digest
            temporary = attempt_id + TEMPORARY_SUFFIX
            file = self._create_temporary(folder, temporary)
            try:
                write_all(self.disk, file, content)
                self.disk.sync(file)
            except OSError:
                self.disk.close(file)
                with suppress(OSError):
                    self.disk.unlink(folder, temporary)
                raise
            self.disk.close(file)
            self.disk.rename(folder, temporary, digest)
            self.disk.sync_folder(folder)
        return digest

    def read(self, digest: str, bytes_max: int) -> bytes | None:
        """Return the content with that digest; None if it is missing, larger, damaged or unreadable."""
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            return None
        with suppress(OSError), self._open_existing() as folder:
            content = self.disk.read(folder, digest, bytes_max + 1)
            if len(content) <= bytes_max and sha256(content) == digest:
                return content
        return None

    def size(self, digest: str) -> int | None:
        """Return how many bytes the content with that digest has; None: none is stored."""
        with suppress(OSError), self._open_existing() as folder:
            look = self.disk.look(folder, digest)
            return look.size if look is not None and look.kind == "file" else None
        return None

    def names(self) -> frozenset[str]:
        """Return the digests that are stored; none if the folder cannot be read."""
        with suppress(OSError), self._open_existing() as folder:
            return frozenset(name for name in self.disk.names(folder) if not name.endswith(TEMPORARY_SUFFIX))
        return frozenset()

    def stream(self, attempt_id: str) -> BlobStream:
        """Return a stream for content whose digest is not known yet."""
        return BlobStream(self, attempt_id + TEMPORARY_SUFFIX)

    def remove_temporaries(self) -> None:
        """Remove files that killed processes left half written. Only the owner of the session may call it, before it
        works.
        """
        with suppress(FileNotFoundError), self._open_existing() as folder:
            for name in self.disk.names(folder):
                if name.endswith(TEMPORARY_SUFFIX):
                    self.disk.unlink(folder, name)

    @contextmanager
    def _open_existing(self) -> Iterator[Folder]:
        session = self.disk.open_folder(self.session_folder)
        try:
            folder = self.disk.enter(session, self.name)
        finally:
            self.disk.close(session)
        try:
            yield folder
        finally:
            self.disk.close(folder)

    @contextmanager
    def _open_or_create(self) -> Iterator[Folder]:
        session = self.disk.open_folder(self.session_folder)
        try:
            if self.disk.look(session, self.name) is None:
                with suppress(FileExistsError):
                    self.disk.make_folder(session, self.name)
            # Also for an existing folder: its creator may have been killed before the sync.
            self.disk.sync_folder(session)
        finally:
            self.disk.close(session)
        with self._open_existing() as folder:
            yield folder

    def _has_blob(self, folder: Folder, digest: Digest, size: int) -> bool:
        seen = self.disk.look(folder, digest)
        if seen is None or seen.kind != "file" or seen.size != size:
            return False
        return digest_of(self.disk, folder, digest, size) == (digest, size)

    def _create_temporary(self, folder: Folder, temporary: str) -> File:
        # An attempt stores one content at a time, so a file with this name is from its own failed try.
        if self.disk.look(folder, temporary) is not None:
            self.disk.unlink(folder, temporary)
        return self.disk.create(folder, temporary, 0o600)


class BlobStream:
    """Content that is being written to disk. After a failure it writes nothing more; it never raises OSError."""

    def __init__(self, contents: BlobStore, temporary: str) -> None:
        self._store = contents
        self._temporary = temporary
        self._hash = hashlib.sha256()
        self._file: File | None = None
        self.bytes = 0  # on disk
        self.failure: str | None = None
        self._is_complete = True

    def write(self, piece: bytes) -> None:
        """Write a piece. What is above `OUTPUT_BYTES_MAX` is dropped."""
        taken = piece[: OUTPUT_BYTES_MAX - self.bytes]
        self._is_complete = self._is_complete and len(taken) == len(piece)
        if not taken or self.failure is not None:
            return
        try:
            if self._file is None:
                with self._store._open_or_create() as folder:
                    self._file = self._store._create_temporary(folder, self._temporary)
            write_all(self._store.disk, self._file, taken)
        except OSError as error:
            self.failure = error.strerror or str(error)
            return
        self._hash.update(taken)
        self.bytes += len(taken)

    def finish(self) -> StoredBlob | None:
        """Make the content durable under its digest; None: it is not stored. `failure` is then the reason, None for no
        content.
        """
        disk, digest = self._store.disk, Digest(self._hash.hexdigest())
        if self._file is None:
            return None
        try:
            try:
                if self.failure is None:
                    disk.sync(self._file)
            finally:
                disk.close(self._file)
                self._file = None
            with self._store._open_existing() as folder:
                if self.failure is not None:
                    disk.unlink(folder, self._temporary)
                    disk.sync_folder(folder)
                    return None
                disk.rename(folder, self._temporary, digest)
                disk.sync_folder(folder)
        except OSError as error:
            self.failure = self.failure or error.strerror or str(error)
            return None
        return StoredBlob(digest, self.bytes, self._is_complete)
