"""The records of a journal, one class for each kind.

A record holds what a journal line says besides its envelope (`Stamped`). Records are additive: a reader ignores unknown
kinds and members, and every new member has a default, so that old journals stay readable (row X1).

Receipts (intent, started, result) hold digests, never texts. The arguments are stored once, in `Assistant`; the reply
is stored once, in `ToolResult`. Optional members are None here and left out on disk. docs/journal-format.md lists the
kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal, TypeAlias

import attrs

from steadyhand.domain.records.prompt import Attachment, Prompt
from steadyhand.domain.text.positions import PositionEncoding
from steadyhand_values import frozen

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
"""How a job ended: on request, with its session, at its own limit, or found gone after a crash."""
Author = Literal["user", "model", "recovery"]
RewindWhat = Literal["files", "conversation", "both"]
ToldFrom = Literal["diagnostics", "hook", "instructions", "review", "files", "mcp"]
"""What a stored message to the model is about (row G15)."""


def _in_order(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(paths)))


@frozen
class Scope:
    """What an effect may touch: absolute resolved paths, or everything. No paths and not everything means nothing.

    The paths are sorted and unique, so that a scope that is read back equals the one that was written (row N2).
    """

    paths: tuple[str, ...] = attrs.field(default=(), converter=_in_order)
    everything: bool = False
    identities: tuple[str, ...] = attrs.field(default=(), converter=_in_order)
    """`device:inode` of a file that is written in place: whatever name leads to it is touched (row W11)."""

    def plain(self) -> object:
        """Return the form that is stored and that the idempotency key contains."""
        if self.everything:
            return {"everything": True}
        identities = {"identities": list(self.identities)} if self.identities else {}
        return {"paths": list(self.paths), **identities}


@frozen
class ModelName:
    """A model: the word of its provider, and the provider's own name for it."""

    provider: str
    name: str


@frozen(kw_only=True)
class SessionHeader:
    """The first record of every journal."""

    kind: ClassVar[str] = "session"
    session_id: str
    mode: Mode
    model: ModelName
    created_by: str  # version of the program
    workspace: str | None = None  # URI of the folder; None: no folder
    title: str | None = None
    title_source: TitleSource = "none"


@frozen(kw_only=True)
class Epoch:
    """Begins an epoch: the first record that a process appends, after a `damage` record if there is one."""

    kind: ClassVar[str] = "epoch"
    epoch: str  # 32 hex digits
    pid: int
    host: str
    boot: str | None = None  # boot id, if the system has one


@frozen(kw_only=True)
class Origin:
    """The session that this one was forked from (row S3).

    The first one of a journal names it. Further ones name what that session was forked from itself, with attempts that
    were unresolved there.
    """

    kind: ClassVar[str] = "origin"
    session_id: str
    turn_id: str | None = None  # the last turn that was copied; None: all of them
    attempts: tuple[str, ...] = ()  # ids of its attempts that were unresolved at the fork


@frozen(kw_only=True)
class Rebind:
    """Binds the session to another folder and begins an epoch (row S10).

    The grants of the session, and what the model knows of files from before, count no more."""

    kind: ClassVar[str] = "rebind"
    workspace: str  # URI of the folder
    epoch: str  # 32 hex digits


@frozen(kw_only=True)
class Folders:
    """The folders of the client, from this turn on until the next such record (row S11). Empty: the session's alone."""

    kind: ClassVar[str] = "folders"
    turn_id: str
    folders: tuple[str, ...]  # URIs, in the client's order


@frozen(kw_only=True)
class User:
    """Begins a turn. `command`: the text is a slash command and never goes to a model.

    `aside`: a quick question, which is no part of the history and whose answer is not stored (row S2). `again`: the
    turn whose last request is sent again as it was; the text repeats that turn's and goes to no model (case 114).
    `replaces`: the turn whose prompt this one takes the place of; the conversation from there on is gone (row S8).
    """

    kind: ClassVar[str] = "user"
    turn_id: str
    message_id: str
    client_message_id: str
    text: str
    command: bool = False
    attachments: tuple[Attachment, ...] = ()
    encoding: PositionEncoding = "utf-16"  # of the ranges in the attachments
    aside: bool = False
    again: str | None = None
    replaces: str | None = None
    epoch: str | None = None  # that begins with it; given if and only if it replaces a turn

    @property
    def prompt(self) -> Prompt:
        """The prompt as it was sent."""
        return Prompt(self.text, self.attachments, self.aside, self.encoding, self.again)


