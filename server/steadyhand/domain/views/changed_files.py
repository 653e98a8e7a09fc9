"""Net all file changes of a turn, so that the list is true at the turn's end (row G6).

The content of each path is followed from path to path. Each path that the turn touched held some content before the
turn or none, and holds some at its end or none. Content that was created and deleted in the turn is no change. A file
that was moved, once or often, is listed at its last path with its first one as `from_`. A file that a move replaced is
*deleted* at its old path only if its content did not move on. Nothing is compared with the disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import attrs

from steadyhand.domain.records.record import FileChange
from steadyhand.domain.views.types import ChangedFile
from steadyhand_values import frozen


class _Gone(Enum):
    GONE = 0


GONE = _Gone.GONE


@frozen
class _Content:
    """The content at a path. `origin`: its path before the turn; None: the turn created it."""

    origin: str | None
    changed: bool = False


def net_changes(changes: Iterable[FileChange]) -> tuple[ChangedFile, ...]:
    """Return one entry for each path that changed, sorted by path.

    `changes` are in the order in which they happened.
    """
    existed: dict[str, bool] = {}
    now: dict[str, _Content | _Gone] = {}
    for change in changes:
        _follow(existed, now, change)
    away = {content.origin for path, content in now.items() if content is not GONE and content.origin != path}
    found = (_net_change(path, existed[path], now[path], path in away) for path in sorted(now))
    return tuple(one for one in found if one is not None)


def _follow(existed: dict[str, bool], now: dict[str, _Content | _Gone], change: FileChange) -> None:
    path, start = change.path, change.from_
    match change.change:
        case "created":
            existed.setdefault(path, False)
            now[path] = _Content(None)
        case "modified":
            existed.setdefault(path, True)
            now[path] = attrs.evolve(_content_at(now, path), changed=True)
        case "deleted":
            existed.setdefault(path, True)
            now[path] = GONE
        case "moved":
            existed.setdefault(path, change.before is not None)
            moved = _Content(None) if start is None else _content_at(now, start)
            if start is not None:
                existed.setdefault(start, True)
                now[start] = GONE
            now[path] = moved


def _content_at(now: dict[str, _Content | _Gone], path: str) -> _Content:
    """Return the content at a path; a path the turn has not touched yet has its own.

    If the journal lost its origin, it is new.
    """
    standing = now.get(path, _Content(path))
    return _Content(None) if isinstance(standing, _Gone) else standing


def _net_change(path: str, existed: bool, content: _Content | _Gone, away: bool) -> ChangedFile | None:
    """Return the net change of a path.

    `away`: the content it held before the turn moved, and is listed at its new path.
    """
    if isinstance(content, _Gone):
        return ChangedFile(path, "deleted") if existed and not away else None
    if content.origin is None:
        return ChangedFile(path, "modified" if existed and not away else "created")
    if content.origin != path:
        return ChangedFile(path, "moved", content.origin)
    return ChangedFile(path, "modified") if content.changed else None
