"""`list_files`, `find_files` and `search_text`: what is found, what is left out, and that a part is never presented
as the whole.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.ports.disk import File, Folder
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin import find_files, list_files, search_text
from steadyhand.tools.builtin.find_files import FindFiles
from steadyhand.tools.builtin.list_files import ListFiles
from steadyhand.tools.builtin.search_text import MATCH_CHARS_MAX, SearchText
from steadyhand.tools.contract import REPLY_BYTES_MAX, Tool, ToolOutcome
from steadyhand.tools.workspace import walk
from steadyhand.tools.workspace.open_documents import EDITOR_MARK
from tests.support.faults import WatchedDisk, between
from tests.support.systems import linux_only, posix_only
from tests.support.tool_calls import ToolWorkspace, carried_out, planned, refusal, running

LIST, FIND, SEARCH = ListFiles(), FindFiles(), SearchText()
Fields = dict[str, object]
pytestmark = pytest.mark.anyio


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


async def reply(tool: Tool, workspace: ToolWorkspace, **fields: object) -> ToolOutcome:
    return await carried_out(tool, workspace.tool_context(), **fields)


def lines(done: ToolOutcome) -> list[str]:
    """The results, without the remarks."""
    assert done.outcome == "returned", done
    return [line for line in done.text.split("\n") if not line.startswith("[")]


@pytest.mark.parametrize(
    ("tool", "fields", "named"),
    [
        (LIST, {"depth": 0}, "depth"),
        (LIST, {"depth": 21}, "depth"),
        (LIST, {"path": 1}, "path"),
        (LIST, {"all": True}, "all"),
        (LIST, {"path": "f"}, "not a folder"),
        (FIND, {}, "pattern"),
        (FIND, {"pattern": ""}, "empty"),
        (FIND, {"pattern": "[a"}, "not closed"),
        (FIND, {"pattern": "a", "path": "f"}, "not a folder"),
        (SEARCH, {}, "pattern"),
        (SEARCH, {"pattern": ""}, "pattern"),
        (SEARCH, {"pattern": "a\nb"}, "one line"),
        (SEARCH, {"pattern": "a" * 1001}, "longer"),
        (SEARCH, {"pattern": "a", "limit": 0}, "limit"),
        (SEARCH, {"pattern": "a", "limit": 1001}, "limit"),
        (SEARCH, {"pattern": "a", "glob": "["}, "`glob`"),
        (SEARCH, {"pattern": "a", "regex": True}, "regex"),
    ],
)
async def test_list_find_search_invalid_argument_is_refused_by_name(
    workspace: ToolWorkspace, tool: Tool, fields: Fields, named: str
) -> None:
    """N1: unknown fields, wrong types and bounds are refused with a sentence that names the field."""
    workspace.write("f", b"")
    found = refusal(tool, workspace.tool_context(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


@pytest.mark.parametrize(("tool", "fields"), [(LIST, {}), (FIND, {"pattern": "*"}), (SEARCH, {"pattern": "x"})])
async def test_search_start_outside_asks_and_in_the_state_directory_is_refused(
    workspace: ToolWorkspace, tool: Tool, fields: Fields
) -> None:
    """E3, G2, case 103: a path outside asks, a sibling with the same prefix is outside, and the state directory is
    never read.
    """
    sibling = workspace.root.with_name("ws-secrets")
    sibling.mkdir()
    (workspace.root / "link").symlink_to(workspace.outside)
    (workspace.root / "state").symlink_to(workspace.state)
    assert planned(tool, workspace.tool_context(), **fields).outside == ()
    for path, place in ((str(sibling), sibling), ("../ws-secrets", sibling), ("link", workspace.outside)):
        assert planned(tool, workspace.tool_context(), **fields, path=path).outside == (str(place),)
    assert refusal(tool, workspace.tool_context(), **fields, path="state/sessions").reason == "policy"
    assert refusal(tool, workspace.tool_context(), **fields, path="missing").reason == "not_found"


def write_tree(workspace: ToolWorkspace) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/c.txt", "build/made.py", "node_modules/p/i.py"):
        workspace.write(name, b"needle in " + name.encode() + b"\n")
    workspace.write(".gitignore", b"build/\nnode_modules\n")
    workspace.write("src/.gitignore", b"*.txt\n")
    workspace.write(".git/config", b"needle\n")
    (workspace.outside / "secret.py").write_bytes(b"needle\n")
    (workspace.root / "out.py").symlink_to(workspace.outside / "secret.py")
    (workspace.root / "outer").symlink_to(workspace.outside)
    (workspace.root / "round").symlink_to(".")


@posix_only
async def test_search_leaves_out_ignored_paths_and_counts_them(workspace: ToolWorkspace) -> None:
    """G1, case 104: `.git` and ignored paths are skipped, no link is followed, and the reply says what is left out."""
    write_tree(workspace)
    listing = await reply(LIST, workspace)
    assert lines(listing) == [
        *(".gitignore", "a.py", f"out.py -> {workspace.outside}/secret.py", f"outer -> {workspace.outside}"),
        *("round -> .", "src/"),
    ]
    assert "[2 entries left out by ignore files]" in listing.text
    assert not listing.is_truncated
    found = await reply(FIND, workspace, pattern="*.py")
    assert lines(found) == ["a.py", "out.py", "src/b.py", "src/deep/c.py"]
    texts = await reply(SEARCH, workspace, pattern="needle")
    assert lines(texts) == [
        *("a.py:1: needle in a.py", "src/b.py:1: needle in src/b.py", "src/deep/c.py:1: needle in src/deep/c.py"),
    ]


@posix_only
async def test_folder_whose_content_is_ignored_is_not_called_empty(workspace: ToolWorkspace) -> None:
    """Case 128: empty and hidden are two words."""
    workspace.write("made/.gitignore", b"*\n")
    assert (await reply(LIST, workspace, path="made")).text.startswith("[everything in it is left out by ignore files")
    (workspace.root / "bare").mkdir()
    assert (await reply(LIST, workspace, path="bare")).text.startswith("[the folder is empty")


async def test_search_that_starts_in_an_ignored_folder_reads_it(workspace: ToolWorkspace) -> None:
    """G1: an ignored folder is read when the search starts there. Rules from above still apply below it."""
    write_tree(workspace)
    workspace.write("build/node_modules/x", b"needle\n")
    assert lines(await reply(LIST, workspace, path="build")) == ["made.py"]
    assert lines(await reply(FIND, workspace, pattern="*.py", path="node_modules")) == ["node_modules/p/i.py"]
    assert lines(await reply(SEARCH, workspace, pattern="needle", path="build")) == [
        "build/made.py:1: needle in build/made.py"
    ]
    assert lines(await reply(FIND, workspace, pattern="*.txt", path="src/deep")) == []


@posix_only
async def test_list_files_depth_limits_the_levels_and_says_so(workspace: ToolWorkspace) -> None:
    """G1: folders come before their contents. A deeper level is mentioned when more than the folder itself was
    requested.
    """
    for name in ("d/e/f/g", "d/x", "a"):
        workspace.write(name, b"")
    assert lines(await reply(LIST, workspace)) == ["a", "d/"]
    two = await reply(LIST, workspace, depth=2)
    assert lines(two) == ["a", "d/", "d/e/", "d/x"]
    assert "the content of 1 folder on the last level is not shown" in two.text
    assert lines(await reply(LIST, workspace, depth=20)) == ["a", "d/", "d/e/", "d/e/f/", "d/e/f/g", "d/x"]
    (workspace.root / "empty").mkdir()
    assert (await reply(LIST, workspace, path="empty")).text == "[the folder is empty]"


async def test_find_files_pattern_with_a_slash_is_relative_to_the_start(workspace: ToolWorkspace) -> None:
    """G1: the results are relative to the workspace, so that they can be read."""
    for name in ("src/a.py", "src/d/b.py", "a.py", "lib/src/c.py"):
        workspace.write(name, b"")
    assert lines(await reply(FIND, workspace, pattern="src/**/*.py")) == ["src/a.py", "src/d/b.py"]
    assert lines(await reply(FIND, workspace, pattern="*.py", path="src")) == ["src/a.py", "src/d/b.py"]
    assert lines(await reply(FIND, workspace, pattern="d/*.py", path="src")) == ["src/d/b.py"]
    assert (await reply(FIND, workspace, pattern="*.rs")).text == "[no file matches *.rs]"


@pytest.mark.parametrize(
    ("content", "text", "found"),
    [
        (b"one\ntwo\nthree two\n", "two", [(2, "two"), (3, "three two")]),
        (b"a\r\nb x\rc x", "x", [(2, "b x"), (3, "c x")]),
        (b"x", "x", [(1, "x")]),
        (b"xx x\n\nx\n", "x", [(1, "xx x"), (3, "x")]),
        (b"\xef\xbb\xbfx\n", "x", [(1, "x")]),
        (b"a.b\naxb\n", "a.b", [(1, "a.b")]),
        (b"(a+)+$\n", "(a+)+$", [(1, "(a+)+$")]),
        ("größe\n".encode(), "öß", [(1, "größe")]),
        (b"caf\xe9 x\n", "x", [(1, "caf\ufffd x")]),
        (b"tab\tx\x1b[0m\n", "x", [(1, "tab\tx\u241b[0m")]),
        (b"X\n", "x", []),
        (b"a\nb\n", "a\\nb", []),
    ],
)
async def test_search_text_finds_exactly_the_lines_that_contain_the_text(
    workspace: ToolWorkspace, content: bytes, text: str, found: list[tuple[int, str]]
) -> None:
    """G1: exactly the text, by lines as an editor counts them, once a line. No invisible character is in the reply."""
    workspace.write("d/f", content)
    expected = [f"d/f:{number}: {line}" for number, line in found]
    assert lines(await reply(SEARCH, workspace, pattern=text)) == expected
    assert lines(await reply(SEARCH, workspace, pattern=text, path="d/f")) == expected


async def test_search_text_without_a_match_says_that_the_pattern_is_literal(workspace: ToolWorkspace) -> None:
    """G1: a model that meant a regular expression learns it."""
    workspace.write("f", b"def main\n")
    assert (await reply(SEARCH, workspace, pattern="def .*")).text == "[no line contains 'def .*' exactly]"


async def test_search_text_counts_binary_and_too_large_files(
    workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G1: binary files are left out. A file above its bound is named as not searched, and the reply counts as
    a part.
    """
    monkeypatch.setattr(search_text, "SEARCHED_FILE_BYTES_MAX", 100)
    workspace.write("binary", b"needle\0")
    workspace.write("wide", "needle".encode("utf-16-le"))
    workspace.write("large", b"needle\n" * 20)
    workspace.write("small", b"needle\n")
    done = await reply(SEARCH, workspace, pattern="needle")
    assert lines(done) == ["small:1: needle"]
    assert "2 binary files left out" in done.text
    assert "1 file above 100 bytes were not searched" in done.text
    assert done.is_truncated


