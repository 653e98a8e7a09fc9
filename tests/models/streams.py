"""Answers of a model as a list of steps, written in every dialect, and what a reader must make of each.

A `Scenario` is a list of steps. `written` turns it into the events of a dialect, and a delivery of `DELIVERIES` into
bytes. `expected` is the same for all dialects, because they differ only in form. `merged` joins neighbouring deltas,
because a provider may cut text anywhere.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from steadyhand.adapters.models.http import HttpClient
from steadyhand.adapters.models.remote import Access, RemoteModel
from steadyhand.adapters.models.stream_parser import ResponseParser
from steadyhand.domain.model.messages import (
    CallProposed,
    Finish,
    FinishReason,
    ProviderError,
    ReasoningPart,
    StreamPart,
    TextPart,
    UsagePart,
)
from steadyhand.domain.model.provider_profiles import PROFILES

Dialect = Literal["chat", "messages", "responses"]
DIALECTS: tuple[Dialect, ...] = ("chat", "messages", "responses")
PROVIDER: Mapping[Dialect, str] = {"chat": "deepseek", "messages": "anthropic", "responses": "openai"}
MODEL: Mapping[Dialect, str] = {"chat": "deepseek-flash", "messages": "claude-sonnet-5", "responses": "gpt-5.1"}
WINDOW: Mapping[Dialect, int] = {"chat": 1_000_000, "messages": 1_000_000, "responses": 400_000}


@attrs.frozen
class Say:
    text: str


@attrs.frozen
class Think:
    text: str


@attrs.frozen
class Ask:
    """A call; its argument text comes in fragments."""

    tool: str
    fragments: tuple[str, ...]
    id: str = "call_1"


@attrs.frozen
class End:
    """The finish reason in the product's word, and the usage (input, output, read from cache)."""

    reason: FinishReason
    usage: tuple[int, int, int] | None = (100, 7, 64)


@attrs.frozen
class Fail:
    """An error object in mid-stream."""

    kind: str
    message: str = "boom"


Step: TypeAlias = "Say | Think | Ask | End | Fail"
Event: TypeAlias = "tuple[str, object]"  # (event name, data)


@attrs.frozen
class Scenario:
    name: str
    steps: tuple[Step, ...]


_CHAT_REASONS = {"stop": "stop", "calls": "tool_calls", "length": "length", "filtered": "content_filter"}
_MESSAGES_REASONS = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "filtered": "refusal"}


def written(dialect: Dialect, steps: Sequence[Step]) -> list[Event]:
    """The events, without keep-alives."""
    return {"chat": _chat, "messages": _messages, "responses": _responses}[dialect](steps)


def _chunk(delta: object, reason: str | None = None, **more: object) -> Event:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
    return "", {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def _chat(steps: Sequence[Step]) -> list[Event]:
    events: list[Event] = [_chunk({"role": "assistant", "content": None})]
    calls = 0
    for step in steps:
        match step:
            case Say(text):
                events.append(_chunk({"content": text}))
            case Think(text):
                events.append(_chunk({"content": None, "reasoning_content": text}))
            case Ask(tool, fragments, id):
                begun = {"index": calls, "id": id, "type": "function", "function": {"name": tool, "arguments": ""}}
                events.append(_chunk({"tool_calls": [begun]}))
                events += [
                    _chunk({"tool_calls": [{"index": calls, "function": {"arguments": fragment}}]})
                    for fragment in fragments
                ]
                calls += 1
            case End(reason, usage):
                events.append(_chunk({"content": ""}, _CHAT_REASONS.get(reason, reason)))
                if usage:
                    read, out, hit = usage
                    told = {
                        "prompt_tokens": read, "completion_tokens": out, "prompt_cache_hit_tokens": hit,
                        "prompt_cache_miss_tokens": read - hit,
                    }  # fmt: skip
                    events.append(_chunk(None, usage=told))
                events.append(("", "[DONE]"))
            case Fail(kind, message):
                events.append(("", {"error": {"message": message, "type": kind, "param": None, "code": None}}))
    return events


def _messages(steps: Sequence[Step]) -> list[Event]:
    end = next((step for step in steps if isinstance(step, End)), None)
    read, out, hit = (end.usage if end else None) or (100, 7, 64)
    usage = {"input_tokens": read - hit, "cache_read_input_tokens": hit, "output_tokens": 1}
    begun = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "m"}
    if end and end.usage is None:
        events = [_typed("message_start", message=begun)]
    else:
        events = [_typed("message_start", message={**begun, "usage": usage})]
    index = 0
    open_kind: str | None = None

    def close() -> None:
        nonlocal index, open_kind
        if open_kind:
            if open_kind == "thinking":
                delta = {"type": "signature_delta", "signature": "c2ln"}
                events.append(_typed("content_block_delta", index=index, delta=delta))
            events.append(_typed("content_block_stop", index=index))
            index, open_kind = index + 1, None

    def begin(block: Mapping[str, object]) -> None:
        nonlocal open_kind
        close()
        open_kind = str(block["type"])
        events.append(_typed("content_block_start", index=index, content_block=block))

    for step in steps:
        match step:
            case Say(text):
                if open_kind != "text":
                    begin({"type": "text", "text": ""})
                events.append(_typed("content_block_delta", index=index, delta={"type": "text_delta", "text": text}))
            case Think(text):
                if open_kind != "thinking":
                    begin({"type": "thinking", "thinking": "", "signature": ""})
                delta = {"type": "thinking_delta", "thinking": text}
                events.append(_typed("content_block_delta", index=index, delta=delta))
            case Ask(tool, fragments, id):
                begin({"type": "tool_use", "id": id, "name": tool, "input": {}})
                for fragment in ("", *fragments):
                    delta = {"type": "input_json_delta", "partial_json": fragment}
                    events.append(_typed("content_block_delta", index=index, delta=delta))
            case End(reason, told):
                close()
                ended = {"stop_reason": _MESSAGES_REASONS.get(reason, reason), "stop_sequence": None}
                more = {"usage": {"output_tokens": out}} if told else {}
                events.append(_typed("message_delta", delta=ended, **more))
                events.append(_typed("message_stop"))
            case Fail(kind, message):
                events.append(_typed("error", error={"type": kind, "message": message}))
    return events


