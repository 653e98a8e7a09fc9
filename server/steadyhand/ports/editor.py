"""The editor: notifications, questions to the person, open documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

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
    saved_text: str | None = None  # what the file had when it was saved last, else opened; None: not known
    first_text: str | None = None  # after the first change since then: an editor that reads the file again has it here
    opened_over: str | None = None  # digest of a file that had another text when it was opened; "": there was no file


@frozen
class EditAnswer:
    """What became of a change of an open document's text.

    `applied`: the editor showed the new text. `refused`: it said that it does not apply it. `lost`: nobody knows; it
    may show it later.
    """

    state: Literal["applied", "refused", "lost"]
    why: str = ""  # a clause


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

    def open_paths(self) -> Sequence[str]:
        """Return the paths of all open documents: absolute, in the editor's spelling."""
        ...

    def saves(self) -> bool:
        """Return whether the editor saves documents on request."""
        ...

    def applies(self) -> bool:
        """Return whether the editor changes the text of open documents on request, and compares their version."""
        ...

    async def apply(self, path: str, version: int, text: str) -> EditAnswer:
        """Give the open document this text if it still has this version. Bounded in time."""
        ...

    def pid(self) -> int | None:
        """Return the process id of the editor, as it says; None: it does not."""
        ...

    async def save(self, path: str, version: int) -> bool:
        """Save the open document if it still has this version.

        True: it is on disk, and `document` has the saved state. False: it is not, or nobody answered; it may still be
        saved later.
        """
        ...
