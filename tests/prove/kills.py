"""L3: a real process, killed for real at each operation of the port, before, after and halfway through a write.

The story and what must hold after it are those of tests/crash; here each place has one life and those after it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from steadyhand.adapters.disk import system_disk
from tests.crash.promises import Left, keeps_promises, lay_out, lives_after, lives_without, tell_story
from tests.prove.tally import Tally
from tests.support.disks import CountingDisk, KillingDisk, Operation, When
from tests.support.turns import Place, forked, rig

memory_disk = Path("/dev/shm")


def scratch() -> Path:
    """A new folder, in memory where there is such a file system."""
    return Path(tempfile.mkdtemp(prefix="steadyhand-prove-", dir=memory_disk if memory_disk.is_dir() else None))


def operations(folder: Path) -> list[Operation]:
    """All of the story, told unharmed."""
    place = lay_out(Place.under(folder / "unharmed"))

    async def life() -> list[Operation]:
        counting = CountingDisk(system_disk())
        async with rig(place, disk=counting) as house:
            await tell_story(house)
        return list(counting.operations)

    died = forked(life)
    assert died.value is not None
    return died.value


def kill_everywhere(tally: Tally, part: int, parts: int, each: int = 1) -> None:
    """`states` counts lives that were killed."""
    folder = scratch()
    try:
        found = operations(folder)
        for operation in found[part :: parts * each]:
            whens: list[When] = ["before", "after", "half"] if operation.verb == "write" else ["before", "after"]
            for when in whens:
                _one(folder, operation, when, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one(folder: Path, operation: Operation, when: When, tally: Tally) -> None:
    where = f"killed {when} operation {operation.number}: {operation}"
    place = lay_out(Place.under(folder / f"{operation.number}-{when}"))

    async def life() -> None:
        async with rig(place, disk=KillingDisk(system_disk(), operation.number, when)) as house:
            await tell_story(house)

    async def later() -> None:
        left = Left.of(place)
        if left.records:
            keeps_promises(left, await lives_after(place))
        else:
            await lives_without(place)

    died = forked(life)
    tally.states += 1
    if died.signal is None:
        tally.violation("a life was not killed", where)
    try:
        forked(later)
    except AssertionError as broken:
        tally.violation(f"a promise is broken: {str(broken).strip().splitlines()[-1][:150]}", where)
    shutil.rmtree(place.base, ignore_errors=True)