def _typed(kind: str, **members: object) -> Event:
    return kind, {"type": kind, **members}


_RESPONSES_REASONS = {"stop": "completed", "calls": "completed", "length": "max_output_tokens"}
ENCRYPTED = "Z2VoZWlt"


def _responses(steps: Sequence[Step]) -> list[Event]:
    """Each run of texts is an item, each call too; the last event repeats all items."""
    begun: dict[str, Any] = {
        "id": "resp_1", "object": "response", "status": "in_progress", "output": [], "error": None, "usage": None,
    }  # fmt: skip
    events = [_typed("response.created", response=begun), _typed("response.in_progress", response=begun)]
    output: list[dict[str, Any]] = []
    open_kind: str | None = None
    said: list[str] = []

    def close() -> None:
        nonlocal open_kind
        index, text = len(output) - 1, "".join(said)
        if open_kind == "message":
            part = {"type": "output_text", "text": text, "annotations": []}
            output[-1].update(status="completed", content=[part])
            events.append(_typed("response.output_text.done", output_index=index, content_index=0, text=text))
            events.append(_typed("response.content_part.done", output_index=index, content_index=0, part=part))
        elif open_kind == "reasoning":
            output[-1].update(summary=[{"type": "summary_text", "text": text}], encrypted_content=ENCRYPTED)
        elif open_kind == "function_call":
            output[-1].update(status="completed", arguments=text)
            events.append(_typed("response.function_call_arguments.done", output_index=index, arguments=text))
        if open_kind:
            events.append(_typed("response.output_item.done", output_index=index, item=dict(output[-1])))
        open_kind = None
        said.clear()

    def begin(kind: str, **members: object) -> None:
        nonlocal open_kind
        close()
        open_kind = kind
        output.append({"id": f"item_{len(output)}", "type": kind, **members})
        events.append(_typed("response.output_item.added", output_index=len(output) - 1, item=dict(output[-1])))

    def add(kind: str, delta: str) -> None:
        said.append(delta)
        index = len(output) - 1
        events.append(_typed(kind, item_id=f"item_{index}", output_index=index, delta=delta))

    for step in steps:
        match step:
            case Say(text):
                if open_kind != "message":
                    begin("message", role="assistant", status="in_progress", content=[])
                add("response.output_text.delta", text)
            case Think(text):
                if open_kind != "reasoning":
                    begin("reasoning", summary=[])
                add("response.reasoning_summary_text.delta", text)
            case Ask(tool, fragments, id):
                begin("function_call", name=tool, call_id=id, arguments="", status="in_progress")
                for fragment in fragments:
                    add("response.function_call_arguments.delta", fragment)
            case End(reason, told):
                close()
                word = _RESPONSES_REASONS.get(reason, "content_filter" if reason == "filtered" else reason)
                whole = word == "completed"
                usage = None
                if told:
                    read, out, hit = told
                    usage = {
                        "input_tokens": read, "output_tokens": out, "total_tokens": read + out,
                        "input_tokens_details": {"cached_tokens": hit}, "output_tokens_details": {},
                    }  # fmt: skip
                status = "completed" if whole else "incomplete"
                details = None if whole else {"reason": word}
                ended = {**begun, "status": status, "incomplete_details": details, "output": output, "usage": usage}
                events.append(_typed(f"response.{status}", response=ended))
            case Fail(kind, message):
                events.append(_typed("error", code=kind, message=message, param=None))
    return events


