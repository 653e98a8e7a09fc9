"""Slash commands in chat text: answered by the events of a turn, without a model request.

`/recovery`, `/stop` and `/help` are never queued and need no lease: they may stand beside a parked turn (row B4).
Anything else that begins with `/` is answered in its turn with what there is.
"""

from __future__ import annotations

import anyio

from steadyhand.core.record import Assistant, EndReason, Ended
from steadyhand.core.views import Began, TextDelta, TurnEnded
from steadyhand.session.owner import Owner
from steadyhand.session.stopping import stop_turn

HELP = (
    "/help: this list.\n"
    "/stop: stop the running turn.\n"
    "/recovery: list uncertain effects. /recovery inspect|confirm|reject|waive [ID]: look at one, then settle it."
)
AT_ONCE = ("/recovery", "/stop", "/help")


def at_once(text: str) -> bool:
    """Whether the line is answered beside a running turn."""
    return _word(text) in AT_ONCE


async def answer(owner: Owner, turn_id: str, text: str) -> None:
    """The whole turn of a slash command, from its events to its end."""
    word = _word(text)
    turn = owner.ledger.turns[turn_id]
    if word in AT_ONCE:
        owner.tell(turn_id, Began(turn.client_message_id))
    said = await _say(owner, word)
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


async def _say(owner: Owner, word: str) -> str:
    match word:
        case "/help":
            return HELP
        case "/stop":
            return "The turn is stopped." if await stop_turn(owner, None) else "No turn is running."
        case "/recovery":
            return "Nothing is uncertain." if not owner.ledger.uncertain() else _list(owner)
        case _:
            return f"There is no command {word}.\n{HELP}"


def _list(owner: Owner) -> str:
    lines = []
    for number, uncertain in enumerate(owner.snapshot().calls, 1):
        check = uncertain.check or "no check"
        actions = ", ".join(uncertain.actions)
        lines.append(f"{number}. {uncertain.attempt_id[:8]} {uncertain.title}: {check} ({actions})")
    return "\n".join(lines)


def _word(text: str) -> str:
    return text.split(maxsplit=1)[0] if text.strip() else ""
