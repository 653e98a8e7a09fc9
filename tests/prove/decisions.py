"""L1, continued: power loss at every moment of an inspection and of the decision that rests on it.

A story is killed directly after a body was entered, and after its effect; the next process leaves the doubt to the
person (`settle` "ask"), inspects, and decides: confirm, reject, waive, restore, a restore that is undone again, retry,
or the model's own way out. What was answered must be stored in every state, a settlement never stands without its
inspection, and never outlives the bytes it rests on (rows A4, A5, B3, B5, F2). A decision with the epoch of an earlier
life is refused.
"""

from __future__ import annotations

import json
from typing import Literal

import anyio

from steadyhand.core.refusal import Refused
from steadyhand.core.views import Action
from steadyhand.session import resolving
from steadyhand.session.owner import Owner
from tests.prove.lives import SESSION, Stage, Story, life
from tests.prove.power_loss import Prover
from tests.prove.tally import Tally
from tests.prove.truth import Truth, truths
from tests.support.sim_disk import Entry, SimDisk

Decision = Literal["confirm", "waive", "reject", "restore", "undo", "retry", "model"]
DECISIONS: tuple[Decision, ...] = ("confirm", "waive", "reject", "restore", "undo", "retry", "model")
LAST = -1
after_body_operations = (0, 5, LAST)
"""How many operations after a body's entry the process is killed; `LAST`: right before its result is written."""
expected = ("inspectFirst", "notOffered", "retryUnsafe", "recoveryRequired")
"""A decision may be refused so: it is not offered, the world has changed since, or another doubt is in its way."""


def decide_and_lose_power(
    story: Story, tally: Tally, part: int, parts: int, decisions: tuple[Decision, ...] = DECISIONS,
    after: tuple[int, ...] = after_body_operations,
) -> None:  # fmt: skip
    """Every decision on every effect of the story, and every state that power loss leaves of it."""
    disk = story.told()
    known = truths(disk.log)
    entered = [
        place
        for place, entry in enumerate(disk.log)
        if entry[0] == "mark" and isinstance(entry[1], tuple) and entry[1][0] == "ran"
    ]
    cases = [(place, more, decision) for place in entered for more in after for decision in decisions]
    for number, (place, more, decision) in enumerate(cases):
        if number % parts == part:
            prefix = before_result(disk, place) if more == LAST else place + 1 + more
            marks = sum(entry[0] == "mark" for entry in disk.log[:prefix])
            where = f"{story.name}, killed after operation {prefix}, then {decision}"
            _one(story, tally, SimDisk.killed_after(disk, prefix), known[marks], decision, where)


def before_result(disk: SimDisk, entered: int) -> int:
    """The operation that writes the next result after a body was entered."""
    written = (at for at in range(entered, len(disk.log)) if b'"kind":"result"' in written_by(disk.log[at]))
    return next(written)


def written_by(entry: Entry) -> bytes:
    """The bytes of a write."""
    return entry[3] if entry[0] == "write" and isinstance(entry[3], bytes) else b""


def _one(story: Story, tally: Tally, disk: SimDisk, truth: Truth, decision: Decision, where: str) -> None:
    begun = len(disk.log)
    try:
        anyio.run(_decide, disk, decision, tally, where)
    except Exception as error:
        tally.violation(f"a decision raises {type(error).__name__}: {error}", where)
        return
    prover = Prover(story.scene, tally)
    prover.every_state(disk, Truth(), where, "sector", after=begun, product=24, depth=2)


async def _decide(disk: SimDisk, decision: Decision, tally: Tally, where: str) -> None:
    async with life(disk, 2, settle="ask") as stage:
        await stage.house.open(SESSION, 100)
        owner = await stage.owner()
        for attempt in owner.ledger.uncertain():
            await _stale_is_refused(owner, attempt.attempt_id, tally, where)
            match decision:
                case "model":
                    await stage.say(_way_out(attempt.attempt_id), "p2")
                case "undo":
                    if await decide(stage, attempt.attempt_id, "restore"):
                        restore = next(one for one in owner.ledger.attempts.values() if one.restore_of)
                        await decide(stage, restore.attempt_id, "restore")
                case _:
                    await decide(stage, attempt.attempt_id, decision)


async def decide(stage: Stage, attempt_id: str, action: Action) -> bool:
    """Inspect and decide; the log says what was answered. False: refused, as a decision may be."""
    owner = await stage.owner()
    try:
        looked = await resolving.resolve(owner, resolving.Wanted(attempt_id, "inspect", owner.epoch))
        assert looked.inspection is not None
        inspection_id = looked.inspection.inspection_id
        stage.disk.mark(("answered", inspection_id))
        wanted = resolving.Wanted(attempt_id, action, owner.epoch, looked.snapshot.revision, inspection_id)
        await resolving.resolve(owner, wanted)
    except Refused as refused:
        if refused.kind not in expected:
            raise
        return False
    if not owner.ledger.attempts[attempt_id].undoable:
        stage.disk.mark(("decided", attempt_id))
    return True


def _way_out(attempt_id: str) -> str:
    """What a model does about it, in one turn."""
    settlement = {"attemptId": attempt_id, "inspectionId": "<inspection>", "action": "confirm", "evidence": "I looked."}
    return f"inspect_effect {json.dumps({'attemptId': attempt_id})}\nsettle_effect {json.dumps(settlement)}"


async def _stale_is_refused(owner: Owner, attempt_id: str, tally: Tally, where: str) -> None:
    try:
        await resolving.resolve(owner, resolving.Wanted(attempt_id, "inspect", "f" * 32))
    except Refused as refused:
        if refused.kind == "staleEpoch":
            return
    tally.violation("a decision with a stale epoch is carried out", where)
