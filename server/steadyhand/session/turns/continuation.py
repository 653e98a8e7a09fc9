"""Continue an answer once that was cut by its length (row P2).

The first part is in the journal before the rest is requested, so a crash in between keeps an answer that was cut, and
nothing requests the rest by itself afterwards [I4]. The rest is one more request, without tools and never repeated.
Its text and reasoning continue the same message; its usage is a record of its own. Calls that it proposes are not run.
If it is cut again, or ends for an unknown reason, the turn warns.
"""

from __future__ import annotations

from steadyhand.domain.model.continuation import ContinuationFacts, should_continue
from steadyhand.domain.model.messages import ProviderError
from steadyhand.domain.model.response import ModelResponse
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.records.record import EndReason
from steadyhand.domain.views.types import UsageChanged, Warned
from steadyhand.ports.model import Continuing
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session
from steadyhand.session.turns.budget import has_budget_left, usage_of, warn_if_near_cap
from steadyhand.session.turns.model_request import receive, request_of

_STILL = "The answer and its continuation were both cut by length. Ask for what is missing."
_UNKNOWN = "The rest of the answer ended for an unknown reason, so it may be incomplete. Check its end."
_CUT = "The rest of the answer broke off, so it is incomplete. Ask for what is missing."
_FILTERED = "The provider filtered the rest of the answer."


async def continue_answer(session: Session, turn: ActiveTurn, answer: ModelResponse, requests_left: bool) -> EndReason:
    """Request the rest of an answer that was cut, where that may be done; return how the turn ends."""
    if not should_continue(continuation_facts(session, turn, answer, requests_left)):
        return "length"
    rest = ModelResponse(turn.turn_id, answer.message_id, session.epoch, answer.thinking, goes_on=True)
    await receive(session, turn, rest, request_of(session, rest))
    records = [usage_of(session, turn.turn_id, rest.usage)]
    await session.log.append_or_show([rest.record(), *records] if rest.is_shown else records)
    session.feed.notify(turn.turn_id, UsageChanged(usage_view(session.ledger)))
    warn_if_near_cap(session, turn)
    return _end_reason(session, turn, rest)


def continuation_facts(
    session: Session, turn: ActiveTurn, answer: ModelResponse, requests_left: bool
) -> ContinuationFacts:
    """Return the facts right before the rest would be requested."""
    last = session.ledger.usage[-1]
    return ContinuationFacts(
        wanted=session.context.settings.continuation,
        able=_can_continue(session),
        finish=answer.finish,
        text=bool(answer.text.strip()),
        calls=bool(answer.calls),
        usage_known=last.complete,
        context=last.context,
        window=last.window,
        budget_left=requests_left and has_budget_left(session, turn),
        same_epoch=answer.epoch == session.epoch,
        same_turn=session.turn is turn,
        stopping=turn.stopping is not None or session.is_closing,
        kept=session.can_record and not turn.not_kept,
    )


def _can_continue(session: Session) -> bool:
    model = session.ledger.model
    try:
        found: object = session.context.models(model.provider, model.name)
    except ProviderError:
        return False
    return isinstance(found, Continuing) and found.can_continue


def _end_reason(session: Session, turn: ActiveTurn, rest: ModelResponse) -> EndReason:
    if rest.trouble is not None:
        said: tuple[EndReason, str | None] = ("length", f"The rest of the answer did not come. {rest.trouble}")
    elif rest.finish is None:
        said = "cut", _CUT
    elif rest.finish == "stop" and not rest.proposed:
        said = "done", None
    elif rest.finish == "length":
        said = "length", _STILL
    elif rest.finish == "filtered":
        said = "filtered", _FILTERED
    else:
        said = "length", _UNKNOWN
    reason, text = said
    if text is not None:
        turn.explain_end(text)
        session.feed.notify(turn.turn_id, Warned("stillCut", text))
    return reason
