"""Replace a file atomically: it has its old or its new content, and nobody's save is lost (row W9).

    temporary    created beside the target under the name that *started* records; written whole, given mode, owner and
                 extended attributes, synced, read back
    check        the last comparison with the content before, the last query of cancellation, and directly after them
    replace      the names are exchanged, so the displaced content still exists: if it is not the content before, it is
                 a concurrent save and is exchanged back; a new file is renamed so that it never replaces one
    clean up     the displaced content before is removed, the folder synced
    read back    only what is then on disk makes the change `Replaced` (row W5, case 34)

If the system cannot exchange names, a plain rename is used, and a save between the check and the rename can be lost. A
save that continues to write to the displaced file after the comparison is lost too.

A returned value states what was observed. An OSError means only this: the target is old or new, and the temporary file
is gone or has its recorded name; the check finds out which.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs

from steadyhand.domain.records.record import Evidence
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Attributes, Folder, write_all
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.workspace.open_documents import is_unsaved_in_editor
from steadyhand.tools.workspace.paths import locate, make_folders, open_folder, parts_of, sync_folder_names
from steadyhand.tools.writes.blob_store import digest_of
from steadyhand.tools.writes.entry_state import is_same_folder
from steadyhand.tools.writes.postcondition_check import name_left, remove_temporary_in, shown_temporary
from steadyhand_values import frozen

ACCESS_LIST_NAME = "system.posix_acl_access"
TEMPORARY_MODE = 0o600  # until the attributes of the target are set
NEW_FILE_MODE = 0o666
"""The umask clears bits of it, as for any program's new file; the umask itself is not changed."""


@frozen
class Replaced:
    """The intended content is at its path, as read back."""

    digest: str
    bytes: int
    missing_attributes: tuple[str, ...] = ()  # attributes that the system did not allow for the new file


@frozen
class NotReplaced:
    """The path was not changed by us, or again is as somebody else wrote it."""

    reason: Literal["cancelled", "changed", "unsaved", "unsupported", "not_written"]
    text: str
    kept_files: tuple[str, ...] = ()


@frozen
class Conflict:
    """The file was replaced, and what is at the path or beside it now is neither old nor new."""

    text: str
    kept_files: tuple[str, ...] = ()


ReplaceOutcome: TypeAlias = "Replaced | NotReplaced | Conflict"


@frozen
class MoveSource:
    """The content comes from another path: the attributes it had there, and a last check of that path."""

    attributes: Attributes
    find_obstacle: Callable[[], NotReplaced | None]


def replace_file(
    tool_context: ToolContext,
    evidence: Evidence,
    content: bytes,
    is_cancelled: Callable[[], bool],
    source: MoveSource | None = None,
) -> ReplaceOutcome:
    """Make `content` the content of the file that the evidence describes. Raises OSError (see above).

    With `source` the file gets the attributes of that source, whatever the target's were.
    """
    assert evidence.temporary is not None
    if is_cancelled():
        return NotReplaced("cancelled", "It was cancelled before anything was done.")
    folders = parts_of(evidence.resolved)[:-1]
    if not evidence.existed:
        make_folders(tool_context, folders)
    sync_folder_names(tool_context, folders)
    with open_folder(tool_context, folders) as folder:
        return _AtomicReplace(tool_context, folder, evidence, evidence.temporary, content, is_cancelled, source).run()


