"""The one writer of a journal: what it acknowledges is there, and where it cannot, it says so and stops."""

from __future__ import annotations

import errno
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk import SystemDisk
from steadyhand.core.record import Damage, Epoch, ModeSet, Record
from steadyhand.journal import log as journal_log
from steadyhand.journal.format import Loaded, read_journal, write_line
from steadyhand.journal.log import JOURNAL, Journal, JournalBroken, TooLong, load
from steadyhand.ports import Disk, File, Folder
from tests.support.disks import CountingDisk, FaultDisk, MatchingFault, Operation, carries, disk_errors
from tests.support.fakes import FakeClock
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

STORY = [*begun(), prompt("turn"), proposes("turn", "one"), *ran("one")]
WHOLE = journal(STORY)
EPOCH = Epoch(ident("epoch 2"), 1, "host")


@attrs.define
class Place:
    """A session folder on a real disk, and writers in it."""

    path: Path
    disk: Disk
    folder: Folder

    def put(self, content: bytes, name: str = JOURNAL) -> None:
        (self.path / name).write_bytes(content)

    def bytes(self, name: str = JOURNAL) -> bytes:
        return (self.path / name).read_bytes()

    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.path.iterdir())

    def loaded(self) -> Loaded:
        return load(self.disk, self.folder)

    def taken_up(self, disk: Disk | None = None, unacknowledged: int | None = None) -> Journal:
        return Journal.take_up(disk or self.disk, FakeClock(), self.folder, self.loaded(), EPOCH, unacknowledged)

    def created(self, disk: Disk | None = None) -> Journal:
        return Journal.create(disk or self.disk, FakeClock(), self.folder, begun())[0]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    disk = SystemDisk()
    folder = disk.open_folder(str(tmp_path))
    yield Place(tmp_path, disk, folder)
    disk.close(folder)


def records(place: Place) -> list[Record]:
    found = [stamped.record for stamped in read_journal(place.bytes()).records]
    assert all(not isinstance(record, type(None)) for record in found)
    return found  # type: ignore[return-value]  # every kind here is known


# A healthy disk.


def test_a_new_journal_is_durable_with_its_name(place: Place) -> None:
    """J4, J10: its bytes, then its name; 0600."""
    disk = CountingDisk(place.disk)
    place.created(disk).close()
    assert [operation.verb for operation in disk.operations] == ["create", "write", "sync", "sync_folder"]
    assert records(place) == begun()
    assert (place.path / JOURNAL).stat().st_mode & 0o777 == 0o600


def test_a_journal_is_never_created_over_another(place: Place) -> None:
    """J9: an existing journal is not taken for an empty one."""
    place.put(WHOLE)
    with pytest.raises(FileExistsError):
        place.created()
    assert place.bytes() == WHOLE


def test_what_append_returns_is_in_the_file(place: Place) -> None:
    """J1, J2: in order, as it will be read back, numbered and joined."""
    log = place.created()
    appended = [*log.append([prompt("turn")], barrier=False), *log.append([proposes("turn", "one")], barrier=True)]
    assert list(read_journal(place.bytes()).records)[2:] == appended
    assert [stamped.seq for stamped in appended] == [3, 4]
    log.close()


def test_a_barrier_syncs_and_other_appends_do_not(place: Place) -> None:
    """J4: reads wait for no sync; a barrier is one write and one sync [I1]."""
    disk = CountingDisk(place.disk)
    log = place.created(disk)
    before = len(disk.operations)
    log.append([prompt("turn")], barrier=False)
    log.append([starts("one"), ModeSet("ask")], barrier=True)
    assert [operation.verb for operation in disk.operations[before:]] == ["write", "write", "sync"]
    log.close()


def test_opening_a_healthy_session_appends_nothing(place: Place) -> None:
    """C4, C8: nothing is written, synced or cut until there is something to record [I4]."""
    place.put(WHOLE)
    disk = CountingDisk(place.disk)
    log = place.taken_up(disk)
    assert not log.owes_damage
    log.close()
    assert (disk.operations, place.bytes(), place.names()) == ([], WHOLE, [JOURNAL])


def test_an_epoch_stands_before_its_first_record(place: Place) -> None:
    """S1: once, in the same append, and what was there before is not changed."""
    place.put(WHOLE)
    log = place.taken_up()
    log.append([ModeSet("plan")], barrier=True)
    log.append([ModeSet("ask")], barrier=True)
    log.close()
    assert place.bytes().startswith(WHOLE)
    assert records(place)[len(STORY) :] == [EPOCH, ModeSet("plan"), ModeSet("ask")]
    assert place.loaded().damaged == 0


