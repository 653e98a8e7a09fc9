"""Hold a call back while effects with an overlapping scope are unresolved, in any session of this process (B1, B4).

A held-back call asks the user. The turn is parked, the server inspects, and each uncertain effect is one question,
oldest first. The call goes on when no effect is left. A resolution that is made elsewhere counts as the answer: the
question is withdrawn, and what holds the call back is decided anew. Where nobody can be asked the call is refused with
`recovery_required`, which names the attempt and what can be done.

In a fork the unresolved effects of its origin hold back too (row S3). Those that this process cannot settle are put as
a question that can only be refused; it is withdrawn when they are settled where they are.
"""

from __future__ import annotations

import anyio

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt, ToolCall
from steadyhand.domain.permissions.policy import CallFacts
from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import NOTHING
from steadyhand.domain.recovery.start_order import oldest_first
from steadyhand.domain.views.questions import Choice, HeldBackQuestion, Option
from steadyhand.domain.views.recovery_snapshot import SnapshotContext, uncertain_view
from steadyhand.domain.views.render import display_arguments
from steadyhand.domain.views.sentences import recovery_required
from steadyhand.domain.views.types import Action, Uncertain
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.origin_reading import OriginDoubt, origin_doubt_text, origin_required_text
from steadyhand.session.recovery import resolve
from steadyhand.session.session import DoubtsUnknown, Session
from steadyhand.tools.contract import Refusal
from steadyhand.tools.workspace.places import overlapping_now
from steadyhand_values import frozen

OPTIONS = (
    Option("inspect", "Inspect"),
    Option("confirm", "Confirm"),
    Option("waive", "Continue without knowing"),
    Option("refuse", "Refuse"),
)
REFUSE = (Option("refuse", "Refuse"),)
ORIGIN_POLL_S = 0.5
"""How often a question looks whether another process has settled the effect that it is about."""
DOUBTS_WAIT_S_MAX = 60.0
"""How long an effect waits for the earlier sessions to be read; a lock alone takes up to 10 s (row A8)."""
DOUBTS_NOTICE_S = 1.0
"""After this long the user is told what a call waits for."""
WAITING_FOR_DOUBTS = "the earlier sessions of this folder are being read; an effect there may be uncertain."
UNKNOWN = (
    "So it is not known whether an uncertain effect touches the same files, and the call did not run. Try it again."
)
DENIED = Refusal("denied", "The user refused it while an uncertain effect is unresolved. Ask what they want instead.")


@frozen
class _QuestionWithdrawn:
    """The effect was resolved elsewhere while the question was open."""


async def find_blocking(session: Session, scope: Scope, except_for: str | None = None) -> list[tuple[Session, Attempt]]:
    """Return the effects that hold back what may touch this scope, oldest first, with their sessions [I6].

    `except_for` is the id of the attempt that a retry or restore acts on; it does not hold its own redo back."""
    found = {
        attempt.attempt_id: (neighbour, attempt)
        for neighbour in session.neighbours()
        for attempt in neighbour.ledger.uncertain()
        if attempt.attempt_id != except_for
    }
    if not found:
        return []
    scopes = {attempt_id: attempt.scope for attempt_id, (_, attempt) in found.items()}
    context = session.context
    blocking = await context.in_thread(overlapping_now, context.disk, scope, scopes)
    # Something may have been settled while the disk was asked.
    left = [found[attempt_id] for attempt_id in scopes if attempt_id in blocking and found[attempt_id][1].uncertain]
    return sorted(left, key=lambda pair: oldest_first(context.starts, pair[1]))


async def find_blocking_there(session: Session, scope: Scope) -> list[OriginDoubt]:
    """Return the effects of a fork's origin that hold back what may touch this scope and cannot be settled here (S3).

    The origin is read first."""
    await session.wait_for_origins()
    found = {doubt.attempt_id: doubt for doubt in session.origins.doubts()}
    if not found:
        return []
    scopes = {attempt_id: doubt.scope for attempt_id, doubt in found.items()}
    blocking = await session.context.in_thread(overlapping_now, session.context.disk, scope, scopes)
    return [found[attempt_id] for attempt_id in scopes if attempt_id in blocking]


async def clear_holdback(
    session: Session, turn: ActiveTurn, call: ToolCall, facts: CallFacts, title: str
) -> bool | Refusal:
    """Ask until nothing holds the call back any more.

    It first waits until the doubts are known (case 163). False: nothing held it back. True: something did and is
    resolved. Refusal: the call ends."""
    if facts.scope != NOTHING and (unknown := await wait_until_doubts_are_known(session, title)) is not None:
        return Refusal("recovery_required", unknown)
    held = False
    while True:
        there = await find_blocking_there(session, facts.scope)  # first: an origin that nobody owns is opened by it
        found = await find_blocking(session, facts.scope)
        if not found and not there:
            return held
        held = True
        if found:
            refusal = await _ask(session, turn, call, title, *found[0])
        else:
            refusal = await _ask_to_settle_there(session, turn, call, facts.scope, title, there[0])
        if refusal is not None:
            return refusal


async def wait_until_doubts_are_known(session: Session, title: str) -> str | None:
    """Wait until the earlier sessions were read; the user is told where that takes noticeably long.

    Return sentences why it is not known what is uncertain; None: it is known."""
    try:
        with anyio.fail_after(DOUBTS_WAIT_S_MAX):
            with anyio.move_on_after(DOUBTS_NOTICE_S) as first:
                await session.wait_for_doubts()
            if first.cancelled_caught:
                session.feed.notify_message("info", f"“{title}” is waiting: {WAITING_FOR_DOUBTS}")
                await session.wait_for_doubts()
    except TimeoutError:
        return f"The earlier sessions of this folder were not read within {DOUBTS_WAIT_S_MAX:.0f} seconds. {UNKNOWN}"
    except DoubtsUnknown as unknown:
        return f"{unknown} {UNKNOWN}"
    return None


