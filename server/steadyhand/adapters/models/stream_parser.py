"""Turn the bytes of a response into parts of a stream, in every dialect, however the bytes are split.

A response comes as server-sent events, or as one JSON object if a server does not stream; the first byte that is not
blank decides which. `<` is a web page. A `StreamReader` knows the dialect: it reads one object after the other, returns
text and reasoning at once, and everything else at the end. Only what it reports as finished is complete [P3, T6]:
`finish` returns calls and `Finish` once, and never for a response that was cut.

An event without its empty line at the end of the stream counts if it is whole JSON: no proper beginning of a JSON
object is a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from steadyhand.adapters.models.error_words import is_error, page_title
from steadyhand.adapters.models.errors import ProviderErrors
from steadyhand.adapters.models.sse import EventFeed, Garbled, ServerSentEvent, may_be_events
from steadyhand.domain.model.messages import ProviderError, ReasoningPart, StreamPart, TextPart, UsagePart
from steadyhand.domain.model.provider_profiles import Dialect

ANSWER_BYTES_MAX = 64 * 1024 * 1024
SHOWN_BYTES_MAX = 400  # of a text that is no answer
PAGE_BYTES_MAX = 16 * 1024  # of a web page, which is read for its title
AMOUNT_MAX = Decimal(10**9)  # currency units for one response
AMOUNT_CHARS_MAX = 40
_BLANK = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class UnreadableStream(ValueError):
    """An object that is not of the reader's dialect."""


class TooManyCalls(UnreadableStream):
    """A response with more calls than the reader accepts."""

    def __init__(self, calls_max: int) -> None:
        super().__init__("too many calls")
        self.calls_max = calls_max


class StreamReader(Protocol):
    """Reads one response in one dialect."""

    progress_count: int
    """How many parts of the response have come; keep-alives do not count."""
    is_finished: bool
    """Whether the finish reason has come."""
    is_closed: bool
    """Whether the dialect's last event has come; nothing after it counts."""
    failure: ProviderError | None
    """The error if the provider ended the response with one."""

    def read_event(self, payload: Mapping[str, Any]) -> list[StreamPart]:
        """Read the next object of a stream. May raise UnreadableStream."""
        ...

    def read_whole(self, payload: Mapping[str, Any]) -> list[StreamPart]:
        """Read a response that was not streamed. May raise UnreadableStream."""
        ...

    def finish(self) -> list[StreamPart]:
        """Return what was held back: calls, sealed reasoning, usage, `Finish`. If it is not finished: only usage."""
        ...


class ResponseParser:
    """Call `feed` with bytes, then `finish`. Raises ProviderError; afterwards only `usage` may be called."""

    def __init__(self, reader: StreamReader, errors: ProviderErrors) -> None:
        self._reader = reader
        self._errors = errors
        self._events: EventFeed | None = None
        self._head = bytearray()  # the bytes before the format was known; the whole body if it is JSON
        self._is_json = False
        self._is_page = False
        self._trouble: ProviderError | None = None  # the error behind the parts that were returned last
        self._bytes = 0

    @property
    def progress_count(self) -> int:
        """Grows with each part of the response; a comment or a ping does not count."""
        return self._reader.progress_count

    @property
    def is_finished(self) -> bool:
        return self._reader.is_finished

    @property
    def is_closed(self) -> bool:
        return self._reader.is_closed

    def feed(self, piece: bytes) -> list[StreamPart]:
        """Return the parts that these bytes complete."""
        self.raise_trouble()
        self._bytes += len(piece)
        if self._bytes > ANSWER_BYTES_MAX:
            raise self._errors.garbled()
        if self._events is None:
            self._head += piece
            if self._is_page:
                self._refuse_page(is_whole=False)
            if self._is_json or self._is_page or not self._is_event_stream():
                return []
            self._events, piece = EventFeed(), bytes(self._head)
        elif len(self._head) < SHOWN_BYTES_MAX:
            self._head += piece
        try:
            return self._read_events(self._events.feed(piece))
        except Garbled:
            raise self._errors.garbled() from None

    def finish(self, cut: bool) -> list[StreamPart]:
        """Return the remaining parts. `cut`: the connection broke. If it did not, the body ended in order, which says
        little.
        """
        self.raise_trouble()
        if self._is_page:
            self._refuse_page(is_whole=True)
        if self._is_json:
            return self._finish_json(cut)
        parts: list[StreamPart] = []
        if self._events is not None:
            if self._events.event_count + self._events.comment_count == 0 and not may_be_events(bytes(self._head)):
                raise self._errors.not_a_provider(words=_readable(bytes(self._head)))
            for event in self._events.finish():
                if event.data.strip() == "[DONE]" or _parse_object(event.data) is not None:
                    parts += self._read_event(event)
        return parts + self._reader.finish()

    def raise_trouble(self) -> None:
        """Raise the error that came right behind the parts that were returned last, if there is one."""
        if self._trouble is not None:
            raise self._trouble

    def usage(self) -> list[StreamPart]:
        """Return the usage that is known so far, after an error."""
        return [part for part in self._reader.finish() if isinstance(part, UsagePart)]

    def failure(self) -> ProviderError | None:
        """Return the error to be raised after the last part, if the provider ended the response with one."""
        return self._reader.failure

    def _is_event_stream(self) -> bool:
        """Whether the beginning shows an event stream."""
        start = bytes(self._head).removeprefix(_BOM).lstrip(_BLANK)[:1]
        if not start or (start == _BOM[:1] and len(self._head) < len(_BOM)):
            return False
        if start == b"<":
            self._is_page = True
            self._refuse_page(is_whole=False)
            return False
        self._is_json = start in (b"{", b"[")
        return not self._is_json

    def _refuse_page(self, is_whole: bool) -> None:
        """Raise ProviderError for a web page when its title, its bound or its end has come."""
        title = page_title(bytes(self._head))
        if title or is_whole or len(self._head) > PAGE_BYTES_MAX:
            raise self._errors.not_a_provider(words=title)

    def _read_events(self, events: list[ServerSentEvent]) -> list[StreamPart]:
        parts: list[StreamPart] = []
        for event in events:
            try:
                parts += self._read_event(event)
            except ProviderError as trouble:
                if not parts:
                    raise
                self._trouble = trouble
                return parts
        return parts

    def _read_event(self, event: ServerSentEvent) -> list[StreamPart]:
        data = event.data.strip()
        if self._reader.is_closed or not data:
            return []
        if data == "[DONE]":
            self._reader.is_closed = True
            return []
        payload = _parse_object(data)
        if payload is None:
            raise self._errors.in_stream(data) if event.name == "error" else self._errors.garbled(data)
        if event.name == "error" or is_error(payload):
            raise self._errors.in_stream(payload)
        self._require_dialect(payload)
        return self._call_reader(self._reader.read_event, payload)

    def _finish_json(self, cut: bool) -> list[StreamPart]:
        text = bytes(self._head).removeprefix(_BOM).decode("utf-8", errors="surrogateescape")
        payload = _parse_object(text) or _listed_error(text)
        if payload is None:
            if cut:
                return self._reader.finish()
            raise self._errors.garbled()
        if is_error(payload):
            raise self._errors.in_stream(payload)
        self._require_dialect(payload)
        return self._call_reader(self._reader.read_whole, payload) + self._reader.finish()

    def _require_dialect(self, payload: Mapping[str, Any]) -> None:
        """Raise ProviderError if the object is of another dialect; its reader would find nothing in it."""
        dialect = _dialect_of(payload)
        if dialect is not None and dialect != self._errors.dialect:
            raise self._errors.other_dialect(dialect)

    def _call_reader(self, take: Any, payload: Mapping[str, Any]) -> list[StreamPart]:
        try:
            parts: list[StreamPart] = take(payload)
        except TooManyCalls as many:
            raise self._errors.too_many_calls(many.calls_max) from None
        except UnreadableStream:
            raise self._errors.garbled() from None
        return parts


