"""Edits change exactly what they match. Reads show exactly what they claim to show."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steadyhand.domain.text.decoding import FileText, NewText, NotText, decode
from steadyhand.domain.text.edit import LINES_NAMED_MAX, Edit, Edited, EditRefused, apply_edits, new_content
from steadyhand.domain.text.lines import (
    EMPTY_MARK,
    NO_LINE_END_MARK,
    TRUNCATED_MARK_START,
    Sliced,
    reply_of_lines,
    slice_lines,
    text_of_reply,
)


def decoded(raw: bytes) -> FileText:
    file = decode(raw)
    assert isinstance(file, FileText)
    return file


def apply_edit(raw: bytes, *edits: Edit) -> bytes:
    done = apply_edits(decoded(raw), edits)
    assert isinstance(done, Edited), done
    return done.raw


def refusal_of(raw: bytes, *edits: Edit) -> str:
    done = apply_edits(decoded(raw), edits)
    assert isinstance(done, EditRefused), done
    return done.text


def written(existing: FileText | NewText, content: str) -> bytes:
    done = new_content(existing, content)
    assert isinstance(done, Edited), done
    return done.raw


@pytest.mark.parametrize(
    ("raw", "old", "new", "expected"),
    [
        (b"a\r\nb\nc", "c", "C", b"a\r\nb\nC"),  # case 41
        (b"a\r\nb\nc", "a\nb\nc", "a\nB\nc", b"a\r\nB\nc"),  # case 41: context matched, not rewritten
        (b"a\r\nb\nc\n", "b\nc", "x\ny\nz", b"a\r\nx\ny\nz\n"),
        (b"a\nb\r\nc\n", "b\nc", "x\ny", b"a\nx\r\ny\n"),
        (b"a\r\nb\r\n", "a\n", "a\nnew\n", b"a\r\nnew\r\nb\r\n"),
        (b"a\r\nb", "b", "x\ny", b"a\r\nx\r\ny"),  # the last line has no line end: use that of the line before
        (b"a\nb\r\nc\n", "b", "x\ny", b"a\nx\r\ny\r\nc\n"),  # use the line end of its own line
        (b"one", "one", "x\ny", b"x\ny"),
        (b"p\r\nq\r\n", "p\nq", "P\nQ", b"P\r\nQ\r\n"),  # case 43
        (b"p\nq\n", "p\r\nq", "P\r\nQ", b"P\nQ\n"),  # case 43, the other way round
        (b"p\r\nq\r\n", "p\nq\n", "", b""),
        (b"\xef\xbb\xbfx=1\n", "x=1", "x=2", b"\xef\xbb\xbfx=2\n"),  # case 44
        (b"\xef\xbb\xbf", "", "x\n", b"\xef\xbb\xbfx\n"),
        (b"a\nb", "a", "A", b"A\nb"),  # case 50
        (b"a\nb", "b", "b\n", b"a\nb\n"),  # case 50: the edit adds the line end on purpose
        (b"", "", "x", b"x"),
        (b"a\rb\n", "a\rb", "c\rd", b"c\rd\n"),  # a lone CR is a character
        (b"a\r\r\nb\n", "\nb", "\nc", b"a\r\r\nc\n"),
        ("名=1\n".encode(), "名=1", "名=𝄞", "名=𝄞\n".encode()),
        (b"x = 1\n", "1", r"\1\g<0>", b"x = \\1\\g<0>\n"),  # nothing is expanded
    ],
)
def test_edit_replaces_only_the_match_and_keeps_line_ends_and_bom(
    raw: bytes, old: str, new: str, expected: bytes
) -> None:
    """Cases 41, 43, 44, 50 and row W9: bytes outside the match, line ends, BOM and last line end are kept."""
    assert apply_edit(raw, Edit(old, new)) == expected


def test_edit_repeated_match_is_refused_with_its_line_numbers() -> None:
    """Case 52: a match is exact, unique and contiguous. Otherwise the refusal gives the line numbers."""
    block = b"def f():\n    pass\n\n"
    assert "at lines 1, 4, 7:" in refusal_of(block * 3, Edit("def f():\n    pass\n", "x"))
    assert "is not in the file" in refusal_of(block * 3, Edit("def f():\n\n", "x"))


def test_edit_overlapping_matches_are_not_unique() -> None:
    """Case 52: "aaa" contains "aa" twice."""
    assert "at lines 1, 1:" in refusal_of(b"aaa", Edit("aa", "b"))


def test_edit_refusal_lists_a_bounded_number_of_lines() -> None:
    """[I13]."""
    reason = refusal_of(b"x\n" * 500, Edit("x", "y"))
    named = ", ".join(str(number) for number in range(1, LINES_NAMED_MAX + 1))
    assert f"at lines {named} and more:" in reason


def test_edit_line_numbers_are_counted_as_in_the_editor() -> None:
    """U+2028 and form feed end no line in spite of Python's `splitlines`. CRLF is one line end and a lone CR is
    another.
    """
    assert "at lines 1, 3:" in refusal_of("x\u2028\x0c\x85\r\na\rx\n".encode(), Edit("x", "y"))


def test_edit_never_matches_approximately() -> None:
    """Case 53."""
    assert "is not in the file" in refusal_of(b"alpha   beta\nalpha\tbeta\n", Edit("alpha beta", "x"))


@pytest.mark.parametrize("raw", [b"p\nq\np\r\nq\r\n", b"p\r\nq\np\nq\n"])
def test_edit_lf_and_crlf_matches_at_different_places_are_refused(raw: bytes) -> None:
    """Case 43: the edit does not guess between the LF and the CRLF match."""
    for old in ("p\nq", "p\r\nq"):
        assert "at lines 1, 3:" in refusal_of(raw, Edit(old, "x"))
    assert apply_edit(raw, Edit("p\nq", "p\nz", all=True)) == raw.replace(b"q", b"z")


def test_edit_all_replaces_left_to_right_and_counts() -> None:
    """Case 55: matches do not overlap."""
    done = apply_edits(decoded(b"aaaa"), [Edit("aa", "b", all=True)])
    assert done == Edited(b"bb", "bb", (2,))
    assert apply_edits(decoded(b"aaa"), [Edit("aa", "aab", all=True)]) == Edited(b"aaba", "aaba", (1,))
    assert "is not in the file" in refusal_of(b"b", Edit("a", "x", all=True))


def test_edits_apply_in_sequence_or_not_at_all() -> None:
    """Row W9: one replacement of the file, or none."""
    done = apply_edits(decoded(b"a b\n"), [Edit("a", "b"), Edit("b", "c", all=True)])
    assert done == Edited(b"c c\n", "c c\n", (1, 2))
    assert refusal_of(b"a\n", Edit("a", "b"), Edit("a", "c")).startswith("Edit 2 of 2: The old text is not in the file")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Edit("", "x"), "old text is empty"),
        (Edit("a", "\ud83d"), "U+D83D"),
        (Edit("\udc80", "x"), "U+DC80"),
        (Edit("a", "\x00"), "NUL"),
    ],
)
def test_edit_empty_old_text_surrogate_or_nul_is_refused(edit: Edit, said: str) -> None:
    """Lone surrogates are refused before the write, and named."""
    assert said in refusal_of(b"a\n", edit)
    assert "No edit" in refusal_of(b"a\n")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"x = 1\n# caf\xe9\n", "0xE9 at offset 11 (line 2)"),  # case 46
        ("名=1\n".encode("shift_jis"), "not UTF-8"),  # case 47
        (b"\xff\xfea\0=", "not valid at offset 4"),
        (b"\xfe\xff\xd8\0\0a", "not valid at offset 2"),
        (b"\xff\xfea\0\0\0", "NUL character"),
        ("hello\n".encode("utf-16-le"), "UTF-16 LE"),
        ("hello\n".encode("utf-16-be"), "UTF-16 BE"),
        (b"\xff\xfe\0\0a", "UTF-32 LE"),
        (b"\x7fELF\x01\x00\x00", "binary: it holds a NUL byte at offset 5"),
        (b"a" * 70_000 + b"\x80", "0x80 at offset 70000"),  # case 49
        (b"\xc0\xaf", "not UTF-8"),
        (b"\xed\xa0\x80", "not UTF-8"),
    ],
)
def test_decode_file_that_is_not_text_is_refused(raw: bytes, said: str) -> None:
    """Cases 46, 47, 49: the file is refused untouched, by the one decoder that reads and edits share."""
    file = decode(raw)
    assert isinstance(file, NotText)
    assert said in file.reason


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_file_with_bom_is_read_edited_and_written_back(codec: str) -> None:
    """W9, case 49: read, edited and written in its encoding, with its byte order mark and its line ends."""
    mark = "\ufeff".encode(codec)
    raw = mark + "a=1\r\n名\U0001f600\r\n".encode(codec)
    file = decode(raw)
    assert isinstance(file, FileText)
    assert (file.text, file.raw) == ("a=1\n名\U0001f600\n", raw)
    assert (file.recorded_encoding, file.line_ending) == (codec, "crlf")
    apply_edit = apply_edits(file, [Edit("a=1\n名", "a=2\nb\n名")])
    assert isinstance(apply_edit, Edited)
    assert apply_edit.raw == mark + "a=2\r\nb\r\n名\U0001f600\r\n".encode(codec)
    assert written(file, "\ufeffneu\n") == mark + "neu\r\n".encode(codec)
    sliced = slice_lines(file, 2, None, 100, 100)
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
        (b"\xef\xbb\xbfa\n", ("utf-8-sig", "lf")),
    ],
)
def test_decode_gives_encoding_and_line_ending(raw: bytes, described: tuple[str, str]) -> None:
    """Row W1: the encoding and the line ending in the evidence."""
    assert (decoded(raw).recorded_encoding, decoded(raw).line_ending) == described


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
def test_new_content_keeps_the_bom_and_pure_crlf_of_the_file(
    existing: bytes | None, content: str, expected: bytes
) -> None:
    """Row W9: line endings and the byte order mark are kept."""
    assert written(NewText() if existing is None else decoded(existing), content) == expected


def test_new_content_with_a_lone_surrogate_is_refused() -> None:
    """Python can hold text that UTF-8 cannot encode."""
    assert isinstance(new_content(NewText(), "a\ud800"), EditRefused)


def with_lf(content: str) -> str:
    """The text with every line end as LF."""
    return re.sub("\r*\n", "\n", content)


TEXTS = st.text(alphabet="ab\r\n\u2028é𝄞", max_size=30)
BOMS = st.sampled_from([b"", b"\xef\xbb\xbf"])


@given(BOMS, TEXTS, TEXTS, TEXTS, TEXTS)
def test_edit_any_text_keeps_the_bytes_outside_the_match(
    mark: bytes, before: str, old: str, after: str, new: str
) -> None:
    """Cases 41, 44, 50: the bytes around the match are the same afterwards."""
    unique = f"<{old}>"
    raw = mark + f"{before}{unique}{after}".encode()
    done = apply_edit(raw, Edit(unique, f"<{new}]"))
    assert done.startswith(mark + f"{before}<".encode())
    assert done.endswith(f"]{after}".encode())
    inner = done[len(mark + before.encode()) : len(done) - len(after.encode())].decode()
    assert with_lf(inner) == with_lf(f"<{new}]")


@given(TEXTS, st.text(alphabet="ab", min_size=1, max_size=2), TEXTS)
def test_edit_all_agrees_with_str_replace(content: str, old: str, new: str) -> None:
    """Case 55: the reported count is the count of replacements."""
    assume(old in content)
    done = apply_edits(decoded(content.encode()), [Edit(old, new, all=True)])
    assert isinstance(done, Edited)
    assert done.counts == (content.count(old),)
    expected = content.replace("\r\n", "\n").replace(old, new.replace("\r\n", "\n"))
    assert with_lf(done.raw.decode()) == with_lf(expected)


@given(BOMS, TEXTS, TEXTS)
def test_edit_to_the_same_text_changes_no_byte(mark: bytes, content: str, old: str) -> None:
    """Row W9: context in `old` and `new` changes nothing, also with mixed line ends."""
    assume(old)
    raw = mark + f"{content}<{old}>".encode()
    assert apply_edit(raw, Edit(f"<{old}>", f"<{old}>")) == raw


# Reading lines


def slice_of(raw: bytes, offset: int = 1, limit: int | None = None, size: int = 10_000, line: int = 1000) -> Sliced:
    return slice_lines(decoded(raw), offset, limit, size, line)


def test_slice_lines_gives_pages_with_the_next_offset() -> None:
    """Case 64: pages by lines."""
    raw = b"1\n2\r\n3\r4\n5"
    assert slice_of(raw, 2, 2) == Sliced("2\r\n3\r", 2, 3, 5, 0, False)
    assert reply_of_lines(slice_of(raw, 2, 2)).endswith("[truncated: lines 2 to 3 of 5; go on with offset 4]")
    assert slice_of(raw, 4) == Sliced("4\n5", 4, 5, 5, 0, True)
    assert reply_of_lines(slice_of(raw, 9)) == "[truncated: the file has 5 lines, there is no line 9]"


def test_slice_lines_bounds_bytes_and_long_lines() -> None:
    """Case 64 [I13]: the byte limit and the limit of a long line cut between characters. One line is always shown."""
    assert slice_of(b"aaaa\nbbbb\ncccc\n", size=10).last == 2
    long = slice_of("é".encode() * 500 + b"\nb\n", size=100, line=11)
    assert long.text == "é" * 5 + " [990 bytes more in this line]\nb\n"
    assert (long.cut_lines, long.whole) == (1, False)
    assert reply_of_lines(long).endswith(f"\n{TRUNCATED_MARK_START}: lines 1 to 2 of 2, 1 of them cut]")
    assert slice_of(b"a" * 50, size=10).text.startswith("a" * 10 + " [")


def test_slice_lines_counts_lines_as_in_the_editor() -> None:
    """U+2028, U+0085, \\x0b, \\x0c and \\x1c end no line in spite of Python's `splitlines`."""
    assert slice_of("a\u2028b\x85c\x0bd\x0ce\x1cf\n".encode()).total == 1


