"""What others are shown of a session: frozen pictures, folded from the journal, in the shapes of wire.md.

Field names are the wire's in snake case; the edge spells them. None means left out. Paths are relative to the
workspace with `/`, absolute if outside. No arguments of a call stand in a snapshot (row A1).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from steadyhand.core.prompt import Attachment
from steadyhand.core.record import Change, Check, EndReason, InspectionState, Mode, ModelName, Settled, TitleSource

CallState = Literal["proposed", "waiting", "running", "returned", "failed", "stopped", "refused", "notRun", "unknown"]
Action = Literal["inspect", "confirm", "reject", "waive", "retry", "restore"]
ReadOnlyReason = Literal["owned", "newer", "disk", "damaged"]


@attrs.frozen
class Owner:
    pid: int
    host: str
    since: str


@attrs.frozen
class ReadOnly:
    reason: ReadOnlyReason
    text: str
    owner: Owner | None = None


JobState = Literal["runs", "left", "untold"]


@attrs.frozen
class JobView:
    """A background command whose end stands nowhere. `attempt_id` is the mark of its processes."""

    job_id: str
    attempt_id: str
    call_id: str
    title: str
    state: JobState
    pid: int


@attrs.frozen
class SessionView:
    session_id: str
    path: str
    title: str
    title_source: TitleSource
    created: str
    updated: str
    mode: Mode
    model: ModelName
    busy: bool
    parked: bool
    uncertain: int
    epoch: str | None = None
    workspace: str | None = None
    read_only: ReadOnly | None = None
    jobs: tuple[JobView, ...] | None = None


@attrs.frozen
class ScopePaths:
    paths: tuple[str, ...]


@attrs.frozen
class ScopeEverything:
    everything: Literal[True] = True


ScopeView: TypeAlias = "ScopePaths | ScopeEverything"


@attrs.frozen
class ReplyView:
    text: str
    truncated: bool
    bytes: int


@attrs.frozen
class FileView:
    path: str
    change: Change
    before: str | None = None
    after: str | None = None
    from_: str | None = None


@attrs.frozen
class CallView:
    call_id: str
    turn_id: str
    tool: str
    title: str
    arguments: str
    scope: ScopeView
    state: CallState
    attempt_id: str | None = None
    reason: str | None = None
    started: str | None = None
    ended: str | None = None
    reply: ReplyView | None = None
    files: tuple[FileView, ...] | None = None
    settled: Settled | None = None


@attrs.frozen
class MessageView:
    message_id: str
    turn_id: str
    role: Literal["user", "assistant", "notice"]
    at: str
    text: str
    reasoning: str | None = None
    attachments: tuple[Attachment, ...] | None = None
    client_message_id: str | None = None
    calls: tuple[CallView, ...] | None = None


@attrs.frozen
class QueuedView:
    client_message_id: str
    text: str
    at: str
    paused: bool
    attachments: tuple[Attachment, ...] | None = None
    aside: Literal[True] | None = None


@attrs.frozen
class GrantView:
    """Something that passes without asking, until it is taken back."""

    grant_id: str
    lasts: Literal["session", "workspace", "user"]
    tool: str
    at: str | None = None  # of a session's, not told
    session_id: str | None = None  # of a session's
    workspace: str | None = None  # absolute; of a workspace's
    command: str | None = None
    cwd: str | None = None  # absolute for a session's, else from the workspace on


@attrs.frozen
class InspectionNote:
    inspection_id: str
    state: InspectionState
    at: str


@attrs.frozen
class Uncertain:
    session_id: str
    attempt_id: str
    call_id: str
    turn_id: str
    tool: str
    title: str
    scope: ScopeView
    state: Literal["unknown", "rejected", "settled"]
    started: str
    actions: tuple[Action, ...]
    settled: Settled | None = None
    check: Check | None = None
    inspection: InspectionNote | None = None


@attrs.frozen
class Statistics:
    unknown: int = 0
    checked: int = 0
    confirmed: int = 0
    rejected: int = 0
    waived: int = 0
    retried: int = 0
    restored: int = 0
    held_back: int = 0


@attrs.frozen
class Snapshot:
    session_id: str
    session_path: str
    revision: str
    retry_enabled: bool
    calls: tuple[Uncertain, ...]
    settled: tuple[Uncertain, ...]
    statistics: Statistics
    runtime_epoch: str | None = None


@attrs.frozen
class Side:
    exists: bool
    digest: str | None = None
    bytes: int | None = None
    uri: str | None = None


@attrs.frozen
class InspectedPath:
    path: str
    check: Check
    before: Side
    intended: Side
    now: Side
    reason: str | None = None


@attrs.frozen
class SurvivorView:
    pid: int
    started: str
    command: str


@attrs.frozen
class InspectionView:
    inspection_id: str
    attempt_id: str
    at: str
    state: InspectionState
    paths: tuple[InspectedPath, ...]
    arguments: str
    survivors: tuple[SurvivorView, ...]
    changed: tuple[str, ...]
    changed_more: int
    text: str
    check: Check | None = None
    diff: str | None = None


@attrs.frozen
class ChangedFile:
    path: str
    change: Change
    from_: str | None = None


# Events of a turn, as they are told.


@attrs.frozen
class Began:
    client_message_id: str
    kind: Literal["began"] = "began"


@attrs.frozen
class TextDelta:
    message_id: str
    delta: str
    kind: Literal["text", "reasoning"] = "text"


@attrs.frozen
class CallChanged:
    call: CallView
    kind: Literal["call"] = "call"


@attrs.frozen
class PlanItem:
    text: str
    state: Literal["open", "doing", "done"]


@attrs.frozen
class PlanTold:
    """The model's plan, whole; replaces the one before."""

    items: tuple[PlanItem, ...]
    kind: Literal["plan"] = "plan"


@attrs.frozen
class UsageTold:
    usage: UsageView
    kind: Literal["usage"] = "usage"


@attrs.frozen
class Warned:
    code: str
    text: str
    kind: Literal["warning"] = "warning"


@attrs.frozen
class Noticed:
    text: str
    kind: Literal["notice"] = "notice"


@attrs.frozen
class TurnEnded:
    reason: EndReason
    changed: tuple[ChangedFile, ...]
    unclaimed: tuple[str, ...] | None = None
    kind: Literal["ended"] = "ended"


@attrs.frozen
class CheckpointTurn:
    """A turn that changed files."""

    turn_id: str
    at: str
    prompt: str
    files: tuple[ChangedFile, ...]


@attrs.frozen
class Billed:
    input: int
    output: int
    cache_hit: int
    cache_miss: int


@attrs.frozen
class Cost:
    amount: str
    currency: str


@attrs.frozen
class UsageView:
    billed: Billed
    context: int
    complete: bool
    window: int | None = None
    cost: Cost | None = None


Event: TypeAlias = "Began | TextDelta | CallChanged | PlanTold | UsageTold | Warned | Noticed | TurnEnded"


@attrs.frozen
class TurnEvent:
    session_id: str
    epoch: str
    turn_id: str
    number: int
    event: Event
