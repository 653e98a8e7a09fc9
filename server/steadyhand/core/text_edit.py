"""Edits on bytes: what is not meant is not touched.

A file is text here if it is strict UTF-8, with or without a byte order mark, or strict UTF-16 with one, and holds no
NUL; anything else is `NotText` and stays as it is. Both decode and encode to the same bytes, so a splice in the
decoded text is a splice in the bytes, and what is written has the encoding that was there (case 49). Matching is done
on the LF view (every CRLF seen as LF; a lone CR is an ordinary character) and led back by an offset map. A match is
exact and contiguous, and unique unless all are asked for: nothing is ever matched approximately. What `old` and `new`
have in common at both ends is not rewritten. Line ends cannot be changed by an edit: an inserted line end takes the
kind of its place. `write_file` changes them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal

import attrs

LineEnding = Literal["lf", "crlf", "mixed", "none"]
Encoding = Literal["utf-8", "utf-8-bom", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "binary", "unknown"]

lines_named_max = 20
"""Places named in a refusal for want of uniqueness."""
sniffed_bytes_max = 4096
"""Bytes looked at to tell UTF-16 without a mark from other binary files."""

Wide = Literal["utf-16-le", "utf-16-be"]

BOM = b"\xef\xbb\xbf"
_MARKS: tuple[tuple[bytes, Encoding, str], ...] = (  # looked for first: FF FE begins one of them and UTF-16 too
    (b"\xff\xfe\x00\x00", "utf-32-le", "UTF-32 (little endian)"),
    (b"\x00\x00\xfe\xff", "utf-32-be", "UTF-32 (big endian)"),
)
_WIDE_MARKS: dict[Wide, bytes] = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}


@attrs.frozen
class FileText:
    """A file that can be edited."""

    text: str  # the LF view, without the byte order mark
    bom: bool
    line_ending: LineEnding  # "mixed": more than one kind, or any lone CR; "none": no line end at all
    raw: bytes
    wide: Wide | None = None  # UTF-16 with its mark; None: UTF-8

    @property
    def content(self) -> str:
        """The text with its own line ends, without the mark."""
        if self.wide is not None:
            return self.raw[2:].decode(self.wide)
        return self.raw[len(BOM) if self.bom else 0 :].decode("utf-8")

    @property
    def encoding(self) -> Encoding:
        return self.wide or ("utf-8-bom" if self.bom else "utf-8")

    def bytes_of(self, content: str) -> bytes:
        """Another content in this file's encoding, with its mark; `content` without one."""
        if self.wide is not None:
            return _WIDE_MARKS[self.wide] + content.encode(self.wide)
        return (BOM if self.bom else b"") + content.encode("utf-8")


@attrs.frozen
class NotText:
    """A file that cannot be edited; `reason` is one sentence."""

    reason: str
    encoding: Encoding


@attrs.frozen
class Edit:
    """Replace `old` by `new`: the one match, or with `all` every match, left to right and not overlapping."""

    old: str
    new: str
    all: bool = False


@attrs.frozen
class Edited:
    raw: bytes
    counts: tuple[int, ...]  # replacements per edit, in the order of the edits


@attrs.frozen
class EditRefused:
    """Nothing was changed; `reason` is one sentence for the model."""

    reason: str


def decode(raw: bytes) -> FileText | NotText:
    """The file as text, or why it is none. The only decoder: reading and editing agree by sharing it."""
    for mark, encoding, name in _MARKS:
        if raw.startswith(mark):
            return NotText(f"The file looks like {name} text by its byte order mark: not edited yet.", encoding)
    for wide, mark in _WIDE_MARKS.items():
        if raw.startswith(mark):
            return _wide_text(raw, wide)
    if b"\x00" in raw:
        return _not_text_for_nul(raw)
    try:
        content = raw.decode("utf-8")
    except UnicodeDecodeError as trouble:
        place = f"offset {trouble.start} (line {_lines_ended(raw[: trouble.start]) + 1})"
        return NotText(
            f"The file is not UTF-8: byte 0x{raw[trouble.start]:02X} at {place}; perhaps it is in a one-byte "
            "or East Asian encoding. Files in other encodings are not edited yet.",
            "unknown",
        )
    bom = raw.startswith(BOM)
    return FileText(_lf(content[1:] if bom else content), bom, _line_ending(raw), raw)


