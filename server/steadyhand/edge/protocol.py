"""JSON-RPC on the server's side: every request gets exactly one answer, and none of another's making.

pygls gives the registry, the capabilities and the standard types; reading, ordering, running and answering
are here, because pygls leaves faulty requests unanswered and cannot cancel commands. What arrives is dealt
with in its order: documents, folders and the life cycle at once, everything else as a task with a cancel
scope of its own. A request is answered after its task has really unwound: with its result if it came to one,
else -32800 when it was cancelled. A notification that does not fit is logged to the editor and dropped. This
room starts no task outside `tasks`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import cattrs
from anyio.abc import TaskGroup
from lsprotocol import types
from pygls.protocol import LanguageServerProtocol, lsp_method

from steadyhand.edge.asking import Asking, EditorError
from steadyhand.edge.calls import Call, Calls
from steadyhand.edge.client import Client, client_of
from steadyhand.edge.documents import Documents, Unopened
from steadyhand.edge.failures import Failed, Failure, failure_of, invalid, not_found
from steadyhand.edge.messages import (
    ABSENT,
    CANCELLED,
    INVALID_REQUEST,
    NOT_INITIALIZED,
    Malformed,
    MessageId,
    Notice,
    Request,
    Response,
    frame,
    read,
)
from steadyhand_protocol import methods, wire

if TYPE_CHECKING:
    from collections.abc import Generator

    from pygls.lsp.server import LanguageServer

    from steadyhand.edge.transport import Writer

requests_in_flight_max = 10_000
log_text_chars_max = 500

PROTOCOL_MEMBER = "steadyhand"

log = logging.getLogger(__name__)


class Stage(Enum):
    """Where in its life the connection is."""

    NEW = "before initialize"
    READY = "initialized"
    SHUTDOWN = "after shutdown"


class Protocol(LanguageServerProtocol):
    """One connection. `connect` must be called before anything is received."""

    def __init__(self, server: LanguageServer, converter: cattrs.Converter) -> None:
        super().__init__(server, converter)
        self.stage = Stage.NEW
        self.client = Client()
        self.documents = Documents()
        self.asking = Asking(self._send)
        self.calls = Calls(converter)
        self.initialized: Callable[[], Awaitable[None]] | None = None
        self._in_flight: dict[MessageId, anyio.CancelScope] = {}
        self._one_ended = anyio.Event()
        self._told_initialized = False
        self._at_once: Mapping[str, Callable[[Any], None]] = {
            types.TEXT_DOCUMENT_DID_OPEN: self._did_open,
            types.TEXT_DOCUMENT_DID_CHANGE: self._did_change,
            types.TEXT_DOCUMENT_DID_SAVE: self._did_save,
            types.TEXT_DOCUMENT_DID_CLOSE: self._did_close,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: self._did_change_folders,
            types.INITIALIZED: self._did_initialize,
        }

    def connect(self, out: Writer, tasks: TaskGroup, on_exit: Callable[[int], None]) -> None:
        """Give the way out, the parent of all tasks, and what to call with the exit code on `exit`."""
        self._out = out
        self._tasks = tasks
        self._on_exit = on_exit

    # What comes in

    def receive(self, body: bytes) -> None:
        """Deal with one message. Never raises for anything the peer may send."""
        message = read(body)
        match message:
            case Request():
                self._take_request(message)
            case Notice():
                self._take_notice(message)
            case Response():
                self.asking.answered(message)
            case Malformed():
                self._answer_error(message.id, Failure(message.code, message.text))

    def refuse_oversized(self) -> None:
        """Answer a body that was too large to be read."""
        self._answer_error(None, Failure(INVALID_REQUEST, "message too large"))

    def cancel_requests(self) -> None:
        """Cancel every request in flight; each is answered when it has unwound."""
        for scope in list(self._in_flight.values()):
            scope.cancel()

    async def requests_ended(self) -> None:
        """Wait until no request is in flight."""
        while self._in_flight:
            await self._one_ended.wait()

    def _take_request(self, request: Request) -> None:
        try:
            self._admit(request)
            if request.method == types.INITIALIZE:
                self._answer(request.id, self._initialize(request))
            elif request.method == types.SHUTDOWN:
                self._shut_down(request)
                self._answer(request.id, None)
            else:
                self._start(request, self.calls.of(request))
        except Exception as error:
            self._answer_error(request.id, failure_of(error, request.method))

    def _admit(self, request: Request) -> None:
        """Raise Failed for a request that may not come now."""
        if request.id in self._in_flight:
            raise Failed(Failure(INVALID_REQUEST, "this id belongs to a request in flight"))
        if self.stage is Stage.SHUTDOWN:
            raise Failed(Failure(INVALID_REQUEST, "the server is shut down"))
        if self.stage is Stage.READY and request.method == types.INITIALIZE:
            raise Failed(Failure(INVALID_REQUEST, "initialize comes once"))
        if self.stage is Stage.NEW and request.method != types.INITIALIZE:
            raise Failed(Failure(NOT_INITIALIZED, "initialize comes first"))
        if len(self._in_flight) >= requests_in_flight_max:
            raise Failed(Failure(INVALID_REQUEST, "too many requests in flight"))

    def _take_notice(self, notice: Notice) -> None:
        if notice.method == types.EXIT:
            self._on_exit(0 if self.stage is Stage.SHUTDOWN else 1)
            return
        if self.stage is not Stage.READY:
            log.info("dropped %s %s", notice.method[:log_text_chars_max], self.stage.value)
            return
        try:
            self._follow(notice)
        except Failed as error:
            self._log_dropped(notice.method, error.failure.text)
        except Unopened:
            self._log_dropped(notice.method, "the document is not open")
        except Exception as error:
            self._log_dropped(notice.method, failure_of(error, notice.method).text)

    def _follow(self, notice: Notice) -> None:
        if notice.method == types.CANCEL_REQUEST:
            self._cancel(notice.params)
            return
        at_once = self._at_once.get(notice.method)
        answerer = self.calls.standard.get(notice.method)
        if at_once is None and answerer is None:
            if not _may_be_ignored(notice.method):
                raise not_found(notice.method)
            return
        params = self.calls.standard_params(notice)
        if at_once is not None:
            at_once(params)
        if answerer is not None:
            self.start(partial(answerer, params), notice.method)

    def _log_dropped(self, method: str, why: str) -> None:
        text = f"Steadyhand dropped {method[:100]}: {why}"[:log_text_chars_max]
        self.notify(types.WINDOW_LOG_MESSAGE, types.LogMessageParams(types.MessageType.Warning, text))

    def _cancel(self, params: object) -> None:
        id = params.get("id") if isinstance(params, dict) else None
        if isinstance(id, bool) or not isinstance(id, int | str):
            raise invalid("params of $/cancelRequest", [("$.id", "expected an integer or a string")])
        scope = self._in_flight.get(id)
        if scope is not None:
            scope.cancel()

    # Running

    def start(self, run: Callable[[], Awaitable[object]], subject: str) -> None:
        """Run something as a task; what it raises is written to stderr and ends nothing else."""
        self._tasks.start_soon(_guarded, run, subject, name=subject)

    def _start(self, request: Request, call: Call) -> None:
        # The scope exists before the task runs, so that a cancel that follows at once is not lost.
        scope = self._in_flight[request.id] = anyio.CancelScope()
        self._tasks.start_soon(self._run, request, call, scope, name=request.method)

    async def _run(self, request: Request, call: Call, scope: anyio.CancelScope) -> None:
        failure: Failure | None = None
        result: object = None
        try:
            with scope:
                result = call.to_json(await call.run())
        except Exception as error:
            failure = failure_of(error, request.method)
        finally:
            del self._in_flight[request.id]
            self._one_ended.set()
            self._one_ended = anyio.Event()
        if scope.cancelled_caught:
            failure = Failure(CANCELLED, "cancelled", {"kind": "cancelled"})
        if failure is None:
            self._answer(request.id, result)
        else:
            self._answer_error(request.id, failure)

    # Life cycle

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """The capabilities of this server, for any client; see wire.md, "Standard parts"."""
        result = yield from super().lsp_initialize(params)
        found = result.capabilities
        found.text_document_sync = types.TextDocumentSyncOptions(
            open_close=True,
            change=types.TextDocumentSyncKind.Incremental,
            save=types.SaveOptions(include_text=False),
        )
        found.code_action_provider = types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.QuickFix], resolve_provider=False
        )
        found.code_lens_provider = types.CodeLensOptions(resolve_provider=False)
        found.execute_command_provider = types.ExecuteCommandOptions(
            commands=[command.name for command in methods.COMMANDS if command.built]
        )
        found.experimental = {PROTOCOL_MEMBER: {"protocolVersion": methods.PROTOCOL_VERSION}}
        return result

    def _initialize(self, request: Request) -> object:
        params = self.calls.standard_params(request)
        result = _run_through(self.lsp_initialize(params))
        encoding = str(getattr(found := result.capabilities.position_encoding, "value", found))
        self.client = client_of(params, encoding)
        self.documents.encoding = self.client.encoding
        self.stage = Stage.READY
        return self._converter.unstructure(result)

    def _shut_down(self, request: Request) -> None:
        self.calls.standard_params(request)
        self.stage = Stage.SHUTDOWN
        self.cancel_requests()

    def _did_initialize(self, _: object) -> None:
        if self.initialized is not None and not self._told_initialized:
            self._told_initialized = True
            self.start(self.initialized, types.INITIALIZED)

    # The mirror

    def _did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self.documents.open(params.text_document)

    def _did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        self.documents.change(document.uri, document.version, params.content_changes)

    def _did_save(self, params: types.DidSaveTextDocumentParams) -> None:
        self.documents.save(params.text_document.uri)

    def _did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self.documents.close(params.text_document.uri)

    def _did_change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        self.client = self.client.with_folders(params.event)

    # What goes out

    def notify(self, method: str, params: Any | None = None) -> None:
        """Send a notification; nothing happens before `initialize` and after a loss."""
        if self.stage is Stage.NEW:
            return
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = self._params_as_json(method, params)
        self._send(message)

    async def request(self, method: str, params: object, timeout_s: float) -> Any:
        """Ask the editor; the result in its type. Raises EditorError; a cancel withdraws the question."""
        given = ABSENT if params is None else self._params_as_json(method, params)
        result = await self.asking.ask(method, given, timeout_s)
        try:
            return self._result_of(method, result)
        except Exception as error:
            raise EditorError(f"the editor's answer to {method} does not fit") from error

    def _params_as_json(self, method: str, params: object) -> object:
        if method in methods.BY_NAME:
            return wire.unstructure(params)
        return self._converter.unstructure(params)

    def _result_of(self, method: str, result: object) -> Any:
        if result is ABSENT:
            raise ValueError("neither result nor error")
        row = methods.BY_NAME.get(method)
        if row is not None:
            assert row.result is not None, method
            shape: Any = row.result
            return wire.structure(shape, result)
        answer = {"id": 0, "jsonrpc": "2.0", "result": result}
        kind: Any = self.get_result_type(method)
        return self._converter.structure(answer, kind).result

    def _answer(self, id: MessageId, result: object) -> None:
        try:
            self._send({"jsonrpc": "2.0", "id": id, "result": result})
        except (TypeError, ValueError, RecursionError) as error:
            self._answer_error(id, failure_of(error, "an answer"))

    def _answer_error(self, id: MessageId | None, failure: Failure) -> None:
        message: dict[str, object] = {"jsonrpc": "2.0", "id": id, "error": failure.as_json()}
        try:
            self._send(message)
        except (TypeError, ValueError, RecursionError) as error:
            plain = failure_of(error, "the data of an error")
            self._send({"jsonrpc": "2.0", "id": id, "error": plain.as_json()})

    def _send(self, message: Mapping[str, object]) -> None:
        self._out.write(frame(message))


async def _guarded(run: Callable[[], Awaitable[object]], subject: str) -> None:
    try:
        await run()
    except Exception as error:
        log.error("%s failed unexpectedly", subject[:log_text_chars_max], exc_info=error)


def _run_through(steps: Generator[Any, Any, Any]) -> Any:
    """The value of a generator of pygls that has nothing to wait for."""
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a built-in step yielded, although no user feature is registered for it")


def _may_be_ignored(method: str) -> bool:
    """Whether a notification without a receiver is nothing to speak of."""
    if method.startswith("$/"):
        return True
    row = types.METHOD_TO_TYPES.get(method)
    return row is not None and row[1] is None
