"""The one way a file's content is replaced: old or new, never else, and nobody's save is lost (row W9).

    temporary    created beside the target under the name that *started* records; written whole, given mode, owner and
                 extended attributes, synced, read back
    gate         the last comparison with the content before, the last look at cancellation, and directly after them
    replacement  the names are exchanged, so that what is displaced still exists: if it is not the content before, a
                 save slipped in, and is exchanged back; a new file is renamed so that it never replaces one
    clean-up     the displaced content before is removed, the folder synced
    read back    only what then stands on disk makes the change `Replaced` (row W5, case 34)

Where names cannot be exchanged, a plain rename takes the place of the exchange, and a save in the moment between the
gate and it can be lost. A save that goes on writing to the displaced file after it was compared is lost too.

A value says what was observed. An OSError means that nothing is known but this: the target is old or new, and the
temporary file is gone or lies under its recorded name; the check answers it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs

from steadyhand.core.record import Evidence
from steadyhand.ports import Attributes, Folder
from steadyhand.tools.check import clear_temporary
from steadyhand.tools.content import digest_of, write_all
from steadyhand.tools.open_document import unsaved_in_editor
from steadyhand.tools.place import display, entered, locate, make_folders, parts_of, sync_way
from steadyhand.tools.tool import Ground, Refusal

temporary_mode = 0o600
new_file_mode = 0o666
"""Less what the umask takes away, as for any program's new file; the umask itself is not touched."""


@attrs.frozen
class Replaced:
    """The intended content stands under its path, as read back."""

    digest: str
    bytes: int
    not_given: tuple[str, ...] = ()  # attributes that the new file could not be given


@attrs.frozen
class NotReplaced:
    """The path was not changed by us, or is again as somebody else made it."""

    why: Literal["cancelled", "changed", "unsaved", "unsupported", "not_written"]
    text: str
    kept: tuple[str, ...] = ()


@attrs.frozen
class Conflict:
    """It was replaced, and what stands there or beside it now is neither old nor new."""

    text: str
    kept: tuple[str, ...] = ()


Replacement: TypeAlias = "Replaced | NotReplaced | Conflict"


@attrs.frozen
class Moving:
    """The content comes from another path: what it brings with it, and what is looked at there, last, in the gate."""

    attributes: Attributes
    hindrance: Callable[[], NotReplaced | None]


def replace(
    ground: Ground, evidence: Evidence, content: bytes, cancelled: Callable[[], bool], moving: Moving | None = None
) -> Replacement:
    """Make `content` the file's content as the evidence describes it. Raises OSError (see above).

    With `moving` the file takes its attributes from there, whatever the target's were."""
    assert evidence.temporary is not None
    if cancelled():
        return NotReplaced("cancelled", "It was cancelled before anything was done.")
    folders = parts_of(evidence.resolved)[:-1]
    if not evidence.existed:
        make_folders(ground, folders)
    sync_way(ground, folders)
    with entered(ground, folders) as folder:
        return _Try(ground, folder, evidence, evidence.temporary, content, cancelled, moving).whole()


