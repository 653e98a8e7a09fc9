"""Positions of LSP in texts, as `domain.text.positions` counts them; pure."""

from __future__ import annotations

from steadyhand.domain.text.positions import LINE_BREAK, PositionEncoding, offset_of, unit_width
from steadyhand.lsp import lsp_types as types


def offset_at(text: str, position: types.Position, encoding: PositionEncoding) -> int:
    """Return the offset of a position; a position outside the text counts as its nearest one inside."""
    return offset_of(text, position.line, position.character, encoding)


def position_at(text: str, offset: int, encoding: PositionEncoding) -> types.Position:
    """Return the position of an offset; inside a line break it is the end of the line."""
    line, start, end = 0, 0, len(text)
    for found in LINE_BREAK.finditer(text):
        if found.end() > offset:
            end = found.start()
            break
        line, start = line + 1, found.end()
    column = text[start : max(start, min(offset, end))]
    return types.Position(line, sum(unit_width(character, encoding) for character in column))


def line_end(text: str, line: int, encoding: PositionEncoding) -> types.Position:
    """Return the end of a line, before its break; for ranges of whole lines."""
    start = offset_at(text, types.Position(line, 0), encoding)
    after = LINE_BREAK.search(text, start)
    return position_at(text, after.start() if after else len(text), encoding)


def width(text: str, encoding: str) -> int:
    """Return the length of a line in the client's units."""
    match encoding:
        case "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        case "utf-32":
            return len(text)
        case _:
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
