"""Where paths lead: confinement by components, links included, on the real disk."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.tools.place import Located, display, entered, links_max, locate, make_folders, one_line
from steadyhand.tools.tool import Refusal
from tests.support.ground import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard.under(tmp_path)


def found(yard: Yard, asked: str) -> Located:
    located = locate(yard.ground(), asked)
    assert isinstance(located, Located), located
    return located


def refused(yard: Yard, asked: str) -> Refusal:
    located = locate(yard.ground(), asked)
    assert isinstance(located, Refusal), located
    return located


def test_a_relative_path_begins_at_the_workspace(yard: Yard) -> None:
    """E3: blanks between slashes and single dots say nothing; the result is absolute and displayed relative."""
    yard.write("src/a.txt", b"a")
    for asked in ("src/a.txt", "./src//a.txt", "src/./../src/a.txt", f"{yard.root}/src/a.txt"):
        located = found(yard, asked)
        assert (located.resolved, located.kind, located.inside) == (str(yard.root / "src/a.txt"), "file", True)
        assert display(str(yard.root), located.resolved) == "src/a.txt"
    assert found(yard, ".").resolved == str(yard.root)
    assert display(str(yard.root), str(yard.root)) == "."


def test_inside_is_decided_by_components(yard: Yard) -> None:
    """E3, case 103: a sibling with the same beginning and `..` are outside."""
    sibling = yard.root.with_name("ws-secrets")
    sibling.mkdir()
    (sibling / "k").write_bytes(b"k")
    for asked in (f"{sibling}/k", "../ws-secrets/k", f"{yard.root}/../ws-secrets/k", "a/../../ws-secrets/k"):
        (yard.root / "a").mkdir(exist_ok=True)
        located = found(yard, asked)
        assert (located.resolved, located.inside) == (str(sibling / "k"), False)
        assert display(str(yard.root), located.resolved) == str(sibling / "k")
    assert not found(yard, "a//../..").inside
    assert found(yard, f"../{yard.root.name}/a").inside


def test_a_link_is_decided_by_its_target(yard: Yard) -> None:
    """E3, case 104: links to files and folders outside, and a dangling one, lead outside; `..` goes up there."""
    (yard.outside / "d").mkdir()
    (yard.outside / "d" / "f").write_bytes(b"f")
    (yard.root / "file").symlink_to(yard.outside / "d" / "f")
    (yard.root / "folder").symlink_to("../out/d")
    (yard.root / "dangling").symlink_to(yard.outside / "new")
    assert found(yard, "file").resolved == str(yard.outside / "d" / "f")
    assert found(yard, "folder/f").resolved == str(yard.outside / "d" / "f")
    assert found(yard, "folder/../x").resolved == str(yard.outside / "x")
    dangling = found(yard, "dangling")
    assert (dangling.resolved, dangling.kind, dangling.inside) == (str(yard.outside / "new"), None, False)


def test_a_link_within_the_workspace_stays_inside(yard: Yard) -> None:
    """E3, case 56: the target is what a tool acts on, over a chain of links, relative or absolute."""
    yard.write("real/t.txt", b"t")
    (yard.root / "one").symlink_to("two")
    (yard.root / "two").symlink_to(yard.root / "real")
    located = found(yard, "one/t.txt")
    assert (located.resolved, located.inside, located.kind) == (str(yard.root / "real/t.txt"), True, "file")


def test_links_in_a_circle_end(yard: Yard) -> None:
    """E3, case 56: a loop of two links and a chain above the bound are refused, one at the bound is followed."""
    (yard.root / "a").symlink_to("b")
    (yard.root / "b").symlink_to("a")
    assert refused(yard, "a").reason == "unsupported"
    yard.write("end", b"")
    for number in range(links_max + 1):
        (yard.root / f"l{number}").symlink_to(f"l{number - 1}" if number else "end")
    assert found(yard, f"l{links_max - 1}").kind == "file"
    assert refused(yard, f"l{links_max}").reason == "unsupported"


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "a\0b",
        "x" * 256,
        "a/" * 3000,
        r"\\?\C:\x",
        r"\\server\share\x",
        r"C:\x",
        "C:/x",
        "file:///etc/passwd",
        "~/x",
        r"src\new.txt",
        "new\nline",
        "new/",
        "new/.",
        "missing/../x",
        "\ud800",
    ],
)
def test_what_is_no_path_here_is_bad(yard: Yard, asked: str) -> None:
    """E3, case 103: NUL, too long, other systems' forms, a folder by its slash that is none: bad arguments."""
    assert refused(yard, asked).reason == "bad_arguments"


def test_a_strange_name_that_is_there_is_taken(yard: Yard) -> None:
    """E3: on POSIX a name may look like another system's; a file that has it can be worked on."""
    for name in (r"C:\x", "C:", "~", r"a\b"):
        yard.write(name, b"")
        assert found(yard, name).kind == "file"


def test_a_file_is_no_folder(yard: Yard) -> None:
    """E3: a way through a file leads nowhere."""
    yard.write("f", b"")
    assert refused(yard, "f/x").reason == "not_found"
    assert refused(yard, "f/..").reason == "not_found"
    assert refused(yard, "f/").reason == "bad_arguments"


def test_no_workspace_has_no_files(yard: Yard) -> None:
    """S7: without a folder every path is refused with a sentence that says so."""
    located = locate(attrs.evolve(yard.ground(), root=None), "/etc/passwd")
    assert isinstance(located, Refusal)
    assert "No folder is open" in located.text


