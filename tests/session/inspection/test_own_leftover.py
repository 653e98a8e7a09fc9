"""A temporary file of ours that an opening cannot remove is named as ours, and never as somebody's save (case 168)."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from tests.support.faults import MatchingFault, Operation
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import kill_in_turn
from tests.support.redo import NEW, OLD, WRITE, inspect_attempt, notices, open_attempt, settlements
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


def removes_temporary(operation: Operation) -> bool:
    return operation.verb == "unlink" and operation.target.endswith(".steadyhand")


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """The names are exchanged, and the displaced old content was not removed."""
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", OLD)
    kill_in_turn(place, WRITE, removes_temporary)
    assert sorted(place.files().values()) == [NEW, OLD]
    return place


def temporary(place: Workspace) -> str:
    (name,) = (name for name in place.files() if name.endswith(".steadyhand"))
    return name


def read_only() -> MatchingFault:
    return MatchingFault(system_disk(), removes_temporary, errno.EROFS, times=None)


async def test_opening_in_a_read_only_folder_settles_and_names_its_own_file(place: Workspace) -> None:
    """Case 168, B3: the change is there, whatever else is in the folder; the notice names what to remove."""
    async with practice_server(place, run=2, disk=read_only()) as harness:
        session, attempt = await open_attempt(harness)
        assert settlements(place) == [(attempt.attempt_id, "checked_present")]
        assert attempt.result is not None
        assert attempt.result.kept == ()
        told = " ".join(notices(session))
        assert f"its temporary file {temporary(place)} could not be removed" in told
        assert "save" not in told
    assert sorted(place.files().values()) == [NEW, OLD]


async def test_inspection_in_a_read_only_folder_names_its_own_file(place: Workspace) -> None:
    """Case 168, A4: the check is that of the path alone."""
    async with practice_server(place, run=2, settle="ask", disk=read_only()) as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.check == "satisfied"
        seen = await inspect_attempt(session, attempt)
        assert (seen.check, seen.paths[0].check) == ("satisfied", "satisfied")
        assert f"its temporary file {temporary(place)} could not be removed" in seen.text
        assert "save" not in seen.text


@pytest.mark.parametrize("folder", ["read-only", "writable"])
async def test_somebody_s_content_under_our_name_stays_a_save(place: Workspace, folder: str) -> None:
    """Case 168, W9: content that is neither old nor new is somebody's save, in a read-only folder too; it is kept."""
    name = temporary(place)
    place.write(name, "saved\n")
    disk = read_only() if folder == "read-only" else system_disk()
    async with practice_server(place, run=2, disk=disk) as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.uncertain
        assert attempt.result is not None
        assert attempt.result.kept == (name,)
        seen = await inspect_attempt(session, attempt)
        assert seen.check == "conflict"
        assert f"a concurrent save is kept as {name}" in seen.text
    assert place.files()[name] == "saved\n"
