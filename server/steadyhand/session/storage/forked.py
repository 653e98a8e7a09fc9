"""Write a fork to disk: in a folder beside, which gets the fork's name when everything in it is durable (row S3).

    sessions/.<32 hex>.fork/     being made, under its own owner lock
    sessions/<32 hex>/           the fork, whole

A crash leaves the folder beside, which no list shows; the next fork removes it if its maker has ended. Blocks.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress

from steadyhand.domain.model.copied_history import Copied, Place, bound_compaction, copied_outputs
from steadyhand.domain.records.record import Compaction, Epoch, Record
from steadyhand.journal.format import FIRST_PREV, write_line
from steadyhand.journal.journal import FILE_MODE, JOURNAL
from steadyhand.journal.ownership import OWNER_LOCK
from steadyhand.ports.disk import Disk, Folder, Lock, write_all
from steadyhand.session.context import SessionContext
from steadyhand.session.private_state import sessions_path
from steadyhand.session.storage.delete import empty_folder
from steadyhand.session.storage.lock import session_path
from steadyhand.tools.writes.blob_store import BlobStore
from steadyhand_values import pattern

FORK_BYTES_MAX = 64 << 20
"""Bytes of a fork: its journal, and the long replies that are stored beside it."""
_BESIDE = pattern(r"\.[0-9a-f]{32}\.fork")


class ForkTooLarge(Exception):
    """The history is longer than a fork may be; nothing was made."""


def write_fork(
    context: SessionContext,
    origin_id: str,
    session_id: str,
    epoch: Epoch,
    first: Sequence[Record],
    copied: Sequence[Copied],
) -> None:
    """Make the session with its first records, the copies and the origin's long replies. Durable when this returns.

    A reply that is no longer stored is passed over: the fork's record names it, and it is missing there too. Raise
    OSError, UnsafeState or ForkTooLarge."""
    lines = list(_lines(context, epoch.epoch, [*map(Copied, first), *copied]))
    contents = list(_contents(context, origin_id, copied_outputs(copied), FORK_BYTES_MAX - sum(map(len, lines))))
    disk = context.disk
    parent = context.private_state.make_sessions()
    try:
        _remove_left(disk, parent)
        beside = f".{session_id}.fork"
        disk.make_folder(parent, beside)
        with ExitStack() as cleanup:
            folder = disk.enter(parent, beside)
            cleanup.callback(disk.close, folder)
            lock = disk.lock(folder, OWNER_LOCK)
            if lock is None:
                raise OSError(errno.EBUSY, "another process cleared it away", beside)
            cleanup.callback(lock.release)
            try:
                _fill(disk, folder, f"{sessions_path(context.state_directory)}/{beside}", lines, contents)
                disk.rename(parent, beside, session_id)
            except BaseException:
                with suppress(OSError):
                    _remove(disk, parent, beside, folder)
                raise
            disk.sync_folder(parent)
    finally:
        disk.close(parent)


def try_to_write(context: SessionContext) -> None:
    """Raise OSError or UnsafeState if no fork can be written now."""
    disk, beside = context.disk, f".{context.ids.new()}.fork"
    parent = context.private_state.make_sessions()
    try:
        disk.make_folder(parent, beside)
        folder = disk.enter(parent, beside)
        try:
            _write_durably(disk, folder, JOURNAL, (b"\n",))
        finally:
            try:
                _remove(disk, parent, beside, folder)
            finally:
                disk.close(folder)
    finally:
        disk.close(parent)


def _fill(disk: Disk, folder: Folder, path: str, lines: Sequence[bytes], contents: Sequence[bytes]) -> None:
    store = BlobStore(disk, path, "outputs")
    for number, content in enumerate(contents):
        store.store(content, str(number))
    _write_durably(disk, folder, JOURNAL, lines)
    disk.sync_folder(folder)


def _write_durably(disk: Disk, folder: Folder, name: str, pieces: Iterable[bytes]) -> None:
    file = disk.create(folder, name, FILE_MODE)
    try:
        for piece in pieces:
            write_all(disk, file, piece)
        disk.sync(file)
    finally:
        disk.close(file)


def _lines(context: SessionContext, epoch: str, copied: Sequence[Copied]) -> Iterator[bytes]:
    """Yield the lines of the journal. Raise ForkTooLarge."""
    prev, at, size = FIRST_PREV, context.clock.now(), 0
    places: dict[Place, Place] = {}  # of an entry in the origin → of its copy
    for seq, one in enumerate(copied, 1):
        record = one.record
        if isinstance(record, Compaction):
            record = bound_compaction(record, places, epoch)
        line, prev = write_line(record, seq, prev, at)
        if one.of is not None:
            places[one.of] = (seq, prev)
        size += len(line)
        if size > FORK_BYTES_MAX:
            raise ForkTooLarge
        yield line


def _contents(context: SessionContext, origin_id: str, outputs: Iterable[str], left: int) -> Iterator[bytes]:
    """Yield the stored replies. `left`: the bytes that they may have together. Raise ForkTooLarge."""
    store = BlobStore(context.disk, session_path(context.state_directory, origin_id), "outputs")
    for digest in outputs:
        size = store.size(digest)
        if size is None:
            continue
        left -= size
        if left < 0:
            raise ForkTooLarge
        if (content := store.read(digest, size)) is not None:
            yield content


def _remove_left(disk: Disk, parent: Folder) -> None:
    """Remove what makers of forks left that have ended. What cannot be removed stays; no list shows it."""
    for name in disk.names(parent):
        if _BESIDE.fullmatch(name):
            with suppress(OSError):
                folder = disk.enter(parent, name)
                try:
                    if (lock := disk.lock(folder, OWNER_LOCK)) is not None:
                        _remove_locked(disk, parent, name, folder, lock)
                finally:
                    disk.close(folder)


def _remove_locked(disk: Disk, parent: Folder, name: str, folder: Folder, lock: Lock) -> None:
    try:
        _remove(disk, parent, name, folder)
    finally:
        lock.release()


def _remove(disk: Disk, parent: Folder, name: str, folder: Folder) -> None:
    empty_folder(disk, folder)
    disk.remove_folder(parent, name)
