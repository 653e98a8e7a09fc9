"""Files that are open in the editor: whether what the editor holds is on disk as well (rows V1, V2).

The editor's mirror says what it saw: a change since the last save, a save, or, for a document that came already
changed (an editor restores unsaved text, a restarted server is told of it anew), nothing yet. The file decides what
the mirror cannot: text that is on disk is saved, however it got there, as after an editor read a file again that was
written under it.

An editor spells a path as its user came to it, perhaps through links; where they lead decides which document is meant.
"""

from __future__ import annotations

import posixpath

from steadyhand.core.text_edit import is_text_of
from steadyhand.ports import Disk, OpenDocument
from steadyhand.tools.place import Located, locate
from steadyhand.tools.tool import Ground

bytes_per_character_max = 8
"""Four in UTF-8, twice: line ends that an editor shows as one character may be two."""


def unsaved_document(ground: Ground, asked: str, resolved: str) -> OpenDocument | None:
    """The file as it is open in the editor with changes that are not on disk, by whichever of its names; else None.

    Reads the file where the mirror alone cannot tell.
    """
    found = _unsaved(ground, asked, resolved)
    return None if found is None else found[1]


def unsaved_path(ground: Ground, asked: str, resolved: str) -> str | None:
    """The name under which the editor has it open so, an absolute path; else None."""
    found = _unsaved(ground, asked, resolved)
    return None if found is None else found[0]


def unsaved_in_editor(ground: Ground, asked: str, resolved: str) -> bool:
    """Whether the file is open in the editor with changes that are not on disk, by whichever of its names."""
    return _unsaved(ground, asked, resolved) is not None


def _unsaved(ground: Ground, asked: str, resolved: str) -> tuple[str, OpenDocument] | None:
    as_asked = posixpath.normpath(posixpath.join(ground.root or "/", asked))
    for path in dict.fromkeys((resolved, as_asked, *named_elsewhere(ground).get(resolved, ()))):
        document = ground.document(path)
        if document is not None and document.unsaved is not False and _differs(ground.disk, resolved, document):
            return path, document
    return None


def named_elsewhere(ground: Ground) -> dict[str, list[str]]:
    """Resolved path → names under which the editor has it open, perhaps unsaved, where links make them another's.

    Reads the folders on their way."""
    found: dict[str, list[str]] = {}
    for path in ground.unsaved_paths():
        located = locate(ground, path)
        if isinstance(located, Located) and located.resolved != path:
            found.setdefault(located.resolved, []).append(path)
    return found


def is_on_disk(disk: Disk, path: str, text: str) -> bool | None:
    """Whether the file at an absolute path has this text now; None where that cannot be told.

    Nothing is lost with a document without text whose file is not there: that counts as on disk.
    """
    limit = bytes_per_character_max * len(text) + bytes_per_character_max
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


def _differs(disk: Disk, path: str, document: OpenDocument) -> bool:
    found = is_on_disk(disk, path, document.text)
    return not found if found is not None else document.unsaved is True
