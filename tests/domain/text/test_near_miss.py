"""A refused edit says how the nearest place differs, and nothing is matched approximately (row W9, issue of bytes)."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.text import near_miss
from steadyhand.domain.text.decoding import FileText, decode
from steadyhand.domain.text.edit import Edit, Edited, EditRefused, apply_edits
from steadyhand.domain.text.near_miss import SHOWN_CHARS_MAX, nearest_difference


def refusal(content: str, old: str) -> str:
    file = decode(content.encode())
    assert isinstance(file, FileText)
    done = apply_edits(file, [Edit(old, "new")])
    assert isinstance(done, EditRefused)
    assert done.reason == "bad_arguments"
    return done.text


@pytest.mark.parametrize(
    ("content", "old", "said"),
    [
        (
            "def f():\n\treturn 1\n",
            "    return 1",
            'Line 2 is the nearest and differs in tabs: the file has "\\treturn 1"',
        ),
        ("a\n  x = 1\n", "\tx = 1", 'the old text has "\\tx = 1"'),
        ("a\nx  = 1\n", "x = 1", 'Line 2 is the nearest and differs in blanks: the file has "x  = 1"'),
        ("x = 1  \ny\n", "x = 1\ny", 'Line 1 is the nearest and differs in blanks: the file has "x = 1  "'),
        ("x\xa0= 1\n", "x = 1", 'the file has "x\\u00a0= 1"'),
        ("say(\u2018hi\u2019)\n", "say('hi')", "Line 1 is the nearest and differs in quotation marks"),
        ("say('hi')\n", 'say("hi")', "differs in quotation marks"),
        ("a \u2013 b\n", "a - b", "differs in dashes"),
        ("a\nb\u200bc\n", "bc", 'differs in invisible characters: the file has "b\\u200bc"'),
        ("cafe\u0301 = 1\n", "caf\xe9 = 1", 'differs in combining marks: the file has "cafe\\u0301 = 1"'),
        ("one\n\tsay(\u201chi\u201d)\n", '  say("hi")', "differs in tabs and quotation marks"),
        ("a\rb\rc\r", "a\nb", "Line 1 is the nearest and differs in its line end: the file has a lone CR (\\r) there"),
        ("x\r\n\ty\r\nz\r\n", "x\n    y\nz", 'Line 2 is the nearest and differs in tabs: the file has "\\ty"'),
        ("a\nb\n", "\na\nb", "Line 1"),
    ],
)
def test_refusal_names_the_line_and_the_difference(content: str, old: str, said: str) -> None:
    """Cases 41, 43, 53: blanks, tabs, quotation marks, line ends and what nobody sees."""
    if said == "Line 1":
        assert "is not in the file" in refusal(content, old)
        return
    assert said in refusal(content, old)


@pytest.mark.parametrize(
    ("content", "old"),
    [("alpha\n", "beta"), ("Alpha\n", "alpha"), ("a\n\nb\n", "a\nb"), ("x\n", "   "), ("", "x"), ("x\n", "\n\n")],
)
def test_refusal_without_a_near_place_says_so(content: str, old: str) -> None:
    """Case 53: no place is offered that differs in more than readers overlook."""
    assert refusal(content, old).startswith("The old text is not in the file: read the file again")


@given(
    st.text(alphabet="ab \t\n\r'\"\u2019-\u2013e\u0301\xe9\u200b", max_size=40), st.integers(0, 39), st.integers(1, 12)
)
def test_next_try_with_what_the_refusal_shows_succeeds(content: str, start: int, size: int) -> None:
    """The line that a refusal shows is in the file, exactly as it is shown; the refusal is computed without fail."""
    text = content.replace("\r\n", "\n")
    old = text[start : start + size].translate({9: " ", 0x2019: "'", 0x2013: "-", 0x200B: None})
    said = nearest_difference(text, old)
    if said is None or old in text or (found := re.search(r'the file has ("(?:[^"\\]|\\.)*"),', said)) is None:
        return
    line = json.loads(found[1])
    assert line in text
    file = decode(text.encode())
    assert isinstance(file, FileText)
    done = apply_edits(file, [Edit(line, "new", all=True)])
    assert isinstance(done, Edited) or not line


def test_long_lines_and_long_files_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: of a long line the beginning is shown, and a very long file is not compared."""
    said = nearest_difference("\t" + "x" * 10_000 + "\n", " " + "x" * 10_000)
    assert said is not None
    assert len(said) < 2 * SHOWN_CHARS_MAX + 300
    monkeypatch.setattr(near_miss, "COMPARED_CHARS_MAX", 10)
    assert nearest_difference("\tx = 1\n" * 10, " x = 1") is None
