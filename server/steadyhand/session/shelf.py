"""The state directory as a shelf of sessions: names, a glance at one, a new one laid down (rows S3, S6).

The list is built from the files themselves; there is no index that could be wrong. Blocks; called in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack

from steadyhand.core.ledger import Ledger, fold
from steadyhand.core.record import Record, Stamped
from steadyhand.core.views import ReadOnly, SessionView
from steadyhand.journal.log import Journal, load
from steadyhand.session.folder import OWNER_LOCK, Held, announce, owner_of, session_path, sessions_path, take
from steadyhand.session.summary import Summary, read_summary, summary_of, write_summary
from steadyhand.session.uris import path_of
from steadyhand.session.world import World

_ID = re.compile(r"[0-9a-f]{32}")


def lay_down(world: World, session_id: str, first: Sequence[Record]) -> tuple[Held, Journal, tuple[Stamped, ...]]:
    """A new session folder, owned, its journal durable with its name. OSError or JournalBroken if it cannot be."""
    world.disk.make_root(sessions_path(world.state_directory))
    parent = world.disk.open_folder(sessions_path(world.state_directory))
    try:
        world.disk.make_folder(parent, session_id)
        with ExitStack() as on_trouble:
            folder = world.disk.enter(parent, session_id)
            on_trouble.callback(world.disk.close, folder)
            path = session_path(world.state_directory, session_id)
            held = take(world.disk, folder, path)
            assert held is not None, "nobody else knows a new session"
            on_trouble.callback(held.lock.release)
            announce(world.disk, world.processes, world.clock, world.ids, held)
            journal, stamped = Journal.create(world.disk, world.clock, folder, first)
            on_trouble.callback(journal.close)
            world.disk.sync_folder(parent)
            on_trouble.pop_all()
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


def summary(world: World, session_id: str) -> Summary | None:
    """A session in short, from its summary or by a fold; None where there is nothing of it yet. OSError."""
    folder = world.disk.open_folder(session_path(world.state_directory, session_id))
    try:
        known = read_summary(world.disk, folder)
        if known is not None:
            return known
        loaded = load(world.disk, folder)
        if loaded.size == 0:
            return None
        found = summary_of(fold(loaded.records, loaded.breaks))
        if not loaded.newer:
            write_summary(world.disk, world.ids, folder, found)
        return found
    finally:
        world.disk.close(folder)


def glance(world: World, session_id: str) -> SessionView | None:
    """A session as its files tell it, without taking it; None where there is nothing of it yet."""
    path = session_path(world.state_directory, session_id)
    read_only = None
    try:
        found = summary(world, session_id)
    except FileNotFoundError:
        return None
    except OSError as error:
        read_only = ReadOnly("disk", f"This session's journal cannot be read ({error.strerror}).")
        found = summary_of(Ledger())
    if found is None:
        return None
    if read_only is None:
        read_only = owned_elsewhere(world, session_id)
    adrift = found.adrift if found.adrift and free(world, session_id) else 0  # a living owner's running call is certain
    return SessionView(
        session_id=session_id, path=path, title=found.title, title_source=found.title_source,
        created=found.created or world.clock.now(), updated=found.updated or world.clock.now(), mode=found.mode,
        model=found.model, busy=False, parked=False, uncertain=found.uncertain + adrift, workspace=found.workspace,
        read_only=read_only,
    )  # fmt: skip


def root_of(world: World, workspace: str | None) -> str | None:
    """The folder of a workspace's URI with links resolved; None where there is none."""
    path = path_of(workspace) if workspace else None
    if path is None:
        return None
    try:
        folder = world.disk.open_folder(path)
    except OSError:
        return None
    try:
        return world.disk.real_path(folder)
    finally:
        world.disk.close(folder)


def owned_elsewhere(world: World, session_id: str) -> ReadOnly | None:
    """That another process holds the owner lock at this moment, and who; None where that cannot be told."""
    try:
        folder = world.disk.open_folder(session_path(world.state_directory, session_id))
    except OSError:
        return None
    try:
        lock = world.disk.lock(folder, OWNER_LOCK)
        if lock is not None:
            lock.release()
            return None
        owner = owner_of(world.disk, folder)
    except OSError:
        return None
    finally:
        world.disk.close(folder)
    if owner is not None and (owner.pid, owner.host) == world.processes.here()[:2]:
        return None  # this process is opening or closing it
    who = f"process {owner.pid} on {owner.host}" if owner else "another process"
    return ReadOnly("owned", f"This session is open in {who}.", owner)


def free(world: World, session_id: str) -> bool:
    """Whether nobody holds the owner lock at this moment."""
    try:
        folder = world.disk.open_folder(session_path(world.state_directory, session_id))
        try:
            lock = world.disk.lock(folder, OWNER_LOCK)
        finally:
            world.disk.close(folder)
    except OSError:
        return False
    if lock is None:
        return False
    lock.release()
    return True


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