@frozen(kw_only=True)
class Shown:
    """Lines of one file that the model was shown, with the digest of the whole file at that time (row V3)."""

    path: str  # absolute, after links
    digest: str
    from_: int  # first line, from 1
    to: int  # last line; `from_` - 1: none, or not each of them to its end
    whole: bool  # these lines are the whole file
    encoding: str | None = None  # None: not known


@frozen(kw_only=True)
class Attached:
    """The text for the model about the attachments of a turn's prompt, fixed before it is first sent (row P4)."""

    kind: ClassVar[str] = "attached"
    turn_id: str
    text: str
    shown: tuple[Shown, ...] = ()  # of attached files


@frozen(kw_only=True)
class Instructions:
    """What the workspace's AGENTS.md adds to the system text, fixed before the session's first request (row P4)."""

    kind: ClassVar[str] = "instructions"
    text: str


@frozen(kw_only=True)
class Proposed:
    """A call as the model wrote it. `arguments` is its exact text; it may not parse."""

    call_id: str  # ours; `provider_id` may repeat (row T7)
    tool: str
    arguments: str
    provider_id: str | None = None


@frozen(kw_only=True)
class Assistant:
    """An answer of the model, or of ours to a slash command."""

    kind: ClassVar[str] = "assistant"
    turn_id: str
    message_id: str
    text: str
    calls: tuple[Proposed, ...] = ()
    reasoning: str | None = None  # what the model thought before; None: nothing
    finish: str | None = None  # None: the stream was cut
    withdrawn: bool = False  # True: shown, then asked for again; never sent to a model
    sealed: str | None = None  # what the provider wants back unread, with its reasoning
    goes_on: bool = False  # True: the rest of the earlier message with this id (row P2)


@frozen(kw_only=True)
class ToolResult:
    """The reply to one call. With `output`, `text` is its beginning and end, and that file holds the whole."""

    kind: ClassVar[str] = "tool"
    turn_id: str
    call_id: str
    outcome: Outcome
    text: str
    bytes: int  # size of the whole reply
    truncated: bool = False
    reason: str | None = None  # one word; None: the outcome says enough
    attempt_id: str | None = None  # None: the call had no attempt
    output: str | None = None  # digest of the whole reply in `outputs/`
    exit_code: int | None = None  # of a command that exited by itself
    exit_signal: int | None = None  # of a command that a signal ended
    shown: tuple[Shown, ...] = ()  # files that it shows, of a read


@frozen(kw_only=True)
class SandboxUse:
    """How the children of an attempt are confined (row O1)."""

    kind: str  # "bubblewrap" | "landlock"
    sealed: bool = False  # True: the attempt has a scope and a check (row O6)


@frozen(kw_only=True)
class SparedChange:
    """What our change of a file was before and after an undo of hunks, without what somebody else changed on top.

    Both contents are in `checkpoints/`, or can be made from the arguments; the file never had the second one."""

    before: str  # digest of the last content of ours
    after: str  # digest of that content without the hunks


@frozen(kw_only=True)
class ReviewOf:
    """The reviewed change that an undo takes back (row V4)."""

    path: str  # as it is shown: relative to the workspace, or absolute
    base: str | None = None  # digest that the undo brings back; None: no file
    hunks: tuple[str, ...] = ()  # ids of the hunks of lines; empty: the whole change of each path
    partial: bool = False  # True: only these hunks of the change
    spared: SparedChange | None = None  # None: nobody else had changed the file


@frozen(kw_only=True)
class RewindOf:
    """The rewind that an attempt belongs to (row G4)."""

    target: str  # turn id: the files become what they were before that turn
    files: int  # paths that the whole rewind takes back


