"""Compare each document with its file when it is opened: it may come with text that was never saved (row V1)."""

from __future__ import annotations

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.tools.workspace.open_documents import is_on_disk


class DocumentCheck:
    """Follows `textDocument/didOpen`."""

    def __init__(self, server: Server, registry: SessionRegistry) -> None:
        self._documents = server.documents
        self._context = registry.context
        server.on_lsp(types.TEXT_DOCUMENT_DID_OPEN, self.check)

    async def check(self, params: types.DidOpenTextDocumentParams) -> None:
        document = self._documents.by_uri(params.text_document.uri)
        if document is None or document.path is None:
            return
        text = params.text_document.text
        on_disk = await self._context.in_thread(is_on_disk, self._context.disk, document.path, text)
        self._documents.set_on_disk(document, on_disk)
