"""The recovery snapshot: what of a session is uncertain or was just settled (rows A1, B3).

A fold of the ledger; nothing is run for it and no arguments stand in it. `revision` is the digest of its content, so
that a resolution can name exactly what was seen [I8].
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.identity import canonical_json, sha256
from steadyhand.core.ledger import Ledger
from steadyhand.core.plain import plain
from steadyhand.core.record import Result
from steadyhand.core.scope import overlaps
from steadyhand.core.show import scope_view, short_title
from steadyhand.core.views import Action, InspectionNote, Snapshot, Statistics, Uncertain


@attrs.frozen
class Stand:
    """What a snapshot needs beside the ledger. `epoch` None: this process does not own the session."""

    session_id: str
    session_path: str
    epoch: str | None
    retry_enabled: bool
    root: str | None
    overtaken: frozenset[str] = frozenset()  # attempts that cannot be tried again, since a later one has started


def snapshot(ledger: Ledger, stand: Stand) -> Snapshot:
    calls = tuple(uncertain_view(attempt, ledger, stand) for attempt in ledger.uncertain())
    settled = tuple(
        uncertain_view(attempt, ledger, stand)
        for attempt in ledger.attempts.values()
        if shown_settled(attempt, ledger, stand)
    )
    bare = Snapshot(
        stand.session_id, stand.session_path, "", stand.retry_enabled, calls, settled, statistics(ledger), stand.epoch
    )
    content = plain(bare)
    assert isinstance(content, dict)
    for left_out in ("revision", "statistics"):
        del content[left_out]
    return attrs.evolve(bare, revision=sha256(canonical_json(content).encode("utf-8", "surrogatepass")))


def shown_settled(attempt: Attempt, ledger: Ledger, stand: Stand) -> bool:
    """Settled in this process and before the session's next turn (row B3)."""
    return (
        attempt.settlement is not None
        and stand.epoch is not None
        and attempt.settled_epoch == stand.epoch
        and attempt.settled_turns == ledger.turns_begun
    )


def actions(attempt: Attempt, stand: Stand) -> tuple[Action, ...]:
    """The actions offered now: only to the owner; decisions only after an inspection of this epoch."""
    if stand.epoch is None or attempt.stage == "closed":
        return ()
    if not inspected(attempt, stand.epoch):
        return ("inspect",)
    offered: list[Action] = ["inspect"]
    if attempt.uncertain:
        offered += ["confirm", "waive"] if attempt.rejected else ["confirm", "reject", "waive"]
    if attempt.restorable:
        offered.append("restore")
    if stand.retry_enabled and attempt.retriable and attempt.attempt_id not in stand.overtaken:
        offered.append("retry")
    return tuple(offered)


def overtaken(ledger: Ledger, others: Sequence[Ledger]) -> frozenset[str]:
    """Of those that might be tried again, the ones whose scope a later attempt overlaps that has started: their absence
    is no longer their own (row F3). In `others`, the sessions of the same workspace, by the times of their journals."""
    return frozenset(
        attempt.attempt_id
        for attempt in ledger.attempts.values()
        if attempt.retriable
        and (_overlapped_here(ledger, attempt) or any(_overlapped_there(other, attempt) for other in others))
    )


def _overlapped_here(ledger: Ledger, attempt: Attempt) -> bool:
    later = dropwhile(lambda other: other is not attempt, ledger.attempts.values())
    next(later)
    return any(other.started is not None and overlaps(other.scope, attempt.scope) for other in later)


def _overlapped_there(other: Ledger, attempt: Attempt) -> bool:
    begun = attempt.started_at or attempt.at
    return any(
        one.started_at is not None and one.started_at >= begun and overlaps(one.scope, attempt.scope)
        for one in other.attempts.values()
    )


def inspected(attempt: Attempt, epoch: str | None) -> bool:
    return attempt.inspection is not None and attempt.inspection_epoch == epoch


def uncertain_view(attempt: Attempt, ledger: Ledger, stand: Stand) -> Uncertain:
    note = None
    if attempt.inspection is not None and attempt.inspection_at is not None and inspected(attempt, stand.epoch):
        note = InspectionNote(attempt.inspection.inspection_id, attempt.inspection.state, attempt.inspection_at)
    settled = attempt.settlement.settled if attempt.settlement else None
    return Uncertain(
        session_id=stand.session_id,
        attempt_id=attempt.attempt_id,
        call_id=attempt.call_id,
        turn_id=attempt.turn_id,
        tool=attempt.tool,
        title=short_title(attempt.title),
        scope=scope_view(attempt.scope, stand.root),
        state="settled" if settled else "rejected" if attempt.rejected else "unknown",
        started=attempt.started_at or attempt.at,
        actions=actions(attempt, stand),
        settled=settled,
        check=attempt.check,
        inspection=note,
    )


def statistics(ledger: Ledger) -> Statistics:
    """Counts over this session's journal."""
    every = list(ledger.attempts.values())
    settled = [attempt.settlement.settled for attempt in every if attempt.settlement is not None]
    return Statistics(
        unknown=sum(1 for attempt in every if attempt.result is not None and _unknown(attempt.result)),
        checked=settled.count("checked_present") + settled.count("checked_absent"),
        confirmed=settled.count("user_confirmed") + settled.count("model_confirmed"),
        rejected=sum(1 for attempt in every if attempt.rejected),
        waived=settled.count("waived"),
        retried=settled.count("superseded"),
        restored=settled.count("restored"),
        held_back=ledger.held_back,
    )


def _unknown(result: Result) -> bool:
    return result.outcome in ("unknown", "unknown_after_restart")