class _AtomicReplace:
    """One replacement, with the folder open."""

    def __init__(
        self,
        tool_context: ToolContext,
        folder: Folder,
        evidence: Evidence,
        temporary: str,
        content: bytes,
        is_cancelled: Callable[[], bool],
        source: MoveSource | None,
    ) -> None:
        self._tool_context = tool_context
        self._disk = tool_context.disk
        self._folder = folder
        self._evidence = evidence
        self._temporary = temporary
        self._content = content
        self._is_cancelled = is_cancelled
        self._source = source
        self._name = parts_of(evidence.resolved)[-1]
        self._shown = display_path(evidence.resolved, tool_context.root)

    def run(self) -> ReplaceOutcome:
        attributes = self._source.attributes if self._source is not None else None
        if self._evidence.existed:
            difference = self._find_difference()
            if difference is not None:
                return difference
            attributes = attributes or self._disk.attributes(self._folder, self._name)
        mode = NEW_FILE_MODE if attributes is None else TEMPORARY_MODE
        try:
            file = self._disk.create(self._folder, self._temporary, mode)
            try:
                write_all(self._disk, file, self._content)
                missing = () if attributes is None else tuple(self._disk.give_attributes(file, attributes))
                self._disk.sync(file)
            finally:
                self._disk.close(file)
            stopped = self._check_temporary(missing) or self._check_before_replace()
            if stopped is not None:
                return attrs.evolve(stopped, kept_files=self._remove_temporary())
            return self._replace(missing)
        except FileExistsError:
            raise  # another process has created a file with this name, so it is not ours to remove
        except OSError as error:
            name_left(self._tool_context, self._folder, self._evidence, self._remove_temporary(), error)
            raise

    def _check_temporary(self, missing: tuple[str, ...]) -> NotReplaced | None:
        """Return why the temporary file must not replace the target; None if it may."""
        if self._digest_of(self._temporary) != self._intended():
            return NotReplaced("not_written", "The disk did not store the bytes that were written.")
        # The system sets its own attributes; owner and mode are kept if the system allows it.
        own = [name for name in missing if name.startswith("user.") or name == ACCESS_LIST_NAME]
        if own:
            return NotReplaced("unsupported", f"Its extended attributes {', '.join(own)} could not be preserved.")
        return None

    def _check_before_replace(self) -> NotReplaced | None:
        if is_unsaved_in_editor(self._tool_context, self._evidence.path, self._evidence.resolved):
            return NotReplaced("unsaved", f"{self._shown} has unsaved changes in the editor; save it first.")
        if not self._is_path_unchanged():
            return NotReplaced("changed", f"The path {self._shown} now leads somewhere else.")
        difference = self._find_difference() or (self._source.find_obstacle() if self._source is not None else None)
        if difference is not None:
            return difference
        if self._is_cancelled():
            return NotReplaced("cancelled", "It was cancelled before the file was replaced.")
        return None

    def _is_path_unchanged(self) -> bool:
        """Whether the path, resolved again, still leads to the folder that is open."""
        located = locate(self._tool_context, self._evidence.path)
        if isinstance(located, Refusal) or located.resolved != self._evidence.resolved:
            return False
        return is_same_folder(self._tool_context, self._folder, located.folders)

    def _find_difference(self) -> NotReplaced | None:
        """Return the change if the target is not what the evidence says; else None."""
        seen = self._disk.look(self._folder, self._name)
        if seen is None or not self._evidence.existed:
            return None if seen is None and not self._evidence.existed else self._concurrent_change()
        if seen.kind != "file":
            return self._concurrent_change()
        if self._source is None and (seen.mode != self._evidence.mode or seen.links > 1):
            return self._concurrent_change()
        same = self._digest_of(self._name) == self._before()
        return None if same else self._concurrent_change()

    def _replace(self, missing: tuple[str, ...]) -> ReplaceOutcome:
        try:
            if not self._evidence.existed:
                self._disk.rename_new(self._folder, self._temporary, self._name)
            elif not self._disk.exchange(self._folder, self._temporary, self._name):
                self._disk.rename(self._folder, self._temporary, self._name)
            elif self._is_displaced_content_before():
                self._disk.unlink(self._folder, self._temporary)
            else:
                return self._put_back()
        except (FileExistsError, FileNotFoundError):
            # The new file's name is taken, or the old file is gone: in both cases nothing was replaced.
            if self._has_intended_content(self._temporary):
                return self._concurrent_change(self._remove_temporary())
            raise
        self._disk.sync_folder(self._folder)
        return self._read_back(missing)

    def _is_displaced_content_before(self) -> bool:
        seen = self._disk.look(self._folder, self._temporary)
        if seen is None or seen.kind != "file":
            return False
        same = self._digest_of(self._temporary) == self._before()
        return same and self._disk.look(self._folder, self._temporary) == seen

    def _put_back(self) -> ReplaceOutcome:
        """Exchange a concurrent save back. A file that is not ours is never removed."""
        kept = shown_temporary(self._tool_context, self._folder, self._evidence)
        cause = f"Somebody else saved {self._shown} at the same moment"
        try:
            if self._disk.exchange(self._folder, self._temporary, self._name):
                if self._has_intended_content(self._temporary):
                    return self._concurrent_change(self._remove_temporary())
                # There was another save, over our content; the later save gets the name.
                if self._disk.exchange(self._folder, self._temporary, self._name):
                    self._disk.sync_folder(self._folder)
                    return NotReplaced("changed", f"{cause}, and again; the earlier save is kept as {kept}.", (kept,))
            trouble = "names cannot be exchanged here"
        except OSError as error:
            trouble = error.strerror or str(error)
        return Conflict(f"{cause}; it may not have been put back ({trouble}). {kept} may hold that save.", (kept,))

    def _concurrent_change(self, kept: tuple[str, ...] = ()) -> NotReplaced:
        return NotReplaced("changed", f"{self._shown} was changed by somebody else in the meantime.", kept)

    def _has_intended_content(self, name: str) -> bool:
        seen = self._disk.look(self._folder, name)
        return seen is not None and seen.kind == "file" and self._digest_of(name) == self._intended()

    def _read_back(self, missing: tuple[str, ...]) -> Replaced | Conflict:
        """Read the path, resolved again: the open folder may have been moved."""
        if not is_same_folder(self._tool_context, self._folder, parts_of(self._evidence.resolved)[:-1]):
            return Conflict(f"{self._shown} was replaced while its folder was moved or removed{self._place_now()}.")
        with open_folder(self._tool_context, parts_of(self._evidence.resolved)[:-1]) as folder:
            seen = self._disk.look(folder, self._name)
            if seen is None or seen.kind != "file":
                return Conflict(f"{self._shown} was replaced, but reading it back finds no regular file there.")
            digest, size = digest_of(self._disk, folder, self._name, seen.size)
            if (digest, size) != self._intended() or self._disk.look(folder, self._name) != seen:
                return Conflict(f"{self._shown} was replaced, but reading it back finds that somebody else changed it.")
        return Replaced(digest, size, missing)

    def _place_now(self) -> str:
        """Return a clause on where the open folder is now; empty where nobody can tell."""
        try:
            path = posixpath.join(self._disk.real_path(self._folder), self._name)
        except OSError:
            return ""
        return f"; what was replaced is {display_path(path, self._tool_context.root)} now"

    def _remove_temporary(self) -> tuple[str, ...]:
        return remove_temporary_in(self._tool_context, self._folder, self._evidence, self._content)

    def _digest_of(self, name: str) -> tuple[str, int]:
        expected = max(self._evidence.before_bytes or 0, self._evidence.intended_bytes or 0)
        return digest_of(self._disk, self._folder, name, expected)

    def _before(self) -> tuple[str | None, int | None]:
        return self._evidence.before, self._evidence.before_bytes

    def _intended(self) -> tuple[str | None, int | None]:
        return self._evidence.intended, self._evidence.intended_bytes
