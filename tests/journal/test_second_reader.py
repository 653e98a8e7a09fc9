"""Two readers that share no code agree: the page docs/journal-format.md says all there is to say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.record import KINDS, Cancel, ModeSet
from steadyhand.journal.format import read_journal
from tests.journal import second_reader
from tests.support.journals import begun, crashed_while_writing, flips, ident, journal, lines, prompt

PAGE = Path(__file__).resolve().parents[2] / "docs" / "journal-format.md"
WHOLE = journal(crashed_while_writing())
SHORT = journal([ModeSet("plan"), ModeSet("auto"), Cancel("t"), ModeSet("ask")])


def agree(content: bytes) -> None:
    first, second = read_journal(content), second_reader.read(content)
    assert [record["seq"] for record in second.records] == [stamped.seq for stamped in first.records]
    assert [record["sum"] for record in second.records] == [stamped.sum for stamped in first.records]
    assert second.breaks == first.breaks
    assert second.damaged == first.damaged
    assert (second.tail, second.tail_at) == (first.tail, first.tail_at)
    assert (second.next_seq, second.last_sum) == (first.next_seq, first.last_sum)
    assert second.newer == first.newer


def test_they_agree_on_a_healthy_journal() -> None:
    """J1, J2: both read every record of a healthy journal."""
    agree(WHOLE)
    assert len(second_reader.read(WHOLE).records) == len(crashed_while_writing())


def test_they_agree_wherever_it_is_cut() -> None:
    """J8, case 20: both see the same at every cut."""
    for end in range(len(WHOLE) + 1):
        agree(WHOLE[:end])


def test_they_agree_wherever_a_byte_is_damaged() -> None:
    """J9: both see the same for each byte damaged in each way."""
    for at in range(len(SHORT)):
        for damaged in flips(SHORT, at):
            agree(damaged)


def test_they_agree_on_damage_before_a_cut() -> None:
    """J8, J9: both see the same where the last line is torn and one byte before it is damaged."""
    torn = SHORT + b'{"sum":"6e92'
    for at in range(len(SHORT)):
        for damaged in flips(torn, at):
            agree(damaged)


@given(st.lists(st.sampled_from([*lines(SHORT), b"\n", b"\0" * 40, lines(SHORT)[0][:30], b"}", lines(SHORT)[3][:-1]])))
def test_they_agree_on_any_order_of_pieces(pieces: list[bytes]) -> None:
    """J9: both see the same whatever lines, halves and zeros stand in whatever order."""
    agree(b"".join(pieces))


@given(st.binary(max_size=200))
def test_they_agree_on_any_bytes(content: bytes) -> None:
    """J9: both read any bytes at all, and the same in them."""
    agree(content)


def members(cls: type) -> list[str]:
    return [name for name in cls.__annotations__ if name != "kind"]


def spelled(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


def test_the_drawn_line_is_one() -> None:
    """The line drawn on the page is what the server writes."""
    drawn = re.search(r'^(\{"sum":"[^…\n]*\})⏎$', PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert drawn is not None
    assert drawn[1].encode() + b"\n" == journal([ModeSet("plan")])


def test_the_page_names_every_kind_and_member() -> None:
    """X1: no kind and no member is written that the page does not name."""
    page = PAGE.read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"**{kind}**" not in page] == []
    for kind, cls in KINDS.items():
        part = page.split(f"**{kind}**", 1)[1].split("\n**", 1)[0]
        missing = [name for name in map(spelled, members(cls)) if f"`{name}`" not in part]
        assert missing == [], kind


@pytest.mark.parametrize("tail", [b"", b"\0\0\0", b"*", b"\r", b"x\0", b"\0x", b"{"])
def test_the_page_s_tails(tail: bytes) -> None:
    """J8: after a record without its line end zeros make it whole and anything else makes it damage."""
    content = journal([*begun(), prompt("turn")])[:-1] + tail
    agree(content)
    assert read_journal(content).tail == ("whole" if not tail.strip(b"\0") else "unended")


def test_ids_are_as_the_page_says() -> None:
    """The builders of these tests make ids of 32 lower-case hex digits, as the page has them."""
    assert re.fullmatch(r"[0-9a-f]{32}", ident("any"))