class SurrogateJoiner:
    """Text in deltas. It joins a character that a provider has split into two surrogates."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, delta: str) -> str:
        """Return the delta with whole characters; the first half of a pair waits for the second."""
        text, self._held = self._held + delta, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return replace_surrogates(text)

    def parts(self, delta: str, reasoning: bool = False) -> list[StreamPart]:
        """Return the delta as a part; none if it is empty."""
        text = self.join(delta)
        if not text:
            return []
        return [ReasoningPart(text) if reasoning else TextPart(text)]


def replace_surrogates(text: str) -> str:
    """Join pairs of surrogates and replace single ones; other text is returned unchanged."""
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def storable_arguments(text: str) -> str:
    """Return a call's arguments as text that can be stored. A single surrogate becomes its escape, which is refused
    later.
    """
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in joined)


def object_of(payload: object) -> Mapping[str, Any]:
    """Return an object of a response; null is an empty one. Raises UnreadableStream for anything else."""
    if payload is None:
        return {}
    if not isinstance(payload, Mapping):
        raise UnreadableStream("an object")
    return payload


def string_of(payload: object) -> str:
    """Return a text of a response; null is an empty one. Raises UnreadableStream for anything else."""
    if payload is None:
        return ""
    if not isinstance(payload, str):
        raise UnreadableStream("a text")
    return payload


def token_count(payload: object, *path: str) -> int | None:
    """Return a count in a usage object; None if there is none."""
    for name in path:
        payload = payload.get(name) if isinstance(payload, Mapping) else None
    return payload if isinstance(payload, int) and not isinstance(payload, bool) and payload >= 0 else None


def decimal_text(payload: object) -> str | None:
    """Return an amount of money as the decimal number that was sent, without an exponent; None if it is not a
    number.
    """
    if not isinstance(payload, int | float | str) or isinstance(payload, bool):
        return None
    try:
        amount = Decimal(str(payload))  # the shortest form of a float, which is what was sent
    except InvalidOperation:
        return None
    fits = amount.is_finite() and 0 <= amount < AMOUNT_MAX
    return f"{amount:f}" if fits and len(f"{amount:f}") <= AMOUNT_CHARS_MAX else None


def _parse_object(text: str) -> Mapping[str, Any] | None:
    try:
        payload = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None


def _listed_error(text: str) -> Mapping[str, Any] | None:
    """Return the error that some providers put into a list."""
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        return None
    first = payload[0] if isinstance(payload, list) and payload else None
    return first if isinstance(first, dict) and is_error(first) else None


def _dialect_of(payload: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect that an object shows to be of; None: it shows none."""
    kind = str(payload.get("type", ""))
    if isinstance(payload.get("choices"), list):
        return "chat"
    if kind.startswith("response.") or payload.get("object") == "response":
        return "responses"
    return "messages" if kind in ("message", "message_start", "content_block_start") else None


def _refuse_constant(word: str) -> object:
    raise ValueError(word)


def _readable(body: bytes) -> str:
    """Return the beginning of a text that is no answer."""
    return body[:SHOWN_BYTES_MAX].decode("utf-8", errors="replace")
