"""One call, from proposal to reply: prepare ▸ intent ▸ holdback ▸ permission ▸ evidence ▸ started ▸ run ▸ result.

`run_call` and `run_prepared` show this order. What holds a call back and whether it is permitted is decided before
*started* (row C5). The body runs only after *started* is durable [I1]. From the effect to its record nothing is
cancelled [I2]. A refusal ends the call with a reply and no start. After an exception of a body a check of the files
says what happened (row C6).
"""

from __future__ import annotations

import anyio
import attrs

from steadyhand.domain.ledger.state import Attempt, ToolCall
from steadyhand.domain.records.identity import (
    Arguments,
    BadArguments,
    parse_arguments,
    sha256,
)
from steadyhand.domain.records.record import (
    EditorProcess,
    FileChange,
    Intent,
    Result,
    Started,
)
from steadyhand.domain.recovery.postcondition import intended_changes
from steadyhand.domain.views.sentences import (
    after_error_satisfied,
    after_error_unchanged,
    after_error_unknown,
    aim_of,
    check_sentence,
    not_started_reply,
    refused_reply,
    stopped_text,
    unknown_tool_text,
)
from steadyhand.journal.journal import JournalBroken, TooLong
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.commands import (
    compared_arguments,
    intention_of,
    key_of,
    sandbox_of_reading,
    warn_of_sandbox,
)
from steadyhand.session.calls.holdback import clear_holdback
from steadyhand.session.calls.known_files import give_known_files
from steadyhand.session.calls.new_protected import tell_of_protected
from steadyhand.session.calls.permission import ask_permission, look_after_permission
from steadyhand.session.calls.prepared import (
    PreparedCall,
    confirmed_before,
    count_known_happened,
    error_text,
    facts_of,
    prepare_in_thread,
    scope_if_wider,
)
from steadyhand.session.calls.replies import close_unrun, make_reply, refuse_attempt, refuse_proposal, reply_of
from steadyhand.session.calls.save_first import with_saved_documents
from steadyhand.session.calls.user_channel import TurnUserChannel
from steadyhand.session.inspection.file_state import check_files, clear_and_check
from steadyhand.session.jobs.jobs import CallJobs
from steadyhand.session.session import Session
from steadyhand.tools.builtin.command_output import CommandOutput
from steadyhand.tools.contract import CallContext, EvidenceResult, Planned, Preview, Refusal, ToolOutcome

SAME_CALL_MAX = 8
"""The call that would be the 8th same one of a turn is refused, and the turn ends (row G7)."""
RESULT_S_MAX = 30.0
"""How long recording a result may take before it counts as lost (row J5)."""


class LoopGuard(Exception):
    """The turn asks for the same again and again; it ends `bound`."""


async def run_call(session: Session, turn: ActiveTurn, call: ToolCall) -> None:
    """Bring one proposed call to its end. Raise LoopGuard when the turn has to end; cancelled only before its start."""
    arguments = parse_arguments(call.arguments)
    if not isinstance(arguments, BadArguments):
        arguments = compared_arguments(call.tool, arguments)
    await _guard_loop(session, turn, call, arguments)
    tools = session.context.tools_of(session.ledger.model)
    tool = tools.get(call.tool)
    if tool is None:
        text = unknown_tool_text(call.tool, tools)
        return await refuse_proposal(session, call, "unknown_tool", text)
    if isinstance(arguments, BadArguments):
        return await refuse_proposal(session, call, "bad_arguments", arguments.why)
    planned = await prepare_in_thread(session, tool.prepare, arguments, session.tool_context)
    if isinstance(planned, Refusal):
        return await refuse_proposal(session, call, planned.reason, planned.text)
    if planned.effect != "reads" and not session.can_record:
        return await close_unrun(session, call, "journal")
    prepared = await _record_intent(session, call, arguments, planned)
    if planned.effect == "reads":
        return await _run_read(session, turn, prepared)
    return await run_prepared(session, turn, prepared)


