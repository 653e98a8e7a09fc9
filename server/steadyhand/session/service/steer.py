"""Steer: a text for the turn that runs, which its next request takes (row S8).

The text is durable before it is acknowledged, and known by its client message id as a prompt is. It waits in the queue,
before the prompts. It begins no turn while its turn runs. If the turn ends as done without taking it, it is the next
prompt; after any other end it stays in the queue, paused.
"""

from __future__ import annotations

from steadyhand.domain.errors import invalid_params
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Steer
from steadyhand.domain.views.types import Steering
from steadyhand.session.service.prompt_limits import (
    COMMANDS_WHILE_STEERING,
    require_can_steer,
    require_short,
    require_valid,
)
from steadyhand.session.service.prompt_queue import answer_beside, start_next
from steadyhand.session.session import Session

STEERS_WAITING_MAX = 20
"""Steers in the queue of a session that no request has taken."""


async def steer(session: Session, epoch: str, turn_id: str, client_message_id: str, text: str) -> Steering:
    """Accept a text for a turn durably.

    Raise Refused in this order: a known id with another text, notOwner, journalBroken, staleEpoch, a turn that is not
    there, a slash command other than `/stop` and `/recovery`, too many steers."""
    sent = Prompt(text)
    require_valid(sent)
    require_short(text)
    async with session.delivering:
        known = session.ledger.prompts.get(client_message_id)
        if known is not None:
            if known[1].text != text:
                raise invalid_params("$.clientMessageId", "already used for another text")
            return Steering(True, _was_left(session, turn_id, client_message_id))
        session.require_owned()
        session.require_epoch(epoch)
        if turn_id not in session.ledger.turns or not session.ledger.has_conversation_of(turn_id):
            raise invalid_params("$.turnId", "no such turn, or it was rewound")
        if text.split(maxsplit=1)[0] in COMMANDS_WHILE_STEERING:
            await answer_beside(session, client_message_id, sent)
            return Steering(False, False)
        require_can_steer(text)
        if sum(one.steers is not None for one in session.ledger.queue.values()) >= STEERS_WAITING_MAX:
            raise invalid_params("$.text", f"{STEERS_WAITING_MAX} texts for a turn are waiting already")
        return await _wait(session, turn_id, client_message_id, text)


async def _wait(session: Session, turn_id: str, client_message_id: str, text: str) -> Steering:
    record = Steer(
        turn_id=turn_id,
        message_id=session.context.ids.new(),
        client_message_id=client_message_id,
        text=text,
    )
    await session.log.record_or_refuse([record])
    has_ended = not session.live.runs(turn_id)
    if has_ended:  # before the record or meanwhile, so nothing will take it
        session.release_steers(turn_id)
    session.feed.notify_queue()
    if has_ended:
        await start_next(session)
    return Steering(False, has_ended)


def _was_left(session: Session, turn_id: str, client_message_id: str) -> bool:
    """Return whether the turn has ended without taking what was sent under this id, and that is a prompt now."""
    waiting = session.ledger.queue.get(client_message_id)
    if waiting is not None:
        return waiting.steers is None or not session.live.runs(waiting.steers)
    begun = session.ledger.turns.get(session.ledger.prompts[client_message_id][0])
    return begun is not None and begun.turn_id != turn_id and not begun.command
