"""Scopes overlap by laws, not by examples alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.record import Scope
from steadyhand.core.scope import EVERYTHING, NOTHING, overlaps

names = st.sampled_from(["a", "b", "ab", "a b", "."])
paths = st.lists(names, max_size=4).map(lambda parts: "/" + "/".join(parts))
some = st.lists(paths, min_size=1, max_size=3).map(lambda found: Scope(tuple(found)))
scopes = st.one_of(some, st.just(EVERYTHING), st.just(NOTHING))


@given(scopes, scopes)
def test_overlap_has_no_direction(first: Scope, second: Scope) -> None:
    """B1: what overlaps one way overlaps the other way [I6]."""
    assert overlaps(first, second) == overlaps(second, first)


@given(scopes)
def test_what_touches_something_overlaps_itself(scope: Scope) -> None:
    """B1: the same effect again is held back; one that touches nothing never is [I6]."""
    assert overlaps(scope, scope) is (scope != NOTHING)


@given(scopes)
def test_everything_and_nothing(scope: Scope) -> None:
    """B2: everything overlaps whatever touches anything; nothing overlaps nothing."""
    assert overlaps(EVERYTHING, scope) is (scope != NOTHING)
    assert overlaps(NOTHING, scope) is False


@given(some, some, scopes)
def test_more_paths_never_overlap_less(first: Scope, more: Scope, other: Scope) -> None:
    """B1: a larger scope overlaps all that a part of it overlaps [I6]."""
    both = Scope(first.paths + more.paths)
    assert overlaps(both, other) is (overlaps(first, other) or overlaps(more, other))


@given(paths, names)
def test_a_folder_holds_what_is_below_it(folder: str, name: str) -> None:
    """B2: a path below a folder overlaps the folder."""
    assert overlaps(Scope((folder,)), Scope((f"{folder.rstrip('/')}/{name}",)))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("/w/a", "/w/a", True),
        ("/w/a", "/w/ab", False),
        ("/w/a", "/w/a/b", True),
        ("/w/a/", "/w/a", True),
        ("/", "/w", True),
        ("/w/a", "/w/b", False),
        ("/w/A", "/w/a", False),
    ],
)
def test_a_name_is_compared_whole(first: str, second: str, same: bool) -> None:
    """B2: a beginning of a name is not a folder of it."""
    assert overlaps(Scope((first,)), Scope((second,))) is same


@given(st.lists(paths))
def test_order_and_repetition_of_paths_do_not_count(found: list[str]) -> None:
    """N2: the same paths are the same scope, so a move asked again after a restart has the same identity."""
    assert Scope(tuple(found)) == Scope(tuple(reversed(found))) == Scope((*found, *found))
