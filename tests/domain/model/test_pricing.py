"""The cost of a request: prices of a million tokens, in decimal arithmetic."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.messages import UsagePart
from steadyhand.domain.model.pricing import (
    FREE,
    KNOWN,
    RUN_HERE,
    SOURCES,
    billing_currency,
    cost_of,
    price_of,
    price_sentence,
)
from steadyhand.domain.model.provider_profiles import PROFILES
from steadyhand.domain.model.usage import format_amount, usage_totals, usage_view
from steadyhand.domain.records.record import ModelName, Usage
from steadyhand.domain.settings import Price, Settings

PRICE = Price(Decimal("0.30"), Decimal("1.20"), Decimal("0.006"), Decimal("0.375"))
counts = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (UsagePart(1_000_000, 0, 0, 1_000_000), "0.3"),
        (UsagePart(0, 1_000_000, 0, 0), "1.2"),
        (UsagePart(1_000_000, 0, 1_000_000, 0), "0.006"),
        (UsagePart(1_000_000, 0, 400_000, 600_000, cache_write=100_000), "0.1899"),
        (UsagePart(1, 1, 0, 1), "0.0000015"),
        (UsagePart(1_000_000, 0), "0.3"),  # the provider reports no cache counts: all input counts as fresh
        (UsagePart(10, 0, 1_000_000), "0.00000006"),  # more hits than input: the hits are capped at the input
        (UsagePart(0, 0), "0"),
        (UsagePart(None, 5), None),
        (UsagePart(5, None), None),
    ],
)
def test_cost_of_prices_each_kind_of_token_exactly(usage: UsagePart, cost: str | None) -> None:
    """U2: fresh input, cache hits, cache writes and output each have their own price, exactly. Tokens that the provider
    did not report have no cost.
    """
    assert cost_of(PRICE, usage) == (None if cost is None else Decimal(cost))


def test_cost_of_without_cache_prices_uses_the_input_price() -> None:
    """U2: without a price for the cache, its tokens cost what fresh input costs."""
    plain = Price(Decimal(3), Decimal(15))
    assert cost_of(plain, UsagePart(1_000_000, 0, 600_000, 400_000, cache_write=400_000)) == Decimal(3)


@given(counts, counts, counts, counts)
def test_cost_of_is_never_negative_and_never_above_the_highest_price(
    read: int, wrote: int, hit: int, written: int
) -> None:
    """U2: a cost is never negative, and the cache makes nothing dearer than its dearest price."""
    cost = cost_of(PRICE, UsagePart(read, wrote, hit, None, cache_write=written))
    assert cost is not None
    dearest = (read * Decimal("0.375") + wrote * Decimal("1.20")) / 1_000_000
    assert 0 <= cost <= dearest


def test_shipped_prices_have_a_known_model_a_source_and_a_date() -> None:
    """U2: each shipped price is of a known model and has its provider's page and day. A cache hit is cheaper than a
    miss.
    """
    for (provider, name), price in KNOWN.items():
        assert PROFILES[provider].known_model(name), name
        assert SOURCES[provider].page.startswith("https://")
        assert re.fullmatch(r"2026-\d\d-\d\d", SOURCES[provider].read)
        assert price.cache_hit is not None
        assert 0 < price.cache_hit < price.input < price.output
        assert price.cache_write is None or price.cache_write > price.input
        assert price.currency == "USD"
    assert set(SOURCES) == {provider for provider, _ in KNOWN}


def test_providers_page_lists_every_shipped_price() -> None:
    """docs/providers.md repeats the shipped prices, with page and day (U2)."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "providers.md").read_text(encoding="utf-8")
    for (provider, name), price in KNOWN.items():
        row = next(line for line in page.split("\n") if line.startswith(f"| `{provider}/{name}` |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
        given = [price.input, price.cache_hit, price.cache_write, price.output]
        assert [Decimal(cell) if cell else None for cell in cells] == given, name
    for source in SOURCES.values():
        assert source.page in page
        assert source.read in page
        assert source.remark in " ".join(page.split())


def test_price_of_prefers_user_then_provider_then_shipped_price() -> None:
    """U2: first the user's own price, for the model and then for the provider. Otherwise the shipped price at the
    provider's own address. A model on this machine is free. Otherwise there is no price.
    """
    flash, own, any_of = (
        ModelName("deepseek", "deepseek-flash"),
        Price(Decimal(1), Decimal(2)),
        Price(Decimal(3), Decimal(4)),
    )
    assert price_of(flash, Settings()) == KNOWN["deepseek", "deepseek-flash"]
    assert price_of(ModelName("deepseek", "deepseek"), Settings()) == KNOWN["deepseek", "deepseek-flash"]
    mine = Settings(prices={"deepseek/deepseek-flash": own, "deepseek/*": any_of, "ollama/big": own})
    assert price_of(flash, mine) == own
    assert price_of(ModelName("deepseek", "deepseek"), mine) == own
    assert price_of(ModelName("deepseek", "deepseek-v4-pro"), mine) == any_of
    assert price_of(ModelName("ollama", "big"), mine) == own
    assert price_of(ModelName("ollama", "small"), mine) == FREE
    assert price_of(ModelName("deepseek", "new"), Settings()) is None
    assert price_of(ModelName("openrouter", "vendor/model"), Settings()) is None
    elsewhere = Settings(model=flash, base_url="https://relay.example/v1")
    assert price_of(flash, elsewhere) is None
    assert price_of(ModelName("openai", "gpt-5-nano"), elsewhere) == KNOWN["openai", "gpt-5-nano"]
    copied = Settings(model=flash, base_url="https://api.deepseek.com/v1")
    assert price_of(flash, copied) == KNOWN["deepseek", "deepseek-flash"]
    local = Settings(model=ModelName("llamacpp", "x"), base_url="http://localhost:9999/v1")
    assert price_of(ModelName("llamacpp", "x"), local) == FREE
    assert price_of(ModelName("nobody", "x"), Settings()) is None
    hosted = Settings(model=ModelName("vllm", "x"), base_url="https://gpu.example/v1")
    assert price_of(ModelName("vllm", "x"), hosted) is None
    assert all(price_of(ModelName(provider, "x"), Settings()) == FREE for provider in RUN_HERE)
    assert (billing_currency("openrouter"), billing_currency("deepseek"), billing_currency("practice")) == (
        "USD",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (
            ModelName("deepseek", "deepseek"),
            "in USD: 0.30 read, 0.006 from the cache, 1.20 written; by https://api-docs.",
        ),
        (ModelName("deepseek", "deepseek"), "bills half"),
        (
            ModelName("openai", "gpt-5-nano"),
            "openai/gpt-5-nano in EUR: 1 read, 1 from the cache, 2 written; by steadyhand.cost.prices",
        ),
        (ModelName("openrouter", "a/b"), "told by the provider"),
        (ModelName("compatible", "x"), "No price of compatible/x is known"),
        (ModelName("practice", "practice"), None),
    ],
)
def test_price_text_names_the_source_or_how_to_set_a_price(model: ModelName, told: str | None) -> None:
    """U2: where a price comes from and its date, or that there is none and what to do."""
    settings = Settings(prices={"openai/*": Price(Decimal(1), Decimal(2), currency="EUR")})
    said = price_sentence(model, settings)
    assert said is None if told is None else told in (said or "")


def usage_of(cost: str | None, currency: str | None = "USD", complete: bool = True) -> Usage:
    return Usage(turn_id="0" * 32, complete=complete, input=1, output=1, cost=cost, currency=currency)


def _ledger_with(usage: list[Usage]) -> Ledger:
    ledger = Ledger()
    ledger.apply_unrecorded(usage)
    return ledger


@pytest.mark.parametrize(
    ("usage", "amount", "complete"),
    [
        ([], None, True),
        ([usage_of(None, None)], None, True),  # a model without a price: no cost, and the counts are complete
        ([usage_of("0", None)], None, True),  # the model is free
        ([usage_of("0.1"), usage_of("0.2")], "0.30", True),
        ([usage_of("0.1"), usage_of("0", None)], "0.10", True),
        ([usage_of("0.1"), usage_of(None, None)], "0.10", False),
        ([usage_of("0.1"), usage_of(None, None, complete=False)], "0.10", False),
        ([usage_of("7", "CNY"), usage_of("0.1")], "0.10", False),
        ([usage_of("1e3"), usage_of("0.1")], "0.10", False),  # no plain decimal number: counts as unknown
        ([usage_of("NaN"), usage_of("-1")], "0.00", False),
    ],
)
def test_usage_view_sums_the_cost_in_the_last_billed_currency(
    usage: list[Usage], amount: str | None, complete: bool
) -> None:
    """U2, U1: the sum in the currency billed last. It is incomplete where it does not cover all requests."""
    view = usage_view(_ledger_with(usage))
    assert (view.cost.amount if view.cost else None, view.complete) == (amount, complete)


def test_spent_sums_tiny_costs_exactly_and_rounds_only_for_display() -> None:
    """U2: ten thousand requests of a ten-millionth add up exactly. Only the shown amount is rounded."""
    ledger = _ledger_with([usage_of("0.0000001")] * 10_000)
    assert usage_totals(ledger, "USD").amount == Decimal("0.001")
    assert [format_amount(Decimal(text)) for text in ("0", "1.5", "0.0000015", "0.123456", "12.100")] == [
        "0.00", "1.50", "0.000002", "0.123456", "12.10",
    ]  # fmt: skip
