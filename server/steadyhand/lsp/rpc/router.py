"""Routes a request to the function that answers it, with checked params.

Own methods and commands are in tables of `steadyhand_protocol`, standard methods in `lsp_types`. `route` raises
RpcError for a method that is unknown or not built, and for params of a wrong form. Own params and arguments of commands
are strict; standard objects ignore unknown fields.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.rpc.errors import params_error, unknown_method_error
from steadyhand.lsp.rpc.lsp_converter import Misfits, structure, unstructure
from steadyhand.lsp.rpc.messages import ABSENT, Notification, Request
from steadyhand_protocol import methods, wire
from steadyhand_values import frozen

OWN = "steadyhand/"
RECOVERY = ("steadyhand/recovery/", "steadyhand.recovery.")
RECOVERY_BYTES_MAX = 16 * 1024
"""Of the params or arguments of methods and commands that decide about an uncertain effect, as compact JSON (A3)."""

Answerer = Callable[[Any], Awaitable[object]]
"""Takes the structured params and returns the result. Raises Refused."""


@frozen
class Invocation:
    """What runs for one request, and how its result becomes JSON."""

    run: Callable[[], Awaitable[object]]
    to_json: Callable[[object], object]


class Router:
    """The functions that answer, by method or command. Features register theirs at `initialize` at the latest."""

    def __init__(self) -> None:
        self.own: dict[str, Answerer] = {}
        self.commands: dict[str, Answerer] = {}
        self.standard: dict[str, Answerer] = {}  # requests and notifications

    def route(self, request: Request) -> Invocation:
        """Return what runs for a request. Raises RpcError."""
        if request.method == types.WORKSPACE_EXECUTE_COMMAND:
            return self._route_command(request)
        if request.method.startswith(OWN):
            return self._route_own(request)
        answerer = self.standard.get(request.method)
        if answerer is None or not types.METHODS[request.method].request:
            raise unknown_method_error(request.method)
        return Invocation(partial(answerer, self.standard_params(request)), unstructure)

    def _route_own(self, request: Request) -> Invocation:
        row = methods.BY_NAME.get(request.method)
        answerer = self.own.get(request.method)
        if row is None or answerer is None or not row.built:
            raise unknown_method_error(request.method)
        json_value = {} if request.params is ABSENT else request.params
        params = _structure_own(
            partial(wire.structure, row.params), json_value, f"params of {request.method}", "$", _bytes_max(row.name)
        )
        return Invocation(partial(answerer, params), wire.unstructure)

    def _route_command(self, request: Request) -> Invocation:
        subject = f"params of {request.method}"
        params = _as_object(request.params, subject)
        name = params.get("command")
        row = methods.COMMANDS_BY_NAME.get(name) if isinstance(name, str) else None
        if row is None:
            raise params_error(subject, [("$.command", "expected the name of a command")])
        answerer = self.commands.get(row.name)
        if answerer is None or not row.built:
            raise params_error(subject, [("$.command", "not built yet")])
        read = partial(wire.structure_arguments, row.arguments)
        value = _structure_own(
            read, params.get("arguments"), f"arguments of {row.name}", "$.arguments", _bytes_max(row.name)
        )
        return Invocation(partial(answerer, value), wire.unstructure)

    def standard_params(self, message: Request | Notification) -> Any:
        """Return params in their type of LSP; None for a method that has none. Raises RpcError."""
        subject = f"params of {message.method}"
        kind = types.METHODS[message.method].params
        if not kind:
            if message.params is not ABSENT and message.params is not None:
                _as_object(message.params, subject)
            return None
        params = _as_object(message.params, subject)
        try:
            return structure(kind, params)
        except Misfits as misfits:
            raise params_error(subject, misfits.errors()) from misfits


def _as_object(params: object, subject: str) -> dict[str, Any]:
    if params is ABSENT:
        return {}
    if not isinstance(params, dict):
        raise params_error(subject, [("$", "expected an object")])
    return params


def _structure_own(
    structure: Callable[[Any], Any], json_value: object, subject: str, root: str, bytes_max: int | None = None
) -> Any:
    """Structure params or arguments of our own. Raises RpcError with paths that begin at `root`."""
    try:
        if bytes_max is not None and _compact_bytes(json_value) > bytes_max:
            raise params_error(subject, [(root, f"larger than {bytes_max} bytes")])
        return structure(json_value)
    except wire.WireError as error:
        found = [(root + each.path.removeprefix("$"), each.message) for each in error.errors]
        raise params_error(subject, found) from error
    except RecursionError as error:
        raise params_error(subject, [(root, "nested too deeply")]) from error


def _bytes_max(name: str) -> int | None:
    return RECOVERY_BYTES_MAX if name.startswith(RECOVERY) else None


def _compact_bytes(json_value: object) -> int:
    return len(json.dumps(json_value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))
