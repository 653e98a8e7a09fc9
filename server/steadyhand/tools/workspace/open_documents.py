"""Files that are open in the editor: whether the editor's text is on disk (rows V1, V2).

The editor's mirror says what it saw: a change since the last save, a save, or neither for a document that was already
changed when it was opened (an editor restores unsaved text; a restarted server gets it again). In that case the file
decides: text that is on disk is saved, whoever wrote it.

An editor spells a path as its user opened it, perhaps through links; the resolved path decides which document is meant.
"""

from __future__ import annotations

import posixpath

from steadyhand.domain.text.decoding import is_text_of
from steadyhand.ports.disk import Disk
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.paths import ResolvedPath, locate

BYTES_PER_CHARACTER_MAX = 8
"""Four in UTF-8, doubled: a line end that an editor counts as one character may be two."""


def unsaved_document(tool_context: ToolContext, asked: str, resolved: str) -> OpenDocument | None:
    """Return the document of the file if it has changes that are not on disk, under any of its names; else None.

    Reads the file if the mirror alone cannot say.
    """
    found = _find_unsaved(tool_context, asked, resolved)
    return None if found is None else found[1]


def unsaved_path(tool_context: ToolContext, asked: str, resolved: str) -> str | None:
    """Return the absolute path under which the editor has the file open with unsaved changes; else None."""
    found = _find_unsaved(tool_context, asked, resolved)
    return None if found is None else found[0]


def is_unsaved_in_editor(tool_context: ToolContext, asked: str, resolved: str) -> bool:
    """Whether the file is open in the editor, under any of its names, with changes that are not on disk."""
    return _find_unsaved(tool_context, asked, resolved) is not None


def _find_unsaved(tool_context: ToolContext, asked: str, resolved: str) -> tuple[str, OpenDocument] | None:
    as_asked = posixpath.normpath(posixpath.join(tool_context.root or "/", asked))
    for path in dict.fromkeys((resolved, as_asked, *other_editor_paths(tool_context).get(resolved, ()))):
        document = tool_context.document(path)
        if document is None or document.unsaved is False:
            continue
        if _is_different_on_disk(tool_context.disk, resolved, document):
            return path, document
    return None


def other_editor_paths(tool_context: ToolContext) -> dict[str, list[str]]:
    """Resolved path → other paths under which the editor has the file open, perhaps unsaved, through links.

    Reads the folders of these paths.
    """
    found: dict[str, list[str]] = {}
    for path in tool_context.unsaved_paths():
        located = locate(tool_context, path)
        if isinstance(located, ResolvedPath) and located.resolved != path:
            found.setdefault(located.resolved, []).append(path)
    return found


def is_on_disk(disk: Disk, path: str, text: str) -> bool | None:
    """Whether the file at an absolute path has this text now; None if that cannot be read.

    A document without text whose file does not exist counts as on disk: nothing is lost with it.
    """
    limit = BYTES_PER_CHARACTER_MAX * len(text) + BYTES_PER_CHARACTER_MAX
    try:
        folder = disk.open_folder(posixpath.dirname(path))
        try:
            raw = disk.read(folder, posixpath.basename(path), limit + 1)
        finally:
            disk.close(folder)
    except (FileNotFoundError, NotADirectoryError):
        return not text
    except OSError:
        return None
    return is_text_of(raw, text) if len(raw) <= limit else False


def _is_different_on_disk(disk: Disk, path: str, document: OpenDocument) -> bool:
    found = is_on_disk(disk, path, document.text)
    return not found if found is not None else document.unsaved is True
