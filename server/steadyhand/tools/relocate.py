"""The one way a file or link is moved: at its old name or at its new one, and nobody's save is lost (rows W3, W9).

    in one step   where nothing stands at the new name and both lie on one file system: one rename that never replaces.
                  What arrived is compared with the content before; a save that slipped in is moved back.
    by copy       else, and for a file only: the content is put under the new name by `tools.replace`, with the old
                  file's attributes, and then the old name is removed by `tools.remove`. Each of the two paths is old
                  or new at every moment; a kill between them leaves both there, which the check calls a conflict and
                  names. The copy's time is that of the move.

Both gates are passed before the first of the two changes, and each path is compared once more when it is its turn.

A value says what was observed. An OSError means that nothing is known but this: each path is as before or as intended,
and the check answers it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

import attrs

from steadyhand.core.record import Evidence
from steadyhand.ports import Folder
from steadyhand.tools.open_document import unsaved_in_editor
from steadyhand.tools.place import display, entered, locate, make_folders, parts_of, sync_way
from steadyhand.tools.remove import Removed, Untouched, changed_meanwhile, hindrance, remove
from steadyhand.tools.replace import Conflict, Moving, NotReplaced, Replaced, replace
from steadyhand.tools.standing import same_folder, stands
from steadyhand.tools.tool import Ground, Refusal


@attrs.frozen
class Moved:
    """The content stands under the new path and nothing under the old one, as read back."""

    not_given: tuple[str, ...] = ()  # attributes that a copy could not be given


Move: TypeAlias = "Moved | Untouched | Conflict"


def relocate(
    ground: Ground, start: Evidence, goal: Evidence, content: bytes | None, cancelled: Callable[[], bool]
) -> Move:
    """Move what `start` describes to where `goal` says. `content`: its bytes, None if they are too many to copy.
    Raises OSError (see above)."""
    if cancelled():
        return Untouched("cancelled", "It was cancelled before anything was done.")
    if not goal.existed:
        make_folders(ground, parts_of(goal.resolved)[:-1])
    # A folder that power takes back would take what was moved into it along.
    sync_way(ground, parts_of(goal.resolved)[:-1])
    with (
        entered(ground, parts_of(start.resolved)[:-1]) as here,
        entered(ground, parts_of(goal.resolved)[:-1]) as there,
    ):
        moving = _Moving(ground, start, goal, here, there, cancelled)
        done = None if goal.existed else moving.in_one_step()
        return done or moving.by_copy(content)


class _Moving:
    def __init__(
        self,
        ground: Ground,
        start: Evidence,
        goal: Evidence,
        here: Folder,
        there: Folder,
        cancelled: Callable[[], bool],
    ) -> None:
        self._ground = ground
        self._disk = ground.disk
        self._start, self._goal = start, goal
        self._here, self._there = here, there
        self._cancelled = cancelled
        self._old_name, self._new_name = parts_of(start.resolved)[-1], parts_of(goal.resolved)[-1]
        self._old = display(ground.root, start.resolved)
        self._new = display(ground.root, goal.resolved)

    def in_one_step(self) -> Move | None:
        """None: the two lie on different file systems, and nothing has happened."""
        stopped = self._goal_hindrance() or hindrance(self._ground, self._here, self._start)
        if stopped is not None:
            return stopped
        if self._cancelled():
            return Untouched("cancelled", "It was cancelled before it was moved.")
        try:
            self._disk.rename_to(self._here, self._old_name, self._there, self._new_name, True)
        except FileExistsError:
            return changed_meanwhile(self._new)
        except FileNotFoundError:
            return changed_meanwhile(self._old)
        except OSError as error:
            if error.errno == errno.EXDEV:
                return None
            raise
        try:
            arrived = stands(self._disk, self._there, self._new_name, self._start.kind, self._start.before)
        except OSError:
            # What was moved cannot be told, so it is not ours to leave it here.
            with suppress(OSError):
                self._disk.rename_to(self._there, self._new_name, self._here, self._old_name, True)
            raise
        if not arrived:
            return self._move_back()
        # The new name first: what power can take back then is only that the old one is gone.
        self._disk.sync_folder(self._there)
        self._disk.sync_folder(self._here)
        return self._read_back(())

    def by_copy(self, content: bytes | None) -> Move:
        if self._start.kind == "link":
            return Untouched("unsupported", f"{self._new} lies on another file system, to which no link is moved.")
        if content is None:
            return Untouched("unsupported", f"{self._old} must be copied to be moved, and is too large for that.")
        stopped = hindrance(self._ground, self._here, self._start)
        if stopped is not None:
            return stopped
        moving = Moving(self._disk.attributes(self._here, self._old_name), self._start_hindrance)
        match replace(self._ground, self._goal, content, self._cancelled, moving):
            case NotReplaced(why=why, text=text, kept=kept):
                return Untouched(why, text, kept)
            case Conflict() as conflict:
                return conflict
            case Replaced(not_given=not_given):
                return self._remove_start(not_given)

    def _remove_start(self, not_given: tuple[str, ...]) -> Move:
        """It has arrived, so a cancel comes too late."""
        match remove(self._ground, self._start, lambda: False):
            case Removed():
                return self._read_back(not_given)
            case Untouched(text=text, kept=kept) | Conflict(text=text, kept=kept):
                both = f"{self._new} has the content, and {self._old} could not be removed as it was meant"
                return Conflict(f"{both}: {text}", kept)

    def _start_hindrance(self) -> NotReplaced | None:
        stopped = hindrance(self._ground, self._here, self._start)
        return None if stopped is None else NotReplaced(stopped.why, stopped.text, stopped.kept)

    def _goal_hindrance(self) -> Untouched | None:
        """Why nothing may be put under the new name, where nothing stood."""
        if unsaved_in_editor(self._ground, self._goal.path, self._goal.resolved):
            return Untouched("unsaved", f"{self._new} has unsaved changes in the editor; save it first.")
        located = locate(self._ground, self._goal.path, follow=False)
        if isinstance(located, Refusal) or located.resolved != self._goal.resolved:
            return Untouched("changed", f"The path {self._new} leads elsewhere now.")
        if not same_folder(self._ground, self._there, located.folders):
            return Untouched("changed", f"The path {self._new} leads elsewhere now.")
        return changed_meanwhile(self._new) if located.kind is not None else None

    def _move_back(self) -> Move:
        """A save slipped in before the move, and gets its name back; or, less likely, it came to the new name right
        after, which cannot be told apart: then it stands under the old one, and that is said."""
        told = f"Somebody else saved {self._old} or {self._new} at the same moment"
        try:
            self._disk.rename_to(self._there, self._new_name, self._here, self._old_name, True)
            self._disk.sync_folder(self._here)
            self._disk.sync_folder(self._there)
        except OSError as error:
            trouble = error.strerror or error
            text = f"{told}; it could not be moved back for certain ({trouble}). {self._new} may hold that save."
            return Conflict(text, (self._new,))
        return Untouched("changed", f"{told}; what was saved stands under {self._old}.")

    def _read_back(self, not_given: tuple[str, ...]) -> Moved | Conflict:
        """What stands under both paths now, walked to anew: the open folders may have been moved away."""
        with entered(self._ground, parts_of(self._goal.resolved)[:-1]) as there:
            if not stands(self._disk, there, self._new_name, self._goal.kind, self._goal.intended):
                return Conflict(f"{self._old} was moved, but reading {self._new} back finds something else there.")
        with entered(self._ground, parts_of(self._start.resolved)[:-1]) as here:
            if self._disk.look(here, self._old_name) is not None:
                return Conflict(f"{self._old} was moved, but somebody else put something there again.")
        return Moved(not_given)
