"""Turns on the wire: the prompt, its attachments, its calls and events, and the queue.

A prompt is safe to resend, because the client's own message id makes it one prompt. Events carry session, epoch, turn
and a running number, so that a client can ask for those it lacks. A call event is whole and replaces the earlier one.
"""

from typing import Annotated, Literal, TypeAlias

from steadyhand_protocol.values import (
    ATTACHMENT_TEXT_BYTES_MAX,
    ATTACHMENTS_COUNT_MAX,
    AfterCompaction,
    AtMost,
    BeforeCompaction,
    Change,
    ChangedPath,
    ClientMessageId,
    Count,
    Digest,
    Id,
    Ordinal,
    Range,
    Reason,
    Scope,
    Settled,
    Time,
    Usage,
)
from steadyhand_values import frozen

AttachmentText: TypeAlias = Annotated[str, AtMost(ATTACHMENT_TEXT_BYTES_MAX, "bytes")]
CallState: TypeAlias = Literal[
    "proposed", "waiting", "running", "returned", "failed", "stopped", "refused", "notRun", "unknown"
]
ToldFrom: TypeAlias = Literal["diagnostics", "hook", "instructions", "review", "files", "mcp"]
TurnState: TypeAlias = Literal["queued", "running", "parked", "ended", "interrupted"]

# --- attachments --------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class FileAttachment:
    """A file of the workspace or a range of it; the server reads it."""

    kind: Literal["file"] = "file"  # always "file"
    path: str  # relative to the workspace with `/`, absolute if outside
    range: Range | None = None  # absent: the whole file


@frozen(kw_only=True)
class SelectionAttachment:
    """A selection in an editor."""

    kind: Literal["selection"] = "selection"  # always "selection"
    uri: str  # URI of the document
    range: Range  # where the text is
    text: AttachmentText  # the selected text, at most 256 KiB of UTF-8


@frozen(kw_only=True)
class ProblemsAttachment:
    """The diagnostics that the editor shows."""

    kind: Literal["problems"] = "problems"  # always "problems"
    uri: str | None = None  # URI of one document; absent: all documents


@frozen(kw_only=True)
class TextAttachment:
    """Any text that the user adds."""

    kind: Literal["text"] = "text"  # always "text"
    name: str  # shown to the user and to the model
    text: AttachmentText  # at most 256 KiB of UTF-8


Attachment: TypeAlias = FileAttachment | SelectionAttachment | ProblemsAttachment | TextAttachment
Attachments: TypeAlias = Annotated[tuple[Attachment, ...], AtMost(ATTACHMENTS_COUNT_MAX, "items")]

# --- calls --------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Reply:
    """The reply of a tool."""

    text: str  # as the model sees it
    truncated: bool  # true when the text is not the whole reply
    bytes: Count  # size of the whole reply


@frozen(kw_only=True)
class CallFile:
    """One path that a call changed."""

    path: str  # relative to the workspace with `/`, absolute if outside; after a move the new path
    change: Change  # what happened to it
    from_: str | None = None  # the old path; given if and only if change is "moved"
    before: Digest | None = None  # digest of the content before; absent when there was none
    after: Digest | None = None  # digest of the content read back; absent when there is none


@frozen(kw_only=True)
class CallSandbox:
    """How the children of a call are confined."""

    kind: Literal["bubblewrap", "landlock"]  # what confines them
    sealed: bool  # true: the call has a scope and a check although it is a command


@frozen(kw_only=True)
class SeenChange:
    """One file that changed while a command ran, by it or by somebody else."""

    path: str  # relative to the workspace with `/`, absolute if outside
    change: Literal["created", "modified", "deleted"]  # what happened to it


@frozen(kw_only=True)
class ChangedDuring:
    """The files that changed while a command ran."""

    files: tuple[SeenChange, ...]  # at most 200
    more: Count  # how many others changed
    exact: bool  # true: from two complete lists; false: a hint by modification time


@frozen(kw_only=True)
class Exit:
    """How a command ended: exactly one of the two is there."""

    code: int | None = None  # its exit code
    signal: int | None = None  # number of the signal that ended it


