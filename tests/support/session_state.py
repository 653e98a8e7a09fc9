"""What a session has on disk and in its ledger."""

from __future__ import annotations

from pathlib import Path

from steadyhand.domain.ledger.state import ToolCall
from steadyhand.domain.records.record import Cancel, Record, Result, Started, Unknown
from steadyhand.domain.records.record import ToolResult as Replied
from steadyhand.domain.views.render import call_state
from steadyhand.journal.format import read_journal
from steadyhand.session.session import Session


def journal_path(state: Path, session_id: str) -> Path:
    return state / "sessions" / session_id / "journal.jsonl"


def on_disk(session: Session) -> list[Record]:
    """The records of the session's journal, as the file has them."""
    loaded = read_journal((Path(session.path) / "journal.jsonl").read_bytes())
    assert not loaded.breaks, "the journal is healthy"
    return [stamped.record for stamped in loaded.records if not isinstance(stamped.record, Unknown)]


def kinds(session: Session) -> list[str]:
    return [record.kind for record in on_disk(session)]


def calls_of(session: Session) -> list[ToolCall]:
    """All calls, in the order they were proposed."""
    return list(session.ledger.calls.values())


def states(session: Session) -> list[str]:
    """The states of all calls, as in the protocol."""
    return [call_state(each, session.live) for each in calls_of(session)]


def change_states(session: Session) -> list[str]:
    """The states of all calls but those that read a file, as the practice model does before it writes one."""
    return [call_state(each, session.live) for each in calls_of(session) if each.tool != "read_file"]


def replies(session: Session) -> list[str]:
    return [each.reply.text if each.reply else "" for each in calls_of(session)]


def outcomes(session: Session) -> list[tuple[str, str | None]]:
    """(outcome, reason) of each attempt with a result, in the order of the journal."""
    return [(record.outcome, record.reason) for record in on_disk(session) if isinstance(record, Result)]


def assert_closed(session: Session) -> None:
    """Each call has exactly one reply, each attempt one end, and nothing starts after a cancel [I16]."""
    records = on_disk(session)
    for each in calls_of(session):
        told = [r for r in records if isinstance(r, Replied) and r.call_id == each.call_id]
        assert len(told) == 1, f"{len(told)} replies to a call"
    for attempt in session.ledger.attempts.values():
        ends = [r for r in records if isinstance(r, Result) and r.attempt_id == attempt.attempt_id]
        assert len(ends) == (0 if attempt.effect == "reads" else 1), f"{len(ends)} results of {attempt.title}"
    cancelled = [place for place, record in enumerate(records) if isinstance(record, Cancel)]
    turns = {r.turn_id for r in records if isinstance(r, Cancel)}
    late = [
        record
        for record in records[min(cancelled, default=len(records)) :]
        if isinstance(record, Started) and session.ledger.attempts[record.attempt_id].turn_id in turns
    ]
    assert late == [], "a tool started after the cancel was recorded"
