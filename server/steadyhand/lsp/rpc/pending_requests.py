"""Requests to the editor that wait for their answer.

Each ends in exactly one way: with its answer, with an `EditorError` (an error answer, no answer in time, the connection
is lost), or with a cancel. `$/cancelRequest` withdraws a request that ends without an answer. An answer that comes
later, twice, or to no request is ignored. Params and results are JSON here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import anyio
import attrs

from steadyhand.lsp.rpc.messages import ABSENT, Response
from steadyhand_values import define

OPEN_QUESTIONS_MAX = 1_000
TEXT_CHARS_MAX = 500


class EditorError(Exception):
    """The editor gave no usable answer; `code` is that of its error answer, None if it gave none."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


@define(eq=False)
class _PendingRequest:
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    outcome: object = ABSENT  # JSON of the result, or an EditorError


class PendingRequests:
    """All open requests of one connection to its editor."""

    def __init__(self, send: Callable[[Mapping[str, object]], None]) -> None:
        self._send = send
        self._numbers = itertools.count(1)
        self._open: dict[str, _PendingRequest] = {}
        self._lost: str | None = None

    async def request(self, method: str, params: object, timeout_s: float) -> object:
        """Send a request and return its result as JSON. Raises EditorError."""
        if self._lost is not None:
            raise EditorError(self._lost)
        if len(self._open) >= OPEN_QUESTIONS_MAX:
            raise EditorError("too many questions are open")
        id = f"steadyhand-{next(self._numbers)}"
        pending = self._open[id] = _PendingRequest()
        message: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not ABSENT:
            message["params"] = params
        try:
            self._send(message)
            with anyio.move_on_after(timeout_s):
                await pending.ended.wait()
        finally:
            del self._open[id]
            if not pending.ended.is_set():
                self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}})
        if not pending.ended.is_set():
            raise EditorError(f"the editor did not answer {method} within {timeout_s:g} s")
        if isinstance(pending.outcome, EditorError):
            raise pending.outcome
        return pending.outcome

    def take_response(self, response: Response) -> None:
        """End the request that this response answers; ignore the response if there is none."""
        pending = self._open.get(response.id) if isinstance(response.id, str) else None
        if pending is None or pending.ended.is_set():
            return
        pending.outcome = _outcome(response)
        pending.ended.set()

    def fail_all(self, why: str) -> None:
        """End every request with `why`, also each later one: the connection is lost."""
        self._lost = why
        for pending in self._open.values():
            if not pending.ended.is_set():
                pending.outcome = EditorError(why)
                pending.ended.set()


def _outcome(response: Response) -> object:
    if response.error is ABSENT or (response.error is None and response.result is not ABSENT):
        return response.result
    match response.error:
        case {"code": int(code), "message": str(text)}:
            return EditorError(f"the editor answered: {text[:TEXT_CHARS_MAX]}", code)
        case _:
            return EditorError("the editor answered with an error")
