"""Slash commands in chat text: answered by the events of a turn, without a model request.

`/recovery`, `/stats`, `/jobs`, `/output`, `/rewind`, `/permissions`, `/stop`, `/resume` and `/help` are never queued:
they run beside a turn, also a parked one (row B4). Anything else that begins with `/` is answered in its turn with the
list of commands.

`/recovery` covers every open session of the workspace, as holding back does (row B1).
"""

from __future__ import annotations

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Assistant, Ended, EndReason
from steadyhand.domain.views.recovery_snapshot import is_inspected
from steadyhand.domain.views.statistics import statistics_text
from steadyhand.domain.views.types import Action, Began, TextDelta, TurnEnded, Uncertain, Warned
from steadyhand.session.calls.cancel import stop_turn
from steadyhand.session.jobs.listing import jobs_text, list_jobs, stop_listed_job
from steadyhand.session.jobs.stored_output import answer_output_command
from steadyhand.session.recovery.resolve import ResolutionRequest, refuse_beforehand
from steadyhand.session.service.grant_list import NOTHING, forget, grant_text, list_grants, select_grants
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.service.rewind_command import answer_rewind
from steadyhand.session.session import Session

HELP = (
    "/help: this list.\n"
    "/stop: stop the running turn. Prompts that wait are paused.\n"
    "/resume: let the prompts that wait begin.\n"
    "/recovery: list uncertain effects. /recovery inspect|confirm|reject|waive|restore|retry"
    " [ID]: inspect one, then settle it, restore the earlier content, or retry it.\n"
    "/stats: count uncertain effects, and who settled them.\n"
    "/jobs: list running background commands. /jobs stop ID: end one and all that it started.\n"
    "/output: list outputs that were too long for the chat. /output ID: show one again.\n"
    "/compact: replace the earlier conversation by a summary. /compact FOCUS: say what it should keep.\n"
    "/rewind: list turns that changed files. /rewind ID [files|conversation|both]: go back to before that turn.\n"
    "/permissions: list what runs here without asking. /permissions forget ID|all: remove permissions."
)
ACTIONS: tuple[Action, ...] = ("inspect", "confirm", "reject", "waive", "retry", "restore")
DONE: dict[Action, str] = {
    "inspect": "inspected.",
    "confirm": "settled as the inspection found it.",
    "reject": "rejected: do not repeat it. It stays uncertain.",
    "waive": "waived: work continues without knowing.",
    "retry": "retried",
    "restore": "restored",
}
UNUSED = "The attachments are not used: a slash command asks no model."
ID_DIGITS_MIN = 4
AT_ONCE = ("/recovery", "/stats", "/jobs", "/output", "/rewind", "/permissions", "/stop", "/resume", "/help")


def runs_beside_turn(text: str) -> bool:
    """Return whether the command runs beside a running turn."""
    return text.startswith("/") and _word(text) in AT_ONCE


async def answer_command(session: Session, turn_id: str, prompt: Prompt) -> None:
    """Run the whole turn of a slash command, from its first event to its end."""
    text, word = prompt.text, _word(prompt.text)
    turn = session.ledger.turns[turn_id]
    if word in AT_ONCE:
        session.feed.notify(turn_id, Began(turn.client_message_id))
    if prompt.attachments:
        session.feed.notify(turn_id, Warned("attachment", UNUSED))
    said = await _answer_text(session, word, text)
    message_id = session.context.ids.new()
    session.feed.notify(turn_id, TextDelta(message_id, said))
    reason: EndReason = "done"
    with anyio.CancelScope(shield=True):
        message = Assistant(turn_id=turn_id, message_id=message_id, text=said, finish="stop")
        if not await session.log.append_or_show([message, Ended(turn_id=turn_id, reason="done")], barrier=True):
            reason = "journalBroken"
        session.end_side_turn(turn_id)
        session.end_turn(turn_id)
        session.feed.notify(turn_id, TurnEnded(reason, ()))
        session.feed.notify_changes()


