"""The one way a file or link is removed: gone or as it was, and nobody's save is lost (rows W8, W9).

    gate         the last comparison with the content before, the last look at cancellation, and directly after them
    displaced    the name is changed to the temporary one that *started* records, never over another; what lies there
                 now is compared again: if it is not the content before, a save slipped in, and gets its name back
    removal      the displaced content is removed, the folder synced
    read back    only that nothing stands under the path then makes it `Removed` (row W5)

Between the two steps a kill leaves the path empty and the content before under the temporary name; recovery removes it
there, since it is kept in `checkpoints/` too, and keeps and names it where it is not (`tools.check`). A save that goes
on writing to the displaced file after it was compared is lost.

A value says what was observed. An OSError means that the path is as before or empty, and the check answers it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from contextlib import suppress
from typing import Literal, TypeAlias

import attrs

from steadyhand.core.record import Evidence
from steadyhand.ports import Folder
from steadyhand.tools.open_document import unsaved_in_editor
from steadyhand.tools.place import display, entered, locate, parts_of
from steadyhand.tools.replace import Conflict
from steadyhand.tools.standing import same_folder, stands
from steadyhand.tools.tool import Ground, Refusal


@attrs.frozen
class Removed:
    """Nothing stands under the path, as read back."""


@attrs.frozen
class Untouched:
    """The path was not changed by us, or is again as somebody else made it."""

    why: Literal["cancelled", "changed", "unsaved", "unsupported", "not_written"]
    text: str
    kept: tuple[str, ...] = ()


Removal: TypeAlias = "Removed | Untouched | Conflict"


def remove(ground: Ground, evidence: Evidence, cancelled: Callable[[], bool]) -> Removal:
    """Remove what the evidence describes. Raises OSError (see above)."""
    assert evidence.temporary is not None
    if cancelled():
        return Untouched("cancelled", "It was cancelled before anything was done.")
    with entered(ground, parts_of(evidence.resolved)[:-1]) as folder:
        return _Removing(ground, folder, evidence, evidence.temporary, cancelled).whole()


def hindrance(ground: Ground, folder: Folder, evidence: Evidence) -> Untouched | None:
    """Why what stands under the path must not be taken away now; `folder` is the open folder of the path."""
    shown = display(ground.root, evidence.resolved)
    parts = parts_of(evidence.resolved)
    if unsaved_in_editor(ground, evidence.path, evidence.resolved):
        return Untouched("unsaved", f"{shown} has unsaved changes in the editor; save it first.")
    located = locate(ground, evidence.path, follow=False)
    if isinstance(located, Refusal) or located.resolved != evidence.resolved:
        return Untouched("changed", f"The path {shown} leads elsewhere now.")
    if not same_folder(ground, folder, parts[:-1]):
        return Untouched("changed", f"The path {shown} leads elsewhere now.")
    there = ground.disk.look(folder, parts[-1])
    if there is None or there.mode != evidence.mode:
        return changed_meanwhile(shown)
    same = stands(ground.disk, folder, parts[-1], evidence.kind, evidence.before)
    return None if same else changed_meanwhile(shown)


def changed_meanwhile(shown: str, kept: tuple[str, ...] = ()) -> Untouched:
    return Untouched("changed", f"{shown} was changed by somebody else in the meantime.", kept)


class _Removing:
    def __init__(
        self, ground: Ground, folder: Folder, evidence: Evidence, temporary: str, cancelled: Callable[[], bool]
    ) -> None:
        self._ground = ground
        self._disk = ground.disk
        self._folder = folder
        self._evidence = evidence
        self._temporary = temporary
        self._cancelled = cancelled
        self._name = parts_of(evidence.resolved)[-1]
        self._shown = display(ground.root, evidence.resolved)
        self._kept = display(ground.root, posixpath.join(posixpath.dirname(evidence.resolved), temporary))

    def whole(self) -> Removal:
        stopped = hindrance(self._ground, self._folder, self._evidence)
        if stopped is not None:
            return stopped
        if self._cancelled():
            return Untouched("cancelled", "It was cancelled before it was removed.")
        try:
            self._disk.rename_new(self._folder, self._name, self._temporary)
        except FileNotFoundError:
            return changed_meanwhile(self._shown)
        except FileExistsError:
            return Untouched("unsupported", f"The name {self._kept} is taken; it is not ours.", (self._kept,))
        try:
            ours = self._is_before()
        except OSError:
            with suppress(OSError):
                self._disk.rename_new(self._folder, self._temporary, self._name)
            raise
        if not ours:
            return self._put_back()
        self._disk.unlink(self._folder, self._temporary)
        self._disk.sync_folder(self._folder)
        return self._read_back()

    def _is_before(self) -> bool:
        return stands(self._disk, self._folder, self._temporary, self._evidence.kind, self._evidence.before)

    def _put_back(self) -> Removal:
        """A save slipped in and lies displaced; what is not ours is removed nowhere."""
        told = f"Somebody else saved {self._shown} at the same moment"
        try:
            self._disk.rename_new(self._folder, self._temporary, self._name)
            self._disk.sync_folder(self._folder)
        except FileExistsError:
            # They saved once more; the later save has the name.
            return Untouched("changed", f"{told}, and again; the earlier save is kept as {self._kept}.", (self._kept,))
        except OSError as error:
            trouble = error.strerror or error
            text = f"{told}; it could not be put back for certain ({trouble}). {self._kept} may hold that save."
            return Conflict(text, (self._kept,))
        return changed_meanwhile(self._shown)

    def _read_back(self) -> Removed | Conflict:
        """What stands under the path now, walked to anew: the open folder may have been moved away."""
        with entered(self._ground, parts_of(self._evidence.resolved)[:-1]) as folder:
            if self._disk.look(folder, self._name) is None:
                return Removed()
        return Conflict(f"{self._shown} was deleted, but reading it back finds that somebody else put something there.")
