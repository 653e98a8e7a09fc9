"""The numbered events of one epoch, kept for a client that reconnects (row D3). Bounded in number and size."""

from __future__ import annotations

from collections import deque

import attrs

from steadyhand.domain.views.types import Event, TextDelta, TurnEvent
from steadyhand_values import frozen

EVENTS_KEPT_MAX = 4096
EVENTS_BYTES_MAX = 8 * 1024 * 1024
_EVENT_BYTES = 512  # estimate for everything but text


@frozen
class EventPage:
    """`events` after the asked number; `next` goes into `after` the next time; `reset`: open the session again."""

    events: tuple[TurnEvent, ...]
    next: int
    reset: bool


class EventBuffer:
    """Numbers from 1 without gaps within an epoch."""

    def __init__(self, session_id: str, epoch: str) -> None:
        self._session_id = session_id
        self._epoch = epoch
        self._kept: deque[tuple[TurnEvent, int]] = deque()
        self._bytes = 0
        self.number = 0

    def add(self, turn_id: str, event: Event) -> TurnEvent:
        """Number an event and keep it; the oldest are dropped above the bounds."""
        self.number += 1
        numbered = TurnEvent(self._session_id, self._epoch, turn_id, self.number, event)
        size = _size(event)
        self._kept.append((numbered, size))
        self._bytes += size
        while len(self._kept) > EVENTS_KEPT_MAX or (self._bytes > EVENTS_BYTES_MAX and len(self._kept) > 1):
            self._bytes -= self._kept.popleft()[1]
        return numbered

    def after(self, epoch: str, number: int) -> EventPage:
        """Return the events after a number that the client has seen in this epoch."""
        oldest = self._kept[0][0].number if self._kept else self.number + 1
        if epoch != self._epoch or number + 1 < oldest or number > self.number:
            return EventPage((), self.number, True)
        return EventPage(tuple(one for one, _ in self._kept if one.number > number), self.number, False)


def _size(event: Event) -> int:
    if isinstance(event, TextDelta):
        return _EVENT_BYTES + len(event.delta)
    return _EVENT_BYTES + len(str(attrs.asdict(event, recurse=False)))
