"""The real disk keeps the promises of its port.

What both disks promise is asked of both: the one by folder handles and the one by paths, which Windows gets.
What only folder handles can promise is asked of `SystemDisk` alone. Some questions need root or a certain
file system; where those are missing the test is skipped and says so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from steadyhand.adapters import disk as disk_module
from steadyhand.adapters.clock import SystemClock
from steadyhand.adapters.disk import SystemDisk, system_disk
from steadyhand.adapters.ids import RandomIds
from steadyhand.adapters.path_disk import PathDisk
from steadyhand.ports import Clock, Disk, Folder, Ids
from tests.support.systems import in_a_fork, linux_only, posix_only, put, refused, wait_s_max


@pytest.fixture(params=[SystemDisk, PathDisk], ids=["handles", "paths"])
def disk(request: pytest.FixtureRequest) -> Disk:
    made: Disk = request.param()
    return made


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> Iterator[Folder]:
    folder = disk.open_folder(str(tmp_path))
    yield folder
    disk.close(folder)


def test_the_adapters_are_the_ports() -> None:
    """Each adapter is what its port asks for, and Linux and macOS get the disk by handles (row E3)."""
    disks: list[Disk] = [SystemDisk(), PathDisk()]
    clock: Clock = SystemClock()
    ids: Ids = RandomIds()
    assert len(disks) == 2
    assert isinstance(system_disk(), PathDisk if sys.platform == "win32" else SystemDisk)
    assert len({ids.new() for _ in range(50)}) == 50
    assert all(len(one) == 32 and set(one) <= set("0123456789abcdef") for one in (ids.new(), ids.new()))
    assert clock.monotonic_s() <= clock.monotonic_s()
    moment = clock.now()
    assert len(moment) == len("2026-01-02T03:04:05.678Z")
    assert (moment[10], moment[19], moment[-1]) == ("T", ".", "Z")


@posix_only
@pytest.mark.parametrize("target", ["there", "../nowhere", "n\udcff"])
def test_a_link_is_made_once(disk: Disk, root: Folder, target: str) -> None:
    """A link has its target as stored, wherever that leads, and takes no name that is taken (row A5)."""
    disk.make_link(root, "link", target)
    look = disk.look(root, "link")
    assert look is not None
    assert (look.kind, look.target) == ("link", target)
    with pytest.raises(FileExistsError):
        disk.make_link(root, "link", "other")


def test_bytes_come_back(disk: Disk, root: Folder) -> None:
    """What is created, written, synced, appended and truncated reads back, at most as much as asked for."""
    file = disk.create(root, "a", 0o600)
    assert disk.write(file, b"one") == 3
    disk.sync(file)
    disk.close(file)
    disk.sync_folder(root)
    again = disk.open_append(root, "a")
    disk.write(again, b"two")
    disk.truncate(again, 5)
    disk.write(again, b"!")
    disk.close(again)
    assert disk.read(root, "a", 100) == b"onetw!"
    assert disk.read(root, "a", 2) == b"on"
    assert disk.read(root, "a", 0) == b""
    reading = disk.open_read(root, "a")
    assert [disk.read_piece(reading, 4), disk.read_piece(reading, 4), disk.read_piece(reading, 4)] == [
        b"onet",
        b"w!",
        b"",
    ]
    disk.close(reading)


def test_a_taken_name_is_never_created_over(disk: Disk, root: Folder) -> None:
    """`create`, `make_folder` and `rename_new` refuse a name that is taken; the file there keeps its bytes
    (W9).
    """
    put(disk, root, "a", b"a")
    put(disk, root, "b", b"b")
    assert refused(lambda: disk.create(root, "a", 0o600)) == errno.EEXIST
    assert refused(lambda: disk.make_folder(root, "a")) == errno.EEXIST
    assert refused(lambda: disk.rename_new(root, "a", "b")) == errno.EEXIST
    assert (disk.read(root, "a", 9), disk.read(root, "b", 9)) == (b"a", b"b")
    disk.rename_new(root, "a", "c")
    disk.rename(root, "c", "b")
    assert disk.names(root) == ["b"]
    assert disk.read(root, "b", 9) == b"a"


@posix_only
def test_modes_are_private(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """Folders are 0700, roots and their new parents too, a lock 0600, a file as asked, under any usual umask
    (J10).
    """
    before = os.umask(0)
    try:
        disk.make_folder(root, "folder")
        disk.make_root(str(tmp_path / "x" / "y" / "z"))
        put(disk, root, "file", b"", 0o600)
        lock = disk.lock(root, "lock")
    finally:
        os.umask(before)
    assert lock is not None
    lock.release()
    modes = {name: disk.look(root, name) for name in ("folder", "x", "file", "lock")}
    assert {name: look and oct(look.mode) for name, look in modes.items()} == {
        "folder": "0o700",
        "x": "0o700",
        "file": "0o600",
        "lock": "0o600",
    }
    assert stat.S_IMODE((tmp_path / "x" / "y" / "z").stat().st_mode) == 0o700
    disk.make_root(str(tmp_path / "x" / "y" / "z"))


@posix_only
def test_no_link_is_followed(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """A link is looked at, never gone through: not to read, write, enter, lock or create (row E3)."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (tmp_path / "file-link").symlink_to(outside / "secret")
    (tmp_path / "folder-link").symlink_to(outside)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    assert refused(lambda: disk.read(root, "file-link", 9)) == errno.ELOOP
    assert refused(lambda: disk.open_read(root, "file-link")) == errno.ELOOP
    assert refused(lambda: disk.open_append(root, "file-link")) == errno.ELOOP
    assert refused(lambda: disk.lock(root, "file-link")) == errno.ELOOP
    assert refused(lambda: disk.enter(root, "folder-link")) in (errno.ELOOP, errno.ENOTDIR)
    assert refused(lambda: disk.create(root, "dangling", 0o600)) == errno.EEXIST
    assert not (tmp_path / "nothing").exists()
    look = disk.look(root, "file-link")
    assert look is not None
    assert (look.kind, look.target) == ("link", str(outside / "secret"))
    assert not disk.writable(root, "file-link")


