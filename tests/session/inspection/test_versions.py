"""Where an effect differs in its file, and the versions that an inspection shows (row A4, E4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.records.record import Evidence, PathFinding, Scope
from steadyhand.session.inspection import versions
from steadyhand.session.inspection.effect_places import EffectPlace, find_places
from steadyhand.session.inspection.file_state import check_files, mark_concurrent_save, name_own_leftover
from steadyhand.session.inspection.versions import (
    ContentVersions,
    diff_of,
    first_difference,
    read_content_now,
    readable_text,
)
from tests.support.faults import carries
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import kill_in_turn
from tests.support.redo import NEW, OLD, WRITE, open_attempt
from tests.support.systems import linux_only
from tests.support.tool_calls import ToolWorkspace
from tests.support.workspace import Workspace


@pytest.mark.parametrize(
    ("now", "intended", "found"),
    [
        (b"a\nb\nc", b"a\nB\nc", (1, "b")),
        (b"a\nb", b"a\nb\nc", (1, "b")),  # the rest is missing: the last line there
        (b"a\nb\nc", b"a\nb", (2, "c")),  # there is more
        (b"a", b"a", (0, "a")),
        (b"a x\nb", b"a x\nb", (0, "a x")),
        (None, b"a", (0, "")),
        (b"a\nb", None, (0, "a")),
        (b"", b"a", (0, "")),
        (b"one two", b"one three", (0, "one two")),
        (b"one two\nx", b"one two\ny", (1, "x")),
        (b"\xff\xfe\x00", b"a", (0, "")),  # no text
    ],
)
def test_first_difference_is_the_first_line_that_is_not_as_intended(
    now: bytes | None, intended: bytes | None, found: tuple[int, str]
) -> None:
    """E4: a diagnostic is put there, and its text is what the file has there now."""
    assert first_difference(ContentVersions(b"", intended, now)) == found


def test_readable_text_is_none_for_what_is_no_text() -> None:
    """A4: nothing is shown of bytes that are no text; an empty file is a text."""
    assert (readable_text(None), readable_text(b""), readable_text(b"a\r\nb")) == (None, "", "a\nb")
    assert readable_text(b"\x00\x01\x02") is None


def test_diff_shows_what_the_effect_changed_or_what_is_missing_of_it() -> None:
    """A4: from before to now if it is there; else from now to intended. No change has no diff."""
    found = ContentVersions(b"old\n", b"new\n", b"now\n")
    there, missing = diff_of(found, "a", True), diff_of(found, "a", False)
    assert there is not None
    assert missing is not None
    assert "-old" in there
    assert "+now" in there
    assert "-now" in missing
    assert "+new" in missing
    assert diff_of(ContentVersions(b"x", b"x", b"x"), "a", False) is None
    assert diff_of(ContentVersions(None, b"x", b"y"), "a", True) is None
    assert diff_of(ContentVersions(b"x", None, b"y"), "a", False) is None


def evidence_at(workspace: ToolWorkspace, name: str) -> Evidence:
    return Evidence(path=name, resolved=str(workspace.root / name), existed=True)


def test_content_now_is_read_up_to_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: a larger file is not shown. A missing one is empty, and one that cannot be read is unknown."""
    workspace = ToolWorkspace.under(tmp_path)
    monkeypatch.setattr(versions, "FILE_BYTES_MAX", 4)
    workspace.write("a", "1234")
    workspace.write("b", "12345")
    (workspace.root / "folder").mkdir()
    context = workspace.tool_context()
    assert read_content_now(context, evidence_at(workspace, "a")) == b"1234"
    assert read_content_now(context, evidence_at(workspace, "b")) is None
    assert read_content_now(context, evidence_at(workspace, "none")) == b""
    assert read_content_now(context, evidence_at(workspace, "folder")) is None
    assert read_content_now(context, evidence_at(workspace, "no/such")) is None


def test_concurrent_save_is_a_conflict_that_names_each_file() -> None:
    """W9: the user has to decide, whatever the path has."""
    found = mark_concurrent_save(PathFinding(path="a", check="satisfied", exists=True, digest="d"), (".a", ".b"))
    assert (found.check, found.reason) == ("conflict", "a concurrent save is kept as .a, .b")
    assert (found.path, found.exists, found.digest) == ("a", True, "d")


def test_own_leftover_is_named_beside_the_reason_that_is_there() -> None:
    """Case 168: neither sentence hides the other, and the check stays."""
    finding = PathFinding(path="a", check="unknown", reason="it is a pipe")
    own = "its temporary file .a, .b could not be removed; remove it when its folder can be written"
    assert name_own_leftover(finding, (".a", ".b")).reason == f"it is a pipe; {own}"
    assert name_own_leftover(PathFinding(path="a", check="satisfied"), (".a", ".b")).reason == own
    assert name_own_leftover(finding, (".a",)).check == "unknown"


@linux_only
@pytest.mark.anyio
async def test_places_of_an_effect_are_its_paths_with_the_first_difference(tmp_path: Path) -> None:
    """E4: the places are in the order of the evidence; attempts that the ledger does not know are left out."""
    place = Workspace.under(tmp_path / "place")
    place.write("d/a.txt", OLD)
    kill_in_turn(place, WRITE.replace("a.txt", "d/a.txt"), carries("result"))
    place.write("d/a.txt", "new\nmore\n")
    path = str(place.root / "d" / "a.txt")
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        found = await find_places(session, [attempt.attempt_id, "0" * 32])
        assert list(found) == [attempt.attempt_id]
        assert found[attempt.attempt_id].aim == "content"
        assert found[attempt.attempt_id].places == (EffectPlace(path, "d/a.txt", 1, "more"),)
        assert await find_places(session, []) == {}

        seen = check_files(session.tool_context, session.ledger, attempt)
        assert (seen.check, [one.path for one in seen.findings]) == ("conflict", ["d/a.txt"])
        place.write("d/a.txt", NEW)
        assert check_files(session.tool_context, session.ledger, attempt).check == "satisfied"

        attempt.started = None
        attempt.scope = Scope(paths=(path, "/~elsewhere/b"))
        found = await find_places(session, [attempt.attempt_id])
        assert found[attempt.attempt_id].places == (
            EffectPlace(path, "d/a.txt", 0, ""),
            EffectPlace("/~elsewhere/b", "/~elsewhere/b", 0, ""),
        )
        assert check_files(session.tool_context, session.ledger, attempt).check is None
