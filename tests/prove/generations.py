"""L8: hypothesis chooses what happens, over several generations of crashes.

A generation opens the session, perhaps inspects and decides, perhaps works, perhaps has a second window open the same
session meanwhile, and then ends: in order, killed, or with power lost at an operation and in a way that is chosen. All
that was ever promised is promised for ever; each generation is judged before and after it opens.
"""

from __future__ import annotations

import anyio
import attrs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as some

from steadyhand.core.refusal import Refused
from steadyhand.core.views import Action
from steadyhand.session import house as houses
from tests.prove.decisions import decide
from tests.prove.lives import SCENE, SESSION, Stage, first_tree, life, many, reopened, seen
from tests.prove.power import states
from tests.prove.tally import Tally
from tests.prove.truth import Truth, broken_by_recovery, broken_on_disk, truths
from tests.support.sim_disk import SimDisk

generations_max = 5
states_max = 60
"""Among so many states a power loss chooses."""
owner_wait_s = 0.01

_works = (
    'write old.txt with "{}"',
    'write new.txt with "{}"',
    "replace one with two in edited.txt",
    "run count",
    "show notes.txt",
    "move old.txt to deep/older.txt",
    "move deep/older.txt to old.txt",
    "delete edited.txt",
)


@attrs.frozen
class Generation:
    works: tuple[int, ...]
    action: Action | None
    second_window: bool
    settle_asks: bool
    end: str  # "order" | "kill" | "power"
    at: float  # where in its log, 0 … 1
    which: int  # of the states then


_actions: some.SearchStrategy[Action | None] = some.sampled_from(
    ("confirm", "waive", "reject", "restore", "retry", None)
)
_generation = some.builds(
    Generation,
    some.lists(some.integers(0, len(_works) - 1), max_size=3).map(tuple),
    _actions,
    some.booleans(),
    some.booleans(),
    some.sampled_from(["order", "kill", "power", "power"]),
    some.floats(0, 1),
    some.integers(0, states_max - 1),
)


class _Broken(AssertionError):
    """A promise did not hold; hypothesis makes the story of it shorter."""


def live_and_die(tally: Tally, seed: int, lives: int) -> None:
    """So many histories; `states` counts generations."""
    wait, houses.owner_wait_s_max = houses.owner_wait_s_max, owner_wait_s
    last: list[str] = []

    @settings(
        max_examples=lives, database=None, deadline=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @with_seed(seed)
    @given(some.lists(_generation, min_size=2, max_size=generations_max))
    def history(generations: list[Generation]) -> None:
        last[:] = [str(generations)]
        _live(generations, tally)

    try:
        history()
    except _Broken as broken:
        tally.violation(str(broken), last[0])
    finally:
        houses.owner_wait_s_max = wait


def _live(generations: list[Generation], tally: Tally) -> None:
    disk, truth = SimDisk(first_tree()), Truth()
    for number, generation in enumerate(generations, 1):
        tally.states += 1
        begun = len(disk.log)
        anyio.run(_one, disk, generation, number)
        disk, truth = _end(disk, generation, truth, begun)
        _hold(broken_on_disk(SCENE, truth, seen(disk)))
    before = seen(disk)
    found = reopened(disk, 90)
    if found is None:
        _hold(["an acknowledged session cannot be opened"] if truth.created else [])
        return
    _hold(broken_by_recovery(SCENE, truth, before, seen(disk), found.ledger))
    _hold(broken_on_disk(SCENE, truth, seen(disk)))


def _hold(broken: list[str]) -> None:
    if broken:
        raise _Broken(broken[0])


def _end(disk: SimDisk, generation: Generation, truth: Truth, begun: int) -> tuple[SimDisk, Truth]:
    """The disk that the next generation finds, and what is promised by then."""
    if generation.end == "order":
        disk.die()
        return disk, truth
    prefix = begun + round((len(disk.log) - begun) * generation.at)
    known = truths(disk.log[:prefix], truth)[-1]
    if generation.end == "kill":
        return SimDisk.killed_after(disk, prefix), truth
    part = SimDisk(disk.first)
    part.log = disk.log[:prefix]
    found = None
    for number, state in enumerate(states(part, prefix, "sector", product=states_max)):
        found = state.tree
        if number == generation.which:
            break
    assert found is not None
    return SimDisk(found), known


async def _one(disk: SimDisk, generation: Generation, number: int) -> None:
    async with life(disk, number * 2, settle="ask" if generation.settle_asks else "checked") as stage:
        try:
            await stage.house.open(SESSION, 100)
        except Refused:
            if number > 1:
                return  # nothing of it was left, and the id is taken
            await _begin(stage)
        owner = await stage.house.owner(SESSION)
        if generation.second_window:
            await _look_from_elsewhere(disk, number * 2 + 1)
        if generation.action is not None:
            for attempt in owner.ledger.uncertain():
                await decide(stage, attempt.attempt_id, generation.action)
        lines = [_works[work].format(many(f"g{number}w{place}")) for place, work in enumerate(generation.works)]
        if lines and owner.works:
            await stage.say("\n".join(lines), f"p{number}")
            disk.mark("created")


async def _begin(stage: Stage) -> None:
    """The first generation of all gives the session its id."""
    ids = stage.house.world.ids
    new = ids.new
    first = [SESSION]
    ids.new = lambda: first.pop() if first else new()  # type: ignore[method-assign]  # only for its first id
    await stage.create()


async def _look_from_elsewhere(disk: SimDisk, number: int) -> None:
    """A second window must not get it, and must not write."""
    before = seen(disk)
    async with life(disk, number) as stage:
        view = (await stage.house.open(SESSION, 100)).session
        if view.read_only is None or view.read_only.reason != "owned":
            raise _Broken("a second window got a session that has an owner")
    if seen(disk).journal != before.journal:
        raise _Broken("a second window wrote")
