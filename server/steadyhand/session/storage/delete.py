"""Delete a session: its journal first, so that a half deleted session is no session any more.

The caller holds the owner lock until the journal's name is durably gone. A crash leaves a folder without a journal,
which is not listed. Blocks; called in a thread.
"""

from __future__ import annotations

from contextlib import suppress

from steadyhand.journal.journal import JOURNAL
from steadyhand.journal.ownership import SessionLock
from steadyhand.ports.disk import Disk, Folder
from steadyhand.session.context import SessionContext


def remove_session(context: SessionContext, held: SessionLock, session_id: str) -> None:
    """Delete the session's files. OSError if the journal cannot be removed: then the session is unchanged."""
    disk = context.disk
    disk.unlink(held.folder, JOURNAL)
    disk.sync_folder(held.folder)
    with suppress(OSError):  # without a journal the rest is no session
        empty_folder(disk, held.folder)
        parent = context.private_state.open_sessions()
        try:
            disk.remove_folder(parent, session_id)
            disk.sync_folder(parent)
        finally:
            disk.close(parent)


def empty_folder(disk: Disk, folder: Folder) -> None:
    """Remove everything in a folder. Raise OSError."""
    for name in disk.names(folder):
        look = disk.look(folder, name)
        if look is not None and look.kind == "folder":
            below = disk.enter(folder, name)
            try:
                empty_folder(disk, below)
            finally:
                disk.close(below)
            disk.remove_folder(folder, name)
        elif look is not None:
            disk.unlink(folder, name)
