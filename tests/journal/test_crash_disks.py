"""The disks of the crash harness count, die and fail where they are told, over the real disk."""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyhand.adapters.disk import SystemDisk
from steadyhand.adapters.path_disk import PathDisk
from steadyhand.ports import Disk, Folder
from tests.support.disks import CountingDisk, FaultDisk, KillingDisk, MatchingFault, When, carries
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


# The disks of the crash harness, over the real one.


def story(disk: Disk, path: str) -> None:
    """A small piece of a session's life, with every kind of durable operation but a lock."""
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


STORY = [
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


def test_durable_operations_have_readable_names(disk: Disk, tmp_path: Path) -> None:
    """The crash harness can say at which operation it was, and which record a write carried (row J7)."""
    counting = CountingDisk(disk)
    story(counting, str(tmp_path / "state"))
    assert counting.log == STORY
    assert counting.count == len(STORY)


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
def test_a_killing_disk_dies_where_it_was_told(
    disk: Disk, tmp_path: Path, at: int, when: When, expected: dict[str, bytes]
) -> None:
    """The process is gone by SIGKILL, and the disk is as at that operation."""
    path = tmp_path / "state"

    def live() -> int:
        story(KillingDisk(disk, at, when), str(path))
        return 0

    assert in_a_fork(live) == -signal.SIGKILL
    assert {file.name: file.read_bytes() for file in (path / "s1").iterdir()} == expected


def test_a_faulty_disk_fails_where_it_was_told(disk: Disk, tmp_path: Path) -> None:
    """Once, for good, short, short and then full, or at the write of one record: each as a real disk fails
    (J7).
    """
    once = FaultDisk(disk, at=5, error=errno.EIO)
    assert refused(lambda: story(once, str(tmp_path / "once"))) == errno.EIO
    assert [str(one) for one in once.failed] == [STORY[4]]

    for_good = FaultDisk(disk, at=4, error=errno.ENOSPC, for_good=True)
    root = for_good.open_folder(str(tmp_path))
    file, *_ = [for_good.create(root, name, 0o600) for name in "abc"]
    assert refused(lambda: for_good.write(file, b"x")) == errno.ENOSPC
    assert refused(lambda: for_good.sync(file)) == errno.ENOSPC
    for_good.close(file)
    for_good.close(root)

    short = FaultDisk(disk, at=6, error="short")
    story(short, str(tmp_path / "short"))
    assert [str(one) for one in short.failed] == [STORY[5]]

    full = FaultDisk(disk, at=6, error="short", then=errno.ENOSPC)
    assert refused(lambda: story(full, str(tmp_path / "full"))) == errno.ENOSPC
    torn = tmp_path / "full" / "s1" / "journal.jsonl"
    assert torn.read_bytes() == b'{"kind":"intent"}\n{"kind":"'

    started = MatchingFault(disk, carries("started"), errno.ENOSPC)
    assert refused(lambda: story(started, str(tmp_path / "started"))) == errno.ENOSPC
    assert [str(one) for one in started.failed] == [STORY[5]]
