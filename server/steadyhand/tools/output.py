"""What a command wrote: its beginning and end for the model, the whole for `outputs/` (row J12, case 65).

    up to `shown_bytes_max`   it is shown whole and nothing is kept beside it
    above                     its beginning and end are shown, and all of it goes to a file under its digest as it comes

In memory are never more than the shown parts and one piece. Bytes that are no UTF-8 are shown as U+FFFD and control
characters as their pictures, so that nothing of it is invisible; the file has the bytes as they were.
"""

from __future__ import annotations

import re

from steadyhand.ports import Disk
from steadyhand.tools.content import Contents, Stream, output_bytes_max
from steadyhand.tools.tool import Shown, reply_bytes_max

notes_bytes_max = 4000
"""Room in the reply for what is said beside the output."""
shown_bytes_max = reply_bytes_max - notes_bytes_max
half_bytes_max = shown_bytes_max // 2

_hidden = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Output:
    """Takes pieces as they come; `shown` ends it. `take` never raises OSError, and writes to disk (in the caller)."""

    def __init__(self, disk: Disk, session_folder: str, attempt_id: str) -> None:
        self._contents = Contents(disk, session_folder, "outputs")
        self._attempt_id = attempt_id
        self._begun = bytearray()  # the whole, until it is too much
        self._tail = b""
        self._bytes = 0
        self._stream: Stream | None = None

    def take(self, piece: bytes) -> None:
        self._bytes += len(piece)
        self._tail = (self._tail + piece[-half_bytes_max:])[-half_bytes_max:]
        if self._stream is not None:
            self._stream.write(piece)
            return
        self._begun += piece
        if len(self._begun) > shown_bytes_max:
            self._spill()

    def shown(self) -> Shown:
        """What goes to the model, after the file is durable. Blocks."""
        whole = visible(bytes(self._begun)) if self._stream is None else ""
        if self._stream is None and len(whole.encode("utf-8")) <= shown_bytes_max:
            return Shown(whole.removesuffix("\n") or "(no output)", self._bytes, cut=False)
        stream = self._stream or self._spill()
        text = both_ends(bytes(self._begun[:half_bytes_max]), self._tail)
        kept = stream.finish()
        if kept is None:
            note, digest = f"the whole could not be kept: {stream.trouble}", None
        elif kept.whole:
            note, digest = "the whole is kept with the session", kept.digest
        else:
            note, digest = f"its first {output_bytes_max} bytes are kept with the session", kept.digest
        return Shown(text.removesuffix("\n"), self._bytes, True, digest, f"{self._bytes} bytes of output; {note}")

    def _spill(self) -> Stream:
        self._stream = self._contents.stream(self._attempt_id)
        self._stream.write(bytes(self._begun))
        del self._begun[half_bytes_max:]
        return self._stream


def both_ends(begun: bytes, tail: bytes) -> str:
    """The beginning and the end of an output as text; each at most `half_bytes_max`."""
    head = _first_bytes(visible(whole_characters(begun)))
    return f"{head}\n[… the middle of the output is left out here …]\n{_last_bytes(visible(_from_a_character(tail)))}"


def visible(output: bytes) -> str:
    """The output as text in which every character can be seen; line ends are LF."""
    text = output.decode("utf-8", "replace").replace("\r\n", "\n")
    return _hidden.sub(lambda found: _picture(ord(found[0])), text)


def whole_characters(piece: bytes) -> bytes:
    """The piece without the beginning of a UTF-8 character at its end."""
    for back in range(1, min(4, len(piece) + 1)):
        byte = piece[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return piece[:-back] if back < needed else piece
        if byte < 0x80:
            break
    return piece


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\\u{code:04x}"


def _from_a_character(piece: bytes) -> bytes:
    """Without the end of a character at its beginning."""
    start = 0
    while start < min(3, len(piece)) and 0x80 <= piece[start] < 0xC0:
        start += 1
    return piece[start:]


def _first_bytes(text: str) -> str:
    return text.encode("utf-8")[:half_bytes_max].decode("utf-8", "ignore")


def _last_bytes(text: str) -> str:
    return text.encode("utf-8")[-half_bytes_max:].decode("utf-8", "ignore")
