"""Folders for tests that die or open very often: on a file system in memory if there is one, because a sync costs
nothing there. A crash of the process loses nothing that a sync would have kept.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

memory_disk = Path("/dev/shm")


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system in memory, if there is one."""
    if not memory_disk.is_dir():
        yield tmp_path
        return
    made = Path(tempfile.mkdtemp(prefix="steadyhand-", dir=memory_disk))
    yield made
    shutil.rmtree(made)
