"""`.editorconfig` files: what they say of a file's `charset`, compared with the library of the EditorConfig project."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from editorconfig import EditorConfigError, get_properties
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.domain.text.editorconfig import charset_of, parse_editorconfig


def said(text: str, path: str) -> str | None:
    return charset_of([(parse_editorconfig(text), path.split("/"))])


@pytest.mark.parametrize(
    ("section", "path", "fits"),
    [
        ("*", "a/b.txt", True),
        ("*.txt", "a/b.txt", True),
        ("*.txt", "a/b.md", False),
        ("/*.txt", "a/b.txt", False),
        ("/*.txt", "b.txt", True),
        ("a/*.txt", "a/b.txt", True),
        ("a/*.txt", "x/a/b.txt", False),
        ("a/**.txt", "a/x/b.txt", True),
        ("a/**/b.txt", "a/b.txt", True),
        ("a/**/b.txt", "a/x/y/b.txt", True),
        ("**/b.txt", "x/b.txt", True),
        ("?.txt", "b.txt", True),
        ("?.txt", "bb.txt", False),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("[a-c].txt", "b.txt", True),
        ("*.{txt,md}", "a.md", True),
        ("*.{txt,md}", "a.rst", False),
        ("{a,b{c,d}}.txt", "bd.txt", True),
        ("{single}.txt", "{single}.txt", True),
        ("f{1..12}.txt", "f7.txt", True),
        ("f{1..12}.txt", "f13.txt", False),
        ("f{1..12}.txt", "f07.txt", False),
        ("{package.json,*.yml}", "package.json", True),
        ("a\\*.txt", "a*.txt", True),
        ("a\\*.txt", "ab.txt", False),
    ],
)
def test_section_fits_as_in_the_specification(section: str, path: str, fits: bool) -> None:
    """W10, rule 4: the patterns of the EditorConfig specification."""
    assert (said(f"[{section}]\ncharset = latin1\n", path) is not None) == fits


def test_last_section_nearest_file_and_root_decide() -> None:
    """W10, rule 4: the last fitting section of the nearest file; nothing above a root; `unset` says nothing."""
    nearest = parse_editorconfig("\ufeff[*]\nCharset = UTF-16LE ; comment\n[*.md]\ncharset : latin1\n# [x]\n")
    above = parse_editorconfig("root = true\n[*]\ncharset = utf-8\n")
    top = parse_editorconfig("[*]\ncharset = utf-8-bom\n")
    assert charset_of([(nearest, ["a.txt"]), (above, ["d", "a.txt"])]) == "utf-16le"
    assert charset_of([(nearest, ["a.md"])]) == "latin1"
    silent = parse_editorconfig("[*.py]\ncharset = latin1\nindent_style = tab\n")
    assert charset_of([(silent, ["a.txt"]), (above, ["d", "a.txt"]), (top, ["e", "d", "a.txt"])]) == "utf-8"
    rooted = parse_editorconfig("root = TRUE\n[*.py]\ncharset = latin1\n")
    assert charset_of([(rooted, ["a.txt"]), (top, ["d", "a.txt"])]) is None
    assert said("[*]\ncharset = latin1\n[*.txt]\ncharset = unset\n", "a.txt") is None
    assert said("charset = latin1\n", "a.txt") is None


PATTERNS = st.lists(
    st.sampled_from(["*", "**", "?", "a", "b", ".", "/", "[ab]", "{a,b}", "{a,{b,.}}", "{1..3}", "2", "-"]),
    min_size=1,
    max_size=6,
).map("".join)
PATHS = st.lists(st.text(alphabet="ab.2-", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(PATTERNS, PATHS)
def test_any_section_fits_as_for_the_library(tmp_path: Path, section: str, path: str) -> None:
    """W10: an independent reader finds the same, in a folder of real files."""
    is_odd = "**" in section and "/" not in section  # the library then compares folders above too
    if is_odd or "***" in section or "." in path.split("/") or ".." in path.split("/"):
        return  # the library normalises such paths, and three stars are no pattern
    (tmp_path / ".editorconfig").write_text(f"root = true\n[{section}]\ncharset = latin1\n", encoding="utf-8")
    try:
        expected = get_properties(str(tmp_path / path)).get("charset")
    except EditorConfigError:
        return
    assert said(f"root = true\n[{section}]\ncharset = latin1\n", path) == expected


@given(st.text(max_size=200), PATHS)
def test_any_text_is_read_without_fail(text: str, path: str) -> None:
    """A broken file says nothing and breaks nothing."""
    said(text, path)


def test_hostile_patterns_end_in_bounded_time() -> None:
    """I13: patterns that take a regular expression years, and a file that is full of them."""
    path = "a" * 200 + "/" + "a" * 50
    started = time.monotonic()
    for section in (
        "**a" * 300 + "b",
        "*" * 998 + "b",
        "{a,b}" * 190,
        "{1..9}" * 160,
        "[" * 999,
        "{" * 499 + "," + "}" * 499,
    ):
        assert said(f"[{section}]\ncharset = latin1\n", path) is None
    full = "[**a**a**a**a**{b,c}{b,c}{b,c}]\ncharset = latin1\n" * 900
    assert said("[*]\ncharset = utf-8\n" + full, "a" * 3000) is None
    assert time.monotonic() - started < 60
