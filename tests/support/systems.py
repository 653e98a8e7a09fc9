"""What tests of the real system share: marks, a fork, and the errno of a refusal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from steadyhand.ports import Disk, Folder

wait_s_max = 20.0

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="modes, links and pipes as POSIX has them")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has it")


def put(disk: Disk, root: Folder, name: str, content: bytes, mode: int = 0o600) -> None:
    file = disk.create(root, name, mode)
    assert disk.write(file, content) == len(content)
    disk.close(file)


def refused(act: Callable[[], object]) -> int | None:
    """The errno an act is refused with; not to be refused is a failure."""
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
