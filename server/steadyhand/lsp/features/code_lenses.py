"""Code lenses above the diagnostics of uncertain effects: one for each action that is offered now."""

from __future__ import annotations

from functools import partial

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.features.diagnostics_publisher import DiagnosticsPublisher
from steadyhand.lsp.rpc.server import Server


class CodeLenses:
    """Answers `textDocument/codeLens`, and asks the client to request lenses again when they change."""

    def __init__(self, server: Server, publisher: DiagnosticsPublisher) -> None:
        self._server = server
        self._publisher = publisher
        publisher.observe(self.refresh)
        server.on_lsp(types.TEXT_DOCUMENT_CODE_LENS, self.code_lenses)

    async def code_lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        await self._publisher.flush()
        return [
            types.CodeLens(range=effect.range, command=effect.command(action))
            for effect in self._publisher.at(params.text_document.uri)
            for action in effect.uncertain.actions
        ]

    def refresh(self) -> None:
        """Send the request in a task of its own: a client may answer late."""
        workspace = self._server.client.capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            request = partial(self._server.request_optional, types.WORKSPACE_CODE_LENS_REFRESH, None)
            self._server.start(request, "refreshing code lenses")
