"""The session directory: the names of sessions, a session as its files show it, a new session (rows S3, S6).

The list is built from the files themselves; there is no index that could be wrong. Blocks; called in a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Record, Stamped
from steadyhand.domain.text.hidden_characters import show_hidden_in_value
from steadyhand.domain.views.types import ReadOnly, SessionView
from steadyhand.journal.journal import Journal, load
from steadyhand.journal.ownership import OWNER_LOCK, SessionLock
from steadyhand.ports.disk import Folder
from steadyhand.session.context import OpenFolder, SessionContext
from steadyhand.session.private_state import UnsafeSession, UnsafeState
from steadyhand.session.storage.loaded_ledger import ledger_of
from steadyhand.session.storage.lock import owner_of, session_path, take_lock, write_owner
from steadyhand.session.storage.state_directory import refusal_of, require_usable, sentence_of
from steadyhand.session.storage.summary import Summary, read_summary, summary_of, write_summary
from steadyhand.session.uris import path_of
from steadyhand.tools.contract import OtherFolder, ToolContext
from steadyhand_values import pattern

_ID = pattern(r"[0-9a-f]{32}")


def create_session(
    context: SessionContext, session_id: str, first: Sequence[Record]
) -> tuple[SessionLock, Journal, tuple[Stamped, ...]]:
    """Create a session folder with its lock held, its journal and its name durable. Raise OSError or JournalBroken."""
    parent = context.private_state.make_sessions()
    try:
        context.disk.make_folder(parent, session_id)
        with ExitStack() as on_trouble:
            folder = context.disk.enter(parent, session_id)
            on_trouble.callback(context.disk.close, folder)
            path = session_path(context.state_directory, session_id)
            held = take_lock(context.disk, folder, path)
            assert held is not None, "no other process knows a new session"
            on_trouble.callback(held.lock.release)
            write_owner(context.disk, context.processes, context.clock, context.ids, held)
            journal, stamped = Journal.create(context.disk, context.clock, held, first)
            on_trouble.callback(journal.close)
            context.disk.sync_folder(parent)
            on_trouble.pop_all()
    finally:
        context.disk.close(parent)
    return held, journal, stamped


def names(context: SessionContext) -> list[str]:
    """Return the ids of all sessions. Raise Refused if the state directory cannot be used."""
    try:
        parent = context.private_state.open_sessions()
        try:
            return [name for name in context.disk.names(parent) if _ID.fullmatch(name)]
        finally:
            context.disk.close(parent)
    except FileNotFoundError:
        require_usable(context)
        return []
    except OSError as error:
        raise refusal_of(context, error) from error


def exists(context: SessionContext, session_id: str) -> bool:
    """Return whether there is a session with a journal under that id. Raise Refused if the state directory cannot be
    used."""
    if not _ID.fullmatch(session_id):
        return False
    try:
        folder = context.private_state.open_session(session_id)
    except OSError:
        require_usable(context)
        return False
    try:
        look = context.disk.look(folder, "journal.jsonl")
        return look is not None and look.size > 0
    finally:
        context.disk.close(folder)


def summary(context: SessionContext, session_id: str) -> Summary | None:
    """Return a session's summary, from its file or by a fold; None where it has no record yet. Raise OSError, or
    UnsafeState, or UnsafeSession."""
    sessions = context.private_state.open_sessions()
    try:
        folder = context.private_state.open_whole_session(sessions, session_id)
    finally:
        context.disk.close(sessions)
    try:
        return _summary_in(context, folder)
    finally:
        context.disk.close(folder)


def _summary_in(context: SessionContext, folder: Folder) -> Summary | None:
    known = read_summary(context.disk, folder)
    if known is not None:
        return known
    loaded = load(context.disk, folder)
    if loaded.size == 0:
        return None
    found = summary_of(ledger_of(loaded))
    if not loaded.newer and loaded.tail == "clean":
        write_summary(context.disk, context.ids, folder, found, (loaded.size, loaded.last_sum))
    return found


def views_from_files(context: SessionContext, session_ids: Sequence[str]) -> list[SessionView]:
    """Return these sessions as their files show them, without taking them; without those that have no record yet.

    Each folder is opened once. Raise UnsafeState."""
    try:
        sessions = context.private_state.open_sessions()
    except FileNotFoundError:
        return []
    except OSError as error:
        return [_view(context, one, summary_of(Ledger()), _unreadable(error), 0) for one in session_ids]
    try:
        found = (_view_from_files(context, sessions, session_id) for session_id in session_ids)
        return [view for view in found if view is not None]
    finally:
        context.disk.close(sessions)


def _view_from_files(context: SessionContext, sessions: Folder, session_id: str) -> SessionView | None:
    nothing = summary_of(Ledger())
    try:
        folder = context.private_state.open_whole_session(sessions, session_id)
        try:
            found = _summary_in(context, folder)
            if found is None:
                return None
            is_free, read_only = _owner_in(context, folder)
        finally:
            context.disk.close(folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        return _view(context, session_id, nothing, _unreadable(error), 0)
    except UnsafeSession as unsafe:
        return _view(context, session_id, nothing, ReadOnly("unsafe", unsafe.message), 0)
    # While an owner runs, its running call is not uncertain.
    return _view(context, session_id, found, read_only, found.uncertain + (found.adrift if is_free else 0))


def _unreadable(error: OSError) -> ReadOnly:
    return ReadOnly("disk", f"This session's journal cannot be read ({error.strerror}).")


def _view(
    context: SessionContext, session_id: str, found: Summary, read_only: ReadOnly | None, uncertain: int
) -> SessionView:
    return SessionView(
        session_id=session_id,
        path=session_path(context.state_directory, session_id),
        title=show_hidden_in_value(found.title),
        title_source=found.title_source,
        created=found.created or context.clock.now(),
        updated=found.updated or context.clock.now(),
        mode=found.mode,
        model=found.model,
        busy=False,
        parked=False,
        uncertain=uncertain,
        workspace=found.workspace,
        read_only=read_only,
        origin=found.origin,
    )


def tool_context_of(
    context: SessionContext, workspace: str | None, session_folder: str, opened: Iterable[OpenFolder] = ()
) -> ToolContext:
    """Return what the tools of a session with this folder work with. `opened`: the client's folders. Blocks.

    One that cannot be opened, or that is another than when the client reported it, is left out."""
    own = context.folders.find(workspace)
    named: dict[str, str] = {}
    others: dict[str, OtherFolder] = {}
    own_name = None
    if own.root is not None:
        named[own.root] = path_of(workspace or "") or own.root
        for one in opened:
            found = context.folders.find(one.uri).root
            if found == own.root:
                own_name = own_name or one.name
            elif found is not None:
                named.setdefault(found, path_of(one.uri) or found)
                others.setdefault(found, OtherFolder(one.name, found))
    return context.tool_context(own.root, session_folder, own.missing, tuple(others.values()), named, own_name)


def recorded_folders(ledger: Ledger) -> tuple[OpenFolder, ...]:
    """Return the folders of the session's latest turn. Their names are those of their paths."""
    return tuple(OpenFolder(uri, (path_of(uri) or "").rstrip("/").rpartition("/")[2]) for uri in ledger.folders)