def reason_of(dialect: Dialect, events: Sequence[Event]) -> str:
    """The data of the event with the finish reason, as `plain` writes it."""
    if dialect == "responses":
        told = events[-1][1]
    else:
        ends = [event[1] for event in events if "_reason" in json.dumps(event[1])]
        told = next(end for end in ends if "null" not in json.dumps(end).split("_reason", 1)[1][:8])
    return json.dumps(told, ensure_ascii=False)


def expected(steps: Sequence[Step], dialect: Dialect = "chat") -> list[StreamPart]:
    """What the stream of any dialect becomes, without sealed reasoning."""
    parts: list[StreamPart] = []
    calls: list[StreamPart] = []
    for step in steps:
        match step:
            case Say(text) if text:
                parts.append(TextPart(text))
            case Think(text) if text:
                parts.append(ReasoningPart(text))
            case Ask(tool, fragments, id):
                calls.append(CallProposed(tool, "".join(fragments), id))
            case End(reason, usage):
                if reason != "filtered":
                    parts += calls
                if usage:
                    read, out, hit = usage
                    parts.append(UsagePart(read, out, hit, read - hit, WINDOW[dialect]))
                parts.append(Finish(reason))
            case _:
                pass
    return merged(parts)


def merged(parts: Sequence[StreamPart]) -> list[StreamPart]:
    """Neighbouring deltas of one kind as one; without sealed reasoning."""
    joined: list[StreamPart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, ReasoningPart) and part.sealed is not None:
            continue
        if isinstance(part, TextPart) and isinstance(last, TextPart):
            joined[-1] = TextPart(last.delta + part.delta)
        elif isinstance(part, ReasoningPart) and isinstance(last, ReasoningPart):
            joined[-1] = ReasoningPart(last.delta + part.delta)
        else:
            joined.append(part)
    return joined


# --- bytes ---------------------------------------------------------------------------------------------------


def event_text(event: Event, end: str = "\n", pad: str = " ", **dumping: Any) -> str:
    name, told = event
    data = told if isinstance(told, str) else json.dumps(told, **dumping)
    named = f"event:{pad}{name}{end}" if name else ""
    return named + "".join(f"data:{pad}{line}{end}" for line in data.split("\n")) + end


def plain(events: Sequence[Event]) -> bytes:
    """As most servers write it."""
    return "".join(event_text(event, ensure_ascii=False) for event in events).encode("utf-8", "surrogatepass")


def _with(**how: Any) -> Callable[[Sequence[Event]], bytes]:
    return lambda events: "".join(event_text(event, **how) for event in events).encode()


def _between(line: str) -> Callable[[Sequence[Event]], bytes]:
    return lambda events: (line + "".join(event_text(event) + line for event in events)).encode()


def _without_done(events: Sequence[Event]) -> bytes:
    last = events[-1]
    over = last[1] == "[DONE]" or last[0] == "message_stop"  # the Responses dialect has no last word
    return plain(events[:-1] if over else events)


def _pinged(events: Sequence[Event]) -> bytes:
    ping: Event = ("ping", {"type": "ping"})
    return plain([told for event in events for told in (ping, event)])


Delivery = Callable[[Sequence[Event]], bytes]
DELIVERIES: Mapping[str, Delivery] = {
    "plain": plain,
    "escaped": _with(ensure_ascii=True),
    "crlf": _with(end="\r\n"),
    "cr": _with(end="\r"),
    "no blank after the colon": _with(pad=""),
    "data in many lines": _with(indent=1),
    "crlf, data in many lines": _with(indent=1, end="\r\n"),
    "compact": _with(separators=(",", ":")),
    "byte order mark": lambda events: b"\xef\xbb\xbf" + plain(events),
    "comments between": _between(": keep-alive\n\n"),
    "bare comments": _between(":\n"),
    "blank lines": _between("\n\n"),
    "ids and retries": _between("id: 7\nretry: 10\nfoo: bar\nlonely\n\n"),
    "empty data": _between("data:\n\n"),
    "no last word": _without_done,
    "no last blank line": lambda events: plain(events).rstrip(b"\n"),
    "pings": _pinged,
}
SPLITS: Mapping[str, int] = {"whole": 1 << 30, "every byte": 1, "seven bytes": 7}


