"""The hunks of lines of a file's change: where they are in the file now, and the contents without or with some of them
(row V4).

The change leads from the *base* to the *last* content of ours; what the file has *now* may differ from it, because
somebody else changed it. A hunk is in the file now if nobody changed its lines or a line beside them. All contents are
compared and joined as the bytes of whole lines, so no byte outside a hunk changes, whatever the encoding and the line
ends are (row W10).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from steadyhand.domain.text.decoding import FileText, decode_as
from steadyhand.domain.text.diff import COMPARED_CHARS_MAX, LineChange, line_changes
from steadyhand.domain.text.encodings import TextEncoding
from steadyhand.domain.text.positions import LINE_BREAK
from steadyhand_values import frozen, pattern

HUNKS_MAX = 500
"""Hunks of one file; a change with more is one hunk."""
HUNK_BYTES_MAX = 64 * 1024
"""Bytes of the lines that a change removes and adds; a larger change is one hunk."""
_BYTE_LINE = pattern(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

Line: TypeAlias = "tuple[int, int]"
"""Lines from the first one on, counted from 0, up to and without the second one."""


@frozen
class LineHunk:
    """Lines of the base that became lines of the last content."""

    before: Line
    after: Line


@frozen
class FileHunks:
    """The change of a file by its lines, each with its line end. `places`: where the hunks are in `now`; None: somebody
    changed them."""

    base: Sequence[bytes]
    last: Sequence[bytes]
    now: Sequence[bytes]
    hunks: tuple[LineHunk, ...]
    places: tuple[Line | None, ...]

    def content_with(self, chosen: Collection[int]) -> bytes:
        """Return the base with these hunks, by their numbers."""
        some = ((hunk.before, self.last[slice(*hunk.after)]) for hunk in self._some(chosen))
        return _replaced(self.base, some)

    def last_without(self, chosen: Collection[int]) -> bytes:
        """Return the last content of ours without these hunks."""
        some = ((hunk.after, self.base[slice(*hunk.before)]) for hunk in self._some(chosen))
        return _replaced(self.last, some)

    def now_without(self, chosen: Collection[int]) -> bytes:
        """Return the content of now without these hunks; each has its place there."""
        some: list[tuple[Line, Sequence[bytes]]] = []
        for at, (hunk, place) in enumerate(zip(self.hunks, self.places, strict=True)):
            if at in chosen:
                assert place is not None, "somebody changed these lines"
                some.append((place, self.base[slice(*hunk.before)]))
        return _replaced(self.now, some)

    def _some(self, chosen: Collection[int]) -> Iterator[LineHunk]:
        return (hunk for at, hunk in enumerate(self.hunks) if at in chosen)


def file_hunks(base: Sequence[bytes], last: Sequence[bytes], now: Sequence[bytes] | None) -> FileHunks | None:
    """Return the hunks of a change. `now` None: the file has the last content. None: it is one hunk as a whole."""
    found = _hunks(base, last)
    if found is None:
        return None
    if now is None:
        return FileHunks(base, last, last, found, tuple(hunk.after for hunk in found))
    theirs = _changes(last, now)
    places = (None if theirs is None else _place(hunk, theirs) for hunk in found)
    return FileHunks(base, last, now, found, tuple(places))


def lines_of(content: bytes, encoding: TextEncoding) -> Sequence[bytes] | None:
    """Return the bytes of each line with its line end; None: it is no text in this encoding, or cannot be divided."""
    if encoding.is_stateful or not isinstance(decode_as(content, encoding.name), FileText):
        return None
    if encoding.unit_bytes == 1:  # no character of several bytes has a byte of a line end in it
        return _BYTE_LINE.findall(content)
    found = [line.encode(encoding.name) for line in _text_lines(content.decode(encoding.name))]
    return found if b"".join(found) == content else None


def _hunks(base: Sequence[bytes], last: Sequence[bytes]) -> tuple[LineHunk, ...] | None:
    changes = _changes(base, last)
    if not changes or len(changes) > HUNKS_MAX:
        return None
    hunks = [LineHunk((one.old_from, one.old_to), (one.new_from, one.new_to)) for one in changes]
    size = sum(_size(base[slice(*hunk.before)]) + _size(last[slice(*hunk.after)]) for hunk in hunks)
    return tuple(hunks) if size <= HUNK_BYTES_MAX else None


def _changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[LineChange] | None:
    if _size(old) + _size(new) > COMPARED_CHARS_MAX:
        return None
    return [] if old == new else line_changes(old, new)


def _place(hunk: LineHunk, theirs: Sequence[LineChange]) -> Line | None:
    """Return where the lines of a hunk are after somebody else's changes; None if one of them is in or beside it."""
    start, stop = hunk.after
    moved = 0
    for change in theirs:
        if change.old_from <= stop and start <= change.old_to:
            return None
        if change.old_to < start:
            moved += (change.new_to - change.new_from) - (change.old_to - change.old_from)
    return start + moved, stop + moved


def _replaced(lines: Sequence[bytes], replacements: Iterable[tuple[Line, Sequence[bytes]]]) -> bytes:
    """Return the content with other lines in these places, which are in order."""
    pieces: list[bytes] = []
    done = 0
    for (start, stop), others in replacements:
        pieces += [*lines[done:start], *others]
        done = stop
    return b"".join([*pieces, *lines[done:]])


def _size(lines: Sequence[bytes]) -> int:
    return sum(map(len, lines))


def _text_lines(text: str) -> Iterator[str]:
    start = 0
    for found in LINE_BREAK.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    if start < len(text):
        yield text[start:]
