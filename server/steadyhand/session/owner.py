"""The owner of one open session: its ledger, journal, epoch, running turn, events and queue.

One owner changes a session's state; others get frozen views. All of it runs on one event loop: between two awaits
nothing else happens, and the journal is written by one task at a time, in order. An append is never abandoned: what
was written is applied, whatever is cancelled meanwhile [I2].
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

import anyio
import attrs

from steadyhand.core import show
from steadyhand.core.folded import Attempt
from steadyhand.core.ledger import Ledger
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import EndReason, Inspection, Job, Mode, ModeSet, Record
from steadyhand.core.refusal import Refused
from steadyhand.core.snapshot import Stand, overtaken, snapshot
from steadyhand.core.told import MessageTold, QueueTold, RecoveryTold, SessionTold
from steadyhand.core.views import (
    CallChanged,
    Event,
    JobState,
    JobView,
    MessageView,
    QueuedView,
    ReadOnly,
    SessionView,
    Snapshot,
    TurnEnded,
    Warned,
)
from steadyhand.journal.log import Journal, JournalBroken, TooLong
from steadyhand.session.events import EventRing
from steadyhand.session.folder import Held
from steadyhand.session.job import LeftJob, RunningJob
from steadyhand.session.opening import show as take_unkept
from steadyhand.session.summary import summary_of, write_summary
from steadyhand.session.world import World
from steadyhand.tools.tool import Ground, Nobody, Said


@attrs.define(eq=False)
class RunningTurn:
    """The turn that holds the lease. `stopping` is set before its scope is cancelled, never after."""

    turn_id: str
    client_message_id: str
    prompt: Prompt
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    stopping: EndReason | None = None
    parked: int = 0  # open questions to the person
    thinks: bool = True  # False: the provider refused this conversation for its reasoning (session.reasoning)
    repeats: dict[tuple[str, str], int] = attrs.field(factory=dict)  # (tool, arguments digest) → times asked
    unfinished: object = None  # an answer that a stop cut off (session.asking.Answer)
    not_kept: bool = False  # the journal broke; what follows is shown and not kept
    why: str | None = None  # one sentence on why it ended, where its reason needs one
    warned: set[str] = attrs.field(factory=set)  # codes of what is said once a turn


async def _nothing() -> None:
    """Before the house has taken the owner in."""


class Recovery(Protocol):
    """What a tool's body may do about an uncertain effect (row B5)."""

    async def inspect(self, attempt_id: str) -> Said: ...

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> Said: ...


class Redoing(Protocol):
    """How an uncertain attempt is restored or tried again (rows A5, F2)."""

    async def restore(self, attempt: Attempt, latest: Inspection) -> Attempt:
        """The attempt that restores, at its end, whatever it came to."""
        ...

    async def retry(self, attempt: Attempt, latest: Inspection) -> Callable[[], Awaitable[None]]:
        """What is returned carries the new call through, after the resolution."""
        ...


@attrs.define(eq=False)
class _Waiter:
    event: anyio.Event = attrs.field(factory=anyio.Event)
    ended: TurnEnded | None = None