def test_a_record_that_is_too_long_is_refused_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that is reached breaks nothing and writes nothing [I13]."""
    log = place.created()
    before = place.bytes()
    monkeypatch.setattr(journal_log, "line_bytes_max", 1000)
    with pytest.raises(TooLong):
        log.append([prompt("turn", "x" * 1000)], barrier=True)
    assert (place.bytes(), log.broken) == (before, None)
    log.append([ModeSet("plan")], barrier=True)
    assert records(place)[-1] == ModeSet("plan")
    log.close()


def test_a_journal_that_is_too_long_is_not_read_in_part(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """J9: unreadable is an error and never empty [I13]."""
    place.put(WHOLE)
    monkeypatch.setattr(journal_log, "journal_bytes_max", len(WHOLE) - 1)
    with pytest.raises(OSError, match="larger"):
        place.loaded()
    monkeypatch.setattr(journal_log, "journal_bytes_max", len(WHOLE))
    assert len(place.loaded().records) == len(STORY)


def test_a_missing_journal_is_not_an_empty_one(place: Place) -> None:
    """J9: it cannot be read, which is an error."""
    with pytest.raises(FileNotFoundError):
        place.loaded()


def test_a_closed_journal_takes_nothing(place: Place) -> None:
    """S1: a late writer is refused."""
    log = place.created()
    log.close()
    with pytest.raises(JournalBroken):
        log.append([ModeSet("plan")], barrier=True)


# Failing disks.


class SlowDisk(MatchingFault):
    """Takes at most seven bytes at a time."""

    def write(self, file: File, piece: bytes) -> int:
        return super().write(file, piece[:7])


def test_short_writes_are_completed(place: Place) -> None:
    """J7: whatever piece the disk takes, the record is whole."""
    log = place.created(SlowDisk(place.disk, lambda operation: False, errno.EIO))
    log.append([prompt("turn")], barrier=True)
    assert records(place) == [*begun(), prompt("turn")]
    log.close()


class StuckDisk(MatchingFault):
    """Takes no byte and reports no error."""

    def write(self, file: File, piece: bytes) -> int:
        return 0 if b'"plan"' in piece else super().write(file, piece)


def test_no_progress_is_a_failure(place: Place) -> None:
    """J7: a disk that takes nothing is not asked for ever."""
    log = place.created(StuckDisk(place.disk, lambda operation: False, errno.EIO))
    with pytest.raises(JournalBroken):
        log.append([ModeSet("plan")], barrier=True)
    assert log.broken is not None


def is_sync(operation: Operation) -> bool:
    return operation.verb == "sync" and operation.number > 4


FAULTS: list[tuple[str, Callable[[Operation], bool]]] = [("write", carries("started")), ("sync", is_sync)]


@pytest.mark.parametrize("number", disk_errors)
@pytest.mark.parametrize(("verb", "matches"), FAULTS, ids=["write", "sync"])
def test_the_first_failure_breaks_the_journal(
    place: Place, verb: str, matches: Callable[[Operation], bool], number: int
) -> None:
    """J6, J7: one clear message, the first seq not acknowledged, and no second try on the descriptor [I12]."""
    disk = MatchingFault(place.disk, matches, number)
    counted = CountingDisk(disk)
    log = place.created(counted)
    log.append([prompt("turn")], barrier=False)
    with pytest.raises(JournalBroken) as raised:
        log.append([starts("one")], barrier=True)
    assert log.unacknowledged == 3, "the append without a barrier was never made durable"
    assert log.broken == str(raised.value)
    assert log.broken.endswith("then open the session again.")
    before = len(counted.operations)
    for barrier in (False, True):
        with pytest.raises(JournalBroken):
            log.append([ModeSet("plan")], barrier=barrier)
    assert len(counted.operations) == before
    assert log.unacknowledged == 3
    log.close()


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "disk is full"), (errno.EROFS, "writable"),
     (errno.EACCES, "writable"), (errno.EIO, "check the disk")],
)  # fmt: skip
def test_the_message_says_what_to_do(place: Place, number: int, says: str) -> None:
    """J7, case 23: full, read-only, forbidden and broken each have their sentence."""
    log = place.created(MatchingFault(place.disk, carries("mode"), number))
    with pytest.raises(JournalBroken, match=says):
        log.append([ModeSet("plan")], barrier=True)
    log.close()


def test_a_full_disk_loses_nothing_that_was_acknowledged(place: Place) -> None:
    """J7: half a record and then no room: it is torn, and all before it is there."""
    log = place.created(MatchingFault(place.disk, carries("started"), "short", then=errno.ENOSPC))
    log.append([intends("one")], barrier=True)
    with pytest.raises(JournalBroken, match="full"):
        log.append([starts("one")], barrier=True)
    log.close()
    loaded = place.loaded()
    assert (loaded.tail, [stamped.record for stamped in loaded.records]) == ("torn", [*begun(), intends("one")])


def test_a_new_journal_that_cannot_be_kept_is_an_error(place: Place) -> None:
    """J4: at whatever operation it fails, nobody is told that there is one, and the descriptor is let go."""
    for at in range(1, 5):
        disk = FaultDisk(place.disk, at, errno.EIO)
        closed: list[int] = []
        watched = Watched(disk, closed)
        with pytest.raises((OSError, JournalBroken)):
            Journal.create(watched, FakeClock(), place.folder, begun())
        assert len(closed) == (0 if at == 1 else 1)
        (place.path / JOURNAL).unlink(missing_ok=True)


class Watched(MatchingFault):
    """Lists what is closed."""

    def __init__(self, inner: Disk, closed: list[int]) -> None:
        super().__init__(inner, lambda operation: False, errno.EIO)
        self.closed = closed

    def close(self, handle: Folder | File) -> None:
        self.closed.append(handle)
        super().close(handle)


# Taking up a journal with a bad end.


@pytest.mark.parametrize("torn", [b"{", b'{"sum":"0123', b"\0", b"\0" * 70_000, b"half\0\0"])
def test_a_torn_tail_is_kept_and_cut(place: Place, torn: bytes) -> None:
    """J8: beside the journal, never glued to the next record; it is no damage."""
    place.put(WHOLE + torn)
    log = place.taken_up()
    assert not log.owes_damage
    name = f"torn-{len(STORY) + 1}.bin"
    assert (place.bytes(), place.bytes(name), place.names()) == (WHOLE, torn, [JOURNAL, name])
    log.append([ModeSet("plan")], barrier=True)
    log.close()
    assert place.bytes().startswith(WHOLE)
    assert (records(place)[len(STORY) :], place.loaded().damaged) == ([EPOCH, ModeSet("plan")], 0)


def test_the_copy_is_durable_before_the_cut(place: Place) -> None:
    """J8: kept, synced with its name, then cut and synced [I5]."""
    place.put(WHOLE + b"torn")
    disk = CountingDisk(place.disk)
    place.taken_up(disk).close()
    assert [operation.verb for operation in disk.operations] == [
        "create", "write", "sync", "sync_folder", "truncate", "sync",
    ]  # fmt: skip


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize("error", [errno.EIO, "short"])
def test_a_crash_between_keep_and_cut_is_safe(place: Place, at: int, error: int) -> None:
    """J8: at each operation it may fail or the process die; the next opening finishes it [I5]."""
    torn = b'{"sum":"01234567","prev":"half a record"'
    place.put(WHOLE + torn)
    with pytest.raises(OSError, match=r".") if error == errno.EIO else NOTHING:
        place.taken_up(FaultDisk(place.disk, at, error)).close()
    log = place.taken_up()
    log.append([ModeSet("plan")], barrier=True)
    log.close()
    assert records(place) == [*STORY, EPOCH, ModeSet("plan")]
    assert torn in [place.bytes(name) for name in place.names()]


class _Nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


NOTHING = _Nothing()


def test_a_copy_of_an_earlier_try_is_made_durable(place: Place) -> None:
    """J8: it may not have been synced before that try died, and is before the cut [I5]."""
    place.put(WHOLE + b"torn")
    place.put(b"torn", f"torn-{len(STORY) + 1}.bin")
    disk = CountingDisk(place.disk)
    place.taken_up(disk).close()
    assert [operation.verb for operation in disk.operations] == ["sync", "sync_folder", "truncate", "sync"]
    assert len(place.names()) == 2


def test_other_bytes_under_the_name_are_not_overwritten(place: Place) -> None:
    """J8: half a copy of an earlier try, or an older one, stays; this one gets another name."""
    name = f"torn-{len(STORY) + 1}"
    place.put(b"to", f"{name}.bin")
    place.put(WHOLE + b"torn")
    place.taken_up().close()
    assert (place.bytes(f"{name}.bin"), place.bytes(f"{name}-2.bin")) == (b"to", b"torn")


@pytest.mark.parametrize("zeros", [b"", b"\0", b"\0" * 70_000])
def test_a_whole_record_gets_its_line_end(place: Place, zeros: bytes) -> None:
    """J8: it counts, zeros are cut off, and the next record is not glued to it."""
    place.put(WHOLE[:-1] + zeros)
    log = place.taken_up()
    assert place.bytes() == WHOLE[:-1]
    log.append([ModeSet("plan")], barrier=True)
    log.close()
    assert place.bytes().startswith(WHOLE)
    assert (records(place), place.names()) == ([*STORY, EPOCH, ModeSet("plan")], [JOURNAL])


@pytest.mark.parametrize("end", [b"x", b"\x8a", b"\r", b'x{"sum":"half'])
def test_a_damaged_line_end_is_never_cut(place: Place, end: bytes) -> None:
    """J8, J9: not a byte of it is lost, and the damage is noted [I3]."""
    place.put(WHOLE[:-1] + end)
    log = place.taken_up()
    assert log.owes_damage
    log.append([ModeSet("plan")], barrier=True)
    log.close()
    assert place.bytes().startswith(WHOLE[:-1] + end + b"\n")
    start = len(WHOLE) - len(lines(WHOLE)[-1])
    assert records(place)[len(STORY) - 1 :] == [Damage(1, (start,)), EPOCH, ModeSet("plan")]
    assert (place.loaded().damaged, place.loaded().unnoted) == (1, 0)


@pytest.mark.parametrize("half", range(1, 40))
def test_a_line_end_is_added_once_whatever_is_torn_then(place: Place, half: int) -> None:
    """J8: a crash in the append that adds it leaves the record, and the next opening goes on [I5]."""
    place.put(WHOLE[:-1])
    log = place.taken_up()
    log.append([ModeSet("plan")], barrier=True)
    log.close()
    place.put(place.bytes()[: len(WHOLE) - 1 + half])
    again = place.taken_up()
    again.append([ModeSet("ask")], barrier=True)
    again.close()
    assert [record for record in records(place) if not isinstance(record, Epoch)] == [
        *(record for record in STORY if not isinstance(record, Epoch)),
        ModeSet("ask"),
    ]
    assert place.loaded().damaged == 0


def test_damage_is_noted_before_the_epoch(place: Place) -> None:
    """J9: damage, then epoch, then the first other record, in one append; a second opening notes nothing."""
    place.put(damaged_at(WHOLE, 100, 0x21))
    log = place.taken_up()
    assert log.owes_damage
    log.append([ModeSet("plan")], barrier=True)
    assert not log.owes_damage
    log.close()
    assert records(place)[-3:] == [Damage(1, (0,)), EPOCH, ModeSet("plan")]
    again = place.taken_up()
    assert not again.owes_damage
    again.close()


def test_damage_is_noted_though_nothing_else_is_recorded(place: Place) -> None:
    """J9: an opening that only notes damage appends the note and its epoch."""
    place.put(damaged_at(WHOLE, 100, 0x21))
    log = place.taken_up()
    log.append([], barrier=True)
    log.close()
    assert records(place)[-2:] == [Damage(1, (0,)), EPOCH]


def test_damage_and_a_torn_tail_are_noted_together(place: Place) -> None:
    """J8, J9: the note says how many bytes were cut off."""
    place.put(damaged_at(WHOLE, 100, 0x21) + b"torn")
    log = place.taken_up()
    log.append([], barrier=True)
    log.close()
    assert records(place)[-2:] == [Damage(1, (0,), torn=4), EPOCH]


def test_a_note_that_could_not_be_written_is_owed_still(place: Place) -> None:
    """J6, J9: the next opening notes the same damage again [I5]."""
    place.put(damaged_at(WHOLE, 100, 0x21))
    log = place.taken_up(MatchingFault(place.disk, carries("damage"), errno.ENOSPC))
    with pytest.raises(JournalBroken):
        log.append([ModeSet("plan")], barrier=True)
    log.close()
    assert place.taken_up().owes_damage


def test_a_newer_journal_is_not_taken_up(place: Place) -> None:
    """J13: not a byte is touched, torn tail or not."""
    content = WHOLE + write_newer() + b"torn"
    place.put(content)
    with pytest.raises(AssertionError):
        place.taken_up()
    assert (place.bytes(), place.names()) == (content, [JOURNAL])


def write_newer() -> bytes:
    loaded = read_journal(WHOLE)
    members = {"prev": loaded.last_sum, "v": 2, "seq": loaded.next_seq, "at": "", "kind": "later"}
    body = json.dumps(members, separators=(",", ":")).encode()[1:]
    return b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n"


def test_a_folder_that_cannot_be_written_is_an_error(place: Place) -> None:
    """C4: the caller shows the session read-only; the journal stays as it is."""
    place.put(WHOLE + b"torn")
    with pytest.raises(OSError, match=r"."):
        place.taken_up(FaultDisk(place.disk, 1, errno.EROFS, for_good=True))
    assert place.bytes() == WHOLE + b"torn"


# An unacknowledged tail (J6).


def broken_at(place: Place, matches: Callable[[Operation], bool]) -> int:
    """A session whose journal broke at its result, or where `matches` says; the first seq not acknowledged."""
    log = place.created(MatchingFault(place.disk, matches, errno.EIO))
    try:
        log.append([prompt("turn"), proposes("turn", "one"), *ran("one")[:2]], barrier=True)
        log.append(ran("one")[2:3], barrier=True)
        log.append(ran("one")[3:], barrier=True)
    except JournalBroken:
        pass
    log.close()
    assert log.unacknowledged is not None
    return log.unacknowledged


def nth_sync(number: int) -> Callable[[Operation], bool]:
    seen: list[int] = []

    def matches(operation: Operation) -> bool:
        if operation.verb == "sync":
            seen.append(operation.number)
        return operation.verb == "sync" and len(seen) == number

    return matches


def test_a_start_read_back_counts_and_a_result_does_not(place: Place) -> None:
    """J5, J6: both were written and never acknowledged: the result is passed over by whoever reads next [I12]."""
    first = broken_at(place, nth_sync(4))
    assert first == 8
    loaded = place.loaded()
    assert len(loaded.records) == 9, "the result and its reply can be read back"
    log = place.taken_up(unacknowledged=first)
    assert log.owes_damage
    log.append([ModeSet("plan")], barrier=True)
    log.close()
    assert records(place)[-3:] == [Damage(0, (), None, 8), EPOCH, ModeSet("plan")]
    assert verdicts(ledger_of(place.bytes()))[ident("one")] == "unknown_after_restart"


def test_a_start_that_was_not_acknowledged_counts(place: Place) -> None:
    """J6: it may stand on the disk although its sync failed; read back it is a start [I3]."""
    first = broken_at(place, nth_sync(3))
    log = place.taken_up(unacknowledged=first)
    log.append([], barrier=True)
    log.close()
    assert (first, records(place)[-2:]) == (7, [Damage(0, (), None, 7), EPOCH])
    assert verdicts(ledger_of(place.bytes()))[ident("one")] == "unknown_after_restart"


def test_what_was_read_is_made_durable_first(place: Place) -> None:
    """J6: on the new descriptor, before anything is written; if that fails the journal is not taken up [I12]."""
    first = broken_at(place, nth_sync(4))
    disk = CountingDisk(place.disk)
    place.taken_up(disk, first).close()
    assert [operation.verb for operation in disk.operations] == ["sync", "sync_folder"]
    before = place.bytes()
    for at in (1, 2):
        with pytest.raises(OSError, match=r"."):
            place.taken_up(FaultDisk(place.disk, at, errno.EIO), first)
    assert place.bytes() == before


def test_every_line_it_wrote_joins_the_one_before(place: Place) -> None:
    """J2: over create, take up, a break and taking up again."""
    first = broken_at(place, nth_sync(4))
    for unacknowledged in (first, None):
        log = place.taken_up(unacknowledged=unacknowledged)
        log.append([ModeSet("plan")], barrier=True)
        log.close()
    loaded = place.loaded()
    assert (loaded.damaged, loaded.breaks) == (0, frozenset())
    assert [stamped.seq for stamped in loaded.records] == list(range(1, len(loaded.records) + 1))
    line, check = write_line(ModeSet("plan"), loaded.next_seq - 1, loaded.records[-2].sum, loaded.records[-1].at)
    assert (lines(place.bytes())[-1], loaded.last_sum) == (line, check)
