"""An owner knows that its lock, its folder and its journal still stand under their names, as it took them."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.by_path import PathDisk
from steadyhand.adapters.disk.posix import SystemDisk
from steadyhand.domain.records.record import Epoch, ModeSet
from steadyhand.journal.journal import JOURNAL, Journal, JournalBroken, UnacknowledgedTail, load
from steadyhand.journal.ownership import OWNER_LOCK, SessionLock
from steadyhand.ports.disk import Disk
from tests.support.fakes import FakeClock
from tests.support.faults import MatchingFault, between
from tests.support.journals import begun, ident, journal, starts

EPOCH = Epoch(epoch=ident("epoch 2"), pid=1, host="host")
MODE = [ModeSet(mode="ask")]
CHECK_STATS = 3


def _hold(disk: Disk, path: Path) -> SessionLock:
    folder = disk.open_folder(str(path))
    lock = disk.lock(folder, OWNER_LOCK)
    assert lock is not None
    return SessionLock(folder, str(path), lock)


@attrs.define
class Owner:
    """An owner of a session's folder with an open journal."""

    path: Path
    journal: Journal
    backup: bytes

    @property
    def file(self) -> Path:
        return self.path / JOURNAL

    @property
    def lock(self) -> Path:
        return self.path / OWNER_LOCK

    @property
    def away(self) -> Path:
        return self.path.with_name("away")


@pytest.fixture(params=[SystemDisk, PathDisk])
def owner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Owner]:
    path = tmp_path.resolve() / "session"
    path.mkdir()
    disk: Disk = request.param()
    held = _hold(disk, path)
    log, _ = Journal.create(disk, FakeClock(), held, begun())
    backup = (path / JOURNAL).read_bytes()
    log.append([ModeSet(mode="plan")], barrier=False)
    yield Owner(path, log, backup)
    log.close()
    held.lock.release()


def _replace(path: Path, content: bytes) -> None:
    path.with_name("new").write_bytes(content)
    path.with_name("new").rename(path)


def _replace_folder(owner: Owner) -> None:
    shutil.copytree(owner.path, owner.away)
    shutil.rmtree(owner.path)
    owner.away.rename(owner.path)


def _link_at(path: Path, away: Path) -> None:
    path.rename(away)
    path.symlink_to(away)


def _folder_for_the_lock(owner: Owner) -> None:
    owner.lock.unlink()
    owner.lock.mkdir()


FOLDER, LOCK, FILE, MANY, CHANGED = (
    "was removed, moved or replaced",
    f"{OWNER_LOCK} was removed or replaced",
    f"{JOURNAL} was removed or replaced",
    "has 2 names",
    "Another program changed the session's journal",
)
TAKEN: dict[str, tuple[Callable[[Owner], object], str]] = {
    # what somebody does → what the owner says
    "lock removed": (lambda owner: owner.lock.unlink(), LOCK),
    "lock replaced": (lambda owner: _replace(owner.lock, b""), LOCK),
    "lock is a folder": (_folder_for_the_lock, LOCK),
    "lock with a second name": (lambda owner: os.link(owner.lock, owner.away), MANY),
    "folder removed": (lambda owner: shutil.rmtree(owner.path), FOLDER),
    "folder moved away": (lambda owner: owner.path.rename(owner.away), FOLDER),
    "folder replaced by a copy": (_replace_folder, FOLDER),
    "folder is a link to itself": (lambda owner: _link_at(owner.path, owner.away), FOLDER),
    "journal removed": (lambda owner: owner.file.unlink(), FILE),
    "journal replaced by the same bytes": (lambda owner: _replace(owner.file, owner.file.read_bytes()), FILE),
    "journal replaced by its backup": (lambda owner: _replace(owner.file, owner.backup), FILE),
    "journal is a link": (lambda owner: _link_at(owner.file, owner.away), FILE),
    "journal with a second name": (lambda owner: os.link(owner.file, owner.away), MANY),
    "backup written into the journal": (lambda owner: owner.file.write_bytes(owner.backup), CHANGED),
    "journal cut": (lambda owner: os.truncate(owner.file, len(owner.backup)), CHANGED),
    "journal empty": (lambda owner: os.truncate(owner.file, 0), CHANGED),
    "journal appended to": (lambda owner: owner.file.write_bytes(owner.file.read_bytes() + b"x\n"), CHANGED),
}


@pytest.mark.skipif(sys.platform == "win32", reason="an open file or folder cannot be removed there")
@pytest.mark.parametrize("what", TAKEN)
def test_owner_from_whom_something_was_taken_records_nothing_and_says_what(owner: Owner, what: str) -> None:
    """Cases 161, 162 [I1, I15]: what stands there is not written to. The sentence names the path and what to do."""
    take, said = TAKEN[what]
    take(owner)
    there = owner.file.read_bytes() if owner.file.exists() else None
    assert not owner.journal.may_act()
    with pytest.raises(JournalBroken) as broken:
        owner.journal.append(MODE, barrier=True)
    assert said in str(broken.value)
    assert str(owner.path) in str(broken.value)
    assert "then open the session again" in str(broken.value)
    assert owner.journal.lost
    assert owner.journal.unacknowledged == UnacknowledgedTail(3, last_sum=owner.journal.end[1])
    assert (owner.file.read_bytes() if owner.file.exists() else None) == there


