"""The two tables of recovery over every combination of facts, against the answers written out here."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.domain.records.record import Check, Outcome, Settled
from steadyhand.domain.recovery.tables import (
    CLASSIFY,
    SETTLE,
    Reached,
    SettleSetting,
    classify,
    classify_row_matches,
    settle,
    settle_row_matches,
)

BOTH = (False, True)
REACHED: tuple[Reached, ...] = get_args(Reached)
CHECKS: tuple[Check | None, ...] = (*get_args(Check), None)
SETTINGS: tuple[SettleSetting, ...] = get_args(SettleSetting)

# Calls with an effect: the stage reached, whether the joint is broken, whether there is a reply.
EFFECTS: dict[tuple[Reached, bool, bool], Outcome | None] = {
    ("proposed", False, False): "interrupted_before_execution",
    ("proposed", False, True): None,
    ("proposed", True, False): "unknown_after_restart",
    ("proposed", True, True): None,
    ("intent", False, False): "interrupted_before_execution",
    ("intent", False, True): "unknown_after_restart",
    ("intent", True, False): "unknown_after_restart",
    ("intent", True, True): "unknown_after_restart",
    ("started", False, False): "unknown_after_restart",
    ("started", False, True): "unknown_after_restart",
    ("started", True, False): "unknown_after_restart",
    ("started", True, True): "unknown_after_restart",
}


def test_classify_each_combination_matches_exactly_one_row() -> None:
    """C1, C2, C7, J9: no combination of the four facts is left out or decided twice."""
    for facts in itertools.product(REACHED, BOTH, BOTH, BOTH):
        assert sum(classify_row_matches(row, *facts) for row in CLASSIFY) == 1, facts


def test_classify_every_row_matches_some_combination() -> None:
    """C1: no row of the table is dead."""
    every = list(itertools.product(REACHED, BOTH, BOTH, BOTH))
    assert [row.why for row in CLASSIFY if not any(classify_row_matches(row, *facts) for facts in every)] == []


@pytest.mark.parametrize(("reached", "broken", "replied"), list(itertools.product(REACHED, BOTH, BOTH)))
def test_classify_call_with_an_effect_gives_the_expected_verdict(reached: Reached, broken: bool, replied: bool) -> None:
    """C1, C2, C3, J9: a call counts as not run only with an unbroken joint and no sign of a start."""
    assert classify(reached, False, broken, replied) == EFFECTS[reached, broken, replied]


@pytest.mark.parametrize(("reached", "broken", "replied"), list(itertools.product(REACHED, BOTH, BOTH)))
def test_classify_read_is_interrupted_unless_it_has_a_reply(reached: Reached, broken: bool, replied: bool) -> None:
    """C7: a read ends with its reply or was interrupted. It is never uncertain."""
    assert classify(reached, True, broken, replied) == (None if replied else "interrupted")


def test_classify_more_damage_never_turns_a_verdict_into_not_run() -> None:
    """A broken joint, a lost reply or more progress never moves a verdict towards "did not run" [I3]."""
    for reached, replied in itertools.product(REACHED, BOTH):
        assert classify(reached, False, True, replied) != "interrupted_before_execution"
        assert classify("started", False, False, replied) == "unknown_after_restart"


def test_settle_each_combination_matches_exactly_one_row() -> None:
    """B3: no combination of the four facts is left out or decided twice."""
    for facts in itertools.product(CHECKS, BOTH, BOTH, SETTINGS):
        assert sum(settle_row_matches(row, *facts) for row in SETTLE) == 1, facts


def test_settle_every_row_matches_some_combination() -> None:
    """B3: no row of the table is dead."""
    every = list(itertools.product(CHECKS, BOTH, BOTH, SETTINGS))
    assert [row.why for row in SETTLE if not any(settle_row_matches(row, *facts) for facts in every)] == []


PROOF: dict[Check, Settled] = {"satisfied": "checked_present", "unchanged": "checked_absent"}


@pytest.mark.parametrize(("check", "gone", "durable", "setting"), list(itertools.product(CHECKS, BOTH, BOTH, SETTINGS)))
def test_settle_only_a_durable_clear_check_settles_automatically(
    check: Check | None, gone: bool, durable: bool, setting: SettleSetting
) -> None:
    """B3: only a clear check settles, when the executor is gone, the observed state is durable and the setting is not
    `ask`.
    """
    proved = gone and durable and setting == "checked" and check in ("satisfied", "unchanged")
    assert settle(check, gone, durable, setting) == (PROOF[check] if proved and check in PROOF else None)
