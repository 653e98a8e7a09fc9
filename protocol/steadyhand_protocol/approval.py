"""What the server asks the editor: permission, a question, a save, a secret.

Each is sent only to a client that declared it under `capabilities.experimental.steadyhand` of `initialize`;
other clients get `window/showMessageRequest` instead. An answer is structured as strictly as a request: one
that does not fit counts as no answer. `workspace/applyEdit` is standard LSP and is typed there.
"""

from typing import Literal, TypeAlias

import attrs

from steadyhand_protocol.recovery import Uncertain
from steadyhand_protocol.values import Id, Time

OptionId: TypeAlias = Literal["once", "session", "workspace", "user", "reject", "inspect", "confirm", "waive", "refuse"]


@attrs.frozen(kw_only=True)
class PermissionOption:
    """One answer the user can choose."""

    id: OptionId  # what goes back in `option`
    label: str  # text of the button


@attrs.frozen(kw_only=True)
class PermissionAskParams:
    """May this call go on? Asked before it starts; held back when `uncertain` is there."""

    ask_id: Id  # of this question
    session_id: Id  # whose call it is
    turn_id: Id  # whose call it is
    call_id: Id  # whose call it is
    tool: str  # canonical tool name
    title: str  # tool and path, or program
    arguments: str  # canonical JSON text
    text: str | None = None  # what will happen and why it is asked, in plain sentences; the server always gives it
    diff: str | None = None  # unified diff of what a file tool would write; absent for other tools
    uncertain: tuple[Uncertain, ...] | None = None  # what holds the call back; absent when nothing
    options: tuple[PermissionOption, ...]  # only one of these may be answered


@attrs.frozen(kw_only=True)
class PermissionAnswer:
    """The user's choice."""

    option: OptionId  # id of one of the options offered
    note: str | None = None  # what the user wants the model to know; absent when nothing


@attrs.frozen(kw_only=True)
class StandingGrant:
    """Something that passes without asking by the user's word, until it is taken back."""

    grant_id: Id  # names it for `steadyhand.permissions.forget`
    lasts: Literal["session", "workspace", "user"]  # how far it reaches; user: every workspace
    tool: str  # canonical tool name
    at: Time | None = None  # when it was given; absent for a session's
    session_id: Id | None = None  # whose it is; for a session's
    workspace: str | None = None  # absolute folder; for a workspace's
    command: str | None = None  # the very command; absent for a file tool
    cwd: str | None = None  # its folder, from the workspace on, absolute for a session's; absent for a file tool


@attrs.frozen(kw_only=True)
class PermissionsForgetArguments:
    """Of `steadyhand.permissions.forget`."""

    grant_id: Id  # as the list gave it


@attrs.frozen(kw_only=True)
class PermissionsResult:
    """Of `steadyhand.permissions.list` and `.forget`: what stands now."""

    grants: tuple[StandingGrant, ...]  # of the open sessions, then those remembered beyond one, oldest first


@attrs.frozen(kw_only=True)
class UserAskParams:
    """A question of the model to the user."""

    ask_id: Id  # of this question
    session_id: Id  # whose turn asks
    turn_id: Id  # the turn that waits
    question: str  # plain text
    options: tuple[str, ...] | None = None  # proposed answers; absent for a free text


@attrs.frozen(kw_only=True)
class UserAnswered:
    """The user answered."""

    answer: str  # the text, or the option chosen


@attrs.frozen(kw_only=True)
class UserDismissed:
    """The user closed the question without an answer."""

    dismissed: Literal[True] = True  # always true


UserAnswer: TypeAlias = UserAnswered | UserDismissed


@attrs.frozen(kw_only=True)
class DocumentSaveParams:
    """Save this document, if it still has this version."""

    uri: str  # of an open document
    version: int  # the version the server means: the latest it was told of


@attrs.frozen(kw_only=True)
class DocumentSaveResult:
    """Whether it is on disk now."""

    saved: bool  # false when the version differs or the save failed


@attrs.frozen(kw_only=True)
class SecretGetParams:
    """A secret from the editor's own store."""

    name: str  # as the setting names it


@attrs.frozen(kw_only=True)
class SecretGetResult:
    """The secret, never logged."""

    value: str | None = None  # absent when the store has none
