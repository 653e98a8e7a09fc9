"""The law of edits: every byte outside the replaced range stays, in every encoding of the list (row W10)."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steadyhand.domain.text.decoding import FileText, NewText, decode_as
from steadyhand.domain.text.edit import Edit, Edited, EditRefused, apply_edits, new_content
from steadyhand.domain.text.encodings import ENCODINGS, UTF_8, TextEncoding, encoding_named

Unit = tuple[str, bytes]
"""A character of the LF view, and its bytes in the file."""

PLAIN = "ab \t\"'\x01\x1b"
OTHERS = "é€\u0301Жש日本𝄞\u3000\u2028"
SAMPLED_MAX = 60


@cache
def sequences(encoding: TextEncoding) -> tuple[Unit, ...]:
    """Characters of the encoding with the bytes that a file may have for them, also such that Python never writes."""
    found: list[Unit] = [(char, char.encode(encoding.name)) for char in PLAIN]
    for char in OTHERS:
        try:
            raw = char.encode(encoding.name)
        except UnicodeEncodeError:
            continue
        if raw.decode(encoding.name) == char:
            found.append((char, raw))
    if encoding.unit_bytes > 1 or encoding is UTF_8:
        return tuple(found)
    two = [bytes([first, second]) for first in range(0x81, 0xFF) for second in range(0x30, 0xFF)]
    three = [bytes([0x8F, first, 0xB0]) for first in range(0xB0, 0xF0)] if encoding.name == "euc_jp" else []
    four = [bytes([0x81, 0x30, first, 0x30]) for first in range(0x81, 0xFE)] if encoding.name == "gb18030" else []
    chosen: list[Unit] = []
    odd: list[Unit] = []
    for raw in [bytes([byte]) for byte in range(0x80, 0x100)] + two + three + four:
        try:
            text = raw.decode(encoding.name)
        except UnicodeDecodeError:
            continue
        if len(text) == 1:
            (chosen if text.encode(encoding.name, "replace") == raw else odd).append((text, raw))
    shuffled = random.Random(encoding.name)
    return tuple(found + shuffled.sample(chosen, min(SAMPLED_MAX, len(chosen))) + odd[:SAMPLED_MAX])


def units_of(draw: st.DrawFn, encoding: TextEncoding) -> list[Unit]:
    """A content as the LF view sees it. A CR never stands before an LF that is a line end of its own."""
    ends: list[Unit] = [("\n", "\n".encode(encoding.name)), ("\n", "\r\n".encode(encoding.name))]
    ends.append(("\r", "\r".encode(encoding.name)))
    units = draw(st.lists(st.sampled_from((*sequences(encoding), *ends)), max_size=25))
    kept: list[Unit] = []
    for unit in units:
        if unit[0] != "\n" or not kept or kept[-1][0] != "\r":
            kept.append(unit)
    return kept


@st.composite
def edits(draw: st.DrawFn) -> tuple[TextEncoding, bytes, list[Unit], int, int, str]:
    """An encoding, a mark, the units of a file, the range of the old text in it, and a new text."""
    encoding = draw(st.sampled_from(ENCODINGS))
    mark = draw(st.sampled_from(sorted({b"", encoding.mark})))
    units = units_of(draw, encoding)
    assume(units)
    start = draw(st.integers(0, len(units) - 1))
    stop = draw(st.integers(start + 1, len(units)))
    new = "".join(char for char, _ in units_of(draw, encoding))
    return encoding, mark, units, start, stop, new


@given(edits())
def test_any_edit_of_any_content_keeps_every_byte_outside_the_range(
    drawn: tuple[TextEncoding, bytes, list[Unit], int, int, str],
) -> None:
    """W10, cases 41, 43, 44, 46, 50: the bytes around the old text are the same, and between them is the new text."""
    encoding, mark, units, start, stop, new = drawn
    text, old = "".join(char for char, _ in units), "".join(char for char, _ in units[start:stop])
    assume(sum(text.startswith(old, at) for at in range(len(text))) == 1)
    before, after = (b"".join(raw for _, raw in part) for part in (units[:start], units[stop:]))
    raw = mark + before + b"".join(raw for _, raw in units[start:stop]) + after
    file = decode_as(raw, encoding.name)
    assume(isinstance(file, FileText) and file.text == text and file.mark == mark)
    assert isinstance(file, FileText)
    done = apply_edits(file, [Edit(old, new)])
    assert isinstance(done, Edited), done
    assert done.raw.startswith(mark + before)
    assert done.raw.endswith(after)
    middle = done.raw[len(mark + before) : len(done.raw) - len(after)].decode(encoding.name)
    assert middle.replace("\r\n", "\n") == new
    assert done.raw[len(mark) :].decode(encoding.name) == done.content


@given(edits())
def test_whole_write_of_what_was_read_changes_no_byte(
    drawn: tuple[TextEncoding, bytes, list[Unit], int, int, str],
) -> None:
    """W9, W10: also where the file has bytes that Python would write in another way."""
    encoding, mark, units, *_ = drawn
    file = decode_as(mark + b"".join(raw for _, raw in units), encoding.name)
    assume(isinstance(file, FileText))
    assert isinstance(file, FileText)
    content = file.text if file.line_ending == "crlf" else file.content
    done = new_content(file, content)
    assert isinstance(done, Edited), done
    assert done.raw == file.raw


@pytest.mark.parametrize(
    ("name", "raw", "char"),
    [
        ("big5", b"\xa2\xcc=1\n", "十"),  # Python writes A4 51
        ("shiftjis", b"\x87\x90=1\n", "\u2252"),  # Python writes 81 E0
        ("shiftjis", b"\xfa\x5c=1\n", "纊"),  # an IBM row; Python writes ED 40
    ],
)
def test_second_spelling_of_a_character_stays(name: str, raw: bytes, char: str) -> None:
    """W10: two byte sequences for one character. An edit beside it does not replace one by the other."""
    named = encoding_named(name)
    assert named is not None
    file = decode_as(raw * 3, named[0].name)
    assert isinstance(file, FileText)
    assert file.content == f"{char}=1\n" * 3
    assert file.content.encode(named[0].name) != raw * 3
    done = apply_edits(file, [Edit(f"{char}=1\n", f"{char}=2\n", all=True)])
    assert isinstance(done, Edited)
    assert done.raw == raw.replace(b"1", b"2") * 3


@pytest.mark.parametrize(
    ("name", "new", "said"),
    [
        ("latin1", "1 €", "“€” (U+20AC) in line 1"),
        ("latin1", "1\n\u2022", "“\u2022” (U+2022) in line 2"),
        ("windows1252", "Ж", "U+0416"),
        ("koi8-r", "é", "U+00E9"),
        ("shiftjis", "\xa5", "U+00A5"),
        ("euc-jp", "\xa5", "U+00A5"),  # Python writes 5C for it, which is read as a backslash
        ("gbk", "𝄞", "U+1D11E"),
        ("big5", "e\u0301", "U+0301"),
    ],
)
def test_character_that_does_not_fit_is_refused_and_named(name: str, new: str, said: str) -> None:
    """W10, case 47: reason `encoding`, before anything is touched; also for a whole write and a new file."""
    named = encoding_named(name)
    assert named is not None
    encoding = named[0]
    file = decode_as(b"a = 1\nb\n", encoding.name)
    assert isinstance(file, FileText)
    for refused in (
        apply_edits(file, [Edit("1", new)]),
        new_content(file, f"{new}\n"),
        new_content(NewText(encoding), new),
    ):
        assert isinstance(refused, EditRefused)
        assert refused.reason == "encoding"
        assert said in refused.text
        assert encoding.word in refused.text
    second = apply_edits(file, [Edit("a", "c"), Edit("1", new)])
    assert isinstance(second, EditRefused)
    assert (second.reason, second.text.startswith("Edit 2 of 2: ")) == ("encoding", True)


def test_file_that_is_only_read_is_refused_with_its_doubt() -> None:
    """W10: an edit and a whole write of a stateful or guessed encoding say why."""
    file = FileText("日本\n", "日本\n", "lf", "日本\n".encode("iso2022_jp"), doubt="It is only read.")
    for refused in (apply_edits(file, [Edit("日", "月")]), new_content(file, "x\n")):
        assert refused == EditRefused("It is only read.", "encoding")


def test_long_content_is_spliced_at_the_right_bytes() -> None:
    """W10: positions beyond the pieces in which a text is decoded, with bytes that Python would not write."""
    odd = b"\xa2\xcc"
    raw = (odd + b"x" * 7 + b"\n") * 20_000 + b"END\n" + odd
    file = decode_as(raw, "cp950")
    assert isinstance(file, FileText)
    done = apply_edits(file, [Edit("END", "\u5341"), Edit("\u5341\n\u5341", "Z\n\u5341")])
    assert isinstance(done, Edited)
    assert done.raw == raw.replace(b"END", b"Z")
