"""Taking a session from its files: wait for the lock, load and recover, or show it read-only and watch the lock.

Opening waits for the owner lock as long as a reloading window takes; then the session is shown read-only, with who
owns it (row J11).
"""

from __future__ import annotations

import errno
from functools import partial

import anyio

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.views.types import ReadOnly
from steadyhand.journal.journal import UnacknowledgedTail
from steadyhand.journal.ownership import OWNER_LOCK, SessionLock
from steadyhand.ports.disk import Folder
from steadyhand.session.context import SessionContext
from steadyhand.session.jobs.jobs import end_jobs, find_left_commands, find_left_jobs
from steadyhand.session.recovery.open import OpenResult, open_owned, open_read_only
from steadyhand.session.session import OpenSessions, Session
from steadyhand.session.session_status import SessionStatus
from steadyhand.session.storage import directory
from steadyhand.session.storage.loaded_ledger import load_with_ledger
from steadyhand.session.storage.lock import owner_of, session_path, take_lock, write_owner
from steadyhand.session.turns.folders import missing_folder_sentence
from steadyhand.tools.commands.own_temporary import remove_left_temporaries
from steadyhand.tools.contract import ToolContext

OWNER_WAIT_S_MAX = 5.0
OWNER_POLL_S = 0.05
WATCH_POLL_S = 0.5


class SessionOpener:
    """Opens the sessions of one state directory and adds them to the open ones."""

    def __init__(self, context: SessionContext, sessions: OpenSessions, reading_tools: frozenset[str]) -> None:
        self._context = context
        self._sessions = sessions
        self._reading_tools = reading_tools
        self._watched: set[str] = set()
        self._unacknowledged: dict[str, UnacknowledgedTail] = {}
        """Session → what this process never acknowledged (row J6)."""

    async def open(self, session_id: str, before: Session | None) -> Session:
        """Open a session in the place of `before`, which is released first. One caller at a time for a session."""
        context = self._context
        path = session_path(context.state_directory, session_id)
        if not await context.in_thread(directory.exists, context, session_id):
            raise Refused("unknownSession", "There is no such session.")
        if before is not None:
            self.note_unacknowledged(before)
            await end_jobs(before)
            await before.log.release()
        folder = await context.in_thread(_open_private, context, session_id)
        lock: SessionLock | None = None
        try:
            taken = await self._wait_for_lock(folder, path)
            lock, trouble = (None, taken) if isinstance(taken, OSError) else (taken, None)
            with anyio.CancelScope(shield=True):  # a lock that is held gets a session, or is released
                session = await self._take_in(session_id, path, folder, lock, trouble)
                if before is not None:  # its snapshot was sent under another epoch or by another owner's records
                    session.feed.notify_recovery(first=True)
        except BaseException:
            opened = self._sessions.by_id.get(session_id)
            if opened is None or opened is before:
                if lock is not None:
                    lock.lock.release()
                context.disk.close(folder)
            raise
        return session

    def note_unacknowledged(self, session: Session) -> None:
        """Remember what a journal that is released did not acknowledge, until an opening has recorded it."""
        self._note_unacknowledged(session.session_id, session.log.unacknowledged)

    def _note_unacknowledged(self, session_id: str, tail: UnacknowledgedTail | None) -> None:
        if tail is not None:
            earlier = self._unacknowledged.get(session_id, tail)
            self._unacknowledged[session_id] = min(earlier, tail, key=lambda one: one.first)

    async def _take_in(
        self, session_id: str, path: str, folder: Folder, lock: SessionLock | None, trouble: OSError | None
    ) -> Session:
        context = self._context
        epoch = context.ids.new()
        opened, tool_context = await self._load(
            folder, lock, path, epoch, self._unacknowledged.get(session_id), trouble
        )
        if opened.journal is not None:
            self._unacknowledged.pop(session_id, None)  # its `damage` record says so from now on
        else:
            self._note_unacknowledged(session_id, opened.unacknowledged)
        kept = lock if opened.journal is not None else None
        if kept is not None:
            await context.in_thread(write_owner, context.disk, context.processes, context.clock, context.ids, kept)
        if lock is not None and kept is None:
            lock.lock.release()
        session = Session(
            sessions=self._sessions,
            context=context,
            session_id=session_id,
            path=path,
            ledger=opened.ledger,
            tool_context=tool_context,
            epoch=epoch,
            lock=kept,
            journal=opened.journal,
            read_only=opened.read_only,
            damaged=opened.damaged,
        )
        if kept is None:
            context.disk.close(folder)
        self._sessions.by_id[session_id] = session
        if kept is not None:
            await find_left_jobs(session)
            await find_left_commands(session)
            await _clear_temporaries(session)
        _notify_opened(session, opened)
        await session.log.keep_summary()
        if session.status is SessionStatus.OWNED_ELSEWHERE:
            self._watch(session_id)
        return session

    async def _wait_for_lock(self, folder: Folder, path: str) -> SessionLock | OSError | None:
        """Wait for a reloading window, up to OWNER_WAIT_S_MAX (row J11). The error where no lock can be had at all."""
        context = self._context
        with anyio.move_on_after(OWNER_WAIT_S_MAX):
            while True:
                try:
                    lock = await context.in_thread(take_lock, context.disk, folder, path)
                except OSError as error:
                    return error
                if lock is not None:
                    return lock
                await anyio.sleep(OWNER_POLL_S)
        return None

    async def _load(
        self,
        folder: Folder,
        lock: SessionLock | None,
        path: str,
        epoch: str,
        unacknowledged: UnacknowledgedTail | None,
        trouble: OSError | None,
    ) -> tuple[OpenResult, ToolContext]:
        """Return the session as it was opened, and what its tools work with."""
        context, reading_tools = self._context, self._reading_tools
        try:
            loaded, known = await context.in_thread(load_with_ledger, context.disk, folder)
        except OSError as error:
            text = f"This session's journal cannot be read ({error.strerror}). Make it readable, then open it again."
            return OpenResult(Ledger(), None, ReadOnly("disk", text), 0), context.tool_context(None, path)
        folders = directory.recorded_folders(known)
        tool_context = await context.in_thread(directory.tool_context_of, context, known.workspace, path, folders)
        if lock is not None:
            read = (loaded, known)  # under the lock, so it is what is there
            opened = await context.in_thread(
                open_owned, context, lock, epoch, tool_context, reading_tools, unacknowledged, read
            )
            return opened, tool_context
        if trouble is not None:
            text = _no_lock_text(trouble)
            return open_read_only(loaded, reading_tools, context.ids, ReadOnly("disk", text), False), tool_context
        holder = await context.in_thread(owner_of, context.disk, folder)
        who = f"process {holder.pid} on {holder.host}" if holder else "another process"
        text = f"This session is open in {who}. It is shown read-only; you get a message when it is free."
        return open_read_only(loaded, reading_tools, context.ids, ReadOnly("owned", text, holder), False), tool_context

    def _watch(self, session_id: str) -> None:
        if session_id not in self._watched:
            self._watched.add(session_id)
            self._context.spawn(partial(self._watch_until_free, session_id), f"watch {session_id}")

    async def _watch_until_free(self, session_id: str) -> None:
        """Notify once when an owned session's lock is free; opening the session again takes it over (row J11)."""
        context = self._context
        try:
            folder = await context.in_thread(context.private_state.open_session, session_id)
            try:
                while (lock := await context.in_thread(context.disk.lock, folder, OWNER_LOCK)) is None:
                    await anyio.sleep(WATCH_POLL_S)
                    if session_id not in self._sessions.by_id:
                        return
                lock.release()
            finally:
                context.disk.close(folder)
        except (OSError, Refused):
            return
        finally:
            self._watched.discard(session_id)
        session = self._sessions.by_id.get(session_id)
        if session is not None and session.status is SessionStatus.OWNED_ELSEWHERE:
            session.change_status("owner_gone")
            session.feed.notify_changes()
            text = f"Session “{session.name}” is free now. Open it again to take it over."
            session.feed.notify_message("info", text)


