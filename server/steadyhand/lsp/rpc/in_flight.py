"""The requests in flight: each runs as a task with its own cancel scope, and is answered once.

A request is answered after its task has ended: with its result if it has one, else with its error, or with -32800 if
it was cancelled.
"""

from __future__ import annotations

import anyio
from anyio.abc import TaskGroup

from steadyhand.lsp.rpc.errors import cancelled_error, request_error
from steadyhand.lsp.rpc.messages import MessageId, Request
from steadyhand.lsp.rpc.outgoing import Outgoing
from steadyhand.lsp.rpc.router import Invocation

REQUESTS_IN_FLIGHT_MAX = 10_000


class RequestsInFlight:
    """The requests of one connection that are not answered yet."""

    def __init__(self, outgoing: Outgoing, tasks: TaskGroup) -> None:
        """`tasks`: the parent of every task."""
        self._outgoing = outgoing
        self._tasks = tasks
        self._scopes: dict[MessageId, anyio.CancelScope] = {}
        self._one_ended = anyio.Event()

    def require_unused(self, id: MessageId) -> None:
        """Raise RpcError for an id that a request in flight has."""
        if id in self._scopes:
            raise request_error("a request in flight has this id")

    def require_room(self) -> None:
        """Raise RpcError if no further request may start."""
        if len(self._scopes) >= REQUESTS_IN_FLIGHT_MAX:
            raise request_error("too many requests in flight")

    def start(self, request: Request, invocation: Invocation) -> None:
        # The scope exists before the task runs, so that a cancel that follows at once is not lost.
        scope = self._scopes[request.id] = anyio.CancelScope()
        self._tasks.start_soon(self._run, request, invocation, scope, name=request.method)

    def cancel(self, id: MessageId) -> None:
        """Cancel a request, if it is in flight."""
        scope = self._scopes.get(id)
        if scope is not None:
            scope.cancel()

    def cancel_all(self) -> None:
        """Cancel every request; each is answered when its task has ended."""
        for scope in list(self._scopes.values()):
            scope.cancel()

    async def wait_ended(self) -> None:
        """Wait until no request is in flight."""
        while self._scopes:
            await self._one_ended.wait()

    async def _run(self, request: Request, invocation: Invocation, scope: anyio.CancelScope) -> None:
        failure: Exception | None = None
        result: object = None
        try:
            with scope:
                result = invocation.to_json(await invocation.run())
        except Exception as error:
            failure = error
        finally:
            del self._scopes[request.id]
            self._one_ended.set()
            self._one_ended = anyio.Event()
        if scope.cancelled_caught:
            failure = cancelled_error()
        if failure is None:
            self._outgoing.answer(request.id, result)
        else:
            self._outgoing.answer_error(request.id, failure, request.method)
