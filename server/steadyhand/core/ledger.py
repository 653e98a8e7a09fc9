"""The ledger: the fold of a journal in memory. Everything shown or decided is read from here (row J1).

`apply` takes records in journal order; `break_joint` says that the joint is broken at this place. Records that may
not stand where they stand are put into `refused` and change nothing (row J14). The ledger holds no live state: which
turn runs now is known by the session's owner alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import attrs

from steadyhand.core.attempt import AttemptRecord, advance
from steadyhand.core.folded import Attempt, Call, Said, Turn, Waiting, known_to_have_happened
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import (
    Assistant,
    Attached,
    Cancel,
    Damage,
    Ended,
    Epoch,
    Forget,
    Inspection,
    Instructions,
    Intent,
    Job,
    Mode,
    ModelName,
    ModelSet,
    ModeSet,
    Notice,
    Permission,
    Proposed,
    Queue,
    Record,
    Reject,
    Result,
    Scope,
    Session,
    Settlement,
    Stamped,
    Started,
    Supplied,
    Title,
    TitleSource,
    Tool,
    Unknown,
    Usage,
    User,
)
from steadyhand.core.scope import EVERYTHING

NO_TOOL = "unknown"
"""The tool of a call whose message is damaged, or that no message proposed: a retry or restore, until its intent."""


@attrs.define
class Ledger:
    """Mutable; owned by one session owner. Others are given the frozen views made from it."""

    session: Session | None = None
    created: str | None = None
    updated: str | None = None
    title: str = ""
    title_source: TitleSource = "none"
    mode: Mode = "ask"
    model: ModelName = attrs.field(factory=lambda: ModelName("practice", "practice"))
    epoch: str | None = None
    said: list[Said] = attrs.field(factory=list)
    turns: dict[str, Turn] = attrs.field(factory=dict)
    calls: dict[str, Call] = attrs.field(factory=dict)
    attempts: dict[str, Attempt] = attrs.field(factory=dict)
    queue: dict[str, Waiting] = attrs.field(factory=dict)
    prompts: dict[str, tuple[str, Prompt]] = attrs.field(factory=dict)  # client message id → (turn id, as it was sent)
    grants: list[Permission] = attrs.field(factory=list)
    instructions: str | None = None  # of the workspace's AGENTS.md; None: none were taken
    usage: list[Usage] = attrs.field(factory=list)
    jobs: dict[str, Job] = attrs.field(factory=dict)  # job id → its latest record
    refused: list[str] = attrs.field(factory=list)
    held_back: int = 0
    turns_begun: int = 0  # slash commands and quick questions are no turn that something waits for
    _open_calls: dict[str, Call] = attrs.field(factory=dict)
    _proposed: set[str] = attrs.field(factory=set)

    def break_joint(self) -> None:
        """The joint is broken here: whatever is open may have gone on in what is missing."""
        for call in self._open_calls.values():
            call.broken = True
            for attempt in call.attempts:
                attempt.broken = attempt.broken or attempt.open

    def apply(self, stamped: Stamped) -> None:
        record = stamped.record
        if isinstance(record, Unknown):
            return
        self.updated = stamped.at
        match record:
            case Session():
                self.session, self.created = record, stamped.at
                self.mode, self.model = record.mode, record.model
                self.title, self.title_source = record.title or "", record.title_source
            case Epoch():
                self.epoch = record.epoch
            case User():
                self._begin(record, stamped.at)
            case Attached():
                if (turn := self.turns.get(record.turn_id)) and turn.attached is None:
                    turn.attached = record.text
            case Instructions(text):
                self.instructions = text if self.instructions is None else self.instructions
            case Assistant():
                self._say(record, stamped)
            case Tool():
                self._reply(record)
            case Intent() | Started() | Result() | Settlement() | Inspection() | Reject():
                self._advance(record, stamped)
            case Permission():
                self._permit(record)
            case Forget(attempt_id):
                self.grants = [grant for grant in self.grants if grant.attempt_id != attempt_id]
            case Supplied():
                self._supply(record)
            case Notice():
                self.said.append(Said(stamped.at, record, record.turn_id or ""))
                about = self.attempts.get(record.attempt_id) if record.attempt_id else None
                if about is not None and about.settlement is not None:
                    about.told = True
            case Usage():
                self.usage.append(record)
            case Title():
                if record.source != "auto" or self.title_source != "user":
                    self.title, self.title_source = record.title, record.source
            case ModeSet():
                self.mode = record.mode
            case ModelSet(provider, name):
                self.model = ModelName(provider, name)
            case Cancel():
                if turn := self.turns.get(record.turn_id):
                    turn.cancelled = True
            case Ended():
                if (turn := self.turns.get(record.turn_id)) and turn.ended is None:
                    turn.ended = record
            case Queue():
                self._enqueue(record, stamped.at)
            case Job():
                self._follow_job(record)
            case Damage():
                pass

    def call_of(self, call_id: str, turn_id: str) -> Call:
        """The call, or an empty one in its place when its message is damaged."""
        call = self.calls.get(call_id)
        if call is None:
            call = self.calls[call_id] = Call(call_id, turn_id, NO_TOOL, "{}")
            self._open_calls[call_id] = call
        return call

    def open_calls(self) -> list[Call]:
        """Calls without a readable reply or end, in the order they were proposed."""
        return [call for call in self._open_calls.values() if not _ended(call)]

    def uncertain(self) -> list[Attempt]:
        """Unresolved attempts, oldest first."""
        return [attempt for attempt in self.attempts.values() if attempt.uncertain]

    def open_jobs(self) -> list[Job]:
        """Background commands whose end stands nowhere, oldest first."""
        return [job for job in self.jobs.values() if job.event == "started"]

    def known_happened(self, tool: str, arguments_digest: str, scope: Scope) -> int:
        """How many earlier attempts of this intention are known to have happened (row N2)."""
        return sum(
            1
            for attempt in self.attempts.values()
            if attempt.tool == tool
            and attempt.arguments_digest == arguments_digest
            and attempt.scope == scope
            and known_to_have_happened(attempt)
        )

    def confirmed_before(self, tool: str, arguments_digest: str, scope: Scope) -> tuple[str, ...]:
        """Attempts of this very call that the user confirmed and was not asked about since (row B6)."""
        return tuple(
            attempt.attempt_id
            for attempt in self.attempts.values()
            if attempt.settlement is not None
            and attempt.settlement.settled == "user_confirmed"
            and not attempt.asked_again
            and (attempt.tool, attempt.arguments_digest, attempt.scope) == (tool, arguments_digest, scope)
        )

    def _begin(self, record: User, at: str) -> None:
        turn = self.turns[record.turn_id] = Turn(
            record.turn_id, record.client_message_id, record.prompt, record.command, at, self.epoch
        )
        self.turns_begun += turn.in_history
        self.queue.pop(record.client_message_id, None)
        # A queued prompt that was edited is still known by the text it was sent with.
        self.prompts.setdefault(record.client_message_id, (record.turn_id, record.prompt))
        self.said.append(Said(at, record, record.turn_id))

    def _enqueue(self, record: Queue, at: str) -> None:
        if record.removed:
            self.queue.pop(record.client_message_id, None)
            return
        waiting = self.queue.get(record.client_message_id)
        if waiting is not None:  # edited: it keeps its place, and stays paused if it was
            self.queue[record.client_message_id] = attrs.evolve(
                waiting, prompt=attrs.evolve(waiting.prompt, text=record.text)
            )
            return
        self.prompts[record.client_message_id] = (record.turn_id, record.prompt)
        self.queue[record.client_message_id] = Waiting(
            record.client_message_id, record.turn_id, record.prompt, at, self.epoch
        )

    def _follow_job(self, record: Job) -> None:
        """An end is for good: a start that follows it is none."""
        known = self.jobs.get(record.job_id)
        if known is not None and (known.event == "ended" or record.event == "started"):
            self.refused.append(f"{record.event} of job {record.job_id}, which has {known.event} already")
            return
        self.jobs[record.job_id] = record

    def _say(self, record: Assistant, stamped: Stamped) -> None:
        again = [proposed.call_id for proposed in record.calls if proposed.call_id in self._proposed]
        if again:
            self.refused.append(f"call {again[0]} is proposed a second time at seq {stamped.seq}")
            return
        if record.goes_on and self._go_on(record):
            return
        self.said.append(Said(stamped.at, record, record.turn_id))
        for proposed in record.calls:
            self._propose(record.turn_id, proposed)

    def _go_on(self, rest: Assistant) -> bool:
        """The rest joins the message it belongs to (row P2); False: that one is not there, so it stands alone."""
        for place in reversed(range(len(self.said))):
            said = self.said[place]
            begun = said.record
            if isinstance(begun, Assistant) and begun.message_id == rest.message_id and not begun.withdrawn:
                reasoning = (begun.reasoning or "") + (rest.reasoning or "")
                whole = attrs.evolve(
                    begun, text=begun.text + rest.text, reasoning=reasoning or None, finish=rest.finish
                )
                self.said[place] = attrs.evolve(said, record=whole)
                return True
        return False

    def _propose(self, turn_id: str, proposed: Proposed) -> None:
        """The call as it was asked; what is known of it already, by records before its message, is kept."""
        self._proposed.add(proposed.call_id)
        call = self.call_of(proposed.call_id, turn_id)
        call.turn_id, call.tool, call.arguments = turn_id, proposed.tool, proposed.arguments

    def _supply(self, record: Supplied) -> None:
        """The first words stand for ever; beside a reply none are needed (row T2)."""
        call = self.call_of(record.call_id, record.turn_id)
        if call.supplied is not None or call.reply is not None:
            self.refused.append(f"words for call {record.call_id}, which has some")
            return
        call.supplied = record.text

    def _reply(self, record: Tool) -> None:
        call = self.call_of(record.call_id, record.turn_id)
        if call.reply is not None:
            self.refused.append(f"a second reply to call {record.call_id}")
            return
        call.reply = record
        attempt = self.attempts.get(record.attempt_id) if record.attempt_id else None
        if attempt is not None and attempt.effect == "reads" and attempt.open:
            attempt.stage = "certain"
        if _ended(call):
            self._open_calls.pop(record.call_id, None)

    def _permit(self, record: Permission) -> None:
        if attempt := self.attempts.get(record.attempt_id):
            attempt.permission = record
        for attempt_id in record.confirmed_before:
            if confirmed := self.attempts.get(attempt_id):
                confirmed.asked_again = True
        if record.answer == "session":
            self.grants.append(record)

    def _advance(self, record: AttemptRecord, stamped: Stamped) -> None:
        attempt = self.attempts.get(record.attempt_id)
        after = advance(attempt.stage if attempt else "absent", record)
        if after is None:
            self.refused.append(f"{record.kind} of attempt {record.attempt_id} may not stand at seq {stamped.seq}")
            return
        if attempt is None:
            attempt = self._admit(record, stamped.at)
        attempt.stage = after
        match record:
            case Started():
                attempt.started, attempt.started_at = record, stamped.at
                if record.key is not None and record.occurrence is not None:
                    attempt.key, attempt.occurrence = record.key, record.occurrence
                self.held_back += record.held
            case Result():
                attempt.result, attempt.result_at = record, stamped.at
                attempt.check = record.check
                self.held_back += record.held
                if _ended(self.calls[attempt.call_id]):
                    self._open_calls.pop(attempt.call_id, None)
            case Settlement():
                attempt.settlement, attempt.settled_epoch = record, self.epoch
                attempt.settled_turns = self.turns_begun
                attempt.check = record.check or attempt.check
            case Inspection():
                attempt.inspection, attempt.inspection_at = record, stamped.at
                attempt.inspection_epoch = self.epoch
                attempt.check = record.check or attempt.check
            case Reject():
                attempt.rejected = True
            case Intent():
                pass

    def _admit(self, record: AttemptRecord, at: str) -> Attempt:
        """A new attempt; without a readable intent it is one of unknown origin, and may touch everything (C3)."""
        turn_id = record.turn_id if isinstance(record, Intent | Result) else ""
        call = self.call_of(record.call_id, turn_id)
        if isinstance(record, Intent):
            if call.tool == NO_TOOL:
                call.tool = record.tool
                origin = self.attempts.get(record.retry_of) if record.retry_of else None
                if origin is not None:  # a retry takes the stored arguments (row F2)
                    call.arguments = self.calls[origin.call_id].arguments
            attempt = Attempt(
                record.attempt_id, record.call_id, record.turn_id, record.tool, record.title, record.effect,
                record.scope, at, record.arguments_digest, record.key, record.occurrence,
                retry_of=record.retry_of, restore_of=record.restore_of,
            )  # fmt: skip
        else:
            attempt = Attempt(
                record.attempt_id, record.call_id, call.turn_id, call.tool, call.tool, "opaque", EVERYTHING, at
            )
        call.attempts.append(attempt)
        self._open_calls[call.call_id] = call
        self.attempts[record.attempt_id] = attempt
        return attempt


def _ended(call: Call) -> bool:
    """Whether nothing is open about a call: a reply without an attempt, or every attempt at its end."""
    if call.attempts:
        return not any(attempt.open for attempt in call.attempts)
    return call.reply is not None


_PASSED_OVER = (Result, Settlement, Permission, Tool, User, Queue, ModeSet)
"""What counts for nothing in an unacknowledged tail; a prompt there was refused, so sending it again is no repeat."""


def fold(records: Iterable[Stamped], breaks: Collection[int], unacknowledged: int | None = None) -> Ledger:
    """The ledger of a whole journal; `breaks` as in the journal's load.

    What stands in an unacknowledged tail counts against us only (row J6): a result, a settlement, a grant
    or a prompt there is passed over, a start counts. Such tails are told by `damage` records; `unacknowledged` is the
    first `seq` of
    one that no record tells of yet, and reaches to the end.
    """
    every = list(records)
    ledger = Ledger()
    doubtful = _unacknowledged(every)
    if unacknowledged is not None:
        doubtful |= {at for at, stamped in enumerate(every) if stamped.seq >= unacknowledged}
    for position, stamped in enumerate(every):
        if position in breaks:
            ledger.break_joint()
        if position in doubtful and _passed_over(stamped.record):
            continue
        ledger.apply(stamped)
    if len(every) in breaks:
        ledger.break_joint()
    return ledger


def _passed_over(record: Record | Unknown) -> bool:
    return isinstance(record, _PASSED_OVER) or (isinstance(record, Job) and record.event == "ended")


def _unacknowledged(records: list[Stamped]) -> set[int]:
    """Positions of records that their writer never acknowledged, as later `damage` records tell."""
    found: set[int] = set()
    for position, stamped in enumerate(records):
        record = stamped.record
        if isinstance(record, Damage) and record.unacknowledged is not None:
            first = record.unacknowledged
            found |= {at for at in range(position) if first <= records[at].seq < stamped.seq}
    return found
