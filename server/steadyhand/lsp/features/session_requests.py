"""Answers the own requests about sessions and turns.

Params are structured and checked already. Each method calls the session layer and returns a view in the spelling of the
wire; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from steadyhand.domain.errors import invalid_params
from steadyhand.domain.views.serialize import to_plain
from steadyhand.lsp.features.prompt_params import prompt_of
from steadyhand.lsp.rpc.server import Server
from steadyhand.ports.model import ModelCandidate
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.service import moved_folders, prompt_queue, session_settings
from steadyhand.session.service.fork import fork
from steadyhand.session.service.models import check_model, list_models
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.service.revise import revise
from steadyhand.session.service.steer import steer
from steadyhand.session.uris import is_same_location, path_of
from steadyhand.tools.workspace.places import is_same_place
from steadyhand_protocol import session as on_sessions
from steadyhand_protocol import turn as on_turns
from steadyhand_protocol.recovery import SnapshotParams

TAIL_DEFAULT = 200


class SessionRequests:
    """Answers `steadyhand/session/*`, `steadyhand/turn/*` and their like."""

    def __init__(
        self,
        server: Server,
        registry: SessionRegistry,
        ready_registry: Callable[[], Awaitable[SessionRegistry]],
    ) -> None:
        """`ready_registry`: returns the registry when the first settings are known; for requests that begin work."""
        self._server = server
        self._registry = registry
        self._ready_registry = ready_registry
        for method, answerer in (
            ("session/create", self.create),
            ("session/list", self.list_sessions),
            ("session/open", self.open),
            ("session/close", self.close),
            ("session/setMode", self.set_mode),
            ("session/rename", self.rename),
            ("session/rebind", self.rebind),
            ("session/delete", self.delete),
            ("session/fork", self.fork),
            ("session/compact", self.compact),
            ("session/export", self.export),
            ("session/setModel", self.set_model),
            ("model/list", self.list_models),
            ("model/check", self.check_model),
            ("usage", self.read_usage),
            ("checkpoint/list", self.list_checkpoints),
            ("checkpoint/rewind", self.rewind),
            ("queue/edit", self.edit_queue),
            ("turn/start", self.start_turn),
            ("turn/revise", self.revise_turn),
            ("turn/steer", self.steer_turn),
            ("turn/status", self.read_status),
            ("turn/cancel", self.cancel_turn),
            ("turn/events", self.read_events),
            ("queue/resume", self.resume_queue),
            ("recovery/snapshot", self.read_snapshot),
        ):
            server.on(f"steadyhand/{method}", answerer)

    async def create(self, params: on_sessions.SessionCreateParams) -> object:
        folders = self._server.client.folders
        workspace = folders[0].uri if folders else None
        if params.workspace is not None:
            workspace = await self._folder_at(params.workspace)
            if workspace is None:
                raise invalid_params("$.workspace", moved_folders.NOT_OF_CLIENT)
        return to_plain(await self._registry.create(params.title, workspace))

    async def _folder_at(self, uri: str) -> str | None:
        """Return the client's folder at this URI, else the one that its path leads to (case 164)."""
        folders, path, context = self._server.client.folders, path_of(uri), self._registry.context
        named = next((folder.uri for folder in folders if is_same_location(folder.uri, uri)), None)
        if named is not None or path is None:
            return named
        for folder in folders:
            if folder.path is not None and await context.in_thread(is_same_place, context.disk, folder.path, path):
                return folder.uri
        return None

    async def list_sessions(self, _: object) -> object:
        return {"sessions": to_plain(await self._registry.list_sessions())}

    async def open(self, params: on_sessions.SessionOpenParams) -> object:
        tail = params.tail if params.tail is not None else TAIL_DEFAULT
        return to_plain(await self._registry.open(params.session_id, tail))

    async def close(self, params: on_sessions.SessionCloseParams) -> object:
        await self._registry.close(params.session_id)
        return {}

    async def set_mode(self, params: on_sessions.SessionSetModeParams) -> object:
        session = await self._registry.open_session(params.session_id)
        await session.set_mode(params.mode)
        return to_plain(session.view())

    async def set_model(self, params: on_sessions.SessionSetModelParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return to_plain(await session_settings.set_model(session, params.provider, params.name))

    async def list_models(self, _: object) -> object:
        return {"models": to_plain(await list_models(self._registry.context))}

    async def check_model(self, params: on_sessions.ModelCheckParams) -> object:
        candidate = ModelCandidate(params.provider, params.name, params.base_url, params.api_key_env)
        return to_plain(await check_model(self._registry.context, candidate))

    async def rename(self, params: on_sessions.SessionRenameParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return to_plain(await session_settings.rename(session, params.title))

    async def rebind(self, params: on_sessions.SessionRebindParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return to_plain(await moved_folders.rebind(session, await self._folder_at(params.workspace)))

    async def delete(self, params: on_sessions.SessionDeleteParams) -> object:
        await self._registry.delete(params.session_id, params.force is True)
        return {}

    async def fork(self, params: on_sessions.SessionForkParams) -> object:
        return to_plain(await fork(self._registry, params.session_id, params.turn_id, params.title))

    async def compact(self, params: on_sessions.SessionCompactParams) -> object:
        session = await (await self._ready_registry()).open_session(params.session_id)
        return to_plain(await prompt_queue.compact(session, params.epoch, params.focus))

    async def export(self, params: on_sessions.SessionExportParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return {"text": session_settings.export_text(session, params.format, params.redact is True)}

    async def read_usage(self, params: on_sessions.UsageParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return to_plain(session_settings.usage(session))

    async def list_checkpoints(self, params: on_sessions.CheckpointListParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return {"turns": to_plain(await session_settings.checkpoints(session))}

    async def rewind(self, params: on_sessions.CheckpointRewindParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return to_plain(await rewind(session, params.epoch, params.turn_id, params.what))

    async def edit_queue(self, params: on_turns.QueueEditParams) -> object:
        session = await self._registry.open_session(params.session_id)
        edited = await prompt_queue.edit_queue(session, params.client_message_id, params.text, params.remove is True)
        return {"queue": to_plain(edited)}

    async def start_turn(self, params: on_turns.TurnStartParams) -> object:
        prompt = prompt_of(params, self._server.client.encoding)
        session = await (await self._ready_registry()).open_session(params.session_id)
        accepted = await prompt_queue.submit(session, params.epoch, params.client_message_id, prompt)
        return {"accepted": True, **_members(to_plain(accepted))}

    async def revise_turn(self, params: on_sessions.TurnReviseParams) -> object:
        session = await (await self._ready_registry()).open_session(params.session_id)
        return to_plain(await revise(session, params.epoch, params.turn_id, params.client_message_id, params.text))

    async def steer_turn(self, params: on_sessions.TurnSteerParams) -> object:
        session = await (await self._ready_registry()).open_session(params.session_id)
        return to_plain(await steer(session, params.epoch, params.turn_id, params.client_message_id, params.text))

    async def read_status(self, params: on_turns.TurnStatusParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return to_plain(prompt_queue.status_of(session, params.client_message_id))

    async def cancel_turn(self, params: on_turns.TurnCancelParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return {"cancelled": await prompt_queue.cancel(session, params.turn_id)}

    async def read_events(self, params: on_turns.TurnEventsParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return to_plain(session.feed.events_after(params.epoch, params.after))

    async def resume_queue(self, params: on_turns.QueueResumeParams) -> object:
        session = await (await self._ready_registry()).open_session(params.session_id)
        return {"queue": to_plain(await prompt_queue.resume(session, params.epoch))}

    async def read_snapshot(self, params: SnapshotParams) -> object:
        session = await self._registry.open_session(params.session_id)
        return to_plain(session.snapshot())


def _members(plain: object) -> dict[str, object]:
    assert isinstance(plain, dict)
    return plain
