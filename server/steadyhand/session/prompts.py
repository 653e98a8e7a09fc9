"""Delivery of prompts: durable before acknowledged, at most once, in order, paused after a crash (rows D1, S4).

A prompt that finds the lease free begins a turn with its `user` record; otherwise it waits in the journal as a
`queue` record until its turn begins. What was queued in an earlier epoch waits until it is resumed. Resending is
always safe: a known client message id is acknowledged again and runs nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import anyio
import attrs

from steadyhand.core.prompt import Prompt
from steadyhand.core.record import Queue, User
from steadyhand.core.refusal import Refused, invalid
from steadyhand.core.views import Began, QueuedView
from steadyhand.session import slash
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.session.stopping import stop_turn
from steadyhand.session.titles import first_title
from steadyhand.session.turn import run_turn

prompt_bytes_max = 1024 * 1024
queue_length_max = 100

TurnState = Literal["queued", "running", "parked", "ended", "interrupted"]


@attrs.frozen
class Accepted:
    """A prompt that is durable. `queued`: it waits for the lease."""

    turn_id: str
    duplicate: bool
    queued: bool


@attrs.frozen
class StatusView:
    known: bool
    turn_id: str | None = None
    state: TurnState | None = None
    reason: str | None = None


async def prompt(owner: Owner, epoch: str | None, client_message_id: str, sent: str | Prompt) -> Accepted:
    """Refused in this order: a known id with another prompt, notOwner, journalBroken, staleEpoch.

    `sent` as a text: without attachments, and no quick question."""
    sent = Prompt(sent) if isinstance(sent, str) else sent
    require_fit(sent)
    async with owner.delivering:
        known = owner.ledger.prompts.get(client_message_id)
        if known is not None:
            if known[1] != sent:
                other = "text" if known[1].text != sent.text else "prompt, of the same text"
                raise invalid("$.clientMessageId", f"already used for another {other}")
            return Accepted(known[0], True, client_message_id in owner.ledger.queue)
        owner.require_owned()
        if epoch is not None:
            owner.require_epoch(epoch)
        return await _accept(owner, client_message_id, sent)


def require_fit(sent: Prompt) -> None:
    """Refused where no turn can be made of it."""
    if len(sent.text.encode("utf-8", "replace")) > prompt_bytes_max:
        raise invalid("$.text", f"longer than {prompt_bytes_max} bytes")
    if not sent.text.strip():
        raise invalid("$.text", "empty")
    if sent.aside and sent.command:
        raise invalid("$.aside", "a slash command asks no model")


def status(owner: Owner, client_message_id: str) -> StatusView:
    """Where a prompt stands, by its client message id (row D2)."""
    known = owner.ledger.prompts.get(client_message_id)
    if known is None:
        return StatusView(False)
    turn_id = known[0]
    if client_message_id in owner.ledger.queue:
        return StatusView(True, turn_id, "queued")
    if owner.turn is not None and owner.turn.turn_id == turn_id:
        return StatusView(True, turn_id, "parked" if owner.turn.parked else "running")
    turn = owner.ledger.turns.get(turn_id)
    if turn is None:  # taken out of the queue
        return StatusView(True, turn_id, "ended", "cancelled")
    if turn.ended is not None:
        return StatusView(True, turn_id, "ended", turn.ended.reason)
    return StatusView(True, turn_id, "running" if owner.live.runs(turn_id) else "interrupted")


async def cancel(owner: Owner, turn_id: str | None) -> bool:
    """Stop the running turn (None: whichever runs), or take a queued prompt out; recorded before it acts (G8)."""
    if await stop_turn(owner, turn_id):
        return True
    owner.require_owned()
    for item in list(owner.ledger.queue.values()):
        if item.turn_id == turn_id:
            await owner.record_or_refuse([Queue(item.client_message_id, item.turn_id, item.text, removed=True)])
            owner.tell_queue()
            owner.end_cancelled(item.turn_id)
            return True
    return False


async def resume(owner: Owner, epoch: str) -> tuple[QueuedView, ...]:
    """Let a recovered queue go on."""
    owner.require_owned()
    owner.require_epoch(epoch)
    async with owner.delivering:
        owner.resumed = True
        owner.tell_queue()
        await start_next(owner)
    return owner.queue()


async def start_next(owner: Owner) -> None:
    """Begin the next queued prompt, if the lease is free and the queue is not paused."""
    if owner.turn is not None or owner.resolving or not owner.works:
        return
    for item in owner.ledger.queue.values():
        if item.epoch == owner.epoch or owner.resumed:
            try:
                with anyio.CancelScope(shield=True):  # whoever brought this about may be gone by now
                    await _begin(owner, item.turn_id, item.client_message_id, item.prompt)
            except Refused as refused:
                owner.say("error", f"The next prompt stays in the queue. {refused.message}")
            owner.tell_queue()
            return


async def _accept(owner: Owner, client_message_id: str, sent: Prompt) -> Accepted:
    turn_id = owner.world.ids.new()
    if slash.at_once(sent.text):
        await owner.record_or_refuse([_user(owner, turn_id, client_message_id, sent)])
        owner.side_turns.add(turn_id)
        owner.world.spawn(partial(slash.answer, owner, turn_id, sent), f"slash {turn_id}")
        return Accepted(turn_id, False, False)
    waiting = [item for item in owner.queue() if not item.paused]
    if owner.turn is None and not owner.resolving and not waiting:
        await _begin(owner, turn_id, client_message_id, sent)
        return Accepted(turn_id, False, False)
    if len(owner.ledger.queue) >= queue_length_max:
        raise invalid("$.text", f"{queue_length_max} prompts are waiting already")
    waits = Queue(
        client_message_id, turn_id, sent.text, attachments=sent.attachments, encoding=sent.encoding, aside=sent.aside
    )
    await owner.record_or_refuse([waits])
    owner.tell_queue()
    await start_next(owner)
    return Accepted(turn_id, False, client_message_id in owner.ledger.queue)


async def _begin(owner: Owner, turn_id: str, client_message_id: str, sent: Prompt) -> None:
    """Take the lease, make the prompt durable, start the turn."""
    turn = owner.turn = RunningTurn(turn_id, client_message_id, sent)
    try:
        user = _user(owner, turn_id, client_message_id, sent)
        await owner.record_or_refuse([user, *first_title(owner.ledger, user)])
    except BaseException:
        owner.turn = None
        turn.ended.set()
        raise
    owner.tell_changes()
    owner.tell(turn_id, Began(client_message_id))
    owner.world.spawn(partial(_run, owner, turn), f"turn {turn_id}")


async def _run(owner: Owner, turn: RunningTurn) -> None:
    try:
        if turn.prompt.command:
            await slash.answer(owner, turn.turn_id, turn.prompt)
        else:
            await run_turn(owner, turn)
    finally:
        if owner.turn is turn:  # the next one may hold the lease already
            owner.turn = None
        turn.ended.set()
    await start_next(owner)


def _user(owner: Owner, turn_id: str, client_message_id: str, sent: Prompt) -> User:
    return User(
        turn_id, owner.world.ids.new(), client_message_id, sent.text, sent.command, sent.attachments, sent.encoding,
        sent.aside,
    )  # fmt: skip
