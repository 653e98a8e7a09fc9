"""Builds one editor's server: the registry of sessions, the settings and the features (docs/architecture.md).

It builds in two phases. `App` connects the server to the ports, before anything is received. `_build` makes the rest at
`initialize`, because the client's options say where sessions are stored; no request can reach a feature earlier. At the
end the registry cancels turns, ends children and closes journals.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from steadyhand import __version__
from steadyhand.config.settings import state_directory, state_directory_path
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.editor.editor import LspEditor
from steadyhand.lsp.features.code_actions import CodeActions
from steadyhand.lsp.features.code_lenses import CodeLenses
from steadyhand.lsp.features.commands import CommandsFeature
from steadyhand.lsp.features.diagnostics_publisher import DiagnosticsPublisher
from steadyhand.lsp.features.document_check import DocumentCheck
from steadyhand.lsp.features.recovery import RecoveryFeature
from steadyhand.lsp.features.review import ReviewFeature
from steadyhand.lsp.features.session_requests import SessionRequests
from steadyhand.lsp.features.settings import SettingsFeature
from steadyhand.lsp.features.virtual_documents import VirtualDocuments
from steadyhand.lsp.rpc.server import Server
from steadyhand.lsp.rpc.stdio import Stdio
from steadyhand.ports.disk import Disk
from steadyhand.ports.encodings import DetectEncodings, no_detection
from steadyhand.ports.model import Models
from steadyhand.ports.processes import Processes
from steadyhand.ports.system import Clock, Ids, TextFilter
from steadyhand.session.context import OpenFolder, SessionContext
from steadyhand.session.private_state import PrivateState
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.build_context import build_context
from steadyhand.session.service.known_doubts import KnownDoubts
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.service.retention import apply_retention
from steadyhand.session.session import DoubtsUnknown
from steadyhand.tools.registry import TOOLS

log = logging.getLogger(__name__)


class App:
    """Runs once."""

    def __init__(
        self,
        stdio: Stdio,
        client_process_id: int | None,
        state_flag: str | None,
        disk: Disk,
        processes: Processes,
        clock: Clock,
        ids: Ids,
        models: Models,
        text_filter: TextFilter | None = None,
        detect: DetectEncodings = no_detection,
    ) -> None:
        """`state_flag`: the value of `--state-dir`, None where it is absent."""
        self._server = Server(stdio, client_process_id=client_process_id)
        self._state_flag = state_flag
        self._disk = disk
        self._processes = processes
        self._clock = clock
        self._ids = ids
        self._models = models
        self._text_filter = text_filter
        self._detect = detect
        self._registry: SessionRegistry | None = None  # None before `initialize`
        self._server.on_initialize(self._build)
        self._server.on_stop(self._stop)

    def run(self) -> int:
        """Serve; return the exit code."""
        return self._server.run()

    def _build(self) -> None:
        """Build the registry and register every feature."""
        server, editor = self._server, LspEditor(self._server)
        chosen, fault = state_directory(self._state_flag, self._processes.environment(), server.client.options)
        context = self._context(editor, PrivateState(self._disk, state_directory_path(chosen)).prepare())
        registry = self._registry = SessionRegistry(context)
        settings = SettingsFeature(server, editor, registry, fault)
        if context.providers is not None:
            context.providers.connect(lambda: context.settings, editor.secret)
        publisher = DiagnosticsPublisher(server, registry)
        editor.on_snapshot(publisher.follow_snapshot)
        editor.on_progress_cancelled(partial(_cancel_turn, registry))
        CodeActions(server, publisher, ReviewFeature(server, registry, publisher))
        CodeLenses(server, publisher)
        SessionRequests(server, registry, settings.ready_registry)
        CommandsFeature(server, registry, settings.ready_registry)
        RecoveryFeature(server, editor, registry, publisher)
        DocumentCheck(server, registry, publisher)
        doubts = KnownDoubts(registry, lambda: [folder.uri for folder in server.client.folders])
        server.on_lsp(
            types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, partial(_follow_folders, registry, doubts, settings)
        )
        server.on_initialized(partial(_start, server, registry, doubts, settings))

    def _context(self, editor: LspEditor, state_directory: str) -> SessionContext:
        return build_context(
            disk=self._disk,
            processes=self._processes,
            clock=self._clock,
            ids=self._ids,
            models=self._models,
            editor=editor,
            tools={tool.name: tool for tool in TOOLS},
            version=__version__,
            state_directory=state_directory,
            spawn=self._server.start,
            text_filter=self._text_filter,
            detect=self._detect,
            window_folders=self._window_folders,
            open_folders=self._open_folders,
        )

    def _window_folders(self) -> tuple[str, ...]:
        """Return the paths of the open workspace folders."""
        return tuple(folder.path for folder in self._server.client.folders if folder.path is not None)

    def _open_folders(self) -> tuple[OpenFolder, ...]:
        """Return the open workspace folders that are files, in the client's order."""
        folders = self._server.client.folders
        return tuple(OpenFolder(folder.uri, folder.name) for folder in folders if folder.path is not None)

    async def _stop(self) -> None:
        if self._registry is not None:
            await self._registry.stop()
        else:
            await self._processes.end_all()


async def _start(server: Server, registry: SessionRegistry, doubts: KnownDoubts, settings: SettingsFeature) -> None:
    """Resolve the open folders, ask for the workspace's settings, then scan the folders' sessions (rows A8, S11)."""
    server.start(VirtualDocuments(server, registry).register, "registering virtual documents")
    await _learn(registry, [folder.uri for folder in server.client.folders])
    await settings.ask_workspace()
    await _read_doubts(doubts)
    server.start(partial(apply_retention, registry), "removing stored contents that nobody needs")


async def _follow_folders(
    registry: SessionRegistry,
    doubts: KnownDoubts,
    settings: SettingsFeature,
    params: types.DidChangeWorkspaceFoldersParams,
) -> None:
    """Resolve the new folders; read their earlier sessions, and the settings of the folders that are open now."""
    await _learn(registry, [folder.uri for folder in params.event.added])
    await _read_doubts(doubts)
    await settings.ask_workspace()


async def _learn(registry: SessionRegistry, uris: Sequence[str]) -> None:
    await registry.context.in_thread(registry.context.folders.learn, uris)


async def _read_doubts(doubts: KnownDoubts) -> None:
    try:
        await doubts.read()
    except DoubtsUnknown as unknown:
        log.warning("%s", unknown)  # the first effect tries again, and its refusal says so


async def _cancel_turn(registry: SessionRegistry, turn_id: str) -> None:
    for session in list(registry.sessions.values()):
        if session.turn is not None and session.turn.turn_id == turn_id:
            await prompt_queue.cancel(session, turn_id)
