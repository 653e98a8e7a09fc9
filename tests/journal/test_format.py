"""The journal's bytes: cut anywhere, damaged anywhere, and never read as less than what may have happened."""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.ledger import Ledger
from steadyhand.core.record import Damage, Epoch, ModeSet, Record, Unknown
from steadyhand.journal import format as journal_format
from steadyhand.journal.format import FIRST_PREV, Loaded, damage_offsets_max, read_journal, write_line, write_lines
from tests.support.journals import (
    AT,
    crashed_while_writing,
    damaged_at,
    flips,
    ident,
    journal,
    ledger_of,
    lines,
    looked,
    may_have_run,
    prompt,
    proposes,
    ran,
    replies,
    says,
    verdict,
    verdicts,
)

STORY = crashed_while_writing()
WHOLE = journal(STORY)
LINES = lines(WHOLE)
RECORDS = read_journal(WHOLE).records
MODES = journal([ModeSet("plan"), ModeSet("ask"), ModeSet("edits"), ModeSet("auto")])
ZEROS = b"\0" * (64 * 1024 + 7)


@pytest.fixture(autouse=True)
def each_line_read_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reading one line is a pure function of its bytes, and these tests read the same lines many thousand times."""
    with monkeypatch.context() as patch:
        patch.setattr(journal_format, "_read_line", functools.lru_cache(200_000)(journal_format._read_line))
        yield


def seqs(loaded: Loaded) -> list[int]:
    return [stamped.seq for stamped in loaded.records]


def line(record: Record, seq: int, prev: str) -> tuple[bytes, str]:
    return write_line(record, seq, prev, AT)


def resealed(members: dict[str, object]) -> bytes:
    """A line with a right checksum, whatever is in it."""
    body = json.dumps(members, separators=(",", ":")).encode()[1:]
    return b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n"


def members(seq: int = 1, prev: str = FIRST_PREV, kind: str = "mode", **more: object) -> dict[str, object]:
    return {"prev": prev, "v": 1, "seq": seq, "at": AT, "kind": kind, **more}


# A healthy journal.


def test_a_line_is_as_it_is_drawn() -> None:
    """J2: sum, prev, v, seq, at and kind stand first, in this order; the checksum covers all behind it."""
    first, second = LINES[:2]
    assert list(json.loads(first))[:6] == ["sum", "prev", "v", "seq", "at", "kind"]
    assert json.loads(first)["sum"] == f"{zlib.crc32(first[18:-1]):08x}"
    assert json.loads(second)["prev"] == json.loads(first)["sum"]


def test_what_was_written_is_read() -> None:
    """J1, J2: every record, in order, without a doubt."""
    loaded = read_journal(WHOLE)
    assert [stamped.record for stamped in loaded.records] == STORY
    assert seqs(loaded) == list(range(1, len(STORY) + 1))
    assert (loaded.breaks, loaded.damaged, loaded.tail, loaded.newer) == (frozenset(), 0, "clean", False)
    assert (loaded.next_seq, loaded.size, loaded.tail_at) == (len(STORY) + 1, len(WHOLE), len(WHOLE))


def test_written_records_are_returned_as_they_are_read() -> None:
    """J1: the live ledger is fed with the very records a reading gives."""
    content, stamped, last_sum = write_lines(STORY, 1, FIRST_PREV, AT)
    loaded = read_journal(content)
    assert (stamped, last_sum) == (loaded.records, loaded.last_sum)


def test_an_empty_journal_is_empty() -> None:
    """J9: no bytes are no records and no damage."""
    loaded = read_journal(b"")
    assert (loaded.records, loaded.damaged, loaded.tail, loaded.next_seq) == ((), 0, "clean", 1)


@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029c", "half \ud83d of a pair", "\0\x01\x7f", "\r\n", "é😀", "\ufeff", "\x85"]
)
def test_no_character_ends_a_line(text: str) -> None:
    """J1: one record, one line; only the line end ends it, and every text is read back as it was."""
    content = journal([prompt("turn", text), ModeSet("ask")])
    assert content.count(b"\n") == 2
    loaded = read_journal(content)
    assert loaded.records[0].record == prompt("turn", text)
    assert loaded.damaged == 0
    assert all(json.loads(one) for one in content.split(b"\n")[:-1])


@given(st.text(st.characters(), max_size=30))
def test_every_text_is_read_back(text: str) -> None:
    """J1: the law of the examples above."""
    loaded = read_journal(journal([prompt("turn", text)]))
    assert loaded.records[0].record == prompt("turn", text)


# The end of the file.


def test_a_cut_anywhere_leaves_a_beginning() -> None:
    """J8, case 20: at every byte: never an exception, the records are a beginning, and the rest is torn."""
    ends = [sum(map(len, LINES[:count])) for count in range(len(LINES) + 1)]
    for end in range(len(WHOLE) + 1):
        loaded = read_journal(WHOLE[:end])
        lacks_line_end = end + 1 in ends[1:]
        count = sum(1 for full in ends[1:] if full <= end + lacks_line_end)
        assert loaded.records == RECORDS[:count]
        assert (loaded.damaged, loaded.breaks) == (0, frozenset())
        expected = "whole" if lacks_line_end else "clean" if end in ends else "torn"
        assert loaded.tail == expected
        assert loaded.tail_at == (end if lacks_line_end else ends[count])


@pytest.mark.parametrize("zeros", [b"", b"\0", b"\0" * 4096, ZEROS])
def test_a_record_without_its_line_end_counts(zeros: bytes) -> None:
    """J8: a line that lacks only its line end, or has zeros there, is whole."""
    loaded = read_journal(WHOLE[:-1] + zeros)
    assert loaded.records == RECORDS
    assert (loaded.tail, loaded.tail_at, loaded.damaged) == ("whole", len(WHOLE) - 1, 0)


@pytest.mark.parametrize("zeros", [b"\0", b"\0" * 512, ZEROS])
@pytest.mark.parametrize("half", [0, 1, 17, 40, 100])
def test_zeros_at_the_end_are_torn(zeros: bytes, half: int) -> None:
    """J8: a torn append that the system filled up with zeros; nothing that was acknowledged is lost."""
    content = b"".join(LINES[:-1]) + LINES[-1][:half] + zeros
    loaded = read_journal(content)
    assert loaded.records == RECORDS[:-1]
    assert (loaded.tail, loaded.damaged, loaded.breaks) == ("torn", 0, frozenset())


@pytest.mark.parametrize("byte", [byte for byte in range(1, 256) if byte != 0x0A])
def test_a_damaged_line_end_is_damage(byte: int) -> None:
    """J8, J9: a last byte that is wrong and not zero is never cut as torn [I3]."""
    loaded = read_journal(damaged_at(WHOLE, len(WHOLE) - 1, byte))
    assert (loaded.tail, loaded.damaged, loaded.records) == ("unended", 1, RECORDS[:-1])
    assert len(loaded.records) in loaded.breaks
    assert loaded.next_seq == len(STORY) + 1


@pytest.mark.parametrize("torn", [b"{", b'{"sum":"12345678","prev"', b"\0x", LINES[0][:-1]])
@pytest.mark.parametrize("byte", [0, 1, 0x0B, 0x8A])
def test_a_damaged_line_end_before_a_torn_line_is_damage(byte: int, torn: bytes) -> None:
    """The start that stands there was acknowledged; it is not cut off with what is torn behind it [I3]."""
    loaded = read_journal(damaged_at(WHOLE, len(WHOLE) - 1, byte) + torn)
    assert (loaded.tail, loaded.damaged) == ("unended", 1)
    assert verdicts(ledger_of(WHOLE[:-1] + b"x" + torn))[ident("running")] == "unknown_after_restart"


def test_a_line_with_its_line_end_is_never_torn() -> None:
    """J8: an all-zero last line with its line end is damage: where it could be either, it is damage."""
    loaded = read_journal(b"".join(LINES[:-1]) + b"\0" * (len(LINES[-1]) - 1) + b"\n")
    assert (loaded.tail, loaded.damaged, loaded.next_seq) == ("clean", 1, len(STORY) + 1)


# Damage.


def kept(damaged: Ledger, healthy: Ledger) -> bool:
    """Whether nothing that may have run is now said not to have run, or forgotten."""
    return may_have_run(healthy) <= may_have_run(damaged)


HEALTHY = ledger_of(WHOLE)


def test_no_damaged_byte_says_that_it_did_not_run() -> None:
    """J9: each byte, flipped in a low and in the high bit, zeroed, and made a line end [I3]."""
    assert may_have_run(HEALTHY) == {ident("made"), ident("running")}
    for at in range(len(WHOLE)):
        for damaged in flips(WHOLE, at):
            loaded = read_journal(damaged)
            assert kept(ledger_of(damaged), HEALTHY), at
            assert loaded.records == RECORDS or loaded.damaged >= 1, at


def test_the_damage_of_one_byte_costs_at_most_its_lines() -> None:
    """J9: good records around it stay readable, and the count told is that of the records that are not."""
    for at in range(len(WHOLE) - 1):
        for damaged in flips(WHOLE, at):
            loaded = read_journal(damaged)
            left = [stamped for stamped in loaded.records if stamped in RECORDS]
            assert list(loaded.records) == left, at
            assert len(RECORDS) - len(left) == 1, at
            assert loaded.damaged in (1, 2), at


def test_a_torn_journal_with_a_damaged_byte() -> None:
    """J8, J9: a crash in the middle of an append and a damaged byte before it [I3]."""
    torn = WHOLE + LINES[0][:60]
    for at in range(len(WHOLE)):
        for damaged in flips(torn, at):
            assert kept(ledger_of(damaged), HEALTHY), at


@pytest.mark.parametrize("length", [1, 7, 300, 1000, len(ZEROS)])
def test_no_run_of_zeros_inside_says_that_it_did_not_run(length: int) -> None:
    """J9, case 19: a run that stays inside the file; over 64 KiB too, which then replaces what it covers [I3]."""
    after = journal([*STORY, says("turn", "text"), prompt("next")])[len(WHOLE) :]
    for at in range(0, len(WHOLE), 13):
        damaged = WHOLE[:at] + b"\0" * length + WHOLE[at + min(length, 1000) :] + after
        loaded = read_journal(damaged)
        assert loaded.damaged >= 1
        assert may_have_run(HEALTHY) & set(ledger_of(damaged).calls) <= may_have_run(ledger_of(damaged))
        assert [stamped.record for stamped in loaded.records][-1] == prompt("next")


@pytest.mark.parametrize("zeros", [b"\0" * 300, ZEROS])
def test_a_line_of_zeros_is_one_damaged_record(zeros: bytes) -> None:
    """Case 19: good line, zeros with a line end, good line: both good ones, and one damaged."""
    one, two = lines(MODES)[:2]
    loaded = read_journal(one + zeros + b"\n" + two)
    assert (seqs(loaded), loaded.damaged, loaded.tail) == ([1, 2], 1, "clean")
    assert 1 in loaded.breaks


@pytest.mark.parametrize("zeros", [b"\0", b"\0" * 300, ZEROS])
def test_zeros_swallow_no_good_record(zeros: bytes) -> None:
    """J9: zeros over whole lines and their line ends leave the record behind them readable."""
    one, _, _, four = lines(MODES)
    loaded = read_journal(one + zeros + four)
    assert (seqs(loaded), loaded.damaged, loaded.next_seq) == ([1, 4], 2, 5)
    assert 1 in loaded.breaks


def test_every_missing_line_is_seen() -> None:
    """J9: any run of lines but the last ones, which nothing tells of [I3]."""
    for first in range(len(LINES) - 1):
        for last in range(first + 1, len(LINES)):
            damaged = b"".join(LINES[:first] + LINES[last:])
            loaded = read_journal(damaged)
            assert loaded.damaged == last - first
            ledger = ledger_of(damaged)
            assert may_have_run(HEALTHY) & set(ledger.calls) <= may_have_run(ledger)


def test_lost_lines_at_the_very_end_cannot_be_seen() -> None:
    """J9: the documented limit: a journal that was never longer looks the same."""
    loaded = read_journal(b"".join(LINES[:-3]))
    assert (loaded.damaged, loaded.tail) == (0, "clean")


def test_every_doubled_line_is_seen() -> None:
    """J9, case 10: anywhere, once or more; the first one counts and the joint is broken [I3]."""
    for at in range(len(LINES)):
        for to in range(at + 1, len(LINES) + 1):
            damaged = b"".join([*LINES[:to], LINES[at], *LINES[to:]])
            loaded = read_journal(damaged)
            assert loaded.records == RECORDS
            assert (loaded.damaged, to in loaded.breaks) == (1, True)
            assert kept(ledger_of(damaged), HEALTHY)


def test_lines_that_changed_places_are_seen() -> None:
    """J9: both are readable, and nothing is said not to have run [I3]."""
    for at in range(len(LINES) - 1):
        damaged = b"".join([*LINES[:at], LINES[at + 1], LINES[at], *LINES[at + 2 :]])
        loaded = read_journal(damaged)
        assert set(loaded.records) == set(RECORDS)
        assert loaded.damaged >= 1
        assert kept(ledger_of(damaged), HEALTHY)


@given(st.data())
def test_two_damages_at_once(data: st.DataObject) -> None:
    """J9: any two pieces overwritten: what is left of a call is never said not to have run [I3]."""
    content = bytearray(WHOLE)
    for _ in range(2):
        at = data.draw(st.integers(0, len(WHOLE) - 1))
        piece = data.draw(st.one_of(st.binary(min_size=1, max_size=40), st.integers(1, 600).map(bytes)))
        content[at : at + len(piece)] = piece
    if bytes(content[-40:]) == WHOLE[-40:]:  # else the very end may be gone, which nothing tells of
        ledger = ledger_of(bytes(content))
        assert may_have_run(HEALTHY) & set(ledger.calls) <= may_have_run(ledger)


def test_a_partial_line_and_then_its_full_copy() -> None:
    """Case 22: the copy counts, whether a line end stands between them or not."""
    one, two, three = lines(MODES)[:3]
    for between in (b"\n", b""):
        loaded = read_journal(one + two[:30] + between + two + three)
        assert (seqs(loaded), loaded.damaged) == ([1, 2, 3], 1)


def test_two_writers_at_once() -> None:
    """Case 25: seq 1, 2, 2, 3: all are readable, in their order, and the joint is broken."""
    one, first = line(ModeSet("plan"), 1, FIRST_PREV)
    two, second = line(ModeSet("ask"), 2, first)
    other, _ = line(ModeSet("auto"), 2, first)
    three, _ = line(ModeSet("edits"), 3, second)
    loaded = read_journal(one + two + other + three)
    assert seqs(loaded) == [1, 2, 2, 3]
    assert (loaded.damaged, loaded.breaks) == (2, frozenset({2, 3}))
    assert loaded.next_seq == 4


def test_a_wrong_joint_alone_is_damage() -> None:
    """J2, J9: a record that proves itself and does not follow the one before."""
    one, first = line(ModeSet("plan"), 1, FIRST_PREV)
    two, _ = line(ModeSet("ask"), 2, "12345678")
    assert first != "12345678"
    loaded = read_journal(one + two)
    assert (seqs(loaded), loaded.damaged, loaded.breaks) == ([1, 2], 1, frozenset({1}))


def test_a_journal_that_lost_its_beginning() -> None:
    """J9: the first record has the number 1 and no one before it."""
    loaded = read_journal(b"".join(LINES[2:]))
    assert (loaded.damaged, 0 in loaded.breaks, seqs(loaded)[0]) == (2, True, 3)


def test_a_damaged_line_breaks_the_joint_whatever_follows() -> None:
    """J9: also where the next record was written after the damage and its `prev` fits."""
    one, first = line(ModeSet("plan"), 1, FIRST_PREV)
    three, _ = line(ModeSet("ask"), 3, first)
    loaded = read_journal(one + b"damaged\n" + three)
    assert (seqs(loaded), loaded.damaged, loaded.breaks) == ([1, 3], 1, frozenset({1}))


@pytest.mark.parametrize("newline_lost_at", range(len(LINES)))
def test_what_is_written_after_damage_joins_it(newline_lost_at: int) -> None:
    """J9: the next writer's numbers and joint are such that no further damage is seen."""
    at = sum(map(len, LINES[: newline_lost_at + 1])) - 1
    damaged = damaged_at(WHOLE, at, 0x20)
    loaded = read_journal(damaged)
    glue = b"\n" if loaded.tail == "unended" else b""
    note = Damage(loaded.unnoted, loaded.offsets)
    more, _, _ = write_lines((note, Epoch(ident("epoch 2"), 1, "host")), loaded.next_seq, loaded.last_sum, AT)
    again = read_journal(damaged + glue + more)
    assert (again.damaged, again.unnoted) == (loaded.damaged, 0)
    assert again.next_seq == loaded.next_seq + 2


