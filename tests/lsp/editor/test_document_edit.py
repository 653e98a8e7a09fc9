"""The edit of a document is one range whose result is the wanted text, in each encoding of positions (row V2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.text.positions import PositionEncoding
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.editor.document_edit import edit_of
from steadyhand.lsp.state.documents import Document, apply

TEXTS = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r", "é", "\U0001f600", "x\n"]), max_size=12).map("".join)


def applied(old: str, new: str, encoding: PositionEncoding) -> tuple[str, types.TextEdit]:
    document = Document("file:///a", "/a", "text", 7, old, old, old, True)
    changes = edit_of(document, new, encoding).edit.document_changes
    assert isinstance(changes, tuple)
    (change,) = changes
    assert (change.text_document.uri, change.text_document.version) == ("file:///a", 7)
    (edit,) = change.edits
    partial = types.TextDocumentContentChangePartial(edit.range, edit.new_text)
    return apply(old, partial, encoding), edit


@given(TEXTS, TEXTS, st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_edit_of_any_texts_gives_the_wanted_one(old: str, new: str, encoding: PositionEncoding) -> None:
    """V2: whatever the line ends and the characters are."""
    assert applied(old, new, encoding)[0] == new


@pytest.mark.parametrize(("old", "new", "text"), [("one\ntwo\n", "one\nTWO\n", "TWO"), ("a\r\nb", "a\r\nc", "c")])
def test_edit_replaces_only_what_differs(old: str, new: str, text: str) -> None:
    """V2: marks and cursors elsewhere in the document stay."""
    assert applied(old, new, "utf-16")[1].new_text == text
