"""Make room in the model's window: compact before a request that would fill it, and after "too long" (rows K2, K4).

At most one automatic compaction comes before a request, and none until the conversation has grown. After "too long" the
request is sent once more for each thing that made it shorter: the compaction, then old outputs left out, then the
newest. A turn that is too long even so ends with a sentence that names the way out. Where there was nothing to make
shorter, the provider's own sentence stands, and the request can be sent again.
"""

from __future__ import annotations

from steadyhand.domain.model.response import ModelResponse
from steadyhand.domain.views.types import Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session
from steadyhand.session.turns.budget import usage_of
from steadyhand.session.turns.compaction import CompactionTry, compact, context_tokens, leave_out_outputs, window_of
from steadyhand.session.turns.model_request import ask_until_whole, supply_missing
from steadyhand.session.turns.summary import TOO_LONG

GROWTH_SHARE = 0.1
"""Of the window: the conversation is not compacted again before it has grown by that."""
STILL_TOO_LONG = (
    "The conversation is too long for the model, although it was made shorter. Start a new session, or choose a model"
    " with a larger window."
)


class StillTooLong(Exception):
    """The request is too long for the model, and nothing more of it can be left out."""


async def ask_with_room(session: Session, turn: ActiveTurn) -> ModelResponse:
    """As `ask_until_whole`, with a compaction before and after it where it is needed. Raise StillTooLong."""
    was_tried = is_shortened = await _compact_if_full(session, turn)
    answer = await ask_until_whole(session, turn)
    if not session.context.settings.compaction.auto:
        return answer
    for step in ("compact", "old", "newest"):
        if not _is_too_long(answer):
            return answer
        if step == "compact":
            done = None if was_tried else (await _compact(session, turn)).result
            is_shorter = done is not None and done.compacted
            is_shortened = is_shortened or (done is not None and done.why != "short")
        else:
            is_shorter = await leave_out_outputs(session, turn, with_newest=step == "newest")
        is_shortened = is_shortened or is_shorter
        if is_shorter:
            await _count(session, turn, answer)
            answer = await ask_until_whole(session, turn)
    if is_shortened and _is_too_long(answer):
        await _count(session, turn, answer)
        raise StillTooLong(STILL_TOO_LONG)
    return answer


async def _compact_if_full(session: Session, turn: ActiveTurn) -> bool:
    """Compact if the next request would fill the window; return whether that was tried."""
    settings = session.context.settings.compaction
    window = await window_of(session) if settings.auto else None
    if window is None:
        return False
    await supply_missing(session)
    tokens, share = context_tokens(session), settings.at
    last = _tokens_at_last(session)
    if tokens <= share * window or (last is not None and tokens < last + GROWTH_SHARE * window):
        return False
    done = await _compact(session, turn)
    was_tried = done.result.why != "short"
    if was_tried and not done.result.compacted:
        session.compaction_tries.note(tokens)
    return was_tried


async def _compact(session: Session, turn: ActiveTurn) -> CompactionTry:
    done = await compact(session, turn, automatic=True)
    if done.result.why == "refused":
        session.feed.notify(turn.turn_id, Warned("compaction", f"The conversation is not compacted. {done.text}"))
    return done


def _tokens_at_last(session: Session) -> int | None:
    """Return the size of the conversation right after it was compacted, or when that was last tried in vain."""
    ledger, tried = session.ledger, session.compaction_tries.tokens
    record = ledger.standing.record
    if record is None:
        return tried
    after = ledger.counted[0].context if ledger.counted and ledger.counted[0].complete else record.after.context_tokens
    return max((one for one in (after, tried) if one is not None), default=None)


def _is_too_long(answer: ModelResponse) -> bool:
    trouble = answer.trouble
    return trouble is not None and trouble.kind in TOO_LONG and not answer.is_shown


async def _count(session: Session, turn: ActiveTurn, answer: ModelResponse) -> None:
    """Record what a refused request used, if its provider said so."""
    if answer.usage is not None:
        await session.log.append_or_show([usage_of(session, turn.turn_id, answer.usage, auxiliary=True)])
