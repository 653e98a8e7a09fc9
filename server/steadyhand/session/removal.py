"""Removing a session for good: its journal first, so that what is half removed is no session any more.

Under the owner lock until the journal's name is durably gone. What a crash leaves behind is a folder without a
journal, which nobody lists. Blocks; called in a thread.
"""

from __future__ import annotations

from contextlib import suppress

from steadyhand.journal.log import JOURNAL
from steadyhand.ports import Disk, Folder
from steadyhand.session.folder import Held, sessions_path
from steadyhand.session.world import World


def remove_session(world: World, held: Held, session_id: str) -> None:
    """OSError if the journal cannot be removed: then the session is as it was."""
    disk = world.disk
    disk.unlink(held.folder, JOURNAL)
    disk.sync_folder(held.folder)
    with suppress(OSError):  # the rest is no session, whatever becomes of it
        _empty(disk, held.folder)
        parent = disk.open_folder(sessions_path(world.state_directory))
        try:
            disk.remove_folder(parent, session_id)
            disk.sync_folder(parent)
        finally:
            disk.close(parent)


def _empty(disk: Disk, folder: Folder) -> None:
    for name in disk.names(folder):
        look = disk.look(folder, name)
        if look is not None and look.kind == "folder":
            below = disk.enter(folder, name)
            try:
                _empty(disk, below)
            finally:
                disk.close(below)
            disk.remove_folder(folder, name)
        elif look is not None:
            disk.unlink(folder, name)
