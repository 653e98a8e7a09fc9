"""`list_files`, `find_files` and `search_text`: what is found, what is left out, and that a part is never the whole."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.ports import File, Folder, OpenDocument
from steadyhand.tools import find_files, list_files, search_text, walk
from steadyhand.tools.find_files import FindFiles
from steadyhand.tools.list_files import ListFiles
from steadyhand.tools.search_text import SearchText, match_chars_max
from steadyhand.tools.tool import Done, Tool, reply_bytes_max
from tests.support.disks import WatchedDisk
from tests.support.ground import Yard, between, carried_out, planned, refusal, running
from tests.support.systems import linux_only, posix_only

LIST, FIND, SEARCH = ListFiles(), FindFiles(), SearchText()
Fields = dict[str, object]
pytestmark = pytest.mark.anyio


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard.under(tmp_path)


async def reply(tool: Tool, yard: Yard, **fields: object) -> Done:
    return await carried_out(tool, yard.ground(), **fields)


def lines(done: Done) -> list[str]:
    """What was found, without the remarks."""
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
async def test_arguments_are_strict_and_the_field_is_named(yard: Yard, tool: Tool, fields: Fields, named: str) -> None:
    """N1: unknown fields, wrong types and bounds are refused with a sentence that names the field."""
    yard.write("f", b"")
    found = refusal(tool, yard.ground(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


@pytest.mark.parametrize(("tool", "fields"), [(LIST, {}), (FIND, {"pattern": "*"}), (SEARCH, {"pattern": "x"})])
async def test_where_a_search_may_begin(yard: Yard, tool: Tool, fields: Fields) -> None:
    """E3, G2, case 103: outside asks, a sibling with the same beginning is outside, our own state is never read."""
    sibling = yard.root.with_name("ws-secrets")
    sibling.mkdir()
    (yard.root / "link").symlink_to(yard.outside)
    (yard.root / "state").symlink_to(yard.state)
    assert planned(tool, yard.ground(), **fields).outside == ()
    for path, place in ((str(sibling), sibling), ("../ws-secrets", sibling), ("link", yard.outside)):
        assert planned(tool, yard.ground(), **fields, path=path).outside == (str(place),)
    assert refusal(tool, yard.ground(), **fields, path="state/sessions").reason == "policy"
    assert refusal(tool, yard.ground(), **fields, path="missing").reason == "not_found"


def lay(yard: Yard) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/c.txt", "build/made.py", "node_modules/p/i.py"):
        yard.write(name, b"needle in " + name.encode() + b"\n")
    yard.write(".gitignore", b"build/\nnode_modules\n")
    yard.write("src/.gitignore", b"*.txt\n")
    yard.write(".git/config", b"needle\n")
    (yard.outside / "secret.py").write_bytes(b"needle\n")
    (yard.root / "out.py").symlink_to(yard.outside / "secret.py")
    (yard.root / "outer").symlink_to(yard.outside)
    (yard.root / "round").symlink_to(".")


@posix_only
async def test_what_ignore_files_name_is_left_out_and_counted(yard: Yard) -> None:
    """G1, case 104: `.git` and ignored paths are not met, nothing is entered through a link, and it says what is left
    out."""
    lay(yard)
    listed = await reply(LIST, yard)
    assert lines(listed) == [
        *(".gitignore", "a.py", f"out.py -> {yard.outside}/secret.py", f"outer -> {yard.outside}"),
        *("round -> .", "src/"),
    ]
    assert "[2 entries left out by ignore files]" in listed.text
    assert not listed.truncated
    found = await reply(FIND, yard, pattern="*.py")
    assert lines(found) == ["a.py", "out.py", "src/b.py", "src/deep/c.py"]
    texts = await reply(SEARCH, yard, pattern="needle")
    assert lines(texts) == [
        *("a.py:1: needle in a.py", "src/b.py:1: needle in src/b.py", "src/deep/c.py:1: needle in src/deep/c.py"),
    ]


@posix_only
async def test_who_asks_for_a_folder_means_it(yard: Yard) -> None:
    """G1: an ignored folder is read where the search begins there; rules from above hold below it all the same."""
    lay(yard)
    yard.write("build/node_modules/x", b"needle\n")
    assert lines(await reply(LIST, yard, path="build")) == ["made.py"]
    assert lines(await reply(FIND, yard, pattern="*.py", path="node_modules")) == ["node_modules/p/i.py"]
    assert lines(await reply(SEARCH, yard, pattern="needle", path="build")) == [
        "build/made.py:1: needle in build/made.py"
    ]
    assert lines(await reply(FIND, yard, pattern="*.txt", path="src/deep")) == []


@posix_only
async def test_the_depth_of_a_listing(yard: Yard) -> None:
    """G1: folders before what is in them; what is deeper is said where more than the folder itself was asked for."""
    for name in ("d/e/f/g", "d/x", "a"):
        yard.write(name, b"")
    assert lines(await reply(LIST, yard)) == ["a", "d/"]
    two = await reply(LIST, yard, depth=2)
    assert lines(two) == ["a", "d/", "d/e/", "d/x"]
    assert "1 folder of the last level is not shown" in two.text
    assert lines(await reply(LIST, yard, depth=20)) == ["a", "d/", "d/e/", "d/e/f/", "d/e/f/g", "d/x"]
    (yard.root / "empty").mkdir()
    assert (await reply(LIST, yard, path="empty")).text == "[the folder is empty]"


async def test_a_pattern_with_a_slash_is_a_path_from_where_the_search_begins(yard: Yard) -> None:
    """G1: and what is found is told relative to the workspace, so that it can be read."""
    for name in ("src/a.py", "src/d/b.py", "a.py", "lib/src/c.py"):
        yard.write(name, b"")
    assert lines(await reply(FIND, yard, pattern="src/**/*.py")) == ["src/a.py", "src/d/b.py"]
    assert lines(await reply(FIND, yard, pattern="*.py", path="src")) == ["src/a.py", "src/d/b.py"]
    assert lines(await reply(FIND, yard, pattern="d/*.py", path="src")) == ["src/d/b.py"]
    assert (await reply(FIND, yard, pattern="*.rs")).text == "[no file fits *.rs]"


@pytest.mark.parametrize(
    ("content", "text", "found"),
    [
        (b"one\ntwo\nthree two\n", "two", [(2, "two"), (3, "three two")]),
        (b"a\r\nb x\rc x", "x", [(2, "b x"), (3, "c x")]),
        (b"x", "x", [(1, "x")]),
        (b"xx x\n\nx\n", "x", [(1, "xx x"), (3, "x")]),
        (b"\xef\xbb\xbfx\n", "x", [(1, "\ufeffx")]),
        (b"a.b\naxb\n", "a.b", [(1, "a.b")]),
        (b"(a+)+$\n", "(a+)+$", [(1, "(a+)+$")]),
        ("größe\n".encode(), "öß", [(1, "größe")]),
        (b"caf\xe9 x\n", "x", [(1, "caf\ufffd x")]),
        (b"tab\tx\x1b[0m\n", "x", [(1, "tab\tx\u241b[0m")]),
        (b"X\n", "x", []),
        (b"a\nb\n", "a\\nb", []),
    ],
)
async def test_lines_that_hold_the_text(yard: Yard, content: bytes, text: str, found: list[tuple[int, str]]) -> None:
    """G1: exactly the text, by lines as an editor counts them, once a line; nothing invisible comes out."""
    yard.write("d/f", content)
    expected = [f"d/f:{number}: {line}" for number, line in found]
    assert lines(await reply(SEARCH, yard, pattern=text)) == expected
    assert lines(await reply(SEARCH, yard, pattern=text, path="d/f")) == expected


async def test_nothing_found_says_that_the_pattern_is_the_text(yard: Yard) -> None:
    """G1: a model that meant a regular expression is told."""
    yard.write("f", b"def main\n")
    assert (await reply(SEARCH, yard, pattern="def .*")).text == "[no line holds 'def .*', as it is written]"


async def test_what_is_not_searched_is_counted(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """G1: binary files are left out; a file above its bound is named as not searched, and the reply as a part."""
    monkeypatch.setattr(search_text, "searched_file_bytes_max", 100)
    yard.write("binary", b"needle\0")
    yard.write("utf16", "needle".encode("utf-16"))
    yard.write("large", b"needle\n" * 20)
    yard.write("small", b"needle\n")
    done = await reply(SEARCH, yard, pattern="needle")
    assert lines(done) == ["small:1: needle"]
    assert "2 binary files left out" in done.text
    assert "1 file above 100 bytes were not searched" in done.text
    assert done.truncated


async def test_only_files_that_fit_are_searched(yard: Yard) -> None:
    """G1: `glob` means what it means for find_files."""
    for name in ("a.py", "d/b.py", "c.txt"):
        yard.write(name, b"x\n")
    assert lines(await reply(SEARCH, yard, pattern="x", glob="*.py")) == ["a.py:1: x", "d/b.py:1: x"]
    assert lines(await reply(SEARCH, yard, pattern="x", glob="d/*")) == ["d/b.py:1: x"]


async def test_unsaved_changes_are_searched_as_the_editor_has_them(yard: Yard) -> None:
    """V1: what the user sees is what is found."""
    path = yard.write("f", b"on disk\n")
    yard.documents[str(path)] = OpenDocument("in the editor\n", 2, True)
    assert lines(await reply(SEARCH, yard, pattern="in the")) == ["f:1: in the editor"]
    assert lines(await reply(SEARCH, yard, pattern="on disk")) == []


async def test_unsaved_changes_are_searched_under_a_name_through_links(yard: Yard, tmp_path: Path) -> None:
    """V1: the editor came to the workspace through a link."""
    yard.write("f", b"on disk\n")
    (tmp_path / "came").symlink_to(yard.root)
    yard.documents[str(tmp_path / "came" / "f")] = OpenDocument("in the editor\n", 2, True)
    assert lines(await reply(SEARCH, yard, pattern="in the")) == ["f:1: in the editor"]


async def test_a_long_line_is_cut_around_the_text(yard: Yard) -> None:
    """I13: the text stands in what is shown, however long the line."""
    yard.write("f", b"a" * 5000 + b"needle" + b"b" * 5000 + b"\n")
    (found,) = lines(await reply(SEARCH, yard, pattern="needle"))
    assert "aneedleb" in found
    assert len(found) <= match_chars_max + len("f:1: ……")


@pytest.mark.parametrize(
    ("tool", "fields", "bound", "value", "shown"),
    [
        (SEARCH, {"pattern": "x", "limit": 3}, None, 0, 3),
        (SEARCH, {"pattern": "x"}, (search_text, "searched_bytes_max"), 3, 2),
        (FIND, {"pattern": "*"}, (find_files, "found_max"), 4, 4),
        (LIST, {}, (list_files, "listed_max"), 4, 4),
        (LIST, {}, (walk, "walked_names_max"), 5, 5),
        (FIND, {"pattern": "*"}, (walk, "walk_s_max"), -1.0, 0),
        (SEARCH, {"pattern": "x"}, (walk, "walk_s_max"), -1.0, 0),
    ],
)
async def test_a_part_is_never_told_as_the_whole(
    yard: Yard,
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
        yard.write(f"f{number}", b"x\n")
    done = await reply(tool, yard, **fields)
    assert len(lines(done)) == shown
    assert "[cut: " in done.text
    assert done.truncated


async def test_a_full_reply_is_cut_at_its_bound(yard: Yard) -> None:
    """I13, J12: names and lines of any length end at the reply's bound."""
    for number in range(300):
        yard.write(f"{number:03}" + "n" * 200, b"x" * 200 + b"\n")
    for tool, fields in ((LIST, {}), (FIND, {"pattern": "*"}), (SEARCH, {"pattern": "x", "limit": 1000})):
        done = await reply(tool, yard, **fields)
        assert len(done.text.encode()) <= reply_bytes_max
        assert "[cut: " in done.text
        assert done.truncated