def _owner_in(context: SessionContext, folder: Folder) -> tuple[bool, ReadOnly | None]:
    """Return whether no process holds the owner lock now, and, if another process does, which; None where nobody can
    tell."""
    try:
        lock = context.disk.lock(folder, OWNER_LOCK)
        if lock is not None:
            lock.release()
            return True, None
        holder = owner_of(context.disk, folder)
    except OSError:
        return False, None
    if holder is not None and (holder.pid, holder.host) == context.processes.here()[:2]:
        return False, None  # this process is opening or closing it
    who = f"process {holder.pid} on {holder.host}" if holder else "another process"
    return False, ReadOnly("owned", f"This session is open in {who}.", holder)


def is_free(context: SessionContext, session_id: str) -> bool:
    """Return whether no process holds the owner lock now."""
    try:
        folder = context.private_state.open_session(session_id)
        try:
            lock = context.disk.lock(folder, OWNER_LOCK)
        finally:
            context.disk.close(folder)
    except (OSError, UnsafeSession):
        return False
    if lock is None:
        return False
    lock.release()
    return True


def diagnose(context: SessionContext) -> dict[str, str]:
    """Return whether locks and syncs work in the state directory; it tries them on a file of its own."""
    found: dict[str, str] = {}
    trial = f".doctor-{context.ids.new()}"
    try:
        folder = context.private_state.make_root()
    except UnsafeState as unsafe:
        return {"state": unsafe.message}
    except OSError as error:
        return {"state": sentence_of(context.disk, context.state_directory, error)}
    try:
        file = context.disk.create(folder, trial, 0o600)
        context.disk.sync(file)
        context.disk.close(file)
        context.disk.sync_folder(folder)
        found["sync"] = "Files and folders can be synced."
        lock = context.disk.lock(folder, trial)
        found["lock"] = "Session locks work." if lock else "Session locks do not work: sessions open read-only."
        if lock is not None:
            lock.release()
        context.disk.unlink(folder, trial)
    except OSError as error:
        found["state"] = (
            f"The state directory {context.state_directory} has a fault ({error.strerror}): sessions may be read-only."
        )
    finally:
        context.disk.close(folder)
    return found
