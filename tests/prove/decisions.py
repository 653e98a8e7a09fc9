"""L1, continued: power loss at every moment of an inspection and of the decision that rests on it.

A story is killed directly after a body was entered, and after its effect; the next process leaves the doubt to the
person (`settle` "ask"), inspects, and confirms, rejects or waives. What was answered must be stored in every state, a
settlement never stands without its inspection, and never outlives the bytes it rests on (rows A4, A5, B3). A decision
with the epoch of an earlier life is refused.
"""

from __future__ import annotations

import anyio

from steadyhand.core.refusal import Refused
from steadyhand.core.views import Action
from steadyhand.session import resolving
from tests.prove.lives import SESSION, Stage, Story, life
from tests.prove.power_loss import Prover
from tests.prove.tally import Tally
from tests.prove.truth import Truth, truths
from tests.support.sim_disk import SimDisk

ACTIONS: tuple[Action, ...] = ("confirm", "waive", "reject")
after_body_operations = (0, 5, 8)
"""How many operations after a body's entry the process is killed."""


def decide_and_lose_power(story: Story, tally: Tally, part: int, parts: int) -> None:
    """Every decision on every effect of the story, and every state that power loss leaves of it."""
    disk = story.told()
    known = truths(disk.log)
    entered = [
        place
        for place, entry in enumerate(disk.log)
        if entry[0] == "mark" and isinstance(entry[1], tuple) and entry[1][0] == "ran"
    ]
    cases = [(place, more, action) for place in entered for more in after_body_operations for action in ACTIONS]
    for number, (place, more, action) in enumerate(cases):
        if number % parts == part:
            prefix = min(place + 1 + more, len(disk.log))
            marks = sum(entry[0] == "mark" for entry in disk.log[:prefix])
            where = f"{story.name}, killed after operation {prefix}, then {action}"
            _one(story, tally, SimDisk.killed_after(disk, prefix), known[marks], action, where)


def _one(story: Story, tally: Tally, disk: SimDisk, truth: Truth, action: Action, where: str) -> None:
    begun = len(disk.log)
    try:
        anyio.run(_decide, disk, action, tally, where)
    except Exception as error:
        tally.violation(f"a decision raises {type(error).__name__}: {error}", where)
        return
    prover = Prover(story.scene, tally)
    prover.every_state(disk, Truth(), where, "sector", after=begun, product=24, depth=2)


async def _decide(disk: SimDisk, action: Action, tally: Tally, where: str) -> None:
    async with life(disk, 2, settle="ask") as stage:
        await stage.house.open(SESSION, 100)
        owner = await stage.house.owner(SESSION)
        for attempt in owner.ledger.uncertain():
            await _stale_is_refused(stage, attempt.attempt_id, tally, where)
            looked = await resolving.resolve(owner, resolving.Wanted(attempt.attempt_id, "inspect", owner.epoch))
            assert looked.inspection is not None
            inspection_id = looked.inspection.inspection_id
            disk.mark(("answered", inspection_id))
            wanted = resolving.Wanted(attempt.attempt_id, action, owner.epoch, looked.snapshot.revision, inspection_id)
            try:
                await resolving.resolve(owner, wanted)
            except Refused as refused:
                if refused.kind != "inspectFirst":
                    raise
                continue
            disk.mark(("decided", attempt.attempt_id))


async def _stale_is_refused(stage: Stage, attempt_id: str, tally: Tally, where: str) -> None:
    owner = await stage.house.owner(SESSION)
    try:
        await resolving.resolve(owner, resolving.Wanted(attempt_id, "inspect", "f" * 32))
    except Refused as refused:
        if refused.kind == "staleEpoch":
            return
    tally.violation("a decision with a stale epoch is carried out", where)
