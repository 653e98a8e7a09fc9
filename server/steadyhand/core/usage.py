"""What a session used: billed tokens summed over requests, context tokens of the last one (row U1), and what it cost
(row U2). All of it is a fold of the journal, so a restart changes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

import attrs

from steadyhand.core.ledger import Ledger
from steadyhand.core.model import AssistantMessage, OutMessage
from steadyhand.core.views import Billed, Cost, UsageView

shown_place = Decimal("0.000001")


def known_input(ledger: Ledger, messages: Sequence[OutMessage]) -> tuple[int | None, int | None]:
    """What the last request is known to have read, in tokens, and how many of the messages that counts: those before
    the last answer. (None, None) where the model of now did not say."""
    of_history = (used for used in reversed(ledger.usage) if _in_history(ledger, used.turn_id))
    last = next(of_history, None)
    if last is None or not last.complete or last.model != ledger.model:
        return None, None
    answers = [place for place, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    return last.input, answers[-1] if answers else 0


def _in_history(ledger: Ledger, turn_id: str) -> bool:
    """What a quick question read is no beginning of what the next request reads."""
    turn = ledger.turns.get(turn_id)
    return turn is None or turn.in_history


@attrs.frozen
class Spent:
    """What a session cost in one currency. `uncounted`: requests whose cost is not in it."""

    amount: Decimal
    uncounted: int


def spent(ledger: Ledger, currency: str) -> Spent:
    """The costs that were recorded, at the prices of then."""
    costs = [_amount(used.cost) for used in ledger.usage if used.currency in (currency, None)]
    counted = [cost for cost in costs if cost is not None]
    return Spent(sum(counted, Decimal(0)), len(ledger.usage) - len(counted))


def usage_view(ledger: Ledger) -> UsageView:
    """Incomplete when some request gave none, or when the cost is not that of all requests."""
    every = ledger.usage
    last = every[-1] if every else None
    billed = Billed(
        sum(used.input for used in every),
        sum(used.output for used in every),
        sum(used.cache_hit for used in every),
        sum(used.cache_miss for used in every),
    )
    cost, whole = _cost(ledger)
    complete = all(used.complete for used in every) and whole
    return UsageView(billed, last.context if last else 0, complete, last.window if last else None, cost)


def _cost(ledger: Ledger) -> tuple[Cost | None, bool]:
    """(the cost in the currency billed last, whether it is that of all requests); none where none was billed."""
    currencies = [used.currency for used in ledger.usage if used.currency is not None]
    if not currencies:
        return None, True
    so_far = spent(ledger, currencies[-1])
    return Cost(shown_amount(so_far.amount), currencies[-1]), not so_far.uncounted


def _amount(text: str | None) -> Decimal | None:
    """What was recorded as a decimal number; anything else counts as not known."""
    if text is None or re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,24})?", text) is None:
        return None
    return Decimal(text)


def shown_amount(amount: Decimal) -> str:
    """At most six places and at least two, rounded; what is kept is exact."""
    text = f"{amount.quantize(shown_place):f}"
    whole, _, places = text.partition(".")
    return f"{whole}.{places[:2]}{places[2:].rstrip('0')}"
