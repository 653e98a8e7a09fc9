"""Requests of the server to the editor (permission, a question, a save, an encoding, a secret), and standing grants.

Each request is sent only to a client that declares it under `capabilities.experimental.steadyhand` of `initialize`.
Other clients get `window/showMessageRequest` instead. Answers are checked as strictly as requests; a malformed one
counts as no answer. `workspace/applyEdit` is standard LSP and has its types there.
"""

from typing import Literal, TypeAlias

from steadyhand_protocol.recovery import Uncertain
from steadyhand_protocol.values import Id, Time
from steadyhand_values import frozen

OptionId: TypeAlias = Literal["once", "session", "workspace", "user", "reject", "inspect", "confirm", "waive", "refuse"]


@frozen(kw_only=True)
class PermissionOption:
    """One answer the user can choose."""

    id: OptionId  # goes back in `option`
    label: str  # text of the button


@frozen(kw_only=True)
class PermissionAskParams:
    """May this call run? Asked before it starts; `uncertain` is given when the call is held back."""

    ask_id: Id  # id of this question
    session_id: Id  # session of the call
    turn_id: Id  # turn of the call
    call_id: Id  # the call
    tool: str  # canonical tool name
    title: str  # tool and path, or program
    arguments: str  # JSON text, canonical where it has a canonical form
    text: str | None = None  # what the call will do and why it asks, in plain sentences; the server always gives it
    diff: str | None = None  # unified diff of what a file tool will write; absent for other tools
    uncertain: tuple[Uncertain, ...] | None = None  # the effects that hold the call back; absent when nothing does
    options: tuple[PermissionOption, ...]  # the answer must be one of these


@frozen(kw_only=True)
class PermissionAnswer:
    """The user's choice."""

    option: OptionId  # id of one of the options
    note: str | None = None  # text for the model; absent when there is none


@frozen(kw_only=True)
class StandingGrant:
    """A permission that lasts until the user takes it back."""

    grant_id: Id  # the id that `steadyhand.permissions.forget` takes
    lasts: Literal["session", "workspace", "user"]  # how far it reaches; "user" is every workspace
    tool: str  # canonical tool name
    at: Time | None = None  # when it was given; absent for a grant of the session
    session_id: Id | None = None  # its session; only for a grant of the session
    workspace: str | None = None  # absolute folder; only for a grant of one workspace
    command: str | None = None  # the exact command; absent for a file tool
    cwd: str | None = None  # its folder: absolute for a session, else relative to the workspace; absent for a file tool
    unconfined: Literal[True] | None = None  # true: it covers the command outside the sandbox too; absent otherwise


@frozen(kw_only=True)
class PermissionsForgetArguments:
    """Arguments of `steadyhand.permissions.forget`."""

    grant_id: Id  # an id from the list


@frozen(kw_only=True)
class PermissionsResult:
    """Result of `steadyhand.permissions.list` and `.forget`: the grants that exist now."""

    grants: tuple[StandingGrant, ...]  # those of open sessions, then those beyond one session, oldest first


@frozen(kw_only=True)
class UserAskParams:
    """A question of the model to the user."""

    ask_id: Id  # id of this question
    session_id: Id  # session of the turn
    turn_id: Id  # the turn that waits
    question: str  # plain text
    options: tuple[str, ...] | None = None  # proposed answers; absent for free text


@frozen(kw_only=True)
class UserAnswered:
    """The user answered."""

    answer: str  # the text, or the chosen option


@frozen(kw_only=True)
class UserDismissed:
    """The user closed the question without an answer."""

    dismissed: Literal[True] = True  # always true


UserAnswer: TypeAlias = UserAnswered | UserDismissed


@frozen(kw_only=True)
class DocumentSaveParams:
    """Save this document if it still has this version."""

    uri: str  # of an open document
    version: int  # the latest version that the server knows


@frozen(kw_only=True)
class DocumentSaveResult:
    """Whether it is on disk now."""

    saved: bool  # false when the version differs or the save failed


@frozen(kw_only=True)
class DocumentEncodingParams:
    """In which encoding does the editor read and save this open document?"""

    uri: str  # file URI of the document


@frozen(kw_only=True)
class DocumentEncodingResult:
    """The encoding of the document."""

    encoding: str | None = None  # the editor's name for it; absent where it does not know, or has not opened it


@frozen(kw_only=True)
class SecretGetParams:
    """Read a secret from the editor's own store."""

    name: str  # word of the provider


@frozen(kw_only=True)
class SecretGetResult:
    """The secret; it is never logged."""

    value: str | None = None  # absent when the store has none
