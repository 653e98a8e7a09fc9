"""Anthropic's Messages API: the request, and the reader of its responses.

    body = {"model", ["tools"], "system", "messages", "max_tokens", "stream", [extra]}
    user turn      = [tool_result …] [text …]      adjacent messages of one role are merged, results first
    assistant turn = [thinking …] [text] [tool_use …], or exactly as it came, if it is sealed

The thinking of a response is signed and must go back unchanged in the same turn. `sealed` records the order of the
blocks: thinking as it is, text by its length, calls by their place.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from steadyhand.adapters.models.errors import ProviderErrors
from steadyhand.adapters.models.finish_reasons import closed_arguments, input_text, is_failure, make_finish
from steadyhand.adapters.models.json_body import Raw, Value, body_of, text_of
from steadyhand.adapters.models.stream_parser import (
    SurrogateJoiner,
    UnreadableStream,
    object_of,
    replace_surrogates,
    storable_arguments,
    string_of,
    token_count,
)
from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    ModelRequest,
    OutMessage,
    ProviderError,
    ReasoningPart,
    ReplyMessage,
    StreamPart,
    UsagePart,
)
from steadyhand.domain.model.provider_profiles import Profile
from steadyhand_values import define

PATH = "/v1/messages"
VERSION = "2023-06-01"
BLOCKS_MAX = 512  # of one response
EMPTY_REPLY = "(no output)"

_THINKING = ("thinking", "redacted_thinking")


def messages_headers(key: str) -> dict[str, str]:
    """Return the headers with the key."""
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


def messages_body(
    profile: Profile,
    model: str,
    request: ModelRequest,
    output_tokens_max: int | None,
    left_out: Collection[str] = (),
) -> bytes:
    """Return the bytes of a request. `left_out`: optional members not to send."""
    assert not request.is_continuation, "this API does not continue an assistant message"
    members: dict[str, Value] = {"model": model}
    if request.tools:
        members["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": Raw(tool.parameters)}
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
    if request.system.strip():
        members["system"] = request.system
    members["messages"] = _turns(model, request.messages)
    members[profile.output_member] = output_tokens_max
    members["stream"] = True
    if not request.can_call and "tools" in members:
        members["tool_choice"] = {"type": "none"}
    for name in left_out:
        members.pop(name, None)
    return body_of(members, profile.extra, None if request.thinking else profile.thinking_off)


def _turns(model: str, messages: Sequence[OutMessage]) -> list[Value]:
    """Merge adjacent messages of one role; leave out a message without a block (case 17)."""
    turns: list[tuple[str, list[Value]]] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = _blocks(model, message)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((role, blocks))
    return [{"role": role, "content": blocks} for role, blocks in turns]


def _blocks(model: str, message: OutMessage) -> list[Value]:
    if isinstance(message, ReplyMessage):
        text = message.text if message.text.strip() else EMPTY_REPLY
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": text}]
    if not isinstance(message, AssistantMessage):
        return [{"type": "text", "text": message.whole}] if message.text.strip() else []
    calls: list[Value] = [
        {"type": "tool_use", "id": call.call_id, "name": call.tool, "input": Raw(call.arguments)}
        for call in message.calls
    ]
    if message.sealed is not None and (sealed := _restore_sealed(model, message, calls)) is not None:
        return sealed
    return [*([{"type": "text", "text": message.text}] if message.text.strip() else []), *calls]


def _restore_sealed(model: str, message: AssistantMessage, calls: list[Value]) -> list[Value] | None:
    """Return the blocks in their original order; None if the seal is another model's or does not match."""
    try:
        payload = json.loads(message.sealed or "")
        blocks: list[Value] = []
        at = called = 0
        if payload["model"] != model:
            return None
        for entry in payload["blocks"]:
            if isinstance(entry, int):
                text = message.text[at : at + entry]
                at += entry
                blocks += [{"type": "text", "text": text}] if text.strip() else []
            elif entry == "call":
                blocks.append(calls[called])
                called += 1
            else:
                blocks.append(Raw(json.dumps(entry, ensure_ascii=False, separators=(",", ":"))))
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return blocks if at == len(message.text) and called == len(calls) else None


@define
class _BlockFragment:
    """One content block that is being assembled."""

    kind: str
    start: dict[str, Any]  # the object that opened it
    pieces: list[str] = attrs.field(factory=list)
    signature: str = ""
    is_closed: bool = False

    def text(self) -> str:
        return "".join(self.pieces)

    def arguments(self) -> str:
        """Return a call's input: of its deltas; if there is none, the one that the block began with (case 108)."""
        return self.text() or input_text(self.start.get("input"))


