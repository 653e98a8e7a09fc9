"""Counts over the doubts of one session's journal: who settled what, and how long a doubt lasted (rows A1, A10).

They are for people and decide nothing. Times are those of the wall clock, so a doubt during which the clock stepped
back counts as 0 ms.
"""

from __future__ import annotations

import statistics as numbers
from datetime import datetime

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Result, Settled
from steadyhand.domain.views.types import Statistics

BY_CHECK: tuple[Settled, ...] = ("checked_present", "checked_absent")


def statistics(ledger: Ledger) -> Statistics:
    """Count the attempts of this session's journal."""
    every = ledger.doubted()  # no other attempt has a decision or a doubt
    decisions = [attempt.settlement for attempt in every if attempt.settlement is not None]
    settled = [decision.settled for decision in decisions]
    authors = [decision.by for decision in decisions if decision.settled not in BY_CHECK]
    doubts_ms = [doubt for attempt in every if (doubt := _doubt_ms(attempt)) is not None]
    by_check = sum(settled.count(word) for word in BY_CHECK)
    return Statistics(
        unknown=sum(1 for attempt in every if attempt.result is not None and _is_unknown(attempt.result)),
        checked=by_check,
        confirmed=settled.count("user_confirmed") + settled.count("model_confirmed"),
        rejected=sum(1 for attempt in every if attempt.rejected),
        waived=settled.count("waived"),
        retried=settled.count("superseded"),
        restored=settled.count("restored"),
        held_back=ledger.held_back,
        held_back_admitted=ledger.held_back_admitted,
        held_back_refused=ledger.held_back_refused,
        by_proof=by_check,
        by_person=authors.count("user"),
        by_model=authors.count("model"),
        median_doubt_ms=round(numbers.median(doubts_ms)) if doubts_ms else None,
    )


def statistics_text(shown: Statistics) -> str:
    """Return the counts in sentences, one a line."""
    if not shown.unknown:
        return "No effect of this session was ever uncertain."
    open_count = shown.unknown - (shown.by_proof + shown.by_person + shown.by_model)
    lines = [
        f"Uncertain effects: {shown.unknown}. Settled by a check: {shown.by_proof}, by you: {shown.by_person}, by the"
        f" model: {shown.by_model}. Not settled: {max(0, open_count)}.",
        f"Confirmed: {shown.confirmed}, rejected: {shown.rejected}, waived: {shown.waived}, retried: {shown.retried},"
        f" restored: {shown.restored}.",
        f"Calls held back: {shown.held_back}. Ran after a decision: {shown.held_back_admitted}, refused:"
        f" {shown.held_back_refused}.",
    ]
    if shown.median_doubt_ms is not None:
        lines.append(f"Half of the doubts were settled within {duration_text(shown.median_doubt_ms)}.")
    return "\n".join(lines)


def duration_text(duration_ms: int) -> str:
    """Return a duration in its largest suitable unit."""
    for unit, unit_ms in (("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if duration_ms >= unit_ms:
            return f"{duration_ms / unit_ms:.1f} {unit}"
    return f"{duration_ms} ms"


def _doubt_ms(attempt: Attempt) -> int | None:
    """Return how long the doubt lasted; None for an attempt that was never uncertain or is not settled."""
    if attempt.settled_at is None or attempt.result_at is None:
        return None
    lasted = _moment(attempt.settled_at) - _moment(attempt.result_at)
    return max(0, round(lasted.total_seconds() * 1000))


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at.replace("Z", "+00:00"))


def _is_unknown(result: Result) -> bool:
    return result.outcome in ("unknown", "unknown_after_restart")
