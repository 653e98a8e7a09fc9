"""One turn: ask the model, carry out what it calls, until it stops.

`run_turn` holds the lease from its begin to its `ended` record. Whatever happens, every call gets its one reply
[I16], the turn gets one reason, and the person is told which files really changed (row G6). A cancel is recorded
before it takes effect, and no tool starts after it (row G8).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import anyio

from steadyhand.core import show
from steadyhand.core.claims import unclaimed
from steadyhand.core.folded import Call
from steadyhand.core.model import FinishReason, UserMessage
from steadyhand.core.record import Ended, EndReason, Proposed
from steadyhand.core.usage import usage_view
from steadyhand.core.views import TurnEnded, UsageTold, Warned
from steadyhand.session.asking import Answer, ask_until_whole
from steadyhand.session.attaching import attach
from steadyhand.session.budget import CapReached, say_if_near, usage_of
from steadyhand.session.call import LoopGuard, carry_out, close_unrun
from steadyhand.session.continuing import rest_of
from steadyhand.session.owner import Owner, RunningTurn

requests_per_turn_max = 100
turn_s_max = 4 * 3600.0
calls_per_answer_max = 64
reads_at_once_max = 8
finish_s_max = 20.0

CUT = "The answer broke off before its end, and nothing that it proposes is run: send the prompt again."
UNKNOWN_END = "The answer ended for a reason that is not known here, so it may not be whole: read its end."

_NOT_WHOLE: dict[FinishReason | None, EndReason] = {None: "cut", "length": "length", "filtered": "filtered"}


async def run_turn(owner: Owner, turn: RunningTurn) -> None:
    """The turn from its first request to its `ended` record; never raises but for the end of the process."""
    reason: EndReason = "modelFailed"
    try:
        with turn.scope, anyio.move_on_after(turn_s_max) as limit:
            reason = await _steps(owner, turn)
        if limit.cancelled_caught:
            reason = _ended_for(owner, turn, "bound", f"The turn ran for {turn_s_max:g} seconds and ends here.")
        if turn.scope.cancelled_caught:
            reason = turn.stopping or "cancelled"
    except Exception:
        text = "Something failed inside Steadyhand; its log says what. The turn ends."
        owner.tell(turn.turn_id, Warned("defect", text))
        raise
    finally:
        stopped = turn.stopping or ("closed" if owner.closing else None)
        with anyio.CancelScope(shield=True), anyio.move_on_after(finish_s_max):
            await _finish(owner, turn, stopped or reason)


async def _steps(owner: Owner, turn: RunningTurn) -> EndReason:
    attached = await attach(owner, turn)
    try:
        if turn.prompt.aside:
            return await _answer_aside(owner, turn, UserMessage(turn.prompt.text, attached=attached))
        return await _work(owner, turn)
    except CapReached as reached:
        return _ended_for(owner, turn, "cost", str(reached))


def _ended_for(owner: Owner, turn: RunningTurn, reason: EndReason, text: str) -> EndReason:
    """The reason, with its sentence told now and recorded with the end."""
    turn.why = text
    owner.tell(turn.turn_id, Warned(reason, text))
    return reason


async def _work(owner: Owner, turn: RunningTurn) -> EndReason:
    for asked in range(requests_per_turn_max):
        answer = await ask_until_whole(owner, turn)
        if answer.trouble is not None:
            await _keep_unfinished(owner, turn, answer)
            return _ended_for(owner, turn, "modelFailed", str(answer.trouble))
        calls = await _record_answer(owner, turn, answer)
        if answer.finish == "length" and not calls:
            return await rest_of(owner, turn, answer, requests_left=asked + 1 < requests_per_turn_max)
        if answer.finish is None or answer.finish in ("length", "filtered"):
            if answer.finish is None:
                _ended_for(owner, turn, "cut", CUT)
            for call in calls:  # an answer that is not whole runs nothing (row T6)
                await close_unrun(owner, call, answer.finish or "cut")
            return _NOT_WHOLE[answer.finish]
        if not calls:
            _warn_of_unknown_end(owner, turn, answer)
            return "done"
        try:
            await _carry_out_batch(owner, turn, calls[:calls_per_answer_max])
        except LoopGuard:
            return _ended_for(owner, turn, "bound", "The turn asks for the same again and again and ends here.")
        for call in calls[calls_per_answer_max:]:
            await close_unrun(owner, call, "bound")
    return _ended_for(owner, turn, "bound", f"The turn made {requests_per_turn_max} requests and ends here.")


async def _answer_aside(owner: Owner, turn: RunningTurn, question: UserMessage) -> EndReason:
    """One request that may call nothing; of its answer the usage alone is kept (row S2)."""
    answer = await ask_until_whole(owner, turn, question)
    if answer.perhaps_billed:
        await _count(owner, turn, answer)
    if answer.trouble is not None:
        return _ended_for(owner, turn, "modelFailed", str(answer.trouble))
    if answer.calls:
        text = "The model asked for tools, and a quick question has none; nothing was run."
        owner.tell(turn.turn_id, Warned("aside", text))
    _warn_of_unknown_end(owner, turn, answer)
    if answer.finish is None:
        owner.tell(turn.turn_id, Warned("cut", CUT))
    return _NOT_WHOLE.get(answer.finish, "done")


def _warn_of_unknown_end(owner: Owner, turn: RunningTurn, answer: Answer) -> None:
    """Of an answer that came to its end for a reason that is not known here (row P2)."""
    if answer.finish == "unknown":
        owner.tell(turn.turn_id, Warned("unknownEnd", UNKNOWN_END))


async def _count(owner: Owner, turn: RunningTurn, answer: Answer) -> None:
    await owner.append_or_show([usage_of(owner, turn.turn_id, answer.usage)])
    owner.tell(turn.turn_id, UsageTold(usage_view(owner.ledger)))
    say_if_near(owner, turn)


async def _keep_unfinished(owner: Owner, turn: RunningTurn, answer: Answer) -> None:
    """What was shown of an answer that did not become whole is kept; its calls do not run."""
    if answer.shown and not turn.prompt.aside:
        answer.finish = None
        await _record_answer(owner, turn, answer)
    elif answer.perhaps_billed:
        await _count(owner, turn, answer)


async def _record_answer(owner: Owner, turn: RunningTurn, answer: Answer) -> list[Call]:
    """The assistant message stands in the journal before any of its calls is touched (case 26)."""
    proposed = tuple(
        Proposed(owner.world.ids.new(), call.tool, call.arguments, call.provider_id) for call in answer.calls
    )
    message = answer.record(calls=proposed)
    await owner.append_or_show([message, usage_of(owner, turn.turn_id, answer.usage)])
    owner.tell(turn.turn_id, UsageTold(usage_view(owner.ledger)))
    say_if_near(owner, turn)
    for call in proposed:
        owner.tell_call(call.call_id)
    return [owner.ledger.calls[call.call_id] for call in proposed]


async def _carry_out_batch(owner: Owner, turn: RunningTurn, calls: Sequence[Call]) -> None:
    """Neighbouring reads side by side, effects one after another, all in order (row G3)."""
    for reads, group in groupby(calls, key=lambda call: _only_reads(owner, call)):
        if not reads:
            for call in group:
                await carry_out(owner, turn, call)
            continue
        limiter = anyio.CapacityLimiter(reads_at_once_max)
        guarded: list[LoopGuard] = []
        async with anyio.create_task_group() as tasks:
            for call in group:
                tasks.start_soon(_read_aside, owner, turn, call, limiter, guarded)
        if guarded:
            raise guarded[0]


async def _read_aside(
    owner: Owner, turn: RunningTurn, call: Call, limiter: anyio.CapacityLimiter, guarded: list[LoopGuard]
) -> None:
    async with limiter:
        try:
            await carry_out(owner, turn, call)
        except LoopGuard as guard:
            guarded.append(guard)


def _only_reads(owner: Owner, call: Call) -> bool:
    tool = owner.world.tools.get(call.tool)
    return tool is not None and tool.effect == "reads"


async def _finish(owner: Owner, turn: RunningTurn, reason: EndReason) -> None:
    """Close what is open, record the end, tell it."""
    if isinstance(turn.unfinished, Answer):
        await _keep_unfinished(owner, turn, turn.unfinished)
    why = {"cancelled": "cancelled", "closed": "closed"}.get(reason, "bound" if reason == "bound" else reason)
    for call in [call for call in owner.ledger.calls.values() if call.turn_id == turn.turn_id]:
        await close_unrun(owner, call, why)
    if turn.not_kept:
        reason = "journalBroken"
    text = turn.why if turn.stopping is None and not turn.not_kept else None
    if not await owner.append_or_show([Ended(turn.turn_id, reason, text)], barrier=True):
        reason = "journalBroken"
    owner.turn = None
    owner.tell(turn.turn_id, _ended(owner, turn, reason))
    owner.tell_changes()
    await owner.keep_summary()


def _ended(owner: Owner, turn: RunningTurn, reason: EndReason) -> TurnEnded:
    """With the files really changed, and those that the answer claims beyond them (row G6)."""
    changed = show.changed_in_turn(owner.ledger, turn.turn_id)
    paths = [path for file in changed for path in (file.path, file.from_) if path is not None]
    return TurnEnded(reason, changed, unclaimed(show.last_text(owner.ledger, turn.turn_id), paths) or None)
