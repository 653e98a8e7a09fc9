"""L3: a real process, killed for real at each operation of the port, before, after and halfway through a write.

The story and what must hold after it are those of tests/crash; here each place has one life and those after it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from steadyhand.adapters.disk import system_disk
from tests.crash.promises import WORDS, Left, Story, keeps_promises, lay_out, lives_after, lives_without, tell_story
from tests.prove.tally import Tally
from tests.support.disks import CountingDisk, KillingDisk, Operation, When
from tests.support.turns import Place, forked

memory_disk = Path("/dev/shm")


def scratch() -> Path:
    """A new folder, in memory where there is such a file system."""
    return Path(tempfile.mkdtemp(prefix="steadyhand-prove-", dir=memory_disk if memory_disk.is_dir() else None))


def operations(folder: Path, story: Story = WORDS) -> list[Operation]:
    """All of the story, told unharmed."""
    place = lay_out(Place.under(folder / "unharmed"), story)

    async def life() -> list[Operation]:
        counting = CountingDisk(system_disk())
        async with story.life(place, 1, disk=counting) as house:
            await tell_story(house, story)
        return list(counting.operations)

    died = forked(life)
    assert died.value is not None
    return died.value


def kill_everywhere(tally: Tally, story: Story, part: int, parts: int, each: int = 1) -> None:
    """`states` counts lives that were killed. What comes before the first call is the same in every story."""
    folder = scratch()
    try:
        found = operations(folder, story)
        if story is not WORDS:
            found = found[next(at for at, one in enumerate(found) if "assistant" in one.kinds) :]
        for operation in found[part :: parts * each]:
            whens: list[When] = ["before", "after", "half"] if operation.verb == "write" else ["before", "after"]
            for when in whens:
                _one(folder, story, operation, when, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _one(folder: Path, story: Story, operation: Operation, when: When, tally: Tally) -> None:
    where = f"killed {when} operation {operation.number}: {operation}"
    place = lay_out(Place.under(folder / f"{operation.number}-{when}"), story)

    async def life() -> None:
        async with story.life(place, 1, disk=KillingDisk(system_disk(), operation.number, when)) as house:
            await tell_story(house, story)

    async def later() -> None:
        left = Left.of(place, has_jobs=story.has_jobs)
        if left.records:
            keeps_promises(left, await lives_after(place, story=story), story=story)
        else:
            await lives_without(place, story)

    died = forked(life)
    tally.states += 1
    if died.signal is None:
        tally.violation("a life was not killed", where)
    try:
        forked(later)
    except AssertionError as broken:
        tally.violation(f"a promise is broken: {str(broken).strip().splitlines()[-1][:150]}", where)
    shutil.rmtree(place.base, ignore_errors=True)
