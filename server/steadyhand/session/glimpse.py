"""A session read without taking it: for looking from outside, while its owner lives or nobody has it.

Nothing is written, no lock is kept, and nothing can be changed through it. With a living owner it is shown as that
one's journal stands; without one the verdicts of an opening are shown from memory, not recorded.
"""

from __future__ import annotations

from steadyhand.core.ledger import fold
from steadyhand.core.refusal import Refused
from steadyhand.core.views import ReadOnly
from steadyhand.journal.log import load
from steadyhand.session import shelf
from steadyhand.session.folder import owner_of, session_path
from steadyhand.session.house import House
from steadyhand.session.opening import read_only
from steadyhand.session.owner import Owner


async def glimpse(house: House, session_id: str) -> Owner:
    """The session as it stands, in no house and without a journal. Refused: unknownSession; OSError if unreadable."""
    world = house.world
    if not await world.in_thread(shelf.exists, world, session_id):
        raise Refused("unknownSession", "There is no such session.")
    return await world.in_thread(_read, house, session_id)


def owned_text(owner: Owner) -> str | None:
    """Who has it, in a sentence; None: nobody."""
    if owner.read_only is None or owner.read_only.reason != "owned":
        return None
    known = owner.read_only.owner
    who = f"process {known.pid} on {known.host}" if known else "another process"
    return f"Session “{owner.name()}” is open in {who}: settle it there, or close it there first."


def _read(house: House, session_id: str) -> Owner:
    world = house.world
    path = session_path(world.state_directory, session_id)
    alone = shelf.free(world, session_id)
    folder = world.disk.open_folder(path)
    try:
        loaded = load(world.disk, folder)
        reason = None
        if loaded.newer:
            reason = ReadOnly("newer", "This session was written by a newer version of Steadyhand. Update to go on.")
        elif not alone:
            reason = ReadOnly("owned", "It is open in another process.", owner_of(world.disk, folder))
    finally:
        world.disk.close(folder)
    session = fold(loaded.records, loaded.breaks).session
    root = shelf.root_of(world, session.workspace if session else None)
    stood_for = reason or ReadOnly("disk", "It is read from outside.")
    opened = read_only(loaded, house.reading_tools, world.ids, stood_for, classified=reason is None)
    ground = world.ground(root, path)
    epoch = world.ids.new()
    return Owner(world, session_id, path, opened.ledger, ground, epoch, None, None, reason, opened.damaged)
