"""Move a file or link: it has its old name or its new one, and nobody's save is lost (rows W3, W9).

    rename      if nothing has the new name and both names are on one file system: one rename that never replaces. What
                arrived is compared with the content before; a concurrent save is moved back.
    copy        otherwise, and for a file only: `replace_file` puts the content under the new name, with the old file's
                attributes, and `remove` then removes the old name. Each of the two paths is old or new at every moment.
                After a kill between them both names exist, which the check reports as a conflict. The copy has the
                modification time of the move.

Both paths are checked before the first of the two changes, and each is compared again directly before its own change.

A returned value states what was observed. An OSError means only this: each path is as before or as intended; the check
finds out which.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from steadyhand.domain.records.record import Evidence
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Folder
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.workspace.open_documents import is_unsaved_in_editor
from steadyhand.tools.workspace.paths import locate, make_folders, open_folder, parts_of, sync_folder_names
from steadyhand.tools.writes.entry_state import is_same_folder, matches_evidence
from steadyhand.tools.writes.remove import Removed, Untouched, concurrent_change, find_obstacle, remove
from steadyhand.tools.writes.replace_file import Conflict, MoveSource, NotReplaced, Replaced, replace_file
from steadyhand_values import frozen


@frozen
class Moved:
    """The content is at the new path and nothing is at the old one, as read back."""

    missing_attributes: tuple[str, ...] = ()  # attributes that the system did not allow for the copy


MoveOutcome: TypeAlias = "Moved | Untouched | Conflict"


def move_entry(
    tool_context: ToolContext, start: Evidence, goal: Evidence, content: bytes | None, is_cancelled: Callable[[], bool]
) -> MoveOutcome:
    """Move what `start` describes to the path of `goal`. `content`: its bytes, None if they are too many to copy.

    Raises OSError (see above).
    """
    if is_cancelled():
        return Untouched("cancelled", "It was cancelled before anything was done.")
    if not goal.existed:
        make_folders(tool_context, parts_of(goal.resolved)[:-1])
    # If a power loss removed a folder, it would remove what was moved into it too.
    sync_folder_names(tool_context, parts_of(goal.resolved)[:-1])
    with (
        open_folder(tool_context, parts_of(start.resolved)[:-1]) as here,
        open_folder(tool_context, parts_of(goal.resolved)[:-1]) as there,
    ):
        run = _MoveRun(tool_context, start, goal, here, there, is_cancelled)
        done = None if goal.existed else run.rename()
        return done or run.copy_and_remove(content)


class _MoveRun:
    """One move, with both folders open."""

    def __init__(
        self,
        tool_context: ToolContext,
        start: Evidence,
        goal: Evidence,
        here: Folder,
        there: Folder,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._tool_context = tool_context
        self._disk = tool_context.disk
        self._start, self._goal = start, goal
        self._here, self._there = here, there
        self._is_cancelled = is_cancelled
        self._old_name, self._new_name = parts_of(start.resolved)[-1], parts_of(goal.resolved)[-1]
        self._old = display_path(start.resolved, tool_context.root)
        self._new = display_path(goal.resolved, tool_context.root)

    def rename(self) -> MoveOutcome | None:
        """Move by one rename. None: the paths are on different file systems, and nothing has changed."""
        stopped = self._find_goal_obstacle() or find_obstacle(self._tool_context, self._here, self._start)
        if stopped is not None:
            return stopped
        if self._is_cancelled():
            return Untouched("cancelled", "It was cancelled before it was moved.")
        try:
            self._disk.rename_to(self._here, self._old_name, self._there, self._new_name, True)
        except FileExistsError:
            return concurrent_change(self._new)
        except FileNotFoundError:
            return concurrent_change(self._old)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return None
            raise
        try:
            arrived = matches_evidence(self._disk, self._there, self._new_name, self._start.kind, self._start.before)
        except OSError:
            # It is not known what was moved, so it goes back to where it was.
            with suppress(OSError):
                self._disk.rename_to(self._there, self._new_name, self._here, self._old_name, True)
            raise
        if not arrived:
            return self._move_back()
        # The new name first: a power loss can then only bring back the old name.
        self._disk.sync_folder(self._there)
        self._disk.sync_folder(self._here)
        return self._read_back(())

    def copy_and_remove(self, content: bytes | None) -> MoveOutcome:
        """Copy the content to the new path, then remove the old one."""
        if self._start.kind == "link":
            return Untouched("unsupported", f"{self._new} is on another file system, and links are not moved there.")
        if content is None:
            return Untouched("unsupported", f"{self._old} is too large to be copied to another file system.")
        stopped = find_obstacle(self._tool_context, self._here, self._start)
        if stopped is not None:
            return stopped
        source = MoveSource(self._disk.attributes(self._here, self._old_name), self._find_start_obstacle)
        match replace_file(self._tool_context, self._goal, content, self._is_cancelled, source):
            case NotReplaced(reason=why, text=text, kept_files=kept):
                return Untouched(why, text, kept)
            case Conflict() as conflict:
                return conflict
            case Replaced(missing_attributes=missing):
                return self._remove_start(missing)

    def _remove_start(self, missing: tuple[str, ...]) -> MoveOutcome:
        """Remove the old name. The content has arrived, so a cancel comes too late."""
        match remove(self._tool_context, self._start, lambda: False):
            case Removed():
                return self._read_back(missing)
            case Untouched(text=text, kept_files=kept) | Conflict(text=text, kept_files=kept):
                both = f"{self._new} has the content, but {self._old} could not be removed"
                return Conflict(f"{both}: {text}", kept)

    def _find_start_obstacle(self) -> NotReplaced | None:
        stopped = find_obstacle(self._tool_context, self._here, self._start)
        return None if stopped is None else NotReplaced(stopped.reason, stopped.text, stopped.kept_files)

    def _find_goal_obstacle(self) -> Untouched | None:
        """Return why nothing may be put at the new path, at which nothing was."""
        if is_unsaved_in_editor(self._tool_context, self._goal.path, self._goal.resolved):
            return Untouched("unsaved", f"{self._new} has unsaved changes in the editor; save it first.")
        located = locate(self._tool_context, self._goal.path, follow=False)
        if isinstance(located, Refusal) or located.resolved != self._goal.resolved:
            return Untouched("changed", f"The path {self._new} now leads somewhere else.")
        if not is_same_folder(self._tool_context, self._there, located.folders):
            return Untouched("changed", f"The path {self._new} now leads somewhere else.")
        return concurrent_change(self._new) if located.kind is not None else None

    def _move_back(self) -> MoveOutcome:
        """Move back what is not the content before.

        A save happened before the move; it gets its name back. Or, less likely, the save came to the new name directly
        after the move: this cannot be told apart, so that save then has the old name, and the text says so.
        """
        cause = f"Somebody else saved {self._old} or {self._new} at the same moment"
        try:
            self._disk.rename_to(self._there, self._new_name, self._here, self._old_name, True)
            self._disk.sync_folder(self._here)
            self._disk.sync_folder(self._there)
        except OSError as error:
            trouble = error.strerror or error
            text = f"{cause}; it may not have been moved back ({trouble}). {self._new} may hold that save."
            return Conflict(text, (self._new,))
        return Untouched("changed", f"{cause}; the saved content is at {self._old}.")

    def _read_back(self, missing: tuple[str, ...]) -> Moved | Conflict:
        """Read both paths, resolved again: the open folders may have been moved."""
        with open_folder(self._tool_context, parts_of(self._goal.resolved)[:-1]) as there:
            if not matches_evidence(self._disk, there, self._new_name, self._goal.kind, self._goal.intended):
                return Conflict(f"{self._old} was moved, but reading {self._new} back finds something else there.")
        with open_folder(self._tool_context, parts_of(self._start.resolved)[:-1]) as here:
            if self._disk.look(here, self._old_name) is not None:
                return Conflict(f"{self._old} was moved, but somebody else put something there again.")
        return Moved(missing)
