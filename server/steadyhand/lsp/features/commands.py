"""The `steadyhand.*` commands that are not about recovery: ask, cancel, permissions, doctor. For any LSP client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import anyio

from steadyhand.domain.errors import invalid_params
from steadyhand.domain.views.render import answer_text
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import TurnEnded
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.doctor import diagnose
from steadyhand.session.service.grant_list import forget, list_grants
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.session import Session
from steadyhand_protocol.approval import PermissionsForgetArguments
from steadyhand_protocol.commands import AskArguments, CancelArguments

CANCEL_S_MAX = 30.0


class CommandsFeature:
    """Answers the commands. `ask` without a session uses the session that it used last in this process."""

    def __init__(
        self,
        server: Server,
        registry: SessionRegistry,
        ready_registry: Callable[[], Awaitable[SessionRegistry]],
    ) -> None:
        """`ready_registry`: returns the registry when the first settings are known; for commands that begin work."""
        self._server = server
        self._registry = registry
        self._ready_registry = ready_registry
        self._last_session_id: str | None = None
        server.on_command("steadyhand.ask", self.ask)
        server.on_command("steadyhand.cancel", self.cancel)
        server.on_command("steadyhand.doctor", self.diagnose)
        server.on_command("steadyhand.permissions.list", self.list_permissions)
        server.on_command("steadyhand.permissions.forget", self.forget_permission)

    async def ask(self, arguments: AskArguments) -> object:
        registry = await self._ready_registry()
        session = await self._session(registry, arguments.session_id)
        client_message_id = arguments.client_message_id or registry.context.ids.new()
        accepted = await prompt_queue.submit(session, None, client_message_id, arguments.text)
        self._last_session_id = session.session_id
        ids = {"sessionId": session.session_id, "turnId": accepted.turn_id}
        if arguments.wait is False:
            self._server.start(partial(self._show_answer, session, accepted.turn_id), "showing an answer")
            return ids
        if prompt_queue.status_of(session, client_message_id).state == "interrupted":  # by a crash, so it will not end
            return {**ids, "text": answer_text(session.ledger, accepted.turn_id)}
        try:
            ended = await session.feed.wait_until_ended(accepted.turn_id)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(CANCEL_S_MAX):
                await prompt_queue.cancel(session, accepted.turn_id)
            raise
        text = answer_text(session.ledger, accepted.turn_id)
        return {**ids, "text": text, "reason": ended.reason, "changed": to_plain(ended.changed)}

    async def cancel(self, arguments: CancelArguments) -> object:
        session = await self._registry.open_session(arguments.session_id)
        return {"cancelled": await prompt_queue.cancel(session, None)}

    async def diagnose(self, _: None) -> object:
        context = self._registry.context
        return to_plain(await diagnose(context, context.window_folders()))

    async def list_permissions(self, _: None) -> object:
        registry = self._registry
        return {"grants": to_plain(await list_grants(registry.context, list(registry.sessions.values())))}

    async def forget_permission(self, arguments: PermissionsForgetArguments) -> object:
        registry = self._registry
        sessions = list(registry.sessions.values())
        grants = [one for one in await list_grants(registry.context, sessions) if one.grant_id == arguments.grant_id]
        if not grants:
            raise invalid_params("$.arguments.grantId", "no remembered permission has this id")
        await forget(registry.context, sessions, grants)
        return {"grants": to_plain(await list_grants(registry.context, sessions))}

    async def _session(self, registry: SessionRegistry, session_id: str | None) -> Session:
        session_id = session_id or self._last_session_id
        if session_id is None:
            folders = self._server.client.folders
            session_id = (await registry.create(None, folders[0].uri if folders else None)).session_id
        return await registry.open_session(session_id)

    async def _show_answer(self, session: Session, turn_id: str) -> None:
        ended: TurnEnded = await session.feed.wait_until_ended(turn_id)
        text = answer_text(session.ledger, turn_id).strip()
        turn = session.ledger.turns.get(turn_id)
        why = turn.ended.text if turn is not None and turn.ended is not None else None
        if ended.reason == "done":
            session.feed.notify_message("info", text or "The turn ended without an answer.")
        else:
            session.feed.notify_message(
                "warning", f"{text}\n\n{why or ''}".strip() or f"The turn ended: {ended.reason}."
            )
