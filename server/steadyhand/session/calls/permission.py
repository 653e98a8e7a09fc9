"""Permission: whether policy, grants and the user allow a call, before it starts (rows G2, C5).

The policy decides first: a denial ends the call, and what the mode, a grant or a rule allows is not asked about. Else
the user is shown what would happen, and the answer is recorded before anything starts. A grant beyond the session is
durable before the call starts. No answer is never a yes, and an answer that was not offered counts as none.
"""

from __future__ import annotations

from typing import get_args

import attrs

from steadyhand.domain.permissions.grants import grant_for, is_covered
from steadyhand.domain.permissions.policy import Admission, Admit, AskFirst, CallFacts, Deny, decide_admission
from steadyhand.domain.records.record import Grant, Permission
from steadyhand.domain.views.questions import BEYOND_THE_SESSION, Option, PermissionQuestion
from steadyhand.domain.views.render import display_arguments
from steadyhand.domain.views.sentences import as_sentence
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.known_files import give_known_files
from steadyhand.session.calls.prepared import PreparedCall, facts_of, prepare_in_thread
from steadyhand.session.calls.save_first import with_saved_documents
from steadyhand.session.session import Session
from steadyhand.tools.contract import Preview, Refusal
from steadyhand.tools.writes.planned_write import PlannedFileEffect

ONCE = Option("once", "Allow once")
SESSION = Option("session", "Allow in this session")
WORKSPACE = Option("workspace", "Allow in this workspace")
USER = Option("user", "Allow in all workspaces")
REJECT = Option("reject", "Reject")
ANSWERS: tuple[Grant, ...] = get_args(Grant)


def admission_of(session: Session, facts: CallFacts) -> Admission:
    """Return what trust, rules, mode and the session's grants decide now."""
    grants = [grant for grant in session.ledger.grants if _holds_in(session, grant, facts.folder)]
    rules = session.context.settings.rules
    return decide_admission(facts, session.ledger.mode, grants, rules, _is_trusted(session, facts))


def _holds_in(session: Session, grant: Permission, folder: str | None) -> bool:
    """Return whether a grant of the session was given in this folder of the workspace (row S11)."""
    if grant.command is not None:
        return True  # it covers one command in one folder
    attempt, tool_context = session.ledger.attempts.get(grant.attempt_id), session.tool_context
    if attempt is None or not attempt.scope.paths:
        return folder == tool_context.root
    return all(tool_context.folder_of(path) == folder for path in attempt.scope.paths)


def _is_trusted(session: Session, facts: CallFacts) -> bool:
    """Return whether the user trusts each folder that the call may change (rows G2, S11)."""
    context, tool_context = session.context, session.tool_context
    if not context.settings.trusted:
        return False
    if facts.command is not None or facts.scope.everything or not facts.scope.paths:
        return tool_context.is_trusted()
    found = {tool_context.folder_of(path) or tool_context.root for path in facts.scope.paths}
    return all(tool_context.trusts(folder) for folder in found if folder is not None)


async def ask_permission(session: Session, turn: ActiveTurn, prepared: PreparedCall) -> Preview | Refusal | None:
    """Decide whether the call may run. None: nobody had to be asked. Preview: what the user saw and allowed."""
    admission = admission_of(session, prepared.facts)
    if isinstance(admission, Deny):
        return Refusal("policy", admission.text)
    if isinstance(admission, AskFirst) and admission.lasting:
        admission = Admit() if is_covered(await session.context.grants.load_all(), prepared.facts) else admission
    if prepared.confirmed_before:
        admission = AskFirst("you confirmed the same call before, so it would happen a second time", lasting=False)
    give_known_files(session, prepared)
    if not isinstance(admission, AskFirst):
        why = await _why_ask_unread(session, turn, prepared)
        if why is None or isinstance(why, Refusal):
            return why
        admission = AskFirst(why, lasting=False)
    preview = await _preview(session, turn, prepared)
    if isinstance(preview, Refusal):
        return preview
    return await _ask(session, turn, prepared, admission, preview)


async def _preview(session: Session, turn: ActiveTurn, prepared: PreparedCall) -> Preview | Refusal:
    planned = prepared.planned
    return await with_saved_documents(
        session, turn.turn_id, planned.title, lambda: prepare_in_thread(session, planned.preview)
    )


async def _why_ask_unread(session: Session, turn: ActiveTurn, prepared: PreparedCall) -> str | Refusal | None:
    """Return why a call that nothing else asks about is asked about all the same (row V3), or why it is refused."""
    planned = prepared.planned
    if not isinstance(planned, PlannedFileEffect):
        return None
    why = await with_saved_documents(
        session, turn.turn_id, planned.title, lambda: prepare_in_thread(session, planned.why_ask)
    )
    if isinstance(why, str) and not session.context.editor.attached():
        return Refusal("stale", f"The file exists, {why}, and nobody is there to be asked; read it first.")
    return why


