"""`read_file`: from the editor or the disk, whole or by a range, and explicit about what it does not show."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from steadyhand.domain.text.lines import EMPTY_MARK, NO_LINE_END_MARK, text_of_reply
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin import read_file
from steadyhand.tools.builtin.read_file import ReadFile
from steadyhand.tools.contract import REPLY_BYTES_MAX, ToolOutcome
from steadyhand.tools.workspace.open_documents import EDITOR_MARK
from tests.support.tool_calls import ToolWorkspace, carried_out, planned, refusal

TOOL = ReadFile()
pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


async def read(workspace: ToolWorkspace, **fields: object) -> ToolOutcome:
    return await carried_out(TOOL, workspace.tool_context(), **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"path": 1},
        {"path": "f", "offset": 0},
        {"path": "f", "offset": True},
        {"path": "f", "offset": 1.0},
        {"path": "f", "limit": "2"},
        {"path": "f", "lines": 2},
        {"path": "f", "offset": -(10**30)},
    ],
)
async def test_read_file_invalid_argument_is_refused(workspace: ToolWorkspace, fields: dict[str, object]) -> None:
    """N1: nothing is repaired, not even a number written as a text."""
    workspace.write("f", b"")
    assert refusal(TOOL, workspace.tool_context(), **fields).reason == "bad_arguments"


async def test_read_file_small_file_is_read_whole(workspace: ToolWorkspace) -> None:
    """G1: the lines themselves, with a marker where something is not visible."""
    for content, text in ((b"a\nb\n", "a\nb\n"), (b"a\r\nb", f"a\nb\n{NO_LINE_END_MARK}"), (b"", EMPTY_MARK)):
        workspace.write("f", content)
        done = await read(workspace, path="f")
        assert (done.outcome, done.text, done.is_truncated) == ("returned", text, False)


async def test_read_file_part_says_what_is_left_and_where_to_continue(workspace: ToolWorkspace) -> None:
    """Case 64: the last line names the remaining lines, and the offset to continue with."""
    workspace.write("f", b"".join(b"line %d\n" % number for number in range(1, 101)))
    done = await read(workspace, path="f", offset=3, limit=2)
    assert done.text.startswith("line 3\nline 4\n[truncated: lines 3 to 4 of 100")
    assert "offset 5" in done.text
    assert done.is_truncated
    assert "there is no line 200" in (await read(workspace, path="f", offset=200)).text


async def test_read_file_reads_unsaved_changes_from_the_editor(workspace: ToolWorkspace) -> None:
    """V1: the editor's text is what the user sees, and the reply says so. A saved document is read from the disk."""
    path = workspace.write("f", b"disk\n")
    workspace.documents[str(path)] = OpenDocument("editor\n", 2, True)
    assert (await read(workspace, path="f")).text == f"editor\n\n{EDITOR_MARK}"
    workspace.documents[str(path)] = OpenDocument("stale\n", 2, False)
    assert (await read(workspace, path="f")).text == "disk\n"


async def test_read_file_finds_a_document_opened_by_a_link(workspace: ToolWorkspace) -> None:
    """V1: the editor knows a file by the name it was opened with."""
    workspace.write("real", b"disk\n")
    (workspace.root / "link").symlink_to("real")
    workspace.documents[str(workspace.root / "link")] = OpenDocument("editor\n", 2, True)
    assert (await read(workspace, path="./link")).text.startswith("editor\n")


async def test_read_file_finds_a_document_opened_through_linked_folders(
    workspace: ToolWorkspace, tmp_path: Path
) -> None:
    """V1: an editor that opened the workspace through a link uses that link in every path. A link to a folder is
    another path to the same file. A link that leads nowhere, or to another file, is none of its names.
    """
    workspace.write("sub/f", b"disk\n")
    (tmp_path / "entry").symlink_to(workspace.root)
    (workspace.root / "short").symlink_to("sub")
    (workspace.root / "loop").symlink_to("loop")
    workspace.documents[str(workspace.root / "loop")] = OpenDocument("nowhere\n", 2, True)
    for name in (tmp_path / "entry" / "sub" / "f", workspace.root / "short" / "f", tmp_path / "entry" / "short" / "f"):
        workspace.documents[str(name)] = OpenDocument("editor\n", 2, True)
        assert (await read(workspace, path="sub/f")).text.startswith("editor\n"), name
        del workspace.documents[str(name)]
    assert (await read(workspace, path="sub/f")).text == "disk\n"


async def test_read_file_of_a_missing_or_non_text_file_fails_with_a_reason(workspace: ToolWorkspace) -> None:
    """C6, case 49: one sentence for the missing file, the folder, the binary file and the other encoding."""
    workspace.write("d/x", b"")
    workspace.write("binary", b"a\0b")
    workspace.write("latin", b"caf\xe9 au lait")
    expected = {"missing": "not_found", "d": "not_a_file", "binary": "not_text", "latin": "not_text"}
    for path, reason in expected.items():
        done = await read(workspace, path=path)
        assert (done.outcome, done.reason) == ("failed", reason)
        assert path in done.text
    assert (await read(workspace, path="missing")).text == "missing does not exist."


