"""Sessions on the wire: the list, opening and closing, messages, models, checkpoints, usage.

A Session is a view of a journal and is sent whole whenever it changes. It has an `epoch` only while this process owns
the session, and only then can the session be written.
"""

from typing import Literal, TypeAlias

from steadyhand_protocol.recovery import Snapshot
from steadyhand_protocol.turn import Attachments, Call, Queued
from steadyhand_protocol.values import (
    AfterCompaction,
    BeforeCompaction,
    ChangedPath,
    ClientMessageId,
    Count,
    Id,
    Mode,
    ModelChoice,
    ReadOnly,
    Time,
)
from steadyhand_values import frozen

RewindWhat: TypeAlias = Literal["files", "conversation", "both"]
RewindLeftWhy: TypeAlias = Literal["changed", "unsaved", "uncertain", "large", "expired", "io", "command", "inPlace"]


@frozen(kw_only=True)
class Job:
    """A background command without a recorded end. It has no effect of its own and is never uncertain."""

    job_id: Id  # made by the server; `/jobs stop` takes it
    attempt_id: Id  # of the call that started it; its processes carry it as their mark
    call_id: Id  # the call that started it
    title: str  # tool and the program's name
    state: Literal["runs", "left", "untold"]  # "left": outlived a crash; "untold": not known whether it runs
    pid: Count  # of its shell


@frozen(kw_only=True)
class SessionOrigin:
    """What a session was forked from."""

    session_id: Id  # the origin
    turn_id: Id | None = None  # the last turn that was copied; absent: the whole history


@frozen(kw_only=True)
class Session:
    """One conversation bound to one workspace."""

    session_id: Id  # made by the server
    path: str  # the session's folder, absolute
    title: str  # empty while titleSource is "none"
    title_source: Literal["none", "auto", "user"]  # a title of the user is never overwritten
    epoch: Id | None = None  # absent unless this process owns it
    workspace: str | None = None  # Uri of the folder that it is bound to; absent without a folder
    workspace_gone: bool | None = None  # true: it is open here, and nothing is at its folder's path
    created: Time  # when its first record was written
    updated: Time  # when its last record was written
    mode: Mode  # what may run without a question
    model: ModelChoice  # for its next request
    busy: bool  # a turn is running or parked
    parked: bool  # the turn's only open work is a question to the user
    uncertain: Count  # number of attempts that need a decision
    read_only: ReadOnly | None = None  # absent when the session can be written
    jobs: tuple[Job, ...] | None = None  # background commands of an open session; absent when none
    origin: SessionOrigin | None = None  # of a fork; absent otherwise


@frozen(kw_only=True)
class CompactionNote:
    """What a compaction made of the conversation."""

    before: BeforeCompaction  # what went to the model before
    after: AfterCompaction  # what went to it right after
    automatic: bool  # false: somebody asked for it


@frozen(kw_only=True)
class Message:
    """One message of the conversation. The reply of a tool is in its Call."""

    message_id: Id  # made by the server
    turn_id: Id  # the turn it belongs to; of a notice outside a turn the latest one, or an id of no turn
    role: Literal["user", "assistant", "notice"]  # who speaks; "notice" is Steadyhand
    at: Time  # when it was recorded
    text: str  # may be empty when there are calls
    reasoning: str | None = None  # what the model thought before; absent when there is none
    attachments: Attachments | None = None  # of a user message; absent when none
    client_message_id: ClientMessageId | None = None  # of a user message; absent otherwise
    calls: tuple[Call, ...] | None = None  # of an assistant message, in the order of the model; absent when none
    again: Id | None = None  # of a user message: the turn whose failed request it sent again; absent otherwise
    compaction: CompactionNote | None = None  # of a notice in the place of an earlier part; absent otherwise


@frozen(kw_only=True)
class SessionCreateParams:
    """Create a session and open it."""

    title: str | None = None  # absent: no title until one is made
    workspace: str | None = None  # Uri of one of the client's folders; absent: the first one


@frozen(kw_only=True)
class SessionListResult:
    """All sessions in the state directory."""

    sessions: tuple[Session, ...]  # newest first


@frozen(kw_only=True)
class SessionOpenParams:
    """Open a session, or read an open one again."""

    session_id: Id  # the session
    tail: Count | None = None  # number of messages from the end; absent is 200


@frozen(kw_only=True)
class SessionOpenResult:
    """Everything that a client needs to show a session."""

    session: Session  # with its epoch when this process owns it
    messages: tuple[Message, ...]  # the last ones, oldest first
    more: bool  # whether there are earlier messages
    snapshot: Snapshot  # what is uncertain
    queue: tuple[Queued, ...]  # prompts that wait
    damaged: Count  # number of damaged, missing or doubled records


@frozen(kw_only=True)
class SessionCloseParams:
    """Close a session. Its turn is cancelled, and the answer waits for the turn's end."""

    session_id: Id  # the session


@frozen(kw_only=True)
class SessionRebindParams:
    """Bind a session to another folder, because its own is gone or has another path now."""

    session_id: Id  # the session
    workspace: str  # Uri of one of the client's folders


@frozen(kw_only=True)
class SessionRenameParams:
    """Give a session a title."""

    session_id: Id  # the session
    title: str  # the user's title


@frozen(kw_only=True)
class SessionDeleteParams:
    """Delete a session and its journal."""

    session_id: Id  # the session
    force: bool | None = None  # true: delete even with unresolved effects; absent is false


@frozen(kw_only=True)
class SessionForkParams:
    """Create a session with the history of another one."""

    session_id: Id  # the origin
    turn_id: Id | None = None  # the last turn to copy; absent: all
    title: str | None = None  # absent: made from the origin's title


