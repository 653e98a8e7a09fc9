"""A second reader of journals, written from docs/journal-format.md alone. It shares no code with the server.

It proves that the page is sufficient. It does not check which members a kind must have.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field

LINE_START = b'{"sum":"'
KNOWN_VERSION = 1
STARTED_CUT = ("st", "sta", "star", "start", "starte", "started")


@dataclass
class Reading:
    records: list[dict[str, object]] = field(default_factory=list)
    breaks: set[int] = field(default_factory=set)  # i is in the set when the joint is broken before records[i]
    damaged: int = 0
    tail: str = "clean"
    tail_at: int = 0
    torn_start: str | None = None  # the beginning of an attempt id; None: the tail is no torn `started`
    newer: bool = False
    last_seq: int = 0
    last_sum: str = "00000000"
    damaged_since: int = 0

    @property
    def next_seq(self) -> int:
        return self.last_seq + 1 + self.damaged_since


def read(content: bytes) -> Reading:
    reading, seen = Reading(), set[tuple[int, str]]()
    *lines, tail = content.split(b"\n")
    for line in lines:
        take_line(reading, seen, line)
    reading.tail_at = len(content) - len(tail)
    if tail:
        take_tail(reading, seen, tail)
    return reading


def take_line(reading: Reading, seen: set[tuple[int, str]], line: bytes) -> None:
    record = record_in(line)
    if record is None:
        take_damage(reading)
        record = record_in(line[max(line.rfind(LINE_START), 0) :])
    if record is not None:
        take_record(reading, seen, record)


def take_tail(reading: Reading, seen: set[tuple[int, str]], tail: bytes) -> None:
    ends = (at + 1 for at, byte in enumerate(tail) if byte == ord("}"))
    found = next(((end, record) for end in ends if (record := record_in(tail[:end])) is not None), None)
    if found is None:
        reading.tail = "torn"
        reading.torn_start = started_in(tail)
    elif set(tail[found[0] :]) <= {0}:
        reading.tail = "whole"
        reading.tail_at += found[0]
        take_record(reading, seen, found[1])
    else:
        reading.tail = "unended"
        take_damage(reading)


def started_in(tail: bytes) -> str | None:
    """What a torn line says of a start: the beginning of the id of its attempt, as far as it goes."""
    _, named, rest = tail.decode("latin-1").partition('"kind":"')
    word, closed, members = rest.partition('"')
    letters = word[: next((at for at, one in enumerate(word) if not one.isalpha()), len(word))]
    if not named or (letters != "started" if closed else letters not in STARTED_CUT):
        return None
    _, _, attempt = members.partition('"attemptId":"')
    return attempt[: next((at for at, one in enumerate(attempt) if one not in "0123456789abcdef"), len(attempt))]


def take_damage(reading: Reading) -> None:
    reading.damaged += 1
    reading.damaged_since += 1
    reading.breaks.add(len(reading.records))


def take_record(reading: Reading, seen: set[tuple[int, str]], record: dict[str, object]) -> None:
    seq, check = int(str(record["seq"])), str(record["sum"])
    if (seq, check) in seen:
        reading.damaged += 1
        reading.breaks.add(len(reading.records))
        return
    missing = seq - reading.last_seq - 1 - reading.damaged_since
    wrong_prev = record["prev"] != reading.last_sum
    if missing or wrong_prev or reading.damaged_since:
        reading.breaks.add(len(reading.records))
        reading.damaged += missing if missing > 0 else int(reading.damaged_since == 0)
    seen.add((seq, check))
    reading.last_seq, reading.last_sum, reading.damaged_since = seq, check, 0
    if int(str(record["v"])) > KNOWN_VERSION:
        reading.newer = True
    else:
        reading.records.append(record)


def record_in(line: bytes) -> dict[str, object] | None:
    if line[:8] != LINE_START or line[16:18] != b'",' or line[8:16] != b"%08x" % zlib.crc32(line[18:]):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    has_texts = isinstance(record, dict) and all(isinstance(record.get(name), str) for name in ("prev", "at", "kind"))
    return record if has_texts and all(type(record.get(name)) is int for name in ("v", "seq")) else None
