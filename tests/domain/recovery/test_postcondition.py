"""The postcondition check of a file effect: the truth table of before, intended and now, and the combination of
several paths.
"""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.domain.records.record import Check, Evidence
from steadyhand.domain.recovery.postcondition import (
    SAYS_NOTHING,
    Absent,
    Now,
    PathCheck,
    Present,
    Unreadable,
    check_all_paths,
    check_path,
    partial_state,
)

A, B, C = "a" * 64, "b" * 64, "c" * 64
CHECKS: tuple[Check, ...] = get_args(Check)
# before, intended, now → check. "-" is no file, "?" is a file whose state is not known.
TABLE = """
- - - satisfied*
- - A conflict
- A - unchanged
- A A satisfied
- A C conflict
A - - satisfied
A - A unchanged
A - C conflict
A A A satisfied*
A A - conflict
A A C conflict
A B A unchanged
A B B satisfied
A B C conflict
A B - conflict
- - ? unknown
- A ? unknown
A - ? unknown
A A ? unknown
A B ? unknown
"""
DIGEST = {"A": A, "B": B, "C": C, "-": None}


def evidence(before: str | None, intended: str | None) -> Evidence:
    return Evidence(path="f", resolved="/w/f", existed=before is not None, before=before, intended=intended)


def now(word: str) -> Now:
    if word == "?":
        return Unreadable("it may not be read")
    digest = DIGEST[word]
    return Absent() if digest is None else Present(digest, 1)


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_check_path_follows_the_truth_table(row: str) -> None:
    """W2: digests of whole files decide. Where before equals intended, the result says that it proves nothing."""
    before, intended, there, check = row.split()
    found = check_path(evidence(DIGEST[before], DIGEST[intended]), now(there))
    assert found.check == check.rstrip("*")
    assert (found.reason == SAYS_NOTHING) is check.endswith("*")


def test_check_path_table_covers_every_distinct_case() -> None:
    """W2: the rows cover each way in which three contents or absences can be equal."""
    listed = {tuple(row.split()[:3]) for row in TABLE.strip().splitlines()}

    def shape(three: tuple[str, ...]) -> tuple[str, ...]:
        """Reduce the contents to which of the three are equal."""
        names: dict[str, str] = {}
        return tuple(word if word in "-?" else names.setdefault(word, f"content {len(names)}") for word in three)

    every = itertools.product("-ABC", "-ABC", "-ABC?")
    assert {shape(three) for three in every} == {shape(three) for three in listed}


def test_check_path_without_the_old_digest_is_unknown() -> None:
    """W2: a file that was there with an unknown digest gives no answer, whatever is there now."""
    damaged = Evidence(path="f", resolved="/w/f", existed=True, before=None, intended=A)
    for there in (Absent(), Present(A, 1), Present(B, 1), Unreadable("gone")):
        assert check_path(damaged, there).check == "unknown"


def test_check_path_deleted_file_is_a_conflict_that_says_so() -> None:
    """W2: a file that someone else deleted is a conflict, and the reason says so."""
    assert check_path(evidence(A, B), Absent()) == PathCheck("conflict", "it is gone")


@pytest.mark.parametrize("checks", [c for n in range(4) for c in itertools.combinations_with_replacement(CHECKS, n)])
def test_check_whole_combines_the_checks_of_all_paths(checks: tuple[Check, ...]) -> None:
    """W3: all satisfied, all unchanged, any unknown, and otherwise a conflict. No path at all is unknown."""
    if not checks or "unknown" in checks:
        expected = "unknown"
    elif len(set(checks)) == 1:
        expected = checks[0]
    else:
        expected = "conflict"
    for order in itertools.permutations(checks):
        assert check_all_paths(order) == expected


def test_partial_state_names_each_path_with_its_check() -> None:
    """W3: paths that disagree are named one by one."""
    assert partial_state([("a", "satisfied"), ("b", "unchanged")]) == "a: satisfied, b: unchanged"