async def test_search_text_glob_selects_files_as_in_find_files(workspace: ToolWorkspace) -> None:
    """G1: `glob` has the meaning that it has for find_files."""
    for name in ("a.py", "d/b.py", "c.txt"):
        workspace.write(name, b"x\n")
    assert lines(await reply(SEARCH, workspace, pattern="x", glob="*.py")) == ["a.py:1: x", "d/b.py:1: x"]
    assert lines(await reply(SEARCH, workspace, pattern="x", glob="d/*")) == ["d/b.py:1: x"]


async def test_search_text_searches_unsaved_text_of_the_editor(workspace: ToolWorkspace) -> None:
    """V1: the search finds what the user sees."""
    path = workspace.write("f", b"on disk\n")
    workspace.documents[str(path)] = OpenDocument("in the editor\n", 2, True)
    assert lines(await reply(SEARCH, workspace, pattern="in the")) == [f"f {EDITOR_MARK}:1: in the editor"]
    assert lines(await reply(SEARCH, workspace, pattern="on disk")) == []


async def test_search_text_finds_unsaved_text_opened_through_a_link(workspace: ToolWorkspace, tmp_path: Path) -> None:
    """V1: the editor opened the workspace through a link."""
    workspace.write("f", b"on disk\n")
    (tmp_path / "entry").symlink_to(workspace.root)
    workspace.documents[str(tmp_path / "entry" / "f")] = OpenDocument("in the editor\n", 2, True)
    assert lines(await reply(SEARCH, workspace, pattern="in the")) == [f"f {EDITOR_MARK}:1: in the editor"]


