"""What a session sends to the editor, and who waits for something of it.

Events of turns are numbered and buffered. Views are sent where they differ from what was sent last. The text of an
answer may be held for a moment (`shown_text`); every other notification sends it first.
"""

from __future__ import annotations

from typing import Literal

import anyio
import attrs

from steadyhand.domain.views import render
from steadyhand.domain.views.notifications import (
    EditorNotification,
    MessageNotification,
    QueueNotification,
    RecoveryNotification,
    SessionNotification,
)
from steadyhand.domain.views.types import CallChanged, Event, SessionView, TextDelta, TurnEnded
from steadyhand.session.event_buffer import EventBuffer, EventPage
from steadyhand.session.session_state import SessionState
from steadyhand.session.session_views import call_view, queue_view, session_view, snapshot_of
from steadyhand.session.shown_text import ShownText
from steadyhand_values import define


@define(eq=False)
class _Waiter:
    event: anyio.Event = attrs.field(factory=anyio.Event)
    ended: TurnEnded | None = None


class SessionFeed:
    """The notifications and the waiters of one session."""

    def __init__(self, state: SessionState, epoch: str) -> None:
        self._state = state
        self._events = EventBuffer(state.session_id, epoch)
        self._text = ShownText(self._send, state.context.clock, state.context.spawn)
        self._resolution = anyio.Event()
        self._waiters: dict[str, list[_Waiter]] = {}
        self._revision = ""
        self._is_recovery_sent = False
        self._sent_session: SessionView | None = None

    # Notifications.

    def notify(self, turn_id: str, event: Event) -> None:
        """Send one event of a turn; the end of the turn wakes who waits for it."""
        self._text.flush()
        self._send(turn_id, event)
        if isinstance(event, TurnEnded):
            self.wake_waiters(turn_id, event)

    def stream(self, turn_id: str, piece: TextDelta) -> bool:
        """Send a piece of an answer now, or within `SHOWN_INTERVAL_S`; return whether anything was sent now."""
        return self._text.add(turn_id, piece)

    def end_stream(self) -> None:
        """Send what is held of an answer."""
        self._text.flush()

    def events_after(self, epoch: str, number: int) -> EventPage:
        """Return what a client that has seen this event lacks (row D3)."""
        self._text.flush()
        return self._events.after(epoch, number)

    def begin_epoch(self, epoch: str) -> None:
        """Number events anew; a client that knows the earlier epoch opens the session again."""
        self._text.flush()
        self._events = EventBuffer(self._state.session_id, epoch)

    def notify_call(self, call_id: str, title: str | None = None) -> None:
        """Send how a call is now."""
        call = self._state.ledger.calls[call_id]
        self.notify(call.turn_id, CallChanged(call_view(self._state, call_id, title)))

    def notify_changes(self) -> None:
        """Send the session and its recovery snapshot where they changed since they were sent."""
        view = session_view(self._state)
        timeless = attrs.evolve(view, updated="")
        if timeless != self._sent_session:
            self._sent_session = timeless
            self._tell(SessionNotification(view))
        self.notify_recovery()

    def notify_recovery(self, first: bool = False) -> None:
        """Send the recovery snapshot if its revision changed. The first one is sent only if it shows something.

        `first`: send one that shows nothing too, if none was sent. The session was shown before, in another epoch."""
        now = snapshot_of(self._state)
        known, self._revision = self._revision, now.revision
        is_news = known != now.revision and (known or now.calls or now.settled)
        if is_news or (first and not self._is_recovery_sent):
            self._is_recovery_sent = True
            self._tell(RecoveryNotification(now))

    def notify_queue(self) -> None:
        """Send the prompts that wait."""
        self._tell(QueueNotification(self._state.session_id, queue_view(self._state)))

    def notify_message(self, level: Literal["error", "warning", "info", "log"], text: str) -> None:
        """Send a message for the user."""
        self._tell(MessageNotification(level, text))

    def _send(self, turn_id: str, event: Event) -> None:
        self._state.context.editor.tell(self._events.add(turn_id, event))

    def _tell(self, notification: EditorNotification) -> None:
        self._text.flush()
        self._state.context.editor.tell(notification)

    # Waiters.

    def announce_resolution(self) -> None:
        """Something about an uncertain effect was decided or inspected: calls that it held back are decided anew."""
        self._resolution.set()
        self._resolution = anyio.Event()

    async def wait_for_resolution(self) -> None:
        """Wait until the next resolution is announced."""
        await self._resolution.wait()

    def wake_waiters(self, turn_id: str, ended: TurnEnded) -> None:
        """Tell everyone who waits for the turn how it ended."""
        for waiter in self._waiters.pop(turn_id, ()):
            waiter.ended = ended
            waiter.event.set()

    def wake_waiters_of_removed(self, turn_id: str) -> None:
        """Tell everyone who waits for a turn that its prompt left the queue."""
        self.wake_waiters(turn_id, TurnEnded("cancelled", ()))

    def wake_all_waiters(self) -> None:
        """Tell everyone who waits for a turn that the session was closed."""
        for turn_id in list(self._waiters):
            self.wake_waiters(turn_id, TurnEnded("closed", ()))

    async def wait_until_ended(self, turn_id: str) -> TurnEnded:
        """Return how the turn ended, at once if it has ended already."""
        state = self._state
        turn = state.ledger.turns.get(turn_id)
        if turn is not None and turn.ended is not None and not state.live.runs(turn_id):
            return render.turn_ended(state.ledger, turn_id, turn.ended.reason)
        if turn is None and not state.live.runs(turn_id) and not self._is_queued(turn_id):
            return TurnEnded("cancelled", ())  # it was taken out of the queue
        waiter = _Waiter()
        self._waiters.setdefault(turn_id, []).append(waiter)
        await waiter.event.wait()
        assert waiter.ended is not None
        return waiter.ended

    def _is_queued(self, turn_id: str) -> bool:
        return any(item.turn_id == turn_id for item in self._state.ledger.queue.values())
