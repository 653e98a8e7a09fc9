"""No effect before the doubts are known: a folder's earlier sessions are read before the first effect (case 163).

The folders are those of the client, and that of the session whose effect waits. Each is read once: at the start of the
server, or by the first effect that needs it, if the client never says `initialized` or adds a folder later. A session
that another process owned is looked at again before each effect, because its owner may have ended since (row J11).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.journal.journal import JOURNAL
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.service.startup_scan import (
    LOCK_WAIT_S_MAX,
    ScanResult,
    find_unsettled,
    open_and_note,
    open_unsettled,
    report_scan,
)
from steadyhand.session.session import DoubtsUnknown, Session
from steadyhand.session.session_status import SessionStatus
from steadyhand.session.storage import directory
from steadyhand.session.storage.lock import session_path
from steadyhand.session.uris import path_of
from steadyhand_values import define

Stamp: TypeAlias = "tuple[int, int] | None"
"""Size and modification time of a journal; None: there is none."""
LOST = frozenset({SessionStatus.OWNED_ELSEWHERE, SessionStatus.FREE})
"""The states in which what is shown may be older than what the owner recorded last."""


@define(eq=False)
class _Reading:
    """One scan for some folders. `fault`: why nothing is known after it; a scan that has not ended well has one."""

    ended: anyio.Event = attrs.field(factory=anyio.Event)
    fault: str | None = "The earlier sessions were not read."


class KnownDoubts:
    """The folders whose earlier sessions were read. `registry` asks it before each effect."""

    def __init__(
        self, registry: SessionRegistry, folders: Callable[[], Sequence[str]], free_s: float = LOCK_WAIT_S_MAX
    ) -> None:
        """`folders`: returns the URIs of the client's folders; `free_s`: how long to wait for a session's lock."""
        self._registry = registry
        self._folders = folders
        self._free_s = free_s
        self._readings: dict[str, _Reading] = {}  # path of a folder → how its sessions are read
        self._elsewhere: set[str] = set()  # unsettled sessions that another process owned
        self._retaking: dict[str, anyio.Event] = {}  # session id → set when it was opened again
        self._stamps: dict[str, Stamp] | None = None  # session id → its journal when it was last looked at; None: never
        registry.require_known_doubts(self)

    async def read(self, folders: Iterable[str] = ()) -> None:
        """Read the sessions of these folders and of the client's, unless that was done. Raise DoubtsUnknown."""
        paths = {path: uri for uri in (*folders, *self._folders()) if (path := path_of(uri)) is not None}
        if new := {path: uri for path, uri in paths.items() if path not in self._readings}:
            reading = _Reading()
            self._readings.update(dict.fromkeys(new, reading))
            self._spawn(partial(self._read_sessions, tuple(new.values()), reading), "reading earlier sessions")
        for path, reading in {path: self._readings[path] for path in paths}.items():
            await reading.ended.wait()
            if reading.fault is not None:
                # The next effect tries again, for every folder that this reading was for.
                self._readings = {path: one for path, one in self._readings.items() if one is not reading}
                raise DoubtsUnknown(reading.fault)

    async def known(self, session: Session) -> None:
        """Wait until it is known which effects may hold back those of this session. Raise DoubtsUnknown."""
        await self.read([session.workspace] if session.workspace is not None else [])
        try:
            now, left = await self._registry.context.in_thread(self._left_since, self._stamps or {})
            self._elsewhere.update(left)
            self._stamps = now  # only now: a change counts as looked at once what it left is kept
            lost = self._lost_sessions()
            free = await self._registry.context.in_thread(self._free_ones, lost) if lost else []
        except Refused as refused:
            raise DoubtsUnknown(refused.message) from refused
        for session_id in free:
            if session_id not in self._retaking:
                self._retaking[session_id] = anyio.Event()
                self._spawn(partial(self._retake, session_id), "opening a session that its owner left")
        for session_id in free:
            if (opened := self._retaking.get(session_id)) is not None:
                await opened.wait()

    def _spawn(self, work: Callable[[], Awaitable[None]], subject: str) -> None:
        """In a task of its own: an opening that is cancelled with its turn would keep the lock."""
        self._registry.context.spawn(work, subject)

    async def _read_sessions(self, folders: Sequence[str], reading: _Reading) -> None:
        found = ScanResult()
        try:
            seen = await self._registry.context.in_thread(self._read_stamps)
            if self._stamps is None:  # a later reading is of other folders, and must not hide a change in these
                self._stamps = seen
            found = await open_unsettled(self._registry, folders, self._free_s)
            self._elsewhere.update(found.elsewhere)
            reading.fault = None
        except Refused as refused:  # every request that needs the state directory is refused with the same sentence
            reading.fault = refused.message
            self._registry.context.editor.tell(MessageNotification("error", refused.message))
        except OSError as error:
            why = error.strerror or type(error).__name__
            reading.fault = f"The earlier sessions cannot be listed ({why}). Make the state directory readable."
        finally:
            reading.ended.set()
        await report_scan(self._registry, found)

    def _read_stamps(self) -> dict[str, Stamp]:
        """Return what each journal that is not open here looks like now. Blocks: one stat for each session."""
        context, stamps = self._registry.context, dict[str, Stamp]()
        for session_id in directory.names(context):
            if session_id in self._registry.sessions:
                continue
            try:
                seen = context.disk.look_path(f"{session_path(context.state_directory, session_id)}/{JOURNAL}")
            except OSError:
                seen = None  # the scan says so
            stamps[session_id] = (seen.size, seen.modified_ns) if seen is not None else None
        return stamps

    def _left_since(self, known: dict[str, Stamp]) -> tuple[dict[str, Stamp], list[str]]:
        """Return the journals now, and the sessions of the known folders that others have left unsettled since. Blocks.

        Another process may have created, opened or changed a session after our scan, and ended since (case 163)."""
        now = self._read_stamps()
        changed = frozenset(session_id for session_id, stamp in now.items() if known.get(session_id) != stamp)
        return now, find_unsettled(self._registry, tuple(self._readings), changed).session_ids if changed else []

    def _lost_sessions(self) -> list[str]:
        """Return the sessions that another process owned when they were read, whatever they said then."""
        sessions = self._registry.sessions
        shown = [session.session_id for session in sessions.values() if session.status in LOST]
        return sorted({*shown, *self._elsewhere.difference(sessions)})

    def _free_ones(self, session_ids: Sequence[str]) -> list[str]:
        return [one for one in session_ids if directory.is_free(self._registry.context, one)]

    async def _retake(self, session_id: str) -> None:
        """Open it, which classifies what its owner left (row C4). One that cannot be opened fails alone (row S6)."""
        found, shown = ScanResult(), self._registry.sessions.get(session_id)
        self._elsewhere.discard(session_id)
        try:
            kept_open = shown is not None and shown.is_kept_open
            await open_and_note(self._registry, session_id, found, anew=True, kept_open=kept_open)
            self._elsewhere.update(found.elsewhere)  # another process was faster
        finally:
            self._retaking.pop(session_id).set()
        await report_scan(self._registry, found)
