"""What a session used: tokens (row U1) and cost (row U2).

Billed tokens are summed over all requests; context tokens are those of the last one. Everything is a fold of the
journal, so a restart changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.messages import AssistantMessage, OutMessage
from steadyhand.domain.views.types import Auxiliary, Billed, Cost, UsageView
from steadyhand_values import frozen

SHOWN_PLACE = Decimal("0.000001")
"""The last decimal place that is shown."""


def known_input_tokens(ledger: Ledger, messages: Sequence[OutMessage]) -> tuple[int | None, int | None]:
    """Return how many tokens the last request is known to have read, and how many of the messages they count.

    The count ends before the last answer. (None, None): the session's present model has not told, or the conversation
    was shortened since.
    """
    last = ledger.counted[-1] if ledger.counted else None
    if last is None or not last.complete or last.model != ledger.model:
        return None, None
    places = range(len(messages) - 1, -1, -1)
    return last.input, next((place for place in places if isinstance(messages[place], AssistantMessage)), 0)


@frozen
class UsageTotals:
    """The cost of a session in one currency. `uncounted`: number of requests whose cost is not in it."""

    amount: Decimal
    uncounted: int


def usage_totals(ledger: Ledger, currency: str) -> UsageTotals:
    """Sum the recorded costs, each at the price of its time."""
    return UsageTotals(*ledger.usage_sums.in_currency(currency))


def usage_view(ledger: Ledger) -> UsageView:
    """Return the usage of the session.

    It is incomplete if some request reported no tokens, or if the cost is not that of all requests.
    """
    sums = ledger.usage_sums
    last = sums.last_told  # a request that was stopped tells nothing of the context (case 158)
    auxiliary = Auxiliary(*sums.auxiliary) if sums.auxiliary[0] else None
    billed = Billed(sums.input, sums.output, sums.cache_hit, sums.cache_miss)
    cost, whole = _cost(ledger)
    complete = sums.is_complete and whole
    return UsageView(billed, last.context if last else 0, complete, last.window if last else None, cost, auxiliary)


def _cost(ledger: Ledger) -> tuple[Cost | None, bool]:
    """Return the cost in the currency billed last, and whether it covers all requests.

    The cost is None if nothing was billed.
    """
    currency = ledger.usage_sums.last_currency
    if currency is None:
        return None, True
    so_far = usage_totals(ledger, currency)
    return Cost(format_amount(so_far.amount), currency), not so_far.uncounted


def format_amount(amount: Decimal) -> str:
    """Format an amount with two to six decimal places, rounded. The stored amount is exact."""
    text = f"{amount.quantize(SHOWN_PLACE):f}"
    whole, _, places = text.partition(".")
    return f"{whole}.{places[:2]}{places[2:].rstrip('0')}"
