"""The one writer of a journal: a record that it acknowledges is durable, and when it cannot write, it says so and
stops.
"""

from __future__ import annotations

import errno
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import SystemDisk
from steadyhand.domain.records.record import Damage, Epoch, ModeSet, Record
from steadyhand.journal import journal as journal_log
from steadyhand.journal.format import LoadedJournal, read_journal, write_line
from steadyhand.journal.journal import JOURNAL, Journal, JournalBroken, TooLong, UnacknowledgedTail, load
from steadyhand.journal.ownership import OWNER_LOCK, SessionLock
from steadyhand.ports.disk import Disk, File, Folder
from tests.support.fakes import FakeClock
from tests.support.faults import CountingDisk, FaultDisk, MatchingFault, Operation, carries, disk_errors
from tests.support.journals import (
    begun,
    damaged_at,
    ident,
    intends,
    journal,
    ledger_of,
    lines,
    prompt,
    proposes,
    ran,
    starts,
    verdicts,
)

RECORDS_WRITTEN = [*begun(), prompt("turn"), proposes("turn", "one"), *ran("one")]
WHOLE = journal(RECORDS_WRITTEN)
EPOCH = Epoch(epoch=ident("epoch 2"), pid=1, host="host")


@attrs.define
class SessionFolder:
    """A session folder on a real disk, and writers in it."""

    path: Path
    disk: Disk
    held: SessionLock

    @property
    def folder(self) -> Folder:
        return self.held.folder

    def put(self, content: bytes, name: str = JOURNAL) -> None:
        (self.path / name).write_bytes(content)

    def bytes(self, name: str = JOURNAL) -> bytes:
        return (self.path / name).read_bytes()

    def names(self) -> list[str]:
        """The names in the folder, without the lock."""
        return sorted(entry.name for entry in self.path.iterdir() if entry.name != OWNER_LOCK)

    def load_journal(self) -> LoadedJournal:
        return load(self.disk, self.folder)

    def open_existing(self, disk: Disk | None = None, unacknowledged: int | None = None) -> Journal:
        return Journal.open_existing(
            disk or self.disk, FakeClock(), self.held, self.load_journal(), EPOCH, unacknowledged
        )

    def create_journal(self, disk: Disk | None = None) -> Journal:
        return Journal.create(disk or self.disk, FakeClock(), self.held, begun())[0]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SessionFolder]:
    disk = SystemDisk()
    folder = disk.open_folder(str(tmp_path))
    lock = disk.lock(folder, OWNER_LOCK)
    assert lock is not None
    yield SessionFolder(tmp_path, disk, SessionLock(folder, str(tmp_path), lock))
    lock.release()
    disk.close(folder)


def records(session: SessionFolder) -> list[Record]:
    found = [stamped.record for stamped in read_journal(session.bytes()).records]
    assert all(not isinstance(record, type(None)) for record in found)
    return found  # type: ignore[return-value]  # every kind here is known


# A healthy disk.


def test_journal_create_makes_content_and_name_durable(session: SessionFolder) -> None:
    """J4, J10: first its bytes, then its name, with mode 0600."""
    disk = CountingDisk(session.disk)
    session.create_journal(disk).close()
    assert [operation.verb for operation in disk.operations] == ["create", "write", "sync", "sync_folder"]
    assert records(session) == begun()
    assert (session.path / JOURNAL).stat().st_mode & 0o777 == 0o600


def test_journal_create_over_an_existing_journal_is_refused(session: SessionFolder) -> None:
    """J9: an existing journal is not treated as an empty one."""
    session.put(WHOLE)
    with pytest.raises(FileExistsError):
        session.create_journal()
    assert session.bytes() == WHOLE


def test_append_returns_the_records_as_written(session: SessionFolder) -> None:
    """J1, J2: in order, as they will be read back, with their numbers and joints."""
    log = session.create_journal()
    appended = [*log.append([prompt("turn")], barrier=False), *log.append([proposes("turn", "one")], barrier=True)]
    assert list(read_journal(session.bytes()).records)[2:] == appended
    assert [stamped.seq for stamped in appended] == [3, 4]
    log.close()


