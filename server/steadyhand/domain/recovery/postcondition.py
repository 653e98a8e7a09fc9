"""Check a file effect: compare the present with *before* and *intended*, by whole-file digest (rows W2, W3).

A check speaks of the present, never of history [I9]: *satisfied* does not say that this attempt did it. "Contains the
text" never counts. If before equals intended, *satisfied* says nothing and is marked so.

`reconcile_checks` brings the paths of one effect together. A path whose check says nothing agrees with the others. If
the paths disagree, each one gets a reason in words, so that a reader can recognise a half-done move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import attrs

from steadyhand.domain.records.record import Change, Check, Evidence, FileChange
from steadyhand_values import frozen


@frozen
class Absent:
    """Nothing has that name."""


@frozen
class Present:
    """A regular file."""

    digest: str
    bytes: int


@frozen
class Unreadable:
    """The content is not known.

    `why` is a clause: unreadable, no regular file, outside the workspace or elsewhere now, or damaged evidence.
    """

    why: str


Aim = Literal["content", "gone", "paths"]
"""What an effect is meant to leave: a content at each path, no path, or some of both (a move)."""

Now: TypeAlias = "Absent | Present | Unreadable"
NEITHER = "its content is neither the old nor the new"
HALF_WRITTEN = "it was written in place and may hold a part of each"
CLOSED = "its document is closed, and the unsaved text may come back with the editor's backup"
UNSAVED = "the editor has the new text, and it is not saved"
DISK_DIFFERS = "the editor has the old text, and the file on the disk does not"
NEITHER_IN_EDITOR = "its text in the editor is neither the old nor the new"
SAYS_NOTHING = "before and intended are the same, so this says nothing"


@frozen
class PathCheck:
    """The check of one path. `reason` is a clause; None if the check says enough."""

    check: Check
    reason: str | None = None


def check_path(evidence: Evidence, now: Now) -> PathCheck:
    """Check one path against its evidence."""
    if isinstance(now, Unreadable):
        return PathCheck("unknown", now.why)
    digest = now.digest if isinstance(now, Present) else None
    before = evidence.before if evidence.existed else None
    if evidence.existed and before is None:
        return PathCheck("unknown", "the evidence does not say what was there before")
    if digest == evidence.intended:
        return PathCheck("satisfied", SAYS_NOTHING if before == evidence.intended else None)
    if digest == before:
        return PathCheck("unchanged")
    if digest is None:
        return PathCheck("conflict", "it is gone")
    return PathCheck("conflict", HALF_WRITTEN if evidence.in_place else NEITHER)


def check_buffer(evidence: Evidence, document: str | None, now: Now, text: str | None) -> PathCheck:
    """Check a change that went through the editor (row V2).

    `document`: digest of the open document's text; None: it is not open. `text`: that of the file; None: it has none.
    The answer is the document's while it is open, else the file's."""
    buffer = evidence.buffer
    assert buffer is not None, "a change on disk has no document"
    if isinstance(now, Unreadable) and document is None:
        return PathCheck("unknown", now.why)
    digest = now.digest if isinstance(now, Present) else None
    is_as_before = not isinstance(now, Unreadable) and digest == (evidence.before if evidence.existed else None)
    is_on_disk = (buffer.saves and digest is not None and digest == evidence.intended) or text == buffer.intended
    if document is None:
        if is_on_disk:
            return PathCheck("satisfied")
        if is_as_before:
            return PathCheck("unknown", CLOSED)
        return PathCheck("conflict", NEITHER if digest is not None else "it is gone")
    if document == buffer.intended:
        return PathCheck("satisfied", None if is_on_disk else UNSAVED)
    if document == buffer.before:
        return PathCheck("unchanged") if is_as_before else PathCheck("conflict", DISK_DIFFERS)
    return PathCheck("conflict", NEITHER_IN_EDITOR)


def reconcile_checks(evidence: Sequence[Evidence], checks: Sequence[PathCheck]) -> tuple[PathCheck, ...]:
    """Return the checks of all paths of a call after they are compared with each other (row W3)."""
    telling = {one.check for one in checks if one.reason != SAYS_NOTHING}
    if telling == {"unchanged"}:
        return tuple(PathCheck("unchanged", one.reason) for one in checks)
    if len({one.check for one in checks}) < 2:
        return tuple(checks)
    return tuple(
        attrs.evolve(check, reason=check.reason or _check_reason(one, check.check))
        for one, check in zip(evidence, checks, strict=True)
    )


def _check_reason(evidence: Evidence, check: Check) -> str | None:
    if check == "satisfied":
        return "it is gone, as intended" if evidence.intended is None else "it has the intended content"
    if check == "unchanged":
        return "it is there as before" if evidence.existed else "it is not there, as before"
    return None


def aim_of_evidence(evidence: Sequence[Evidence]) -> Aim:
    """Return what an effect with this evidence is meant to leave."""
    gone = [one.intended is None for one in evidence]
    return "content" if not any(gone) else "gone" if all(gone) else "paths"


def check_all_paths(checks: Iterable[Check]) -> Check:
    """Return the check of all paths together; *unknown* if there are none."""
    found: set[Check] = set(checks)
    if found == {"satisfied"}:
        return "satisfied"
    if found == {"unchanged"}:
        return "unchanged"
    if not found or "unknown" in found:
        return "unknown"
    return "conflict"


def partial_state(findings: Iterable[tuple[str, Check]]) -> str:
    """List each path with its check, for a call whose paths disagree."""
    return ", ".join(f"{path}: {check}" for path, check in findings)


def intended_changes(evidence: Sequence[Evidence]) -> tuple[FileChange, ...]:
    """Return the changes that a satisfied check proves to be present. Paths are as the call named them."""
    gone = [one for one in evidence if one.existed and one.intended is None]
    made = [one for one in evidence if one.intended is not None]
    if len(gone) == len(made) == 1 and gone[0].before == made[0].intended:
        (start,), (goal,) = gone, made
        before = goal.before if goal.existed else None
        return (
            FileChange(
                path=goal.path,
                change="moved",
                before=before,
                after=goal.intended,
                bytes=goal.intended_bytes,
                from_=start.path,
            ),
        )
    return tuple(_intended_change(one) for one in evidence if one.before != one.intended)


def _intended_change(evidence: Evidence) -> FileChange:
    if evidence.intended is None:
        return FileChange(path=evidence.path, change="deleted", before=evidence.before)
    change: Change = "modified" if evidence.existed else "created"
    return FileChange(
        path=evidence.path,
        change=change,
        before=evidence.before,
        after=evidence.intended,
        bytes=evidence.intended_bytes,
    )