@frozen(kw_only=True)
class Intent:
    """The first record of an attempt."""

    kind: ClassVar[str] = "intent"
    attempt_id: str
    call_id: str
    turn_id: str
    tool: str
    title: str  # tool and path, or the program of a command
    effect: EffectClass
    arguments_digest: str
    scope: Scope
    key: str  # the idempotency key (row N2)
    occurrence: int  # earlier attempts of the same intention that are known to have happened
    retry_of: str | None = None  # attempt id
    restore_of: str | None = None  # attempt id
    intention: str | None = None  # of a command: digest of what rows N2 and B6 compare; None: digest and scope above
    unconfined: bool = False  # True: a command that asks to run outside the sandbox (row O3)
    sandbox: SandboxUse | None = None  # of a command that reads, which has no start; None: not confined
    review_of: ReviewOf | None = None  # of an undo
    rewind_of: RewindOf | None = None  # of a rewind


@frozen(kw_only=True)
class ExtendedAttribute:
    """One extended attribute of a file."""

    name: str
    value: str  # base64 of its bytes


@frozen(kw_only=True)
class FileAttributes:
    """What a file had besides its bytes before a change; a restore that makes the file again gives it these."""

    mode: int  # permission bits
    uid: int
    gid: int
    links: int = 1  # names that the file had; a restore makes one
    extended: tuple[ExtendedAttribute, ...] = ()


@frozen(kw_only=True)
class BufferChange:
    """The other half of the evidence of a change that goes through the editor (row V2): its text of the document.

    Digests are of the text with LF, in UTF-8."""

    path: str  # absolute, as the editor has the document
    before: str
    intended: str
    saves: bool = False  # True: the document is saved afterwards; else the disk is not to change
    checkpoint: str | None = None  # digest of the stored text before, with its own line ends, in UTF-8


@frozen(kw_only=True)
class EditorProcess:
    """The editor that a change goes through. While it lives, the change may still come."""

    pid: int | None = None  # as the editor says; None: it does not
    started: str | None = None  # opaque; together with the pid it names one process


@frozen(kw_only=True)
class Evidence:
    """What a file tool found at one path right before it started, and what it is about to put there (row W1)."""

    path: str  # as the call named it, relative to the workspace or absolute
    resolved: str  # absolute, after links
    existed: bool
    before: str | None = None  # digest; None: no file existed
    before_bytes: int | None = None
    intended: str | None = None  # digest; None: no file is intended
    intended_bytes: int | None = None
    mode: int | None = None  # permission bits it will have
    encoding: str | None = None  # "utf-8" | "utf-8-bom"
    line_ending: str | None = None  # "lf" | "crlf" | "mixed" | "none"
    temporary: str | None = None  # name of the temporary file beside `resolved`
    checkpoint: str | None = None  # digest of the stored content before; None: none is stored
    kind: Literal["file", "link"] = "file"  # of what existed or is intended; the content of a link is its target
    attributes: FileAttributes | None = None  # of the file that existed; None: not recorded
    in_place: bool = False  # True: the bytes of the file itself are written over (row W11)
    buffer: BufferChange | None = None  # None: the change is made on disk; else through the editor

    @property
    def is_only_in_buffer(self) -> bool:
        """Whether the change is made in the editor's text and not on disk: whoever saves it changes the file."""
        return self.buffer is not None and not self.buffer.saves


@frozen(kw_only=True)
class Started:
    """Durable before the tool body runs [I1]."""

    kind: ClassVar[str] = "started"
    attempt_id: str
    call_id: str
    evidence: tuple[Evidence, ...] = ()
    mark: str | None = None  # what every child process of the attempt carries
    held: bool = False  # True: the call was held back before (row B4)
    key: str | None = None  # the idempotency key, if it differs from the intent's (row N2)
    occurrence: int | None = None  # together with `key`
    sandbox: SandboxUse | None = None  # None: not confined
    scope: Scope | None = None  # None: the intent's; else a path was first looked at after its permission (row W11)
    editor: EditorProcess | None = None  # None: nothing of it goes through the editor


@frozen(kw_only=True)
class FileChange:
    """One file that really changed, as read back from disk."""

    path: str
    change: Change
    before: str | None = None  # digest
    after: str | None = None  # digest
    bytes: int | None = None  # observed size afterwards
    from_: str | None = None  # old path of a move


