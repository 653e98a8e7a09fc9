"""Positions in a text as editors count them; pure.

A line ends at \\n, \\r\\n or \\r and nowhere else; a column counts units of an encoding that the editor was asked for.
Clamping: a column past the end of its line is the line's end, before its break; a line past the last is the end of
the text; a column inside one character is that character's beginning. Offsets count code points.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Literal

import attrs

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
LINE_BREAK = re.compile(r"\r\n|\n|\r")


@attrs.frozen
class Position:
    line: int  # from 0
    character: int  # from 0, in units of the encoding


@attrs.frozen
class Range:
    """A stretch of a text; its end no longer belongs to it."""

    start: Position
    end: Position

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line that something of it stands in, counted from 1."""
        start, end = sorted((self.start, self.end), key=lambda position: (position.line, position.character))
        last = end.line - (end.character == 0 and end.line > start.line)
        return start.line + 1, last + 1


def offset_of(text: str, line: int, character: int, encoding: PositionEncoding) -> int:
    """The offset of a position, clamped."""
    start = 0
    if line > 0:
        found = next(islice(LINE_BREAK.finditer(text), line - 1, None), None)
        if found is None:
            return len(text)
        start = found.end()
    after = LINE_BREAK.search(text, start)
    return start + _column_offset(text[start : after.start() if after else len(text)], character, encoding)


def stretch(text: str, wanted: Range, encoding: PositionEncoding) -> str:
    """What stands in the range. One whose ends are swapped is taken the right way round."""
    ends = (wanted.start, wanted.end)
    start, end = sorted(offset_of(text, position.line, position.character, encoding) for position in ends)
    return text[start:end]


def units(character: str, encoding: PositionEncoding) -> int:
    """The width of one character."""
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
        taken += units(character, encoding)
        if taken > column:
            return offset
    return len(line)
