"""Replace pieces of an encoded text in its bytes: every byte outside the replaced pieces stays as it was (row W10).

Some encodings have several byte sequences for one character (Big5, Shift-JIS), so a text must never be written again as
a whole. A position of the text is found in the bytes by decoding them. Only for encodings without state.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence

from steadyhand.domain.text.encodings import TextEncoding
from steadyhand_values import frozen

SCANNED_BYTES = 64 * 1024
"""Decoded at once while a position is searched."""


@frozen
class Splice:
    """Replace the characters from `start` to `stop` by `new`. Positions count characters of the text."""

    start: int
    stop: int
    new: str


def splice(body: bytes, text: str, splices: Sequence[Splice], encoding: TextEncoding) -> tuple[bytes, str] | None:
    """Return the bytes and the text after all splices; they are in order and do not overlap.

    `body` is `text` in its encoding, without a mark. None: the bytes would not be that text, so nothing is to be
    written.
    """
    places = _byte_positions(body, text, [place for one in splices for place in (one.start, one.stop)], encoding)
    new_body: list[bytes] = []
    new_text: list[str] = []
    done_bytes = done = 0
    for one, start, stop in zip(splices, places[::2], places[1::2], strict=True):
        new_body += [body[done_bytes:start], encoded(one.new, encoding)]
        new_text += [text[done : one.start], one.new]
        done_bytes, done = stop, one.stop
    made, made_text = b"".join([*new_body, body[done_bytes:]]), "".join([*new_text, text[done:]])
    return (made, made_text) if made.decode(encoding.name, "replace") == made_text else None


def encoded(text: str, encoding: TextEncoding) -> bytes:
    """Return a text that fits (`unfit_text`) in an encoding."""
    return text.encode(encoding.name)


def unfit_text(texts: Sequence[str], encoding: TextEncoding) -> str | None:
    """Return a sentence about the first character that the encoding cannot hold, or would give back as another one;
    None: all texts fit."""
    for text in texts:
        if _fits(text, encoding):
            continue
        place, char = next((at, char) for at, char in enumerate(text) if not _fits(char, encoding))
        line = text.count("\n", 0, place) + 1
        shown = f"“{char}” (U+{ord(char):04X})" if char.isprintable() else f"U+{ord(char):04X}"
        return (
            f"The file is {encoding.word} text, which cannot hold {shown} in line {line} of the new text: write it"
            " without that character. Nothing was changed."
        )
    return None


def _fits(text: str, encoding: TextEncoding) -> bool:
    try:
        return text.encode(encoding.name).decode(encoding.name) == text
    except UnicodeError:
        return False


def _byte_positions(body: bytes, text: str, positions: Sequence[int], encoding: TextEncoding) -> list[int]:
    """Return where these positions of the text, in ascending order, are in the bytes."""
    if encoding.is_single_byte:
        return list(positions)
    found: list[int] = []
    at = at_byte = 0
    for position in positions:
        written = text[at:position].encode(encoding.name, "replace")
        # Equal bytes are decoded alike. Others: the file has a sequence that Python would not write.
        same = body.startswith(written, at_byte)
        at_byte += len(written) if same else _length(body, at_byte, position - at, encoding)
        at = position
        found.append(at_byte)
    return found


def _length(body: bytes, start: int, characters: int, encoding: TextEncoding) -> int:
    """Return how many bytes so many characters from a byte position on take, by decoding them."""
    decoder = codecs.getincrementaldecoder(encoding.name)("strict")
    taken = seen = 0
    for piece in _pieces(body, start):
        state = decoder.getstate()
        count = len(decoder.decode(piece))
        if seen + count < characters:
            seen, taken = seen + count, taken + len(piece)
            continue
        decoder.setstate(state)
        for byte in piece:
            if seen == characters and not decoder.getstate()[0]:
                break
            seen += len(decoder.decode(bytes((byte,))))
            taken += 1
        break
    return taken - len(decoder.getstate()[0])


def _pieces(body: bytes, start: int) -> Iterator[bytes]:
    for at in range(start, len(body), SCANNED_BYTES):
        yield body[at : at + SCANNED_BYTES]