@frozen(kw_only=True)
class SeenChange:
    """One file that changed while a command ran; whether the command changed it is not known."""

    path: str  # relative to the workspace with `/`, or absolute
    change: str  # "created" | "modified" | "deleted"


@frozen(kw_only=True)
class ChangedDuring:
    """The files that changed while a command ran (row O1)."""

    files: tuple[SeenChange, ...] = ()  # at most 200
    more: int = 0  # how many others changed
    exact: bool = False  # True: from two complete lists; False: a hint by modification time


@frozen(kw_only=True)
class Result:
    """The one terminal record of an attempt. `by` is given only for a verdict of recovery."""

    kind: ClassVar[str] = "result"
    attempt_id: str
    call_id: str
    turn_id: str
    outcome: Outcome
    reason: str | None = None  # one word; None: the outcome says enough
    by: Literal["recovery"] | None = None
    check: Check | None = None  # of all paths together; None: nothing was checked
    files: tuple[FileChange, ...] = ()
    exit_code: int | None = None  # of a command; None: ended by a signal, or no command
    left: tuple[str, ...] = ()  # processes of a command's group that were left and have been ended
    kept: tuple[str, ...] = ()  # files found beside the target that are not ours
    held: bool = False  # True: the call was held back (row B4)
    during: ChangedDuring | None = None  # of a command; None: not looked at
    protected: tuple[str, ...] = ()  # protected names that are new or changed after a confined command


@frozen(kw_only=True)
class Permission:
    """An answer to the question whether a call may run, or a standing grant."""

    kind: ClassVar[str] = "permission"
    attempt_id: str
    call_id: str
    answer: Grant
    tool: str
    note: str | None = None  # the user's text for the model
    command: str | None = None  # a lasting grant for run_command covers exactly this command
    cwd: str | None = None  # absolute folder of that command
    reason: str | None = None  # "not_answered"; None: somebody answered
    confirmed_before: tuple[str, ...] = ()  # attempts of this exact call that the user had confirmed (row B6)
    unconfined: bool = False  # True: the answer is about running outside the sandbox (row O3)


@frozen(kw_only=True)
class Forget:
    """The user takes back a grant for the session. Grants beyond the session are in no journal."""

    kind: ClassVar[str] = "forget"
    attempt_id: str  # of the permission record


@frozen(kw_only=True)
class PathFinding:
    """What an inspection found at one path."""

    path: str
    check: Check
    reason: str | None = None
    exists: bool | None = None  # None: not known
    digest: str | None = None
    bytes: int | None = None


@frozen(kw_only=True)
class SurvivorFound:
    """A living process that an inspection found."""

    pid: int
    started: str  # opaque; together with the pid it names one process
    command: str


@frozen(kw_only=True)
class Inspection:
    """An inspection of one attempt, stored before it is answered."""

    kind: ClassVar[str] = "inspection"
    inspection_id: str
    attempt_id: str
    call_id: str
    state: InspectionState
    by: Author
    check: Check | None = None  # of all paths together; None: an effect without paths
    findings: tuple[PathFinding, ...] = ()
    survivors: tuple[SurvivorFound, ...] = ()
    survivors_known: bool = True  # False: this system cannot find them
    changed: tuple[str, ...] = ()  # files changed since the start, a hint
    changed_more: int = 0  # how many more there were
    verified: str | None = None  # sentence of the tool's own verifier; None: it offers none


@frozen(kw_only=True)
class Settlement:
    """Settles an uncertain attempt (row J14)."""

    kind: ClassVar[str] = "settlement"
    attempt_id: str
    call_id: str
    settled: Settled
    by: Author
    inspection_id: str | None = None  # the inspection it rests on
    check: Check | None = None
    superseded_by: str | None = None  # attempt id of the retry


@frozen(kw_only=True)
class Reject:
    """The user notes that the attempt must not be repeated. It proves nothing, and the attempt holds back as before."""

    kind: ClassVar[str] = "reject"
    attempt_id: str
    call_id: str
    inspection_id: str


