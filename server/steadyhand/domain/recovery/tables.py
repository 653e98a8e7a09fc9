"""Classify and settle a call after a restart: two tables, in which exactly one row matches each combination.

*classify* reads the journal only: how far the call came, whether its effect only reads, whether the joint from there to
the end is broken, and whether its reply is readable. *settle* reads a check of the present. Neither decides on output
of recovery itself [I5], and neither reads *unknown* as *not executed* [I3].
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from steadyhand.domain.records.record import Check, Outcome, Settled
from steadyhand_values import frozen

Reached = Literal["proposed", "intent", "started"]
SettleSetting = Literal["checked", "ask"]
Any_: TypeAlias = "Literal['any']"
Verdict = Literal["interrupted_before_execution", "interrupted", "unknown_after_restart", "none"]


@frozen
class ClassifyRow:
    """One row. "any" matches both values; the verdict "none" means that the reply is the end."""

    reached: tuple[Reached, ...]
    reads: bool  # the effect only reads
    broken: bool | Any_  # the joint is broken after the last record of the call
    replied: bool | Any_  # its reply is readable
    verdict: Verdict
    why: str


_ALL: tuple[Reached, ...] = ("proposed", "intent", "started")
CLASSIFY: tuple[ClassifyRow, ...] = (
    ClassifyRow(_ALL, True, "any", True, "none", "a read ends with its reply"),
    ClassifyRow(_ALL, True, "any", False, "interrupted", "a read changes nothing: read again (C7)"),
    ClassifyRow(("proposed",), False, "any", True, "none", "answered without an attempt: refused"),
    ClassifyRow(("proposed",), False, False, False, "interrupted_before_execution", "never admitted"),
    ClassifyRow(("proposed",), False, True, False, "unknown_after_restart", "damage may hide its start (J9)"),
    ClassifyRow(("intent",), False, False, False, "interrupted_before_execution", "no start on disk (C1)"),
    ClassifyRow(("intent",), False, True, False, "unknown_after_restart", "damage may hide its start (J9)"),
    ClassifyRow(("intent",), False, "any", True, "unknown_after_restart", "a reply without its result (J9)"),
    ClassifyRow(("started",), False, "any", "any", "unknown_after_restart", "it may have run (C2)"),
)


def classify_row_matches(row: ClassifyRow, reached: Reached, reads: bool, broken: bool, replied: bool) -> bool:
    """Return whether the row matches this combination."""
    return (
        reached in row.reached
        and row.reads == reads
        and row.broken in ("any", broken)
        and row.replied in ("any", replied)
    )


def classify(reached: Reached, reads: bool, broken: bool, replied: bool) -> Outcome | None:
    """Return the verdict on a call that has no terminal record; None: its reply is its end."""
    rows = [row for row in CLASSIFY if classify_row_matches(row, reached, reads, broken, replied)]
    assert len(rows) == 1, "the table matches each combination once"
    verdict = rows[0].verdict
    return None if verdict == "none" else verdict


@frozen
class SettleRow:
    """One row.

    `executor_gone`: nothing can act for the attempt any more; `durable`: what the check saw has been synced.
    """

    check: tuple[Check | None, ...]  # None: nothing to check, as for commands
    executor_gone: bool | Any_
    durable: bool | Any_
    setting: SettleSetting | Any_
    settled: Settled | None  # None: it stays unresolved
    why: str


SETTLE: tuple[SettleRow, ...] = (
    SettleRow(("conflict", "unknown", None), "any", "any", "any", None, "proves nothing"),
    SettleRow(("satisfied", "unchanged"), False, "any", "any", None, "an executor may still act"),
    SettleRow(("satisfied", "unchanged"), True, False, "any", None, "what was seen may not last"),
    SettleRow(("satisfied", "unchanged"), True, True, "ask", None, "the user decides"),
    SettleRow(("satisfied",), True, True, "checked", "checked_present", "it is there, and will be"),
    SettleRow(("unchanged",), True, True, "checked", "checked_absent", "it is not there, and nobody will make it"),
)


def settle_row_matches(
    row: SettleRow, check: Check | None, executor_gone: bool, durable: bool, setting: SettleSetting
) -> bool:
    """Return whether the row matches this combination."""
    return (
        check in row.check
        and row.executor_gone in ("any", executor_gone)
        and row.durable in ("any", durable)
        and row.setting in ("any", setting)
    )


def settle(check: Check | None, executor_gone: bool, durable: bool, setting: SettleSetting) -> Settled | None:
    """Return the settlement that a check of the present proves (row B3); None: the attempt stays unresolved."""
    rows = [row for row in SETTLE if settle_row_matches(row, check, executor_gone, durable, setting)]
    assert len(rows) == 1, "the table matches each combination once"
    return rows[0].settled