def test_a_workspace_that_is_gone_is_a_refusal(yard: Yard) -> None:
    """E3: trouble on the way is told, never raised."""
    yard.root.rmdir()
    assert refused(yard, "a").reason == "changed"


def test_what_asks_in_every_mode_is_seen(yard: Yard) -> None:
    """G2: `.git`, `.vscode`, `.env*`, shell start files, in any case, also through a link and as a folder."""
    yard.write(".git/config", b"")
    (yard.root / "hooks").symlink_to(".git")
    (yard.root / "elsewhere").mkdir()
    (yard.root / ".vscode").symlink_to("elsewhere")
    for asked in (".git/config", "hooks/config", ".GIT/x", ".vscode/x", ".env", "a/.env.local", ".envrc", "x/.bashrc"):
        assert found(yard, asked).protected, asked
    for asked in (".gitignore", "a/env", "git/x", "bashrc", "elsewhere/x"):
        assert not found(yard, asked).protected, asked


def test_a_workspace_below_a_protected_name_is_not_protected_itself(tmp_path: Path) -> None:
    """G2: what stands above the workspace says nothing about its files."""
    yard = Yard.under(tmp_path / ".vscode")
    assert not found(yard, "a.txt").protected
    assert not found(yard, f"{yard.root}/a.txt").protected


def test_the_state_directory_is_seen_through_links(yard: Yard) -> None:
    """G2: the state directory is known by where a path leads."""
    (yard.root / "link").symlink_to(yard.state)
    assert found(yard, "link/sessions/s/journal.jsonl").in_state_directory
    assert found(yard, str(yard.state)).in_state_directory
    assert not found(yard, str(yard.state) + "x").in_state_directory


def test_a_link_put_in_later_leads_nowhere(yard: Yard) -> None:
    """E3: folders are entered without links, so what was inside cannot be turned outside."""
    yard.write("d/f", b"f")
    located = found(yard, "d/f")
    (yard.root / "d").rename(yard.root / "moved")
    (yard.root / "d").symlink_to(yard.outside)
    with pytest.raises(OSError, match=r"."), entered(yard.ground(), located.folders):
        pass
    with pytest.raises(OSError, match=r"."):
        make_folders(yard.ground(), (*located.folders, "made"))
    assert list(yard.outside.iterdir()) == []


def test_missing_folders_are_made_once(yard: Yard) -> None:
    """E3: folders are made below the workspace as asked, and those that are there are left alone."""
    located = found(yard, "a/b/c.txt")
    assert located.missing == 3
    for _ in range(2):
        make_folders(yard.ground(), located.folders)
    assert (yard.root / "a/b").is_dir()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open descriptors cannot be counted here")
def test_no_descriptor_is_left_open(yard: Yard) -> None:
    """E3: every folder opened on the way is closed, also when the path is refused."""
    yard.write("d/e/f", b"")
    (yard.root / "loop").symlink_to("loop")
    before = len(os.listdir("/proc/self/fd"))
    for asked in ("d/e/f", "../x", "loop", "d/e/f/x", "/etc"):
        locate(yard.ground(), asked)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_name_of_one_line_cannot_make_up_lines() -> None:
    """E3: control characters are written out, and what is too long keeps its beginning and end."""
    assert one_line("a\nb\x1b[0m\u2028") == "a\\nb\\x1b[0m\\u2028"
    shown = one_line("start" + "x" * 300 + "/end.py", 40)
    assert len(shown) == 40
    assert shown.startswith("start")
    assert shown.endswith("/end.py")


_names = st.sampled_from(
    ["a", "b", "in", "out", "up", "abs", "dang", "loop", "..", ".", "", "new", ".git", "ws", "ws-x"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(names=st.lists(_names, max_size=8), absolute=st.sampled_from(["", "/", "root"]))
def test_no_path_escapes(tmp_path: Path, names: list[str], absolute: str) -> None:
    """E3, cases 103 and 104: whatever is asked, the answer is what the system itself resolves, and inside says so."""
    yard = Yard.under(tmp_path) if not (tmp_path / "ws").exists() else _standing(tmp_path)
    _links(yard)
    start = {"": "", "/": "/", "root": f"{yard.root}/"}[absolute]
    asked = start + "/".join(names)
    located = locate(yard.ground(), asked)
    if isinstance(located, Refusal):
        return
    true = os.path.realpath(yard.root / asked)
    assert located.resolved == true
    assert located.inside == (os.path.commonpath([str(yard.root), true]) == str(yard.root))
    if located.kind is not None:
        assert os.path.exists(true)


def _standing(tmp_path: Path) -> Yard:
    folder = tmp_path.resolve()
    return Yard(folder / "ws", folder / "state", folder / "state" / "sessions" / "s", folder / "out")


def _links(yard: Yard) -> None:
    if (yard.root / "up").is_symlink():
        return
    (yard.root / "a" / "b").mkdir(parents=True)
    (yard.outside / "a").mkdir()
    for name, target in {
        "in": "a/b",
        "out": str(yard.outside),
        "up": "../",
        "abs": str(yard.root / "a"),
        "dang": "../out/none",
        "loop": "loop",
        "a/up": "../../out",
    }.items():
        (yard.root / name).symlink_to(target)
