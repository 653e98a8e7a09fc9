"""Steers of the running turn: its next request takes them (row S8).

Each becomes a message of the user behind the replies of the last answer. That is recorded before the request is made,
so the next request, and a restart, send the same bytes (T5).
"""

from __future__ import annotations

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Assistant, Taken, User
from steadyhand.domain.views.types import Steered
from steadyhand.journal.journal import JournalBroken
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session


async def take_steers(session: Session, turn: ActiveTurn) -> None:
    """Record that the request that is made next takes what waits for this turn.

    A turn that is being stopped takes nothing, and neither does one whose journal broke: it waits on, paused."""
    if not any(one.steers == turn.turn_id for one in session.ledger.queue.values()):
        return
    async with session.delivering:  # nobody edits or removes it meanwhile
        waiting = [one for one in session.ledger.queue.values() if one.steers == turn.turn_id]
        after = _last_message(session.ledger, turn.turn_id)
        records = [Taken(client_message_id=one.client_message_id, turn_id=turn.turn_id, after=after) for one in waiting]
        try:
            taken = await session.log.append(records, barrier=True, unless=lambda: turn.stopping is not None)
        except JournalBroken:
            return
        if not taken:
            return
        for one in waiting:
            session.feed.notify(turn.turn_id, Steered(one.client_message_id, one.text))
        session.feed.notify_queue()


def _last_message(ledger: Ledger, turn_id: str) -> str:
    """Return the id of the last answer of the history; of a turn without one, of its prompt."""
    for said in reversed(ledger.said):
        record, turn = said.record, ledger.turns.get(said.turn_id)
        if isinstance(record, User) and record.turn_id == turn_id:
            return record.message_id
        if isinstance(record, Assistant) and not record.withdrawn and turn is not None and turn.is_in_history:
            return record.message_id
    raise AssertionError("a turn that runs has its prompt in the history")
