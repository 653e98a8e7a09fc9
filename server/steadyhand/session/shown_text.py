"""The text of an answer on its way to the editor: many small pieces become few notifications (row D3).

The first piece is sent at once. Pieces that follow within `SHOWN_INTERVAL_S` of the last notification are held and sent
as one; a piece of another message or kind, or any other notification, sends what is held before it, so nothing is lost
and the order stays. What is held is in the answer already: the end of a turn records it, whether it was sent or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from steadyhand.domain.views.types import TextDelta
from steadyhand.ports.system import Clock

NOTIFICATIONS_PER_S_MAX = 60
"""Of text, while one message and kind streams."""
SHOWN_INTERVAL_S = 1 / NOTIFICATIONS_PER_S_MAX


class ShownText:
    """The text of one session that is held back for a moment."""

    def __init__(
        self,
        send: Callable[[str, TextDelta], None],
        clock: Clock,
        spawn: Callable[[Callable[[], Awaitable[None]], str], None],
    ) -> None:
        """`send` takes a turn and its text; `spawn` starts a task with a name for the log."""
        self._send = send
        self._clock = clock
        self._spawn = spawn
        self._turn_id = ""
        self._held: TextDelta | None = None  # its delta is the first of `_pieces`
        self._pieces: list[str] = []
        self._due_s = 0.0  # when the next notification may go
        self._is_waiting = False  # a task will send what is held

    def add(self, turn_id: str, piece: TextDelta) -> bool:
        """Send a piece now or with those that follow; return whether anything was sent."""
        held = self._held
        if held is not None and (turn_id, piece.message_id, piece.kind) == (self._turn_id, held.message_id, held.kind):
            self._pieces.append(piece.delta)
            return self._clock.monotonic_s() >= self._due_s and self.flush()
        was_sent = self.flush()
        self._turn_id, self._held, self._pieces = turn_id, piece, [piece.delta]
        if self._clock.monotonic_s() >= self._due_s:
            return self.flush()
        if not self._is_waiting:
            self._is_waiting = True
            self._spawn(self._send_later, "the text of an answer")
        return was_sent

    def flush(self) -> bool:
        """Send what is held; return whether there was anything."""
        held, self._held = self._held, None
        if held is None:
            return False
        self._due_s = self._clock.monotonic_s() + SHOWN_INTERVAL_S
        self._send(self._turn_id, TextDelta(held.message_id, "".join(self._pieces), held.kind))
        self._pieces = []
        return True

    async def _send_later(self) -> None:
        """Send what is held as soon as it is due, until nothing is held."""
        try:
            while self._held is not None:
                due_s = self._due_s
                await anyio.sleep(min(SHOWN_INTERVAL_S, max(0.0, due_s - self._clock.monotonic_s())))
                if self._due_s == due_s:  # else something was sent meanwhile
                    self.flush()
        finally:
            self._is_waiting = False
