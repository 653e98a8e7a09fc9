"""Save first: a call that meets a document with unsaved changes waits while the person saves it (row V2).

What a person typed is never overwritten. Where the editor saves on request they are asked whether to save and go on;
after a yes the call looks at everything anew, so that evidence and diff are of what was saved. All of this is before
*started*: a crash, a stop, a no, a save that fails or an answer that never comes leave a call that did not run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from steadyhand.core.questions import UserQuestion
from steadyhand.session.owner import Owner
from steadyhand.tools.place import display, one_line
from steadyhand.tools.tool import Refusal

T = TypeVar("T")

saves_max = 4
"""Documents that one step of a call waits for, or times that the same one is changed again."""
SAVE = "Save and go on"
LEAVE = "Leave it as it is"


async def saving_first(
    owner: Owner, turn_id: str, title: str, look: Callable[[], Awaitable[T | Refusal]]
) -> T | Refusal:
    """What `look` finds, once the documents it stumbles over are saved; its refusal where they are not."""
    for _ in range(saves_max):
        found = await look()
        if not isinstance(found, Refusal) or found.document is None or not owner.world.editor.saves():
            return found
        refusal = await _save(owner, turn_id, title, found.document)
        if refusal is not None:
            return refusal
    return await look()


async def _save(owner: Owner, turn_id: str, title: str, path: str) -> Refusal | None:
    """Ask, save. None: look again."""
    editor, shown = owner.world.editor, one_line(display(owner.ground.root, path))
    question = f"{shown} has unsaved changes. “{title}” can go on when they are saved."
    with owner.parked():
        asked = UserQuestion(owner.world.ids.new(), owner.session_id, turn_id, question, (SAVE, LEAVE))
        if await editor.ask_user(asked) != SAVE:
            return _refusal(shown, "The user did not want it saved now")
        document = editor.document(path)
        if document is None or document.unsaved is False:
            return None  # they did it themselves meanwhile
        if await editor.save(path, document.version):
            return None
    now = editor.document(path)
    if now is not None and now.unsaved is not False and now.version == document.version:
        return _refusal(shown, "It could not be saved in the editor")
    return None  # closed, saved, or changed again meanwhile


def _refusal(shown: str, why: str) -> Refusal:
    return Refusal("unsaved", f"{shown} has unsaved changes in the editor. {why}, so nothing was done to it.")
