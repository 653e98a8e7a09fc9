"""The state of one session of this process: ledger, epoch, status, running turn, jobs.

Only the methods here change it; others read it. All of it runs on one event loop: between two awaits nothing else
happens. It does not know how anything is recorded or who is notified.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.growing_transcript import GrowingTranscript
from steadyhand.domain.model.readings import GrowingReadings
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.views.render import LiveState
from steadyhand.domain.views.types import ReadOnly
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.compaction_tries import CompactionTries
from steadyhand.session.context import SessionContext
from steadyhand.session.job import SessionJobs
from steadyhand.session.left_out_folders import LeftOutFolders
from steadyhand.session.origin_reading import OriginReadings
from steadyhand.session.ready_prompts import ReadyPrompts
from steadyhand.session.reasoning_refusals import ReasoningRefusals
from steadyhand.session.seen_contents import SeenContents
from steadyhand.session.session_status import (
    CLOSING,
    SHOWN_ONLY,
    SessionEvent,
    SessionStatus,
    first_status,
    next_status,
)
from steadyhand.tools.contract import ToolContext

ID_SHOWN_DIGITS = 8


class SessionState:
    """What is known of one session here. `epoch` is None where this process does not own the session."""

    def __init__(
        self,
        *,
        context: SessionContext,
        session_id: str,
        path: str,
        ledger: Ledger,
        tool_context: ToolContext,
        epoch: str | None,
        read_only: ReadOnly | None,
        damaged: int,
    ) -> None:
        self.context = context
        self.session_id = session_id
        self.path = path
        self.tool_context = tool_context
        self.damaged = damaged
        self.ledger = ledger
        self.epoch = epoch
        self.read_at = context.starts.count
        """How many starts of this process were numbered when this journal was read."""
        self.status = first_status(epoch is not None, read_only)
        self.turn: ActiveTurn | None = None
        self.resolutions = 0
        """Resolutions that are being carried out; no turn begins meanwhile (row A3)."""
        self.ready = ReadyPrompts()
        self.is_kept_open = True
        """False: nobody opened it; it is released when nothing of it is uncertain or shown (row A8)."""
        self.transcript = GrowingTranscript()
        self.jobs = SessionJobs()
        self.reasoning = ReasoningRefusals()
        self.compaction_tries = CompactionTries()
        self.left_out_folders = LeftOutFolders()
        self.settling = anyio.Lock()
        """Held by the one resolution that decides (row A6)."""
        self.delivering = anyio.Lock()
        """Held by the one prompt that is being accepted."""
        self.seen_contents = SeenContents()
        self.readings = GrowingReadings()
        self.origins = OriginReadings()
        self.telling = anyio.Lock()
        """Held while a message to the model is recorded, and while a request is made from the ledger (row G15)."""
        self._read_only = read_only
        self._side_turns: set[str] = set()
        self._redone: set[str] = set()

    @property
    def name(self) -> str:
        """Its title, else the first digits of its id."""
        return self.ledger.title or self.session_id[:ID_SHOWN_DIGITS]

    @property
    def read_only(self) -> ReadOnly | None:
        """Why the session is only shown; None where it can be recorded, its journal broke, or nobody owns it."""
        return self._read_only if self.status in SHOWN_ONLY else None

    @property
    def can_record(self) -> bool:
        """Whether new work may be recorded here."""
        return self.status is SessionStatus.OPEN

    @property
    def is_closing(self) -> bool:
        """Whether its work is being ended."""
        return self.status in CLOSING

    @property
    def can_begin_turn(self) -> bool:
        """Whether neither a turn nor a resolution runs."""
        return self.turn is None and not self.resolutions

    @property
    def live(self) -> LiveState:
        """The turns that run now."""
        turns = {self.turn.turn_id} if self.turn else set()
        return LiveState(frozenset(turns | self._side_turns), self.status is SessionStatus.OWNED_ELSEWHERE)

    @property
    def side_turns(self) -> frozenset[str]:
        """Turns of slash commands that run beside the session's turn."""
        return frozenset(self._side_turns)

    def neighbours(self) -> Sequence[SessionState]:
        """Return the open sessions whose effects may touch the same, this one first (row B1)."""
        return [self]

    def is_redone(self, call_id: str) -> bool:
        """Return whether a restore or retry runs as this call, though the call's turn has ended."""
        return call_id in self._redone

    # Changes.

    def change_status(self, event: SessionEvent, why: ReadOnly | None = None) -> None:
        """Follow the table of `session_status`. A released session has no epoch. `why`: of a lost one, to be shown."""
        self._read_only = why or self._read_only
        self.status = next_status(self.status, event)
        if event == "release":
            self.epoch = None

    def begin_turn(self, turn_id: str, client_message_id: str, prompt: Prompt) -> ActiveTurn:
        """Make a turn the running one. No other may run."""
        assert self.can_begin_turn, "one turn at a time"
        self.turn = ActiveTurn(turn_id, client_message_id, prompt)
        return self.turn

    def end_turn(self, turn_id: str) -> None:
        """Let the next turn begin, if this turn is the running one. What it did not take of its steers is next."""
        if self.turn is not None and self.turn.turn_id == turn_id:
            self.turn = None
            self.release_steers(turn_id)

    def begin_side_turn(self, turn_id: str) -> None:
        """A slash command runs beside the session's turn."""
        self._side_turns.add(turn_id)

    def end_side_turn(self, turn_id: str) -> None:
        """A slash command has ended, if it ran beside the session's turn."""
        self._side_turns.discard(turn_id)
        self.release_steers(turn_id)

    def release_steers(self, turn_id: str) -> None:
        """Let begin what waited for this turn, if the turn has ended as done (row S8)."""
        turn = self.ledger.turns.get(turn_id)
        if turn is not None and turn.ended is not None and turn.ended.reason == "done":
            self.ready.release_steers(self.ledger, turn_id)

    @contextmanager
    def resolution(self) -> Iterator[None]:
        """While a resolution is carried out: no turn begins."""
        self.resolutions += 1
        try:
            yield
        finally:
            self.resolutions -= 1

    @contextmanager
    def redoing(self, call_id: str) -> Iterator[None]:
        """While a restore or retry runs as this call."""
        self._redone.add(call_id)
        try:
            yield
        finally:
            self._redone.discard(call_id)

    def keep_open(self, wanted: bool) -> None:
        """Note whether somebody asked for this session."""
        self.is_kept_open = wanted

    def forget_records(self) -> None:
        """The session was deleted: nothing of it is known any more."""
        self.ledger = Ledger()
