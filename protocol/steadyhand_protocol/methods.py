"""The table of the wire: every method, command and error, with the types of what it carries.

A method is `steadyhand/…`; without a result it is a notification. `built=False` means that it is part of the contract
and is answered with -32601 until the server supports it. To add one, add its row here and its shapes to their module,
run `generate.py`, and add a golden message to `examples/`; the `lsp` package finds it by this table. Standard LSP
methods, including `workspace/applyEdit`, have types in lsprotocol and no row here.
"""

from collections.abc import Mapping
from types import MappingProxyType, UnionType
from typing import Any, Literal, TypeAlias

from steadyhand_protocol import approval, commands, recovery, refusals, review, session, turn, values
from steadyhand_values import frozen

PROTOCOL_VERSION = 1
INVALID_PARAMS_CODE = -32602
METHOD_NOT_FOUND_CODE = -32601
CANCELLED_CODE = -32800

Direction: TypeAlias = Literal["to_server", "to_editor"]
Shape: TypeAlias = type[Any] | UnionType


@frozen
class Method:
    """One method. `name` is the full name; `result` None: it is a notification."""

    name: str
    params: type[Any]
    result: Shape | None
    direction: Direction
    since: int = 1  # first protocol version that has it
    built: bool = True  # False: the server does not support it yet


@frozen
class Command:
    """One command. `arguments` is the shape of the array's only element; None: the array is empty."""

    name: str
    arguments: type[Any] | None
    result: type[Any]
    since: int = 1  # first protocol version that has it
    built: bool = True  # False: the server does not support it yet


@frozen
class Error:
    """One kind of error answer. `kind` is the word in `data.kind`; `data` is the shape of `data`."""

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
    _request("session/rebind", session.SessionRebindParams, session.Session),
    _request("session/rename", session.SessionRenameParams, session.Session),
    _request("session/delete", session.SessionDeleteParams, values.Nothing),
    _request("session/fork", session.SessionForkParams, session.Session),
    _request("session/compact", session.SessionCompactParams, session.SessionCompactResult),
    _request("session/export", session.SessionExportParams, session.SessionExportResult),
    _request("session/setMode", session.SessionSetModeParams, session.Session),
    _request("session/setModel", session.SessionSetModelParams, session.Session),
    _request("model/list", values.Nothing, session.ModelListResult),
    _request("model/check", session.ModelCheckParams, session.ModelCheckResult),
    _request("turn/start", turn.TurnStartParams, turn.TurnStartResult),
    _request("turn/revise", session.TurnReviseParams, session.TurnReviseResult),
    _request("turn/steer", session.TurnSteerParams, session.TurnSteerResult),
    _request("turn/status", turn.TurnStatusParams, turn.TurnStatusResult),
    _request("turn/cancel", turn.TurnCancelParams, turn.CancelResult),
    _request("turn/events", turn.TurnEventsParams, turn.TurnEventsResult),
    _request("queue/edit", turn.QueueEditParams, turn.QueueResult),
    _request("queue/resume", turn.QueueResumeParams, turn.QueueResult),
    _request("recovery/snapshot", recovery.SnapshotParams, recovery.Snapshot),
    _request("recovery/resolve", recovery.ResolveParams, recovery.ResolveResult),
    _request("checkpoint/list", session.CheckpointListParams, session.CheckpointListResult),
    _request("checkpoint/rewind", session.CheckpointRewindParams, session.CheckpointRewindResult),
    _request("usage", session.UsageParams, values.Usage),
    _request("review/list", review.ReviewListParams, review.ReviewListResult),
    _request("review/resolve", review.ReviewResolveParams, review.ReviewResolveResult),
    # notifications to the editor
    _tell("turn/event", turn.TurnEvent),
    _tell("recovery/changed", recovery.Snapshot),
    _tell("session/changed", session.Session),
    _tell("queue/changed", turn.QueueChanged),
    # requests to the editor
    _ask("permission/ask", approval.PermissionAskParams, approval.PermissionAnswer),
    _ask("user/ask", approval.UserAskParams, approval.UserAnswer),
    _ask("document/save", approval.DocumentSaveParams, approval.DocumentSaveResult),
    _ask("document/encoding", approval.DocumentEncodingParams, approval.DocumentEncodingResult),
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
    Command("steadyhand.review.keep", review.ReviewArguments, review.ReviewResolveResult),
    Command("steadyhand.review.undo", review.ReviewArguments, review.ReviewResolveResult),
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