async def _ask(
    session: Session, turn: ActiveTurn, call: ToolCall, title: str, other: Session, attempt: Attempt
) -> Refusal | None:
    """Ask the user once about one effect. None: decide anew what holds the call back; a refusal ends the call."""
    required = Refusal("recovery_required", recovery_required_text(session, other, attempt))
    if not session.context.editor.attached():
        return required
    with session.waiting_for_user():
        try:
            looked = await resolve.resolve(other, resolve.ResolutionRequest(attempt.attempt_id, "inspect"))
        except Refused as refused:
            if refused.kind == "turnRunning" and other.turn is not None:
                await _wait_until_inspectable(other, other.turn)
                return None
            return None if refused.kind == "alreadyResolved" else required
        assert looked.inspection is not None
        question = _question(session, turn, call, title, other, attempt, looked.inspection.text)
        answer = await _ask_until_resolved(session, other, attempt, question)
        if isinstance(answer, _QuestionWithdrawn):
            return None
        if answer is None:
            return required
        if answer.option == "refuse":
            return DENIED
        return await _settle_as_answered(answer.option, other, attempt, looked.inspection.inspection_id, required)


async def _settle_as_answered(
    option: str, other: Session, attempt: Attempt, inspection_id: str, required: Refusal
) -> Refusal | None:
    """Confirm or waive for exactly the inspection that the question showed. `inspect` asks again, with a new one."""
    action: Action
    match option:
        case "confirm":
            action = "confirm"
        case "waive":
            action = "waive"
        case _:
            return None
    try:
        await resolve.resolve(other, resolve.ResolutionRequest(attempt.attempt_id, action, inspection_id=inspection_id))
    except Refused as refused:
        return None if refused.kind in ("alreadyResolved", "inspectFirst") else required
    return None


async def _wait_until_inspectable(other: Session, running: ActiveTurn) -> None:
    """Wait until the other session's turn ends, or is parked because an effect of it is inspected."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await other.feed.wait_for_resolution()
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        await running.ended.wait()
        tasks.cancel_scope.cancel()


async def _ask_until_resolved(
    session: Session, other: Session, attempt: Attempt, question: HeldBackQuestion
) -> Choice | _QuestionWithdrawn | None:
    """Return the answer, or that the effect was resolved elsewhere before somebody answered."""
    outcome: list[Choice | _QuestionWithdrawn | None] = []
    async with anyio.create_task_group() as tasks:
        rejected = attempt.rejected

        async def watch() -> None:
            while attempt.uncertain and attempt.rejected == rejected:
                await other.feed.wait_for_resolution()
            outcome.append(_QuestionWithdrawn())
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        answer = await session.context.editor.ask_held_back(question)
        outcome.append(answer)
        tasks.cancel_scope.cancel()
    return outcome[0]


async def _ask_to_settle_there(
    session: Session, turn: ActiveTurn, call: ToolCall, scope: Scope, title: str, doubt: OriginDoubt
) -> Refusal | None:
    """Ask about an effect that only its own session can settle. None: decide anew; a refusal ends the call."""
    required = Refusal("recovery_required", origin_required_text(doubt))
    if not session.context.editor.attached():
        return required
    question = HeldBackQuestion(
        ask_id=session.context.ids.new(),
        session_id=session.session_id,
        turn_id=turn.turn_id,
        call_id=call.call_id,
        tool=call.tool,
        title=title,
        arguments=display_arguments(call.arguments),
        text=f"“{title}” is waiting: {origin_doubt_text(doubt)}",
        uncertain=_view_of(session, doubt),
        options=REFUSE,
    )
    outcome: list[Choice | _QuestionWithdrawn | None] = []
    with session.waiting_for_user():
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                # Polled: another process records there, and its journal does not announce it.
                while doubt.attempt_id in [one.attempt_id for one in await find_blocking_there(session, scope)]:  # noqa: ASYNC110
                    await anyio.sleep(ORIGIN_POLL_S)
                outcome.append(_QuestionWithdrawn())
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            outcome.append(await session.context.editor.ask_held_back(question))
            tasks.cancel_scope.cancel()
    answer = outcome[0]
    if isinstance(answer, _QuestionWithdrawn):
        return None
    return DENIED if answer is not None else required


def _view_of(session: Session, doubt: OriginDoubt) -> Uncertain | None:
    if doubt.attempt is None or doubt.ledger is None:
        return None
    stand = SnapshotContext(doubt.session_id, doubt.path, None, False, session.tool_context.root)
    return uncertain_view(doubt.attempt, doubt.ledger, stand)


def recovery_required_text(session: Session, other: Session, attempt: Attempt) -> str:
    """Return what the model reads where nobody can be asked."""
    return recovery_required(attempt.title, attempt.attempt_id, None if other is session else other.name)


def _question(
    session: Session, turn: ActiveTurn, call: ToolCall, title: str, other: Session, attempt: Attempt, finding: str
) -> HeldBackQuestion:
    where = "" if other is session else f" of session “{other.name}”"
    text = (
        f"“{title}” is waiting: an earlier effect{where} is uncertain and may touch the same files."
        f" {finding} Settle that effect, or refuse the call."
    )
    return HeldBackQuestion(
        ask_id=session.context.ids.new(),
        session_id=session.session_id,
        turn_id=turn.turn_id,
        call_id=call.call_id,
        tool=call.tool,
        title=title,
        arguments=display_arguments(call.arguments),
        text=text,
        uncertain=uncertain_view(attempt, other.ledger, other.snapshot_context()),
        options=OPTIONS,
    )