class MessagesReader:
    """`stream_parser.StreamReader` of the Messages API."""

    def __init__(self, errors: ProviderErrors, model: str, window: int | None = None) -> None:
        self.progress_count = 0
        self.is_finished = False
        self.is_closed = False
        self.failure: ProviderError | None = None
        self._errors = errors
        self._model = model
        self._window = window
        self._text = SurrogateJoiner()
        self._reasoning = SurrogateJoiner()
        self._blocks: dict[int, _BlockFragment] = {}
        self._usage: dict[str, Any] = {}
        self._has_output_count = False
        self._reason = ""

    def read_event(self, payload: Mapping[str, Any]) -> list[StreamPart]:
        match payload.get("type"):
            case "message_start":
                message = payload.get("message")
                self._usage.update(object_of(object_of(message).get("usage")))
                self.progress_count += 1
            case "content_block_start":
                self.progress_count += 1
                return self._begin_block(_index(payload), object_of(payload.get("content_block")))
            case "content_block_delta":
                self.progress_count += 1
                return self._add_delta(self._open_block(payload), object_of(payload.get("delta")))
            case "content_block_stop":
                self.progress_count += 1
                self._open_block(payload).is_closed = True
            case "message_delta":
                self.progress_count += 1
                self._note_end(object_of(payload.get("delta")).get("stop_reason"), payload.get("usage"))
            case "message_stop":
                self.is_closed = True
            case _:
                pass  # pings, and events of a later version
        return []

    def read_whole(self, payload: Mapping[str, Any]) -> list[StreamPart]:
        content = payload.get("content")
        if payload.get("type") != "message" or not isinstance(content, list):
            raise UnreadableStream("a message")
        parts: list[StreamPart] = []
        for index, block in enumerate(content):
            parts += self._begin_block(index, object_of(block))
            made = self._blocks[index]
            made.is_closed = True
        self._note_end(payload.get("stop_reason"), payload.get("usage"))
        return parts

    def finish(self) -> list[StreamPart]:
        usage: list[StreamPart] = [self._usage_part()] if self._usage else []
        is_whole = all(block.is_closed for block in self._blocks.values())
        if not self.is_finished or self.failure is not None or not is_whole:
            return usage
        used = [block for _, block in sorted(self._blocks.items()) if block.kind == "tool_use"]
        finish = make_finish(self._reason, bool(used))
        if finish.reason == "filtered":
            return [*usage, finish]  # a refused response proposes no call
        calls: list[StreamPart] = [
            CallProposed(
                replace_surrogates(str(block.start.get("name") or "")),
                closed_arguments(storable_arguments(block.arguments()), self._reason),
                str(block.start.get("id") or "") or None,
            )
            for block in used
        ]
        return [*self._seal(), *calls, *usage, finish]

    def _begin_block(self, index: int, payload: Mapping[str, Any]) -> list[StreamPart]:
        if index in self._blocks or len(self._blocks) >= BLOCKS_MAX:
            raise UnreadableStream("a block")
        block = _BlockFragment(str(payload.get("type")), dict(payload))
        self._blocks[index] = block
        if block.kind == "text":
            return self._add_text(block, payload.get("text"))
        if block.kind == "thinking":
            block.signature = string_of(payload.get("signature"))
            return self._add_text(block, payload.get("thinking"))
        return []

    def _add_text(self, block: _BlockFragment, delta: object) -> list[StreamPart]:
        """Add text to a text or thinking block and return its parts."""
        thinking = block.kind == "thinking"
        parts = (self._reasoning if thinking else self._text).parts(string_of(delta), reasoning=thinking)
        block.pieces += [part.delta for part in parts if hasattr(part, "delta")]
        return parts

    def _add_delta(self, block: _BlockFragment, delta: Mapping[str, Any]) -> list[StreamPart]:
        match block.kind, delta.get("type"):
            case "text", "text_delta":
                return self._add_text(block, delta.get("text"))
            case "thinking", "thinking_delta":
                return self._add_text(block, delta.get("thinking"))
            case "thinking", "signature_delta":
                block.signature += string_of(delta.get("signature"))
            case "tool_use", "input_json_delta":
                block.pieces.append(string_of(delta.get("partial_json")))
            case _:
                pass  # citations and similar
        return []

    def _open_block(self, payload: Mapping[str, Any]) -> _BlockFragment:
        block = self._blocks.get(_index(payload))
        if block is None or block.is_closed:
            raise UnreadableStream("a block that is not open")
        return block

    def _note_end(self, reason: object, usage: object) -> None:
        if isinstance(usage, Mapping):
            self._usage.update({name: count for name, count in usage.items() if count is not None})
            self._has_output_count = True
        if isinstance(reason, str) and reason and not self.is_finished:
            self.is_finished = True
            self._reason = reason
            if is_failure(reason):
                self.failure = self._errors.in_stream({"message": f"stop reason {reason}"})

    def _seal(self) -> list[StreamPart]:
        if not any(block.kind in _THINKING for block in self._blocks.values()):
            return []
        entries: list[Value] = []
        for _, block in sorted(self._blocks.items()):
            if block.kind == "text":
                entries.append(len(block.text()))
            elif block.kind == "tool_use":
                entries.append("call")
            elif block.kind == "thinking":
                entries.append({"type": "thinking", "thinking": block.text(), "signature": block.signature})
            elif block.kind == "redacted_thinking":
                entries.append({"type": block.kind, "data": str(block.start.get("data") or "")})
        return [ReasoningPart("", text_of({"model": self._model, "blocks": entries}))]

    def _usage_part(self) -> UsagePart:
        """Return the usage. Input that was read from the cache, or written to it, is counted apart."""
        fresh, hit, written = (
            token_count(self._usage, name)
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        output = token_count(self._usage, "output_tokens") if self._has_output_count else None
        if fresh is None:
            return UsagePart(None, output, hit, None, self._window)
        miss = fresh + (written or 0)
        return UsagePart(miss + (hit or 0), output, hit or 0, miss, self._window, written or None)


def _index(payload: Mapping[str, Any]) -> int:
    index = payload.get("index")
    if not isinstance(index, int):
        raise UnreadableStream("an index")
    return index