async def test_search_text_cuts_a_long_line_around_the_match(workspace: ToolWorkspace) -> None:
    """I13: the match is in the shown part, however long the line."""
    workspace.write("f", b"a" * 5000 + b"needle" + b"b" * 5000 + b"\n")
    (found,) = lines(await reply(SEARCH, workspace, pattern="needle"))
    assert "aneedleb" in found
    assert len(found) <= MATCH_CHARS_MAX + len("f:1: ……")


@pytest.mark.parametrize(
    ("tool", "fields", "bound", "value", "shown"),
    [
        (SEARCH, {"pattern": "x", "limit": 3}, None, 0, 3),
        (SEARCH, {"pattern": "x"}, (search_text, "SEARCHED_BYTES_MAX"), 3, 2),
        (FIND, {"pattern": "*"}, (find_files, "FOUND_MAX"), 4, 4),
        (LIST, {}, (list_files, "LISTED_MAX"), 4, 4),
        (LIST, {}, (walk, "WALKED_NAMES_MAX"), 5, 5),
        (FIND, {"pattern": "*"}, (walk, "WALK_S_MAX"), -1.0, 0),
        (SEARCH, {"pattern": "x"}, (walk, "WALK_S_MAX"), -1.0, 0),
    ],
)
async def test_search_cut_at_any_bound_says_so(
    workspace: ToolWorkspace,
    monkeypatch: pytest.MonkeyPatch,
    tool: Tool,
    fields: Fields,
    bound: tuple[object, str] | None,
    value: float,
    shown: int,
) -> None:
    """I13, case 64: each bound (matches, bytes, names, lines, time) cuts, and the reply says so."""
    if bound is not None:
        monkeypatch.setattr(bound[0], bound[1], value)
    for number in range(10):
        workspace.write(f"f{number}", b"x\n")
    done = await reply(tool, workspace, **fields)
    assert len(lines(done)) == shown
    assert "[cut: " in done.text
    assert done.is_truncated


