"""L1, continued: power loss at every moment of an inspection and of the decision that rests on it.

A scenario is killed right after a body was entered, and after its effect. The next process leaves the uncertain effect
to the user (`settle` "ask"), inspects, and decides: confirm, reject, waive, restore, a restore that is undone again,
retry, or a settlement by the model. What was answered must be stored in every state. A settlement is never there
without its inspection, and never outlives the bytes it rests on (rows A4, A5, B3, B5, F2). A decision with the epoch of
an earlier run is refused.
"""

from __future__ import annotations

import json
from typing import Literal

import anyio

from steadyhand.domain.errors import Refused
from steadyhand.domain.views.types import Action
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.prove.power_loss import Prover
from tests.prove.simulated_server import SESSION, Scenario, SimulatedServer, simulated_server
from tests.prove.tally import Tally
from tests.prove.truth import Truth, truths
from tests.support.sim_disk import Entry, SimDisk

Decision = Literal["confirm", "waive", "reject", "restore", "undo", "retry", "model"]
DECISIONS: tuple[Decision, ...] = ("confirm", "waive", "reject", "restore", "undo", "retry", "model")
LAST = -1
after_body_operations = (0, 5, LAST)
"""Operations after the entry of a body at which the process is killed; `LAST`: right before its result."""
expected = ("inspectFirst", "notOffered", "retryUnsafe", "recoveryRequired")
"""Expected refusals of a decision: it is not offered, the files have changed since, or another effect holds it back."""


def decide_and_lose_power(
    scenario: Scenario, tally: Tally, part: int, parts: int, decisions: tuple[Decision, ...] = DECISIONS,
    after: tuple[int, ...] = after_body_operations,
) -> None:  # fmt: skip
    """Every decision on every effect of the scenario, and every state that a power loss leaves of it."""
    disk = scenario.played()
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
            where = f"{scenario.name}, killed after operation {prefix}, then {decision}"
            _one(scenario, tally, SimDisk.killed_after(disk, prefix), known[marks], decision, where)


def before_result(disk: SimDisk, entered: int) -> int:
    """The operation that writes the next result after a body was entered."""
    written = (at for at in range(entered, len(disk.log)) if b'"kind":"result"' in written_by(disk.log[at]))
    return next(written)


def written_by(entry: Entry) -> bytes:
    """The bytes of a write."""
    return entry[3] if entry[0] == "write" and isinstance(entry[3], bytes) else b""


def _one(scenario: Scenario, tally: Tally, disk: SimDisk, truth: Truth, decision: Decision, where: str) -> None:
    begun = len(disk.log)
    try:
        anyio.run(_decide, disk, decision, tally, where)
    except Exception as error:
        tally.violation(f"a decision raises {type(error).__name__}: {error}", where)
        return
    prover = Prover(scenario.scene, tally)
    prover.every_state(disk, Truth(), where, "sector", after=begun, product=24, depth=2)


async def _decide(disk: SimDisk, decision: Decision, tally: Tally, where: str) -> None:
    async with simulated_server(disk, 2, settle="ask") as server:
        await server.registry.open(SESSION, 100)
        session = await server.main_session()
        for attempt in session.ledger.uncertain():
            await _stale_is_refused(session, attempt.attempt_id, tally, where)
            match decision:
                case "model":
                    await server.turn(_settling_prompt(attempt.attempt_id), "p2")
                case "undo":
                    if await decide(server, attempt.attempt_id, "restore"):
                        restore = next(one for one in session.ledger.attempts.values() if one.restore_of)
                        await decide(server, restore.attempt_id, "restore")
                case _:
                    await decide(server, attempt.attempt_id, decision)


async def decide(server: SimulatedServer, attempt_id: str, action: Action) -> bool:
    """Inspect and decide; the log says what was answered. False: the decision was refused with an expected kind."""
    session = await server.main_session()
    try:
        looked = await resolve(session, ResolutionRequest(attempt_id, "inspect", session.epoch))
        assert looked.inspection is not None
        inspection_id = looked.inspection.inspection_id
        server.disk.mark(("answered", inspection_id))
        wanted = ResolutionRequest(attempt_id, action, session.epoch, looked.snapshot.revision, inspection_id)
        await resolve(session, wanted)
    except Refused as refused:
        if refused.kind not in expected:
            raise
        return False
    if not session.ledger.attempts[attempt_id].is_undoable:
        server.disk.mark(("decided", attempt_id))
    return True


def _settling_prompt(attempt_id: str) -> str:
    """What the model does about the effect, in one turn."""
    settlement = {"attemptId": attempt_id, "inspectionId": "<inspection>", "action": "confirm", "evidence": "I looked."}
    return f"inspect_effect {json.dumps({'attemptId': attempt_id})}\nsettle_effect {json.dumps(settlement)}"


async def _stale_is_refused(session: Session, attempt_id: str, tally: Tally, where: str) -> None:
    try:
        await resolve(session, ResolutionRequest(attempt_id, "inspect", "f" * 32))
    except Refused as refused:
        if refused.kind == "staleEpoch":
            return
    tally.violation("a decision with a stale epoch is carried out", where)
