"""One session of this process with its log and its feed, and the set of all open sessions.

`SessionState` holds the state, `SessionLog` records, `SessionFeed` notifies. Only these modules assign to a session's
attributes; `tests/architecture/test_session_state.py` checks that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Mode, ModeSet
from steadyhand.domain.views import render
from steadyhand.domain.views.recovery_snapshot import SnapshotContext
from steadyhand.domain.views.types import MessageView, QueuedView, ReadOnly, SessionView, Snapshot
from steadyhand.journal.journal import Journal
from steadyhand.journal.ownership import SessionLock
from steadyhand.session.context import SessionContext
from steadyhand.session.session_feed import SessionFeed
from steadyhand.session.session_log import SessionLog
from steadyhand.session.session_state import SessionState
from steadyhand.session.session_views import queue_view, session_view, snapshot_context, snapshot_of
from steadyhand.tools.contract import ToolContext


class DoubtsUnknown(Exception):
    """It is not known which effects of earlier sessions are uncertain. The text is one or more sentences."""


class Doubts(Protocol):
    """What knows the uncertain effects of earlier sessions (case 163)."""

    async def read(self, folders: Iterable[str] = ()) -> None:
        """Read the earlier sessions of these folders (URIs), and of the client's. Raise DoubtsUnknown."""
        ...

    async def known(self, session: Session) -> None:
        """Wait until it is known which effects may hold back those of this session. Raise DoubtsUnknown."""
        ...


class Origins(Protocol):
    """What reads the sessions that forks were made from (row S3)."""

    async def read(self, session: Session) -> None:
        """Let the fork follow what its origins say now."""
        ...


class OpenSessions:
    """The open sessions of this process by their ids, and what begins the next prompt of one."""

    def __init__(self, start_next: Callable[[Session], Awaitable[None]]) -> None:
        self.by_id: dict[str, Session] = {}
        self.start_next = start_next
        self.doubts: Doubts | None = None
        """None: whoever built this reads earlier sessions itself before any effect."""

        self.origins: Origins | None = None

    def require_known_doubts(self, doubts: Doubts) -> None:
        """Ask this before each effect."""
        self.doubts = doubts

    def read_origins_by(self, origins: Origins) -> None:
        """Ask this before each effect of a fork."""
        self.origins = origins

    def neighbours_of(self, session: Session) -> list[Session]:
        """Return the sessions that no other process owns, this one first (row B1).

        Their folders do not matter: folders may be nested, and one folder may have several paths (case 164). What
        their effects may touch is compared."""
        return [session, *(one for one in self.by_id.values() if one is not session and not one.live.elsewhere)]


class Session(SessionState):
    """One open session, owned by this process or only shown."""

    def __init__(
        self,
        *,
        sessions: OpenSessions,
        context: SessionContext,
        session_id: str,
        path: str,
        ledger: Ledger,
        tool_context: ToolContext,
        epoch: str,
        lock: SessionLock | None = None,
        journal: Journal | None = None,
        read_only: ReadOnly | None = None,
        damaged: int = 0,
    ) -> None:
        super().__init__(
            context=context,
            session_id=session_id,
            path=path,
            ledger=ledger,
            tool_context=tool_context,
            epoch=epoch if lock is not None and journal is not None else None,
            read_only=read_only,
            damaged=damaged,
        )
        self._sessions = sessions
        self.feed = SessionFeed(self, epoch)
        self.log = SessionLog(self, self.feed, lock, journal)

    # Views.

    @property
    def workspace(self) -> str | None:
        """The URI of its folder, as the client spelled it."""
        return self.ledger.workspace

    def view(self) -> SessionView:
        """Return the session as a list and the editor show it."""
        return session_view(self)

    def snapshot(self) -> Snapshot:
        """Return what is uncertain, and what was settled since the last turn."""
        return snapshot_of(self)

    def snapshot_context(self) -> SnapshotContext:
        """Return what a snapshot depends on beside the ledger."""
        return snapshot_context(self)

    def queue(self) -> tuple[QueuedView, ...]:
        """Return the prompts that wait, in order."""
        return queue_view(self)

    def messages(self, tail: int) -> tuple[tuple[MessageView, ...], bool]:
        """Return the last `tail` messages, and whether there are earlier ones."""
        return render.message_views(self.ledger, tail, self.live, self.tool_context.root)

    def neighbours(self) -> list[Session]:
        """Return the open sessions whose effects may touch the same, this one first (row B1)."""
        return self._sessions.neighbours_of(self)

    async def wait_for_doubts(self) -> None:
        """Wait until the uncertain effects of earlier sessions are known (case 163). Raise DoubtsUnknown."""
        if self._sessions.doubts is not None:
            await self._sessions.doubts.known(self)

    async def wait_for_origins(self) -> None:
        """Read again what a fork's origins say of their uncertain effects (row S3)."""
        if self.ledger.origins and self._sessions.origins is not None:
            await self._sessions.origins.read(self)

    # Who may do what.

    def require_owned(self) -> None:
        """Raise Refused, notOwner or journalBroken in the order of protocol.md, unless new work may be recorded."""
        shown = self.read_only
        if shown is not None and shown.reason == "owned":
            holder = shown.owner
            more: dict[str, Any] = (
                {"owner": {"pid": holder.pid, "host": holder.host, "since": holder.since}} if holder else {}
            )
            raise Refused("notOwner", shown.text, more)
        if shown is not None:
            raise Refused("journalBroken", shown.text, {"readOnly": {"reason": shown.reason, "text": shown.text}})
        if not self.can_record:
            why = self.log.journal.broken if self.log.journal is not None else None
            raise Refused("journalBroken", why or "The session is closing.")

    def require_epoch(self, epoch: str) -> None:
        """Raise Refused if the caller saw another epoch."""
        if epoch != self.epoch:
            raise Refused(
                "staleEpoch", "The session was opened again or rewound meanwhile. Open it again.", {"epoch": self.epoch}
            )

    @contextmanager
    def waiting_for_user(self) -> Iterator[None]:
        """While a question to the user is open, the running turn is parked."""
        turn = self.turn
        if turn is None:
            yield
            return
        turn.open_question()
        self.feed.notify_changes()
        try:
            yield
        finally:
            turn.close_question()
            self.feed.notify_changes()

    def use_folders(self, tool_context: ToolContext, epoch: str | None = None) -> None:
        """Work with other folders. `epoch`: the one that begins with them; what waits is paused."""
        self.tool_context = tool_context
        if epoch is not None:
            self.epoch = epoch
            self.ready.pause(self.ledger)
            self.feed.begin_epoch(epoch)

    async def set_mode(self, mode: Mode) -> None:
        """Set which calls are asked about. Raise Refused if that cannot be recorded."""
        self.require_owned()
        if mode != self.ledger.mode:
            await self.log.record_or_refuse([ModeSet(mode=mode)])
        self.feed.notify_changes()

    async def start_next_prompt(self) -> None:
        """Begin the next queued prompt, if nothing runs and the queue is not paused."""
        await self._sessions.start_next(self)