class Owner:
    """One open session of this process, owned or read-only."""

    def __init__(
        self, world: World, session_id: str, path: str, ledger: Ledger, ground: Ground, epoch: str,
        held: Held | None, journal: Journal | None, read_only: ReadOnly | None, damaged: int,
    ) -> None:  # fmt: skip
        self.world = world
        self.session_id = session_id
        self.path = path
        self.ledger = ledger
        self.ground = ground
        self.epoch = epoch if held is not None and journal is not None else None
        self.held = held
        self.journal = journal
        self.read_only = read_only
        self.damaged = damaged
        self.turn: RunningTurn | None = None
        self.side_turns: set[str] = set()  # slash commands; they need no lease
        self.redone: set[str] = set()  # calls of restores and retries that run; their turns have ended
        self.jobs: dict[str, RunningJob] = {}
        """Background commands that this process started; they end with the session (row E5)."""
        self.left_jobs: dict[str, LeftJob] = {}
        """Those a crash left behind, as they were found at opening."""
        self.resumed = False
        self.reasoning_refused: int | None = 0
        """Turns in a row refused for their reasoning; None: the person chose to go on without any."""
        self.resolving = 0
        self.closing = False
        self.events = EventRing(session_id, epoch)
        self.neighbours: Callable[[], list[Owner]] = lambda: [self]
        """The open sessions of the same workspace in this process, this one first."""
        self.settling = anyio.Lock()
        """One resolution at a time (row A6)."""
        self.kept_open = True
        """Whether somebody opened it; else it is let go when nothing of it is uncertain or shown (row A8)."""
        self._resolution = anyio.Event()
        self.recovery: Recovery = Nobody()
        """The model's own way out of an uncertain effect; set by the house."""
        self.redoing: Redoing | None = None
        """Set by the house, once this process owns the session."""
        self.when_free: Callable[[], Awaitable[None]] = _nothing
        """Begins the next queued prompt, if the lease is free."""
        self.delivering = anyio.Lock()
        """Sends of a session go one at a time."""
        self._writing = anyio.Lock()
        self._waiters: dict[str, list[_Waiter]] = {}
        self._revision = ""
        self._shown_session: SessionView | None = None

    # What others see.

    @property
    def live(self) -> show.Live:
        turns = {self.turn.turn_id} if self.turn else set()
        elsewhere = self.read_only is not None and self.read_only.reason == "owned"
        return show.Live(frozenset(turns | self.side_turns), elsewhere)

    def view(self) -> SessionView:
        ledger, session = self.ledger, self.ledger.session
        return SessionView(
            session_id=self.session_id,
            path=self.path,
            title=ledger.title,
            title_source=ledger.title_source,
            created=ledger.created or ledger.updated or self.world.clock.now(),
            updated=ledger.updated or self.world.clock.now(),
            mode=ledger.mode,
            model=ledger.model,
            busy=self.turn is not None,
            parked=self.turn is not None and self.turn.parked > 0,
            uncertain=len(ledger.uncertain()),
            epoch=self.epoch,
            workspace=session.workspace if session else None,
            read_only=self.read_only,
            jobs=tuple(self._job(job) for job in ledger.open_jobs()) or None,
        )

    def _job(self, job: Job) -> JobView:
        left = self.left_jobs.get(job.job_id)
        lives = job.job_id in self.jobs or self.live.elsewhere or (left is not None and left.alive is not None)
        state: JobState = "untold" if not lives else "left" if left is not None else "runs"
        return JobView(job.job_id, job.attempt_id, job.call_id, job.title, state, job.pid)

    @property
    def workspace(self) -> str | None:
        """The URI of the folder it is bound to, as the client spelled it."""
        return self.ledger.session.workspace if self.ledger.session else None

    def name(self) -> str:
        """Its title, else the first 8 digits of its id."""
        return self.ledger.title or self.session_id[:8]

    def snapshot(self) -> Snapshot:
        return snapshot(self.ledger, self.stand())

    def stand(self) -> Stand:
        retry = self.world.settings.retry
        others = [other.ledger for other in self.neighbours() if other is not self] if retry else []
        gone = overtaken(self.ledger, others) if retry else frozenset[str]()
        return Stand(self.session_id, self.path, self.epoch, retry, self.ground.root, gone)

    def queue(self) -> tuple[QueuedView, ...]:
        return show.queue_view(self.ledger, self.epoch, self.resumed)

    def messages(self, tail: int) -> tuple[tuple[MessageView, ...], bool]:
        return show.messages(self.ledger, tail, self.live, self.ground.root)

    # What is told.

    def tell(self, turn_id: str, event: Event) -> None:
        self.world.editor.tell(self.events.add(turn_id, event))
        if isinstance(event, TurnEnded):
            self.end_waiting(turn_id, event)

    def resolved(self) -> None:
        """Something about an uncertain effect was decided; whoever holds a call back looks again."""
        self._resolution.set()
        self._resolution = anyio.Event()

    async def next_resolution(self) -> None:
        await self._resolution.wait()

    def end_waiting(self, turn_id: str, ended: TurnEnded) -> None:
        """Whoever waits for the turn goes on."""
        for waiter in self._waiters.pop(turn_id, ()):
            waiter.ended = ended
            waiter.event.set()

    def end_cancelled(self, turn_id: str) -> None:
        """A prompt left the queue without a turn."""
        self.end_waiting(turn_id, TurnEnded("cancelled", ()))

    async def wait_ended(self, turn_id: str) -> TurnEnded:
        """How the turn ended, at once if it has ended already."""
        turn = self.ledger.turns.get(turn_id)
        if turn is not None and turn.ended is not None and not self.live.runs(turn_id):
            return TurnEnded(turn.ended.reason, show.changed_in_turn(self.ledger, turn_id))
        if turn is None and not self.live.runs(turn_id) and not self._waits(turn_id):
            return TurnEnded("cancelled", ())  # taken out of the queue
        waiter = _Waiter()
        self._waiters.setdefault(turn_id, []).append(waiter)
        await waiter.event.wait()
        assert waiter.ended is not None
        return waiter.ended

    def _waits(self, turn_id: str) -> bool:
        return any(item.turn_id == turn_id for item in self.ledger.queue.values())

    def tell_call(self, call_id: str, title: str | None = None) -> None:
        call, live = self.ledger.calls[call_id], self.live
        if call_id in self.redone:
            live = attrs.evolve(live, turns=live.turns | {call.turn_id})
        self.tell(call.turn_id, CallChanged(show.call_view(call, live, self.ground.root, title)))

    def tell_changes(self) -> None:
        """Session and recovery, where they differ from what was told last."""
        view = self.view()
        timeless = attrs.evolve(view, updated="")
        if timeless != self._shown_session:
            self._shown_session = timeless
            self.world.editor.tell(SessionTold(view))
        self.tell_recovery()

    def tell_recovery(self) -> None:
        now = self.snapshot()
        if now.revision != self._revision:
            known, self._revision = self._revision, now.revision
            if known or now.calls or now.settled:
                self.world.editor.tell(RecoveryTold(now))

    def tell_queue(self) -> None:
        self.world.editor.tell(QueueTold(self.session_id, self.queue()))

    # What is recorded.

    async def append(self, records: Sequence[Record], barrier: bool, unless: Callable[[], bool] | None = None) -> bool:
        """Record in this order and apply; JournalBroken if it cannot be kept.

        False: nothing was recorded, because `unless` held when its turn to write came."""
        if self.journal is None:
            raise JournalBroken("This session is read-only here.")
        async with self._writing:
            if self.journal is None:
                raise JournalBroken("This session was let go meanwhile.")
            if unless is not None and unless():
                return False
            with anyio.CancelScope(shield=True):
                for stamped in await self.world.in_thread(self.journal.append, records, barrier):
                    self.ledger.apply(stamped)
        return True

    async def append_or_show(self, records: Sequence[Record], barrier: bool = False) -> bool:
        """As `append`; once the journal is broken the records are shown and not kept (row J6)."""
        try:
            await self.append(records, barrier)
        except (JournalBroken, TooLong) as broken:
            self.show_unkept(records, str(broken))
            return False
        return True

    def show_unkept(self, records: Sequence[Record], why: str) -> None:
        take_unkept(self.ledger, records)
        turn = self.turn
        if turn is not None and not turn.not_kept:
            turn.not_kept = True
            self.tell(turn.turn_id, Warned("notKept", f"{why} What follows in this turn is shown and not kept."))

    # Who may do what.

    @property
    def works(self) -> bool:
        """Whether anything can be recorded here."""
        return self.journal is not None and self.journal.broken is None and not self.closing

    def require_owned(self) -> None:
        """notOwner or journalBroken, in wire.md's order."""
        if self.read_only is not None and self.read_only.reason == "owned":
            owner = self.read_only.owner
            more = {"owner": {"pid": owner.pid, "host": owner.host, "since": owner.since}} if owner else {}
            raise Refused("notOwner", self.read_only.text, more)
        if self.read_only is not None:
            raise Refused(
                "journalBroken", self.read_only.text,
                {"readOnly": {"reason": self.read_only.reason, "text": self.read_only.text}},
            )  # fmt: skip
        if not self.works:
            why = self.journal.broken if self.journal else None
            raise Refused("journalBroken", why or "The session is closing.")

    def require_epoch(self, epoch: str) -> None:
        if epoch != self.epoch:
            raise Refused("staleEpoch", "The session has been taken up anew; open it again.", {"epoch": self.epoch})

    @contextmanager
    def parked(self) -> Iterator[None]:
        """While a question to the person is open."""
        turn = self.turn
        if turn is None:
            yield
            return
        turn.parked += 1
        self.tell_changes()
        try:
            yield
        finally:
            turn.parked -= 1
            self.tell_changes()

    async def set_mode(self, mode: Mode) -> None:
        self.require_owned()
        if mode != self.ledger.mode:
            await self.record_or_refuse([ModeSet(mode)])
        self.tell_changes()

    async def record_or_refuse(self, records: Sequence[Record]) -> None:
        """A durable append for a request; its failure is the request's."""
        try:
            await self.append(records, barrier=True)
        except JournalBroken as broken:
            self.tell_changes()
            raise Refused("journalBroken", str(broken)) from broken
        except TooLong as long:
            raise Refused("invalidParams", str(long), {"errors": [{"path": "$.text", "message": str(long)}]}) from long

    async def keep_summary(self) -> None:
        """Write the cache that spares the next start a fold."""
        async with self._writing:  # else the folder could be let go meanwhile, and its handle be another one's
            if self.held is not None and self.works:
                summary = summary_of(self.ledger)
                folder = self.held.folder
                await self.world.in_thread(write_summary, self.world.disk, self.world.ids, folder, summary)

    async def let_go(self) -> None:
        """Let the journal and the lock go, after whatever is being written; who waits for a turn waits no longer."""
        with anyio.CancelScope(shield=True):
            async with self._writing:
                await self.world.in_thread(self.release)
        for turn_id in list(self._waiters):
            self.end_waiting(turn_id, TurnEnded("closed", ()))

    def release(self) -> None:
        """As `let_go`, where nothing is being written. Blocks shortly."""
        if self.held is not None and self.journal is not None and self.journal.broken is None:
            write_summary(self.world.disk, self.world.ids, self.held.folder, summary_of(self.ledger))
        if self.journal is not None:
            self.journal.close()
            self.journal = None
        if self.held is not None:
            self.held.lock.release()
            self.world.disk.close(self.held.folder)
            self.held = None
        self.epoch = None

    def say(self, level: str, text: str) -> None:
        match level:
            case "error" | "warning" | "info" | "log":
                self.world.editor.tell(MessageTold(level, text))
            case _:
                raise AssertionError(level)
