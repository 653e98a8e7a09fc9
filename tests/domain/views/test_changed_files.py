"""The files that a turn changed, summed up so that the list is true of the end of the turn (row G6)."""

from __future__ import annotations

import attrs
import pytest

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import FileChange
from steadyhand.domain.views.render import files_changed_in_turn
from tests.support.journals import ends, intends, starts

TURN = "7" * 32


def created(path: str) -> FileChange:
    return FileChange(path=path, change="created", before=None, after="a" * 64)


def modified(path: str) -> FileChange:
    return FileChange(path=path, change="modified", before="a" * 64, after="b" * 64)


def deleted(path: str) -> FileChange:
    return FileChange(path=path, change="deleted", before="a" * 64)


def moved(start: str, path: str, over: bool = False) -> FileChange:
    return FileChange(
        path=path, change="moved", before="c" * 64 if over else None, after="a" * 64, bytes=1, from_=start
    )


def changes_of_turn(*changes: FileChange) -> list[str]:
    ledger = Ledger()
    for number, change in enumerate(changes):
        call = f"call {number}"
        result = attrs.evolve(ends(call), turn_id=TURN, files=(change,))
        ledger.apply_unrecorded([attrs.evolve(intends(call), turn_id=TURN), starts(call), result])
    files = files_changed_in_turn(ledger, TURN)
    return [f"{one.path} {one.change}{f' from {one.from_}' if one.from_ else ''}" for one in files]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([created("a"), modified("a")], ["a created"]),
        ([modified("a"), modified("a")], ["a modified"]),
        ([created("a"), moved("a", "b")], ["b created"]),
        ([modified("a"), moved("a", "b")], ["b moved from a"]),
        ([moved("a", "b"), modified("b")], ["b moved from a"]),
        ([moved("a", "b"), moved("b", "c")], ["c moved from a"]),
        ([moved("a", "b"), moved("b", "a")], []),
        ([moved("a", "b"), modified("b"), moved("b", "a")], ["a modified"]),
        ([moved("a", "b", over=True), moved("b", "c")], ["b deleted", "c moved from a"]),
        ([moved("a", "b", over=True), deleted("b")], ["a deleted", "b deleted"]),
        ([created("a"), moved("a", "b"), deleted("b")], []),
        ([deleted("b"), created("a"), moved("a", "b")], ["b modified"]),
        ([moved("a", "t"), moved("b", "a"), moved("t", "b")], ["a moved from b", "b moved from a"]),
        ([moved("a", "b"), created("a"), deleted("a")], ["b moved from a"]),
        ([created("a"), deleted("a")], []),
        ([deleted("a"), created("a")], ["a modified"]),
        ([moved("a", "b"), deleted("b")], ["a deleted"]),
        ([created("a"), moved("a", "b", over=True)], ["b modified"]),
        ([created("b"), created("a"), moved("a", "b", over=True)], ["b created"]),
        ([moved("a", "b"), created("a")], ["a created", "b moved from a"]),
        ([modified("a"), deleted("a")], ["a deleted"]),
    ],
)
def test_changed_in_turn_combines_the_changes_of_each_file(changes: list[FileChange], expected: list[str]) -> None:
    """G6: a name that is gone again is not listed, and a moved file is listed with the name it came from."""
    assert changes_of_turn(*changes) == expected