@posix_only
def test_a_link_put_in_the_way_after_the_look_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between look and opening a file becomes a link: opening itself refuses it (row E3)."""
    disk = SystemDisk()
    root = disk.open_folder(str(tmp_path))
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").symlink_to("a")
    real = os.stat("a", dir_fd=root, follow_symlinks=False)
    monkeypatch.setattr("steadyhand.adapters.disk.os.stat", lambda *_args, **_named: real)
    assert refused(lambda: disk.read(root, "b", 9)) == errno.ELOOP
    monkeypatch.undo()
    disk.close(root)


@posix_only
def test_what_is_no_file_is_refused_at_once(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """A pipe, a socket, a device and a folder are refused without waiting, and a pipe's writer is not woken
    (E3).
    """
    os.mkfifo(tmp_path / "pipe")
    disk.make_folder(root, "folder")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(tmp_path)  # a socket's path is short
        listening.bind("socket")
        os.chdir(here)
    for name, number in (("pipe", errno.EINVAL), ("socket", errno.EINVAL), ("folder", errno.EISDIR)):
        assert refused(partial(disk.read, root, name, 9)) == number, name
        assert refused(partial(disk.open_append, root, name)) == number, name
        look = disk.look(root, name)
        assert look is not None
        assert look.kind == ("folder" if name == "folder" else "other")
        assert not disk.writable(root, name)
    devices = disk.open_folder("/dev")
    assert refused(lambda: disk.read(devices, "null", 9)) == errno.EINVAL
    disk.close(devices)


@posix_only
def test_a_pipe_that_slips_in_after_the_look_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between look and opening a file becomes a pipe: opening does not wait, and refuses it (row E3)."""
    disk = SystemDisk()
    root = disk.open_folder(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(disk_module, "refuse_other_kinds", lambda _mode, _name: None)
    assert refused(lambda: disk.read(root, "pipe", 9)) == errno.EINVAL
    assert refused(lambda: disk.open_append(root, "pipe")) in (errno.EINVAL, errno.ENXIO)
    disk.close(root)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\0b"])
def test_a_name_is_one_component(disk: Disk, root: Folder, name: str) -> None:
    """No name leads out of its folder: what is not one component is EINVAL everywhere (row E3)."""
    acts: list[Callable[[], object]] = [
        lambda: disk.look(root, name),
        lambda: disk.read(root, name, 1),
        lambda: disk.create(root, name, 0o600),
        lambda: disk.make_folder(root, name),
        lambda: disk.enter(root, name),
        lambda: disk.unlink(root, name),
        lambda: disk.rename(root, "a", name),
        lambda: disk.rename_new(root, name, "a"),
        lambda: disk.exchange(root, "a", name),
        lambda: disk.writable(root, name),
        lambda: disk.lock(root, name),
    ]
    assert {refused(act) for act in acts} == {errno.EINVAL}


def test_a_root_is_an_absolute_path(disk: Disk) -> None:
    """A relative root is refused; it would mean another place after a change of directory (row E3)."""
    assert refused(lambda: disk.open_folder("here")) == errno.EINVAL
    assert refused(lambda: disk.make_root("here")) == errno.EINVAL


def test_nothing_there_is_none(disk: Disk, root: Folder) -> None:
    """A missing name is None to a look and FileNotFoundError to everything that needs it."""
    assert disk.look(root, "a") is None
    assert refused(lambda: disk.read(root, "a", 1)) == errno.ENOENT
    assert refused(lambda: disk.open_append(root, "a")) == errno.ENOENT
    assert refused(lambda: disk.unlink(root, "a")) == errno.ENOENT


@posix_only
def test_a_folder_moved_away_is_noticed(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """With another folder at its path, a handle still means the old one, or is refused; never the new (row
    E3).
    """
    disk.make_folder(root, "inner")
    inner = disk.enter(root, "inner")
    assert disk.real_path(inner) == str(tmp_path / "inner")
    (tmp_path / "inner").rename(tmp_path / "moved")
    (tmp_path / "inner").mkdir()
    with contextlib.suppress(OSError):
        put(disk, inner, "a", b"a")
    assert not (tmp_path / "inner" / "a").exists()
    disk.close(inner)


@posix_only
def test_the_path_of_a_removed_folder_is_refused(tmp_path: Path) -> None:
    """A folder that has no path any more gives none, not a made-up one."""
    disk = SystemDisk()
    (tmp_path / "gone").mkdir()
    folder = disk.open_folder(str(tmp_path / "gone"))
    (tmp_path / "gone").rmdir()
    assert refused(lambda: disk.real_path(folder)) == errno.ENOENT
    disk.close(folder)


def test_names_are_all_and_sorted(disk: Disk, root: Folder) -> None:
    """Names come sorted by code point, each time, also when threads list one handle at once."""
    for name in ("b", "Z", "a", "é", "10", "9"):
        put(disk, root, name, b"")
    expected = ["10", "9", "Z", "a", "b", "é"]
    seen: list[list[str]] = []
    threads = [threading.Thread(target=lambda: seen.extend(disk.names(root) for _ in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(wait_s_max)
    assert len(seen) == 200
    assert all(names == expected for names in seen)


@posix_only
def test_a_short_write_is_reported(tmp_path: Path) -> None:
    """A disk that takes less than it was given says how much, and then that it is full (row J7, case 23)."""
    import resource

    disk = SystemDisk()

    def with_a_limit() -> int:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        root = disk.open_folder(str(tmp_path))
        file = disk.create(root, "a", 0o600)
        if disk.write(file, b"x" * 4000) != 1000:
            return 1
        try:
            disk.write(file, b"x")
        except OSError as trouble:
            return 0 if trouble.errno == errno.EFBIG else 2
        return 3

    assert in_a_fork(with_a_limit) == 0


@posix_only
def test_new_roots_are_synced_into_their_parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each new entry's parent is synced, again in a run after one that was killed before its sync (row J4)."""
    synced: list[str] = []
    real = disk_module.sync_folder

    def spy(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("no /proc to tell which folder is synced")
    monkeypatch.setattr(disk_module, "sync_folder", spy)
    for _ in range(2):
        synced.clear()
        SystemDisk().make_root(str(tmp_path / "x" / "y"))
        assert [path for path in synced if path.startswith(str(tmp_path))] == [
            str(tmp_path),
            str(tmp_path / "x"),
        ]


@linux_only
def test_no_descriptor_reaches_a_child(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """Folders, files and locks are closed on exec: a child inherits none of them [I15] (row J11)."""
    file = disk.create(root, "a", 0o600)
    reading = disk.open_read(root, "a")
    lock = disk.lock(root, "lock")
    assert lock is not None
    ours = []
    for number in (int(name) for name in os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):
            if str(tmp_path) in os.readlink(f"/proc/self/fd/{number}"):
                ours.append(number)
    assert len(ours) >= 3
    assert not any(os.get_inheritable(number) for number in ours)
    lock.release()
    disk.close(file)
    disk.close(reading)
