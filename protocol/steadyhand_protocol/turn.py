"""Turns on the wire: the prompt, its attachments, the calls it makes, the events of it, and the queue.

A prompt is safe to resend: the client's own message id makes it one prompt. Events carry session, epoch,
turn and a running number, so that a client can ask for those it lacks. A call event is whole and replaces
the one before it.
"""

from typing import Annotated, Literal, TypeAlias

import attrs

from steadyhand_protocol.values import (
    AtMost,
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
    attachment_text_bytes_max,
    attachments_count_max,
)

AttachmentText: TypeAlias = Annotated[str, AtMost(attachment_text_bytes_max, "bytes")]
CallState: TypeAlias = Literal[
    "proposed", "waiting", "running", "returned", "failed", "stopped", "refused", "notRun", "unknown"
]
TurnState: TypeAlias = Literal["queued", "running", "parked", "ended", "interrupted"]

# --- attachments --------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class FileAttachment:
    """A file of the workspace, or a part of it, read by the server."""

    kind: Literal["file"] = "file"  # always "file"
    path: str  # relative to the workspace with `/`, absolute if outside
    range: Range | None = None  # absent for the whole file


@attrs.frozen(kw_only=True)
class SelectionAttachment:
    """What is selected in an editor."""

    kind: Literal["selection"] = "selection"  # always "selection"
    uri: str  # of the document
    range: Range  # where it stands
    text: AttachmentText  # what stands there, at most 256 KiB of UTF-8


@attrs.frozen(kw_only=True)
class ProblemsAttachment:
    """The diagnostics the editor shows."""

    kind: Literal["problems"] = "problems"  # always "problems"
    uri: str | None = None  # of one document; absent for all


@attrs.frozen(kw_only=True)
class TextAttachment:
    """Any text the user adds."""

    kind: Literal["text"] = "text"  # always "text"
    name: str  # shown to user and model
    text: AttachmentText  # at most 256 KiB of UTF-8


Attachment: TypeAlias = FileAttachment | SelectionAttachment | ProblemsAttachment | TextAttachment
Attachments: TypeAlias = Annotated[tuple[Attachment, ...], AtMost(attachments_count_max, "items")]

# --- calls --------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Reply:
    """What a tool answered."""

    text: str  # as the model sees it
    truncated: bool  # true when the text is not all of it
    bytes: Count  # size of all of it


@attrs.frozen(kw_only=True)
class CallFile:
    """One path a call changed."""

    path: str  # relative to the workspace with `/`, absolute if outside; after a move the new place
    change: Change  # what happened to it
    from_: str | None = None  # the old place; given when and only when change is "moved"
    before: Digest | None = None  # of the content before; absent when there was none
    after: Digest | None = None  # of the content read back; absent when there is none


@attrs.frozen(kw_only=True)
class Call:
    """What the model asked of a tool, and what became of it."""

    call_id: Id  # ours, not the provider's
    attempt_id: Id | None = None  # absent until an attempt began
    turn_id: Id  # the turn it belongs to
    tool: str  # canonical tool name
    title: str  # tool and path, or program
    arguments: str  # canonical JSON text
    scope: Scope  # what it may touch
    state: CallState  # see the table of states
    reason: str | None = None  # why it was refused or not run; absent otherwise
    started: Time | None = None  # absent until the tool body may have begun
    ended: Time | None = None  # absent while it is open
    reply: Reply | None = None  # absent until there is one
    files: tuple[CallFile, ...] | None = None  # what it changed; absent for a call that changes no files
    settled: Settled | None = None  # how its uncertainty was settled; absent when not


# --- events -------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class BeganEvent:
    """The turn began."""

    kind: Literal["began"] = "began"  # always "began"
    client_message_id: ClientMessageId  # of its prompt


@attrs.frozen(kw_only=True)
class DeltaEvent:
    """The answer, or the reasoning before it, grew."""

    kind: Literal["text", "reasoning"]  # which of the two
    message_id: Id  # the message that grows
    delta: str  # what to add at its end


@attrs.frozen(kw_only=True)
class CallEvent:
    """A call is new or has changed."""

    kind: Literal["call"] = "call"  # always "call"
    call: Call  # whole; replaces the one with the same callId


@attrs.frozen(kw_only=True)
class PlanItem:
    """One line of the model's plan."""

    text: str  # plain text
    state: Literal["open", "doing", "done"]  # how far it is


@attrs.frozen(kw_only=True)
class PlanEvent:
    """The model's plan is new or has changed."""

    kind: Literal["plan"] = "plan"  # always "plan"
    items: tuple[PlanItem, ...]  # whole; replaces the one before


@attrs.frozen(kw_only=True)
class UsageEvent:
    """A request ended and was counted."""

    kind: Literal["usage"] = "usage"  # always "usage"
    usage: Usage  # of the session so far


