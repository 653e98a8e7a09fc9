"""A unified diff of bounded size, made in bounded time.

Lines are split at LF alone, so that a CR stays visible and U+2028 splits nothing. Equal lines at both ends are set
aside first. The rest is compared only if it is small enough, because difflib is quadratic in the worst case; otherwise
one line says how much changed. The result never exceeds the bytes asked for; a cut result ends with `CUT_MARK`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import AnyStr, TypeAlias

from steadyhand_values import frozen

COMPARED_LINES_MAX = 2000
"""Lines of either side that are compared, after equal lines at both ends are set aside."""
COMPARED_CHARS_MAX = 16 * 1024 * 1024
"""Characters of both sides together; a larger pair gets one line with both sizes."""
CONTEXT_LINES = 3

CUT_MARK = "[diff cut here]\n"
NO_NEWLINE = "\\ No newline at end of file\n"


def unified_diff(before: str, after: str, path: str, bytes_max: int) -> str:
    """Return the diff from `before` to `after`, at most `bytes_max` bytes of UTF-8; empty if they are equal."""
    if before == after:
        return ""
    shown = _printable(path)
    if len(before) + len(after) > COMPARED_CHARS_MAX:
        sizes = f"{len(before)} characters before, {len(after)} after"
        return _cut(f"[{shown}: too large to compare: {sizes}]\n", bytes_max)
    old, new = _lines(before), _lines(after)
    changes = line_changes(old, new)
    if changes is None:
        sizes = f"{len(old)} lines before, {len(new)} after"
        return _cut(f"[{shown}: too many lines differ to compare: {sizes}]\n", bytes_max)
    pieces = [f"--- a/{shown}\n", f"+++ b/{shown}\n"]
    size = 0
    for line in _hunks(old, new, changes):
        pieces.append(line)
        size += len(line)
        if size > bytes_max:  # a text has no more characters than bytes: `_cut` removes the rest anyway
            break
    return _cut("".join(pieces), bytes_max)


@frozen
class LineChange:
    """Lines `old_from` to `old_to` became `new_from` to `new_to` (0-based, ends excluded)."""

    old_from: int
    old_to: int
    new_from: int
    new_to: int


_Hunk: TypeAlias = "list[LineChange]"


def changed_lines(before: str, after: str) -> tuple[LineChange, ...] | None:
    """Return which lines changed, in order; None if the texts are too large to compare."""
    if before == after:
        return ()
    if len(before) + len(after) > COMPARED_CHARS_MAX:
        return None
    changes = line_changes(_lines(before), _lines(after))
    return None if changes is None else tuple(changes)


def line_changes(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> list[LineChange] | None:
    """Return which of these lines changed, in order; None if there are too many to compare."""
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not old or not new:
        return [LineChange(head, head + len(old), head, head + len(new))]
    if max(len(old), len(new)) > COMPARED_LINES_MAX:
        return None
    from difflib import SequenceMatcher  # at the first need, since it takes long to import

    return [
        LineChange(head + a, head + b, head + c, head + d)
        for tag, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes()
        if tag != "equal"
    ]


def _hunks(old: Sequence[str], new: Sequence[str], changes: Sequence[LineChange]) -> Iterator[str]:
    group: _Hunk = []
    for change in changes:
        if group and change.old_from - group[-1].old_to > 2 * CONTEXT_LINES:
            yield from _hunk(old, new, group)
            group = []
        group.append(change)
    yield from _hunk(old, new, group)


def _hunk(old: Sequence[str], new: Sequence[str], group: _Hunk) -> Iterator[str]:
    before = min(CONTEXT_LINES, group[0].old_from)
    after = min(CONTEXT_LINES, len(old) - group[-1].old_to)
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
    """Format start and length for a hunk header; an empty span names the line before it."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n{NO_NEWLINE}"


def _lines(text: str) -> list[str]:
    """Return the lines with their LF; the last one may have none."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _printable(path: str) -> str:
    """Return the path with control characters escaped; a line end in a name would forge lines of the diff."""
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
