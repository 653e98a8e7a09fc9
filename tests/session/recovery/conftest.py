"""An uncertain write of a.txt from an earlier process run, for the tests of its recovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.faults import carries
from tests.support.killed_runs import kill_in_turn
from tests.support.redo import NEW, OLD, WRITE
from tests.support.workspace import Workspace


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """The intended content is in the file, and its result was not recorded."""
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", OLD)
    kill_in_turn(place, WRITE, carries("result"))
    assert place.files() == {"a.txt": NEW}
    return place
