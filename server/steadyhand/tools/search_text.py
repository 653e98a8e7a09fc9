"""`search_text {pattern, path?, glob?, limit?}`: lines of text files that hold a text, as `path:line: text`.

The pattern is that very text, case and all: no regular expression, since none that a model may write can be bounded
in time here. It is searched in bytes by an own walk, the same on every machine; a program that is installed may only
rule files out (`ruling_out`), so that a found line never hangs on what is installed. A file with unsaved changes in the
editor is searched as it stands there (row V1). Not searched, and counted: what holds a NUL (binary), what is larger
than `searched_file_bytes_max`. Links are not followed (case 104).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing

import attrs

from steadyhand.core.globs import Glob
from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.find_files import wanted_paths
from steadyhand.tools.lines import Lines
from steadyhand.tools.open_document import named_elsewhere
from steadyhand.tools.output import visible
from steadyhand.tools.place import entered, one_line
from steadyhand.tools.reading import PlannedSearch, located_for, title_of
from steadyhand.tools.ruling_out import Met, filtered_files, met_files
from steadyhand.tools.tool import Done, Ground, Refusal
from steadyhand.tools.walk import Walk, counted, readable

limit_default = 100
matches_max = 1000
pattern_bytes_max = 1000
searched_file_bytes_max = 8 * 1024 * 1024
searched_bytes_max = 512 * 1024 * 1024
"""Of all files of one search."""
match_chars_max = 300
"""Of a line that is shown; the text itself stands in what is shown."""
before_chars_max = 80
"""Of a cut line before the text."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


