"""The state that the fold of a journal holds: turns, calls with their attempts, the conversation, the queue.

The classes are mutable, and only the ledger changes them while it folds. What can be derived is a property here and is
never stored.
"""

from __future__ import annotations

import attrs

from steadyhand.domain.ledger.attempt_states import Stage
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import (
    Assistant,
    Check,
    Compaction,
    EffectClass,
    Ended,
    Inspection,
    Notice,
    Permission,
    Result,
    ReviewOf,
    RewindOf,
    SandboxUse,
    Scope,
    Settlement,
    Shown,
    Started,
    Steer,
    Told,
    ToolResult,
    User,
)
from steadyhand_values import define, frozen


@frozen
class Intention:
    """What is intended by a call, as rows N2 and B6 compare it. `command`: see `identity.command_intention`."""

    tool: str
    arguments_digest: str
    scope: Scope
    command: str | None = None  # None: no command, or recorded by a version that compared digest and scope

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """What it is found by: two that mean the same have a key in common."""
        by_arguments = (self.tool, self.arguments_digest)
        return (by_arguments,) if self.command is None else (by_arguments, (self.tool, self.command))

    def is_same_as(self, other: Intention) -> bool:
        """Return whether both mean the same. An older attempt is compared as it was recorded."""
        if self.command is not None and other.command is not None:
            return (self.tool, self.command) == (other.tool, other.command)
        return (self.tool, self.arguments_digest, self.scope) == (other.tool, other.arguments_digest, other.scope)


@define
class Attempt:
    """One try to carry out a call, as its records say."""

    attempt_id: str
    call_id: str
    turn_id: str
    tool: str
    title: str
    effect: EffectClass
    scope: Scope
    at: str  # time of its intent
    arguments_digest: str = ""
    key: str = ""
    occurrence: int = 0
    stage: Stage = "absent"
    started: Started | None = None
    is_start_torn: bool = False  # only a torn line says that it started: `started` holds nothing but its identity
    started_at: str | None = None
    result: Result | None = None
    result_at: str | None = None
    settlement: Settlement | None = None
    settled_at: str | None = None
    settled_epoch: str | None = None
    settled_turns: int = 0  # value of `Ledger.turns_begun` at the settlement
    rejected: bool = False
    inspection: Inspection | None = None
    inspection_at: str | None = None
    inspection_epoch: str | None = None
    check: Check | None = None  # the last recorded check
    broken: bool = False  # a joint after its intent is broken
    retry_of: str | None = None
    restore_of: str | None = None
    permission: Permission | None = None
    told: bool = False  # the notice of its settlement is recorded
    is_undo_told: bool = False  # the model was told that the user took its change back (row V4)
    was_repeated: bool = False  # the user allowed a repeat of the confirmed call, and it has started (row B6)
    intention: str | None = None  # of a command: what is compared in place of digest and scope
    unconfined: bool = False  # a command that asks to run outside the sandbox (row O3)
    sandbox: SandboxUse | None = None  # None: not confined, or not started yet
    intended_scope: Scope | None = None  # as in the intent; None: `scope`, which a start may have widened (row W11)
    review_of: ReviewOf | None = None  # of an undo (row V4)
    rewind_of: RewindOf | None = None  # of a rewind (row G4)
    place: int = 0  # its number in the session, from 0, in the order of the journal

    @property
    def intended(self) -> Intention:
        """What it intends."""
        return Intention(self.tool, self.arguments_digest, self.intended_scope or self.scope, self.intention)

    @property
    def uncertain(self) -> bool:
        """Whether it still needs a decision."""
        return self.stage == "uncertain"

    @property
    def has_certainly_happened(self) -> bool:
        """Whether its result or a check proves that it happened; what was only decided does not count [I9]."""
        if self.settlement is not None:
            return self.settlement.settled == "checked_present"
        return self.result is not None and self.result.outcome == "returned"

    @property
    def is_take_back(self) -> bool:
        """Whether it brings earlier content back: a restore, an undo or a rewind."""
        return self.restore_of is not None or self.review_of is not None or self.rewind_of is not None

    @property
    def is_undoable(self) -> bool:
        """Whether it brought earlier content back; such an attempt can be restored itself (rows A5, V4)."""
        return self.is_take_back and self.result is not None and self.result.outcome == "returned"

    @property
    def is_restorable(self) -> bool:
        """Whether the state before it can be brought back and, by its latest inspection, is not there already."""
        evidence = self.started.evidence if self.started is not None else ()
        kept = all(one.checkpoint is not None or not one.existed for one in evidence)
        return bool(evidence) and kept and self.inspection is not None and self.inspection.check != "unchanged"

    @property
    def is_retriable(self) -> bool:
        """Whether its latest inspection found it absent and fenced and its arguments are known (row F3)."""
        found = self.inspection is not None and self.inspection.state == "absent_fenced"
        return found and bool(self.arguments_digest) and not self.is_take_back

    @property
    def verified(self) -> bool:
        """Whether its latest inspection called its tool's own verifier (row F4)."""
        return self.inspection is not None and self.inspection.verified is not None

    @property
    def is_known_restore(self) -> bool:
        """Whether it is a restore that is known to have happened; a waived restore is not known."""
        proved = self.settlement is not None and self.settlement.settled in (
            "checked_present",
            "user_confirmed",
            "model_confirmed",
        )
        return self.restore_of is not None and (self.is_undoable or proved)

    @property
    def open(self) -> bool:
        """Whether it has no terminal record. An attempt that only reads ends with its reply."""
        return self.stage in ("intended", "started")


