"""Reading a text by lines, and the reply in which a reading travels.

Lines are counted from 1 as an editor counts them: they end with LF, CRLF or a lone CR, and with nothing else.
Line ends are shown as LF, but in a file of mixed kinds as they are, so that who writes back what was read
changes nothing.

The reply is the lines themselves, without numbers. It ends with a line end, or its last line is one of three
marks:

    NO_LINE_END_MARK            the file's last line has no line end (what stands before the mark is ours)
    EMPTY_MARK                  the file is empty; the reply is this mark alone
    TRUNCATED_MARK_START …]     there is more of the file than is shown, or a line was cut

So a file that itself ends with such a line is not mistaken: a mark never has a line end behind it, a file's
line always has (its own, or the one put before `NO_LINE_END_MARK`).
"""

from __future__ import annotations

import re

import attrs

from steadyhand.core.text_edit import BOM, NotText, decode

NO_LINE_END_MARK = "[no line end at the end of the file]"
EMPTY_MARK = "[the file is empty]"
TRUNCATED_MARK_START = "[truncated"


@attrs.frozen
class Sliced:
    """Some lines of a file."""

    text: str  # without any mark
    first: int  # number of the first line shown, as asked
    last: int  # number of the last line shown; `first - 1` when there is none
    total: int  # lines of the file
    cut_lines: int  # lines shown that are longer than `line_bytes_max`
    line_end_missing: bool  # the last line of the file is shown and has no line end

    @property
    def whole(self) -> bool:
        """Whether the text is all of the file."""
        return self.first == 1 and self.last == self.total and not self.cut_lines


def slice_lines(raw: bytes, offset: int, limit: int | None, bytes_max: int, line_bytes_max: int) -> Sliced | NotText:
    """At most `limit` lines from line `offset` (1-based) on, at most `bytes_max` bytes of UTF-8.

    One line is always shown, if there is one; a line above `line_bytes_max` is cut between two characters and
    says how many bytes are missing (which may take the text a little above `bytes_max`).
    """
    file = decode(raw)
    if isinstance(file, NotText):
        return file
    body = file.content.encode("utf-8") if file.wide else raw[len(BOM) if file.bom else 0 :]
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


def reading_text(sliced: Sliced) -> str:
    """The reply for these lines; never empty."""
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


def whole_text(reading: str) -> str | None:
    """The file's text (line ends as shown) from the reply to a reading from line 1; None if it was not all of
    it."""
    if reading == EMPTY_MARK:
        return ""
    if reading.endswith(_LINE_ENDS):
        return reading
    text, _, mark = reading.rpartition("\n")
    return text if mark == NO_LINE_END_MARK else None


_LINE_END = re.compile(rb"\r\n|\n|\r")
_LINE_ENDS = ("\n", "\r")


def _start_of(body: bytes, line: int) -> int | None:
    """Where a line begins; None if there is none of that number."""
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
    """The line, or its beginning up to a whole character and a remark."""
    if size == len(beginning):
        return beginning, False
    kept = beginning.decode("utf-8", "ignore").encode("utf-8")
    return kept + f" [{size - len(kept)} bytes more in this line]".encode(), True
