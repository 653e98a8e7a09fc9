"""Laws of scopes: which overlap and which are equal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import EVERYTHING, NOTHING, overlaps

names = st.sampled_from(["a", "b", "ab", "a b", "."])
paths = st.lists(names, max_size=4).map(lambda parts: "/" + "/".join(parts))
nonempty_scopes = st.lists(paths, min_size=1, max_size=3).map(lambda found: Scope(tuple(found)))
scopes = st.one_of(nonempty_scopes, st.just(EVERYTHING), st.just(NOTHING))


@given(scopes, scopes)
def test_overlaps_is_symmetric(first: Scope, second: Scope) -> None:
    """B1: the order of the two scopes does not matter [I6]."""
    assert overlaps(first, second) == overlaps(second, first)


@given(scopes)
def test_overlaps_every_scope_but_the_empty_one_overlaps_itself(scope: Scope) -> None:
    """B1: the same effect again is held back. One that touches nothing never is [I6]."""
    assert overlaps(scope, scope) is (scope != NOTHING)


@given(scopes)
def test_overlaps_everything_meets_all_but_nothing_and_nothing_none(scope: Scope) -> None:
    """B2: everything overlaps every scope that touches something. Nothing overlaps no scope."""
    assert overlaps(EVERYTHING, scope) is (scope != NOTHING)
    assert overlaps(NOTHING, scope) is False


@given(nonempty_scopes, nonempty_scopes, scopes)
def test_overlaps_union_of_scopes_is_the_union_of_overlaps(first: Scope, more: Scope, other: Scope) -> None:
    """B1: a larger scope overlaps all that a part of it overlaps [I6]."""
    both = Scope(first.paths + more.paths)
    assert overlaps(both, other) is (overlaps(first, other) or overlaps(more, other))


@given(paths, names)
def test_overlaps_folder_contains_the_paths_below_it(folder: str, name: str) -> None:
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
        ("/w/A", "/w/a", True),  # one file on some file systems (row W12)
    ],
)
def test_overlaps_compares_whole_path_components(first: str, second: str, same: bool) -> None:
    """B2: a prefix of a name is not a folder that contains it."""
    assert overlaps(Scope((first,)), Scope((second,))) is same


@given(st.lists(paths))
def test_scope_ignores_order_and_repetition_of_paths(found: list[str]) -> None:
    """N2: the same paths are the same scope, so a move requested again after a restart has the same identity."""
    assert Scope(tuple(found)) == Scope(tuple(reversed(found))) == Scope((*found, *found))


def test_overlaps_scopes_with_one_identity_are_one_file() -> None:
    """W11, I6: two names of one file share `device:inode`, whatever their paths are; it is part of what is equal."""
    first, other = Scope(("/a",), identities=("8:1",)), Scope(("/b",), identities=("8:1", "8:2"))
    assert overlaps(first, other)
    assert not overlaps(first, Scope(("/b",), identities=("8:2",)))
    assert not overlaps(first, Scope(("/b",)))
    assert first != Scope(("/a",))
    assert first.plain() == {"paths": ["/a"], "identities": ["8:1"]}
