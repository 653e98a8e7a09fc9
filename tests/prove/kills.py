"""L3: a real process, really killed at each operation of the port, before, after and halfway through a write.

The scenario and what must hold after it are those of tests/crash; here each workspace has one killed process run and
those after it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from steadyhand.adapters.disk.posix import system_disk
from tests.crash.promises import (
    WORDS,
    Left,
    Scenario,
    keeps_promises,
    later_runs,
    lay_out,
    play_scenario,
    runs_without_session,
)
from tests.prove.tally import Tally
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import run_in_fork
from tests.support.workspace import Workspace

memory_disk = Path("/dev/shm")


def scratch() -> Path:
    """A new folder, on a file system in memory if there is one."""
    return Path(tempfile.mkdtemp(prefix="steadyhand-prove-", dir=memory_disk if memory_disk.is_dir() else None))


def operations(folder: Path, scenario: Scenario = WORDS) -> list[Operation]:
    """All operations of the scenario, played without a kill."""
    workspace = lay_out(Workspace.under(folder / "unharmed"), scenario)

    async def first_run() -> list[Operation]:
        counting = CountingDisk(system_disk())
        async with scenario.server(workspace, 1, disk=counting) as server:
            await play_scenario(server, scenario)
        return list(counting.operations)

    died = run_in_fork(first_run)
    assert died.value is not None
    return died.value


def kill_everywhere(tally: Tally, scenario: Scenario, part: int, parts: int, each: int = 1) -> None:
    """`states` counts process runs that were killed. What comes before the first call is the same in every scenario."""
    folder = scratch()
    try:
        found = operations(folder, scenario)
        if scenario is not WORDS:
            found = found[next(at for at, one in enumerate(found) if "assistant" in one.kinds) :]
        for operation in found[part :: parts * each]:
            whens: list[When] = ["before", "after", "half"] if operation.verb == "write" else ["before", "after"]
            for when in whens:
                _one(folder, scenario, operation, when, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one(folder: Path, scenario: Scenario, operation: Operation, when: When, tally: Tally) -> None:
    where = f"killed {when} operation {operation.number}: {operation}"
    workspace = lay_out(Workspace.under(folder / f"{operation.number}-{when}"), scenario)

    async def first_run() -> None:
        async with scenario.server(workspace, 1, disk=KillingDisk(system_disk(), operation.number, when)) as server:
            await play_scenario(server, scenario)

    async def later() -> None:
        left = Left.of(workspace, has_jobs=scenario.has_jobs)
        if left.records:
            keeps_promises(left, await later_runs(workspace, scenario=scenario), scenario=scenario)
        else:
            await runs_without_session(workspace, scenario)

    died = run_in_fork(first_run)
    tally.states += 1
    if died.signal is None:
        tally.violation("a process run was not killed", where)
    try:
        run_in_fork(later)
    except AssertionError as broken:
        tally.violation(f"a promise is broken: {str(broken).strip().splitlines()[-1][:150]}", where)
    shutil.rmtree(workspace.base, ignore_errors=True)
