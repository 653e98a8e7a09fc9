"""Decode the bytes of a file: the first rule that applies says its encoding (row W10).

    1  its byte order mark
    2  what the editor reports for the open document
    3  strict UTF-8, if the file has a character of several bytes
    4  what the nearest `.editorconfig` says          5  what the setting `files.encoding` says
    6  UTF-8, if all bytes are ASCII
    7  detection, for reading; for writing only if it leaves one encoding of the list

A name applies only if the whole file is valid in that encoding, so nothing is ever decoded with replacements. A file in
which no rule finds text, or whose text would hold a NUL, is `NotText`. Reading, searching and editing share `decode`,
so they always agree. `decode_as` knows the encoding already: recovery decodes by the recorded name alone.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from steadyhand.domain.text.encodings import (
    ENCODINGS,
    ESCAPE,
    MARKED,
    STATEFUL,
    UTF_8,
    UTF_16_BE,
    UTF_16_LE,
    WIDE,
    TextEncoding,
    encoding_named,
    encoding_recorded,
    recorded_name,
)
from steadyhand_values import frozen, pattern

LineEnding = Literal["lf", "crlf", "mixed", "none"]

SNIFFED_BYTES_MAX = 4096
"""Bytes that are read to tell a wide encoding without a mark from other files with a NUL."""
SAMPLE_BYTES_MAX = 64 * 1024
"""Bytes that detection gets: the lines that are not ASCII, from the beginning on."""
CANDIDATES_NAMED_MAX = 4
"""Encodings that a refusal names."""
SAY_IT = "Say which it is in `.editorconfig` (charset), in the setting steadyhand.files.encoding, or in the editor."
_NOT_ASCII_LINE = pattern(rb"[^\n]*[\x80-\xff][^\n]*\n?")


@frozen
class FileText:
    """A file that has text."""

    text: str  # the LF view, without the mark: CRLF as LF, a lone CR as itself
    content: str  # with its own line ends, without the mark
    line_ending: LineEnding  # "mixed": more than one kind, or any lone CR; "none": no line end at all
    raw: bytes
    encoding: TextEncoding = UTF_8
    mark: bytes = b""  # the byte order mark it begins with
    doubt: str | None = None  # why it is only read, as a sentence; None: it may be written

    @property
    def recorded_encoding(self) -> str:
        """The encoding, as evidence records it."""
        return recorded_name(self.encoding, bool(self.mark))


@frozen
class NewText:
    """No text is there: the file does not exist, or is too large to be kept. How a new text is encoded."""

    encoding: TextEncoding = UTF_8
    mark: bytes = b""

    @property
    def recorded_encoding(self) -> str:
        """The encoding, as evidence records it."""
        return recorded_name(self.encoding, bool(self.mark))


@frozen
class NotText:
    """A file that cannot be edited; `reason` is one sentence."""

    reason: str


@frozen
class Recognized:
    """The encoding of a file. `doubt`: why it is only read."""

    encoding: TextEncoding
    mark: bytes = b""
    doubt: str | None = None


def _no_name() -> str | None:
    return None


def _no_names() -> Iterable[str | None]:
    return ()


def _no_candidates(sample: bytes) -> Sequence[str]:
    return ()


@frozen
class Naming:
    """Who names the encoding of one file. Each is asked only if the rules before it do not apply."""

    by_editor: Callable[[], str | None] = _no_name
    by_configuration: Callable[[], Iterable[str | None]] = _no_names  # rules 4 and 5, in this order
    candidates: Callable[[bytes], Sequence[str]] = _no_candidates
    """Rule 7: recorded names of the encodings that a sample of the file may be in, the likeliest first."""


NO_NAMES = Naming()


def decode(raw: bytes, naming: Naming = NO_NAMES) -> FileText | NotText:
    """Return the file as text, or why it is none."""
    found = recognize(raw, naming)
    return found if isinstance(found, NotText) else _file_text(raw, found)


def text_in_editor(text: str) -> FileText | NotText:
    """Return the text of an open document as that of a file."""
    raw = text.encode("utf-8", "replace")
    return _no_text(raw) if b"\x00" in raw else _file_text(raw, Recognized(UTF_8))


def decode_as(raw: bytes, recorded: str | None) -> FileText | NotText:
    """Return the text of a file whose encoding was recorded; a name that is not known counts as none recorded."""
    encoding = encoding_recorded(recorded)
    if encoding is None:
        return decode(raw)
    mark = encoding.mark if encoding.mark and raw.startswith(encoding.mark) else b""
    if _valid_text(raw[len(mark) :], encoding) is None:
        return _no_text(raw) if encoding is UTF_8 else NotText(f"The file is not {encoding.word} text.")
    return _file_text(raw, Recognized(encoding, mark))


def new_text(recorded: str | None) -> NewText:
    """Return how a file that did not exist was encoded, by the recorded name."""
    encoding = encoding_recorded(recorded) or UTF_8
    has_mark = encoding.unit_bytes > 1 or (encoding is UTF_8 and recorded not in (None, UTF_8.name))
    return NewText(encoding, encoding.mark if has_mark else b"")


def recognize(raw: bytes, naming: Naming = NO_NAMES, is_whole: bool = True) -> Recognized | NotText:
    """Return the encoding of a file by the first rule that applies. `is_whole` false: `raw` is its beginning."""
    for encoding in MARKED:
        if raw.startswith(encoding.mark):
            return _marked(raw, encoding, is_whole)
    named = encoding_named(naming.by_editor())
    if named is not None and _applies(raw, named[0], is_whole):
        return Recognized(named[0])
    has_nul = b"\x00" in raw
    if not has_nul and not raw.isascii() and _valid_text(raw, UTF_8, is_whole) is not None:
        return Recognized(UTF_8)
    for name in naming.by_configuration():
        named = encoding_named(name)
        if named is not None and _applies(raw, named[0], is_whole):
            return Recognized(named[0])
    if raw.isascii() and not has_nul:
        return _seven_bits(raw, is_whole)
    return _detected(raw, naming, is_whole)


def utf_8_pieces(pieces: Iterable[bytes], found: Recognized) -> Iterator[bytes]:
    """Yield the text of a file in UTF-8, piece by piece and without its mark. Raises UnicodeDecodeError."""
    decoder = codecs.getincrementaldecoder(found.encoding.name)("strict")
    skipped = len(found.mark)
    for piece in pieces:
        piece, skipped = piece[skipped:], max(0, skipped - len(piece))
        yield piece if found.encoding is UTF_8 else decoder.decode(piece).encode("utf-8")
    if found.encoding is not UTF_8:
        yield decoder.decode(b"", True).encode("utf-8")


def is_text_of(raw: bytes, text: str) -> bool | None:
    """Return whether an editor that shows `text` shows these bytes, in whatever encoding of the list it reads them.

    None: it shows characters in place of bytes that it could not read, so nobody can tell. Line ends and byte order
    mark do not count, because an editor may show one kind of line end for all.
    """
    shown = to_lf(text.removeprefix("\ufeff"))
    found = decode(raw)
    if isinstance(found, FileText):
        return found.text == shown
    for encoding in ENCODINGS:
        content = _valid_text(raw, encoding)
        if content is not None and to_lf(content) == shown:
            return True
    return None if "\ufffd" in shown or b"\x00" in raw else False


def line_ending_of(content: str) -> LineEnding:
    """Return the kind of the line ends of a text."""
    crlf, lf, cr = content.count("\r\n"), content.count("\n"), content.count("\r")
    if cr > crlf or (crlf and lf > crlf):
        return "mixed"
    if crlf:
        return "crlf"
    return "lf" if lf else "none"


def to_lf(text: str) -> str:
    """Return the LF view of a text."""
    return text.replace("\r\n", "\n")


def _file_text(raw: bytes, found: Recognized) -> FileText:
    content = raw[len(found.mark) :].decode(found.encoding.name)
    return FileText(to_lf(content), content, line_ending_of(content), raw, found.encoding, found.mark, found.doubt)


def _valid_text(raw: bytes, encoding: TextEncoding, is_whole: bool = True) -> str | None:
    """Return the text if all bytes are valid and it has no NUL; of a beginning, the last character may be cut."""
    try:
        if is_whole:
            text = raw.decode(encoding.name)
        else:
            text = codecs.getincrementaldecoder(encoding.name)("strict").decode(raw)
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _applies(raw: bytes, encoding: TextEncoding, is_whole: bool) -> bool:
    """Whether a name applies. Bytes that are all ASCII, without a NUL, are in no wide encoding."""
    if encoding.unit_bytes > 1 and raw and raw.isascii() and b"\x00" not in raw:
        return False
    return _valid_text(raw, encoding, is_whole) is not None


def _marked(raw: bytes, encoding: TextEncoding, is_whole: bool) -> Recognized | NotText:
    body = raw[len(encoding.mark) :]
    if _valid_text(body, encoding, is_whole) is not None:
        return Recognized(encoding, encoding.mark)
    try:
        body.decode(encoding.name)
    except UnicodeDecodeError as trouble:
        place = f"offset {trouble.start + len(encoding.mark)}"
        return NotText(f"The file begins like {encoding.word} text but is not valid at {place}: it is not edited.")
    return NotText(f"The file begins like {encoding.word} text but has a NUL character: it is treated as binary.")


def _seven_bits(raw: bytes, is_whole: bool) -> Recognized:
    """Rule 6. A text that switches to other characters by escape sequences is not ASCII, whatever its bytes are."""
    if ESCAPE.search(raw) is not None:
        for encoding in STATEFUL:
            text = _valid_text(raw, encoding, is_whole)
            if text is not None and not text.isascii():
                return Recognized(encoding, doubt=f"It is {encoding.word} text, and a stateful encoding is only read.")
    return Recognized(UTF_8)


def _detected(raw: bytes, naming: Naming, is_whole: bool) -> Recognized | NotText:
    """Rule 7."""
    likely = [encoding_recorded(name) for name in naming.candidates(_sample(raw))]
    listed = WIDE if b"\x00" in raw else ENCODINGS
    found = [one for one in likely if one is not None and one in listed and _gives_same_bytes(raw, one, is_whole)]
    if not found:
        return _no_text(raw)
    best = found[0]
    if len(found) == 1:
        return Recognized(best)
    others = ", ".join(one.word for one in found[1 : CANDIDATES_NAMED_MAX + 1])
    more = " and others" if len(found) > CANDIDATES_NAMED_MAX + 1 else ""
    doubt = f"It looks like {best.word} text but may be {others}{more}, so it is only read. {SAY_IT}"
    return Recognized(best, doubt=doubt)


def _gives_same_bytes(raw: bytes, encoding: TextEncoding, is_whole: bool) -> bool:
    text = _valid_text(raw, encoding, is_whole)
    if text is None:
        return False
    made = text.encode(encoding.name, "replace")
    return made == raw if is_whole else raw.startswith(made)


def _sample(raw: bytes) -> bytes:
    """Return what detection gets: the beginning of a file with a NUL, else the lines with a byte that is not ASCII."""
    if b"\x00" in raw[:SNIFFED_BYTES_MAX]:
        return raw[:SNIFFED_BYTES_MAX]
    lines: list[bytes] = []
    size = 0
    for line in _NOT_ASCII_LINE.finditer(raw):
        lines.append(line.group()[: SAMPLE_BYTES_MAX - size])
        size += len(lines[-1])
        if size >= SAMPLE_BYTES_MAX:
            break
    return b"".join(lines)


def _no_text(raw: bytes) -> NotText:
    if b"\x00" in raw:
        sniffed = raw[:SNIFFED_BYTES_MAX]
        even, odd = sniffed[::2].count(0), sniffed[1::2].count(0)
        mostly = len(sniffed) // 4  # at least half of the units have a zero on this side
        for encoding, zeros, others in ((UTF_16_LE, odd, even), (UTF_16_BE, even, odd)):
            if zeros > mostly and not others:
                return NotText(f"The file looks like {encoding.word} text without a mark. {SAY_IT}")
        return NotText(f"The file is binary: it holds a NUL byte at offset {raw.index(0)}.")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as trouble:
        before = raw[: trouble.start]
        line = before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n") + 1
        return NotText(
            f"The file is not UTF-8: byte 0x{raw[trouble.start]:02X} at offset {trouble.start} (line {line}); perhaps"
            f" it is in another encoding. {SAY_IT}"
        )
    return NotText("The file is no text.")
