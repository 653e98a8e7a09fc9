"""The folders that a turn works in, looked at when it begins; others than before are recorded (rows S10, S11).

What the client opens or closes while the turn runs counts from the next turn on. The model is told of each change.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.records.record import Folders
from steadyhand.domain.views.types import Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.context import OpenFolder
from steadyhand.session.session import Session
from steadyhand.session.storage import directory
from steadyhand.session.stored_messages import tell_model
from steadyhand.session.turns.instructions import tell_instructions
from steadyhand.session.uris import path_of
from steadyhand.tools.contract import OtherFolder
from steadyhand.tools.workspace.paths import GO_ON_ELSEWHERE, one_line

FOLDERS_MAX = 20
"""Folders of the client that a turn works in; later ones count as outside."""
NAMED_MAX = 10
"""Folders beyond them that the warning names."""


async def follow_folders(session: Session, turn: ActiveTurn) -> None:
    """Let the session's tools work with what the client has open now. The user is told once if the folder is gone."""
    context, before = session.context, session.tool_context
    every = tuple(context.open_folders())
    opened, left_out = every[:FOLDERS_MAX], _without_own(session, every[FOLDERS_MAX:])
    now = await context.in_thread(directory.tool_context_of, context, session.workspace, session.path, opened)
    session.use_folders(now)
    for path in await context.in_thread(context.folders.take_exchanged, [folder.uri for folder in opened]):
        session.feed.notify_message("warning", _exchanged_sentence(path))
    if now.missing is not None and before.missing is None:
        session.feed.notify_message("warning", missing_folder_sentence(session, now.missing))
    if now.missing != before.missing:
        session.feed.notify_changes()
    if now.root is None:
        return  # no folder is inside now, and what was told holds again when it is back
    _warn_of_left_out(session, turn, len(every), left_out)
    recorded = tuple(folder.uri for folder in opened) if now.others else ()
    if recorded == session.ledger.folders or turn.prompt.aside or turn.prompt.command:
        return
    await session.log.append_or_show([Folders(turn_id=turn.turn_id, folders=recorded)])
    await tell_model(session, "files", _told_text(now.others, len(left_out)))
    known = {other.path for other in before.others}
    await tell_instructions(session, turn, [other.path for other in now.others if other.path not in known])


def missing_folder_sentence(session: Session, path: str) -> str:
    """Return that the session's folder is gone, which one, and what to do."""
    return (
        f"The folder of session “{session.name}” is gone: {one_line(path)}. Put it back, or open the folder at its new"
        f" place and {GO_ON_ELSEWHERE}."
    )


def _without_own(session: Session, folders: Sequence[OpenFolder]) -> tuple[OpenFolder, ...]:
    own = path_of(session.workspace or "")
    return tuple(folder for folder in folders if path_of(folder.uri) != own)


def _warn_of_left_out(session: Session, turn: ActiveTurn, count: int, left_out: Sequence[OpenFolder]) -> None:
    """Tell the user which folders do not count, when they are others than before."""
    if turn.prompt.aside or turn.prompt.command:
        return
    if not session.left_out_folders.note(tuple(folder.uri for folder in left_out)) or not left_out:
        return
    names = ", ".join(one_line(folder.name) for folder in left_out[:NAMED_MAX])
    more = ", …" if len(left_out) > NAMED_MAX else ""
    text = f"This window has {count} folders; the first {FOLDERS_MAX} count, the others are outside: {names}{more}."
    session.feed.notify(turn.turn_id, Warned("folders", text))


def _exchanged_sentence(path: str) -> str:
    return (
        f"The folder {one_line(path)} is not the one that was opened: its path leads elsewhere now, or to another"
        " folder. It is left out. Look at it; to work in it, remove it from the window and add it again."
    )


def _told_text(others: Sequence[OtherFolder], left_out: int) -> str:
    if not others:
        return "The window has no other folder beside the session's any more. Paths in the others are outside now."
    named = "\n".join(f"@{one_line(other.name)} is {one_line(other.path)}" for other in others)
    if left_out:
        which = "more folder, which is" if left_out == 1 else "more folders, which are"
        named += f"\nThe window has {left_out} {which} outside."
    return (
        "The workspace has these folders beside the session's. Relative paths are those of the session's folder; for"
        f" the others use absolute paths, or the name at the beginning of a path (`@name/src/x`):\n{named}"
    )
