"""The journal on disk: bytes ↔ records. No I/O.

    {"sum":"1c291ca3","prev":"00000000","v":1,"seq":1,"at":"2026-01-02T03:04:05.678Z","kind":"session",…}⏎
     └──────┬───────┘ └─────────────────────────────┬───────────────────────────────────────────────────┘
      8 hex, CRC-32 (zlib) over everything from here ┘ up to the line end, without it

`prev` is the `sum` of the last readable record before it, 00000000 in the first line: the *joint*. `seq` counts 1, 2, 3
…; after damage it goes on and counts each damaged line. The six members have this order in every version.

Reading never raises and never stops at a bad line [I3]:
  damaged   a line with its line end whose checksum is wrong or whose members do not fit; it breaks the joint,
            whatever `prev` of the next record says. A gap in `seq`, a doubled line and a `prev` that does not match
            break it too. If the line end before a good record is lost, that record is still read.
  torn      bytes at the end without a line end: an append that did not finish. Cut before the first append. It may
            still be known as the `started` of an open attempt (`torn_start.py`).
  whole     at the end, a record that lacks only its line end, or has zeros in its place: it counts.
  unended   at the end, a record with other bytes in place of its line end: damage, and never cut.
  newer     `v` above ours and a right checksum: nothing of the journal is changed (row J13).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Literal

from steadyhand.domain.records.record import Damage, Record, Stamped
from steadyhand.domain.records.torn_start import TornStart
from steadyhand.journal.codec import UnreadableRecord, decode, encode
from steadyhand.journal.torn_start import attempt_of_torn_start
from steadyhand_values import frozen

VERSION = 1
FIRST_PREV = "00000000"
_HEAD = b'{"sum":"'
_BODY = 18  # bytes before those that the checksum covers: {"sum":"12345678",
DAMAGE_OFFSETS_MAX = 100

Tail = Literal["clean", "torn", "whole", "unended"]


@frozen
class LoadedJournal:
    """Everything that one read of a journal finds.

    `breaks`: positions in `records`; the joint is broken between records[i-1] and records[i] (i == len(records): after
    the last one). `unrecorded_damage`: damage that no `damage` record names yet. `torn_starts`: lines without their end
    that are known to be a `started`, in journal order.
    """

    records: tuple[Stamped, ...]
    breaks: frozenset[int]
    damaged: int  # number of damaged, missing or doubled records
    unrecorded_damage: int
    offsets: tuple[int, ...]  # of unnoted damage, in bytes
    next_seq: int
    last_sum: str
    size: int  # bytes read
    tail: Tail
    tail_at: int  # byte where the tail begins; for "whole", where the record ends
    newer: bool
    torn_starts: tuple[TornStart, ...] = ()


@frozen
class _Line:
    seq: int
    prev: str
    sum: str
    version: int
    stamped: Stamped | None  # None: a line of a newer version


def write_line(record: Record, seq: int, prev: str, at: str) -> tuple[bytes, str]:
    """Return one journal line with its line end, and its `sum`."""
    members = {"prev": prev, "v": VERSION, "seq": seq, "at": at, "kind": record.kind, **encode(record)}
    text = json.dumps(members, separators=(",", ":"), ensure_ascii=False)
    try:
        body = text.encode("utf-8")[1:]
    except UnicodeEncodeError:  # half a surrogate pair can only be written as an escape
        body = json.dumps(members, separators=(",", ":")).encode("ascii")[1:]
    check = _sum(body)
    return b'{"sum":"' + check.encode() + b'",' + body + b"\n", check


def read_journal(content: bytes) -> LoadedJournal:
    """Return every readable record in order, and the damage that was found. Never raises."""
    return _JournalReader(content).read()


def _sum(body: bytes) -> str:
    return f"{zlib.crc32(body):08x}"


def _read_line(line: bytes) -> _Line | None:
    """Parse a line without its line end; None if it is damaged."""
    if len(line) < _BODY + 1 or line[:8] != _HEAD or line[16:18] != b'",':
        return None
    body = line[_BODY:]
    check = line[8:16].decode("latin-1")
    if check != _sum(body):
        return None
    try:
        members = json.loads(b"{" + body)
        seq, prev, version, at = members["seq"], members["prev"], members["v"], members["at"]
        kind = members["kind"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if type(seq) is not int or type(version) is not int or not all(isinstance(t, str) for t in (prev, at, kind)):
        return None
    if version > VERSION:
        return _Line(seq, prev, check, version, None)
    for name in ("prev", "v", "seq", "at", "kind"):
        del members[name]
    try:
        record = decode(kind, members)
    except (UnreadableRecord, RecursionError):
        return None
    return _Line(seq, prev, check, version, Stamped(seq=seq, at=at, sum=check, record=record))


def _record_bytes(tail: bytes) -> int:
    """Return the length of the record that the tail begins with; 0 if it begins with none. One pass."""
    if tail[: len(_HEAD)] != _HEAD:
        return 0
    check, done = 0, _BODY
    while (end := tail.find(b"}", done) + 1) > 0:
        check, done = zlib.crc32(tail[done:end], check), end
        if tail[8:16] == b"%08x" % check and _read_line(tail[:end]) is not None:
            return end
    return 0


class _JournalReader:
    """One pass over the bytes of a journal."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.records: list[Stamped] = []
        self.breaks: set[int] = set()
        self.damaged = self.unrecorded_damage = self.damaged_since = 0
        self.offsets: list[int] = []
        self.last_seq, self.last_sum = 0, FIRST_PREV
        self.seen: set[tuple[int, str]] = set()
        self.newer = False

    def read(self) -> LoadedJournal:
        end = 0
        for start, line in self._lines():
            end = start + len(line) + 1
            self._take_line(start, line)
        tail, tail_at = self._take_tail(end)
        torn = attempt_of_torn_start(self.content[tail_at:]) if tail == "torn" else None
        return LoadedJournal(
            records=tuple(self.records),
            breaks=frozenset(self.breaks),
            damaged=self.damaged,
            unrecorded_damage=self.unrecorded_damage,
            offsets=tuple(self.offsets),
            next_seq=self.last_seq + self.damaged_since + 1,
            last_sum=self.last_sum,
            size=len(self.content),
            tail=tail,
            tail_at=tail_at,
            newer=self.newer,
            torn_starts=() if torn is None else (TornStart(len(self.records), torn),),
        )

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        start = 0
        while (end := self.content.find(b"\n", start)) >= 0:
            yield start, self.content[start:end]
            start = end + 1

    def _take_tail(self, start: int) -> tuple[Tail, int]:
        tail = self.content[start:]
        if not tail:
            return "clean", start
        length = _record_bytes(tail)
        if length == 0:
            return "torn", start
        if tail[length:].strip(b"\0"):
            self._take_record(start, None)
            return "unended", start
        self._take_record(start, _read_line(tail[:length]))
        return "whole", start + length

    def _take_line(self, start: int, line: bytes) -> None:
        found = _read_line(line)
        if found is None and (at := line.rfind(_HEAD)) > 0 and (last := _read_line(line[at:])) is not None:
            self._take_record(start, None)
            start, found = start + at, last
        self._take_record(start, found)

    def _take_record(self, start: int, line: _Line | None) -> None:
        if line is None:
            self.damaged_since += 1
            self._note_damage(start, 1)
            return
        missing = line.seq - self.last_seq - 1 - self.damaged_since
        if (line.seq, line.sum) in self.seen:
            self._note_damage(start, 1)
            return
        if missing != 0 or line.prev != self.last_sum or self.damaged_since:
            self._note_damage(start, self._count(missing, line))
        self.damaged_since = 0
        self.last_seq, self.last_sum = line.seq, line.sum
        self.seen.add((line.seq, line.sum))
        if line.stamped is None:
            self.newer = True
            return
        if isinstance(line.stamped.record, Damage):
            self.unrecorded_damage, self.offsets = 0, []
        self.records.append(line.stamped)

    def _count(self, missing: int, line: _Line) -> int:
        """Return how many records a broken joint stands for, besides the damaged lines counted already."""
        if missing > 0:
            return missing
        if missing < 0:
            return 1 if not self.damaged_since else 0
        return 1 if line.prev != self.last_sum and not self.damaged_since else 0

    def _note_damage(self, start: int, count: int) -> None:
        self.breaks.add(len(self.records))
        self.damaged += count
        self.unrecorded_damage += count
        if count and len(self.offsets) < DAMAGE_OFFSETS_MAX:
            self.offsets.append(start)


def write_lines(records: Sequence[Record], seq: int, prev: str, at: str) -> tuple[bytes, tuple[Stamped, ...], str]:
    """Return consecutive lines in one piece, the records as they will be read back, and the last `sum`."""
    pieces: list[bytes] = []
    stamped: list[Stamped] = []
    for record in records:
        line, check = write_line(record, seq, prev, at)
        pieces.append(line)
        stamped.append(Stamped(seq=seq, at=at, sum=check, record=record))
        seq, prev = seq + 1, check
    return b"".join(pieces), tuple(stamped), prev
