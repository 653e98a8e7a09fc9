"""The conditions under which the rest of a cut answer is asked for: every one alone can forbid it."""

from __future__ import annotations

from typing import Any, get_args

import attrs
import pytest

from steadyhand.core.continuation import Standing, conditions, may_continue, room_tokens_min
from steadyhand.core.model import FinishReason

WINDOW = 10_000
GOOD = Standing(
    wanted=True, able=True, finish="length", text=True, calls=False, usage_known=True, context=WINDOW - room_tokens_min,
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
    ("room", {"context": WINDOW - room_tokens_min + 1}),
    ("budget", {"budget_left": False}),
    ("same epoch", {"same_epoch": False}),
    ("same turn", {"same_turn": False}),
    ("not stopping", {"stopping": True}),
    ("kept", {"kept": False}),
]


def test_all_of_them_hold() -> None:
    """P2: with every condition met, at the very edge of the room, the rest is asked for."""
    assert may_continue(GOOD)


@pytest.mark.parametrize(("condition", "change"), FORBIDS)
def test_each_alone_forbids_it(condition: str, change: dict[str, Any]) -> None:
    """P2: one condition that does not hold, or is not known, is enough, and no other is blamed for it."""
    standing = attrs.evolve(GOOD, **change)
    assert not may_continue(standing)
    assert [name for name, holds in conditions(standing).items() if not holds] == [condition]


def test_no_condition_is_untested() -> None:
    """P2: the table above has a row for each condition."""
    assert {condition for condition, _ in FORBIDS} == set(conditions(GOOD))