async def test_search_reply_is_cut_at_its_bound(workspace: ToolWorkspace) -> None:
    """I13, J12: names and lines of any length end at the bound of the reply."""
    for number in range(300):
        workspace.write(f"{number:03}" + "n" * 200, b"x" * 200 + b"\n")
    for tool, fields in ((LIST, {}), (FIND, {"pattern": "*"}), (SEARCH, {"pattern": "x", "limit": 1000})):
        done = await reply(tool, workspace, **fields)
        assert len(done.text.encode()) <= REPLY_BYTES_MAX
        assert "[cut: " in done.text
        assert done.is_truncated


@linux_only
async def test_search_shows_names_of_any_bytes_on_one_line(workspace: ToolWorkspace) -> None:
    """G1: a line end or bytes that are not UTF-8 in a name break neither the reply nor its encoding."""
    for name in (b"a\nb", b"caf\xe9"):
        workspace.write(os.fsdecode(name), b"x\n")
    for tool, fields in ((LIST, {}), (FIND, {"pattern": "*"})):
        assert lines(await reply(tool, workspace, **fields)) == ["a\\nb", "caf\\xe9"]
    assert lines(await reply(SEARCH, workspace, pattern="x")) == ["a\\nb:1: x", "caf\\xe9:1: x"]


@posix_only
async def test_search_never_enters_a_folder_swapped_for_a_link(workspace: ToolWorkspace) -> None:
    """E3, case 104: the folder is swapped for a link to the outside before any operation. Nothing from
    outside is shown.
    """
    (workspace.outside / "f.txt").write_bytes(b"needle of theirs\n")
    for number in range(1, 200):
        workspace.write("d/f.txt", b"needle of ours\n")
        reached: list[int] = []

        def swap(count: int, name: str, number: int = number, reached: list[int] = reached) -> None:
            if count == number:
                reached.append(count)
                (workspace.root / "d").rename(workspace.root / f"e{number}")
                (workspace.root / "d").symlink_to(workspace.outside)

        done = await carried_out(SEARCH, workspace.tool_context(between(swap)), pattern="needle")
        assert "theirs" not in done.text
        if not reached:
            break
        (workspace.root / "d").unlink()
        shutil.rmtree(workspace.root / f"e{number}")
    else:
        pytest.fail("the operations never end")


