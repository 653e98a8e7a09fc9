"""Edits touch what they match and nothing else; readings say exactly what they show."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steadyhand.core.text_edit import (
    Edit,
    Edited,
    EditRefused,
    FileText,
    NotText,
    apply_edits,
    decode,
    describe,
    lines_named_max,
    new_content,
)
from steadyhand.core.text_lines import (
    EMPTY_MARK,
    NO_LINE_END_MARK,
    TRUNCATED_MARK_START,
    Sliced,
    reading_text,
    slice_lines,
    whole_text,
)


def text(raw: bytes) -> FileText:
    file = decode(raw)
    assert isinstance(file, FileText)
    return file


def edited(raw: bytes, *edits: Edit) -> bytes:
    done = apply_edits(text(raw), edits)
    assert isinstance(done, Edited), done
    return done.raw


def refused(raw: bytes, *edits: Edit) -> str:
    done = apply_edits(text(raw), edits)
    assert isinstance(done, EditRefused), done
    return done.reason


@pytest.mark.parametrize(
    ("raw", "old", "new", "expected"),
    [
        (b"a\r\nb\nc", "c", "C", b"a\r\nb\nC"),  # case 41
        (b"a\r\nb\nc", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc"),  # case 41: context matched, not rewritten
        (b"a\r\nb\nc\n", "b\nc", "x\ny\nz", b"a\r\nx\ny\nz\n"),
        (b"a\nb\r\nc\n", "b\nc", "x\ny", b"a\nx\r\ny\n"),
        (b"a\r\nb\r\n", "a\n", "a\nnew\n", b"a\r\nnew\r\nb\r\n"),
        (b"a\r\nb", "b", "x\ny", b"a\r\nx\r\ny"),  # no own line end: that of the line before
        (b"a\nb\r\nc\n", "b", "x\ny", b"a\nx\r\ny\r\nc\n"),  # that of its line
        (b"one", "one", "x\ny", b"x\ny"),
        (b"p\r\nq\r\n", "p\nq", "P\nQ", b"P\r\nQ\r\n"),  # case 43
        (b"p\nq\n", "p\r\nq", "P\r\nQ", b"P\nQ\n"),  # case 43, the other way round
        (b"p\r\nq\r\n", "p\nq\n", "", b""),
        (b"\xef\xbb\xbfx=1\n", "x=1", "x=2", b"\xef\xbb\xbfx=2\n"),  # case 44
        (b"\xef\xbb\xbf", "", "x\n", b"\xef\xbb\xbfx\n"),
        (b"a\nb", "a", "A", b"A\nb"),  # case 50
        (b"a\nb", "b", "b\n", b"a\nb\n"),  # case 50: on purpose
        (b"", "", "x", b"x"),
        (b"a\rb\n", "a\rb", "c\rd", b"c\rd\n"),  # a lone CR is a character
        (b"a\r\r\nb\n", "\nb", "\nc", b"a\r\r\nc\n"),
        ("名=1\n".encode(), "名=1", "名=𝄞", "名=𝄞\n".encode()),
        (b"x = 1\n", "1", r"\1\g<0>", b"x = \\1\\g<0>\n"),  # nothing is expanded
    ],
)
def test_an_edit_is_a_splice(raw: bytes, old: str, new: str, expected: bytes) -> None:
    """Cases 41, 43, 44, 50 and row W9: bytes outside the match, line ends, mark and last line end are kept."""
    assert edited(raw, Edit(old, new)) == expected


def test_a_repeated_block_is_refused_with_its_lines() -> None:
    """Case 52: exact, unique, contiguous; otherwise the line numbers."""
    block = b"def f():\n    pass\n\n"
    assert "at lines 1, 4, 7:" in refused(block * 3, Edit("def f():\n    pass\n", "x"))
    assert "does not stand" in refused(block * 3, Edit("def f():\n\n", "x"))


def test_overlapping_places_are_not_unique() -> None:
    """Case 52: "aa" stands in "aaa" twice."""
    assert "at lines 1, 1:" in refused(b"aaa", Edit("aa", "b"))


def test_named_lines_are_bounded() -> None:
    """[I13]."""
    reason = refused(b"x\n" * 500, Edit("x", "y"))
    named = ", ".join(str(number) for number in range(1, lines_named_max + 1))
    assert f"at lines {named} and more:" in reason


def test_line_numbers_are_the_editors() -> None:
    """Python traps: U+2028 and form feed end no line; CRLF is one end, a lone CR another."""
    assert "at lines 1, 3:" in refused("x\u2028\x0c\x85\r\na\rx\n".encode(), Edit("x", "y"))


def test_nothing_is_matched_approximately() -> None:
    """Case 53."""
    assert "does not stand" in refused(b"alpha   beta\nalpha\tbeta\n", Edit("alpha beta", "x"))


@pytest.mark.parametrize("raw", [b"p\nq\np\r\nq\r\n", b"p\r\nq\np\nq\n"])
def test_variants_of_line_ends_at_different_places_are_refused(raw: bytes) -> None:
    """Case 43: LF and CRLF variants that match different places are not told apart by guessing."""
    for old in ("p\nq", "p\r\nq"):
        assert "at lines 1, 3:" in refused(raw, Edit(old, "x"))
    assert edited(raw, Edit("p\nq", "p\nz", all=True)) == raw.replace(b"q", b"z")


def test_all_is_left_to_right_without_overlaps_and_counted() -> None:
    """Case 55."""
    done = apply_edits(text(b"aaaa"), [Edit("aa", "b", all=True)])
    assert done == Edited(b"bb", (2,))
    assert apply_edits(text(b"aaa"), [Edit("aa", "aab", all=True)]) == Edited(b"aaba", (1,))
    assert "does not stand" in refused(b"b", Edit("a", "x", all=True))


def test_edits_go_one_on_the_result_of_the_other_or_none_is_done() -> None:
    """Row W9: one replacement of the file, or none."""
    done = apply_edits(text(b"a b\n"), [Edit("a", "b"), Edit("b", "c", all=True)])
    assert done == Edited(b"c c\n", (1, 2))
    assert refused(b"a\n", Edit("a", "b"), Edit("a", "c")).startswith("Edit 2 of 2: The old text does not stand")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Edit("", "x"), "old text is empty"),
        (Edit("a", "\ud83d"), "U+D83D"),
        (Edit("\udc80", "x"), "U+DC80"),
        (Edit("a", "\x00"), "NUL"),
    ],
)
def test_impossible_edits_are_refused(edit: Edit, said: str) -> None:
    """Python traps: lone surrogates are caught before the write, and named."""
    assert said in refused(b"a\n", edit)
    assert "No edit" in refused(b"a\n")


@pytest.mark.parametrize(
    ("raw", "said", "encoding"),
    [
        (b"x = 1\n# caf\xe9\n", "0xE9 at offset 11 (line 2)", "unknown"),  # case 46
        ("名=1\n".encode("shift_jis"), "not UTF-8", "unknown"),  # case 47
        (b"\xff\xfea\0=", "none at offset 4", "utf-16-le"),
        (b"\xfe\xff\xd8\0\0a", "none at offset 2", "utf-16-be"),
        (b"\xff\xfea\0\0\0", "NUL character", "binary"),
        ("hello\n".encode("utf-16-le"), "UTF-16 (little endian)", "utf-16-le"),
        ("hello\n".encode("utf-16-be"), "UTF-16 (big endian)", "utf-16-be"),
        ("a".encode("utf-32"), "UTF-32 (little endian)", "utf-32-le"),
        (b"\x7fELF\x01\x00\x00", "binary: it holds a NUL byte at offset 5", "binary"),
        (b"a" * 70_000 + b"\x80", "0x80 at offset 70000", "unknown"),  # case 49
        (b"\xc0\xaf", "not UTF-8", "unknown"),
        (b"\xed\xa0\x80", "not UTF-8", "unknown"),
    ],
)
def test_what_is_no_text_is_left_untouched_and_named(raw: bytes, said: str, encoding: str) -> None:
    """Cases 46, 47, 49: refused untouched, by the one decoder that reading and editing share."""
    file = decode(raw)
    assert isinstance(file, NotText)
    assert said in file.reason
    assert describe(raw) == (encoding, "none")
    assert slice_lines(raw, 1, None, 100, 100) == file


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_with_its_mark_is_read_and_kept(codec: str) -> None:
    """W9, case 49: read, edited and written whole in the encoding, with the mark and the line ends that were there."""
    mark = "\ufeff".encode(codec)
    raw = mark + "a=1\r\n名\U0001f600\r\n".encode(codec)
    file = decode(raw)
    assert isinstance(file, FileText)
    assert (file.text, file.raw) == ("a=1\n名\U0001f600\n", raw)
    assert describe(raw) == (codec, "crlf")
    edited = apply_edits(file, [Edit("a=1\n名", "a=2\nb\n名")])
    assert isinstance(edited, Edited)
    assert edited.raw == mark + "a=2\r\nb\r\n名\U0001f600\r\n".encode(codec)
    assert new_content(file, "\ufeffneu\n") == mark + "neu\r\n".encode(codec)
    sliced = slice_lines(raw, 2, None, 100, 100)
    assert isinstance(sliced, Sliced)
    assert (sliced.text, sliced.total) == ("名\U0001f600\n", 2)


@pytest.mark.parametrize(
    ("raw", "described"),
    [
        (b"", ("utf-8", "none")),
        (b"a", ("utf-8", "none")),
        (b"a\n", ("utf-8", "lf")),
        (b"a\r\n\r\n", ("utf-8", "crlf")),
        (b"a\r\nb\n", ("utf-8", "mixed")),
        (b"a\r", ("utf-8", "mixed")),
        (b"a\r\r\n", ("utf-8", "mixed")),
        (b"\xef\xbb\xbfa\n", ("utf-8-bom", "lf")),
    ],
)
def test_a_file_is_described(raw: bytes, described: tuple[str, str]) -> None:
    """Row W1: encoding and line ending in the evidence."""
    assert describe(raw) == described


@pytest.mark.parametrize(
    ("existing", "content", "expected"),
    [
        (None, "a\r\nb\n", b"a\r\nb\n"),
        (None, "\ufeffa", b"\xef\xbb\xbfa"),
        (b"x\r\ny\r\n", "a\nb", b"a\r\nb"),
        (b"x\r\n", "a\r\nb\n", b"a\r\nb\n"),
        (b"x\n", "a\r\n", b"a\r\n"),
        (b"x\r\ny\n", "a\nb\n", b"a\nb\n"),
        (b"x", "a\n", b"a\n"),
        (b"\xef\xbb\xbfx\r\n", "a\n", b"\xef\xbb\xbfa\r\n"),
        (b"\xef\xbb\xbfx\n", "\ufeffa\n", b"\xef\xbb\xbfa\n"),
        (b"\xef\xbb\xbfx\n", "", b"\xef\xbb\xbf"),
    ],
)
def test_a_whole_write_keeps_mark_and_pure_crlf(existing: bytes | None, content: str, expected: bytes) -> None:
    """Row W9: line endings and BOM are kept."""
    assert new_content(None if existing is None else text(existing), content) == expected


def test_a_whole_write_of_a_lone_surrogate_is_refused() -> None:
    """Python traps."""
    assert isinstance(new_content(None, "a\ud800"), EditRefused)


def folded(content: str) -> str:
    """The text but for the kinds of its line ends."""
    return re.sub("\r*\n", "\n", content)


ODD = st.text(alphabet="ab\r\n\u2028é𝄞", max_size=30)
MARK = st.sampled_from([b"", b"\xef\xbb\xbf"])


@given(MARK, ODD, ODD, ODD, ODD)
def test_bytes_outside_the_match_are_unchanged(mark: bytes, before: str, old: str, after: str, new: str) -> None:
    """Cases 41, 44, 50: whatever stands around the match is there afterwards, byte for byte."""
    unique = f"<{old}>"
    raw = mark + f"{before}{unique}{after}".encode()
    done = edited(raw, Edit(unique, f"<{new}]"))
    assert done.startswith(mark + f"{before}<".encode())
    assert done.endswith(f"]{after}".encode())
    inner = done[len(mark + before.encode()) : len(done) - len(after.encode())].decode()
    assert folded(inner) == folded(f"<{new}]")


@given(ODD, st.text(alphabet="ab", min_size=1, max_size=2), ODD)
def test_all_agrees_with_a_plain_replacement(content: str, old: str, new: str) -> None:
    """Case 55: count reported is count done."""
    assume(old in content)
    done = apply_edits(text(content.encode()), [Edit(old, new, all=True)])
    assert isinstance(done, Edited)
    assert done.counts == (content.count(old),)
    expected = content.replace("\r\n", "\n").replace(old, new.replace("\r\n", "\n"))
    assert folded(done.raw.decode()) == folded(expected)


@given(MARK, ODD, ODD)
def test_an_edit_to_the_same_text_changes_no_byte(mark: bytes, content: str, old: str) -> None:
    """Row W9: context in `old` and `new` costs nothing, mixed line ends included."""
    assume(old)
    raw = mark + f"{content}<{old}>".encode()
    assert edited(raw, Edit(f"<{old}>", f"<{old}>")) == raw


# Readings


def sliced(raw: bytes, offset: int = 1, limit: int | None = None, size: int = 10_000, line: int = 1000) -> Sliced:
    done = slice_lines(raw, offset, limit, size, line)
    assert isinstance(done, Sliced)
    return done


def test_lines_are_paged() -> None:
    """Case 64: pages by lines."""
    raw = b"1\n2\r\n3\r4\n5"
    assert sliced(raw, 2, 2) == Sliced("2\r\n3\r", 2, 3, 5, 0, False)
    assert reading_text(sliced(raw, 2, 2)).endswith("[truncated: lines 2 to 3 of 5; go on with offset 4]")
    assert sliced(raw, 4) == Sliced("4\n5", 4, 5, 5, 0, True)
    assert reading_text(sliced(raw, 9)) == "[truncated: the file has 5 lines, there is no line 9]"


def test_pages_are_bounded_in_bytes() -> None:
    """Case 64 [I13]: byte cap and long-line cap, between characters; one line is always shown."""
    assert sliced(b"aaaa\nbbbb\ncccc\n", size=10).last == 2
    long = sliced("é".encode() * 500 + b"\nb\n", size=100, line=11)
    assert long.text == "é" * 5 + " [990 bytes more in this line]\nb\n"
    assert (long.cut_lines, long.whole) == (1, False)
    assert reading_text(long).endswith(f"\n{TRUNCATED_MARK_START}: lines 1 to 2 of 2, 1 of them cut]")
    assert sliced(b"a" * 50, size=10).text.startswith("a" * 10 + " [")


def test_lines_end_as_in_the_editor() -> None:
    """Python traps: U+2028, U+0085, \\x0b, \\x0c and \\x1c end no line."""
    assert sliced("a\u2028b\x85c\x0bd\x0ce\x1cf\n".encode()).total == 1


def test_the_mark_is_not_shown_and_crlf_is_seen_as_lf() -> None:
    """Cases 43, 44; mixed line ends are shown as they are, so that they can be written back."""
    assert sliced(b"\xef\xbb\xbfa\r\nb\r\n").text == "a\nb\n"
    assert sliced(b"a\r\nb\n").text == "a\r\nb\n"


@pytest.mark.parametrize(
    ("raw", "reading"),
    [
        (b"", EMPTY_MARK),
        (b"\xef\xbb\xbf", EMPTY_MARK),
        (b"a\n", "a\n"),
        (b"a", f"a\n{NO_LINE_END_MARK}"),
        (f"a\n{NO_LINE_END_MARK}\n".encode(), f"a\n{NO_LINE_END_MARK}\n"),
        (f"a\n{NO_LINE_END_MARK}".encode(), f"a\n{NO_LINE_END_MARK}\n{NO_LINE_END_MARK}"),
        (EMPTY_MARK.encode(), f"{EMPTY_MARK}\n{NO_LINE_END_MARK}"),
        (b"[truncated]\n", "[truncated]\n"),
    ],
)
def test_marks_are_the_last_line_and_have_no_line_end(raw: bytes, reading: str) -> None:
    """Case 50: a missing last line end is seen, and a file that holds a mark is not mistaken for one."""
    assert reading_text(sliced(raw)) == reading


@given(MARK, ODD)
def test_a_whole_reading_written_back_changes_no_byte(mark: bytes, content: str) -> None:
    """Rows W9, P5: what was read whole can be written whole."""
    raw = mark + content.encode()
    back = whole_text(reading_text(sliced(raw)))
    assert back is not None
    assert new_content(text(raw), back) == raw


@given(ODD, st.integers(1, 6), st.integers(1, 4))
def test_a_partial_reading_is_never_taken_for_the_whole(content: str, limit: int, size: int) -> None:
    """Row P5: an append needs all of the file."""
    part = sliced(content.encode(), 1, limit, size)
    assert (whole_text(reading_text(part)) is not None) == part.whole


@given(ODD, st.integers(1, 5))
def test_pages_put_together_are_the_file(content: str, limit: int) -> None:
    """Case 64: no line is lost or shown twice."""
    raw = content.encode()
    pages, at = "", 1
    while (page := sliced(raw, at, limit)).text:
        pages, at = pages + page.text, page.last + 1
    assert pages == sliced(raw).text
    assert at - 1 == page.total