def test_slice_lines_hides_the_bom_and_shows_pure_crlf_as_lf() -> None:
    """Cases 43, 44. Mixed line ends are shown as they are, so that they can be written back."""
    assert slice_of(b"\xef\xbb\xbfa\r\nb\r\n").text == "a\nb\n"
    assert slice_of(b"a\r\nb\n").text == "a\r\nb\n"


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
def test_reading_text_marks_empty_and_unterminated_files_unambiguously(raw: bytes, reading: str) -> None:
    """Case 50: a missing last line end is visible, and a file that contains a marker text is not mistaken for it."""
    assert reply_of_lines(slice_of(raw)) == reading


@given(BOMS, TEXTS)
def test_whole_read_written_back_changes_no_byte(mark: bytes, content: str) -> None:
    """Rows W9, P5: a file that was read whole can be written whole."""
    raw = mark + content.encode()
    back = text_of_reply(reply_of_lines(slice_of(raw)))
    assert back is not None
    assert written(decoded(raw), back) == raw


@given(TEXTS, st.integers(1, 6), st.integers(1, 4))
def test_whole_text_of_a_partial_read_is_none(content: str, limit: int, size: int) -> None:
    """Row P5: an append needs the whole file."""
    part = slice_of(content.encode(), 1, limit, size)
    assert (text_of_reply(reply_of_lines(part)) is not None) == part.whole


@given(TEXTS, st.integers(1, 5))
def test_slice_lines_all_pages_joined_are_the_file(content: str, limit: int) -> None:
    """Case 64: no line is lost or shown twice."""
    raw = content.encode()
    pages, at = "", 1
    while (page := slice_of(raw, at, limit)).text:
        pages, at = pages + page.text, page.last + 1
    assert pages == slice_of(raw).text
    assert at - 1 == page.total
