"""What a check of several paths says of each, and the changes that a satisfied check proves (rows W3, W7)."""

from __future__ import annotations

import attrs
import pytest

from steadyhand.domain.records.record import Check, Evidence, FileChange
from steadyhand.domain.recovery.postcondition import (
    HALF_WRITTEN,
    NEITHER,
    SAYS_NOTHING,
    Absent,
    PathCheck,
    Present,
    Unreadable,
    check_path,
    intended_changes,
    reconcile_checks,
)

GONE = Evidence(path="a", resolved="/w/a", existed=True, before="A", before_bytes=1)
MADE = Evidence(path="b", resolved="/w/b", existed=False, intended="A", intended_bytes=1)
OVER = Evidence(path="b", resolved="/w/b", existed=True, before="B", before_bytes=2, intended="A", intended_bytes=1)
CHANGED = Evidence(path="c", resolved="/w/c", existed=True, before="B", before_bytes=2, intended="C", intended_bytes=3)
NEW = Evidence(path="d", resolved="/w/d", existed=False, intended="D", intended_bytes=4)
SAME = Evidence(path="e", resolved="/w/e", existed=True, before="E", intended="E")


@pytest.mark.parametrize(
    ("checks", "reasons"),
    [
        (("satisfied", "unchanged"), ("it is gone, as intended", "it is not there, as before")),
        (("unchanged", "satisfied"), ("it is there as before", "it has the intended content")),
        (("satisfied", "conflict"), ("it is gone, as intended", None)),
        (("unknown", "unchanged"), (None, "it is not there, as before")),
        (("satisfied", "satisfied"), (None, None)),
        (("unchanged", "unchanged"), (None, None)),
        (("conflict", "conflict"), (None, None)),
    ],
)
def test_paths_that_disagree_each_get_a_reason(
    checks: tuple[Check, ...], reasons: tuple[str | None, str | None]
) -> None:
    """W3: a reader recognises a half-done move by them. Paths that agree need none."""
    found = reconcile_checks((GONE, MADE), [PathCheck(check) for check in checks])
    assert tuple(one.check for one in found) == checks
    assert tuple(one.reason for one in found) == reasons


def test_reason_that_a_path_has_already_is_kept() -> None:
    """W3: what was found at a path says more than the word of its check."""
    found = reconcile_checks((GONE, MADE), [PathCheck("conflict", NEITHER), PathCheck("unknown", "unreadable")])
    assert [one.reason for one in found] == [NEITHER, "unreadable"]


def test_path_whose_check_says_nothing_agrees_with_unchanged_ones() -> None:
    """W3: before and intended are the same there, so it is no sign that the others happened."""
    checks = [PathCheck("unchanged"), PathCheck("satisfied", SAYS_NOTHING)]
    found = reconcile_checks((CHANGED, SAME), checks)
    assert [(one.check, one.reason) for one in found] == [("unchanged", None), ("unchanged", SAYS_NOTHING)]
    satisfied = reconcile_checks((CHANGED, SAME), [PathCheck("satisfied"), PathCheck("satisfied", SAYS_NOTHING)])
    assert [one.check for one in satisfied] == ["satisfied", "satisfied"]


def test_check_path_says_why_it_is_a_conflict_or_unknown() -> None:
    """W2: the reasons are clauses that a sentence can take."""
    assert check_path(CHANGED, Absent()) == PathCheck("conflict", "it is gone")
    assert check_path(CHANGED, Present("X", 9)) == PathCheck("conflict", NEITHER)
    assert check_path(CHANGED, Unreadable("it is a pipe")) == PathCheck("unknown", "it is a pipe")
    lost = Evidence(path="c", resolved="/w/c", existed=True, intended="C")
    assert check_path(lost, Absent()) == PathCheck("unknown", "the evidence does not say what was there before")
    assert check_path(SAME, Present("E", 1)) == PathCheck("satisfied", SAYS_NOTHING)
    assert check_path(MADE, Absent()) == PathCheck("unchanged")
    damaged = Evidence(path="b", resolved="/w/b", existed=False, before="B", intended="A")
    assert check_path(damaged, Present("B", 1)) == PathCheck("conflict", NEITHER), "nothing was there, whatever it says"


@pytest.mark.parametrize(("goal", "before"), [(MADE, None), (OVER, "B")], ids=["to a free path", "over another file"])
@pytest.mark.parametrize("order", [1, -1])
def test_intended_changes_of_a_move_are_one_change(goal: Evidence, before: str | None, order: int) -> None:
    """W3: one file has another path; `before` is what it replaced."""
    moved = FileChange(path="b", change="moved", before=before, after="A", bytes=1, from_="a")
    assert intended_changes((GONE, goal)[::order]) == (moved,)


def test_intended_changes_of_other_effects_are_one_a_path() -> None:
    """W7: created, modified and deleted, each with its digests; a path that stays as it was is no change."""
    created = FileChange(path="d", change="created", after="D", bytes=4)
    modified = FileChange(path="c", change="modified", before="B", after="C", bytes=3)
    deleted = FileChange(path="a", change="deleted", before="A")
    assert intended_changes((NEW,)) == (created,)
    assert intended_changes((CHANGED,)) == (modified,)
    assert intended_changes((GONE,)) == (deleted,)
    assert intended_changes((GONE, NEW)) == (deleted, created), "another content is no move"
    assert intended_changes((GONE, MADE, NEW)) == (
        deleted,
        FileChange(path="b", change="created", after="A", bytes=1),
        created,
    ), "with a third path it is not one move"
    assert intended_changes((GONE, SAME)) == (deleted,)
    assert intended_changes((GONE, SAME, MADE))[1:] == (FileChange(path="b", change="created", after="A", bytes=1),)
    assert intended_changes(()) == ()


def test_check_path_of_a_mix_after_a_write_in_place_says_how_it_came() -> None:
    """W11: it is a conflict, and the reason names the half-written file."""
    found = check_path(attrs.evolve(CHANGED, in_place=True), Present("X", 9))
    assert found == PathCheck("conflict", HALF_WRITTEN)
