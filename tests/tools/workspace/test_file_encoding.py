"""Who names the encoding of a file of the workspace: the editor, `.editorconfig`, the setting (row W10)."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from steadyhand.domain.settings import EncodingRule
from steadyhand.domain.text.decoding import FileText, NotText
from steadyhand.ports.editor import OpenDocument
from steadyhand.ports.encodings import EncodingSources
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.file_encoding import CONFIG_BYTES_MAX, decode_file, new_text_at
from steadyhand.tools.workspace.paths import ResolvedPath, locate
from tests.support.tool_calls import ToolWorkspace


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def with_sources(
    context: ToolContext, editor: dict[str, str] | None = None, *rules: EncodingRule, likely: tuple[str, ...] = ()
) -> ToolContext:
    return attrs.evolve(context, encodings=EncodingSources((editor or {}).get, lambda: rules, lambda sample: likely))


def word_at(context: ToolContext, path: str, raw: bytes = b"caf\xe9\n") -> str | None:
    located = locate(context, path)
    assert isinstance(located, ResolvedPath)
    found = decode_file(context, located, raw)
    return found.encoding.word if isinstance(found, FileText) else None


def test_editor_is_asked_by_every_name_of_the_file(workspace: ToolWorkspace) -> None:
    """W10, rule 2: the editor knows a file by the name it was opened with, perhaps a link."""
    real = workspace.write("real", b"caf\xe9\n")
    (workspace.root / "link").symlink_to("real")
    context = workspace.tool_context()
    assert word_at(with_sources(context, {str(real): "koi8r"}), "link") == "KOI8-R"
    assert word_at(with_sources(context, {str(workspace.root / "link"): "koi8r"}), "link") == "KOI8-R"
    assert word_at(with_sources(context, {str(real) + "x": "koi8r"}), "link") is None


def test_editorconfig_of_the_nearest_folder_counts_up_to_the_workspace(workspace: ToolWorkspace) -> None:
    """W10, rule 4: the files from the file's folder up to the workspace folder, and none above it."""
    (workspace.root.parent / ".editorconfig").write_text("[*]\ncharset = koi8-r\n")
    context = workspace.tool_context()
    assert word_at(context, "a/b/f.txt") is None
    workspace.write(".editorconfig", b"[*.txt]\ncharset = latin1\n[*.ru]\ncharset = koi8-r\n")
    workspace.write("a/.editorconfig", b"[b/*.txt]\ncharset = windows-1251\n")
    assert word_at(context, "a/b/f.txt") == "windows-1251"
    assert word_at(context, "a/f.txt") == "ISO-8859-1"
    assert word_at(context, "a/f.ru") == "KOI8-R"
    assert word_at(context, "a/f.md") is None
    workspace.write("a/.editorconfig", b"root = true\n")
    assert word_at(context, "a/b/f.txt") is None
    outside = workspace.outside / "f.txt"
    (workspace.outside / ".editorconfig").write_text("[*]\ncharset = latin1\n")
    assert word_at(context, str(outside)) is None


def test_editorconfig_that_cannot_be_trusted_to_be_one_says_nothing(workspace: ToolWorkspace) -> None:
    """E3, I13: a link, a folder, a file that is too large or not UTF-8."""
    context = workspace.tool_context()
    said = b"[*]\ncharset = latin1\n"
    (workspace.outside / "config").write_bytes(said)
    (workspace.root / ".editorconfig").symlink_to(workspace.outside / "config")
    assert word_at(context, "f") is None
    (workspace.root / ".editorconfig").unlink()
    for content in (said + b"#" * CONFIG_BYTES_MAX, said + b"\xff"):
        workspace.write(".editorconfig", content)
        assert word_at(context, "f") is None
    (workspace.root / ".editorconfig").unlink()
    (workspace.root / ".editorconfig").mkdir()
    assert word_at(context, "f") is None


def test_setting_matches_paths_and_languages_of_open_documents(workspace: ToolWorkspace) -> None:
    """W10, rule 5: the first entry that fits; a language is known of open documents alone."""
    path = workspace.write("d/f.txt", b"caf\xe9\n")
    context = with_sources(
        workspace.tool_context(),
        None,
        EncodingRule("koi8r", language="russian"),
        EncodingRule("windows1251", match="d/*.txt", language="latin"),
        EncodingRule("latin1", match="d/*.txt"),
        EncodingRule("windows1252"),
    )
    assert word_at(context, "d/f.txt") == "ISO-8859-1"
    assert word_at(context, "f.txt") == "windows-1252"
    workspace.documents[str(path)] = OpenDocument("", 1, False, "russian")
    assert word_at(context, "d/f.txt") == "KOI8-R"
    workspace.documents[str(path)] = OpenDocument("", 1, False, "latin")
    assert word_at(context, "d/f.txt") == "windows-1251"
    workspace.write(".editorconfig", b"[*]\ncharset = iso-8859-15\n")
    assert word_at(context, "d/f.txt") == "ISO-8859-15"  # rule 4 before rule 5


def test_new_file_is_written_as_its_path_says(workspace: ToolWorkspace) -> None:
    """W10: a new file gets the encoding in which an empty one would be read; UTF-8 where nothing says otherwise."""
    context = with_sources(workspace.tool_context(), None, EncodingRule("shiftjis", match="*.sjis"))

    def new_at(path: str) -> tuple[str, bytes]:
        located = locate(context, path)
        assert isinstance(located, ResolvedPath)
        found = new_text_at(context, located)
        return found.encoding.word, found.mark

    assert new_at("f") == ("UTF-8", b"")
    assert new_at("f.sjis") == ("Shift-JIS", b"")
    workspace.write(
        ".editorconfig", b"[*.bom]\ncharset = utf-8-bom\n[*.wide]\ncharset = utf-16be\n[*]\nindent_size=1\n"
    )
    assert new_at("f.bom") == ("UTF-8", b"\xef\xbb\xbf")
    assert new_at("f.wide") == ("UTF-16 BE", b"\xfe\xff")
    assert new_at("f.sjis") == ("Shift-JIS", b"")


def test_nobody_knows_is_no_text(workspace: ToolWorkspace) -> None:
    """W10: without a library that detects it the file is no text, and the reason says what to do."""
    located = locate(workspace.tool_context(), "f")
    assert isinstance(located, ResolvedPath)
    found = decode_file(workspace.tool_context(), located, b"caf\xe9\n")
    assert isinstance(found, NotText)
    assert "steadyhand.files.encoding" in found.reason
    assert word_at(with_sources(workspace.tool_context(), likely=("cp1252",)), "f") == "windows-1252"