@frozen(kw_only=True)
class Review:
    """The user keeps the changes of a file. From here on its changes are compared with `base` (row V4)."""

    kind: ClassVar[str] = "review"
    path: str  # absolute, after links
    base: str | None = None  # digest; None: no file
    attempt_id: str | None = None  # the last attempt of the kept change; None: the latest one on the path
    hunks: tuple[str, ...] = ()  # ids of the hunks of lines that are kept; empty: the whole change
    partial: bool = False  # True: other hunks stay under review, and `base` is a content that the file never had


@frozen(kw_only=True)
class Rewind:
    """A rewind is done (row G4). `target`: the first turn that is taken back; a rewind is undone by a rewind to it."""

    kind: ClassVar[str] = "rewind"
    turn_id: str  # of the rewind itself
    target: str  # turn id
    what: RewindWhat
    epoch: str | None = None  # the epoch that begins with it; None: the conversation stays


@frozen(kw_only=True)
class Supplied:
    """The words that stand for a missing reply, fixed when they are first sent (row T2)."""

    kind: ClassVar[str] = "supplied"
    turn_id: str
    call_id: str
    text: str


@frozen(kw_only=True)
class Notice:
    """A sentence for the user at once, and for the model before the next user text."""

    kind: ClassVar[str] = "notice"
    message_id: str
    text: str
    turn_id: str | None = None
    attempt_id: str | None = None  # the attempt that it is about
    model: bool = True  # whether the model gets it too


@frozen(kw_only=True)
class Told:
    """A message from the server to the model, with its final text (row G15).

    `after`: the answer that the model was giving when this was recorded. The message stands behind that answer's
    replies; if that answer is not sent, or None stands here, it stands where it is in the journal.
    """

    kind: ClassVar[str] = "told"
    message_id: str
    text: str
    from_: ToldFrom
    turn_id: str | None = None  # None: recorded outside a turn; it goes out before the next prompt
    after: str | None = None  # message id


@frozen(kw_only=True)
class CompactionCut:
    """The last record of the conversation that a compaction replaces. `seq` 0: it replaces nothing."""

    seq: int
    sum: str  # of its line, 8 hex digits


@frozen(kw_only=True)
class SizeBefore:
    """The conversation that went to the model before a compaction."""

    messages: int
    context_tokens: int  # of a request with it; an estimate where no provider has counted


@frozen(kw_only=True)
class SizeAfter:
    """The conversation that goes to the model after a compaction."""

    messages: int
    context_tokens: int | None = None  # estimated; None: not known


@frozen(kw_only=True)
class Compaction:
    """From here on `text` stands in the place of the conversation up to the cut (row K4). Nothing is rewritten.

    It counts only as long as the record of the cut is part of the conversation."""

    kind: ClassVar[str] = "compaction"
    message_id: str
    turn_id: str  # of its own, or the one that ran
    epoch: str  # 32 hex digits
    cut: CompactionCut
    text: str  # the first message after the cut; empty if nothing is cut off
    automatic: bool
    before: SizeBefore
    after: SizeAfter
    omitted: tuple[str, ...] = ()  # calls behind the cut whose outputs are left out


@frozen(kw_only=True)
class Usage:
    """The tokens and the cost of one request."""

    kind: ClassVar[str] = "usage"
    turn_id: str
    complete: bool  # False: the request reported no tokens
    input: int = 0
    output: int = 0
    cache_hit: int = 0
    cache_miss: int = 0
    context: int = 0  # tokens of the request and its answer
    window: int | None = None  # tokens of the model's window; None: unknown
    model: ModelName | None = None  # which was asked; None: written by a version that did not record it
    cost: str | None = None  # decimal number, at the price of that time; None: unknown
    currency: str | None = None  # ISO 4217; None beside a cost: nothing is billed
    auxiliary: bool = False  # True: of a summary or a title, so it says nothing of the conversation's size (row K4)


@frozen(kw_only=True)
class Title:
    """A new title of the session."""

    kind: ClassVar[str] = "title"
    title: str
    source: TitleSource


@frozen(kw_only=True)
class ModeSet:
    """A new mode of the session."""

    kind: ClassVar[str] = "mode"
    mode: Mode


@frozen(kw_only=True)
class ModelSet:
    """A new model of the session."""

    kind: ClassVar[str] = "model"
    provider: str
    name: str


@frozen(kw_only=True)
class Cancel:
    """A turn is cancelled; after this record no tool of it starts."""

    kind: ClassVar[str] = "cancel"
    turn_id: str


