"""What the ledger finds without a walk over the history is what such a walk finds."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt, is_known_to_have_happened
from tests.support.histories import Piece, histories
from tests.support.journals import begun


@given(histories())
def test_ledger_lookups_find_what_a_walk_over_the_history_finds(history: list[Piece]) -> None:
    """J1, N2, B6: after each piece of any history."""
    ledger = Ledger()
    ledger.apply_unrecorded(begun())
    for piece in history:
        ledger.apply_unrecorded(piece)
        every = list(ledger.attempts.values())
        assert ledger.uncertain() == [attempt for attempt in every if attempt.uncertain]
        assert [attempt for attempt in every if _is_doubted(attempt)] == ledger.doubted()
        for turn_id in ledger.turns:
            assert list(ledger.attempts_of_turn(turn_id)) == [one for one in every if one.turn_id == turn_id]
            calls = [call for call in ledger.calls.values() if call.turn_id == turn_id]
            assert sorted(call.call_id for call in ledger.calls_of_turn(turn_id)) == sorted(
                one.call_id for one in calls
            )
        for attempt in every:
            same = [one for one in every if attempt.intended.is_same_as(one.intended)]
            assert ledger.count_known_happened(attempt.intended) == sum(map(is_known_to_have_happened, same))


def _is_doubted(attempt: Attempt) -> bool:
    was_uncertain = attempt.result is not None and attempt.result.outcome in ("unknown", "unknown_after_restart")
    return attempt.uncertain or was_uncertain or attempt.inspection is not None


@given(histories())
def test_usage_sums_are_those_of_the_records(history: list[Piece]) -> None:
    """U1, U2: tokens of all requests, costs by currency."""
    ledger = Ledger()
    for piece in history:
        ledger.apply_unrecorded(piece)
    sums = ledger.usage_sums
    assert (sums.requests, sums.input) == (len(ledger.usage), sum(used.input for used in ledger.usage))
    assert sums.is_complete == all(used.complete for used in ledger.usage)
    counted = [used for used in ledger.usage if used.currency in ("EUR", None)]
    assert sums.in_currency("EUR") == (Decimal("0.1") * len(counted), len(ledger.usage) - len(counted))
