"""What goes to a model and what comes back, for every provider alike.

A request is the whole outgoing view: fixed system text, fixed tools in name order, messages that only grow. A
stream is parts in order; only a stream that ends with `Finish` is complete. A proposed call becomes real only
with a `CallProposed` part: its argument text is whole there, and never guessed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

FinishReason = Literal["stop", "calls", "length", "filtered", "unknown"]

TroubleKind = Literal[
    "other",
    "settings",  # an address or a model name is missing or cannot be used
    "keyMissing",  # no key was found; nothing was sent
    "key",  # 401: the key is not accepted
    "balance",  # 402, or a quota that is used up
    "forbidden",  # 403
    "notFound",  # 404: no such model, or no such address
    "tooLarge",  # 413: more bytes than the provider takes
    "window",  # more tokens than the model's window holds; nothing was sent, or the provider refused it
    "reasoning",  # the provider wants reasoning back that nobody has; `ModelRequest.thinking` False goes on
    "rejected",  # another 4xx: the request is wrong, and the same one will be again
    "rate",  # 429
    "overloaded",  # 503, 529, or capacity that ran out in mid-answer
    "server",  # another 5xx
    "unreachable",  # no connection, or closed before the answer's first byte
    "silent",  # no sign of life, or no progress, within the limit
    "redirected",  # 3xx; never followed
    "notAProvider",  # a web page or text where an answer should be
    "garbled",  # an answer nobody can read: broken JSON, broken UTF-8, over a bound
]


@attrs.frozen
class ToolOffer:
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: str  # JSON Schema as canonical JSON text


@attrs.frozen
class AskedCall:
    """A call inside an outgoing assistant message."""

    call_id: str  # our id, unique; adapters map it to the provider's rules
    tool: str
    arguments: str  # JSON text of an object


@attrs.frozen
class UserMessage:
    """`attached`: what goes out behind the text; apart from it for the practice model, which reads sentences."""

    text: str
    message_id: str = ""
    attached: str = ""

    @property
    def whole(self) -> str:
        """As a provider gets it."""
        return f"{self.text}\n\n{self.attached}" if self.attached else self.text


@attrs.frozen
class AssistantMessage:
    text: str  # may be empty only when there are calls
    calls: tuple[AskedCall, ...] = ()
    reasoning: str | None = None
    sealed: str | None = None  # `ReasoningPart.sealed` of this answer, as it came


@attrs.frozen
class ReplyMessage:
    """The one reply to one call. `state` and `reason` are words of wire.md's call states, for the practice model."""

    call_id: str
    text: str
    state: str
    reason: str | None = None


OutMessage: TypeAlias = "UserMessage | AssistantMessage | ReplyMessage"


@attrs.frozen
class ModelRequest:
    system: str
    tools: tuple[ToolOffer, ...]
    messages: tuple[OutMessage, ...]
    output_tokens_max: int | None = None  # None: the adapter's default; clamped to what the window leaves
    input_tokens: int | None = None  # what system, tools and messages are known to have; None: estimated
    counted: int | None = None  # how many of the messages `input_tokens` counts, from the first; None: all of them
    thinking: bool = True  # False: ask without reasoning where that can be said (after trouble "reasoning")
    may_call: bool = True  # False: the tools stand there, for the prefix's sake, and none may be called
    continues: bool = False  # the last message is an AssistantMessage to be gone on with (row P2); then no tools


@attrs.frozen
class TextPart:
    delta: str


@attrs.frozen
class ReasoningPart:
    """Reasoning as text. `sealed`, at most once and whole: what the provider wants back unread (signed blocks)."""

    delta: str
    sealed: str | None = None


@attrs.frozen
class CallProposed:
    """One whole call. `arguments` is the text as the model wrote it; it may not parse."""

    tool: str
    arguments: str
    provider_id: str | None = None


@attrs.frozen
class UsagePart:
    """Tokens of this one request; None: the provider did not say."""

    input: int | None = None
    output: int | None = None
    cache_hit: int | None = None
    cache_miss: int | None = None
    window: int | None = None
    cache_write: int | None = None  # of the misses, what was written to the cache for a price of its own
    billed: str | None = None  # what the provider says it costs, a decimal number in its profile's currency


@attrs.frozen
class Finish:
    reason: FinishReason


StreamPart: TypeAlias = "TextPart | ReasoningPart | CallProposed | UsagePart | Finish"


@attrs.frozen
class Answered:
    """A whole answer, merged. `finish` None: the stream was cut."""

    text: str
    reasoning: str | None
    calls: tuple[CallProposed, ...]
    usage: UsagePart | None
    finish: FinishReason | None


Looked = Literal["model", "key", "reachable", "window", "streaming", "calls"]
"""What of a provider is looked at: the model itself, then what it takes to use it."""


@attrs.frozen
class Finding:
    """What a look at a provider found of one thing; no secret is in it."""

    what: Looked
    fine: bool
    text: str  # one sentence, with what to do where it is not fine


class ModelTrouble(Exception):
    """A provider that cannot answer. The text is one clear sentence that says what to do next.

    `retryable`: the same request may be sent again, if no call of its answer was started (row P3). `retry_after_s`:
    the provider's own wish in seconds, unbounded. `status`: of HTTP, None where none came. No secret is in any of it.
    """

    def __init__(
        self,
        text: str,
        *,
        kind: TroubleKind = "other",
        retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(text)
        self.kind: TroubleKind = kind
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.status = status
