"""Remove a file or link: it is gone or as it was, and nobody's save is lost (rows W8, W9).

    check       the last comparison with the content before, the last query of cancellation, and directly after them
    displace    the file is renamed to the temporary name that *started* records, never over another file, and compared
                again: if it is not the content before, it is a concurrent save and gets its name back
    remove      the displaced file is removed, the folder synced
    read back   only if nothing has the path then, the result is `Removed` (row W5)

After a kill between the two steps nothing has the path, and the temporary name has the content before. Recovery removes
that file if its content is in `checkpoints/` too, and otherwise keeps and names it (`postcondition_check`). A save that
continues to write to the displaced file after the comparison is lost.

A returned value states what was observed. An OSError means that the path is as before or empty; the check finds out
which.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeAlias

from steadyhand.domain.records.record import Evidence
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Folder
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.workspace.open_documents import is_unsaved_in_editor
from steadyhand.tools.workspace.paths import locate, open_folder, parts_of
from steadyhand.tools.writes.entry_state import is_same_folder, matches_evidence
from steadyhand.tools.writes.postcondition_check import name_left, remove_temporary_in, shown_temporary
from steadyhand.tools.writes.replace_file import Conflict
from steadyhand_values import frozen


@frozen
class Removed:
    """Nothing has the path, as read back."""


@frozen
class Untouched:
    """The path was not changed by us, or again is as somebody else wrote it."""

    reason: Literal["cancelled", "changed", "unsaved", "unsupported", "not_written"]
    text: str
    kept_files: tuple[str, ...] = ()


RemoveOutcome: TypeAlias = "Removed | Untouched | Conflict"


def remove(tool_context: ToolContext, evidence: Evidence, is_cancelled: Callable[[], bool]) -> RemoveOutcome:
    """Remove what the evidence describes. Raises OSError (see above)."""
    assert evidence.temporary is not None
    if is_cancelled():
        return Untouched("cancelled", "It was cancelled before anything was done.")
    with open_folder(tool_context, parts_of(evidence.resolved)[:-1]) as folder:
        return _RemoveRun(tool_context, folder, evidence, evidence.temporary, is_cancelled).run()


def find_obstacle(tool_context: ToolContext, folder: Folder, evidence: Evidence) -> Untouched | None:
    """Return why the entry must not be removed now; None if it may be. `folder` is the open folder of the path."""
    shown = display_path(evidence.resolved, tool_context.root)
    parts = parts_of(evidence.resolved)
    if is_unsaved_in_editor(tool_context, evidence.path, evidence.resolved):
        return Untouched("unsaved", f"{shown} has unsaved changes in the editor; save it first.")
    located = locate(tool_context, evidence.path, follow=False)
    if isinstance(located, Refusal) or located.resolved != evidence.resolved:
        return Untouched("changed", f"The path {shown} now leads somewhere else.")
    if not is_same_folder(tool_context, folder, parts[:-1]):
        return Untouched("changed", f"The path {shown} now leads somewhere else.")
    there = tool_context.disk.look(folder, parts[-1])
    if there is None or there.mode != evidence.mode:
        return concurrent_change(shown)
    same = matches_evidence(tool_context.disk, folder, parts[-1], evidence.kind, evidence.before)
    return None if same else concurrent_change(shown)


def concurrent_change(shown: str) -> Untouched:
    """The result if somebody else changed the path."""
    return Untouched("changed", f"{shown} was changed by somebody else in the meantime.")


class _RemoveRun:
    """One removal, with the folder open."""

    def __init__(
        self,
        tool_context: ToolContext,
        folder: Folder,
        evidence: Evidence,
        temporary: str,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._tool_context = tool_context
        self._disk = tool_context.disk
        self._folder = folder
        self._evidence = evidence
        self._temporary = temporary
        self._is_cancelled = is_cancelled
        self._name = parts_of(evidence.resolved)[-1]
        self._shown = display_path(evidence.resolved, tool_context.root)

    @property
    def _displaced(self) -> str:
        return shown_temporary(self._tool_context, self._folder, self._evidence)

    def run(self) -> RemoveOutcome:
        stopped = find_obstacle(self._tool_context, self._folder, self._evidence)
        if stopped is not None:
            return stopped
        if self._is_cancelled():
            return Untouched("cancelled", "It was cancelled before it was removed.")
        try:
            self._disk.rename_new(self._folder, self._name, self._temporary)
        except FileNotFoundError:
            return concurrent_change(self._shown)
        except FileExistsError:
            return Untouched("unsupported", f"The name {self._displaced} belongs to another file.", (self._displaced,))
        try:
            ours = self._is_before()
        except OSError as error:
            with suppress(OSError):
                self._disk.rename_new(self._folder, self._temporary, self._name)
            self._clear(error)
            raise
        if not ours:
            return self._put_back()
        try:
            self._disk.unlink(self._folder, self._temporary)
            self._disk.sync_folder(self._folder)
        except OSError as error:
            self._clear(error)
            raise
        return self._read_back()

    def _clear(self, error: OSError) -> None:
        """Remove the displaced content, which is stored; raise if it is left where recovery does not find it."""
        kept = remove_temporary_in(self._tool_context, self._folder, self._evidence)
        name_left(self._tool_context, self._folder, self._evidence, kept, error)

    def _is_before(self) -> bool:
        return matches_evidence(self._disk, self._folder, self._temporary, self._evidence.kind, self._evidence.before)

    def _put_back(self) -> RemoveOutcome:
        """Give a concurrent save its name back. A file that is not ours is never removed."""
        cause = f"Somebody else saved {self._shown} at the same moment"
        try:
            self._disk.rename_new(self._folder, self._temporary, self._name)
            self._disk.sync_folder(self._folder)
        except FileExistsError:
            # There was another save; the later one has the name.
            return Untouched(
                "changed", f"{cause}, and again; the earlier save is kept as {self._displaced}.", (self._displaced,)
            )
        except OSError as error:
            trouble = error.strerror or error
            text = f"{cause}; it may not have been put back ({trouble}). {self._displaced} may hold that save."
            return Conflict(text, (self._displaced,))
        return concurrent_change(self._shown)

    def _read_back(self) -> Removed | Conflict:
        """Read the path, resolved again: the open folder may have been moved."""
        with open_folder(self._tool_context, parts_of(self._evidence.resolved)[:-1]) as folder:
            if self._disk.look(folder, self._name) is None:
                return Removed()
        return Conflict(f"{self._shown} was deleted, but reading it back finds that somebody else put something there.")
