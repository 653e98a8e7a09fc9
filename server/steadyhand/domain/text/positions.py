"""Positions in a text as editors count them. Pure.

A line ends at \\n, \\r\\n or \\r and nowhere else. A column counts units of the negotiated encoding. Positions are
clamped: a column past the end of its line is the end of the line, before its line break; a line past the last is the
end of the text; a column inside a character is the beginning of that character. Offsets count code points.
"""

from __future__ import annotations

from itertools import islice
from typing import Literal

from steadyhand_values import frozen, pattern

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
LINE_BREAK = pattern(r"\r\n|\n|\r")


@frozen
class Position:
    """A position in a text, as in LSP."""

    line: int  # from 0
    character: int  # from 0, in units of the encoding


@frozen
class Range:
    """A range of a text; the end is excluded."""

    start: Position
    end: Position

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line that the range touches, counted from 1."""
        start, end = sorted((self.start, self.end), key=lambda position: (position.line, position.character))
        last = end.line - (end.character == 0 and end.line > start.line)
        return start.line + 1, last + 1


def offset_of(text: str, line: int, character: int, encoding: PositionEncoding) -> int:
    """Return the offset of a position, clamped."""
    start = 0
    if line > 0:
        found = next(islice(LINE_BREAK.finditer(text), line - 1, None), None)
        if found is None:
            return len(text)
        start = found.end()
    after = LINE_BREAK.search(text, start)
    return start + _column_offset(text[start : after.start() if after else len(text)], character, encoding)


def text_in_range(text: str, wanted: Range, encoding: PositionEncoding) -> str:
    """Return the text in a range. If start and end are swapped, they are put in order."""
    ends = (wanted.start, wanted.end)
    start, end = sorted(offset_of(text, position.line, position.character, encoding) for position in ends)
    return text[start:end]


def unit_width(character: str, encoding: PositionEncoding) -> int:
    """Return the width of one character in units of the encoding."""
    code = ord(character)
    match encoding:
        case "utf-8":
            return 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
        case "utf-16":
            return 1 + (code >= 0x10000)
        case "utf-32":
            return 1


def _column_offset(line: str, column: int, encoding: PositionEncoding) -> int:
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    taken = 0
    for offset, character in enumerate(line):
        taken += unit_width(character, encoding)
        if taken > column:
            return offset
    return len(line)
