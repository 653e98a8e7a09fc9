"""The language server on an event loop of its own: registration, requests to the editor, and the shutdown.

Exit codes: 0 after `shutdown` and `exit`; 1 for `exit` without `shutdown`, at the end of input, for broken framing or
when the editor is gone; 128 + n for signal n. Every end has these steps, in this order: reading stops; requests in
flight are cancelled; `on_stop` runs once, shielded, at most `STOP_S_MAX`; requests end and are answered, at most
`UNWIND_S_MAX`; every task is cancelled; unsent bytes go out, at most `DRAIN_S_MAX`. If a step hangs, the process ends
after `LAST_RESORT_S` all the same. All tasks are in one task group.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.rpc.dispatcher import Dispatcher
from steadyhand.lsp.rpc.lifecycle import Lifecycle, Stage
from steadyhand.lsp.rpc.liveness import POLL_S, follow_signals, wait_gone
from steadyhand.lsp.rpc.outgoing import Outgoing
from steadyhand.lsp.rpc.pending_requests import EditorError
from steadyhand.lsp.rpc.router import Answerer, Router
from steadyhand.lsp.rpc.tasks import start_logged
from steadyhand.lsp.rpc.transport import FrameReader, FrameWriter, FramingError, Oversized, Stdio, source_of
from steadyhand.lsp.state.client_capabilities import Client
from steadyhand.lsp.state.documents import Documents
from steadyhand_protocol import methods

STOP_S_MAX = 8.0
OPTIONAL_S_MAX = 10.0
DRAIN_S_MAX = 1.0
UNWIND_S_MAX = 3.0  # for requests in flight, after `on_stop`
LAST_RESORT_S = STOP_S_MAX + UNWIND_S_MAX + DRAIN_S_MAX + 2.0

log = logging.getLogger(__name__)


class Server:
    """One connection over stdio. Register everything, at the latest in `on_initialize`; `run` or `serve` once."""

    def __init__(self, stdio: Stdio, *, client_process_id: int | None = None) -> None:
        """`stdio` as `claim_stdio` returned it; `client_process_id` from `--clientProcessId=N`."""
        self._stdio = stdio
        self._watched_pid = client_process_id
        self._router = Router()
        self._lifecycle = Lifecycle()
        self._documents = Documents()
        self._on_stop: Callable[[], Awaitable[None]] | None = None
        self._exit_code: int | None = None
        self._is_connected = False

    # Registration

    def on(self, method: str, answerer: Answerer) -> None:
        """Answer an own request; `answerer` takes its structured params and returns its structured result."""
        row = methods.BY_NAME[method]
        assert row.direction == "to_server", f"{method} goes to the editor"
        self._router.own[method] = answerer

    def on_command(self, name: str, answerer: Answerer) -> None:
        """Answer a command; `answerer` takes its one argument, None for a command without."""
        assert name in methods.COMMANDS_BY_NAME, name
        self._router.commands[name] = answerer

    def on_lsp(self, method: str, answerer: Answerer) -> None:
        """Answer a standard request, or follow a standard notification; params in their types of LSP.

        `documents` and `client` are current when a follower of their notifications starts. A method has one follower: a
        second one would take its place."""
        assert method in types.METHODS, method
        assert method not in self._router.standard, f"{method} has a follower"
        assert method not in (types.INITIALIZE, types.SHUTDOWN, types.EXIT, types.WORKSPACE_EXECUTE_COMMAND)
        self._router.standard[method] = answerer

    def on_initialize(self, run: Callable[[], None]) -> None:
        """Run once, right after `initialize` is answered and before the next message is received.

        `client` is known then. Whatever answers a request may be registered in it. A failure ends the server."""
        self._lifecycle.on_initialize = run

    def on_initialized(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run once, as a task, after the client's `initialized`."""
        self._lifecycle.on_initialized = run

    def on_stop(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run once at every end, shielded, at most `STOP_S_MAX`; tasks still run then."""
        self._on_stop = run

    # The editor

    @property
    def client(self) -> Client:
        """The editor's description of itself."""
        return self._lifecycle.client

    @property
    def documents(self) -> Documents:
        """The documents that are open in the editor."""
        return self._documents

    @property
    def is_attached(self) -> bool:
        """Whether there is an editor that can be sent requests."""
        return self._is_connected and self._lifecycle.stage is Stage.READY and self._exit_code is None

    def notify(self, method: str, params: object = None) -> None:
        """Notify the editor, of an own method or a standard one. Never blocks.

        Does nothing before `initialize` and after the connection is lost."""
        if self._is_connected and self._lifecycle.stage is not Stage.NEW:
            self._outgoing.notify(method, params)

    async def request(self, method: str, params: object, timeout_s: float) -> Any:
        """Send the editor a request and return the structured result. Raises EditorError; a cancel withdraws it."""
        if not self.is_attached:
            raise EditorError("no editor is attached")
        return await self._outgoing.request(method, params, timeout_s)

    async def request_optional(self, method: str, params: object) -> None:
        """Send a request that the editor may decline; log that it declined and change nothing."""
        try:
            await self.request(method, params, OPTIONAL_S_MAX)
        except EditorError as error:
            log.info("the editor declined %s: %s", method, error)

    async def drain(self) -> None:
        """Wait until the editor has taken enough of what was sent; call it between parts of a stream."""
        if self._is_connected:
            await self._writer.drain()

    def start(self, run: Callable[[], Awaitable[object]], subject: str) -> None:
        """Run a task until the server stops; an exception in it is logged under `subject`."""
        start_logged(self._tasks, run, subject)

    # Start and stop

    def run(self) -> int:
        """Serve on a loop of its own; return the exit code."""
        return anyio.run(self.serve)

    def stop(self, exit_code: int) -> None:
        """Begin to stop. The first call decides the exit code."""
        if self._exit_code is None:
            self._exit_code = exit_code
            self._stopping.set()

    async def serve(self) -> int:
        """Serve until everything has stopped; return the exit code."""
        self._stopping = anyio.Event()
        self._writer = FrameWriter(self._stdio.sink, self._on_lost)
        self._outgoing = Outgoing(self._writer.write)
        self._last_resort = threading.Timer(LAST_RESORT_S, self._end_process)
        self._last_resort.daemon = True
        async with anyio.create_task_group() as sending:
            # These two run until the end: a second signal must not cut the stop short.
            sending.start_soon(follow_signals, lambda number: self.stop(128 + number))
            sending.start_soon(self._writer.pump)
            try:
                async with anyio.create_task_group() as self._tasks:
                    await self._serve_until_stopped(self._tasks)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._writer.flush(DRAIN_S_MAX)
                self._is_connected = False
                self._last_resort.cancel()
                sending.cancel_scope.cancel()
        return 1 if self._exit_code is None else self._exit_code

    async def _serve_until_stopped(self, tasks: TaskGroup) -> None:
        dispatcher = Dispatcher(
            self._router, self._lifecycle, self._documents, self._outgoing, tasks, self.stop, self._stdio.is_greeted
        )
        self._is_connected = True
        reading = anyio.CancelScope()
        tasks.start_soon(self._read, dispatcher, reading)
        tasks.start_soon(self._watch_output)
        if self._watched_pid is not None:
            tasks.start_soon(self._watch_process, self._watched_pid)
        try:
            await self._stopping.wait()
        finally:
            self._last_resort.start()
            reading.cancel()
            self._outgoing.pending.fail_all("the server is stopping")
            dispatcher.in_flight.cancel_all()
            with anyio.CancelScope(shield=True):
                await self._run_on_stop()
                with anyio.move_on_after(UNWIND_S_MAX):
                    await dispatcher.in_flight.wait_ended()
            tasks.cancel_scope.cancel()

    async def _run_on_stop(self) -> None:
        if self._on_stop is None:
            return
        try:
            with anyio.move_on_after(STOP_S_MAX) as limit:
                await self._on_stop()
            if limit.cancelled_caught:
                log.error("stopping took longer than %g s and was broken off", STOP_S_MAX)
        except Exception as error:
            log.error("stopping failed unexpectedly", exc_info=error)

    def _end_process(self) -> None:
        # A task that shields itself for ever must not keep a server without an editor alive.
        os._exit(1 if self._exit_code is None else self._exit_code)

    async def _read(self, dispatcher: Dispatcher, scope: anyio.CancelScope) -> None:
        with scope:
            reader = FrameReader(source_of(self._stdio))
            try:
                while (body := await reader.next()) is not None:
                    if isinstance(body, Oversized):
                        dispatcher.refuse_oversized()
                        continue
                    before = self._lifecycle.stage
                    dispatcher.receive(body)
                    if before is Stage.NEW and self._lifecycle.stage is Stage.READY:
                        self._watch_client()
            except FramingError as error:
                log.error("the connection ends: %s", error)
            self.stop(1)

    def _watch_client(self) -> None:
        pid = self._lifecycle.client.process
        if pid is not None and pid != self._watched_pid:
            self._tasks.start_soon(self._watch_process, pid)

    async def _watch_process(self, pid: int) -> None:
        await wait_gone(pid)
        self.stop(1)

    async def _watch_output(self) -> None:
        while True:
            await anyio.sleep(POLL_S)
            self._writer.check_peer()

    def _on_lost(self) -> None:
        self._outgoing.pending.fail_all("the connection to the editor is lost")
        self.stop(1)
