"""Sums over the usage records of a session, kept while the journal is folded (rows U1, U2)."""

from __future__ import annotations

import re
from decimal import Decimal

import attrs

from steadyhand.domain.records.record import Usage
from steadyhand_values import define


@define
class UsageSums:
    """Tokens, and costs by their currency. Only the ledger adds to it."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_hit: int = 0
    cache_miss: int = 0
    is_complete: bool = True  # every request reported its tokens
    auxiliary: tuple[int, int, int] = (0, 0, 0)  # requests, input and output of summaries and titles (row K4)
    last_currency: str | None = None
    last_told: Usage | None = None  # the last one whose request reported its tokens
    _amounts: dict[str | None, Decimal] = attrs.field(factory=dict)
    _counted: dict[str | None, int] = attrs.field(factory=dict)

    def add(self, used: Usage) -> None:
        """Add the usage of one request."""
        self.requests += 1
        self.input += used.input
        self.output += used.output
        if used.auxiliary:
            requests, read, written = self.auxiliary
            self.auxiliary = (requests + 1, read + used.input, written + used.output)
        self.cache_hit += used.cache_hit
        self.cache_miss += used.cache_miss
        self.last_told = used if used.complete and not used.auxiliary else self.last_told
        self.is_complete = self.is_complete and used.complete
        self.last_currency = used.currency if used.currency is not None else self.last_currency
        amount = _amount(used.cost)
        if amount is not None:
            self._amounts[used.currency] = self._amounts.get(used.currency, Decimal(0)) + amount
            self._counted[used.currency] = self._counted.get(used.currency, 0) + 1

    def in_currency(self, currency: str) -> tuple[Decimal, int]:
        """Return the sum of the costs in this currency or without one, and how many requests it does not count."""
        amount = sum((self._amounts.get(one, Decimal(0)) for one in (currency, None)), Decimal(0))
        return amount, self.requests - sum(self._counted.get(one, 0) for one in (currency, None))


def _amount(text: str | None) -> Decimal | None:
    """Parse a recorded decimal number; anything else counts as unknown."""
    if text is None or re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,24})?", text) is None:
        return None
    return Decimal(text)
