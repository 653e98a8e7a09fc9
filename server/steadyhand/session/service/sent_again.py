"""Send a failed request again (case 114): the last turn's, as it was, in a turn of its own.

The new turn adds no user text, so its first request has the bytes of the one that failed. That holds for the last turn
of the conversation alone: after another prompt the request would be a different one.
"""

from __future__ import annotations

from steadyhand.domain.errors import invalid_params
from steadyhand.domain.records.prompt import Prompt
from steadyhand.session.session import Session
from steadyhand.session.turns.compaction import CAN_BE_SENT_AGAIN


def require_can_send_again(session: Session, sent: Prompt) -> None:
    """Raise Refused unless the named turn is the last one, its request failed, and the text is that of its prompt."""
    in_history = [turn for turn in session.ledger.turns.values() if turn.is_in_history]
    last = in_history[-1] if in_history else None
    is_rewound = last is not None and not session.ledger.has_conversation_of(last.turn_id)
    is_other_next = not session.can_begin_turn or any(not waiting.paused for waiting in session.queue())
    if last is None or is_rewound or last.turn_id != sent.again or is_other_next:
        raise invalid_params("$.again", "not the last turn, or another prompt waits")
    if last.ended is None or last.ended.reason not in CAN_BE_SENT_AGAIN:
        raise invalid_params("$.again", f"the turn did not end as {' or '.join(CAN_BE_SENT_AGAIN)}")
    if last.text != sent.text:
        raise invalid_params("$.text", "not the text of that turn")