class SearchText:
    """The tool; see `tool.Tool`."""

    name = "search_text"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Find lines that hold a text, exactly as it is written (no regular expression, case counts). One match a line:"
        " path:line: text. Binary files, what ignore files name and .git are left out.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "The text, within one line."},
                    "path": {"type": "string", "description": "A folder or file; the workspace if left out."},
                    "glob": {"type": "string", "description": "Only files that fit, as for find_files: *.py"},
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": matches_max,
                        "description": f"So many matches at most; {limit_default} if left out.",
                    },
                },
                "required": ["pattern"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedTextSearch | Refusal:
        try:
            fields = Fields(self.name, arguments.value, ("pattern", "path", "glob", "limit"))
            pattern, path = fields.text("pattern"), fields.optional_text("path")
            glob = fields.optional_text("glob")
            limit = fields.optional_whole("limit", 1, matches_max) or limit_default
            wanted = None if glob is None else wanted_paths(self.name, "glob", glob)
            if not pattern or _LINE_END.search(pattern.encode("utf-8", "replace")) or "\0" in pattern:
                raise Unfit("search_text: the field `pattern` must be a text within one line, and not empty.")
            if len(pattern.encode("utf-8", "replace")) > pattern_bytes_max:
                raise Unfit(f"search_text: the field `pattern` is longer than {pattern_bytes_max} bytes.")
        except Unfit as unfit:
            return unfit.refusal
        located = located_for(ground, path, self.name, folder_only=False)
        if isinstance(located, Refusal):
            return located
        return PlannedTextSearch(ground, located, title_of(self.name, pattern), pattern, wanted, limit)


@attrs.define
class _Found:
    """What a search has found and left out so far."""

    elsewhere: Mapping[str, Sequence[str]]  # resolved path → other names under which the editor has it open
    lines: Lines = attrs.field(factory=Lines)
    matches: int = 0
    searched: int = 0  # bytes
    binary: int = 0
    large: int = 0
    unreadable: int = 0
    cut: str | None = None


@attrs.frozen
class PlannedTextSearch(PlannedSearch):
    pattern: str
    wanted: Glob | None
    limit: int

    def _search(self) -> Done:
        found = _Found(named_elsewhere(self.ground))
        if self.located.kind == "file":
            with entered(self.ground, self.located.folders) as folder:
                shown = readable(self.shown)
                self._one(found, Met(self.located.name, folder, self.located.resolved, ""), shown)
            return self._done(found, ())
        walk = Walk(self.ground, self.located)
        before = "" if self.shown == "." else self.shown.rstrip("/") + "/"
        with closing(self._files(walk)) as files:
            for met in files:
                self._one(found, met, before + met.shown)
                if found.cut is not None:
                    break
        found.cut = found.cut or walk.cut
        walk.cut = None  # told once
        return self._done(found, walk.notes)

    def _files(self, walk: Walk) -> Generator[Met, None, None]:
        if self.ground.text_filter is None:
            return met_files(walk, self.wanted)
        return filtered_files(walk, self.wanted, self._text, self.ground.text_filter, searched_file_bytes_max)

    @property
    def _text(self) -> bytes:
        return self.pattern.encode("utf-8", "surrogateescape")

    def _one(self, found: _Found, met: Met, shown: str) -> None:
        """Search one file and add its matches."""
        raw = self._content(found, met)
        text = self._text
        if raw is None or text not in raw:
            return
        for number, line in _lines_with(raw, text):
            if found.matches >= self.limit:
                found.cut = f"after {counted(self.limit, 'match', 'matches')}"
                return
            if not found.lines.add(f"{shown}:{number}: {_shown_line(line, text)}"):
                found.cut = "since the reply is full"
                return
            found.matches += 1

    def _content(self, found: _Found, met: Met) -> bytes | None:
        """The bytes to search; None for what is not searched."""
        for path in (met.path, *found.elsewhere.get(met.path, ())):
            document = self.ground.document(path)
            if document is not None and document.unsaved is not False:
                return document.text.encode("utf-8", "replace")
        if found.searched > searched_bytes_max:
            found.cut = f"after {searched_bytes_max} bytes"
            return None
        if met.ruled_out is not None:
            found.searched += met.ruled_out
            return None
        try:
            raw = self.ground.disk.read(met.folder, met.name, searched_file_bytes_max + 1)
        except OSError:
            found.unreadable += 1
            return None
        found.searched += len(raw)
        if b"\0" in raw:
            found.binary += 1
        elif len(raw) > searched_file_bytes_max:
            found.large += 1
        else:
            return raw
        return None

    def _done(self, found: _Found, notes: tuple[str, ...]) -> Done:
        remarks = [f"cut: the search ended {found.cut}; there may be more"] if found.cut is not None else []
        if found.large:
            large = counted(found.large, "file", "files")
            remarks.append(f"{large} above {searched_file_bytes_max} bytes were not searched")
        if found.binary:
            remarks.append(f"{counted(found.binary, 'binary file', 'binary files')} left out")
        if found.unreadable:
            remarks.append(f"{counted(found.unreadable, 'file', 'files')} could not be read")
        empty = f"no line holds {one_line(self.pattern)!r}, as it is written"
        whole = found.cut is None and not found.large and not found.unreadable
        return found.lines.done(empty, (*remarks, *notes), whole)


def _lines_with(raw: bytes, text: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, line) of each line that holds the text; a line once."""
    number, start = 1, 0
    at = raw.find(text)
    while at >= 0:
        # The text holds no line end, so none is cut in two here.
        ends = raw.count(b"\n", start, at) + raw.count(b"\r", start, at) - raw.count(b"\r\n", start, at)
        number, start = number + ends, max(raw.rfind(b"\n", start, at), raw.rfind(b"\r", start, at), start - 1) + 1
        end_of = _LINE_END.search(raw, at)
        stop, after = end_of.span() if end_of else (len(raw), len(raw))
        yield number, raw[start:stop]
        number, start = number + 1, after
        at = raw.find(text, after)


def _shown_line(line: bytes, text: bytes) -> str:
    """The line for reading; a long one is cut around the text."""
    at = line.find(text)
    before = line[:at].decode("utf-8", "replace")
    rest = line[at:].decode("utf-8", "replace")
    room = max(match_chars_max - before_chars_max, len(text))
    shown = before if len(before) <= before_chars_max else "…" + before[-before_chars_max:]
    shown += rest if len(rest) <= room else rest[:room] + "…"
    return visible(shown.encode("utf-8", "replace"))
