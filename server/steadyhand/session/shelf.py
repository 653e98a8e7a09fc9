"""The state directory as a shelf of sessions: names, a glance at one, a new one laid down (rows S3, S6).

The list is built from the files themselves; there is no index that could be wrong. Blocks; called in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from steadyhand.core.ledger import Ledger, fold
from steadyhand.core.record import Record, Stamped
from steadyhand.core.views import ReadOnly, SessionView
from steadyhand.journal.log import Journal, load
from steadyhand.session.folder import Held, session_path, sessions_path, take
from steadyhand.session.owner import Owner
from steadyhand.session.world import World

_ID = re.compile(r"[0-9a-f]{32}")


def lay_down(world: World, session_id: str, first: Sequence[Record]) -> tuple[Held, Journal, tuple[Stamped, ...]]:
    """A new session folder, owned, its journal durable with its name. OSError or JournalBroken if it cannot be."""
    world.disk.make_root(sessions_path(world.state_directory))
    parent = world.disk.open_folder(sessions_path(world.state_directory))
    try:
        world.disk.make_folder(parent, session_id)
        folder = world.disk.enter(parent, session_id)
        path = session_path(world.state_directory, session_id)
        held = take(world.disk, world.processes, world.clock, world.ids, folder, path)
        assert held is not None, "nobody else knows a new session"
        journal, stamped = Journal.create(world.disk, world.clock, folder, first)
        world.disk.sync_folder(parent)
    finally:
        world.disk.close(parent)
    return held, journal, stamped


def names(world: World) -> list[str]:
    """The ids of all sessions there are."""
    try:
        parent = world.disk.open_folder(sessions_path(world.state_directory))
    except FileNotFoundError:
        return []
    try:
        return [name for name in world.disk.names(parent) if _ID.fullmatch(name)]
    finally:
        world.disk.close(parent)


def exists(world: World, session_id: str) -> bool:
    """Whether there is a session with a journal under that id."""
    if not _ID.fullmatch(session_id):
        return False
    try:
        folder = world.disk.open_folder(session_path(world.state_directory, session_id))
    except OSError:
        return False
    try:
        look = world.disk.look(folder, "journal.jsonl")
        return look is not None and look.size > 0
    finally:
        world.disk.close(folder)


def glance(world: World, session_id: str) -> SessionView | None:
    """A session as its file tells it, without taking it; None where there is nothing of it yet."""
    path = session_path(world.state_directory, session_id)
    try:
        folder = world.disk.open_folder(path)
        try:
            loaded = load(world.disk, folder)
        finally:
            world.disk.close(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        text = f"This session's journal cannot be read ({error.strerror})."
        return _closed(world, session_id, Ledger(), ReadOnly("disk", text))
    if loaded.size == 0:
        return None
    return _closed(world, session_id, fold(loaded.records, loaded.breaks), None)


def diagnose(world: World) -> dict[str, str]:
    """Whether locks and syncs hold in the state directory; tried on files of its own."""
    found: dict[str, str] = {}
    trial = f".doctor-{world.ids.new()}"
    try:
        world.disk.make_root(world.state_directory)
        folder = world.disk.open_folder(world.state_directory)
    except OSError as error:
        return {"state": f"The state directory cannot be used ({error.strerror}). Make it writable."}
    try:
        file = world.disk.create(folder, trial, 0o600)
        world.disk.sync(file)
        world.disk.close(file)
        world.disk.sync_folder(folder)
        found["sync"] = "Files and folders can be synced."
        lock = world.disk.lock(folder, trial)
        found["lock"] = "Owner locks hold." if lock else "Owner locks do not hold: sessions open read-only."
        if lock is not None:
            lock.release()
        world.disk.unlink(folder, trial)
    except OSError as error:
        found["state"] = f"The state directory has a fault ({error.strerror}): sessions may be read-only."
    finally:
        world.disk.close(folder)
    return found


def _closed(world: World, session_id: str, ledger: Ledger, read_only: ReadOnly | None) -> SessionView:
    path = session_path(world.state_directory, session_id)
    return Owner(world, session_id, path, ledger, world.ground(None, path), "", None, None, read_only, 0).view()
