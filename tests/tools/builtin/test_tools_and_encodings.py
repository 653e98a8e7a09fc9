"""The tools and the encodings of files: what is shown, found, written, refused and recorded (row W10)."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from steadyhand.domain.records.prompt import FileAttachment
from steadyhand.domain.text.positions import Position, PositionEncoding, Range
from steadyhand.ports.editor import OpenDocument
from steadyhand.ports.encodings import EncodingSources
from steadyhand.tools.builtin import read_file
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.edit_file import EditFile
from steadyhand.tools.builtin.read_file import ReadFile
from steadyhand.tools.builtin.search_text import SearchText
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import Preview, Tool, ToolContext
from steadyhand.tools.registry import intended_content
from steadyhand.tools.workspace import search_prefilter
from steadyhand.tools.workspace.attached_file import read_attachment
from tests.support.tool_calls import ToolWorkspace, carried_out, gathered, planned, refusal, run_call

pytestmark = pytest.mark.anyio
READ, SEARCH, EDIT, WRITE, DELETE = ReadFile(), SearchText(), EditFile(), WriteFile(), DeleteFile()

CONFIG = b"[*.1252]\ncharset = windows-1252\n[*.jis]\ncharset = shift-jis\n[*.16]\ncharset = utf-16le\n"


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    made = ToolWorkspace.under(tmp_path)
    made.write(".editorconfig", CONFIG)
    return made


def detecting(context: ToolContext, *likely: str) -> ToolContext:
    return attrs.evolve(context, encodings=EncodingSources(candidates=lambda sample: likely))


async def text_of(context: ToolContext, **fields: object) -> str:
    return (await carried_out(READ, context, **fields)).text


async def test_read_file_begins_with_the_word_of_any_other_encoding(workspace: ToolWorkspace) -> None:
    """W10: `[windows-1252]`; UTF-8 has no such line, except where its first line looks like one."""
    context = workspace.tool_context()
    workspace.write("f.1252", "größe\r\n€\r\n".encode("cp1252"))
    assert await text_of(context, path="f.1252") == "[windows-1252]\ngröße\n€\n"
    assert await text_of(context, path="f.1252", offset=2) == "[windows-1252]\n€\n"
    workspace.write("e.1252", b"")
    assert await text_of(context, path="e.1252") == "[windows-1252]\n[the file is empty]"
    workspace.write("utf8", "größe\n".encode())
    assert await text_of(context, path="utf8") == "größe\n"
    workspace.write("looks", b"[windows-1252]\nx\n")
    assert await text_of(context, path="looks") == "[UTF-8]\n[windows-1252]\nx\n"
    path = workspace.write("open.1252", "x\n".encode("cp1252"))
    workspace.documents[str(path)] = OpenDocument("größe\n", 2, True)
    reported = attrs.evolve(context, encodings=EncodingSources(lambda path: "windows1252"))
    assert (await text_of(reported, path="open.1252")).startswith("[windows-1252]\ngröße\n")


async def test_edit_and_write_keep_the_encoding_and_the_question_names_it(workspace: ToolWorkspace) -> None:
    """W10: the same word in the question; evidence has Python's canonical name."""
    path = workspace.write("f.1252", "# größe\r\nx = 1\r\n".encode("cp1252"))
    call = planned(EDIT, workspace.tool_context(), path="f.1252", edits=[{"old": "x = 1", "new": "x = '€'"}])
    preview = call.preview()
    assert isinstance(preview, Preview)
    assert "Its text is written as windows-1252." in preview.text
    assert preview.diff is not None
    assert "+x = '€'" in preview.diff
    (evidence,) = gathered(call)
    assert (evidence.encoding, evidence.line_ending) == ("cp1252", "crlf")
    await carried_out(EDIT, workspace.tool_context(), path="f.1252", edits=[{"old": "x = 1", "new": "x = '€'"}])
    assert path.read_bytes() == "# größe\r\nx = '€'\r\n".encode("cp1252")
    await carried_out(WRITE, workspace.tool_context(), path="f.1252", content="ä\nö\n")
    assert path.read_bytes() == "ä\r\nö\r\n".encode("cp1252")
    await carried_out(WRITE, workspace.tool_context(), path="new.jis", content="名=1\n")
    assert (workspace.root / "new.jis").read_bytes() == "名=1\n".encode("cp932")
    await carried_out(WRITE, workspace.tool_context(), path="new.16", content="名=1\n")
    assert (workspace.root / "new.16").read_bytes() == "\ufeff名=1\n".encode("utf-16-le")


@pytest.mark.parametrize("path", ["f.1252", "new.1252"])
def test_character_that_does_not_fit_is_refused_before_anything_is_touched(workspace: ToolWorkspace, path: str) -> None:
    """W10, case 47: `refused`, reason `encoding`; the file is untouched, no content is stored, no new file is left."""
    before = "größe\n".encode("cp1252")
    workspace.write("f.1252", before)
    context = workspace.tool_context()
    refused = refusal(WRITE, context, path=path, content="Ж\n")
    assert refused.reason == "encoding"
    assert "U+0416" in refused.text
    assert "windows-1252" in refused.text
    assert refusal(EDIT, context, path="f.1252", edits=[{"old": "größe", "new": "名"}]).reason == "encoding"
    assert (workspace.root / "f.1252").read_bytes() == before
    assert sorted(one.name for one in workspace.root.iterdir()) == [".editorconfig", "f.1252"]
    assert not (workspace.session / "checkpoints").exists()


