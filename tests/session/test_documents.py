"""The mirror of open documents against a naive model, and positions at their edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from steadyhand.core.text_positions import PositionEncoding
from steadyhand.edge.documents import Document, Documents, Unopened, apply
from steadyhand.edge.positions import line_end, offset_at, position_at
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
    """The longest beginning of the line that fits in the column, measured by really encoding it."""
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
def test_an_offset_is_that_of_the_naive_model(text: str, position: types.Position, encoding: PositionEncoding) -> None:
    """Any position in any text and encoding is found, clamped to its line and to the text (row V1)."""
    assert offset_at(text, position, encoding) == naive_offset(text, position, encoding)


@given(TEXTS, st.integers(0, 60), st.sampled_from(ENCODINGS))
def test_positions_and_offsets_agree(text: str, offset: int, encoding: PositionEncoding) -> None:
    """The position of an offset leads back to it, or, from inside a line break, to the line's end."""
    offset = min(offset, len(text))
    back = offset_at(text, position_at(text, offset, encoding), encoding)
    inside = 0 < offset < len(text) and text[offset - 1 : offset + 1] == "\r\n"
    assert back == (offset - 1 if inside else offset)


@given(
    TEXTS,
    st.lists(st.tuples(POSITIONS, POSITIONS, TEXTS), max_size=6),
    st.sampled_from(ENCODINGS),
)
def test_changes_in_a_row_are_those_of_the_naive_model(
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
    assert document.changed_since_save == (expected != text)


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
def test_columns_are_clamped_to_their_line(text: str, position: tuple[int, int], offset: int) -> None:
    """Past the end of a line is its end, before its break; inside a pair is before it; U+2028 ends no line."""
    assert offset_at(text, types.Position(*position), "utf-16") == offset


def test_the_end_of_a_line_is_before_its_break() -> None:
    """`line_end` counts in the encoding and leaves the break out."""
    assert line_end("é\U0001f600\r\nb", 0, "utf-16") == types.Position(0, 3)
    assert line_end("é\U0001f600\r\nb", 0, "utf-8") == types.Position(0, 6)
    assert line_end("é\U0001f600\r\nb", 1, "utf-8") == types.Position(1, 1)


def test_replacing_past_the_end_leaves_nothing_over() -> None:
    """The case in which a known mirror corrupts a text: a whole line without an end, replaced by a wide range."""
    whole = types.Range(types.Position(0, 0), types.Position(0, 99))
    change = types.TextDocumentContentChangePartial(range=whole, text="X")
    assert apply("abc", change, "utf-16") == "X"
    assert apply("abc\n", change, "utf-16") == "X\n"


def opened(documents: Documents, uri: str, text: str = "one") -> Document:
    """Open a document."""
    return documents.open(types.TextDocumentItem(uri, "python", 1, text))


def test_a_document_is_found_by_path_and_by_any_spelling_of_its_uri() -> None:
    """Two spellings of one URI are one document."""
    documents = Documents()
    opened(documents, "file:///w/a%20b%3Ac.py")
    for uri in ("file:///w/a%20b%3Ac.py", "file:///w/a%20b:c.py", "file://localhost/w/./a%20b:c.py"):
        found = documents.by_uri(uri)
        assert found is not None, uri
        assert found.path == "/w/a b:c.py"
    assert documents.by_path("/w/x/../a b:c.py") == found
    assert documents.by_path("/w/other") is None
    opened(documents, "file:///w/a%20b:c.py", "again")
    assert [document.text for document in documents.all()] == ["again"]


def test_what_the_mirror_can_tell() -> None:
    """V1: unsaved is what changed since the last save, and what the file did not have when it was opened."""
    documents = Documents()
    change = types.TextDocumentContentChangeWholeDocument("two")
    document = opened(documents, "file:///a")
    assert document.unsaved is None, "nobody has looked"
    documents.compared(document, False)
    assert documents.all()[0].unsaved is True
    documents.save(document.uri)
    documents.compared(document, False)  # late: it was saved meanwhile
    assert documents.all()[0].unsaved is False
    assert documents.change(document.uri, 2, [change]).unsaved is True
    document = opened(documents, "file:///a")
    documents.compared(document, True)
    assert documents.all()[0].unsaved is False
    documents.close(document.uri)
    documents.compared(document, False)
    assert len(documents) == 0


def test_saving_and_closing() -> None:
    """A save makes the text the saved one, whoever held the document sees what it was, and closing forgets it."""
    documents = Documents()
    first = opened(documents, "untitled:1")
    assert first.path is None
    change = types.TextDocumentContentChangeWholeDocument("two")
    assert documents.change(first.uri, 2, [change]).changed_since_save
    assert not documents.save(first.uri).changed_since_save
    assert (first.text, first.version) == ("one", 1)
    documents.close(first.uri)
    assert len(documents) == 0
    for act in (documents.close, documents.save):
        with pytest.raises(Unopened):
            act(first.uri)
    with pytest.raises(Unopened):
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
def test_the_path_of_a_uri(uri: str, path: str | None) -> None:
    """Only `file:` URIs of this host, in UTF-8 and without NUL, have a path."""
    assert path_of(uri) == path


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1))
def test_a_path_comes_back_from_its_uri(name: str) -> None:
    """Whatever a file is called, its URI leads back to it."""
    path = f"/w/x{name}"
    assert path_of(uri_of(path)) == path
