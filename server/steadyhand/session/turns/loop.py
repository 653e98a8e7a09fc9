"""One turn: ask the model, run what it calls, until it stops.

The turn is the session's running one from its begin to its `ended` record. Whatever happens, every call gets its one
reply [I16], the turn gets one reason, and the user sees which files really changed (row G6). A cancel is recorded
before it takes effect, and no tool starts after it (row G8).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import anyio
import attrs

from steadyhand.domain.ledger.state import ToolCall
from steadyhand.domain.model.messages import FinishReason, UserMessage
from steadyhand.domain.model.response import ModelResponse
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from steadyhand.domain.records.record import Ended, EndReason, Proposed
from steadyhand.domain.views import render
from steadyhand.domain.views.claimed_files import find_false_claims
from steadyhand.domain.views.types import TurnEnded, UsageChanged, Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.execute import LoopGuard, run_call
from steadyhand.session.calls.replies import close_unrun
from steadyhand.session.session import Session
from steadyhand.session.turns.attachments import attach
from steadyhand.session.turns.budget import CapReached, usage_of, warn_if_near_cap
from steadyhand.session.turns.continuation import continue_answer
from steadyhand.session.turns.folders import follow_folders
from steadyhand.session.turns.model_request import ask_until_whole
from steadyhand.session.turns.room import StillTooLong, ask_with_room
from steadyhand.tools.workspace.paths import one_line

REQUESTS_PER_TURN_MAX = 100
TURN_S_MAX = 4 * 3600.0
CALLS_PER_ANSWER_MAX = 64
READS_AT_ONCE_MAX = 8
FINISH_S_MAX = 20.0
FINISH_CHARS_MAX = 60  # of a provider's finish reason that is shown

CUT = "The answer broke off before its end, so none of its calls run. Try again."
UNKNOWN_END = "The answer ended for an unknown reason{word}, so it may be incomplete. Check its end."
HALF_CALLS = "The answer ended for an unknown reason{word}. Calls of it that are not whole do not run."
EMPTY = "The model sent an empty answer{word}. Try again, or choose another model."
ONLY_REASONING = "The model reasoned but gave no answer{word}. Try again, or choose another model."

_NOT_WHOLE: dict[FinishReason | None, EndReason] = {None: "cut", "length": "length", "filtered": "filtered"}


async def run_turn(session: Session, turn: ActiveTurn) -> None:
    """Run the turn to its `ended` record. It raises only for a defect, or when the process ends."""
    reason: EndReason = "modelFailed"
    try:
        with turn.scope, anyio.move_on_after(TURN_S_MAX) as limit:
            reason = await _steps(session, turn)
        if limit.cancelled_caught:
            reason = _end_with(session, turn, "bound", f"The turn ran for {TURN_S_MAX:g} seconds and ends here.")
        if turn.scope.cancelled_caught:
            reason = turn.stopping or "cancelled"
    except Exception:
        text = "Something failed inside Steadyhand; its log says what. The turn ends."
        session.feed.notify(turn.turn_id, Warned("defect", text))
        raise
    finally:
        stopped = turn.stopping or ("closed" if session.is_closing else None)
        with anyio.CancelScope(shield=True), anyio.move_on_after(FINISH_S_MAX):
            await _finish(session, turn, stopped or reason)


async def _steps(session: Session, turn: ActiveTurn) -> EndReason:
    await follow_folders(session, turn)
    attached = await attach(session, turn)
    try:
        if turn.prompt.aside:
            return await _answer_quick_question(session, turn, UserMessage(turn.prompt.text, attached=attached))
        return await _ask_and_run(session, turn)
    except CapReached as reached:
        return _end_with(session, turn, "cost", str(reached))
    except StillTooLong as too_long:
        return _end_with(session, turn, "bound", str(too_long))


def _end_with(session: Session, turn: ActiveTurn, reason: EndReason, text: str) -> EndReason:
    """Warn now, and record the sentence with the end; return the reason."""
    turn.explain_end(text)
    session.feed.notify(turn.turn_id, Warned(reason, text))
    return reason


async def _ask_and_run(session: Session, turn: ActiveTurn) -> EndReason:
    for asked in range(REQUESTS_PER_TURN_MAX):
        answer = await ask_with_room(session, turn)
        if answer.trouble is not None:
            await _keep_unfinished(session, turn, answer)
            return _end_with(session, turn, "modelFailed", str(answer.trouble))
        calls = await _record_answer(session, turn, answer)
        if answer.finish == "length" and not calls:
            return await continue_answer(session, turn, answer, requests_left=asked + 1 < REQUESTS_PER_TURN_MAX)
        if answer.finish is None or answer.finish in ("length", "filtered"):
            if answer.finish is None:
                _end_with(session, turn, "cut", CUT)
            for call in calls:  # an answer that is not whole runs nothing (row T6)
                await close_unrun(session, call, answer.finish or "cut")
            return _NOT_WHOLE[answer.finish]
        if not calls:
            _warn_of_end(session, turn, answer, is_first=asked == 0)
            return "done"
        if answer.finish == "unknown" and any(map(_is_half, calls)):
            session.feed.notify(turn.turn_id, Warned("unknownEnd", HALF_CALLS.format(word=_word(answer))))
        try:
            await _run_calls(session, turn, calls[:CALLS_PER_ANSWER_MAX])
        except LoopGuard:
            return _end_with(session, turn, "bound", "The turn repeats the same calls and ends here.")
        for call in calls[CALLS_PER_ANSWER_MAX:]:
            await close_unrun(session, call, "bound")
    return _end_with(session, turn, "bound", f"The turn made {REQUESTS_PER_TURN_MAX} requests and ends here.")


async def _answer_quick_question(session: Session, turn: ActiveTurn, question: UserMessage) -> EndReason:
    """Answer a quick question: one request that may call nothing; only the usage is recorded (row S2)."""
    answer = await ask_until_whole(session, turn, question)
    if answer.may_be_billed:
        await _count(session, turn, answer)
    if answer.trouble is not None:
        return _end_with(session, turn, "modelFailed", str(answer.trouble))
    if answer.calls:
        text = "The model asked for tools, but a quick question has none. Nothing ran."
        session.feed.notify(turn.turn_id, Warned("aside", text))
    else:
        _warn_of_end(session, turn, answer)
    if answer.finish is None:
        session.feed.notify(turn.turn_id, Warned("cut", CUT))
    return _NOT_WHOLE.get(answer.finish, "done")


def _warn_of_end(session: Session, turn: ActiveTurn, answer: ModelResponse, is_first: bool = True) -> None:
    """Warn if the answer ended for an unknown reason (row P2), or if the turn ends without having shown or done
    anything (case 110). `is_first`: nothing came before this answer."""
    if is_first and not answer.text.strip() and answer.finish in ("stop", "unknown"):
        text = ONLY_REASONING if answer.is_shown else EMPTY
        session.feed.notify(turn.turn_id, Warned("emptyAnswer", text.format(word=_word(answer))))
    elif answer.finish == "unknown":
        session.feed.notify(turn.turn_id, Warned("unknownEnd", UNKNOWN_END.format(word=_word(answer))))


def _word(answer: ModelResponse) -> str:
    return f" (“{one_line(answer.finish_word, FINISH_CHARS_MAX)}”)" if answer.finish_word.strip() else ""


def _is_half(call: ToolCall) -> bool:
    return isinstance(parse_arguments(call.arguments), BadArguments)


async def _count(session: Session, turn: ActiveTurn, answer: ModelResponse) -> None:
    await session.log.append_or_show([usage_of(session, turn.turn_id, answer.usage)])
    session.feed.notify(turn.turn_id, UsageChanged(usage_view(session.ledger)))
    warn_if_near_cap(session, turn)


async def _keep_unfinished(session: Session, turn: ActiveTurn, answer: ModelResponse) -> None:
    """Record what was shown of an answer that is not whole; its calls do not run."""
    if answer.is_shown and not turn.prompt.aside:
        answer.cut()
        await _record_answer(session, turn, answer)
    elif answer.may_be_billed:
        await _count(session, turn, answer)


async def _record_answer(session: Session, turn: ActiveTurn, answer: ModelResponse) -> list[ToolCall]:
    """Record the assistant message before anything is done for its calls (case 26); return the calls."""
    proposed = tuple(
        Proposed(
            call_id=session.context.ids.new(), tool=call.tool, arguments=call.arguments, provider_id=call.provider_id
        )
        for call in answer.calls
    )
    message = answer.record(calls=proposed)
    await session.log.append_or_show([message, usage_of(session, turn.turn_id, answer.usage)])
    session.feed.notify(turn.turn_id, UsageChanged(usage_view(session.ledger)))
    warn_if_near_cap(session, turn)
    for call in proposed:
        session.feed.notify_call(call.call_id)
    return [session.ledger.calls[call.call_id] for call in proposed]


async def _run_calls(session: Session, turn: ActiveTurn, calls: Sequence[ToolCall]) -> None:
    """Run the calls in order: reads that follow each other at the same time, effects one by one (row G3)."""
    for reads, group in groupby(calls, key=lambda call: _is_read(session, call)):
        if not reads:
            for call in group:
                await run_call(session, turn, call)
            continue
        limiter = anyio.CapacityLimiter(READS_AT_ONCE_MAX)
        guarded: list[LoopGuard] = []
        async with anyio.create_task_group() as tasks:
            for call in group:
                tasks.start_soon(_run_read, session, turn, call, limiter, guarded)
        if guarded:
            raise guarded[0]


async def _run_read(
    session: Session, turn: ActiveTurn, call: ToolCall, limiter: anyio.CapacityLimiter, guarded: list[LoopGuard]
) -> None:
    async with limiter:
        try:
            await run_call(session, turn, call)
        except LoopGuard as guard:
            guarded.append(guard)


def _is_read(session: Session, call: ToolCall) -> bool:
    tool = session.context.tools.get(call.tool)
    return tool is not None and tool.effect == "reads"


async def _finish(session: Session, turn: ActiveTurn, reason: EndReason) -> None:
    """Close open calls, record the end, notify."""
    if turn.unfinished is not None:
        await _keep_unfinished(session, turn, turn.unfinished)
    why = {"cancelled": "cancelled", "closed": "closed"}.get(reason, "bound" if reason == "bound" else reason)
    for call in session.ledger.calls_of_turn(turn.turn_id):
        await close_unrun(session, call, why)
    if turn.not_kept:
        reason = "journalBroken"
    text = turn.why if turn.stopping is None and not turn.not_kept else None
    if not await session.log.append_or_show([Ended(turn_id=turn.turn_id, reason=reason, text=text)], barrier=True):
        reason = "journalBroken"
    session.end_turn(turn.turn_id)
    session.feed.notify(turn.turn_id, _turn_ended(session, turn, reason))
    if any(one.steers == turn.turn_id for one in session.ledger.queue.values()):
        session.feed.notify_queue()  # they may begin now, or stay paused
    session.feed.notify_changes()
    await session.log.keep_summary()


def _turn_ended(session: Session, turn: ActiveTurn, reason: EndReason) -> TurnEnded:
    """Return the end with the files really changed, and those that the answer falsely claims (row G6)."""
    ended = render.turn_ended(session.ledger, turn.turn_id, reason)
    paths = [path for file in ended.changed for path in (file.path, file.from_) if path is not None]
    unclaimed = find_false_claims(render.answer_text(session.ledger, turn.turn_id), paths) or None
    return attrs.evolve(ended, unclaimed=unclaimed)
