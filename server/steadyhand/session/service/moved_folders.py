"""Bind a session to another folder, because its own is gone or has another path now (row S10, case 130).

Nothing is moved and nothing runs. The session begins a new epoch: what was asked for in the old folder, or allowed
there, does not hold in the new one. Evidence keeps its paths, so what it says of the old folder is not checked here.
"""

from __future__ import annotations

import anyio

from steadyhand.domain.errors import Refused, invalid_params
from steadyhand.domain.records.record import Rebind
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import SessionView
from steadyhand.session.session import Session
from steadyhand.session.storage import directory
from steadyhand.session.stored_messages import record_and_tell
from steadyhand.session.uris import path_of
from steadyhand.tools.workspace.paths import one_line
from steadyhand.tools.workspace.places import is_same_place

NOT_OF_CLIENT = "not one of the client's folders"
NO_FOLDER = "there is no such folder"


async def rebind(session: Session, workspace: str | None) -> SessionView:
    """Bind the session to this folder's URI; None: it is no folder of the client. Its own changes nothing.

    Raise Refused in this order: notOwner, journalBroken, invalidParams, turnRunning, recoveryRequired."""
    session.require_owned()
    context = session.context
    if workspace is None:
        raise invalid_params("$.workspace", NOT_OF_CLIENT)
    async with session.delivering, session.settling:  # no prompt and no resolution begins meanwhile
        why = await context.in_thread(_find_obstacle, session, workspace)
        if why is not None:
            raise invalid_params("$.workspace", why)
        if path_of(workspace) == path_of(session.workspace or "") and session.tool_context.missing is None:
            return session.view()  # it is bound there, and the folder is the one that it was bound to
        _require_idle(session)
        await context.in_thread(context.folders.learn, [workspace])
        goal = await context.in_thread(directory.tool_context_of, context, workspace, session.path)
        if goal.root is None:
            raise invalid_params("$.workspace", NO_FOLDER)
        rebound = Rebind(workspace=workspace, epoch=context.ids.new())
        with anyio.CancelScope(shield=True):  # what is recorded is followed
            await record_and_tell(session, [rebound], "files", _told_text(session, goal.root))
            session.use_folders(goal, rebound.epoch)
    await session.log.keep_summary()
    session.feed.notify_changes()
    session.feed.notify_queue()
    return session.view()


def _find_obstacle(session: Session, workspace: str) -> str | None:
    """Return why the session may not be bound there, as the end of a sentence. Blocks."""
    recorded = path_of(session.workspace) if session.workspace is not None else None
    if recorded is None:
        return "the session has no folder that could have moved"
    goal = session.context.folders.resolve(workspace)
    if goal.root is None:
        return NO_FOLDER
    now = session.context.folders.find(session.workspace)
    if now.missing is not None:
        return None
    if now.root is None:
        return f"it is not known whether the session's folder {one_line(recorded)} is gone: it cannot be opened"
    if is_same_place(session.context.disk, now.root, goal.root):
        return None
    return f"the session's folder {one_line(recorded)} is still there; create a new session for another folder"


def _require_idle(session: Session) -> None:
    turn = session.turn
    if not session.can_begin_turn:
        text = "A turn is running; wait for it or stop it."
        raise Refused("turnRunning", text, {"turnId": turn.turn_id} if turn is not None else {})
    uncertain = session.snapshot().calls
    if uncertain:
        text = "It has uncertain effects in its old folder. Decide on them first; then bind it to the new one."
        raise Refused("recoveryRequired", text, {"uncertain": to_plain(uncertain)})


def _told_text(session: Session, root: str) -> str:
    before = path_of(session.workspace) if session.workspace is not None else None
    return (
        f"The session's folder is now {one_line(root)}; it was {one_line(before or '')}. Relative paths are relative to"
        " the new folder. Files may differ from what you read before: read them again. Permissions for the session have"
        " ended."
    )
