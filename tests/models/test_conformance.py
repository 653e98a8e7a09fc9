"""One suite for both dialects: every scenario, in every delivery, in every split, comes to the same parts."""

from __future__ import annotations

import json

import pytest

from steadyhand.core.model import CallProposed, Finish, ModelTrouble, TextPart, UsagePart
from tests.models.streams import (
    DELIVERIES,
    DIALECTS,
    SCENARIOS,
    SPLITS,
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
    written,
)

SHORT = (Think("Hm"), Say("é🙂"), Ask("read_file", ('{"path"', ':"ä"}')), End("calls"))

both = pytest.mark.parametrize("dialect", DIALECTS)
each = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


def test_there_are_enough_cases() -> None:
    """Scenarios in deliveries are at least 150 cases, and each is read by both dialects (P1)."""
    assert len(SCENARIOS) * len(DELIVERIES) >= 150
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


@both
@each
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_every_delivery_comes_to_the_same(dialect: Dialect, scenario: Scenario, delivery: str) -> None:
    """Comments, keep-alives, line ends, blanks, a missing last word: the same parts, at every split (P1, T6)."""
    stream = DELIVERIES[delivery](written(dialect, scenario.steps))
    for split, size in SPLITS.items():
        if len(stream) > 20_000 and size == 1:
            continue
        heard = read(dialect, pieces(stream, size))
        assert heard.trouble is None, (split, heard.trouble)
        assert merged(heard.parts) == expected(scenario.steps), split


@both
def test_two_pieces_at_every_boundary(dialect: Dialect) -> None:
    """A stream split once, at each byte: inside UTF-8, inside an escape, inside a line end (P3)."""
    for delivery in ("plain", "escaped", "crlf", "byte order mark", "comments between"):
        stream = DELIVERIES[delivery](written(dialect, SHORT))
        for at in range(len(stream) + 1):
            heard = read(dialect, [stream[:at], stream[at:]])
            assert merged(heard.parts) == expected(SHORT), (delivery, at)


@both
@pytest.mark.parametrize(
    "scenario",
    [s for s in SCENARIOS if s.name in ("text", "two calls", "reasoning, text and calls", "cut by length in a call")],
    ids=lambda scenario: scenario.name,
)
def test_cut_at_every_byte(dialect: Dialect, scenario: Scenario) -> None:
    """Cut at any byte, an answer is whole or cut: no call, no finish before the reason was told (T6, P3, case 89)."""
    stream = plain(written(dialect, scenario.steps))
    ends = [event for event in written(dialect, scenario.steps) if b"_reason" in json.dumps(event[1]).encode()]
    end = next(event for event in ends if "null" not in json.dumps(event[1]).split("_reason", 1)[1][:8])
    told_at = stream.index(json.dumps(end[1], ensure_ascii=False).encode()) + len(
        json.dumps(end[1], ensure_ascii=False)
    )
    full = expected(scenario.steps)
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
def test_ended_in_order_without_a_reason_is_cut(dialect: Dialect) -> None:
    """A body that ends well, even with its last word, and told no reason is cut, not done (T6, case 92)."""
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
def test_an_error_in_mid_stream(
    dialect: Dialect, kind: str, message: str, trouble: str, retryable: bool, before: tuple[Step, ...]
) -> None:
    """An error object ends the stream in one sentence; what came before is given, no call is (P3, T6)."""
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
def test_what_is_no_answer(dialect: Dialect, what: str) -> None:
    """HTML or text instead of an answer, and an answer nobody can read, end in one sentence (P3)."""
    stream, kind = NOT_STREAMS[what]
    for size in (1 << 30, 5):
        heard = read(dialect, pieces(stream, size))
        assert isinstance(heard.trouble, ModelTrouble)
        assert heard.trouble.kind == kind
        assert heard.parts == []


@both
def test_an_answer_that_is_not_streamed(dialect: Dialect) -> None:
    """One JSON object with the whole answer is read as if it had been streamed; blanks may stand before it (P1)."""
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
    body = b"\n\n\n" + json.dumps(chat if dialect == "chat" else messages).encode()
    for size in (1 << 30, 1):
        heard = read(dialect, pieces(body, size))
        assert heard.trouble is None
        assert heard.parts == [
            TextPart("I look."),
            CallProposed("a", '{"x":1}', "call_1"),
            UsagePart(100, 7, 64, 36, 1_000_000),
            Finish("calls"),
        ]
    marked = b"\xef\xbb\xbf" + body
    assert read(dialect, pieces(marked, 1)).parts == read(dialect, [body]).parts
    for at in range(4, len(body)):
        assert read(dialect, [body[:at]], cut=True).parts == []


@both
def test_nothing_counts_after_the_last_word(dialect: Dialect) -> None:
    """What follows `[DONE]` or `message_stop` is not read (T6)."""
    late = written(dialect, (Say("late"),))
    heard = read(dialect, [plain([*written(dialect, (Say("Hi"), End("stop"))), *late]) + b"data: rubbish\n\n"])
    assert merged(heard.parts) == expected((Say("Hi"), End("stop")))


@both
def test_an_unknown_reason_is_unknown(dialect: Dialect) -> None:
    """A finish reason nobody has heard of is told as unknown, calls and all (P1, P2)."""
    steps = written(dialect, (Ask("a", ('{"x":1}',)), End("brand_new")))  # type: ignore[arg-type]  # a new word
    heard = read(dialect, [plain(steps)])
    assert heard.parts[-1] == Finish("unknown")
    assert len(heard.calls) == 1