@frozen(kw_only=True)
class Call:
    """A call of a tool that the model asked for, and its outcome."""

    call_id: Id  # made by the server, not by the provider
    attempt_id: Id | None = None  # absent until an attempt began
    turn_id: Id  # the turn it belongs to
    tool: str  # canonical tool name
    title: str  # tool and path, or program
    arguments: str  # JSON text, canonical where it has a canonical form
    scope: Scope  # what it may touch
    state: CallState  # docs/recovery.md lists the states
    reason: str | None = None  # one word that says why; absent when the state says enough
    started: Time | None = None  # absent until the tool body may have begun
    ended: Time | None = None  # absent while the call is open
    reply: Reply | None = None  # absent until there is a reply
    files: tuple[CallFile, ...] | None = None  # what it changed; absent when it changed no file
    settled: Settled | None = None  # how its uncertainty was settled; absent when it is not
    sandbox: CallSandbox | None = None  # from the start on; absent when it is not confined
    unconfined: Literal[True] | None = None  # true: a command that asks to run outside the sandbox; absent otherwise
    changed_during: ChangedDuring | None = None  # of a command that has ended; absent when nobody looked
    exit: Exit | None = None  # of a command that has ended; absent for other calls


# --- events -------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class BeganEvent:
    """The turn began."""

    kind: Literal["began"] = "began"  # always "began"
    client_message_id: ClientMessageId  # id of its prompt


@frozen(kw_only=True)
class DeltaEvent:
    """The answer, or the reasoning before it, grew."""

    kind: Literal["text", "reasoning"]  # which of the two grew
    message_id: Id  # the message that grows
    delta: str  # text to append


@frozen(kw_only=True)
class CallEvent:
    """A call is new or changed."""

    kind: Literal["call"] = "call"  # always "call"
    call: Call  # whole; replaces the one with the same callId


@frozen(kw_only=True)
class PlanItem:
    """One item of the model's plan."""

    text: str  # plain text
    state: Literal["open", "doing", "done"]  # how far the item is


@frozen(kw_only=True)
class PlanEvent:
    """The model's plan is new or changed."""

    kind: Literal["plan"] = "plan"  # always "plan"
    items: tuple[PlanItem, ...]  # whole; replaces the earlier plan


@frozen(kw_only=True)
class UsageEvent:
    """A request ended and its usage was recorded."""

    kind: Literal["usage"] = "usage"  # always "usage"
    usage: Usage  # of the session so far


@frozen(kw_only=True)
class WarningEvent:
    """A warning for the user; a program may react to its code."""

    kind: Literal["warning"] = "warning"  # always "warning"
    code: str  # a word for programs
    text: str  # a sentence for the user


@frozen(kw_only=True)
class NoticeEvent:
    """A notice for the user."""

    kind: Literal["notice"] = "notice"  # always "notice"
    text: str  # a sentence for the user


@frozen(kw_only=True)
class ToldEvent:
    """The server told the model something. `session/open` has the same text as a message of the role "notice"."""

    kind: Literal["told"] = "told"  # always "told"
    from_: ToldFrom  # what it is about
    text: str  # what the model is told, whole


@frozen(kw_only=True)
class CompactedEvent:
    """The conversation was compacted. `session/open` has the same text as a message with `compaction`."""

    kind: Literal["compacted"] = "compacted"  # always "compacted"
    message_id: Id  # of the message that stands in the place of the earlier ones
    text: str  # its text, whole
    before: BeforeCompaction  # what went to the model before
    after: AfterCompaction  # what goes to it from here on
    automatic: bool  # false: somebody asked for it


@frozen(kw_only=True)
class SteeredEvent:
    """A request of the turn takes a text that was sent to it. `session/open` has it as a message of the user."""

    kind: Literal["steered"] = "steered"  # always "steered"
    client_message_id: ClientMessageId  # id that it was sent with
    text: str  # the text, as it was edited last


@frozen(kw_only=True)
class ChangedInCall:
    """One file that changed while a command of the turn ran, by it or by somebody else."""

    path: str  # relative to the workspace with `/`, absolute if outside
    change: Literal["created", "modified", "deleted"]  # what happened to it
    call_id: Id  # the call of the command


@frozen(kw_only=True)
class EndedEvent:
    """The turn ended. This is its last event."""

    kind: Literal["ended"] = "ended"  # always "ended"
    reason: Reason  # why it ended
    changed: tuple[ChangedPath, ...]  # files that the turn really changed, from the journal
    unclaimed: tuple[str, ...] | None = None  # paths the answer claims were written and were not; absent when none
    during: tuple[ChangedInCall, ...] | None = None  # changed while commands ran, at most 200; absent when none
    protected: tuple[str, ...] | None = None  # protected names that are new or changed after commands; absent when none


