"""The ledger: the fold of a journal in memory. Everything that is shown or decided is read from it (row J1).

`apply` takes records in journal order; `break_joint` tells that the joint is broken at this place. A record that may
not follow the ones before it is added to `refused` and changes nothing (row J14). The ledger holds no live state: only
the session knows which turn runs now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import attrs

from steadyhand.domain.ledger.attempt_states import AttemptRecord, advance
from steadyhand.domain.ledger.compaction import NOT_COMPACTED, Standing, has_cut, standing_in
from steadyhand.domain.ledger.state import (
    Attempt,
    Intention,
    QueuedPrompt,
    ToolCall,
    TranscriptEntry,
    Turn,
    is_known_to_have_happened,
)
from steadyhand.domain.ledger.usage_sums import UsageSums
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import (
    Assistant,
    Attached,
    Cancel,
    Compaction,
    Damage,
    Ended,
    Epoch,
    Folders,
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
    Origin,
    Permission,
    Proposed,
    Queue,
    Rebind,
    Record,
    Reject,
    Result,
    Review,
    Rewind,
    SessionHeader,
    Settlement,
    Stamped,
    Started,
    Steer,
    Supplied,
    Taken,
    Title,
    TitleSource,
    Told,
    ToolResult,
    Unknown,
    Usage,
    User,
)
from steadyhand.domain.records.scope import EVERYTHING
from steadyhand.domain.records.torn_start import TornStart
from steadyhand_values import define

NO_TOOL = "unknown"
"""The tool of a call that no readable message proposed.

