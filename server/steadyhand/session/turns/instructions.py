"""The workspace's AGENTS.md as part of the system text, which is fixed for a session (rows G5, P4).

It is read once, before the session's first request to a model, and recorded before it is sent; every later request
repeats it byte for byte, whatever happens to the file. A session that began without it goes on without it. It is no
setting and permits nothing. The user is warned if it is not used or does not fit. A folder that is not trusted has no
instructions. What the other folders of the workspace say is told in stored messages (rows G15, S11).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.attachment_text import RenderedAttachment
from steadyhand.domain.records.prompt import FileAttachment
from steadyhand.domain.records.record import Assistant, Instructions
from steadyhand.domain.views.types import Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session
from steadyhand.session.stored_messages import tell_model
from steadyhand.session.turns.attachments import reason_not_to_read
from steadyhand.tools.commands.output_buffer import trim_partial_character
from steadyhand.tools.workspace.attached_file import WHOLE_BYTES_MAX, is_there, read_attachment
from steadyhand.tools.workspace.paths import one_line

AGENTS = "AGENTS.md"
INSTRUCTIONS_BYTES_MAX = 32 * 1024
"""Of AGENTS.md in the system text."""

_HEAD = (
    "\n\nThe workspace has a file AGENTS.md with instructions for agents. They hold where the user says nothing else,"
    " and allow nothing that needs permission. It says:\n\n"
)
_HEAD_OF_OTHER = (
    "The folder {folder} of the workspace has a file AGENTS.md with instructions for agents who work there. They hold"
    " where the user says nothing else, and allow nothing that needs permission. It says:\n\n"
)


async def fix_instructions(session: Session, turn: ActiveTurn) -> None:
    """Record before the first request what AGENTS.md says."""
    root = session.tool_context.root
    if session.ledger.instructions is not None or _was_asked_before(session.ledger) or root is None:
        return
    text = await _instructions_of(session, turn, root)
    if text is not None:
        await session.log.append_or_show([Instructions(text=_HEAD + text)], barrier=True)


async def tell_instructions(session: Session, turn: ActiveTurn, folders: Iterable[str]) -> None:
    """Tell the model what the AGENTS.md of each of these folders says (row S11)."""
    for folder in folders:
        text = await _instructions_of(session, turn, folder)
        if text is not None:
            await tell_model(session, "instructions", _HEAD_OF_OTHER.format(folder=one_line(folder)) + text)


async def _instructions_of(session: Session, turn: ActiveTurn, folder: str) -> str | None:
    """Return what AGENTS.md in a folder of the workspace says; None: there is none, or it is not used."""
    given = await session.context.in_thread(_read_instructions, session, folder)
    if given is None:
        return None
    name = AGENTS if folder == session.tool_context.root else one_line(posixpath.join(folder, AGENTS))
    if given.text is None:
        why = (given.trouble or "").removeprefix("It is not given. ")
        session.feed.notify(turn.turn_id, Warned("instructions", f"{name} is not used. {why}"))
        return None
    text, cut = _cut_to_bound(given.text)
    if cut is not None:
        session.feed.notify(turn.turn_id, Warned("instructions", f"{name} is used in part: {cut}"))
    mark = "" if cut is None else f"\n[{cut} Read the file for the rest.]"
    return f"{text}{mark}"


def _was_asked_before(ledger: Ledger) -> bool:
    if ledger.usage:
        return True
    commands = {turn.turn_id for turn in ledger.turns.values() if turn.command}
    return any(isinstance(said.record, Assistant) and said.turn_id not in commands for said in ledger.said)


def _read_instructions(session: Session, folder: str) -> RenderedAttachment | None:
    """Return the file's content or why it is not used; None where there is no such file. Blocks."""
    path = posixpath.join(folder, AGENTS)
    if not is_there(session.tool_context, path):
        return None
    if not session.tool_context.trusts(folder):
        return RenderedAttachment(AGENTS, None, "The workspace is not trusted: trust it, then start a new session.")
    return read_attachment(
        session.tool_context,
        FileAttachment(path),
        "utf-16",
        lambda path: reason_not_to_read(session, path),
        WHOLE_BYTES_MAX,
    )


def _cut_to_bound(text: str) -> tuple[str, str | None]:
    """Return the text up to the bound, in whole lines if there are any, and a sentence on what is missing."""
    raw = text.encode("utf-8")
    if len(raw) <= INSTRUCTIONS_BYTES_MAX:
        return text, None
    kept = trim_partial_character(raw[:INSTRUCTIONS_BYTES_MAX])
    kept = kept[: kept.rfind(b"\n") + 1] or kept
    return kept.decode("utf-8"), f"it has {len(raw)} bytes, and only the first {len(kept)} are used."
