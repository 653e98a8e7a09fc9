"""What others see of a session: frozen views, computed from its state at the moment they are asked for. Pure reads."""

from __future__ import annotations

from steadyhand.domain.records.record import Job
from steadyhand.domain.recovery.start_order import ReadSession, overtaken_attempts
from steadyhand.domain.text.hidden_characters import show_hidden_in_value
from steadyhand.domain.views import render
from steadyhand.domain.views.recovery_snapshot import SnapshotContext, snapshot
from steadyhand.domain.views.types import CallView, JobState, JobView, QueuedView, SessionView, Snapshot
from steadyhand.session.session_state import SessionState


def session_view(session: SessionState) -> SessionView:
    """Return the session as a list and the editor show it."""
    ledger = session.ledger
    return SessionView(
        session_id=session.session_id,
        path=session.path,
        title=show_hidden_in_value(ledger.title),
        title_source=ledger.title_source,
        created=ledger.created or ledger.updated or session.context.clock.now(),
        updated=ledger.updated or session.context.clock.now(),
        mode=ledger.mode,
        model=ledger.model,
        busy=session.turn is not None,
        parked=session.turn is not None and session.turn.is_parked,
        uncertain=len(ledger.uncertain()),
        epoch=session.epoch,
        workspace=ledger.workspace,
        workspace_gone=True if session.tool_context.missing is not None else None,
        read_only=session.read_only,
        jobs=tuple(_job_view(session, job) for job in ledger.open_jobs()) or None,
        origin=render.origin_of(ledger),
    )


def snapshot_of(session: SessionState) -> Snapshot:
    """Return what is uncertain, and what was settled since the last turn."""
    return snapshot(session.ledger, snapshot_context(session))


def snapshot_context(session: SessionState) -> SnapshotContext:
    """Return what a snapshot depends on beside the ledger."""
    retry = session.context.settings.retry
    overtaken = _overtaken(session) if retry else frozenset[str]()
    return SnapshotContext(session.session_id, session.path, session.epoch, retry, session.tool_context.root, overtaken)


def queue_view(session: SessionState) -> tuple[QueuedView, ...]:
    """Return the prompts that wait, in order."""
    return render.queue_view(session.ledger, session.ready.ids)


def call_view(session: SessionState, call_id: str, title: str | None = None) -> CallView:
    """Return one call. The call of a running restore or retry is shown as running, though its turn has ended."""
    call, live = session.ledger.calls[call_id], session.live
    if session.is_redone(call_id):
        live = render.LiveState(live.turns | {call.turn_id}, live.elsewhere)
    return render.call_view(call, live, session.tool_context.root, title)


def read_others(session: SessionState) -> list[ReadSession]:
    """Return the other open sessions, and when their journals were read."""
    return [ReadSession(other.ledger, other.read_at) for other in session.neighbours() if other is not session]


def _overtaken(session: SessionState) -> frozenset[str]:
    return overtaken_attempts(session.session_id, session.ledger, read_others(session), session.context.starts)


def _job_view(session: SessionState, job: Job) -> JobView:
    left = session.jobs.left.get(job.job_id)
    may_run = (
        job.job_id in session.jobs.running or session.live.elsewhere or (left is not None and left.alive is not None)
    )
    state: JobState = "untold" if not may_run else "left" if left is not None else "runs"
    return JobView(job.job_id, job.attempt_id, job.call_id, show_hidden_in_value(job.title), state, job.pid)
