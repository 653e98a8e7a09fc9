"""Resolution of paths: confinement by components, links included, on the real disk."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.domain.views.render import display_path
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.workspace.paths import (
    LINKS_MAX,
    ResolvedPath,
    locate,
    make_folders,
    one_line,
    open_folder,
)
from tests.support.tool_calls import ToolWorkspace


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def resolve_path(workspace: ToolWorkspace, asked: str) -> ResolvedPath:
    located = locate(workspace.tool_context(), asked)
    assert isinstance(located, ResolvedPath), located
    return located


def path_refusal(workspace: ToolWorkspace, asked: str) -> Refusal:
    located = locate(workspace.tool_context(), asked)
    assert isinstance(located, Refusal), located
    return located


def test_relative_path_begins_at_the_workspace(workspace: ToolWorkspace) -> None:
    """Row E3: Repeated slashes and single dots have no meaning. The result is absolute and displayed relative."""
    workspace.write("src/a.txt", b"a")
    for asked in ("src/a.txt", "./src//a.txt", "src/./../src/a.txt", f"{workspace.root}/src/a.txt"):
        located = resolve_path(workspace, asked)
        assert (located.resolved, located.kind, located.is_inside) == (str(workspace.root / "src/a.txt"), "file", True)
        assert display_path(located.resolved, str(workspace.root)) == "src/a.txt"
    assert resolve_path(workspace, ".").resolved == str(workspace.root)
    assert display_path(str(workspace.root), str(workspace.root)) == "."


def test_inside_is_decided_by_components(workspace: ToolWorkspace) -> None:
    """Row E3, case 103: A sibling with the same beginning and a path through `..` are outside."""
    sibling = workspace.root.with_name("ws-secrets")
    sibling.mkdir()
    (sibling / "k").write_bytes(b"k")
    for asked in (f"{sibling}/k", "../ws-secrets/k", f"{workspace.root}/../ws-secrets/k", "a/../../ws-secrets/k"):
        (workspace.root / "a").mkdir(exist_ok=True)
        located = resolve_path(workspace, asked)
        assert (located.resolved, located.is_inside) == (str(sibling / "k"), False)
        assert display_path(located.resolved, str(workspace.root)) == str(sibling / "k")
    assert not resolve_path(workspace, "a//../..").is_inside
    assert resolve_path(workspace, f"../{workspace.root.name}/a").is_inside


def test_link_to_the_outside_is_outside(workspace: ToolWorkspace) -> None:
    """Row E3, case 104: Links to files and folders outside, and a dangling one, lead outside. `..` after a link goes
    up from its target."""
    (workspace.outside / "d").mkdir()
    (workspace.outside / "d" / "f").write_bytes(b"f")
    (workspace.root / "file").symlink_to(workspace.outside / "d" / "f")
    (workspace.root / "folder").symlink_to("../out/d")
    (workspace.root / "dangling").symlink_to(workspace.outside / "new")
    assert resolve_path(workspace, "file").resolved == str(workspace.outside / "d" / "f")
    assert resolve_path(workspace, "folder/f").resolved == str(workspace.outside / "d" / "f")
    assert resolve_path(workspace, "folder/../x").resolved == str(workspace.outside / "x")
    dangling = resolve_path(workspace, "dangling")
    assert (dangling.resolved, dangling.kind, dangling.is_inside) == (str(workspace.outside / "new"), None, False)


def test_link_within_the_workspace_is_inside(workspace: ToolWorkspace) -> None:
    """Row E3, case 56: A tool acts on the target, over a chain of links, relative or absolute."""
    workspace.write("real/t.txt", b"t")
    (workspace.root / "one").symlink_to("two")
    (workspace.root / "two").symlink_to(workspace.root / "real")
    located = resolve_path(workspace, "one/t.txt")
    assert (located.resolved, located.is_inside, located.kind) == (str(workspace.root / "real/t.txt"), True, "file")


def test_link_loop_and_chain_above_the_bound_are_refused(workspace: ToolWorkspace) -> None:
    """Row E3, case 56: A loop of two links and a chain above the bound are refused. A chain at the bound is
    followed."""
    (workspace.root / "a").symlink_to("b")
    (workspace.root / "b").symlink_to("a")
    assert path_refusal(workspace, "a").reason == "unsupported"
    workspace.write("end", b"")
    for number in range(LINKS_MAX + 1):
        (workspace.root / f"l{number}").symlink_to(f"l{number - 1}" if number else "end")
    assert resolve_path(workspace, f"l{LINKS_MAX - 1}").kind == "file"
    assert path_refusal(workspace, f"l{LINKS_MAX}").reason == "unsupported"


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
def test_invalid_path_is_a_bad_argument(workspace: ToolWorkspace, asked: str) -> None:
    """Row E3, case 103: NUL, a path that is too long, the forms of other systems, and a trailing slash without a
    folder are bad arguments."""
    assert path_refusal(workspace, asked).reason == "bad_arguments"


def test_existing_file_with_a_foreign_name_is_found(workspace: ToolWorkspace) -> None:
    """Row E3: On POSIX a name may look like that of another system. A tool can work on a file that has it."""
    for name in (r"C:\x", "C:", "~", r"a\b"):
        workspace.write(name, b"")
        assert resolve_path(workspace, name).kind == "file"


def test_path_through_a_file_is_refused(workspace: ToolWorkspace) -> None:
    """Row E3: A path through a file leads nowhere."""
    workspace.write("f", b"")
    assert path_refusal(workspace, "f/x").reason == "not_found"
    assert path_refusal(workspace, "f/..").reason == "not_found"
    assert path_refusal(workspace, "f/").reason == "bad_arguments"


def test_path_without_a_workspace_is_refused(workspace: ToolWorkspace) -> None:
    """Row S7: Without a folder every path is refused with a sentence that says so."""
    located = locate(attrs.evolve(workspace.tool_context(), root=None), "/etc/passwd")
    assert isinstance(located, Refusal)
    assert "No folder is open" in located.text


def test_path_in_a_missing_workspace_is_refused(workspace: ToolWorkspace) -> None:
    """Row E3: An error on the way is returned, never raised."""
    workspace.root.rmdir()
    assert path_refusal(workspace, "a").reason == "changed"


def test_protected_path_is_recognised_in_every_form(workspace: ToolWorkspace) -> None:
    """Row G2: `.git`, `.vscode`, `.env*` and shell start files are protected in any case, also through a link and as
    a folder."""
    workspace.write(".git/config", b"")
    (workspace.root / "hooks").symlink_to(".git")
    (workspace.root / "elsewhere").mkdir()
    (workspace.root / ".vscode").symlink_to("elsewhere")
    for asked in (".git/config", "hooks/config", ".GIT/x", ".vscode/x", ".env", "a/.env.local", ".envrc", "x/.bashrc"):
        assert resolve_path(workspace, asked).is_protected, asked
    for asked in (".gitignore", "a/env", "git/x", "bashrc", "elsewhere/x"):
        assert not resolve_path(workspace, asked).is_protected, asked


def test_interpreter_inside_the_workspace_is_protected(workspace: ToolWorkspace) -> None:
    """Row O4: what is in the server's prefix, and a folder that contains it, asks in every mode, also through a link.
    Its neighbours do not, and neither does a workspace that is inside the prefix, such as one below /usr."""
    workspace.write("tools/.venv/lib/python3/site-packages/anyio.py", b"")
    (workspace.root / "link").symlink_to("tools/.venv/lib")
    within = attrs.evolve(workspace.tool_context(), own_folders=(f"{workspace.root}/tools/.venv",))
    around = attrs.evolve(workspace.tool_context(), own_folders=(str(workspace.base),))

    def protected(context: ToolContext, asked: str) -> bool:
        located = locate(context, asked)
        assert isinstance(located, ResolvedPath), located
        return located.is_protected

    for asked in ("tools/.venv", "tools/.venv/bin/python", "link/python3/site-packages/anyio.py", "tools"):
        assert protected(within, asked), asked
    for asked in (".", "a.txt", "tools/x", "tools/.venv2/x", "../x"):
        assert not protected(within, asked), asked
    assert not protected(around, "a.txt")


def test_workspace_below_a_protected_name_is_not_protected(tmp_path: Path) -> None:
    """Row G2: The names above the workspace say nothing about its files."""
    workspace = ToolWorkspace.under(tmp_path / ".vscode")
    assert not resolve_path(workspace, "a.txt").is_protected
    assert not resolve_path(workspace, f"{workspace.root}/a.txt").is_protected


def test_state_directory_is_recognised_through_links(workspace: ToolWorkspace) -> None:
    """Row G2: The target of a path decides whether it is in the state directory."""
    (workspace.root / "link").symlink_to(workspace.state)
    assert resolve_path(workspace, "link/sessions/s/journal.jsonl").is_in_state_directory
    assert resolve_path(workspace, str(workspace.state)).is_in_state_directory
    assert not resolve_path(workspace, str(workspace.state) + "x").is_in_state_directory


def test_link_created_after_resolution_is_not_followed(workspace: ToolWorkspace) -> None:
    """Row E3: Folders are entered without following links, so what was inside cannot be turned outside."""
    workspace.write("d/f", b"f")
    located = resolve_path(workspace, "d/f")
    (workspace.root / "d").rename(workspace.root / "moved")
    (workspace.root / "d").symlink_to(workspace.outside)
    with pytest.raises(OSError, match=r"."), open_folder(workspace.tool_context(), located.folders):
        pass
    with pytest.raises(OSError, match=r"."):
        make_folders(workspace.tool_context(), (*located.folders, "made"))
    assert list(workspace.outside.iterdir()) == []


def test_make_folders_creates_only_missing_folders(workspace: ToolWorkspace) -> None:
    """Row E3: Folders are made below the workspace as asked, and existing ones are left alone."""
    located = resolve_path(workspace, "a/b/c.txt")
    assert located.missing_count == 3
    for _ in range(2):
        make_folders(workspace.tool_context(), located.folders)
    assert (workspace.root / "a/b").is_dir()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open descriptors cannot be counted here")
def test_locate_leaves_no_descriptor_open(workspace: ToolWorkspace) -> None:
    """Row E3: Every folder opened on the way is closed, also when the path is refused."""
    workspace.write("d/e/f", b"")
    (workspace.root / "loop").symlink_to("loop")
    before = len(os.listdir("/proc/self/fd"))
    for asked in ("d/e/f", "../x", "loop", "d/e/f/x", "/etc"):
        locate(workspace.tool_context(), asked)
    assert len(os.listdir("/proc/self/fd")) == before


def test_one_line_escapes_control_characters_and_shortens() -> None:
    """Row E3: Control characters are escaped, and a name that is too long keeps its beginning and end."""
    assert one_line("a\nb\x1b[0m\u2028") == "a\\nb\\x1b[0m\\u2028"
    shown = one_line("start" + "x" * 300 + "/end.py", 40)
    assert len(shown) == 40
    assert shown.startswith("start")
    assert shown.endswith("/end.py")


_names = st.sampled_from(
    ["a", "b", "in", "out", "up", "abs", "dang", "loop", "..", ".", "", "new", ".git", "ws", "ws-x"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=300)
@given(names=st.lists(_names, max_size=8), absolute=st.sampled_from(["", "/", "root"]))
def test_any_path_resolves_as_the_system_resolves_it(tmp_path: Path, names: list[str], absolute: str) -> None:
    """Row E3, cases 103 and 104: For any path the result is what the system itself resolves, and `inside` says so."""
    workspace = ToolWorkspace.under(tmp_path) if not (tmp_path / "ws").exists() else _existing_workspace(tmp_path)
    _create_links(workspace)
    start = {"": "", "/": "/", "root": f"{workspace.root}/"}[absolute]
    asked = start + "/".join(names)
    located = locate(workspace.tool_context(), asked)
    if isinstance(located, Refusal):
        return
    real = os.path.realpath(workspace.root / asked)
    assert located.resolved == real
    assert located.is_inside == (os.path.commonpath([str(workspace.root), real]) == str(workspace.root))
    if located.kind is not None:
        assert os.path.exists(real)


def _existing_workspace(tmp_path: Path) -> ToolWorkspace:
    folder = tmp_path.resolve()
    return ToolWorkspace(folder / "ws", folder / "state", folder / "state" / "sessions" / "s", folder / "out")


def _create_links(workspace: ToolWorkspace) -> None:
    if (workspace.root / "up").is_symlink():
        return
    (workspace.root / "a" / "b").mkdir(parents=True)
    (workspace.outside / "a").mkdir()
    for name, target in {
        "in": "a/b",
        "out": str(workspace.outside),
        "up": "../",
        "abs": str(workspace.root / "a"),
        "dang": "../out/none",
        "loop": "loop",
        "a/up": "../../out",
    }.items():
        (workspace.root / name).symlink_to(target)