async def _answer_text(session: Session, word: str, text: str) -> str:
    match word:
        case "/help":
            return HELP
        case "/stop":
            return await _answer_stop(session)
        case "/resume":
            return await _answer_resume(session)
        case "/recovery":
            return await _answer_recovery(session, text.split()[1:])
        case "/stats":
            return statistics_text(session.snapshot().statistics)
        case "/output":
            return await answer_output_command(session, text.split()[1:])
        case "/jobs":
            return await _answer_jobs(session, text.split()[1:])
        case "/rewind":
            return await answer_rewind(session, text.split()[1:])
        case "/permissions":
            return await _answer_permissions(session, text.split()[1:])
        case _:
            return f"There is no command {word}.\n{HELP}"


async def _answer_stop(session: Session) -> str:
    """`/stop`: a turn may wait for a resolution to end and not run yet, so the queue is paused without one too."""
    was_running = await stop_turn(session, None)
    was_waiting = session.ready.pause(session.ledger)
    if was_waiting:
        session.feed.notify_queue()
    waiting = len(session.ledger.queue)
    if was_running or was_waiting:
        return f"Stopped. {waiting} prompts wait; /resume or queue/resume goes on."
    return "No turn is running."


async def _answer_resume(session: Session) -> str:
    """`/resume`, as the request `queue/resume` does it."""
    async with session.delivering:
        session.ready.resume(session.ledger, session.turn.turn_id if session.turn is not None else None)
        session.feed.notify_queue()
        await session.start_next_prompt()
    waiting = len(session.ledger.queue)
    return f"Resumed. {'1 prompt waits' if waiting == 1 else f'{waiting} prompts wait'} now."


async def _answer_permissions(session: Session, words: list[str]) -> str:
    """`/permissions [forget ID|all]`: of this session, this workspace and the user."""
    if words and (words[0] != "forget" or len(words) != 2):
        return "Say /permissions, or /permissions forget and an ID or all."
    every = await list_grants(session.context, [session])
    here = [grant for grant in every if grant.workspace in (None, session.tool_context.root)]
    if not words:
        return "\n".join(grant_text(grant) for grant in here) or NOTHING
    try:
        forgotten = select_grants(here, words[1])
        await forget(session.context, [session], forgotten)
    except Refused as refused:
        return _refusal_text(refused)
    return "\n".join(f"Forgotten: {grant_text(grant)}" for grant in forgotten) or NOTHING


async def _answer_recovery(session: Session, words: list[str]) -> str:
    """`/recovery [ACTION [ID]]`; without an inspection an action inspects, and the same line again acts on it."""
    if not words:
        return _list_text(session)
    action = next((known for known in ACTIONS if known == words[0]), None)
    if action is None or len(words) > 2:
        return f"Say /recovery, or /recovery {'|'.join(ACTIONS)} and an ID."
    meant = _select_attempt(session, words[1] if len(words) == 2 else None)
    if isinstance(meant, str):
        return meant
    of, attempt = meant
    latest = attempt.inspection if is_inspected(attempt, of.epoch) else None
    wanted = ResolutionRequest(attempt.attempt_id, action)
    try:
        if action == "inspect" or latest is None:
            refuse_beforehand(of, wanted)
            return await _inspect(of, wanted)
        await resolve(of, attrs.evolve(wanted, inspection_id=latest.inspection_id))
    except Refused as refused:
        return _refusal_text(refused)
    return f"{attempt.title}: {outcome_text(of, attempt, action)}"


async def _answer_jobs(session: Session, words: list[str]) -> str:
    """`/jobs [stop ID]`."""
    listed = await list_jobs(session)
    if not words:
        return jobs_text(listed)
    if words[0] != "stop" or len(words) != 2:
        return "Say /jobs, or /jobs stop and an ID."
    if len(words[1]) < ID_DIGITS_MIN:
        return f"Give at least {ID_DIGITS_MIN} digits of the ID."
    found = [job.job_id for job in listed if job.job_id.startswith(words[1].lower())]
    if len(found) != 1:
        many = "No" if not found else "More than one"
        return f"{many} background command begins with that ID.\n{jobs_text(listed)}"
    try:
        return (await stop_listed_job(session, found[0])).text
    except Refused as refused:
        return _refusal_text(refused)


