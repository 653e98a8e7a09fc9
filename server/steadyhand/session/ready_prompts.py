"""Which of the prompts that wait may begin; every other one is paused (rows S4, S8, S9).

A prompt may begin once it was accepted in this process, until something pauses the queue: a stop, a close, another
epoch. Nothing of it is recorded, so after a crash everything that waits is paused. A steer may begin once its turn has
ended as done.
"""

from __future__ import annotations

from steadyhand.domain.ledger.ledger import Ledger


class ReadyPrompts:
    """The client message ids of what may begin. `ledger` is the session's own at each call."""

    def __init__(self) -> None:
        self.ids: set[str] = set()

    def let_begin(self, client_message_id: str) -> None:
        """What waits under this id may begin when nothing runs."""
        self.ids.add(client_message_id)

    def pause(self, ledger: Ledger) -> bool:
        """Let nothing begin that waits now. Return whether something of it was not paused."""
        was_ready = not self.ids.isdisjoint(ledger.queue)
        self.ids.clear()
        return was_ready

    def resume(self, ledger: Ledger, running: str | None) -> None:
        """Let everything begin that waits. What waits for the running turn to take it stays paused."""
        self.ids.update(name for name, one in ledger.queue.items() if running is None or one.steers != running)

    def release_steers(self, ledger: Ledger, turn_id: str) -> None:
        """Let begin what waited for this turn to take it."""
        self.ids.update(name for name, one in ledger.queue.items() if one.steers == turn_id)
