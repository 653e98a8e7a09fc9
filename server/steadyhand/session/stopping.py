"""Stopping a turn: recorded first, then done (row G8). No tool starts after the record."""

from __future__ import annotations

import anyio

from steadyhand.core.record import Cancel
from steadyhand.session.owner import Owner


async def stop_turn(owner: Owner, turn_id: str | None) -> bool:
    """Stop the running turn, whichever it is or that one; False if it does not run or is stopping already."""
    turn = owner.turn
    if turn is None or turn_id not in (None, turn.turn_id) or turn.stopping is not None:
        return False
    turn.stopping = "cancelled"
    with anyio.CancelScope(shield=True):  # once begun it is done, whoever asked for it
        await owner.append_or_show([Cancel(turn.turn_id)], barrier=True)
        turn.scope.cancel()
    return True
