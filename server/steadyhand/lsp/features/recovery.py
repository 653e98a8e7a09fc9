"""Answers `steadyhand/recovery/resolve` and the `steadyhand.recovery.*` commands (docs/protocol.md).

The commands work in any LSP client. A command without an inspection inspects and asks in a message what to do. It acts
on that inspection as the user chooses; without a usable answer it fails with `inspectFirst` and the inspection.
"""

from __future__ import annotations

from functools import partial

import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.views.questions import Option
from steadyhand.domain.views.recovery_snapshot import actions
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import Action, InspectionView
from steadyhand.lsp.editor.editor import LspEditor
from steadyhand.lsp.features.diagnostics_publisher import DiagnosticsPublisher
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.recovery.resolve import ResolutionRequest, ResolutionResult, refuse_beforehand
from steadyhand.session.recovery.survivors import end_survivors
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from steadyhand.session.uris import path_of
from steadyhand.tools.workspace.places import overlapping_paths
from steadyhand_protocol.recovery import EndSurvivorsArguments, RecoveryArguments, RecoveryListArguments, ResolveParams

LABELS: dict[Action, str] = {
    "confirm": "Confirm",
    "reject": "Reject",
    "waive": "Continue without knowing",
    "restore": "Restore",
    "retry": "Retry",
}
LATER = Option("later", "Later")
COMMANDS: tuple[Action, ...] = ("inspect", "confirm", "reject", "waive", "retry", "restore")


class RecoveryFeature:
    """Answers the request and the commands."""

    def __init__(
        self,
        server: Server,
        editor: LspEditor,
        registry: SessionRegistry,
        publisher: DiagnosticsPublisher,
    ) -> None:
        """A resolution is answered after `publisher` has published what it changed."""
        self._publisher = publisher
        self._server = server
        self._editor = editor
        self._registry = registry
        server.on("steadyhand/recovery/resolve", self.resolve)
        server.on_command("steadyhand.recovery.list", self.list_effects)
        server.on_command("steadyhand.recovery.endSurvivors", self.end_survivors)
        for action in COMMANDS:
            server.on_command(f"steadyhand.recovery.{action}", partial(self.run_command, action))

    async def resolve(self, params: ResolveParams) -> object:
        request = ResolutionRequest(
            params.attempt_id, params.action, params.runtime_epoch, params.revision, params.inspection_id
        )
        return await self._resolve(params.session_id, request)

    async def list_effects(self, arguments: RecoveryListArguments) -> object:
        """List the effects of the named session, or of every open session of the workspace's folders."""
        registry = self._registry
        if arguments.session_id is not None:
            sessions = [await registry.open_session(arguments.session_id)]
        else:
            sessions = await self._sessions_of_folders()
        snapshots = [session.snapshot() for session in sessions]
        return {
            "uncertain": [to_plain(call) for snapshot in snapshots for call in snapshot.calls],
            "settled": [to_plain(call) for snapshot in snapshots for call in snapshot.settled],
        }

    async def _sessions_of_folders(self) -> list[Session]:
        """Return the open sessions whose workspace overlaps a folder of the client, under whatever path (case 164)."""
        context, every = self._registry.context, list(self._registry.sessions.values())
        if not self._server.client.folders:
            return every
        paths = [path for path in map(_path, every) if path is not None]
        overlapping = await context.in_thread(overlapping_paths, context.disk, paths, context.window_folders())
        return [session for session in every if _path(session) in overlapping]

    async def end_survivors(self, arguments: EndSurvivorsArguments) -> object:
        session = await self._registry.open_session(arguments.session_id)
        return to_plain(await end_survivors(session, arguments.attempt_id, arguments.inspection_id))

    async def run_command(self, action: Action, arguments: RecoveryArguments) -> object:
        request = ResolutionRequest(
            arguments.attempt_id, action, arguments.runtime_epoch, arguments.revision, arguments.inspection_id
        )
        if action == "inspect" or arguments.inspection_id is not None:
            return await self._resolve(arguments.session_id, request)
        registry = self._registry
        session = await registry.open_session(arguments.session_id)
        refuse_beforehand(session, request)
        inspected = await resolve(session, attrs.evolve(request, action="inspect"))
        assert inspected.inspection is not None
        chosen = await self._ask(session, session.ledger.attempts[request.attempt_id], inspected.inspection)
        if chosen is None:
            text = "Nothing was decided. Inspect the effect, then repeat the command with the inspection's id."
            raise Refused("inspectFirst", text, {"inspection": to_plain(inspected.inspection)})
        decision = ResolutionRequest(
            request.attempt_id, chosen, request.epoch, inspection_id=inspected.inspection.inspection_id
        )
        done = await resolve(session, decision)
        await registry.release_if_done(session)
        await self._publisher.flush()
        return to_plain(ResolutionResult(done.snapshot, inspected.inspection))

    async def _resolve(self, session_id: str, request: ResolutionRequest) -> object:
        registry = self._registry
        session = await registry.open_session(session_id)
        done = await resolve(session, request)
        await registry.release_if_done(session)
        await self._publisher.flush()
        return to_plain(done)

    async def _ask(self, session: Session, attempt: Attempt, inspection: InspectionView) -> Action | None:
        choices = [action for action in actions(attempt, session.snapshot_context()) if action in LABELS]
        options = tuple(Option(action, LABELS[action]) for action in choices)
        chosen = await self._editor.choose(inspection.text, (*options, LATER))
        return next((action for action in choices if action == chosen), None)


def _path(session: Session) -> str | None:
    return path_of(session.workspace) if session.workspace is not None else None