@pytest.mark.skipif(sys.platform == "win32", reason="an open file or folder cannot be removed there")
@pytest.mark.parametrize("barrier", [False, True])
@pytest.mark.parametrize("what", TAKEN)
def test_append_compares_before_it_writes(owner: Owner, what: str, barrier: bool) -> None:
    """Case 161: also a record that nobody waits for; it would break the joint of another owner's records."""
    TAKEN[what][0](owner)
    there = owner.file.read_bytes() if owner.file.exists() else None
    with pytest.raises(JournalBroken):
        owner.journal.append(MODE, barrier)
    assert (owner.file.read_bytes() if owner.file.exists() else None) == there


def test_owner_whose_folder_stands_records(owner: Owner) -> None:
    """Cases 161, 162: nothing is lost while nothing changes, and a loss is remembered when it was there for a
    moment."""
    assert owner.journal.may_act()
    owner.journal.append(MODE, barrier=True)
    owner.lock.rename(owner.away)
    assert not owner.journal.may_act()
    owner.away.rename(owner.lock)
    assert not owner.journal.may_act(), "another process may have been the owner meanwhile"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "session"
    path.mkdir()
    return path


def test_each_check_is_three_stats(folder: Path) -> None:
    """Case 161: three before a write, three more after a barrier, three before an effect; nothing is read."""
    asked: list[str] = []
    disk = between(lambda number, name: asked.append(name))
    log, _ = Journal.create(disk, FakeClock(), _hold(disk, folder), begun())

    def stats(work: Callable[[], object]) -> int:
        asked.clear()
        work()
        assert set(asked) <= {"look", "look_path", "write", "sync"}
        return sum(name.startswith("look") for name in asked)

    assert stats(lambda: log.append(MODE, barrier=False)) == CHECK_STATS
    assert stats(lambda: log.append(MODE, barrier=True)) == 2 * CHECK_STATS
    assert stats(log.may_act) == CHECK_STATS


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
def test_barrier_during_which_the_folder_is_taken_acknowledges_nothing(folder: Path) -> None:
    """Case 162: what was synced into a file that nobody finds under its name is not recorded."""
    taken: list[str] = []

    def take(number: int, name: str) -> None:
        if name == "sync" and not taken and (folder / JOURNAL).stat().st_size > len(first):
            taken.append(name)
            folder.rename(folder.with_name("away"))

    first = b""
    disk = between(take)
    log, _ = Journal.create(SystemDisk(), FakeClock(), _hold(SystemDisk(), folder), begun())
    first = (folder / JOURNAL).read_bytes()
    log._disk = disk
    with pytest.raises(JournalBroken, match="removed, moved or replaced"):
        log.append([starts("one")], barrier=True)
    assert taken == ["sync"]
    tail = log.unacknowledged
    assert tail is not None
    folder.with_name("away").rename(folder)
    loaded = load(SystemDisk(), SystemDisk().open_folder(str(folder)))
    assert tail.is_in(loaded), "it is durable, so a later opening finds it"
    assert tail.first == loaded.records[-1].seq
    assert not tail.is_in(attrs.evolve(loaded, records=loaded.records[:-1])), "a backup does not have it"


@pytest.mark.parametrize("verb", ["look", "look_path"])
def test_folder_that_cannot_be_examined_counts_as_lost(folder: Path, verb: str) -> None:
    """Case 161: a stat that fails proves nothing, so nothing starts."""

    def fail(number: int, name: str) -> None:
        if armed and name == verb:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    armed = False
    disk = between(fail)
    log, _ = Journal.create(disk, FakeClock(), _hold(disk, folder), begun())
    armed = True
    with pytest.raises(JournalBroken, match="cannot be examined"):
        log.append(MODE, barrier=True)
    armed = False
    assert not log.may_act()


def test_failed_write_is_broken_and_not_lost(folder: Path) -> None:
    """Rows J6, J7: a disk that refuses is another fault than a folder that was taken."""
    disk = MatchingFault(SystemDisk(), lambda operation: operation.verb == "sync", errno.EIO)
    with pytest.raises(JournalBroken, match="the disk reports an error"):
        Journal.create(disk, FakeClock(), _hold(disk, folder), begun())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such flag on a descriptor")
def test_journal_is_open_for_appending_only_from_its_first_record_on(folder: Path) -> None:
    """Case 161: a late write of this process comes after what another process wrote, and never over it."""
    disk = SystemDisk()
    held = _hold(disk, folder)
    log, _ = Journal.create(disk, FakeClock(), held, begun())
    assert fcntl.fcntl(log._file, fcntl.F_GETFL) & os.O_APPEND
    log.close()
    again = Journal.open_existing(disk, FakeClock(), held, load(disk, held.folder), EPOCH, None)
    assert fcntl.fcntl(again._file, fcntl.F_GETFL) & os.O_APPEND
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
@pytest.mark.parametrize("what", sorted(TAKEN.keys() - {"journal replaced by the same bytes"}))
def test_journal_that_changed_since_it_was_loaded_is_not_taken_up(folder: Path, what: str) -> None:
    """Cases 134, 161: a torn tail is cut only from the bytes that were loaded under the lock that still stands."""
    disk = SystemDisk()
    content = journal(begun()) + b'{"sum":"torn'
    (folder / JOURNAL).write_bytes(content)
    held = _hold(disk, folder)
    loaded = load(disk, held.folder)
    log = Journal.open_existing(disk, FakeClock(), held, loaded, EPOCH, None)
    log.close()
    (folder / JOURNAL).write_bytes(content)
    owner = Owner(folder, log, content[:-20])
    TAKEN[what][0](owner)
    there = owner.file.read_bytes() if owner.file.exists() else None
    with pytest.raises((JournalBroken, OSError)):
        Journal.open_existing(disk, FakeClock(), held, loaded, EPOCH, None)
    assert (owner.file.read_bytes() if owner.file.exists() else None) == there
