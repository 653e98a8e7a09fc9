"""Delivery of prompts: durable before acknowledged, at most once, in order, paused after a crash (rows D1, S4).

A prompt begins a turn with its `user` record if nothing runs; otherwise it waits in the journal as a `queue` record
until its turn begins. What waits is paused by a stop, a close and a new epoch until the queue is resumed (row S9).
Resending is always safe: a known client message id is acknowledged again and runs nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import anyio
import attrs

from steadyhand.domain.errors import Refused, invalid_params
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Queue, User
from steadyhand.domain.views.types import Began, CompactResult, QueuedView
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.cancel import stop_turn
from steadyhand.session.service import compaction, slash_commands
from steadyhand.session.service.prompt_limits import require_can_steer, require_valid
from steadyhand.session.service.sent_again import require_can_send_again
from steadyhand.session.service.session_settings import first_title
from steadyhand.session.service.titles import ask_for_title
from steadyhand.session.session import Session
from steadyhand.session.turns.loop import run_turn
from steadyhand_values import frozen

QUEUE_LENGTH_MAX = 100

TurnState = Literal["queued", "running", "parked", "ended", "interrupted"]


@frozen
class Accepted:
    """A prompt that is durable. `queued`: it waits for its turn."""

    turn_id: str
    duplicate: bool
    queued: bool


@frozen
class StatusView:
    """How far a prompt has come. `known` False: the session never accepted it."""

    known: bool
    turn_id: str | None = None
    state: TurnState | None = None
    reason: str | None = None


async def submit(session: Session, epoch: str | None, client_message_id: str, sent: str | Prompt) -> Accepted:
    """Accept a prompt durably.

    Raise Refused in this order: a known id with another prompt, notOwner, journalBroken, staleEpoch.
    `sent` as a text: without attachments, and no quick question.
    """
    sent = Prompt(sent) if isinstance(sent, str) else sent
    require_valid(sent)
    async with session.delivering:
        known = session.ledger.prompts.get(client_message_id)
        if known is not None:
            if known[1] != sent:
                other = "text" if known[1].text != sent.text else "prompt, of the same text"
                raise invalid_params("$.clientMessageId", f"already used for another {other}")
            return Accepted(known[0], True, client_message_id in session.ledger.queue)
        session.require_owned()
        if epoch is not None:
            session.require_epoch(epoch)
        return await _accept(session, client_message_id, sent)


def status_of(session: Session, client_message_id: str) -> StatusView:
    """Return how far a prompt has come, by its client message id (row D2)."""
    known = session.ledger.prompts.get(client_message_id)
    if known is None:
        return StatusView(False)
    turn_id = known[0]
    if (waiting := session.ledger.queue.get(client_message_id)) is not None:
        return StatusView(True, waiting.steers or turn_id, "queued")
    if session.turn is not None and session.turn.turn_id == turn_id:
        return StatusView(True, turn_id, "parked" if session.turn.is_parked else "running")
    turn = session.ledger.turns.get(turn_id)
    if turn is None:  # taken out of the queue
        return StatusView(True, turn_id, "ended", "cancelled")
    if turn.ended is not None:
        return StatusView(True, turn_id, "ended", turn.ended.reason)
    return StatusView(True, turn_id, "running" if session.live.runs(turn_id) else "interrupted")


async def cancel(session: Session, turn_id: str | None) -> bool:
    """Stop the running turn (None: whichever runs) or remove a queued prompt. It is recorded first (row G8)."""
    if await stop_turn(session, turn_id):
        return True
    session.require_owned()
    for item in list(session.ledger.queue.values()):
        if item.turn_id == turn_id:
            removed = _queue_record(item.turn_id, item.client_message_id, Prompt(item.text), removed=True)
            await session.log.record_or_refuse([removed])
            session.feed.notify_queue()
            session.feed.wake_waiters_of_removed(item.turn_id)
            return True
    return False


async def edit_queue(
    session: Session, client_message_id: str, text: str | None, remove: bool
) -> tuple[QueuedView, ...]:
    """Change or remove a prompt that waits; one that has begun does not wait (row S4)."""
    if (text is None) == (not remove):
        raise invalid_params("$.text", "give either a text or remove")
    session.require_owned()
    async with session.delivering:
        waiting = session.ledger.queue.get(client_message_id)
        if waiting is None:
            raise invalid_params("$.clientMessageId", "no prompt with this id is waiting")
        if text is not None:
            require_valid(attrs.evolve(waiting.prompt, text=text))
            if waiting.steers is not None:
                require_can_steer(text)
        new = Prompt(waiting.text if text is None else text)
        changed = _queue_record(waiting.turn_id, client_message_id, new, removed=remove)
        await session.log.record_or_refuse([changed])
    session.feed.notify_queue()
    if remove:
        session.feed.wake_waiters_of_removed(waiting.turn_id)
    return session.queue()


async def resume(session: Session, epoch: str) -> tuple[QueuedView, ...]:
    """Let begin what waits (row S9)."""
    session.require_owned()
    session.require_epoch(epoch)
    async with session.delivering:
        session.ready.resume(session.ledger, session.turn.turn_id if session.turn is not None else None)
        session.feed.notify_queue()
        await start_next(session)
    return session.queue()


async def start_next(session: Session) -> None:
    """Begin the next queued prompt, if nothing runs and the queue is not paused."""
    if not session.can_begin_turn or not session.can_record:
        return
    for item in session.ledger.queue.values():
        if item.client_message_id in session.ready.ids:
            try:
                with anyio.CancelScope(shield=True):  # the request that caused this may be cancelled
                    await _begin(session, item.turn_id, item.client_message_id, item.prompt)
            except Refused as refused:
                session.feed.notify_message("error", f"The next prompt stays in the queue. {refused.message}")
            session.feed.notify_queue()
            return


async def compact(session: Session, epoch: str, focus: str | None) -> CompactResult:
    """Compact the session in a turn of its own, and wait for it (row K4).

    Raise Refused in this order: params, notOwner, journalBroken, turnRunning, staleEpoch."""
    prompt = compaction.compaction_prompt(focus)
    async with session.delivering:
        compaction.require_can_compact(session, epoch)
        turn_id = session.context.ids.new()
        turn = await _begin(session, turn_id, f"compact-{turn_id}", prompt)
    return await compaction.wait_for_compaction(session, turn)


async def _accept(session: Session, client_message_id: str, sent: Prompt) -> Accepted:
    if sent.again is not None:
        require_can_send_again(session, sent)
    if slash_commands.runs_beside_turn(sent.text):
        return await answer_beside(session, client_message_id, sent)
    turn_id = session.context.ids.new()
    waiting = [item for item in session.queue() if not item.paused]
    if session.can_begin_turn and not waiting:
        await _begin(session, turn_id, client_message_id, sent)
        return Accepted(turn_id, False, False)
    if len(session.ledger.queue) >= QUEUE_LENGTH_MAX:
        raise invalid_params("$.text", f"{QUEUE_LENGTH_MAX} prompts are waiting already")
    await session.log.record_or_refuse([_queue_record(turn_id, client_message_id, sent)])
    session.ready.let_begin(client_message_id)
    session.feed.notify_queue()
    await start_next(session)
    return Accepted(turn_id, False, client_message_id in session.ledger.queue)


async def answer_beside(session: Session, client_message_id: str, sent: Prompt) -> Accepted:
    """Record a slash command that runs beside a turn, and let it run."""
    turn_id = session.context.ids.new()
    await session.log.record_or_refuse([_user_record(session, turn_id, client_message_id, sent)])
    session.begin_side_turn(turn_id)
    session.context.spawn(partial(_run_beside, session, turn_id, sent), f"slash {turn_id}")
    return Accepted(turn_id, False, False)


async def _run_beside(session: Session, turn_id: str, sent: Prompt) -> None:
    await slash_commands.answer_command(session, turn_id, sent)
    await start_next(session)  # a steer that was sent to it is a prompt now


async def _begin(session: Session, turn_id: str, client_message_id: str, sent: Prompt) -> ActiveTurn:
    """Make the prompt durable and start its turn."""
    turn = session.begin_turn(turn_id, client_message_id, sent)
    try:
        user = _user_record(session, turn_id, client_message_id, sent)
        await session.log.record_or_refuse([user, *first_title(session.ledger, user)])
    except BaseException:
        session.end_turn(turn_id)
        turn.ended.set()
        raise
    begin_recorded(session, turn)
    return turn


def begin_recorded(session: Session, turn: ActiveTurn) -> None:
    """Run a turn whose prompt is durable."""
    session.feed.notify_changes()
    session.feed.notify(turn.turn_id, Began(turn.client_message_id))
    session.context.spawn(partial(_run, session, turn), f"turn {turn.turn_id}")


async def _run(session: Session, turn: ActiveTurn) -> None:
    try:
        if compaction.is_compaction(turn.prompt.text):
            await compaction.run_compaction(session, turn)
        elif turn.prompt.command:
            await slash_commands.answer_command(session, turn.turn_id, turn.prompt)
        else:
            await run_turn(session, turn)
    finally:
        session.end_turn(turn.turn_id)  # the next one may run already
        turn.ended.set()
    ask_for_title(session, turn.turn_id)
    await start_next(session)


def _user_record(session: Session, turn_id: str, client_message_id: str, sent: Prompt) -> User:
    return User(
        turn_id=turn_id,
        message_id=session.context.ids.new(),
        client_message_id=client_message_id,
        text=sent.text,
        command=sent.command,
        attachments=sent.attachments,
        encoding=sent.encoding,
        aside=sent.aside,
        again=sent.again,
    )


def _queue_record(turn_id: str, client_message_id: str, prompt: Prompt, removed: bool = False) -> Queue:
    """Return the record of a prompt that waits. One that changes or removes it carries the text alone."""
    return Queue(
        client_message_id=client_message_id,
        turn_id=turn_id,
        text=prompt.text,
        attachments=prompt.attachments,
        encoding=prompt.encoding,
        aside=prompt.aside,
        removed=removed,
    )
