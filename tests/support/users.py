"""Other users of the system: only root can become them or give files to them.

A test as another user runs in a fork, because nobody becomes root again. pytest's own folders belong to root alone, so
such a test works in a folder of its own below /tmp.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.forks import run_in_fork

T = TypeVar("T")

NOBODY = 65534
OTHER = 64321
"""A user that no test runs as."""
is_root = sys.platform != "win32" and os.geteuid() == 0
root_only = pytest.mark.skipif(not is_root, reason="only root can become somebody else, or give a file away")
USERS = [os.geteuid(), *([NOBODY] if is_root else [])] if sys.platform != "win32" else []
"""The users that a test can run as: its own, and for root an ordinary one."""


def run_as(user: int, act: Callable[[], T]) -> T:
    """Run in a fork as this user, without further groups, and return the value (pickled)."""

    async def work() -> T:
        if user != os.geteuid():
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        return act()

    return run_in_fork(work).value  # type: ignore[return-value] # no signal ended it


def shared_folder() -> Iterator[Path]:
    """A folder below /tmp that every user can enter and only this one can change; for a fixture."""
    folder = Path(tempfile.mkdtemp(prefix="steadyhand-", dir="/tmp")).resolve()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def give(path: Path, user: int) -> None:
    """Give a file, a link or a folder with all that is in it to a user."""
    for each in [path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else [])]:
        os.chown(each, user, user, follow_symlinks=False)
