"""The conditions for requesting the rest of a truncated answer. Each of them can forbid it alone."""

from __future__ import annotations

from typing import Any, get_args

import attrs
import pytest

from steadyhand.domain.model.continuation import ROOM_TOKENS_MIN, ContinuationFacts, conditions, should_continue
from steadyhand.domain.model.messages import FinishReason

WINDOW = 10_000
GOOD = ContinuationFacts(
    wanted=True, able=True, finish="length", text=True, calls=False, usage_known=True, context=WINDOW - ROOM_TOKENS_MIN,
    window=WINDOW, budget_left=True, same_epoch=True, same_turn=True, stopping=False, kept=True,
)  # fmt: skip

FORBIDS: list[tuple[str, dict[str, Any]]] = [
    ("wanted", {"wanted": False}),
    ("able", {"able": False}),
    *(("cut by length", {"finish": reason}) for reason in (None, *get_args(FinishReason)) if reason != "length"),
    ("text", {"text": False}),
    ("no calls", {"calls": True}),
    ("usage known", {"usage_known": False}),
    ("room", {"window": None}),
    ("room", {"context": WINDOW - ROOM_TOKENS_MIN + 1}),
    ("budget", {"budget_left": False}),
    ("same epoch", {"same_epoch": False}),
    ("same turn", {"same_turn": False}),
    ("not stopping", {"stopping": True}),
    ("kept", {"kept": False}),
]


def test_may_continue_with_every_condition_met_is_true() -> None:
    """P2: with every condition met, and exactly the least room left in the context window, the rest is requested."""
    assert should_continue(GOOD)


@pytest.mark.parametrize(("condition", "change"), FORBIDS)
def test_may_continue_with_one_condition_unmet_names_only_that_one(condition: str, change: dict[str, Any]) -> None:
    """P2: one condition that does not hold or is not known forbids the request. No other condition is named."""
    standing = attrs.evolve(GOOD, **change)
    assert not should_continue(standing)
    assert [name for name, holds in conditions(standing).items() if not holds] == [condition]


def test_continuation_cases_cover_every_condition() -> None:
    """P2: the table above has a row for each condition."""
    assert {condition for condition, _ in FORBIDS} == set(conditions(GOOD))