Its message is damaged, or it is a retry or restore whose intent has not been read yet.
"""


@define
class Ledger:
    """Mutable, and changed by one session only. Everything else gets frozen views that are made from it."""

    session: SessionHeader | None = None
    created: str | None = None
    updated: str | None = None
    title: str = ""
    title_source: TitleSource = "none"
    mode: Mode = "ask"
    model: ModelName = attrs.field(factory=lambda: ModelName("practice", "practice"))
    epoch: str | None = None
    origins: list[Origin] = attrs.field(factory=list)  # of a fork: the session it was forked from, then that one's
    workspace: str | None = None  # URI of the folder that the session is bound to now; None: no folder
    folders: tuple[str, ...] = ()  # URIs of the client's folders at the latest turn; empty: the session's alone
    said: list[TranscriptEntry] = attrs.field(factory=list)
    standing: Standing = NOT_COMPACTED  # the compaction of the conversation that counts now (row K4)
    turns: dict[str, Turn] = attrs.field(factory=dict)
    turns_before: set[str] = attrs.field(factory=set)  # ids of the turns before the latest rebind (row S10)
    calls: dict[str, ToolCall] = attrs.field(factory=dict)
    attempts: dict[str, Attempt] = attrs.field(factory=dict)
    queue: dict[str, QueuedPrompt] = attrs.field(factory=dict)
    prompts: dict[str, tuple[str, Prompt]] = attrs.field(factory=dict)  # client message id → (turn id, prompt as sent)
    grants: list[Permission] = attrs.field(factory=list)
    instructions: str | None = None  # text of the workspace's AGENTS.md; None: none was read
    usage: list[Usage] = attrs.field(factory=list)
    counted: list[Usage] = attrs.field(factory=list)  # of the present conversation, since it was last shortened
    usage_sums: UsageSums = attrs.field(factory=UsageSums)
    jobs: dict[str, Job] = attrs.field(factory=dict)  # job id → its latest record
    rewinds: dict[str, Rewind] = attrs.field(factory=dict)  # turn id of a rewind that is done → its record
    noticed: set[str] = attrs.field(factory=set)  # id of the attempt, else of the turn, that each notice is about
    file_events: list[Attempt | Review] = attrs.field(factory=list)  # attempts with evidence, by their starts; reviews
    refused: list[str] = attrs.field(factory=list)  # one clause for each record that changed nothing
    repeated: set[str] = attrs.field(factory=set)  # confirmed attempts, of an origin too, whose repeat has started
    held_back_admitted: int = 0  # calls that were held back and ran after a decision
    held_back_refused: int = 0  # calls that were held back and ended without running
    turns_begun: int = 0  # without slash commands and quick questions: those do not hide what is settled
    _open_calls: dict[str, ToolCall] = attrs.field(factory=dict)
    _proposed: set[str] = attrs.field(factory=set)
    _conversations: dict[str, tuple[TranscriptEntry, ...]] = attrs.field(
        factory=dict
    )  # turn id of a rewind → before it
    _subjects: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    """Message id of a stored message that may outlive its place → the turns that it is about; (): it stays."""
    _files_about: tuple[str, ...] | None = None  # what the next stored message about files is about; None: its turn
    _previous: Record | None = None
    # What each turn asks for is found without a walk over the whole history, so that a turn costs the same late in a
    # long session as early.
    _calls_of_turn: dict[str, dict[str, ToolCall]] = attrs.field(factory=dict)
    _attempts_of_turn: dict[str, list[Attempt]] = attrs.field(factory=dict)
    _attempts_by_intention: dict[tuple[str, str], list[Attempt]] = attrs.field(factory=dict)
    _doubted: dict[str, Attempt] = attrs.field(factory=dict)

    @property
    def held_back(self) -> int:
        """How many calls were held back."""
        return self.held_back_admitted + self.held_back_refused

    def break_joint(self) -> None:
        """Record that the joint is broken here: open calls and attempts may have continued in the missing records."""
        for call in self._open_calls.values():
            call.broken = True
            for attempt in call.attempts:
                attempt.broken = attempt.broken or attempt.open

    def count_torn_start(self, beginning: str) -> None:
        """Count the open attempts that a torn `started` may name as started (case 134).

        It names those whose id begins so; where none does, any of them. Nothing else of the line counts: there is no
        evidence, and it answers no question about a repeat."""
        waiting = [one for one in self.attempts.values() if one.stage == "intended" and one.effect != "reads"]
        for attempt in [one for one in waiting if one.attempt_id.startswith(beginning)] or waiting:
            attempt.stage, attempt.is_start_torn = "started", True
            attempt.started = Started(attempt_id=attempt.attempt_id, call_id=attempt.call_id)
            attempt.started_at = attempt.at

    def apply_unrecorded(self, records: Iterable[Record]) -> None:
        """Apply records that the journal does not hold: they are shown and not kept."""
        for record in records:
            self.apply(Stamped(seq=0, at=self.updated or "", sum="", record=record))

    def apply(self, stamped: Stamped) -> None:
        """Take the next record of the journal. A record of an unknown kind changes nothing."""
        record = stamped.record
        if isinstance(record, Unknown):
            return
        self.updated = stamped.at
        previous, self._previous = self._previous, record
        match record:
            case SessionHeader():
                self.session, self.created, self.workspace = record, stamped.at, record.workspace
                self.mode, self.model = record.mode, record.model
                self.title, self.title_source = record.title or "", record.title_source
            case Epoch():
                self.epoch = record.epoch
            case Origin():
                self.origins.append(record)
            case Rebind():
                self.epoch, self.workspace, self.grants = record.epoch, record.workspace, []
                self.turns_before = {*self.turns}
                self._files_about = ()
            case Folders():
                self.folders = record.folders
                self._files_about = ()
            case User():
                self._files_about = None
                if record.replaces is not None:
                    self._replace(record.replaces, record.epoch)
                self._begin(record, stamped)
            case Attached():
                if (turn := self.turns.get(record.turn_id)) and turn.attached is None:
                    turn.attached, turn.shown = record.text, record.shown
            case Instructions():
                self.instructions = record.text if self.instructions is None else self.instructions
            case Assistant():
                self._add_message(record, stamped)
            case ToolResult():
                self._reply(record)
            case Intent() | Started() | Result() | Settlement() | Inspection() | Reject():
                self._advance(record, stamped)
            case Permission():
                self._add_permission(record)
            case Forget():
                self.grants = [grant for grant in self.grants if grant.attempt_id != record.attempt_id]
            case Supplied():
                self._supply(record)
            case Notice():
                self.said.append(_entry(stamped, record, record.turn_id or ""))
                self.noticed.add(record.attempt_id or record.turn_id or record.message_id)
                about = self.attempts.get(record.attempt_id) if record.attempt_id else None
                if about is not None and about.settlement is not None:
                    about.told = True
            case Told():
                self._note_subject(record)
                self._tell(_entry(stamped, record, record.turn_id or ""), record, previous)
            case Usage():
                self.usage.append(record)
                self.usage_sums.add(record)
                if not record.auxiliary and ((turn := self.turns.get(record.turn_id)) is None or turn.is_in_history):
                    self.counted.append(record)
            case Compaction():
                self.said.append(_entry(stamped, record, record.turn_id))
                self._follow_shortened()
            case Title():
                if record.source != "auto" or self.title_source != "user":
                    self.title, self.title_source = record.title, record.source
            case ModeSet():
                self.mode = record.mode
            case ModelSet():
                self.model = ModelName(record.provider, record.name)
            case Cancel():
                if turn := self.turns.get(record.turn_id):
                    turn.cancelled = True
            case Ended():
                if (turn := self.turns.get(record.turn_id)) and turn.ended is None:
                    turn.ended = record
            case Queue():
                self._enqueue(record, stamped.at)
            case Steer():
                self._wait_for_turn(record, stamped.at)
            case Taken():
                self._take(record, stamped)
            case Job():
                self._follow_job(record)
            case Review():
                self.file_events.append(record)
            case Rewind():
                self._files_about = (record.turn_id, record.target)
                self._rewind(record)
            case Damage():
                pass

    def ensure_call(self, call_id: str, turn_id: str) -> ToolCall:
        """Return the call; if its message is damaged, an empty call is put in its place."""
        call = self.calls.get(call_id)
        if call is None:
            call = self.calls[call_id] = ToolCall(call_id, turn_id, NO_TOOL, "{}")
            self._open_calls[call_id] = call
            self._calls_of_turn.setdefault(turn_id, {})[call_id] = call
        return call

    def calls_of_turn(self, turn_id: str) -> list[ToolCall]:
        """Return the calls of a turn, in the order they were proposed."""
        return list(self._calls_of_turn.get(turn_id, {}).values())

    def attempts_of_turn(self, turn_id: str) -> Sequence[Attempt]:
        """Return the attempts of a turn, oldest first."""
        return self._attempts_of_turn.get(turn_id, ())

    def open_calls(self) -> list[ToolCall]:
        """Return the calls without a readable reply or end, in the order they were proposed."""
        return [call for call in self._open_calls.values() if not _is_ended(call)]

    def uncertain(self) -> list[Attempt]:
        """Return the unresolved attempts, oldest first."""
        return [attempt for attempt in self.doubted() if attempt.uncertain]

    def doubted(self) -> list[Attempt]:
        """Return the attempts that were uncertain at some time or were inspected, oldest first."""
        return sorted(self._doubted.values(), key=lambda attempt: attempt.place)

    def open_jobs(self) -> list[Job]:
        """Return the background commands without a recorded end, oldest first."""
        return [job for job in self.jobs.values() if job.event == "started"]

    def count_known_happened(self, wanted: Intention) -> int:
        """Count the earlier attempts of this intention that are known to have happened (row N2)."""
        return sum(
            1
            for attempt in self._attempts_like(wanted)
            if wanted.is_same_as(attempt.intended) and is_known_to_have_happened(attempt)
        )

    def confirmed_before(self, wanted: Intention) -> tuple[str, ...]:
        """Return the attempts of this exact call that the user confirmed and no allowed repeat followed (row B6)."""
        return tuple(
            attempt.attempt_id
            for attempt in self._attempts_like(wanted)
            if attempt.settlement is not None
            and attempt.settlement.settled == "user_confirmed"
            and not attempt.was_repeated
            and wanted.is_same_as(attempt.intended)
        )

    def _attempts_like(self, wanted: Intention) -> Iterable[Attempt]:
        """Return the attempts that can have this intention, oldest first: those with one of its keys."""
        found = {one.place: one for key in wanted.keys for one in self._attempts_by_intention.get(key, ())}
        return [found[place] for place in sorted(found)]

    def _begin(self, record: User, stamped: Stamped) -> None:
        turn = self.turns[record.turn_id] = Turn(
            record.turn_id,
            record.client_message_id,
            record.prompt,
            record.command,
            stamped.at,
            self.epoch,
            file_events=len(self.file_events),
        )
        self.turns_begun += turn.is_in_history
        self.queue.pop(record.client_message_id, None)
        # A resend is compared with the text that was sent first, even if the queued prompt was edited since.
        self.prompts.setdefault(record.client_message_id, (record.turn_id, record.prompt))
        self.said.append(_entry(stamped, record, record.turn_id))

    def _enqueue(self, record: Queue, at: str) -> None:
        if record.removed:
            self.queue.pop(record.client_message_id, None)
            return
        waiting = self.queue.get(record.client_message_id)
        if waiting is not None:  # an edit keeps the place in the queue and the pause
            self.queue[record.client_message_id] = attrs.evolve(
                waiting, prompt=attrs.evolve(waiting.prompt, text=record.text)
            )
            return
        self.prompts[record.client_message_id] = (record.turn_id, record.prompt)
        self.queue[record.client_message_id] = QueuedPrompt(record.client_message_id, record.turn_id, record.prompt, at)

    def _wait_for_turn(self, record: Steer, at: str) -> None:
        """Add a steer to the queue, before the prompts and behind the steers that wait already (row S8)."""
        if record.client_message_id in self.prompts:
            self.refused.append(f"a steer with the id {record.client_message_id}, which is used already")
            return
        prompt = Prompt(record.text)
        steers = {name: one for name, one in self.queue.items() if one.steers is not None}
        prompts = {name: one for name, one in self.queue.items() if one.steers is None}
        steers[record.client_message_id] = QueuedPrompt(
            record.client_message_id, record.message_id, prompt, at, record.turn_id
        )
        self.queue = steers | prompts
        self.prompts[record.client_message_id] = (record.message_id, prompt)

    def _take(self, record: Taken, stamped: Stamped) -> None:
        """Move a steer from the queue to the conversation, where everything that its turn said so far is before it.

        The replies of the last answer are part of that answer's entry, so none of them can stand behind it (T1)."""
        waiting = self.queue.get(record.client_message_id)
        if waiting is None or waiting.steers != record.turn_id:
            self.refused.append(f"the taking of {record.client_message_id}, which does not wait for that turn")
            return
        del self.queue[record.client_message_id]
        self.prompts[record.client_message_id] = (record.turn_id, self.prompts[record.client_message_id][1])
        said = Steer(
            turn_id=record.turn_id,
            message_id=waiting.turn_id,
            client_message_id=record.client_message_id,
            text=waiting.text,
        )
        self.said.append(TranscriptEntry(stamped.at, said, record.turn_id, stamped.seq, stamped.sum))

    def has_conversation_of(self, turn_id: str) -> bool:
        """Return whether the turn's prompt is part of the conversation, and was not rewound."""
        return any(isinstance(said.record, User) and said.turn_id == turn_id for said in self.said)

    def stays_told(self, message_id: str) -> bool:
        """Return whether a stored message is true as long as the session lasts: of folders and of instructions."""
        return self._subjects.get(message_id) == ()

    def undone_turns(self) -> frozenset[str]:
        """Return the turns whose files a rewind took back that was not undone since."""
        order, undone = list(self.turns), set[str]()
        taken: dict[str, set[str]] = {}  # rewind → what it took back
        for turn_id, rewind in self.rewinds.items():
            if rewind.what == "conversation" or rewind.target not in self.turns:
                continue
            undone -= taken.get(rewind.target, set())
            taken[turn_id] = set(order[order.index(rewind.target) : order.index(turn_id)]) - undone
            undone |= taken[turn_id]
        return frozenset(undone)

    def _rewind(self, record: Rewind) -> None:
        """Take back the conversation from the target's prompt on. The turn of the rewind itself stays to be seen."""
        if record.turn_id not in self.turns or record.target not in self.turns or record.turn_id in self.rewinds:
            self.refused.append(f"rewind {record.turn_id} to {record.target}, which may not stand here")
            return
        self.rewinds[record.turn_id] = record
        self.epoch = record.epoch or self.epoch
        if record.what == "conversation" or record.what == "both":
            own = [said for said in self.said if said.turn_id == record.turn_id]
            before = tuple(said for said in self.said if said.turn_id != record.turn_id)
            self._conversations[record.turn_id] = before
            self.said = [*self._conversation_before(record.target, before), *own]
            self._follow_shortened()

    def _replace(self, turn_id: str, epoch: str | None) -> None:
        """Take back the conversation from a turn's prompt on; another prompt follows."""
        self.epoch = epoch or self.epoch
        self.said = [*self._conversation_before(turn_id, tuple(self.said))]
        self._follow_shortened()

    def _follow_shortened(self) -> None:
        """Find the compaction that counts now. What a provider counted of the conversation before counts no more."""
        self.standing, self.counted = standing_in(self.said), []

    def _tell(self, entry: TranscriptEntry, told: Told, previous: Record | None) -> None:
        """Add a stored message; of the files directly behind a prompt that replaces another, before it (row S8)."""
        is_about_replaced = told.from_ == "files" and told.after is None
        replacing = is_about_replaced and isinstance(previous, User) and previous.replaces is not None
        self.said.insert(len(self.said) - replacing, entry)

    def _note_subject(self, told: Told) -> None:
        """Note which turns a message is about if it may outlive the place where it stands."""
        match told.from_:
            case "instructions":
                self._subjects[told.message_id] = ()
            case "review":
                if (undo := self._note_told_undo()) is not None:
                    self._subjects[told.message_id] = (undo.turn_id,)
            case "files" if self._files_about is not None:
                self._subjects[told.message_id], self._files_about = self._files_about, None
            case _:
                pass

    def _conversation_before(self, turn_id: str, now: tuple[TranscriptEntry, ...]) -> tuple[TranscriptEntry, ...]:
        """Return the conversation before a turn's prompt; before a rewind, with what it took back.

        What the model must still know of what stays follows it."""
        prompts = (at for at, said in enumerate(now) if isinstance(said.record, User) and said.turn_id == turn_id)
        before = self._conversations.get(turn_id, now[: next(prompts, len(now))])
        here = {said.record.message_id for said in before}
        order = list(self.turns)
        removed = set(order[order.index(turn_id) :]) if turn_id in self.turns else set[str]()
        rest = [
            said
            for said in now
            if said.record.message_id not in here
            and (has_cut(before, said.record) or self._outlives(said.record, removed))
        ]
        return (*before, *rest)

    def _outlives(self, record: Record, removed: Collection[str]) -> bool:
        """Return whether it tells the model something that is still true without these turns."""
        if isinstance(record, Notice):
            about = self.attempts.get(record.attempt_id) if record.attempt_id else None
            return record.model and (about.turn_id if about is not None else record.turn_id) not in removed
        subjects = self._subjects.get(record.message_id) if isinstance(record, Told) else None
        return subjects is not None and not any(turn_id in removed for turn_id in subjects)

    def _follow_job(self, record: Job) -> None:
        """Take the next record of a job. An end is final: a later start or end is refused."""
        known = self.jobs.get(record.job_id)
        if known is not None and (known.event == "ended" or record.event == "started"):
            self.refused.append(f"{record.event} of job {record.job_id}, which has {known.event} already")
            return
        self.jobs[record.job_id] = record

    def _add_message(self, record: Assistant, stamped: Stamped) -> None:
        again = [proposed.call_id for proposed in record.calls if proposed.call_id in self._proposed]
        if again:
            self.refused.append(f"call {again[0]} is proposed a second time at seq {stamped.seq}")
            return
        if record.goes_on and self._join_rest(record):
            return
        self.said.append(_entry(stamped, record, record.turn_id))
        for proposed in record.calls:
            self._propose(record.turn_id, proposed)

    def _join_rest(self, rest: Assistant) -> bool:
        """Join the rest to its message (row P2). False: that message is missing, so the rest is added as a new one."""
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
        """Set turn, tool and arguments as proposed.

        Records before the message may have created the call; they are kept.
        """
        self._proposed.add(proposed.call_id)
        call = self.ensure_call(proposed.call_id, turn_id)
        if call.turn_id != turn_id:
            del self._calls_of_turn[call.turn_id][call.call_id]
            self._calls_of_turn.setdefault(turn_id, {})[call.call_id] = call
        call.turn_id, call.tool, call.arguments = turn_id, proposed.tool, proposed.arguments

    def _supply(self, record: Supplied) -> None:
        """Keep the first text for ever (row T2). A second one, or one beside a reply, is refused."""
        call = self.ensure_call(record.call_id, record.turn_id)
        if call.supplied is not None or call.reply is not None:
            self.refused.append(f"words for call {record.call_id}, which has some")
            return
        call.supplied = record.text

    def _reply(self, record: ToolResult) -> None:
        call = self.ensure_call(record.call_id, record.turn_id)
        if call.reply is not None:
            self.refused.append(f"a second reply to call {record.call_id}")
            return
        call.reply = record
        attempt = self.attempts.get(record.attempt_id) if record.attempt_id else None
        if attempt is not None and attempt.effect == "reads" and attempt.open:
            attempt.stage = "certain"
        if _is_ended(call):
            self._open_calls.pop(record.call_id, None)

    def _add_permission(self, record: Permission) -> None:
        if attempt := self.attempts.get(record.attempt_id):
            attempt.permission = record
        if record.answer == "session":
            self.grants.append(record)

    def _note_told_undo(self) -> Attempt | None:
        """The model was told of the oldest undo that it was not told of; each has one message, in their order."""
        for attempt in self.attempts.values():
            if attempt.review_of is not None and not attempt.is_undo_told and attempt.has_certainly_happened:
                attempt.is_undo_told = True
                return attempt
        return None

    def _note_repeat(self, started: Attempt) -> None:
        """Clear the question about confirmed calls, once a repeat that was allowed has started (row B6, case 165)."""
        for attempt_id in started.permission.confirmed_before if started.permission is not None else ():
            self.repeated.add(attempt_id)
            if confirmed := self.attempts.get(attempt_id):
                confirmed.was_repeated = True

    def _advance(self, record: AttemptRecord, stamped: Stamped) -> None:
        attempt = self.attempts.get(record.attempt_id)
        after = advance(attempt.stage if attempt else "absent", record)
        if after is None:
            self.refused.append(f"{record.kind} of attempt {record.attempt_id} may not stand at seq {stamped.seq}")
            return
        if attempt is None:
            attempt = self._add_attempt(record, stamped.at)
        attempt.stage = after
        if attempt.uncertain or isinstance(record, Inspection):
            self._doubted[attempt.attempt_id] = attempt
        match record:
            case Started():
                attempt.started, attempt.started_at = record, stamped.at
                attempt.sandbox = record.sandbox
                if record.scope is not None and not attempt.scope.everything:
                    attempt.intended_scope, attempt.scope = attempt.scope, record.scope
                if record.key is not None and record.occurrence is not None:
                    attempt.key, attempt.occurrence = record.key, record.occurrence
                self.held_back_admitted += record.held
                if record.evidence:
                    self.file_events.append(attempt)
                self._note_repeat(attempt)
            case Result():
                attempt.result, attempt.result_at = record, stamped.at
                attempt.check = record.check
                self.held_back_refused += record.held
                if _is_ended(self.calls[attempt.call_id]):
                    self._open_calls.pop(attempt.call_id, None)
            case Settlement():
                attempt.settlement, attempt.settled_epoch = record, self.epoch
                attempt.settled_at = stamped.at
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

    def _add_attempt(self, record: AttemptRecord, at: str) -> Attempt:
        """Add an attempt. One without a readable intent is of unknown origin, so it may touch everything (C3)."""
        turn_id = record.turn_id if isinstance(record, Intent | Result) else ""
        call = self.ensure_call(record.call_id, turn_id)
        if isinstance(record, Intent):
            if call.tool == NO_TOOL:
                call.tool = record.tool
                origin = self.attempts.get(record.retry_of) if record.retry_of else None
                if origin is not None:  # a retry uses the stored arguments (row F2)
                    call.arguments = self.calls[origin.call_id].arguments
            attempt = Attempt(
                record.attempt_id,
                record.call_id,
                record.turn_id,
                record.tool,
                record.title,
                record.effect,
                record.scope,
                at,
                record.arguments_digest,
                record.key,
                record.occurrence,
                retry_of=record.retry_of,
                restore_of=record.restore_of,
                intention=record.intention,
                unconfined=record.unconfined,
                sandbox=record.sandbox,
                review_of=record.review_of,
                rewind_of=record.rewind_of,
            )
        else:
            attempt = Attempt(
                record.attempt_id, record.call_id, call.turn_id, call.tool, call.tool, "opaque", EVERYTHING, at
            )
        attempt.place = len(self.attempts)
        call.attempts.append(attempt)
        self._open_calls[call.call_id] = call
        self.attempts[record.attempt_id] = attempt
        self._attempts_of_turn.setdefault(attempt.turn_id, []).append(attempt)
        for key in attempt.intended.keys:
            self._attempts_by_intention.setdefault(key, []).append(attempt)
        return attempt


