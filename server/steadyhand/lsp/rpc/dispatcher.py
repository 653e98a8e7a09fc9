"""Dispatches each message that comes in; every request is answered exactly once, with its own result.

Messages are taken in their order. Documents, folders and the life cycle change at once; everything else runs as a task.
A notification that cannot be followed is logged to the editor and dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from anyio.abc import TaskGroup

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.rpc.document_notifications import DocumentNotifications
from steadyhand.lsp.rpc.errors import error_answer, malformed_error, params_error, request_error, unknown_method_error
from steadyhand.lsp.rpc.in_flight import RequestsInFlight
from steadyhand.lsp.rpc.lifecycle import Lifecycle, Stage
from steadyhand.lsp.rpc.messages import Malformed, Notification, Request, Response, read
from steadyhand.lsp.rpc.outgoing import Outgoing
from steadyhand.lsp.rpc.router import Router
from steadyhand.lsp.rpc.tasks import start_logged
from steadyhand.lsp.state.documents import Documents

LOG_TEXT_CHARS_MAX = 500

log = logging.getLogger(__name__)


class Dispatcher:
    """Receives the messages of one connection."""

    def __init__(
        self,
        router: Router,
        lifecycle: Lifecycle,
        documents: Documents,
        outgoing: Outgoing,
        tasks: TaskGroup,
        on_exit: Callable[[int], None],
        is_greeted: bool,
    ) -> None:
        """`on_exit` is called with the exit code; `is_greeted`: the first message is an `initialize` that has its
        answer (`rpc.greeting`)."""
        self._router = router
        self._lifecycle = lifecycle
        self._documents = documents
        self._outgoing = outgoing
        self._tasks = tasks
        self._on_exit = on_exit
        self._is_greeted = is_greeted
        self._was_initialized = False  # the client sent `initialized`
        self.in_flight = RequestsInFlight(outgoing, tasks)
        self._at_once: Mapping[str, Callable[[Any], None]] = {
            **DocumentNotifications(documents).by_method,
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: lifecycle.change_folders,
            types.INITIALIZED: self._follow_initialized,
        }

    def receive(self, body: bytes) -> None:
        """Dispatch one message. Never raises, whatever the peer sends."""
        message = read(body)
        match message:
            case Request():
                self._take_request(message)
            case Notification():
                self._take_notification(message)
            case Response():
                self._outgoing.pending.take_response(message)
            case Malformed():
                self._outgoing.answer_error(message.id, malformed_error(message), "a malformed message")

    def refuse_oversized(self) -> None:
        """Answer a body that was too large to be read."""
        self._outgoing.answer_error(None, request_error("message too large"), "an oversized message")

    # Requests

    def _take_request(self, request: Request) -> None:
        try:
            self.in_flight.require_unused(request.id)
            self._lifecycle.require_stage(request.method)
            self.in_flight.require_room()
            if request.method == types.INITIALIZE:
                self._initialize(request)
            elif request.method == types.SHUTDOWN:
                self._shut_down(request)
            else:
                self.in_flight.start(request, self._router.route(request))
        except Exception as error:
            self._outgoing.answer_error(request.id, error, request.method)

    def _initialize(self, request: Request) -> None:
        result = self._lifecycle.initialize(self._router.standard_params(request))
        self._documents.encoding = self._lifecycle.client.encoding
        if not self._is_greeted:
            self._outgoing.answer(request.id, result)
        self._run_on_initialize()

    def _run_on_initialize(self) -> None:
        """The connection ends if this fails, because nothing would answer requests."""
        if self._lifecycle.on_initialize is None:
            return
        try:
            self._lifecycle.on_initialize()
        except Exception as error:
            log.error("initialize failed unexpectedly", exc_info=error)
            self._on_exit(1)

    def _shut_down(self, request: Request) -> None:
        self._router.standard_params(request)
        self._lifecycle.shut_down()
        self.in_flight.cancel_all()
        self._outgoing.answer(request.id, None)

    # Notifications

    def _take_notification(self, notification: Notification) -> None:
        method = notification.method
        if method == types.EXIT:
            self._on_exit(self._lifecycle.exit_code())
            return
        if self._lifecycle.stage is not Stage.READY:
            log.info("dropped %s %s", method[:LOG_TEXT_CHARS_MAX], self._lifecycle.stage.value)
            return
        try:
            self._follow(notification)
        except Exception as error:
            self._report_dropped(method, error_answer(error, method).text)

    def _follow(self, notification: Notification) -> None:
        method = notification.method
        if method == types.CANCEL_REQUEST:
            self._cancel(notification.params)
            return
        update = self._at_once.get(method)
        follower = self._router.standard.get(method)
        if update is None and follower is None:
            if not _may_be_ignored(method):
                raise unknown_method_error(method)
            return
        params = self._router.standard_params(notification)
        if update is not None:
            update(params)
        if follower is not None:
            start_logged(self._tasks, partial(follower, params), method)

    def _cancel(self, params: object) -> None:
        id = params.get("id") if isinstance(params, dict) else None
        if isinstance(id, bool) or not isinstance(id, int | str):
            raise params_error("params of $/cancelRequest", [("$.id", "expected an integer or a string")])
        self.in_flight.cancel(id)

    def _follow_initialized(self, _: object) -> None:
        if self._lifecycle.on_initialized is not None and not self._was_initialized:
            self._was_initialized = True
            start_logged(self._tasks, self._lifecycle.on_initialized, types.INITIALIZED)

    def _report_dropped(self, method: str, why: str) -> None:
        text = f"Steadyhand dropped {method[:100]}: {why}"[:LOG_TEXT_CHARS_MAX]
        params = types.LogMessageParams(types.MessageType.Warning, text)
        self._outgoing.notify(types.WINDOW_LOG_MESSAGE, params)


def _may_be_ignored(method: str) -> bool:
    """Return whether a notification that nothing follows needs no log message."""
    return method.startswith("$/") or method in types.NOTIFICATIONS
