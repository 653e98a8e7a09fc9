"""`search_text {pattern, path?, glob?, limit?}`: lines of text files that contain a text, as `path:line: text`.

The pattern is the exact text, with its case; not a regular expression, because a model's regular expression cannot be
bounded in time here. This server searches the bytes itself, in the same way on every machine; an installed program may
only exclude files (`search_prefilter`), so the result does not depend on it. A file with unsaved changes is searched in
the editor's text (row V1). Not searched, and counted: binary files, files above `SEARCHED_FILE_BYTES_MAX`, and, for a
text that is not ASCII, files whose encoding nobody names (row W10; a search never detects one). Links are not followed
(case 104).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import ClassVar

import attrs

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.domain.text.decoding import Naming, NotText, decode
from steadyhand.domain.text.encodings import ESCAPE, UTF_8
from steadyhand.domain.text.globs import Glob
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.find_files import parse_pattern
from steadyhand.tools.builtin.planned_read import PlannedRead, locate_start, title_of
from steadyhand.tools.commands.output_buffer import make_visible
from steadyhand.tools.contract import Refusal, ToolContext, ToolOutcome
from steadyhand.tools.reply_lines import ReplyLines
from steadyhand.tools.workspace.file_encoding import FileEncodings
from steadyhand.tools.workspace.open_documents import (
    EDITOR_MARK,
    gone_documents,
    other_editor_paths,
    state_of_document,
)
from steadyhand.tools.workspace.paths import one_line, open_folder
from steadyhand.tools.workspace.search_prefilter import PrefilterResult, matching_files, prefiltered_files
from steadyhand.tools.workspace.walk import DirectoryWalk, count_phrase, printable
from steadyhand_values import define, frozen, pattern

LIMIT_DEFAULT = 100
MATCHES_MAX = 1000
PATTERN_BYTES_MAX = 1000
SEARCHED_FILE_BYTES_MAX = 8 * 1024 * 1024
SEARCHED_BYTES_MAX = 512 * 1024 * 1024
"""Of all files in one search."""
MATCH_CHARS_MAX = 300
"""Of a line that is shown; the match is always in the shown part."""
BEFORE_CHARS_MAX = 80
"""Of a cut line, before the match."""

_LINE_END = pattern(rb"\r\n|\n|\r")
_ASCII_RUN = pattern("[\x01-\x7f]+")


class SearchText:
    """The tool; see `contract.Tool`."""

    name = "search_text"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Find lines that contain a text, exactly as it is written (no regular expression, case counts). One match a"
        " line: path:line: text. Binary files, ignored files and .git are left out.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "The text, within one line."},
                    "path": {"type": "string", "description": "A folder or file; the default is the workspace."},
                    "glob": {
                        "type": "string",
                        "description": "Only files that match this pattern, as for find_files: *.py",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MATCHES_MAX,
                        "description": f"The largest number of matches; the default is {LIMIT_DEFAULT}.",
                    },
                },
                "required": ["pattern"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedTextSearch | Refusal:
        try:
            fields = ArgumentFields(self.name, arguments.value, ("pattern", "path", "glob", "limit"))
            pattern, path = fields.text("pattern"), fields.optional_text("path")
            glob = fields.optional_text("glob")
            limit = fields.optional_integer("limit", 1, MATCHES_MAX) or LIMIT_DEFAULT
            wanted = None if glob is None else parse_pattern(self.name, "glob", glob)
            if not pattern or _LINE_END.search(pattern.encode("utf-8", "replace")) or "\0" in pattern:
                raise InvalidArguments(
                    "search_text: the field `pattern` must be a text within one line, and not empty."
                )
            if len(pattern.encode("utf-8", "replace")) > PATTERN_BYTES_MAX:
                raise InvalidArguments(f"search_text: the field `pattern` is longer than {PATTERN_BYTES_MAX} bytes.")
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_start(tool_context, path, self.name, folder_only=False)
        if isinstance(located, Refusal):
            return located
        return PlannedTextSearch(tool_context, located, title_of(self.name, pattern), pattern, wanted, limit)


@define
class _FileMatches:
    """What a search has found and left out so far."""

    other_editor_paths: Mapping[str, Sequence[str]]  # resolved path → other names under which the editor has it open
    encodings: FileEncodings
    lines: ReplyLines = attrs.field(factory=ReplyLines)
    matches: int = 0
    searched: int = 0  # bytes
    binary: int = 0
    large: int = 0
    secret: int = 0
    unreadable: int = 0
    undecoded: int = 0  # files whose encoding nobody names
    cut_reason: str | None = None


@frozen
class PlannedTextSearch(PlannedRead):
    """One call; see `contract.Planned`."""

    pattern: str
    wanted: Glob | None
    limit: int

    is_folder_only: ClassVar[bool] = False

    def _search(self) -> ToolOutcome:
        found = _FileMatches(other_editor_paths(self.tool_context), FileEncodings(self.tool_context))
        if self.located.kind == "file":
            with open_folder(self.tool_context, self.located.folders) as folder:
                shown = printable(self.display_name)
                self._search_file(found, PrefilterResult(self.located.name, folder, self.located.resolved, ""), shown)
            return self._outcome(found, ())
        walk = DirectoryWalk(self.tool_context, self.located)
        before = "" if self.display_name == "." else self.display_name.rstrip("/") + "/"
        with closing(self._files_to_search(walk)) as files:
            for met in files:
                self._search_file(found, met, before + met.display_name)
                if found.cut_reason is not None:
                    break
        if found.cut_reason is None:
            self._search_gone(found, before)
        found.cut_reason = found.cut_reason or walk.cut_reason
        walk.cut_reason = None  # reported once
        return self._outcome(found, walk.notes)

    def _files_to_search(self, walk: DirectoryWalk) -> Generator[PrefilterResult, None, None]:
        if self.tool_context.text_filter is None:
            return matching_files(walk, self.wanted)
        if not self._same_bytes:
            return matching_files(walk, self.wanted)
        text_filter = self.tool_context.text_filter
        return prefiltered_files(walk, self.wanted, self._same_bytes, text_filter, SEARCHED_FILE_BYTES_MAX)

    @property
    def _same_bytes(self) -> bytes:
        """The longest part of the pattern that has the same bytes in every encoding of the list, where the file has no
        NUL."""
        return max(_ASCII_RUN.findall(self.pattern), key=len, default="").encode("ascii")

    @property
    def _text(self) -> bytes:
        return self.pattern.encode("utf-8", "surrogateescape")

    def _search_file(self, found: _FileMatches, met: PrefilterResult, shown: str) -> None:
        """Search one file and add its matches."""
        raw = self._unsaved_text(found, met)
        if raw is not None:
            shown = f"{shown} {EDITOR_MARK}"
        self._add_matches(found, shown, self._read_content(found, met) if raw is None else raw)

    def _search_gone(self, found: _FileMatches, before: str) -> None:
        """Search the documents with unsaved changes whose files are gone from the disk."""
        start = self.located.parts
        for located, text in gone_documents(self.tool_context):
            inside = located.parts[len(start) :]
            if located.parts[: len(start)] != start or not inside or not located.is_inside:
                continue
            if self.wanted is not None and not self.wanted.matches(inside):
                continue
            if located.is_secret and not self.tool_context.allows_secret(located.resolved):
                found.secret += 1
                continue
            shown = f"{before}{printable('/'.join(inside))} {EDITOR_MARK}"
            self._add_matches(found, shown, text.encode("utf-8", "replace"))

    def _add_matches(self, found: _FileMatches, shown: str, raw: bytes | None) -> None:
        text = self._text
        if raw is None or text not in raw:
            return
        for number, line in _lines_containing(raw, text):
            if found.matches >= self.limit:
                found.cut_reason = f"after {count_phrase(self.limit, 'match', 'matches')}"
                return
            if not found.lines.add(f"{shown}:{number}: {_display_line(line, text)}"):
                found.cut_reason = "because the reply is full"
                return
            found.matches += 1

    def _unsaved_text(self, found: _FileMatches, met: PrefilterResult) -> bytes | None:
        """Return the text of a document with unsaved changes, in UTF-8; None: the disk has what is to be searched."""
        if met.is_secret:
            return None
        for path in (met.path, *found.other_editor_paths.get(met.path, ())):
            document = self.tool_context.document(path)
            if document is None or document.unsaved is False:
                continue
            if state_of_document(self.tool_context.disk, path, met.path, document).is_dirty:
                return document.text.encode("utf-8", "replace")
        return None

    def _read_content(self, found: _FileMatches, met: PrefilterResult) -> bytes | None:
        """Return the text to search, in UTF-8; None if the file is not searched."""
        if met.is_secret:
            found.secret += 1
            return None
        if found.searched > SEARCHED_BYTES_MAX:
            found.cut_reason = f"after {SEARCHED_BYTES_MAX} bytes"
            return None
        if met.skipped_bytes is not None:
            found.searched += met.skipped_bytes
            return None
        try:
            raw = self.tool_context.disk.read(met.folder, met.name, SEARCHED_FILE_BYTES_MAX + 1)
        except OSError:
            found.unreadable += 1
            return None
        found.searched += len(raw)
        if len(raw) > SEARCHED_FILE_BYTES_MAX:
            found.binary, found.large = found.binary + (b"\0" in raw), found.large + (b"\0" not in raw)
            return None
        return self._decoded(found, met.path, raw)

    def _decoded(self, found: _FileMatches, path: str, raw: bytes) -> bytes | None:
        """Return the text of a file in UTF-8; None if it is not searched.

        ASCII is the same in every encoding of the list that it can be in, so nobody is asked about it."""
        if self._same_bytes not in raw and b"\0" not in raw:
            return None
        if raw.isascii() and b"\0" not in raw and ESCAPE.search(raw) is None:
            return raw
        named = found.encodings.naming(path)
        file = decode(raw, Naming(named.by_editor, named.by_configuration))  # rules 1 to 6
        if not isinstance(file, NotText):
            return raw[len(file.mark) :] if file.encoding is UTF_8 else file.content.encode("utf-8")
        if b"\0" in raw:
            found.binary += 1
            return None
        if self.pattern.isascii():
            return raw  # an ASCII text is found in whatever encoding it is
        found.undecoded += 1
        return None

    def _outcome(self, found: _FileMatches, notes: tuple[str, ...]) -> ToolOutcome:
        remarks: list[str] = []
        if found.cut_reason is not None:
            remarks.append(f"cut: the search ended {found.cut_reason}; there may be more")
        if found.large:
            large = count_phrase(found.large, "file", "files")
            remarks.append(f"{large} above {SEARCHED_FILE_BYTES_MAX} bytes were not searched")
        if found.secret:
            secret = count_phrase(found.secret, "file", "files")
            remarks.append(f"{secret} with a secret's name left out; read_file asks for permission to read one")
        if found.binary:
            remarks.append(f"{count_phrase(found.binary, 'binary file', 'binary files')} left out")
        if found.undecoded:
            undecoded = count_phrase(found.undecoded, "file", "files")
            remarks.append(f"{undecoded} in an encoding that nobody names left out, because the text is not ASCII")
        if found.unreadable:
            remarks.append(f"{count_phrase(found.unreadable, 'file', 'files')} could not be read")
        empty = f"no line contains {one_line(self.pattern)!r} exactly"
        whole = found.cut_reason is None and not found.large and not found.unreadable and not found.undecoded
        return found.lines.to_outcome(empty, (*remarks, *notes), whole)


def _lines_containing(raw: bytes, text: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) of each line that contains the text, each line once."""
    number, start = 1, 0
    at = raw.find(text)
    while at >= 0:
        # The text contains no line end, so a CRLF is never counted in two halves.
        ends = raw.count(b"\n", start, at) + raw.count(b"\r", start, at) - raw.count(b"\r\n", start, at)
        number, start = number + ends, max(raw.rfind(b"\n", start, at), raw.rfind(b"\r", start, at), start - 1) + 1
        end_of = _LINE_END.search(raw, at)
        stop, after = end_of.span() if end_of else (len(raw), len(raw))
        yield number, raw[start:stop]
        number, start = number + 1, after
        at = raw.find(text, after)


def _display_line(line: bytes, text: bytes) -> str:
    """Return the line as it is shown; a long line is cut around the match."""
    at = line.find(text)
    before = line[:at].decode("utf-8", "replace")
    rest = line[at:].decode("utf-8", "replace")
    room = max(MATCH_CHARS_MAX - BEFORE_CHARS_MAX, len(text))
    shown = before if len(before) <= BEFORE_CHARS_MAX else "…" + before[-BEFORE_CHARS_MAX:]
    shown += rest if len(rest) <= room else rest[:room] + "…"
    return make_visible(shown.encode("utf-8", "replace"))
