"""Stop a turn: record the cancel, then cancel (row G8). No tool starts after the record. What waits is paused (S9)."""

from __future__ import annotations

import anyio

from steadyhand.domain.records.record import Cancel
from steadyhand.session.session import Session


async def stop_turn(session: Session, turn_id: str | None) -> bool:
    """Stop the running turn; with a `turn_id` only if it is that one. False if nothing was stopped."""
    turn = session.turn
    if turn is None or turn_id not in (None, turn.turn_id) or not turn.begin_stopping("cancelled"):
        return False
    if session.ready.pause(session.ledger):
        session.feed.notify_queue()
    with anyio.CancelScope(shield=True):  # it is finished even if the request for it is cancelled
        await session.log.append_or_show([Cancel(turn_id=turn.turn_id)], barrier=True)
        turn.scope.cancel()
    return True
