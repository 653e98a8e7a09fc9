"""L8: hypothesis chooses what happens, over several generations of crashes.

A generation opens the session, may inspect and decide, may work, may have a second window open the same session
meanwhile, and then ends: in order, killed, or with a power loss at a chosen operation in a chosen way. A promise holds
forever; each generation is judged before and after it opens.
"""

from __future__ import annotations

import anyio
import attrs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as with_seed
from hypothesis import strategies as some

from steadyhand.domain.errors import Refused
from steadyhand.domain.views.types import Action
from steadyhand.session.service import acquire
from tests.prove.decisions import decide
from tests.prove.power import states
from tests.prove.simulated_server import (
    SCENE,
    SESSION,
    SimulatedServer,
    first_tree,
    many,
    reopened,
    seen,
    simulated_server,
)
from tests.prove.tally import Tally
from tests.prove.truth import Truth, broken_by_recovery, broken_on_disk, truths
from tests.support.sim_disk import SimDisk

generations_max = 5
states_max = 60
"""The number of states that a power loss chooses from."""
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
    """A promise did not hold; hypothesis shortens the history that shows it."""


def run_histories(tally: Tally, seed: int, histories: int) -> None:
    """This many histories; `states` counts generations."""
    wait, acquire.OWNER_WAIT_S_MAX = acquire.OWNER_WAIT_S_MAX, owner_wait_s
    last: list[str] = []

    @settings(
        max_examples=histories, database=None, deadline=None, suppress_health_check=list(HealthCheck),
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
        acquire.OWNER_WAIT_S_MAX = wait


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
    async with simulated_server(disk, number * 2, settle="ask" if generation.settle_asks else "checked") as server:
        try:
            await server.registry.open(SESSION, 100)
        except Refused:
            if number > 1:
                return  # nothing of it was left, and the id is taken
            await _begin(server)
        session = await server.registry.open_session(SESSION)
        if generation.second_window:
            await _open_in_second_window(disk, number * 2 + 1)
        if generation.action is not None:
            for attempt in session.ledger.uncertain():
                await decide(server, attempt.attempt_id, generation.action)
        lines = [_works[work].format(many(f"g{number}w{place}")) for place, work in enumerate(generation.works)]
        if lines and session.can_record:
            await server.turn("\n".join(lines), f"p{number}")
            disk.mark("created")


async def _begin(server: SimulatedServer) -> None:
    """The first generation of all gives the session its id."""
    ids = server.registry.context.ids
    new = ids.new
    first = [SESSION]
    ids.new = lambda: first.pop() if first else new()  # type: ignore[method-assign]  # only for its first id
    await server.create()


async def _open_in_second_window(disk: SimDisk, number: int) -> None:
    """A second window must not get the session, and must not write."""
    before = seen(disk)
    async with simulated_server(disk, number) as server:
        view = (await server.registry.open(SESSION, 100)).session
        if view.read_only is None or view.read_only.reason != "owned":
            raise _Broken("a second window got a session that another process holds")
    if seen(disk).journal != before.journal:
        raise _Broken("a second window wrote")