class _Try:
    def __init__(
        self,
        ground: Ground,
        folder: Folder,
        evidence: Evidence,
        temporary: str,
        content: bytes,
        cancelled: Callable[[], bool],
        moving: Moving | None,
    ) -> None:
        self._ground = ground
        self._disk = ground.disk
        self._folder = folder
        self._evidence = evidence
        self._temporary = temporary
        self._content = content
        self._cancelled = cancelled
        self._moving = moving
        self._name = parts_of(evidence.resolved)[-1]
        self._shown = display(ground.root, evidence.resolved)

    def whole(self) -> Replacement:
        attributes = self._moving.attributes if self._moving is not None else None
        if self._evidence.existed:
            difference = self._difference()
            if difference is not None:
                return difference
            attributes = attributes or self._disk.attributes(self._folder, self._name)
        mode = new_file_mode if attributes is None else temporary_mode
        try:
            file = self._disk.create(self._folder, self._temporary, mode)
            try:
                write_all(self._disk, file, self._content)
                missing = () if attributes is None else tuple(self._disk.give_attributes(file, attributes))
                self._disk.sync(file)
            finally:
                self._disk.close(file)
            stopped = self._unfit(missing) or self._gate()
            if stopped is not None:
                return attrs.evolve(stopped, kept=self._clear())
            return self._replace(missing)
        except FileExistsError:
            raise  # somebody else has this very name, so it is not ours to remove
        except OSError:
            self._clear()
            raise

    def _unfit(self, missing: tuple[str, ...]) -> NotReplaced | None:
        """Whether the temporary file is not fit to take the target's place."""
        if self._digest(self._temporary) != self._intended():
            return NotReplaced("not_written", "The disk did not keep the bytes that were written to it.")
        # Those of the system's own are given by the system; owner and mode are kept where possible.
        own = [name for name in missing if name.startswith("user.")]
        if own:
            return NotReplaced("unsupported", f"Its extended attributes {', '.join(own)} could not be kept.")
        return None

    def _gate(self) -> NotReplaced | None:
        if unsaved_in_editor(self._ground, self._evidence.path, self._evidence.resolved):
            return NotReplaced("unsaved", f"{self._shown} has unsaved changes in the editor; save it first.")
        if not self._leads_here():
            return NotReplaced("changed", f"The path {self._shown} leads elsewhere now.")
        difference = self._difference() or (self._moving.hindrance() if self._moving is not None else None)
        if difference is not None:
            return difference
        if self._cancelled():
            return NotReplaced("cancelled", "It was cancelled before the file was replaced.")
        return None

    def _leads_here(self) -> bool:
        """Whether the path, resolved anew, still leads into the very folder that is open."""
        located = locate(self._ground, self._evidence.path)
        if isinstance(located, Refusal) or located.resolved != self._evidence.resolved:
            return False
        with entered(self._ground, located.folders) as folder:
            seen = self._disk.look(folder, self._temporary)
        mine = self._disk.look(self._folder, self._temporary)
        return seen is not None and mine is not None and seen.identity == mine.identity

    def _difference(self) -> NotReplaced | None:
        """Whether the target is not what the evidence says."""
        seen = self._disk.look(self._folder, self._name)
        if seen is None or not self._evidence.existed:
            return None if seen is None and not self._evidence.existed else self._changed()
        if seen.kind != "file":
            return self._changed()
        if self._moving is None and (seen.mode != self._evidence.mode or seen.links > 1):
            return self._changed()
        same = self._digest(self._name) == self._before()
        return None if same else self._changed()

    def _replace(self, missing: tuple[str, ...]) -> Replacement:
        try:
            if not self._evidence.existed:
                self._disk.rename_new(self._folder, self._temporary, self._name)
            elif not self._disk.exchange(self._folder, self._temporary, self._name):
                self._disk.rename(self._folder, self._temporary, self._name)
            elif self._displaced_is_before():
                self._disk.unlink(self._folder, self._temporary)
            else:
                return self._put_back()
        except (FileExistsError, FileNotFoundError):
            # A new file's name was taken, or an old one's is gone: either way nothing was replaced.
            if self._is_ours(self._temporary):
                return self._changed(self._clear())
            raise
        self._disk.sync_folder(self._folder)
        return self._read_back(missing)

    def _displaced_is_before(self) -> bool:
        seen = self._disk.look(self._folder, self._temporary)
        if seen is None or seen.kind != "file":
            return False
        same = self._digest(self._temporary) == self._before()
        return same and self._disk.look(self._folder, self._temporary) == seen

    def _put_back(self) -> Replacement:
        """A save slipped in and lies displaced: exchange it back. What is not ours is removed nowhere."""
        kept = display(self._ground.root, posixpath.join(posixpath.dirname(self._evidence.resolved), self._temporary))
        told = f"Somebody else saved {self._shown} at the same moment"
        try:
            if self._disk.exchange(self._folder, self._temporary, self._name):
                if self._is_ours(self._temporary):
                    return self._changed(self._clear())
                # They saved once more, over our content; the later save belongs under the name.
                if self._disk.exchange(self._folder, self._temporary, self._name):
                    self._disk.sync_folder(self._folder)
                    return NotReplaced("changed", f"{told}, and again; the earlier save is kept as {kept}.", (kept,))
            trouble = "names cannot be exchanged here"
        except OSError as error:
            trouble = error.strerror or str(error)
        return Conflict(
            f"{told}; it could not be put back for certain ({trouble}). {kept} may hold that save.", (kept,)
        )

    def _changed(self, kept: tuple[str, ...] = ()) -> NotReplaced:
        return NotReplaced("changed", f"{self._shown} was changed by somebody else in the meantime.", kept)

    def _is_ours(self, name: str) -> bool:
        seen = self._disk.look(self._folder, name)
        return seen is not None and seen.kind == "file" and self._digest(name) == self._intended()

    def _read_back(self, missing: tuple[str, ...]) -> Replaced | Conflict:
        """What stands under the path now, walked to anew: the open folder may have been moved away."""
        with entered(self._ground, parts_of(self._evidence.resolved)[:-1]) as folder:
            seen = self._disk.look(folder, self._name)
            if seen is None or seen.kind != "file":
                return Conflict(f"{self._shown} was replaced, but reading it back finds no regular file there.")
            digest, size = digest_of(self._disk, folder, self._name)
            if (digest, size) != self._intended() or self._disk.look(folder, self._name) != seen:
                return Conflict(f"{self._shown} was replaced, but reading it back finds that somebody else changed it.")
        return Replaced(digest, size, missing)

    def _clear(self) -> tuple[str, ...]:
        return clear_temporary(self._ground, self._evidence, self._content)

    def _digest(self, name: str) -> tuple[str, int]:
        return digest_of(self._disk, self._folder, name)

    def _before(self) -> tuple[str | None, int | None]:
        return self._evidence.before, self._evidence.before_bytes

    def _intended(self) -> tuple[str | None, int | None]:
        return self._evidence.intended, self._evidence.intended_bytes