def is_text_of(raw: bytes, text: str) -> bool | None:
    """Whether an editor that shows `text` shows these bytes; None where they are no text that is read here.

    Line ends and byte order mark do not count: an editor may show one kind for all.
    """
    match decode(raw):
        case FileText(text=found):
            return found == _lf(text.removeprefix("\ufeff"))
        case NotText():
            return None


def describe(raw: bytes) -> tuple[Encoding, LineEnding]:
    """Encoding and line ending, as recorded in a write's evidence; "none" for what is not text."""
    match decode(raw):
        case FileText(line_ending=line_ending) as file:
            return file.encoding, line_ending
        case NotText(encoding=encoding):
            return encoding, "none"


def apply_edits(file: FileText, edits: Sequence[Edit]) -> Edited | EditRefused:
    """The bytes after all edits, each done on the result of the one before; or none at all."""
    if not edits:
        return EditRefused("No edit is given.")
    content = file.content
    counts: list[int] = []
    for number, edit in enumerate(edits, 1):
        done = _apply(content, edit)
        if isinstance(done, EditRefused):
            return done if len(edits) == 1 else EditRefused(f"Edit {number} of {len(edits)}: {done.reason}")
        content, count = done
        counts.append(count)
    return Edited(file.bytes_of(content), tuple(counts))


def new_content(existing: FileText | None, content: str) -> bytes | EditRefused:
    """The bytes of a whole write.

    Encoding, line ends and byte order mark of an existing file are kept (row W9), read as: the mark stays; a file
    purely of CRLF keeps CRLF when the content has no CR at all, which is how a model sees it. Otherwise, and
    for a new file, the content is taken as given, in UTF-8. Refused only for a lone surrogate, which no file
    can hold.
    """
    if (trouble := _unwritable(content, "content")) is not None:
        return trouble
    if existing is None:
        return content.encode("utf-8")
    if existing.line_ending == "crlf" and "\r" not in content:
        content = content.replace("\n", "\r\n")
    if existing.bom or existing.wide:
        content = content.removeprefix("\ufeff")
    return existing.bytes_of(content)


@attrs.frozen
class _View:
    """The LF view of a text and the way back."""

    content: str
    text: str
    ends: Sequence[int]  # view positions of line ends, lone CR not among them
    crlf: Sequence[int]  # those of them that are CRLF in the content

    def at(self, position: int) -> int:
        """The content position of a view position; a CRLF is entered at its CR."""
        return position + bisect_left(self.crlf, position)

    def kind(self, end: int) -> str:
        place = self.at(end)
        return "\r\n" if self.content[place] == "\r" else "\n"

    def with_kinds(self, inserted: str, whole: range, spliced: range) -> str:
        """Give each inserted line end its kind.

        The replaced line ends give theirs in order; then the nearest one within the matched range; then that
        of the line the match stands in; then that of the line before; then LF.
        """
        if "\n" not in inserted:
            return inserted
        first, last = bisect_left(self.ends, spliced.start), bisect_left(self.ends, spliced.stop)
        own = [self.kind(end) for end in self.ends[first:last]]
        if not own:
            own = [self._neighbour(first, whole)]
        pieces = inserted.split("\n")
        kinds = own + [own[-1]] * len(pieces)
        return pieces[0] + "".join(kind + piece for kind, piece in zip(kinds, pieces[1:], strict=False))

    def _neighbour(self, after: int, whole: range) -> str:
        if after > 0 and self.ends[after - 1] >= whole.start:
            return self.kind(self.ends[after - 1])
        if after < len(self.ends):
            return self.kind(self.ends[after])
        return self.kind(self.ends[after - 1]) if after > 0 else "\n"


def _view(content: str) -> _View:
    ends: list[int] = []
    crlf: list[int] = []
    for match in re.finditer("\r?\n", content):
        position = match.start() - len(crlf)
        ends.append(position)
        if match.end() - match.start() == 2:
            crlf.append(position)
    return _View(content, _lf(content), ends, crlf)


