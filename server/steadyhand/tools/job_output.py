"""What a background command wrote: the news for the model, bounded in memory; all of it in `outputs/` as it comes.

`take` never raises OSError and writes to disk in the caller. Of what came since the last `news` only beginning and end
are kept in memory (`shown_bytes_max` together); the whole goes to a file that gets its digest's name when the job is
over, and is cut at `output_bytes_max` (case 65).
"""

from __future__ import annotations

from steadyhand.ports import Disk
from steadyhand.tools.content import Contents, Kept
from steadyhand.tools.output import both_ends, half_bytes_max, shown_bytes_max, visible, whole_characters
from steadyhand.tools.tool import Shown


class JobOutput:
    """One job's; `attempt_id` names the file while it is written."""

    def __init__(self, disk: Disk, session_folder: str, attempt_id: str) -> None:
        self._stream = Contents(disk, session_folder, "outputs").stream(attempt_id)
        self._begun = bytearray()  # the news, whole until it is too much, then its first half
        self._tail = b""  # the last bytes, once it is too much
        self._new = 0
        self._kept: Kept | None = None
        self._finished = False

    def take(self, piece: bytes) -> None:
        self._stream.write(piece)
        self._new += len(piece)
        if not self._tail:
            self._begun += piece
            if len(self._begun) <= shown_bytes_max:
                return
            self._tail = bytes(self._begun[half_bytes_max:])
            del self._begun[half_bytes_max:]
        else:
            self._tail += piece
        self._tail = self._tail[-half_bytes_max:]

    def news(self) -> Shown:
        """What came since the last call, which is told once. The beginning of a character waits for its end."""
        cut, size, waiting = bool(self._tail), self._new, b""
        if cut:
            text = both_ends(bytes(self._begun), self._tail)
        else:
            piece = bytes(self._begun)
            whole = piece if self._finished else whole_characters(piece)
            waiting = piece[len(whole) :]
            text = visible(whole)
            if len(text.encode("utf-8")) > shown_bytes_max:  # pictures of control characters are longer than they
                cut, text = True, both_ends(whole[:half_bytes_max], whole[-half_bytes_max:])
        self._begun, self._tail, self._new = bytearray(waiting), b"", len(waiting)
        note = f"{size} bytes since the last look; the whole is kept with the session" if cut else ""
        return Shown(text.removesuffix("\n"), size - len(waiting), cut, note=note)

    def finish(self) -> Kept | None:
        """Make durable what there is; None: nothing came, or it could not be kept. Blocks."""
        if not self._finished:
            self._finished = True
            self._kept = self._stream.finish()
        return self._kept
