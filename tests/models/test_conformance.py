"""One suite for all dialects: every scenario, in every delivery and every split, becomes the same parts."""

from __future__ import annotations

import json

import pytest

from steadyhand.domain.model.messages import CallProposed, Finish, ProviderError, TextPart, UsagePart
from tests.models.streams import (
    DELIVERIES,
    DIALECTS,
    SCENARIOS,
    SPLITS,
    WINDOW,
    Ask,
    Dialect,
    End,
    Fail,
    Say,
    Scenario,
    Step,
    Think,
    expected,
    merged,
    pieces,
    plain,
    read,
    reason_of,
    written,
)

SHORT = (Think("Hm"), Say("é🙂"), Ask("read_file", ('{"path"', ':"ä"}')), End("calls"))

both = pytest.mark.parametrize("dialect", DIALECTS)
each = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


def test_suite_has_at_least_150_cases() -> None:
    """Scenarios times deliveries are at least 150 cases, and both dialects read each (P1)."""
    assert len(SCENARIOS) * len(DELIVERIES) >= 150
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


@both
@each
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_every_delivery_gives_the_same_parts(dialect: Dialect, scenario: Scenario, delivery: str) -> None:
    """Comments, keep-alives, line ends, blanks, a missing last event: the same parts, at every split (P1, T6)."""
    stream = DELIVERIES[delivery](written(dialect, scenario.steps))
    for split, size in SPLITS.items():
        if len(stream) > 20_000 and size == 1:
            continue
        heard = read(dialect, pieces(stream, size))
        assert heard.trouble is None, (split, heard.trouble)
        assert merged(heard.parts) == expected(scenario.steps, dialect), split


@both
def test_stream_split_at_any_byte_gives_the_same_parts(dialect: Dialect) -> None:
    """A stream is split once, at each byte: inside UTF-8, inside an escape, inside a line end (P3)."""
    for delivery in ("plain", "escaped", "crlf", "byte order mark", "comments between"):
        stream = DELIVERIES[delivery](written(dialect, SHORT))
        for at in range(len(stream) + 1):
            heard = read(dialect, [stream[:at], stream[at:]])
            assert merged(heard.parts) == expected(SHORT, dialect), (delivery, at)


@both
@pytest.mark.parametrize(
    "scenario",
    [s for s in SCENARIOS if s.name in ("text", "two calls", "reasoning, text and calls", "cut by length in a call")],
    ids=lambda scenario: scenario.name,
)
def test_stream_cut_at_any_byte_is_whole_or_cut(dialect: Dialect, scenario: Scenario) -> None:
    """Cut at any byte, an answer is whole or cut: there is no call and no finish before the finish reason (T6, P3, case
    89)."""
    stream = plain(written(dialect, scenario.steps))
    reason = reason_of(dialect, written(dialect, scenario.steps)).encode()
    told_at = stream.index(reason) + len(reason)
    full = expected(scenario.steps, dialect)
    for at in range(len(stream)):
        for cut in (True, False):
            heard = read(dialect, [stream[:at]], cut)
            assert heard.trouble is None, at
            if at < told_at:
                assert not heard.whole, at
                assert heard.calls == [], at
            else:
                assert heard.whole, at
                assert [p for p in merged(heard.parts) if not isinstance(p, UsagePart)] == [
                    p for p in full if not isinstance(p, UsagePart)
                ], at


@both
def test_stream_without_a_finish_reason_is_cut(dialect: Dialect) -> None:
    """A body that ends in order, even with its last event, but without a finish reason is cut, not done (T6, case
    92)."""
    last = ("", "[DONE]") if dialect == "chat" else ("message_stop", {"type": "message_stop"})
    events = written(dialect, (Say("I write"), Ask("write_file", ('{"path":"a","content":"he',))))
    heard = read(dialect, [plain([*events, last])])
    assert heard.trouble is None
    assert merged([p for p in heard.parts if not isinstance(p, UsagePart)]) == [TextPart("I write")]


ERRORS = [
    ("server_error", "boom", "server", True),
    ("api_error", "boom", "server", True),
    ("overloaded_error", "Overloaded", "overloaded", True),
    ("rate_limit_error", "slow down", "rate", True),
    ("authentication_error", "bad key", "key", False),
    ("invalid_request_error", "nonsense", "rejected", False),
    ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "window", False),
    ("something_new", "what", "server", True),
]


