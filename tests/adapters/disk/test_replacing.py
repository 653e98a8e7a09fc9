"""What stands against replacing a file, and the file that is written over, on real disks (row W11)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steadyhand.adapters.disk.by_path import PathDisk
from steadyhand.adapters.disk.posix import SystemDisk
from steadyhand.ports.disk import Disk, Folder, ReplaceLimits
from tests.support.systems import (
    NOBODY,
    access_list,
    append_only,
    as_nobody,
    bound_to,
    linux_only,
    posix_only,
    refused,
)

pytestmark = posix_only
BOTH: list[Callable[[], Disk]] = [SystemDisk, PathDisk]
both_disks = pytest.mark.parametrize("disk_of", BOTH, ids=["by folder", "by path"])


@contextmanager
def opened(disk: Disk, path: Path) -> Iterator[Folder]:
    folder = disk.open_folder(str(path))
    try:
        yield folder
    finally:
        disk.close(folder)


def limits_of(disk: Disk, path: Path) -> ReplaceLimits:
    with opened(disk, path.parent) as folder:
        return disk.replace_limits(folder, path.name)


# open_update


@both_disks
def test_open_update_writes_over_the_bytes_of_every_name(tmp_path: Path, disk_of: Callable[[], Disk]) -> None:
    """W11: reading and writing share one position, nothing is appended, and the inode stays."""
    disk = disk_of()
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    os.link(path, tmp_path / "b")
    before = path.stat()
    with opened(disk, tmp_path) as folder:
        file = disk.open_update(folder, "a")
        assert disk.read_piece(file, 4) == b"0123"
        disk.move_to(file, 2)
        assert disk.write(file, b"AB") == 2
        disk.truncate(file, 6)
        disk.sync(file)
        disk.move_to(file, 0)
        assert disk.read_piece(file, 100) == b"01AB45"
        disk.close(file)
    assert (tmp_path / "b").read_bytes() == b"01AB45"
    assert path.stat().st_ino == before.st_ino


@both_disks
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: os.symlink("real", path), errno.ELOOP),
        (lambda path: os.mkfifo(path), errno.EINVAL),
        (lambda path: path.mkdir(), errno.EISDIR),
        (lambda path: None, errno.ENOENT),
    ],
    ids=["link", "pipe", "folder", "nothing"],
)
def test_open_update_of_no_regular_file_is_refused_at_once(
    tmp_path: Path, disk_of: Callable[[], Disk], make: Callable[[Path], object], expected: int
) -> None:
    """W11, E3: no link is followed, and a pipe never blocks."""
    (tmp_path / "real").write_bytes(b"real")
    make(tmp_path / "it")
    disk = disk_of()
    with opened(disk, tmp_path) as folder:
        assert refused(lambda: disk.open_update(folder, "it")) == expected
    assert (tmp_path / "real").read_bytes() == b"real"


# replace_limits


@both_disks
def test_replace_limits_of_an_ordinary_file_are_none(tmp_path: Path, disk_of: Callable[[], Disk]) -> None:
    """W9, W11: names, own attributes and an access list of ours do not stand against a replacement."""
    path = tmp_path / "a"
    path.write_bytes(b"a")
    os.link(path, tmp_path / "b")
    try:
        os.setxattr(path, "user.note", b"kept")
        os.setxattr(path, "system.posix_acl_access", access_list(4242))
    except (OSError, AttributeError):
        pass
    assert limits_of(disk_of(), path) == ReplaceLimits()


@linux_only
@both_disks
def test_replace_limits_of_a_mounted_file_say_so(tmp_path: Path, disk_of: Callable[[], Disk]) -> None:
    """W11: also where both are on one device; the file that is mounted is an ordinary one under its own name."""
    source, goal = tmp_path / "source", tmp_path / "goal"
    source.write_bytes(b"source")
    goal.write_bytes(b"hidden")
    for _ in bound_to(source, goal):
        assert limits_of(disk_of(), goal) == ReplaceLimits(is_mount=True)
        assert limits_of(disk_of(), source) == ReplaceLimits()


@linux_only
@both_disks
def test_replace_limits_in_an_append_only_folder_say_so(tmp_path: Path, disk_of: Callable[[], Disk]) -> None:
    """W11: a new name can be made there, but none can be replaced; also for root."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a").write_bytes(b"a")
    with append_only(folder):
        assert limits_of(disk_of(), folder / "a") == ReplaceLimits(is_folder_fixed=True)


@linux_only
def test_replace_limits_of_an_append_only_file_say_so(tmp_path: Path) -> None:
    """W11: its bytes can be neither replaced nor written over."""
    path = tmp_path / "a"
    path.write_bytes(b"a")
    with append_only(path):
        assert limits_of(SystemDisk(), path) == ReplaceLimits(is_append_only=True)


def of_others_and_sticky(path: Path) -> None:
    os.chown(path.parent, 1234, 1234)
    path.parent.chmod(0o1777)
    os.chown(path, 77, NOBODY)


@linux_only
@pytest.mark.parametrize(
    ("lay", "expected"),
    [
        (lambda path: os.chown(path, 1234, NOBODY), ReplaceLimits(unkept=("uid",))),
        (lambda path: os.chown(path, NOBODY, 1234), ReplaceLimits(unkept=("gid",))),
        (lambda path: path.parent.chmod(0o555), ReplaceLimits(is_folder_fixed=True)),
        (of_others_and_sticky, ReplaceLimits(unkept=("uid",), is_folder_fixed=True)),
        (lambda path: path.parent.chmod(0o1777), ReplaceLimits()),
    ],
    ids=["owner", "group", "read-only folder", "sticky folder of others", "own sticky folder"],
)
def test_replace_limits_of_an_ordinary_user(
    tmp_path: Path, lay: Callable[[Path], object], expected: ReplaceLimits
) -> None:
    """W11: a new file would belong to this user, and a folder that he cannot write lets no name be replaced."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "a"
    path.write_bytes(b"a")
    path.chmod(0o666)
    for one in (folder, path):
        if os.geteuid() == 0:
            os.chown(one, NOBODY, NOBODY)
    for above in folder.parents:
        if above.stat().st_uid == os.geteuid() and above != Path("/") and above != Path("/tmp"):
            above.chmod(above.stat().st_mode | 0o055)

    def look() -> int:
        return 0 if limits_of(SystemDisk(), path) == expected else 1

    if os.geteuid() == 0:
        lay(path)
    assert as_nobody(look) == 0


@both_disks
def test_reread_leaves_synced_bytes_as_they_are(tmp_path: Path, disk_of: Callable[[], Disk]) -> None:
    """W11: what is on the disk is read again, and nothing is lost."""
    disk = disk_of()
    (tmp_path / "a").write_bytes(b"0123456789" * 10_000)
    with opened(disk, tmp_path) as folder:
        file = disk.open_update(folder, "a")
        assert disk.write(file, b"AB") == 2
        disk.sync(file)
        disk.reread(file)
        disk.move_to(file, 0)
        assert disk.read_piece(file, 4) == b"AB23"
        disk.close(file)


@linux_only
@both_disks
def test_replace_limits_of_a_missing_name_are_those_of_the_folder(tmp_path: Path, disk_of: Callable[[], Disk]) -> None:
    """W11: a new file would need its temporary name removed again."""
    folder = tmp_path / "folder"
    folder.mkdir()
    assert limits_of(disk_of(), folder / "a") == ReplaceLimits()
    with append_only(folder):
        assert limits_of(disk_of(), folder / "a") == ReplaceLimits(is_folder_fixed=True)
