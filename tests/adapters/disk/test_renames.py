"""The real disk replaces files, exchanges names and copies attributes as its port says (row W9, case 58)."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyhand.adapters.disk import renames
from steadyhand.adapters.disk.by_path import PathDisk
from steadyhand.adapters.disk.posix import SystemDisk
from steadyhand.ports.disk import Attributes, Disk, Folder
from tests.support.systems import access_list, in_a_fork, linux_only, posix_only, put, refused


@pytest.fixture(params=[SystemDisk, PathDisk], ids=["handles", "paths"])
def disk(request: pytest.FixtureRequest) -> Disk:
    made: Disk = request.param()
    return made


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> Iterator[Folder]:
    folder = disk.open_folder(str(tmp_path))
    yield folder
    disk.close(folder)


@linux_only
def test_exchange_swaps_two_names_atomically(tmp_path: Path) -> None:
    """An exchange leaves both files, each under the other's name (row W9)."""
    disk = SystemDisk()
    root = disk.open_folder(str(tmp_path))
    put(disk, root, "a", b"a")
    put(disk, root, "b", b"b")
    if not disk.exchange(root, "a", "b"):
        pytest.skip("this file system swaps no names")
    assert (disk.read(root, "a", 9), disk.read(root, "b", 9)) == (b"b", b"a")
    assert refused(lambda: disk.exchange(root, "a", "nothing")) == errno.ENOENT
    disk.close(root)


def test_exchange_without_system_support_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system cannot exchange names, `exchange` is False and both files are unchanged (row W9)."""
    monkeypatch.setattr(renames, "_renameat2", lambda: None)
    for disk in (SystemDisk(), PathDisk()):
        folder = tmp_path / type(disk).__name__
        folder.mkdir()
        root = disk.open_folder(str(folder))
        put(disk, root, "a", b"a")
        put(disk, root, "b", b"b")
        assert disk.exchange(root, "a", "b") is False
        assert (disk.read(root, "a", 9), disk.read(root, "b", 9)) == (b"a", b"b")
        disk.close(root)


@posix_only
@pytest.mark.parametrize("links", [True, False])
def test_rename_new_without_renameat2_still_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """By a hard link, or by a stat where there are no hard links: a taken name stays, and a free one is used
    (row W9).
    """
    monkeypatch.setattr(renames, "_renameat2", lambda: None)
    if not links:

        def no_links(*_names: str, **_folders: int) -> None:
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr("steadyhand.adapters.disk.renames.os.link", no_links)
    disk = SystemDisk()
    root = disk.open_folder(str(tmp_path))
    put(disk, root, "a", b"a")
    put(disk, root, "b", b"b")
    assert refused(lambda: disk.rename_new(root, "a", "b")) == errno.EEXIST
    disk.rename_new(root, "a", "c")
    assert disk.names(root) == ["b", "c"]
    look = disk.look(root, "c")
    assert look is not None
    assert look.links == 1
    disk.close(root)


@linux_only
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EINVAL])
def test_exchange_treats_only_enosys_and_einval_as_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """ENOSYS and EINVAL of renameat2 mean "not supported here". Any other errno is raised (row W9)."""
    answer = [number]

    def failing(*_arguments: object) -> int:
        ctypes.set_errno(answer[0])
        return -1

    monkeypatch.setattr(renames, "_renameat2", lambda: failing)
    disk = SystemDisk()
    root = disk.open_folder(str(tmp_path))
    assert disk.exchange(root, "a", "b") is False
    answer[0] = errno.ENOSPC
    assert refused(lambda: disk.exchange(root, "a", "b")) == errno.ENOSPC
    disk.close(root)


@linux_only
def test_give_attributes_copies_mode_owner_xattrs_and_acl(tmp_path: Path) -> None:
    """The mode, owner, extended attributes and access list of the old file are those of the new one (row W9)."""
    disk = SystemDisk()
    root = disk.open_folder(str(tmp_path))
    put(disk, root, "old", b"", 0o640)
    as_root = os.geteuid() == 0
    try:
        os.setxattr(tmp_path / "old", "user.colour", b"blue")
        os.setxattr(tmp_path / "old", "system.posix_acl_access", access_list(4242))
    except OSError as trouble:
        pytest.skip(f"this file system keeps no such attributes: {trouble}")
    if as_root:
        os.chown(tmp_path / "old", 1234, 2345)
    wanted = disk.attributes(root, "old")
    assert set(wanted.extended) >= {"user.colour", "system.posix_acl_access"}
    new = disk.create(root, "new", 0o600)
    os.setxattr(tmp_path / "new", "user.stray", b"1")
    assert disk.give_attributes(new, wanted) == []
    disk.close(new)
    assert disk.attributes(root, "new") == wanted
    assert (wanted.uid == 1234) is as_root
    disk.close(root)


@linux_only
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give a file away")
def test_give_attributes_names_the_rest_and_never_widens_access(tmp_path: Path) -> None:
    """Without the owner there is no set-id bit. Without the group, it has no more rights than others have. Each is
    named (row W9).
    """
    disk = SystemDisk()
    os.chmod(tmp_path, 0o777)
    root = disk.open_folder(str(tmp_path))

    def as_nobody() -> int:
        os.setgroups([])
        os.setegid(65534)
        os.seteuid(65534)
        file = disk.create(root, "new", 0o600)
        missing = disk.give_attributes(
            file, Attributes(0o6764, 0, 0, {"user.colour": b"blue", "security.capability": b"x"})
        )
        expected = ["gid", "uid", "security.capability", "mode"]
        return 0 if sorted(missing) == sorted(expected) else 1

    assert in_a_fork(as_nobody) == 0
    look = disk.look(root, "new")
    assert look is not None
    assert oct(look.mode) == "0o744"
    disk.close(root)


@posix_only
@pytest.mark.parametrize(("mode", "expected"), [(0o644, True), (0o444, False), (0o400, False), (0o200, True)])
def test_writable_is_false_without_write_bits(disk: Disk, root: Folder, mode: int, expected: bool) -> None:
    """A 0444 file is not writable, not even for root, although a rename over it would succeed (case 58)."""
    put(disk, root, "a", b"", mode)
    assert disk.writable(root, "a") is expected


@posix_only
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can become somebody else")
def test_writable_uses_the_mode_bits_that_apply_to_this_user(disk: Disk) -> None:
    """The bits of owner, group or others count, whichever apply to this user (case 58)."""
    with tempfile.TemporaryDirectory() as path:  # only their owner may enter pytest's own folders
        os.chmod(path, 0o777)
        root = disk.open_folder(path)
        for name, mode in (("mine", 0o644), ("group", 0o664), ("others", 0o646)):
            put(disk, root, name, b"")
            os.chmod(os.path.join(path, name), mode)

        def as_nobody() -> int:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            bits = {"mine": 1, "group": 2, "others": 4}
            return sum(bit for name, bit in bits.items() if disk.writable(root, name))

        assert in_a_fork(as_nobody) == 4
        os.chown(os.path.join(path, "mine"), 65534, 65534)
        os.chown(os.path.join(path, "group"), -1, 65534)
        assert in_a_fork(as_nobody) == 7
        disk.close(root)
