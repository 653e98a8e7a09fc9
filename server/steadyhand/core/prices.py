"""What requests to a model cost (row U2): prices for a million tokens, in decimal arithmetic.

A price is the user's own (setting `cost.prices`), else one of `KNOWN`, each read off the provider's own page on the
day that stands beside it; prices change, so the setting wins. Where a price depends on the hour the higher one stands
here: a cost is then never told too low. A model without a price has no cost, and none is invented.

What runs on this machine bills nothing. A provider that tells what it billed is believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import attrs

from steadyhand.core.model import UsagePart
from steadyhand.core.profiles import PROFILES, chosen_name, is_here
from steadyhand.core.record import ModelName
from steadyhand.core.settings import Price, Settings

tokens_per_price = Decimal(1_000_000)
FREE = Price(Decimal(0), Decimal(0), currency=None)
RUN_HERE = frozenset({"practice", "ollama", "llamacpp", "vllm"})
"""Providers whose models run on this machine, unless their address says otherwise."""


@attrs.frozen
class Source:
    """Where prices were read, and when."""

    page: str
    read: str  # date
    remark: str = ""  # a sentence, where the number needs one


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
    ("deepseek", "deepseek-v4-flash"): _FLASH,  # names that are served by, and billed as, the one above
    ("deepseek", "deepseek-v4-flash-vision-exp"): _FLASH,
    ("deepseek", "deepseek-v4-pro"): _usd("1.32", "3.96", "0.044"),
    ("anthropic", "claude-opus-5"): _usd("5", "25", "0.50", "6.25"),
    ("anthropic", "claude-haiku-4-5"): _usd("1", "5", "0.10", "1.25"),
    ("openai", "gpt-5-nano"): _usd("0.05", "0.40", "0.005"),
}


def price_of(model: ModelName, settings: Settings) -> Price | None:
    """The price that holds for a model with these settings; None where nobody knows one."""
    name = chosen_name(model.provider, model.name) or model.name
    own = settings.prices.get(f"{model.provider}/{name}") or settings.prices.get(f"{model.provider}/*")
    if own is not None:
        return own
    base_url = settings.base_url if model.provider == settings.model.provider else None
    if model.provider in RUN_HERE:
        return FREE if base_url is None or is_here(base_url) else None
    profile = PROFILES.get(model.provider)
    if profile is None or not profile.is_at(base_url):
        return None  # who answers there, and for how much, is not known
    return KNOWN.get((model.provider, name))


def price_told(model: ModelName, settings: Settings) -> str | None:
    """A sentence on what a model costs, for people; None where nothing is billed."""
    price = price_of(model, settings)
    name = f"{model.provider}/{chosen_name(model.provider, model.name) or model.name}"
    if price is None:
        if billed_in(model.provider) is not None:
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


def billed_in(provider: str) -> str | None:
    """The currency in which a provider tells the cost of each request; None: it does not."""
    profile = PROFILES.get(provider)
    return profile.billed_in if profile is not None else None


def cost_of(price: Price, usage: UsagePart) -> Decimal | None:
    """What a request cost; None where its tokens are not known. Whatever the provider does not tell apart counts as
    fresh input, which is the dearer way."""
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
    return sum((tokens * per_million for tokens, per_million in parts), Decimal(0)) / tokens_per_price
