"""Values that every other module uses: identifiers, times, bounds, enumerations and the smallest shapes.

A wire type is a frozen attrs class with keyword arguments. Three rules map it to JSON (see `wire`). The key is the
attribute's name in camelCase (`from_` is `from`). A field with the default None may be left out, and null is never a
value. A field with another default is a constant that must still be sent.

The comment on a field is part of the contract: `generate.py` copies it to the JSON Schema and to TypeScript. An
`Annotated` alias narrows a plain type to a pattern (`Form`), a size (`AtMost`) or a range (`Between`).
"""

from typing import Annotated, Literal, TypeAlias

from steadyhand_values import frozen

ATTACHMENT_TEXT_BYTES_MAX = 262_144
ATTACHMENTS_COUNT_MAX = 20
INTEGER_VALUE_MAX = 2**53 - 1
POSITION_VALUE_MAX = 2**31 - 1
UNCERTAIN_TITLE_CHARS_MAX = 80
INSPECTION_DIFF_BYTES_MAX = 65_536
INSPECTION_CHANGED_COUNT_MAX = 200


@frozen
class Form:
    """A string that matches `pattern` as a whole; `expected` says so in words."""

    pattern: str
    expected: str


@frozen
class AtMost:
    """At most `count` of `unit`: bytes of UTF-8 or characters of a string, items of an array."""

    count: int
    unit: Literal["bytes", "characters", "items"]


@frozen
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
Count: TypeAlias = Annotated[int, Between(0, INTEGER_VALUE_MAX)]
Ordinal: TypeAlias = Annotated[int, Between(1, INTEGER_VALUE_MAX)]
Offset: TypeAlias = Annotated[int, Between(0, POSITION_VALUE_MAX)]

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


@frozen(kw_only=True)
class Nothing:
    """The empty object `{}`: params without content, or a result that only says that the request is done."""


@frozen(kw_only=True)
class Position:
    """A position in a text, as in LSP."""

    line: Offset  # from 0
    character: Offset  # from 0, in units of the negotiated position encoding


@frozen(kw_only=True)
class Range:
    """A range of a text, as in LSP."""

    start: Position  # first position in the range
    end: Position  # first position after the range


@frozen(kw_only=True)
class ScopePaths:
    """The effect touches at most these paths; an empty array: it touches none."""

    paths: tuple[str, ...]  # relative to the workspace with `/`, absolute if outside


@frozen(kw_only=True)
class ScopeEverything:
    """The effect may touch anything."""

    everything: Literal[True] = True  # always true


Scope: TypeAlias = ScopePaths | ScopeEverything


@frozen(kw_only=True)
class ChangedPath:
    """One path whose content really changed."""

    path: str  # relative to the workspace with `/`, absolute if outside; after a move the new path
    change: Change  # what happened to it
    from_: str | None = None  # the old path; given if and only if change is "moved"


@frozen(kw_only=True)
class ModelChoice:
    """Which model answers."""

    provider: str  # a value of the setting `model.provider`
    name: str  # the provider's own name for the model


@frozen(kw_only=True)
class BilledTokens:
    """Tokens summed over all requests of the session."""

    input: Count  # tokens sent, cached or not
    output: Count  # tokens received, including reasoning
    cache_hit: Count  # input tokens read from the provider's cache
    cache_miss: Count  # input tokens not read from the cache


@frozen(kw_only=True)
class Cost:
    """Money spent by the session."""

    amount: str  # a decimal number as text, so that it is exact
    currency: str  # ISO 4217 code


@frozen(kw_only=True)
class AuxiliaryUsage:
    """What went into summaries and titles; part of `billed` and of the cost."""

    requests: Count  # how many requests
    input: Count  # tokens read
    output: Count  # tokens written


@frozen(kw_only=True)
class Usage:
    """What a session used, over all restarts."""

    billed: BilledTokens  # summed over requests
    context: Count  # tokens of the last request of the conversation itself
    window: Count | None = None  # tokens that the model can take; absent when unknown
    cost: Cost | None = None  # absent when no price is known or nothing was billed
    complete: bool  # false when some request reported no tokens, or the cost is not that of all requests
    auxiliary: AuxiliaryUsage | None = None  # of summaries and titles; absent when there were none


@frozen(kw_only=True)
class BeforeCompaction:
    """What went to the model before a compaction."""

    messages: Count  # how many messages
    context_tokens: Count  # of a request with them; an estimate where no provider has counted


@frozen(kw_only=True)
class AfterCompaction:
    """What goes to the model after a compaction."""

    messages: Count  # how many messages


@frozen(kw_only=True)
class Owner:
    """The process that owns a session."""

    pid: Count  # its process id
    host: str  # name of its machine
    since: Time  # when it took the owner lock


@frozen(kw_only=True)
class ReadOnly:
    """Why a session can only be read."""

    reason: Literal["owned", "newer", "disk", "damaged", "unsafe"]  # of another process, newer, or others control it
    owner: Owner | None = None  # given for "owned" when it is known
    text: str  # one sentence for the user
