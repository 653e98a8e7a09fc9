"""The words every other room uses: identifiers, times, bounds, enumerations and the smallest shapes.

A wire type is a frozen attrs class with keyword arguments. Three rules tie it to JSON (see `wire`): the
key is the attribute's name in camelCase (`from_` is `from`); a field that defaults to None may be left
out, and null is never a value; a field with another default is a constant which must still stand on the
wire. The comment on a field is part of the contract: `generate.py` copies it into the JSON Schema and the
TypeScript. An `Annotated` alias narrows a plain type: to a pattern (`Form`), a size (`AtMost`) or a range
(`Between`).
"""

from typing import Annotated, Literal, TypeAlias

import attrs

attachment_text_bytes_max = 262_144
attachments_count_max = 20
integer_value_max = 2**53 - 1
position_value_max = 2**31 - 1
uncertain_title_chars_max = 80
inspection_diff_bytes_max = 65_536
inspection_changed_count_max = 200


@attrs.frozen
class Form:
    """A string that matches `pattern` as a whole; `expected` says so in words."""

    pattern: str
    expected: str


@attrs.frozen
class AtMost:
    """At most `count` of `unit`: bytes of UTF-8 or characters of a string, items of an array."""

    count: int
    unit: Literal["bytes", "characters", "items"]


@attrs.frozen
class Between:
    """An integer from `low` to `high`, both included."""

    low: int
    high: int


# --- identifiers, times, sizes ------------------------------------------------------------------------------

Id: TypeAlias = Annotated[str, Form("[0-9a-f]{32}", "32 lower-case hexadecimal digits")]
ClientMessageId: TypeAlias = Annotated[str, Form("[ -~]{1,128}", "1 to 128 printable ASCII characters")]
Digest: TypeAlias = Annotated[str, Form("[0-9a-f]{64}", "64 lower-case hexadecimal digits")]
Time: TypeAlias = Annotated[
    str,
    Form(
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z",
        "a UTC time with milliseconds, as 2026-01-31T09:30:00.000Z",
    ),
]
Count: TypeAlias = Annotated[int, Between(0, integer_value_max)]
Ordinal: TypeAlias = Annotated[int, Between(1, integer_value_max)]
Offset: TypeAlias = Annotated[int, Between(0, position_value_max)]

# --- enumerations -------------------------------------------------------------------------------------------

Mode: TypeAlias = Literal["plan", "ask", "edits", "auto"]
Change: TypeAlias = Literal["created", "modified", "deleted", "moved"]
Check: TypeAlias = Literal["satisfied", "unchanged", "conflict", "unknown"]
Settled: TypeAlias = Literal[
    "checked_present",
    "checked_absent",
    "user_confirmed",
    "model_confirmed",
    "waived",
    "restored",
    "superseded",
]
Reason: TypeAlias = Literal[
    "done",
    "cancelled",
    "length",
    "filtered",
    "cut",
    "modelFailed",
    "bound",
    "cost",
    "journalBroken",
    "recoveryRequired",
    "closed",
]

# --- small shapes -------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Nothing:
    """The empty object `{}`: params that say nothing, or a result that only says it is done."""


@attrs.frozen(kw_only=True)
class Position:
    """A place in a text, as in LSP."""

    line: Offset  # from 0
    character: Offset  # from 0, in units of the negotiated position encoding


@attrs.frozen(kw_only=True)
class Range:
    """A stretch of a text, as in LSP."""

    start: Position  # the first place that belongs to it
    end: Position  # the first place that no longer belongs to it


@attrs.frozen(kw_only=True)
class ScopePaths:
    """An effect that touches at most these paths; an empty array for one that touches none."""

    paths: tuple[str, ...]  # relative to the workspace with `/`, absolute if outside


@attrs.frozen(kw_only=True)
class ScopeEverything:
    """An effect that may touch anything."""

    everything: Literal[True] = True  # always true


Scope: TypeAlias = ScopePaths | ScopeEverything


@attrs.frozen(kw_only=True)
class ChangedPath:
    """One path whose content really changed."""

    path: str  # relative to the workspace with `/`, absolute if outside; after a move the new place
    change: Change  # what happened to it
    from_: str | None = None  # the old place; given when and only when change is "moved"


@attrs.frozen(kw_only=True)
class ModelChoice:
    """Which model answers."""

    provider: str  # a word of the setting `model.provider`
    name: str  # the provider's own name for the model


@attrs.frozen(kw_only=True)
class BilledTokens:
    """Tokens summed over all requests of the session."""

    input: Count  # tokens sent, cached or not
    output: Count  # tokens received, reasoning among them
    cache_hit: Count  # of the input, read from the provider's cache
    cache_miss: Count  # of the input, not read from it


@attrs.frozen(kw_only=True)
class Cost:
    """Money spent by the session."""

    amount: str  # a decimal number as text, for exactness
    currency: str  # ISO 4217 code


@attrs.frozen(kw_only=True)
class Usage:
    """What a session used, carried over restarts."""

    billed: BilledTokens  # summed over requests
    context: Count  # tokens of the last request
    window: Count | None = None  # tokens the model can take; absent when not known
    cost: Cost | None = None  # absent when there is no price for the model
    complete: bool  # false when some request gave no usage


@attrs.frozen(kw_only=True)
class Owner:
    """The process that owns a session."""

    pid: Count  # its process id
    host: str  # name of its machine
    since: Time  # when it took the owner lock


@attrs.frozen(kw_only=True)
class ReadOnly:
    """Why a session can only be read."""

    reason: Literal["owned", "newer", "disk", "damaged"]  # another owner, a newer format, the disk, or damage
    owner: Owner | None = None  # given for "owned", when it could be read
    text: str  # one sentence for the user
