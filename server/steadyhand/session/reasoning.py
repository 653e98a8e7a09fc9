"""What happens when a provider refuses a conversation for the reasoning in it (cases 94, 95).

Some providers want every answer's reasoning back, and now and then give a call without any, or lose track of it. The
way on is to ask without reasoning for the rest of that turn, and it is said. It is bounded: where that is refused
too, the turn ends in the provider's sentence. After `refusals_in_a_row_max` turns in a row the person chooses: without
reasoning from now on, as long as the session stays open here, or the end of the turn. With nobody there it goes on
without. Nothing in the journal changes: what was kept of the reasoning stays, and goes back once it is taken again.
"""

from __future__ import annotations

from steadyhand.core.model import ModelTrouble
from steadyhand.core.views import Warned
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.session.person import TurnPerson

refusals_in_a_row_max = 3

GO_ON = "Go on without reasoning in this session"
END = "End the turn"


def thinks(owner: Owner, turn: RunningTurn) -> bool:
    """Whether the next request of this turn asks for reasoning."""
    return turn.thinks and owner.reasoning_refused is not None


async def goes_on_without(owner: Owner, turn: RunningTurn, trouble: ModelTrouble) -> bool:
    """After a refusal of a request with reasoning: whether to ask again without, which is then set for the turn."""
    assert owner.reasoning_refused is not None, "without reasoning nothing is refused for it"
    owner.reasoning_refused += 1
    if owner.reasoning_refused >= refusals_in_a_row_max:
        if not await _chosen(owner, turn):
            return False
        owner.reasoning_refused = None
    turn.thinks = False
    so_long = "in this turn" if owner.reasoning_refused is not None else "in this session"
    owner.tell(turn.turn_id, Warned("withoutReasoning", f"{trouble} {_ASKED} {so_long}."))
    return True


def taken(owner: Owner) -> None:
    """A request with reasoning was answered: the row of refusals ends."""
    if owner.reasoning_refused is not None:
        owner.reasoning_refused = 0


_ASKED = "The model is asked again, without reasoning"


async def _chosen(owner: Owner, turn: RunningTurn) -> bool:
    """The person's choice; nobody there: to go on. A dismissed question is no yes."""
    question = (
        f"The provider has refused this conversation for its reasoning in {owner.reasoning_refused} turns in a row."
        " It can go on without reasoning, or the turn ends here: a new session has it again, and so may another model."
    )
    asked = await TurnPerson(owner, turn.turn_id).ask(question, (GO_ON, END))
    return not asked.asked or asked.answer == GO_ON
