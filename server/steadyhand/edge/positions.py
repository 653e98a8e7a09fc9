"""Positions of LSP in texts; pure.

A line ends at \\n, \\r\\n or \\r and nowhere else; a column counts units of the negotiated encoding.
Clamping: a column past the end of its line is the line's end, before its break; a line past the last is the
end of the text; a column inside one character is that character's beginning. Offsets count code points.
"""

from __future__ import annotations

import re
from itertools import islice

from lsprotocol import types

from steadyhand.edge.client import PositionEncoding

_BREAK = re.compile(r"\r\n|\n|\r")


def offset_at(text: str, position: types.Position, encoding: PositionEncoding) -> int:
    """The offset of a position, clamped."""
    start = 0
    if position.line > 0:
        found = next(islice(_BREAK.finditer(text), position.line - 1, None), None)
        if found is None:
            return len(text)
        start = found.end()
    after = _BREAK.search(text, start)
    line = text[start : after.start() if after else len(text)]
    return start + _column_offset(line, position.character, encoding)


def position_at(text: str, offset: int, encoding: PositionEncoding) -> types.Position:
    """The position of an offset; inside a line break it is the line's end."""
    line, start, end = 0, 0, len(text)
    for found in _BREAK.finditer(text):
        if found.end() > offset:
            end = found.start()
            break
        line, start = line + 1, found.end()
    column = text[start : max(start, min(offset, end))]
    return types.Position(line, sum(_units(character, encoding) for character in column))


def line_end(text: str, line: int, encoding: PositionEncoding) -> types.Position:
    """Where a line ends, before its break; for ranges that cover a whole line."""
    start = offset_at(text, types.Position(line, 0), encoding)
    after = _BREAK.search(text, start)
    return position_at(text, after.start() if after else len(text), encoding)


def _column_offset(line: str, column: int, encoding: PositionEncoding) -> int:
    if encoding == "utf-32" or line.isascii():
        return min(column, len(line))
    taken = 0
    for offset, character in enumerate(line):
        taken += _units(character, encoding)
        if taken > column:
            return offset
    return len(line)


def _units(character: str, encoding: PositionEncoding) -> int:
    code = ord(character)
    match encoding:
        case "utf-8":
            return 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
        case "utf-16":
            return 1 + (code >= 0x10000)
        case "utf-32":
            return 1


def width(text: str, encoding: str) -> int:
    """The length of a line in the client's units."""
    match encoding:
        case "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        case "utf-32":
            return len(text)
        case _:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
