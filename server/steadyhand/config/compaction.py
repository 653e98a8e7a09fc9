"""The settings about how much goes to a model: `model.window`, `compaction.*`, `titles` (rows K4, K5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, get_args

from steadyhand.config.sources import SettingSources
from steadyhand.domain.model.provider_profiles import PROVIDERS
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import CompactionSettings, TitleSetting

WINDOW_TOKENS_MIN = 1_024
WINDOW_TOKENS_MAX = 10_000_000
WINDOW_EXPECTED = f"a whole number from {WINDOW_TOKENS_MIN} to {WINDOW_TOKENS_MAX}"
AT_MIN = 0.5
AT_MAX = 0.95
TITLES: tuple[TitleSetting, ...] = get_args(TitleSetting)


def is_window(value: object) -> bool:
    """Return whether it can be `model.window`."""
    return isinstance(value, int) and not isinstance(value, bool) and WINDOW_TOKENS_MIN <= value <= WINDOW_TOKENS_MAX


def read_compaction(sources: SettingSources) -> CompactionSettings:
    """Return the settings of a compaction. Each that is invalid has its default."""
    default = CompactionSettings()
    at = f"a number from {AT_MIN} to {AT_MAX}"
    model = f"an object with a provider, one of {', '.join(PROVIDERS)}, and a name"
    chosen = sources.take("compaction.model", _is_model, model, None)
    return CompactionSettings(
        auto=sources.take("compaction.auto", lambda value: isinstance(value, bool), "true or false", default.auto),
        at=float(sources.take("compaction.at", _is_share, at, default.at)),
        model=None if chosen is None else ModelName(chosen["provider"], chosen["name"]),
    )


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and AT_MIN <= value <= AT_MAX


def _is_model(value: object) -> TypeGuard[Mapping[str, Any]]:
    if not isinstance(value, Mapping) or set(value) != {"provider", "name"} or value["provider"] not in PROVIDERS:
        return False
    name = value["name"]
    return isinstance(name, str) and bool(name.strip()) and "\0" not in name