@linux_only
async def test_names_of_any_bytes_come_out_in_one_line(yard: Yard) -> None:
    """G1: a line end or bytes that are no UTF-8 in a name break neither the reply nor its encoding."""
    for name in (b"a\nb", b"caf\xe9"):
        yard.write(os.fsdecode(name), b"x\n")
    for tool, fields in ((LIST, {}), (FIND, {"pattern": "*"})):
        assert lines(await reply(tool, yard, **fields)) == ["a\\nb", "caf\\xe9"]
    assert lines(await reply(SEARCH, yard, pattern="x")) == ["a\\nb:1: x", "caf\\xe9:1: x"]


@posix_only
async def test_a_folder_swapped_for_a_link_is_not_entered(yard: Yard) -> None:
    """E3, case 104: swapped for a link to the outside before any operation, nothing of the outside is told."""
    (yard.outside / "f.txt").write_bytes(b"needle of theirs\n")
    for number in range(1, 200):
        yard.write("d/f.txt", b"needle of ours\n")
        reached: list[int] = []

        def swap(count: int, name: str, number: int = number, reached: list[int] = reached) -> None:
            if count == number:
                reached.append(count)
                (yard.root / "d").rename(yard.root / f"e{number}")
                (yard.root / "d").symlink_to(yard.outside)

        done = await carried_out(SEARCH, yard.ground(between(swap)), pattern="needle")
        assert "theirs" not in done.text
        if not reached:
            break
        (yard.root / "d").unlink()
        shutil.rmtree(yard.root / f"e{number}")
    else:
        pytest.fail("the operations never end")


