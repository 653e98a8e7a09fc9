"""Save first: a call that meets a document with unsaved changes waits while the user decides (rows V1, V2).

Text that a user typed is never overwritten, and neither is what somebody wrote to the file meanwhile (case 136):

    the file is as the editor opened or last saved it    save and go on, or leave it
    it was changed too, or is gone                       show both, keep one of the two, or leave both

The one that is not kept is stored in `checkpoints/` before anything else, and a message says where. After a decision
the call starts its step again, so that evidence and diff are of what is there then. All of this is before *started*: a
crash, a stop, a no, a failed save or a missing answer leaves a call that did not run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs

from steadyhand.domain.text.decoding import FileText
from steadyhand.domain.text.diff import unified_diff
from steadyhand.domain.views.questions import UserQuestion
from steadyhand.domain.views.render import display_path
from steadyhand.session.session import Session
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, Refusal, UnsavedDocument
from steadyhand.tools.workspace.file_encoding import FileEncodings
from steadyhand.tools.workspace.open_documents import DocumentState, read_file_of, state_of_document
from steadyhand.tools.workspace.paths import one_line
from steadyhand.tools.writes.blob_store import BlobStore
from steadyhand_values import frozen

T = TypeVar("T")

SAVES_MAX = 4
"""Documents that one step of a call waits for, or times that the same one is changed again."""
DIFF_BYTES_MAX = 8 * 1024
SAVE = "Save and go on"
LEAVE = "Leave it as it is"
SHOW_BOTH = "Show both"
KEEP_DISK = "Keep the disk's"
KEEP_MINE = "Keep mine"
LEAVE_BOTH = "Leave it"
LEFT = {
    "same": "The user chose not to save it",
    "newer": "Its file was changed on the disk too, and the user left both as they are",
    "gone": "Its file is gone from the disk, and the user left that as it is",
}
"""Why the call was refused when the user left it, or gave no answer."""


async def with_saved_documents(
    session: Session, turn_id: str, title: str, step: Callable[[], Awaitable[T | Refusal]]
) -> T | Refusal:
    """Return the result of `step`, after the documents that it refuses as unsaved are saved; else its refusal."""
    for _ in range(SAVES_MAX):
        found = await step()
        if not isinstance(found, Refusal) or found.document is None:
            return found
        refusal = await _Unsaved(session, turn_id, title, found, found.document).decide()
        if refusal is not None:
            return refusal
    return await step()


@frozen
class _Both:
    """A dirty document and its file, read together. `raw` None: there is no file."""

    state: DocumentState
    raw: bytes | None


@attrs.define
class _Unsaved:
    """One dirty document that a call waits for."""

    session: Session
    turn_id: str
    title: str
    refusal: Refusal
    document: UnsavedDocument

    async def decide(self) -> Refusal | None:
        """Let the user decide. None: repeat the step."""
        options = self._options()
        if not options:
            return self.refusal
        try:
            return await self._decide(options)
        except OSError as error:
            return self._refuse(f"Its file cannot be read ({error.strerror or error})")

    async def _decide(self, options: tuple[str, ...]) -> Refusal | None:
        with self.session.waiting_for_user():
            chosen = await self._ask(self._question(), options)
            if chosen == SHOW_BOTH:
                shown = await self.session.context.in_thread(self._difference)
                chosen = await self._ask(shown, tuple(one for one in options if one != SHOW_BOTH))
            match chosen:
                case "Save and go on" | "Keep mine":
                    return await self._save(keeps_disk=chosen == KEEP_MINE)
                case "Keep the disk's":
                    return await self._keep_disk()
                case _:
                    return self._refuse(LEFT[self.document.disk])

    def _options(self) -> tuple[str, ...]:
        editor = self.session.context.editor
        if self.document.disk == "same":
            return (SAVE, LEAVE) if editor.saves() else ()
        disk = (KEEP_DISK,) if editor.applies() and self.document.disk == "newer" else ()
        mine = (KEEP_MINE,) if editor.saves() else ()
        return (SHOW_BOTH, *disk, *mine, LEAVE_BOTH) if disk or mine else ()

    def _question(self) -> str:
        match self.document.disk:
            case "same":
                return f"{self._shown} has unsaved changes. Save them so that “{self.title}” can continue."
            case "newer":
                return (
                    f"{self._shown} has unsaved changes, and its file was changed on the disk too. “{self.title}”"
                    " continues with the text that you keep; the other one is stored."
                )
            case "gone":
                return (
                    f"{self._shown} has unsaved changes, and its file is gone from the disk. “{self.title}” continues"
                    " if you keep your text, which makes the file again."
                )

    async def _ask(self, question: str, options: tuple[str, ...]) -> str | None:
        context = self.session.context
        asked = UserQuestion(context.ids.new(), self.session.session_id, self.turn_id, question, options)
        answer = await context.editor.ask_user(asked)
        return answer if answer in options else None

    def _difference(self) -> str:
        """Return the question with the difference of the two texts. Blocks."""
        both = self._read()
        if both is None:
            return self._question()
        file = FileEncodings(self.session.tool_context).decode(both.state.resolved, both.raw or b"")
        disk = file.content if isinstance(file, FileText) else ""
        diff = unified_diff(disk, both.state.document.text, self._shown, DIFF_BYTES_MAX)
        return f"{self._question()}\nFrom the disk to the editor:\n{diff}"

    async def _save(self, keeps_disk: bool) -> Refusal | None:
        """Have the document saved, if it and its file still are as the question said. None: repeat the step."""
        context = self.session.context
        both = await context.in_thread(self._read)
        if both is None or not both.state.is_dirty or (both.state.disk != "same" and not keeps_disk):
            return None  # saved or closed by the user, or the file is newer now, which is another question
        kept = await self._keep(both.raw) if keeps_disk and both.raw is not None else None
        if isinstance(kept, Refusal):
            return kept
        if kept is not None and await context.in_thread(self._has_changed, both):
            return None
        document = both.state.document
        saved = await context.editor.save(self.document.path, document.version)
        now = await context.in_thread(self._read)
        is_on_disk = now is None or (now.state.disk == "same" and not now.state.is_dirty)
        if kept is not None:  # also if nothing is saved yet: an answer that is lost says nothing
            self._tell(f"What {self._shown} had on the disk is kept as {kept}.")
        if is_on_disk or (now is not None and now.state.document.version != document.version):
            return None  # saved or closed, or changed again meanwhile
        if saved and now is not None and now.raw != both.raw:
            return None  # a program changed the saved file at once; the step looks at it
        return self._refuse("The editor could not save it")

    async def _keep_disk(self) -> Refusal | None:
        """Give the document the text of its file, after its own is stored. None: repeat the step."""
        context = self.session.context
        both = await context.in_thread(self._read)
        if both is None or not both.state.is_dirty or both.state.disk != "newer" or both.raw is None:
            return None
        encodings = FileEncodings(self.session.tool_context)
        file = await context.in_thread(encodings.decode, both.state.resolved, both.raw)
        if not isinstance(file, FileText):
            return self._refuse(f"The file on the disk has no text: {file.reason.rstrip('.')}")
        document = both.state.document
        kept = await self._keep(document.text.encode("utf-8", "surrogatepass"))
        if isinstance(kept, Refusal):
            return kept
        answer = await context.editor.apply(self.document.path, document.version, file.content)
        if answer.state != "refused":  # a lost change may come later
            self._tell(f"The unsaved text of {self._shown} is kept as {kept}.")
        if answer.state == "applied":
            return None
        now = context.editor.document(self.document.path)
        if now is None or now.version != document.version:
            return None
        return self._refuse(f"The editor did not take the text of the disk: {answer.why}")

    async def _keep(self, content: bytes) -> str | Refusal:
        """Store what is about to be replaced, and return where."""
        if len(content) > CHECKPOINT_BYTES_MAX:
            return self._refuse("What is to be replaced is too large to be stored")
        context, folder = self.session.context, self.session.tool_context.session_folder
        store = BlobStore(context.disk, folder, "checkpoints")
        try:
            digest = await context.in_thread(store.store, content, context.ids.new())
        except OSError as error:
            return self._refuse(f"What is to be replaced could not be stored ({error.strerror or error})")
        return f"{folder}/checkpoints/{digest}"

    def _has_changed(self, both: _Both) -> bool:
        """Whether the file is not as it was when it was stored. Blocks."""
        now = self._read()
        return now is None or now.raw != both.raw

    def _read(self) -> _Both | None:
        """Read the document and its file; None: it is not open any more. Blocks."""
        context = self.session.context
        document = context.editor.document(self.document.path)
        if document is None:
            return None
        raw = read_file_of(context.disk, self.document.resolved, CHECKPOINT_BYTES_MAX)
        state = state_of_document(context.disk, self.document.path, self.document.resolved, document)
        return _Both(state, raw)

    def _tell(self, text: str) -> None:
        self.session.feed.notify_message("info", text)

    @property
    def _shown(self) -> str:
        return one_line(display_path(self.document.path, self.session.tool_context.root))

    def _refuse(self, why: str) -> Refusal:
        return Refusal("unsaved", f"{self._shown} has unsaved changes in the editor. {why}, so it was not changed.")
