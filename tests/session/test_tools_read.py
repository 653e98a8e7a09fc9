"""`read_file`: from the editor or the disk, whole or by a window, and honest about what it does not show."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from steadyhand.core.text_lines import EMPTY_MARK, NO_LINE_END_MARK, whole_text
from steadyhand.ports import OpenDocument
from steadyhand.tools import read_file
from steadyhand.tools.read_file import EDITOR_MARK, ReadFile
from steadyhand.tools.tool import Done, reply_bytes_max
from tests.support.ground import Yard, carried_out, planned, refusal

TOOL = ReadFile()
pytestmark = pytest.mark.anyio


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard.under(tmp_path)


async def read(yard: Yard, **fields: object) -> Done:
    return await carried_out(TOOL, yard.ground(), **fields)


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
async def test_arguments_are_strict(yard: Yard, fields: dict[str, object]) -> None:
    """N1: nothing is mended, not even a number written as a text."""
    yard.write("f", b"")
    assert refusal(TOOL, yard.ground(), **fields).reason == "bad_arguments"


async def test_a_small_file_is_read_whole(yard: Yard) -> None:
    """G1: the lines themselves, with a mark where something is not to be seen."""
    for content, text in ((b"a\nb\n", "a\nb\n"), (b"a\r\nb", f"a\nb\n{NO_LINE_END_MARK}"), (b"", EMPTY_MARK)):
        yard.write("f", content)
        done = await read(yard, path="f")
        assert (done.outcome, done.text, done.truncated) == ("returned", text, False)


async def test_a_part_says_that_there_is_more(yard: Yard) -> None:
    """Case 64: the last line names what is left, and where to go on."""
    yard.write("f", b"".join(b"line %d\n" % number for number in range(1, 101)))
    done = await read(yard, path="f", offset=3, limit=2)
    assert done.text.startswith("line 3\nline 4\n[truncated: lines 3 to 4 of 100")
    assert "offset 5" in done.text
    assert done.truncated
    assert "there is no line 200" in (await read(yard, path="f", offset=200)).text


async def test_unsaved_changes_are_read_from_the_editor(yard: Yard) -> None:
    """V1: the editor's text is what the user sees; the reply says so; a saved document is read from the disk."""
    path = yard.write("f", b"disk\n")
    yard.documents[str(path)] = OpenDocument("editor\n", 2, True)
    assert (await read(yard, path="f")).text == f"editor\n\n{EDITOR_MARK}"
    yard.documents[str(path)] = OpenDocument("stale\n", 2, False)
    assert (await read(yard, path="f")).text == "disk\n"


async def test_a_document_open_by_its_link_is_found(yard: Yard) -> None:
    """V1: the editor knows a file by the name it was opened with."""
    yard.write("real", b"disk\n")
    (yard.root / "link").symlink_to("real")
    yard.documents[str(yard.root / "link")] = OpenDocument("editor\n", 2, True)
    assert (await read(yard, path="./link")).text.startswith("editor\n")


async def test_a_document_open_through_links_on_its_way_is_found(yard: Yard, tmp_path: Path) -> None:
    """V1: an editor that came to the workspace through a link spells every path of it so; a folder's link is another
    way to the same file. One that leads nowhere, or to another file, is none of its names."""
    yard.write("sub/f", b"disk\n")
    (tmp_path / "came").symlink_to(yard.root)
    (yard.root / "short").symlink_to("sub")
    (yard.root / "loop").symlink_to("loop")
    yard.documents[str(yard.root / "loop")] = OpenDocument("nowhere\n", 2, True)
    for name in (tmp_path / "came" / "sub" / "f", yard.root / "short" / "f", tmp_path / "came" / "short" / "f"):
        yard.documents[str(name)] = OpenDocument("editor\n", 2, True)
        assert (await read(yard, path="sub/f")).text.startswith("editor\n"), name
        del yard.documents[str(name)]
    assert (await read(yard, path="sub/f")).text == "disk\n"


async def test_what_is_no_text_is_a_failed_reading(yard: Yard) -> None:
    """C6, case 49: one sentence for the missing, the folder, the binary, the other encoding."""
    yard.write("d/x", b"")
    yard.write("binary", b"a\0b")
    yard.write("latin", b"caf\xe9 au lait")
    expected = {"missing": "not_found", "d": "not_a_file", "binary": "not_text", "latin": "not_text"}
    for path, reason in expected.items():
        done = await read(yard, path=path)
        assert (done.outcome, done.reason) == ("failed", reason)
        assert path in done.text
    assert (await read(yard, path="missing")).text == "missing does not exist."


