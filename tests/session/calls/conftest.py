"""An uncertain write of a.txt from an earlier process run, for the tests of restore and retry."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.faults import carries, on
from tests.support.killed_runs import kill_in_turn
from tests.support.redo import OLD, WRITE
from tests.support.workspace import Workspace


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", OLD)
    return place


@pytest.fixture
def absent(place: Workspace) -> Workspace:
    """Killed right before the names were exchanged."""
    kill_in_turn(place, WRITE, on("exchange", "a.txt"))
    return place


@pytest.fixture
def present(place: Workspace) -> Workspace:
    """Killed right before the result."""
    kill_in_turn(place, WRITE, carries("result"))
    return place