@attrs.frozen(kw_only=True)
class WarningEvent:
    """Something the user should know and a program may react to."""

    kind: Literal["warning"] = "warning"  # always "warning"
    code: str  # a word for programs
    text: str  # a sentence for the user


@attrs.frozen(kw_only=True)
class NoticeEvent:
    """Something the user should know."""

    kind: Literal["notice"] = "notice"  # always "notice"
    text: str  # a sentence for the user


@attrs.frozen(kw_only=True)
class EndedEvent:
    """The turn ended; its last event."""

    kind: Literal["ended"] = "ended"  # always "ended"
    reason: Reason  # why it ended
    changed: tuple[ChangedPath, ...]  # the files it really changed, from the journal
    unclaimed: tuple[str, ...] | None = None  # paths the answer calls written that are not; absent when none


Event: TypeAlias = (
    BeganEvent | DeltaEvent | CallEvent | PlanEvent | UsageEvent | WarningEvent | NoticeEvent | EndedEvent
)


@attrs.frozen(kw_only=True)
class TurnEvent:
    """One event of one turn."""

    session_id: Id  # whose turn it is
    epoch: Id  # in which the number counts
    turn_id: Id  # the turn it tells of
    number: Ordinal  # from 1 within an epoch, without gaps
    event: Event  # what happened


# --- requests -----------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class TurnStartParams:
    """A prompt; queued when a turn is running."""

    session_id: Id  # opened first when it is not open here
    epoch: Id  # as in Session; another one is `staleEpoch`
    client_message_id: ClientMessageId  # the client's own; the same one again runs nothing
    text: str  # the prompt; one that begins with `/` is a slash command
    attachments: Attachments | None = None  # at most 20; absent when none
    aside: bool | None = None  # true: one model request, no tools, not in the history; absent is false


@attrs.frozen(kw_only=True)
class TurnStartResult:
    """The prompt is durable."""

    turn_id: Id  # of the turn it begins, also while it is queued
    accepted: Literal[True] = True  # always true
    duplicate: bool  # this client message id was known already
    queued: bool  # it waits for the turn that is running


@attrs.frozen(kw_only=True)
class TurnStatusParams:
    """What became of a prompt whose acknowledgement was lost?"""

    session_id: Id  # it was sent to
    client_message_id: ClientMessageId  # it was sent with


@attrs.frozen(kw_only=True)
class TurnStatusResult:
    """How far a prompt is."""

    known: bool  # false: it never arrived, send it again
    turn_id: Id | None = None  # absent when not known
    state: TurnState | None = None  # absent when not known
    reason: Reason | None = None  # why it ended; absent until then


@attrs.frozen(kw_only=True)
class TurnCancelParams:
    """Stop this turn."""

    session_id: Id  # whose turn it is
    turn_id: Id  # running, parked or queued


@attrs.frozen(kw_only=True)
class CancelResult:
    """Whether there was something to cancel."""

    cancelled: bool  # false when it had ended already


@attrs.frozen(kw_only=True)
class TurnEventsParams:
    """The events a client lacks."""

    session_id: Id  # whose events
    epoch: Id  # in which `after` was counted
    after: Count  # the last number it has; 0 for none


@attrs.frozen(kw_only=True)
class TurnEventsResult:
    """Events after the one named."""

    events: tuple[TurnEvent, ...]  # in order
    next: Count  # goes into `after` the next time
    reset: bool  # the events are gone, or of another epoch: open the session again


# --- the queue ----------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Queued:
    """A prompt that waits."""

    client_message_id: ClientMessageId  # the client's own
    text: str  # the prompt
    attachments: Attachments | None = None  # absent when none
    at: Time  # when it was accepted
    paused: bool  # true after a restart, until it is resumed
    aside: Literal[True] | None = None  # true: a quick question; absent otherwise


@attrs.frozen(kw_only=True)
class QueueEditParams:
    """Change or remove a prompt that waits."""

    session_id: Id  # whose queue
    client_message_id: ClientMessageId  # which prompt
    text: str | None = None  # the new text; absent to leave it
    remove: bool | None = None  # true to take it out; absent is false


@attrs.frozen(kw_only=True)
class QueueResumeParams:
    """Let a paused queue go on."""

    session_id: Id  # whose queue
    epoch: Id  # as in Session


@attrs.frozen(kw_only=True)
class QueueResult:
    """The queue as it is now."""

    queue: tuple[Queued, ...]  # in the order they will begin


@attrs.frozen(kw_only=True)
class QueueChanged:
    """The queue of a session changed."""

    session_id: Id  # whose queue
    queue: tuple[Queued, ...]  # whole, in the order they will begin