def test_append_syncs_only_with_a_barrier(session: SessionFolder) -> None:
    """J4: reads wait for no sync. A barrier is one write and one sync [I1]."""
    disk = CountingDisk(session.disk)
    log = session.create_journal(disk)
    before = len(disk.operations)
    log.append([prompt("turn")], barrier=False)
    log.append([starts("one"), ModeSet(mode="ask")], barrier=True)
    assert [operation.verb for operation in disk.operations[before:]] == ["write", "write", "sync"]
    log.close()


def test_take_up_of_a_healthy_journal_writes_nothing(session: SessionFolder) -> None:
    """C4, C8: nothing is written, synced or cut until there is something to record [I4]."""
    session.put(WHOLE)
    disk = CountingDisk(session.disk)
    log = session.open_existing(disk)
    assert not log.has_pending_damage
    log.close()
    assert (disk.operations, session.bytes(), session.names()) == ([], WHOLE, [JOURNAL])


def test_first_append_after_take_up_writes_the_epoch_first(session: SessionFolder) -> None:
    """S1: once, in the same append, and the existing bytes are not changed."""
    session.put(WHOLE)
    log = session.open_existing()
    log.append([ModeSet(mode="plan")], barrier=True)
    log.append([ModeSet(mode="ask")], barrier=True)
    log.close()
    assert session.bytes().startswith(WHOLE)
    assert records(session)[len(RECORDS_WRITTEN) :] == [EPOCH, ModeSet(mode="plan"), ModeSet(mode="ask")]
    assert session.load_journal().damaged == 0


