"""Change a file through the editor that has it open: `apply`, then `save` (row V2).

    look     the document and its file are as the evidence says, and nothing was cancelled
    apply    the editor gives the document the new text, if it still has the version that was looked at
    save     where the document was clean, and the editor saves on request
    read     what is on the disk is synced, and then decides what is said of it

Nothing of this is interrupted, and each wait is bounded. An answer alone proves nothing: the change counts as made when
the document has shown the new text. If nobody can tell, the outcome is unknown, because the editor may make the change
later.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.to_thread
import attrs

from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import BufferChange, Evidence, FileChange
from steadyhand.domain.recovery.postcondition import check_all_paths
from steadyhand.domain.text.decoding import to_lf
from steadyhand.domain.views.render import display_path
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.contract import FILE_BYTES_MAX, CallContext, ToolContext, ToolOutcome
from steadyhand.tools.workspace.open_documents import DocumentState, read_file_of, state_of_document
from steadyhand.tools.writes.postcondition_check import check_paths, make_durable, text_digest
from steadyhand_values import frozen

NOT_SAVED = "[not saved: the editor holds unsaved changes]"
NOT_ASKED = "[not saved: this editor does not save on request]"
SAVE_FAILED = "[not saved: the editor did not save it]"


@frozen
class BufferWrite:
    """One change of an open document."""

    tool_context: ToolContext
    evidence: Evidence
    shown: str  # the path, for the model
    text: str  # intended, with any line ends
    was_dirty: bool
    how: str = ""  # what was changed, as the reply says it

    async def run(self, running: CallContext) -> ToolOutcome:
        """Carry it out. It is not interrupted; each step is bounded."""
        with anyio.CancelScope(shield=True):
            return await self._carry_out(running)
        raise AssertionError("nothing cancels this scope")

    async def _carry_out(self, running: CallContext) -> ToolOutcome:
        found = await anyio.to_thread.run_sync(self._look, running.is_cancelled)
        if isinstance(found, ToolOutcome):
            return found
        if self._buffer.before == self._buffer.intended:
            return ToolOutcome("returned", f"{self.shown} already has this text; nothing was changed.")
        new_text = in_line_ends_of(found.text, self.text)
        answer = await running.buffers.apply(self._buffer.path, found.version, new_text)
        if answer.state == "refused":
            text = f"The editor did not change {self.shown}: {answer.why}. Nothing was changed."
            return ToolOutcome("failed", text, "changed")
        if answer.state == "lost":
            why = f"{answer.why}, and the editor may make the change later"
            return await anyio.to_thread.run_sync(self._uncertain, why)
        if self.evidence.is_only_in_buffer:
            return self._in_editor_only(NOT_SAVED if self.was_dirty else NOT_ASKED)
        version = self._version_with_text()
        if version is None:
            return self._in_editor_only(NOT_SAVED)
        saved = await running.buffers.save(self._buffer.path, version)
        return await anyio.to_thread.run_sync(self._after_save, saved)

    @property
    def _buffer(self) -> BufferChange:
        assert self.evidence.buffer is not None
        return self.evidence.buffer

    def _document(self) -> OpenDocument | None:
        return self.tool_context.document(self._buffer.path)

    def _version_with_text(self) -> int | None:
        """Return the version of the document while it has exactly the new text; None: somebody typed on."""
        document = self._document()
        return document.version if document is not None and self._has(document, self._buffer.intended) else None

    @staticmethod
    def _has(document: OpenDocument, digest: str) -> bool:
        return text_digest(document.text) == digest

    def _look(self, is_cancelled: Callable[[], bool]) -> OpenDocument | ToolOutcome:
        """Return the document, or why nothing is changed. Blocks."""
        document = self._document()
        if document is None:
            return ToolOutcome("failed", f"{self.shown} was closed in the editor. Nothing was changed.", "changed")
        if not self._has(document, self._buffer.before):
            text = f"{self.shown} was changed in the editor in the meantime. Nothing was changed."
            return ToolOutcome("failed", text, "changed")
        raw = read_file_of(self.tool_context.disk, self.evidence.resolved, FILE_BYTES_MAX)
        if (None if raw is None else sha256(raw)) != self.evidence.before:
            text = f"{self.shown} was changed by somebody else in the meantime. Nothing was changed."
            return ToolOutcome("failed", text, "changed")
        if is_cancelled():
            text = f"It was cancelled before anything was done. {self.shown} is unchanged."
            return ToolOutcome("stopped", text, "cancelled")
        return document

    def _uncertain(self, why: str) -> ToolOutcome:
        """Return the outcome of a change that nobody has seen. Blocks."""
        findings = check_paths(self.tool_context, (self.evidence,))
        check = check_all_paths(finding.check for finding in findings)
        text = f"It is unknown whether {self.shown} was changed: {why}."
        return ToolOutcome("unknown", text, "error", check=check)

    def _in_editor_only(self, note: str) -> ToolOutcome:
        text = f"{self.shown} was changed in the editor{self.how}.\n{note}"
        return ToolOutcome("returned", text, check="satisfied", contents=(self._known(),))

    def _after_save(self, saved: bool) -> ToolOutcome:
        """Make durable what is on the disk after the save, and say what it is. Blocks."""
        if not make_durable(self.tool_context, (self.evidence,)):
            return self._uncertain("what the editor saved could not be made durable")
        raw = read_file_of(self.tool_context.disk, self.evidence.resolved, FILE_BYTES_MAX)
        digest = None if raw is None else sha256(raw)
        state = self._state()
        is_by_editor = state is not None and not state.is_dirty and state.disk == "same"
        is_saved = saved or is_by_editor or digest == self.evidence.intended
        if raw is None or digest == self.evidence.before or not is_saved:
            return self._in_editor_only(SAVE_FAILED)
        path = display_path(self.evidence.resolved, self.tool_context.root)
        change = FileChange(path=path, change="modified", before=self.evidence.before, after=digest, bytes=len(raw))
        on_disk = f"{len(raw)} bytes on disk, SHA-256 {digest}"
        text = f"{self.shown} was changed through the editor{self.how} and saved: {on_disk}."
        if digest == self.evidence.intended:
            return ToolOutcome("returned", text, files=(change,), check="satisfied", contents=(raw,))
        text += f" {'The editor' if is_by_editor else 'Somebody'} changed more of it while it was saved; read it again."
        return ToolOutcome("returned", text, files=(change,), contents=(self._known(), raw))

    def _state(self) -> DocumentState | None:
        document = self._document()
        if document is None:
            return None
        return state_of_document(self.tool_context.disk, self._buffer.path, self.evidence.resolved, document)

    def _known(self) -> bytes:
        return to_lf(self.text).encode("utf-8", "surrogatepass")


def buffer_half(state: DocumentState, text: str, saves: bool, checkpoint: str | None) -> BufferChange:
    """Return the half of the evidence that is about the editor's text."""
    return BufferChange(
        path=state.path,
        before=text_digest(state.document.text),
        intended=text_digest(text),
        saves=saves,
        checkpoint=checkpoint,
    )


def evidence_in_buffer(on_disk: Evidence, state: DocumentState, text: str, checkpoint: str) -> Evidence:
    """Return the evidence of a change that is not saved: the disk is to stay as it is."""
    return attrs.evolve(
        on_disk,
        intended=on_disk.before,
        intended_bytes=on_disk.before_bytes,
        checkpoint=None,
        temporary=None,
        buffer=buffer_half(state, text, False, checkpoint),
    )


def evidence_through_editor(on_disk: Evidence, state: DocumentState, text: str) -> Evidence:
    """Return the evidence of a change that is made in the editor's text and saved."""
    return attrs.evolve(on_disk, temporary=None, buffer=buffer_half(state, text, True, None))


def in_line_ends_of(shown: str, text: str) -> str:
    """Return a text with the line ends of the text that an editor shows, if those are of one kind."""
    lone = shown.replace("\r\n", "")
    if "\r" in lone or "\r" in to_lf(text) or ("\r\n" in shown and "\n" in lone):
        return text
    return to_lf(text).replace("\n", "\r\n") if "\r\n" in shown else to_lf(text)
