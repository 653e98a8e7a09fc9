"""Chat completions: the request, and the reader of its answers.

    body = {"model", ["tools"], "messages": [system, …], "stream", ["stream_options"], [output limit], [extra]}

Everything up to the end of the messages is the same bytes as last time, plus the new tail (row P4). A call's
fragments are put together by index; a provider that gives none, or the same one twice with another id, means
another call. Nothing is given of a call before the answer's finish reason was told (row T6).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from steadyhand.adapters.model_answer import (
    Joined,
    TooManyCalls,
    Unreadable,
    decimal_text,
    sound_arguments,
    tokens,
)
from steadyhand.adapters.model_body import Raw, Value, body_of
from steadyhand.adapters.model_trouble import Troubles
from steadyhand.core.model import (
    AssistantMessage,
    CallProposed,
    Finish,
    FinishReason,
    ModelRequest,
    ModelTrouble,
    OutMessage,
    ReplyMessage,
    StreamPart,
    UsagePart,
)
from steadyhand.core.profiles import Profile

calls_max = 128
EMPTY_REPLY = "(no output)"
PATH = "/chat/completions"

FINISHES: Mapping[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "content_filter": "filtered",
}
OUT_OF_CAPACITY = "insufficient_system_resource"  # DeepSeek's: the answer is not whole


def chat_headers(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def chat_body(profile: Profile, model: str, request: ModelRequest, output_tokens_max: int | None) -> bytes:
    """The request's bytes."""
    members: dict[str, Value] = {"model": model}
    if request.tools and not request.continues:
        members["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": Raw(tool.parameters)},
            }
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
    messages: list[Value] = [{"role": "system", "content": request.system}] if request.system.strip() else []
    messages += [_message(profile, message) for message in request.messages if _says_something(message)]
    if request.continues:
        messages[-1] = _gone_on_with(profile, request)
    members["messages"] = messages
    members["stream"] = True
    members["stream_options"] = {"include_usage": True}
    if output_tokens_max is not None:
        members[profile.output_member] = output_tokens_max
    if not request.may_call and "tools" in members:
        members["tool_choice"] = "none"
    return body_of(members, profile.extra, None if request.thinking else profile.thinking_off)


def _says_something(message: OutMessage) -> bool:
    """Empty messages are left out: providers refuse them (case 17). Replies never are."""
    if isinstance(message, AssistantMessage):
        return bool(message.calls or message.text.strip())
    return isinstance(message, ReplyMessage) or bool(message.text.strip())


def _message(profile: Profile, message: OutMessage) -> Value:
    if isinstance(message, ReplyMessage):
        text = message.text if message.text.strip() else EMPTY_REPLY
        return {"role": "tool", "tool_call_id": message.call_id, "content": text}
    if isinstance(message, AssistantMessage):
        return _assistant(profile, message)
    return {"role": "user", "content": message.whole}


def _assistant(profile: Profile, message: AssistantMessage) -> dict[str, Value]:
    members: dict[str, Value] = {"role": "assistant", "content": message.text if message.text.strip() else None}
    if profile.reasoning_member and (
        profile.reasoning_back == "always" or (profile.reasoning_back == "present" and message.reasoning)
    ):
        members[profile.reasoning_member] = message.reasoning or ""
    if message.calls:
        members["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for call in message.calls
        ]
    return members


def _gone_on_with(profile: Profile, request: ModelRequest) -> Value:
    last = request.messages[-1]
    assert isinstance(last, AssistantMessage), "only an assistant message is gone on with"
    assert not last.calls, "an answer with calls is never gone on with (row P2)"
    return {**_assistant(profile, last), "prefix": True}


@attrs.define
class _Call:
    """One call being put together."""

    id: str | None = None
    tool: str = ""
    pieces: list[str] = attrs.field(factory=list)


