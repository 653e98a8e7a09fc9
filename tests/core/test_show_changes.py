"""What a turn really changed, summed up so that it is true of its end (row G6)."""

from __future__ import annotations

import pytest

from steadyhand.core.folded import Attempt
from steadyhand.core.ledger import Ledger
from steadyhand.core.record import FileChange, Result, Scope
from steadyhand.core.show import changed_in_turn

TURN = "7" * 32


def created(path: str) -> FileChange:
    return FileChange(path, "created", None, "a" * 64)


def modified(path: str) -> FileChange:
    return FileChange(path, "modified", "a" * 64, "b" * 64)


def deleted(path: str) -> FileChange:
    return FileChange(path, "deleted", "a" * 64)


def moved(start: str, path: str, over: bool = False) -> FileChange:
    return FileChange(path, "moved", "c" * 64 if over else None, "a" * 64, 1, start)


def shown(*changes: FileChange) -> list[str]:
    ledger = Ledger()
    for number, change in enumerate(changes):
        attempt_id = f"{number:032x}"
        attempt = Attempt(attempt_id, attempt_id, TURN, "tool", "title", "writes_files", Scope(paths=("/x",)), "")
        attempt.result = Result(attempt_id, attempt_id, TURN, "returned", files=(change,))
        ledger.attempts[attempt_id] = attempt
    files = changed_in_turn(ledger, TURN)
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
def test_several_changes_of_one_file(changes: list[FileChange], expected: list[str]) -> None:
    """G6: a name that is gone again stands nowhere, and a file is told by where it came from."""
    assert shown(*changes) == expected
