"""Server-sent events out of bytes, however they are split.

    stream  = { line end }                       a line ends with LF, CR or CRLF; a BOM may stand first
    line    = "data:" [" "] text | "event:" [" "] name | ":" comment | anything else, passed over
    event   = its data lines joined by LF, at an empty line; without data there is none

A CR ends its line at once; an LF that follows belongs to it, even in the next piece. Lines are decoded whole, so no
piece can split a character. `Garbled`: bytes that are no UTF-8, or an event over the bound.
"""

from __future__ import annotations

import re

import attrs

event_bytes_max = 16 * 1024 * 1024

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b":", b"data", b"event", b"id", b"retry")


class Garbled(ValueError):
    """Bytes that are no event stream."""


@attrs.frozen
class Event:
    data: str
    name: str = ""  # of its `event` line; mostly none


class EventFeed:
    """Takes pieces, gives whole events. `comments`: comment lines so far; `events`: events so far."""

    def __init__(self) -> None:
        self.comments = 0
        self.events = 0
        self._rest = bytearray()  # a line that has not ended
        self._searched = 0  # bytes of it that hold no line end
        self._owed_newline = False  # the last piece ended with CR
        self._first = True
        self._data: list[str] = []
        self._data_bytes = 0
        self._name = ""

    def feed(self, piece: bytes) -> list[Event]:
        if self._owed_newline and piece:
            self._owed_newline = False
            if piece.startswith(b"\n"):
                piece = piece[1:]
        self._rest += piece
        found: list[Event] = []
        start = 0
        for end in _LINE_END.finditer(self._rest, self._searched):
            found += self._line(bytes(self._rest[start : end.start()]))
            start = end.end()
            self._owed_newline = end[0] == b"\r" and start == len(self._rest)
        del self._rest[:start]
        self._searched = len(self._rest)
        if self._data_bytes + self._searched > event_bytes_max:
            raise Garbled(f"an event of more than {event_bytes_max} bytes")
        return found

    def end(self) -> list[Event]:
        """What stands there without its line ends. The caller has to see whether it is whole."""
        try:
            found = self._line(bytes(self._rest)) if self._rest else []
        except Garbled:
            return []
        self._rest.clear()
        return found + self._line(b"")

    def _line(self, line: bytes) -> list[Event]:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            self.comments += 1
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

    def _dispatch(self) -> list[Event]:
        data, name = self._data, self._name
        self._data, self._data_bytes, self._name = [], 0, ""
        if not data:
            return []
        self.events += 1
        return [Event("\n".join(data), name)]


def may_be_events(head: bytes) -> bool:
    """Whether a stream that begins like this can be one of events."""
    head = head.removeprefix(_BOM).lstrip(b"\r\n")
    line = _LINE_END.split(head, 1)[0]
    field, colon, _ = line.partition(b":")
    if colon or len(line) < len(head):
        return field in (b"", *_FIELDS)
    return any(known.startswith(line) for known in _FIELDS)
