"""Check uncertain changes again when the editor opens, changes or saves their document (row V2).

An edit whose answer was lost, or whose document was closed at the restart, may be seen then. What the check proves is
settled as at the opening of a session; everything else stays as it is. Nothing is executed [I4].
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.recovery.tables import settle
from steadyhand.journal.journal import JournalBroken
from steadyhand.session.inspection.file_state import clear_and_check
from steadyhand.session.recovery.settlement_records import records_of_check_settlement
from steadyhand.session.session import Session


async def check_documents_again(sessions: Iterable[Session], path: str) -> None:
    """Check what is uncertain of the document with this path, in all sessions that this process owns."""
    for session in list(sessions):
        if _uncertain_at(session, path):
            await _check_again(session, path)


def _uncertain_at(session: Session, path: str) -> list[Attempt]:
    if not session.can_record:
        return []
    return [
        attempt
        for attempt in session.ledger.uncertain()
        if attempt.started is not None
        and any(one.buffer is not None and path in (one.buffer.path, one.resolved) for one in attempt.started.evidence)
    ]


async def _check_again(session: Session, path: str) -> None:
    context = session.context
    async with session.settling:
        for attempt in _uncertain_at(session, path):
            seen = await context.in_thread(clear_and_check, session.tool_context, session.ledger, attempt)
            gone = seen.fenced or seen.check == "satisfied"
            settled = settle(seen.check, gone, seen.durable, context.settings.settle)
            if settled is not None:
                with suppress(JournalBroken):
                    records = records_of_check_settlement(context.ids, attempt, settled, seen)
                    await session.log.append(records, barrier=True)
    session.feed.notify_changes()
