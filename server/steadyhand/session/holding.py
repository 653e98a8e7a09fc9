"""What holds a call back: unresolved effects whose scope overlaps, in every session of the same workspace (B1, B4).

A held-back call is a question, not a wall: while somebody can be asked, the turn is parked, the server inspects, and
each uncertain effect is one question, oldest first; the call is admitted when none is left. A resolution by any other
door counts as the answer: the question is withdrawn and admission decided anew. Without anybody to ask the call is
refused with `recovery_required`, naming the attempt and every way out.
"""

from __future__ import annotations

import anyio
import attrs

from steadyhand.core.admission import Wanted, holding_back
from steadyhand.core.folded import Attempt, Call
from steadyhand.core.questions import Answer, HeldBackQuestion, Option
from steadyhand.core.refusal import Refused
from steadyhand.core.show import shown_arguments
from steadyhand.core.snapshot import uncertain_view
from steadyhand.core.views import Action
from steadyhand.core.words import recovery_required
from steadyhand.session import resolving
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.tools.tool import Refusal

OPTIONS = (
    Option("inspect", "Inspect"),
    Option("confirm", "Confirm"),
    Option("waive", "Continue without knowing"),
    Option("refuse", "Refuse"),
)
DENIED = Refusal("denied", "The user refused it while an uncertain effect is unresolved. Ask what they want instead.")


@attrs.frozen
class _Withdrawn:
    """Another door answered."""


def unresolved(owner: Owner, wanted: Wanted) -> list[tuple[Owner, Attempt]]:
    """All that holds the call back, oldest first, in every session of the workspace."""
    found = [
        (neighbour, attempt)
        for neighbour in owner.neighbours()
        for attempt in holding_back(wanted, neighbour.ledger.uncertain())
    ]
    return sorted(found, key=lambda pair: pair[1].started_at or pair[1].at)


async def clear_way(owner: Owner, turn: RunningTurn, call: Call, wanted: Wanted, title: str) -> bool | Refusal:
    """False: nothing held it back. True: it was held back and the way is clear now. Refusal: it stays held back."""
    held = False
    while found := unresolved(owner, wanted):
        held = True
        refusal = await _ask(owner, turn, call, title, *found[0])
        if refusal is not None:
            return refusal
    return held


async def _ask(
    owner: Owner, turn: RunningTurn, call: Call, title: str, other: Owner, attempt: Attempt
) -> Refusal | None:
    """One round with the person about one effect. None: look again; a refusal ends the call."""
    required = Refusal("recovery_required", required_text(owner, other, attempt))
    if not owner.world.editor.attached():
        return required
    with owner.parked():
        try:
            looked = await resolving.resolve(other, resolving.Wanted(attempt.attempt_id, "inspect"))
        except Refused as refused:
            if refused.kind == "turnRunning" and other.turn is not None:
                await _until_it_can_be_seen(other, other.turn)
                return None
            return None if refused.kind == "alreadyResolved" else required
        assert looked.inspection is not None
        question = _question(owner, turn, call, title, other, attempt, looked.inspection.text)
        answer = await _first_of(owner, other, attempt, question)
        if isinstance(answer, _Withdrawn):
            return None
        if answer is None:
            return required
        if answer.option == "refuse":
            return DENIED
        return await _act(answer.option, other, attempt, looked.inspection.inspection_id, required)


async def _act(option: str, other: Owner, attempt: Attempt, inspection_id: str, required: Refusal) -> Refusal | None:
    """`inspect` looks anew by asking again; `confirm` and `waive` rest on the inspection that the question showed."""
    action: Action
    match option:
        case "confirm":
            action = "confirm"
        case "waive":
            action = "waive"
        case _:
            return None
    try:
        await resolving.resolve(other, resolving.Wanted(attempt.attempt_id, action, inspection_id=inspection_id))
    except Refused as refused:
        return None if refused.kind in ("alreadyResolved", "inspectFirst") else required
    return None


async def _until_it_can_be_seen(other: Owner, running: RunningTurn) -> None:
    """The other session's turn ends, or an effect of it was looked at, so that it is parked."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            await other.next_resolution()
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        await running.ended.wait()
        tasks.cancel_scope.cancel()


async def _first_of(
    owner: Owner, other: Owner, attempt: Attempt, question: HeldBackQuestion
) -> Answer | _Withdrawn | None:
    """The answer to the question, or that another door resolved the effect meanwhile."""
    outcome: list[Answer | _Withdrawn | None] = []
    async with anyio.create_task_group() as tasks:
        rejected = attempt.rejected

        async def watch() -> None:
            while attempt.uncertain and attempt.rejected == rejected:
                await other.next_resolution()
            outcome.append(_Withdrawn())
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        answer = await owner.world.editor.ask_held_back(question)
        outcome.append(answer)
        tasks.cancel_scope.cancel()
    return outcome[0]


def required_text(owner: Owner, other: Owner, attempt: Attempt) -> str:
    return recovery_required(attempt.title, attempt.attempt_id, None if other is owner else other.name())


def _question(
    owner: Owner, turn: RunningTurn, call: Call, title: str, other: Owner, attempt: Attempt, finding: str
) -> HeldBackQuestion:
    where = "" if other is owner else f" of session “{other.name()}”"
    text = (
        f"“{title}” waits, because an earlier effect{where} is uncertain and may touch the same files."
        f" {finding} Settle that effect, or refuse the call."
    )
    return HeldBackQuestion(
        ask_id=owner.world.ids.new(), session_id=owner.session_id, turn_id=turn.turn_id, call_id=call.call_id,
        tool=call.tool, title=title, arguments=shown_arguments(call.arguments), text=text,
        uncertain=uncertain_view(attempt, other.ledger, other.stand()), options=OPTIONS,
    )  # fmt: skip
