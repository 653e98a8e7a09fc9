"""What goes to a model and what comes back, for every provider alike.

A request is the whole outgoing view: fixed system text, fixed tools in name order, messages that only grow. A
stream is parts in order; only a stream that ends with `Finish` is complete. A proposed call becomes real only
with a `CallProposed` part: its argument text is whole there, and never guessed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

FinishReason = Literal["stop", "calls", "length", "filtered", "unknown"]


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
    text: str
    message_id: str = ""


@attrs.frozen
class AssistantMessage:
    text: str  # may be empty only when there are calls
    calls: tuple[AskedCall, ...] = ()
    reasoning: str | None = None


@attrs.frozen
class ReplyMessage:
    """The one reply to one call. `state` and `reason` are the words of wire.md's call states, for the practice model."""

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
    output_tokens_max: int | None = None


@attrs.frozen
class TextPart:
    delta: str


@attrs.frozen
class ReasoningPart:
    delta: str


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


class ModelTrouble(Exception):
    """A provider that cannot answer. The text is one clear sentence that says what to do next."""
