"""Answers as a model means them, written in both dialects, and what has to be read from either.

A `Scenario` is a list of steps; `written` turns it into the events of chat completions or of the Messages API;
`bytes_of` into bytes, in one of the `DELIVERIES`. `expected` is the same for both dialects, for the two differ in
form alone. `merged` joins neighbouring deltas, since how text is cut into parts is the provider's affair.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from steadyhand.adapters.http_client import HttpClient
from steadyhand.adapters.model_answer import Answer
from steadyhand.adapters.model_remote import Access, RemoteModel
from steadyhand.core.model import (
    CallProposed,
    Finish,
    FinishReason,
    ModelTrouble,
    ReasoningPart,
    StreamPart,
    TextPart,
    UsagePart,
)
from steadyhand.core.profiles import PROFILES

Dialect = Literal["chat", "messages"]
DIALECTS: tuple[Dialect, ...] = ("chat", "messages")
PROVIDER: Mapping[Dialect, str] = {"chat": "deepseek", "messages": "anthropic"}


@attrs.frozen
class Say:
    text: str


@attrs.frozen
class Think:
    text: str


@attrs.frozen
class Ask:
    """A call, its argument text in fragments."""

    tool: str
    fragments: tuple[str, ...]
    id: str = "call_1"


@attrs.frozen
class End:
    """The reason, in the house's word, and the usage (input, output, read from cache)."""

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
    """The events, keep-alives left out."""
    return _chat(steps) if dialect == "chat" else _messages(steps)


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


def expected(steps: Sequence[Step]) -> list[StreamPart]:
    """What either dialect's stream comes to, sealed reasoning left out."""
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
                    parts.append(UsagePart(read, out, hit, read - hit, 1_000_000))
                parts.append(Finish(reason))
            case _:
                pass
    return merged(parts)


def merged(parts: Sequence[StreamPart]) -> list[StreamPart]:
    """Neighbouring deltas of one kind as one; sealed reasoning left out."""
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
    over = last[1] == "[DONE]" or last[0] == "message_stop"
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
    """A model of that dialect with a key; without an address it is never reached."""
    profile = PROFILES[PROVIDER[dialect]]
    access = Access(
        profile=attrs.evolve(profile, **more),
        name="deepseek-flash" if dialect == "chat" else "claude-sonnet-5",
        environment=lambda: {profile.key_variable or "": KEY},
        base_url=address,
    )
    return RemoteModel(access, HttpClient())


KEY = "sk-test-" + "0123456789abcdef" * 2


@attrs.define
class Heard:
    """What came of an answer: parts, and the trouble it ended in."""

    parts: list[StreamPart] = attrs.field(factory=list)
    trouble: ModelTrouble | None = None

    @property
    def whole(self) -> bool:
        return bool(self.parts) and isinstance(self.parts[-1], Finish) and self.trouble is None

    @property
    def calls(self) -> list[CallProposed]:
        return [part for part in self.parts if isinstance(part, CallProposed)]


def read(dialect: Dialect, fed: Sequence[bytes], cut: bool = False) -> Heard:
    """Bytes fed to the reader in process."""
    model = remote(dialect)
    answer = Answer(model.reader(), model.troubles)
    heard = Heard()
    try:
        for piece in fed:
            heard.parts += answer.feed(piece)
        heard.parts += answer.end(cut)
        heard.trouble = answer.trouble()
    except ModelTrouble as trouble:
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
