"""The records of a journal, one class per kind.

A record is what one journal line says beyond its envelope (`Stamped`). Records are additive: a reader passes over
kinds and members it does not know, and a new member has a default, so that old journals stay readable (row X1).

Receipts (intent, started, result) hold digests, never texts: the arguments stand once, in `Assistant`; the reply
stands once, in `Tool`. Optional members are None here and left out on disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, TypeAlias

import attrs

from steadyhand.core.prompt import Attachment, Prompt
from steadyhand.core.text_positions import PositionEncoding

EffectClass = Literal["reads", "writes_files", "opaque"]
Outcome = Literal[
    "returned",
    "failed",
    "stopped",
    "refused",
    "not_started",
    "interrupted_before_execution",
    "interrupted",
    "unknown_after_restart",
    "unknown",
]
Check = Literal["satisfied", "unchanged", "conflict", "unknown"]
Settled = Literal[
    "checked_present", "checked_absent", "user_confirmed", "model_confirmed", "waived", "restored", "superseded"
]
EndReason = Literal[
    "done",
    "cancelled",
    "length",
    "filtered",
    "cut",
    "modelFailed",
    "bound",
    "cost",
    "journalBroken",
    "recoveryRequired",
    "closed",
]
Mode = Literal["plan", "ask", "edits", "auto"]
TitleSource = Literal["none", "auto", "user"]
Change = Literal["created", "modified", "deleted", "moved"]
Grant = Literal["once", "session", "workspace", "user", "reject"]
InspectionState = Literal["present", "postcondition_satisfied", "absent_fenced", "unknown"]
JobEnd = Literal["stopped", "closed", "timeout", "gone"]
"""On request, with its session, at its own limit, or found gone after a crash."""
Author = Literal["user", "model", "recovery"]


def _in_order(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(paths)))


@attrs.frozen
class Scope:
    """What an effect may touch: absolute resolved paths, or everything. No paths and not everything: nothing.

    The paths stand in order and once, so that a scope read back equals the one that was written (row N2).
    """

    paths: tuple[str, ...] = attrs.field(default=(), converter=_in_order)
    everything: bool = False

    def plain(self) -> object:
        return {"everything": True} if self.everything else {"paths": list(self.paths)}


@attrs.frozen
class ModelName:
    provider: str
    name: str


@attrs.frozen
class Session:
    """First record of every journal."""

    kind: ClassVar[str] = "session"
    session_id: str
    mode: Mode
    model: ModelName
    created_by: str  # version of the program
    workspace: str | None = None  # URI of the folder; None: no folder
    title: str | None = None
    title_source: TitleSource = "none"


@attrs.frozen
class Epoch:
    """Before the first other record of a new epoch, but a `damage` record."""

    kind: ClassVar[str] = "epoch"
    epoch: str
    pid: int
    host: str
    boot: str | None = None  # boot id, where the system has one


@attrs.frozen
class User:
    """Begins a turn. `command`: the text is a slash command and never goes to a model.

    `aside`: a quick question, which is no part of the history and whose answer is not kept (row S2)."""

    kind: ClassVar[str] = "user"
    turn_id: str
    message_id: str
    client_message_id: str
    text: str
    command: bool = False
    attachments: tuple[Attachment, ...] = ()
    encoding: PositionEncoding = "utf-16"  # of the ranges in them
    aside: bool = False

    @property
    def prompt(self) -> Prompt:
        return Prompt(self.text, self.attachments, self.aside, self.encoding)


@attrs.frozen
class Attached:
    """What the model is told of the attachments of a turn's prompt, fixed before it first goes out (row P4)."""

    kind: ClassVar[str] = "attached"
    turn_id: str
    text: str


@attrs.frozen
class Instructions:
    """What the workspace's AGENTS.md adds to the system text, fixed before the session's first request (row P4)."""

    kind: ClassVar[str] = "instructions"
    text: str


@attrs.frozen
class Proposed:
    """A call as the model wrote it; `arguments` is its very text, parsable or not."""

    call_id: str
    tool: str
    arguments: str
    provider_id: str | None = None


@attrs.frozen
class Assistant:
    kind: ClassVar[str] = "assistant"
    turn_id: str
    message_id: str
    text: str
    calls: tuple[Proposed, ...] = ()
    reasoning: str | None = None
    finish: str | None = None  # None: the stream was cut
    withdrawn: bool = False  # shown, then asked again; never goes out
    sealed: str | None = None  # what the provider wants back unread, with its reasoning
    goes_on: bool = False  # the rest of the message of this id that stands before it (row P2)


