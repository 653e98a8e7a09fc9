"""The journal of one session, open for appending: the only writer of `journal.jsonl`.

Promises: what `append` returned is in the file in order; with `barrier` it is durable, and so is everything before
it [I1]. After the first failed write or sync the journal is *broken*: this process acknowledges nothing more in it
[I12], never tries the same descriptor again, and remembers the first `seq` it did not acknowledge.

`take_up` mends the tail (row J8) before the first append. A `damage` record, then the `epoch` record stand before
the first other record; they are written with it, so that opening a healthy session appends nothing.

Not thread-safe: its owner calls it from one thread at a time.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from steadyhand.core.record import Damage, Epoch, Record, Stamped
from steadyhand.journal.format import FIRST_PREV, Loaded, read_journal, write_lines
from steadyhand.ports import Clock, Disk, File, Folder

JOURNAL = "journal.jsonl"
journal_bytes_max = 1 << 30
line_bytes_max = 32 << 20
file_mode = 0o600


class JournalBroken(Exception):
    """Nothing more can be recorded here by this process. The text is one sentence for the user."""


class TooLong(Exception):
    """A record longer than `line_bytes_max`; nothing was written."""


def load(disk: Disk, folder: Folder) -> Loaded:
    """Read the journal of a session folder. OSError where it cannot be read: unreadable is never empty."""
    content = disk.read(folder, JOURNAL, journal_bytes_max + 1)
    if len(content) > journal_bytes_max:
        raise OSError(errno.EFBIG, f"the journal is larger than {journal_bytes_max} bytes")
    return read_journal(content)


def write_all(disk: Disk, file: File, content: bytes) -> None:
    """Complete short writes; no progress is an error (row J7)."""
    left = memoryview(content)
    while left:
        count = disk.write(file, bytes(left))
        if count <= 0:
            raise OSError(errno.EIO, "a write made no progress")
        left = left[count:]


class Journal:
    """Use `create` for a new session, `take_up` for one that was loaded under its owner lock."""

    def __init__(self, disk: Disk, clock: Clock, file: File, next_seq: int, last_sum: str) -> None:
        self._disk = disk
        self._clock = clock
        self._file = file
        self._next_seq = next_seq
        self._durable_before = next_seq
        self._last_sum = last_sum
        self._before_first: tuple[Record, ...] = ()
        self._needs_line_end = False
        self.broken: str | None = None
        """Why nothing more can be recorded, one sentence; None while it can."""
        self.unacknowledged: int | None = None
        """The first seq that was never acknowledged as durable, once broken."""

    @classmethod
    def create(
        cls, disk: Disk, clock: Clock, folder: Folder, first: Sequence[Record]
    ) -> tuple[Journal, tuple[Stamped, ...]]:
        """A new journal with its first records, durable with its name when this returns."""
        file = disk.create(folder, JOURNAL, file_mode)
        try:
            journal = cls(disk, clock, file, 1, FIRST_PREV)
            stamped = journal.append(first, barrier=True)
            disk.sync_folder(folder)
        except BaseException:
            disk.close(file)
            raise
        return journal, stamped

    @classmethod
    def take_up(
        cls, disk: Disk, clock: Clock, folder: Folder, loaded: Loaded, epoch: Epoch, unacknowledged: int | None
    ) -> Journal:
        """Open for appending after `load`. Cuts a torn tail and keeps it beside the journal; OSError if it cannot.

        `unacknowledged`: the first seq this very process failed to acknowledge on an earlier descriptor (row J6);
        what was read is made durable first then.
        """
        assert not loaded.newer, "a newer version's journal is not touched (row J13)"
        file = disk.open_append(folder, JOURNAL)
        try:
            torn = _mend_tail(disk, folder, file, loaded)
            if unacknowledged is not None:
                disk.sync(file)
                disk.sync_folder(folder)
        except BaseException:
            disk.close(file)
            raise
        journal = cls(disk, clock, file, loaded.next_seq, loaded.last_sum)
        journal._needs_line_end = loaded.tail in ("whole", "unended")
        damage: tuple[Record, ...] = ()
        if loaded.unnoted or unacknowledged is not None:
            damage = (Damage(loaded.unnoted, loaded.offsets, torn, unacknowledged),)
        journal._before_first = (*damage, epoch)
        return journal

    @property
    def owes_damage(self) -> bool:
        """Whether a `damage` record waits for its append; opening notes it at once."""
        return any(isinstance(record, Damage) for record in self._before_first)

    def append(self, records: Sequence[Record], barrier: bool) -> tuple[Stamped, ...]:
        """Write records in this order; with `barrier` they are durable when it returns. JournalBroken, TooLong."""
        if self.broken is not None:
            raise JournalBroken(self.broken)
        every = (*self._before_first, *records)
        content, stamped, last_sum = write_lines(every, self._next_seq, self._last_sum, self._clock.now())
        if len(content) > line_bytes_max:
            raise TooLong(f"A record of {len(content)} bytes is longer than {line_bytes_max}.")
        try:
            write_all(self._disk, self._file, (b"\n" if self._needs_line_end else b"") + content)
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
            self._durable_before = self._next_seq
        return stamped

    def close(self) -> None:
        """Let the descriptor go; nothing is written."""
        if self.broken is None:
            self.broken = "The journal is closed."
            self.unacknowledged = None
        self._disk.close(self._file)

    def _break(self, error: OSError) -> None:
        self.broken = _sentence(error)
        self.unacknowledged = self._durable_before


def _mend_tail(disk: Disk, folder: Folder, file: File, loaded: Loaded) -> int | None:
    """Row J8. Returns the bytes cut off, None if none were."""
    if loaded.tail == "whole" and loaded.tail_at < loaded.size:
        disk.truncate(file, loaded.tail_at)
    if loaded.tail != "torn":
        return None
    _keep_torn(disk, folder, loaded)
    disk.truncate(file, loaded.tail_at)
    disk.sync(file)
    return loaded.size - loaded.tail_at


def _keep_torn(disk: Disk, folder: Folder, loaded: Loaded) -> None:
    """Keep the torn bytes as `torn-<seq>.bin` before they are cut; a half-written copy of an earlier try is redone."""
    name = f"torn-{loaded.next_seq}.bin"
    torn = disk.read(folder, JOURNAL, journal_bytes_max)[loaded.tail_at : loaded.size]
    number = 1
    while (look := disk.look(folder, name)) is not None:
        if look.kind == "file" and disk.read(folder, name, len(torn) + 1) == torn:
            _make_durable(disk, folder, name)
            return
        number += 1
        name = f"torn-{loaded.next_seq}-{number}.bin"
    copy = disk.create(folder, name, file_mode)
    try:
        write_all(disk, copy, torn)
        disk.sync(copy)
    finally:
        disk.close(copy)
    disk.sync_folder(folder)


def _make_durable(disk: Disk, folder: Folder, name: str) -> None:
    """The copy of an earlier try may not have been synced before that try died."""
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
