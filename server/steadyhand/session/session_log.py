"""How a session records: one task at a time writes its journal, in order, and applies what was written to the ledger.

An append is never abandoned: what was written is applied, whatever is cancelled meanwhile [I2]. After a failed write
the session's status says that nothing more is kept [I12]. If lock, folder or journal do not stand any more, the session
is shown read-only and the user is told once [I15]. A session that was released has no journal to write to, so a late
record of an earlier epoch is dropped [I7].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import Record, Started
from steadyhand.domain.views.types import ReadOnly, Warned
from steadyhand.journal.journal import Journal, JournalBroken, TooLong, UnacknowledgedTail
from steadyhand.journal.ownership import SessionLock
from steadyhand.session.session_feed import SessionFeed
from steadyhand.session.session_state import SessionState
from steadyhand.session.storage.summary import Summary, summary_of, write_summary


class SessionLog:
    """The journal and the lock of one session; both are None where this process does not own the session."""

    def __init__(
        self, state: SessionState, feed: SessionFeed, lock: SessionLock | None, journal: Journal | None
    ) -> None:
        self._state = state
        self._feed = feed
        self.lock = lock
        self.journal = journal
        self._writing = anyio.Lock()
        self._is_loss_told = False

    @property
    def unacknowledged(self) -> UnacknowledgedTail | None:
        """What the journal did not make durable (row J6); None: there is nothing."""
        return self.journal.unacknowledged if self.journal is not None else None

    async def append(self, records: Sequence[Record], barrier: bool, unless: Callable[[], bool] | None = None) -> bool:
        """Record in this order and apply. Raise JournalBroken if the records cannot be kept.

        Return False if nothing was recorded, because `unless` was true when the turn to write came."""
        if self.journal is None:
            raise JournalBroken("This session is read-only here.")
        async with self._writing:
            journal = self.journal
            if journal is None:
                raise JournalBroken("This session was closed meanwhile.")
            if unless is not None and unless():
                return False
            with anyio.CancelScope(shield=True):
                try:
                    stamped = await self._state.context.in_thread(journal.append, records, barrier)
                except JournalBroken:
                    self._follow(journal)
                    raise
                for record in stamped:
                    self._state.ledger.apply(record)
                    if isinstance(record.record, Started):
                        attempt = self._state.ledger.attempts[record.record.attempt_id]
                        self._state.context.starts.add(self._state.session_id, attempt)
        return True

    async def append_or_show(self, records: Sequence[Record], barrier: bool = False) -> bool:
        """As `append`. Once the journal is broken, show the records without keeping them and return False (row J6)."""
        try:
            await self.append(records, barrier)
        except (JournalBroken, TooLong) as broken:
            self.show_unkept(records, str(broken))
            return False
        return True

    async def record_or_refuse(self, records: Sequence[Record]) -> None:
        """Append durably for a request. Raise Refused if the records cannot be kept."""
        try:
            await self.append(records, barrier=True)
        except JournalBroken as broken:
            self._feed.notify_changes()
            raise Refused("journalBroken", str(broken)) from broken
        except TooLong as long:
            raise Refused("invalidParams", str(long), {"errors": [{"path": "$.text", "message": str(long)}]}) from long

    def show_unkept(self, records: Sequence[Record], why: str) -> None:
        """Apply records that the journal does not hold; the user is warned once a turn."""
        self._state.ledger.apply_unrecorded(records)
        turn = self._state.turn
        if turn is not None and turn.mark_not_kept():
            text = f"{why} The rest of this turn is shown but not stored."
            self._feed.notify(turn.turn_id, Warned("notKept", text))

    async def may_act(self) -> bool:
        """Return whether an effect may start: the journal takes records, and lock, folder and journal still stand."""
        journal = self.journal
        if journal is None:
            return False
        with anyio.CancelScope(shield=True):
            may = await self._state.context.in_thread(journal.may_act)
        if not may:
            self._follow(journal)
        return may

    def may_act_blocking(self) -> bool:
        """As `may_act`, in the thread of an effect; the next record tells the session what was found."""
        journal = self.journal
        return journal is not None and journal.may_act()

    def _follow(self, journal: Journal) -> None:
        """Let the session follow a journal that takes no more records, unless the session was released meanwhile."""
        if journal is not self.journal or journal.broken is None:
            return
        if not journal.lost:
            self._state.change_status("journal_broke")
            return
        self._state.change_status("lost", ReadOnly("disk", journal.broken))
        if not self._is_loss_told:
            self._is_loss_told = True
            self._feed.notify_changes()
            self._feed.notify_message("error", f"Session “{self._state.name}” cannot go on here. {journal.broken}")

    async def keep_summary(self) -> None:
        """Write the cache that spares the next start from reading the whole journal."""
        async with self._writing:  # the folder's handle must stay open while it is used
            journal, lock = self.journal, self.lock
            if journal is not None and lock is not None and self._state.can_record:
                summary = summary_of(self._state.ledger)
                await self._state.context.in_thread(self._write_summary, journal, lock, summary)
                self._follow(journal)

    async def release(self) -> None:
        """Release the journal and the lock after the current write; wake everyone who waits for a turn."""
        with anyio.CancelScope(shield=True):
            async with self._writing:
                journal, lock = self.journal, self.lock
                self.journal = self.lock = None
                try:
                    summary = summary_of(self._state.ledger)
                    await self._state.context.in_thread(self._release, journal, lock, summary)
                finally:
                    self._state.change_status("release")
        self._feed.wake_all_waiters()

    # Blocking, in a thread. The state belongs to the event loop, and nothing of it changes here.

    def _write_summary(self, journal: Journal, lock: SessionLock, summary: Summary) -> None:
        """Write the summary of what the journal has, unless it is another's journal or folder by now."""
        context = self._state.context
        if journal.may_act():
            write_summary(context.disk, context.ids, lock.folder, summary, journal.end)

    def _release(self, journal: Journal | None, lock: SessionLock | None, summary: Summary) -> None:
        if journal is not None and lock is not None:
            self._write_summary(journal, lock, summary)
        if journal is not None:
            journal.close()
        if lock is not None:
            lock.lock.release()
            self._state.context.disk.close(lock.folder)
