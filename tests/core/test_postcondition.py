"""The check of a file effect: the truth table of before, intended and now, and of several paths."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.core.postcondition import (
    SAYS_NOTHING,
    Absent,
    NotTold,
    Now,
    PathCheck,
    Present,
    check_path,
    check_whole,
    partial_state,
)
from steadyhand.core.record import Check, Evidence

A, B, C = "a" * 64, "b" * 64, "c" * 64
CHECKS: tuple[Check, ...] = get_args(Check)
# before, intended, now → check; "-" is no file, "?" cannot be told.
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
    return Evidence("f", "/w/f", before is not None, before, intended=intended)


def now(word: str) -> Now:
    if word == "?":
        return NotTold("it may not be read")
    digest = DIGEST[word]
    return Absent() if digest is None else Present(digest, 1)


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_the_truth_table(row: str) -> None:
    """W2: whole-file digests decide, and where before equals intended the answer is marked as saying nothing."""
    before, intended, there, check = row.split()
    found = check_path(evidence(DIGEST[before], DIGEST[intended]), now(there))
    assert found.check == check.rstrip("*")
    assert (found.reason == SAYS_NOTHING) is check.endswith("*")


def test_the_table_is_whole() -> None:
    """W2: the rows above are all that differ: each way in which three contents and no content can be equal."""
    listed = {tuple(row.split()[:3]) for row in TABLE.strip().splitlines()}

    def shape(three: tuple[str, ...]) -> tuple[str, ...]:
        """Names of contents do not count, only which of the three are the same."""
        names: dict[str, str] = {}
        return tuple(word if word in "-?" else names.setdefault(word, f"content {len(names)}") for word in three)

    every = itertools.product("-ABC", "-ABC", "-ABC?")
    assert {shape(three) for three in every} == {shape(three) for three in listed}


def test_damaged_evidence_cannot_be_checked() -> None:
    """W2: a file that was there and whose digest is not known gives no answer, whatever is there now."""
    damaged = Evidence("f", "/w/f", True, None, intended=A)
    for there in (Absent(), Present(A, 1), Present(B, 1), NotTold("gone")):
        assert check_path(damaged, there).check == "unknown"


def test_a_conflict_says_whether_it_is_gone() -> None:
    """W2: deleted by someone else is a conflict and is said as such."""
    assert check_path(evidence(A, B), Absent()) == PathCheck("conflict", "it is gone")


@pytest.mark.parametrize("checks", [c for n in range(4) for c in itertools.combinations_with_replacement(CHECKS, n)])
def test_the_whole(checks: tuple[Check, ...]) -> None:
    """W3: all satisfied, all unchanged, any unknown, otherwise a conflict; nothing to check is unknown."""
    if not checks or "unknown" in checks:
        expected = "unknown"
    elif len(set(checks)) == 1:
        expected = checks[0]
    else:
        expected = "conflict"
    for order in itertools.permutations(checks):
        assert check_whole(order) == expected


def test_the_partial_state_is_named() -> None:
    """W3: paths that disagree are named one by one."""
    assert partial_state([("a", "satisfied"), ("b", "unchanged")]) == "a: satisfied, b: unchanged"
