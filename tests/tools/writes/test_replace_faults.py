"""The replacement of a file, with a fault or a kill at each of its operations (rows W4, W5, W9).

`assert_old_or_new` (tests/support/replacements.py) states what must hold.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.record import Check
from steadyhand.ports.disk import File, Folder
from steadyhand.tools.contract import ToolOutcome
from tests.support.faults import FaultDisk, LateFault, WatchedDisk, between
from tests.support.replacements import assert_old_or_new, carry_out, crash_from, workspaces


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("number_of_error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("for_good", [False, True])
def test_replace_with_a_fault_at_any_operation_leaves_old_or_new(
    tmp_path: Path, existed: bool, number_of_error: int, for_good: bool
) -> None:
    """W6, W9, cases 32 and 61: after any fault the check is correct, and leftovers can be removed."""
    seen: set[Check] = set()
    for number, workspace in workspaces(tmp_path, existed):
        disk = FaultDisk(system_disk(), number, number_of_error, for_good)
        outcome, evidence = carry_out(workspace, disk)
        if not disk.failed:
            break
        seen.add(assert_old_or_new(workspace, outcome, evidence))
    assert seen == {"unchanged", "satisfied"}


@pytest.mark.parametrize("existed", [True, False])
def test_replace_operation_done_but_reported_failed_is_settled_by_the_check(tmp_path: Path, existed: bool) -> None:
    """W6, case 32: the check decides about an operation that was done and reported as failed."""
    seen: set[Check] = set()
    for number, workspace in workspaces(tmp_path, existed):
        disk = LateFault(system_disk(), number)
        outcome, evidence = carry_out(workspace, disk)
        seen.add(assert_old_or_new(workspace, outcome, evidence))
        if disk.count < number:
            break
    assert seen == {"unchanged", "satisfied"}


@pytest.mark.parametrize("then", [None, errno.ENOSPC])
def test_replace_completes_short_writes_or_replaces_nothing(tmp_path: Path, then: int | None) -> None:
    """J7, case 61: a short write is continued. One that is followed by a full disk leaves the old content."""
    _, workspace = next(workspaces(tmp_path, True))
    disk = FaultDisk(system_disk(), 1, "short", for_good=True, then=then)
    disk.matches = lambda operation: operation.verb == "write" and not disk.failed
    outcome, evidence = carry_out(workspace, disk)
    assert disk.failed
    assert assert_old_or_new(workspace, outcome, evidence) == ("satisfied" if then is None else "unchanged")


@pytest.mark.parametrize("existed", [True, False])
def test_replace_killed_at_any_operation_leaves_old_or_new(tmp_path: Path, existed: bool) -> None:
    """W2, W9, B3: whatever operation was the last, recovery finds the old or the new content and removes the temporary
    file.
    """
    seen: set[Check] = set()
    for number, workspace in workspaces(tmp_path, existed):
        crashed: list[int] = []
        outcome, evidence = carry_out(workspace, between(crash_from(number, crashed)))
        seen.add(assert_old_or_new(workspace, outcome, evidence))
        if not crashed:
            break
    assert seen == {"unchanged", "satisfied"}


def test_replace_without_exchange_leaves_old_or_new(tmp_path: Path) -> None:
    """W9: without the exchange the file is still old or new at each fault."""

    class NoExchange(FaultDisk):
        def exchange(self, folder: Folder, first: str, second: str) -> bool:
            return False

    seen: set[Check] = set()
    for number, workspace in workspaces(tmp_path, True):
        disk = NoExchange(system_disk(), number, errno.EIO)
        outcome, evidence = carry_out(workspace, disk)
        seen.add(assert_old_or_new(workspace, outcome, evidence))
        if not disk.failed:
            break
    assert seen == {"unchanged", "satisfied"}


@pytest.mark.parametrize("drop", [0, 5])
def test_replace_on_a_disk_that_drops_bytes_replaces_nothing(tmp_path: Path, drop: int) -> None:
    """W5, case 34: a disk that keeps nothing, or half, and reports success is detected before the exchange."""

    class DroppingDisk(WatchedDisk):
        def write(self, file: File, piece: bytes) -> int:
            super().write(file, piece[:drop])
            return len(piece)

    _, workspace = next(workspaces(tmp_path, True))
    outcome, evidence = carry_out(workspace, DroppingDisk(system_disk()))
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.reason) == ("failed", "not_written")
    assert assert_old_or_new(workspace, outcome, evidence) == "unchanged"
