"""The bytes of the journal: cut anywhere, damaged anywhere, and never read as less than may have happened."""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Damage, Epoch, ModeSet, Record, Unknown
from steadyhand.journal import format as journal_format
from steadyhand.journal.format import (
    DAMAGE_OFFSETS_MAX,
    FIRST_PREV,
    LoadedJournal,
    read_journal,
    write_line,
    write_lines,
)
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

RECORDS_WRITTEN = crashed_while_writing()
WHOLE = journal(RECORDS_WRITTEN)
LINES = lines(WHOLE)
RECORDS = read_journal(WHOLE).records
MODES = journal([ModeSet(mode="plan"), ModeSet(mode="ask"), ModeSet(mode="edits"), ModeSet(mode="auto")])
ZEROS = b"\0" * (64 * 1024 + 7)


@pytest.fixture(autouse=True)
def each_line_read_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cache the lines that were read: reading is a pure function, and these tests read the same lines many thousand
    times.
    """
    with monkeypatch.context() as patch:
        patch.setattr(journal_format, "_read_line", functools.lru_cache(200_000)(journal_format._read_line))
        yield


def seqs(loaded: LoadedJournal) -> list[int]:
    return [stamped.seq for stamped in loaded.records]


def line(record: Record, seq: int, prev: str) -> tuple[bytes, str]:
    return write_line(record, seq, prev, AT)


def with_checksum(members: dict[str, object]) -> bytes:
    """A line with a correct checksum, whatever it contains."""
    body = json.dumps(members, separators=(",", ":")).encode()[1:]
    return b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n"


def members(seq: object = 1, prev: object = FIRST_PREV, kind: object = "mode", **more: object) -> dict[str, object]:
    """The members of a line, also with values of a wrong type."""
    return {"prev": prev, "v": 1, "seq": seq, "at": AT, "kind": kind, **more}


# A healthy journal.


def test_line_starts_with_the_envelope_and_its_checksum_covers_the_rest() -> None:
    """J2: sum, prev, v, seq, at and kind come first, in this order. The checksum covers everything after it."""
    first, second = LINES[:2]
    assert list(json.loads(first))[:6] == ["sum", "prev", "v", "seq", "at", "kind"]
    assert json.loads(first)["sum"] == f"{zlib.crc32(first[18:-1]):08x}"
    assert json.loads(second)["prev"] == json.loads(first)["sum"]


def test_read_journal_returns_every_written_record_in_order() -> None:
    """J1, J2: every record, in order, without damage."""
    loaded = read_journal(WHOLE)
    assert [stamped.record for stamped in loaded.records] == RECORDS_WRITTEN
    assert seqs(loaded) == list(range(1, len(RECORDS_WRITTEN) + 1))
    assert (loaded.breaks, loaded.damaged, loaded.tail, loaded.newer) == (frozenset(), 0, "clean", False)
    assert (loaded.next_seq, loaded.size, loaded.tail_at) == (len(RECORDS_WRITTEN) + 1, len(WHOLE), len(WHOLE))


def test_write_lines_returns_the_records_that_reading_gives() -> None:
    """J1: the live ledger gets the same records that reading the journal gives."""
    content, stamped, last_sum = write_lines(RECORDS_WRITTEN, 1, FIRST_PREV, AT)
    loaded = read_journal(content)
    assert (stamped, last_sum) == (loaded.records, loaded.last_sum)


def test_read_journal_of_no_bytes_is_empty_and_undamaged() -> None:
    """J9: no bytes are no records and no damage."""
    loaded = read_journal(b"")
    assert (loaded.records, loaded.damaged, loaded.tail, loaded.next_seq) == ((), 0, "clean", 1)


@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029c", "half \ud83d of a pair", "\0\x01\x7f", "\r\n", "é😀", "\ufeff", "\x85"]
)
def test_line_with_any_character_stays_one_line(text: str) -> None:
    """J1: one record is one line. Only the line end ends it, and every text is read back unchanged."""
    content = journal([prompt("turn", text), ModeSet(mode="ask")])
    assert content.count(b"\n") == 2
    loaded = read_journal(content)
    assert loaded.records[0].record == prompt("turn", text)
    assert loaded.damaged == 0
    assert all(json.loads(one) for one in content.split(b"\n")[:-1])


@given(st.text(st.characters(), max_size=30))
def test_journal_roundtrip_keeps_any_text(text: str) -> None:
    """J1: the law of the examples above."""
    loaded = read_journal(journal([prompt("turn", text)]))
    assert loaded.records[0].record == prompt("turn", text)


# The end of the file.


def test_read_journal_cut_at_any_byte_gives_a_prefix() -> None:
    """J8, case 20: at every byte there is no exception, the records are a prefix, and the rest is torn."""
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
def test_read_journal_last_record_without_its_line_end_counts(zeros: bytes) -> None:
    """J8: a line that lacks only its line end, or has zeros there, is whole."""
    loaded = read_journal(WHOLE[:-1] + zeros)
    assert loaded.records == RECORDS
    assert (loaded.tail, loaded.tail_at, loaded.damaged) == ("whole", len(WHOLE) - 1, 0)


@pytest.mark.parametrize("zeros", [b"\0", b"\0" * 512, ZEROS])
@pytest.mark.parametrize("half", [0, 1, 17, 40, 100])
def test_read_journal_zeros_at_the_end_are_torn(zeros: bytes, half: int) -> None:
    """J8: the system filled a torn append with zeros. No acknowledged record is lost."""
    content = b"".join(LINES[:-1]) + LINES[-1][:half] + zeros
    loaded = read_journal(content)
    assert loaded.records == RECORDS[:-1]
    assert (loaded.tail, loaded.damaged, loaded.breaks) == ("torn", 0, frozenset())


@pytest.mark.parametrize("byte", [byte for byte in range(1, 256) if byte != 0x0A])
def test_read_journal_damaged_last_line_end_is_damage(byte: int) -> None:
    """J8, J9: a last byte that is wrong and not zero is never cut as torn [I3]."""
    loaded = read_journal(damaged_at(WHOLE, len(WHOLE) - 1, byte))
    assert (loaded.tail, loaded.damaged, loaded.records) == ("unended", 1, RECORDS[:-1])
    assert len(loaded.records) in loaded.breaks
    assert loaded.next_seq == len(RECORDS_WRITTEN) + 1


@pytest.mark.parametrize("torn", [b"{", b'{"sum":"12345678","prev"', b"\0x", LINES[0][:-1]])
@pytest.mark.parametrize("byte", [0, 1, 0x0B, 0x8A])
def test_read_journal_damaged_line_end_before_a_torn_line_is_damage(byte: int, torn: bytes) -> None:
    """The start in that line was acknowledged. It is not cut off with the torn bytes after it [I3]."""
    loaded = read_journal(damaged_at(WHOLE, len(WHOLE) - 1, byte) + torn)
    assert (loaded.tail, loaded.damaged) == ("unended", 1)
    assert verdicts(ledger_of(WHOLE[:-1] + b"x" + torn))[ident("running")] == "unknown_after_restart"


def test_read_journal_zero_line_with_a_line_end_is_damage() -> None:
    """J8: a last line of zeros with its line end is damage. Where the line could be torn or damaged, it is damaged."""
    loaded = read_journal(b"".join(LINES[:-1]) + b"\0" * (len(LINES[-1]) - 1) + b"\n")
    assert (loaded.tail, loaded.damaged, loaded.next_seq) == ("clean", 1, len(RECORDS_WRITTEN) + 1)


# Damage.


def loses_no_run(damaged: Ledger, healthy: Ledger) -> bool:
    """Whether no call that may have run is now reported as not run, or forgotten."""
    return may_have_run(healthy) <= may_have_run(damaged)


HEALTHY = ledger_of(WHOLE)


def test_read_journal_any_damaged_byte_hides_no_run() -> None:
    """J9: each byte is flipped in a low and in the high bit, zeroed, and made a line end [I3]."""
    assert may_have_run(HEALTHY) == {ident("made"), ident("running")}
    for at in range(len(WHOLE)):
        for damaged in flips(WHOLE, at):
            loaded = read_journal(damaged)
            assert loses_no_run(ledger_of(damaged), HEALTHY), at
            assert loaded.records == RECORDS or loaded.damaged >= 1, at


def test_read_journal_one_damaged_byte_loses_only_its_lines() -> None:
    """J9: intact records around it stay readable, and the reported count is that of the unreadable records."""
    for at in range(len(WHOLE) - 1):
        for damaged in flips(WHOLE, at):
            loaded = read_journal(damaged)
            left = [stamped for stamped in loaded.records if stamped in RECORDS]
            assert list(loaded.records) == left, at
            assert len(RECORDS) - len(left) == 1, at
            assert loaded.damaged in (1, 2), at


def test_read_journal_torn_and_damaged_hides_no_run() -> None:
    """J8, J9: a crash in the middle of an append and a damaged byte before it [I3]."""
    torn = WHOLE + LINES[0][:60]
    for at in range(len(WHOLE)):
        for damaged in flips(torn, at):
            assert loses_no_run(ledger_of(damaged), HEALTHY), at


@pytest.mark.parametrize("length", [1, 7, 300, 1000, len(ZEROS)])
def test_read_journal_zeros_inside_hide_no_run(length: int) -> None:
    """J9, case 19: a run of zeros inside the file, also one over 64 KiB, which then replaces the bytes it
    covers [I3].
    """
    after = journal([*RECORDS_WRITTEN, says("turn", "text"), prompt("next")])[len(WHOLE) :]
    for at in range(0, len(WHOLE), 13):
        damaged = WHOLE[:at] + b"\0" * length + WHOLE[at + min(length, 1000) :] + after
        loaded = read_journal(damaged)
        assert loaded.damaged >= 1
        assert may_have_run(HEALTHY) & set(ledger_of(damaged).calls) <= may_have_run(ledger_of(damaged))
        assert [stamped.record for stamped in loaded.records][-1] == prompt("next")


@pytest.mark.parametrize("zeros", [b"\0" * 300, ZEROS])
def test_read_journal_line_of_zeros_is_one_damaged_record(zeros: bytes) -> None:
    """Case 19: good line, zeros with a line end, good line: both good lines are read, and one record is damaged."""
    one, two = lines(MODES)[:2]
    loaded = read_journal(one + zeros + b"\n" + two)
    assert (seqs(loaded), loaded.damaged, loaded.tail) == ([1, 2], 1, "clean")
    assert 1 in loaded.breaks


@pytest.mark.parametrize("zeros", [b"\0", b"\0" * 300, ZEROS])
def test_read_journal_zeros_over_lines_keep_the_next_record(zeros: bytes) -> None:
    """J9: zeros over whole lines and their line ends leave the record after them readable."""
    one, _, _, four = lines(MODES)
    loaded = read_journal(one + zeros + four)
    assert (seqs(loaded), loaded.damaged, loaded.next_seq) == ([1, 4], 2, 5)
    assert 1 in loaded.breaks


def test_read_journal_missing_lines_are_damage() -> None:
    """J9: any run of lines, except the last ones, which cannot be detected [I3]."""
    for first in range(len(LINES) - 1):
        for last in range(first + 1, len(LINES)):
            damaged = b"".join(LINES[:first] + LINES[last:])
            loaded = read_journal(damaged)
            assert loaded.damaged == last - first
            ledger = ledger_of(damaged)
            assert may_have_run(HEALTHY) & set(ledger.calls) <= may_have_run(ledger)


def test_read_journal_lost_last_lines_are_not_detected() -> None:
    """J9: the documented limit: a journal that was never longer looks the same."""
    loaded = read_journal(b"".join(LINES[:-3]))
    assert (loaded.damaged, loaded.tail) == (0, "clean")


def test_read_journal_repeated_line_is_damage() -> None:
    """J9, case 10: anywhere, once or more. The first one counts and the joint is broken [I3]."""
    for at in range(len(LINES)):
        for to in range(at + 1, len(LINES) + 1):
            damaged = b"".join([*LINES[:to], LINES[at], *LINES[to:]])
            loaded = read_journal(damaged)
            assert loaded.records == RECORDS
            assert (loaded.damaged, to in loaded.breaks) == (1, True)
            assert loses_no_run(ledger_of(damaged), HEALTHY)


def test_read_journal_swapped_lines_are_damage_and_hide_no_run() -> None:
    """J9: both are readable, and no call is reported as not run [I3]."""
    for at in range(len(LINES) - 1):
        damaged = b"".join([*LINES[:at], LINES[at + 1], LINES[at], *LINES[at + 2 :]])
        loaded = read_journal(damaged)
        assert set(loaded.records) == set(RECORDS)
        assert loaded.damaged >= 1
        assert loses_no_run(ledger_of(damaged), HEALTHY)


@given(st.data())
def test_read_journal_two_damaged_pieces_hide_no_run(data: st.DataObject) -> None:
    """J9: any two pieces are overwritten. A call with records left is never reported as not run [I3]."""
    content = bytearray(WHOLE)
    for _ in range(2):
        at = data.draw(st.integers(0, len(WHOLE) - 1))
        piece = data.draw(st.one_of(st.binary(min_size=1, max_size=40), st.integers(1, 600).map(bytes)))
        content[at : at + len(piece)] = piece
    if bytes(content[-40:]) == WHOLE[-40:]:  # else the end may be lost, which cannot be detected
        ledger = ledger_of(bytes(content))
        assert may_have_run(HEALTHY) & set(ledger.calls) <= may_have_run(ledger)


def test_read_journal_partial_line_then_full_copy_reads_the_copy() -> None:
    """Case 22: the copy counts, with or without a line end between them."""
    one, two, three = lines(MODES)[:3]
    for separator in (b"\n", b""):
        loaded = read_journal(one + two[:30] + separator + two + three)
        assert (seqs(loaded), loaded.damaged) == ([1, 2, 3], 1)


def test_read_journal_of_two_writers_reads_all_and_breaks_the_joint() -> None:
    """Case 25: seq 1, 2, 2, 3: all are readable, in their order, and the joint is broken."""
    one, first = line(ModeSet(mode="plan"), 1, FIRST_PREV)
    two, second = line(ModeSet(mode="ask"), 2, first)
    other, _ = line(ModeSet(mode="auto"), 2, first)
    three, _ = line(ModeSet(mode="edits"), 3, second)
    loaded = read_journal(one + two + other + three)
    assert seqs(loaded) == [1, 2, 2, 3]
    assert (loaded.damaged, loaded.breaks) == (2, frozenset({2, 3}))
    assert loaded.next_seq == 4


def test_read_journal_wrong_joint_alone_is_damage() -> None:
    """J2, J9: a record with a correct checksum that does not follow the one before."""
    one, first = line(ModeSet(mode="plan"), 1, FIRST_PREV)
    two, _ = line(ModeSet(mode="ask"), 2, "12345678")
    assert first != "12345678"
    loaded = read_journal(one + two)
    assert (seqs(loaded), loaded.damaged, loaded.breaks) == ([1, 2], 1, frozenset({1}))


def test_read_journal_without_its_first_lines_is_damaged() -> None:
    """J9: the first record has the number 1 and no record before it."""
    loaded = read_journal(b"".join(LINES[2:]))
    assert (loaded.damaged, 0 in loaded.breaks, seqs(loaded)[0]) == (2, True, 3)


def test_read_journal_damaged_line_breaks_the_joint_even_if_prev_fits() -> None:
    """J9: also where the next record was written after the damage and its `prev` fits."""
    one, first = line(ModeSet(mode="plan"), 1, FIRST_PREV)
    three, _ = line(ModeSet(mode="ask"), 3, first)
    loaded = read_journal(one + b"damaged\n" + three)
    assert (seqs(loaded), loaded.damaged, loaded.breaks) == ([1, 3], 1, frozenset({1}))


@pytest.mark.parametrize("newline_lost_at", range(len(LINES)))
def test_write_lines_after_damage_adds_no_further_damage(newline_lost_at: int) -> None:
    """J9: the numbers and the joint of the next writer cause no further damage."""
    at = sum(map(len, LINES[: newline_lost_at + 1])) - 1
    damaged = damaged_at(WHOLE, at, 0x20)
    loaded = read_journal(damaged)
    glue = b"\n" if loaded.tail == "unended" else b""
    note = Damage(count=loaded.unrecorded_damage, offsets=loaded.offsets)
    more, _, _ = write_lines(
        (note, Epoch(epoch=ident("epoch 2"), pid=1, host="host")), loaded.next_seq, loaded.last_sum, AT
    )
    again = read_journal(damaged + glue + more)
    assert (again.damaged, again.unrecorded_damage) == (loaded.damaged, 0)
    assert again.next_seq == loaded.next_seq + 2


def test_read_journal_noted_damage_is_not_noted_again() -> None:
    """J9: a `damage` record covers the damage before it. The reported count is of the whole journal."""
    one, first = line(ModeSet(mode="plan"), 1, FIRST_PREV)
    note, second = line(Damage(count=1, offsets=(len(one),)), 3, first)
    loaded = read_journal(one + b"bad\n" + note)
    assert (loaded.damaged, loaded.unrecorded_damage, loaded.offsets) == (1, 0, ())
    after, _ = line(ModeSet(mode="ask"), 5, second)
    loaded = read_journal(one + b"bad\n" + note + b"bad too\n" + after)
    assert (loaded.damaged, loaded.unrecorded_damage, loaded.offsets) == (2, 1, (len(one) + 4 + len(note),))


def test_read_journal_lists_a_bounded_number_of_damage_offsets() -> None:
    """All damage is counted, and a bounded part of it is listed [I13]."""
    loaded = read_journal(b"bad\n" * (DAMAGE_OFFSETS_MAX + 50))
    assert (loaded.damaged, len(loaded.offsets)) == (DAMAGE_OFFSETS_MAX + 50, DAMAGE_OFFSETS_MAX)


# Records with a correct checksum that do not fit.


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
def test_read_journal_members_that_do_not_fit_are_damage(members: dict[str, object]) -> None:
    """J9: an unreadable record is damage and never absence. One such line makes only itself unreadable."""
    loaded = read_journal(with_checksum(members))
    assert (loaded.records, loaded.damaged, loaded.tail) == ((), 1, "clean")
    loaded = read_journal(MODES + with_checksum(members) + LINES[0])
    assert seqs(loaded)[:4] == [1, 2, 3, 4]
    assert loaded.records[-1].record == RECORDS_WRITTEN[0]


def test_read_journal_ignores_unknown_members_and_kinds() -> None:
    """X1: a record that this version does not know keeps its place and has no effect."""
    content = with_checksum(members(mode="ask", more={"x": [1]}))
    assert read_journal(content).records[0].record == ModeSet(mode="ask")
    loaded = read_journal(with_checksum(members(kind="future", text="…")))
    assert [stamped.record for stamped in loaded.records] == [Unknown(kind_name="future")]
    assert (loaded.damaged, loaded.next_seq) == (0, 2)


@pytest.mark.parametrize("more", [{}, {"mode": "later"}, {"mode": None}])
def test_read_journal_newer_version_is_not_damage(more: dict[str, object]) -> None:
    """J13: the other members of a newer record are not read. A wrong checksum is damage in every version."""
    newer = with_checksum({**members(seq=5, prev=read_journal(MODES).last_sum), "v": 2, **more})
    loaded = read_journal(MODES + newer)
    assert (loaded.newer, loaded.damaged, seqs(loaded)) == (True, 0, [1, 2, 3, 4])
    assert read_journal(MODES + newer[:-1]).newer
    damaged = read_journal(MODES + damaged_at(newer, len(newer) - 5, 0x21))
    assert (damaged.newer, damaged.damaged) == (False, 1)


@pytest.mark.parametrize("depth", [100, 100_000])
def test_read_journal_deeply_nested_record_is_damage(depth: int) -> None:
    """J9: a record nested without end is damage and raises nothing."""
    body = b'"prev":"00000000","v":1,"seq":1,"at":"","kind":"mode","mode":' + b"[" * depth + b"]" * depth + b"}"
    loaded = read_journal(b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n")
    assert (loaded.records, loaded.damaged) == ((), 1)


@given(st.binary(max_size=300))
def test_read_journal_of_arbitrary_bytes_never_raises(content: bytes) -> None:
    """J9: reading never fails on bytes."""
    assert read_journal(content).records == ()


def test_read_journal_quoted_journal_in_a_reply_is_only_text() -> None:
    """J9: a reply that quotes this format is text, in a damaged line too."""
    quoted = replies("look", text=WHOLE.decode())
    content = journal([prompt("turn"), proposes("turn", "look"), *looked("look")[:1], quoted])
    assert read_journal(content).records[-1].record == quoted
    start = content.index(b'"kind":"tool"')
    loaded = read_journal(damaged_at(content, start, 0x21))
    assert (seqs(loaded), loaded.damaged) == ([1, 2, 3], 1)


# Size.


def test_read_journal_of_20000_records_reads_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 records: each line is read once, so the work is bounded by the bytes [I13]."""
    lines_read = 0
    read_line = journal_format._read_line

    def count_and_read(content: bytes) -> object:
        nonlocal lines_read
        lines_read += 1
        return read_line(content)

    monkeypatch.setattr(journal_format, "_read_line", count_and_read)
    records: list[Record] = []
    for turn in range(2500):
        call = f"call {turn}"
        records += [prompt(call), proposes(call, call), *ran(call, call), says(call, call)]
    content = journal(records)
    loaded = read_journal(content + b"\0" * 100_000)
    assert (len(loaded.records), loaded.damaged, loaded.tail) == (len(records), 0, "torn")
    assert len(records) == 20_000
    assert lines_read == len(records)


def test_read_journal_long_torn_tail_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """J8: a torn record full of braces is searched in one pass [I13]."""
    monkeypatch.setattr(journal_format, "_read_line", lambda content: pytest.fail("read without need"))
    loaded = read_journal(LINES[0][:100] + b"}" * 200_000)
    assert loaded.tail == "torn"


def test_read_journal_damaged_recovery_verdict_adds_no_certainty() -> None:
    """C4: a journal with verdicts of recovery, damaged anywhere, is no more certain than before [I3]."""
    records = [
        *RECORDS_WRITTEN,
        Epoch(epoch=ident("epoch 2"), pid=1, host="host"),
        verdict("running", "unknown_after_restart"),
    ]
    content = journal(records)
    healthy = ledger_of(content)
    assert may_have_run(healthy) == may_have_run(HEALTHY)
    for at in range(len(WHOLE), len(content)):
        for damaged in flips(content, at):
            assert loses_no_run(ledger_of(damaged), healthy), at
