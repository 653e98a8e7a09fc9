"""Slash commands in chat text: answered by the events of a turn, without a model request.

`/recovery`, `/jobs`, `/output`, `/permissions`, `/stop` and `/help` are never queued and need no lease: they may stand
beside a parked turn (row B4). Anything else that begins with `/` is answered in its turn with what there is.

`/recovery` reaches as far as an uncertain effect holds back: into every open session of the workspace (row B1).
"""

from __future__ import annotations

import anyio
import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import Assistant, Ended, EndReason
from steadyhand.core.refusal import Refused
from steadyhand.core.snapshot import inspected
from steadyhand.core.views import Action, Began, TextDelta, TurnEnded, Uncertain, Warned
from steadyhand.session.granted import NOTHING, forget, granted, meant, shown_grant
from steadyhand.session.job_list import listed_jobs, shown_jobs, stop_listed
from steadyhand.session.kept_output import said_of_outputs
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Wanted, refuse_beforehand, resolve
from steadyhand.session.stopping import stop_turn

HELP = (
    "/help: this list.\n"
    "/stop: stop the running turn.\n"
    "/recovery: list uncertain effects. /recovery inspect|confirm|reject|waive|restore|retry"
    " [ID]: look at one, then settle it, bring back what was there before, or try it again.\n"
    "/jobs: list background commands that run. /jobs stop ID: end one and what it started.\n"
    "/output: list outputs that were too long for the chat. /output ID: show one again.\n"
    "/permissions: list what passes without asking here. /permissions forget ID|all: take it back."
)
ACTIONS: tuple[Action, ...] = ("inspect", "confirm", "reject", "waive", "retry", "restore")
DONE: dict[Action, str] = {
    "inspect": "inspected.",
    "confirm": "settled as the inspection found it.",
    "reject": "rejected, not to be repeated; it stays uncertain.",
    "waive": "waived; the work goes on without knowing.",
    "retry": "tried again",
    "restore": "restored",
}
UNUSED = "What is attached is not used: a slash command asks no model."
id_digits_min = 4
AT_ONCE = ("/recovery", "/jobs", "/output", "/permissions", "/stop", "/help")


def at_once(text: str) -> bool:
    """Whether the line is answered beside a running turn."""
    return text.startswith("/") and _word(text) in AT_ONCE


async def answer(owner: Owner, turn_id: str, prompt: Prompt) -> None:
    """The whole turn of a slash command, from its events to its end."""
    text, word = prompt.text, _word(prompt.text)
    turn = owner.ledger.turns[turn_id]
    if word in AT_ONCE:
        owner.tell(turn_id, Began(turn.client_message_id))
    if prompt.attachments:
        owner.tell(turn_id, Warned("attachment", UNUSED))
    said = await _say(owner, word, text)
    message_id = owner.world.ids.new()
    owner.tell(turn_id, TextDelta(message_id, said))
    reason: EndReason = "done"
    with anyio.CancelScope(shield=True):
        message = Assistant(turn_id, message_id, said, finish="stop")
        if not await owner.append_or_show([message, Ended(turn_id, "done")], barrier=True):
            reason = "journalBroken"
        owner.side_turns.discard(turn_id)
        if owner.turn is not None and owner.turn.turn_id == turn_id:
            owner.turn = None
        owner.tell(turn_id, TurnEnded(reason, ()))
        owner.tell_changes()


async def _say(owner: Owner, word: str, text: str) -> str:
    match word:
        case "/help":
            return HELP
        case "/stop":
            return "The turn is stopped." if await stop_turn(owner, None) else "No turn is running."
        case "/recovery":
            return await _recovery(owner, text.split()[1:])
        case "/output":
            return await said_of_outputs(owner, text.split()[1:])
        case "/jobs":
            return await _jobs(owner, text.split()[1:])
        case "/permissions":
            return await _permissions(owner, text.split()[1:])
        case _:
            return f"There is no command {word}.\n{HELP}"


async def _permissions(owner: Owner, words: list[str]) -> str:
    """`/permissions [forget ID|all]`: of this session, this workspace and the user."""
    if words and (words[0] != "forget" or len(words) != 2):
        return "Say /permissions, or /permissions forget and an ID or all."
    every = await granted(owner.world, [owner])
    here = [grant for grant in every if grant.workspace in (None, owner.ground.root)]
    if not words:
        return "\n".join(shown_grant(grant) for grant in here) or NOTHING
    try:
        forgotten = meant(here, words[1])
        await forget(owner.world, [owner], forgotten)
    except Refused as refused:
        return _refusal(refused)
    return "\n".join(f"Forgotten: {shown_grant(grant)}" for grant in forgotten) or NOTHING


