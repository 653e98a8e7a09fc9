"""One call, from proposal to its one reply: prepare ▸ intent ▸ admit ▸ started ▸ run ▸ result.

The order is the product. Permission and whatever holds a call back are settled before *started* (row C5); the body
runs only after *started* is durable [I1]; from the effect to its record the stretch is shielded [I2]. A refusal ends
the call with a reply and no start. What comes out of a body by exception is answered by the check (row C6).
"""

from __future__ import annotations

import anyio
import attrs

from steadyhand.core.folded import Attempt, Call
from steadyhand.core.identity import (
    Arguments,
    BadArguments,
    Digest,
    SessionId,
    idempotency_key,
    parse_arguments,
)
from steadyhand.core.postcondition import intended_changes
from steadyhand.core.record import (
    Evidence,
    FileChange,
    Intent,
    Outcome,
    Record,
    Result,
    Scope,
    Started,
    Tool,
)
from steadyhand.core.words import (
    READ_CUT_OFF,
    after_error_satisfied,
    after_error_unchanged,
    after_error_unknown,
    aim_of,
    check_sentence,
    not_started_reply,
    refused_reply,
    stopped_text,
)
from steadyhand.journal.log import JournalBroken, TooLong
from steadyhand.session.admitted import Admitted, before_start, error_words, wanted_of
from steadyhand.session.checking import look, recover
from steadyhand.session.holding import clear_way
from steadyhand.session.jobs import CallJobs
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.session.permitting import permitted
from steadyhand.session.person import TurnPerson
from steadyhand.session.saving import saving_first
from steadyhand.tools.command_output import CommandOutput
from steadyhand.tools.tool import Done, Gathered, Planned, Refusal, Running, reply_bytes_max

same_call_max = 8
"""The call that would be the 8th same one of a turn is refused, and the turn ends (row G7)."""
result_s_max = 30.0
"""How long recording a result may take before it counts as lost (row J5)."""


class LoopGuard(Exception):
    """The turn asks for the same again and again; it ends `bound`."""


async def carry_out(owner: Owner, turn: RunningTurn, call: Call) -> None:
    """Bring one call to its end. LoopGuard when the turn has to end; cancelled only before its start."""
    tool = owner.world.tools.get(call.tool)
    if tool is None:
        return await refuse_unadmitted(owner, call, "unknown_tool", f"There is no tool “{call.tool[:64]}” here.")
    arguments = parse_arguments(call.arguments)
    if isinstance(arguments, BadArguments):
        return await refuse_unadmitted(owner, call, "bad_arguments", arguments.why)
    await _guard_loop(owner, turn, call, arguments)
    planned = await before_start(owner, tool.prepare, arguments, owner.ground)
    if isinstance(planned, Refusal):
        return await refuse_unadmitted(owner, call, planned.reason, planned.text)
    if planned.effect != "reads" and not owner.works:
        return await close_unrun(owner, call, "journal")
    admitted = await _intend(owner, call, arguments, planned)
    if planned.effect == "reads":
        return await _read(owner, turn, admitted)
    return await carry_through(owner, turn, admitted)


async def carry_through(owner: Owner, turn: RunningTurn, admitted: Admitted) -> None:
    """From its intent to its end: what holds it back, permission, evidence, start, body, result."""
    call, planned = admitted.call, admitted.planned
    if not owner.works:  # nobody is asked about what cannot start (row J6)
        return await close_unrun(owner, call, "journal")
    held = await clear_way(owner, turn, call, admitted.wanted, planned.title)
    if isinstance(held, Refusal):
        return await _refuse(owner, admitted, held, held=True)
    if held:  # what held it back may have been this very call, confirmed just now (row B6)
        admitted = attrs.evolve(admitted, confirmed_before=_confirmed(owner, admitted))
    permission = await permitted(owner, turn, admitted)
    if isinstance(permission, Refusal):
        return await _refuse(owner, admitted, permission, held=held)

    async def gather() -> Gathered | Refusal:
        nonlocal held
        again = await clear_way(owner, turn, call, admitted.wanted, planned.title)  # a doubt that came meanwhile [I6]
        held = held or bool(again)
        if isinstance(again, Refusal):
            return again
        return await before_start(owner, planned.gather, admitted.attempt_id, permission)

    gathered = await saving_first(owner, turn.turn_id, planned.title, gather)
    if isinstance(gathered, Refusal):
        return await _refuse(owner, admitted, gathered, held=held)
    admitted, anew = _with_present_key(owner, admitted)
    started = Started(
        admitted.attempt_id, call.call_id, gathered.evidence,
        admitted.attempt_id if admitted.wanted.effect == "opaque" else None, held,
        admitted.key if anew is not None else None, anew,
    )  # fmt: skip
    if not await _start(owner, turn, call, started):
        return None
    return await run_and_record(owner, turn, admitted, gathered.evidence)