async def run_prepared(session: Session, turn: ActiveTurn, prepared: PreparedCall) -> None:
    """Bring a call with an effect from its intent to its end."""
    call, planned = prepared.call, prepared.planned
    if not session.can_record:  # nobody is asked about what cannot start (row J6)
        return await close_unrun(session, call, "journal")
    held = await clear_holdback(session, turn, call, prepared.facts, planned.title)
    if isinstance(held, Refusal):
        return await refuse_attempt(session, prepared, held, held=True)
    if held:  # what held it back may have been this very call, confirmed just now (row B6)
        prepared = attrs.evolve(prepared, confirmed_before=_confirmed_before(session, prepared))
    shown = await ask_permission(session, turn, prepared)
    looked = shown if isinstance(shown, Refusal) else await look_after_permission(session, turn, prepared, shown)
    if isinstance(looked, Refusal):
        return await refuse_attempt(session, prepared, looked, held=held)
    prepared, shown = looked
    evidence = _EvidenceStep(session, turn, prepared, shown, held)
    gathered = await with_saved_documents(session, turn.turn_id, planned.title, evidence.gather)
    if isinstance(gathered, Refusal):
        return await refuse_attempt(session, prepared, gathered, held=evidence.held)
    prepared, new_occurrence = _with_present_key(session, prepared)
    started = Started(
        attempt_id=prepared.attempt_id,
        call_id=call.call_id,
        evidence=gathered.evidence,
        mark=prepared.attempt_id if prepared.facts.effect == "opaque" else None,
        held=evidence.held,
        key=prepared.key if new_occurrence is not None else None,
        occurrence=new_occurrence,
        sandbox=gathered.command.sandbox,
        scope=scope_if_wider(session, prepared),
        editor=_editor_of(session, gathered),
    )
    if not await _record_start(session, turn, call, started):
        return None
    return await _run_started(session, turn, prepared, gathered)


def _editor_of(session: Session, gathered: EvidenceResult) -> EditorProcess | None:
    """Return the editor that the call goes through: while it lives, its change may still come (row V2)."""
    if all(one.buffer is None for one in gathered.evidence):
        return None
    pid = session.context.editor.pid()
    return EditorProcess(pid=pid, started=None if pid is None else session.context.processes.started(pid) or None)


async def _run_started(session: Session, turn: ActiveTurn, prepared: PreparedCall, gathered: EvidenceResult) -> None:
    """Run a call whose *started* is durable, and say what the user must know of its sandbox (row O1)."""
    warn_of_sandbox(session, turn, gathered.command)
    done = await run_and_record(session, turn, prepared, gathered)
    if done is not None:
        await tell_of_protected(session, turn, done, run_and_record)


@attrs.define
class _EvidenceStep:
    """The step right before the start. `held`: whether anything has held the call back so far."""

    session: Session
    turn: ActiveTurn
    prepared: PreparedCall
    shown: Preview | None  # what the user allowed; None: nobody had to be asked
    held: bool

    async def gather(self) -> EvidenceResult | Refusal:
        """Look once more for what holds the call back, then read what its tool must know of the files [I6]."""
        prepared, planned = self.prepared, self.prepared.planned
        held = await clear_holdback(self.session, self.turn, prepared.call, prepared.facts, planned.title)
        self.held = self.held or bool(held)
        if isinstance(held, Refusal):
            return held
        give_known_files(self.session, prepared)
        return await prepare_in_thread(self.session, planned.gather, prepared.attempt_id, self.shown)


def _with_present_key(session: Session, prepared: PreparedCall) -> tuple[PreparedCall, int | None]:
    """Return the call with its current key, and its occurrence where that differs from the intent's (row N2).

    While a call was held back, the effect it waited for may have turned out to have happened, and may be the same
    intention. A retry keeps its key."""
    attempt = session.ledger.attempts[prepared.attempt_id]
    occurrence = count_known_happened(session, attempt.intended)
    if attempt.retry_of is not None or occurrence == attempt.occurrence:
        return prepared, None
    arguments = parse_arguments(prepared.call.arguments)
    assert not isinstance(arguments, BadArguments), "they were good when it was planned"
    return attrs.evolve(prepared, key=key_of(session, attempt.intended, arguments, occurrence)), occurrence


def _is_watching_job(session: Session, call: ToolCall, arguments: Arguments) -> bool:
    """Return whether the call watches a running background command, which is no loop; the turn bounds its requests."""
    running = session.jobs.running.get(str(arguments.value.get("jobId")))
    return call.tool == CommandOutput.name and running is not None and not running.over.is_set()


async def _guard_loop(session: Session, turn: ActiveTurn, call: ToolCall, arguments: Arguments | BadArguments) -> None:
    """Count the call, also one that is refused afterwards: the same call again is the same call (case 109)."""
    if isinstance(arguments, BadArguments):
        digest = sha256(call.arguments.encode("utf-8", "surrogatepass"))
    elif _is_watching_job(session, call, arguments):
        return
    else:
        digest = arguments.digest
    times = turn.count_call(call.tool, digest)
    if times >= SAME_CALL_MAX:
        text = f"The turn made this call {times} times with the same arguments."
        await refuse_proposal(session, call, "loop_guard", text)
        raise LoopGuard


