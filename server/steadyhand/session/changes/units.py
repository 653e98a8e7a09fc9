"""The changes of a session that are under review, in units that are undone together (row V4).

A unit is one path, or the paths that a move joined: to undo one of them alone would lose a file. So are two names that
the disk may take for one (row W12). The state of a unit is read from the journals and the files each time it is asked
for. A unit of one file may have hunks of lines, which are kept and undone for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from steadyhand.domain.changes.chain import SessionChanges
from steadyhand.domain.changes.review import Reviewed, reviewed
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.recovery.postcondition import Now, Present
from steadyhand.domain.text.folding import fold
from steadyhand.session.changes.file_hunks import with_lines
from steadyhand.session.inspection.file_changes import chains_of, read_changes, read_present
from steadyhand.session.session import Session
from steadyhand_values import frozen


class _HasPath(Protocol):
    @property
    def path(self) -> str: ...


F = TypeVar("F", bound=_HasPath)
REVIEW_FILES_MAX = 200
"""Files of one review; those that were changed last are listed."""


@frozen
class Unit:
    """Paths of one session that are reviewed together; mostly one. `unresolved`: an attempt on one of them is."""

    files: tuple[Reviewed, ...]
    unresolved: bool = False

    @property
    def is_open(self) -> bool:
        """Whether something of it is under review."""
        return any(one.is_open for one in self.files)

    @property
    def moved(self) -> tuple[Reviewed, Reviewed] | None:
        """The old and the new path of a file that was moved and is the same; None: it is no such unit."""
        if len(self.files) != 2 or not self.is_open:
            return None
        gone = [one for one in self.files if one.last is None]
        made = [one for one in self.files if one.base is None]
        if len(gone) == len(made) == 1 and gone[0].base == made[0].last is not None:
            return gone[0], made[0]
        return None


@frozen
class ReviewedUnits:
    """All units of a session, those that were changed last at the end. `more`: paths that were not looked at."""

    units: tuple[Unit, ...]
    more: int = 0


async def read_units(session: Session, name: str | None = None, with_editor: bool = False) -> ReviewedUnits:
    """Read what of the session's changes is under review, kept or undone. Raise Refused.

    `name`: only files with this last name are read, with what belongs to them. `with_editor`: the hunks of lines are
    placed in the text that the editor shows."""
    if name is not None and not _has_changed(session, name):
        return ReviewedUnits(())
    every = await read_changes(session)
    own = every[0]
    paths = _latest_paths(session, own)
    taken = paths[-REVIEW_FILES_MAX:]
    if name is not None:
        taken = _with_name(taken, own, name)
    present = await read_present(session, {path: own.links[path][-1].evidence for path in taken})
    chains = chains_of(taken, every, present)
    found = [
        one for path in taken if (one := reviewed(session.session_id, chains[path], every)) is not None and one.hunks
    ]
    unresolved = {path for one in every for path in one.unresolved}
    groups = joined(found, _attempts, lambda one: one.is_present)
    divided = await session.context.in_thread(_divided, session, groups, present, name, with_editor)
    units = (Unit(files, any(one.path in unresolved for one in files)) for files in divided)
    return ReviewedUnits(tuple(units), len(paths) - len(taken))


def _divided(
    session: Session,
    groups: Sequence[tuple[Reviewed, ...]],
    present: Mapping[str, Now],
    name: str | None,
    with_editor: bool,
) -> list[tuple[Reviewed, ...]]:
    """Return the groups; a file that is alone in its group has its hunks of lines. Blocks."""
    divided: list[tuple[Reviewed, ...]] = []
    for files in groups:
        one, now = files[0], present[files[0].path]
        is_asked = name is None or last_name(one.path) == name
        if is_asked and len(files) == 1 and isinstance(now, Present):
            files = (with_lines(session.tool_context, session.ledger, one, now.digest, with_editor),)
        divided.append(files)
    return divided


def _latest_paths(session: Session, own: SessionChanges) -> list[str]:
    """Return the session's paths, in the order of their latest attempts."""
    order = {attempt_id: at for at, attempt_id in enumerate(session.ledger.attempts)}
    return sorted(own.links, key=lambda path: order[own.links[path][-1].attempt_id])


def _has_changed(session: Session, name: str) -> bool:
    """Return whether an attempt of the session names a file with this last name; an editor asks often."""
    return any(
        last_name(evidence.resolved) == name
        for event in session.ledger.file_events
        if isinstance(event, Attempt) and event.started is not None
        for evidence in event.started.evidence
    )


def _with_name(paths: Sequence[str], own: SessionChanges, name: str) -> list[str]:
    """Return the paths with this last name, and those that can be in one unit with them."""
    marks = {path: {fold(path), *(link.attempt_id for link in own.links[path])} for path in paths}
    found = {path for path in paths if last_name(path) == name}
    reached = set[str]()
    while reached != found:
        reached = set(found)
        known = set[str]().union(*(marks[path] for path in found))
        found |= {path for path in paths if marks[path] & known}
    return [path for path in paths if path in found]


def last_name(path: str) -> str:
    """Return the last name of a path."""
    return path.rpartition("/")[2]


def _attempts(one: Reviewed) -> set[str]:
    return {link.attempt_id for link in one.links}


def joined(
    found: Sequence[F], attempts_of: Callable[[F], set[str]], is_ours: Callable[[F], bool]
) -> list[tuple[F, ...]]:
    """Return the files in groups: two are together if one attempt changed both. `attempts_of`: ids of its attempts.

    Two are together also if their names fold to one and `is_ours` says of one of them that somebody else made what is
    there: on a disk that folds names it is the content of the other (row W12)."""
    doubtful = {fold(one.path) for one in found if not is_ours(one)}
    groups: list[tuple[set[str], list[F]]] = []
    for one in found:
        marks, files = attempts_of(one) | ({fold(one.path)} & doubtful), [one]
        for group in [group for group in groups if group[0] & marks]:
            groups.remove(group)
            marks |= group[0]
            files = [*group[1], *files]
        groups.append((marks, files))
    return [tuple(files) for _, files in groups]
