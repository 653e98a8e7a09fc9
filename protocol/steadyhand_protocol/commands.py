"""Arguments and answers of those `steadyhand.*` commands that are not about recovery.

They come by `workspace/executeCommand`, with an array of one object (or an empty one), and work in any LSP
client, with nothing of ours installed.
"""

from collections.abc import Mapping
from typing import Literal

import attrs

from steadyhand_protocol.values import ChangedPath, ClientMessageId, Count, Id, ModelChoice, Reason


@attrs.frozen(kw_only=True)
class AskArguments:
    """Of `steadyhand.ask`: a prompt; queued when a turn is running."""

    text: str  # the prompt
    session_id: Id | None = None  # absent: the one this command used last in this process, else a new one
    client_message_id: ClientMessageId | None = None  # absent: the server makes one
    wait: bool | None = None  # true or absent: answer at the end of the turn; false: at once


@attrs.frozen(kw_only=True)
class AskResult:
    """The turn; `text`, `reason` and `changed` are given when it was waited for."""

    session_id: Id  # the session it runs in
    turn_id: Id  # also while it is queued
    text: str | None = None  # the answer; absent when not waited for
    reason: Reason | None = None  # why it ended; absent when not waited for
    changed: tuple[ChangedPath, ...] | None = None  # the files it really changed; absent when not waited for


@attrs.frozen(kw_only=True)
class CancelArguments:
    """Of `steadyhand.cancel`: stop the session's turn."""

    session_id: Id  # whose turn


@attrs.frozen(kw_only=True)
class ProviderFinding:
    """What a look at the chosen provider found of one thing."""

    what: Literal["model", "key", "reachable", "window", "streaming", "calls"]  # the thing
    fine: bool  # whether it is as it should be
    text: str  # one sentence; what to do where it is not


@attrs.frozen(kw_only=True)
class DoctorResult:
    """How this installation stands; for people, so new members may come."""

    version: str  # of Steadyhand
    python: str  # of the interpreter
    paths: Mapping[str, str]  # what for → absolute path
    model: ModelChoice  # as the settings choose it
    journal: Mapping[str, str]  # what → one sentence, such as whether locks and syncs hold here
    provider: tuple[ProviderFinding, ...]  # in the order looked at; it stops where nothing more can work
    window: Count | None = None  # tokens the model can take; absent when not known
    notes: tuple[str, ...] | None = None  # sentences on what is to be known; absent when there is nothing