async def _record_intent(session: Session, call: ToolCall, arguments: Arguments, planned: Planned) -> PreparedCall:
    """Record the identity of the call before anything else of it happens (row J3)."""
    ids = session.context.ids
    intended = intention_of(call.tool, planned, arguments)
    if planned.effect != "reads":
        await session.wait_for_origins()
    occurrence = count_known_happened(session, intended)
    key = key_of(session, intended, arguments, occurrence)
    facts = facts_of(session, call.tool, planned)
    intent = Intent(
        attempt_id=ids.new(),
        call_id=call.call_id,
        turn_id=call.turn_id,
        tool=call.tool,
        title=planned.title,
        effect=planned.effect,
        arguments_digest=arguments.digest,
        scope=planned.scope,
        key=key,
        occurrence=occurrence,
        intention=intended.command,
        unconfined=facts.unconfined,
        sandbox=sandbox_of_reading(planned),
    )
    await session.log.append_or_show([intent])
    session.feed.notify_call(call.call_id)
    confirmed = () if planned.effect == "reads" else confirmed_before(session, intended)
    return PreparedCall(call, planned, facts, intent.attempt_id, key, confirmed, is_judged=True)


def _confirmed_before(session: Session, prepared: PreparedCall) -> tuple[str, ...]:
    return confirmed_before(session, session.ledger.attempts[prepared.attempt_id].intended)


async def _run_read(session: Session, turn: ActiveTurn, prepared: PreparedCall) -> None:
    """Run a call that only reads. It has no *started*, waits for no sync and asks only outside the workspace (J4)."""
    permission = await ask_permission(session, turn, prepared)
    if isinstance(permission, Refusal):
        reply = make_reply(
            prepared.call,
            prepared.attempt_id,
            "refused",
            permission.reason,
            refused_reply(permission.reason, permission.text),
        )
    else:
        done = await _read_outcome(session, prepared)
        reply = reply_of(prepared, done)
        session.seen_contents.keep(done.contents)
    await session.log.append_or_show([reply])
    session.feed.notify_call(prepared.call.call_id)


async def _read_outcome(session: Session, prepared: PreparedCall) -> ToolOutcome:
    try:
        return await prepared.planned.run(_call_context(session, None, prepared, EvidenceResult()))
    except Exception as error:  # a read changes nothing, so whatever it throws, this one call failed (row C7)
        reason = "io_error" if isinstance(error, OSError) else "error"
        return ToolOutcome("failed", f"This read failed: {error_text(error)}.", reason)


async def _record_start(session: Session, turn: ActiveTurn, call: ToolCall, started: Started) -> bool:
    """Make *started* durable, unless the turn is being stopped (row G8).

    Return False if that failed: the body does not run and the call is `notRun` (row J4)."""
    try:
        if not await session.log.append([started], barrier=True, unless=lambda: turn.stopping is not None):
            await anyio.sleep_forever()  # the cancel comes as soon as the stop is recorded
    except (JournalBroken, TooLong) as broken:
        session.log.show_unkept([], str(broken))
        await close_unrun(session, call, "journal")
        return False
    session.feed.notify_call(call.call_id)
    if session.context.settings.retry:
        for other in session.neighbours():  # what this effect overtakes there cannot be retried any more (row F3)
            if other is not session:
                other.feed.notify_changes()
    return True


async def run_and_record(
    session: Session, turn: ActiveTurn, prepared: PreparedCall, gathered: EvidenceResult
) -> ToolOutcome | None:
    """Run the body of a call whose *started* is durable, record its one result and return it.

    None: nothing ran, because the session was taken away since *started* was recorded [I15]."""
    if not await session.log.may_act():
        _close_without_running(session, prepared)
        return None
    try:
        done = await prepared.planned.run(_call_context(session, turn, prepared, gathered))
    except Exception as error:  # whatever a body throws, only the check can say what it did
        with anyio.CancelScope(shield=True):
            done = await _outcome_after_error(session, prepared, error)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            done = await _outcome_after_cancel(session, prepared)
            await _record_result(session, prepared, done)
        raise
    with anyio.CancelScope(shield=True):
        await _record_result(session, prepared, done)
    return done


