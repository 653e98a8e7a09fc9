"""Arguments and results of the `steadyhand.*` commands that are not about recovery.

They arrive by `workspace/executeCommand`, with an array of one object (or an empty array). They work in any LSP client
without an extension of ours.
"""

from collections.abc import Mapping
from typing import Literal

from steadyhand_protocol.values import ChangedPath, ClientMessageId, Count, Id, ModelChoice, Reason
from steadyhand_values import frozen


@frozen(kw_only=True)
class AskArguments:
    """Arguments of `steadyhand.ask`: a prompt, which is queued while a turn runs."""

    text: str  # the prompt
    session_id: Id | None = None  # absent: the session this command used last in this process, else a new one
    client_message_id: ClientMessageId | None = None  # absent: the server makes one
    wait: bool | None = None  # true or absent: answer at the end of the turn; false: answer at once


@frozen(kw_only=True)
class AskResult:
    """The turn and, if the command waited for its end, the answer."""

    session_id: Id  # session of the turn
    turn_id: Id  # also given for a queued prompt
    text: str | None = None  # the answer; absent if the command did not wait
    reason: Reason | None = None  # why the turn ended; absent if the command did not wait
    changed: tuple[ChangedPath, ...] | None = None  # files that the turn really changed; absent if not waited for


@frozen(kw_only=True)
class CancelArguments:
    """Arguments of `steadyhand.cancel`: stop the session's turn."""

    session_id: Id  # session of the turn


@frozen(kw_only=True)
class ProviderFinding:
    """The result of checking one thing of the chosen provider."""

    what: Literal["model", "key", "reachable", "window", "streaming", "calls"]  # the thing that was checked
    fine: bool  # whether the thing is as it should be
    text: str  # one sentence; it says what to do when the thing is not fine


@frozen(kw_only=True)
class DoctorSandbox:
    """What confines the commands of the model here."""

    mode: Literal["auto", "required", "off"]  # the setting `sandbox.mode`
    kind: Literal["bubblewrap", "landlock", "none"]  # what confines them
    network: Literal["deny", "allow"]  # the setting `sandbox.network`
    sealed: bool  # whether a command can have a scope and a check
    why: str | None = None  # why it is not bubblewrap, or why it is not sealed; one sentence


@frozen(kw_only=True)
class DoctorRetention:
    """Stored contents that nobody needs any more, over all sessions."""

    named: Count  # how many a later start may remove
    removed: Count  # how many were removed so far


@frozen(kw_only=True)
class DoctorResult:
    """The state of this installation. It is for people, so new members may be added."""

    version: str  # version of Steadyhand
    python: str  # version of the interpreter
    paths: Mapping[str, str]  # purpose → absolute path
    model: ModelChoice  # as the settings choose it
    journal: Mapping[str, str]  # check → one sentence, such as whether locks and syncs work on this disk
    sandbox: DoctorSandbox  # what confines commands
    retention: DoctorRetention  # of old contents
    provider: tuple[ProviderFinding, ...]  # in the order of the checks; they stop when the next thing cannot work
    window: Count | None = None  # tokens that the model can take; absent when unknown
    notes: tuple[str, ...] | None = None  # sentences for the user; absent when there are none
