"""The replies that end a call: of one that ran, of one that was refused, of one that never started.

Each call gets exactly one [I16]. What never started gets it from here; what ran, from `execute.py`.
"""

from __future__ import annotations

from steadyhand.domain.ledger.state import ToolCall
from steadyhand.domain.records.record import Outcome, Record, Result, ToolResult
from steadyhand.domain.views.sentences import READ_CUT_OFF, not_started_reply, refused_reply
from steadyhand.session.calls.prepared import PreparedCall
from steadyhand.session.session import Session
from steadyhand.tools.contract import REPLY_BYTES_MAX, Refusal, ToolOutcome


async def close_unrun(session: Session, call: ToolCall, reason: str) -> None:
    """Record the one reply of a call that this process never started (row G8); one that has ended stays as it is."""
    attempt = call.attempt
    if call.reply is not None or (attempt is not None and attempt.stage not in ("intended",)):
        return
    records: list[Record] = []
    if attempt is not None and attempt.effect != "reads":
        records.append(
            Result(
                attempt_id=attempt.attempt_id,
                call_id=call.call_id,
                turn_id=call.turn_id,
                outcome="not_started",
                reason=reason,
            )
        )
    outcome: Outcome = "interrupted" if attempt is not None and attempt.effect == "reads" else "not_started"
    text = READ_CUT_OFF if outcome == "interrupted" else not_started_reply(reason)
    records.append(make_reply(call, attempt.attempt_id if attempt else None, outcome, reason, text))
    await session.log.append_or_show(records)
    session.feed.notify_call(call.call_id)


async def refuse_proposal(session: Session, call: ToolCall, reason: str, text: str) -> None:
    """Reply to a call that never became an attempt."""
    await session.log.append_or_show([make_reply(call, None, "refused", reason, refused_reply(reason, text))])
    session.feed.notify_call(call.call_id)


async def refuse_attempt(session: Session, prepared: PreparedCall, refusal: Refusal, held: bool) -> None:
    """Record that an attempt was refused before its start, and reply."""
    call = prepared.call
    result = Result(
        attempt_id=prepared.attempt_id,
        call_id=call.call_id,
        turn_id=call.turn_id,
        outcome="refused",
        reason=refusal.reason,
        held=held,
    )
    reply = make_reply(
        call, prepared.attempt_id, "refused", refusal.reason, refused_reply(refusal.reason, refusal.text)
    )
    await session.log.append_or_show([result, reply])
    session.feed.notify_call(call.call_id)


def reply_of(prepared: PreparedCall, done: ToolOutcome) -> ToolResult:
    """Return the reply of a call whose body has ended."""
    size = done.bytes if done.is_truncated and done.bytes is not None else len(done.text.encode("utf-8", "replace"))
    return ToolResult(
        turn_id=prepared.call.turn_id,
        call_id=prepared.call.call_id,
        outcome=done.outcome,
        text=done.text,
        bytes=size,
        truncated=done.is_truncated,
        reason=done.reason,
        attempt_id=prepared.attempt_id,
        output=done.output,
        exit_code=done.exit_code,
        exit_signal=done.exit_signal,
        shown=done.shown,
    )


def make_reply(call: ToolCall, attempt_id: str | None, outcome: Outcome, reason: str | None, text: str) -> ToolResult:
    """Return a reply in the server's own words."""
    text = text[:REPLY_BYTES_MAX]
    size = len(text.encode("utf-8", "replace"))
    return ToolResult(
        turn_id=call.turn_id,
        call_id=call.call_id,
        outcome=outcome,
        text=text,
        bytes=size,
        truncated=False,
        reason=reason,
        attempt_id=attempt_id,
    )
