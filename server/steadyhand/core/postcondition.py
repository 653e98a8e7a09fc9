"""The check of a file effect: now against before and intended, by whole-file digest (rows W2, W3).

A check speaks of the present, never of history [I9]: *satisfied* does not say that this attempt did it. "Contains
the text" never counts. When before equals intended, *satisfied* says nothing, and is marked so.

Several paths of one effect are brought together by `agreed`: one that says nothing goes with the others, and where they
disagree each says in words how it is, so that a half-done move can be read as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import attrs

from steadyhand.core.record import Change, Check, Evidence, FileChange


@attrs.frozen
class Absent:
    """There is nothing under that name."""


@attrs.frozen
class Present:
    """A regular file."""

    digest: str
    bytes: int


@attrs.frozen
class NotTold:
    """It cannot be said what is there: not readable, not a regular file, elsewhere or outside now, evidence damaged."""

    why: str


Aim = Literal["content", "gone", "paths"]
"""A content for each path, no path left, or some of both, as for a move."""

Now: TypeAlias = "Absent | Present | NotTold"
NEITHER = "its content is neither the old nor the new"
SAYS_NOTHING = "before and intended are the same, so this says nothing"


@attrs.frozen
class PathCheck:
    check: Check
    reason: str | None = None


def check_path(evidence: Evidence, now: Now) -> PathCheck:
    """One path's answer."""
    if isinstance(now, NotTold):
        return PathCheck("unknown", now.why)
    digest = now.digest if isinstance(now, Present) else None
    before = evidence.before if evidence.existed else None
    if evidence.existed and before is None:
        return PathCheck("unknown", "the evidence does not say what was there before")
    if digest == evidence.intended:
        return PathCheck("satisfied", SAYS_NOTHING if before == evidence.intended else None)
    if digest == before:
        return PathCheck("unchanged")
    return PathCheck("conflict", "it is gone" if digest is None else NEITHER)


def agreed(evidence: Sequence[Evidence], checks: Sequence[PathCheck]) -> tuple[PathCheck, ...]:
    """The answers for all paths of a call, seen together (row W3)."""
    telling = {one.check for one in checks if one.reason != SAYS_NOTHING}
    if telling == {"unchanged"}:
        return tuple(PathCheck("unchanged", one.reason) for one in checks)
    if len({one.check for one in checks}) < 2:
        return tuple(checks)
    return tuple(
        attrs.evolve(check, reason=check.reason or _how_it_is(one, check.check))
        for one, check in zip(evidence, checks, strict=True)
    )


def _how_it_is(evidence: Evidence, check: Check) -> str | None:
    if check == "satisfied":
        return "it is gone, as intended" if evidence.intended is None else "it has the intended content"
    if check == "unchanged":
        return "it is there as before" if evidence.existed else "it is not there, as before"
    return None


def aim_of_evidence(evidence: Sequence[Evidence]) -> Aim:
    """What an effect with this evidence is after."""
    gone = [one.intended is None for one in evidence]
    return "content" if not any(gone) else "gone" if all(gone) else "paths"


def check_whole(checks: Iterable[Check]) -> Check:
    """The answer for all paths of a call; no paths is *unknown*."""
    found: set[Check] = set(checks)
    if found == {"satisfied"}:
        return "satisfied"
    if found == {"unchanged"}:
        return "unchanged"
    if not found or "unknown" in found:
        return "unknown"
    return "conflict"


def partial_state(findings: Iterable[tuple[str, Check]]) -> str:
    """Which paths are how, for a call whose paths disagree."""
    return ", ".join(f"{path}: {check}" for path, check in findings)


def intended_changes(evidence: Sequence[Evidence]) -> tuple[FileChange, ...]:
    """The changes that a satisfied check proves to be there now. Paths are as asked."""
    gone = [one for one in evidence if one.existed and one.intended is None]
    made = [one for one in evidence if one.intended is not None]
    if len(gone) == len(made) == 1 and gone[0].before == made[0].intended:
        (start,), (goal,) = gone, made
        before = goal.before if goal.existed else None
        return (FileChange(goal.path, "moved", before, goal.intended, goal.intended_bytes, start.path),)
    return tuple(_intended_change(one) for one in evidence if one.before != one.intended)


def _intended_change(evidence: Evidence) -> FileChange:
    if evidence.intended is None:
        return FileChange(evidence.path, "deleted", evidence.before)
    change: Change = "modified" if evidence.existed else "created"
    return FileChange(evidence.path, change, evidence.before, evidence.intended, evidence.intended_bytes)
