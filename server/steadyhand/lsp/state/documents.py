"""The mirror of the documents that are open in the editor.

Each document is a frozen value that a change replaces, so a reader sees the document at one moment. The changes of one
notification apply in their order, all or none. If a document is opened twice, the later one counts. Paths are absolute
and normalized, links are not resolved; only documents with a `file:` URI have a path.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

import anyio
import attrs

from steadyhand.domain.text.decoding import to_lf
from steadyhand.domain.text.positions import PositionEncoding
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.state.positions import offset_at
from steadyhand.session.uris import normalize, path_of
from steadyhand_values import frozen

Change = types.TextDocumentContentChangePartial | types.TextDocumentContentChangeWholeDocument


@frozen
class Document:
    """One open document at one moment."""

    uri: str  # as the client spells it
    path: str | None  # absolute; None where it is no file: URI
    language: str  # languageId
    version: int  # of the client
    text: str
    text_at_open: str
    text_at_save: str  # the text when it was saved last, else when it was opened
    on_disk: bool | None  # whether `text_at_save` was on disk then; None: not known (yet)
    first_text: str | None = None  # the text after the first change since then; None: there was none
    opened_over: str | None = None  # digest of the file at opening if it had another text; "": no file; None: not known

    @property
    def has_changed_since_save(self) -> bool:
        """Whether the text differs from that at the last save, or at opening."""
        return self.text != self.text_at_save

    @property
    def is_unsaved(self) -> bool | None:
        """Whether the text differs from the file; None: the mirror does not know."""
        if self.has_changed_since_save:
            return True
        return None if self.on_disk is None else not self.on_disk


class DocumentNotOpen(Exception):
    """The client changes, saves or closes a document that it has not opened."""


class Documents:
    """All open documents of one client; `encoding` is set once, at `initialize`."""

    def __init__(self) -> None:
        self.encoding: PositionEncoding = "utf-16"
        self._by_uri: dict[str, Document] = {}
        self._by_path: dict[str, str] = {}  # path → uri of the document opened last there
        self._watched: list[tuple[str, str, anyio.Event]] = []  # uri, text with LF, set when the document has it

    def __len__(self) -> int:
        return len(self._by_uri)

    def all(self) -> tuple[Document, ...]:
        """Every open document, in the order of opening."""
        return tuple(self._by_uri.values())

    def by_uri(self, uri: str) -> Document | None:
        """The document with this URI, or with another spelling of the same path."""
        exact = self._by_uri.get(uri)
        if exact is not None:
            return exact
        path = path_of(uri)
        return None if path is None else self.by_path(path)

    def by_path(self, path: str) -> Document | None:
        """The document at an absolute path."""
        uri = self._by_path.get(normalize(path))
        return None if uri is None else self._by_uri[uri]

    def open(self, item: types.TextDocumentItem) -> Document:
        """Add a document; it replaces one with the same path."""
        known = self.by_uri(item.uri)
        if known is not None:
            self.close(known.uri)
        document = Document(
            uri=item.uri,
            path=path_of(item.uri),
            language=str(item.language_id),
            version=item.version,
            text=item.text,
            text_at_open=item.text,
            text_at_save=item.text,
            on_disk=None,
        )
        self._by_uri[document.uri] = document
        if document.path is not None:
            self._by_path[document.path] = document.uri
        return document

    def change(self, uri: str, version: int, changes: Iterable[Change]) -> Document:
        """Apply changes of the text. Raises DocumentNotOpen."""
        document = self._require_open(uri)
        text = document.text
        for change in changes:
            text = apply(text, change, self.encoding)
        first = document.first_text if document.has_changed_since_save else text
        return self._put(attrs.evolve(document, text=text, version=version, first_text=first))

    @contextmanager
    def watch(self, uri: str, text: str) -> Generator[anyio.Event, None, None]:
        """Give an event that is set when the document has this text, line ends aside, also if only for a moment."""
        watched = (uri, to_lf(text), anyio.Event())
        self._watched.append(watched)
        try:
            yield watched[2]
        finally:
            self._watched.remove(watched)

    def save(self, uri: str) -> Document:
        """The client wrote the document to its file as it is. Raises DocumentNotOpen."""
        document = self._require_open(uri)
        return self._put(attrs.evolve(document, text_at_save=document.text, on_disk=True, first_text=None))

    def set_on_disk(self, opened: Document, on_disk: bool | None, opened_over: str | None = None) -> None:
        """Store the comparison of a document with its file at opening, unless it was saved or opened again since.

        `opened_over`: the digest of a file with another text; "": there was no file."""
        now = self._by_uri.get(opened.uri)
        if now is not None and now.on_disk is None and now.text_at_open == opened.text_at_open:
            self._put(attrs.evolve(now, on_disk=on_disk, opened_over=opened_over))

    def read_again(self, changed: Document) -> None:
        """Store that the first change of a saved document gave it the text of its file: the editor has read it again.

        Nothing is stored if it was saved or opened again since."""
        now = self._by_uri.get(changed.uri)
        if now is None or changed.first_text is None or now.first_text is not changed.first_text:
            return
        first = None if now.text == changed.first_text else now.text
        self._put(attrs.evolve(now, text_at_save=changed.first_text, on_disk=True, first_text=first))

    def close(self, uri: str) -> None:
        """Forget a document. Raises DocumentNotOpen."""
        document = self._require_open(uri)
        del self._by_uri[document.uri]
        if document.path is not None:
            del self._by_path[document.path]

    def _require_open(self, uri: str) -> Document:
        document = self.by_uri(uri)
        if document is None:
            raise DocumentNotOpen(uri)
        return document

    def _put(self, document: Document) -> Document:
        self._by_uri[document.uri] = document
        for uri, text, has_it in self._watched:
            if uri == document.uri and to_lf(document.text) == text:
                has_it.set()
        return document


def apply(text: str, change: Change, encoding: PositionEncoding) -> str:
    """Return the text after one change. The ends of a range may come in either order."""
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return change.text
    ends = (change.range.start, change.range.end)
    start, end = sorted(offset_at(text, position, encoding) for position in ends)
    return text[:start] + change.text + text[end:]