@frozen(kw_only=True)
class Ended:
    """A turn ended."""

    kind: ClassVar[str] = "ended"
    turn_id: str
    reason: EndReason
    text: str | None = None  # one sentence, if the reason needs one


@frozen(kw_only=True)
class Queue:
    """A prompt that was sent while a turn ran. It leaves the queue when a `user` record has its client message id.

    A later record with the same id changes the text or removes the prompt; its other members keep their first values.
    """

    kind: ClassVar[str] = "queue"
    client_message_id: str
    turn_id: str
    text: str
    removed: bool = False
    attachments: tuple[Attachment, ...] = ()
    encoding: PositionEncoding = "utf-16"  # of the ranges in the attachments
    aside: bool = False

    @property
    def prompt(self) -> Prompt:
        """The prompt as it was sent."""
        return Prompt(self.text, self.attachments, self.aside, self.encoding)


@frozen(kw_only=True)
class Steer:
    """A text for a turn that runs (row S8). It waits in the queue until a `taken` or `user` record names it.

    `queue` records change or remove it there. A turn of its own that it begins has `message_id` as its id."""

    kind: ClassVar[str] = "steer"
    turn_id: str  # the turn that is steered
    message_id: str
    client_message_id: str
    text: str


@frozen(kw_only=True)
class Taken:
    """A request of the steered turn takes the text: it is a message of the user from here on (row S8)."""

    kind: ClassVar[str] = "taken"
    client_message_id: str
    turn_id: str
    after: str  # id of the message that it stands behind: the last answer, else the last prompt


@frozen(kw_only=True)
class Job:
    """The process of a background command: it runs, or it ended.

    It has no effect of its own and is never uncertain (E5).
    """

    kind: ClassVar[str] = "job"
    job_id: str
    attempt_id: str  # of the `run_command` that started it; its processes carry it as their mark
    call_id: str
    event: Literal["started", "ended"]
    pid: int
    started: str  # opaque; together with the pid it names one process
    title: str  # of the command: the program's name only
    exit_code: int | None = None  # None: ended by a signal, or unknown
    reason: JobEnd | None = None  # None: it ended by itself
    output: str | None = None  # digest of its output in `outputs/`


@frozen(kw_only=True)
class Damage:
    """The first append after damage.

    `unacknowledged`: the first `seq` that the last writer of this journal did not acknowledge.
    """

    kind: ClassVar[str] = "damage"
    count: int
    offsets: tuple[int, ...] = ()  # bytes from the start of the file; at most 100
    torn: int | None = None  # bytes cut off and stored beside the journal
    unacknowledged: int | None = None


Record: TypeAlias = (
    "SessionHeader | Epoch | Origin | Rebind | Folders | User | Attached | Instructions | Assistant | ToolResult"
    " | Intent | Started | Result | Permission | Forget | Inspection | Settlement | Reject | Supplied | Notice | Told"
    " | Usage | Title | ModeSet | ModelSet | Cancel | Ended | Queue | Steer | Taken | Job | Damage | Review | Rewind"
    " | Compaction"
)
KINDS: dict[str, type] = {
    cls.kind: cls
    for cls in (
        SessionHeader,
        Epoch,
        Origin,
        Rebind,
        Folders,
        User,
        Attached,
        Instructions,
        Assistant,
        ToolResult,
        Intent,
        Started,
        Result,
        Permission,
        Forget,
        Inspection,
        Settlement,
        Reject,
        Supplied,
        Notice,
        Told,
        Usage,
        Title,
        ModeSet,
        ModelSet,
        Cancel,
        Ended,
        Queue,
        Steer,
        Taken,
        Job,
        Damage,
        Review,
        Rewind,
        Compaction,
    )
}
"""The kind on disk → its class."""


@frozen(kw_only=True)
class Unknown:
    """A record of a kind that this version does not know; it keeps its place and is never interpreted."""

    kind_name: str


@frozen(kw_only=True)
class Stamped:
    """A record at its place in the journal: envelope and content."""

    seq: int
    at: str
    sum: str  # checksum of its line, 8 hex digits
    record: Record | Unknown
