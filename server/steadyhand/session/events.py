"""The numbered events of one epoch, kept for a client that reconnects (row D3). Bounded in number and size."""

from __future__ import annotations

from collections import deque

import attrs

from steadyhand.core.views import Event, TextDelta, TurnEvent

events_kept_max = 4096
events_bytes_max = 8 * 1024 * 1024
_event_bytes = 512  # estimate for everything but text


@attrs.frozen
class Missed:
    """`events` after the asked number; `next` goes into `after` the next time; `reset`: open the session again."""

    events: tuple[TurnEvent, ...]
    next: int
    reset: bool


class EventRing:
    """Numbers from 1 without gaps within an epoch."""

    def __init__(self, session_id: str, epoch: str) -> None:
        self._session_id = session_id
        self._epoch = epoch
        self._kept: deque[tuple[TurnEvent, int]] = deque()
        self._bytes = 0
        self.number = 0

    def add(self, turn_id: str, event: Event) -> TurnEvent:
        self.number += 1
        told = TurnEvent(self._session_id, self._epoch, turn_id, self.number, event)
        size = _size(event)
        self._kept.append((told, size))
        self._bytes += size
        while len(self._kept) > events_kept_max or (self._bytes > events_bytes_max and len(self._kept) > 1):
            self._bytes -= self._kept.popleft()[1]
        return told

    def after(self, epoch: str, number: int) -> Missed:
        oldest = self._kept[0][0].number if self._kept else self.number + 1
        if epoch != self._epoch or number + 1 < oldest or number > self.number:
            return Missed((), self.number, True)
        return Missed(tuple(told for told, _ in self._kept if told.number > number), self.number, False)


def _size(event: Event) -> int:
    if isinstance(event, TextDelta):
        return _event_bytes + len(event.delta)
    return _event_bytes + len(str(attrs.asdict(event, recurse=False)))
