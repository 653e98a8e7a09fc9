"""`/rewind [ID [files|conversation|both]]`: list the turns that changed files, or rewind to before one (row G4)."""

from __future__ import annotations

from typing import get_args

from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import RewindWhat
from steadyhand.domain.views.render import short_title
from steadyhand.domain.views.types import CheckpointTurn, RewindResult
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.service.session_settings import checkpoints
from steadyhand.session.session import Session

ID_DIGITS_MIN = 4
NOTHING = "No turn of this session changed a file."
USE = "Say /rewind ID, and files or conversation to take back only these."


async def answer_rewind(session: Session, words: list[str]) -> str:
    """Return the list, or what a rewind did. Without a third word it takes back files and conversation."""
    turns = await checkpoints(session)
    if not words:
        return "\n".join([*map(_line, turns), USE]) if turns else NOTHING
    what: RewindWhat | None = next((one for one in get_args(RewindWhat) if words[1:] == [one]), None)
    if len(words) > 2 or (len(words) == 2 and what is None):
        return USE
    if len(words[0]) < ID_DIGITS_MIN:
        return f"Give at least {ID_DIGITS_MIN} digits of the ID."
    found = [turn_id for turn_id in session.ledger.turns if turn_id.startswith(words[0].lower())]
    if len(found) != 1:
        return f"{'No' if not found else 'More than one'} turn begins with that ID."
    try:
        done = await rewind(session, None, found[0], what or "both")
    except Refused as refused:
        return f"Not done: {refused.message}"
    return _done_text(done)


def _line(turn: CheckpointTurn) -> str:
    undone = " (undone)" if turn.undone else ""
    expired = " (some earlier contents are no longer stored)" if turn.expired else ""
    files = ", ".join(f"{file.path} {file.change}" for file in turn.files)
    return f"{turn.turn_id[:8]} “{short_title(turn.prompt)}”{undone}{expired}: {files}"


def _done_text(done: RewindResult) -> str:
    lines = [f"Rewound. Say /rewind {done.undo[:8]} to undo this."]
    lines += [f"- {one.path}: {one.change}" for one in done.restored]
    lines += [f"- left as it is: {one.path} ({one.why})" for one in done.left]
    return "\n".join(lines)
