"""What is said about a call after a restart: two tables, each matched by exactly one row for every combination.

*classify* reads only what is in the journal: how far the call came, what kind of effect it has, whether the joint
from there to the end is unbroken, and whether its reply is readable. *settle* reads a check of the present. Neither
decides on the output of recovery itself [I5], and nothing reads *unknown* as *not executed* [I3].
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from steadyhand.core.record import Check, Outcome, Settled

Reached = Literal["proposed", "intent", "started"]
SettleSetting = Literal["checked", "ask"]
Any_: TypeAlias = "Literal['any']"
Verdict = Literal["interrupted_before_execution", "interrupted", "unknown_after_restart", "none"]


@attrs.frozen
class ClassifyRow:
    """One row; "any" matches both values."""

    reached: tuple[Reached, ...]
    reads: bool
    broken: bool | Any_
    replied: bool | Any_
    verdict: Verdict
    why: str


_all: tuple[Reached, ...] = ("proposed", "intent", "started")
CLASSIFY: tuple[ClassifyRow, ...] = (
    ClassifyRow(_all, True, "any", True, "none", "a read ends with its reply"),
    ClassifyRow(_all, True, "any", False, "interrupted", "a read changes nothing: read again (C7)"),
    ClassifyRow(("proposed",), False, "any", True, "none", "answered without an attempt: refused"),
    ClassifyRow(("proposed",), False, False, False, "interrupted_before_execution", "never admitted"),
    ClassifyRow(("proposed",), False, True, False, "unknown_after_restart", "damage may hide its start (J9)"),
    ClassifyRow(("intent",), False, False, False, "interrupted_before_execution", "no start on disk (C1)"),
    ClassifyRow(("intent",), False, True, False, "unknown_after_restart", "damage may hide its start (J9)"),
    ClassifyRow(("intent",), False, "any", True, "unknown_after_restart", "a reply without its result (J9)"),
    ClassifyRow(("started",), False, "any", "any", "unknown_after_restart", "it may have run (C2)"),
)


def matches(row: ClassifyRow, reached: Reached, reads: bool, broken: bool, replied: bool) -> bool:
    return (
        reached in row.reached
        and row.reads == reads
        and row.broken in ("any", broken)
        and row.replied in ("any", replied)
    )


def classify(reached: Reached, reads: bool, broken: bool, replied: bool) -> Outcome | None:
    """The verdict on a call that has no terminal record; None: its reply is its end."""
    rows = [row for row in CLASSIFY if matches(row, reached, reads, broken, replied)]
    assert len(rows) == 1, "the table matches each combination once"
    verdict = rows[0].verdict
    return None if verdict == "none" else verdict


@attrs.frozen
class SettleRow:
    check: tuple[Check | None, ...]  # None: nothing to check, as for commands
    executor_gone: bool | Any_
    durable: bool | Any_
    setting: SettleSetting | Any_
    settled: Settled | None
    why: str


SETTLE: tuple[SettleRow, ...] = (
    SettleRow(("conflict", "unknown", None), "any", "any", "any", None, "proves nothing"),
    SettleRow(("satisfied", "unchanged"), False, "any", "any", None, "an executor may still act"),
    SettleRow(("satisfied", "unchanged"), True, False, "any", None, "what was seen may not last"),
    SettleRow(("satisfied", "unchanged"), True, True, "ask", None, "the user decides"),
    SettleRow(("satisfied",), True, True, "checked", "checked_present", "it is there, and will be"),
    SettleRow(("unchanged",), True, True, "checked", "checked_absent", "it is not there, and nobody will make it"),
)


def settle_matches(
    row: SettleRow, check: Check | None, executor_gone: bool, durable: bool, setting: SettleSetting
) -> bool:
    return (
        check in row.check
        and row.executor_gone in ("any", executor_gone)
        and row.durable in ("any", durable)
        and row.setting in ("any", setting)
    )


def settle(check: Check | None, executor_gone: bool, durable: bool, setting: SettleSetting) -> Settled | None:
    """The settlement that a check of the present proves (row B3), or None: it stays unresolved."""
    rows = [row for row in SETTLE if settle_matches(row, check, executor_gone, durable, setting)]
    assert len(rows) == 1, "the table matches each combination once"
    return rows[0].settled
