"""The `steadyhand.*` commands that are not about recovery: ask, cancel, permissions, doctor. For any LSP client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from steadyhand.core.plain import plain
from steadyhand.core.refusal import invalid
from steadyhand.core.show import last_text
from steadyhand.core.views import TurnEnded
from steadyhand.edge.server import Server
from steadyhand.session import prompts
from steadyhand.session.diagnosis import diagnose
from steadyhand.session.granted import forget, granted
from steadyhand.session.house import House
from steadyhand.session.owner import Owner
from steadyhand_protocol.approval import PermissionsForgetArguments
from steadyhand_protocol.commands import AskArguments, CancelArguments

cancel_s_max = 30.0


class Commands:
    """Registers the commands. `ask` remembers the session it used last in this process.

    `settled`: the house for what begins work, when the first settings are known."""

    def __init__(
        self, server: Server, house: Callable[[], Awaitable[House]], settled: Callable[[], Awaitable[House]]
    ) -> None:
        self._server = server
        self._house = house
        self._settled = settled
        self._last: str | None = None
        server.on_command("steadyhand.ask", self.ask)
        server.on_command("steadyhand.cancel", self.cancel)
        server.on_command("steadyhand.doctor", self.doctor)
        server.on_command("steadyhand.permissions.list", self.permissions)
        server.on_command("steadyhand.permissions.forget", self.forget)

    async def ask(self, given: AskArguments) -> object:
        house = await self._settled()
        owner = await self._session(house, given.session_id)
        client_message_id = given.client_message_id or house.world.ids.new()
        accepted = await prompts.prompt(owner, None, client_message_id, given.text)
        self._last = owner.session_id
        begun = {"sessionId": owner.session_id, "turnId": accepted.turn_id}
        if given.wait is False:
            self._server.start(lambda: self._show_answer(owner, accepted.turn_id), "showing an answer")
            return begun
        if prompts.status(owner, client_message_id).state == "interrupted":  # by a crash: nobody will end it
            return {**begun, "text": last_text(owner.ledger, accepted.turn_id)}
        try:
            ended = await owner.wait_ended(accepted.turn_id)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(cancel_s_max):
                await prompts.cancel(owner, accepted.turn_id)
            raise
        text = last_text(owner.ledger, accepted.turn_id)
        return {**begun, "text": text, "reason": ended.reason, "changed": plain(ended.changed)}

    async def cancel(self, given: CancelArguments) -> object:
        owner = await (await self._house()).owner(given.session_id)
        return {"cancelled": await prompts.cancel(owner, None)}

    async def doctor(self, _: None) -> object:
        return plain(await diagnose(await self._house()))

    async def permissions(self, _: None) -> object:
        house = await self._house()
        return {"grants": plain(await granted(house.world, list(house.owners.values())))}

    async def forget(self, given: PermissionsForgetArguments) -> object:
        house = await self._house()
        owners = list(house.owners.values())
        grants = [one for one in await granted(house.world, owners) if one.grant_id == given.grant_id]
        if not grants:
            raise invalid("$.arguments.grantId", "no remembered permission has this id")
        await forget(house.world, owners, grants)
        return {"grants": plain(await granted(house.world, owners))}

    async def _session(self, house: House, session_id: str | None) -> Owner:
        session_id = session_id or self._last
        if session_id is None:
            folders = self._server.client.folders
            session_id = (await house.create(None, folders[0].uri if folders else None)).session_id
        return await house.owner(session_id)

    async def _show_answer(self, owner: Owner, turn_id: str) -> None:
        ended: TurnEnded = await owner.wait_ended(turn_id)
        text = last_text(owner.ledger, turn_id).strip()
        turn = owner.ledger.turns.get(turn_id)
        why = turn.ended.text if turn is not None and turn.ended is not None else None
        if ended.reason == "done":
            owner.say("info", text or "The turn ended: done.")
        else:
            owner.say("warning", f"{text}\n\n{why or ''}".strip() or f"The turn ended: {ended.reason}.")
