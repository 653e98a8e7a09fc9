"""What stands above and for an attachment: names on one line, places counted from 1, names that look like secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.given import Given, flat, name_chars_max, told
from steadyhand.core.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    SelectionAttachment,
    TextAttachment,
    attachment_name,
)
from steadyhand.core.secret_names import looks_secret
from steadyhand.core.text_positions import Position, Range, stretch

PLACE = Range(Position(2, 0), Position(8, 0))


@given(st.text())
def test_a_name_stays_on_its_line(name: str) -> None:
    """Row G5: no name can look like another entry, and none is longer than its bound [I13]."""
    shown = flat(name)
    assert len(shown) <= name_chars_max
    assert len(told((Given(name, trouble="No."),)).split("\n")) == 2


def test_a_long_name_loses_its_middle() -> None:
    """Row G5: beginning and end of a path say most; at the bound nothing is lost."""
    assert flat("a" * name_chars_max) == "a" * name_chars_max
    shown = flat("begin" + "x" * name_chars_max + "end")
    assert (len(shown), shown[:5], shown[-3:]) == (name_chars_max, "begin", "end")


@pytest.mark.parametrize(
    ("attached", "name"),
    [
        (FileAttachment("src/a.py"), "src/a.py"),
        (FileAttachment("src/a.py", PLACE), "src/a.py, lines 3 to 8"),
        (SelectionAttachment("file:///w/a.py", PLACE, "x"), "selection in file:///w/a.py, lines 3 to 8"),
        (ProblemsAttachment(), "problems"),
        (ProblemsAttachment("file:///w/a.py"), "problems in file:///w/a.py"),
        (TextAttachment("notes", "x"), "notes"),
    ],
)
def test_what_a_person_reads_of_it(attached: Attachment, name: str) -> None:
    """Row G5: path, place or name; no content."""
    assert attachment_name(attached) == name


@pytest.mark.parametrize(
    ("start", "end", "lines"),
    [
        ((0, 0), (0, 5), (1, 1)),
        ((0, 0), (1, 0), (1, 1)),
        ((0, 0), (1, 1), (1, 2)),
        ((4, 2), (2, 1), (3, 5)),
        ((3, 0), (3, 0), (4, 4)),
    ],
)
def test_the_lines_of_a_place(start: tuple[int, int], end: tuple[int, int], lines: tuple[int, int]) -> None:
    """Row G5: counted from 1; a line of which nothing is in the range is not named; swapped ends are put right."""
    assert Range(Position(*start), Position(*end)).lines == lines


def test_swapped_ends_are_put_right() -> None:
    """Row G5: as for a change of a document."""
    assert stretch("abc\ndef\n", Range(Position(1, 1), Position(0, 1)), "utf-16") == "bc\nd"


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.production", "app/.ENV", "id_rsa", "home/id_ed25519", "server.pem", "tls/site.KEY", "a.p12",
        ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", "credentials", "credentials.json", "secrets.yml",
        "secret.toml", ".ssh/config", ".aws/config", "x/.docker/config.json", "vault.kdbx",
    ],
)  # fmt: skip
def test_names_that_look_like_secrets(path: str) -> None:
    """Rows E2, G5: keys, credentials and password stores, in any case, by the last name or by their folder."""
    assert looks_secret(path.split("/"))


@pytest.mark.parametrize(
    "path",
    ["a.py", "secrets.py", "credentials.md", "id_rsa.pub", "keyboard.json", "env.py", "environment", "a/key.txt", ""],
)
def test_ordinary_names(path: str) -> None:
    """Row G5: code about secrets is no secret."""
    assert not looks_secret(path.split("/"))
