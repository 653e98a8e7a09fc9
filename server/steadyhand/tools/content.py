"""Content kept by its digest, in `checkpoints/` and `outputs/` of a session's folder (rows W8, J12).

    <session folder>/checkpoints/<64 hex>      content before a change, whole
    <session folder>/outputs/<64 hex>          a reply too large for the journal
    <session folder>/…/<attempt id>.new        one being written

A file under its digest is whole and durable: it was written and synced under the other name first, then renamed, and
the folder synced. One that is already there is read and compared before it is trusted, and written anew if it is not
what its name says. What is read back is compared too: content that is not its digest is none. 0700 and 0600 (row J10).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

import attrs

from steadyhand.core.identity import Digest, sha256
from steadyhand.ports import Disk, File, Folder, Look

output_bytes_max = 256 * 1024 * 1024
"""Of one command's output on disk; what comes after it is counted and dropped."""
piece_bytes_max = 1024 * 1024
"""Read and written in one go."""
NEW = ".new"


@attrs.frozen
class Kept:
    """What a stream left on disk."""

    digest: Digest
    bytes: int  # on disk
    whole: bool  # False: it was cut at `output_bytes_max`


def write_all(disk: Disk, file: File, content: bytes) -> None:
    """Write everything; a short write goes on, one without progress is an OSError."""
    view = memoryview(content)
    while view:
        written = disk.write(file, bytes(view[:piece_bytes_max]))
        if written <= 0:
            raise OSError(5, "The disk took no bytes and named no reason")
        view = view[written:]


def pieces(disk: Disk, folder: Folder, name: str) -> Iterator[bytes]:
    """A regular file's bytes in pieces. Raises OSError as `Disk.open_read`."""
    file = disk.open_read(folder, name)
    try:
        while piece := disk.read_piece(file, piece_bytes_max):
            yield piece
    finally:
        disk.close(file)


def digest_of(disk: Disk, folder: Folder, name: str) -> tuple[Digest, int]:
    """Digest and size of a regular file, read in pieces."""
    found = hashlib.sha256()
    size = 0
    for piece in pieces(disk, folder, name):
        found.update(piece)
        size += len(piece)
    return Digest(found.hexdigest()), size


def link_content(look: Look) -> bytes:
    """The content of a link: its target, as stored."""
    return (look.target or "").encode("utf-8", "surrogateescape")


StoreName = Literal["checkpoints", "outputs"]
STORES: tuple[StoreName, ...] = ("checkpoints", "outputs")


@attrs.frozen
class Contents:
    """One of the two folders. Created when something is first kept."""

    disk: Disk
    session_folder: str
    name: StoreName

    def keep(self, content: bytes, attempt_id: str) -> Digest:
        """Keep content durably; `attempt_id` names the file while it is written. Raises OSError."""
        digest = sha256(content)
        with self._folder() as folder:
            if self._holds(folder, digest, len(content)):
                # It may have been renamed by a run that was killed before its sync.
                self.disk.sync_folder(folder)
                return digest
            temporary = attempt_id + NEW
            file = self._create(folder, temporary)
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
        """The content of that digest; None if it is missing, larger, damaged or cannot be read."""
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            return None
        with suppress(OSError), self._existing() as folder:
            content = self.disk.read(folder, digest, bytes_max + 1)
            if len(content) <= bytes_max and sha256(content) == digest:
                return content
        return None

    def stream(self, attempt_id: str) -> Stream:
        """A file for content whose digest is not known yet."""
        return Stream(self, attempt_id + NEW)

    def sweep(self) -> None:
        """Remove what killed runs left half written. Only for the owner of the session, before it works."""
        with suppress(FileNotFoundError), self._existing() as folder:
            for name in self.disk.names(folder):
                if name.endswith(NEW):
                    self.disk.unlink(folder, name)

    @contextmanager
    def _existing(self) -> Iterator[Folder]:
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
    def _folder(self) -> Iterator[Folder]:
        session = self.disk.open_folder(self.session_folder)
        try:
            if self.disk.look(session, self.name) is None:
                with suppress(FileExistsError):
                    self.disk.make_folder(session, self.name)
            # Also for one that is there: who made it may have been killed before this.
            self.disk.sync_folder(session)
        finally:
            self.disk.close(session)
        with self._existing() as folder:
            yield folder

    def _holds(self, folder: Folder, digest: Digest, size: int) -> bool:
        seen = self.disk.look(folder, digest)
        if seen is None or seen.kind != "file" or seen.size != size:
            return False
        return digest_of(self.disk, folder, digest) == (digest, size)

    def _create(self, folder: Folder, temporary: str) -> File:
        # An attempt keeps one content at a time, so a file of this name is what its own failed try left.
        if self.disk.look(folder, temporary) is not None:
            self.disk.unlink(folder, temporary)
        return self.disk.create(folder, temporary, 0o600)


class Stream:
    """Content on its way to disk. After the first trouble it keeps nothing and says so; it never raises OSError."""

    def __init__(self, contents: Contents, temporary: str) -> None:
        self._contents = contents
        self._temporary = temporary
        self._hash = hashlib.sha256()
        self._file: File | None = None
        self.bytes = 0  # on disk
        self.trouble: str | None = None
        self._whole = True

    def write(self, piece: bytes) -> None:
        taken = piece[: output_bytes_max - self.bytes]
        self._whole = self._whole and len(taken) == len(piece)
        if not taken or self.trouble is not None:
            return
        try:
            if self._file is None:
                with self._contents._folder() as folder:
                    self._file = self._contents._create(folder, self._temporary)
            write_all(self._contents.disk, self._file, taken)
        except OSError as error:
            self.trouble = error.strerror or str(error)
            return
        self._hash.update(taken)
        self.bytes += len(taken)

    def finish(self) -> Kept | None:
        """Make it durable under its digest; None: it is not kept, and `trouble` says why."""
        disk, digest = self._contents.disk, Digest(self._hash.hexdigest())
        if self._file is None:
            return None
        try:
            try:
                if self.trouble is None:
                    disk.sync(self._file)
            finally:
                disk.close(self._file)
                self._file = None
            with self._contents._existing() as folder:
                if self.trouble is not None:
                    disk.unlink(folder, self._temporary)
                    disk.sync_folder(folder)
                    return None
                disk.rename(folder, self._temporary, digest)
                disk.sync_folder(folder)
        except OSError as error:
            self.trouble = self.trouble or error.strerror or str(error)
            return None
        return Kept(digest, self.bytes, self._whole)
