"""`read_file {path, offset?, limit?}`: lines of a text file, from the editor or from disk (row V1, case 64).

The reply is the lines themselves, with a mark at the end if there is more to say (`domain.text.lines`). A file with
unsaved changes is read from the editor, and the last line says so. A file that is not UTF-8 is decoded by the rules of
row W10, and the first line of the reply names its encoding. A file above `WHOLE_BYTES_MAX` is read in pieces: memory
never holds more than a window of it, a line longer than the window is cut, and lines beyond `SCANNED_BYTES_MAX` are not
searched. It is read on to that limit all the same, for the digest of what was shown (row V3). If the path is missing,
is not a file or is not text, the read fails with a sentence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain

import attrs

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass, Shown
from steadyhand.domain.text.decoding import (
    FileText,
    NotText,
    Recognized,
    decode_as,
    text_in_editor,
    to_lf,
    utf_8_pieces,
)
from steadyhand.domain.text.encodings import UTF_8, TextEncoding, recorded_name
from steadyhand.domain.text.lines import TRUNCATED_MARK_START, Sliced, reply_of_lines, slice_lines, with_heading
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Folder
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_read import PlannedRead, title_of
from steadyhand.tools.commands.output_buffer import trim_partial_character
from steadyhand.tools.contract import (
    REPLY_BYTES_MAX,
    Preview,
    Refusal,
    ToolContext,
    ToolOutcome,
)
from steadyhand.tools.shown_lines import shown_lines
from steadyhand.tools.workspace.file_encoding import decode_file, recognize_beginning, reported_encoding
from steadyhand.tools.workspace.open_documents import DocumentState, open_document
from steadyhand.tools.workspace.paths import ResolvedPath, locate, locate_for_call, one_line, open_folder
from steadyhand.tools.workspace.similar_names import missing_note
from steadyhand.tools.writes.blob_store import PIECE_BYTES_MAX, read_pieces
from steadyhand_values import frozen, pattern

WHOLE_BYTES_MAX = 8 * 1024 * 1024
"""A larger file is read in pieces."""
WINDOW_BYTES_MAX = 1024 * 1024
"""Of a larger file, in memory at once, besides one piece."""
SCANNED_BYTES_MAX = 512 * 1024 * 1024
"""Read at most this much to find a line."""
READ_BYTES_MAX = 4 * (SCANNED_BYTES_MAX + PIECE_BYTES_MAX + WINDOW_BYTES_MAX)
"""Of the file for that; a character takes at most four times as many bytes as in UTF-8."""
LINE_BYTES_MAX = 10_000
"""Of one line that is shown."""
MARKS_BYTES_MAX = 500
"""Reserved in the reply for the marks after the lines."""

_LINE_END = pattern(rb"\r\n|\n|\r")


class ReadFile:
    """The tool; see `contract.Tool`."""

    name = "read_file"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Read lines of a text file. Lines are counted from 1 and shown without numbers. A line in brackets at the end"
        " says if there is more, if the last line has no line end, or if the file is empty.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace, with / between names."},
                    "offset": {"type": "integer", "minimum": 1, "description": "The first line; the default is 1."},
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "How many lines; the default is all that fit.",
                    },
                },
                "required": ["path"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedReading | Refusal:
        try:
            fields = ArgumentFields(self.name, arguments.value, ("path", "offset", "limit"))
            path = fields.text("path")
            offset = fields.optional_integer("offset", 1) or 1
            limit = fields.optional_integer("limit", 1)
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_for_call(tool_context, path)
        if isinstance(located, Refusal):
            return located
        if located.is_in_state_directory:
            return Refusal("policy", f"{one_line(path)} belongs to Steadyhand itself and cannot be read by a tool.")
        title = title_of(self.name, display_path(located.resolved, tool_context.root))
        return PlannedReading(tool_context, located, title, offset, limit)


@frozen
class PlannedReading(PlannedRead):
    """One call; see `contract.Planned`."""

    offset: int  # line, 1-based
    limit: int | None  # lines

    def preview(self) -> Preview | Refusal:
        where = "" if self.located.is_inside else " It is outside the workspace."
        return Preview(f"Reads {self.display_name}.{where}")

    def _run(self) -> ToolOutcome:
        state = open_document(self.tool_context, self.located.asked, self.located.resolved)
        if state is not None and state.is_dirty:
            return self._slice_document(state, f"\n{state.mark}")
        located = locate(self.tool_context, self.located.asked)
        if isinstance(located, Refusal):
            return ToolOutcome("failed", located.text, located.reason)
        if located.resolved != self.located.resolved:
            return ToolOutcome("failed", f"The path {self.display_name} leads elsewhere now.", "changed")
        if located.kind is None:
            note = missing_note(self.tool_context, located)
            return ToolOutcome("failed", f"{self.display_name} does not exist.{note}", "not_found")
        if located.kind != "file":
            what = "a folder" if located.kind == "folder" else "not a regular file"
            return ToolOutcome("failed", f"{self.display_name} is {what}; there is no text to read.", "not_a_file")
        try:
            with open_folder(self.tool_context, located.folders) as folder:
                raw = self.tool_context.disk.read(folder, located.name, WHOLE_BYTES_MAX + 1)
                if len(raw) <= WHOLE_BYTES_MAX:
                    file = decode_file(self.tool_context, located, raw)
                    if state is not None and state.disk == "same" and _is_other_text(file, state.document.text):
                        return self._slice_document(state)
                    return self._slice(file, UTF_8 if isinstance(file, NotText) else file.encoding)
                return self._read_window(folder, located)
        except UnicodeDecodeError as error:
            return self._not_text_outcome(NotText(f"After its beginning it is not {error.encoding} text any more."))
        except OSError as error:
            why = error.strerror or error
            return ToolOutcome("failed", f"{self.display_name} cannot be read: {why}.", "not_readable")

    def _slice_document(self, state: DocumentState, end: str = "") -> ToolOutcome:
        encoding = reported_encoding(self.tool_context, self.located) or UTF_8
        return self._slice(text_in_editor(state.document.text), encoding, end)

    def _slice(self, file: FileText | NotText, encoding: TextEncoding, end: str = "") -> ToolOutcome:
        if isinstance(file, NotText):
            return self._not_text_outcome(file)
        sliced = slice_lines(file, self.offset, self.limit, REPLY_BYTES_MAX - MARKS_BYTES_MAX, LINE_BYTES_MAX)
        text = with_heading(reply_of_lines(sliced), encoding) + end
        shown = shown_lines(self.located.resolved, file, sliced)
        return ToolOutcome("returned", text, is_truncated=not sliced.whole, shown=(shown,), contents=(file.raw,))

    def _not_text_outcome(self, found: NotText) -> ToolOutcome:
        return ToolOutcome("failed", f"{self.display_name} cannot be read as text. {found.reason}", "not_text")

    def _read_window(self, folder: Folder, located: ResolvedPath) -> ToolOutcome:
        """Read a part of a large file: its beginning must be text, and so must what is shown."""
        read = _DigestedPieces(read_pieces(self.tool_context.disk, folder, located.name, READ_BYTES_MAX))
        first = next(read, b"")
        recognized = recognize_beginning(self.tool_context, located, first)
        if isinstance(recognized, NotText):
            return self._not_text_outcome(recognized)
        encoding = recognized.encoding
        found = _find_line(utf_8_pieces(chain([first], read), recognized), self.offset)
        if isinstance(found, int):
            text = reply_of_lines(Sliced("", self.offset, self.offset - 1, found, 0, False))
            shown = self._shown(read, self.offset - 1, recognized)
            return ToolOutcome("returned", with_heading(text, encoding), is_truncated=True, shown=shown)
        if found is None:
            text = f"line {self.offset} is beyond its first {SCANNED_BYTES_MAX} bytes, which is the search limit"
            return ToolOutcome("failed", f"{self.display_name} is too large: {text}.", "too_large")
        window, at_end = found
        ends = [match.end() for match in _LINE_END.finditer(window)]
        if not ends and not at_end:
            return self._cut_long_line(window, read, recognized)
        file = decode_as(window if at_end else window[: ends[-1]], UTF_8.name)
        if isinstance(file, NotText):
            return self._not_text_outcome(file)
        sliced = slice_lines(file, 1, self.limit, REPLY_BYTES_MAX - MARKS_BYTES_MAX, LINE_BYTES_MAX)
        last = self.offset + sliced.last - 1
        shown = self._shown(read, self.offset - 1 if sliced.cut_lines else last, recognized)
        if at_end and sliced.last == sliced.total:
            # The end of the file: the reply is the same as for a small file.
            ending = attrs.evolve(sliced, first=self.offset, last=last, total=last)
            text = with_heading(reply_of_lines(ending), encoding)
            return ToolOutcome("returned", text, is_truncated=True, shown=shown)
        gap = "" if sliced.text.endswith(("\n", "\r")) else "\n"
        cut = f", {sliced.cut_lines} of them cut" if sliced.cut_lines else ""
        mark = (
            f"{TRUNCATED_MARK_START}: lines {self.offset} to {last} of a large file{cut}; go on with offset {last + 1}]"
        )
        text = with_heading(f"{sliced.text}{gap}{mark}", encoding)
        return ToolOutcome("returned", text, is_truncated=True, shown=shown)

    def _shown(self, read: _DigestedPieces, last: int, recognized: Recognized) -> tuple[Shown, ...]:
        """Return the record of the lines up to `last` (row V3); nothing if the file is too large for a digest."""
        digest = read.digest()
        if digest is None:
            return ()
        path, encoding = self.located.resolved, recorded_name(recognized.encoding, bool(recognized.mark))
        return (Shown(path=path, digest=digest, from_=self.offset, to=last, whole=False, encoding=encoding),)

    def _cut_long_line(self, window: bytes, read: _DigestedPieces, recognized: Recognized) -> ToolOutcome:
        beginning = decode_as(trim_partial_character(window), UTF_8.name)
        if isinstance(beginning, NotText):
            return self._not_text_outcome(beginning)
        line = beginning.text.encode("utf-8")[:LINE_BYTES_MAX].decode("utf-8", "ignore")
        mark = (
            f"{TRUNCATED_MARK_START}: line {self.offset} is longer than {WINDOW_BYTES_MAX} bytes and was cut;"
            f" go on with offset {self.offset + 1}]"
        )
        text, shown = (
            with_heading(f"{line}\n{mark}", recognized.encoding),
            self._shown(read, self.offset - 1, recognized),
        )
        return ToolOutcome("returned", text, is_truncated=True, shown=shown)


def _is_other_text(file: FileText | NotText, shown: str) -> bool:
    """Whether the editor reads the bytes of a saved document otherwise; what it shows counts."""
    return isinstance(file, NotText) or file.text != to_lf(shown.removeprefix("\ufeff"))


class _DigestedPieces:
    """The pieces of a file, and the digest of all of them."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._sum = hashlib.sha256()
        self._size = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = next(self._pieces)
        self._sum.update(piece)
        self._size += len(piece)
        return piece

    def digest(self) -> str | None:
        """Read the rest, and return the digest; None if the file is larger than `SCANNED_BYTES_MAX`, or fails."""
        try:
            while self._size <= SCANNED_BYTES_MAX and next(self, None) is not None:
                pass
        except OSError:
            return None
        return self._sum.hexdigest() if self._size <= SCANNED_BYTES_MAX else None


def _find_line(read: Iterator[bytes], line: int) -> tuple[bytes, bool] | int | None:
    """Find a line of a text in UTF-8. Return a window from that line on, and whether the file ends in it.

    Returns the number of lines if there is no such line, None if it was not found within `SCANNED_BYTES_MAX`.
    """
    wanted, ended, scanned = line - 1, 0, 0
    carried = b""  # a CR at the end of a piece; its LF may be in the next piece
    tail = b""
    for piece in read:
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
            window, at_end = _fill_window(piece[starts:] + carried, read)
            return (window, at_end) if window else wanted
        ended += count
        tail = piece or tail
        if scanned >= SCANNED_BYTES_MAX:
            return None
    return ended + bool(carried) + (0 if carried or tail.endswith((b"\n", b"\r")) else 1)


def _fill_window(window: bytes, read: Iterator[bytes]) -> tuple[bytes, bool]:
    """Return at most `WINDOW_BYTES_MAX` from the window's beginning, and whether the file ends there."""
    for piece in read:
        window += piece
        if len(window) > WINDOW_BYTES_MAX:
            return window[:WINDOW_BYTES_MAX], False
    return window[:WINDOW_BYTES_MAX], len(window) <= WINDOW_BYTES_MAX
