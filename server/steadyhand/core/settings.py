"""Settings as the session reads them: already merged, checked and defaulted by the edge (wire.md, "Settings")."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import attrs

from steadyhand.core.record import Mode, ModelName
from steadyhand.core.recovery import SettleSetting
from steadyhand.core.rules import NO_RULES, Rules


@attrs.frozen
class Price:
    """Of a million tokens. `currency`: ISO 4217; None: nothing is billed, in any."""

    input: Decimal
    output: Decimal
    cache_hit: Decimal | None = None  # None: as input
    cache_write: Decimal | None = None  # None: as input
    currency: str | None = "USD"


@attrs.frozen
class Settings:
    model: ModelName = attrs.field(factory=lambda: ModelName("practice", "practice"))
    mode: Mode = "ask"
    settle: SettleSetting = "checked"
    retry: bool = False
    base_url: str | None = None  # of the provider; None: its own
    key_variable: str | None = None  # name of the environment variable with its key; None: its usual one
    environment_add: Mapping[str, str] = attrs.field(factory=dict)
    rules: Rules = NO_RULES
    trusted: bool = True  # False: the editor says that the workspace is not trusted, so the agent only reads (row G2)
    continuation: bool = False  # whether the rest of an answer cut by its length is asked for (row P2)
    cost_cap: Decimal | None = None  # of a session, in the currency its model is billed in; None: no cap
    prices: Mapping[str, Price] = attrs.field(factory=dict)  # "provider/model" or "provider/*" → the user's own price