@attrs.frozen
class Tool:
    """The reply to one call. With `output`, `text` is its beginning and end and the whole is in that file."""

    kind: ClassVar[str] = "tool"
    turn_id: str
    call_id: str
    outcome: Outcome
    text: str
    bytes: int  # of the whole reply
    truncated: bool = False
    reason: str | None = None
    attempt_id: str | None = None
    output: str | None = None  # digest


@attrs.frozen
class Intent:
    """Before anything else of an attempt."""

    kind: ClassVar[str] = "intent"
    attempt_id: str
    call_id: str
    turn_id: str
    tool: str
    title: str
    effect: EffectClass
    arguments_digest: str
    scope: Scope
    key: str  # the idempotency key
    occurrence: int
    retry_of: str | None = None  # attempt id
    restore_of: str | None = None  # attempt id


@attrs.frozen
class Evidence:
    """What a file tool saw of one path right before it started, and what it is about to make of it."""

    path: str  # as asked, relative to the workspace or absolute
    resolved: str  # absolute, links followed
    existed: bool
    before: str | None = None  # digest; None: there was no file
    before_bytes: int | None = None
    intended: str | None = None  # digest; None: no file is intended
    intended_bytes: int | None = None
    mode: int | None = None  # permission bits it will have
    encoding: str | None = None  # "utf-8" | "utf-8-bom"
    line_ending: str | None = None  # "lf" | "crlf" | "mixed" | "none"
    temporary: str | None = None  # name beside `resolved`
    checkpoint: str | None = None  # digest of the kept content before; None: none kept
    kind: Literal["file", "link"] = "file"  # what was there or is meant to be; the content of a link is its target


@attrs.frozen
class Started:
    """Durable before the tool body runs [I1]."""

    kind: ClassVar[str] = "started"
    attempt_id: str
    call_id: str
    evidence: tuple[Evidence, ...] = ()
    mark: str | None = None  # what every child of the attempt carries
    held: bool = False  # it was held back before (row B4)
    key: str | None = None  # the idempotency key, where it is no longer the intent's (row N2)
    occurrence: int | None = None  # beside `key`


@attrs.frozen
class FileChange:
    """One file really changed, as read back from disk."""

    path: str
    change: Change
    before: str | None = None  # digest
    after: str | None = None  # digest
    bytes: int | None = None  # observed size after
    from_: str | None = None  # of a move


@attrs.frozen
class Result:
    """The one terminal record of an attempt. `by` is left out but for a verdict of recovery."""

    kind: ClassVar[str] = "result"
    attempt_id: str
    call_id: str
    turn_id: str
    outcome: Outcome
    reason: str | None = None
    by: Literal["recovery"] | None = None
    check: Check | None = None
    files: tuple[FileChange, ...] = ()
    exit_code: int | None = None
    left: tuple[str, ...] = ()  # what of a command's group was left and has been ended
    kept: tuple[str, ...] = ()  # files found beside the target that are not ours
    held: bool = False  # it was held back (row B4)


@attrs.frozen
class Permission:
    """An answer to the question whether a call may run, or a standing grant."""

    kind: ClassVar[str] = "permission"
    attempt_id: str
    call_id: str
    answer: Grant
    tool: str
    note: str | None = None
    command: str | None = None  # a lasting grant for run_command holds for this very command
    cwd: str | None = None
    reason: str | None = None  # "not_answered"
    confirmed_before: tuple[str, ...] = ()  # attempts of this very call that the user had confirmed (row B6)


@attrs.frozen
class Forget:
    """The user takes a grant for the session back; what is remembered beyond it stands in no journal."""

    kind: ClassVar[str] = "forget"
    attempt_id: str  # of the permission


@attrs.frozen
class PathFinding:
    """What an inspection found of one path."""

    path: str
    check: Check
    reason: str | None = None
    exists: bool | None = None  # None: could not be told
    digest: str | None = None
    bytes: int | None = None


@attrs.frozen
class SurvivorFound:
    pid: int
    started: str
    command: str


@attrs.frozen
class Inspection:
    """A look at the world for one attempt, stored before it is answered."""

    kind: ClassVar[str] = "inspection"
    inspection_id: str
    attempt_id: str
    call_id: str
    state: InspectionState
    by: Author
    check: Check | None = None
    findings: tuple[PathFinding, ...] = ()
    survivors: tuple[SurvivorFound, ...] = ()
    survivors_known: bool = True  # False: cannot be told here
    changed: tuple[str, ...] = ()
    changed_more: int = 0
    verified: str | None = None  # what the tool's own verifier said; None: it offers none


