"""All sessions of this process: created, listed, opened, closed, deleted.

A session that cannot be read fails alone (row S6). How one is taken from the files is in `acquire.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import fold
from steadyhand.domain.records.record import Epoch, Record, SessionHeader, TitleSource
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import MessageView, QueuedView, SessionView, Snapshot
from steadyhand.journal.journal import JournalBroken
from steadyhand.session.context import SessionContext
from steadyhand.session.jobs.jobs import end_jobs, left_command_sentence, left_sentence
from steadyhand.session.jobs.listing import outliving_sentence
from steadyhand.session.service.acquire import SessionOpener
from steadyhand.session.service.origin_doubts import OriginDoubts
from steadyhand.session.service.prompt_queue import start_next
from steadyhand.session.service.session_settings import clean_title
from steadyhand.session.session import Doubts, OpenSessions, Session
from steadyhand.session.session_status import SessionStatus
from steadyhand.session.storage import directory
from steadyhand.session.storage.delete import remove_session
from steadyhand.session.storage.state_directory import refusal_of
from steadyhand_values import frozen

CLOSE_S_MAX = 25.0
LISTED_AT_ONCE = 100
"""Closed sessions that a list reads in one step of a thread."""


@frozen
class SessionSnapshot:
    """A session as a client sees it when it opens it."""

    session: SessionView
    messages: tuple[MessageView, ...]
    more: bool
    snapshot: Snapshot
    queue: tuple[QueuedView, ...]
    damaged: int


class SessionRegistry:
    """The sessions of one state directory, as this process sees them."""

    def __init__(self, context: SessionContext) -> None:
        self.context = context
        self.reading_tools = frozenset(tool.name for tool in context.tools.values() if tool.effect == "reads")
        self._open_sessions = OpenSessions(start_next)
        self._opener = SessionOpener(context, self._open_sessions, self.reading_tools)
        open_unasked = partial(self.open_session, kept_open=False)
        self._open_sessions.read_origins_by(
            OriginDoubts(context, self._open_sessions, open_unasked, self.release_if_done)
        )
        self._opening: dict[str, anyio.Lock] = {}
        self._reported_jobs: set[str] = set()

    def require_known_doubts(self, doubts: Doubts) -> None:
        """Ask this before each effect of a session (case 163)."""
        self._open_sessions.require_known_doubts(doubts)

    async def read_doubts(self, folders: Sequence[str]) -> None:
        """Read the earlier sessions of these folders (URIs) now, so that they are reported. Raise DoubtsUnknown."""
        if self._open_sessions.doubts is not None:
            await self._open_sessions.doubts.read(folders)

    @property
    def sessions(self) -> dict[str, Session]:
        """The open sessions by their ids."""
        return self._open_sessions.by_id

    async def create(self, title: str | None, workspace: str | None) -> SessionView:
        """Create and open a session; it is durable with its first records."""
        context, settings = self.context, self.context.settings
        title = clean_title(title or "")
        session_id, epoch = context.ids.new(), context.ids.new()
        folder = await context.in_thread(context.folders.find, workspace)
        source: TitleSource = "user" if title else "none"
        pid, host, boot = context.processes.here()
        first: list[Record] = [
            SessionHeader(
                session_id=session_id,
                mode=settings.mode,
                model=settings.model,
                created_by=context.version,
                workspace=workspace,
                title=title,
                title_source=source,
            ),
            Epoch(epoch=epoch, pid=pid, host=host, boot=boot),
        ]
        try:
            lock, journal, stamped = await context.in_thread(directory.create_session, context, session_id, first)
        except JournalBroken as error:
            text = f"No session can be created in {context.state_directory}. {error}"
            raise Refused("journalBroken", text) from error
        except OSError as error:
            raise await context.in_thread(refusal_of, context, error) from error
        session = Session(
            sessions=self._open_sessions,
            context=context,
            session_id=session_id,
            path=lock.path,
            ledger=fold(stamped, ()),
            tool_context=context.tool_context(folder.root, lock.path, folder.missing),
            epoch=epoch,
            lock=lock,
            journal=journal,
        )
        self.sessions[session_id] = session
        self.context.tell_tightened()
        session.feed.notify_changes()
        return session.view()

    async def list_sessions(self) -> tuple[SessionView, ...]:
        """Return every session in the state directory, newest first, built from the files (row S3)."""
        names = await self.context.in_thread(directory.names, self.context)
        self.context.tell_tightened()
        views: list[SessionView] = []
        for first in range(0, len(names), LISTED_AT_ONCE):
            part = names[first : first + LISTED_AT_ONCE]
            views += [session.view() for one in part if (session := self.sessions.get(one)) is not None]
            closed = [one for one in part if one not in self.sessions]
            views += await self.context.in_thread(directory.views_from_files, self.context, closed)
        return tuple(sorted(views, key=lambda view: (view.updated, view.session_id), reverse=True))

    async def open(self, session_id: str, tail: int) -> SessionSnapshot:
        """Open a session for a client, a read-only or broken one anew; return it with its last `tail` messages."""
        session = await self.open_session(session_id, anew=True)
        shown, more = session.messages(tail)
        return SessionSnapshot(session.view(), shown, more, session.snapshot(), session.queue(), session.damaged)

    async def open_session(self, session_id: str, anew: bool = False, kept_open: bool = True) -> Session:
        """Return the session, opened first where it is not. `anew`: try a read-only or broken one again.

        `kept_open` False: nobody asked for it, so it is released when nothing of it is uncertain (row A8)."""
        async with self.opening_lock(session_id):
            session = self.sessions.get(session_id)
            if session is None or _must_open(session, anew):
                session = await self._opener.open(session_id, session)
                self.context.tell_tightened()
                session.keep_open(kept_open)
                if kept_open:  # else whoever opens many reports about all of them in one message
                    for sentence in self.report_left_jobs(session):
                        session.feed.notify_message("warning", sentence)
            session.keep_open(session.is_kept_open or kept_open)
            return session

    def opening_lock(self, session_id: str) -> anyio.Lock:
        """Return the lock under which this session is opened; whoever holds it keeps the session as it is here."""
        return self._opening.setdefault(session_id, anyio.Lock())

    async def close(self, session_id: str) -> None:
        """Cancel the session's turn, wait for it, release the lock."""
        session = self.sessions.get(session_id)
        if session is None:
            if not await self.context.in_thread(directory.exists, self.context, session_id):
                raise Refused("unknownSession", "There is no such session.")
            return
        session.change_status("close")  # what is queued stays queued
        await self._end_work(session)
        session.keep_open(False)
        if session.ledger.uncertain():  # it stays open, so that it still holds back what overlaps (row B1)
            session.change_status("stay")
        else:
            await self._close(session)
        if self.sessions.get(session_id) in (None, session):  # else another object has taken the session over
            session.feed.notify_changes()

    async def delete(self, session_id: str, force: bool) -> None:
        """Remove a session for good; with unresolved effects only by `force` (row B8)."""
        session = await self.open_session(session_id)
        session.require_owned()
        _require_settled(session, force)
        session.change_status("close")
        await self._end_work(session)
        try:
            _require_settled(session, force)  # ending its turn may have left something
        except Refused:
            session.change_status("stay")
            raise
        lock = session.log.lock
        if lock is None or not await session.log.may_act():  # its folder may be another's by now
            session.change_status("stay")
            session.require_owned()
        assert lock is not None, "require_owned says so"
        outliving = await outliving_sentence(session)
        try:
            await self.context.in_thread(remove_session, self.context, lock, session_id)
        except OSError as error:
            session.change_status("stay")
            text = f"It cannot be deleted ({error.strerror}). Make the state directory writable, then retry."
            raise Refused("journalBroken", text) from error
        self.sessions.pop(session_id, None)
        await session.log.release()
        session.forget_records()
        session.feed.notify_recovery()  # nothing of it is uncertain any more; there is no session to report
        if outliving is not None:
            self.context.editor.tell(MessageNotification("warning", outliving))

    async def stop(self) -> None:
        """End every turn and child, close every journal. Bounded by the turns' own bounds."""
        async with anyio.create_task_group() as tasks:
            for session in list(self.sessions.values()):
                tasks.start_soon(self._close, session)
        await self.context.processes.end_all()
        if self.context.providers is not None:
            await self.context.providers.close()

    async def release_if_done(self, session: Session) -> None:
        """Release a session that nobody opened once nothing of it is unresolved or shown as settled."""
        snapshot = session.snapshot()
        if not session.is_kept_open and not snapshot.calls and not snapshot.settled and session.turn is None:
            await self._close(session)

    def report_left_jobs(self, session: Session) -> tuple[str, ...]:
        """Return a sentence for each command that a crash left running, once in this process (row A8, case 121)."""
        new = [left for job_id, left in session.jobs.left.items() if job_id not in self._reported_jobs]
        commands = [left for left in session.jobs.left_commands if left.attempt_id not in self._reported_jobs]
        self._reported_jobs.update(left.job.job_id for left in new)
        self._reported_jobs.update(left.attempt_id for left in commands)
        return (
            *(left_sentence(session, left) for left in new),
            *(left_command_sentence(session, left) for left in commands),
        )

    async def _close(self, session: Session) -> None:
        session.change_status("close")
        await self._end_work(session)
        if self.sessions.get(session.session_id) is session:
            del self.sessions[session.session_id]
        self._opener.note_unacknowledged(session)
        await session.log.release()

    async def _end_work(self, session: Session) -> None:
        """End its turn, and then what its turns left running in the background. What waits is paused (row S9)."""
        if session.ready.pause(session.ledger):
            session.feed.notify_queue()
        turn = session.turn
        if turn is not None:
            turn.begin_stopping("closed")
            turn.scope.cancel()
            with anyio.move_on_after(CLOSE_S_MAX):
                await turn.ended.wait()
        with anyio.move_on_after(CLOSE_S_MAX):
            for turn_id in session.side_turns:
                await session.feed.wait_until_ended(turn_id)
        with anyio.move_on_after(CLOSE_S_MAX):
            async with session.settling:  # a restore that has begun comes to its end
                pass
        await end_jobs(session)


def _must_open(session: Session, anew: bool) -> bool:
    """Return whether an open session has to be taken from its files again.

    One that nobody owns is taken over by whatever is asked of it next (row J11); one that cannot record here is tried
    again only if that is asked for and nothing runs in it."""
    if session.status is SessionStatus.FREE:
        return True
    return anew and session.can_begin_turn and session.status not in (SessionStatus.OPEN, SessionStatus.CLOSING)


def _require_settled(session: Session, force: bool) -> None:
    """Raise Refused, recoveryRequired, for a session with unresolved effects (row B8)."""
    uncertain = session.snapshot().calls
    if uncertain and not force:
        raise Refused(
            "recoveryRequired",
            "It has uncertain effects; settle them, or delete it with force.",
            {"uncertain": to_plain(uncertain)},
        )
