"""The journal on disk: bytes ↔ records. No I/O.

    {"sum":"1c291ca3","prev":"00000000","v":1,"seq":1,"at":"2026-01-02T03:04:05.678Z","kind":"session",…}⏎
     └──────┬───────┘ └─────────────────────────────┬───────────────────────────────────────────────────┘
      8 hex, CRC-32 (zlib) over everything from here ┘ up to the line end, without it

`prev` is the `sum` of the last readable record before, first 00000000: the *joint*. `seq` counts 1, 2, 3 … and goes
on over damage, counting each damaged line. The six members stand in this order in every version.

Reading never raises and never stops at a bad line [I3]:
  damaged   a line with its line end and a wrong checksum, or members that do not fit; it breaks the joint, whatever
            the next record's `prev` says. So do a gap in `seq`, a doubled line, and a `prev` that does not match.
            A good record that such a line ends in (the line end before it is lost) is read all the same.
  torn      bytes at the end without a line end: an append that did not finish. Cut before the first append.
  whole     at the end, a record that lacks only its line end, or has zeros there: it counts.
  unended   at the end, a record with anything else behind it in place of its line end: damage, and never cut.
  newer     `v` above ours with a right checksum: nothing of the journal is touched (row J13).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Literal

import attrs

from steadyhand.core.record import Damage, Record, Stamped
from steadyhand.journal.codec import Unreadable, decode, encode

VERSION = 1
FIRST_PREV = "00000000"
_HEAD = b'{"sum":"'
_BODY = 18  # bytes before what the checksum covers: {"sum":"12345678",
damage_offsets_max = 100

Tail = Literal["clean", "torn", "whole", "unended"]


@attrs.frozen
class Loaded:
    """All that one read of a journal says.

    `breaks`: positions in `records`; the joint is broken somewhere between records[i-1] and records[i]
    (i == len(records): after the last one). `unnoted`: damage that no `damage` record tells of yet.
    """

    records: tuple[Stamped, ...]
    breaks: frozenset[int]
    damaged: int  # damaged, missing or doubled records
    unnoted: int
    offsets: tuple[int, ...]  # of unnoted damage, bytes
    next_seq: int
    last_sum: str
    size: int  # bytes read
    tail: Tail
    tail_at: int  # where the tail begins; for "whole", where the record ends
    newer: bool


@attrs.frozen
class _Line:
    seq: int
    prev: str
    sum: str
    version: int
    stamped: Stamped | None  # None: a newer version's


def write_line(record: Record, seq: int, prev: str, at: str) -> tuple[bytes, str]:
    """One journal line with its line end, and its `sum`."""
    members = {"prev": prev, "v": VERSION, "seq": seq, "at": at, "kind": record.kind, **encode(record)}
    text = json.dumps(members, separators=(",", ":"), ensure_ascii=False)
    try:
        body = text.encode("utf-8")[1:]
    except UnicodeEncodeError:  # half a surrogate pair can only stand as an escape
        body = json.dumps(members, separators=(",", ":")).encode("ascii")[1:]
    check = _sum(body)
    return b'{"sum":"' + check.encode() + b'",' + body + b"\n", check


def read_journal(content: bytes) -> Loaded:
    """Everything readable, in its order, and what is wrong. Never raises."""
    return _Reader(content).read()


def _sum(body: bytes) -> str:
    return f"{zlib.crc32(body):08x}"


def _read_line(line: bytes) -> _Line | None:
    """A line without its line end; None if it is damaged."""
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
    except (Unreadable, RecursionError):
        return None
    return _Line(seq, prev, check, version, Stamped(seq, at, check, record))


def _record_bytes(tail: bytes) -> int:
    """How many bytes the record has that a tail begins with; 0: it begins with none. One pass."""
    if tail[: len(_HEAD)] != _HEAD:
        return 0
    check, done = 0, _BODY
    while (end := tail.find(b"}", done) + 1) > 0:
        check, done = zlib.crc32(tail[done:end], check), end
        if tail[8:16] == b"%08x" % check and _read_line(tail[:end]) is not None:
            return end
    return 0


class _Reader:
    """One pass over the bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.records: list[Stamped] = []
        self.breaks: set[int] = set()
        self.damaged = self.unnoted = self.damaged_since = 0
        self.offsets: list[int] = []
        self.last_seq, self.last_sum = 0, FIRST_PREV
        self.seen: set[tuple[int, str]] = set()
        self.newer = False

    def read(self) -> Loaded:
        end = 0
        for start, line in self._lines():
            end = start + len(line) + 1
            self._take_line(start, line)
        tail, tail_at = self._take_tail(end)
        return Loaded(
            records=tuple(self.records),
            breaks=frozenset(self.breaks),
            damaged=self.damaged,
            unnoted=self.unnoted,
            offsets=tuple(self.offsets),
            next_seq=self.last_seq + self.damaged_since + 1,
            last_sum=self.last_sum,
            size=len(self.content),
            tail=tail,
            tail_at=tail_at,
            newer=self.newer,
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
            self._take(start, None)
            return "unended", start
        self._take(start, _read_line(tail[:length]))
        return "whole", start + length

    def _take_line(self, start: int, line: bytes) -> None:
        found = _read_line(line)
        if found is None and (at := line.rfind(_HEAD)) > 0 and (last := _read_line(line[at:])) is not None:
            self._take(start, None)
            start, found = start + at, last
        self._take(start, found)

    def _take(self, start: int, line: _Line | None) -> None:
        if line is None:
            self.damaged_since += 1
            self._wrong(start, 1)
            return
        missing = line.seq - self.last_seq - 1 - self.damaged_since
        if (line.seq, line.sum) in self.seen:
            self._wrong(start, 1)
            return
        if missing != 0 or line.prev != self.last_sum or self.damaged_since:
            self._wrong(start, self._count(missing, line))
        self.damaged_since = 0
        self.last_seq, self.last_sum = line.seq, line.sum
        self.seen.add((line.seq, line.sum))
        if line.stamped is None:
            self.newer = True
            return
        if isinstance(line.stamped.record, Damage):
            self.unnoted, self.offsets = 0, []
        self.records.append(line.stamped)

    def _count(self, missing: int, line: _Line) -> int:
        """How many records a broken joint stands for, beside the damaged lines counted already."""
        if missing > 0:
            return missing
        if missing < 0:
            return 1 if not self.damaged_since else 0
        return 1 if line.prev != self.last_sum and not self.damaged_since else 0

    def _wrong(self, start: int, count: int) -> None:
        self.breaks.add(len(self.records))
        self.damaged += count
        self.unnoted += count
        if count and len(self.offsets) < damage_offsets_max:
            self.offsets.append(start)


def write_lines(records: Sequence[Record], seq: int, prev: str, at: str) -> tuple[bytes, tuple[Stamped, ...], str]:
    """Consecutive lines in one piece, the records as they will be read back, and the last `sum`."""
    pieces: list[bytes] = []
    stamped: list[Stamped] = []
    for record in records:
        line, check = write_line(record, seq, prev, at)
        pieces.append(line)
        stamped.append(Stamped(seq, at, check, record))
        seq, prev = seq + 1, check
    return b"".join(pieces), tuple(stamped), prev