def test_noted_damage_is_noted_once() -> None:
    """J9: a `damage` record stands for what is before it; the count told is of the whole journal."""
    one, first = line(ModeSet("plan"), 1, FIRST_PREV)
    note, second = line(Damage(1, (len(one),)), 3, first)
    loaded = read_journal(one + b"bad\n" + note)
    assert (loaded.damaged, loaded.unnoted, loaded.offsets) == (1, 0, ())
    after, _ = line(ModeSet("ask"), 5, second)
    loaded = read_journal(one + b"bad\n" + note + b"bad too\n" + after)
    assert (loaded.damaged, loaded.unnoted, loaded.offsets) == (2, 1, (len(one) + 4 + len(note),))


def test_offsets_are_bounded() -> None:
    """Of much damage all is counted and some is listed [I13]."""
    loaded = read_journal(b"bad\n" * (damage_offsets_max + 50))
    assert (loaded.damaged, len(loaded.offsets)) == (damage_offsets_max + 50, damage_offsets_max)


# Records that prove themselves and do not fit.


@pytest.mark.parametrize(
    "members",
    [
        members(seq="1", mode="ask"),
        members(seq=True, mode="ask"),
        members(seq=1.0, mode="ask"),
        members(prev=1, mode="ask"),
        members(kind=7),
        members(kind=None),
        {"prev": FIRST_PREV, "v": 1, "seq": 1, "at": AT},
        members(kind="mode"),
        members(mode="later"),
        members(mode=None),
        members(mode=["ask"]),
        members(kind="session", mode="ask"),
    ],
    ids=str,
)
def test_members_that_do_not_fit_are_damage(members: dict[str, object]) -> None:
    """J9: unreadable is damage and never absence; one such line makes nothing unreadable but itself."""
    loaded = read_journal(resealed(members))
    assert (loaded.records, loaded.damaged, loaded.tail) == ((), 1, "clean")
    loaded = read_journal(MODES + resealed(members) + LINES[0])
    assert seqs(loaded)[:4] == [1, 2, 3, 4]
    assert loaded.records[-1].record == STORY[0]


