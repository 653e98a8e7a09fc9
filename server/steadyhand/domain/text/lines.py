"""Read a text by lines, and format the reply that carries them.

Lines are counted from 1 as an editor counts them: they end with LF, CRLF or a lone CR, and with nothing else. The reply
shows line ends as LF, but in a file of mixed kinds as they are, so that writing back what was read changes nothing.

The reply is the lines themselves, without numbers. It ends with a line end, or its last line is one of three marks:

    NO_LINE_END_MARK            the last line of the file has no line end (the one before the mark is ours)
    EMPTY_MARK                  the file is empty; the reply is this mark alone
    TRUNCATED_MARK_START …]     the file has more than is shown, or a line was cut

A line of the file cannot be mistaken for a mark: a mark never has a line end after it, and a line of the file always
has one (its own, or the one before `NO_LINE_END_MARK`). The reply to a file that is not UTF-8 begins with a line that
names its encoding, `[windows-1252]` (row W10). So does the reply to a UTF-8 file whose first line looks like one.
"""

from __future__ import annotations

from steadyhand.domain.text.decoding import FileText
from steadyhand.domain.text.encodings import ENCODINGS, STATEFUL, UTF_8, TextEncoding
from steadyhand_values import frozen, pattern

NO_LINE_END_MARK = "[no line end at the end of the file]"
EMPTY_MARK = "[the file is empty]"
TRUNCATED_MARK_START = "[truncated"


@frozen
class Sliced:
    """Some lines of a file."""

    text: str  # without any mark
    first: int  # number of the first line shown; `offset` of the request
    last: int  # number of the last line shown; `first - 1` if there is none
    total: int  # number of lines in the file
    cut_lines: int  # lines shown that are longer than `line_bytes_max`
    line_end_missing: bool  # the file's last line is shown and has no line end

    @property
    def whole(self) -> bool:
        """Whether the text is the whole file."""
        return self.first == 1 and self.last == self.total and not self.cut_lines


def count_lines(text: str) -> int:
    """Return the number of lines of a text, as `slice_lines` counts them."""
    ends = text.count("\n") + text.count("\r") - text.count("\r\n")
    return ends + (0 if not text or text.endswith(_LINE_ENDS) else 1)


def slice_lines(file: FileText, offset: int, limit: int | None, bytes_max: int, line_bytes_max: int) -> Sliced:
    """Return at most `limit` lines from line `offset` (1-based) on, at most `bytes_max` bytes of UTF-8.

    If the file has that line, at least one is returned. A line longer than `line_bytes_max` is cut between two
    characters and tells how many bytes are missing; this may make the text a little longer than `bytes_max`.
    """
    body = file.raw[len(file.mark) :] if file.encoding is UTF_8 else file.content.encode("utf-8")
    ends = body.count(b"\n") + body.count(b"\r") - body.count(b"\r\n")
    total = ends + (0 if not body or body.endswith((b"\n", b"\r")) else 1)
    line_bytes_max = min(line_bytes_max, bytes_max)
    shown: list[str] = []
    size = cut = 0
    start = _start_of(body, offset)
    while start is not None and start < len(body) and (limit is None or len(shown) < limit):
        match = _LINE_END.search(body, start)
        stop, after = match.span() if match else (len(body), len(body))
        beginning = body[start : min(stop, start + line_bytes_max)]
        line, missing = _cut(beginning, stop - start)
        line += body[stop:after] if file.line_ending == "mixed" else b"\n" * bool(match)
        if shown and size + len(line) > bytes_max:
            break
        shown.append(line.decode("utf-8"))
        size, cut, start = size + len(line), cut + missing, after
    at_end = bool(shown) and start == len(body)
    return Sliced("".join(shown), offset, offset + len(shown) - 1, total, cut, at_end and ends < total)


def with_heading(reply: str, encoding: TextEncoding) -> str:
    """Return the reply with the line that names the encoding, where it needs one."""
    needs_one = encoding is not UTF_8 or reply.partition("\n")[0] in _headings()
    return f"[{encoding.word}]\n{reply}" if needs_one else reply


def reply_of_lines(sliced: Sliced) -> str:
    """Return the reply for these lines; it is never empty."""
    if sliced.total == 0:
        return EMPTY_MARK
    shown = sliced.text
    if not shown:
        return f"{TRUNCATED_MARK_START}: the file has {sliced.total} lines, there is no line {sliced.first}]"
    if sliced.last < sliced.total or sliced.cut_lines:
        lines = f"lines {sliced.first} to {sliced.last} of {sliced.total}"
        cut = f", {sliced.cut_lines} of them cut" if sliced.cut_lines else ""
        more = f"; go on with offset {sliced.last + 1}" if sliced.last < sliced.total else ""
        end = "" if shown.endswith(_LINE_ENDS) else "\n"
        return f"{shown}{end}{TRUNCATED_MARK_START}: {lines}{cut}{more}]"
    return f"{shown}\n{NO_LINE_END_MARK}" if sliced.line_end_missing else shown


def text_of_reply(reading: str) -> str | None:
    """Return the text of the file from the reply to a read from line 1, with line ends as shown.

    None: the reply is not the whole file.
    """
    first, end, rest = reading.partition("\n")
    if end and first in _headings():
        reading = rest
    if reading == EMPTY_MARK:
        return ""
    if reading.endswith(_LINE_ENDS):
        return reading
    text, _, mark = reading.rpartition("\n")
    return text if mark == NO_LINE_END_MARK else None


def _headings() -> frozenset[str]:
    return frozenset(f"[{encoding.word}]" for encoding in (*ENCODINGS, *STATEFUL))


_LINE_END = pattern(rb"\r\n|\n|\r")
_LINE_ENDS = ("\n", "\r")


def _start_of(body: bytes, line: int) -> int | None:
    """Return the position where a line begins; None if the file has no such line."""
    if line < 1:
        return None
    start = 0
    for _ in range(line - 1):
        match = _LINE_END.search(body, start)
        if match is None:
            return None
        start = match.end()
    return start


def _cut(beginning: bytes, size: int) -> tuple[bytes, bool]:
    """Return the line; if it is too long, its beginning up to a whole character and a remark."""
    if size == len(beginning):
        return beginning, False
    kept = beginning.decode("utf-8", "ignore").encode("utf-8")
    return kept + f" [{size - len(kept)} bytes more in this line]".encode(), True