async def test_detected_file_is_read_and_written_only_where_one_encoding_is_left(workspace: ToolWorkspace) -> None:
    """W10, rule 7, case 46: otherwise it is refused untouched."""
    path = workspace.write("f", "größe\n".encode("cp1252"))
    several = detecting(workspace.tool_context(), "cp1252", "iso8859-1")
    assert await text_of(several, path="f") == "[windows-1252]\ngröße\n"
    for refused in (
        refusal(EDIT, several, path="f", edits=[{"old": "größe", "new": "x"}]),
        refusal(WRITE, several, path="f", content="x\n"),
    ):
        assert refused.reason == "encoding"
        assert "may be ISO-8859-1" in refused.text
        assert "steadyhand.files.encoding" in refused.text
    one = detecting(workspace.tool_context(), "cp1252")
    await carried_out(EDIT, one, path="f", edits=[{"old": "größe", "new": "€"}])
    assert path.read_bytes() == b"\x80\n"


async def test_recovery_makes_the_intended_bytes_by_the_recorded_name_alone(workspace: ToolWorkspace) -> None:
    """W10: after a kill nobody is asked again: not the editor, not `.editorconfig`, no library."""
    workspace.write("f.jis", b"\x87\x90 = 1\r\n")  # a character that Python would write in another way
    context = workspace.tool_context()
    cases: list[tuple[Tool, dict[str, object], bytes]] = [
        (EDIT, {"path": "f.jis", "edits": [{"old": "1", "new": "名"}]}, b"\x87\x90 = \x96\xbc\r\n"),
        (WRITE, {"path": "f.jis", "content": "\u2252 = 2\n"}, b"\x87\x90 = 2\r\n"),
        (WRITE, {"path": "new.jis", "content": "名\n"}, b"\x96\xbc\n"),
        (WRITE, {"path": "new.16", "content": "名\n"}, "\ufeff名\n".encode("utf-16-le")),
    ]
    recorded = [(tool, fields, gathered(planned(tool, context, **fields))[0], after) for tool, fields, after in cases]
    (workspace.root / ".editorconfig").unlink()

    def forbidden(*_: object) -> None:
        raise AssertionError("nobody is asked")

    later = attrs.evolve(context, encodings=EncodingSources(forbidden, forbidden, forbidden))  # type: ignore[arg-type]
    for tool, fields, evidence, after in recorded:
        assert intended_content(later, tool.name, json.dumps(fields), evidence) == after


async def test_search_text_finds_text_in_its_encoding(workspace: ToolWorkspace) -> None:
    """W10: rules 1 to 6; where no rule applies, ASCII is found and nothing else, and the reply says so."""
    workspace.write("a.1252", "große Größe\r\nx\r\n".encode("cp1252"))
    workspace.write("b.jis", "表 ソ名\n".encode("cp932"))
    workspace.write("c.16", "\nGröße\n".encode("utf-16-le"))
    workspace.write("d", "\ufeffGröße\n".encode("utf-32-be"))
    workspace.write("e", b"Gr\xf6\xdfe plain\n")
    context = detecting(workspace.tool_context(), "cp1252")
    found = await carried_out(SEARCH, context, pattern="Größe")
    assert found.text.splitlines()[:3] == ["a.1252:1: große Größe", "c.16:2: Größe", "d:1: Größe"]
    assert "1 file in an encoding that nobody names left out" in found.text
    assert found.is_truncated
    assert (await carried_out(SEARCH, context, pattern="ソ名")).text.splitlines()[0] == "b.jis:1: 表 ソ名"
    assert "e:1: Gr\ufffd\ufffde plain" in (await carried_out(SEARCH, context, pattern="plain")).text
    assert "b.jis" not in (await carried_out(SEARCH, context, pattern="\\")).text  # 5C is the second byte of 表


async def test_delete_and_attachment_show_the_text(workspace: ToolWorkspace) -> None:
    """W10, G5: the diff of a deletion and an attached file are decoded by the same rules."""
    workspace.write("f.1252", "größe\n€\n".encode("cp1252"))
    context = workspace.tool_context()
    preview = planned(DELETE, context, path="f.1252").preview()
    assert isinstance(preview, Preview)
    assert preview.diff is not None
    assert "-größe" in preview.diff
    attached = read_attachment(context, FileAttachment(path="f.1252"), "utf-16", lambda path: None)
    assert attached.text == "größe\n€\n"


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_columns_count_in_the_editor_s_units_whatever_the_file_s_encoding(
    workspace: ToolWorkspace, encoding: PositionEncoding, column: int
) -> None:
    """W10: the three position encodings count the text, not the bytes of the file."""
    workspace.write("f", "é𝄞e\u0301x\n".encode("utf-16"))  # é, a pair of surrogates, e with a combining mark
    wanted = Range(Position(0, 0), Position(0, column))
    attached = read_attachment(
        workspace.tool_context(), FileAttachment(path="f", range=wanted), encoding, lambda path: None
    )
    assert attached.text == "é𝄞"


