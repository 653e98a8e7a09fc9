"""`search_text` with ripgrep gives exactly the reply that it gives without: over generated trees, and where ripgrep
cannot decide.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.adapters.ripgrep import Ripgrep
from steadyhand.ports.editor import OpenDocument
from steadyhand.ports.system import TextFilter
from steadyhand.tools.builtin import search_text
from steadyhand.tools.builtin.search_text import SEARCHED_FILE_BYTES_MAX, PlannedTextSearch, SearchText
from steadyhand.tools.contract import ToolOutcome
from steadyhand.tools.workspace import search_prefilter, walk
from steadyhand.tools.workspace.search_prefilter import ASKED_BYTES_MIN, ASKED_FILE_BYTES_MIN
from tests.support.systems import posix_only
from tests.support.tool_calls import ToolWorkspace, planned
from tests.support.tools import require_tool

SEARCH = SearchText()
Fields = dict[str, object]

names = st.sampled_from(
    ["a", "b.py", ".hidden", "é", "two words", "-n", "x;y", "node_modules", ".gitignore", "n\udcff"]
)
pieces = st.sampled_from(
    [
        *(b"needle", b"needl", b"e", b"NEEDLE", b"a.b", b"axb", "é".encode(), b"\xe9", b"\xff\xfe", b"\xef\xbb\xbf"),
        *(b"\0", b"\n", b"\r\n", b"\r", b" ", b"\x1b[31m", "needle".encode("utf-16"), b"x" * 400),
    ]
)
contents = st.lists(pieces, max_size=6).map(b"".join)
ignoring = st.sampled_from([b"", b"*.py\n", b"node_modules/\n", b"!b.py\n", b"a\n"])
patterns = st.sampled_from(["needle", "e", "a.b", "é", "\\", "-n", "x", "\x1b[31m", "needle\x85", "$"])


@attrs.frozen
class Tree:
    files: dict[tuple[str, ...], bytes]
    ignored: bytes
    links: dict[str, str]
    unsaved: bool


trees = st.builds(
    Tree,
    st.dictionaries(st.lists(names, min_size=1, max_size=3).map(tuple), contents, max_size=8),
    ignoring,
    st.dictionaries(st.sampled_from(["in", "out", "round"]), st.sampled_from(["a", "../out", "."]), max_size=2),
    st.booleans(),
)


def build_workspace(tree: Tree, folder: Path) -> ToolWorkspace:
    workspace = ToolWorkspace.under(folder)
    (workspace.outside / "secret").write_bytes(b"needle")
    workspace.write(".gitignore", tree.ignored)
    for path, content in tree.files.items():
        try:
            workspace.write(os.path.join(*path), content)
        except (NotADirectoryError, IsADirectoryError, FileExistsError):
            continue  # the name is both a file and a folder
        if tree.unsaved and len(workspace.documents) < 2:
            text = OpenDocument("needle in the editor", 1, unsaved=True)
            workspace.documents[str(workspace.root / os.path.join(*path))] = text
    for name, target in tree.links.items():
        (workspace.root / name).symlink_to(target)
    return workspace


def search_reply(workspace: ToolWorkspace, text_filter: TextFilter | None, fields: Fields) -> ToolOutcome:
    context = attrs.evolve(workspace.tool_context(), text_filter=text_filter)
    call = planned(SEARCH, context, **fields)
    assert isinstance(call, PlannedTextSearch)
    return call._run()


def system_ripgrep() -> Ripgrep:
    folder = str(Path(require_tool("rg")).parent)
    return Ripgrep(lambda: {"PATH": folder})


@pytest.fixture
def every_file_is_filtered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filter small files in small batches too, so that a small tree has several batches."""
    monkeypatch.setattr(search_prefilter, "ASKED_FILE_BYTES_MIN", 0)
    monkeypatch.setattr(search_prefilter, "ASKED_BYTES_MIN", 0)
    monkeypatch.setattr(search_prefilter, "BATCH_FILES_MAX", 3)


@attrs.define
class RecordingFilter:
    """A filter that passes on, and records its requests and answers."""

    inner: TextFilter
    asked: list[Sequence[str]] = attrs.field(factory=list)
    ruled_out: int = 0
    always_answered: bool = True

    def may_hold(
        self, text: bytes, paths: Sequence[str], time_s: float, folders: Sequence[str] = ()
    ) -> frozenset[str] | None:
        answer = self.inner.may_hold(text, paths, time_s, folders)
        self.asked.append(paths)
        self.always_answered = self.always_answered and answer is not None
        self.ruled_out += 0 if answer is None else len(frozenset(paths) - answer)
        return answer


@posix_only
@pytest.mark.usefixtures("every_file_is_filtered")
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(trees, patterns, st.sampled_from([None, "*.py", "a"]), st.sampled_from([None, 1, 3]))
def test_search_with_and_without_ripgrep_gives_the_same_reply(
    tree: Tree, pattern: str, glob: str | None, limit: int | None
) -> None:
    """G1, case 104: order, ignore files, bounds, binary files, hidden files, line ends, encodings, bytes that are not
    UTF-8, links and unsaved texts. The whole reply is the same, and ripgrep answered every time.
    """
    fields: Fields = {"pattern": pattern}
    fields |= {"glob": glob} if glob else {}
    fields |= {"limit": limit} if limit else {}
    with tempfile.TemporaryDirectory() as folder:
        workspace = build_workspace(tree, Path(folder))
        recording = RecordingFilter(system_ripgrep())
        assert search_reply(workspace, recording, fields) == search_reply(workspace, None, fields)
        assert recording.always_answered