def _close_without_running(session: Session, prepared: PreparedCall) -> None:
    """Show that a call did not run although its *started* is durable. Nothing can be recorded any more, so a later
    process may find that start and call it unknown."""
    call, journal = prepared.call, session.log.journal
    why = (journal.broken if journal is not None else None) or "The session was closed meanwhile."
    result = Result(
        attempt_id=prepared.attempt_id,
        call_id=call.call_id,
        turn_id=call.turn_id,
        outcome="not_started",
        reason="journal",
    )
    text = not_started_reply("journal")
    session.log.show_unkept([result, make_reply(call, prepared.attempt_id, "not_started", "journal", text)], why)
    session.feed.notify_call(call.call_id)
    session.feed.notify_changes()


async def _record_result(session: Session, prepared: PreparedCall, done: ToolOutcome) -> None:
    """Record the result, then its reply, in one durable append (rows J2, J3); unknown if that fails (row J5)."""
    call = prepared.call
    session.seen_contents.keep(done.contents)
    result = Result(
        attempt_id=prepared.attempt_id,
        call_id=call.call_id,
        turn_id=call.turn_id,
        outcome=done.outcome,
        reason=done.reason,
        by=None,
        check=done.check,
        files=done.files,
        exit_code=done.exit_code,
        left=done.left_processes,
        kept=done.kept_files,
        during=done.during,
        protected=done.protected,
    )
    try:
        with anyio.fail_after(RESULT_S_MAX):
            await session.log.append([result, reply_of(prepared, done), *prepared.settles(done)], barrier=True)
    except (JournalBroken, TooLong, TimeoutError) as lost:
        why = str(lost) or "The result could not be recorded in time."
        checked = check_sentence(done.check, aim_of(session.ledger.attempts[prepared.attempt_id]))
        ended = "ran" if done.outcome == "returned" else "ended"
        text = f"It {ended}, but its result could not be recorded, so its outcome is unknown. {checked}"
        unknown = Result(
            attempt_id=prepared.attempt_id,
            call_id=call.call_id,
            turn_id=call.turn_id,
            outcome="unknown",
            reason="journal",
            check=done.check,
        )
        session.log.show_unkept([unknown, make_reply(call, prepared.attempt_id, "unknown", "journal", text)], why)
    session.feed.notify_call(call.call_id)
    session.feed.notify_changes()


async def _outcome_after_error(session: Session, prepared: PreparedCall, error: Exception) -> ToolOutcome:
    """Return what a check says after an exception (row C6): satisfied → returned, unchanged → failed, else unknown."""
    attempt = session.ledger.attempts[prepared.attempt_id]
    said = error_text(error)
    try:
        seen = await session.context.in_thread(clear_and_check, session.tool_context, session.ledger, attempt)
    except OSError:
        return ToolOutcome("unknown", after_error_unknown(said), "error")
    if seen.check == "satisfied":
        text = after_error_satisfied(aim_of(attempt), said)
        return ToolOutcome("returned", text, "after_error", files=_changes_now(attempt), check=seen.check)
    if seen.check == "unchanged":
        return ToolOutcome("failed", after_error_unchanged(said), "error", check=seen.check)
    return ToolOutcome("unknown", after_error_unknown(said), "error", check=seen.check, kept_files=seen.kept)


async def _outcome_after_cancel(session: Session, prepared: PreparedCall) -> ToolOutcome:
    """Return the outcome of a body that was cancelled. This process saw it end, so the check decides only the words."""
    attempt = session.ledger.attempts[prepared.attempt_id]
    if prepared.facts.effect == "opaque":
        return ToolOutcome("unknown", after_error_unknown("the turn was stopped"), "cancelled")
    try:
        seen = await session.context.in_thread(check_files, session.tool_context, session.ledger, attempt)
    except OSError:
        return ToolOutcome("unknown", after_error_unknown("the turn was stopped"), "cancelled")
    return ToolOutcome(
        "stopped", stopped_text(check_sentence(seen.check, aim_of(attempt))), "cancelled", check=seen.check
    )


def _call_context(
    session: Session, turn: ActiveTurn | None, prepared: PreparedCall, gathered: EvidenceResult
) -> CallContext:
    return CallContext(
        prepared.attempt_id,
        prepared.key,
        session.session_id,
        gathered.evidence,
        lambda: turn is not None and (turn.stopping is not None or not session.log.may_act_blocking()),
        TurnUserChannel(session, prepared.call.turn_id),
        CallJobs(session, prepared.attempt_id, prepared.call.call_id),
        gathered.command,
        session.context.editor,
    )


def _changes_now(attempt: Attempt) -> tuple[FileChange, ...]:
    """Return the changes that a satisfied check proves: the intended content is there now."""
    return intended_changes(attempt.started.evidence if attempt.started else ())