def pieces(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def zipped(stream: bytes) -> bytes:
    return gzip.compress(stream, mtime=0)


# --- reading -------------------------------------------------------------------------------------------------


def remote(dialect: Dialect, address: str | None = None, **more: Any) -> RemoteModel:
    """A model of this dialect with a key; without an address no test reaches it."""
    profile = PROFILES[PROVIDER[dialect]].in_dialect(dialect)
    access = Access(
        profile=attrs.evolve(profile, **more),
        name=MODEL[dialect],
        environment=lambda: {profile.key_variable or "": KEY},
        base_url=address,
    )
    return RemoteModel(access, HttpClient())


KEY = "sk-test-" + "0123456789abcdef" * 2


@attrs.define
class Heard:
    """What an answer became: its parts, and the error that ended it."""

    parts: list[StreamPart] = attrs.field(factory=list)
    trouble: ProviderError | None = None

    @property
    def whole(self) -> bool:
        return bool(self.parts) and isinstance(self.parts[-1], Finish) and self.trouble is None

    @property
    def calls(self) -> list[CallProposed]:
        return [part for part in self.parts if isinstance(part, CallProposed)]


def read(dialect: Dialect, fed: Sequence[bytes], cut: bool = False) -> Heard:
    """Feed bytes to the reader in this process."""
    model = remote(dialect)
    answer = ResponseParser(model.make_reader(), model.errors)
    heard = Heard()
    try:
        for piece in fed:
            heard.parts += answer.feed(piece)
        heard.parts += answer.finish(cut)
        heard.trouble = answer.failure()
    except ProviderError as trouble:
        heard.trouble = trouble
    return heard


# --- scenarios -----------------------------------------------------------------------------------------------

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("text", (Say("Hello"), Say(", "), Say("world."), End("stop"))),
    Scenario("one word", (Say("Yes"), End("stop"))),
    Scenario("empty", (End("stop"),)),
    Scenario("empty deltas", (Say(""), Say("a"), Say(""), Say("b"), End("stop"))),
    Scenario("many scripts", (Say("日本語 — naïve "), Say("🙂👩\u200d🚀 שלום"), End("stop"))),
    Scenario(
        "text that looks like the stream", (Say("data: [DONE]\n\nevent: error\n: no\n"), Say("\r\n\r"), End("stop"))
    ),
    Scenario("quotes and escapes", (Say('"\\"\\\\ \\u0041 \u2028 \x7f \t'), End("stop"))),
    Scenario("reasoning first", (Think("Hm"), Think("m."), Say("Done."), End("stop"))),
    Scenario("reasoning only", (Think("Hm"), End("stop"))),
    Scenario("one call", (Ask("read_file", ('{"path"', ': "a.p', 'y"}')), End("calls"))),
    Scenario("a call in one fragment", (Ask("read_file", ('{"path":"a"}',)), End("calls"))),
    Scenario(
        "two calls",
        (Ask("read_file", ('{"path":"a"}',), "call_1"), Ask("list_files", ("{", "}"), "call_2"), End("calls")),
    ),
    Scenario("text and a call", (Say("I look."), Ask("read_file", ('{"path":"ä🙂"}',)), End("calls"))),
    Scenario(
        "reasoning, text and calls",
        (Think("need it"), Say("I look."), Ask("a", ('{"x":1}',), "c1"), Ask("b", ('{"x":', "2}"), "c2"), End("calls")),
    ),
    Scenario("arguments with escapes", (Ask("write", ('{"content":"\\"\\\\n\\u00', 'e9\\n"}')), End("calls"))),
    Scenario("arguments that do not parse", (Ask("read_file", ('{"path": "x',)), End("calls"))),
    Scenario("cut by length", (Say("It goes on and"), End("length"))),
    Scenario("cut by length in a call", (Ask("a", ('{"x":1}',), "c1"), Ask("b", ('{"x', '":'), "c2"), End("length"))),
    Scenario("filtered", (Say("I can"), End("filtered"))),
    Scenario("filtered with a call", (Ask("run_command", ('{"command":"x"}',)), End("filtered"))),
    Scenario("no usage", (Say("Hi"), End("stop", None))),
    Scenario("a call without usage", (Ask("a", ('{"x":1}',)), End("calls", None))),
    Scenario("long", (*(Say(f"word{number} ") for number in range(300)), End("stop"))),
)
