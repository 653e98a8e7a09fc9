"""What clients see of a session: frozen values, folded from the journal, in the shapes of the wire (docs/protocol.md).

Field names are those of the wire in snake case; `lsp` spells them. None means left out. Paths are relative to the
workspace with `/`, or absolute if outside. A snapshot holds no arguments of a call (row A1). `steadyhand_protocol`
documents each field.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from steadyhand.domain.records.prompt import Attachment
from steadyhand.domain.records.record import (
    Change,
    Check,
    EndReason,
    InspectionState,
    Mode,
    ModelName,
    Settled,
    TitleSource,
    ToldFrom,
)
from steadyhand.domain.text.positions import Range
from steadyhand_values import frozen

CallState = Literal["proposed", "waiting", "running", "returned", "failed", "stopped", "refused", "notRun", "unknown"]
Action = Literal["inspect", "confirm", "reject", "waive", "retry", "restore"]
ReadOnlyReason = Literal["owned", "newer", "disk", "damaged", "unsafe"]


@frozen
class LockHolder:
    """The process that holds a session's lock."""

    pid: int
    host: str
    since: str


@frozen
class ReadOnly:
    """Why a session can only be read. `text` is one sentence for the user."""

    reason: ReadOnlyReason
    text: str
    owner: LockHolder | None = None


JobState = Literal["runs", "left", "untold"]


@frozen
class JobView:
    """A background command without a recorded end. `attempt_id` is the mark of its processes."""

    job_id: str
    attempt_id: str
    call_id: str
    title: str
    state: JobState
    pid: int


@frozen
class SessionOriginView:
    """What a session was forked from. `turn_id` None: the whole history."""

    session_id: str
    turn_id: str | None = None


@frozen
class SessionView:
    """One session."""

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
    workspace_gone: bool | None = None
    read_only: ReadOnly | None = None
    jobs: tuple[JobView, ...] | None = None
    origin: SessionOriginView | None = None


@frozen
class ScopePaths:
    paths: tuple[str, ...]


@frozen
class ScopeEverything:
    everything: Literal[True] = True


ScopeView: TypeAlias = "ScopePaths | ScopeEverything"


@frozen
class ReplyView:
    """The reply to a call. `bytes`: size of the whole reply."""

    text: str
    truncated: bool
    bytes: int


@frozen
class FileView:
    """One path that a call changed."""

    path: str
    change: Change
    before: str | None = None
    after: str | None = None
    from_: str | None = None


@frozen
class SandboxView:
    """How the children of a call are confined."""

    kind: Literal["bubblewrap", "landlock"]
    sealed: bool


@frozen
class SeenChangeView:
    """One file that changed while a command ran, by it or by somebody else."""

    path: str
    change: Literal["created", "modified", "deleted"]


@frozen
class ChangedDuringView:
    """The files that changed while a command ran. `exact` false: a hint by modification time."""

    files: tuple[SeenChangeView, ...]
    more: int
    exact: bool


@frozen
class ExitView:
    """How a command ended: one of the two."""

    code: int | None = None
    signal: int | None = None


@frozen
class CallView:
    """One call."""

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
    sandbox: SandboxView | None = None
    unconfined: Literal[True] | None = None
    changed_during: ChangedDuringView | None = None
    exit: ExitView | None = None


@frozen
class MessageView:
    """One message of the conversation."""

    message_id: str
    turn_id: str
    role: Literal["user", "assistant", "notice"]
    at: str
    text: str
    reasoning: str | None = None
    attachments: tuple[Attachment, ...] | None = None
    client_message_id: str | None = None
    calls: tuple[CallView, ...] | None = None
    again: str | None = None
    compaction: CompactionNote | None = None


@frozen
class QueuedView:
    """A prompt that waits."""

    client_message_id: str
    text: str
    at: str
    paused: bool
    attachments: tuple[Attachment, ...] | None = None
    aside: Literal[True] | None = None
    steers: str | None = None  # the turn that may take it (row S8)


