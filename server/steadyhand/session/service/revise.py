"""Revise: send another prompt in the place of an earlier one; what followed that one is gone (row S8).

One record replaces the turn, begins the new one and a new epoch, so a kill leaves the old conversation or the new one.
Files stay as they are; the model is told which of them were changed in what is gone. The queue waits.
"""

from __future__ import annotations

import attrs

from steadyhand.domain.errors import Refused, invalid_params
from steadyhand.domain.ledger.state import Turn
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Record, User
from steadyhand.domain.views.types import Revised
from steadyhand.session.changes.rewind import text_about_removed
from steadyhand.session.service.prompt_limits import require_valid
from steadyhand.session.service.prompt_queue import begin_recorded
from steadyhand.session.session import Session
from steadyhand.session.stored_messages import make_told, show_told


async def revise(session: Session, epoch: str, turn_id: str, client_message_id: str, text: str) -> Revised:
    """Replace a prompt durably and begin its turn. The attachments of the earlier prompt stay.

    Raise Refused in this order: a known id with another text, notOwner, journalBroken, turnRunning, staleEpoch, a turn
    that is not there."""
    sent = Prompt(text)
    require_valid(sent)
    async with session.delivering, session.settling:
        known = session.ledger.prompts.get(client_message_id)
        if known is not None:
            if known[1].text != text:
                raise invalid_params("$.clientMessageId", "already used for another text")
            return Revised(known[0], True, session.view())
        session.require_owned()
        if not session.can_begin_turn:
            running = {"turnId": session.turn.turn_id} if session.turn is not None else {}
            raise Refused("turnRunning", "A turn is running; wait for it or stop it.", running)
        session.require_epoch(epoch)
        target = session.ledger.turns.get(turn_id)
        if target is None or not target.is_in_history or not session.ledger.has_conversation_of(turn_id):
            raise invalid_params("$.turnId", "no such prompt, or it was rewound")
        if sent.command:
            raise invalid_params("$.text", "a slash command replaces no prompt")
        return await _replace(session, target, client_message_id, text)


async def _replace(session: Session, target: Turn, client_message_id: str, text: str) -> Revised:
    sent = attrs.evolve(target.prompt, text=text, again=None)
    new_epoch, turn_id = session.context.ids.new(), session.context.ids.new()
    turn = session.begin_turn(turn_id, client_message_id, sent)  # before anything waits: no queued prompt begins now
    user = User(
        turn_id=turn_id,
        message_id=session.context.ids.new(),
        client_message_id=client_message_id,
        text=text,
        attachments=sent.attachments,
        encoding=sent.encoding,
        replaces=target.turn_id,
        epoch=new_epoch,
    )
    try:
        about = await text_about_removed(session, target)
        told = make_told(session, "files", about) if about is not None else None
        records: list[Record] = [user, *([told] if told is not None else [])]
        await session.log.record_or_refuse(records)
    except BaseException:
        session.end_turn(turn_id)
        turn.ended.set()
        raise
    session.use_folders(session.tool_context, new_epoch)
    begin_recorded(session, turn)
    if told is not None:
        show_told(session, told)
    session.feed.notify_queue()
    return Revised(turn_id, False, session.view())
