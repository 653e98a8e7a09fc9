"""Unified diffs: complete, bounded in size and bounded in time."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.text.diff import COMPARED_CHARS_MAX, COMPARED_LINES_MAX, CUT_MARK, unified_diff

WIDE = 1_000_000


def test_unified_equal_texts_give_an_empty_diff() -> None:
    """Row W1: there is nothing to show."""
    assert unified_diff("a\n", "a\n", "f", WIDE) == ""


def test_unified_one_changed_line_gives_one_hunk_with_context() -> None:
    """Row W1: the diff that a permission shows."""
    assert unified_diff("a\nb\nc\n", "a\nB\nc\n", "f", WIDE) == ("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")


def test_unified_missing_final_newline_is_marked_on_its_own_side() -> None:
    """Case 50."""
    assert unified_diff("a\nb", "a\nb\n", "f", WIDE) == (
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    )
    assert unified_diff("a\nb", "c\nb", "f", WIDE).endswith(" b\n\\ No newline at end of file\n")


def test_unified_empty_side_is_counted_as_git_counts_it() -> None:
    """A new file and an emptied file have the hunk headers that git writes."""
    assert "@@ -0,0 +1,2 @@\n+a\n+b\n" in unified_diff("", "a\nb\n", "f", WIDE)
    assert "@@ -1 +0,0 @@\n-a\n" in unified_diff("a\n", "", "f", WIDE)


def test_unified_splits_lines_at_lf_only() -> None:
    """Python's other line separators, U+2028, U+0085 and form feed, split nothing. A CR stays visible."""
    shown = unified_diff("a\u2028b\x0cc\x85d\n", "a\u2028b\x0cc\x85e\n", "f", WIDE)
    assert shown.split("\n")[3:5] == ["-a\u2028b\x0cc\x85d", "+a\u2028b\x0cc\x85e"]
    assert unified_diff("a\r\n", "a\n", "f", WIDE).endswith("-a\r\n+a\n")


def test_unified_distant_changes_are_separate_hunks() -> None:
    """Each hunk has three lines of context. Hunks whose context touches are joined."""
    lines = [f"{number}\n" for number in range(40)]
    far = lines.copy()
    far[5], far[30] = "x\n", "y\n"
    assert unified_diff("".join(lines), "".join(far), "f", WIDE).count("@@ -") == 2
    near = lines.copy()
    near[5], near[12] = "x\n", "y\n"
    assert unified_diff("".join(lines), "".join(near), "f", WIDE).count("@@ -") == 1


def test_unified_newline_in_the_file_name_is_escaped() -> None:
    """A file name may contain line ends."""
    assert unified_diff("a\n", "b\n", "x\n+++ evil", WIDE).split("\n")[0] == "--- a/x\\n+++ evil"


@given(st.text(alphabet="ab\né𝄞"), st.text(alphabet="ab\né𝄞"), st.integers(0, 120))
def test_unified_diff_never_exceeds_the_byte_limit(before: str, after: str, bytes_max: int) -> None:
    """A diff that fits is complete, and one that does not ends with the truncation mark [I13]."""
    shown = unified_diff(before, after, "f", bytes_max)
    assert len(shown.encode()) <= bytes_max
    whole = unified_diff(before, after, "f", WIDE)
    if len(whole.encode()) <= bytes_max:
        assert shown == whole
    elif bytes_max > len(CUT_MARK):
        assert shown.endswith(CUT_MARK)


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\n" * (COMPARED_LINES_MAX + 1), "b\n"), ("a" * COMPARED_CHARS_MAX, "b")],
)
def test_unified_text_over_the_bound_gives_one_line(before: str, after: str) -> None:
    """[I13]: the time is bounded."""
    shown = unified_diff(before, after, "f", WIDE)
    assert shown.count("\n") == 1
    assert shown.startswith("[f: too ")


def test_unified_small_change_in_a_long_file_is_shown() -> None:
    """The equal lines at both ends do not count against the bound."""
    lines = ["a\n"] * 50_000
    changed = [*lines[:30_000], "b\n", *lines[30_000:]]
    assert "@@ -29998,6 +29998,7 @@" in unified_diff("".join(lines), "".join(changed), "f", WIDE)


def test_unified_shuffled_repeated_lines_at_the_bound_finish_in_time() -> None:
    """[I13]: lines that repeat and are shuffled, at the bound."""
    chance = random.Random(1)
    before = [f"{chance.randrange(120)}\n" for _ in range(COMPARED_LINES_MAX)]
    after = [f"{chance.randrange(120)}\n" for _ in range(COMPARED_LINES_MAX)]
    began = time.process_time()
    unified_diff("".join(before), "".join(after), "f", 65_536)
    assert time.process_time() - began < 5


def apply_patch(before: str, shown: str) -> str:
    """Apply a diff as `patch` does."""
    old = before.split("\n")
    out: list[str] = []
    at = 0
    lines = shown.split("\n")[2:-1]
    ended = not any(line.startswith("\\") and lines[number - 1][0] in "+ " for number, line in enumerate(lines))
    for line in lines:
        if line.startswith("@@"):
            span = line.split()[1][1:].split(",")
            start = int(span[0]) - (0 if span[1:] == ["0"] else 1)
            out += old[at:start]
            at = start
        elif line.startswith("-"):
            assert old[at] == line[1:]
            at += 1
        elif line.startswith("+"):
            out.append(line[1:])
        elif line.startswith(" "):
            assert old[at] == line[1:]
            out.append(line[1:])
            at += 1
    if at < len(old) - (1 if before.endswith("\n") else 0):
        return "\n".join(out + old[at:])
    text = "\n".join(out)
    return text + "\n" if out and ended else text


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_unified_diff_applied_to_the_old_text_gives_the_new_text(before: list[str], after: list[str]) -> None:
    """A diff is correct: applying it to the old text gives the new one."""
    old = "".join(f"{line}\n" for line in before)
    new = "".join(f"{line}\n" for line in after)
    shown = unified_diff(old, new, "f", WIDE)
    assert (apply_patch(old, shown) if shown else old) == new
