"""Settings as the session reads them: merged, checked and defaulted by `config` (docs/protocol.md, "Settings")."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import attrs

from steadyhand.domain.permissions.rules import NO_RULES, PermissionRules
from steadyhand.domain.records.record import Mode, ModelName
from steadyhand.domain.recovery.tables import SettleSetting
from steadyhand_values import frozen

DialectSetting = Literal["auto", "chat", "messages", "responses"]
DIALECT_SETTINGS: tuple[DialectSetting, ...] = ("auto", "chat", "messages", "responses")
"""Every value of `model.dialect`; `auto` is the provider's usual dialect."""


@frozen
class Price:
    """The price of a million tokens. `currency`: ISO 4217; None: the model costs nothing."""

    input: Decimal
    output: Decimal
    cache_hit: Decimal | None = None  # None: same as `input`
    cache_write: Decimal | None = None  # None: same as `input`
    currency: str | None = "USD"


SandboxMode = Literal["auto", "required", "off"]
SandboxNetwork = Literal["deny", "allow"]


@frozen
class SandboxSettings:
    """How the model's commands are confined (row O1)."""

    mode: SandboxMode = "auto"  # `auto`: where the sandbox works; `required`: or not at all; `off`: never
    network: SandboxNetwork = "deny"  # `deny`: each command has a network of its own; `allow`: the host's
    write: tuple[str, ...] = ()  # absolute folders below which commands may write besides the workspace


@frozen
class CompactionSettings:
    """When and by which model a conversation is compacted (row K4)."""

    auto: bool = True  # before a request that would fill the window, and after a provider's "too long"
    at: float = 0.8  # share of the window above which that is
    model: ModelName | None = None  # that summarises; None: the session's


TitleSetting = Literal["firstLine", "model"]
"""Where an automatic title comes from (row K5)."""


@frozen
class EncodingRule:
    """One entry of `files.encoding`: the encoding of the files that it fits (row W10)."""

    encoding: str  # a name of the closed list
    match: str | None = None  # a pattern of a path; None: every path
    language: str | None = None  # of an open document, as the editor calls it; None: every language


@frozen
class Settings:
    """All settings; the defaults are those of docs/protocol.md, "Settings"."""

    model: ModelName = attrs.field(factory=lambda: ModelName("practice", "practice"))
    mode: Mode = "ask"
    settle: SettleSetting = "checked"
    retry: bool = False  # whether Retry is offered (row F1)
    base_url: str | None = None  # address of the provider; None: its own
    key_variable: str | None = None  # environment variable with the provider's key; None: its usual one
    dialect: DialectSetting = "auto"  # of the provider's requests; auto: its usual one (row P6)
    window: int | None = None  # tokens that the model takes; None: what its provider says
    compaction: CompactionSettings = CompactionSettings()
    titles: TitleSetting = "firstLine"
    environment_add: Mapping[str, str] = attrs.field(factory=dict)  # variables for children: name → value (row E1)
    rules: PermissionRules = NO_RULES
    trusted: bool = True  # False: the editor does not trust the workspace, so the agent only reads (row G2)
    trusted_folders: tuple[str, ...] | None = None  # URIs of the folders that it trusts; None: all that are open (S11)
    continuation: bool = False  # whether the rest of an answer cut by its length is asked for (row P2)
    cost_cap: Decimal | None = None  # of a session, in the currency of its model's price; None: no cap
    prices: Mapping[str, Price] = attrs.field(factory=dict)  # "provider/model" or "provider/*" → the user's price
    retention_days: int = 90  # how long stored contents of old turns are kept (row K6); 0: for ever
    sandbox: SandboxSettings = SandboxSettings()
    encodings: tuple[EncodingRule, ...] = ()  # the first that fits counts
