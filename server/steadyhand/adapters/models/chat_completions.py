"""Chat completions: the request, and the reader of its responses.

    body = {"model", ["tools"], "messages": [system, …], "stream", ["stream_options"], [output limit], [extra]}

Everything up to the end of the messages has the same bytes as in the previous request, plus the new messages (row P4).
The fragments of a call are joined by index. A fragment without an index, or with a known index and another id, begins
another call. No call is returned before the finish reason of the response is known (row T6).

Servers differ in where they put the answer: in `delta`, in `message` (a piece, or all of the answer so far), in `text`.
All of them are read, and nothing is read twice (case 110).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from steadyhand.adapters.models.errors import ProviderErrors
from steadyhand.adapters.models.finish_reasons import closed_arguments, input_text, is_failure, make_finish
from steadyhand.adapters.models.json_body import Raw, Value, body_of
from steadyhand.adapters.models.stream_parser import (
    SurrogateJoiner,
    TooManyCalls,
    UnreadableStream,
    decimal_text,
    object_of,
    storable_arguments,
    token_count,
)
from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    ModelRequest,
    OutMessage,
    ProviderError,
    ReplyMessage,
    StreamPart,
    UsagePart,
)
from steadyhand.domain.model.provider_profiles import Profile
from steadyhand_values import define

CALLS_MAX = 128  # of one response
EMPTY_REPLY = "(no output)"
PATH = "/chat/completions"

OUT_OF_CAPACITY = "insufficient_system_resource"  # DeepSeek's: the response is incomplete


def chat_headers(key: str) -> dict[str, str]:
    """Return the headers with the key."""
    return {"authorization": f"Bearer {key}"} if key else {}


def chat_body(
    profile: Profile,
    model: str,
    request: ModelRequest,
    output_tokens_max: int | None,
    left_out: Collection[str] = (),
) -> bytes:
    """Return the bytes of a request. `left_out`: optional members not to send."""
    members: dict[str, Value] = {"model": model}
    if request.tools and not request.is_continuation:
        members["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": Raw(tool.parameters)},
            }
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
    messages: list[Value] = [{"role": "system", "content": request.system}] if request.system.strip() else []
    messages += [_message(profile, message) for message in request.messages if _has_content(message)]
    if request.is_continuation:
        messages[-1] = _continued_message(profile, request)
    members["messages"] = messages
    members["stream"] = True
    members["stream_options"] = {"include_usage": True}
    if output_tokens_max is not None and profile.output_member:
        members[profile.output_member] = output_tokens_max
    if not request.can_call and "tools" in members:
        members["tool_choice"] = "none"
    for name in left_out:
        members.pop(name, None)
    return body_of(members, profile.extra, None if request.thinking else profile.thinking_off)


def _has_content(message: OutMessage) -> bool:
    """Whether the message is sent: providers refuse empty messages (case 17). A reply is always sent."""
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


def _continued_message(profile: Profile, request: ModelRequest) -> Value:
    last = request.messages[-1]
    assert isinstance(last, AssistantMessage), "only an assistant message is continued"
    assert not last.calls, "an answer with calls is never continued (row P2)"
    return {**_assistant(profile, last), "prefix": True}


@define
class _CallFragment:
    """One call that is being assembled."""

    id: str | None = None
    tool: str = ""
    pieces: list[str] = attrs.field(factory=list)


class ChatReader:
    """`stream_parser.StreamReader` of chat completions."""

    def __init__(self, errors: ProviderErrors, window: int | None = None, has_cost: bool = False) -> None:
        self.progress_count = 0
        self.is_finished = False
        self.is_closed = False
        self.failure: ProviderError | None = None
        self._errors = errors
        self._window = window
        self._has_cost = has_cost
        self._text = SurrogateJoiner()
        self._reasoning = SurrogateJoiner()
        self._calls: list[_CallFragment] = []
        self._by_index: dict[int, _CallFragment] = {}
        self._usage: Mapping[str, Any] | None = None
        self._reason = ""
        self._has_empty_reason = False  # the last choice had a finish reason, and it was empty
        self._shown: tuple[list[str], list[str]] = ([], [])  # text and reasoning that have come

    def read_event(self, payload: Mapping[str, Any]) -> list[StreamPart]:
        self._note_usage(payload.get("usage"))
        parts: list[StreamPart] = []
        choices = payload.get("choices")
        if choices is None:
            return parts  # a chunk without choices: usage, or an extension of the provider
        if not isinstance(choices, list):
            raise UnreadableStream("choices")
        for choice in choices:
            if not isinstance(choice, Mapping):
                raise UnreadableStream("a choice")
            if choice.get("index") in (0, None):
                parts += self._read_choice(choice)
        return parts

    def read_whole(self, payload: Mapping[str, Any]) -> list[StreamPart]:
        self._note_usage(payload.get("usage"))
        choices = payload.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            raise UnreadableStream("choices")
        parts = self._read_choice(choices[0])
        self.is_closed = True
        return parts

    def finish(self) -> list[StreamPart]:
        usage: list[StreamPart] = [] if self._usage is None else [_usage(self._usage, self._window, self._has_cost)]
        if self.is_closed and self._has_empty_reason and not self.is_finished:
            self.is_finished = True  # the provider ended its answer and gave an empty word for it (case 113)
        if not self.is_finished or self.failure is not None:
            return usage
        finish = make_finish(self._reason, bool(self._calls))
        if finish.reason == "filtered":
            return [*usage, finish]  # a filtered response proposes no call
        calls: list[StreamPart] = [
            CallProposed(call.tool, closed_arguments(storable_arguments("".join(call.pieces)), self._reason), call.id)
            for call in self._calls
        ]
        return [*calls, *usage, finish]

    def _note_usage(self, usage: object) -> None:
        if isinstance(usage, Mapping) and usage:
            self._usage = usage  # if each chunk has one, the last counts
            self.progress_count += 1

    def _read_choice(self, choice: Mapping[str, Any]) -> list[StreamPart]:
        self._note_usage(choice.get("usage"))
        delta, message = object_of(choice.get("delta")), object_of(choice.get("message"))
        parts = self._add_texts(_reasoning_of(delta), _text_of(delta) + _text(choice.get("text")))
        if not parts:  # else a message beside it repeats the delta
            parts = self._add_texts(
                _rest(_reasoning_of(message), self._shown[1]), _rest(_text_of(message), self._shown[0])
            )
        self._add_fragments(delta)
        self._add_fragments(message, may_repeat=True)
        self.progress_count += bool(parts)
        self._note_end(choice, delta.get("error") or message.get("error"))
        return parts

    def _add_texts(self, reasoning: str, text: str) -> list[StreamPart]:
        parts = [*self._reasoning.parts(reasoning, reasoning=True), *self._text.parts(text)]
        self._shown[0].append(text)
        self._shown[1].append(reasoning)
        return parts

    def _note_end(self, choice: Mapping[str, Any], error: object) -> None:
        """Note the finish reason, and an error, which some providers put beside it (case 111)."""
        error = choice.get("error") or error
        reason = choice.get("finish_reason")
        self._has_empty_reason = reason == ""
        if error:
            self.failure = self._errors.in_stream({"error": error})
        if isinstance(reason, str) and reason and not self.is_finished:
            self.is_finished = True
            self.progress_count += 1
            self._reason = reason
            if self.failure is None and reason == OUT_OF_CAPACITY:
                self.failure = self._errors.out_of_capacity()
            elif self.failure is None and is_failure(reason):
                self.failure = self._errors.in_stream(
                    {"message": f"finish reason {choice.get('native_finish_reason') or reason}"}
                )

    def _add_fragments(self, delta: Mapping[str, Any], may_repeat: bool = False) -> None:
        """Add the pieces of calls. `may_repeat`: they may contain what has come before."""
        fragments = delta.get("tool_calls")
        if delta.get("function_call"):  # the form before there were several calls
            fragments = [*(fragments or []), {"function": delta["function_call"]}]
        if fragments is None:
            return
        if not isinstance(fragments, list):
            raise UnreadableStream("tool calls")
        for place, fragment in enumerate(fragments):
            if not isinstance(fragment, Mapping):
                raise UnreadableStream("a tool call")
            repeated = self._repeated_call(fragment, place) if may_repeat else None
            self._add_fragment(fragment, repeated or self._call_of(fragment), may_repeat)
            self.progress_count += 1

    def _repeated_call(self, fragment: Mapping[str, Any], place: int) -> _CallFragment | None:
        """Return the call that a whole message contains once more: the one with its id, else the one in its place."""
        if id := _text(fragment.get("id")):
            return next((call for call in self._calls if call.id == id), None)
        has_index = isinstance(fragment.get("index"), int)
        return self._calls[place] if not has_index and place < len(self._calls) else None

    def _add_fragment(self, fragment: Mapping[str, Any], call: _CallFragment, may_repeat: bool) -> None:
        function = fragment.get("function")
        if function is None:
            return
        if not isinstance(function, Mapping):
            raise UnreadableStream("a function")
        name = _text(function.get("name"))
        if name and call.tool not in ("", name):
            raise UnreadableStream("a second name for one call")
        call.tool = call.tool or storable_name(name)
        arguments = function.get("arguments")
        if isinstance(arguments, Mapping):  # some servers parse them before they send them
            arguments = input_text(arguments)
        piece = _text(arguments)
        call.pieces.append(_rest(piece, call.pieces) if may_repeat else piece)

    def _call_of(self, fragment: Mapping[str, Any]) -> _CallFragment:
        """Return the call of a fragment, which may be a new one."""
        id = _text(fragment.get("id")) or None
        index = fragment.get("index")
        known = self._by_index.get(index) if isinstance(index, int) else (self._calls[-1] if self._calls else None)
        if known is not None and (id is None or known.id in (None, id)) and not self._is_new_call(fragment, known):
            known.id = known.id or id
            return known
        if len(self._calls) >= CALLS_MAX:
            raise TooManyCalls(CALLS_MAX)
        call = _CallFragment(id)
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _is_new_call(self, fragment: Mapping[str, Any], known: _CallFragment) -> bool:
        """Whether another call begins. Without index and id only a name shows it."""
        if isinstance(fragment.get("index"), int) or fragment.get("id"):
            return False
        function = fragment.get("function")
        return bool(known.tool) and isinstance(function, Mapping) and bool(function.get("name"))


def storable_name(name: str) -> str:
    """Return a tool's name that can be stored, whatever the model wrote."""
    return SurrogateJoiner().join(name)