def _apply(content: str, edit: Edit) -> tuple[str, int] | EditRefused:
    trouble = _unwritable(edit.old, "old") or _unwritable(edit.new, "new")
    if trouble is not None:
        return trouble
    if "\x00" in edit.new:
        return EditRefused("The new text holds a NUL character, which would make the file binary.")
    view, old, new = _view(content), _lf(edit.old), _lf(edit.new)
    starts = _starts(view.text, old, edit.all)
    if isinstance(starts, EditRefused):
        return starts
    head, tail = _shared_ends(old, new)
    middle = new[head : len(new) - tail]
    pieces: list[str] = []
    done = 0
    for start in starts:
        whole = range(start, start + len(old))
        spliced = range(whole.start + head, whole.stop - tail)
        pieces += [content[done : view.at(spliced.start)], view.with_kinds(middle, whole, spliced)]
        done = view.at(spliced.stop)
    return "".join([*pieces, content[done:]]), len(starts)


def _starts(text: str, old: str, every: bool) -> list[int] | EditRefused:
    """Where `old` stands in the view: its one place, or with `every` all of them, not overlapping."""
    if not old:
        if not text:
            return [0]  # the one place in an empty file
        return EditRefused(
            "The old text is empty: give a piece of the file that stands there once, and repeat it in the new text."
        )
    if every:
        starts = [match.start() for match in re.finditer(re.escape(old), text)]
    else:
        starts = _places(text, old, lines_named_max + 1)
    if not starts:
        return EditRefused(
            "The old text does not stand in the file: read it again and copy the place exactly, blanks included."
        )
    if len(starts) > 1 and not every:
        named = ", ".join(str(_lines_ended(text[:start]) + 1) for start in starts[:lines_named_max])
        more = " and more" if len(starts) > lines_named_max else ""
        return EditRefused(
            f"The old text stands in the file more than once, at lines {named}{more}: "
            "add lines around it until it is unique, or ask for all."
        )
    return starts


def _places(text: str, old: str, most: int) -> list[int]:
    """The first places of `old`, overlapping ones too: two that overlap are not unique either."""
    places: list[int] = []
    position = text.find(old)
    while position >= 0 and len(places) < most:
        places.append(position)
        position = text.find(old, position + 1)
    return places


def _shared_ends(old: str, new: str) -> tuple[int, int]:
    """Lengths of the common beginning and, after it, of the common end."""
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _unwritable(text: str, what: str) -> EditRefused | None:
    match = re.search("[\ud800-\udfff]", text)
    if match is None:
        return None
    return EditRefused(f"The {what} text holds the lone surrogate U+{ord(match.group()):04X}, which is no character.")


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _lines_ended(piece: str | bytes) -> int:
    """Line ends as an editor counts them: LF, CRLF and lone CR; never U+2028, form feed or the like."""
    if isinstance(piece, str):
        return piece.count("\n") + piece.count("\r") - piece.count("\r\n")
    return piece.count(b"\n") + piece.count(b"\r") - piece.count(b"\r\n")


def _line_ending(raw: bytes) -> LineEnding:
    crlf, lf, cr = raw.count(b"\r\n"), raw.count(b"\n"), raw.count(b"\r")
    if cr > crlf or (crlf and lf > crlf):
        return "mixed"
    if crlf:
        return "crlf"
    return "lf" if lf else "none"


def _wide_text(raw: bytes, wide: Wide) -> FileText | NotText:
    try:
        content = raw[2:].decode(wide)
    except UnicodeDecodeError as trouble:
        text = f"The file begins like UTF-16 text and is none at offset {trouble.start + 2}: it is not edited."
        return NotText(text, wide)
    if "\x00" in content:
        return NotText("The file begins like UTF-16 text and holds a NUL character: it is taken for binary.", "binary")
    return FileText(_lf(content), False, _line_ending(content.encode("utf-8")), raw, wide)


def _not_text_for_nul(raw: bytes) -> NotText:
    sniffed = raw[:sniffed_bytes_max]
    even, odd = sniffed[::2].count(0), sniffed[1::2].count(0)
    mostly = len(sniffed) // 4  # half of the units or more have a zero on this side
    if odd > mostly and not even:
        return NotText("The file looks like UTF-16 (little endian) text without a mark: not edited yet.", "utf-16-le")
    if even > mostly and not odd:
        return NotText("The file looks like UTF-16 (big endian) text without a mark: not edited yet.", "utf-16-be")
    return NotText(f"The file is binary: it holds a NUL byte at offset {raw.index(0)}.", "binary")
