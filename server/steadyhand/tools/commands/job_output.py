"""The output of a background command: what is new for the model, bounded in memory; all of it in `outputs/` as it
comes.

`add` never raises OSError and writes to disk in the caller. Of the output since the last `take_new_output`, memory
holds only the beginning and the end (`SHOWN_BYTES_MAX` together). The whole goes to a file that is named by its digest
when the job ends, and is cut at `OUTPUT_BYTES_MAX` (case 65).
"""

from __future__ import annotations

from steadyhand.ports.disk import Disk
from steadyhand.tools.commands.output_buffer import (
    HALF_BYTES_MAX,
    SHOWN_BYTES_MAX,
    join_ends,
    trim_partial_character,
)
from steadyhand.tools.commands.terminal_text import terminal_text
from steadyhand.tools.contract import OutputExcerpt
from steadyhand.tools.writes.blob_store import BlobStore, StoredBlob


class JobOutput:
    """The output of one job; `attempt_id` names the file while it is written."""

    def __init__(self, disk: Disk, session_folder: str, attempt_id: str) -> None:
        self._stream = BlobStore(disk, session_folder, "outputs").stream(attempt_id)
        self._head = bytearray()  # the new output: all of it, or its first half if it is too long
        self._tail = b""  # its last bytes, if it is too long
        self._new_bytes = 0
        self._blob: StoredBlob | None = None
        self._is_finished = False

    def add(self, piece: bytes) -> None:
        """Add a piece of output."""
        self._stream.write(piece)
        self._new_bytes += len(piece)
        if not self._tail:
            self._head += piece
            if len(self._head) <= SHOWN_BYTES_MAX:
                return
            self._tail = bytes(self._head[HALF_BYTES_MAX:])
            del self._head[HALF_BYTES_MAX:]
        else:
            self._tail += piece
        self._tail = self._tail[-HALF_BYTES_MAX:]

    def take_new_output(self) -> OutputExcerpt:
        """Return the output since the last call, each byte once. An incomplete character waits for its end."""
        cut, size, waiting = bool(self._tail), self._new_bytes, b""
        if cut:
            text = join_ends(bytes(self._head), self._tail)
        else:
            piece = bytes(self._head)
            whole = piece if self._is_finished else trim_partial_character(piece)
            waiting = piece[len(whole) :]
            text = terminal_text(whole)
            if len(text.encode("utf-8")) > SHOWN_BYTES_MAX:  # pictures are longer than control characters
                cut, text = True, join_ends(whole[:HALF_BYTES_MAX], whole[-HALF_BYTES_MAX:])
        self._head, self._tail, self._new_bytes = bytearray(waiting), b"", len(waiting)
        note = f"{size} new bytes; the whole output is stored with the session" if cut else ""
        return OutputExcerpt(text.removesuffix("\n"), size - len(waiting), cut, note=note)

    def finish(self) -> StoredBlob | None:
        """Make the output durable; None: there was none, or it could not be stored. Blocks."""
        if not self._is_finished:
            self._is_finished = True
            self._blob = self._stream.finish()
        return self._blob
