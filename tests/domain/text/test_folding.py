"""Folded names: which spellings count as one, and what that does to overlap, protected names and rules (row W12)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.permissions.protected_paths import protected_kind
from steadyhand.domain.permissions.rules import Target, find_tightening_rule, first_loosening_rule, parse_rule
from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import EVERYTHING, overlaps
from steadyhand.domain.text.folding import differ_in_form_alone, fold, foldings
from steadyhand.tools.registry import SUBJECTS

COMPOSED, DECOMPOSED = "caf\u00e9.txt", "cafe\u0301.txt"

SAME = [
    ("letter case", "Src/App.ts", "src/app.ts"),
    ("Unicode form", COMPOSED, DECOMPOSED),
    ("case and form", COMPOSED.upper(), DECOMPOSED),
    ("sharp s", "STRASSE", "stra\u00dfe"),
    ("the Kelvin sign", "\u212aelvin", "kelvin"),
    ("a dotted capital i", "\u0130x", "I\u0307x"),
    ("final sigma", "\u039f\u03a3", "\u03bf\u03c2"),
    ("a character without width", ".g\u200cit", ".git"),
    ("a soft hyphen", "a\u00adb", "ab"),
    ("Hangul", "\ud55c", "\u1112\u1161\u11ab"),
    ("order of two marks", "a\u0323\u0302", "a\u0302\u0323"),
]
APART = [("another letter", "a", "b"), ("an accent", "cafe", "caf\u00e9"), ("a blank", "a b", "ab")]


@pytest.mark.parametrize(("first", "second"), [one[1:] for one in SAME], ids=[one[0] for one in SAME])
def test_fold_spellings_of_one_name_are_equal(first: str, second: str) -> None:
    """W12: each pair is one name on some file system, so effects on the two overlap (B1, case 133, [I6])."""
    assert fold(first) == fold(second)
    assert overlaps(Scope((f"/w/{first}",)), Scope((f"/w/{second}",)))
    assert overlaps(Scope((f"/w/{first}/x",)), Scope((f"/w/{second}",)))


@pytest.mark.parametrize(("first", "second"), [one[1:] for one in APART], ids=[one[0] for one in APART])
def test_fold_other_names_stay_apart(first: str, second: str) -> None:
    """W12: no file system takes these for one."""
    assert fold(first) != fold(second)
    assert not overlaps(Scope((f"/w/{first}",)), Scope((f"/w/{second}",)))


@given(st.text())
def test_fold_is_stable_and_forgets_case_and_form(text: str) -> None:
    """W12: folding twice changes nothing more, so the two sides of a comparison cannot drift apart."""
    assert fold(fold(text)) == fold(text)
    assert fold(text) in foldings(text)


@given(st.text())
def test_fold_keeps_the_parts_of_a_path(text: str) -> None:
    """W12: a path is folded as a whole; that moves nothing across a `/`."""
    assert "/".join(map(fold, text.split("/"))) == fold(text)


def test_differ_in_form_alone_is_not_about_case() -> None:
    """W12: two names with the same characters, composed and decomposed."""
    assert differ_in_form_alone(COMPOSED, DECOMPOSED)
    assert not differ_in_form_alone(COMPOSED, COMPOSED)
    assert not differ_in_form_alone(COMPOSED, DECOMPOSED.upper())


PROTECTED = [
    (".GIT/config", "git"),
    (".g\u200cit/config", "git"),
    (".\u017fteadyhand/x", "agents"),
    (".VSCODE/x", "VS Code"),
]


@pytest.mark.parametrize(("path", "kind"), PROTECTED)
def test_protected_kind_finds_a_name_in_another_spelling(path: str, kind: str) -> None:
    """W12, G2: on a file system that folds, `.GIT` and `.git` with a character without width are `.git`."""
    assert protected_kind(path.split("/")) == kind


def test_looks_secret_finds_a_name_in_another_spelling() -> None:
    """W12, case 137: `\u017fecrets.json`, with a long s, is `secrets.json`."""
    assert looks_secret(["\u017fecrets.json"])
    assert looks_secret([".E\u200bNV"])


def covers(text: str, target: Target) -> tuple[bool, bool]:
    """(loosens, tightens): whether the rule would allow the call, and whether it would deny or ask."""
    rule = parse_rule(text, SUBJECTS)
    assert not hasattr(rule, "why"), rule
    found = find_tightening_rule([rule], target)
    return first_loosening_rule([rule], target) is not None, found is not None


def write_to(path: str) -> Target:
    return Target("write_file", Scope((f"/w/{path}",)), "/w", None)


RULES = [
    (f"write_file({COMPOSED})", write_to(DECOMPOSED)),
    (f"write_file({DECOMPOSED})", write_to(COMPOSED)),
    ("write_file(Docs/**)", write_to("docs/a")),
    ("write_file(/W/docs/**)", write_to("docs/a")),
    ("write_file(secre*)", write_to("secret\u0301s")),
    ("write_file(secret*)", write_to("secret\u0301s")),
    (f"run_command(cat {COMPOSED})", Target("run_command", EVERYTHING, "/w", f"cat {DECOMPOSED}")),
    ("run_command(cat <*)", Target("run_command", EVERYTHING, "/w", "cat <\u0338x")),
    ("run_command(rm *)", Target("run_command", EVERYTHING, "/w", "RM x")),
]


@pytest.mark.parametrize(("text", "target"), RULES)
def test_rule_that_tightens_covers_every_spelling(text: str, target: Target) -> None:
    """W12: `ask` and `deny` are folded. A piece that ends before a combining mark is still found."""
    assert covers(text, target)[1]


def test_rule_that_allows_covers_one_spelling() -> None:
    """W12: `allow` is not folded: in each direction the other spelling still asks."""
    for one, other in ((COMPOSED, DECOMPOSED), ("Docs", "docs"), ("\u017fx", "sx")):
        assert covers(f"write_file({one})", write_to(one))[0]
        assert not covers(f"write_file({one})", write_to(other))[0]
