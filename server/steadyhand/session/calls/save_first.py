"""Save first: a call that meets a document with unsaved changes waits while the user saves it (row V2).

Text that a user typed is never overwritten. Where the editor saves on request, the user is asked whether to save and
go on. After a yes the call starts its step again, so that evidence and diff are of the saved text. All of this is
before *started*: a crash, a stop, a no, a failed save or a missing answer leaves a call that did not run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from steadyhand.domain.views.questions import UserQuestion
from steadyhand.domain.views.render import display_path
from steadyhand.session.session import Session
from steadyhand.tools.contract import Refusal
from steadyhand.tools.workspace.paths import one_line

T = TypeVar("T")

SAVES_MAX = 4
"""Documents that one step of a call waits for, or times that the same one is changed again."""
SAVE = "Save and go on"
LEAVE = "Leave it as it is"


async def with_saved_documents(
    session: Session, turn_id: str, title: str, step: Callable[[], Awaitable[T | Refusal]]
) -> T | Refusal:
    """Return the result of `step`, after the documents that it refuses as unsaved are saved; else its refusal."""
    for _ in range(SAVES_MAX):
        found = await step()
        if not isinstance(found, Refusal) or found.document is None or not session.context.editor.saves():
            return found
        refusal = await _save(session, turn_id, title, found.document)
        if refusal is not None:
            return refusal
    return await step()


async def _save(session: Session, turn_id: str, title: str, path: str) -> Refusal | None:
    """Ask, then save. None: repeat the step."""
    editor, shown = session.context.editor, one_line(display_path(path, session.tool_context.root))
    question = f"{shown} has unsaved changes. Save them so that “{title}” can continue."
    with session.waiting_for_user():
        asked = UserQuestion(session.context.ids.new(), session.session_id, turn_id, question, (SAVE, LEAVE))
        if await editor.ask_user(asked) != SAVE:
            return _refuse_unsaved(shown, "The user chose not to save it")
        document = editor.document(path)
        if document is None or document.unsaved is False:
            return None  # the user saved it
        if await editor.save(path, document.version):
            return None
    now = editor.document(path)
    if now is not None and now.unsaved is not False and now.version == document.version:
        return _refuse_unsaved(shown, "The editor could not save it")
    return None  # closed, saved, or changed again meanwhile


def _refuse_unsaved(shown: str, why: str) -> Refusal:
    return Refusal("unsaved", f"{shown} has unsaved changes in the editor. {why}, so it was not changed.")
