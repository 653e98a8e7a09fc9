"""Path patterns: a table of what matches, a comparison of ignore files with git, and a time limit."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.text.globs import ALTERNATIVES_MAX, PATTERN_CHARS_MAX, BadPattern, Glob, glob, rules
from tests.support.tools import require_tool

MATCH_S_MAX = 2.0


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("*.py", "a.py d/e/a.py .py", "a.pyc a.py/b d.py/e"),
        ("test_*", "test_a d/test_", "atest_a test_a/b"),
        ("config", "config a/config", "config.py config/a"),
        ("a?c", "abc d/a-c", "ac abbc a/c"),
        ("src/*.py", "src/a.py", "a.py src/d/a.py d/src/a.py"),
        ("src/**/*.py", "src/a.py src/d/e/a.py", "a.py d/src/a.py"),
        ("/top", "top", "d/top"),
        ("./d/*", "d/a", "d/e/a"),
        ("**/b/**", "b/a d/b/a b", "a"),
        ("a/**", "a/b a/b/c a", "b/a"),
        ("[a-c]x", "ax cx d/bx", "dx x -x"),
        ("[!a-c]x", "dx d/-x", "ax"),
        ("[^a]", "b d/c", "a"),
        ("[]a]", "] a", "b"),
        ("[a-]", "a -", "b"),
        ("*.{ts,tsx}", "a.ts d/a.tsx", "a.t a.tsxx a.js"),
        ("{a,b}/{c,d}", "a/c b/d", "a/b c/d"),
        ("a{b", "a{b", "ab"),
        ("*a*a*", "aa bacad", "ba"),
        ("**", "a a/b", ""),
        ("ä*", "äb", "a"),
        ("a\\b", "a\\b ab", "b a\\\\b"),
        ("app/[id]/**", "app/[id]/p.tsx app/i/p.tsx", "app/id/p.tsx"),
        ("app/\\[id]/**", "app/[id]/p.tsx", "app/i/p.tsx app/d/p.tsx"),
        ("[[...slug]].tsx", "[[...slug]].tsx", "slug.tsx"),
        ("{a,b}.txt", "a.txt {a,b}.txt", "c.txt"),
        ("\\*.py", "*.py", "a.py"),
        ("a\\?", "a?", "ab"),
    ],
)
def test_glob_matches_names_without_a_slash_and_paths_with_one(pattern: str, fits: str, others: str) -> None:
    """G1: a pattern without a slash matches a whole name at any depth. One with a slash matches a path from the folder
    of the search. A name that has the brackets or braces itself fits, and a backslash escapes (case 117).
    """
    made = glob(pattern)
    assert isinstance(made, Glob)
    for path in fits.split():
        assert made.matches(path.split("/")), path
    for path in others.split():
        assert not made.matches(path.split("/")), path


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "empty"),
        ("///", "empty"),
        ("[a", "not closed"),
        ("d/[[:alpha:]]", "not closed"),
        ("a" * (PATTERN_CHARS_MAX + 1), "longer"),
        ("{a,b}" * 7, f"more than {ALTERNATIVES_MAX}"),
    ],
)
def test_glob_invalid_pattern_gives_the_reason(pattern: str, why: str) -> None:
    """G1, I13: bounds and mistakes are named, and nothing is guessed."""
    made = glob(pattern)
    assert isinstance(made, BadPattern)
    assert why in made.why


def test_glob_pathological_pattern_is_matched_in_time() -> None:
    """I13: patterns that hang a backtracking matcher finish quickly here."""
    began = time.monotonic()
    made = glob("*a" * 300 + "b")
    assert isinstance(made, Glob)
    assert not made.matches(["a" * 255])
    deep = glob("**/a/" * 100 + "b")
    assert isinstance(deep, Glob)
    assert not deep.matches(["a"] * 200)
    assert not rules("*a" * 300 + "b").ignores(["a" * 255], folder=False)
    assert time.monotonic() - began < MATCH_S_MAX


RULES = r"""
# a comment
*.log
!keep.log
build/
/top
docs/*.txt
**/cache
deep/**/end
all/**
!all/back
\#hash
\!bang
[abc].x
no[!0-9]
node_modules
*.tar.gz
foo*bar
star\*
mid/dle/
a/**/
"""
IGNORE = RULES + "blank\\ \ntrailing   \n"
NAMES = """
a.log d/a.log keep.log d/keep.log build/x d/build/x build top d/top docs/a.txt docs/d/a.txt x/docs/a.txt cache
d/cache/f deep/end deep/x/y/end d/deep/end all/x all/back all/d/back #hash !bang trailing a.x d.x no1 nox
node_modules/p/i d/node_modules/i f.tar.gz fooXbar foobar fooba star* starX mid/dle/x mid/dle x/mid/dle/x a/b/c a/f
plain d/e/plain
"""
PATHS = [*NAMES.split(), "blank ", "blank"]


def ignored_by_git(folder: Path, paths: list[str]) -> set[str]:
    git = require_tool("git")
    subprocess.run([git, "init", "-q", str(folder)], check=True)
    asked = "\0".join(paths).encode()
    command = [git, "-C", str(folder), "check-ignore", "--no-index", "-z", "--stdin"]
    found = subprocess.run(command, input=asked, capture_output=True, check=False)
    return {path for path in found.stdout.decode().split("\0") if path}


def ignored_by_us(text: str, paths: list[str], folders: set[str]) -> set[str]:
    """The ignored paths as the walk finds them: it never enters an ignored folder."""
    made = rules(text)
    found = set()
    for path in paths:
        names = path.split("/")
        begun = [names[:length] for length in range(1, len(names) + 1)]
        if any(made.ignores(one, "/".join(one) in folders) for one in begun):
            found.add(path)
    return found


def test_ignore_rules_exclude_the_same_paths_as_git(tmp_path: Path) -> None:
    """G1: the same paths are excluded, rule by rule and for all rules together."""
    folders = {"/".join(path.split("/")[:length]) for path in PATHS for length in range(1, path.count("/") + 1)}
    paths = [path for path in PATHS if path not in folders]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for text in (IGNORE, *(line for line in IGNORE.split("\n") if line and not line.startswith("!"))):
        (tmp_path / ".gitignore").write_text(text)
        assert ignored_by_us(text, paths, folders) == ignored_by_git(tmp_path, paths), text


@given(
    st.text("ab*?[]!-\\/{},.", max_size=30), st.lists(st.text("ab.-", min_size=1, max_size=8), min_size=1, max_size=4)
)
def test_glob_any_text_is_a_pattern_or_a_bad_pattern(pattern: str, path: list[str]) -> None:
    """I13: whatever a model or an ignore file contains, nothing raises."""
    made = glob(pattern)
    assert isinstance(made, BadPattern) or isinstance(made.matches(path), bool)
    assert rules(pattern).ignores(path, folder=True) in (True, False, None)
