"""Sessions on the wire: the list, opening and closing, messages, models, checkpoints, usage.

A Session is a view of a journal and is sent whole whenever it changes. `epoch` is in it while this process
owns the session, and only then can the session be written to.
"""

from typing import Literal, TypeAlias

import attrs

from steadyhand_protocol.recovery import Snapshot
from steadyhand_protocol.turn import Attachments, Call, Queued
from steadyhand_protocol.values import (
    ChangedPath,
    ClientMessageId,
    Count,
    Id,
    Mode,
    ModelChoice,
    ReadOnly,
    Time,
)

RewindWhat: TypeAlias = Literal["files", "conversation", "both"]


@attrs.frozen(kw_only=True)
class Job:
    """A background command whose end is not recorded; no effect of its own, never uncertain."""

    job_id: Id  # ours; `/jobs stop` takes it
    attempt_id: Id  # of the call that started it: the mark its processes carry
    call_id: Id  # that call
    title: str  # tool and the program's name
    state: Literal["runs", "left", "untold"]  # "left" outlived a crash; "untold": whether it runs cannot be told
    pid: Count  # of its shell


@attrs.frozen(kw_only=True)
class Session:
    """One conversation bound to one workspace."""

    session_id: Id  # ours
    path: str  # the session's folder, absolute
    title: str  # empty while titleSource is "none"
    title_source: Literal["none", "auto", "user"]  # a title the user gave is never overwritten
    epoch: Id | None = None  # absent unless this process owns it
    workspace: str | None = None  # Uri of one of the client's folders; absent without a folder
    created: Time  # of its first record
    updated: Time  # of its last record
    mode: Mode  # what passes without asking
    model: ModelChoice  # for its next request
    busy: bool  # a turn is running or parked
    parked: bool  # the turn's only open work is a question to the user
    uncertain: Count  # attempts that need a decision
    read_only: ReadOnly | None = None  # absent when it can be written to
    jobs: tuple[Job, ...] | None = None  # background commands of an open session; absent when none


@attrs.frozen(kw_only=True)
class Message:
    """One message of the conversation; a tool's reply lives in its Call."""

    message_id: Id  # ours
    turn_id: Id  # the turn it belongs to
    role: Literal["user", "assistant", "notice"]  # who speaks; "notice" is Steadyhand
    at: Time  # when it was recorded
    text: str  # may be empty beside calls
    reasoning: str | None = None  # what the model thought before; absent when none
    attachments: Attachments | None = None  # of a user message; absent when none
    client_message_id: ClientMessageId | None = None  # of a user message; absent otherwise
    calls: tuple[Call, ...] | None = None  # of an assistant message, in its order; absent when none


@attrs.frozen(kw_only=True)
class SessionCreateParams:
    """A new session, opened at once."""

    title: str | None = None  # absent: none until one is made
    workspace: str | None = None  # Uri of one of the client's folders; absent for the first


@attrs.frozen(kw_only=True)
class SessionListResult:
    """All sessions in the state directory."""

    sessions: tuple[Session, ...]  # newest first


@attrs.frozen(kw_only=True)
class SessionOpenParams:
    """Open a session, or read again one that is open."""

    session_id: Id  # which one
    tail: Count | None = None  # how many messages from the end; absent is 200


@attrs.frozen(kw_only=True)
class SessionOpenResult:
    """All a client needs to show a session."""

    session: Session  # with its epoch, when this process owns it now
    messages: tuple[Message, ...]  # the last ones, oldest first
    more: bool  # there are earlier messages
    snapshot: Snapshot  # what is uncertain
    queue: tuple[Queued, ...]  # prompts that wait
    damaged: Count  # number of damaged, missing or doubled records


@attrs.frozen(kw_only=True)
class SessionCloseParams:
    """Close a session; its turn is cancelled and waited for."""

    session_id: Id  # which one


@attrs.frozen(kw_only=True)
class SessionRenameParams:
    """Give a session a title."""

    session_id: Id  # which one
    title: str  # the user's


@attrs.frozen(kw_only=True)
class SessionDeleteParams:
    """Delete a session and its journal."""

    session_id: Id  # which one
    force: bool | None = None  # true: even with unresolved effects; absent is false


@attrs.frozen(kw_only=True)
class SessionForkParams:
    """A new session with the history of another."""

    session_id: Id  # the origin
    turn_id: Id | None = None  # the last turn taken over; absent for all
    title: str | None = None  # absent: made from the origin's


@attrs.frozen(kw_only=True)
class SessionExportParams:
    """A session as one text."""

    session_id: Id  # which one
    format: Literal["markdown", "json"]  # of the text


@attrs.frozen(kw_only=True)
class SessionExportResult:
    """The exported session."""

    text: str  # whole


@attrs.frozen(kw_only=True)
class SessionSetModeParams:
    """Set what passes without asking."""

    session_id: Id  # which one
    mode: Mode  # from the next call on


@attrs.frozen(kw_only=True)
class SessionSetModelParams:
    """Choose the model."""

    session_id: Id  # which one
    provider: str  # a word of the setting `model.provider`
    name: str  # the provider's own name for the model


@attrs.frozen(kw_only=True)
class Model:
    """A model that can be chosen."""

    provider: str  # a word of the setting `model.provider`
    name: str  # the provider's own name for the model
    window: Count | None = None  # tokens it can take; absent when not known


@attrs.frozen(kw_only=True)
class ModelListResult:
    """The models that can be chosen."""

    models: tuple[Model, ...]  # in the order to show


@attrs.frozen(kw_only=True)
class CheckpointListParams:
    """What can be rewound?"""

    session_id: Id  # which one


@attrs.frozen(kw_only=True)
class CheckpointTurn:
    """A turn one can go back to before."""

    turn_id: Id  # which one
    at: Time  # when it began
    prompt: str  # its text
    files: tuple[ChangedPath, ...]  # what its own calls changed


@attrs.frozen(kw_only=True)
class CheckpointListResult:
    """The turns one can go back to."""

    turns: tuple[CheckpointTurn, ...]  # oldest first


@attrs.frozen(kw_only=True)
class CheckpointRewindParams:
    """Go back to before a turn."""

    session_id: Id  # which one
    epoch: Id  # as in Session
    turn_id: Id  # the first turn to undo
    what: RewindWhat  # the agent's own file changes, the conversation, or both


@attrs.frozen(kw_only=True)
class LeftPath:
    """A path that was not touched."""

    path: str  # relative to the workspace with `/`, absolute if outside
    why: str  # one sentence


@attrs.frozen(kw_only=True)
class CheckpointRewindResult:
    """What the rewind did."""

    restored: tuple[ChangedPath, ...]  # paths as they were before the turn
    left: tuple[LeftPath, ...]  # paths the user changed since, and the like
    undo: Id  # turn id whose rewind takes this one back
    session: Session  # with a new epoch, when the conversation was rewound


@attrs.frozen(kw_only=True)
class UsageParams:
    """What did a session use?"""

    session_id: Id  # which one