def _entry(stamped: Stamped, record: User | Assistant | Notice | Told | Compaction, turn_id: str) -> TranscriptEntry:
    return TranscriptEntry(stamped.at, record, turn_id, stamped.seq, stamped.sum)


def _is_ended(call: ToolCall) -> bool:
    """Return whether nothing of a call is open: every attempt has ended, or it has a reply and no attempt."""
    if call.attempts:
        return not any(attempt.open for attempt in call.attempts)
    return call.reply is not None


_PASSED_OVER = (
    Result,
    Settlement,
    Permission,
    ToolResult,
    User,
    Queue,
    Steer,
    Taken,
    ModeSet,
    Review,
    Rewind,
    Compaction,
)
"""Records that do not count in an unacknowledged tail.

A prompt there was refused, so sending it again repeats nothing. What was to take a steer there was never sent.
"""


def fold(
    records: Iterable[Stamped],
    breaks: Collection[int],
    unacknowledged: int | None = None,
    torn_starts: Iterable[TornStart] = (),
) -> Ledger:
    """Return the ledger of a whole journal. `breaks` are positions in `records`, as in the journal's load.

    Records of an unacknowledged tail count against us only (row J6): a start counts; a result, a settlement, a grant or
    a prompt does not. `damage` records name such tails. `unacknowledged` is the first `seq` of a tail that no record
    names yet; it reaches to the end. `torn_starts`: as in the journal's load; they count as starts.
    """
    every, torn = list(records), list(torn_starts)
    ledger = Ledger()
    doubtful = _unacknowledged_positions(every)
    if unacknowledged is not None:
        doubtful |= {at for at, stamped in enumerate(every) if stamped.seq >= unacknowledged}
    for position, stamped in enumerate(every):
        if position in breaks:
            ledger.break_joint()
        _count_torn_starts(ledger, torn, position)
        if position in doubtful and _is_passed_over(stamped.record):
            continue
        ledger.apply(stamped)
    if len(every) in breaks:
        ledger.break_joint()
    _count_torn_starts(ledger, torn, len(every))
    return ledger


def _count_torn_starts(ledger: Ledger, torn: Iterable[TornStart], position: int) -> None:
    for one in torn:
        if one.position == position:
            ledger.count_torn_start(one.attempt)


def _is_passed_over(record: Record | Unknown) -> bool:
    return isinstance(record, _PASSED_OVER) or (isinstance(record, Job) and record.event == "ended")


def _unacknowledged_positions(records: list[Stamped]) -> set[int]:
    """Return the positions of records that their writer never acknowledged, as later `damage` records say."""
    found: set[int] = set()
    for position, stamped in enumerate(records):
        record = stamped.record
        if isinstance(record, Damage) and record.unacknowledged is not None:
            first = record.unacknowledged
            found |= {at for at in range(position) if first <= records[at].seq < stamped.seq}
    return found