@frozen
class GrantView:
    """A grant, until the user takes it back."""

    grant_id: str
    lasts: Literal["session", "workspace", "user"]
    tool: str
    at: str | None = None  # None for a grant of the session
    session_id: str | None = None  # for a grant of the session only
    workspace: str | None = None  # absolute; for a grant of one workspace only
    command: str | None = None
    cwd: str | None = None  # absolute for a grant of the session, else relative to the workspace
    unconfined: Literal[True] | None = None


@frozen
class InspectionNote:
    """The latest inspection of an attempt, without its findings."""

    inspection_id: str
    state: InspectionState
    at: str


@frozen
class Uncertain:
    """An attempt that may have run, wholly or in part."""

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


@frozen
class Statistics:
    """Counts over a session's journal."""

    unknown: int = 0
    checked: int = 0
    confirmed: int = 0
    rejected: int = 0
    waived: int = 0
    retried: int = 0
    restored: int = 0
    held_back: int = 0
    held_back_admitted: int = 0
    held_back_refused: int = 0
    by_proof: int = 0
    by_person: int = 0
    by_model: int = 0
    median_doubt_ms: int | None = None


@frozen
class Snapshot:
    """What is uncertain in a session. `runtime_epoch` None: this process does not own the session."""

    session_id: str
    session_path: str
    revision: str
    retry_enabled: bool
    calls: tuple[Uncertain, ...]
    settled: tuple[Uncertain, ...]
    statistics: Statistics
    runtime_epoch: str | None = None


@frozen
class Side:
    """A file at one of three times: before, as intended, now."""

    exists: bool
    digest: str | None = None
    bytes: int | None = None
    uri: str | None = None


@frozen
class InspectedPath:
    """What an inspection found at one path."""

    path: str
    check: Check
    before: Side
    intended: Side
    now: Side
    reason: str | None = None


@frozen
class SurvivorView:
    """A living process of the attempt."""

    pid: int
    started: str
    command: str


@frozen
class InspectionView:
    """An inspection with its findings. `text` says them in one sentence."""

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


@frozen
class ChangedFile:
    """One path that really changed."""

    path: str
    change: Change
    from_: str | None = None


LeftWhy = Literal["changed", "unsaved", "uncertain", "large", "expired", "io"]


@frozen
class ReviewHunk:
    """One part of a file's change under review, or one that was kept or undone."""

    hunk_id: str
    state: Literal["new", "kept", "undone", "gone"]
    before: Range | None = None  # whole lines of the base; None: the whole file, or it is decided
    after: Range | None = None  # whole lines of the text now; None: as above, or somebody changed them


@frozen
class ReviewFile:
    """One changed file of a session."""

    uri: str
    path: str
    change: Change
    hunks: tuple[ReviewHunk, ...]
    from_: str | None = None  # old path of a move


@frozen
class ReviewList:
    """The changed files of a session, those that were changed last at the end. `more`: how many are not listed."""

    files: tuple[ReviewFile, ...]
    more: int


@frozen
class LeftHunk:
    """What a decision left as it was. `uri` is empty for an id that no file has."""

    uri: str
    why: LeftWhy
    hunk_id: str | None = None


@frozen
class ReviewResult:
    """The changed files after a decision, and what it left."""

    files: tuple[ReviewFile, ...]
    left: tuple[LeftHunk, ...]


RewindLeftWhy = Literal[LeftWhy, "command", "inPlace"]


@frozen
class LeftPath:
    """What a rewind left as it was: a path, or a command by its title."""

    path: str
    why: RewindLeftWhy


@frozen
class RewindResult:
    """What a rewind did. `undo`: the turn whose rewind undoes it."""

    restored: tuple[ChangedFile, ...]
    left: tuple[LeftPath, ...]
    undo: str
    session: SessionView


@frozen
class Revised:
    """A prompt that took the place of another. `duplicate`: it was accepted before."""

    turn_id: str
    duplicate: bool
    session: SessionView
    accepted: Literal[True] = True


@frozen
class Steering:
    """A text for a turn was accepted. `queued`: the turn has ended, so that the text is a prompt."""

    duplicate: bool
    queued: bool
    accepted: Literal[True] = True


# Events of a turn.


@frozen
class Began:
    """The turn began."""

    client_message_id: str
    kind: Literal["began"] = "began"


