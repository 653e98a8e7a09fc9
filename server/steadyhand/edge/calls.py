"""What a request comes to: by our table, by the table of commands, or by lsprotocol's types.

A request becomes a `Call` only when its method is there and built and its params fit; everything else is a `Failed`
with its code and, for params, the places that do not fit. Own params and arguments of commands are strict;
standard objects ignore unknown fields.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import attrs
import cattrs
from lsprotocol import types

from steadyhand.edge.failures import invalid, not_found
from steadyhand.edge.messages import ABSENT, Notice, Request
from steadyhand.edge.shapes import misfits
from steadyhand_protocol import methods, wire

OWN = "steadyhand/"
RECOVERY = ("steadyhand/recovery/", "steadyhand.recovery.")
recovery_bytes_max = 16 * 1024
"""Of the params or arguments of whatever decides about an uncertain effect, as compact JSON (row A3)."""

Answerer = Callable[[Any], Awaitable[object]]
"""Takes the structured params, gives the result; raises Refused."""


@attrs.frozen
class Call:
    """The work of one request, and how its result becomes JSON."""

    run: Callable[[], Awaitable[object]]
    to_json: Callable[[object], object]


class Calls:
    """Who answers what; filled before anything is received."""

    def __init__(self, converter: cattrs.Converter) -> None:
        self._converter = converter
        self.own: dict[str, Answerer] = {}
        self.commands: dict[str, Answerer] = {}
        self.standard: dict[str, Answerer] = {}  # requests and notifications

    def of(self, request: Request) -> Call:
        """What a request comes to. Raises Failed for what cannot be run."""
        if request.method == types.WORKSPACE_EXECUTE_COMMAND:
            return self._command_call(request)
        if request.method.startswith(OWN):
            return self._own_call(request)
        answerer = self.standard.get(request.method)
        if answerer is None or types.METHOD_TO_TYPES[request.method][1] is None:
            raise not_found(request.method)
        return Call(partial(answerer, self.standard_params(request)), self._converter.unstructure)

    def _own_call(self, request: Request) -> Call:
        row = methods.BY_NAME.get(request.method)
        answerer = self.own.get(request.method)
        if row is None or answerer is None or not row.built:
            raise not_found(request.method)
        given = {} if request.params is ABSENT else request.params
        params = _strict(
            partial(wire.structure, row.params), given, f"params of {request.method}", "$", _bound(row.name)
        )
        return Call(partial(answerer, params), wire.unstructure)

    def _command_call(self, request: Request) -> Call:
        subject = f"params of {request.method}"
        params = _as_object(request.params, subject)
        name = params.get("command")
        row = methods.COMMANDS_BY_NAME.get(name) if isinstance(name, str) else None
        if row is None:
            raise invalid(subject, [("$.command", "expected the name of a command")])
        answerer = self.commands.get(row.name)
        if answerer is None or not row.built:
            raise invalid(subject, [("$.command", "not built yet")])
        read = partial(wire.structure_arguments, row.arguments)
        value = _strict(read, params.get("arguments"), f"arguments of {row.name}", "$.arguments", _bound(row.name))
        return Call(partial(answerer, value), wire.unstructure)

    def standard_params(self, message: Request | Notice) -> Any:
        """Params by lsprotocol's type; None for a method that has none. Raises Failed."""
        subject = f"params of {message.method}"
        kind: Any = types.METHOD_TO_TYPES[message.method][2]
        if kind is None:
            if message.params is not ABSENT and message.params is not None:
                _as_object(message.params, subject)
            return None
        params = _as_object(message.params, subject)
        try:
            return self._converter.structure(params, kind)
        except Exception as error:
            raise invalid(subject, misfits(error)) from error


def _as_object(params: object, subject: str) -> dict[str, Any]:
    if params is ABSENT:
        return {}
    if not isinstance(params, dict):
        raise invalid(subject, [("$", "expected an object")])
    return params


def _strict(
    structure: Callable[[Any], Any], given: object, subject: str, root: str, bytes_max: int | None = None
) -> Any:
    """A value of one of our own shapes. Raises Failed with paths that begin at `root`."""
    try:
        if bytes_max is not None and _compact_bytes(given) > bytes_max:
            raise invalid(subject, [(root, f"larger than {bytes_max} bytes")])
        return structure(given)
    except wire.WireError as error:
        found = [(root + each.path.removeprefix("$"), each.message) for each in error.errors]
        raise invalid(subject, found) from error
    except RecursionError as error:
        raise invalid(subject, [(root, "nested too deeply")]) from error


def _bound(name: str) -> int | None:
    return recovery_bytes_max if name.startswith(RECOVERY) else None


def _compact_bytes(given: object) -> int:
    return len(json.dumps(given, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass"))
