"""The history of a fork is made in one pass (row S3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steadyhand.domain.model import readings
from steadyhand.domain.model.copied_history import copied_history
from steadyhand.domain.records.record import Record
from tests.support import journals as history
from tests.support.journals import journal, ledger_of

TURNS = 100


def wrote(number: int) -> list[Record]:
    """A turn with one write. The first one is unresolved."""
    turn, call = f"turn {number}", f"call {number}"
    said: list[Record] = [history.prompt(turn), history.proposes(turn, call)]
    if number == 0:
        return [*said, history.intends(call, turn), history.starts(call), history.verdict(call, "unknown", turn)]
    return [*said, *history.ran(call, turn)]


def test_copying_reads_each_entry_once_beside_an_old_unresolved_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3, [I13]: nothing changes while it is copied, so what an unresolved effect may still become does not matter. An
    event loop that copies a long history must not stand still."""
    ledger = ledger_of(journal([*history.begun(), *(one for at in range(TURNS) for one in wrote(at))]))
    assert len(ledger.uncertain()) == 1
    added = 0
    add: Callable[..., int] = readings._add_entry

    def count(*arguments: Any) -> int:
        nonlocal added
        added += 1
        return add(*arguments)

    monkeypatch.setattr(readings, "_add_entry", count)
    copied = copied_history(ledger, None)
    assert sum(type(one.record).__name__ == "ToolResult" for one in copied) == TURNS
    assert added <= 6 * TURNS