@frozen
class TextDelta:
    """The answer, or the reasoning before it, grew."""

    message_id: str
    delta: str
    kind: Literal["text", "reasoning"] = "text"


@frozen
class CallChanged:
    """A call is new or changed; whole."""

    call: CallView
    kind: Literal["call"] = "call"


@frozen
class PlanItem:
    """One line of the model's plan."""

    text: str
    state: Literal["open", "doing", "done"]


@frozen
class PlanChanged:
    """The model's plan, whole; it replaces the one before."""

    items: tuple[PlanItem, ...]
    kind: Literal["plan"] = "plan"


@frozen
class UsageChanged:
    """A request was counted."""

    usage: UsageView
    kind: Literal["usage"] = "usage"


@frozen
class Warned:
    """A warning. `code` is a word for programs, `text` a sentence for the user."""

    code: str
    text: str
    kind: Literal["warning"] = "warning"


@frozen
class Noticed:
    """A sentence for the user."""

    text: str
    kind: Literal["notice"] = "notice"


@frozen
class ModelTold:
    """The server told the model something (row G15)."""

    from_: ToldFrom
    text: str
    kind: Literal["told"] = "told"


@frozen
class BeforeCompaction:
    """What went to the model before a compaction."""

    messages: int
    context_tokens: int


@frozen
class AfterCompaction:
    """What goes to the model after a compaction."""

    messages: int


@frozen
class Compacted:
    """The conversation was compacted (row K4). `text`: what the model gets in the place of the earlier messages."""

    message_id: str
    text: str
    before: BeforeCompaction
    after: AfterCompaction
    automatic: bool
    kind: Literal["compacted"] = "compacted"


CompactWhy = Literal["short", "changed", "refused", "cost", "cancelled"]


@frozen
class CompactResult:
    """What a compaction came to. `why`: why it was not carried out."""

    compacted: bool
    why: CompactWhy | None = None
    before: BeforeCompaction | None = None
    after: AfterCompaction | None = None


@frozen
class CompactionNote:
    """What a message is that stands in the place of an earlier part of the conversation."""

    before: BeforeCompaction
    after: AfterCompaction
    automatic: bool


@frozen
class Steered:
    """A request of the turn takes a steer (row S8)."""

    client_message_id: str
    text: str
    kind: Literal["steered"] = "steered"


@frozen
class ChangedInCall:
    """One file that changed while a command of the turn ran."""

    path: str
    change: Literal["created", "modified", "deleted"]
    call_id: str


@frozen
class TurnEnded:
    """The turn ended. `unclaimed`: paths the answer claims were written and were not; None: there are none.

    `during`: files that changed while a command ran; `protected`: protected names that are new or changed since then.
    """

    reason: EndReason
    changed: tuple[ChangedFile, ...]
    unclaimed: tuple[str, ...] | None = None
    during: tuple[ChangedInCall, ...] | None = None
    protected: tuple[str, ...] | None = None
    kind: Literal["ended"] = "ended"


@frozen
class CheckpointTurn:
    """A turn that changed files."""

    turn_id: str
    at: str
    prompt: str
    files: tuple[ChangedFile, ...]
    expired: Literal[True] | None = None
    undone: Literal[True] | None = None


@frozen
class Billed:
    """Tokens, summed over all requests."""

    input: int
    output: int
    cache_hit: int
    cache_miss: int


@frozen
class Cost:
    """An amount of money as a decimal number, and its ISO 4217 currency."""

    amount: str
    currency: str


@frozen
class Auxiliary:
    """The part of the usage that went into summaries and titles."""

    requests: int
    input: int
    output: int


@frozen
class UsageView:
    """What a session used. `context`: tokens of the last request of the conversation itself."""

    billed: Billed
    context: int
    complete: bool
    window: int | None = None
    cost: Cost | None = None
    auxiliary: Auxiliary | None = None


Event: TypeAlias = (
    "Began | TextDelta | CallChanged | PlanChanged | UsageChanged | Warned | Noticed | ModelTold | Compacted"
    " | Steered | TurnEnded"
)


@frozen
class TurnEvent:
    """One event of a turn. `number` counts from 1 within an epoch."""

    session_id: str
    epoch: str
    turn_id: str
    number: int
    event: Event
