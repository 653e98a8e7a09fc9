"""A corpus of small files of every encoding and content through every tool, with bytes compared (row W10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.prompt import FileAttachment
from steadyhand.domain.text.decoding import line_ending_of
from steadyhand.domain.text.encodings import ENCODINGS
from steadyhand.domain.text.lines import text_of_reply
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.edit_file import EditFile
from steadyhand.tools.builtin.find_files import FindFiles
from steadyhand.tools.builtin.list_files import ListFiles
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.read_file import ReadFile
from steadyhand.tools.builtin.search_text import SearchText
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.workspace.attached_file import read_attachment
from tests.support.text_corpus import MARK, NEW, CorpusFile, corpus
from tests.support.tool_calls import ToolWorkspace, carried_out, gathered, planned

pytestmark = pytest.mark.anyio
FILES = tuple(corpus())
ENCODED = {encoding.word: [file for file in FILES if file.encoding is encoding] for encoding in ENCODINGS}


def test_corpus_is_large_and_holds_what_it_says() -> None:
    """At least 150 files; each has its text in its encoding, and the line that is edited once."""
    assert len({file.name for file in FILES}) == len(FILES) >= 150
    assert all(ENCODED.values())
    for file in FILES:
        assert file.raw.decode(file.encoding.name).removeprefix("\ufeff") == file.text
        assert file.text.count(MARK) == 1
        assert file.edited() != file.raw


def workspace_of(folder: Path, files: list[CorpusFile]) -> ToolWorkspace:
    workspace = ToolWorkspace.under(folder)
    said = [f"[{file.name}]\ncharset = {file.charset}\n" for file in files if file.charset is not None]
    workspace.write(".editorconfig", "".join(said).encode())
    for file in files:
        workspace.write(file.name, file.raw)
    return workspace


def shown(text: str) -> str:
    """The text as a reply shows it: with LF, but as it is where line ends are mixed or a lone CR."""
    return text if line_ending_of(text) == "mixed" else text.replace("\r\n", "\n")


@pytest.mark.parametrize("word", ENCODED)
async def test_reading_tools_show_the_text_and_change_no_byte(tmp_path: Path, word: str) -> None:
    """W10, G1: read, searched, found, listed and attached; the files are as before, byte by byte."""
    files = ENCODED[word]
    workspace = workspace_of(tmp_path, files)
    context = workspace.tool_context()
    for file in files:
        reply = (await carried_out(ReadFile(), context, path=file.name)).text
        assert text_of_reply(reply) == shown(file.text), file.name
        assert reply.startswith(f"[{word}]\n") == (word != "UTF-8" or "heading" in file.name)
        first = file.text.replace("\r", "\n").split("\n")[0]
        attached = read_attachment(context, FileAttachment(path=file.name), "utf-16", lambda path: None)
        assert attached.text == file.text.replace("\r\n", "\n")
        if first.strip().isprintable() and 0 < len(first) < 100:
            found = await carried_out(SearchText(), context, pattern=first, path=file.name)
            assert f"{found.text}\n".startswith(f"{file.name}:1: {first}\n"), file.name
    found = await carried_out(SearchText(), context, pattern=MARK, limit=1000)
    assert {line.split(":")[0] for line in found.text.split("\n") if MARK in line} == {file.name for file in files}
    listed = (await carried_out(ListFiles(), context)).text
    assert all(file.name in listed for file in files)
    assert files[0].name in (await carried_out(FindFiles(), context, pattern="*.txt")).text
    assert all((workspace.root / file.name).read_bytes() == file.raw for file in files)


@pytest.mark.parametrize("word", ENCODED)
async def test_writing_tools_keep_every_other_byte(tmp_path: Path, word: str) -> None:
    """W9, W10, case 47: an edit changes its line alone; writing what was read changes nothing; a move keeps all
    bytes; a deletion stores them."""
    files = ENCODED[word]
    workspace = workspace_of(tmp_path, files)
    context = workspace.tool_context()
    for file in files:
        path = workspace.root / file.name
        reading = text_of_reply((await carried_out(ReadFile(), context, path=file.name)).text)
        assert (
            "already has exactly this content"
            in (await carried_out(WriteFile(), context, path=file.name, content=reading)).text
        )
        done = await carried_out(EditFile(), context, path=file.name, edits=[{"old": MARK, "new": NEW}])
        assert done.outcome == "returned", done.text
        assert path.read_bytes() == file.edited(), file.name
        await carried_out(EditFile(), context, path=file.name, edits=[{"old": NEW, "new": MARK}])
        assert path.read_bytes() == file.raw, file.name
        await carried_out(MoveFile(), context, **{"from": file.name, "to": f"moved/{file.name}"})
        assert (workspace.root / "moved" / file.name).read_bytes() == file.raw
        (evidence,) = gathered(planned(DeleteFile(), context, path=f"moved/{file.name}"))
        assert evidence.checkpoint == sha256(file.raw)
        assert (workspace.session / "checkpoints" / sha256(file.raw)).read_bytes() == file.raw