class ChatReader:
    """`model_answer.Reader` of chat completions."""

    def __init__(self, troubles: Troubles, window: int | None = None, tells_cost: bool = False) -> None:
        self.moved = 0
        self.finished = False
        self.closed = False
        self.failed: ModelTrouble | None = None
        self._troubles = troubles
        self._window = window
        self._tells_cost = tells_cost
        self._text = Joined()
        self._reasoning = Joined()
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._usage: Mapping[str, Any] | None = None
        self._reason = ""

    def take(self, told: Mapping[str, Any]) -> list[StreamPart]:
        self._take_usage(told.get("usage"))
        parts: list[StreamPart] = []
        choices = told.get("choices")
        if choices is None:
            return parts  # a chunk without choices: usage, or something of the provider's own
        if not isinstance(choices, list):
            raise Unreadable("choices")
        for choice in choices:
            if not isinstance(choice, Mapping):
                raise Unreadable("a choice")
            if choice.get("index") in (0, None):
                parts += self._choice(choice, choice.get("delta"))
        return parts

    def whole(self, told: Mapping[str, Any]) -> list[StreamPart]:
        self._take_usage(told.get("usage"))
        choices = told.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            raise Unreadable("choices")
        return self._choice(choices[0], choices[0].get("message"))

    def end(self) -> list[StreamPart]:
        usage: list[StreamPart] = [] if self._usage is None else [_usage(self._usage, self._window, self._tells_cost)]
        if not self.finished or self.failed is not None:
            return usage
        finish = FINISHES.get(self._reason, "unknown")
        if finish == "filtered":
            return [*usage, Finish(finish)]  # what a filter stopped proposes nothing
        calls: list[StreamPart] = [
            CallProposed(call.tool, sound_arguments("".join(call.pieces)), call.id) for call in self._calls
        ]
        if calls and finish == "stop":
            finish = "calls"
        if not calls and finish == "calls":
            finish = "unknown"
        return [*calls, *usage, Finish(finish)]

    def _take_usage(self, usage: object) -> None:
        if isinstance(usage, Mapping) and usage:
            self._usage = usage  # where each chunk has one, the last counts
            self.moved += 1

    def _choice(self, choice: Mapping[str, Any], delta: object) -> list[StreamPart]:
        self._take_usage(choice.get("usage"))
        parts: list[StreamPart] = []
        if isinstance(delta, Mapping):
            reasoning = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
            parts += self._reasoning.parts(reasoning, reasoning=True)
            parts += self._text.parts(_text(delta.get("content")) + _text(delta.get("refusal")))
            self._take_calls(delta.get("tool_calls"))
            self.moved += bool(parts)
        elif delta is not None:
            raise Unreadable("a delta")
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason and not self.finished:
            self.finished = True
            self.moved += 1
            self._reason = reason
            if reason == OUT_OF_CAPACITY:
                self.failed = self._troubles.out_of_capacity()
            elif reason == "error":
                self.failed = self._troubles.in_stream({})
        return parts

    def _take_calls(self, fragments: object) -> None:
        if fragments is None:
            return
        if not isinstance(fragments, list):
            raise Unreadable("tool calls")
        for fragment in fragments:
            if not isinstance(fragment, Mapping):
                raise Unreadable("a tool call")
            self._take_fragment(fragment)
            self.moved += 1

    def _take_fragment(self, fragment: Mapping[str, Any]) -> None:
        call = self._call_of(fragment)
        function = fragment.get("function")
        if function is None:
            return
        if not isinstance(function, Mapping):
            raise Unreadable("a function")
        name = _text(function.get("name"))
        if name and call.tool not in ("", name):
            raise Unreadable("a second name for one call")
        call.tool = call.tool or whole_name(name)
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):  # some servers parse them before they send them
            arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        call.pieces.append(_text(arguments))

    def _call_of(self, fragment: Mapping[str, Any]) -> _Call:
        """The call a fragment belongs to, which may be a new one."""
        id = _text(fragment.get("id")) or None
        index = fragment.get("index")
        known = self._by_index.get(index) if isinstance(index, int) else (self._calls[-1] if self._calls else None)
        if known is not None and (id is None or known.id in (None, id)) and not self._begins_anew(fragment, known):
            known.id = known.id or id
            return known
        if len(self._calls) >= calls_max:
            raise TooManyCalls(calls_max)
        call = _Call(id)
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _begins_anew(self, fragment: Mapping[str, Any], known: _Call) -> bool:
        """Without index and id only a name tells that another call begins."""
        if isinstance(fragment.get("index"), int) or fragment.get("id"):
            return False
        function = fragment.get("function")
        return bool(known.tool) and isinstance(function, Mapping) and bool(function.get("name"))


def whole_name(name: str) -> str:
    """A tool's name that can be stored, whatever the model wrote."""
    return Joined().take(name)


def _text(told: object) -> str:
    """Text, or the text of content parts; null is nothing."""
    if told is None:
        return ""
    if isinstance(told, str):
        return told
    if isinstance(told, Sequence):
        return "".join(_text(part.get("text")) for part in told if isinstance(part, Mapping))
    raise Unreadable("a text")


def _usage(told: Mapping[str, Any], window: int | None, tells_cost: bool) -> UsagePart:
    read = tokens(told, "prompt_tokens")
    hit = tokens(told, "prompt_cache_hit_tokens")
    if hit is None:
        hit = tokens(told, "prompt_tokens_details", "cached_tokens")
    miss = tokens(told, "prompt_cache_miss_tokens")
    if miss is None and read is not None and hit is not None:
        miss = max(0, read - hit)
    written = tokens(told, "prompt_tokens_details", "cache_write_tokens")
    billed = decimal_text(told.get("cost")) if tells_cost else None
    return UsagePart(read, tokens(told, "completion_tokens"), hit, miss, window, written, billed)
