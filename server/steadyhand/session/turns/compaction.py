"""Compact the conversation: read it up to a cut, have it summarised, commit one record (rows K1, K4).

Nothing is rewritten, and until the record is durable nothing has changed: a kill, a cancel or a refusal leaves the
conversation as it was. The record is written only if what it stands for is still there, while no resolution is carried
out and no attempt is open. What came meanwhile stands behind it. Otherwise the summary is thrown away, which is said,
and it is tried once more.
"""

from __future__ import annotations

from steadyhand.domain.ledger.compaction import NOTHING_CUT, Standing
from steadyhand.domain.model.compaction import (
    cut_place,
    is_worth_summarising,
    messages_before,
    messages_behind,
    omittable_calls,
    omitted_behind,
)
from steadyhand.domain.model.first_message import first_message
from steadyhand.domain.model.messages import ModelRequest, UserMessage
from steadyhand.domain.model.token_estimate import estimate_message_tokens, estimate_request_tokens
from steadyhand.domain.model.transcript import Invalid, validate
from steadyhand.domain.model.usage import known_input_tokens
from steadyhand.domain.records.record import Compaction, CompactionCut, SizeAfter, SizeBefore
from steadyhand.domain.views.render import compaction_note
from steadyhand.domain.views.types import Compacted, CompactResult, CompactWhy, Warned
from steadyhand.journal.journal import JournalBroken, TooLong
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session
from steadyhand.session.turns.budget import CapReached, known_window
from steadyhand.session.turns.model_request import offers_of, supply_missing
from steadyhand.session.turns.summary import SummaryRefused, summarise
from steadyhand.session.turns.system_text import system_text
from steadyhand_values import frozen

TRIES_MAX = 2
CAN_BE_SENT_AGAIN = ("modelFailed", "cut")
"""The ends of a turn whose last request can be sent again (case 114)."""

SHORT = "There is nothing to compact yet."
CHANGED = "The conversation changed while it was summarised, so the summary is thrown away."
NOT_KEPT = "The compaction cannot be stored: {why}"
UNSOUND = "The compacted conversation would not be sound, so it stays as it was."


@frozen
class CompactionTry:
    """What a compaction came to, and one sentence about it."""

    result: CompactResult
    text: str


@frozen
class _CutConversation:
    """What a compaction stands for; it must be the same when it is committed."""

    place: int
    cut: CompactionCut
    epoch: str
    standing: Standing


async def compact(
    session: Session, turn: ActiveTurn, focus: str | None = None, automatic: bool = False
) -> CompactionTry:
    """Compact the conversation in this turn. `automatic`: the prompt of the turn is being answered, and stays."""
    try:
        await supply_missing(session)
        for _ in range(TRIES_MAX):
            done = await _try(session, turn, focus, automatic)
            if done is not None:
                return done
            session.feed.notify(turn.turn_id, Warned("compaction", CHANGED))
    except CapReached as reached:
        return _not_done("cost", str(reached))
    except SummaryRefused as refused:
        return _not_done("refused", str(refused))
    except (JournalBroken, TooLong) as broken:
        return _not_done("refused", NOT_KEPT.format(why=broken))
    except Invalid:
        return _not_done("refused", UNSOUND)
    return _not_done("changed", CHANGED)


async def window_of(session: Session) -> int | None:
    """Return how many tokens the session's model takes; the setting wins over the provider (row K4)."""
    model = session.ledger.model
    return known_window(session, model) or await session.context.learn_window(model)


def context_tokens(session: Session) -> int:
    """Return the tokens of the next request: counted by the provider where it has counted, else estimated."""
    messages = session.transcript.outgoing_messages(session.ledger)
    known, counted = known_input_tokens(session.ledger, messages)
    if known is not None:
        return known + estimate_message_tokens(messages[counted:])
    return estimate_request_tokens(ModelRequest(system_text(session), offers_of(session), messages))


