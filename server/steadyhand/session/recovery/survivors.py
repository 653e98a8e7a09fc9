"""End processes that an uncertain command left running, only at the user's request (row E5).

Only processes that the attempt's latest inspection of this epoch showed are ended, each by its pid and start time: a
pid that was reused belongs to another program. This settles nothing; a new inspection says how the effect is then.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Notice, SurvivorFound
from steadyhand.domain.views.recovery_snapshot import is_inspected
from steadyhand.ports.processes import OrphanProcess, Processes
from steadyhand.session.jobs.jobs import end_each
from steadyhand.session.session import Session
from steadyhand_values import frozen


@frozen
class EndedOrphans:
    """`ended` are gone now, `left` still run. Processes that were gone before count as neither."""

    ended: int
    left: int


async def end_survivors(session: Session, attempt_id: str, inspection_id: str) -> EndedOrphans:
    """End them. Raise Refused in this order: notOwner, journalBroken, staleSnapshot (no such attempt), inspectFirst."""
    attempt = _validate(session, attempt_id, inspection_id)
    async with session.settling:
        attempt = _validate(session, attempt_id, inspection_id)
        processes, named = (
            session.context.processes,
            attempt.inspection.survivors if attempt.inspection is not None else (),
        )
        found = await session.context.in_thread(_still_living, processes, named)
        gone = await end_each(processes, found)
        if found:
            text = (
                f"At the user's request, Steadyhand ended {gone} of {len(found)} processes left by “{attempt.title}”."
            )
            await session.log.append_or_show(
                [Notice(message_id=session.context.ids.new(), text=text, turn_id=attempt.turn_id)], barrier=True
            )
    return EndedOrphans(gone, len(found) - gone)


def _still_living(processes: Processes, found: Sequence[SurvivorFound]) -> list[OrphanProcess]:
    """Return those that still run; one that is gone is not ended again."""
    return [OrphanProcess(one.pid, one.started, one.command) for one in found if processes.alive(one.pid)]


def _validate(session: Session, attempt_id: str, inspection_id: str) -> Attempt:
    session.require_owned()
    attempt = session.ledger.attempts.get(attempt_id)
    if attempt is None or attempt.stage not in ("uncertain", "checked", "closed"):
        revision = session.snapshot().revision
        raise Refused("staleSnapshot", "There is no such uncertain effect; list them again.", {"revision": revision})
    latest = attempt.inspection
    if latest is None or not is_inspected(attempt, session.epoch) or latest.inspection_id != inspection_id:
        raise Refused("inspectFirst", "Inspect it first; only processes that the latest inspection found can be ended.")
    return attempt
