"""A diff shows what changed, never more than asked for, and is soon done."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.diff import CUT_MARK, compared_chars_max, compared_lines_max, unified

WIDE = 1_000_000


def test_equal_texts_have_no_diff() -> None:
    """Row W1: nothing to show."""
    assert unified("a\n", "a\n", "f", WIDE) == ""


def test_one_line() -> None:
    """Row W1: the diff a permission shows."""
    assert unified("a\nb\nc\n", "a\nB\nc\n", "f", WIDE) == ("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n")


def test_missing_last_line_end_is_said_on_the_side_that_lacks_it() -> None:
    """Case 50."""
    assert unified("a\nb", "a\nb\n", "f", WIDE) == (
        "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    )
    assert unified("a\nb", "c\nb", "f", WIDE).endswith(" b\n\\ No newline at end of file\n")


def test_new_and_emptied_file() -> None:
    """An empty side is counted as git counts it."""
    assert "@@ -0,0 +1,2 @@\n+a\n+b\n" in unified("", "a\nb\n", "f", WIDE)
    assert "@@ -1 +0,0 @@\n-a\n" in unified("a\n", "", "f", WIDE)


def test_lines_end_at_lf_alone() -> None:
    """Python traps: U+2028, U+0085 and form feed split nothing; a CR stays visible."""
    shown = unified("a\u2028b\x0cc\x85d\n", "a\u2028b\x0cc\x85e\n", "f", WIDE)
    assert shown.split("\n")[3:5] == ["-a\u2028b\x0cc\x85d", "+a\u2028b\x0cc\x85e"]
    assert unified("a\r\n", "a\n", "f", WIDE).endswith("-a\r\n+a\n")


def test_far_changes_are_hunks_of_their_own() -> None:
    """Three lines around each, joined when they touch."""
    lines = [f"{number}\n" for number in range(40)]
    far = lines.copy()
    far[5], far[30] = "x\n", "y\n"
    assert unified("".join(lines), "".join(far), "f", WIDE).count("@@ -") == 2
    near = lines.copy()
    near[5], near[12] = "x\n", "y\n"
    assert unified("".join(lines), "".join(near), "f", WIDE).count("@@ -") == 1


def test_a_name_cannot_make_up_lines() -> None:
    """A file's name may hold line ends."""
    assert unified("a\n", "b\n", "x\n+++ evil", WIDE).split("\n")[0] == "--- a/x\\n+++ evil"


@given(st.text(alphabet="ab\né𝄞"), st.text(alphabet="ab\né𝄞"), st.integers(0, 120))
def test_it_is_never_larger_than_asked(before: str, after: str, bytes_max: int) -> None:
    """[I13]."""
    shown = unified(before, after, "f", bytes_max)
    assert len(shown.encode()) <= bytes_max
    whole = unified(before, after, "f", WIDE)
    if len(whole.encode()) <= bytes_max:
        assert shown == whole
    elif bytes_max > len(CUT_MARK):
        assert shown.endswith(CUT_MARK)


@pytest.mark.parametrize(
    ("before", "after"),
    [("a\n" * (compared_lines_max + 1), "b\n"), ("a" * compared_chars_max, "b")],
)
def test_too_much_is_told_in_one_line(before: str, after: str) -> None:
    """[I13]: bounded in time."""
    shown = unified(before, after, "f", WIDE)
    assert shown.count("\n") == 1
    assert shown.startswith("[f: too ")


def test_a_small_change_in_a_long_file_is_shown() -> None:
    """What is equal at both ends does not count against the bound."""
    lines = ["a\n"] * 50_000
    changed = [*lines[:30_000], "b\n", *lines[30_000:]]
    assert "@@ -29998,6 +29998,7 @@" in unified("".join(lines), "".join(changed), "f", WIDE)


def test_hard_texts_are_soon_compared() -> None:
    """[I13]: lines that repeat and are shuffled, at the bound."""
    chance = random.Random(1)
    before = [f"{chance.randrange(120)}\n" for _ in range(compared_lines_max)]
    after = [f"{chance.randrange(120)}\n" for _ in range(compared_lines_max)]
    began = time.process_time()
    unified("".join(before), "".join(after), "f", 65_536)
    assert time.process_time() - began < 5


def _patched(before: str, shown: str) -> str:
    """Apply a diff, as `patch` would."""
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
def test_applied_it_gives_the_new_text(before: list[str], after: list[str]) -> None:
    """A diff is true: patching the old text with it gives the new one."""
    old = "".join(f"{line}\n" for line in before)
    new = "".join(f"{line}\n" for line in after)
    shown = unified(old, new, "f", WIDE)
    assert (_patched(old, shown) if shown else old) == new
