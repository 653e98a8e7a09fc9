"""A unified diff that is always small and always soon done.

Lines are split at LF alone, so that a CR stays visible where it is and U+2028 splits nothing. Equal lines at
both ends are set aside first; what is left is compared only while it is small enough (difflib is quadratic at
its worst), otherwise one line says how much changed. The result never exceeds the bytes asked for; a cut one
says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

import attrs

compared_lines_max = 2000
"""Lines of either side compared, after equal ones at both ends are set aside."""
compared_chars_max = 16 * 1024 * 1024
"""Characters of both sides together; above it only sizes are told."""
context_lines = 3

CUT_MARK = "[diff cut here]\n"
NO_NEWLINE = "\\ No newline at end of file\n"


def unified(before: str, after: str, path: str, bytes_max: int) -> str:
    """The diff from `before` to `after` as text, empty if they are equal; at most `bytes_max` bytes of
    UTF-8."""
    if before == after:
        return ""
    shown = _printable(path)
    if len(before) + len(after) > compared_chars_max:
        sizes = f"{len(before)} characters before, {len(after)} after"
        return _cut(f"[{shown}: too large to compare: {sizes}]\n", bytes_max)
    old, new = _lines(before), _lines(after)
    changes = _changes(old, new)
    if changes is None:
        sizes = f"{len(old)} lines before, {len(new)} after"
        return _cut(f"[{shown}: too many lines differ to compare: {sizes}]\n", bytes_max)
    pieces = [f"--- a/{shown}\n", f"+++ b/{shown}\n"]
    size = 0
    for line in _hunks(old, new, changes):
        pieces.append(line)
        size += len(line)
        if size > bytes_max:  # characters are never more than bytes: what is beyond is cut in any case
            break
    return _cut("".join(pieces), bytes_max)


@attrs.frozen
class _Change:
    """Lines `old_from` to `old_to` became `new_from` to `new_to` (0-based, ends excluded)."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


_Hunk: TypeAlias = "list[_Change]"


def _changes(old: Sequence[str], new: Sequence[str]) -> list[_Change] | None:
    """What changed, in order; None if it is too much to compare."""
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not old or not new:
        return [_Change(head, head + len(old), head, head + len(new))]
    if max(len(old), len(new)) > compared_lines_max:
        return None
    return [
        _Change(head + a, head + b, head + c, head + d)
        for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes()
        if tag != "equal"
    ]


def _hunks(old: Sequence[str], new: Sequence[str], changes: Sequence[_Change]) -> Iterator[str]:
    group: _Hunk = []
    for change in changes:
        if group and change.old_from - group[-1].old_to > 2 * context_lines:
            yield from _hunk(old, new, group)
            group = []
        group.append(change)
    yield from _hunk(old, new, group)


def _hunk(old: Sequence[str], new: Sequence[str], group: _Hunk) -> Iterator[str]:
    before = min(context_lines, group[0].old_from)
    after = min(context_lines, len(old) - group[-1].old_to)
    old_span = _span(group[0].old_from - before, group[-1].old_to + after)
    new_span = _span(group[0].new_from - before, group[-1].new_to + after)
    yield f"@@ -{old_span} +{new_span} @@\n"
    at = group[0].old_from - before
    for change in group:
        for line in old[at : change.old_from]:
            yield _marked(" ", line)
        for line in old[change.old_from : change.old_to]:
            yield _marked("-", line)
        for line in new[change.new_from : change.new_to]:
            yield _marked("+", line)
        at = change.old_to
    for line in old[at : at + after]:
        yield _marked(" ", line)


def _span(start: int, stop: int) -> str:
    """Start and length as the format wants them: an empty one names the line before it."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n{NO_NEWLINE}"


def _lines(text: str) -> list[str]:
    """Lines with their LF; the last one may be without."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _printable(path: str) -> str:
    """A name of one line: control characters in a file's name must not make up lines of the diff."""
    return "".join(c if c.isprintable() or c == " " else c.encode("unicode_escape").decode() for c in path)


def _cut(text: str, bytes_max: int) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= bytes_max:
        return text
    room = bytes_max - len(CUT_MARK) - 1
    if room <= 0:
        return CUT_MARK[: max(bytes_max, 0)]
    kept = encoded[:room].decode("utf-8", "ignore")
    return kept + ("" if kept.endswith("\n") else "\n") + CUT_MARK
