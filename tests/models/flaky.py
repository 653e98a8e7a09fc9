"""A provider that fails in every possible way before it gives an answer, in the same order each time.

`Flaky` has the answers of one turn, and sends a few of `FAULTS` before each of them, in order and then from the start
again. The replies in a request say which answer is due: a repeated request gets the next fault of the same answer. A
fault may contain text and whole calls; none of it comes with the end of an answer.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

import anyio
import attrs

from tests.models.dialogue import Reply, said
from tests.models.streams import Ask, Dialect, End, Fail, Say, Step, Think, event_text, plain, written
from tests.support.scripted_provider import CUT, RESET, Asked, Scripted

LOST = "This was lost"

Fault = Callable[[Dialect, Sequence[Step]], Scripted]


def _begun(dialect: Dialect, steps: Sequence[Step]) -> bytes:
    """Text of its own, then the answer's reasoning and calls, and no end."""
    return plain(written(dialect, (Say(LOST), *(step for step in steps if not isinstance(step, (Say, End))))))


def _all_but_the_reason(dialect: Dialect, steps: Sequence[Step]) -> bytes:
    """Every call is whole and closed, and the connection ends right before the finish reason."""
    events = written(dialect, (Say(LOST), *(step for step in steps if not isinstance(step, Say))))
    reasons = {
        "chat": '"finish_reason": "',
        "messages": '"stop_reason": "',
        "responses": '"response", "status": "completed"',
    }
    at = max(number for number, event in enumerate(events) if reasons[dialect] in json.dumps(event[1]))
    return plain(events[:at])


def _cut(share: float, how: str = CUT) -> Fault:
    """The answer, cut after this share of its bytes."""

    def fault(dialect: Dialect, steps: Sequence[Step]) -> Scripted:
        stream = _begun(dialect, steps)
        return Scripted([stream[: int(len(stream) * share)], CUT if how == CUT else RESET])

    return fault


def _status(status: int, text: bytes = b"", **headers: str) -> Fault:
    content = "text/html" if text.startswith(b"<") else "application/json"
    told = {"content-type": content, **{name.replace("_", "-"): value for name, value in headers.items()}}
    body = text or json.dumps({"error": {"message": "scripted", "type": "x"}}).encode()
    return lambda dialect, steps: Scripted([body], status, told, "length")


def _chunked(dialect: Dialect, steps: Sequence[Step]) -> Scripted:
    return Scripted([_begun(dialect, steps), CUT], framing="chunked")


def _zipped(dialect: Dialect, steps: Sequence[Step]) -> Scripted:
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    return Scripted([gzip.compress(_begun(dialect, steps), mtime=0)[:-20], CUT], headers=headers)


def _told(events: Callable[[Dialect, Sequence[Step]], bytes]) -> Fault:
    return lambda dialect, steps: Scripted([events(dialect, steps)])


def _error(kind: str) -> Fault:
    def fault(dialect: Dialect, steps: Sequence[Step]) -> Scripted:
        calls = [step for step in steps if isinstance(step, (Ask, Think))]
        return Scripted([plain(written(dialect, (Say(LOST), *calls, Fail(kind))))])

    return fault


FAULTS: Mapping[str, Fault] = {
    "cut after the head": _cut(0.0),
    "cut at the first byte": lambda dialect, steps: Scripted([_begun(dialect, steps)[:1], CUT]),
    "429, wait 7 s": _status(429, retry_after="7"),
    "cut early": _cut(0.2),
    "500": _status(500),
    "reset in the middle": _cut(0.5, RESET),
    "silent before the head": lambda dialect, steps: Scripted([anyio.Event()], raw=True),
    "cut in the arguments": _cut(0.85),
    "502 and a page": _status(502, b"<html><body>Bad gateway</body></html>"),
    "all but the reason": lambda dialect, steps: Scripted([_all_but_the_reason(dialect, steps), CUT]),
    "an error object": _error("server_error"),
    "closed before the head": lambda dialect, steps: Scripted([CUT], raw=True),
    "529": _status(529),
    "ended in order without a reason": _told(_all_but_the_reason),
    "silent in the middle": lambda dialect, steps: Scripted([_begun(dialect, steps), anyio.Event()]),
    "503, wait 2.5 s": _status(503, retry_after_ms="2500"),
    "cut near the end": _cut(0.97),
    "cut in a chunk": _chunked,
    "overloaded in the middle": _error("overloaded_error"),
    "an event that is no JSON": _told(lambda dialect, steps: _begun(dialect, steps) + b"data: {oops\n\n"),
    "reset before the head": lambda dialect, steps: Scripted([RESET], raw=True),
    "compressed and cut": _zipped,
    "504": _status(504),
    "bytes that are no UTF-8": _told(lambda dialect, steps: _begun(dialect, steps) + b"data: \xff\xfe\n\n"),
    "reset near the end": _cut(0.9, RESET),
    "408": _status(408),
    "half a head": lambda dialect, steps: Scripted([b"HTTP/1.1 200 OK\r\ncontent-ty", CUT], raw=True),
}
"""Everything after which a request may be repeated (row P3)."""


def _as_sent(number: int, dialect: Dialect, steps: Sequence[Step]) -> Scripted:
    """A whole answer, delivered in another way each time."""
    events = written(dialect, steps)
    match number % 4:
        case 0:
            return Scripted([plain(events)])
        case 1:  # without the last event of the dialect
            return Scripted([plain([told for told in events if told[1] != "[DONE]" and told[0] != "message_stop"])])
        case 2:
            return Scripted([piece for told in events for piece in (b": keep-alive\n\n", event_text(told).encode())])
        case _:
            stream = plain(events)
            return Scripted([stream[at : at + 3] for at in range(0, len(stream), 3)], framing="chunked")


@attrs.define
class Flaky:
    """`ScriptedProvider(answering=…)`. `each`: the number of faults before each answer."""

    dialect: Dialect
    answers: Sequence[Sequence[Step]]
    each: int = 0
    blocked: dict[int, Scripted] = attrs.field(factory=dict)  # an answer's number → what comes instead, each time
    played: list[str] = attrs.field(factory=list)
    due: int = 0
    _left: int = attrs.field(init=False, default=0)
    _faults: cycle[str] = attrs.field(init=False, factory=lambda: cycle(FAULTS))

    def __attrs_post_init__(self) -> None:
        self._left = self.each

    def __call__(self, asked: Asked) -> Scripted:
        replies = sum(isinstance(turned, Reply) for turned in said(self.dialect, asked.body))
        due = self._due(replies)
        assert due in (self.due, self.due + 1), "a request that belongs nowhere"
        if due > self.due:
            self.due, self._left = due, self.each
        steps = self.answers[due]
        if due in self.blocked:
            return self.blocked[due]
        if not self._left:
            return _as_sent(due, self.dialect, steps)
        self._left -= 1
        self.played.append(next(self._faults))
        return FAULTS[self.played[-1]](self.dialect, steps)

    def _due(self, replies: int) -> int:
        """The answer that is due after this number of replies."""
        calls = 0
        for number, steps in enumerate(self.answers):
            if calls == replies:
                return number
            calls += sum(isinstance(step, Ask) for step in steps)
        raise AssertionError(f"no answer follows {replies} replies")
