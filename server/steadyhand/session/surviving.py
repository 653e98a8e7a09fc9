"""Ending what an uncertain command left running, on the person's request and no other (row E5).

Only processes that the attempt's latest inspection of this epoch showed are ended, each by its pid and start time: a
pid that was given again since is somebody else's. It settles nothing; a new inspection tells how things stand then.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.record import Notice, SurvivorFound
from steadyhand.core.refusal import Refused
from steadyhand.core.snapshot import inspected
from steadyhand.ports import Processes, Survivor
from steadyhand.session.jobs import end_each
from steadyhand.session.owner import Owner


@attrs.frozen
class EndedSurvivors:
    """`ended` are gone now, `left` still live; what was gone before is neither."""

    ended: int
    left: int


async def end_survivors(owner: Owner, attempt_id: str, inspection_id: str) -> EndedSurvivors:
    """Refused in this order: notOwner, journalBroken, attempt not known (staleSnapshot), inspectFirst."""
    attempt = _admit(owner, attempt_id, inspection_id)
    async with owner.settling:
        attempt = _admit(owner, attempt_id, inspection_id)
        processes, named = owner.world.processes, attempt.inspection.survivors if attempt.inspection is not None else ()
        found = await owner.world.in_thread(_living, processes, named)
        gone = await end_each(processes, found)
        if found:
            text = f"At the user's request {gone} of {len(found)} processes left of “{attempt.title}” were ended."
            await owner.append_or_show([Notice(owner.world.ids.new(), text, attempt.turn_id)], barrier=True)
    return EndedSurvivors(gone, len(found) - gone)


def _living(processes: Processes, found: Sequence[SurvivorFound]) -> list[Survivor]:
    """Without those that are gone by now, by themselves or by an earlier request: they are not ended again."""
    return [Survivor(one.pid, one.started, one.command) for one in found if processes.alive(one.pid)]


def _admit(owner: Owner, attempt_id: str, inspection_id: str) -> Attempt:
    owner.require_owned()
    attempt = owner.ledger.attempts.get(attempt_id)
    if attempt is None or attempt.stage not in ("uncertain", "checked", "closed"):
        revision = owner.snapshot().revision
        raise Refused("staleSnapshot", "There is no such uncertain effect; look again.", {"revision": revision})
    latest = attempt.inspection
    if latest is None or not inspected(attempt, owner.epoch) or latest.inspection_id != inspection_id:
        raise Refused("inspectFirst", "Inspect it first; only what the latest inspection found is ended.")
    return attempt