def test_members_and_kinds_of_later_are_passed_over() -> None:
    """X1: what this version does not know keeps its place and says nothing."""
    content = resealed(members(mode="ask", more={"x": [1]}))
    assert read_journal(content).records[0].record == ModeSet("ask")
    loaded = read_journal(resealed(members(kind="compaction", text="…")))
    assert [stamped.record for stamped in loaded.records] == [Unknown("compaction")]
    assert (loaded.damaged, loaded.next_seq) == (0, 2)


@pytest.mark.parametrize("more", [{}, {"mode": "later"}, {"mode": None}])
def test_a_newer_version_is_told_from_damage(more: dict[str, object]) -> None:
    """J13: its other members are not looked at; a wrong checksum is damage in every version."""
    newer = resealed({**members(seq=5, prev=read_journal(MODES).last_sum), "v": 2, **more})
    loaded = read_journal(MODES + newer)
    assert (loaded.newer, loaded.damaged, seqs(loaded)) == (True, 0, [1, 2, 3, 4])
    assert read_journal(MODES + newer[:-1]).newer
    damaged = read_journal(MODES + damaged_at(newer, len(newer) - 5, 0x21))
    assert (damaged.newer, damaged.damaged) == (False, 1)


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_never_raises(depth: int) -> None:
    """J9: a record nested without end is damage."""
    body = b'"prev":"00000000","v":1,"seq":1,"at":"","kind":"mode","mode":' + b"[" * depth + b"]" * depth + b"}"
    loaded = read_journal(b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n")
    assert (loaded.records, loaded.damaged) == ((), 1)


@given(st.binary(max_size=300))
def test_no_bytes_raise(content: bytes) -> None:
    """J9: reading never fails on bytes."""
    assert read_journal(content).records == ()


def test_a_journal_inside_a_journal_forges_nothing() -> None:
    """J9: a reply that quotes this very format is text, in a damaged line too."""
    quoted = replies("look", text=WHOLE.decode())
    content = journal([prompt("turn"), proposes("turn", "look"), *looked("look")[:1], quoted])
    assert read_journal(content).records[-1].record == quoted
    start = content.index(b'"kind":"tool"')
    loaded = read_journal(damaged_at(content, start, 0x21))
    assert (seqs(loaded), loaded.damaged) == ([1, 2, 3], 1)


# Size.


def test_a_long_journal_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 records: each line is looked at once, so the work is bounded by the bytes [I13]."""
    looks = 0
    read_line = journal_format._read_line

    def counted(content: bytes) -> object:
        nonlocal looks
        looks += 1
        return read_line(content)

    monkeypatch.setattr(journal_format, "_read_line", counted)
    records: list[Record] = []
    for turn in range(2500):
        call = f"call {turn}"
        records += [prompt(call), proposes(call, call), *ran(call, call), says(call, call)]
    content = journal(records)
    loaded = read_journal(content + b"\0" * 100_000)
    assert (len(loaded.records), loaded.damaged, loaded.tail) == (len(records), 0, "torn")
    assert len(records) == 20_000
    assert looks == len(records)


def test_a_long_torn_tail_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """J8: a torn record full of braces is searched in one pass [I13]."""
    monkeypatch.setattr(journal_format, "_read_line", lambda content: pytest.fail("looked at without need"))
    loaded = read_journal(LINES[0][:100] + b"}" * 200_000)
    assert loaded.tail == "torn"


def test_recovery_s_verdicts_are_readable_ends() -> None:
    """C4: a journal with its verdicts, damaged anywhere, is no more certain than it was [I3]."""
    records = [*STORY, Epoch(ident("epoch 2"), 1, "host"), verdict("running", "unknown_after_restart")]
    content = journal(records)
    healthy = ledger_of(content)
    assert may_have_run(healthy) == may_have_run(HEALTHY)
    for at in range(len(WHOLE), len(content)):
        for damaged in flips(content, at):
            assert kept(ledger_of(damaged), healthy), at
