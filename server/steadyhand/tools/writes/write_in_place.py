"""Write over the bytes of a file that must keep its inode (row W11), and never lose the bytes before.

    open       once, and no link is followed; every step below uses this descriptor
    check      the path, the editor, cancellation; as the last step inode, size and digest by the descriptor
    write      from the start, cut to length, synced
    read back  by the descriptor; only then the change is `Replaced` (row W5)

An error in the middle writes the old bytes back. Where that works too, nothing has changed (`NotReplaced`); where it
fails, the file may hold a part of each (`Conflict`), and the old bytes are in `checkpoints/`. A kill in the middle
leaves the same mix, which the check calls a conflict. There is no temporary file. A save by another program between
the check and the read-back can be lost, and this module cannot tell.

An OSError means that the file has its old or its new content; the check finds out which.
"""

from __future__ import annotations

from collections.abc import Callable

from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.place import Identity
from steadyhand.domain.records.record import Evidence
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import EntryStat, File, Folder, write_all
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, Refusal, ToolContext
from steadyhand.tools.workspace.open_documents import is_unsaved_in_editor
from steadyhand.tools.workspace.paths import locate, open_folder, parts_of, sync_folder_names
from steadyhand.tools.writes.blob_store import PIECE_BYTES_MAX
from steadyhand.tools.writes.entry_state import is_same_folder
from steadyhand.tools.writes.replace_file import Conflict, NotReplaced, Replaced, ReplaceOutcome


def write_in_place(
    tool_context: ToolContext,
    evidence: Evidence,
    content: bytes,
    identity: Identity,
    is_cancelled: Callable[[], bool],
) -> ReplaceOutcome:
    """Make `content` the content of the file with this identity, as the evidence describes it. Blocks.

    Raises OSError (see above).
    """
    if is_cancelled():
        return NotReplaced("cancelled", "It was cancelled before anything was done.")
    folders = parts_of(evidence.resolved)[:-1]
    sync_folder_names(tool_context, folders)
    with open_folder(tool_context, folders) as folder:
        file = tool_context.disk.open_update(folder, parts_of(evidence.resolved)[-1])
        try:
            return _InPlaceWrite(tool_context, folder, file, evidence, content, identity, is_cancelled).run()
        finally:
            tool_context.disk.close(file)


class _InPlaceWrite:
    """One write, with the file open."""

    def __init__(
        self,
        tool_context: ToolContext,
        folder: Folder,
        file: File,
        evidence: Evidence,
        content: bytes,
        identity: Identity,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._tool_context = tool_context
        self._disk = tool_context.disk
        self._folder = folder
        self._file = file
        self._evidence = evidence
        self._content = content
        self._identity = identity
        self._is_cancelled = is_cancelled
        self._shown = display_path(evidence.resolved, tool_context.root)

    def run(self) -> ReplaceOutcome:
        if is_unsaved_in_editor(self._tool_context, self._evidence.path, self._evidence.resolved):
            return NotReplaced("unsaved", f"{self._shown} has unsaved changes in the editor; save it first.")
        if not self._is_path_unchanged():
            return NotReplaced("changed", f"The path {self._shown} now leads somewhere else.")
        old = self._read_before()
        if old is None:
            return NotReplaced("changed", f"{self._shown} was changed by somebody else in the meantime.")
        if self._is_cancelled():
            return NotReplaced("cancelled", "It was cancelled before the file was written.")
        try:
            self._write(self._content)
        except OSError as error:
            return self._put_back(old, error)
        return self._read_back()

    def _is_path_unchanged(self) -> bool:
        """Whether the path, resolved again, still leads to the file that is open."""
        located = locate(self._tool_context, self._evidence.path)
        if isinstance(located, Refusal) or located.resolved != self._evidence.resolved:
            return False
        seen = self._disk.look(self._folder, located.name)
        same = seen is not None and seen.identity == self._identity
        return same and is_same_folder(self._tool_context, self._folder, located.folders)

    def _read_before(self) -> bytes | None:
        """Return the bytes of the open file, if they are those of the evidence and nobody writes meanwhile."""
        seen = self._disk.look_open(self._file)
        expected = (self._identity, self._evidence.mode, self._evidence.before_bytes)
        if (seen.identity, seen.mode, seen.size) != expected or seen.size > CHECKPOINT_BYTES_MAX:
            return None
        content = self._read(seen)
        if sha256(content) != self._evidence.before or self._disk.look_open(self._file) != seen:
            return None
        return content

    def _read(self, seen: EntryStat) -> bytes:
        """Return the bytes of the open file, one more than `seen` says at most."""
        self._disk.move_to(self._file, 0)
        pieces: list[bytes] = []
        left = seen.size + 1
        while left > 0 and (piece := self._disk.read_piece(self._file, min(left, PIECE_BYTES_MAX))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def _write(self, content: bytes) -> None:
        self._disk.move_to(self._file, 0)
        write_all(self._disk, self._file, content)
        self._disk.truncate(self._file, len(content))
        self._disk.sync(self._file)

    def _put_back(self, old: bytes, error: OSError) -> ReplaceOutcome:
        """Write the bytes before again, and read them back."""
        why = error.strerror or str(error)
        try:
            self._write(old)
            seen = self._disk.look_open(self._file)
            if seen.size == len(old) and self._read(seen) == old:
                text = f"{self._shown} could not be written ({why}); its earlier content is back."
                return NotReplaced("not_written", text)
            trouble = "reading it back finds other bytes"
        except OSError as second:
            trouble = second.strerror or str(second)
        text = f"{self._shown} could not be written ({why}), and its earlier content may not be back ({trouble})."
        return Conflict(f"{text} It may hold a part of each; restore it.")

    def _read_back(self) -> Replaced | Conflict:
        self._disk.sync_folder(self._folder)
        seen = self._disk.look_open(self._file)
        content = self._read(seen)
        if content != self._content or self._disk.look_open(self._file) != seen:
            return Conflict(f"{self._shown} was written, but reading it back finds that somebody else changed it.")
        if not self._is_path_unchanged():
            return Conflict(f"{self._shown} was written, and somebody else put another file in its place.")
        return Replaced(sha256(content), len(content))
