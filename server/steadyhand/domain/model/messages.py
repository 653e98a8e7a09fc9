"""Messages to and from a model, the same for every provider.

A request is the whole outgoing view: fixed system text, fixed tools in the order of their names, and messages that only
grow. A stream is a sequence of parts; it is complete only if it ends with `Finish`. A call exists only after its
`CallProposed` part, which holds the whole text of its arguments; arguments are never guessed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from steadyhand_values import frozen

FinishReason = Literal["stop", "calls", "length", "filtered", "unknown"]
RequestPurpose = Literal["turn", "summary", "title"]
"""What an answer is for; only the practice model needs to know."""

TroubleKind = Literal[
    "other",
    "settings",  # an address or a model name is missing or cannot be used
    "keyMissing",  # no key was found, and nothing was sent
    "key",  # 401: the key is not accepted
    "balance",  # 402, or the quota is used up
    "forbidden",  # 403
    "notFound",  # 404: no such model, or no such address
    "tooLarge",  # 413: more bytes than the provider takes
    "window",  # more tokens than the window holds; either nothing was sent or the provider refused it
    "reasoning",  # the provider wants reasoning back that nobody has; ask again with `ModelRequest.thinking` False
    "rejected",  # another 4xx: the request is wrong, so repeating it does not help
    "rate",  # 429
    "overloaded",  # 503, 529, or out of capacity in the middle of an answer
    "server",  # another 5xx
    "unreachable",  # no connection, or it was closed before the first byte of the answer
    "silent",  # no byte, or no progress, within the limit
    "redirected",  # 3xx; never followed
    "notAProvider",  # a web page or plain text instead of an answer
    "garbled",  # an unreadable answer: broken JSON, broken UTF-8, over a bound
]


@frozen
class ToolOffer:
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: str  # JSON Schema as canonical JSON text


@frozen
class OutgoingCall:
    """A call inside an outgoing assistant message."""

    call_id: str  # our id, unique; adapters map it to the provider's rules
    tool: str
    arguments: str  # JSON text of an object


@frozen
class UserMessage:
    """A user's text, or a message of the server in the role of the user.

    `attached` follows it, and is separate because the practice model reads sentences in `text` only.
    """

    text: str
    message_id: str = ""
    attached: str = ""
    is_told: bool = False  # True: a stored message of the server, which is no prompt (row G15)

    @property
    def whole(self) -> str:
        """The text as a provider gets it."""
        return f"{self.text}\n\n{self.attached}" if self.attached else self.text


@frozen
class AssistantMessage:
    """An earlier answer of the model."""

    text: str  # may be empty only if there are calls
    calls: tuple[OutgoingCall, ...] = ()
    reasoning: str | None = None
    sealed: str | None = None  # `ReasoningPart.sealed` of this answer, unchanged


@frozen
class ReplyMessage:
    """The one reply to one call.

    `state` and `reason` are for the practice model. `state` is a call state of docs/recovery.md, "The words for an
    end"; `reason` a word of docs/protocol.md, "Chosen here".
    """

    call_id: str
    text: str
    state: str
    reason: str | None = None


OutMessage: TypeAlias = "UserMessage | AssistantMessage | ReplyMessage"


@frozen
class ModelRequest:
    """One request: the whole outgoing view and its limits."""

    system: str
    tools: tuple[ToolOffer, ...]
    messages: tuple[OutMessage, ...]
    output_tokens_max: int | None = None  # None: the adapter's default; clamped to what the window leaves
    input_tokens: int | None = None  # known tokens of system, tools and messages; None: estimate them
    counted: int | None = None  # how many messages, from the first, `input_tokens` counts; None: all
    thinking: bool = True  # False: ask without reasoning if the provider can (after trouble "reasoning")
    can_call: bool = True  # False: the tools are listed only to keep the prefix stable; none may be called
    is_continuation: bool = False  # True: the last message is an AssistantMessage to continue (row P2); no tools
    purpose: RequestPurpose = "turn"


@frozen
class TextPart:
    """A piece of the answer's text."""

    delta: str


@frozen
class ReasoningPart:
    """Reasoning as text.

    `sealed` comes at most once and whole: signed blocks that the provider wants back unread.
    """

    delta: str
    sealed: str | None = None


@frozen
class CallProposed:
    """One whole call. `arguments` is the text as the model wrote it; it may not parse."""

    tool: str
    arguments: str
    provider_id: str | None = None


@frozen
class UsagePart:
    """Tokens of this one request; None: the provider did not tell."""

    input: int | None = None
    output: int | None = None
    cache_hit: int | None = None
    cache_miss: int | None = None
    window: int | None = None
    cache_write: int | None = None  # of the misses: written to the cache, at a price of its own
    billed: str | None = None  # cost that the provider tells: a decimal number in its profile's currency


@frozen
class Finish:
    """The end of a complete stream."""

    reason: FinishReason
    word: str = attrs.field(default="", eq=False)  # the provider's own word, short


StreamPart: TypeAlias = "TextPart | ReasoningPart | CallProposed | UsagePart | Finish"


@frozen
class WholeAnswer:
    """A whole answer, merged from its parts. `finish` is None if the stream was cut."""

    text: str
    reasoning: str | None
    calls: tuple[CallProposed, ...]
    usage: UsagePart | None
    finish: FinishReason | None


ProviderAspect = Literal["model", "key", "reachable", "window", "streaming", "calls"]
"""The things that the doctor checks of a provider: the model itself, then what using it takes."""


@frozen
class Finding:
    """The result of checking one thing of a provider; it holds no secret."""

    what: ProviderAspect
    fine: bool
    text: str  # one sentence; if the thing is not fine, it says what to do


class ProviderError(Exception):
    """The provider cannot answer. The text is one sentence that says what to do next; it holds no secret.

    `retryable`: the same request may be sent again, provided that no call of its answer has started (row P3).
    `retry_after_s`: the pause that the provider asks for, in seconds, unbounded. `status`: of HTTP; None: no response
    came. `words`: what the provider said, redacted, with the names of members it said it about; the text quotes its
    beginning.
    """

    def __init__(
        self,
        text: str,
        *,
        kind: TroubleKind = "other",
        retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
        words: str = "",
    ) -> None:
        super().__init__(text)
        self.kind: TroubleKind = kind
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.status = status
        self.words = words