async def test_what_cannot_be_read_is_counted_and_the_rest_is_told(yard: Yard) -> None:
    """C7: one folder or file that fails does not take the others with it."""

    class Closed(WatchedDisk):
        def enter(self, folder: Folder, name: str) -> Folder:
            if name == "closed":
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            return super().enter(folder, name)

        def read(self, folder: Folder, name: str, limit: int) -> bytes:
            if name == "bad":
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().read(folder, name, limit)

    for name in ("closed/x", "bad", "good"):
        yard.write(name, b"needle\n")
    ground = yard.ground(Closed(system_disk()))
    done = await carried_out(SEARCH, ground, pattern="needle")
    assert lines(done) == ["good:1: needle"]
    assert "1 file could not be read" in done.text
    assert "1 entry could not be read" in done.text
    assert done.truncated


async def test_the_state_directory_inside_the_workspace_is_not_met(yard: Yard) -> None:
    """G2: even where somebody put it there."""
    yard.write("state/sessions/s/journal.jsonl", b"needle\n")
    yard.write("f", b"needle\n")
    ground = attrs.evolve(yard.ground(), state_directory=str(yard.root / "state"))
    assert lines(await carried_out(LIST, ground)) == ["f"]
    assert lines(await carried_out(SEARCH, ground, pattern="needle")) == ["f:1: needle"]


async def test_every_handle_is_given_back(yard: Yard) -> None:
    """I13: also by a search that ends early."""

    class Open(WatchedDisk):
        handles = 0

        def counted(self, open_it: Callable[[], Folder]) -> Folder:
            opened = open_it()
            self.handles += 1
            return opened

        def open_folder(self, path: str) -> Folder:
            return self.counted(lambda: WatchedDisk.open_folder(self, path))

        def enter(self, folder: Folder, name: str) -> Folder:
            return self.counted(lambda: WatchedDisk.enter(self, folder, name))

        def close(self, handle: Folder | File) -> None:
            self.handles -= 1
            super().close(handle)

    yard.write("a/b/c/f", b"x\nx\nx\n")
    disk = Open(system_disk())
    planned_call = planned(SEARCH, yard.ground(disk), pattern="x", limit=1)
    before = disk.handles
    assert (await planned_call.run(running())).truncated
    assert disk.handles == before == 0