@both
@pytest.mark.parametrize(("kind", "message", "trouble", "retryable"), ERRORS)
@pytest.mark.parametrize("before", [(), (Say("par"),), (Ask("a", ('{"x":1}',)),)], ids=["first", "text", "call"])
def test_error_in_the_stream_ends_it_with_one_sentence(
    dialect: Dialect, kind: str, message: str, trouble: str, retryable: bool, before: tuple[Step, ...]
) -> None:
    """An error object ends the stream with one sentence; the parts before it are given, calls are not (P3, T6)."""
    stream = plain(written(dialect, (*before, Fail(kind, message))))
    for size in (1 << 30, 1):
        heard = read(dialect, pieces(stream, size))
        assert heard.trouble is not None
        assert (heard.trouble.kind, heard.trouble.retryable) == (trouble, retryable)
        assert heard.calls == []
        assert not any(isinstance(part, Finish) for part in heard.parts)
        assert str(heard.trouble).count("\n") == 0


NOT_STREAMS = {
    "a page": (b"<!DOCTYPE html><html><body>Log in</body></html>", "notAProvider"),
    "a page after blanks": (b"\r\n  <html>", "notAProvider"),
    "text": (b"upstream connect error or disconnect", "notAProvider"),
    "broken JSON": (b'{"id": "c1", "choi', "garbled"),
    "JSON of another kind": (b'{"hello": 1}', "garbled"),
    "a list": (b"[1, 2]", "garbled"),
    "an event that is no JSON": (b"data: Internal Server Error\n\n", "garbled"),
    "an event that is a number": (b"data: 7\n\n", "garbled"),
    "an event with NaN": (b'data: {"choices": NaN}\n\n', "garbled"),
    "broken UTF-8": (b'data: {"x": "\xff\xfe"}\n\n', "garbled"),
    "half a character before a line end": (b'data: {"x": "\xf0\x9f"}\n\n', "garbled"),
    "deep nesting": (b"data: " + b"[" * 200_000 + b"\n\n", "garbled"),
    "an error alone": (b'{"error": {"message": "no", "type": "server_error"}}', "server"),
}


@both
@pytest.mark.parametrize("what", NOT_STREAMS)
def test_body_that_is_no_answer_gives_one_sentence(dialect: Dialect, what: str) -> None:
    """HTML or text instead of an answer, and an answer that cannot be read, end with one sentence (P3)."""
    stream, kind = NOT_STREAMS[what]
    for size in (1 << 30, 5):
        heard = read(dialect, pieces(stream, size))
        assert isinstance(heard.trouble, ProviderError)
        assert heard.trouble.kind == kind
        assert heard.parts == []


@both
def test_unstreamed_answer_is_read_like_a_stream(dialect: Dialect) -> None:
    """One JSON object with the whole answer is read as if it had been streamed; blanks may come before it (P1)."""
    chat = {
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "I look.",
                    "tool_calls": [
                        {"id": "call_1", "type": "function", "function": {"name": "a", "arguments": '{"x":1}'}}
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}},
    }
    messages = {
        "type": "message",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "call_1", "name": "a", "input": {"x": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 36, "cache_read_input_tokens": 64, "output_tokens": 7},
    }
    responses = {
        "object": "response",
        "status": "completed",
        "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "a", "arguments": '{"x":1}'},
        ],
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64}, "output_tokens": 7},
    }
    body = b"\n\n\n" + json.dumps({"chat": chat, "messages": messages, "responses": responses}[dialect]).encode()
    for size in (1 << 30, 1):
        heard = read(dialect, pieces(body, size))
        assert heard.trouble is None
        assert heard.parts == [
            TextPart("I look."),
            CallProposed("a", '{"x":1}', "call_1"),
            UsagePart(100, 7, 64, 36, WINDOW[dialect]),
            Finish("calls"),
        ]
    marked = b"\xef\xbb\xbf" + body
    assert read(dialect, pieces(marked, 1)).parts == read(dialect, [body]).parts
    for at in range(4, len(body)):
        assert read(dialect, [body[:at]], cut=True).parts == []


@both
def test_nothing_after_the_last_event_is_read(dialect: Dialect) -> None:
    """What follows `[DONE]` or `message_stop` is not read (T6)."""
    late = written(dialect, (Say("late"),))
    heard = read(dialect, [plain([*written(dialect, (Say("Hi"), End("stop"))), *late]) + b"data: rubbish\n\n"])
    assert merged(heard.parts) == expected((Say("Hi"), End("stop")), dialect)


@both
def test_unknown_finish_reason_is_reported_as_unknown(dialect: Dialect) -> None:
    """An unknown finish reason is reported as unknown, also with calls (P1, P2)."""
    steps = written(dialect, (Ask("a", ('{"x":1}',)), End("brand_new")))  # type: ignore[arg-type]  # a new word
    heard = read(dialect, [plain(steps)])
    assert heard.parts[-1] == Finish("unknown")
    assert len(heard.calls) == 1