@pytest.mark.parametrize(
    ("codec", "config"), [("utf-8", None), ("utf-16", None), ("cp932", b"[*]\ncharset = shift-jis\n")]
)
def test_line_of_40_mb_is_read_cut_in_bounded_memory(
    workspace: ToolWorkspace, codec: str, config: bytes | None
) -> None:
    """I13, case 64: in every encoding; the line after it is found too."""
    if config is not None:
        workspace.write(".editorconfig", config)
    text = ("名x" * 1000).encode(codec if codec != "utf-16" else "utf-16-le")
    path = workspace.root / "f"
    with path.open("wb") as file:
        file.write("\ufeff".encode("utf-16-le") if codec == "utf-16" else b"")
        for _ in range(40 * 1024 * 1024 // len(text)):
            file.write(text)
        file.write("\nlast\n".encode("utf-16-le" if codec == "utf-16" else codec))
    context = workspace.tool_context()
    call, after = planned(READ, context, path="f"), planned(READ, context, path="f", offset=2)
    tracemalloc.start()
    try:
        first, second = run_call(call), run_call(after)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert first.outcome == second.outcome == "returned"
    assert "was cut; go on with offset 2]" in first.text
    assert second.text.endswith("last\n")
    assert peak < 64 * 1024 * 1024


def test_sparse_file_of_gigabytes_is_neither_read_nor_searched_whole(workspace: ToolWorkspace) -> None:
    """I13: its size costs neither time nor memory."""
    path = workspace.root / "sparse"
    with path.open("wb") as file:
        file.write("größe\n".encode("cp1252") * 10)
        file.truncate(8 * 1024**3)
    context = detecting(workspace.tool_context(), "cp1252")
    tracemalloc.start()
    try:
        read = run_call(planned(READ, context, path="sparse"))
        found = run_call(planned(SEARCH, context, pattern="größe"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (read.outcome, read.reason) == ("failed", "not_text")
    assert "left out" in found.text
    assert peak < 64 * 1024 * 1024
    assert refusal(EDIT, context, path="sparse", edits=[{"old": "größe", "new": "x"}]).reason == "too_large"


async def test_large_file_that_leaves_its_encoding_says_so(
    workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: a large file is decoded piece by piece; bytes that are not valid end the reading with a sentence."""
    monkeypatch.setattr(read_file, "WHOLE_BYTES_MAX", 1000)
    path = workspace.root / "f.jis"
    path.write_bytes("名\n".encode("cp932") * 1_000_000 + b"\x81\x20\nend\n")
    done = await carried_out(READ, workspace.tool_context(), path="f.jis", offset=1_000_002)
    assert (done.outcome, done.reason) == ("failed", "not_text")
    assert "cp932" in done.text
    assert (await text_of(workspace.tool_context(), path="f.jis", offset=3, limit=1)).startswith("[Shift-JIS]\n名\n")


class ByteFilter:
    """`ports.TextFilter` that looks for the bytes alone, as a program does that knows no encodings."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def may_hold(self, text: bytes, paths: Sequence[str], time_s: float, folders: Sequence[str] = ()) -> frozenset[str]:
        self.asked.append(text)
        contents = {path: Path(path).read_bytes() for path in paths}
        return frozenset(path for path, raw in contents.items() if text in raw or b"\0" in raw)


@pytest.mark.parametrize(
    ("pattern", "asked"), [("Größe", [b"Gr"]), ("öß", []), ("plain", [b"plain"]), ("ö plain ß", [b" plain "])]
)
async def test_program_that_excludes_files_loses_no_match_in_any_encoding(
    workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch, pattern: str, asked: list[bytes]
) -> None:
    """W10, decision 19: it is asked for ASCII alone, which has the same bytes in every encoding of the list."""
    monkeypatch.setattr(search_prefilter, "ASKED_FILE_BYTES_MIN", 0)
    monkeypatch.setattr(search_prefilter, "ASKED_BYTES_MIN", 0)
    text = "Größe, ö plain ß, öß\n"
    workspace.write("a.1252", text.encode("cp1252"))
    workspace.write("b.16", text.encode("utf-16-le"))
    workspace.write("c", text.encode())
    workspace.write("d", b"nobody knows: \xf6\n")
    program = ByteFilter()
    found = await carried_out(SEARCH, attrs.evolve(workspace.tool_context(), text_filter=program), pattern=pattern)
    assert found == await carried_out(SEARCH, workspace.tool_context(), pattern=pattern)
    assert [line.split(":")[0] for line in found.text.splitlines()][:3] == ["a.1252", "b.16", "c"]
    assert program.asked == asked
