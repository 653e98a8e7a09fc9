"""Which lines of a file a reply shows, for the record of what the model knows (row V3)."""

from __future__ import annotations

from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import Shown
from steadyhand.domain.text.decoding import FileText
from steadyhand.domain.text.lines import Sliced


def shown_lines(path: str, file: FileText, sliced: Sliced) -> Shown:
    """Return the record for lines of a file. A line that was cut is not shown, so then no line counts."""
    last = sliced.last if not sliced.cut_lines else sliced.first - 1
    return shown_range(path, file, sliced.first, last, sliced.whole)


def shown_range(path: str, file: FileText, first: int, last: int, whole: bool) -> Shown:
    """Return the record for the lines `first` to `last`, from 1, of a file."""
    return Shown(path=path, digest=sha256(file.raw), from_=first, to=last, whole=whole, encoding=file.recorded_encoding)