@frozen(kw_only=True)
class SessionExportParams:
    """Export a session as one text."""

    session_id: Id  # the session
    format: Literal["markdown", "json"]  # of the text
    redact: bool | None = None  # true: credentials are hidden; absent is false, and the text is as it was


@frozen(kw_only=True)
class SessionExportResult:
    """The exported session."""

    text: str  # the whole session


@frozen(kw_only=True)
class SessionSetModeParams:
    """Set what may run without a question."""

    session_id: Id  # the session
    mode: Mode  # holds from the next call on


@frozen(kw_only=True)
class SessionSetModelParams:
    """Choose the model of a session."""

    session_id: Id  # the session
    provider: str  # a value of the setting `model.provider`
    name: str  # the provider's own name for the model


@frozen(kw_only=True)
class Model:
    """A model that can be chosen."""

    provider: str  # a value of the setting `model.provider`
    name: str  # the provider's own name for the model
    window: Count | None = None  # tokens that it can take; absent when unknown


@frozen(kw_only=True)
class ModelListResult:
    """The models that can be chosen."""

    models: tuple[Model, ...]  # in the order to show


@frozen(kw_only=True)
class ModelCheckParams:
    """Try a provider with settings that are not in force. Nothing is changed or remembered."""

    provider: str  # a value of the setting `model.provider`
    name: str | None = None  # the provider's own name for a model; absent: its usual one
    base_url: str | None = None  # its address; absent: its own
    api_key_env: str | None = None  # the variable with its key; absent: its usual one, then the editor's secret store


@frozen(kw_only=True)
class ModelCheckResult:
    """What a list of models and one small request have shown."""

    ok: bool  # whether the model answered; without a model: whether the provider listed its models
    models: tuple[Model, ...] | None = None  # what the provider offers; absent when it does not tell
    text: str  # what was found; where it is not ok, what to do


@frozen(kw_only=True)
class CheckpointListParams:
    """List the turns that can be rewound."""

    session_id: Id  # the session


@frozen(kw_only=True)
class CheckpointTurn:
    """A turn that changed files and can be rewound."""

    turn_id: Id  # the turn
    at: Time  # when it began
    prompt: str  # text of its prompt
    files: tuple[ChangedPath, ...]  # files that its own calls changed
    expired: Literal[True] | None = None  # given: a content from before it is no longer stored
    undone: Literal[True] | None = None  # given: a rewind took its files back


@frozen(kw_only=True)
class CheckpointListResult:
    """The turns that can be rewound."""

    turns: tuple[CheckpointTurn, ...]  # oldest first


@frozen(kw_only=True)
class CheckpointRewindParams:
    """Undo this turn and all later ones."""

    session_id: Id  # the session
    epoch: Id  # same as Session.epoch
    turn_id: Id  # the first turn to undo
    what: RewindWhat  # the agent's own file changes, the conversation, or both


@frozen(kw_only=True)
class LeftPath:
    """What a rewind left as it is."""

    path: str  # relative to the workspace with `/`, absolute if outside; for a command its title
    why: RewindLeftWhy  # why it was left


@frozen(kw_only=True)
class CheckpointRewindResult:
    """The result of a rewind."""

    restored: tuple[ChangedPath, ...]  # paths that are as they were before the turn
    left: tuple[LeftPath, ...]  # paths that were left, for example because the user changed them since
    undo: Id  # turn id whose rewind undoes this one
    session: Session  # with a new epoch when the conversation was rewound


@frozen(kw_only=True)
class TurnReviseParams:
    """Send another prompt in the place of an earlier one; what followed that one is gone, and files stay."""

    session_id: Id  # the session
    epoch: Id  # same as Session.epoch
    turn_id: Id  # the turn whose prompt is replaced
    client_message_id: ClientMessageId  # made by the client; the same id again runs nothing
    text: str  # the new prompt; no slash command. The attachments of the earlier one stay


@frozen(kw_only=True)
class TurnReviseResult:
    """The prompt is durable and its turn has begun."""

    turn_id: Id  # the new turn
    accepted: Literal[True] = True  # always true
    duplicate: bool  # this client message id was known already
    session: Session  # with a new epoch


@frozen(kw_only=True)
class SessionCompactParams:
    """Replace the earlier conversation by a summary, as far as the model is concerned."""

    session_id: Id  # the session
    epoch: Id  # same as Session.epoch
    focus: str | None = None  # what the summary should keep, at most 2,000 characters; absent: nothing in particular


@frozen(kw_only=True)
class SessionCompactResult:
    """What the compaction came to."""

    compacted: bool  # whether it was committed
    why: Literal["short", "changed", "refused", "cost", "cancelled"] | None = None  # why it was not; absent if it was
    before: BeforeCompaction | None = None  # what went to the model before; absent if nothing was committed
    after: AfterCompaction | None = None  # what goes to it from here on; absent if nothing was committed


@frozen(kw_only=True)
class TurnSteerParams:
    """Send a text for a turn that runs. The next request of that turn takes it; it begins no turn while that runs."""

    session_id: Id  # the session
    epoch: Id  # same as Session.epoch
    turn_id: Id  # the turn to steer
    client_message_id: ClientMessageId  # made by the client; the same id again runs nothing
    text: str  # at most 64 KiB; of the slash commands only `/stop` and `/recovery`, which run beside the turn


@frozen(kw_only=True)
class TurnSteerResult:
    """The text is durable."""

    accepted: Literal[True] = True  # always true
    duplicate: bool  # this client message id was known already
    queued: bool  # the turn has ended, so that the text is a prompt; paused unless the turn ended as "done"


@frozen(kw_only=True)
class UsageParams:
    """Read what a session used."""

    session_id: Id  # the session