async def test_read_file_in_the_state_directory_is_refused(workspace: ToolWorkspace) -> None:
    """G2: it is never a tool's target. A path outside asks."""
    (workspace.state / "secret").write_bytes(b"s")
    assert refusal(TOOL, workspace.tool_context(), path=str(workspace.state / "secret")).reason == "policy"
    (workspace.outside / "f").write_bytes(b"f")
    assert planned(TOOL, workspace.tool_context(), path="../out/f").outside == (str(workspace.outside / "f"),)


async def test_read_file_reply_never_exceeds_its_bound(workspace: ToolWorkspace) -> None:
    """I13: many lines, long lines and lines of wide characters stay within `reply_bytes_max`."""
    for content in (b"x\n" * 100_000, b"x" * 1_000_000 + b"\n", "ä€𝄞".encode() * 100_000):
        workspace.write("f", content)
        done = await read(workspace, path="f")
        assert len(done.text.encode()) <= REPLY_BYTES_MAX
        assert done.is_truncated
        assert text_of_reply(done.text) is None


async def test_read_file_of_gigabytes_is_not_loaded_whole(workspace: ToolWorkspace) -> None:
    """Case 64: a sparse 3 GB file after some text. Its first lines are shown with little memory."""
    path = workspace.root / "huge"
    with path.open("wb") as file:
        file.write(b"".join(b"line %d\n" % number for number in range(1, 200_001)))
        file.truncate(3 * 1024**3)
    tracemalloc.start()
    try:
        done = await read(workspace, path="huge", offset=150_000, limit=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert done.text.startswith("line 150000\nline 150001\n[truncated")
    assert peak < 4 * read_file.WHOLE_BYTES_MAX


async def test_read_file_cuts_a_line_of_megabytes(workspace: ToolWorkspace) -> None:
    """Case 64: a 40 MB line is shown by its beginning, and the line after it is found."""
    workspace.write("f", b"first\n" + "ä".encode() * 20_000_000 + b"\nlast\n")
    done = await read(workspace, path="f", offset=2)
    assert done.text.startswith("ä" * 100)
    assert "longer than" in done.text
    assert len(done.text.encode()) <= REPLY_BYTES_MAX
    assert (await read(workspace, path="f", offset=3)).text == "last\n"
    assert "there is no line 4" in (await read(workspace, path="f", offset=4)).text


async def test_read_file_of_utf_16_is_read_whole_and_in_pieces(
    workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10, case 49: with its byte order mark it is text, also above the size that is read at once."""
    workspace.write("f", "one\r\nzwö\r\n".encode("utf-16"))
    assert (await read(workspace, path="f")).text == "[UTF-16 LE]\none\nzwö\n"
    monkeypatch.setattr(read_file, "WHOLE_BYTES_MAX", 10)
    done = await read(workspace, path="f", offset=2)
    assert done.text == "[UTF-16 LE]\nzwö\n"


async def test_read_file_line_beyond_the_scan_limit_is_too_large(
    workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 64, I13: a line that is not found within the limit is not reported as missing."""
    monkeypatch.setattr(read_file, "WHOLE_BYTES_MAX", 10)
    monkeypatch.setattr(read_file, "SCANNED_BYTES_MAX", 1000)
    workspace.write("f", b"x\n" * 2_000_000)
    done = await read(workspace, path="f", offset=1_500_000)
    assert (done.outcome, done.reason) == ("failed", "too_large")


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 64])
async def test_read_file_in_pieces_gives_the_same_lines_as_whole(
    workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """Case 64: whatever the pieces, each line is the one that the whole file has there, including CR and CRLF."""
    from steadyhand.tools.writes import blob_store

    bodies = ["a\r\nbb\rcc\n\näö\r\n\r\nlast", "a\r\nb\r\n", "\ufeffone\ntwo\r", "\r\r\n\r"]
    for body in bodies:
        workspace.write("f", body.encode())
        whole = {offset: await read(workspace, path="f", offset=offset, limit=1) for offset in range(1, 9)}
        with monkeypatch.context() as patch:
            patch.setattr(read_file, "WHOLE_BYTES_MAX", 1)
            patch.setattr(blob_store, "PIECE_BYTES_MAX", piece)
            for offset, expected in whole.items():
                found = await read(workspace, path="f", offset=offset, limit=1)
                assert found.outcome == "returned"
                # A range may not show that the file mixes its line ends. Then CRLF is shown as LF.
                line, _, mark = expected.text.replace("\r\n", "\n").partition("[truncated")
                shown, _, tail = found.text.replace("\r\n", "\n").partition("[truncated")
                assert shown == line, (body, offset)
                assert ("no line" in mark) == ("no line" in tail)