Event: TypeAlias = (
    BeganEvent
    | DeltaEvent
    | CallEvent
    | PlanEvent
    | UsageEvent
    | WarningEvent
    | NoticeEvent
    | ToldEvent
    | CompactedEvent
    | SteeredEvent
    | EndedEvent
)


@frozen(kw_only=True)
class TurnEvent:
    """One event of one turn."""

    session_id: Id  # session of the turn
    epoch: Id  # epoch in which `number` counts
    turn_id: Id  # the turn
    number: Ordinal  # counts from 1 within an epoch, without gaps
    event: Event  # what happened


# --- requests -----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class TurnStartParams:
    """Send a prompt; it is queued while a turn runs."""

    session_id: Id  # opened first if it is not open in this process
    epoch: Id  # same as Session.epoch; another one is refused with `staleEpoch`
    client_message_id: ClientMessageId  # made by the client; the same id again runs nothing
    text: str  # the prompt; one that begins with `/` is a slash command
    attachments: Attachments | None = None  # at most 20; absent when none
    aside: bool | None = None  # true: a quick question: one request, no tools, not in the history; absent is false
    again: Id | None = None  # the last turn, whose request failed: send it again as it was; `text` is that prompt's


@frozen(kw_only=True)
class TurnStartResult:
    """The prompt is durable."""

    turn_id: Id  # turn that the prompt begins; also given while it is queued
    accepted: Literal[True] = True  # always true
    duplicate: bool  # this client message id was known already
    queued: bool  # the prompt waits until the present turn ends


@frozen(kw_only=True)
class TurnStatusParams:
    """Ask about a prompt whose acknowledgement was lost."""

    session_id: Id  # session that the prompt was sent to
    client_message_id: ClientMessageId  # id that the prompt was sent with


@frozen(kw_only=True)
class TurnStatusResult:
    """The state of a prompt."""

    known: bool  # false: the prompt never arrived, so send it again
    turn_id: Id | None = None  # absent when the prompt is not known
    state: TurnState | None = None  # absent when the prompt is not known
    reason: Reason | None = None  # why the turn ended; absent until then


@frozen(kw_only=True)
class TurnCancelParams:
    """Cancel a turn."""

    session_id: Id  # session of the turn
    turn_id: Id  # a running, parked or queued turn


@frozen(kw_only=True)
class CancelResult:
    """Whether there was something to cancel."""

    cancelled: bool  # false when it had ended already


@frozen(kw_only=True)
class TurnEventsParams:
    """Ask for the events that a client lacks."""

    session_id: Id  # session of the events
    epoch: Id  # epoch in which `after` was counted
    after: Count  # number of the last event that the client has; 0: none


@frozen(kw_only=True)
class TurnEventsResult:
    """The events after the given number."""

    events: tuple[TurnEvent, ...]  # in order
    next: Count  # value of `after` for the next request
    reset: bool  # true: the events are gone or of another epoch, so open the session again


# --- the queue ----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Queued:
    """A prompt that waits."""

    client_message_id: ClientMessageId  # made by the client
    text: str  # the prompt
    attachments: Attachments | None = None  # absent when none
    at: Time  # when it was accepted
    paused: bool  # true until the queue is resumed: after a stop, a close and a restart, and for what waits for a turn
    aside: Literal[True] | None = None  # true: a quick question; absent otherwise
    steers: Id | None = None  # the turn that it was sent to; absent for a prompt


@frozen(kw_only=True)
class QueueEditParams:
    """Change or remove a prompt that waits."""

    session_id: Id  # session of the queue
    client_message_id: ClientMessageId  # which prompt
    text: str | None = None  # the new text; absent: unchanged
    remove: bool | None = None  # true: remove the prompt; absent is false


@frozen(kw_only=True)
class QueueResumeParams:
    """Resume a paused queue."""

    session_id: Id  # session of the queue
    epoch: Id  # same as Session.epoch


@frozen(kw_only=True)
class QueueResult:
    """The present queue."""

    queue: tuple[Queued, ...]  # in the order in which the prompts will begin


@frozen(kw_only=True)
class QueueChanged:
    """The queue of a session changed."""

    session_id: Id  # session of the queue
    queue: tuple[Queued, ...]  # whole, in the order in which the prompts will begin
