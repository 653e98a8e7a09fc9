"""Places are the same by their names or by what they are, whatever path leads there (B2, case 164)."""

from __future__ import annotations

import pytest

from steadyhand.domain.records.place import Identity, Place, is_within, needs_places, share_a_place
from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import EVERYTHING, NOTHING


def place(path: str, **known: int) -> Place:
    """A place; `known`: name → inode of the names that exist and are known."""
    names = tuple(part for part in path.split("/") if part)
    found: list[Identity | None] = [None, *((1, known[name]) if name in known else None for name in names)]
    return Place(names, tuple(found))


FILE = place("/w/src/a.txt", w=1, src=2)

WITHIN = [
    ("the same names", place("/w/src/a.txt"), FILE),
    ("below a folder", FILE, place("/w/src")),
    ("the folder under a second path", place("/mnt/a.txt", mnt=2), FILE),
    ("below the folder under a second path", place("/mnt/deep/b.txt", mnt=2, deep=9), place("/w/src", w=1, src=2)),
    ("a parent under a second path", place("/mnt/src/a.txt", mnt=1, src=2), FILE),
    ("a second name of the file", place("/w/b.txt", **{"w": 1, "b.txt": 7}), place("/w/a.txt", **{"w": 1, "a.txt": 7})),
    ("missing folders below one place", place("/mnt/new/deep/c", mnt=2), place("/w/src/new/deep", w=1, src=2)),
]
APART = [
    ("another name", place("/w/src/b.txt", w=1, src=2), FILE),
    ("another folder", place("/mnt/a.txt", mnt=3), FILE),
    ("a name that begins alike", place("/w/src/a.txt.bak", w=1, src=2), FILE),
    ("a folder that is not known", place("/mnt/a.txt"), FILE),
    ("the other way round", place("/w/src"), FILE),
    ("another device", Place(("mnt", "a.txt"), (None, (2, 2), None)), FILE),
    ("nothing known of either", place("/x/a.txt"), place("/w/src/a.txt")),
]


@pytest.mark.parametrize(("inner", "outer"), [one[1:] for one in WITHIN], ids=[one[0] for one in WITHIN])
def test_place_is_within_by_names_or_by_identity(inner: Place, outer: Place) -> None:
    """Case 164: each of these is the other place, or is below it."""
    assert is_within(inner, outer)
    assert share_a_place([outer], [inner])


@pytest.mark.parametrize(("inner", "outer"), [one[1:] for one in APART], ids=[one[0] for one in APART])
def test_place_is_not_within_another(inner: Place, outer: Place) -> None:
    """Case 164: what is not known to be the same is another place."""
    assert not is_within(inner, outer)


def test_places_decide_only_between_scopes_with_paths() -> None:
    """B2: everything overlaps without them, and nothing never does."""
    paths = Scope(("/w/a.txt",))
    assert needs_places(paths, Scope(("/w/b.txt",)))
    assert not any(needs_places(paths, other) or needs_places(other, paths) for other in (EVERYTHING, NOTHING))
