"""Compare a file with what the model knows of it, before the model changes it (row V3; cases 135, 67, 68).

An edit goes on if the lines that it changes are as the model saw them; its reply names the lines that are not. What
replaces or removes a whole file is refused if the file changed since the model saw it. A file that the model never saw
whole is replaced only after the user saw the difference. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from steadyhand.domain.model.readings import CommandRun, Reading
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.text.decoding import FileText, decode_as
from steadyhand.domain.text.diff import LineChange, changed_lines, unified_diff
from steadyhand.domain.text.encodings import encoding_recorded
from steadyhand.domain.text.lines import count_lines
from steadyhand.tools.contract import Refusal
from steadyhand_values import frozen

STALE_DIFF_BYTES_MAX = 8 * 1024
LINES_NAMED_MAX = 20
CHANGED = "It changed since you read it; read it again."
"""A fixed sentence, where the earlier content is not known any more."""
UNREAD = "the model has not read it"
READ_IN_PART = "the model has not read all of it"
"""The clauses of the question, and of the refusal where nobody can be asked."""


@frozen
class KnownFiles:
    """What the model knows of files. `content`: digest → those bytes, None if nothing has them.

    `closed_author`: as `authors`, of the sessions that are not open. Both may read a disk."""

    readings: Mapping[str, Reading]
    authors: Mapping[tuple[str, str | None], str]  # (resolved path, digest; None: no file) → "by …"
    commands: Sequence[CommandRun]
    content: Callable[[str], bytes | None]
    closed_author: Callable[[str, str | None], str | None] = lambda path, digest: None

    def changed_by(self, path: str, digest: str | None) -> str:
        """Return who made the file what it is now, as far as it is known."""
        if (author := self.authors.get((path, digest))) is not None:
            return author
        if (author := self.closed_author(path, digest)) is not None:
            return author
        since = self.readings[path].place if path in self.readings else 0
        later = [run for run in self.commands if run.place > since]
        return f"since your reading, perhaps by {program_of(later[-1].title)}" if later else "since your reading"


@frozen
class FileNow:
    """A file as it is. `digest` None: there is none. `text` None: it has no text, or is too large to hold."""

    path: str  # resolved
    shown: str  # for the model
    digest: str | None
    text: str | None = None  # with LF
    size: int = 0  # bytes
    encoding: str | None = None  # as evidence records it; None: not compared


@frozen
class Freshness:
    """Nothing speaks against the change. `note`: what the reply begins with; `asks`: why the user is asked first."""

    note: str = ""
    asks: str | None = None


FRESH = Freshness()


def judge_edit(known: KnownFiles, now: FileNow, made: str | None) -> Freshness | Refusal:
    """Judge an edit. `made`: the text that it makes, with LF; None: its places are not in the file."""
    reading = known.readings.get(now.path)
    if reading is None or now.text is None:
        return FRESH
    was, is_now = _word(reading.encoding), _word(now.encoding)
    if was is not None and is_now is not None and was != is_now:
        return Refusal("stale", f"It was read as {was} and is {is_now} now.")
    if reading.digest == now.digest:
        return FRESH
    before = _earlier(known, reading)
    if before is None:
        return Refusal("stale", CHANGED)
    if before == now.text:
        return FRESH
    changes = changed_lines(before, now.text)
    edited = None if made is None else changed_lines(now.text, made)
    if changes is None or edited is None or _touch(changes, edited):
        return _stale(known, now, before)
    by = known.changed_by(now.path, now.digest)
    return Freshness(f"Changed since you read it ({by}): lines {_named_lines(changes)}.\n")


def judge_replacement(known: KnownFiles, now: FileNow, made: bytes | None = None) -> Freshness | Refusal:
    """Judge what replaces a file by `made`, or removes it (`made` None)."""
    reading = known.readings.get(now.path)
    if now.digest is not None and made is not None and sha256(made) == now.digest:
        return FRESH  # nothing is written
    if reading is None:
        return FRESH if now.digest is None or made is None else Freshness(asks=UNREAD)
    if reading.digest != now.digest:
        before = _earlier(known, reading)
        if before is None or (now.text is None and now.digest is not None):
            return Refusal("stale", CHANGED)
        if now.digest is None or before != now.text:
            return _stale(known, now, before)
    return FRESH if made is None or _covers(reading, now) else Freshness(asks=READ_IN_PART)


def program_of(title: str) -> str:
    """Return the program that a command's title names."""
    return title.rpartition(": ")[2]


def _covers(reading: Reading, now: FileNow) -> bool:
    return reading.covers(count_lines(now.text) if now.text is not None else 0, now.size)


def _earlier(known: KnownFiles, reading: Reading) -> str | None:
    """Return the text that the model knows, with LF; None: its bytes are not kept any more, or are no text."""
    raw = known.content(reading.digest)
    found = None if raw is None else decode_as(raw, reading.encoding)
    return found.text if isinstance(found, FileText) else None


def _stale(known: KnownFiles, now: FileNow, before: str) -> Refusal:
    by = known.changed_by(now.path, now.digest)
    what = "was deleted" if now.digest is None else "changed"
    diff = unified_diff(before, now.text or "", now.shown, STALE_DIFF_BYTES_MAX)
    return Refusal("stale", f"{now.shown} {what} since you read it ({by}); read it again. The difference:\n{diff}")


def _word(recorded: str | None) -> str | None:
    """Return the encoding's name for people; None: not known."""
    encoding = encoding_recorded(recorded)
    return None if encoding is None else encoding.word


def _touch(changes: Iterable[LineChange], edited: Sequence[LineChange]) -> bool:
    """Whether the edit changes a line that changed, or stands inside of lines that were added or removed."""
    return any(change.new_from < edit.old_to and edit.old_from < change.new_to for change in changes for edit in edited)


def _named_lines(changes: Sequence[LineChange]) -> str:
    """Return the lines as they are now; of removed ones, the lines around their place."""
    spans = [
        (change.new_from + 1, change.new_to) if change.new_to > change.new_from else _around(change)
        for change in changes
    ]
    named = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans[:LINES_NAMED_MAX])
    return named + (" and more" if len(spans) > LINES_NAMED_MAX else "")


def _around(change: LineChange) -> tuple[int, int]:
    return max(change.new_from, 1), change.new_from + 1
