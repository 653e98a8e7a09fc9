"""The check of a file effect: now against before and intended, by whole-file digest (rows W2, W3).

A check speaks of the present, never of history [I9]: *satisfied* does not say that this attempt did it. "Contains
the text" never counts. When before equals intended, *satisfied* says nothing, and is marked so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from steadyhand.core.record import Check, Evidence


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


Now: TypeAlias = "Absent | Present | NotTold"
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
    return PathCheck("conflict", "it is gone" if digest is None else "its content is neither the old nor the new")


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


