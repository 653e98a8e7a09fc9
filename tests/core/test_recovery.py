"""The two tables of recovery, walked whole, against the answers written out here."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.core.record import Check, Outcome, Settled
from steadyhand.core.recovery import (
    CLASSIFY,
    SETTLE,
    Reached,
    SettleSetting,
    classify,
    matches,
    settle,
    settle_matches,
)

BOTH = (False, True)
REACHED: tuple[Reached, ...] = get_args(Reached)
CHECKS: tuple[Check | None, ...] = (*get_args(Check), None)
SETTINGS: tuple[SettleSetting, ...] = get_args(SettleSetting)

# reached, the joint is broken, there is a reply: of calls with an effect.
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


def test_each_combination_is_classified_by_one_row() -> None:
    """C1, C2, C7, J9: no combination of four facts is left out or decided twice."""
    for facts in itertools.product(REACHED, BOTH, BOTH, BOTH):
        assert sum(matches(row, *facts) for row in CLASSIFY) == 1, facts


def test_each_row_classifies_something() -> None:
    """C1: no row of the table is dead."""
    every = list(itertools.product(REACHED, BOTH, BOTH, BOTH))
    assert [row.why for row in CLASSIFY if not any(matches(row, *facts) for facts in every)] == []


@pytest.mark.parametrize(("reached", "broken", "replied"), list(itertools.product(REACHED, BOTH, BOTH)))
def test_what_is_said_of_a_call_with_an_effect(reached: Reached, broken: bool, replied: bool) -> None:
    """C1, C2, C3, J9: only an unbroken joint and no sign of a start let a call be called not run."""
    assert classify(reached, False, broken, replied) == EFFECTS[reached, broken, replied]


@pytest.mark.parametrize(("reached", "broken", "replied"), list(itertools.product(REACHED, BOTH, BOTH)))
def test_what_is_said_of_a_read(reached: Reached, broken: bool, replied: bool) -> None:
    """C7: a read ends with its reply or was cut off; it is never uncertain."""
    assert classify(reached, True, broken, replied) == (None if replied else "interrupted")


def test_more_damage_never_says_that_it_did_not_run() -> None:
    """A broken joint, a lost reply or more progress never move a verdict towards "did not run" [I3]."""
    for reached, replied in itertools.product(REACHED, BOTH):
        assert classify(reached, False, True, replied) != "interrupted_before_execution"
        assert classify("started", False, False, replied) == "unknown_after_restart"


def test_each_combination_is_settled_by_one_row() -> None:
    """B3: no combination of four facts is left out or decided twice."""
    for facts in itertools.product(CHECKS, BOTH, BOTH, SETTINGS):
        assert sum(settle_matches(row, *facts) for row in SETTLE) == 1, facts


def test_each_row_settles_something() -> None:
    """B3: no row of the table is dead."""
    every = list(itertools.product(CHECKS, BOTH, BOTH, SETTINGS))
    assert [row.why for row in SETTLE if not any(settle_matches(row, *facts) for facts in every)] == []


PROOF: dict[Check, Settled] = {"satisfied": "checked_present", "unchanged": "checked_absent"}


@pytest.mark.parametrize(("check", "gone", "durable", "setting"), list(itertools.product(CHECKS, BOTH, BOTH, SETTINGS)))
def test_what_settles_itself(check: Check | None, gone: bool, durable: bool, setting: SettleSetting) -> None:
    """B3: only a clear check, with the executor gone and what was seen made durable, and not under `ask`."""
    proved = gone and durable and setting == "checked" and check in ("satisfied", "unchanged")
    assert settle(check, gone, durable, setting) == (PROOF[check] if proved and check in PROOF else None)
