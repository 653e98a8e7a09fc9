"""Restore and retry: new attempts that the user starts from an uncertain one (rows A5, F2, F3).

Both run in this process under the same rules as any call: intent, evidence, *started*, body, result. A restore brings
back the content before, in one attempt that names the one it undoes; the old one is settled with its success. A retry
takes the stored arguments and keeps the idempotency key. Its intent and the settlement of the old attempt are recorded
in this order in one append, so the old request can run nothing any more [I10].

`recovery/resolve.py` calls it after it compared what the caller saw. A refusal here raises Refused and records nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.permissions.policy import Deny
from steadyhand.domain.records.identity import (
    BadArguments,
    Digest,
    parse_arguments,
)
from steadyhand.domain.records.record import Inspection, Intent, Notice, Record, Settlement
from steadyhand.domain.recovery.start_order import later_scopes
from steadyhand.domain.views.render import display_path
from steadyhand.domain.views.sentences import retried_notice, settlement_notice, undone_notice
from steadyhand.session.calls.execute import run_prepared
from steadyhand.session.calls.permission import admission_of
from steadyhand.session.calls.prepared import PreparedCall, facts_of, prepare_in_thread
from steadyhand.session.calls.replies import close_unrun
from steadyhand.session.calls.take_back import DIFFERENT, TakeBack, detached_turn, refuse_held_back, take_back
from steadyhand.session.inspection.inspect import InspectionResult, state_of
from steadyhand.session.inspection.verifier import inspect_now
from steadyhand.session.recovery.resolve import Redo
from steadyhand.session.session import Session
from steadyhand.session.session_views import read_others
from steadyhand.tools.contract import Planned, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.workspace.open_documents import is_unsaved_in_editor
from steadyhand.tools.workspace.places import overlapping_now
from steadyhand.tools.writes import restore as undoing


async def restore(session: Session, attempt: Attempt, latest: Inspection) -> Attempt:
    """Restore the content before, and settle the attempt as `restored` if that succeeds.

    Return the new attempt after it ended in whatever way."""
    await _refuse_held_back(session, attempt)
    root = session.tool_context.root
    evidence = attempt.started.evidence if attempt.started else ()
    found = {finding.path: finding.digest for finding in latest.findings}
    shown = {one.resolved: display_path(one.resolved, root) for one in evidence}
    new = await take_back(
        session,
        TakeBack(
            undoing.NAME,
            attempt.turn_id,
            evidence,
            {path: found[name] for path, name in shown.items() if name in found},
            {"attemptId": attempt.attempt_id},
            restore_of=attempt.attempt_id,
            settles=partial(_settled_by_restore, session, attempt, latest),
        ),
    )
    if isinstance(new, Refusal):
        if new is DIFFERENT:
            raise Refused("inspectFirst", "The file changed since that inspection; inspect it again.")
        raise _not_offered(new)
    reply = session.ledger.calls[new.call_id].reply
    if reply is not None and reply.outcome == "returned":
        session.feed.notify_message(
            "info", f"{reply.text} Say /recovery restore {new.attempt_id[:8]} in the chat to undo this."
        )
    return new


def _settled_by_restore(
    session: Session, attempt: Attempt, latest: Inspection, new: str, done: ToolOutcome
) -> Sequence[Record]:
    """Return what the end of a restore settles. `new`: the id of its attempt."""
    if done.outcome != "returned":
        return ()
    message_id = session.context.ids.new()
    if attempt.is_undoable:  # what is undone had its end long ago; it needs no settlement
        text = undone_notice(attempt.title)
        return (Notice(message_id=message_id, text=text, turn_id=attempt.turn_id, attempt_id=new),)
    text = settlement_notice(attempt, "restored")
    return (
        Settlement(
            attempt_id=attempt.attempt_id,
            call_id=attempt.call_id,
            settled="restored",
            by="user",
            inspection_id=latest.inspection_id,
            check=done.check,
        ),
        Notice(message_id=message_id, text=text, turn_id=attempt.turn_id, attempt_id=attempt.attempt_id),
    )


async def retry(session: Session, attempt: Attempt, latest: Inspection) -> Callable[[], Awaitable[None]]:
    """Record a new attempt, if the old one is absent and fenced now [I10]. Return what runs the new call."""
    await _refuse_held_back(session, attempt)
    ids, ledger = session.context.ids, session.ledger
    planned = await _plan_again(session, attempt)
    if await _is_overtaken(session, attempt):
        raise _retry_unsafe("a later effect that may touch the same files has started since")
    if (why := await _find_refusal(session, attempt, planned)) is not None:
        raise _retry_unsafe(why)
    found = await inspect_now(session, attempt)
    if state_of(found) != "absent_fenced":
        raise _retry_unsafe(_why_not_absent(found))
    intent = Intent(
        attempt_id=ids.new(),
        call_id=ids.new(),
        turn_id=attempt.turn_id,
        tool=attempt.tool,
        title=planned.title,
        effect=planned.effect,
        arguments_digest=attempt.arguments_digest,
        scope=planned.scope,
        key=attempt.key,
        occurrence=attempt.occurrence,
        retry_of=attempt.attempt_id,
    )
    superseded = Settlement(
        attempt_id=attempt.attempt_id,
        call_id=attempt.call_id,
        settled="superseded",
        by="user",
        inspection_id=latest.inspection_id,
        check=found.check,
        superseded_by=intent.attempt_id,
    )
    notice = Notice(
        message_id=ids.new(),
        text=settlement_notice(attempt, "superseded"),
        turn_id=attempt.turn_id,
        attempt_id=attempt.attempt_id,
    )
    await session.log.record_or_refuse([intent, superseded, notice])
    call, facts = ledger.calls[intent.call_id], facts_of(session, attempt.tool, planned)
    return partial(
        _run_retry, session, attempt, PreparedCall(call, planned, facts, intent.attempt_id, Digest(intent.key))
    )


async def _plan_again(session: Session, attempt: Attempt) -> Planned:
    """Return the call of the stored arguments. It is validated as any call and must have the recorded scope."""
    tool, old = session.context.tools.get(attempt.tool), session.ledger.calls[attempt.call_id]
    arguments = parse_arguments(old.arguments)
    if tool is None or isinstance(arguments, BadArguments) or arguments.digest != attempt.arguments_digest:
        raise _retry_unsafe("its stored arguments are damaged or its tool is gone")
    planned = await prepare_in_thread(session, tool.prepare, arguments, session.tool_context)
    if isinstance(planned, Refusal):
        raise _retry_unsafe(planned.text.rstrip("."))
    if planned.scope != attempt.intended.scope or planned.effect != attempt.effect:
        raise _retry_unsafe("its paths or its kind of effect differ from the recorded ones")
    return planned


async def _find_refusal(session: Session, attempt: Attempt, planned: Planned) -> str | None:
    """Return why the new attempt would be refused unasked; one that cannot start must not replace the old one."""
    admission = admission_of(session, facts_of(session, attempt.tool, planned))
    if isinstance(admission, Deny):
        return _as_clause(admission.text)
    unsaved = await prepare_in_thread(session, _refuse_unsaved, session.tool_context, attempt)
    refusal = unsaved if unsaved is not None else await prepare_in_thread(session, planned.preview)
    return _as_clause(refusal.text) if isinstance(refusal, Refusal) else None


def _refuse_unsaved(tool_context: ToolContext, attempt: Attempt) -> Refusal | None:
    """Return a refusal if a document of the attempt's paths has unsaved text. Blocks."""
    for one in attempt.started.evidence if attempt.started is not None else ():
        if is_unsaved_in_editor(tool_context, one.path, one.resolved):
            shown = display_path(one.resolved, tool_context.root)
            return Refusal("unsaved", f"{shown} has unsaved changes in the editor; save it first.")
    return None