async def _recovery(owner: Owner, words: list[str]) -> str:
    """`/recovery [ACTION [ID]]`; without an inspection an action inspects, and the same line again acts on it."""
    if not words:
        return _list(owner)
    action = next((known for known in ACTIONS if known == words[0]), None)
    if action is None or len(words) > 2:
        return f"Say /recovery, or /recovery {'|'.join(ACTIONS)} and an ID."
    meant = _meant(owner, words[1] if len(words) == 2 else None)
    if isinstance(meant, str):
        return meant
    of, attempt = meant
    latest = attempt.inspection if inspected(attempt, of.epoch) else None
    wanted = Wanted(attempt.attempt_id, action)
    try:
        if action == "inspect" or latest is None:
            refuse_beforehand(of, wanted)
            return await _look(of, wanted)
        await resolve(of, attrs.evolve(wanted, inspection_id=latest.inspection_id))
    except Refused as refused:
        return _refusal(refused)
    return f"{attempt.title}: {outcome_told(of, attempt, action)}"


async def _jobs(owner: Owner, words: list[str]) -> str:
    """`/jobs [stop ID]`."""
    listed = await listed_jobs(owner)
    if not words:
        return shown_jobs(listed)
    if words[0] != "stop" or len(words) != 2:
        return "Say /jobs, or /jobs stop and an ID."
    if len(words[1]) < id_digits_min:
        return f"Give at least {id_digits_min} digits of the ID."
    found = [job.job_id for job in listed if job.job_id.startswith(words[1].lower())]
    if len(found) != 1:
        many = "No" if not found else "More than one"
        return f"{many} background command begins with that ID.\n{shown_jobs(listed)}"
    try:
        return (await stop_listed(owner, found[0])).text
    except Refused as refused:
        return _refusal(refused)


def outcome_told(owner: Owner, attempt: Attempt, action: Action) -> str:
    """What was done; of a restore or retry also how its own attempt ended."""
    if action not in ("restore", "retry"):
        return DONE[action]
    new = [one for one in owner.ledger.attempts.values() if attempt.attempt_id in (one.restore_of, one.retry_of)][-1]
    reply = owner.ledger.calls[new.call_id].reply
    outcome, text = (reply.outcome, reply.text) if reply is not None else ("unknown", "")
    if outcome != "returned":
        return f"not {DONE[action]} to the end ({outcome}). {text}"
    undo = f" /recovery restore {new.attempt_id[:8]} undoes that." if action == "restore" else ""
    return f"{DONE[action]}. {text}{undo}"


async def _look(owner: Owner, wanted: Wanted) -> str:
    looked = await resolve(owner, attrs.evolve(wanted, action="inspect"))
    assert looked.inspection is not None
    again = "" if wanted.action == "inspect" else f"\nSay /recovery {wanted.action} again to act on this."
    return f"{looked.inspection.text}{again}"


def _refusal(refused: Refused) -> str:
    found = refused.more.get("inspection")
    finding = f" {found['text']}" if isinstance(found, dict) else ""
    return f"Not done: {refused.message}{finding}"


def _meant(owner: Owner, given: str | None) -> tuple[Owner, Attempt] | str:
    """The one attempt that is meant, with its session, or a sentence. Without an ID this session's comes first."""
    shown = _shown(owner)
    known = {view.attempt_id: of for of, view in shown}
    undoable = {one.attempt_id: owner for one in owner.ledger.attempts.values() if one.undoable}
    if not known and (given is None or not undoable):
        return "Nothing is uncertain."
    if given is None:
        own = [view.attempt_id for of, view in shown if of is owner]
        found = own or list(known)
        if len(found) > 1:
            return f"There are {len(found)}; name one.\n{_list(owner)}"
    elif len(given) < id_digits_min:
        return f"Give at least {id_digits_min} digits of the ID."
    else:
        found = [attempt_id for attempt_id in known | undoable if attempt_id.startswith(given.lower())]
    if len(found) != 1:
        return f"{'No' if not found else 'More than one'} uncertain effect begins with that ID.\n{_list(owner)}"
    of = (known | undoable)[found[0]]
    return of, of.ledger.attempts[found[0]]


def _shown(owner: Owner) -> list[tuple[Owner, Uncertain]]:
    """What this session shows, then what is unresolved in the others of its workspace."""
    snapshot = owner.snapshot()
    own = [(owner, view) for view in (*snapshot.calls, *snapshot.settled)]
    others = [of for of in owner.neighbours() if of is not owner]
    return [*own, *((of, view) for of in others for view in of.snapshot().calls)]


def _list(owner: Owner) -> str:
    shown = _shown(owner)
    if not shown:
        return "Nothing is uncertain."
    return "\n".join(
        _line(number, view, None if of is owner else of.name()) for number, (of, view) in enumerate(shown, 1)
    )


def _line(number: int, view: Uncertain, session: str | None) -> str:
    """Number, first digits, title, how it stands, what can be done; `session`: whose it is, if another's."""
    state = view.settled or view.check or "no check"
    where = f" (session “{session}”)" if session is not None else ""
    can = f" ({', '.join(view.actions)})" if view.actions else ""
    return f"{number}. {view.attempt_id[:8]} {view.title}{where}: {state}{can}"


def _word(text: str) -> str:
    return text.split(maxsplit=1)[0] if text.strip() else ""
