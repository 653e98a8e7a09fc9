"""What a session has cost, and the cap on it (row U2, G7).

The cap is looked at before each request: at the cap nothing is sent and the turn ends `cost`; from `near` of it on,
each turn says so once. A cap that cannot be kept is no cap, so where neither a price is known nor the provider tells
what it bills, nothing is sent either. Requests whose tokens nobody told are said, once a turn: they count for nothing.
"""

from __future__ import annotations

from decimal import Decimal

from steadyhand.core.model import UsagePart
from steadyhand.core.prices import billed_in, cost_of, price_of
from steadyhand.core.record import Usage
from steadyhand.core.usage import shown_amount, spent
from steadyhand.core.views import Warned
from steadyhand.session.owner import Owner, RunningTurn

near = Decimal("0.8")


class CapReached(Exception):
    """No request is sent any more. The text is one sentence that says what to do."""


def usage_of(owner: Owner, turn_id: str, usage: UsagePart | None) -> Usage:
    """The record of one request: billed and context tokens, incomplete when it gave none (row U1), and its cost at the
    price of this moment."""
    model = owner.ledger.model
    if usage is None or usage.input is None or usage.output is None:
        return Usage(turn_id, complete=False, model=model)
    cost, currency = _cost(owner, usage)
    return Usage(
        turn_id, True, usage.input, usage.output, usage.cache_hit or 0, usage.cache_miss or 0,
        usage.input + usage.output, usage.window, model, cost, currency,
    )  # fmt: skip


def require_budget(owner: Owner, turn: RunningTurn) -> None:
    """Before each request. CapReached where it may not be sent."""
    cap = owner.world.settings.cost_cap
    currency, free = _currency(owner)
    if cap is None or free:
        return
    if currency is None:
        model = owner.ledger.model
        raise CapReached(
            f"The model {model.name} of {model.provider} has no known price, so steadyhand.cost.cap cannot be kept and"
            " it is not asked: give its price in steadyhand.cost.prices, or take the cap away."
        )
    so_far = spent(owner.ledger, currency)
    if so_far.amount >= cap:
        raise CapReached(
            f"This session has cost {shown_amount(so_far.amount)} {currency}, and its cap is {cap:f}: the model is not"
            " asked. Raise steadyhand.cost.cap, or begin a new session."
        )
    say_if_near(owner, turn)
    if so_far.uncounted:
        few = f"{so_far.uncounted} of this session's requests have no known cost"
        text = f"{few}, so steadyhand.cost.cap counts too little."
        _say_once(owner, turn, Warned("costUncounted", text))


def say_if_near(owner: Owner, turn: RunningTurn) -> None:
    """Once a turn, from `near` of the cap on."""
    cap = owner.world.settings.cost_cap
    currency, free = _currency(owner)
    if cap is None or currency is None or free:
        return
    amount = spent(owner.ledger, currency).amount
    if amount >= near * cap:
        reached = "at the cap the turn ends" if amount < cap else "the model is not asked again until the cap is raised"
        text = (
            f"This session has cost {shown_amount(amount)} {currency} of the {cap:f} that steadyhand.cost.cap allows;"
            f" {reached}."
        )
        _say_once(owner, turn, Warned("costNear", text))


def budget_left(owner: Owner, turn: RunningTurn) -> bool:
    """As `require_budget`, as an answer."""
    try:
        require_budget(owner, turn)
    except CapReached:
        return False
    return True


def _say_once(owner: Owner, turn: RunningTurn, warning: Warned) -> None:
    if warning.code not in turn.warned:
        turn.warned.add(warning.code)
        owner.tell(turn.turn_id, warning)


def _currency(owner: Owner) -> tuple[str | None, bool]:
    """(in which currency the model is billed, None where nobody knows; whether it bills nothing)."""
    model = owner.ledger.model
    price = price_of(model, owner.world.settings)
    if price is not None:
        return price.currency, price.currency is None or not (price.input or price.output)
    told = billed_in(model.provider)
    asked = [used for used in owner.ledger.usage if used.model == model and used.complete]
    return (told if not asked or asked[-1].cost is not None else None), False


def _cost(owner: Owner, usage: UsagePart) -> tuple[str | None, str | None]:
    """(amount, currency) for the record; a user's own price wins over what the provider tells."""
    model, settings = owner.ledger.model, owner.world.settings
    price = price_of(model, settings)
    if price is not None:
        cost = cost_of(price, usage)
        return (None, None) if cost is None else (f"{cost:f}", price.currency)
    if usage.billed is not None:
        return usage.billed, billed_in(model.provider)
    return None, None
