"""Notifications about open documents: each changes the mirror at once, before the next message is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.state.documents import Documents


class DocumentNotifications:
    """What changes `documents`, by method."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.by_method: Mapping[str, Callable[[Any], None]] = {
            types.TEXT_DOCUMENT_DID_OPEN: self.open,
            types.TEXT_DOCUMENT_DID_CHANGE: self.change,
            types.TEXT_DOCUMENT_DID_SAVE: self.save,
            types.TEXT_DOCUMENT_DID_CLOSE: self.close,
        }

    def open(self, params: types.DidOpenTextDocumentParams) -> None:
        self._documents.open(params.text_document)

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        self._documents.change(document.uri, document.version, params.content_changes)

    def save(self, params: types.DidSaveTextDocumentParams) -> None:
        self._documents.save(params.text_document.uri)

    def close(self, params: types.DidCloseTextDocumentParams) -> None:
        self._documents.close(params.text_document.uri)
