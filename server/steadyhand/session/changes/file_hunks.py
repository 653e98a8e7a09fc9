"""Read the contents that a file's hunks of lines are made of: the base, our last content, and what is there now (V4).

The base is in `checkpoints/`. Our last content is the file's, or is made again from the arguments of the call, as
recovery makes it. Each content counts only by its digest. A file that was created, deleted, moved or written in place,
that is no text, or that is in another encoding than it was, is one hunk.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from steadyhand.domain.changes.hunks import FileHunks, file_hunks, lines_of
from steadyhand.domain.changes.review import Reviewed
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.text.decoding import FileText
from steadyhand.domain.text.encodings import TextEncoding, encoding_recorded
from steadyhand.session.inspection.versions import read_content_now
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, ToolContext
from steadyhand.tools.registry import intended_content
from steadyhand.tools.workspace.file_encoding import FileEncodings
from steadyhand.tools.workspace.open_documents import unsaved_document
from steadyhand.tools.writes.blob_store import BlobStore
from steadyhand_values import frozen


def with_lines(tool_context: ToolContext, ledger: Ledger, one: Reviewed, now: str, with_editor: bool) -> Reviewed:
    """Return the review with the hunks of lines; as it is where it is one hunk. Blocks.

    `now`: digest of what is there. `with_editor`: the hunks are placed in the text that the editor shows, where that is
    not saved."""
    encoding = _encoding(one)
    if encoding is None or one.base is None or one.last is None:
        return one
    lines = _read(_Reading(tool_context, ledger, one, encoding, now), with_editor)
    return one if lines is None else attrs.evolve(one, lines=lines)


@frozen
class _Reading:
    tool_context: ToolContext
    ledger: Ledger
    one: Reviewed
    encoding: TextEncoding
    now: str

    def compared(self) -> Sequence[bytes] | None:
        return self._lines(self._stored(self.one.base))

    def last(self, present: bytes | None) -> Sequence[bytes] | None:
        if self.one.last == self.now:
            return self._lines(present)
        stored = self._stored(self.one.last)
        return self._lines(stored if stored is not None else self._made_again())

    def present(self) -> bytes | None:
        content = read_content_now(self.tool_context, self.one.links[-1].evidence)
        return content if content is not None and sha256(content) == self.now else None

    def theirs(self, present: bytes) -> Sequence[bytes] | None:
        """Return the lines that somebody else left, unless they are in another encoding by the rules of row W10."""
        evidence = self.one.links[-1].evidence
        found = FileEncodings(self.tool_context).decode(evidence.resolved, present, evidence.path)
        is_same = isinstance(found, FileText) and found.encoding is self.encoding
        return self._lines(present) if is_same else None

    def in_editor(self, last: Sequence[bytes]) -> Sequence[bytes] | None:
        """Return the lines of the editor's text, if it is not what is on disk."""
        evidence = self.one.links[-1].evidence
        document = unsaved_document(self.tool_context, evidence.path, evidence.resolved)
        if document is None:
            return None
        mark = self.encoding.mark
        begins_marked = bool(mark and last and last[0].startswith(mark))
        content = document.document.text.encode(self.encoding.name, "replace")
        return lines_of((mark if begins_marked else b"") + content, self.encoding)

    def _lines(self, content: bytes | None) -> Sequence[bytes] | None:
        return None if content is None else lines_of(content, self.encoding)

    def _stored(self, digest: str | None) -> bytes | None:
        store = BlobStore(self.tool_context.disk, self.tool_context.session_folder, "checkpoints")
        return None if digest is None else store.read(digest, CHECKPOINT_BYTES_MAX)

    def _made_again(self) -> bytes | None:
        """Make our last content from the arguments of a call that wrote it."""
        for link in reversed(self.one.links):
            attempt = self.ledger.attempts.get(link.attempt_id)
            call = None if attempt is None else self.ledger.calls.get(attempt.call_id)
            if call is None or link.after != self.one.last:
                continue
            content = intended_content(self.tool_context, link.tool, call.arguments, link.evidence)
            if content is not None and sha256(content) == self.one.last:
                return content
        return None


def _read(reading: _Reading, with_editor: bool) -> FileHunks | None:
    present = reading.present()
    base, last = reading.compared(), reading.last(present)
    if present is None or base is None or last is None:
        return None
    now = None if reading.one.last == reading.now else reading.theirs(present)
    if now is None and reading.one.last != reading.now:
        return None
    shown = reading.in_editor(last) if with_editor else None
    return file_hunks(base, last, now if shown is None else shown)


def _encoding(one: Reviewed) -> TextEncoding | None:
    """Return the encoding of a text that was modified; None: its change is one hunk."""
    if not one.is_open or any(link.evidence.in_place or link.evidence.kind == "link" for link in one.links):
        return None
    if any(link.before is None or link.after is None for link in one.links):
        return None
    found = {encoding_recorded(link.evidence.encoding) for link in one.links}
    return found.pop() if len(found) == 1 else None
