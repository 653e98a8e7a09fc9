"""What the fold of a journal holds: turns, calls with their attempts, what was said, what waits.

Mutable while the ledger folds, and changed by it alone; what can be asked of them is derived here, never stored.
"""

from __future__ import annotations

import attrs

from steadyhand.core.attempt import Stage
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import (
    Assistant,
    Check,
    EffectClass,
    Ended,
    Inspection,
    Notice,
    Permission,
    Result,
    Scope,
    Settlement,
    Started,
    Tool,
    User,
)


@attrs.define
class Attempt:
    """One try to carry out a call, as its receipt says."""

    attempt_id: str
    call_id: str
    turn_id: str
    tool: str
    title: str
    effect: EffectClass
    scope: Scope
    at: str  # of its intent
    arguments_digest: str = ""
    key: str = ""
    occurrence: int = 0
    stage: Stage = "absent"
    started: Started | None = None
    started_at: str | None = None
    result: Result | None = None
    result_at: str | None = None
    settlement: Settlement | None = None
    settled_epoch: str | None = None
    settled_turns: int = 0  # `turns_begun` then
    rejected: bool = False
    inspection: Inspection | None = None
    inspection_at: str | None = None
    inspection_epoch: str | None = None
    check: Check | None = None  # the last recorded one
    broken: bool = False  # the joint is broken after its intent
    retry_of: str | None = None
    restore_of: str | None = None
    permission: Permission | None = None
    told: bool = False  # the notice of its settlement is recorded
    asked_again: bool = False  # the user was asked whether the confirmed call may run again (row B6)

    @property
    def uncertain(self) -> bool:
        """Whether it still needs a decision."""
        return self.stage == "uncertain"

    @property
    def undoable(self) -> bool:
        """Whether it is a restore that happened, which can itself be undone (row A5)."""
        return self.restore_of is not None and self.result is not None and self.result.outcome == "returned"

    @property
    def restorable(self) -> bool:
        """Whether the content before can be brought back, and is not there anyway, as its latest inspection found."""
        evidence = self.started.evidence if self.started is not None else ()
        kept = all(one.checkpoint is not None or not one.existed for one in evidence)
        return bool(evidence) and kept and self.inspection is not None and self.inspection.check != "unchanged"

    @property
    def retriable(self) -> bool:
        """Whether its latest inspection found it absent and fenced, and it is known what to try again (row F3)."""
        found = self.inspection is not None and self.inspection.state == "absent_fenced"
        return found and bool(self.arguments_digest) and self.restore_of is None

    @property
    def verified(self) -> bool:
        """Whether its latest inspection asked its tool's own verifier (row F4)."""
        return self.inspection is not None and self.inspection.verified is not None

    @property
    def brought_back(self) -> bool:
        """Whether it is a restore that is known to have happened; one that was waived is not known."""
        proved = self.settlement is not None and self.settlement.settled in (
            "checked_present", "user_confirmed", "model_confirmed",
        )  # fmt: skip
        return self.undoable or (self.restore_of is not None and proved)

    @property
    def open(self) -> bool:
        """Whether it has no terminal record; reads end with their reply."""
        return self.stage in ("intended", "started")


@attrs.define
class Call:
    """One call as proposed, with its attempts and its one reply."""

    call_id: str
    turn_id: str
    tool: str
    arguments: str
    attempts: list[Attempt] = attrs.field(factory=list)
    reply: Tool | None = None
    supplied: str | None = None
    broken: bool = False  # the joint is broken after its message

    @property
    def attempt(self) -> Attempt | None:
        """The latest attempt."""
        return self.attempts[-1] if self.attempts else None


@attrs.define
class Turn:
    turn_id: str
    client_message_id: str
    prompt: Prompt
    command: bool
    at: str
    epoch: str | None
    cancelled: bool = False
    ended: Ended | None = None
    attached: str | None = None  # what the model is told of the attachments; None: it was not asked

    @property
    def text(self) -> str:
        return self.prompt.text

    @property
    def in_history(self) -> bool:
        """Whether it is part of the conversation with the model: no slash command, no quick question."""
        return not self.command and not self.prompt.aside


@attrs.frozen
class Said:
    """One entry of the conversation, in journal order."""

    at: str
    record: User | Assistant | Notice
    turn_id: str


@attrs.frozen
class Waiting:
    """A queued prompt. `epoch`: in which it was queued; in a later one it is paused."""

    client_message_id: str
    turn_id: str
    prompt: Prompt
    at: str
    epoch: str | None

    @property
    def text(self) -> str:
        return self.prompt.text


def known_to_have_happened(attempt: Attempt) -> bool:
    """Returned, checked present, confirmed or waived (row N2)."""
    if attempt.settlement is not None:
        return attempt.settlement.settled in ("checked_present", "user_confirmed", "model_confirmed", "waived")
    return attempt.result is not None and attempt.result.outcome == "returned"
