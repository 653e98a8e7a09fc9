"""Decode a file of the workspace by the rules of row W10, with what the editor and `.editorconfig` say.

The `.editorconfig` files between the file's folder and the workspace folder count; one that is a link, is larger than
`CONFIG_BYTES_MAX` or is not UTF-8 counts as none. For a file outside the workspace none is read. A rule of the setting
`files.encoding` that names a language fits documents that are open. Blocks.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from functools import partial

from steadyhand.domain.settings import EncodingRule
from steadyhand.domain.text.decoding import (
    FileText,
    Naming,
    NewText,
    NotText,
    Recognized,
    decode,
    recognize,
)
from steadyhand.domain.text.editorconfig import EditorConfig, charset_of, parse_editorconfig
from steadyhand.domain.text.encodings import TextEncoding, encoding_named
from steadyhand.domain.text.globs import Glob, glob
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.paths import ResolvedPath, open_folder, parts_of

EDITORCONFIG = ".editorconfig"
CONFIG_BYTES_MAX = 256 * 1024


class FileEncodings:
    """The rules for the files of one call; each `.editorconfig` is read once."""

    def __init__(self, tool_context: ToolContext) -> None:
        self._context = tool_context
        self._read: dict[tuple[str, ...], EditorConfig | None] = {}

    def naming(self, path: str, asked: str | None = None) -> Naming:
        """Return who names the encoding of the file. `path`: absolute, links resolved; `asked`: as the call has it."""
        paths = (
            [path] if asked is None else [path, posixpath.normpath(posixpath.join(self._context.root or "/", asked))]
        )
        return Naming(
            partial(self._reported, paths),
            partial(self._configured, path, paths),
            self._context.encodings.candidates,
        )

    def decode(self, path: str, raw: bytes, asked: str | None = None) -> FileText | NotText:
        """Return the text of a whole file, or why it has none."""
        return decode(raw, self.naming(path, asked))

    def _reported(self, paths: list[str]) -> str | None:
        for path in paths:
            said = self._context.encodings.reported(path)
            if said is not None:
                return said
        return None

    def _configured(self, path: str, paths: list[str]) -> Iterator[str | None]:
        yield self._charset(path)
        yield self._by_setting(path, paths)

    def _charset(self, path: str) -> str | None:
        parts, top = parts_of(path), parts_of(self._context.root) if self._context.root is not None else None
        if top is None or parts[: len(top)] != top:
            return None
        nearest: list[tuple[EditorConfig, tuple[str, ...]]] = []
        for length in range(len(parts) - 1, len(top) - 1, -1):
            found = self._editorconfig(parts[:length])
            if found is not None:
                nearest.append((found, parts[length:]))
        return charset_of(nearest)

    def _editorconfig(self, folder: tuple[str, ...]) -> EditorConfig | None:
        if folder not in self._read:
            self._read[folder] = self._parse(folder)
        return self._read[folder]

    def _parse(self, folder: tuple[str, ...]) -> EditorConfig | None:
        try:
            with open_folder(self._context, folder) as opened:
                raw = self._context.disk.read(opened, EDITORCONFIG, CONFIG_BYTES_MAX + 1)
            return None if len(raw) > CONFIG_BYTES_MAX else parse_editorconfig(raw.decode("utf-8"))
        except (OSError, UnicodeDecodeError):
            return None

    def _by_setting(self, path: str, paths: list[str]) -> str | None:
        rules = self._context.encodings.rules()
        return next((rule.encoding for rule in rules if self._fits(rule, path, paths)), None)

    def _fits(self, rule: EncodingRule, path: str, paths: list[str]) -> bool:
        if rule.language is not None:
            documents = (self._context.document(one) for one in paths)
            if not any(document is not None and document.language == rule.language for document in documents):
                return False
        if rule.match is None:
            return True
        wanted = glob(rule.match)
        top = parts_of(self._context.root or "/")
        parts = parts_of(path)
        inside = parts[len(top) :] if parts[: len(top)] == top else parts
        return isinstance(wanted, Glob) and wanted.matches(inside)


def decode_file(tool_context: ToolContext, located: ResolvedPath, raw: bytes) -> FileText | NotText:
    """Return the text of a whole file, or why it has none."""
    return FileEncodings(tool_context).decode(located.resolved, raw, located.asked)


def recognize_beginning(tool_context: ToolContext, located: ResolvedPath, beginning: bytes) -> Recognized | NotText:
    """Return the encoding of a large file by its beginning."""
    naming = FileEncodings(tool_context).naming(located.resolved, located.asked)
    return recognize(beginning, naming, is_whole=False)


def new_text_at(tool_context: ToolContext, located: ResolvedPath) -> NewText:
    """Return how a new file at this path is encoded: as `.editorconfig` or the settings say, else in UTF-8."""
    for name in FileEncodings(tool_context).naming(located.resolved, located.asked).by_configuration():
        named = encoding_named(name)
        if named is not None:
            encoding, is_marked = named
            return NewText(encoding, encoding.mark if is_marked else b"")
    return NewText()


def reported_encoding(tool_context: ToolContext, located: ResolvedPath) -> TextEncoding | None:
    """Return the encoding that the editor reports for the open document; None: it is none of the list."""
    named = encoding_named(FileEncodings(tool_context).naming(located.resolved, located.asked).by_editor())
    return None if named is None else named[0]