def test_append_of_a_too_long_record_is_refused_whole(session: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reaching a bound breaks nothing and writes nothing [I13]."""
    log = session.create_journal()
    before = session.bytes()
    monkeypatch.setattr(journal_log, "LINE_BYTES_MAX", 1000)
    with pytest.raises(TooLong):
        log.append([prompt("turn", "x" * 1000)], barrier=True)
    assert (session.bytes(), log.broken) == (before, None)
    log.append([ModeSet(mode="plan")], barrier=True)
    assert records(session)[-1] == ModeSet(mode="plan")
    log.close()


def test_load_of_a_too_long_journal_is_an_error(session: SessionFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """J9: an unreadable journal is an error and never empty [I13]."""
    session.put(WHOLE)
    monkeypatch.setattr(journal_log, "JOURNAL_BYTES_MAX", len(WHOLE) - 1)
    with pytest.raises(OSError, match="larger"):
        session.load_journal()
    monkeypatch.setattr(journal_log, "JOURNAL_BYTES_MAX", len(WHOLE))
    assert len(session.load_journal().records) == len(RECORDS_WRITTEN)


def test_load_of_a_missing_journal_is_an_error(session: SessionFolder) -> None:
    """J9: a journal that cannot be read is an error."""
    with pytest.raises(FileNotFoundError):
        session.load_journal()


def test_append_to_a_closed_journal_is_refused(session: SessionFolder) -> None:
    """S1: a late writer is refused."""
    log = session.create_journal()
    log.close()
    with pytest.raises(JournalBroken):
        log.append([ModeSet(mode="plan")], barrier=True)


# Failing disks.


class SlowDisk(MatchingFault):
    """Takes at most seven bytes at a time."""

    def write(self, file: File, piece: bytes) -> int:
        return super().write(file, piece[:7])


def test_append_completes_short_writes(session: SessionFolder) -> None:
    """J7: however small the pieces that the disk takes, the record is whole."""
    log = session.create_journal(SlowDisk(session.disk, lambda operation: False, errno.EIO))
    log.append([prompt("turn")], barrier=True)
    assert records(session) == [*begun(), prompt("turn")]
    log.close()


class StuckDisk(MatchingFault):
    """Takes no byte and reports no error."""

    def write(self, file: File, piece: bytes) -> int:
        return 0 if b'"plan"' in piece else super().write(file, piece)


def test_append_without_progress_breaks_the_journal(session: SessionFolder) -> None:
    """J7: a disk that takes nothing is not asked for ever."""
    log = session.create_journal(StuckDisk(session.disk, lambda operation: False, errno.EIO))
    with pytest.raises(JournalBroken):
        log.append([ModeSet(mode="plan")], barrier=True)
    assert log.broken is not None


def is_sync(operation: Operation) -> bool:
    return operation.verb == "sync" and operation.number > 4


FAULTS: list[tuple[str, Callable[[Operation], bool]]] = [("write", carries("started")), ("sync", is_sync)]


@pytest.mark.parametrize("number", disk_errors)
@pytest.mark.parametrize(("verb", "matches"), FAULTS, ids=["write", "sync"])
def test_append_first_failure_breaks_the_journal_for_good(
    session: SessionFolder, verb: str, matches: Callable[[Operation], bool], number: int
) -> None:
    """J6, J7: one clear message, the first seq not acknowledged, and no second attempt on the descriptor [I12]."""
    disk = MatchingFault(session.disk, matches, number)
    counting = CountingDisk(disk)
    log = session.create_journal(counting)
    log.append([prompt("turn")], barrier=False)
    with pytest.raises(JournalBroken) as raised:
        log.append([starts("one")], barrier=True)
    assert log.unacknowledged == UnacknowledgedTail(3), "the append without a barrier never became durable"
    assert log.broken == str(raised.value)
    assert log.broken.endswith("then open the session again.")
    before = len(counting.operations)
    for barrier in (False, True):
        with pytest.raises(JournalBroken):
            log.append([ModeSet(mode="plan")], barrier=barrier)
    assert len(counting.operations) == before
    assert log.unacknowledged == UnacknowledgedTail(3)
    log.close()


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "disk is full"), (errno.EROFS, "writable"),
     (errno.EACCES, "writable"), (errno.EIO, "check the disk")],
)  # fmt: skip
def test_journal_broken_message_says_what_to_do(session: SessionFolder, number: int, says: str) -> None:
    """J7, case 23: full, read-only, forbidden and broken each have their own sentence."""
    log = session.create_journal(MatchingFault(session.disk, carries("mode"), number))
    with pytest.raises(JournalBroken, match=says):
        log.append([ModeSet(mode="plan")], barrier=True)
    log.close()


def test_append_on_a_full_disk_keeps_every_acknowledged_record(session: SessionFolder) -> None:
    """J7: after half a record there is no room. That record is torn, and all before it are present."""
    log = session.create_journal(MatchingFault(session.disk, carries("started"), "short", then=errno.ENOSPC))
    log.append([intends("one")], barrier=True)
    with pytest.raises(JournalBroken, match="full"):
        log.append([starts("one")], barrier=True)
    log.close()
    loaded = session.load_journal()
    assert (loaded.tail, [stamped.record for stamped in loaded.records]) == ("torn", [*begun(), intends("one")])


def test_journal_create_that_fails_raises_and_closes_its_descriptor(session: SessionFolder) -> None:
    """J4: at whatever operation it fails, nobody learns of a new journal, and the descriptor is closed."""
    for at in range(1, 5):
        disk = FaultDisk(session.disk, at, errno.EIO)
        closed: list[int] = []
        closing_disk = ClosingDisk(disk, closed)
        with pytest.raises((OSError, JournalBroken)):
            Journal.create(closing_disk, FakeClock(), session.held, begun())
        assert len(closed) == (0 if at == 1 else 1)
        (session.path / JOURNAL).unlink(missing_ok=True)


class ClosingDisk(MatchingFault):
    """Lists the handles that are closed."""

    def __init__(self, inner: Disk, closed: list[int]) -> None:
        super().__init__(inner, lambda operation: False, errno.EIO)
        self.closed = closed

    def close(self, handle: Folder | File) -> None:
        self.closed.append(handle)
        super().close(handle)


# Opening a journal with a bad end.


@pytest.mark.parametrize("torn", [b"{", b'{"sum":"0123', b"\0", b"\0" * 70_000, b"half\0\0"])
def test_take_up_copies_a_torn_tail_and_cuts_it(session: SessionFolder, torn: bytes) -> None:
    """J8: the torn bytes are kept beside the journal and never joined to the next record. They are no damage."""
    session.put(WHOLE + torn)
    log = session.open_existing()
    assert not log.has_pending_damage
    name = f"torn-{len(RECORDS_WRITTEN) + 1}.bin"
    assert (session.bytes(), session.bytes(name), session.names()) == (WHOLE, torn, [JOURNAL, name])
    log.append([ModeSet(mode="plan")], barrier=True)
    log.close()
    assert session.bytes().startswith(WHOLE)
    assert (records(session)[len(RECORDS_WRITTEN) :], session.load_journal().damaged) == (
        [EPOCH, ModeSet(mode="plan")],
        0,
    )


def test_take_up_syncs_the_torn_copy_before_the_cut(session: SessionFolder) -> None:
    """J8: the copy is written and synced with its name. Then the journal is cut and synced [I5]."""
    session.put(WHOLE + b"torn")
    disk = CountingDisk(session.disk)
    session.open_existing(disk).close()
    assert [operation.verb for operation in disk.operations] == [
        "create", "write", "sync", "sync_folder", "truncate", "sync",
    ]  # fmt: skip


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("error", [errno.EIO, "short"])
def test_take_up_failing_at_any_operation_is_finished_next_time(session: SessionFolder, at: int, error: int) -> None:
    """J8: at each operation it may fail or the process may die. The next opening finishes it [I5]."""
    torn = b'{"sum":"01234567","prev":"half a record"'
    session.put(WHOLE + torn)
    with pytest.raises(OSError, match=r".") if error == errno.EIO else NO_ERROR:
        session.open_existing(FaultDisk(session.disk, at, error)).close()
    log = session.open_existing()
    log.append([ModeSet(mode="plan")], barrier=True)
    log.close()
    assert records(session) == [*RECORDS_WRITTEN, EPOCH, ModeSet(mode="plan")]
    assert torn in [session.bytes(name) for name in session.names()]


class _NoError:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


NO_ERROR = _NoError()


def test_take_up_syncs_the_torn_copy_of_an_earlier_attempt(session: SessionFolder) -> None:
    """J8: that copy may not have been synced. It is synced before the cut [I5]."""
    session.put(WHOLE + b"torn")
    session.put(b"torn", f"torn-{len(RECORDS_WRITTEN) + 1}.bin")
    disk = CountingDisk(session.disk)
    session.open_existing(disk).close()
    assert [operation.verb for operation in disk.operations] == ["sync", "sync_folder", "truncate", "sync"]
    assert len(session.names()) == 2


def test_take_up_never_overwrites_another_torn_copy(session: SessionFolder) -> None:
    """J8: half a copy of an earlier attempt, or an older copy, stays. The new copy gets another name."""
    name = f"torn-{len(RECORDS_WRITTEN) + 1}"
    session.put(b"to", f"{name}.bin")
    session.put(WHOLE + b"torn")
    session.open_existing().close()
    assert (session.bytes(f"{name}.bin"), session.bytes(f"{name}-2.bin")) == (b"to", b"torn")


@pytest.mark.parametrize("zeros", [b"", b"\0", b"\0" * 70_000])
def test_take_up_completes_a_record_without_its_line_end(session: SessionFolder, zeros: bytes) -> None:
    """J8: the record counts, zeros are cut off, and the next record is not joined to it."""
    session.put(WHOLE[:-1] + zeros)
    log = session.open_existing()
    assert session.bytes() == WHOLE[:-1]
    log.append([ModeSet(mode="plan")], barrier=True)
    log.close()
    assert session.bytes().startswith(WHOLE)
    assert (records(session), session.names()) == ([*RECORDS_WRITTEN, EPOCH, ModeSet(mode="plan")], [JOURNAL])


@pytest.mark.parametrize("end", [b"x", b"\x8a", b"\r", b'x{"sum":"half'])
def test_take_up_never_cuts_a_damaged_line_end(session: SessionFolder, end: bytes) -> None:
    """J8, J9: no byte of it is lost, and the damage is noted [I3]."""
    session.put(WHOLE[:-1] + end)
    log = session.open_existing()
    assert log.has_pending_damage
    log.append([ModeSet(mode="plan")], barrier=True)
    log.close()
    assert session.bytes().startswith(WHOLE[:-1] + end + b"\n")
    start = len(WHOLE) - len(lines(WHOLE)[-1])
    assert records(session)[len(RECORDS_WRITTEN) - 1 :] == [
        Damage(count=1, offsets=(start,)),
        EPOCH,
        ModeSet(mode="plan"),
    ]
    assert (session.load_journal().damaged, session.load_journal().unrecorded_damage) == (1, 0)


@pytest.mark.parametrize("half", range(1, 40))
def test_take_up_after_a_torn_append_of_the_line_end_continues(session: SessionFolder, half: int) -> None:
    """J8: a crash in the append that adds the line end leaves the record, and the next opening continues [I5]."""
    session.put(WHOLE[:-1])
    log = session.open_existing()
    log.append([ModeSet(mode="plan")], barrier=True)
    log.close()
    session.put(session.bytes()[: len(WHOLE) - 1 + half])
    again = session.open_existing()
    again.append([ModeSet(mode="ask")], barrier=True)
    again.close()
    assert [record for record in records(session) if not isinstance(record, Epoch)] == [
        *(record for record in RECORDS_WRITTEN if not isinstance(record, Epoch)),
        ModeSet(mode="ask"),
    ]
    assert session.load_journal().damaged == 0


def test_append_after_damage_notes_it_before_the_epoch(session: SessionFolder) -> None:
    """J9: damage, then epoch, then the first other record, in one append. A second opening notes nothing."""
    session.put(damaged_at(WHOLE, 100, 0x21))
    log = session.open_existing()
    before = log.has_pending_damage
    log.append([ModeSet(mode="plan")], barrier=True)
    assert (before, log.has_pending_damage) == (True, False)
    log.close()
    assert records(session)[-3:] == [Damage(count=1, offsets=(0,)), EPOCH, ModeSet(mode="plan")]
    again = session.open_existing()
    assert not again.has_pending_damage
    again.close()


def test_append_of_nothing_after_damage_notes_the_damage(session: SessionFolder) -> None:
    """J9: an opening that only notes damage appends the note and its epoch."""
    session.put(damaged_at(WHOLE, 100, 0x21))
    log = session.open_existing()
    log.append([], barrier=True)
    log.close()
    assert records(session)[-2:] == [Damage(count=1, offsets=(0,)), EPOCH]


def test_append_after_damage_and_a_torn_tail_notes_both(session: SessionFolder) -> None:
    """J8, J9: the note says how many bytes were cut off."""
    session.put(damaged_at(WHOLE, 100, 0x21) + b"torn")
    log = session.open_existing()
    log.append([], barrier=True)
    log.close()
    assert records(session)[-2:] == [Damage(count=1, offsets=(0,), torn=4), EPOCH]


def test_take_up_notes_damage_again_after_a_failed_note(session: SessionFolder) -> None:
    """J6, J9: the next opening notes the same damage again [I5]."""
    session.put(damaged_at(WHOLE, 100, 0x21))
    log = session.open_existing(MatchingFault(session.disk, carries("damage"), errno.ENOSPC))
    with pytest.raises(JournalBroken):
        log.append([ModeSet(mode="plan")], barrier=True)
    log.close()
    assert session.open_existing().has_pending_damage


def test_take_up_of_a_newer_journal_touches_nothing(session: SessionFolder) -> None:
    """J13: no byte is changed, with a torn tail or without."""
    content = WHOLE + write_newer() + b"torn"
    session.put(content)
    with pytest.raises(AssertionError):
        session.open_existing()
    assert (session.bytes(), session.names()) == (content, [JOURNAL])


def write_newer() -> bytes:
    loaded = read_journal(WHOLE)
    members = {"prev": loaded.last_sum, "v": 2, "seq": loaded.next_seq, "at": "", "kind": "later"}
    body = json.dumps(members, separators=(",", ":")).encode()[1:]
    return b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n"


def test_take_up_in_a_read_only_folder_is_an_error(session: SessionFolder) -> None:
    """C4: the caller shows the session read-only. The journal stays unchanged."""
    session.put(WHOLE + b"torn")
    with pytest.raises(OSError, match=r"."):
        session.open_existing(FaultDisk(session.disk, 1, errno.EROFS, for_good=True))
    assert session.bytes() == WHOLE + b"torn"


# An unacknowledged tail (J6).


def break_journal(session: SessionFolder, matches: Callable[[Operation], bool]) -> int:
    """Write a session whose journal breaks at its result, or where `matches` says. Return the first seq not
    acknowledged.
    """
    log = session.create_journal(MatchingFault(session.disk, matches, errno.EIO))
    try:
        log.append([prompt("turn"), proposes("turn", "one"), *ran("one")[:2]], barrier=True)
        log.append(ran("one")[2:3], barrier=True)
        log.append(ran("one")[3:], barrier=True)
    except JournalBroken:
        pass
    log.close()
    assert log.unacknowledged is not None
    return log.unacknowledged.first


def nth_sync(number: int) -> Callable[[Operation], bool]:
    seen: list[int] = []

    def matches(operation: Operation) -> bool:
        if operation.verb == "sync":
            seen.append(operation.number)
        return operation.verb == "sync" and len(seen) == number

    return matches


def test_unacknowledged_start_counts_and_unacknowledged_result_does_not(session: SessionFolder) -> None:
    """J5, J6: both were written and never acknowledged. The next reader ignores the result [I12]."""
    first = break_journal(session, nth_sync(4))
    assert first == 8
    loaded = session.load_journal()
    assert len(loaded.records) == 9, "the result and its reply can be read back"
    log = session.open_existing(unacknowledged=first)
    assert log.has_pending_damage
    log.append([ModeSet(mode="plan")], barrier=True)
    log.close()
    assert records(session)[-3:] == [
        Damage(count=0, offsets=(), torn=None, unacknowledged=8),
        EPOCH,
        ModeSet(mode="plan"),
    ]
    assert verdicts(ledger_of(session.bytes()))[ident("one")] == "unknown_after_restart"


def test_unacknowledged_start_is_read_back_as_a_start(session: SessionFolder) -> None:
    """J6: it may be on the disk although its sync failed. Read back, it is a start [I3]."""
    first = break_journal(session, nth_sync(3))
    log = session.open_existing(unacknowledged=first)
    log.append([], barrier=True)
    log.close()
    assert (first, records(session)[-2:]) == (7, [Damage(count=0, offsets=(), torn=None, unacknowledged=7), EPOCH])
    assert verdicts(ledger_of(session.bytes()))[ident("one")] == "unknown_after_restart"


def test_take_up_syncs_an_unacknowledged_tail_before_writing(session: SessionFolder) -> None:
    """J6: on the new descriptor, before anything is written. If that fails, the journal is not opened [I12]."""
    first = break_journal(session, nth_sync(4))
    disk = CountingDisk(session.disk)
    session.open_existing(disk, first).close()
    assert [operation.verb for operation in disk.operations] == ["sync", "sync_folder"]
    before = session.bytes()
    for at in (1, 2):
        with pytest.raises(OSError, match=r"."):
            session.open_existing(FaultDisk(session.disk, at, errno.EIO), first)
    assert session.bytes() == before


def test_append_joins_every_line_to_the_one_before(session: SessionFolder) -> None:
    """J2: over create, take up, a failure and another take up."""
    first = break_journal(session, nth_sync(4))
    for unacknowledged in (first, None):
        log = session.open_existing(unacknowledged=unacknowledged)
        log.append([ModeSet(mode="plan")], barrier=True)
        log.close()
    loaded = session.load_journal()
    assert (loaded.damaged, loaded.breaks) == (0, frozenset())
    assert [stamped.seq for stamped in loaded.records] == list(range(1, len(loaded.records) + 1))
    line, check = write_line(ModeSet(mode="plan"), loaded.next_seq - 1, loaded.records[-2].sum, loaded.records[-1].at)
    assert (lines(session.bytes())[-1], loaded.last_sum) == (line, check)
