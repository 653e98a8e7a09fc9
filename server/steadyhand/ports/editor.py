"""The editor: notifications, questions to the person, open documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from steadyhand.domain.views.notifications import EditorNotification
from steadyhand.domain.views.questions import Choice, HeldBackQuestion, PermissionQuestion, UserQuestion
from steadyhand_values import frozen


@frozen
class OpenDocument:
    """A document that is open in the editor, as the server mirrors it."""

    text: str
    version: int
    unsaved: bool | None  # None: no save was seen, and its file was not compared
    language: str = ""  # as the editor calls it; empty: not known


class Editor(Protocol):
    """The editor and the user in front of it.

    `tell` never blocks. A question waits for its answer; cancelling the call withdraws the question.
    """

    def tell(self, told: EditorNotification) -> None:
        """Send a notification."""
        ...

    async def drain(self) -> None:
        """Wait until enough of the notifications has been sent; this bounds the memory of a stream."""
        ...

    def attached(self) -> bool:
        """Return whether there is anybody to ask."""
        ...

    async def ask_permission(self, question: PermissionQuestion) -> Choice | None:
        """Ask whether a call may run. None: not answered (error, null or timeout)."""
        ...

    async def ask_held_back(self, question: HeldBackQuestion) -> Choice | None:
        """Ask about a held-back call. None: not answered (error, null or timeout)."""
        ...

    async def ask_user(self, question: UserQuestion) -> str | None:
        """Ask the user a question of the model. None: dismissed or not answered."""
        ...

    def document(self, path: str) -> OpenDocument | None:
        """Return the open document with this absolute path, in the editor's spelling; None: it is not open."""
        ...

    async def encoding(self, path: str) -> str | None:
        """Return what the editor calls the encoding of the open document at this path, in its spelling.

        None: it is not open, the editor does not say, or not in time."""
        ...

    def unsaved_paths(self) -> Sequence[str]:
        """Return the paths of open documents that may differ from the disk: absolute, in the editor's spelling."""
        ...

    def saves(self) -> bool:
        """Return whether the editor saves documents on request."""
        ...

    async def save(self, path: str, version: int) -> bool:
        """Save the open document if it still has this version.

        True: it is on disk, and `document` has the saved state. False: it is not, or nobody answered; it may still be
        saved later.
        """
        ...