@define
class ToolCall:
    """One call as the model proposed it, with its attempts and its one reply."""

    call_id: str
    turn_id: str
    tool: str
    arguments: str  # the text as proposed; it may not parse
    attempts: list[Attempt] = attrs.field(factory=list)
    reply: ToolResult | None = None
    supplied: str | None = None  # text that stands in for a missing reply, once fixed (row T2)
    broken: bool = False  # a joint after its message is broken

    @property
    def attempt(self) -> Attempt | None:
        """The latest attempt."""
        return self.attempts[-1] if self.attempts else None


@define
class Turn:
    """One turn, from its `user` record on."""

    turn_id: str
    client_message_id: str
    prompt: Prompt
    command: bool  # the prompt is a slash command
    at: str
    epoch: str | None  # epoch in which it began
    cancelled: bool = False  # a `cancel` record names it
    ended: Ended | None = None
    attached: str | None = None  # text for the model about the attachments; None: no model was asked yet
    shown: tuple[Shown, ...] = ()  # of attached files
    file_events: int = 0  # how many of the ledger's `file_events` came before it

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return self.prompt.text

    @property
    def is_in_history(self) -> bool:
        """Whether the turn is part of the conversation with the model: no slash command, no quick question."""
        return not self.command and not self.prompt.aside


@frozen
class TranscriptEntry:
    """One entry of the conversation, in journal order."""

    at: str
    record: User | Assistant | Notice | Told | Steer | Compaction
    turn_id: str
    seq: int = 0  # of its record in the journal; 0: the journal does not hold it
    sum: str = ""  # of its record's line


@frozen
class QueuedPrompt:
    """A prompt that waits. `turn_id`: of the turn that it begins. Whether it is paused is not recorded (row S9)."""

    client_message_id: str
    turn_id: str
    prompt: Prompt
    at: str
    steers: str | None = None  # id of the turn that may take it (row S8)

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return self.prompt.text


def is_known_to_have_happened(attempt: Attempt) -> bool:
    """Return whether the attempt returned or was checked present, confirmed or waived (row N2)."""
    if attempt.settlement is not None:
        return attempt.settlement.settled in ("checked_present", "user_confirmed", "model_confirmed", "waived")
    return attempt.result is not None and attempt.result.outcome == "returned"
