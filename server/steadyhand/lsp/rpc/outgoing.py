"""What the server sends: answers, notifications and requests, converted to JSON.

Own methods are converted by the wire types, all others by the types of LSP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.rpc.errors import error_answer
from steadyhand.lsp.rpc.lsp_converter import structure, unstructure
from steadyhand.lsp.rpc.messages import ABSENT, MessageId, frame
from steadyhand.lsp.rpc.pending_requests import EditorError, PendingRequests
from steadyhand_protocol import methods, wire

NOT_JSON = (TypeError, ValueError, RecursionError)
"""What `frame` raises for a value that is no JSON."""


class Outgoing:
    """Sends to one editor. `pending`: the requests to it."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        """`write` takes a frame and must not block."""
        self._write = write
        self.pending = PendingRequests(self._send)

    def answer(self, id: MessageId, result: object) -> None:
        """Answer a request; with "internal error" if the result is no JSON."""
        try:
            self._send({"jsonrpc": "2.0", "id": id, "result": result})
        except NOT_JSON as error:
            self.answer_error(id, error, "an answer")

    def answer_error(self, id: MessageId | None, error: Exception, subject: str) -> None:
        """Answer a request that failed. `id` None: no id could be read; `subject` names the request in the log."""
        try:
            self._send({"jsonrpc": "2.0", "id": id, "error": error_answer(error, subject).as_json()})
        except NOT_JSON as second:
            plain = error_answer(second, "the data of an error")
            self._send({"jsonrpc": "2.0", "id": id, "error": plain.as_json()})

    def notify(self, method: str, params: object = None) -> None:
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = _params_as_json(method, params)
        self._send(message)

    async def request(self, method: str, params: object, timeout_s: float) -> Any:
        """Send a request and return its structured result. Raises EditorError; a cancel withdraws the request."""
        json = ABSENT if params is None else _params_as_json(method, params)
        result = await self.pending.request(method, json, timeout_s)
        try:
            return _structure_result(method, result)
        except Exception as error:
            raise EditorError(f"the editor's answer to {method} does not fit") from error

    def _send(self, message: Mapping[str, object]) -> None:
        self._write(frame(message))


def _params_as_json(method: str, params: object) -> object:
    return wire.unstructure(params) if method in methods.BY_NAME else unstructure(params)


def _structure_result(method: str, result: object) -> Any:
    if result is ABSENT:
        raise ValueError("neither result nor error")
    row = methods.BY_NAME.get(method)
    if row is not None:
        assert row.result is not None, method
        shape: Any = row.result
        return wire.structure(shape, result)
    return structure(types.METHODS[method].result, result)
