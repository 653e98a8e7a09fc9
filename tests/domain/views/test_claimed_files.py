"""The files that an answer claims to have written although no record says so (row G6, case 35)."""

from __future__ import annotations

import pytest

from steadyhand.domain.views.claimed_files import find_false_claims

CLAIMS: list[tuple[str, tuple[str, ...]]] = [
    ("I wrote b.json.", ("b.json",)),
    ("I have written `b.json` and src/c.py for you.", ("b.json", "src/c.py")),
    ("Created: b.json, c.md and `src/d.py`", ("b.json", "c.md", "src/d.py")),
    ("- `b.json` (created)\n- `c.md`: updated\n- d.py \u2013 deleted", ("b.json", "c.md", "d.py")),
    ("b.json was created.", ("b.json",)),
    ("`b.json` and `c.json` have been saved successfully", ("b.json", "c.json")),
    ("The file b.json is now updated.", ("b.json",)),
    ("I saved the results to out/b.json and then ran the tests.", ("out/b.json",)),
    ("I added a section in docs/guide.md.", ("docs/guide.md",)),
    ("Moved a.py to lib/a.py", ("a.py", "lib/a.py")),
    ("Done! Updated ./src/main.rs.", ("./src/main.rs",)),
    ("I edited `.gitignore` and the `Makefile`.", (".gitignore", "Makefile")),
    ("I did not touch a.py but I wrote b.json.", ("b.json",)),
    ("Wrote **b.json** and _c.json_.", ("b.json", "c.json")),
    ("I created not-done.md.", ("not-done.md",)),
    ("I changed src/Ünï.py", ("src/Ünï.py",)),
    ("Wrote b.json\nWrote b.json again.", ("b.json",)),
]

NO_CLAIMS = [
    "I did not write b.json.",
    "I didn't create `b.json`, and b.json wasn't updated.",
    "b.json could not be written.",
    "I was unable to save b.json.",
    "I will now write b.json.",
    "I'll have b.json updated in a moment.",
    "Should I have created b.json?",
    "b.json was created?",
    "If b.json was created, run it.",
    "b.json would be created by that.",
    "You changed b.json, so I left it alone.",
    "The user edited b.json.",
    "b.json was already updated in an earlier turn.",
    "b.json was written by the build.",
    "It is uncertain whether b.json was written.",
    "```\nwrote b.json\n```",
    "~~~text\ncreated b.json\n~~~",
    "```\nI wrote b.json and never closed the fence",
    "> I wrote b.json",
    "I read b.json.",
    "See b.json for what changed.",
    "I changed the type to text/plain and used TCP/IP.",
    "I updated Node.js to 20.1 and changed os.path.",
    "I changed version 1.2.3, i.e. the default.",
    "I updated the link to https://example.com/b.json there.",
    "I created `make_thing()` and `x = a.b`.",
    "The unchanged file is b.json.",
    "write b.json with x: refused",
    "done: 0 of 1",
    "",
]

HALF_CLAIMS: list[tuple[str, tuple[str, ...]]] = [
    ("I created b.py from the template t.py.", ("b.py",)),
    ("I updated b.py to use t.py.", ("b.py",)),
    ("I wrote b.py, which imports t.py.", ("b.py",)),
    ("I added tests for t.py in tests/b.py.", ()),
    ("I wrote b.py instead of t.py.", ("b.py",)),
    ("I wrote b.py; t.py stays as it is.", ("b.py",)),
    ("I wrote b.py because t.py was missing.", ("b.py",)),
]


@pytest.mark.parametrize(("text", "expected"), CLAIMS)
def test_unclaimed_file_named_as_written_and_not_changed_is_reported(text: str, expected: tuple[str, ...]) -> None:
    """G6, case 35: the answer names files as written, and none was. Each is reported once, in the order of the text."""
    assert find_false_claims(text, ()) == expected


@pytest.mark.parametrize("text", NO_CLAIMS)
def test_unclaimed_text_that_claims_no_write_reports_nothing(text: str) -> None:
    """G6: text that denies, asks, plans, quotes, credits others or names no file reports nothing."""
    assert find_false_claims(text, ()) == ()


@pytest.mark.parametrize(("text", "expected"), HALF_CLAIMS)
def test_unclaimed_file_only_referred_to_is_not_reported(text: str, expected: tuple[str, ...]) -> None:
    """G6: files that a claim only refers to are not claimed."""
    assert find_false_claims(text, ()) == expected


@pytest.mark.parametrize("text", [text for text, _ in CLAIMS])
def test_unclaimed_file_that_the_journal_changed_is_not_reported(text: str) -> None:
    """G6: the same answers report nothing when the journal says that the files changed."""
    assert find_false_claims(text, [path for _, paths in CLAIMS for path in paths]) == ()


@pytest.mark.parametrize(
    ("claimed", "changed", "flagged"),
    [
        ("b.json", "src/b.json", False),
        ("src/b.json", "src/b.json", False),
        ("./src/b.json", "src/b.json", False),
        ("/home/me/project/src/b.json", "src/b.json", False),
        ("b.json", "src/ab.json", True),
        ("lib/b.json", "src/b.json", True),
        ("a/src/b.json", "b.json", False),
        ("b.json", "b.JSON", True),
    ],
)
def test_unclaimed_names_are_compared_by_path_suffix(claimed: str, changed: str, flagged: bool) -> None:
    """G6, case 35: a change of another file excuses nothing. A change of the same file under another spelling of its
    path does.
    """
    assert find_false_claims(f"I wrote {claimed}.", [changed]) == ((claimed,) if flagged else ())


def test_unclaimed_longest_answer_is_scanned_in_linear_time() -> None:
    """The largest reply is scanned in about linear time, so the scan can run at the end of a turn."""
    text = "I wrote a.py, b.py and c.py. " * 4000 + "\n" + "`" * 5000 + "(" * 5000 + "I wrote d.py " * 4000
    assert find_false_claims(text, ["a.py", "b.py"]) == ("c.py",)