def _text_of(delta: Mapping[str, Any]) -> str:
    return _text(delta.get("content")) + _text(delta.get("refusal"))


def _reasoning_of(delta: Mapping[str, Any]) -> str:
    return _text(delta.get("reasoning_content")) or _text(delta.get("reasoning")) or _thinking(delta.get("content"))


def _text(payload: object) -> str:
    """Return a text, or the text of content parts; null is empty."""
    if payload is None:
        return ""
    if isinstance(payload, str):
        return payload
    if isinstance(payload, Sequence):
        return "".join(_text(part.get("text")) for part in payload if isinstance(part, Mapping))
    raise UnreadableStream("a text")


def _thinking(content: object) -> str:
    """Return the reasoning in content parts."""
    if isinstance(content, str) or not isinstance(content, Sequence):
        return ""
    return "".join(_text(part.get("thinking")) for part in content if isinstance(part, Mapping))


def _rest(whole: str, pieces: list[str]) -> str:
    """Return what a text adds to what has come, if it repeats that; else all of it."""
    if not whole:
        return ""
    so_far = "".join(pieces)
    return whole[len(so_far) :] if whole.startswith(so_far) else whole


def _usage(payload: Mapping[str, Any], window: int | None, has_cost: bool) -> UsagePart:
    read = token_count(payload, "prompt_tokens")
    hit = token_count(payload, "prompt_cache_hit_tokens")
    if hit is None:
        hit = token_count(payload, "prompt_tokens_details", "cached_tokens")
    miss = token_count(payload, "prompt_cache_miss_tokens")
    if miss is None and read is not None and hit is not None:
        miss = max(0, read - hit)
    written = token_count(payload, "prompt_tokens_details", "cache_write_tokens")
    billed = decimal_text(payload.get("cost")) if has_cost else None
    return UsagePart(read, token_count(payload, "completion_tokens"), hit, miss, window, written, billed)