def _with_present_key(owner: Owner, admitted: Admitted) -> tuple[Admitted, int | None]:
    """With the key of this moment, and its occurrence where it is no longer the intent's: while it was held back, what
    it waited for may have turned out to have happened, and was this very intention (row N2). A retry keeps its key."""
    attempt = owner.ledger.attempts[admitted.attempt_id]
    occurrence = owner.ledger.known_happened(attempt.tool, attempt.arguments_digest, attempt.scope)
    if attempt.retry_of is not None or occurrence == attempt.occurrence:
        return admitted, None
    arguments = parse_arguments(admitted.call.arguments)
    assert not isinstance(arguments, BadArguments), "they were good when it was planned"
    return attrs.evolve(admitted, key=_key(owner, attempt.tool, arguments, attempt.scope, occurrence)), occurrence


def _key(owner: Owner, tool: str, arguments: Arguments, scope: Scope, occurrence: int) -> Digest:
    return idempotency_key(SessionId(owner.session_id), tool, arguments.canonical, scope.plain(), occurrence)


async def close_unrun(owner: Owner, call: Call, reason: str) -> None:
    """The one reply of a call that this process never started (row G8). Already ended calls are left alone."""
    attempt = call.attempt
    if call.reply is not None or (attempt is not None and attempt.stage not in ("intended",)):
        return
    records: list[Record] = []
    if attempt is not None and attempt.effect != "reads":
        records.append(Result(attempt.attempt_id, call.call_id, call.turn_id, "not_started", reason))
    outcome: Outcome = "interrupted" if attempt is not None and attempt.effect == "reads" else "not_started"
    text = READ_CUT_OFF if outcome == "interrupted" else not_started_reply(reason)
    records.append(_reply(call, attempt.attempt_id if attempt else None, outcome, reason, text))
    await owner.append_or_show(records)
    owner.tell_call(call.call_id)


async def refuse_unadmitted(owner: Owner, call: Call, reason: str, text: str) -> None:
    """A call that never became an attempt."""
    await owner.append_or_show([_reply(call, None, "refused", reason, refused_reply(reason, text))])
    owner.tell_call(call.call_id)


def _looks_at_running(owner: Owner, call: Call, arguments: Arguments) -> bool:
    """Looking again at a background command while it runs is no loop; the requests of a turn bound it."""
    running = owner.jobs.get(str(arguments.value.get("jobId")))
    return call.tool == CommandOutput.name and running is not None and not running.over.is_set()


async def _guard_loop(owner: Owner, turn: RunningTurn, call: Call, arguments: Arguments) -> None:
    if _looks_at_running(owner, call, arguments):
        return
    same = (call.tool, arguments.digest)
    turn.repeats[same] = turn.repeats.get(same, 0) + 1
    if turn.repeats[same] >= same_call_max:
        text = f"It was asked {turn.repeats[same]} times in this turn with the same arguments."
        await refuse_unadmitted(owner, call, "loop_guard", text)
        raise LoopGuard


