"""THE table: every method, command and error of the wire, with the types of what it carries.

A method is `steadyhand/…`; a result of None makes it a notification. `built=False`: part of the contract,
answered with -32601 until its part is there. To add one, write its row here and its shapes in their room,
run `generate.py`, and put a golden message into `examples/`; the edge finds it by this table. Standard LSP
methods, among them `workspace/applyEdit`, are typed by lsprotocol and have no row.
"""

from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeAlias

import attrs

from steadyhand_protocol import approval, commands, recovery, refusals, session, turn, values

PROTOCOL_VERSION = 1
INVALID_PARAMS_CODE = -32602
METHOD_NOT_FOUND_CODE = -32601
CANCELLED_CODE = -32800

Direction: TypeAlias = Literal["to_server", "to_editor"]
Shape: TypeAlias = type[Any] | UnionType


@attrs.frozen
class Method:
    """One method: `name` in full, shape of `params`, shape of `result` (None: a notification)."""

    name: str
    params: type[Any]
    result: Shape | None
    direction: Direction
    since: int = 1
    built: bool = True


@attrs.frozen
class Command:
    """One command: `arguments` is the shape of the array's single element (None: the array is empty)."""

    name: str
    arguments: type[Any] | None
    result: type[Any]
    since: int = 1
    built: bool = True


@attrs.frozen
class Error:
    """One error answer: `kind` is the word in `data.kind`, `data` the shape of data."""

    kind: str
    code: int
    data: type[Any]


def _request(name: str, params: type[Any], result: Shape, *, built: bool = True) -> Method:
    return Method(f"steadyhand/{name}", params, result, "to_server", built=built)


def _tell(name: str, params: type[Any]) -> Method:
    return Method(f"steadyhand/{name}", params, None, "to_editor")


def _ask(name: str, params: type[Any], result: Shape) -> Method:
    return Method(f"steadyhand/{name}", params, result, "to_editor")


METHODS: tuple[Method, ...] = (
    # requests from the editor
    _request("session/create", session.SessionCreateParams, session.Session),
    _request("session/list", values.Nothing, session.SessionListResult),
    _request("session/open", session.SessionOpenParams, session.SessionOpenResult),
    _request("session/close", session.SessionCloseParams, values.Nothing),
    _request("session/rename", session.SessionRenameParams, session.Session),
    _request("session/delete", session.SessionDeleteParams, values.Nothing),
    _request("session/fork", session.SessionForkParams, session.Session, built=False),
    _request("session/export", session.SessionExportParams, session.SessionExportResult),
    _request("session/setMode", session.SessionSetModeParams, session.Session),
    _request("session/setModel", session.SessionSetModelParams, session.Session),
    _request("model/list", values.Nothing, session.ModelListResult),
    _request("turn/start", turn.TurnStartParams, turn.TurnStartResult),
    _request("turn/status", turn.TurnStatusParams, turn.TurnStatusResult),
    _request("turn/cancel", turn.TurnCancelParams, turn.CancelResult),
    _request("turn/events", turn.TurnEventsParams, turn.TurnEventsResult),
    _request("queue/edit", turn.QueueEditParams, turn.QueueResult),
    _request("queue/resume", turn.QueueResumeParams, turn.QueueResult),
    _request("recovery/snapshot", recovery.SnapshotParams, recovery.Snapshot),
    _request("recovery/resolve", recovery.ResolveParams, recovery.ResolveResult),
    _request("checkpoint/list", session.CheckpointListParams, session.CheckpointListResult),
    _request("checkpoint/rewind", session.CheckpointRewindParams, session.CheckpointRewindResult, built=False),
    _request("usage", session.UsageParams, values.Usage),
    # notifications to the editor
    _tell("turn/event", turn.TurnEvent),
    _tell("recovery/changed", recovery.Snapshot),
    _tell("session/changed", session.Session),
    _tell("queue/changed", turn.QueueChanged),
    # requests to the editor
    _ask("permission/ask", approval.PermissionAskParams, approval.PermissionAnswer),
    _ask("user/ask", approval.UserAskParams, approval.UserAnswer),
    _ask("document/save", approval.DocumentSaveParams, approval.DocumentSaveResult),
    _ask("secret/get", approval.SecretGetParams, approval.SecretGetResult),
)

BY_NAME: Mapping[str, Method] = MappingProxyType({method.name: method for method in METHODS})

_RESOLVING = ("inspect", "confirm", "reject", "waive", "retry", "restore")

COMMANDS: tuple[Command, ...] = (
    Command("steadyhand.recovery.list", recovery.RecoveryListArguments, recovery.RecoveryListResult),
    *(
        Command(f"steadyhand.recovery.{action}", recovery.RecoveryArguments, recovery.ResolveResult)
        for action in _RESOLVING
    ),
    Command(
        "steadyhand.recovery.endSurvivors",
        recovery.EndSurvivorsArguments,
        recovery.EndSurvivorsResult,
    ),
    Command("steadyhand.permissions.list", None, approval.PermissionsResult),
    Command("steadyhand.permissions.forget", approval.PermissionsForgetArguments, approval.PermissionsResult),
    Command("steadyhand.ask", commands.AskArguments, commands.AskResult),
    Command("steadyhand.cancel", commands.CancelArguments, turn.CancelResult),
    Command("steadyhand.doctor", None, commands.DoctorResult),
)

COMMANDS_BY_NAME: Mapping[str, Command] = MappingProxyType({command.name: command for command in COMMANDS})

ERROR_KINDS: tuple[Error, ...] = (
    Error("unknownSession", -32050, refusals.UnknownSession),
    Error("staleEpoch", -32051, refusals.StaleEpoch),
    Error("turnRunning", -32052, refusals.TurnRunning),
    Error("staleSnapshot", -32053, refusals.StaleSnapshot),
    Error("inspectFirst", -32054, refusals.InspectFirst),
    Error("alreadyResolved", -32055, refusals.AlreadyResolved),
    Error("retryDisabled", -32056, refusals.RetryDisabled),
    Error("retryUnsafe", -32057, refusals.RetryUnsafe),
    Error("notOwner", -32058, refusals.NotOwner),
    Error("journalBroken", -32059, refusals.JournalBroken),
    Error("recoveryRequired", -32060, refusals.RecoveryRequired),
    Error("notOffered", -32061, refusals.NotOffered),
)

ERRORS: Mapping[str, int] = MappingProxyType({error.kind: error.code for error in ERROR_KINDS})