@posix_only
@pytest.mark.usefixtures("every_file_is_filtered")
def test_ripgrep_rules_out_files_and_binary_counts_stay_the_same(tmp_path: Path) -> None:
    """G1: it rules out files that contain neither the text nor a NUL, so binary files are counted without
    being listed.
    """
    workspace = ToolWorkspace.under(tmp_path)
    for number in range(20):
        workspace.write(f"f{number:02}", b"nothing here\n" * number)
    workspace.write("f05", b"a needle\n")
    workspace.write("f06", b"\0needle\n")
    recording = RecordingFilter(system_ripgrep())
    done = search_reply(workspace, recording, {"pattern": "needle"})
    assert done.text == "f05:1: a needle\n[1 binary file left out]"
    assert recording.ruled_out == 18
    assert len(recording.asked) == 7


class WrongFilter:
    """Rules out every file."""

    def may_hold(
        self, text: bytes, paths: Sequence[str], time_s: float, folders: Sequence[str] = ()
    ) -> frozenset[str] | None:
        return frozenset()


class SilentFilter:
    def may_hold(
        self, text: bytes, paths: Sequence[str], time_s: float, folders: Sequence[str] = ()
    ) -> frozenset[str] | None:
        return None


@pytest.mark.usefixtures("every_file_is_filtered")
def test_wrong_filter_changes_the_reply_and_a_silent_one_does_not(tmp_path: Path) -> None:
    """G1: the comparison of this file can fail. A filter that cannot decide changes no reply."""
    workspace = ToolWorkspace.under(tmp_path)
    workspace.write("a", b"needle\n")
    fields: Fields = {"pattern": "needle"}
    assert search_reply(workspace, WrongFilter(), fields) != search_reply(workspace, None, fields)
    assert search_reply(workspace, SilentFilter(), fields) == search_reply(workspace, None, fields)


def test_ripgrep_without_a_reliable_answer_gives_none(tmp_path: Path) -> None:
    """G1: a missing file, no time, an older or another program, or none at all: no answer, so all files are
    read here.
    """
    rg = system_ripgrep()
    present, gone = tmp_path / "a", tmp_path / "gone"
    present.write_bytes(b"needle")
    assert rg.may_hold(b"needle", [str(present)], 5.0) == frozenset({str(present)})
    assert rg.may_hold(b"other", [str(present)], 5.0) == frozenset()
    assert rg.may_hold(b"needle", [str(present), str(gone)], 5.0) is None
    assert rg.may_hold(b"needle", [str(present)], 0.0) is None
    assert Ripgrep(lambda: {"PATH": "bin:"}).may_hold(b"needle", [str(present)], 5.0) is None
    other = tmp_path / "bin"
    other.mkdir()
    (other / "rg").write_text("#!/bin/sh\necho who are you >&2\n")
    (other / "rg").chmod(0o755)
    assert Ripgrep(lambda: {"PATH": str(other)}).may_hold(b"needle", [str(present)], 5.0) is None


class CountingFilter:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def may_hold(
        self, text: bytes, paths: Sequence[str], time_s: float, folders: Sequence[str] = ()
    ) -> frozenset[str] | None:
        self.asked.append(len(paths))
        return frozenset(paths)


def test_ripgrep_is_not_asked_about_small_or_too_large_files(tmp_path: Path) -> None:
    """I13: bounds of a batch. Below them files are read directly."""
    workspace = ToolWorkspace.under(tmp_path)
    for number in range(3):
        workspace.write(f"small{number}", b"x" * (ASKED_FILE_BYTES_MIN - 1))
    counting = CountingFilter()
    search_reply(workspace, counting, {"pattern": "needle"})
    assert counting.asked == []
    workspace.write("large", b"x" * (SEARCHED_FILE_BYTES_MAX + 1))
    workspace.write("fits", b"x" * ASKED_BYTES_MIN)
    done = search_reply(workspace, counting, {"pattern": "needle"})
    assert counting.asked == [1]
    assert "1 file above" in done.text


@pytest.mark.usefixtures("every_file_is_filtered")
def test_search_with_ripgrep_keeps_the_bounds_of_time_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I13, G1: a search that runs out of time or bytes says so, as without ripgrep. The names for one child
    are bounded.
    """
    workspace = ToolWorkspace.under(tmp_path)
    for number in range(6):
        workspace.write(f"f{number}", b"x" * 100)
    monkeypatch.setattr(search_text, "SEARCHED_BYTES_MAX", 250)
    fields: Fields = {"pattern": "needle"}
    assert search_reply(workspace, system_ripgrep(), fields) == search_reply(workspace, None, fields)
    assert "ended after 250 bytes" in search_reply(workspace, system_ripgrep(), fields).text
    counting = CountingFilter()
    monkeypatch.setattr(search_prefilter, "BATCH_NAME_BYTES_MAX", 1)
    search_reply(workspace, counting, fields)
    assert set(counting.asked) == {1}
    monkeypatch.setattr(walk, "WALK_S_MAX", -1.0)
    assert "ended after -1 seconds" in search_reply(workspace, system_ripgrep(), fields).text
