"""The language server on a loop of our own: life cycle, registration, and the way to the editor.

Exit codes: 0 after shutdown and exit; 1 for exit without shutdown, end of input, garbage instead of frames, or
the editor gone; 128 + n for signal n. On every way out, in this order: reading stops, requests in flight are
cancelled, the `on_stop` of the composition root runs once (shielded, at most `stop_s_max`), requests are waited
for and answered (at most `unwind_s_max`), every task is cancelled, what is unsent goes out (at most
`drain_s_max`). If anything of that hangs, the process ends after `last_resort_s` all the same. All tasks live
in one task group; pygls's threads are not used.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from steadyhand import __version__
from steadyhand.edge.asking import EditorError
from steadyhand.edge.calls import Answerer
from steadyhand.edge.client import Client
from steadyhand.edge.documents import Documents
from steadyhand.edge.protocol import Protocol, Stage
from steadyhand.edge.shapes import strict_converter
from steadyhand.edge.transport import Garbage, Oversized, Reader, Stdio, Writer, source_of
from steadyhand.edge.watch import follow_signals, poll_s, until_gone
from steadyhand_protocol import methods

stop_s_max = 8.0
aside_s_max = 10.0
drain_s_max = 1.0
unwind_s_max = 3.0  # for requests in flight, after `on_stop`
last_resort_s = stop_s_max + unwind_s_max + drain_s_max + 2.0

log = logging.getLogger(__name__)


class Server:
    """One connection over stdio. Register everything, then `run` or `serve`, once."""

    def __init__(self, stdio: Stdio, *, client_process_id: int | None = None) -> None:
        """`stdio` as `claim_stdio` gave it; `client_process_id` from `--clientProcessId=N`."""
        pygls = LanguageServer("steadyhand", __version__, protocol_cls=Protocol, converter_factory=strict_converter)
        protocol = pygls.protocol
        assert isinstance(protocol, Protocol)
        self._protocol = protocol
        self._stdio = stdio
        self._watched = client_process_id
        self._on_stop: Callable[[], Awaitable[None]] | None = None
        self._exit_code: int | None = None
        self._connected = False

    # Registration

    def on(self, method: str, answerer: Answerer) -> None:
        """Answer an own request; `answerer` takes its structured params and gives its result's shape."""
        row = methods.BY_NAME[method]
        assert row.direction == "to_server", f"{method} goes to the editor"
        self._protocol.calls.own[method] = answerer

    def on_command(self, name: str, answerer: Answerer) -> None:
        """Answer a command; `answerer` takes its one argument, None for a command without."""
        assert name in methods.COMMANDS_BY_NAME, name
        self._protocol.calls.commands[name] = answerer

    def on_lsp(self, method: str, answerer: Answerer) -> None:
        """Answer a standard request, or follow a standard notification; params by lsprotocol's types.

        Documents, folders and `initialized` are kept up to date before a follower of theirs starts."""
        assert method in types.METHOD_TO_TYPES, method
        assert method not in (types.INITIALIZE, types.SHUTDOWN, types.EXIT, types.WORKSPACE_EXECUTE_COMMAND)
        self._protocol.calls.standard[method] = answerer

    def on_initialized(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run once, as a task, after the client's `initialized`."""
        self._protocol.initialized = run

    def on_stop(self, run: Callable[[], Awaitable[None]]) -> None:
        """Run once on every way out, shielded, at most `stop_s_max`, while `tasks` are still alive."""
        self._on_stop = run

    # The editor

    @property
    def client(self) -> Client:
        """What the editor has told of itself."""
        return self._protocol.client

    @property
    def documents(self) -> Documents:
        """The documents that are open in it."""
        return self._protocol.documents

    @property
    def attached(self) -> bool:
        """Whether there is an editor that can be asked."""
        return self._connected and self._protocol.stage is Stage.READY and self._exit_code is None

    def notify(self, method: str, params: object = None) -> None:
        """Tell the editor, by our own table or lsprotocol's types. Never blocks; lost with the connection."""
        if self._connected:
            self._protocol.notify(method, params)

    async def request(self, method: str, params: object, timeout_s: float) -> Any:
        """Ask the editor; the structured result. Raises EditorError; a cancel withdraws the question."""
        if not self.attached:
            raise EditorError("no editor is attached")
        return await self._protocol.request(method, params, timeout_s)

    async def ask_aside(self, method: str, params: object) -> None:
        """Ask what the editor may decline; its answer is not waited for long and changes nothing."""
        try:
            await self.request(method, params, aside_s_max)
        except EditorError as error:
            log.info("%s was not taken: %s", method, error)

    async def drain(self) -> None:
        """Wait until the editor has taken enough of what was sent; call it between parts of a stream."""
        if self._connected:
            await self._out.drain()

    def start(self, run: Callable[[], Awaitable[object]], subject: str) -> None:
        """Run a task of the house among the server's; what it raises is logged under `subject`."""
        self._protocol.start(run, subject)

    @property
    def tasks(self) -> TaskGroup:
        """Parent of everything that runs; there while `serve` runs."""
        return self._tasks

    # Life

    def run(self) -> int:
        """Serve on a loop of our own; the exit code."""
        return anyio.run(self.serve)

    def stop(self, exit_code: int) -> None:
        """Begin the way out. The first call decides the exit code."""
        if self._exit_code is None:
            self._exit_code = exit_code
            self._stopping.set()

    async def serve(self) -> int:
        """Serve until the way out has been gone to its end; the exit code."""
        self._stopping = anyio.Event()
        self._out = Writer(self._stdio.sink, self._on_lost)
        self._last_resort = threading.Timer(last_resort_s, self._end_hard)
        self._last_resort.daemon = True
        async with anyio.create_task_group() as sending:
            # Until the very end: a second signal must not cut the way out short.
            sending.start_soon(follow_signals, lambda number: self.stop(128 + number))
            sending.start_soon(self._out.pump)
            try:
                async with anyio.create_task_group() as self._tasks:
                    await self._until_stopped()
            finally:
                with anyio.CancelScope(shield=True):
                    await self._out.flush(drain_s_max)
                self._connected = False
                self._last_resort.cancel()
                sending.cancel_scope.cancel()
        return 1 if self._exit_code is None else self._exit_code

    async def _until_stopped(self) -> None:
        self._protocol.connect(self._out, self._tasks, self.stop)
        self._connected = True
        coming_in = anyio.CancelScope()
        self._tasks.start_soon(self._read, coming_in)
        self._tasks.start_soon(self._watch_output)
        if self._watched is not None:
            self._tasks.start_soon(self._watch_process, self._watched)
        try:
            await self._stopping.wait()
        finally:
            self._last_resort.start()
            coming_in.cancel()
            self._protocol.asking.lose("the server is stopping")
            self._protocol.cancel_requests()
            with anyio.CancelScope(shield=True):
                await self._wind_down()
                with anyio.move_on_after(unwind_s_max):
                    await self._protocol.requests_ended()
            self._tasks.cancel_scope.cancel()

    async def _wind_down(self) -> None:
        if self._on_stop is None:
            return
        try:
            with anyio.move_on_after(stop_s_max) as limit:
                await self._on_stop()
            if limit.cancelled_caught:
                log.error("stopping took longer than %g s and was broken off", stop_s_max)
        except Exception as error:
            log.error("stopping failed unexpectedly", exc_info=error)

    def _end_hard(self) -> None:
        # A task that shields itself for ever must not keep a server without an editor alive.
        os._exit(1 if self._exit_code is None else self._exit_code)

    async def _read(self, scope: anyio.CancelScope) -> None:
        with scope:
            reader = Reader(source_of(self._stdio.source))
            try:
                while (body := await reader.next()) is not None:
                    if isinstance(body, Oversized):
                        self._protocol.refuse_oversized()
                        continue
                    before = self._protocol.stage
                    self._protocol.receive(body)
                    if before is Stage.NEW and self._protocol.stage is Stage.READY:
                        self._watch_client()
            except Garbage as error:
                log.error("the connection ends: %s", error)
            self.stop(1)

    def _watch_client(self) -> None:
        pid = self._protocol.client.process
        if pid is not None and pid != self._watched:
            self._tasks.start_soon(self._watch_process, pid)

    async def _watch_process(self, pid: int) -> None:
        await until_gone(pid)
        self.stop(1)

    async def _watch_output(self) -> None:
        while True:
            await anyio.sleep(poll_s)
            self._out.look()

    def _on_lost(self) -> None:
        self._protocol.asking.lose("the connection to the editor is lost")
        self.stop(1)
