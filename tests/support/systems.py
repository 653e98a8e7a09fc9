"""Helpers of tests on the real system: marks, a fork, and the errno of a refusal."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.ports.disk import Disk, Folder
from tests.support.tools import in_ci

wait_s_max = 60.0
NOBODY = 65534

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="modes, links and pipes as POSIX has them")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")


def put(disk: Disk, root: Folder, name: str, content: bytes, mode: int = 0o600) -> None:
    file = disk.create(root, name, mode)
    assert disk.write(file, content) == len(content)
    disk.close(file)


def refused(act: Callable[[], object]) -> int | None:
    """The errno with which the action fails; an action that succeeds fails the test."""
    try:
        act()
    except OSError as trouble:
        return trouble.errno
    return pytest.fail("nothing was refused")


def in_a_fork(act: Callable[[], int]) -> int:
    """Run in a process of its own; its exit code, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = act()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def mounted_at(folder: Path, goal: Path) -> Iterator[Path]:
    """The folder at a second path, without a link; for a fixture. Skips where this user may not mount."""
    goal.mkdir()
    yield from bound_to(folder, goal)


def bound_to(source: Path, goal: Path) -> Iterator[Path]:
    """A file or folder over another one that exists, by a bind mount. Skips where this user may not mount."""
    made = subprocess.run(["mount", "--bind", str(source), str(goal)], capture_output=True, timeout=30, check=False)
    if made.returncode != 0:
        pytest.skip("this user may not mount")
    try:
        yield goal
    finally:
        subprocess.run(["umount", str(goal)], timeout=30, check=True)


@contextmanager
def append_only(path: Path) -> Iterator[None]:
    """A file or folder that can only be appended to. Skips where the system or this user cannot do that."""
    made = subprocess.run(["chattr", "+a", str(path)], capture_output=True, timeout=30, check=False)
    if made.returncode != 0:
        pytest.skip("this user or this file system has no append-only files")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-a", str(path)], timeout=30, check=True)


def as_nobody(act: Callable[[], int]) -> int:
    """Run in a process of its own, which is an ordinary user; its exit code. Skips for anybody but root."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")

    def become_and_act() -> int:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return act()

    return in_a_fork(become_and_act)


def access_list(user: int) -> bytes:
    """A POSIX access list, as Linux stores it: owner rw, this user rw, group r, mask rw, others none."""
    entries = [(0x01, 6, 0xFFFFFFFF), (0x02, 6, user), (0x04, 4, 0xFFFFFFFF)]
    entries += [(0x10, 6, 0xFFFFFFFF), (0x20, 0, 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def require_sandbox(kind: str = "bubblewrap") -> None:
    """Skip the test where this system cannot confine a command so; in CI that is a failure."""
    found = SystemProcesses().sandbox.probe(())
    if found.kind == kind or (kind == "landlock" and found.landlock_abi > 0):
        return
    if in_ci():
        pytest.fail(f"no {kind} here: {found.why}")
    pytest.skip(f"no {kind} here: {found.why}")
