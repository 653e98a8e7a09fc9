"""What servers really send beside the plain form: fragments without index, parsed arguments, split characters.

Each case is a list of chunks as they were seen or reported, and what the reader must make of them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from steadyhand.adapters.models import sse, stream_parser
from steadyhand.adapters.models.chat_completions import CALLS_MAX
from steadyhand.adapters.models.sse import EventFeed, Garbled, may_be_events
from steadyhand.adapters.models.stream_parser import SurrogateJoiner, storable_arguments
from steadyhand.domain.model.messages import CallProposed, Finish, ReasoningPart, StreamPart, TextPart, UsagePart
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from tests.models.streams import Heard, event_text, merged, pieces, plain, read

END: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


def chunk(delta: object = None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta if delta is not None else {}, "finish_reason": reason, **more}]}


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": list(fragments)})


def chat(*chunks: dict[str, Any]) -> Heard:
    return read("chat", ["".join(event_text(("", told)) for told in chunks).encode()])


def function(name: str | None = None, arguments: object = None, **more: Any) -> dict[str, Any]:
    inner = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": inner}


CALLS: dict[str, tuple[list[dict[str, Any]], list[CallProposed]]] = {
    "an id in every fragment": (
        [calls(function("a", '{"x"', index=0, id="i1")), calls(function(None, ":1}", index=0, id="i1"))],
        [CallProposed("a", '{"x":1}', "i1")],
    ),
    "the name in every fragment": (
        [calls(function("a", '{"x"', index=0, id="i1")), calls(function("a", ":1}", index=0))],
        [CallProposed("a", '{"x":1}', "i1")],
    ),
    "index 0 for all, ids differ": (
        [calls(function("a", "{}", index=0, id="i1")), calls(function("b", "{}", index=0, id="i2"))],
        [CallProposed("a", "{}", "i1"), CallProposed("b", "{}", "i2")],
    ),
    "index 0 for all, then the second goes on": (
        [
            calls(function("a", "{}", index=0, id="i1")),
            calls(function("b", '{"x"', index=0, id="i2")),
            calls(function(None, ":1}", index=0)),
        ],
        [CallProposed("a", "{}", "i1"), CallProposed("b", '{"x":1}', "i2")],
    ),
    "no index, ids": (
        [calls(function("a", '{"x"', id="i1"), function(None, ":1}"), function("b", "{}", id="i2"))],
        [CallProposed("a", '{"x":1}', "i1"), CallProposed("b", "{}", "i2")],
    ),
    "no index, no id": (
        [calls(function("a", "{"), function(None, "}")), calls(function("b", "{}"))],
        [CallProposed("a", "{}"), CallProposed("b", "{}")],
    ),
    "the id comes late": (
        [calls(function("a", "{", index=0)), calls(function(None, "}", index=0, id="i1"))],
        [CallProposed("a", "{}", "i1")],
    ),
    "interleaved": (
        [
            calls(function("a", "{", index=0, id="i1"), function("b", "{", index=1, id="i2")),
            calls(function(None, "}", index=0)),
            calls(function(None, "}", index=1)),
        ],
        [CallProposed("a", "{}", "i1"), CallProposed("b", "{}", "i2")],
    ),
    "arguments already parsed": (
        [calls(function("a", {"x": ["é", 1]}, index=0, id="i1"))],
        [CallProposed("a", '{"x":["é",1]}', "i1")],
    ),
    "null everywhere": (
        [
            chunk({"content": None, "tool_calls": None, "function_call": None, "audio": None}),
            calls({"index": 0, "id": "i1", "type": None, "function": {"name": "a", "arguments": None}}),
            calls({"index": 0, "id": None, "function": {"name": None, "arguments": "{}"}}),
        ],
        [CallProposed("a", "{}", "i1")],
    ),
    "no arguments at all are an empty object": (
        [calls(function("a", index=0, id="i1"))],
        [CallProposed("a", "{}", "i1")],
    ),
    "a character split between fragments": (
        [calls(function("a", '{"x":"\ud83d', index=0, id="i1")), calls(function(None, '\ude42"}', index=0))],
        [CallProposed("a", '{"x":"🙂"}', "i1")],
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_call_fragments_are_joined_by_index_id_and_name(case: str) -> None:
    """Fragments are joined by index, id and name, never by a guess (T6, T7)."""
    chunks, proposed = CALLS[case]
    stream = b"".join(event_text(("", told)).encode() for told in [*chunks, END])
    for size in (1 << 30, 1):
        heard = read("chat", pieces(stream, size))
        assert heard.trouble is None
        assert heard.parts == [*proposed, Finish("calls")]


def test_half_a_surrogate_pair_is_refused_as_an_argument() -> None:
    """Half a surrogate pair is kept as its escape: it can be stored, and it is refused as an argument (N1, case 91)."""
    heard = chat(calls(function("a", '{"x":"\\ud83d', index=0, id="i1")), calls(function(None, '"}', index=0)), END)
    raw = chat(calls({"index": 0, "id": "i", "function": {"name": "a", "arguments": '{"x":"' + "\ud83d" + '"}'}}), END)
    for told in (heard, raw):
        (call,) = told.calls
        call.arguments.encode("utf-8")
        assert call.arguments == '{"x":"\\ud83d"}'
        assert isinstance(parse_arguments(call.arguments), BadArguments)
    assert storable_arguments('{"é":1}') == '{"é":1}'


def test_character_split_between_deltas_is_joined() -> None:
    """Two deltas with half a pair each give one character; a half alone is replaced (P3)."""
    stream = b"".join(
        event_text(("", told)).encode()
        for told in (chunk({"content": "a\ud83d"}), chunk({"content": "\ude42b\ud83dc"}), chunk({}, "stop"))
    )
    assert merged(read("chat", [stream]).parts) == [TextPart("a🙂b\ufffdc"), Finish("stop")]
    joined = SurrogateJoiner()
    assert [joined.join(piece) for piece in ("\ud83d", "", "\ude42", "\ude42")] == ["", "", "🙂", "\ufffd"]


def test_reasoning_is_read_under_both_names_once() -> None:
    """`reasoning_content` and `reasoning` are the same; if both are there, the text comes once (P1)."""
    heard = chat(
        chunk({"reasoning_content": "a", "content": None}),
        chunk({"reasoning": "b", "content": ""}),
        chunk({"reasoning": "c", "reasoning_content": "c", "reasoning_details": [{"type": "x"}]}),
        chunk({"content": "d"}, "stop"),
    )
    assert merged(heard.parts) == [ReasoningPart("abc"), TextPart("d"), Finish("stop")]


def usage_of(*chunks: dict[str, Any]) -> list[StreamPart]:
    return [part for part in chat(*chunks).parts if isinstance(part, UsagePart)]


def test_usage_is_read_in_every_position_and_the_last_counts() -> None:
    """Usage comes beside the finish, after it, in the choice, or in each chunk: the last counts (U1)."""
    told = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    want = [UsagePart(10, 2, 4, 6, 1_000_000)]
    end = chunk({}, "stop")
    assert usage_of({**end, "usage": told}) == want
    assert usage_of(end, {"choices": [], "usage": told}) == want
    assert usage_of(end, {"usage": told}) == want
    assert usage_of(end, {"choices": None, "usage": told}) == want
    assert usage_of(chunk({"content": "x"}, usage=told), end) == want
    assert usage_of({**chunk({"content": "x"}), "usage": {"prompt_tokens": 1}}, {**end, "usage": told}) == want
    assert usage_of({**end, "usage": None}) == []
    odd = {"prompt_tokens": -1, "completion_tokens": "7", "prompt_tokens_details": None}
    assert usage_of({**end, "usage": odd}) == [UsagePart(None, None, None, None, 1_000_000)]
    hits = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 2}
    assert usage_of({**end, "usage": hits}) == [UsagePart(10, 2, 8, 2, 1_000_000)]


REASONS = [
    ("stop", "stop"), ("length", "length"), ("content_filter", "filtered"), ("eos", "stop"),
    ("brand_new", "unknown"), ("tool_calls", "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "reason"), REASONS)
def test_finish_reason_without_calls_is_mapped(told: str, reason: str) -> None:
    """Every reason has one word here; `tool_calls` without a call is unknown (P1)."""
    assert chat(chunk({"content": "x"}, told)).parts[-1] == Finish(reason)  # type: ignore[arg-type]  # from a table


def test_stop_after_calls_means_calls() -> None:
    """Some servers send `stop` after calls; a second reason, and an empty one, change nothing (P1)."""
    one = calls(function("a", "{}", index=0, id="i1"))
    assert chat(one, chunk({}, "stop")).parts[-1] == Finish("calls")
    assert chat(one, chunk({}, ""), chunk({}, "tool_calls"), chunk({}, "length")).parts[-1] == Finish("calls")


def test_too_many_calls_give_a_sentence_with_the_limit() -> None:
    """[I13], P3: at the limit the sentence names it."""
    every = [calls(function("a", "{}", index=number, id=f"i{number}")) for number in range(CALLS_MAX + 1)]
    assert len(chat(*every[:-1], chunk({}, "tool_calls")).calls) == CALLS_MAX
    trouble = chat(*every, chunk({}, "tool_calls")).trouble
    assert trouble is not None
    assert f"more than {CALLS_MAX} calls in one answer" in str(trouble)


def test_insufficient_system_resource_is_a_temporary_error() -> None:
    """`insufficient_system_resource` in the middle of an answer is a temporary error: usage counts, calls do not
    (P1)."""
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    heard = chat(
        chunk({"content": "par"}),
        calls(function("a", "{}", index=0, id="i1")),
        chunk({}, "insufficient_system_resource"),
        {"choices": [], "usage": usage},
    )
    assert heard.trouble is not None
    assert (heard.trouble.kind, heard.trouble.retryable) == ("overloaded", True)
    assert heard.parts == [TextPart("par"), UsagePart(10, 2, None, None, 1_000_000)]


def test_openrouter_error_reason_is_an_error_by_its_code() -> None:
    """An error beside a chunk, and the reason `error`, are errors by the code that they have (P3)."""
    both = {**chunk({"content": ""}, "error"), "error": {"code": 502, "message": "upstream"}}
    for told, kind in ((both, "server"), (chunk({}, "error"), "server"), ({"error": {"code": 429}}, "rate")):
        heard = chat(chunk({"content": "par"}), told)
        assert heard.trouble is not None
        assert (heard.trouble.kind, heard.trouble.retryable) == (kind, True)
    assert chat({**chunk({"content": "x"}, "stop"), "error": None}).whole


BROKEN: list[dict[str, Any]] = [
    {"choices": {}}, {"choices": ["x"]}, chunk("text"), chunk({"content": 7}), chunk({"tool_calls": {}}),
    chunk({"tool_calls": ["x"]}), calls({"index": 0, "function": "x"}), calls(function("a", 7, index=0)),
    chunk({"tool_calls": [function("a", index=0, id="i"), function("b", index=0, id="i")]}),
    chunk({"tool_calls": [function("a", index=at, id=str(at)) for at in range(200)]}),
]  # fmt: skip


@pytest.mark.parametrize("told", BROKEN, ids=range(len(BROKEN)))
def test_invalid_chunks_are_errors(told: dict[str, Any]) -> None:
    """An invalid chunk, two names for one call, and calls above the limit are errors, never a guess (T6) [I13]."""
    heard = chat(chunk({"content": "x"}), told, END)
    assert heard.trouble is not None
    assert (heard.trouble.kind, heard.trouble.retryable) == ("garbled", True)
    assert heard.calls == []


def test_other_choices_are_ignored_and_content_parts_are_text() -> None:
    """A second choice is ignored; content in parts is their text; a refusal is text (P1)."""
    second = {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}]}
    heard = chat(
        second,
        chunk({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        chunk({"refusal": "c"}, "stop"),
    )
    assert merged(heard.parts) == [TextPart("abc"), Finish("stop")]


# --- the Messages API ----------------------------------------------------------------------------------------


def messages(*told: dict[str, Any]) -> Heard:
    return read("messages", [plain([(event["type"], event) for event in told])])


def begin(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def over(reason: str = "tool_use", **more: Any) -> list[dict[str, Any]]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, **more}, {"type": "message_stop"}]


TOOL = begin(0, {"type": "tool_use", "id": "t1", "name": "a", "input": {}})


def test_closed_block_without_a_delta_is_a_call_without_arguments() -> None:
    """A closed block without a delta is a call without arguments; a block that is not closed is no call (case 89)."""
    assert messages(TOOL, stop(0), *over()).calls == [CallProposed("a", "{}", "t1")]
    heard = messages(TOOL, delta(0, "input_json_delta", partial_json='{"x":1}'), *over())
    assert heard.calls == []
    assert not heard.whole


def test_sealed_thinking_keeps_its_position() -> None:
    """Thinking, signed or hidden, comes sealed with the position of text and calls; unknown blocks are ignored (P1)."""
    heard = messages(
        begin(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, "thinking_delta", thinking="H🙂"),
        delta(0, "signature_delta", signature="c2"),
        delta(0, "signature_delta", signature="ln"),
        stop(0),
        begin(1, {"type": "redacted_thinking", "data": "ZGF0YQ"}),
        stop(1),
        begin(2, {"type": "text", "text": "I "}),
        delta(2, "text_delta", text="look"),
        delta(2, "citations_delta", citation={}),
        stop(2),
        {"type": "brand_new", "x": 1},
        begin(3, {"type": "tool_use", "id": "t1", "name": "a", "input": {}}),
        stop(3),
        begin(4, {"type": "server_thing"}),
        delta(4, "server_delta"),
        stop(4),
        *over(),
    )
    sealed = [p.sealed for p in heard.parts if isinstance(p, ReasoningPart) and p.sealed]
    assert len(sealed) == 1
    assert json.loads(sealed[0] or "") == {
        "model": "claude-sonnet-5",
        "blocks": [
            {"type": "thinking", "thinking": "H🙂", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ"},
            6,
            "call",
        ],
    }
    assert heard.parts[-1] == Finish("calls")


def test_messages_api_usage_sums_fresh_and_cached_input() -> None:
    """Input is the fresh part, the part read from the cache and the part written to it; the output of a cut answer is
    unknown (U1)."""
    usage = {
        "input_tokens": 5, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 1,
    }  # fmt: skip
    start = {"type": "message_start", "message": {"usage": usage}}
    ended = messages(start, *over("end_turn", usage={"output_tokens": 9, "input_tokens": None}))
    assert ended.parts == [UsagePart(95, 9, 60, 35, 1_000_000, 30), Finish("stop")]
    assert messages(start).parts == [UsagePart(95, None, 60, 35, 1_000_000, 30)]
    later = messages(start, *over("end_turn", usage={"output_tokens": 9, "input_tokens": 6}))
    assert later.parts[0] == UsagePart(96, 9, 60, 36, 1_000_000, 30)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("refusal", "filtered"),
        ("model_context_window_exceeded", "length"), ("pause_turn", "unknown"),
    ],
)  # fmt: skip
def test_stop_reason_is_mapped(told: str, reason: str) -> None:
    """Every stop reason has one word here (P1)."""
    heard = messages(begin(0, {"type": "text", "text": "x"}), stop(0), *over(told))
    assert heard.parts == [TextPart("x"), Finish(reason)]  # type: ignore[arg-type]  # from a table


BROKEN_MESSAGES: list[list[dict[str, Any]]] = [
    [begin(at, {"type": "text", "text": ""}) for at in range(600)],
    [delta(0, "text_delta", text="x")], [stop(0)], [TOOL, TOOL], [TOOL, stop(0), stop(0)],
    [{"type": "content_block_start", "content_block": {}}], [begin(0, {"type": "text", "text": 7})],
    [{"type": "content_block_start", "index": 0, "content_block": "x"}],
    [TOOL, delta(0, "input_json_delta", partial_json=7)], [{"type": "message_start", "message": "x"}],
]  # fmt: skip


@pytest.mark.parametrize("told", BROKEN_MESSAGES, ids=range(len(BROKEN_MESSAGES)))
def test_invalid_events_are_errors(told: list[dict[str, Any]]) -> None:
    """Blocks out of order and values of a wrong type are errors, never a guess (T6) [I13]."""
    heard = messages(*told, *over())
    assert heard.trouble is not None
    assert heard.trouble.kind == "garbled"
    assert heard.calls == []


# --- limits --------------------------------------------------------------------------------------------------


def test_event_above_its_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event without an end is refused at its limit, in one line or in many [I13]."""
    monkeypatch.setattr(sse, "EVENT_BYTES_MAX", 1000)
    for line in (b"data: " + b"x" * 300, b"data: " + b"x" * 300 + b"\n"):
        feed = EventFeed()
        assert [feed.feed(line) for _ in range(3)] == [[], [], []]
        with pytest.raises(Garbled):
            feed.feed(line)
    feed = EventFeed()
    assert sum(len(feed.feed(b"data: " + b"x" * 300 + b"\n\n")) for _ in range(10)) == 10


def test_answer_above_its_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer without an end is refused at its limit, streamed or not [I13]."""
    monkeypatch.setattr(stream_parser, "ANSWER_BYTES_MAX", 5000)
    told = plain([("", chunk({"content": "x" * 100}))])
    for piece in (told, b"{" + b" " * 500, b"\n" * 500):
        heard = read("chat", [piece] * 50)
        assert heard.trouble is not None
        assert heard.trouble.kind == "garbled"


@pytest.mark.parametrize(
    ("head", "may"),
    [
        (b"", True), (b"da", True), (b"data", True), (b": x", True), (b"data: x", True), (b"event:x\n", True),
        (b"dat\n", False), (b"dax", False), (b"upstream connect error", False), (b"retry:1", True), (b"i", True),
    ],
)  # fmt: skip
def test_prefix_of_an_event_stream_is_told_from_other_text(head: bytes, may: bool) -> None:
    """The beginning of a stream that was cut is told from text that is no stream (P3)."""
    assert may_be_events(head) is may
