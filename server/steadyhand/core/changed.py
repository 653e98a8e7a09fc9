"""What all changes of a turn come to, so that it is true of its end (row G6).

Contents are followed from path to path: each path a turn touched had some content before it, or none, and has some
at its end, or none. What came and went is no change; a file that was moved, however often, is told by where it came
from; what was moved over is replaced, and is gone where that content then went on. Nothing is compared with the disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import attrs

from steadyhand.core.record import FileChange
from steadyhand.core.views import ChangedFile


class _Gone(Enum):
    GONE = 0


GONE = _Gone.GONE


@attrs.frozen
class _Content:
    """What stands under a path. `origin`: where it stood before the turn; None: it was made in the turn."""

    origin: str | None
    changed: bool = False


def summed_up(changes: Iterable[FileChange]) -> tuple[ChangedFile, ...]:
    """One entry a path, sorted; `changes` in the order in which they happened."""
    existed: dict[str, bool] = {}
    now: dict[str, _Content | _Gone] = {}
    for change in changes:
        _follow(existed, now, change)
    away = {content.origin for path, content in now.items() if content is not GONE and content.origin != path}
    found = (_end(path, existed[path], now[path], path in away) for path in sorted(now))
    return tuple(one for one in found if one is not None)


def _follow(existed: dict[str, bool], now: dict[str, _Content | _Gone], change: FileChange) -> None:
    path, start = change.path, change.from_
    match change.change:
        case "created":
            existed.setdefault(path, False)
            now[path] = _Content(None)
        case "modified":
            existed.setdefault(path, True)
            now[path] = attrs.evolve(_standing(now, path), changed=True)
        case "deleted":
            existed.setdefault(path, True)
            now[path] = GONE
        case "moved":
            existed.setdefault(path, change.before is not None)
            moved = _Content(None) if start is None else _standing(now, start)
            if start is not None:
                existed.setdefault(start, True)
                now[start] = GONE
            now[path] = moved


def _standing(now: dict[str, _Content | _Gone], path: str) -> _Content:
    """The content there; before the turn touched it, its own. Where the journal lost how it came, it is new."""
    standing = now.get(path, _Content(path))
    return _Content(None) if isinstance(standing, _Gone) else standing


def _end(path: str, existed: bool, content: _Content | _Gone, away: bool) -> ChangedFile | None:
    """`away`: the content that stood here before stands elsewhere, and is told there."""
    if isinstance(content, _Gone):
        return ChangedFile(path, "deleted") if existed and not away else None
    if content.origin is None:
        return ChangedFile(path, "modified" if existed and not away else "created")
    if content.origin != path:
        return ChangedFile(path, "moved", content.origin)
    return ChangedFile(path, "modified") if content.changed else None
