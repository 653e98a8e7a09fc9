"""Compact a session on request: `session/compact`, and `/compact [focus]` in the chat (row K4).

It is a turn of its own, so prompts that come meanwhile wait in the queue, and a cancel stops it. The answer in the chat
is one sentence; the model does not get it.
"""

from __future__ import annotations

import anyio

from steadyhand.domain.errors import Refused, invalid_params
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Assistant, Ended, EndReason
from steadyhand.domain.views.types import CompactResult, TextDelta, TurnEnded
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.cancel import stop_turn
from steadyhand.session.session import Session
from steadyhand.session.turns.compaction import CompactionTry, cancelled_try, compact

COMMAND = "/compact"
FOCUS_CHARS_MAX = 2_000
TOO_LONG_FOCUS = f"Not compacted: what it should keep is longer than {FOCUS_CHARS_MAX} characters."
_REASONS: dict[str, EndReason] = {"cost": "cost", "cancelled": "cancelled"}


def is_compaction(text: str) -> bool:
    """Return whether a prompt asks for a compaction."""
    return text.split(maxsplit=1)[:1] == [COMMAND]


def compaction_prompt(focus: str | None) -> Prompt:
    """Return the prompt of a compaction's turn. Raise Refused above `FOCUS_CHARS_MAX`."""
    if focus is not None and len(focus) > FOCUS_CHARS_MAX:
        raise invalid_params("$.focus", f"longer than {FOCUS_CHARS_MAX} characters")
    return Prompt(f"{COMMAND} {' '.join((focus or '').split())}".strip())


def require_can_compact(session: Session, epoch: str) -> None:
    """Raise Refused in this order: notOwner, journalBroken, turnRunning, staleEpoch."""
    session.require_owned()
    if not session.can_begin_turn:
        running = {"turnId": session.turn.turn_id} if session.turn is not None else {}
        raise Refused("turnRunning", "A turn is running; wait for it or stop it.", running)
    session.require_epoch(epoch)


async def wait_for_compaction(session: Session, turn: ActiveTurn) -> CompactResult:
    """Wait for the end of a compaction's turn; a cancelled request stops it."""
    try:
        await turn.ended.wait()
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await stop_turn(session, turn.turn_id)
            await turn.ended.wait()
        raise
    return turn.compacted or cancelled_try().result


async def run_compaction(session: Session, turn: ActiveTurn) -> None:
    """Run the whole turn of a compaction, from its prompt to its end."""
    done = cancelled_try()
    try:
        with turn.scope:
            done = await _carry_out(session, turn)
    finally:
        turn.note_compaction(done.result)
        with anyio.CancelScope(shield=True):
            await _finish(session, turn, done)


async def _carry_out(session: Session, turn: ActiveTurn) -> CompactionTry:
    focus = turn.prompt.text.partition(COMMAND)[2].strip()
    if len(focus) > FOCUS_CHARS_MAX:
        return CompactionTry(CompactResult(False, "refused"), TOO_LONG_FOCUS)
    return await compact(session, turn, focus or None)


async def _finish(session: Session, turn: ActiveTurn, done: CompactionTry) -> None:
    reason: EndReason = turn.stopping or _REASONS.get(done.result.why or "", "done")
    text = (
        done.text if done.result.compacted or done.text.startswith("Not compacted") else f"Not compacted. {done.text}"
    )
    message_id = session.context.ids.new()
    session.feed.notify(turn.turn_id, TextDelta(message_id, text))
    message = Assistant(turn_id=turn.turn_id, message_id=message_id, text=text, finish="stop")
    if not await session.log.append_or_show([message, Ended(turn_id=turn.turn_id, reason=reason)], barrier=True):
        reason = "journalBroken"
    session.end_turn(turn.turn_id)
    session.feed.notify(turn.turn_id, TurnEnded(reason, ()))
    session.feed.notify_changes()
    await session.log.keep_summary()
