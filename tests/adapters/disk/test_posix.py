"""The real disk keeps the promises of its port.

Tests of a promise of both disks run against both: the one by folder handles and the one by paths, which Windows
uses. Tests of a promise that only folder handles can keep run against `SystemDisk` alone. Some tests need root or a
certain file system. Without it the test is skipped and says so.
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

from steadyhand.adapters.clock import SystemClock
from steadyhand.adapters.disk import posix as disk_module
from steadyhand.adapters.disk.by_path import PathDisk
from steadyhand.adapters.disk.posix import SystemDisk, system_disk
from steadyhand.adapters.ids import RandomIds
from steadyhand.ports.disk import Disk, Folder
from steadyhand.ports.system import Clock, Ids
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


def test_adapters_implement_their_ports_and_posix_uses_handles() -> None:
    """Each adapter fulfils its port, and Linux and macOS get the disk by handles (row E3)."""
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
def test_make_link_stores_the_target_and_refuses_a_taken_name(disk: Disk, root: Folder, target: str) -> None:
    """A link has its target as stored, wherever that leads, and does not replace an existing name (row A5)."""
    disk.make_link(root, "link", target)
    look = disk.look(root, "link")
    assert look is not None
    assert (look.kind, look.target) == ("link", target)
    with pytest.raises(FileExistsError):
        disk.make_link(root, "link", "other")


def test_disk_reads_back_written_appended_and_truncated_bytes(disk: Disk, root: Folder) -> None:
    """A file that is created, written, synced, appended and truncated reads back, at most as many bytes as
    requested.
    """
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
    reader = disk.open_read(root, "a")
    assert [disk.read_piece(reader, 4), disk.read_piece(reader, 4), disk.read_piece(reader, 4)] == [
        b"onet",
        b"w!",
        b"",
    ]
    disk.close(reader)


def test_create_and_rename_new_refuse_a_taken_name(disk: Disk, root: Folder) -> None:
    """`create`, `make_folder` and `rename_new` refuse a taken name. The file there keeps its bytes (W9)."""
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
def test_created_folders_and_locks_have_private_modes(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """Folders are 0700, also roots and their new parents. A lock is 0600, and a file has the requested mode, under any
    usual umask (J10).
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
def test_disk_follows_no_link(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """A link can be inspected, but it is never followed to read, write, enter, lock or create (row E3)."""
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
def test_read_refuses_a_file_replaced_by_a_link_after_the_stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the stat and the open a file becomes a link: the open itself refuses it (row E3)."""
    disk = SystemDisk()
    root = disk.open_folder(str(tmp_path))
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").symlink_to("a")
    real = os.stat("a", dir_fd=root, follow_symlinks=False)
    monkeypatch.setattr("steadyhand.adapters.disk.posix.os.stat", lambda *_args, **_named: real)
    assert refused(lambda: disk.read(root, "b", 9)) == errno.ELOOP
    monkeypatch.undo()
    disk.close(root)


@posix_only
def test_disk_refuses_pipes_sockets_devices_and_folders_at_once(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """A pipe, a socket, a device and a folder are refused without waiting, and a pipe's writer is not woken (E3)."""
    os.mkfifo(tmp_path / "pipe")
    disk.make_folder(root, "folder")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.getcwd()
        os.chdir(tmp_path)  # the path of a socket has a short limit
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
def test_read_refuses_a_file_replaced_by_a_pipe_without_blocking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the stat and the open a file becomes a pipe: the open does not wait, and refuses it (row E3)."""
    disk = SystemDisk()
    root = disk.open_folder(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(disk_module, "refuse_irregular", lambda _mode, _name: None)
    assert refused(lambda: disk.read(root, "pipe", 9)) == errno.EINVAL
    assert refused(lambda: disk.open_append(root, "pipe")) in (errno.EINVAL, errno.ENXIO)
    disk.close(root)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\0b"])
def test_disk_name_must_be_one_path_component(disk: Disk, root: Folder, name: str) -> None:
    """No name leads out of its folder: one that is not a single component is EINVAL everywhere (row E3)."""
    operations: list[Callable[[], object]] = [
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
    assert {refused(operation) for operation in operations} == {errno.EINVAL}


def test_disk_root_must_be_an_absolute_path(disk: Disk) -> None:
    """A relative root is refused: it would mean another folder after a change of directory (row E3)."""
    assert refused(lambda: disk.open_folder("here")) == errno.EINVAL
    assert refused(lambda: disk.make_root("here")) == errno.EINVAL


def test_missing_name_is_none_to_look_and_an_error_elsewhere(disk: Disk, root: Folder) -> None:
    """A missing name is None to `look` and FileNotFoundError to every operation that needs the file."""
    assert disk.look(root, "a") is None
    assert refused(lambda: disk.read(root, "a", 1)) == errno.ENOENT
    assert refused(lambda: disk.open_append(root, "a")) == errno.ENOENT
    assert refused(lambda: disk.unlink(root, "a")) == errno.ENOENT


@posix_only
def test_folder_handle_never_writes_into_a_replacement_folder(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """With another folder at its path, a handle still means the old folder or is refused. It never means the new one
    (row E3).
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
def test_real_path_of_a_removed_folder_is_refused(tmp_path: Path) -> None:
    """A folder that no longer has a path gives none, and not an invented one."""
    disk = SystemDisk()
    (tmp_path / "gone").mkdir()
    folder = disk.open_folder(str(tmp_path / "gone"))
    (tmp_path / "gone").rmdir()
    assert refused(lambda: disk.real_path(folder)) == errno.ENOENT
    disk.close(folder)


def test_names_are_complete_and_sorted_from_several_threads(disk: Disk, root: Folder) -> None:
    """Names are sorted by code point, each time, also when threads list one handle at once."""
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
def test_write_over_the_size_limit_reports_a_short_write(tmp_path: Path) -> None:
    """A disk that takes fewer bytes than it was given says how many, and then that it is full (row J7, case 23)."""
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
def test_make_root_syncs_each_new_entry_into_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent of each new entry is synced, also in the next run after one was killed before its sync (row J4)."""
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
def test_descriptors_are_not_inherited_by_a_child(disk: Disk, root: Folder, tmp_path: Path) -> None:
    """Folders, files and locks are closed on exec: a child inherits none of them [I15] (row J11)."""
    file = disk.create(root, "a", 0o600)
    reader = disk.open_read(root, "a")
    lock = disk.lock(root, "lock")
    assert lock is not None
    our_descriptors = []
    for number in (int(name) for name in os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):
            if str(tmp_path) in os.readlink(f"/proc/self/fd/{number}"):
                our_descriptors.append(number)
    assert len(our_descriptors) >= 3
    assert not any(os.get_inheritable(number) for number in our_descriptors)
    lock.release()
    disk.close(file)
    disk.close(reader)
