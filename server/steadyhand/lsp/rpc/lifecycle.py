"""The life cycle of a connection: before `initialize`, initialized, after `shutdown`; and the client's description.

It knows no message: the dispatcher says what happened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.rpc.capabilities import initialize_result, position_encoding
from steadyhand.lsp.rpc.errors import not_initialized_error, request_error
from steadyhand.lsp.state.client_capabilities import Client, client_of


class Stage(Enum):
    """Which requests are accepted."""

    NEW = "before initialize"
    READY = "initialized"
    SHUTDOWN = "after shutdown"


class Lifecycle:
    """The stage of one connection, its client, and what runs when the stage changes."""

    def __init__(self) -> None:
        self.stage = Stage.NEW
        self.client = Client()
        self.on_initialize: Callable[[], None] | None = None
        self.on_initialized: Callable[[], Awaitable[None]] | None = None

    def require_stage(self, method: str) -> None:
        """Raise RpcError for a request that the present stage does not accept."""
        is_initialize = method == types.INITIALIZE
        if self.stage is Stage.SHUTDOWN:
            raise request_error("the server has shut down")
        if self.stage is Stage.READY and is_initialize:
            raise request_error("initialize may be sent only once")
        if self.stage is Stage.NEW and not is_initialize:
            raise not_initialized_error()

    def initialize(self, params: types.InitializeParams) -> object:
        """Take the client's description and return the result of `initialize`."""
        encoding = position_encoding(params)
        self.client = client_of(params, encoding)
        self.stage = Stage.READY
        return initialize_result(encoding)

    def shut_down(self) -> None:
        self.stage = Stage.SHUTDOWN

    def change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        self.client = self.client.with_folders(params.event)

    def exit_code(self) -> int:
        """Return the exit code for `exit` now."""
        return 0 if self.stage is Stage.SHUTDOWN else 1
