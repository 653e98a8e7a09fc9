"""The header of an attachment: its name on one line and its lines counted from 1; and the file names that look like
secrets.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.model.attachment_text import (
    NAME_CHARS_MAX,
    RenderedAttachment,
    one_line_name,
    render_attachments,
)
from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.domain.records.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    SelectionAttachment,
    TextAttachment,
    attachment_name,
)
from steadyhand.domain.text.positions import Position, Range, text_in_range

PLACE = Range(Position(2, 0), Position(8, 0))


@given(st.text())
def test_flat_any_name_stays_on_one_bounded_line(name: str) -> None:
    """Row G5: no name can look like another entry, and none is longer than its bound [I13]."""
    shown = one_line_name(name)
    assert len(shown) <= NAME_CHARS_MAX
    assert len(render_attachments((RenderedAttachment(name, trouble="No."),)).split("\n")) == 2


def test_flat_name_over_the_bound_loses_its_middle() -> None:
    """Row G5: the beginning and the end of a path say most. A name at the bound loses nothing."""
    assert one_line_name("a" * NAME_CHARS_MAX) == "a" * NAME_CHARS_MAX
    shown = one_line_name("begin" + "x" * NAME_CHARS_MAX + "end")
    assert (len(shown), shown[:5], shown[-3:]) == (NAME_CHARS_MAX, "begin", "end")


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
def test_attachment_name_shows_path_range_or_label_without_content(attached: Attachment, name: str) -> None:
    """Row G5: the path, the range or the label, and no content."""
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
def test_range_lines_count_from_1_and_exclude_an_empty_last_line(
    start: tuple[int, int], end: tuple[int, int], lines: tuple[int, int]
) -> None:
    """Row G5: lines are counted from 1. A line without a character in the range is not named. Swapped ends are
    exchanged.
    """
    assert Range(Position(*start), Position(*end)).lines == lines


def test_stretch_swapped_ends_are_exchanged() -> None:
    """Row G5: as for a change of a document."""
    assert text_in_range("abc\ndef\n", Range(Position(1, 1), Position(0, 1)), "utf-16") == "bc\nd"


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.production", "app/.ENV", "id_rsa", "home/id_ed25519", "server.pem", "tls/site.KEY", "a.p12",
        ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", "credentials", "credentials.json", "secrets.yml",
        "secret.toml", ".ssh/config", ".aws/config", "x/.docker/config.json", "vault.kdbx",
    ],
)  # fmt: skip
def test_looks_secret_key_and_credential_files_are_true(path: str) -> None:
    """Rows E2, G5: keys, credentials and password stores, in any case, by their file name or by their folder."""
    assert looks_secret(path.split("/"))


@pytest.mark.parametrize(
    "path",
    ["a.py", "secrets.py", "credentials.md", "id_rsa.pub", "keyboard.json", "env.py", "environment", "a/key.txt", ""],
)
def test_looks_secret_ordinary_files_are_false(path: str) -> None:
    """Row G5: code about secrets is no secret."""
    assert not looks_secret(path.split("/"))
