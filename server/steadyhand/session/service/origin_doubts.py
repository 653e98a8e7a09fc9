"""Before each effect of a fork, the journal of its origin is read anew, without its lock (row S3).

What is still unresolved there holds back here, whoever owns the origin. One that nobody owns is opened in this process,
so that its effects can be settled from the question as those of any open session (row B1). One that another process
owns is only read. One that cannot be read holds back. That one was deleted is said once and recorded; it holds nothing
back any more.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Notice, Origin
from steadyhand.journal.journal import JOURNAL, load
from steadyhand.session.context import SessionContext
from steadyhand.session.origin_reading import OriginReading
from steadyhand.session.session import OpenSessions, Session
from steadyhand.session.session_state import ID_SHOWN_DIGITS
from steadyhand.session.session_status import SessionStatus
from steadyhand.session.storage import directory
from steadyhand.session.storage.loaded_ledger import ledger_of
from steadyhand.session.storage.lock import session_path
from steadyhand_values import define, frozen

log = logging.getLogger(__name__)


@frozen
class _Looked:
    """What the files of an origin say. Neither `ledger` nor `why`: there is no such session any more."""

    ledger: Ledger | None = None
    why: str | None = None
    is_free: bool = False  # no process owns it


@define(eq=False)
class OriginDoubts:
    """The origins of the forks of this process. Every session asks it before an effect."""

    context: SessionContext
    sessions: OpenSessions
    open_session: Callable[[str], Awaitable[Session]]  # opens one that nobody asked for
    release_if_done: Callable[[Session], Awaitable[None]]
    _read: dict[str, tuple[tuple[int, int], Ledger]] = attrs.field(factory=dict)
    """Session → size and time of its journal when it was read, and its ledger."""
    _opening: dict[str, anyio.Event] = attrs.field(factory=dict)
    _opened: set[str] = attrs.field(factory=set)

    async def read(self, session: Session) -> None:
        """Let the fork follow what its origins say now."""
        named = [origin for origin in session.ledger.origins if origin.attempts]
        session.origins.follow([await self._read_one(session, origin) for origin in named])
        for session_id in list(self._opened):
            opened = self.sessions.by_id.get(session_id)
            if opened is None or opened.is_kept_open:
                self._opened.discard(session_id)
            else:
                await self.release_if_done(opened)

    async def _read_one(self, session: Session, origin: Origin) -> OriginReading:
        path = session_path(self.context.state_directory, origin.session_id)
        if (here := self._here(origin)) is not None:
            return here
        looked = await self.context.in_thread(self._look, origin.session_id)
        if looked.ledger is None and looked.why is None:
            await self._say_deleted(session, origin)
        name = (looked.ledger.title if looked.ledger is not None else "") or origin.session_id[:ID_SHOWN_DIGITS]
        reading = OriginReading(origin, name, path, looked.ledger, looked.why)
        if not looked.is_free or not reading.unsettled():
            return reading
        if origin.session_id not in self._opening:
            self._opening[origin.session_id] = anyio.Event()
            # In a task of its own: an opening that is cancelled with its turn would keep the lock.
            self.context.spawn(partial(self._open, origin.session_id), "opening the origin of a fork")
        await self._opening[origin.session_id].wait()
        return self._here(origin) or reading

    def _here(self, origin: Origin) -> OriginReading | None:
        live = self.sessions.by_id.get(origin.session_id)
        if live is None or live.status in (SessionStatus.OWNED_ELSEWHERE, SessionStatus.FREE):
            return None
        return OriginReading(origin, live.name, live.path, live.ledger, is_here=True)

    def _look(self, session_id: str) -> _Looked:
        """Read an origin from its files. What was not changed is not read again. Blocks."""
        context = self.context
        try:
            folder = context.private_state.open_session(session_id)
        except FileNotFoundError:
            return _Looked()
        except Refused as refused:
            return _Looked(why=refused.message.rstrip("."))
        except OSError as error:
            return _Looked(why=error.strerror or type(error).__name__)
        try:
            look = context.disk.look(folder, JOURNAL)
            if look is None:
                return _Looked()  # its deletion was cut off
            stamp = (look.size, look.modified_ns)
            if session_id not in self._read or self._read[session_id][0] != stamp:
                self._read[session_id] = (stamp, ledger_of(load(context.disk, folder)))
        except OSError as error:
            return _Looked(why=error.strerror or type(error).__name__)
        finally:
            context.disk.close(folder)
        return _Looked(self._read[session_id][1], is_free=directory.is_free(context, session_id))

    async def _open(self, session_id: str) -> None:
        """Open it, which classifies what its owner left. One that cannot be opened holds back as it was read."""
        try:
            await self.open_session(session_id)
            self._opened.add(session_id)
        except (Refused, OSError) as error:
            log.warning("the origin %s was not opened: %s", session_id, error)
        finally:
            self._opening.pop(session_id).set()

    async def _say_deleted(self, session: Session, origin: Origin) -> None:
        first, count = origin.attempts[0], len(origin.attempts)
        if first in session.ledger.noticed:
            return
        effects = "an effect was uncertain there" if count == 1 else f"{count} effects were uncertain there"
        text = (
            f"Session {origin.session_id[:ID_SHOWN_DIGITS]}, from which this one was forked, was deleted. At the fork"
            f" {effects}; nobody can settle that any more, so it holds nothing back. Look at the files before you rely"
            " on them."
        )
        notice = Notice(message_id=self.context.ids.new(), text=text, attempt_id=first)
        await session.log.append_or_show([notice], barrier=True)
        session.feed.notify_message("warning", text)
