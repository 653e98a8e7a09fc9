"""The output of a command: its beginning and end for the model, the whole for `outputs/` (row J12, case 65).

    up to `SHOWN_BYTES_MAX`   all of it is shown, and nothing is stored beside it
    above                     its beginning and end are shown, and all of it goes to a file, named by its digest

The model gets what a terminal shows at the end (`terminal_text`, case 119); where that is less than what was written,
the whole goes to the file too. The file has the bytes unchanged. Memory never holds more than the shown parts, one
screen and one piece.
"""

from __future__ import annotations

from steadyhand.ports.disk import Disk
from steadyhand.tools.commands.terminal_text import TerminalText, show_controls, terminal_text
from steadyhand.tools.contract import REPLY_BYTES_MAX, OutputExcerpt
from steadyhand.tools.writes.blob_store import OUTPUT_BYTES_MAX, BlobStore, BlobStream

NOTES_BYTES_MAX = 8000
"""Reserved in the reply for the notes after the output."""
SHOWN_BYTES_MAX = REPLY_BYTES_MAX - NOTES_BYTES_MAX
HALF_BYTES_MAX = SHOWN_BYTES_MAX // 2
UTF8_BYTES_MAX = 4
"""Of one character."""


class OutputBuffer:
    """Collects pieces until `finish`. `add` never raises OSError, and writes to disk in the caller."""

    def __init__(self, disk: Disk, session_folder: str, attempt_id: str) -> None:
        self._store = BlobStore(disk, session_folder, "outputs")
        self._attempt_id = attempt_id
        self._raw = bytearray()  # the whole output, while there is no stream
        self._bytes = 0
        self._stream: BlobStream | None = None
        self._terminal = TerminalText()
        self._head = ""  # the whole text, or its beginning if it is too long
        self._tail = ""
        self._is_cut = False

    def add(self, piece: bytes) -> None:
        """Add a piece of output."""
        self._bytes += len(piece)
        self._add_text(self._terminal.feed(piece))
        if self._stream is not None:
            self._stream.write(piece)
            return
        self._raw += piece
        if len(self._raw) > SHOWN_BYTES_MAX:
            self._spill()

    def finish(self) -> OutputExcerpt:
        """Return the excerpt for the model, after the file is durable. Blocks."""
        self._add_text(self._terminal.finish())
        text = self._head if not self._is_cut else join_texts(self._head, self._tail)
        text = text.removesuffix("\n")
        if self._stream is None and not self._is_cut and not self._terminal.has_replaced:
            return OutputExcerpt(text or "(no output)", self._bytes, is_cut=False)
        stream = self._stream or self._spill()
        kept = stream.finish()
        if kept is None:
            note, digest = f"the whole output could not be stored: {stream.failure}", None
        elif kept.is_complete:
            note, digest = "the whole output is stored with the session", kept.digest
        else:
            note, digest = f"its first {OUTPUT_BYTES_MAX} bytes are stored with the session", kept.digest
        shown = "" if self._is_cut else ", shown as a terminal shows it at the end"
        return OutputExcerpt(text, self._bytes, True, digest, f"{self._bytes} bytes of output{shown}; {note}")

    def _add_text(self, text: str) -> None:
        """Keep the beginning and the end of what the terminal shows, in at most `SHOWN_BYTES_MAX` bytes."""
        if not self._is_cut:
            self._head += text
            if len(self._head) <= SHOWN_BYTES_MAX // UTF8_BYTES_MAX or _size(self._head) <= SHOWN_BYTES_MAX:
                return
            self._is_cut = True
            text, self._head = self._head, _first_bytes(self._head)
            text = text[len(self._head) :]
        self._tail = _last_bytes((self._tail + text[-HALF_BYTES_MAX:])[-HALF_BYTES_MAX:])

    def _spill(self) -> BlobStream:
        self._stream = self._store.stream(self._attempt_id)
        self._stream.write(bytes(self._raw))
        self._raw.clear()
        return self._stream


def join_ends(begun: bytes, tail: bytes) -> str:
    """Return the beginning and the end of an output as a terminal shows each, each at most `HALF_BYTES_MAX`."""
    head = terminal_text(trim_partial_character(begun))
    return join_texts(_first_bytes(head), _last_bytes(terminal_text(_trim_partial_start(tail))))


def join_texts(head: str, tail: str) -> str:
    """Return a beginning and an end with a line between them that says so."""
    return f"{head}\n[… the middle of the output is left out …]\n{tail}"


def make_visible(output: bytes) -> str:
    """Return the output as text in which every character can be seen; line ends are LF."""
    return show_controls(output.decode("utf-8", "replace").replace("\r\n", "\n"))


def trim_partial_character(piece: bytes) -> bytes:
    """Return the piece without an incomplete UTF-8 character at its end."""
    for back in range(1, min(4, len(piece) + 1)):
        byte = piece[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return piece[:-back] if back < needed else piece
        if byte < 0x80:
            break
    return piece


def _trim_partial_start(piece: bytes) -> bytes:
    """Return the piece without the rest of a UTF-8 character at its beginning."""
    start = 0
    while start < min(3, len(piece)) and 0x80 <= piece[start] < 0xC0:
        start += 1
    return piece[start:]


def _first_bytes(text: str) -> str:
    return text.encode("utf-8")[:HALF_BYTES_MAX].decode("utf-8", "ignore")


def _last_bytes(text: str) -> str:
    return text.encode("utf-8")[-HALF_BYTES_MAX:].decode("utf-8", "ignore")


def _size(text: str) -> int:
    return len(text.encode("utf-8"))