@attrs.frozen
class Settlement:
    """Ends the doubt about an attempt (row J14)."""

    kind: ClassVar[str] = "settlement"
    attempt_id: str
    call_id: str
    settled: Settled
    by: Author
    inspection_id: str | None = None
    check: Check | None = None
    superseded_by: str | None = None  # attempt id


@attrs.frozen
class Reject:
    """The user's note that it shall not be repeated; proves nothing and frees nothing."""

    kind: ClassVar[str] = "reject"
    attempt_id: str
    call_id: str
    inspection_id: str


@attrs.frozen
class Supplied:
    """The words that stand for a missing reply, fixed when they first go out (row T2)."""

    kind: ClassVar[str] = "supplied"
    turn_id: str
    call_id: str
    text: str


@attrs.frozen
class Notice:
    """Told to the user at once and to the model before the next user text."""

    kind: ClassVar[str] = "notice"
    message_id: str
    text: str
    turn_id: str | None = None
    attempt_id: str | None = None
    model: bool = True  # whether the model is told too


@attrs.frozen
class Usage:
    kind: ClassVar[str] = "usage"
    turn_id: str
    complete: bool
    input: int = 0
    output: int = 0
    cache_hit: int = 0
    cache_miss: int = 0
    context: int = 0
    window: int | None = None
    model: ModelName | None = None  # which was asked; None: by a version that did not say
    cost: str | None = None  # decimal number, at the price of then; None: not known
    currency: str | None = None  # ISO 4217; None beside a cost: nothing is billed, in any


@attrs.frozen
class Title:
    kind: ClassVar[str] = "title"
    title: str
    source: TitleSource


@attrs.frozen
class ModeSet:
    kind: ClassVar[str] = "mode"
    mode: Mode


@attrs.frozen
class ModelSet:
    kind: ClassVar[str] = "model"
    provider: str
    name: str


@attrs.frozen
class Cancel:
    kind: ClassVar[str] = "cancel"
    turn_id: str


@attrs.frozen
class Ended:
    kind: ClassVar[str] = "ended"
    turn_id: str
    reason: EndReason
    text: str | None = None  # one sentence where the reason needs one


@attrs.frozen
class Queue:
    """A prompt sent while busy. It leaves the queue when a `user` record carries its client message id.

    A later one of the same id changes the text or removes it; what else was sent with it stays."""

    kind: ClassVar[str] = "queue"
    client_message_id: str
    turn_id: str
    text: str
    removed: bool = False
    attachments: tuple[Attachment, ...] = ()
    encoding: PositionEncoding = "utf-16"  # of the ranges in them
    aside: bool = False

    @property
    def prompt(self) -> Prompt:
        return Prompt(self.text, self.attachments, self.aside, self.encoding)


@attrs.frozen
class Job:
    """A background command's process: that it runs, or that it ended. No effect of its own, never uncertain (E5)."""

    kind: ClassVar[str] = "job"
    job_id: str
    attempt_id: str  # of the `run_command` that started it; its processes carry it as their mark
    call_id: str
    event: Literal["started", "ended"]
    pid: int
    started: str  # opaque, together with the pid it names one process
    title: str  # of the command: only the program's name
    exit_code: int | None = None  # None: ended by a signal, or not known
    reason: JobEnd | None = None  # None: it ended by itself
    output: str | None = None  # digest of what it wrote, in `outputs/`


@attrs.frozen
class Damage:
    """First append after damage. `unacknowledged`: the first seq this journal's last writer never acknowledged."""

    kind: ClassVar[str] = "damage"
    count: int
    offsets: tuple[int, ...] = ()  # bytes from the start of the file, at most 100
    torn: int | None = None  # bytes cut off and kept beside the journal
    unacknowledged: int | None = None


Record: TypeAlias = (
    "Session | Epoch | User | Attached | Instructions | Assistant | Tool | Intent | Started | Result | Permission"
    " | Forget | Inspection | Settlement | Reject | Supplied | Notice | Usage | Title | ModeSet | ModelSet | Cancel"
    " | Ended | Queue | Job | Damage"
)
KINDS: dict[str, type] = {
    cls.kind: cls
    for cls in (
        Session, Epoch, User, Attached, Instructions, Assistant, Tool, Intent, Started, Result, Permission, Forget,
        Inspection, Settlement, Reject, Supplied, Notice, Usage, Title, ModeSet, ModelSet, Cancel, Ended, Queue, Job,
        Damage,
    )
}  # fmt: skip


@attrs.frozen
class Unknown:
    """A record of a kind this version does not know; kept in its place, never interpreted."""

    kind_name: str


@attrs.frozen
class Stamped:
    """A record in its place: envelope and content."""

    seq: int
    at: str
    sum: str  # 8 hex
    record: Record | Unknown
