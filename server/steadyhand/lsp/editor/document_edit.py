"""A change of an open document's text as `workspace/applyEdit` takes it: one range, with the document's version."""

from __future__ import annotations

from steadyhand.domain.text.edit import shared_ends
from steadyhand.domain.text.hidden_characters import show_hidden_in_value
from steadyhand.domain.text.positions import PositionEncoding
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.state.documents import Document
from steadyhand.lsp.state.positions import position_at

LABEL = "Steadyhand"
WHY_CHARS_MAX = 200


def edit_of(document: Document, text: str, encoding: PositionEncoding) -> types.ApplyWorkspaceEditParams:
    """Return the request that gives the document this text. Its one range never begins or ends inside a CRLF."""
    old = document.text
    head, tail = shared_ends(old, text)
    if head and old[head - 1] == "\r":
        head -= 1
    if tail and old[len(old) - tail] == "\n" and "\r" in (old[-tail - 1 : -tail], text[-tail - 1 : -tail]):
        tail -= 1
    start, end = (position_at(old, offset, encoding) for offset in (head, len(old) - tail))
    edit = types.TextEdit(types.Range(start, end), text[head : len(text) - tail])
    identifier = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
    changes = (types.TextDocumentEdit(identifier, (edit,)),)
    return types.ApplyWorkspaceEditParams(types.WorkspaceEdit(document_changes=changes), label=LABEL)


def one_clause(said: str) -> str:
    """Return what an editor said as a clause that a reply can show."""
    return show_hidden_in_value(" ".join(said.split())[:WHY_CHARS_MAX]).rstrip(".")
