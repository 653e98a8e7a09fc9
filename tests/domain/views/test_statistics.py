"""Who settled a doubt, and how long it lasted (row A10)."""

from __future__ import annotations

import attrs
import pytest

from steadyhand.domain.ledger.ledger import fold
from steadyhand.domain.records.record import Author, Record, Settled, Settlement
from steadyhand.domain.views.statistics import duration_text, statistics, statistics_text
from steadyhand.domain.views.types import Statistics
from steadyhand.journal.format import read_journal
from tests.support.journals import (
    allows,
    attempt_id,
    begun,
    ends,
    ident,
    intends,
    journal,
    prompt,
    proposes,
    starts,
    verdict,
)

DOUBTS: tuple[tuple[str, Settled, Author, int], ...] = (
    ("a", "checked_absent", "recovery", 2),
    ("b", "user_confirmed", "user", 4),
    ("c", "model_confirmed", "model", 60),
    ("d", "waived", "user", 90),
)


def counted(records: list[Record], seconds: dict[str, int]) -> Statistics:
    """The statistics of a journal whose settlements were made that many seconds after the loss of the outcome."""
    stamped = [
        attrs.evolve(one, at=f"2026-01-02T03:{seconds[one.record.attempt_id] // 60:02}:"
                     f"{seconds[one.record.attempt_id] % 60:02}.000Z")
        if isinstance(one.record, Settlement)
        else attrs.evolve(one, at="2026-01-02T03:00:00.000Z")
        for one in read_journal(journal(records)).records
    ]  # fmt: skip
    return statistics(fold(stamped, ()))


def uncertain(*calls: str) -> list[Record]:
    records: list[Record] = [*begun(), prompt("turn", "p"), proposes("turn", *calls)]
    for call in calls:
        records += [intends(call), allows(call), starts(call), verdict(call, "unknown_after_restart")]
    return records


def test_statistics_say_who_settled_and_how_long_a_doubt_lasted() -> None:
    """A10, case 138: proofs, the user's decisions and the model's count apart; the median is of settled doubts."""
    records = uncertain("open", *(call for call, *_ in DOUBTS))
    records += [
        Settlement(attempt_id=attempt_id(call), call_id=ident(call), settled=word, by=by)
        for call, word, by, _ in DOUBTS
    ]
    shown = counted(records, {attempt_id(call): seconds for call, _, _, seconds in DOUBTS})
    assert (shown.by_proof, shown.by_person, shown.by_model, shown.median_doubt_ms) == (1, 2, 1, 32_000)
    text = statistics_text(shown)
    assert "Settled by a check: 1, by you: 2, by the model: 1. Not settled: 1." in text
    assert "settled within 32.0 s" in text


def test_statistics_count_held_back_calls_by_their_end() -> None:
    """A10: a call that ran after a decision was admitted, another was refused."""
    records: list[Record] = [*begun(), prompt("turn", "p"), proposes("turn", "ran", "refused")]
    records += [intends("ran"), allows("ran"), attrs.evolve(starts("ran"), held=True), ends("ran")]
    records += [intends("refused"), attrs.evolve(ends("refused"), held=True)]
    shown = counted(records, {})
    assert (shown.held_back, shown.held_back_admitted, shown.held_back_refused) == (2, 1, 1)


def test_statistics_of_a_session_without_doubts_say_so() -> None:
    """A10: no median of nothing."""
    shown = counted(begun(), {})
    assert shown.median_doubt_ms is None
    assert statistics_text(shown) == "No effect of this session was ever uncertain."


@pytest.mark.parametrize(
    ("duration_ms", "text"), [(7, "7 ms"), (1500, "1.5 s"), (90_000, "1.5 min"), (7_200_000, "2.0 h")]
)
def test_duration_has_one_unit(duration_ms: int, text: str) -> None:
    """A10."""
    assert duration_text(duration_ms) == text
