"""A torn line that can be read as the `started` of an attempt counts as a start (rows C1, J8, case 134).

A disk or a backup may lose the last bytes of an acknowledged line. The rest of the line has no valid checksum, so
nothing in it is believed but this: it began as a `started`. That can only err towards doubt. The line stays evidence
after it was cut off: `torn-<seq>.bin` holds it, so an opening that dies between the cut and its verdict says the same
the next time [I5]. docs/journal-format.md#a-torn-start has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from steadyhand.domain.records.record import Stamped, Started
from steadyhand.domain.records.torn_start import TornStart
from steadyhand.ports.disk import Disk, Folder
from steadyhand_values import pattern

COPIES_MAX = 1000
"""Copies of torn lines that are read, the newest ones."""
COPY_BYTES_MAX = 4096
"""Of one copy; kind and attempt stand in the first 200 bytes of a line."""

_CUT_KIND_CHARS: Final = len("st")
"""Of a cut kind: with so many letters it may be a `started`. A `steer` begins so too; in doubt it is a start."""
_KIND = pattern(rb'"kind":"([A-Za-z]*)("?)')
_ATTEMPT: Final = b'"attemptId":"'
_ID = pattern(rb"[0-9a-f]*")
_COPY = pattern(r"torn-([0-9]{1,18})(?:-[0-9]+)?\.bin")


def attempt_of_torn_start(tail: bytes) -> str | None:
    """Return the beginning of the attempt id that a torn line names, as far as it goes; None: it is no `started`.

    The kind may be cut too, to as few letters as `_CUT_KIND_CHARS`."""
    kind = _KIND.search(tail)
    if kind is None or not _is_started(kind[1].decode("ascii"), is_whole=bool(kind[2])):
        return None
    at = tail.find(_ATTEMPT, kind.end())
    found = _ID.match(tail, at + len(_ATTEMPT)) if at >= 0 else None
    return found[0].decode("ascii") if found is not None else ""


def torn_starts_beside(disk: Disk, folder: Folder, records: Sequence[Stamped]) -> tuple[TornStart, ...]:
    """Return the starts in the copies of torn lines beside the journal, in journal order. Raise OSError.

    A copy that cannot be read may hold a start of any attempt that was open then."""
    copies = sorted((int(found[1]), name) for name in disk.names(folder) if (found := _COPY.fullmatch(name)))
    starts: list[TornStart] = []
    for seq, name in copies[-COPIES_MAX:]:
        try:
            attempt = attempt_of_torn_start(disk.read(folder, name, COPY_BYTES_MAX))
        except OSError:
            attempt = ""
        if attempt is not None:
            after = (at for at, stamped in enumerate(records) if stamped.seq >= seq)
            starts.append(TornStart(next(after, len(records)), attempt))
    return tuple(starts)


def _is_started(word: str, is_whole: bool) -> bool:
    return word == Started.kind if is_whole else len(word) >= _CUT_KIND_CHARS and Started.kind.startswith(word)
