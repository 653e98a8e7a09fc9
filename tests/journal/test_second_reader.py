"""Two readers that share no code agree, so the page docs/journal-format.md is complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.records.record import KINDS, Cancel, ModeSet
from steadyhand.journal.format import read_journal
from tests.journal import second_reader
from tests.support.journals import begun, crashed_while_writing, flips, ident, journal, lines, prompt

PAGE = Path(__file__).resolve().parents[2] / "docs" / "journal-format.md"
WHOLE = journal(crashed_while_writing())
SHORT = journal([ModeSet(mode="plan"), ModeSet(mode="auto"), Cancel(turn_id="t"), ModeSet(mode="ask")])


def assert_readers_agree(content: bytes) -> None:
    first, second = read_journal(content), second_reader.read(content)
    assert [record["seq"] for record in second.records] == [stamped.seq for stamped in first.records]
    assert [record["sum"] for record in second.records] == [stamped.sum for stamped in first.records]
    assert second.breaks == first.breaks
    assert second.damaged == first.damaged
    assert (second.tail, second.tail_at) == (first.tail, first.tail_at)
    assert (second.next_seq, second.last_sum) == (first.next_seq, first.last_sum)
    assert second.newer == first.newer
    torn = [] if second.torn_start is None else [(len(second.records), second.torn_start)]
    assert torn == [(one.position, one.attempt) for one in first.torn_starts]


def test_readers_agree_on_a_healthy_journal() -> None:
    """J1, J2: both read every record of a healthy journal."""
    assert_readers_agree(WHOLE)
    assert len(second_reader.read(WHOLE).records) == len(crashed_while_writing())


def test_readers_agree_at_every_cut() -> None:
    """J8, cases 20, 134: both give the same result at every cut, and both find the same torn starts."""
    for end in range(len(WHOLE) + 1):
        assert_readers_agree(WHOLE[:end])
    started = lines(WHOLE)[-1]
    assert sum(second_reader.read(WHOLE[:-cut]).torn_start is not None for cut in range(2, len(started))) > 100


def test_readers_agree_on_every_damaged_byte() -> None:
    """J9: both give the same result for each byte damaged in each way."""
    for at in range(len(SHORT)):
        for damaged in flips(SHORT, at):
            assert_readers_agree(damaged)


def test_readers_agree_on_damage_before_a_torn_line() -> None:
    """J8, J9: both give the same result where the last line is torn and one byte before it is damaged."""
    torn = SHORT + b'{"sum":"6e92'
    for at in range(len(SHORT)):
        for damaged in flips(torn, at):
            assert_readers_agree(damaged)


@given(st.lists(st.sampled_from([*lines(SHORT), b"\n", b"\0" * 40, lines(SHORT)[0][:30], b"}", lines(SHORT)[3][:-1]])))
def test_readers_agree_on_any_order_of_lines_and_pieces(pieces: list[bytes]) -> None:
    """J9: both give the same result for lines, halves and zeros in any order."""
    assert_readers_agree(b"".join(pieces))


@given(st.binary(max_size=200))
def test_readers_agree_on_arbitrary_bytes(content: bytes) -> None:
    """J9: both read any bytes and give the same result."""
    assert_readers_agree(content)


def members(cls: type) -> list[str]:
    return [name for name in cls.__annotations__ if name != "kind"]


def name_on_disk(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def test_format_page_example_line_is_what_the_server_writes() -> None:
    """The line drawn on the page is what the server writes."""
    line = re.search(r'^(\{"sum":"[^…\n]*\})⏎$', PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert line is not None
    assert line[1].encode() + b"\n" == journal([ModeSet(mode="plan")])


def test_format_page_names_every_kind_and_member() -> None:
    """X1: the server writes no kind and no member that the page does not name."""
    page = PAGE.read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"**{kind}**" not in page] == []
    for kind, cls in KINDS.items():
        part = page.split(f"**{kind}**", 1)[1].split("\n**", 1)[0]
        missing = [name for name in map(name_on_disk, members(cls)) if f"`{name}`" not in part]
        assert missing == [], kind


@pytest.mark.parametrize("tail", [b"", b"\0\0\0", b"*", b"\r", b"x\0", b"\0x", b"{"])
def test_readers_agree_on_the_tails_of_the_format_page(tail: bytes) -> None:
    """J8: after a record without its line end, zeros make it whole and anything else makes it damage."""
    content = journal([*begun(), prompt("turn")])[:-1] + tail
    assert_readers_agree(content)
    assert read_journal(content).tail == ("whole" if not tail.strip(b"\0") else "unended")


def test_ids_are_32_hex_digits_as_on_the_format_page() -> None:
    """The builders of these tests make ids of 32 lower-case hex digits, as the page says."""
    assert re.fullmatch(r"[0-9a-f]{32}", ident("any"))
