"""Files that are open in the editor: what the editor's text and the disk have to do with each other (rows V1, V2).

A document is *clean* if its text is what the editor opened or last saved, else *dirty*. The file on disk is *same*,
*newer* or *gone*, compared with what the editor opened or last saved. docs/buffers.md has the table of what a call does
in each of these states.

The editor's mirror says what it saw: a change since the last save, a save, or neither for a document that was already
changed when it was opened (an editor restores unsaved text; a restarted server gets it again). The file decides: text
that is on disk is clean, whoever wrote it.

An editor spells a path as its user opened it, perhaps through links; the resolved path decides which document is meant.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Literal

from steadyhand.domain.records.identity import sha256
from steadyhand.domain.text.decoding import is_text_of
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Disk
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.contract import Refusal, ToolContext, UnsavedDocument
from steadyhand.tools.workspace.paths import ResolvedPath, locate, one_line
from steadyhand_values import frozen

BYTES_PER_CHARACTER_MAX = 8
"""Four in UTF-8, doubled: a line end that an editor counts as one character may be two."""

EDITOR_MARK = "[as it stands in the editor, with unsaved changes]"
BOTH_MARK = "[the editor and the disk both changed; this is the editor's text]"
GONE_MARK = "[the file is gone from the disk; this is the editor's unsaved text]"
UNSAVED_NAMED_MAX = 5
"""Files with unsaved text that the reply of a command names."""
NO_FILE = ""
"""In place of a digest: there was no file."""


@frozen
class DocumentState:
    """An open document and its file."""

    path: str  # absolute, as the editor spells it
    resolved: str  # absolute, after links
    document: OpenDocument
    disk: Literal["same", "newer", "gone"]
    is_dirty: bool

    @property
    def mark(self) -> str:
        """The last line of what shows the text of a dirty document."""
        return {"same": EDITOR_MARK, "newer": BOTH_MARK, "gone": GONE_MARK}[self.disk]


@frozen
class _File:
    """A file that was read; `raw` None: there is none. A longer one than was asked for is none of the texts."""

    raw: bytes | None
    is_whole: bool = True

    def has(self, text: str) -> bool | None:
        """Whether it has this text; None: nobody can tell. Without text and without a file nothing is lost."""
        if self.raw is None:
            return not text
        return is_text_of(self.raw, text) if self.is_whole else False


def open_document(tool_context: ToolContext, asked: str, resolved: str) -> DocumentState | None:
    """Return the document of the file under any of its names, first a dirty one; None: it is not open. Reads it."""
    states = list(_states(tool_context, asked, resolved, _may_be_the_same(tool_context, resolved)))
    return next((state for state in states if state.is_dirty), states[0] if states else None)


def unsaved_document(tool_context: ToolContext, asked: str, resolved: str) -> DocumentState | None:
    """Return the document of the file if it has changes that are not on disk, under any of its names; else None."""
    return next((state for state in _states(tool_context, asked, resolved, None) if state.is_dirty), None)


def _may_be_the_same(tool_context: ToolContext, resolved: str) -> list[str]:
    """Return the paths of open documents to be resolved: the unsaved ones, and the saved ones of that name. An editor
    may have hundreds of files open, so a saved one whose link has another name is not looked for."""
    name = posixpath.basename(resolved).casefold()
    saved = (path for path in tool_context.open_paths() if posixpath.basename(path).casefold() == name)
    return list(dict.fromkeys((*tool_context.unsaved_paths(), *saved)))


def _states(
    tool_context: ToolContext, asked: str, resolved: str, open_paths: Sequence[str] | None
) -> Iterator[DocumentState]:
    """Yield the documents of the file. `open_paths` None: only those that the mirror does not know as saved."""
    as_asked = posixpath.normpath(posixpath.join(tool_context.root or "/", asked))
    paths = tool_context.unsaved_paths() if open_paths is None else open_paths
    for path in dict.fromkeys((resolved, as_asked, *_other_paths(tool_context, paths).get(resolved, ()))):
        document = tool_context.document(path)
        if document is not None and (open_paths is not None or document.unsaved is not False):
            yield state_of_document(tool_context.disk, path, resolved, document)


def is_unsaved_in_editor(tool_context: ToolContext, asked: str, resolved: str) -> bool:
    """Whether the file is open in the editor, under any of its names, with changes that are not on disk."""
    return unsaved_document(tool_context, asked, resolved) is not None


def refuse_unsaved(shown: str, state: DocumentState) -> Refusal:
    """Return the refusal of a call that would overwrite the text of a dirty document."""
    also = {
        "same": "; save it first",
        "newer": ", and its file on disk was changed too",
        "gone": ", and its file is gone from the disk",
    }[state.disk]
    document = UnsavedDocument(state.path, state.resolved, state.disk)
    return Refusal("unsaved", f"{shown} has unsaved changes in the editor{also}.", document)


def state_of_document(disk: Disk, path: str, resolved: str, document: OpenDocument) -> DocumentState:
    """Compare one open document with its file. Blocks."""
    saved = document.saved_text
    try:
        file = _read(disk, resolved, max(len(document.text), len(saved or ""), len(document.first_text or "")))
    except OSError:
        return DocumentState(path, resolved, document, "same", document.unsaved is True)
    has_text = file.has(document.text)
    if has_text or (has_text is None and document.unsaved is not True):
        is_gone = file.raw is None and bool(saved)
        return DocumentState(path, resolved, document, "gone" if is_gone else "same", is_dirty=False)
    if document.unsaved is False:
        return DocumentState(path, resolved, document, "gone" if file.raw is None else "newer", is_dirty=False)
    return DocumentState(path, resolved, document, _disk_under(file, document), is_dirty=True)


def _disk_under(file: _File, document: OpenDocument) -> Literal["same", "newer", "gone"]:
    """Compare the file with what the editor opened or last saved. What nobody knows counts as the same."""
    if document.saved_text is not None:
        texts = (document.saved_text, document.first_text)
        is_same = any(text is not None and file.has(text) is not False for text in texts)
    elif document.opened_over is not None:
        is_same = document.opened_over == (NO_FILE if file.raw is None else sha256(file.raw))
    else:
        is_same = True
    return "same" if is_same else "gone" if file.raw is None else "newer"


def other_editor_paths(tool_context: ToolContext) -> dict[str, list[str]]:
    """Resolved path → other paths under which the editor has the file open, perhaps unsaved, through links.

    Reads the folders of these paths.
    """
    return _other_paths(tool_context, tool_context.unsaved_paths())


def _other_paths(tool_context: ToolContext, paths: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        located = locate(tool_context, path)
        if isinstance(located, ResolvedPath) and located.resolved != path:
            found.setdefault(located.resolved, []).append(path)
    return found


def unsaved_sentence(tool_context: ToolContext) -> str:
    """Return which files of the workspace have unsaved text, for the reply of a command; empty: none."""
    found: list[str] = []
    for path in tool_context.unsaved_paths():
        document, located = tool_context.document(path), locate(tool_context, path)
        if document is None or isinstance(located, Refusal) or not located.is_inside:
            continue
        if state_of_document(tool_context.disk, path, located.resolved, document).is_dirty:
            found.append(one_line(display_path(located.resolved, tool_context.root)))
    more = len(found) - UNSAVED_NAMED_MAX
    named = ", ".join(found[:UNSAVED_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
    return f"Not saved in the editor, so not seen by this command: {named}" if named else ""


def gone_documents(tool_context: ToolContext) -> Iterator[tuple[ResolvedPath, str]]:
    """Yield the documents with unsaved text whose files are not on disk: the place and the text."""
    for path in tool_context.unsaved_paths():
        document, located = tool_context.document(path), locate(tool_context, path)
        if document is None or not document.text or isinstance(located, Refusal) or located.kind is not None:
            continue
        if state_of_document(tool_context.disk, path, located.resolved, document).is_dirty:
            yield located, document.text


def is_on_disk(disk: Disk, path: str, text: str) -> bool | None:
    """Whether the file at an absolute path has this text now; None if that cannot be read.

    A document without text whose file does not exist counts as on disk: nothing is lost with it.
    """
    return compare_at_open(disk, path, text)[0]


def compare_at_open(disk: Disk, path: str, text: str) -> tuple[bool | None, str | None]:
    """Return whether the file has this text (None: nobody can tell), and the digest of a file that has another one."""
    try:
        file = _read(disk, path, len(text))
    except OSError:
        return None, None
    has_text = file.has(text)
    if has_text is not False or not file.is_whole:
        return has_text, None
    return False, NO_FILE if file.raw is None else sha256(file.raw)


def read_file_of(disk: Disk, path: str, bytes_max: int) -> bytes | None:
    """Return the content of a file, at most one byte more than `bytes_max`; None: there is none. Raises OSError."""
    return _read_bytes(disk, path, bytes_max).raw


def _read(disk: Disk, path: str, characters: int) -> _File:
    """Read a file that may have so many characters. Raises OSError, but not where there is no file."""
    return _read_bytes(disk, path, BYTES_PER_CHARACTER_MAX * characters + BYTES_PER_CHARACTER_MAX)


def _read_bytes(disk: Disk, path: str, limit: int) -> _File:
    try:
        folder = disk.open_folder(posixpath.dirname(path))
        try:
            raw = disk.read(folder, posixpath.basename(path), limit + 1)
        finally:
            disk.close(folder)
    except (FileNotFoundError, NotADirectoryError):
        return _File(None)
    return _File(raw, len(raw) <= limit)
