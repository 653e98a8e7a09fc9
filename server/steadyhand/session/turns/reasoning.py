"""What happens when a provider refuses a conversation for the reasoning in it (cases 94, 95).

Some providers want every answer's reasoning back, and now and then give a call without any, or lose track of it. The
model is then asked without reasoning for the rest of that turn, with a warning. If that is refused too, the turn ends
with the provider's sentence. After `REFUSALS_IN_A_ROW_MAX` turns in a row the user chooses: no reasoning as long as the
session stays open here, or the end of the turn. Where nobody can be asked, it goes on without reasoning. The journal
does not change: recorded reasoning stays and is sent again once the provider accepts it.
"""

from __future__ import annotations

from steadyhand.domain.model.messages import ProviderError
from steadyhand.domain.views.types import Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.user_channel import TurnUserChannel
from steadyhand.session.session import Session

REFUSALS_IN_A_ROW_MAX = 3

GO_ON = "Go on without reasoning in this session"
END = "End the turn"


def should_reason(session: Session, turn: ActiveTurn) -> bool:
    """Return whether the next request of this turn asks for reasoning."""
    return turn.asks_for_reasoning and not session.reasoning.given_up


async def continue_without_reasoning(session: Session, turn: ActiveTurn, trouble: ProviderError) -> bool:
    """After a refusal, switch reasoning off for the turn. Return False if the turn ends instead."""
    if session.reasoning.count() >= REFUSALS_IN_A_ROW_MAX:
        if not await _ask_user(session, turn):
            return False
        session.reasoning.give_up()
    turn.stop_reasoning()
    so_long = "in this session" if session.reasoning.given_up else "in this turn"
    session.feed.notify(turn.turn_id, Warned("withoutReasoning", f"{trouble} {_ASKED} {so_long}."))
    return True


def reset_refusals(session: Session) -> None:
    """A request with reasoning was answered: start counting refusals anew."""
    session.reasoning.reset()


_ASKED = "Retrying without reasoning"


async def _ask_user(session: Session, turn: ActiveTurn) -> bool:
    """Return whether the user goes on without reasoning; True if nobody can be asked, False if they dismiss it."""
    question = (
        f"The provider has refused this conversation for its reasoning in {session.reasoning.in_a_row} turns in a row."
        " Continue without reasoning, or end the turn. A new session uses reasoning again,"
        " and another model may accept it."
    )
    answered = await TurnUserChannel(session, turn.turn_id).ask(question, (GO_ON, END))
    return not answered.was_asked or answered.answer == GO_ON