def outcome_text(session: Session, attempt: Attempt, action: Action) -> str:
    """Return what was done; for a restore or retry also how its own attempt ended."""
    if action not in ("restore", "retry"):
        return DONE[action]
    new = [one for one in session.ledger.attempts.values() if attempt.attempt_id in (one.restore_of, one.retry_of)][-1]
    reply = session.ledger.calls[new.call_id].reply
    outcome, text = (reply.outcome, reply.text) if reply is not None else ("unknown", "")
    if outcome != "returned":
        return f"the {action} did not succeed ({outcome}). {text}"
    undo = f" Say /recovery restore {new.attempt_id[:8]} to undo this." if action == "restore" else ""
    return f"{DONE[action]}. {text}{undo}"


async def _inspect(session: Session, wanted: ResolutionRequest) -> str:
    looked = await resolve(session, attrs.evolve(wanted, action="inspect"))
    assert looked.inspection is not None
    again = "" if wanted.action == "inspect" else f"\nSay /recovery {wanted.action} again to act on this."
    return f"{looked.inspection.text}{again}"


def _refusal_text(refused: Refused) -> str:
    found = refused.more.get("inspection")
    finding = f" {found['text']}" if isinstance(found, dict) else ""
    return f"Not done: {refused.message}{finding}"


def _select_attempt(session: Session, given: str | None) -> tuple[Session, Attempt] | str:
    """Return the attempt with this ID and its session, or a sentence. Without an ID this session's come first."""
    shown = _listed_effects(session)
    known = {view.attempt_id: of for of, view in shown}
    undoable = {one.attempt_id: session for one in session.ledger.attempts.values() if one.is_undoable}
    if not known and (given is None or not undoable):
        return "Nothing is uncertain."
    if given is None:
        own = [view.attempt_id for of, view in shown if of is session]
        found = own or list(known)
        if len(found) > 1:
            return f"There are {len(found)}. Name one by its ID.\n{_list_text(session)}"
    elif len(given) < ID_DIGITS_MIN:
        return f"Give at least {ID_DIGITS_MIN} digits of the ID."
    else:
        found = [attempt_id for attempt_id in known | undoable if attempt_id.startswith(given.lower())]
    if len(found) != 1:
        return f"{'No' if not found else 'More than one'} uncertain effect begins with that ID.\n{_list_text(session)}"
    of = (known | undoable)[found[0]]
    return of, of.ledger.attempts[found[0]]


def _listed_effects(session: Session) -> list[tuple[Session, Uncertain]]:
    """Return what this session shows, then what is unresolved in the others of its workspace."""
    snapshot = session.snapshot()
    own = [(session, view) for view in (*snapshot.calls, *snapshot.settled)]
    others = [of for of in session.neighbours() if of is not session]
    return [*own, *((of, view) for of in others for view in of.snapshot().calls)]


def _list_text(session: Session) -> str:
    shown = _listed_effects(session)
    if not shown:
        return "Nothing is uncertain."
    return "\n".join(
        _line_text(number, view, None if of is session else of.name) for number, (of, view) in enumerate(shown, 1)
    )


def _line_text(number: int, view: Uncertain, session: str | None) -> str:
    """Return number, first digits, title, state and possible actions. `session`: its name, if it is another one."""
    state = view.settled or view.check or "not checked"
    where = f" (session “{session}”)" if session is not None else ""
    can = f" ({', '.join(view.actions)})" if view.actions else ""
    return f"{number}. {view.attempt_id[:8]} {view.title}{where}: {state}{can}"


def _word(text: str) -> str:
    return text.split(maxsplit=1)[0] if text.strip() else ""
