"""Compare each document with its file when it is opened, and when it is changed for the first time after that or after
a save: it may come with text that was never saved, and a change may be that the editor has read the file again (row
V1). What is uncertain of it is checked again (row V2).
"""

from __future__ import annotations

import anyio

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.features.diagnostics_publisher import DiagnosticsPublisher
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.recovery.documents_again import check_documents_again
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.tools.workspace.open_documents import compare_at_open, is_on_disk


class DocumentCheck:
    """Follows the document notifications. `publisher` follows each save too."""

    def __init__(self, server: Server, registry: SessionRegistry, publisher: DiagnosticsPublisher) -> None:
        self._documents = server.documents
        self._registry = registry
        self._context = registry.context
        self._publisher = publisher
        self._compared: dict[str, str] = {}  # uri → the first text that was compared last
        self._checking = anyio.Lock()
        self._waiting = set[str]()  # paths whose check waits for another one
        server.on_lsp(types.TEXT_DOCUMENT_DID_OPEN, self.check)
        server.on_lsp(types.TEXT_DOCUMENT_DID_CHANGE, self.check_change)
        server.on_lsp(types.TEXT_DOCUMENT_DID_SAVE, self.check_save)
        server.on_lsp(types.TEXT_DOCUMENT_DID_CLOSE, self.forget)

    async def check(self, params: types.DidOpenTextDocumentParams) -> None:
        """Compare a document that was opened."""
        document = self._documents.by_uri(params.text_document.uri)
        if document is None or document.path is None:
            return
        text = params.text_document.text
        found = await self._context.in_thread(compare_at_open, self._context.disk, document.path, text)
        self._documents.set_on_disk(document, *found)
        await self._check_uncertain(document.path)

    async def check_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Compare the first text after a save or the opening, once; typing on costs nothing."""
        document = self._documents.by_uri(params.text_document.uri)
        if document is None or document.path is None:
            return
        await self._check_uncertain(document.path)
        if document.first_text is None:
            return
        if self._compared.get(document.uri) is document.first_text:
            return
        self._compared[document.uri] = document.first_text
        disk = self._context.disk
        if await self._context.in_thread(is_on_disk, disk, document.path, document.first_text):
            self._documents.read_again(document)

    async def check_save(self, params: types.DidSaveTextDocumentParams) -> None:
        """Look whether a save makes an uncertain change certain; its diagnostic may be at another line now."""
        await self._publisher.follow_save(params)
        document = self._documents.by_uri(params.text_document.uri)
        if document is not None and document.path is not None:
            await self._check_uncertain(document.path)

    async def _check_uncertain(self, path: str) -> None:
        """Check it after the check that runs, if one does; whoever comes while one waits is served by that one.

        A check syncs files, so each typed letter must not begin one of its own."""
        if path in self._waiting:
            return
        self._waiting.add(path)
        try:
            await self._checking.acquire()
        finally:
            self._waiting.discard(path)
        try:
            await check_documents_again(self._registry.sessions.values(), path)
        finally:
            self._checking.release()

    async def forget(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a document that was closed."""
        self._compared.pop(params.text_document.uri, None)
