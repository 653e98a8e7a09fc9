"""Read a session without taking it, whether another process owns it or none does.

Nothing is written, no lock is held, and nothing can be changed through it. With an owner it is shown as its journal is
now. Without one the verdicts of opening it are shown from memory and not recorded.
"""

from __future__ import annotations

from steadyhand.domain.errors import Refused
from steadyhand.domain.views.types import ReadOnly
from steadyhand.journal.journal import load
from steadyhand.session.recovery.open import open_read_only
from steadyhand.session.service.prompt_queue import start_next
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.session import OpenSessions, Session
from steadyhand.session.storage import directory
from steadyhand.session.storage.loaded_ledger import ledger_of
from steadyhand.session.storage.lock import owner_of, session_path


async def read_session(registry: SessionRegistry, session_id: str) -> Session:
    """Return a session that is not registered and cannot record. Refused: unknownSession; OSError if unreadable."""
    context = registry.context
    if not await context.in_thread(directory.exists, context, session_id):
        raise Refused("unknownSession", "There is no such session.")
    return await context.in_thread(_read, registry, session_id)


def owner_sentence(session: Session) -> str | None:
    """Return a sentence on who owns it; None: nobody does."""
    if session.read_only is None or session.read_only.reason != "owned":
        return None
    known = session.read_only.owner
    who = f"process {known.pid} on {known.host}" if known else "another process"
    return f"Session “{session.name}” is open in {who}: settle it there, or close it there first."


def _read(registry: SessionRegistry, session_id: str) -> Session:
    context = registry.context
    path = session_path(context.state_directory, session_id)
    alone = directory.is_free(context, session_id)
    folder = context.private_state.open_session(session_id)
    try:
        loaded = load(context.disk, folder)
        reason = None
        if loaded.newer:
            reason = ReadOnly(
                "newer", "A newer version of Steadyhand wrote this session. Update Steadyhand to continue."
            )
        elif not alone:
            reason = ReadOnly("owned", "It is open in another process.", owner_of(context.disk, folder))
    finally:
        context.disk.close(folder)
    ledger = ledger_of(loaded)
    folders = directory.recorded_folders(ledger)
    tool_context = directory.tool_context_of(context, ledger.workspace, path, folders)
    shown_for = reason or ReadOnly("disk", "It is open read-only.")
    opened = open_read_only(loaded, registry.reading_tools, context.ids, shown_for, classified=reason is None)
    return Session(
        sessions=OpenSessions(start_next),
        context=context,
        session_id=session_id,
        path=path,
        ledger=opened.ledger,
        tool_context=tool_context,
        epoch=context.ids.new(),
        read_only=reason,
        damaged=opened.damaged,
    )
