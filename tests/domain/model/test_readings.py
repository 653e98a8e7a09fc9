"""What the model knows of files, as a fold of the history (row V3)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.readings import LARGE_BYTES, GrowingReadings, Reading, fold_readings
from steadyhand.domain.records.record import Assistant, Attached, Evidence, Record, Shown, Started, ToolResult
from tests.support.histories import Piece, histories
from tests.support.journals import begun, digest, ident, prompt

PATHS = ("/w/a.txt", "/w/b.txt")


def with_files(records: Piece, at: int) -> Piece:
    """The same records, whose replies show files and whose starts have evidence."""
    path, text = PATHS[at % 2], f"text {at % 5}"
    shown = Shown(path=path, digest=digest(text), from_=at % 3 + 1, to=at % 4, whole=at % 4 == 0)
    evidence = Evidence(
        path=path, resolved=path, existed=True, before=digest(text), intended=None if at % 5 == 4 else digest(f"{at}")
    )

    def changed(record: Record) -> Record:
        if isinstance(record, ToolResult):
            return attrs.evolve(record, shown=(shown,))
        return attrs.evolve(record, evidence=(evidence,)) if isinstance(record, Started) else record

    return [changed(record) for record in records]


@given(histories(), st.data())
def test_growing_readings_are_those_of_the_whole_history(history: list[Piece], data: st.DataObject) -> None:
    """V3, J1: what is kept between two calls of any history changes nothing; a restart folds the same."""
    ledger, kept = Ledger(), GrowingReadings()
    ledger.apply_unrecorded(begun())
    for at, piece in enumerate(history):
        records = with_files(piece, at)
        ledger.apply_unrecorded(records)
        calls = [call.call_id for one in records if isinstance(one, Assistant) for call in one.calls]
        call_id = data.draw(st.sampled_from(["", *calls]))
        if call_id:
            assert kept.fold(ledger, call_id) == fold_readings(ledger, call_id)


def test_growing_readings_walk_over_closed_turns_once() -> None:
    """Speed: what is kept holds every entry of the turns before."""
    ledger, kept = Ledger(), GrowingReadings()
    ledger.apply_unrecorded([*begun(), *(prompt(f"turn {at}") for at in range(50))])
    kept.fold(ledger, ident("nobody's"))
    assert kept._entries == 50


def test_attachment_of_a_prompt_counts() -> None:
    """V3: as a reply does."""
    ledger = Ledger()
    shown = Shown(path=PATHS[0], digest=digest("a"), from_=1, to=2, whole=True)
    ledger.apply_unrecorded([*begun(), prompt("turn"), Attached(turn_id=ident("turn"), text="a", shown=(shown,))])
    assert fold_readings(ledger, "").files == {PATHS[0]: Reading(digest("a"), True, ((1, 2),), 0)}


@pytest.mark.parametrize(
    ("ranges", "lines", "size", "covered"),
    [
        ((), 0, 0, False),
        (((1, 3),), 3, 9, True),
        (((1, 2),), 3, 9, False),
        (((2, 3),), 3, 9, False),
        (((3, 3), (1, 2)), 3, 9, True),
        (((1, 1), (3, 3)), 3, 9, False),
        (((1, 2), (2, 3)), 3, 9, True),
        ((), 9, LARGE_BYTES + 1, True),
        ((), 9, LARGE_BYTES, False),
    ],
)
def test_ranges_cover_a_file_if_no_line_is_missing(
    ranges: tuple[tuple[int, int], ...], lines: int, size: int, covered: bool
) -> None:
    """V3 [I13]: the union of the ranges; above 256 KiB a part is enough."""
    assert Reading("d", False, ranges).covers(lines, size) == covered