async def leave_out_outputs(session: Session, turn: ActiveTurn, with_newest: bool) -> bool:
    """Leave long outputs out of what goes to the model from here on. False: there are none, or it cannot be kept."""
    ledger = session.ledger
    calls = omittable_calls(ledger, with_newest)
    if not calls or session.epoch is None:
        return False
    count = len(session.transcript.outgoing_messages(ledger))
    record = Compaction(
        message_id=session.context.ids.new(),
        turn_id=turn.turn_id,
        epoch=session.epoch,
        cut=NOTHING_CUT,
        text="",
        automatic=True,
        before=SizeBefore(messages=count, context_tokens=context_tokens(session)),
        after=SizeAfter(messages=count),
        omitted=calls,
    )
    try:
        await session.log.append([record], barrier=True)
    except (JournalBroken, TooLong):
        return False
    few = "1 tool output is" if len(calls) == 1 else f"{len(calls)} tool outputs are"
    text = f"The conversation is too long for the model: {few} left out of what it gets from here on."
    session.feed.notify(turn.turn_id, Warned("compaction", text))
    return True


async def _try(session: Session, turn: ActiveTurn, focus: str | None, automatic: bool) -> CompactionTry | None:
    """Compact once. None: what it stands for has changed."""
    ledger = session.ledger
    place = cut_place(ledger, turn.turn_id if automatic else _failed_turn(session))
    messages = messages_before(ledger, place)
    if place <= ledger.standing.place or not is_worth_summarising(ledger, messages) or session.epoch is None:
        return _not_done("short", SHORT)
    last = ledger.said[place - 1]
    base = _CutConversation(place, CompactionCut(seq=last.seq, sum=last.sum), session.epoch, ledger.standing)
    before = SizeBefore(
        messages=len(session.transcript.outgoing_messages(ledger)), context_tokens=context_tokens(session)
    )
    window, said = await window_of(session), tuple(ledger.said[:place])
    summary = await summarise(session, turn, messages, focus)
    await session.wait_for_origins()
    async with session.settling, session.telling:
        if not _holds(session, base):
            return None
        text = first_message(ledger, said, turn.turn_id, window, summary, session.origins.unresolved_lines())
        record = _record(session, turn, base, text, automatic, before)
        if not await session.log.append([record], barrier=True, unless=lambda: not _holds(session, base)):
            return None
    note = compaction_note(record)
    session.compaction_tries.forget()
    session.feed.notify(turn.turn_id, Compacted(record.message_id, text, note.before, note.after, automatic))
    count = note.after.messages
    after = "1 message" if count == 1 else f"{count} messages"
    done = f"Compacted: the model gets {after} in place of {before.messages}. The chat keeps everything."
    return CompactionTry(CompactResult(True, before=note.before, after=note.after), done)


def _record(
    session: Session, turn: ActiveTurn, base: _CutConversation, text: str, automatic: bool, before: SizeBefore
) -> Compaction:
    """Return the record. Raise Invalid if what it leaves is no sound history (case 8)."""
    first = UserMessage(text, session.context.ids.new(), is_told=True)
    after = (first, *messages_behind(session.ledger, base.place))
    validate(after)
    tokens = estimate_request_tokens(ModelRequest(system_text(session), offers_of(session), after))
    return Compaction(
        message_id=first.message_id,
        turn_id=turn.turn_id,
        epoch=base.epoch,
        cut=base.cut,
        text=text,
        automatic=automatic,
        before=before,
        after=SizeAfter(messages=len(after), context_tokens=tokens),
        omitted=omitted_behind(session.ledger, base.place),
    )


def _holds(session: Session, base: _CutConversation) -> bool:
    """Return whether a compaction still stands for what it was made of, and may be committed now (row K1)."""
    said = session.ledger.said
    last = said[base.place - 1] if base.place <= len(said) else None
    return (
        session.epoch == base.epoch
        and session.can_record
        and session.ledger.standing is base.standing
        and last is not None
        and (last.seq, last.sum) == (base.cut.seq, base.cut.sum)
        and not any(attempt.open for call in session.ledger.open_calls() for attempt in call.attempts)
    )


def _failed_turn(session: Session) -> str | None:
    """Return the last turn, if its request failed: it can be sent again, so its prompt stays."""
    last = next((turn for turn in reversed(session.ledger.turns.values()) if turn.is_in_history), None)
    is_failed = last is not None and last.ended is not None and last.ended.reason in CAN_BE_SENT_AGAIN
    return last.turn_id if last is not None and is_failed else None


def _not_done(why: CompactWhy, text: str) -> CompactionTry:
    return CompactionTry(CompactResult(False, why), text)


def cancelled_try() -> CompactionTry:
    """Return what a compaction came to that was stopped."""
    return _not_done("cancelled", "The compaction was stopped. Nothing changed.")
