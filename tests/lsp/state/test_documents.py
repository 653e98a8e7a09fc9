"""The mirror of open documents against a naive model, and positions at the edges of lines and texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.text.positions import PositionEncoding
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.state.documents import Document, DocumentNotOpen, Documents, apply
from steadyhand.lsp.state.positions import line_end, offset_at, position_at
from steadyhand.session.uris import path_of, uri_of

ENCODINGS: tuple[PositionEncoding, ...] = ("utf-8", "utf-16", "utf-32")
PIECES = st.sampled_from(["a", "b ", "\n", "\r\n", "\r", "\u2028", "\x0b", "\x85", "é", "ज", "\U0001f600", "\t"])
TEXTS = st.lists(PIECES, max_size=25).map("".join)
POSITIONS = st.builds(types.Position, st.integers(0, 12), st.integers(0, 20))


def naive_lines(text: str) -> list[tuple[str, str]]:
    """(content, break) of every line, one character at a time."""
    lines = []
    content, rest = "", list(text)
    while rest:
        character = rest.pop(0)
        if character == "\r" and rest and rest[0] == "\n":
            lines.append((content, character + rest.pop(0)))
            content = ""
        elif character in "\r\n":
            lines.append((content, character))
            content = ""
        else:
            content += character
    return [*lines, (content, "")]


def naive_offset(text: str, position: types.Position, encoding: PositionEncoding) -> int:
    """The longest beginning of the line that fits into the column, measured by encoding it."""
    lines = naive_lines(text)
    if position.line >= len(lines):
        return len(text)
    before = sum(len(content) + len(end) for content, end in lines[: position.line])
    content = lines[position.line][0]
    unit = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    codec = encoding if unit == 1 else f"{encoding}-le"
    fitting = [n for n in range(len(content) + 1) if len(content[:n].encode(codec)) // unit <= position.character]
    return before + max(fitting)


@given(TEXTS, POSITIONS, st.sampled_from(ENCODINGS))
def test_offset_of_any_position_is_that_of_the_naive_model(
    text: str, position: types.Position, encoding: PositionEncoding
) -> None:
    """Row V1: Any position in any text and encoding is found, clamped to its line and to the text."""
    assert offset_at(text, position, encoding) == naive_offset(text, position, encoding)


@given(TEXTS, st.integers(0, 60), st.sampled_from(ENCODINGS))
def test_position_of_an_offset_leads_back_to_it(text: str, offset: int, encoding: PositionEncoding) -> None:
    """The position of an offset leads back to it. From inside a line break it leads to the end of the line."""
    offset = min(offset, len(text))
    back = offset_at(text, position_at(text, offset, encoding), encoding)
    inside = 0 < offset < len(text) and text[offset - 1 : offset + 1] == "\r\n"
    assert back == (offset - 1 if inside else offset)


@given(
    TEXTS,
    st.lists(st.tuples(POSITIONS, POSITIONS, TEXTS), max_size=6),
    st.sampled_from(ENCODINGS),
)
def test_text_after_changes_is_that_of_the_naive_model(
    text: str, edits: list[tuple[types.Position, types.Position, str]], encoding: PositionEncoding
) -> None:
    """A document after any changes has the text that the naive model has."""
    documents = Documents()
    documents.encoding = encoding
    documents.open(types.TextDocumentItem("file:///a", "plain", 1, text))
    expected = text
    for start, end, new in edits:
        ends = sorted(naive_offset(expected, each, encoding) for each in (start, end))
        expected = expected[: ends[0]] + new + expected[ends[1] :]
    changes = [
        types.TextDocumentContentChangePartial(range=types.Range(start, end), text=new) for start, end, new in edits
    ]
    document = documents.change("file:///a", 2, changes)
    assert document.text == expected
    assert document.text_at_open == text
    assert document.has_changed_since_save == (expected != text)


@pytest.mark.parametrize(
    ("text", "position", "offset"),
    [
        ("abc", (0, 99), 3),
        ("abc\n", (0, 99), 3),
        ("abc\r\nd", (0, 4), 3),
        ("abc\rd", (1, 0), 4),
        ("abc\n", (1, 0), 4),
        ("abc\n", (9, 9), 4),
        ("a\u2028b\nc", (1, 0), 4),
        ("", (0, 0), 0),
        ("\U0001f600x", (0, 1), 0),
        ("\U0001f600x", (0, 2), 1),
    ],
)
def test_column_past_the_line_is_clamped_to_its_end(text: str, position: tuple[int, int], offset: int) -> None:
    """A column past the end of a line is its end, before its break. A column inside a surrogate pair is before the
    pair. U+2028 ends no line."""
    assert offset_at(text, types.Position(*position), "utf-16") == offset


def test_line_end_is_before_the_break() -> None:
    """`line_end` counts in the encoding and leaves the break out."""
    assert line_end("é\U0001f600\r\nb", 0, "utf-16") == types.Position(0, 3)
    assert line_end("é\U0001f600\r\nb", 0, "utf-8") == types.Position(0, 6)
    assert line_end("é\U0001f600\r\nb", 1, "utf-8") == types.Position(1, 1)


def test_replacing_past_the_line_end_leaves_nothing() -> None:
    """A wide range replaces a whole line without an end. A known mirror corrupts the text in this case."""
    whole = types.Range(types.Position(0, 0), types.Position(0, 99))
    change = types.TextDocumentContentChangePartial(range=whole, text="X")
    assert apply("abc", change, "utf-16") == "X"
    assert apply("abc\n", change, "utf-16") == "X\n"


def open_document(documents: Documents, uri: str, text: str = "one") -> Document:
    """Open a document."""
    return documents.open(types.TextDocumentItem(uri, "python", 1, text))


def test_document_is_found_by_path_and_by_any_uri_spelling() -> None:
    """Two spellings of one URI are one document."""
    documents = Documents()
    open_document(documents, "file:///w/a%20b%3Ac.py")
    for uri in ("file:///w/a%20b%3Ac.py", "file:///w/a%20b:c.py", "file://localhost/w/./a%20b:c.py"):
        found = documents.by_uri(uri)
        assert found is not None, uri
        assert found.path == "/w/a b:c.py"
    assert documents.by_path("/w/x/../a b:c.py") == found
    assert documents.by_path("/w/other") is None
    open_document(documents, "file:///w/a%20b:c.py", "again")
    assert [document.text for document in documents.all()] == ["again"]


def test_unsaved_follows_changes_saves_and_the_file_at_open() -> None:
    """Row V1: A document is unsaved if it changed since the last save, or if the file did not have its text when it
    was opened."""
    documents = Documents()
    change = types.TextDocumentContentChangeWholeDocument("two")
    document = open_document(documents, "file:///a")
    assert document.is_unsaved is None, "no comparison with the file yet"
    documents.set_on_disk(document, False)
    assert documents.all()[0].is_unsaved is True
    documents.save(document.uri)
    documents.set_on_disk(document, False)  # too late: the document was saved meanwhile
    assert documents.all()[0].is_unsaved is False
    assert documents.change(document.uri, 2, [change]).is_unsaved is True
    document = open_document(documents, "file:///a")
    documents.set_on_disk(document, True)
    assert documents.all()[0].is_unsaved is False
    documents.close(document.uri)
    documents.set_on_disk(document, False)
    assert len(documents) == 0


def test_save_makes_text_the_saved_one_and_close_forgets_it() -> None:
    """A save makes the text the saved one. A document that a caller already holds does not change. Closing removes
    the document."""
    documents = Documents()
    first = open_document(documents, "untitled:1")
    assert first.path is None
    change = types.TextDocumentContentChangeWholeDocument("two")
    assert documents.change(first.uri, 2, [change]).has_changed_since_save
    assert not documents.save(first.uri).has_changed_since_save
    assert (first.text, first.version) == ("one", 1)
    documents.close(first.uri)
    assert len(documents) == 0
    for act in (documents.close, documents.save):
        with pytest.raises(DocumentNotOpen):
            act(first.uri)
    with pytest.raises(DocumentNotOpen):
        documents.change(first.uri, 3, [change])


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("file:////a//b/", "/a/b"),
        ("file:///%C3%A9%25", "/é%"),
        ("file://host/a", None),
        ("file:a", None),
        ("file:", None),
        ("file:///%ff", None),
        ("file:///a%00b", None),
        ("untitled:a", None),
        ("http://[", None),
        ("", None),
    ],
)
def test_path_of_accepts_only_file_uris_of_this_host(uri: str, path: str | None) -> None:
    """Only `file:` URIs of this host, in UTF-8 and without NUL, have a path."""
    assert path_of(uri) == path


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1))
def test_path_of_the_uri_of_a_path_is_that_path(name: str) -> None:
    """Whatever the name of a file, its URI leads back to it."""
    path = f"/w/x{name}"
    assert path_of(uri_of(path)) == path
