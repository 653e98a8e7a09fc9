"""From the bytes of an answer to the parts of a stream, whatever the dialect, however the bytes are split.

An answer comes as server-sent events, or as one JSON object where a server does not stream; the first byte that is
no blank tells which. `<` is a web page. A `Reader` knows the dialect: it takes one object after the other, gives
text and reasoning at once, and everything else at the end. Only what it calls finished is complete [P3, T6]: calls
and `Finish` are given by `end`, once, and never for an answer that was cut.

An event that the stream's end leaves without its empty line counts if it is whole JSON: no beginning of a JSON object
is a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from steadyhand.adapters.model_trouble import Troubles
from steadyhand.adapters.sse import Event, EventFeed, Garbled, may_be_events
from steadyhand.core.model import ModelTrouble, ReasoningPart, StreamPart, TextPart, UsagePart

answer_bytes_max = 64 * 1024 * 1024
head_bytes_max = 64
amount_max = Decimal(10**9)  # currency units for one answer
amount_chars_max = 40
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Unreadable(ValueError):
    """A reader's word for an object that is none of its dialect."""


class TooManyCalls(Unreadable):
    """An answer with more calls than a reader takes."""

    def __init__(self, calls_max: int) -> None:
        super().__init__("too many calls")
        self.calls_max = calls_max


class Reader(Protocol):
    """One answer in one dialect."""

    moved: int
    """How often something new came; keep-alives do not count."""
    finished: bool
    """Whether the reason for the end has been told."""
    closed: bool
    """Whether the dialect's own last word was said; nothing after it counts."""
    failed: ModelTrouble | None
    """What the provider gave as the reason for an end that is none."""

    def take(self, told: Mapping[str, Any]) -> list[StreamPart]:
        """The next object of a stream. May raise `Unreadable`."""
        ...

    def whole(self, told: Mapping[str, Any]) -> list[StreamPart]:
        """An answer that was not streamed. May raise `Unreadable`."""
        ...

    def end(self) -> list[StreamPart]:
        """What was held back: calls, sealed reasoning, usage, `Finish`. Not finished: usage at most."""
        ...


class Answer:
    """Feed it bytes, then end it. Raises `ModelTrouble`; is of use for `usage` alone afterwards."""

    def __init__(self, reader: Reader, troubles: Troubles) -> None:
        self._reader = reader
        self._troubles = troubles
        self._events: EventFeed | None = None
        self._head = bytearray()  # what came before it was clear what it is; the whole of it if it is JSON
        self._json = False
        self._bytes = 0

    @property
    def moved(self) -> int:
        """Grows with what is progress; a comment or a ping is a sign of life only."""
        return self._reader.moved

    @property
    def finished(self) -> bool:
        return self._reader.finished

    @property
    def closed(self) -> bool:
        return self._reader.closed

    def feed(self, piece: bytes) -> list[StreamPart]:
        """The parts that these bytes complete."""
        self._bytes += len(piece)
        if self._bytes > answer_bytes_max:
            raise self._troubles.garbled()
        if self._events is None:
            self._head += piece
            if self._json or not self._decided():
                return []
            self._events, piece = EventFeed(), bytes(self._head)
        try:
            return self._take_all(self._events.feed(piece))
        except Garbled:
            raise self._troubles.garbled() from None

    def end(self, cut: bool) -> list[StreamPart]:
        """What is left. `cut`: the connection broke; without it the body ended in order, which says little."""
        if self._json:
            return self._end_of_json(cut)
        parts: list[StreamPart] = []
        if self._events is not None:
            if self._events.events + self._events.comments == 0 and not may_be_events(bytes(self._head)):
                raise self._troubles.not_a_provider()
            for event in self._events.end():
                if event.data.strip() == "[DONE]" or _object(event.data) is not None:
                    parts += self._take(event)
        return parts + self._reader.end()

    def usage(self) -> list[StreamPart]:
        """What is known of it so far, after a trouble."""
        return [part for part in self._reader.end() if isinstance(part, UsagePart)]

    def trouble(self) -> ModelTrouble | None:
        """To be raised after the last part: an end that the provider calls an error."""
        return self._reader.failed

    def _decided(self) -> bool:
        """Whether it is clear what comes; a page is refused at once."""
        start = bytes(self._head).removeprefix(_BOM).lstrip(_BLANK)[:1]
        if not start or (start == _BOM[:1] and len(self._head) < len(_BOM)):
            return False
        if start == b"<":
            raise self._troubles.not_a_provider()
        self._json = start in (b"{", b"[")
        return not self._json

    def _take_all(self, events: list[Event]) -> list[StreamPart]:
        parts: list[StreamPart] = []
        for event in events:
            parts += self._take(event)
        return parts

    def _take(self, event: Event) -> list[StreamPart]:
        data = event.data.strip()
        if self._reader.closed or not data:
            return []
        if data == "[DONE]":
            self._reader.closed = True
            return []
        told = _object(data)
        if told is None:
            raise self._troubles.garbled()
        if event.name == "error" or _is_error(told):
            raise self._troubles.in_stream(told)
        return self._asked(self._reader.take, told)

    def _end_of_json(self, cut: bool) -> list[StreamPart]:
        told = _object(bytes(self._head).removeprefix(_BOM).decode("utf-8", errors="surrogateescape"))
        if told is None:
            if cut:
                return self._reader.end()
            raise self._troubles.garbled()
        if _is_error(told):
            raise self._troubles.in_stream(told)
        return self._asked(self._reader.whole, told) + self._reader.end()

    def _asked(self, take: Any, told: Mapping[str, Any]) -> list[StreamPart]:
        try:
            parts: list[StreamPart] = take(told)
        except TooManyCalls as many:
            raise self._troubles.too_many_calls(many.calls_max) from None
        except Unreadable:
            raise self._troubles.garbled() from None
        return parts


class Joined:
    """Text in deltas. A character that a provider has split into two surrogates is put together again."""

    def __init__(self) -> None:
        self._held = ""

    def take(self, delta: str) -> str:
        text, self._held = self._held + delta, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return whole_characters(text)

    def parts(self, delta: str, reasoning: bool = False) -> list[StreamPart]:
        """The delta as a part; none for nothing."""
        text = self.take(delta)
        if not text:
            return []
        return [ReasoningPart(text) if reasoning else TextPart(text)]


def whole_characters(text: str) -> str:
    """Pairs of surrogates joined, single ones replaced; text without any is given back as it is."""
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def sound_arguments(text: str) -> str:
    """A call's arguments as text that can be stored. A single surrogate becomes its escape, which is no argument."""
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in joined)


def tokens(told: object, *path: str) -> int | None:
    """A count somewhere in a usage object; None where there is none."""
    for name in path:
        told = told.get(name) if isinstance(told, Mapping) else None
    return told if isinstance(told, int) and not isinstance(told, bool) and told >= 0 else None


def decimal_text(told: object) -> str | None:
    """An amount of money as the decimal number that was sent, without an exponent; None for what is none."""
    if not isinstance(told, int | float | str) or isinstance(told, bool):
        return None
    try:
        amount = Decimal(str(told))  # of a float its shortest form, which is what was written
    except InvalidOperation:
        return None
    fits = amount.is_finite() and 0 <= amount < amount_max
    return f"{amount:f}" if fits and len(f"{amount:f}") <= amount_chars_max else None


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        told = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _refuse(word: str) -> object:
    raise ValueError(word)


def _is_error(told: Mapping[str, Any]) -> bool:
    return bool(told.get("error")) or "error" in (told.get("type"), told.get("object"))
