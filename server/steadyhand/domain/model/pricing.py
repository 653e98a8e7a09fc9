"""What requests to a model cost (row U2): prices for a million tokens, in decimal arithmetic.

A price comes from the setting `cost.prices`, else from `KNOWN`. Each known price was read from the provider's own page
on the date in `SOURCES`. Prices change, so the setting wins. If a price depends on the hour, `KNOWN` has the higher
one, so that a cost is never too low. A model without a price has no cost; none is guessed.

Models that run on this machine cost nothing. A cost that the provider itself reports is used as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from steadyhand.domain.model.messages import UsagePart
from steadyhand.domain.model.provider_profiles import PROFILES, effective_model_name, is_on_this_machine
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import Price, Settings
from steadyhand_values import frozen

TOKENS_PER_PRICE = Decimal(1_000_000)
FREE = Price(Decimal(0), Decimal(0), currency=None)
RUN_HERE = frozenset({"practice", "ollama", "llamacpp", "vllm"})
"""Providers whose models run on this machine, unless their address says otherwise."""


@frozen
class Source:
    """The page where prices were read, and the date."""

    page: str
    read: str  # ISO date
    remark: str = ""  # a sentence, if the numbers need one


def _usd(input: str, output: str, cache_hit: str, cache_write: str | None = None) -> Price:
    return Price(Decimal(input), Decimal(output), Decimal(cache_hit), Decimal(cache_write) if cache_write else None)


SOURCES: Mapping[str, Source] = {
    "deepseek": Source(
        "https://api-docs.deepseek.com/quick_start/pricing",
        "2026-10-27",
        "These are its prices at peak hours; at other hours it bills half.",
    ),
    "anthropic": Source("https://platform.claude.com/docs/en/about-claude/pricing", "2026-10-16"),
    "openai": Source("https://developers.openai.com/api/docs/pricing", "2026-11-05"),
}
_FLASH = _usd("0.30", "1.20", "0.006")
KNOWN: Mapping[tuple[str, str], Price] = {
    ("deepseek", "deepseek-flash"): _FLASH,
    ("deepseek", "deepseek-v4-flash"): _FLASH,  # served and billed as the model above
    ("deepseek", "deepseek-v4-flash-vision-exp"): _FLASH,
    ("deepseek", "deepseek-v4-pro"): _usd("1.32", "3.96", "0.044"),
    ("anthropic", "claude-opus-5"): _usd("5", "25", "0.50", "6.25"),
    ("anthropic", "claude-haiku-4-5"): _usd("1", "5", "0.10", "1.25"),
    ("openai", "gpt-5-nano"): _usd("0.05", "0.40", "0.005"),
}


def price_of(model: ModelName, settings: Settings) -> Price | None:
    """Return the price of a model with these settings; None if it is unknown."""
    name = effective_model_name(model.provider, model.name) or model.name
    own = settings.prices.get(f"{model.provider}/{name}") or settings.prices.get(f"{model.provider}/*")
    if own is not None:
        return own
    base_url = settings.base_url if model.provider == settings.model.provider else None
    if model.provider in RUN_HERE:
        return FREE if base_url is None or is_on_this_machine(base_url) else None
    profile = PROFILES.get(model.provider)
    if profile is None or not profile.is_at(base_url):
        return None  # nobody knows who answers at that address, and for how much
    return KNOWN.get((model.provider, name))


def price_sentence(model: ModelName, settings: Settings) -> str | None:
    """Return a sentence for people about the price of a model; None if nothing is billed."""
    price = price_of(model, settings)
    name = f"{model.provider}/{effective_model_name(model.provider, model.name) or model.name}"
    if price is None:
        if billing_currency(model.provider) is not None:
            return f"What {name} costs is told by the provider with each answer."
        return (
            f"No price of {name} is known: no cost is shown, and with steadyhand.cost.cap it is not asked. Give one in"
            " steadyhand.cost.prices."
        )
    if price.currency is None:
        return None
    hit = price.input if price.cache_hit is None else price.cache_hit
    parts = f"{price.input:f} read, {hit:f} from the cache, {price.output:f} written"
    if price is not KNOWN.get((model.provider, name.partition("/")[2])):
        return f"A million tokens of {name} in {price.currency}: {parts}; by steadyhand.cost.prices."
    source = SOURCES[model.provider]
    remark = f" {source.remark}" if source.remark else ""
    return f"A million tokens of {name} in {price.currency}: {parts}; by {source.page} on {source.read}.{remark}"


def billing_currency(provider: str) -> str | None:
    """Return the currency in which a provider reports the cost of each request; None: it reports none."""
    profile = PROFILES.get(provider)
    return profile.billing_currency if profile is not None else None


def cost_of(price: Price, usage: UsagePart) -> Decimal | None:
    """Return the cost of a request; None if its tokens are unknown.

    Tokens that the provider does not tell apart count as fresh input, which is the highest price.
    """
    if usage.input is None or usage.output is None:
        return None
    hit = min(usage.cache_hit or 0, usage.input)
    written = min(usage.cache_write or 0, usage.input - hit)
    parts = (
        (usage.input - hit - written, price.input),
        (hit, price.input if price.cache_hit is None else price.cache_hit),
        (written, price.input if price.cache_write is None else price.cache_write),
        (usage.output, price.output),
    )
    return sum((tokens * per_million for tokens, per_million in parts), Decimal(0)) / TOKENS_PER_PRICE