async def _clear_temporaries(session: Session) -> None:
    """Remove the folders for temporary files that commands of a killed server left, unless one may still run."""
    if not session.jobs.left and not session.jobs.left_commands:
        context = session.context
        await context.in_thread(remove_left_temporaries, context.disk, session.path)


def _open_private(context: SessionContext, session_id: str) -> Folder:
    """Open a session's folder, with everything in it checked (row O5). Blocks."""
    folder = context.private_state.open_session(session_id)
    try:
        context.private_state.check_session(folder, session_id)
    except BaseException:
        context.disk.close(folder)
        raise
    return folder


def _notify_opened(session: Session, opened: OpenResult) -> None:
    """Send the session, and what the user should know of its journal."""
    session.feed.notify_changes()
    if opened.damaged:
        session.feed.notify_message(
            "warning",
            f"The journal of session “{session.name}” has {opened.damaged} damaged or missing"
            f" record{'s' if opened.damaged != 1 else ''}; everything else was read.",
        )
    if opened.torn:
        session.feed.notify_message(
            "info",
            f"The last record of session “{session.name}” was not finished when its process ended; its"
            f" {opened.torn} bytes are kept beside the journal.",
        )
    for text in opened.said:
        session.feed.notify_message("info", f"Session “{session.name}”: {text}")
    if opened.read_only is not None:
        session.feed.notify_message("warning", opened.read_only.text)
    if session.tool_context.missing is not None:
        session.feed.notify_message("warning", missing_folder_sentence(session, session.tool_context.missing))


def _no_lock_text(trouble: OSError) -> str:
    """Return why a session is shown read-only when its owner lock cannot be had."""
    if trouble.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return "The session's folder cannot be written, so it is shown read-only: make it writable, then open it again."
    return "Locks do not work in the state directory's file system, so the session is shown read-only."
