"""What a session has cost, and the cap on it (rows U2, G7).

The cap is checked before each request: at the cap nothing is sent and the turn ends with `cost`. From `NEAR_CAP_SHARE`
of it on, each turn warns once. A cap that cannot be enforced is no cap: where no price is known and the provider
reports no cost, nothing is sent either. Requests without token counts are reported once a turn, because they count as
nothing.
"""

from __future__ import annotations

from decimal import Decimal

from steadyhand.domain.model.messages import UsagePart
from steadyhand.domain.model.pricing import billing_currency, cost_of, price_of
from steadyhand.domain.model.usage import format_amount, usage_totals
from steadyhand.domain.records.record import ModelName, Usage
from steadyhand.domain.views.types import Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session

NEAR_CAP_SHARE = Decimal("0.8")


class CapReached(Exception):
    """No request may be sent. The text is one sentence that says what to do."""


def usage_of(
    session: Session, turn_id: str, usage: UsagePart | None, asked: ModelName | None = None, auxiliary: bool = False
) -> Usage:
    """Return the record of one request: its tokens and cost at the current price; incomplete without counts (U1).

    `asked`: the model, if it is not the session's; `auxiliary`: the request was for a summary or a title."""
    model = asked or session.ledger.model
    if usage is None or usage.input is None or usage.output is None:
        return Usage(turn_id=turn_id, complete=False, model=model, auxiliary=auxiliary)
    cost, currency = _cost(session, usage, model)
    return Usage(
        turn_id=turn_id,
        complete=True,
        input=usage.input,
        output=usage.output,
        cache_hit=usage.cache_hit or 0,
        cache_miss=usage.cache_miss or 0,
        context=usage.input + usage.output,
        window=usage.window or known_window(session, model),
        model=model,
        cost=cost,
        currency=currency,
        auxiliary=auxiliary,
    )


def known_window(session: Session, model: ModelName) -> int | None:
    """Return the tokens that the settings say a model takes; None: they say nothing of it."""
    settings = session.context.settings
    return settings.window if model.provider == settings.model.provider else None


def require_budget(session: Session, turn: ActiveTurn | None, asked: ModelName | None = None) -> None:
    """Raise CapReached if the next request may not be sent.

    `turn`: None: nothing is warned of; `asked`: the model, if it is not the session's."""
    cap = session.context.settings.cost_cap
    model = asked or session.ledger.model
    currency, free = _billing(session, model)
    if cap is None or free:
        return
    if currency is None:
        raise CapReached(
            f"The model {model.name} of {model.provider} has no known price, so steadyhand.cost.cap cannot be"
            " checked and the model is not asked. Set its price in steadyhand.cost.prices, or remove the cap."
        )
    so_far = usage_totals(session.ledger, currency)
    if so_far.amount >= cap:
        raise CapReached(
            f"This session has cost {format_amount(so_far.amount)} {currency}, and its cap is {cap:f}: the model is not"
            " asked. Raise steadyhand.cost.cap, or start a new session."
        )
    if turn is None:
        return
    warn_if_near_cap(session, turn)
    if so_far.uncounted:
        few = f"{so_far.uncounted} of this session's requests have no known cost"
        text = f"{few}, so the total for steadyhand.cost.cap is too low."
        _warn_once(session, turn, Warned("costUncounted", text))


def warn_if_near_cap(session: Session, turn: ActiveTurn) -> None:
    """Warn once a turn, from `NEAR_CAP_SHARE` of the cap on."""
    cap = session.context.settings.cost_cap
    currency, free = _billing(session, session.ledger.model)
    if cap is None or currency is None or free:
        return
    amount = usage_totals(session.ledger, currency).amount
    if amount >= NEAR_CAP_SHARE * cap:
        reached = "at the cap the turn ends" if amount < cap else "the model is not asked again until the cap is raised"
        text = (
            f"This session has cost {format_amount(amount)} {currency} of the {cap:f} that steadyhand.cost.cap allows;"
            f" {reached}."
        )
        _warn_once(session, turn, Warned("costNear", text))


def has_budget_left(session: Session, turn: ActiveTurn) -> bool:
    """Return whether `require_budget` allows another request."""
    try:
        require_budget(session, turn)
    except CapReached:
        return False
    return True


def _warn_once(session: Session, turn: ActiveTurn, warning: Warned) -> None:
    if turn.first_warning(warning.code):
        session.feed.notify(turn.turn_id, warning)


def _billing(session: Session, model: ModelName) -> tuple[str | None, bool]:
    """Return the currency the model is billed in, None where nobody knows it, and whether the model is free."""
    price = price_of(model, session.context.settings)
    if price is not None:
        return price.currency, price.currency is None or not (price.input or price.output)
    reported = billing_currency(model.provider)
    last = next((used for used in reversed(session.ledger.usage) if used.model == model and used.complete), None)
    return (reported if last is None or last.cost is not None else None), False


def _cost(session: Session, usage: UsagePart, model: ModelName) -> tuple[str | None, str | None]:
    """Return amount and currency for the record; a user's own price wins over the one that the provider reports."""
    price = price_of(model, session.context.settings)
    if price is not None:
        cost = cost_of(price, usage)
        return (None, None) if cost is None else (f"{cost:f}", price.currency)
    if usage.billed is not None:
        return usage.billed, billing_currency(model.provider)
    return None, None
