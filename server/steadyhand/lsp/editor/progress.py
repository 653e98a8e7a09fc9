"""`$/progress` for turns, in clients that show work done. It begins and ends with the turn; the user can cancel it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from steadyhand.domain.views.types import Began, TurnEnded, TurnEvent
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.rpc.pending_requests import EditorError
from steadyhand.lsp.rpc.server import Server

CREATE_S_MAX = 10.0
TURNS_SHOWN_MAX = 100


class Progress:
    """One token for each turn, its turn id."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._creating: dict[str, str | None] = {}  # turn whose token is being created → why it ended meanwhile
        self._shown: set[str] = set()
        self.cancel: Callable[[str], Awaitable[None]] | None = None
        server.on_lsp(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, self._follow_cancel)

    def follow(self, turn_event: TurnEvent) -> None:
        match turn_event.event:
            case Began() if self._is_supported() and len(self._creating) + len(self._shown) < TURNS_SHOWN_MAX:
                self._creating[turn_event.turn_id] = None
                self._server.start(partial(self._create, turn_event.turn_id), "progress of a turn")
            case TurnEnded(reason) if turn_event.turn_id in self._creating:
                self._creating[turn_event.turn_id] = reason
            case TurnEnded(reason) if turn_event.turn_id in self._shown:
                self._shown.discard(turn_event.turn_id)
                self._report(turn_event.turn_id, types.WorkDoneProgressEnd(message=reason))
            case _:
                pass

    def _is_supported(self) -> bool:
        window = self._server.client.capabilities.window
        return window is not None and window.work_done_progress is True

    async def _create(self, turn_id: str) -> None:
        try:
            params = types.WorkDoneProgressCreateParams(token=turn_id)
            await self._server.request(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params, CREATE_S_MAX)
        except EditorError:
            del self._creating[turn_id]
            return
        ended = self._creating.pop(turn_id)
        self._report(turn_id, types.WorkDoneProgressBegin(title="Steadyhand", cancellable=True))
        if ended is None:
            self._shown.add(turn_id)
        else:
            self._report(turn_id, types.WorkDoneProgressEnd(message=ended))

    def _report(self, turn_id: str, value: object) -> None:
        self._server.notify(types.PROGRESS, types.ProgressParams(token=turn_id, value=value))

    async def _follow_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        if self.cancel is not None and isinstance(params.token, str):
            await self.cancel(params.token)