async def test_the_state_directory_is_not_read(yard: Yard) -> None:
    """G2: it is never a tool's target; what is outside asks."""
    (yard.state / "secret").write_bytes(b"s")
    assert refusal(TOOL, yard.ground(), path=str(yard.state / "secret")).reason == "policy"
    (yard.outside / "f").write_bytes(b"f")
    assert planned(TOOL, yard.ground(), path="../out/f").outside == (str(yard.outside / "f"),)


async def test_a_reply_never_exceeds_its_bound(yard: Yard) -> None:
    """I13: many lines, long lines and lines of wide characters stay within `reply_bytes_max`."""
    for content in (b"x\n" * 100_000, b"x" * 1_000_000 + b"\n", "ä€𝄞".encode() * 100_000):
        yard.write("f", content)
        done = await read(yard, path="f")
        assert len(done.text.encode()) <= reply_bytes_max
        assert done.truncated
        assert whole_text(done.text) is None


async def test_a_file_of_gigabytes_is_not_loaded(yard: Yard) -> None:
    """Case 64: a sparse 3 GB file after some text; its first lines are shown with little memory."""
    path = yard.root / "huge"
    with path.open("wb") as file:
        file.write(b"".join(b"line %d\n" % number for number in range(1, 200_001)))
        file.truncate(3 * 1024**3)
    tracemalloc.start()
    try:
        done = await read(yard, path="huge", offset=150_000, limit=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert done.text.startswith("line 150000\nline 150001\n[truncated")
    assert peak < 4 * read_file.whole_bytes_max


async def test_a_line_of_megabytes_is_cut(yard: Yard) -> None:
    """Case 64: a 40 MB line is shown by its beginning; the line after it is found."""
    yard.write("f", b"first\n" + "ä".encode() * 20_000_000 + b"\nlast\n")
    done = await read(yard, path="f", offset=2)
    assert done.text.startswith("ä" * 100)
    assert "longer than" in done.text
    assert len(done.text.encode()) <= reply_bytes_max
    assert (await read(yard, path="f", offset=3)).text == "last\n"
    assert "there is no line 4" in (await read(yard, path="f", offset=4)).text


async def test_utf_16_is_read_whole_or_not_at_all(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """W9, case 49: with its mark it is text; above what is read at once it is none, as lines are counted in bytes."""
    yard.write("f", "one\r\nzwö\r\n".encode("utf-16"))
    assert (await read(yard, path="f")).text == "one\nzwö\n"
    monkeypatch.setattr(read_file, "whole_bytes_max", 10)
    done = await read(yard, path="f")
    assert (done.outcome, done.reason) == ("failed", "not_text")
    assert "UTF-16 above 10 bytes" in done.text


async def test_a_line_beyond_the_search_is_said_to_be(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 64, I13: not found within the bound is no claim that there is no such line."""
    monkeypatch.setattr(read_file, "whole_bytes_max", 10)
    monkeypatch.setattr(read_file, "scanned_bytes_max", 1000)
    yard.write("f", b"x\n" * 2_000_000)
    done = await read(yard, path="f", offset=1_500_000)
    assert (done.outcome, done.reason) == ("failed", "too_large")


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 64])
async def test_by_pieces_it_reads_as_if_whole(yard: Yard, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """Case 64: whatever the pieces, each line is the one that the whole file has there, CR and CRLF among them."""
    from steadyhand.tools import content

    bodies = ["a\r\nbb\rcc\n\näö\r\n\r\nlast", "a\r\nb\r\n", "\ufeffone\ntwo\r", "\r\r\n\r"]
    for body in bodies:
        yard.write("f", body.encode())
        whole = {offset: await read(yard, path="f", offset=offset, limit=1) for offset in range(1, 9)}
        with monkeypatch.context() as patch:
            patch.setattr(read_file, "whole_bytes_max", 1)
            patch.setattr(content, "piece_bytes_max", piece)
            for offset, expected in whole.items():
                found = await read(yard, path="f", offset=offset, limit=1)
                assert found.outcome == "returned"
                # A window may not show that the file mixes its line ends; then CRLF is shown as LF.
                line, _, mark = expected.text.replace("\r\n", "\n").partition("[truncated")
                shown, _, said = found.text.replace("\r\n", "\n").partition("[truncated")
                assert shown == line, (body, offset)
                assert ("no line" in mark) == ("no line" in said)
