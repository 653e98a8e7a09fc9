"""The disks of the crash harness count, die and fail at the chosen operation, over the real disk."""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyhand.adapters.disk.by_path import PathDisk
from steadyhand.adapters.disk.posix import SystemDisk
from steadyhand.ports.disk import Disk, Folder
from tests.support.faults import CountingDisk, FaultDisk, KillingDisk, MatchingFault, When, carries
from tests.support.systems import in_a_fork, posix_only, refused


@pytest.fixture(params=[SystemDisk, PathDisk], ids=["handles", "paths"])
def disk(request: pytest.FixtureRequest) -> Disk:
    made: Disk = request.param()
    return made


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> Iterator[Folder]:
    folder = disk.open_folder(str(tmp_path))
    yield folder
    disk.close(folder)


# A fixed run of durable operations.


def run_operations(disk: Disk, path: str) -> None:
    """A short run of a session with every kind of durable operation except a lock."""
    disk.make_root(path)
    root = disk.open_folder(path)
    disk.make_folder(root, "s1")
    session = disk.enter(root, "s1")
    file = disk.create(session, "journal.jsonl", 0o600)
    for piece in (b'{"kind":"intent"}\n', b'{"kind":"started"}\n'):
        done = 0
        while done < len(piece):
            done += disk.write(file, piece[done:])
        disk.sync(file)
    disk.truncate(file, 4)
    disk.close(file)
    disk.rename(session, "journal.jsonl", "b")
    disk.rename_new(session, "b", "c")
    disk.sync_folder(session)
    disk.unlink(session, "c")
    disk.close(session)
    disk.close(root)


OPERATION_NAMES = [
    "make_root",
    "make_folder s1",
    "create s1/journal.jsonl",
    'write s1/journal.jsonl #1 "intent"',
    "sync s1/journal.jsonl",
    'write s1/journal.jsonl #2 "started"',
    "sync s1/journal.jsonl",
    "truncate s1/journal.jsonl",
    "rename s1/journal.jsonl -> b",
    "rename_new s1/b -> c",
    "sync_folder s1",
    "unlink s1/c",
]


def test_counting_disk_logs_each_durable_operation_by_name(disk: Disk, tmp_path: Path) -> None:
    """The crash harness can say which operation it reached, and which record a write carried (row J7)."""
    counting = CountingDisk(disk)
    run_operations(counting, str(tmp_path / "state"))
    assert counting.log == OPERATION_NAMES
    assert counting.count == len(OPERATION_NAMES)


@posix_only
@pytest.mark.parametrize(
    ("at", "when", "expected"),
    [
        (3, "before", {}),
        (3, "after", {"journal.jsonl": b""}),
        (6, "before", {"journal.jsonl": b'{"kind":"intent"}\n'}),
        (6, "half", {"journal.jsonl": b'{"kind":"intent"}\n{"kind":"'}),
        (6, "after", {"journal.jsonl": b'{"kind":"intent"}\n{"kind":"started"}\n'}),
        (9, "half", {"journal.jsonl": b'{"ki'}),
        (10, "after", {"c": b'{"ki'}),
    ],
)
def test_killing_disk_dies_at_the_chosen_operation(
    disk: Disk, tmp_path: Path, at: int, when: When, expected: dict[str, bytes]
) -> None:
    """SIGKILL ends the process, and the disk is as it was at that operation."""
    path = tmp_path / "state"

    def run_until_killed() -> int:
        run_operations(KillingDisk(disk, at, when), str(path))
        return 0

    assert in_a_fork(run_until_killed) == -signal.SIGKILL
    assert {file.name: file.read_bytes() for file in (path / "s1").iterdir()} == expected


def test_fault_disk_fails_at_the_chosen_operation(disk: Disk, tmp_path: Path) -> None:
    """Once, for good, short, short and then full, or at the write of one record: each as a real disk fails (J7)."""
    once = FaultDisk(disk, at=5, error=errno.EIO)
    assert refused(lambda: run_operations(once, str(tmp_path / "once"))) == errno.EIO
    assert [str(one) for one in once.failed] == [OPERATION_NAMES[4]]

    for_good = FaultDisk(disk, at=4, error=errno.ENOSPC, for_good=True)
    root = for_good.open_folder(str(tmp_path))
    file, *_ = [for_good.create(root, name, 0o600) for name in "abc"]
    assert refused(lambda: for_good.write(file, b"x")) == errno.ENOSPC
    assert refused(lambda: for_good.sync(file)) == errno.ENOSPC
    for_good.close(file)
    for_good.close(root)

    short = FaultDisk(disk, at=6, error="short")
    run_operations(short, str(tmp_path / "short"))
    assert [str(one) for one in short.failed] == [OPERATION_NAMES[5]]

    full = FaultDisk(disk, at=6, error="short", then=errno.ENOSPC)
    assert refused(lambda: run_operations(full, str(tmp_path / "full"))) == errno.ENOSPC
    torn = tmp_path / "full" / "s1" / "journal.jsonl"
    assert torn.read_bytes() == b'{"kind":"intent"}\n{"kind":"'

    started = MatchingFault(disk, carries("started"), errno.ENOSPC)
    assert refused(lambda: run_operations(started, str(tmp_path / "started"))) == errno.ENOSPC
    assert [str(one) for one in started.failed] == [OPERATION_NAMES[5]]
