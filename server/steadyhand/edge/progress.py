"""`$/progress` for turns, for clients that show work done: begun with the turn, ended with it, cancellable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from lsprotocol import types

from steadyhand.core.views import Began, TurnEnded, TurnEvent
from steadyhand.edge.asking import EditorError
from steadyhand.edge.server import Server

create_s_max = 10.0
turns_shown_max = 100


class Progress:
    """One token for each turn, its turn id."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._making: dict[str, str | None] = {}  # turn whose token is being made → why it ended meanwhile
        self._shown: set[str] = set()
        self.cancel: Callable[[str], Awaitable[None]] | None = None
        server.on_lsp(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, self._cancelled)

    def follow(self, told: TurnEvent) -> None:
        match told.event:
            case Began() if self._wanted() and len(self._making) + len(self._shown) < turns_shown_max:
                self._making[told.turn_id] = None
                self._server.start(partial(self._begin, told.turn_id), "progress of a turn")
            case TurnEnded(reason) if told.turn_id in self._making:
                self._making[told.turn_id] = reason
            case TurnEnded(reason) if told.turn_id in self._shown:
                self._shown.discard(told.turn_id)
                self._report(told.turn_id, types.WorkDoneProgressEnd(message=reason))
            case _:
                pass

    def _wanted(self) -> bool:
        window = self._server.client.capabilities.window
        return window is not None and window.work_done_progress is True

    async def _begin(self, turn_id: str) -> None:
        try:
            params = types.WorkDoneProgressCreateParams(token=turn_id)
            await self._server.request(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params, create_s_max)
        except EditorError:
            del self._making[turn_id]
            return
        ended = self._making.pop(turn_id)
        self._report(turn_id, types.WorkDoneProgressBegin(title="Steadyhand", cancellable=True))
        if ended is None:
            self._shown.add(turn_id)
        else:
            self._report(turn_id, types.WorkDoneProgressEnd(message=ended))

    def _report(self, turn_id: str, value: object) -> None:
        self._server.notify(types.PROGRESS, types.ProgressParams(token=turn_id, value=value))

    async def _cancelled(self, params: types.WorkDoneProgressCancelParams) -> None:
        if self.cancel is not None and isinstance(params.token, str):
            await self.cancel(params.token)
