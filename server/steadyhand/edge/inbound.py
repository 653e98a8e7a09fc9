"""From the wire to the house: each request of ours in a few lines, nothing decided here.

Params come structured and checked; answers are the house's views in the wire's spelling.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from steadyhand.core.plain import plain
from steadyhand.core.refusal import invalid
from steadyhand.edge.sent import prompt_of
from steadyhand.edge.server import Server
from steadyhand.session import desk, prompts
from steadyhand.session.house import House
from steadyhand.session.uris import same_place
from steadyhand_protocol import session as on_sessions
from steadyhand_protocol import turn as on_turns
from steadyhand_protocol.recovery import SnapshotParams

tail_default = 200


class Inbound:
    """Registers the requests of ours; `house` is asked for at each, since it is built after `initialize`.

    `settled`: the house for what begins work, when the first settings are known."""

    def __init__(
        self, server: Server, house: Callable[[], Awaitable[House]], settled: Callable[[], Awaitable[House]]
    ) -> None:
        self._server = server
        self._house = house
        self._settled = settled
        for method, answerer in (
            ("session/create", self.create),
            ("session/list", self.listed),
            ("session/open", self.open),
            ("session/close", self.close),
            ("session/setMode", self.set_mode),
            ("session/rename", self.rename),
            ("session/delete", self.delete),
            ("session/export", self.export),
            ("session/setModel", self.set_model),
            ("model/list", self.models),
            ("usage", self.usage),
            ("checkpoint/list", self.checkpoints),
            ("queue/edit", self.edit_queue),
            ("turn/start", self.start),
            ("turn/status", self.status),
            ("turn/cancel", self.cancel),
            ("turn/events", self.events),
            ("queue/resume", self.resume),
            ("recovery/snapshot", self.snapshot),
        ):
            server.on(f"steadyhand/{method}", answerer)

    async def create(self, params: on_sessions.SessionCreateParams) -> object:
        folders = self._server.client.folders
        workspace = folders[0].uri if folders else None
        if params.workspace is not None:
            workspace = next((folder.uri for folder in folders if same_place(folder.uri, params.workspace)), None)
            if workspace is None:
                raise invalid("$.workspace", "not one of the client's folders")
        return plain(await (await self._house()).create(params.title, workspace))

    async def listed(self, _: object) -> object:
        return {"sessions": plain(await (await self._house()).listed())}

    async def open(self, params: on_sessions.SessionOpenParams) -> object:
        tail = params.tail if params.tail is not None else tail_default
        return plain(await (await self._house()).open(params.session_id, tail))

    async def close(self, params: on_sessions.SessionCloseParams) -> object:
        await (await self._house()).close(params.session_id)
        return {}

    async def set_mode(self, params: on_sessions.SessionSetModeParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        await owner.set_mode(params.mode)
        return plain(owner.view())

    async def set_model(self, params: on_sessions.SessionSetModelParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return plain(await desk.set_model(owner, params.provider, params.name))

    async def models(self, _: object) -> object:
        return {"models": plain(await (await self._house()).offered())}

    async def rename(self, params: on_sessions.SessionRenameParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return plain(await desk.rename(owner, params.title))

    async def delete(self, params: on_sessions.SessionDeleteParams) -> object:
        await (await self._house()).delete(params.session_id, params.force is True)
        return {}

    async def export(self, params: on_sessions.SessionExportParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return {"text": desk.exported(owner, params.format)}

    async def usage(self, params: on_sessions.UsageParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return plain(desk.usage(owner))

    async def checkpoints(self, params: on_sessions.CheckpointListParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return {"turns": plain(desk.checkpoints(owner))}

    async def edit_queue(self, params: on_turns.QueueEditParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        edited = await desk.edit_queue(owner, params.client_message_id, params.text, params.remove is True)
        return {"queue": plain(edited)}

    async def start(self, params: on_turns.TurnStartParams) -> object:
        sent = prompt_of(params, self._server.client.encoding)
        owner = await (await self._settled()).owner(params.session_id)
        accepted = await prompts.prompt(owner, params.epoch, params.client_message_id, sent)
        return {"accepted": True, **_members(plain(accepted))}

    async def status(self, params: on_turns.TurnStatusParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return plain(prompts.status(owner, params.client_message_id))

    async def cancel(self, params: on_turns.TurnCancelParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return {"cancelled": await prompts.cancel(owner, params.turn_id)}

    async def events(self, params: on_turns.TurnEventsParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return plain(owner.events.after(params.epoch, params.after))

    async def resume(self, params: on_turns.QueueResumeParams) -> object:
        owner = await (await self._settled()).owner(params.session_id)
        return {"queue": plain(await prompts.resume(owner, params.epoch))}

    async def snapshot(self, params: SnapshotParams) -> object:
        owner = await (await self._house()).owner(params.session_id)
        return plain(owner.snapshot())


def _members(shown: object) -> dict[str, object]:
    assert isinstance(shown, dict)
    return shown
