"""Anthropic's Messages API: the request, and the reader of its answers.

    body = {"model", ["tools"], "system", "messages", "max_tokens", "stream", [extra]}
    user turn      = [tool_result …] [text …]      neighbours of one role are one message, results first
    assistant turn = [thinking …] [text] [tool_use …], or exactly as it came, where it came sealed

An answer's thinking is signed and has to come back unread in the turn it belongs to. `sealed` holds the order in
which its blocks stood: thinking as it is, text by its length, calls by their place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from steadyhand.adapters.model_answer import Joined, Unreadable, sound_arguments, tokens, whole_characters
from steadyhand.adapters.model_body import Raw, Value, body_of, text_of
from steadyhand.adapters.model_trouble import Troubles
from steadyhand.core.model import (
    AssistantMessage,
    CallProposed,
    Finish,
    FinishReason,
    ModelRequest,
    ModelTrouble,
    OutMessage,
    ReasoningPart,
    ReplyMessage,
    StreamPart,
    UsagePart,
)
from steadyhand.core.profiles import Profile

PATH = "/v1/messages"
VERSION = "2023-06-01"
blocks_max = 512
EMPTY_REPLY = "(no output)"

FINISHES: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
}
_THINKING = ("thinking", "redacted_thinking")


def messages_headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


def messages_body(profile: Profile, model: str, request: ModelRequest, output_tokens_max: int | None) -> bytes:
    """The request's bytes."""
    assert not request.continues, "this API goes on with no assistant message"
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
    if not request.may_call and "tools" in members:
        members["tool_choice"] = {"type": "none"}
    return body_of(members, profile.extra, None if request.thinking else profile.thinking_off)


def _turns(model: str, messages: Sequence[OutMessage]) -> list[Value]:
    """Neighbours of one role merged; a message without a block is left out (case 17)."""
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
    if message.sealed is not None and (sealed := _unsealed(model, message, calls)) is not None:
        return sealed
    return [*([{"type": "text", "text": message.text}] if message.text.strip() else []), *calls]


def _unsealed(model: str, message: AssistantMessage, calls: list[Value]) -> list[Value] | None:
    """The blocks in the order they came in; None where the seal is another model's or does not fit."""
    try:
        told = json.loads(message.sealed or "")
        blocks: list[Value] = []
        at = called = 0
        if told["model"] != model:
            return None
        for entry in told["blocks"]:
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


@attrs.define
class _Block:
    """One content block being put together."""

    kind: str
    told: dict[str, Any]  # as it began
    pieces: list[str] = attrs.field(factory=list)
    signature: str = ""
    closed: bool = False

    def text(self) -> str:
        return "".join(self.pieces)