async def look_after_permission(
    session: Session, turn: ActiveTurn, prepared: PreparedCall, shown: Preview | None
) -> tuple[PreparedCall, Preview | None] | Refusal:
    """Look at a path that must not be looked at before its permission. Ask again to write it in place (row W11), or to
    replace what the model was never shown whole (row V3).

    Return the call with what is known now, and what the user saw last."""
    planned = prepared.planned
    if not isinstance(planned, PlannedFileEffect) or not planned.is_unseen:
        return prepared, shown
    planned.is_permitted = True
    refusal = await prepare_in_thread(session, planned.find_in_place)
    if refusal is not None:
        return refusal
    if planned.in_place is not None:
        prepared = attrs.evolve(prepared, facts=facts_of(session, prepared.call.tool, planned))
        again = await ask_permission(session, turn, prepared)
        return again if isinstance(again, Refusal) else (prepared, again)
    give_known_files(session, prepared)
    why = await _why_ask_unread(session, turn, prepared)
    if why is None or isinstance(why, Refusal):
        return (prepared, shown) if why is None else why
    seen = await _preview(session, turn, prepared)
    asked = AskFirst(why, lasting=False)
    allowed = seen if isinstance(seen, Refusal) else await _ask(session, turn, prepared, asked, seen)
    return allowed if isinstance(allowed, Refusal) else (prepared, allowed)


async def _ask(
    session: Session, turn: ActiveTurn, prepared: PreparedCall, admission: AskFirst, preview: Preview
) -> Preview | Refusal:
    """Ask the user and record the answer."""
    call = prepared.call
    note = "" if preview.note in (None, admission.why) else f" Note that {preview.note}."
    question = PermissionQuestion(
        ask_id=session.context.ids.new(),
        session_id=session.session_id,
        turn_id=turn.turn_id,
        call_id=call.call_id,
        tool=call.tool,
        title=prepared.planned.title,
        arguments=display_arguments(call.arguments),
        text=f"{prepared.planned.title}. {preview.text}{note}\nAsked because {admission.why}.",
        options=_options_for(admission, prepared.facts),
        diff=preview.diff,
    )
    with session.waiting_for_user():
        answer = await session.context.editor.ask_permission(question) if session.context.editor.attached() else None
    offered = {option.id for option in question.options}
    grant = next((a for a in ANSWERS if answer is not None and a == answer.option and a in offered), None)
    if grant is None:
        grant, answer = "reject", None
    if grant in BEYOND_THE_SESSION:
        grant = await _store_grant(session, prepared.facts, grant)
    command, cwd = prepared.planned.command or (None, None)
    permission = Permission(
        attempt_id=prepared.attempt_id,
        call_id=call.call_id,
        answer=grant,
        tool=call.tool,
        note=answer.note if answer else None,
        command=command,
        cwd=cwd,
        reason=None if answer is not None else "not_answered",
        confirmed_before=prepared.confirmed_before if answer is not None else (),
        unconfined=prepared.facts.unconfined,
    )
    await session.log.append_or_show([permission])
    if grant != "reject":
        return preview
    note = f" They say: {as_sentence(answer.note)}" if answer is not None and answer.note else ""
    if answer is None:
        return Refusal("not_answered", "The user did not answer the permission question.")
    return Refusal("denied", f"The user said no.{note} Do not try the same again; ask what they want instead.")


def _options_for(admission: AskFirst, facts: CallFacts) -> tuple[Option, ...]:
    """Return the answers that are offered; grants beyond the session only inside a workspace."""
    if not admission.lasting:
        return (ONCE, REJECT)
    if facts.unconfined:
        return (ONCE, REJECT) if facts.folder is None else (ONCE, WORKSPACE, REJECT)
    if facts.root is not None and facts.folder is None:
        return (ONCE, REJECT)  # it is in several folders, and a grant holds in one
    return (ONCE, SESSION, REJECT) if facts.folder is None else (ONCE, SESSION, WORKSPACE, USER, REJECT)


async def _store_grant(session: Session, facts: CallFacts, grant: Grant) -> Grant:
    """Store a grant beyond the session; return `once` instead where that is not certain."""
    context = session.context
    trouble = await context.grants.remember(grant_for(facts, grant == "user", context.ids.new(), context.clock.now()))
    if trouble is None:
        return grant
    session.feed.notify_message("warning", trouble)
    return "once"
