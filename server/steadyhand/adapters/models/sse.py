"""Server-sent events from bytes, however the bytes are split.

    stream  = { line end }                       a line ends with LF, CR or CRLF; a BOM may come first
    line    = "data:" [" "] text | "event:" [" "] name | ":" comment | anything else, ignored
    event   = its data lines joined by LF, at an empty line; without data there is no event

A CR ends its line at once; an LF that follows belongs to it, even in the next piece. Only whole lines are decoded, so
no character is split. `Garbled`: bytes that are not UTF-8, or an event above the limit.
"""

from __future__ import annotations

from steadyhand_values import frozen, pattern

EVENT_BYTES_MAX = 16 * 1024 * 1024

_LINE_END = pattern(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b":", b"data", b"event", b"id", b"retry")


class Garbled(ValueError):
    """Bytes that are not an event stream."""


@frozen
class ServerSentEvent:
    """One event."""

    data: str
    name: str = ""  # of its `event` line; usually empty


class EventFeed:
    """Takes pieces and returns whole events. It counts comment lines and events."""

    def __init__(self) -> None:
        self.comment_count = 0
        self.event_count = 0
        self._rest = bytearray()  # a line that has not ended
        self._searched_bytes = 0  # bytes of it without a line end
        self._is_after_cr = False  # the last piece ended with CR
        self._is_first_line = True
        self._data: list[str] = []
        self._data_bytes = 0
        self._name = ""

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """Return the events that this piece completes. Raises Garbled."""
        if self._is_after_cr and piece:
            self._is_after_cr = False
            if piece.startswith(b"\n"):
                piece = piece[1:]
        self._rest += piece
        found: list[ServerSentEvent] = []
        start = 0
        for end in _LINE_END.finditer(self._rest, self._searched_bytes):
            found += self._read_line(bytes(self._rest[start : end.start()]))
            start = end.end()
            self._is_after_cr = end[0] == b"\r" and start == len(self._rest)
        del self._rest[:start]
        self._searched_bytes = len(self._rest)
        if self._data_bytes + self._searched_bytes > EVENT_BYTES_MAX:
            raise Garbled(f"an event of more than {EVENT_BYTES_MAX} bytes")
        return found

    def finish(self) -> list[ServerSentEvent]:
        """Return an event that lacks its line ends. The caller must check that it is complete."""
        try:
            found = self._read_line(bytes(self._rest)) if self._rest else []
        except Garbled:
            return []
        self._rest.clear()
        return found + self._read_line(b"")

    def _read_line(self, line: bytes) -> list[ServerSentEvent]:
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            self.comment_count += 1
            return []
        field, _, value = line.partition(b":")
        if field in (b"data", b"event"):
            try:
                text = value.removeprefix(b" ").decode("utf-8")
            except UnicodeDecodeError:
                raise Garbled("bytes that are no UTF-8") from None
            if field == b"data":
                self._data.append(text)
                self._data_bytes += len(value)
            else:
                self._name = text
        return []

    def _dispatch(self) -> list[ServerSentEvent]:
        data, name = self._data, self._name
        self._data, self._data_bytes, self._name = [], 0, ""
        if not data:
            return []
        self.event_count += 1
        return [ServerSentEvent("\n".join(data), name)]


def may_be_events(head: bytes) -> bool:
    """Whether a stream with this beginning can be one of events."""
    head = head.removeprefix(_BOM).lstrip(b"\r\n")
    line = _LINE_END.split(head, 1)[0]
    field, colon, _ = line.partition(b":")
    if colon or len(line) < len(head):
        return field in (b"", *_FIELDS)
    return any(known.startswith(line) for known in _FIELDS)
