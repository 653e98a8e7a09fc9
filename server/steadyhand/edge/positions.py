"""Positions of LSP in texts, as `core.text_positions` counts them; pure."""

from __future__ import annotations

from lsprotocol import types

from steadyhand.core.text_positions import LINE_BREAK, PositionEncoding, offset_of, units


def offset_at(text: str, position: types.Position, encoding: PositionEncoding) -> int:
    """The offset of a position, clamped."""
    return offset_of(text, position.line, position.character, encoding)


def position_at(text: str, offset: int, encoding: PositionEncoding) -> types.Position:
    """The position of an offset; inside a line break it is the line's end."""
    line, start, end = 0, 0, len(text)
    for found in LINE_BREAK.finditer(text):
        if found.end() > offset:
            end = found.start()
            break
        line, start = line + 1, found.end()
    column = text[start : max(start, min(offset, end))]
    return types.Position(line, sum(units(character, encoding) for character in column))


def line_end(text: str, line: int, encoding: PositionEncoding) -> types.Position:
    """Where a line ends, before its break; for ranges that cover a whole line."""
    start = offset_at(text, types.Position(line, 0), encoding)
    after = LINE_BREAK.search(text, start)
    return position_at(text, after.start() if after else len(text), encoding)


def width(text: str, encoding: str) -> int:
    """The length of a line in the client's units."""
    match encoding:
        case "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        case "utf-32":
            return len(text)
        case _:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