def _as_clause(text: str) -> str:
    """Return the first sentence in the form that follows a colon."""
    first = text.partition(". ")[0].rstrip(".")
    return first[:1].lower() + first[1:] if first.startswith(("The ", "This ", "It ")) else first


def _why_not_absent(found: InspectionResult) -> str:
    if not found.is_fenced:
        return "a process of the earlier attempt may still run"
    if found.verified is not None:
        return f"its tool does not confirm that it did not and cannot happen ({found.verified.summary.rstrip('.')})"
    return f"the check says {found.check or 'nothing'}, so it may have happened"


async def _run_retry(session: Session, attempt: Attempt, prepared: PreparedCall) -> None:
    """Run the new call and record one notice of how it ended. Cancelled before its start, it did not run."""
    try:
        with session.redoing(prepared.call.call_id):
            session.feed.notify_call(prepared.call.call_id)
            await run_prepared(session, detached_turn(attempt.turn_id), prepared)
    finally:
        with anyio.CancelScope(shield=True):
            await close_unrun(session, prepared.call, "cancelled")
            call = prepared.call
            text = retried_notice(call, call.reply.outcome if call.reply is not None else "unknown")
            notice = Notice(
                message_id=session.context.ids.new(), text=text, turn_id=attempt.turn_id, attempt_id=prepared.attempt_id
            )
            await session.log.append_or_show([notice], barrier=True)
            if call.reply is None or call.reply.outcome != "returned":
                session.feed.notify_message("warning", f"{text} It still replaces the earlier attempt.")


async def _refuse_held_back(session: Session, attempt: Attempt) -> None:
    await refuse_held_back(session, attempt.title, attempt.scope, attempt.attempt_id)


async def _is_overtaken(session: Session, attempt: Attempt) -> bool:
    """Return whether a later start may have touched the same, under whatever path (row F3, case 164)."""
    context = session.context
    later = set(later_scopes(session.session_id, session.ledger, attempt, read_others(session), context.starts))
    scopes = {str(number): scope for number, scope in enumerate(later)}
    return bool(await context.in_thread(overlapping_now, context.disk, attempt.scope, scopes))


def _retry_unsafe(why: str) -> Refused:
    return Refused("retryUnsafe", f"It cannot be retried: {why}.", {"why": why})


def _not_offered(refusal: Refusal) -> Refused:
    return Refused("notOffered", refusal.text, {"why": refusal.text})


REDO = Redo(restore, retry)
"""What `resolve` needs for the actions restore and retry."""
