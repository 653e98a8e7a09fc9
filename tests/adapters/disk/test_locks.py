"""The lock of the real disk proves that its holder is alive, and nothing else proves it [I15] (row J11)."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import lock_descriptor

from steadyhand.adapters.disk import locks
from steadyhand.adapters.disk.by_path import PathDisk
from steadyhand.adapters.disk.posix import SystemDisk
from steadyhand.ports.disk import Disk, Folder
from tests.support.systems import posix_only, refused, wait_s_max


@pytest.fixture(params=[SystemDisk, PathDisk], ids=["handles", "paths"])
def disk(request: pytest.FixtureRequest) -> Disk:
    made: Disk = request.param()
    return made


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> Iterator[Folder]:
    folder = disk.open_folder(str(tmp_path))
    yield folder
    disk.close(folder)


def test_lock_is_held_once_even_in_one_process(disk: Disk, root: Folder) -> None:
    """A second attempt in the same process gets None until the first lock is released [I15] (row J11)."""
    first = disk.lock(root, "owner.lock")
    assert first is not None
    assert disk.lock(root, "owner.lock") is None
    first.release()
    second = disk.lock(root, "owner.lock")
    assert second is not None
    first.release()
    assert disk.lock(root, "owner.lock") is None, "the second release of the first lock released the second lock"
    second.release()
    assert disk.names(root) == ["owner.lock"], "a marker file was left"


FORKING_HOLDER = """
import os, sys, time
from steadyhand.adapters.disk.posix import system_disk
disk = system_disk()
lock = disk.lock(disk.open_folder(sys.argv[1]), "owner.lock")
child = os.fork()
if child == 0:
    print("held" if lock else "not held", os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
sys.stdin.read()
"""


HOLDER = """
import subprocess, sys
from steadyhand.adapters.disk.posix import system_disk
disk = system_disk()
lock = disk.lock(disk.open_folder(sys.argv[1]), "owner.lock")
child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
print("held" if lock else "not held", child.pid, flush=True)
sys.stdin.read()
"""


@posix_only
@pytest.mark.parametrize("script", [HOLDER, FORKING_HOLDER], ids=["command", "fork"])
def test_lock_is_released_with_its_holder_and_not_with_its_children(
    disk: Disk, root: Folder, tmp_path: Path, script: str
) -> None:
    """While the holder lives nobody else gets the lock. After its SIGKILL the lock is free, although its child is still
    alive [I15] (row J11).
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    word, child = holder.stdout.readline().split()
    try:
        assert word == b"held"
        assert disk.lock(root, "owner.lock") is None
        holder.kill()
        holder.wait(wait_s_max)
        os.kill(int(child), 0)
        lock = disk.lock(root, "owner.lock")
        assert lock is not None
        lock.release()
    finally:
        os.kill(int(child), signal.SIGKILL)
        holder.kill()
        holder.communicate(timeout=wait_s_max)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, None])
def test_lock_on_a_file_system_without_locks_is_enolck(
    disk: Disk, root: Folder, monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    """A file system without such locks gives ENOLCK, and never a marker file [I15] (row J11)."""

    def no_locks(_descriptor: int, *, blocking: bool) -> bool:
        raise NotImplementedError if number is None else OSError(number, "no locks")

    monkeypatch.setattr(locks, "lock_descriptor", no_locks)
    assert refused(lambda: disk.lock(root, "owner.lock")) == errno.ENOLCK
    assert disk.names(root) == ["owner.lock"]


def test_lock_on_a_replaced_lock_file_is_refused(
    disk: Disk, root: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on a file that nobody else will find is no lock [I15] (row J11)."""

    def replace_then_lock(descriptor: int, *, blocking: bool) -> bool:
        (tmp_path / "owner.lock").unlink()
        (tmp_path / "owner.lock").write_bytes(b"")
        return lock_descriptor(descriptor, blocking=blocking)

    monkeypatch.setattr(locks, "lock_descriptor", replace_then_lock)
    assert refused(lambda: disk.lock(root, "owner.lock")) == errno.ESTALE
