"""Permission: what policy, grants and the person say of a call, before it starts (rows G2, C5).

Policy first, without anybody: a denial ends the call, and what the mode, a grant or a rule lets pass asks nobody. Else
the person is shown what would happen, and the answer is recorded before anything starts; one that reaches beyond
the session is durable before that. No answer is never a yes, and an answer that was not offered is none.
"""

from __future__ import annotations

from typing import get_args

from steadyhand.core.admission import Admission, Admit, AskFirst, Deny, Wanted, permit
from steadyhand.core.grants import covered, standing_for
from steadyhand.core.questions import BEYOND_THE_SESSION, Option, PermissionQuestion
from steadyhand.core.record import Grant, Permission
from steadyhand.core.show import shown_arguments
from steadyhand.core.words import ended
from steadyhand.session.admitted import Admitted, before_start
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.session.saving import saving_first
from steadyhand.tools.tool import Preview, Refusal

ONCE = Option("once", "Allow once")
SESSION = Option("session", "Allow in this session")
WORKSPACE = Option("workspace", "Allow in this workspace")
USER = Option("user", "Allow in all workspaces")
REJECT = Option("reject", "Reject")
ANSWERS: tuple[Grant, ...] = get_args(Grant)


def admission_of(owner: Owner, wanted: Wanted) -> Admission:
    """What trust, rules, mode and the session's grants say of it now."""
    settings = owner.world.settings
    return permit(wanted, owner.ledger.mode, owner.ledger.grants, settings.rules, settings.trusted)


async def permitted(owner: Owner, turn: RunningTurn, admitted: Admitted) -> Preview | Refusal | None:
    """None: nobody had to be asked. The preview: what was shown and allowed."""
    admission = admission_of(owner, admitted.wanted)
    if isinstance(admission, Deny):
        return Refusal("policy", admission.text)
    if isinstance(admission, AskFirst) and admission.lasting:
        admission = Admit() if covered(await owner.world.grants.known(), admitted.wanted) else admission
    if admitted.confirmed_before:
        admission = AskFirst("you confirmed this very call before, so it would happen again", lasting=False)
    if not isinstance(admission, AskFirst):
        return None
    planned = admitted.planned
    preview = await saving_first(owner, turn.turn_id, planned.title, lambda: before_start(owner, planned.preview))
    if isinstance(preview, Refusal):
        return preview
    return await _ask(owner, turn, admitted, admission, preview)


async def _ask(
    owner: Owner, turn: RunningTurn, admitted: Admitted, admission: AskFirst, preview: Preview
) -> Preview | Refusal:
    """The question to the person; its answer is recorded before anything starts."""
    call = admitted.call
    question = PermissionQuestion(
        ask_id=owner.world.ids.new(), session_id=owner.session_id, turn_id=turn.turn_id, call_id=call.call_id,
        tool=call.tool, title=admitted.planned.title, arguments=shown_arguments(call.arguments),
        text=f"{admitted.planned.title}. {preview.text}\nAsked because {admission.why}.",
        options=_options(admission, admitted.wanted), diff=preview.diff,
    )  # fmt: skip
    with owner.parked():
        answer = await owner.world.editor.ask_permission(question) if owner.world.editor.attached() else None
    offered = {option.id for option in question.options}
    grant = next((a for a in ANSWERS if answer is not None and a == answer.option and a in offered), None)
    if grant is None:
        grant, answer = "reject", None
    if grant in BEYOND_THE_SESSION:
        grant = await _remembered(owner, admitted.wanted, grant)
    command, cwd = admitted.planned.command or (None, None)
    permission = Permission(
        admitted.attempt_id, call.call_id, grant, call.tool, answer.note if answer else None, command, cwd,
        None if answer is not None else "not_answered", admitted.confirmed_before if answer is not None else (),
    )  # fmt: skip
    await owner.append_or_show([permission])
    if grant != "reject":
        return preview
    note = f" They say: {ended(answer.note)}" if answer is not None and answer.note else ""
    if answer is None:
        return Refusal("not_answered", "The question whether it may run was not answered.")
    return Refusal("denied", f"The user said no.{note} Do not try the same again; ask what they want instead.")


def _options(admission: AskFirst, wanted: Wanted) -> tuple[Option, ...]:
    """Beyond the session only for what is of a workspace."""
    if not admission.lasting:
        return (ONCE, REJECT)
    return (ONCE, SESSION, REJECT) if wanted.root is None else (ONCE, SESSION, WORKSPACE, USER, REJECT)


async def _remembered(owner: Owner, wanted: Wanted, grant: Grant) -> Grant:
    """The grant that the answer comes to: `once` where it could not be kept for certain."""
    world = owner.world
    trouble = await world.grants.remember(standing_for(wanted, grant == "user", world.ids.new(), world.clock.now()))
    if trouble is None:
        return grant
    owner.say("warning", trouble)
    return "once"