async def _intend(owner: Owner, call: Call, arguments: Arguments, planned: Planned) -> Admitted:
    """Record the intent: who it is, before anything else of it (row J3)."""
    ids = owner.world.ids
    occurrence = owner.ledger.known_happened(call.tool, arguments.digest, planned.scope)
    key = _key(owner, call.tool, arguments, planned.scope, occurrence)
    intent = Intent(
        attempt_id=ids.new(), call_id=call.call_id, turn_id=call.turn_id, tool=call.tool, title=planned.title,
        effect=planned.effect, arguments_digest=arguments.digest, scope=planned.scope, key=key, occurrence=occurrence,
    )  # fmt: skip
    await owner.append_or_show([intent])
    owner.tell_call(call.call_id)
    wanted = wanted_of(owner, call.tool, planned)
    confirmed = owner.ledger.confirmed_before(call.tool, arguments.digest, planned.scope)
    return Admitted(call, planned, wanted, intent.attempt_id, key, () if planned.effect == "reads" else confirmed)


def _confirmed(owner: Owner, admitted: Admitted) -> tuple[str, ...]:
    digest = owner.ledger.attempts[admitted.attempt_id].arguments_digest
    return owner.ledger.confirmed_before(admitted.call.tool, digest, admitted.wanted.scope)


async def _read(owner: Owner, turn: RunningTurn, admitted: Admitted) -> None:
    """Reads have no *started* and wait for no sync (row J4); only what leaves the workspace asks."""
    permission = await permitted(owner, turn, admitted)
    if isinstance(permission, Refusal):
        reply = _reply(
            admitted.call, admitted.attempt_id, "refused", permission.reason,
            refused_reply(permission.reason, permission.text),
        )  # fmt: skip
    else:
        done = await _read_body(owner, admitted)
        reply = _done_reply(admitted, done)
    await owner.append_or_show([reply])
    owner.tell_call(admitted.call.call_id)


async def _read_body(owner: Owner, admitted: Admitted) -> Done:
    try:
        return await admitted.planned.run(_running(owner, None, admitted, ()))
    except Exception as error:  # a read changes nothing, so whatever it throws, this one call failed (row C7)
        reason = "io_error" if isinstance(error, OSError) else "error"
        return Done("failed", f"This read failed: {error_words(error)}.", reason)


async def _start(owner: Owner, turn: RunningTurn, call: Call, started: Started) -> bool:
    """Make *started* durable, unless the turn is stopping by now (row G8); if that fails, the body does not run and the
    call is `notRun` (row J4)."""
    try:
        if not await owner.append([started], barrier=True, unless=lambda: turn.stopping is not None):
            await anyio.sleep_forever()  # the cancel comes as soon as the stop is recorded
    except (JournalBroken, TooLong) as broken:
        owner.show_unkept([], str(broken))
        await close_unrun(owner, call, "journal")
        return False
    owner.tell_call(call.call_id)
    if owner.world.settings.retry:
        for other in owner.neighbours():  # what it overtakes there can be tried again no more (row F3)
            if other is not owner:
                other.tell_changes()
    return True


async def run_and_record(owner: Owner, turn: RunningTurn, admitted: Admitted, evidence: tuple[Evidence, ...]) -> None:
    """The body of a call whose *started* is durable, and its one result."""
    try:
        done = await admitted.planned.run(_running(owner, turn, admitted, evidence))
    except Exception as error:  # whatever a body throws, only the check can say what it did
        with anyio.CancelScope(shield=True):
            done = await _after_error(owner, admitted, error)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            done = await _after_cancel(owner, admitted)
            await _record(owner, admitted, done)
        raise
    with anyio.CancelScope(shield=True):
        await _record(owner, admitted, done)


