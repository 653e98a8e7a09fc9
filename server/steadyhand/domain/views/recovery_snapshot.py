"""The recovery snapshot: what is uncertain in a session or was just settled (rows A1, B3).

It is a fold of the ledger: making it runs nothing, and it holds no arguments of a call. `revision` is the digest of its
content, so that a resolution can name exactly what its maker saw [I8].
"""

from __future__ import annotations

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.identity import canonical_json, sha256
from steadyhand.domain.views.render import scope_view, short_title
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.statistics import statistics
from steadyhand.domain.views.types import Action, InspectionNote, Snapshot, Uncertain
from steadyhand_values import frozen


@frozen
class SnapshotContext:
    """What a snapshot needs besides the ledger. `epoch` None: this process does not own the session."""

    session_id: str
    session_path: str  # the session's folder, absolute
    epoch: str | None
    retry_enabled: bool
    root: str | None  # the workspace, absolute; None: no folder
    overtaken_attempts: frozenset[str] = frozenset()  # attempts that cannot be retried because a later one has started


def snapshot(ledger: Ledger, stand: SnapshotContext) -> Snapshot:
    """Return the snapshot of a session, with its revision."""
    calls = tuple(uncertain_view(attempt, ledger, stand) for attempt in ledger.uncertain())
    settled = tuple(
        uncertain_view(attempt, ledger, stand)
        for attempt in ledger.doubted()
        if is_shown_settled(attempt, ledger, stand)
    )
    bare = Snapshot(
        stand.session_id, stand.session_path, "", stand.retry_enabled, calls, settled, statistics(ledger), stand.epoch
    )
    content = to_plain(bare)
    assert isinstance(content, dict)
    for left_out in ("revision", "statistics"):
        del content[left_out]
    return attrs.evolve(bare, revision=sha256(canonical_json(content).encode("utf-8", "surrogatepass")))


def is_shown_settled(attempt: Attempt, ledger: Ledger, stand: SnapshotContext) -> bool:
    """Return whether the attempt was settled in this process and no turn began since (row B3)."""
    return (
        attempt.settlement is not None
        and stand.epoch is not None
        and attempt.settled_epoch == stand.epoch
        and attempt.settled_turns == ledger.turns_begun
    )


def actions(attempt: Attempt, stand: SnapshotContext) -> tuple[Action, ...]:
    """Return the actions that are offered now.

    Only the process that owns the session offers any; decisions need an inspection of this epoch.
    """
    if stand.epoch is None or attempt.stage == "closed":
        return ()
    if not is_inspected(attempt, stand.epoch):
        return ("inspect",)
    offered: list[Action] = ["inspect"]
    if attempt.uncertain:
        offered += ["confirm", "waive"] if attempt.rejected else ["confirm", "reject", "waive"]
    if attempt.is_restorable:
        offered.append("restore")
    if stand.retry_enabled and attempt.is_retriable and attempt.attempt_id not in stand.overtaken_attempts:
        offered.append("retry")
    return tuple(offered)


def is_inspected(attempt: Attempt, epoch: str | None) -> bool:
    """Return whether the latest inspection is of this epoch."""
    return attempt.inspection is not None and attempt.inspection_epoch == epoch


def uncertain_view(attempt: Attempt, ledger: Ledger, stand: SnapshotContext) -> Uncertain:
    """Return the view of one attempt that is uncertain or was just settled."""
    note = None
    if attempt.inspection is not None and attempt.inspection_at is not None and is_inspected(attempt, stand.epoch):
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
