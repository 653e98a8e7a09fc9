"""Reads amounts of money in settings as the decimal numbers that were written, never as floats (row U2).

    cost.prices = {"provider/model": {"input": 0.3, "output": "1.20", "cacheHit"?, "cacheWrite"?, "currency"?: "USD"}}

Each price is for a million tokens. `provider/*` applies to every model of a provider without an entry of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from steadyhand.domain.settings import Price

PRICES_MAX = 1000
AMOUNT_MAX = Decimal(10**9)
PLACES_MAX = 12
MEMBERS = ("input", "output", "cacheHit", "cacheWrite")
PRICES_EXPECTED = 'an object like {"provider/model": {"input": 1, "output": 2}}, with prices for a million tokens'


def amount_of(value: object) -> Decimal | None:
    """Return the amount of a number or of its text; for a float the decimal number that was written. None for any other
    value, and for a negative or too large amount."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    try:
        amount = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    if not amount.is_finite() or not 0 <= amount <= AMOUNT_MAX:
        return None
    exponent = amount.as_tuple().exponent
    return amount if isinstance(exponent, int) and -exponent <= PLACES_MAX else None


def is_amount(value: object) -> bool:
    return amount_of(value) is not None


def is_prices(value: object) -> bool:
    return isinstance(value, Mapping) and len(value) <= PRICES_MAX and all(_is_price(*entry) for entry in value.items())


def _is_price(model: object, price: object) -> bool:
    if not isinstance(model, str) or not re.fullmatch(r"[a-z]+/.+", model) or not isinstance(price, Mapping):
        return False
    amounts = {name: price[name] for name in MEMBERS if name in price}
    currency = price.get("currency", "USD")
    return (
        {"input", "output"} <= set(amounts)
        and set(price) <= {*MEMBERS, "currency"}
        and all(map(is_amount, amounts.values()))
        and isinstance(currency, str)
        and re.fullmatch("[A-Z]{3}", currency) is not None
    )


def prices_of(value: Mapping[str, Mapping[str, Any]]) -> dict[str, Price]:
    return {
        model: Price(
            input=amount_of(price["input"]) or Decimal(0),
            output=amount_of(price["output"]) or Decimal(0),
            cache_hit=amount_of(price.get("cacheHit")),
            cache_write=amount_of(price.get("cacheWrite")),
            currency=price.get("currency", "USD"),
        )
        for model, price in value.items()
    }
