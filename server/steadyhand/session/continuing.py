"""One controlled continuation of an answer that was cut by its length (row P2).

What came is in the journal before the rest is asked for, so a crash in between keeps it as what it is: an answer cut
by its length, and nothing asks for the rest by itself afterwards [I4]. The rest is one more request, without tools
and never repeated; its text and reasoning go on in the same message, and its usage is a record of its own. Whatever
it proposes is not run. Still cut, or ended for a reason that nobody gave: the turn says so.
"""

from __future__ import annotations

from steadyhand.core.continuation import Standing, may_continue
from steadyhand.core.model import ModelTrouble
from steadyhand.core.record import EndReason
from steadyhand.core.usage import usage_view
from steadyhand.core.views import UsageTold, Warned
from steadyhand.ports import Continuing
from steadyhand.session.asking import Answer, hear, request_of
from steadyhand.session.budget import budget_left, say_if_near, usage_of
from steadyhand.session.owner import Owner, RunningTurn

_STILL = "It was cut by its length, and so was its rest: ask for what is missing."
_UNKNOWN = "The rest of the answer ended for a reason that nobody gave, so it may not be whole: read its end."
_CUT = "The rest of the answer broke off, so it is not whole: ask for what is missing."
_FILTERED = "The provider filtered the rest of the answer."


async def rest_of(owner: Owner, turn: RunningTurn, answer: Answer, requests_left: bool) -> EndReason:
    """How the turn ends after an answer that was cut by its length, its rest asked for where that may be."""
    if not may_continue(standing(owner, turn, answer, requests_left)):
        return "length"
    rest = Answer(owner, turn.turn_id, answer.message_id, goes_on=True, thinking=answer.thinking)
    await hear(owner, turn, rest, request_of(owner, rest))
    records = [usage_of(owner, turn.turn_id, rest.usage)]
    await owner.append_or_show([rest.record(), *records] if rest.shown else records)
    owner.tell(turn.turn_id, UsageTold(usage_view(owner.ledger)))
    say_if_near(owner, turn)
    return _ended(owner, turn, rest)


def standing(owner: Owner, turn: RunningTurn, answer: Answer, requests_left: bool) -> Standing:
    """What is known right before the rest would be asked for."""
    last = owner.ledger.usage[-1]
    return Standing(
        wanted=owner.world.settings.continuation,
        able=_able(owner),
        finish=answer.finish,
        text=bool("".join(answer.texts).strip()),
        calls=bool(answer.calls),
        usage_known=last.complete,
        context=last.context,
        window=last.window,
        budget_left=requests_left and budget_left(owner, turn),
        same_epoch=answer.epoch == owner.epoch,
        same_turn=owner.turn is turn,
        stopping=turn.stopping is not None or owner.closing,
        kept=owner.works and not turn.not_kept,
    )


def _able(owner: Owner) -> bool:
    model = owner.ledger.model
    try:
        found: object = owner.world.models(model.provider, model.name)
    except ModelTrouble:
        return False
    return isinstance(found, Continuing) and found.can_continue


def _ended(owner: Owner, turn: RunningTurn, rest: Answer) -> EndReason:
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
        turn.why = text
        owner.tell(turn.turn_id, Warned("stillCut", text))
    return reason
