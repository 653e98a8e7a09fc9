"""A second reader of journals, written from docs/journal-format.md alone; it shares no code with the server.

It proves that the page is enough. Which members a kind must have is not looked at here.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field

BEGINNING = b'{"sum":"'
KNOWN_VERSION = 1


@dataclass
class Reading:
    records: list[dict[str, object]] = field(default_factory=list)
    breaks: set[int] = field(default_factory=set)  # the joint is broken before records[i]
    damaged: int = 0
    tail: str = "clean"
    tail_at: int = 0
    newer: bool = False
    last_seq: int = 0
    last_sum: str = "00000000"
    damaged_since: int = 0

    @property
    def next_seq(self) -> int:
        return self.last_seq + 1 + self.damaged_since


def read(content: bytes) -> Reading:
    reading, stood = Reading(), set[tuple[int, str]]()
    *lines, tail = content.split(b"\n")
    for line in lines:
        take_line(reading, stood, line)
    reading.tail_at = len(content) - len(tail)
    if tail:
        take_tail(reading, stood, tail)
    return reading


def take_line(reading: Reading, stood: set[tuple[int, str]], line: bytes) -> None:
    record = record_in(line)
    if record is None:
        take_damage(reading)
        record = record_in(line[max(line.rfind(BEGINNING), 0) :])
    if record is not None:
        take_record(reading, stood, record)


def take_tail(reading: Reading, stood: set[tuple[int, str]], tail: bytes) -> None:
    ends = (at + 1 for at, byte in enumerate(tail) if byte == ord("}"))
    found = next(((end, record) for end in ends if (record := record_in(tail[:end])) is not None), None)
    if found is None:
        reading.tail = "torn"
    elif set(tail[found[0] :]) <= {0}:
        reading.tail = "whole"
        reading.tail_at += found[0]
        take_record(reading, stood, found[1])
    else:
        reading.tail = "unended"
        take_damage(reading)


def take_damage(reading: Reading) -> None:
    reading.damaged += 1
    reading.damaged_since += 1
    reading.breaks.add(len(reading.records))


def take_record(reading: Reading, stood: set[tuple[int, str]], record: dict[str, object]) -> None:
    seq, check = int(str(record["seq"])), str(record["sum"])
    if (seq, check) in stood:
        reading.damaged += 1
        reading.breaks.add(len(reading.records))
        return
    missing = seq - reading.last_seq - 1 - reading.damaged_since
    wrong_prev = record["prev"] != reading.last_sum
    if missing or wrong_prev or reading.damaged_since:
        reading.breaks.add(len(reading.records))
        reading.damaged += missing if missing > 0 else int(reading.damaged_since == 0)
    stood.add((seq, check))
    reading.last_seq, reading.last_sum, reading.damaged_since = seq, check, 0
    if int(str(record["v"])) > KNOWN_VERSION:
        reading.newer = True
    else:
        reading.records.append(record)


def record_in(line: bytes) -> dict[str, object] | None:
    if line[:8] != BEGINNING or line[16:18] != b'",' or line[8:16] != b"%08x" % zlib.crc32(line[18:]):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    words = isinstance(record, dict) and all(isinstance(record.get(name), str) for name in ("prev", "at", "kind"))
    return record if words and all(type(record.get(name)) is int for name in ("v", "seq")) else None
