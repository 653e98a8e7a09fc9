"""The journal of one session, open for appending; the only writer of `journal.jsonl`.

When `append` returns, its records are in the file in order; with `barrier`, they and all earlier ones are durable [I1].
After the first failed write or sync the journal is *broken*: this process acknowledges nothing more in it [I12], never
tries the same descriptor again, and remembers the tail that it did not acknowledge.

Before each write, and after each barrier, lock, folder and journal must still stand under their names (`ownership`).
Otherwise the journal is *lost*, which is a way to be broken: what was written since cannot be acknowledged. The file is
open for appending only, so no write overwrites what another process wrote.

`open_existing` repairs the tail (row J8) before the first append. A `damage` record and the `epoch` record precede
the first other record. They are written together with it, so opening a healthy session appends nothing.

One thread at a time appends; `may_act` may be called from any other.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Sequence

import attrs

from steadyhand.domain.records.record import Damage, Epoch, Record, Stamped
from steadyhand.journal.format import FIRST_PREV, LoadedJournal, read_journal, write_lines
from steadyhand.journal.ownership import Ownership, SessionLock
from steadyhand.journal.torn_start import torn_starts_beside
from steadyhand.ports.disk import Disk, File, Folder, write_all
from steadyhand.ports.system import Clock
from steadyhand_values import frozen

JOURNAL = "journal.jsonl"
JOURNAL_BYTES_MAX = 1 << 30
"""A larger journal is not read."""
LINE_BYTES_MAX = 32 << 20
"""Bytes of one append, all its lines together."""
FILE_MODE = 0o600
LOST = "Nothing more starts or is recorded in this session. Check its folder, then open the session again."


class JournalBroken(Exception):
    """This process can record nothing more here. The text is one sentence for the user."""


class TooLong(Exception):
    """The lines of one append exceed `LINE_BYTES_MAX`; nothing was written."""


@frozen
class UnacknowledgedTail:
    """What a process wrote into a journal and did not acknowledge (row J6)."""

    first: int
    """The `seq` of its first record."""
    last_sum: str | None = None
    """The `sum` of the last line that was written there. A journal without this line is another one, and nothing in it
    is in doubt. None: the file is the same."""

    def is_in(self, loaded: LoadedJournal) -> bool:
        """Return whether the journal that was read has this tail."""
        if self.last_sum is None:
            return True
        return any(one.seq >= self.first and one.sum == self.last_sum for one in loaded.records)


def load(disk: Disk, folder: Folder) -> LoadedJournal:
    """Read the journal of a session's folder, and the copies of torn lines beside it (case 134).

    Raises OSError if it cannot be read: unreadable is never empty."""
    content = disk.read(folder, JOURNAL, JOURNAL_BYTES_MAX + 1)
    if len(content) > JOURNAL_BYTES_MAX:
        raise OSError(errno.EFBIG, f"the journal is larger than {JOURNAL_BYTES_MAX} bytes")
    loaded = read_journal(content)
    beside = torn_starts_beside(disk, folder, loaded.records)
    return attrs.evolve(loaded, torn_starts=(*beside, *loaded.torn_starts))


class Journal:
    """Use `create` for a new session and `open_existing` for one that was loaded under its owner lock."""

    def __init__(
        self, disk: Disk, clock: Clock, file: File, ownership: Ownership, size: int, next_seq: int, last_sum: str
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._file = file
        self._ownership = ownership
        self._size = size
        self._guard = threading.Lock()
        self._next_seq = next_seq
        self._durable_before = next_seq
        self._last_sum = last_sum
        self._before_first: tuple[Record, ...] = ()
        self._needs_line_end = False
        self.broken: str | None = None
        """Why nothing more can be recorded, and what to do, for the user; None: it can be recorded."""
        self.lost = False
        """Whether that is because lock, folder or journal do not stand any more."""
        self.unacknowledged: UnacknowledgedTail | None = None
        """In a broken journal, what was not acknowledged as durable."""

    @classmethod
    def create(
        cls, disk: Disk, clock: Clock, held: SessionLock, first: Sequence[Record]
    ) -> tuple[Journal, tuple[Stamped, ...]]:
        """Create a journal with its first records. They and the file's name are durable when this returns.

        Raises OSError (FileExistsError if there is a journal), JournalBroken, TooLong.
        """
        file = disk.create(held.folder, JOURNAL, FILE_MODE)
        try:
            journal = cls(disk, clock, file, Ownership(disk, held, JOURNAL, file), 0, 1, FIRST_PREV)
            stamped = journal.append(first, barrier=True)
            disk.sync_folder(held.folder)
        except BaseException:
            disk.close(file)
            raise
        return journal, stamped

    @classmethod
    def open_existing(
        cls,
        disk: Disk,
        clock: Clock,
        held: SessionLock,
        loaded: LoadedJournal,
        epoch: Epoch,
        unacknowledged: int | None,
    ) -> Journal:
        """Open for appending after `load`.

        Cuts a torn tail and stores it beside the journal; raises OSError if it cannot. Raises JournalBroken, before
        anything is changed, if the journal is not the one that was loaded under the lock.

        `unacknowledged`: the first `seq` that this process failed to acknowledge on an earlier descriptor (row J6).
        Then what was read is made durable first.
        """
        assert not loaded.newer, "a newer version's journal is not touched (row J13)"
        file = disk.open_append(held.folder, JOURNAL)
        try:
            ownership = Ownership(disk, held, JOURNAL, file)
            if (loss := ownership.find_loss(loaded.size)) is not None:
                raise JournalBroken(loss)
            torn = _repair_tail(disk, held.folder, file, loaded)
            if unacknowledged is not None:
                disk.sync(file)
                disk.sync_folder(held.folder)
        except BaseException:
            disk.close(file)
            raise
        size = loaded.tail_at if loaded.tail in ("torn", "whole") else loaded.size
        journal = cls(disk, clock, file, ownership, size, loaded.next_seq, loaded.last_sum)
        journal._needs_line_end = loaded.tail in ("whole", "unended")
        damage: tuple[Record, ...] = ()
        if loaded.unrecorded_damage or unacknowledged is not None:
            damage = (
                Damage(
                    count=loaded.unrecorded_damage, offsets=loaded.offsets, torn=torn, unacknowledged=unacknowledged
                ),
            )
        journal._before_first = (*damage, epoch)
        return journal

    @property
    def has_pending_damage(self) -> bool:
        """Whether a `damage` record waits for the first append; opening a session appends it at once."""
        return any(isinstance(record, Damage) for record in self._before_first)

    @property
    def end(self) -> tuple[int, str]:
        """The size of the journal in bytes, and the `sum` of its last record, as this process left it."""
        return self._size, self._last_sum

    def may_act(self) -> bool:
        """Return whether an effect may start now: this process can record here, and owns the session. Three stats."""
        with self._guard:
            return self.broken is None and self._owns()

    def append(self, records: Sequence[Record], barrier: bool) -> tuple[Stamped, ...]:
        """Write records in this order; with `barrier` they are durable when this returns.

        Raises JournalBroken, and TooLong before anything is written.
        """
        with self._guard:
            return self._append(records, barrier)

    def _append(self, records: Sequence[Record], barrier: bool) -> tuple[Stamped, ...]:
        if self.broken is not None:
            raise JournalBroken(self.broken)
        every = (*self._before_first, *records)
        content, stamped, last_sum = write_lines(every, self._next_seq, self._last_sum, self._clock.now())
        if len(content) > LINE_BYTES_MAX:
            raise TooLong(f"A record of {len(content)} bytes is longer than {LINE_BYTES_MAX}.")
        if self._needs_line_end:
            content = b"\n" + content
        self._require_ownership()
        try:
            write_all(self._disk, self._file, content)
            self._size += len(content)
            if barrier:
                self._disk.sync(self._file)
        except OSError as error:
            self._break(error)
            raise JournalBroken(_sentence(error)) from error
        self._needs_line_end = False
        self._before_first = ()
        self._next_seq += len(every)
        self._last_sum = last_sum
        if barrier:
            self._require_ownership()  # what was synced into a file that another process does not find is not kept
            self._durable_before = self._next_seq
        return stamped

    def close(self) -> None:
        """Close the descriptor without writing."""
        with self._guard:
            if self.broken is None:
                self.broken = "The journal is closed."
                self.unacknowledged = None
            self._disk.close(self._file)

    def _require_ownership(self) -> None:
        if not self._owns():
            raise JournalBroken(self.broken)

    def _owns(self) -> bool:
        """Return whether everything stands; otherwise the journal is lost.

        By the time the journal is opened again, records of another owner may have the numbers of what was written and
        not acknowledged, so the tail names its last line (row J6)."""
        loss = self._ownership.find_loss(self._size)
        if loss is not None:
            self.broken, self.lost = f"{loss} {LOST}", True
            if self._next_seq > self._durable_before:
                self.unacknowledged = UnacknowledgedTail(self._durable_before, self._last_sum)
        return loss is None

    def _break(self, error: OSError) -> None:
        self.broken = _sentence(error)
        self.unacknowledged = UnacknowledgedTail(self._durable_before)


def _repair_tail(disk: Disk, folder: Folder, file: File, loaded: LoadedJournal) -> int | None:
    """Repair the tail (row J8). Return the number of bytes cut off; None: none were."""
    if loaded.tail == "whole" and loaded.tail_at < loaded.size:
        disk.truncate(file, loaded.tail_at)
    if loaded.tail != "torn":
        return None
    _store_torn(disk, folder, loaded)
    disk.truncate(file, loaded.tail_at)
    disk.sync(file)
    return loaded.size - loaded.tail_at


def _store_torn(disk: Disk, folder: Folder, loaded: LoadedJournal) -> None:
    """Store the torn bytes as `torn-<seq>.bin` before they are cut.

    If an earlier try left an incomplete copy, that one stays and the next free name is used.
    """
    name = f"torn-{loaded.next_seq}.bin"
    torn = disk.read(folder, JOURNAL, JOURNAL_BYTES_MAX)[loaded.tail_at : loaded.size]
    number = 1
    while (look := disk.look(folder, name)) is not None:
        if look.kind == "file" and disk.read(folder, name, len(torn) + 1) == torn:
            _make_durable(disk, folder, name)
            return
        number += 1
        name = f"torn-{loaded.next_seq}-{number}.bin"
    copy = disk.create(folder, name, FILE_MODE)
    try:
        write_all(disk, copy, torn)
        disk.sync(copy)
    finally:
        disk.close(copy)
    disk.sync_folder(folder)


def _make_durable(disk: Disk, folder: Folder, name: str) -> None:
    """Sync a complete copy of an earlier try; the process may have died before its sync."""
    copy = disk.open_append(folder, name)
    try:
        disk.sync(copy)
    finally:
        disk.close(copy)
    disk.sync_folder(folder)


def _sentence(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            what = "the disk is full: make room"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            what = "it may not be written: make its folder writable"
        case _:
            what = f"the disk reports an error ({error.strerror}): check the disk"
    return f"The session's journal cannot be written, {what}, then open the session again."