async def _record(owner: Owner, admitted: Admitted, done: Done) -> None:
    """The result, then its reply, in one durable append (rows J2, J3); unknown if it cannot be kept (row J5)."""
    call = admitted.call
    result = Result(
        admitted.attempt_id, call.call_id, call.turn_id, done.outcome, done.reason, None, done.check, done.files,
        done.exit_code, done.left, done.kept,
    )  # fmt: skip
    try:
        with anyio.fail_after(result_s_max):
            await owner.append([result, _done_reply(admitted, done), *admitted.settles(done)], barrier=True)
    except (JournalBroken, TooLong, TimeoutError) as lost:
        why = str(lost) or "The result could not be recorded in time."
        checked = check_sentence(done.check, aim_of(owner.ledger.attempts[admitted.attempt_id]))
        text = f"It ran, but its result could not be recorded, so its outcome is unknown. {checked}"
        unknown = Result(admitted.attempt_id, call.call_id, call.turn_id, "unknown", "journal", check=done.check)
        owner.show_unkept([unknown, _reply(call, admitted.attempt_id, "unknown", "journal", text)], why)
    owner.tell_call(call.call_id)
    owner.tell_changes()


async def _after_error(owner: Owner, admitted: Admitted, error: Exception) -> Done:
    """Row C6: satisfied → returned with a notice; unchanged → failed; otherwise unknown."""
    attempt = owner.ledger.attempts[admitted.attempt_id]
    title, said = admitted.planned.title, error_words(error)
    try:
        seen = await owner.world.in_thread(recover, owner.ground, owner.ledger, attempt)
    except OSError:
        return Done("unknown", after_error_unknown(title, said), "error")
    if seen.check == "satisfied":
        text = after_error_satisfied(aim_of(attempt), said)
        return Done("returned", text, "after_error", files=_files_now(attempt), check=seen.check)
    if seen.check == "unchanged":
        return Done("failed", after_error_unchanged(title, said), "error", check=seen.check)
    return Done("unknown", after_error_unknown(title, said), "error", check=seen.check, kept=seen.kept)


async def _after_cancel(owner: Owner, admitted: Admitted) -> Done:
    """A cancel that came out of the body itself: this process saw it end, so the check decides the words only."""
    attempt = owner.ledger.attempts[admitted.attempt_id]
    if admitted.wanted.effect == "opaque":
        return Done("unknown", after_error_unknown(admitted.planned.title, "the turn was stopped"), "cancelled")
    try:
        seen = await owner.world.in_thread(look, owner.ground, owner.ledger, attempt)
    except OSError:
        return Done("unknown", after_error_unknown(admitted.planned.title, "the turn was stopped"), "cancelled")
    return Done("stopped", stopped_text(check_sentence(seen.check, aim_of(attempt))), "cancelled", check=seen.check)


async def _refuse(owner: Owner, admitted: Admitted, refusal: Refusal, held: bool) -> None:
    call = admitted.call
    result = Result(admitted.attempt_id, call.call_id, call.turn_id, "refused", refusal.reason, held=held)
    reply = _reply(call, admitted.attempt_id, "refused", refusal.reason, refused_reply(refusal.reason, refusal.text))
    await owner.append_or_show([result, reply])
    owner.tell_call(call.call_id)


def _running(owner: Owner, turn: RunningTurn | None, admitted: Admitted, evidence: tuple[Evidence, ...]) -> Running:
    return Running(
        admitted.attempt_id, admitted.key, owner.session_id, evidence,
        lambda: turn is not None and turn.stopping is not None, TurnPerson(owner, admitted.call.turn_id),
        CallJobs(owner, admitted.attempt_id, admitted.call.call_id),
    )  # fmt: skip


def _done_reply(admitted: Admitted, done: Done) -> Tool:
    size = done.bytes if done.truncated and done.bytes is not None else len(done.text.encode("utf-8", "replace"))
    return Tool(
        admitted.call.turn_id, admitted.call.call_id, done.outcome, done.text, size, done.truncated, done.reason,
        admitted.attempt_id, done.output,
    )  # fmt: skip


def _reply(call: Call, attempt_id: str | None, outcome: Outcome, reason: str | None, text: str) -> Tool:
    text = text[:reply_bytes_max]
    size = len(text.encode("utf-8", "replace"))
    return Tool(call.turn_id, call.call_id, outcome, text, size, False, reason, attempt_id)


def _files_now(attempt: Attempt) -> tuple[FileChange, ...]:
    """What a satisfied check proves of the files: the intended content is there now."""
    return intended_changes(attempt.started.evidence if attempt.started else ())