class MessagesReader:
    """`model_answer.Reader` of the Messages API."""

    def __init__(self, troubles: Troubles, model: str, window: int | None = None) -> None:
        self.moved = 0
        self.finished = False
        self.closed = False
        self.failed: ModelTrouble | None = None
        self._troubles = troubles
        self._model = model
        self._window = window
        self._text = Joined()
        self._reasoning = Joined()
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, Any] = {}
        self._output_told = False
        self._reason = ""

    def take(self, told: Mapping[str, Any]) -> list[StreamPart]:
        match told.get("type"):
            case "message_start":
                message = told.get("message")
                self._usage.update(_mapping(_mapping(message).get("usage")))
                self.moved += 1
            case "content_block_start":
                self.moved += 1
                return self._begin(_index(told), _mapping(told.get("content_block")))
            case "content_block_delta":
                self.moved += 1
                return self._delta(self._block(told), _mapping(told.get("delta")))
            case "content_block_stop":
                self.moved += 1
                self._block(told).closed = True
            case "message_delta":
                self.moved += 1
                self._end_told(_mapping(told.get("delta")).get("stop_reason"), told.get("usage"))
            case "message_stop":
                self.closed = True
            case _:
                pass  # pings, and what a later version adds
        return []

    def whole(self, told: Mapping[str, Any]) -> list[StreamPart]:
        content = told.get("content")
        if told.get("type") != "message" or not isinstance(content, list):
            raise Unreadable("a message")
        parts: list[StreamPart] = []
        for index, block in enumerate(content):
            parts += self._begin(index, _mapping(block))
            made = self._blocks[index]
            made.closed = True
            if made.kind == "tool_use":
                made.pieces = [json.dumps(made.told.get("input"), ensure_ascii=False, separators=(",", ":"))]
        self._end_told(told.get("stop_reason"), told.get("usage"))
        return parts

    def end(self) -> list[StreamPart]:
        usage: list[StreamPart] = [self._usage_part()] if self._usage else []
        if not self.finished or self.failed is not None or not all(block.closed for block in self._blocks.values()):
            return usage
        finish = FINISHES.get(self._reason, "unknown")
        if finish == "filtered":
            return [*usage, Finish(finish)]  # what was refused proposes nothing
        calls: list[StreamPart] = [
            CallProposed(
                whole_characters(str(block.told.get("name") or "")),
                sound_arguments(block.text()) or "{}",  # a closed block without a delta is one without arguments
                str(block.told.get("id") or "") or None,
            )
            for _, block in sorted(self._blocks.items())
            if block.kind == "tool_use"
        ]
        if calls and finish == "stop":
            finish = "calls"
        if not calls and finish == "calls":
            finish = "unknown"
        return [*self._sealed(), *calls, *usage, Finish(finish)]

    def _begin(self, index: int, told: Mapping[str, Any]) -> list[StreamPart]:
        if index in self._blocks or len(self._blocks) >= blocks_max:
            raise Unreadable("a block")
        block = _Block(str(told.get("type")), dict(told))
        self._blocks[index] = block
        if block.kind == "text":
            return self._said(block, told.get("text"))
        if block.kind == "thinking":
            block.signature = _string(told.get("signature"))
            return self._said(block, told.get("thinking"))
        return []

    def _said(self, block: _Block, delta: object) -> list[StreamPart]:
        """Text of a text or a thinking block."""
        thinking = block.kind == "thinking"
        parts = (self._reasoning if thinking else self._text).parts(_string(delta), reasoning=thinking)
        block.pieces += [part.delta for part in parts if hasattr(part, "delta")]
        return parts

    def _delta(self, block: _Block, delta: Mapping[str, Any]) -> list[StreamPart]:
        match block.kind, delta.get("type"):
            case "text", "text_delta":
                return self._said(block, delta.get("text"))
            case "thinking", "thinking_delta":
                return self._said(block, delta.get("thinking"))
            case "thinking", "signature_delta":
                block.signature += _string(delta.get("signature"))
            case "tool_use", "input_json_delta":
                block.pieces.append(_string(delta.get("partial_json")))
            case _:
                pass  # citations and the like
        return []

    def _block(self, told: Mapping[str, Any]) -> _Block:
        block = self._blocks.get(_index(told))
        if block is None or block.closed:
            raise Unreadable("a block that is not open")
        return block

    def _end_told(self, reason: object, usage: object) -> None:
        if isinstance(usage, Mapping):
            self._usage.update({name: count for name, count in usage.items() if count is not None})
            self._output_told = True
        if isinstance(reason, str) and reason and not self.finished:
            self.finished = True
            self._reason = reason

    def _sealed(self) -> list[StreamPart]:
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
                entries.append({"type": block.kind, "data": _string(block.told.get("data"))})
        return [ReasoningPart("", text_of({"model": self._model, "blocks": entries}))]

    def _usage_part(self) -> UsagePart:
        """What was read from the cache, and written to it, is told apart from the rest of the input."""
        fresh, hit, written = (
            tokens(self._usage, name)
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        output = tokens(self._usage, "output_tokens") if self._output_told else None
        if fresh is None:
            return UsagePart(None, output, hit, None, self._window)
        miss = fresh + (written or 0)
        return UsagePart(miss + (hit or 0), output, hit or 0, miss, self._window, written or None)


def _mapping(told: object) -> Mapping[str, Any]:
    if told is None:
        return {}
    if not isinstance(told, Mapping):
        raise Unreadable("an object")
    return told


def _index(told: Mapping[str, Any]) -> int:
    index = told.get("index")
    if not isinstance(index, int):
        raise Unreadable("an index")
    return index


def _string(told: object) -> str:
    if told is None:
        return ""
    if not isinstance(told, str):
        raise Unreadable("a text")
    return told
