"""The folder for temporary files of one confined command: its `/tmp` and TMPDIR, in the session's folder (row O1).

It is made for one attempt and removed when that has ended. What a killed server left is removed when the session is
opened again. Only names in the session's own `tmp` folder are touched, and no link is followed. Blocks.
"""

from __future__ import annotations

from contextlib import suppress

from steadyhand.ports.disk import Disk, Folder

TEMPORARY = "tmp"
LEVELS_MAX = 200
"""What lies deeper is left there."""


def own_temporary(session_folder: str, attempt_id: str) -> str:
    """Return the absolute path of the folder of one attempt."""
    return f"{session_folder}/{TEMPORARY}/{attempt_id}"


def make_own_temporary(disk: Disk, session_folder: str, attempt_id: str) -> None:
    """Make the empty folder. Raises OSError."""
    session = disk.open_folder(session_folder)
    try:
        with suppress(FileExistsError):
            disk.make_folder(session, TEMPORARY)
        parent = disk.enter(session, TEMPORARY)
        try:
            disk.make_folder(parent, attempt_id)
        finally:
            disk.close(parent)
    finally:
        disk.close(session)


def remove_own_temporary(disk: Disk, session_folder: str, attempt_id: str) -> None:
    """Remove one such folder. What cannot be removed stays until the session is opened again."""
    with suppress(OSError):
        session = disk.open_folder(session_folder)
        try:
            parent = disk.enter(session, TEMPORARY)
            try:
                _remove(disk, parent, attempt_id, 0)
            finally:
                disk.close(parent)
        finally:
            disk.close(session)


def remove_left_temporaries(disk: Disk, session_folder: str) -> None:
    """Remove every such folder of a session that this process has just opened. Never raises OSError."""
    with suppress(OSError):
        session = disk.open_folder(session_folder)
        try:
            _remove(disk, session, TEMPORARY, 0)
        finally:
            disk.close(session)


def _remove(disk: Disk, folder: Folder, name: str, level: int) -> None:
    """Remove a name with what is in it; one that cannot be removed does not keep the others."""
    seen = disk.look(folder, name)
    if seen is None or level > LEVELS_MAX:
        return
    if seen.kind != "folder":
        disk.unlink(folder, name)
        return
    below = disk.enter(folder, name)
    try:
        for one in disk.names(below):
            with suppress(OSError):
                _remove(disk, below, one, level + 1)
    finally:
        disk.close(below)
    disk.remove_folder(folder, name)
