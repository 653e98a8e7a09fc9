"""`read_file {path, offset?, limit?}`: lines of a text file, as they stand in the editor or on disk (row V1, case 64).

The reply is the lines themselves with a mark at the end where there is more to say (`core.text_lines`). A file with
unsaved changes in the editor is read from the editor, and the last line says so. A file above `whole_bytes_max` is read
in pieces: only a window of it is ever in memory, a line longer than the window is cut, and lines beyond
`scanned_bytes_max` are not searched for. What is not there, no file or no text is a failed reading, told in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

import anyio.to_thread
import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass, Scope
from steadyhand.core.text_edit import NotText, decode
from steadyhand.core.text_lines import TRUNCATED_MARK_START, Sliced, reading_text, slice_lines
from steadyhand.ports import Folder
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.change import title_chars_max
from steadyhand.tools.content import pieces
from steadyhand.tools.open_document import unsaved_document
from steadyhand.tools.output import whole_characters
from steadyhand.tools.place import Located, display, entered, locate, one_line
from steadyhand.tools.tool import Done, Gathered, Ground, Preview, Refusal, Running, reply_bytes_max

whole_bytes_max = 8 * 1024 * 1024
"""A larger file is read in pieces."""
window_bytes_max = 1024 * 1024
"""Of a larger file in memory at once, beside one piece."""
scanned_bytes_max = 512 * 1024 * 1024
"""Read at most to find a line."""
line_bytes_max = 10_000
"""Of one line shown."""
marks_bytes_max = 500
"""Room in the reply for what is said after the lines."""

EDITOR_MARK = "[as it stands in the editor, with unsaved changes]"
_LINE_END = re.compile(rb"\r\n|\n|\r")


class ReadFile:
    """The tool; see `tool.Tool`."""

    name = "read_file"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Read lines of a text file. Lines are counted from 1 and shown without numbers; a line in brackets at the end"
        " says when there is more, when the last line has no line end, or when the file is empty.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace, with / between names."},
                    "offset": {"type": "integer", "minimum": 1, "description": "The first line; 1 if left out."},
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "How many lines; all that fit if left out.",
                    },
                },
                "required": ["path"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedReading | Refusal:
        try:
            fields = Fields(self.name, arguments.value, ("path", "offset", "limit"))
            path = fields.text("path")
            offset = fields.optional_whole("offset", 1) or 1
            limit = fields.optional_whole("limit", 1)
        except Unfit as unfit:
            return unfit.refusal
        located = locate(ground, path)
        if isinstance(located, Refusal):
            return located
        if located.in_state_directory:
            return Refusal("policy", f"{one_line(path)} belongs to Steadyhand itself and is never read by a tool.")
        return PlannedReading(ground, located, offset, limit)


@attrs.frozen
class PlannedReading:
    """One call; see `tool.Planned`."""

    ground: Ground
    located: Located
    offset: int  # line, 1-based
    limit: int | None  # lines

    effect: ClassVar[EffectClass] = "reads"
    protected: ClassVar[tuple[str, ...]] = ()
    command: ClassVar[tuple[str, str] | None] = None

    @property
    def scope(self) -> Scope:
        return Scope(paths=(self.located.resolved,))

    @property
    def title(self) -> str:
        return "read_file: " + one_line(self._shown, title_chars_max - len("read_file: "))

    @property
    def outside(self) -> tuple[str, ...]:
        return () if self.located.inside else (self.located.resolved,)

    @property
    def _shown(self) -> str:
        return one_line(display(self.ground.root, self.located.resolved))

    def preview(self) -> Preview | Refusal:
        where = "" if self.located.inside else " It lies outside the workspace."
        return Preview(f"Reads {self._shown}.{where}")

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        return Gathered()

    async def run(self, running: Running) -> Done:
        return await anyio.to_thread.run_sync(self._read)

    def _read(self) -> Done:
        document = unsaved_document(self.ground, self.located.asked, self.located.resolved)
        if document is not None:
            return self._sliced(document.text.encode("utf-8", "replace"), f"\n{EDITOR_MARK}")
        located = locate(self.ground, self.located.asked)
        if isinstance(located, Refusal):
            return Done("failed", located.text, located.reason)
        if located.resolved != self.located.resolved:
            return Done("failed", f"The path {self._shown} leads elsewhere now.", "changed")
        if located.kind is None:
            return Done("failed", f"{self._shown} does not exist.", "not_found")
        if located.kind != "file":
            what = "a folder" if located.kind == "folder" else "not a regular file"
            return Done("failed", f"{self._shown} is {what}; there is no text to read.", "not_a_file")
        try:
            with entered(self.ground, located.folders) as folder:
                raw = self.ground.disk.read(folder, located.name, whole_bytes_max + 1)
                if len(raw) <= whole_bytes_max:
                    return self._sliced(raw)
                return self._window(folder, located.name)
        except OSError as error:
            return Done("failed", f"{self._shown} cannot be read: {error.strerror or error}.", "not_readable")

    def _sliced(self, raw: bytes, end: str = "") -> Done:
        sliced = slice_lines(raw, self.offset, self.limit, reply_bytes_max - marks_bytes_max, line_bytes_max)
        if isinstance(sliced, NotText):
            return self._not_text(sliced)
        return Done("returned", reading_text(sliced) + end, truncated=not sliced.whole)

    def _not_text(self, found: NotText) -> Done:
        return Done("failed", f"{self._shown} cannot be read as text. {found.reason}", "not_text")

    def _window(self, folder: Folder, name: str) -> Done:
        """A large file: its beginning must be text, and so must what is shown."""
        found = _find_line(pieces(self.ground.disk, folder, name), self.offset)
        if isinstance(found, NotText):
            return self._not_text(found)
        if isinstance(found, int):
            text = reading_text(Sliced("", self.offset, self.offset - 1, found, 0, False))
            return Done("returned", text, truncated=True)
        if found is None:
            text = f"line {self.offset} lies beyond its first {scanned_bytes_max} bytes, and is not searched for"
            return Done("failed", f"{self._shown} is too large: {text} there.", "too_large")
        window, at_end = found
        ends = [match.end() for match in _LINE_END.finditer(window)]
        if not ends and not at_end:
            return self._one_long_line(window)
        sliced = slice_lines(
            window if at_end else window[: ends[-1]],
            1,
            self.limit,
            reply_bytes_max - marks_bytes_max,
            line_bytes_max,
        )
        if isinstance(sliced, NotText):
            return self._not_text(sliced)
        last = self.offset + sliced.last - 1
        if at_end and sliced.last == sliced.total:
            # The end of the file: said as for a small one, whose lines before are merely not counted anew.
            ending = attrs.evolve(sliced, first=self.offset, last=last, total=last)
            return Done("returned", reading_text(ending), truncated=True)
        gap = "" if sliced.text.endswith(("\n", "\r")) else "\n"
        cut = f", {sliced.cut_lines} of them cut" if sliced.cut_lines else ""
        mark = (
            f"{TRUNCATED_MARK_START}: lines {self.offset} to {last} of a large file{cut}; go on with offset {last + 1}]"
        )
        return Done("returned", f"{sliced.text}{gap}{mark}", truncated=True)

    def _one_long_line(self, window: bytes) -> Done:
        beginning = decode(whole_characters(window))
        if isinstance(beginning, NotText):
            return self._not_text(beginning)
        shown = beginning.text.encode("utf-8")[:line_bytes_max].decode("utf-8", "ignore")
        mark = (
            f"{TRUNCATED_MARK_START}: line {self.offset} is longer than {window_bytes_max} bytes and was cut;"
            f" go on with offset {self.offset + 1}]"
        )
        return Done("returned", f"{shown}\n{mark}", truncated=True)


def _find_line(read: Iterator[bytes], line: int) -> tuple[bytes, bool] | int | NotText | None:
    """A window from that line on, and whether the file ends in it; the number of lines, where there is no such line;
    None if it was not found within `scanned_bytes_max`; `NotText` if already the beginning is none."""
    wanted, ended, scanned = line - 1, 0, 0
    carried = b""  # a CR at the end of a piece, whose LF may come with the next
    tail = b""
    for piece in read:
        if not scanned:
            found = decode(whole_characters(piece))
            if isinstance(found, NotText):
                return found
            if found.wide is not None:
                return NotText(f"It is UTF-16 above {whole_bytes_max} bytes and not read in parts.", found.wide)
        scanned += len(piece)
        piece = carried + piece
        carried = b"\r" if piece.endswith(b"\r") else b""
        piece = piece[: len(piece) - len(carried)]
        starts = 0 if wanted == ended else None
        count = piece.count(b"\n") + piece.count(b"\r") - piece.count(b"\r\n")
        if starts is None and ended + count >= wanted:
            match = [found for found, _ in zip(_LINE_END.finditer(piece), range(wanted - ended), strict=False)][-1]
            starts = match.end()
        if starts is not None:
            window, at_end = _filled(piece[starts:] + carried, read)
            return (window, at_end) if window else wanted
        ended += count
        tail = piece or tail
        if scanned >= scanned_bytes_max:
            return None
    return ended + bool(carried) + (0 if carried or tail.endswith((b"\n", b"\r")) else 1)


def _filled(window: bytes, read: Iterator[bytes]) -> tuple[bytes, bool]:
    """At most `window_bytes_max` from the window's beginning, and whether that is all there is."""
    for piece in read:
        window += piece
        if len(window) > window_bytes_max:
            return window[:window_bytes_max], False
    return window[:window_bytes_max], len(window) <= window_bytes_max