async def test_search_counts_unreadable_entries_and_shows_the_rest(workspace: ToolWorkspace) -> None:
    """C7: one folder or file that fails does not affect the others."""

    class UnreadableDisk(WatchedDisk):
        def enter(self, folder: Folder, name: str) -> Folder:
            if name == "closed":
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            return super().enter(folder, name)

        def read(self, folder: Folder, name: str, limit: int) -> bytes:
            if name == "bad":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().read(folder, name, limit)

    for name in ("closed/x", "bad", "good"):
        workspace.write(name, b"needle\n")
    context = workspace.tool_context(UnreadableDisk(system_disk()))
    done = await carried_out(SEARCH, context, pattern="needle")
    assert lines(done) == ["good:1: needle"]
    assert "1 file could not be read" in done.text
    assert "1 entry could not be read" in done.text
    assert done.is_truncated


async def test_search_skips_a_state_directory_inside_the_workspace(workspace: ToolWorkspace) -> None:
    """G2: even where someone put it there."""
    workspace.write("state/sessions/s/journal.jsonl", b"needle\n")
    workspace.write("f", b"needle\n")
    context = attrs.evolve(workspace.tool_context(), state_directory=str(workspace.root / "state"))
    assert lines(await carried_out(LIST, context)) == ["f"]
    assert lines(await carried_out(SEARCH, context, pattern="needle")) == ["f:1: needle"]


async def test_search_closes_every_handle(workspace: ToolWorkspace) -> None:
    """I13: also by a search that ends early."""

    class HandleCountingDisk(WatchedDisk):
        handles = 0

        def count_handle(self, open_it: Callable[[], Folder]) -> Folder:
            folder_handle = open_it()
            self.handles += 1
            return folder_handle

        def open_folder(self, path: str) -> Folder:
            return self.count_handle(lambda: WatchedDisk.open_folder(self, path))

        def enter(self, folder: Folder, name: str) -> Folder:
            return self.count_handle(lambda: WatchedDisk.enter(self, folder, name))

        def close(self, handle: Folder | File) -> None:
            self.handles -= 1
            super().close(handle)

    workspace.write("a/b/c/f", b"x\nx\nx\n")
    disk = HandleCountingDisk(system_disk())
    planned_call = planned(SEARCH, workspace.tool_context(disk), pattern="x", limit=1)
    before = disk.handles
    assert (await planned_call.run(running())).is_truncated
    assert disk.handles == before == 0
