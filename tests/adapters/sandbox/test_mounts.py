"""What is mounted where, as values: roots, protected paths, hidden places (row O1)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from steadyhand.adapters.sandbox import mounts
from steadyhand.adapters.sandbox.mounts import Mount, plan_mounts
from steadyhand.adapters.sandbox.places import hidden_places, home_folders, program_folders
from steadyhand.adapters.sandbox.readable import readable_places
from steadyhand.ports.sandbox import PROTECTED_MOUNTS_MAX, Confinement, SandboxFailed
from tests.support.systems import linux_only

pytestmark = linux_only


class Tree:
    """A folder with files, and plans for confinements in it."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.server = {"HOME": str(top / "home")}
        self.child = {"PATH": "/usr/bin:/bin"}
        for name in ("ws", "home", "own"):
            (top / name).mkdir()

    def file(self, name: str) -> str:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content")
        return str(path)

    def folder(self, name: str) -> str:
        (self.top / name).mkdir(parents=True, exist_ok=True)
        return str(self.top / name)

    def plan(self, *protected: str, **changes: object) -> dict[str, str]:
        """Path below `top` (or absolute) → kind of mount, in their order."""
        wanted: dict[str, object] = {
            "kind": "bubblewrap",
            "folders": (str(self.top / "ws"),),
            "temporary": str(self.top / "own"),
            "protected": protected,
            **changes,
        }
        plan = plan_mounts(Confinement(**wanted), self.server, self.child)  # type: ignore[arg-type]
        return {self.name(mount): mount.kind for mount in plan.mounts}

    def name(self, mount: Mount) -> str:
        return os.path.relpath(mount.path, self.top) if mount.path.startswith(f"{self.top}/") else mount.path

    def below(self, found: dict[str, str], beginning: str) -> dict[str, str]:
        return {name: kind for name, kind in found.items() if name.startswith(beginning)}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """A tree whose home folder and folders for temporary files are the only ones, whatever this machine has."""
    tree = Tree(Path(os.path.realpath(tmp_path)))
    monkeypatch.setattr(mounts, "OWN_TEMPORARY", (tree.folder("tmp"), tree.folder("var/tmp")))
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    return tree


def test_protected_path_pins_every_folder_up_to_its_root(tree: Tree) -> None:
    """O1: a folder that holds a protected path is a mount point, so nothing takes its place. The root is one anyhow."""
    found = tree.plan(tree.file("ws/a/b/.env"))
    assert tree.below(found, "ws") == {
        "ws": "writable",
        "ws/a": "writable",
        "ws/a/b": "writable",
        "ws/a/b/.env": "read_only",
    }


def test_folder_between_two_roots_is_pinned(tree: Tree) -> None:
    """O1, S11: nothing takes the place of the folder that holds another root."""
    folders = (tree.folder("ws"), tree.folder("ws/a/b/c"))
    found = tree.below(tree.plan(folders=folders), "ws")
    assert list(found.items()) == [(name, "writable") for name in ("ws", "ws/a", "ws/a/b", "ws/a/b/c")]


def test_root_that_leads_elsewhere_fails(tree: Tree) -> None:
    """O1, S11: a link that came into a root's path does not move the root."""
    tree.folder("elsewhere/lib")
    (tree.top / "ws" / "pkg").symlink_to(tree.top / "elsewhere")
    with pytest.raises(SandboxFailed, match="leads elsewhere"):
        tree.plan(folders=(str(tree.top / "ws"), str(tree.top / "ws/pkg/lib")))


def test_git_directory_stays_writable_but_for_what_chooses_programs(tree: Tree) -> None:
    """O1: only entries that exist are mounted; submodules at any depth and linked worktrees count."""
    for name in ("config", "HEAD", "info/attributes", "info/exclude", "hooks/post-commit", "objects/info/alternates"):
        tree.file(f"ws/.git/{name}")
    for name in ("modules/a/HEAD", "modules/a/config", "modules/b/c/HEAD", "modules/b/c/hooks/x"):
        tree.file(f"ws/.git/{name}")
    for name in ("modules/a/modules/d/HEAD", "modules/a/modules/d/config", "worktrees/w/HEAD", "worktrees/w/commondir"):
        tree.file(f"ws/.git/{name}")
    found = tree.below(tree.plan(str(tree.top / "ws/.git")), "ws/.git")
    assert sorted(name for name, kind in found.items() if kind == "read_only") == [
        *("ws/.git/config", "ws/.git/hooks", "ws/.git/info/attributes", "ws/.git/modules/a/config"),
        *("ws/.git/modules/a/modules/d/config", "ws/.git/modules/b/c/hooks", "ws/.git/objects/info/alternates"),
        "ws/.git/worktrees/w/commondir",
    ]
    assert {"ws/.git", "ws/.git/info", "ws/.git/objects/info", "ws/.git/modules/b/c"} <= {
        name for name, kind in found.items() if kind == "writable"
    }


def test_git_file_of_a_linked_worktree_is_read_only(tree: Tree) -> None:
    """O1: `.git` is a file there, which says where the repository is."""
    assert tree.plan(tree.file("ws/.git"))["ws/.git"] == "read_only"


def test_link_at_a_protected_name_protects_what_it_leads_to(tree: Tree) -> None:
    """O1: a mount cannot protect a link; a target outside the roots is read-only anyhow."""
    tree.file("ws/real")
    tree.file("elsewhere")
    for name, target in ((".env", "real"), (".envrc", "../elsewhere"), (".env.gone", "missing")):
        (tree.top / "ws" / name).symlink_to(target)
    found = tree.plan(*(str(tree.top / "ws" / name) for name in (".env", ".envrc", ".env.gone")))
    assert tree.below(found, "ws") == {"ws": "writable", "ws/real": "read_only"}
    assert "elsewhere" not in found


def test_missing_protected_name_is_not_mounted(tree: Tree) -> None:
    """O1: a mount over a missing name would create it on the disk."""
    assert tree.below(tree.plan(str(tree.top / "ws/.env")), "ws") == {"ws": "writable"}
    assert not (tree.top / "ws" / ".env").exists()


def test_nothing_inside_a_read_only_path_is_writable(tree: Tree) -> None:
    """O1: in whatever order they are given."""
    inner, outer = tree.file("ws/.vscode/a/.env"), str(tree.top / "ws/.vscode")
    for protected in ((inner, outer), (outer, inner)):
        assert tree.below(tree.plan(*protected), "ws") == {"ws": "writable", "ws/.vscode": "read_only"}


def test_protected_mounts_are_bounded_nearest_first(tree: Tree) -> None:
    """O1: at most 60, the folders between included; a path that does not fit ends the list whole."""
    protected = [tree.file(f"ws/.env{number:02}") for number in range(50)]
    protected += [tree.file(f"ws/deep/{number}/.env") for number in range(20)]
    found = tree.below(tree.plan(*protected), "ws/")
    assert len(found) <= PROTECTED_MOUNTS_MAX
    assert sum(name.startswith("ws/.env") for name in found) == 50
    assert {name: found[name] for name in found if name.startswith("ws/deep")} == {
        "ws/deep": "writable",
        **{f"ws/deep/{number}": "writable" for number in range(4)},
        **{f"ws/deep/{number}/.env": "read_only" for number in range(4)},
    }


def test_git_directory_with_many_submodules_is_protected_at_its_top(tree: Tree) -> None:
    """O1: its own entries come before those of its submodules, as many of these as fit."""
    for name in ("config", "hooks/x", "info/attributes", *(f"modules/m{n:03}/config" for n in range(100))):
        tree.file(f"ws/.git/{name}")
    for number in range(100):
        tree.file(f"ws/.git/modules/m{number:03}/HEAD")
    found = tree.below(tree.plan(str(tree.top / "ws/.git")), "ws/")
    assert len(found) in (PROTECTED_MOUNTS_MAX - 1, PROTECTED_MOUNTS_MAX)
    assert {"ws/.git/config", "ws/.git/hooks", "ws/.git/info/attributes", "ws/.git/modules/m000/config"} <= {
        name for name, kind in found.items() if kind == "read_only"
    }


def test_parents_are_mounted_before_what_is_in_them(tree: Tree) -> None:
    """O1: a later mount lies on an earlier one."""
    order = list(tree.plan(tree.file("ws/a/.env"), tree.file("ws/a-b/.env"), tree.file("ws/a/c/.env")))
    for name in order:
        parent = os.path.dirname(name)
        if parent in order:
            assert order.index(parent) < order.index(name)


def test_secret_places_are_hidden_where_they_exist(tree: Tree) -> None:
    """O1: folders and files of the home folder; a link leads to what is hidden."""
    tree.file("home/.ssh/id")
    tree.file("home/.netrc")
    tree.file("home/.config/gh/hosts")
    tree.file("elsewhere/aws/credentials")
    (tree.top / "home/.aws").symlink_to("../elsewhere/aws")
    hidden = hidden_places(tree.server, [tree.folder("state")])
    below = {path for path in (hidden.folders | hidden.files) if path.startswith(str(tree.top))}
    assert {os.path.relpath(path, tree.top) for path in below} == {
        *("home/.ssh", "home/.netrc", "home/.config/gh", "elsewhere/aws", "state"),
    }
    assert hidden.files == {str(tree.top / "home/.netrc")}


@pytest.mark.parametrize(
    ("variable", "value", "place"),
    [
        ("XDG_RUNTIME_DIR", "{top}/run", "run"),
        ("TMPDIR", "{top}/run", "run"),
        ("SSH_AUTH_SOCK", "{top}/run/agent", "run"),
        ("DBUS_SESSION_BUS_ADDRESS", "unix:path={top}/run/bus,guid=1", "run"),
        ("DBUS_SESSION_BUS_ADDRESS", "tcp:host=localhost;unix:guid=1,path={top}/run/bus", "run"),
        ("DOCKER_HOST", "unix://{top}/run/docker.sock", "run"),
        ("VSCODE_IPC_HOOK_CLI", "{top}/run/vscode.sock", "run"),
        ("DOCKER_HOST", "tcp://localhost:2375", None),
        ("SSH_AUTH_SOCK", "{top}/home/agent", "home/agent"),
        ("XDG_RUNTIME_DIR", "{top}/home", None),
        ("XDG_RUNTIME_DIR", "/", None),
        ("TMPDIR", "/usr", None),
        ("TMPDIR", "relative", None),
        ("UNRELATED", "{top}/run", None),
    ],
)
def test_folder_that_a_variable_names_is_hidden(variable: str, value: str, place: str | None, tree: Tree) -> None:
    """O1: the server's variables lead to sockets and temporary files. If the folder is needed for work, as the home
    folder is, only the socket is hidden."""
    tree.folder("run")
    tree.file("home/agent")
    without = hidden_places(tree.server, ())
    hidden = hidden_places({**tree.server, variable: value.format(top=tree.top)}, ())
    new = (hidden.folders | hidden.files) - (without.folders | without.files)
    assert new == (set() if place is None else {str(tree.top / place)})


def test_workspace_and_programs_stay_visible_in_a_hidden_folder(tree: Tree) -> None:
    """O1: a workspace folder, and read-only a folder of PATH, of `…/bin` its parent unless that is hidden itself."""
    for name in ("hid/ws", "hid/tool/bin", "hid/bin", "hid/plain"):
        tree.folder(name)
    tree.child["PATH"] = ":".join(f"{tree.top}/hid/{name}" for name in ("tool/bin", "bin", "plain", "missing", "ws"))
    found = tree.plan(hidden=(f"{tree.top}/hid",), folders=(f"{tree.top}/hid/ws",))
    assert tree.below(found, "hid") == {
        "hid": "empty_folder",
        "hid/bin": "read_only",
        "hid/plain": "read_only",
        "hid/tool": "read_only",
        "hid/ws": "writable",
    }


def test_place_to_be_shown_inside_a_workspace_stays_writable(tree: Tree) -> None:
    """O1: what is shown read-only is outside the roots."""
    inner, other = tree.folder("hid/ws/.git"), tree.folder("hid/other/.git")
    found = tree.plan(hidden=(f"{tree.top}/hid",), folders=(f"{tree.top}/hid/ws",), visible=(inner, other))
    assert tree.below(found, "hid") == {"hid": "empty_folder", "hid/other/.git": "read_only", "hid/ws": "writable"}


@pytest.mark.parametrize(("variable", "value"), [("TMPDIR", "{top}/ws/tmp"), ("SSH_AUTH_SOCK", "{top}/ws/tmp/agent")])
def test_folder_of_the_workspace_that_a_variable_names_is_not_hidden(variable: str, value: str, tree: Tree) -> None:
    """O1: TMPDIR in the workspace (as direnv sets it) hides nothing of it; of a socket only itself is hidden."""
    tree.file("ws/tmp/agent")
    tree.server[variable] = value.format(top=tree.top)
    found = tree.below(tree.plan(), "ws")
    assert found == {"ws": "writable", **({} if variable == "TMPDIR" else {"ws/tmp/agent": "empty_file"})}


def test_many_protected_paths_are_looked_at_up_to_a_bound(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: the loop waits while mounts are planned, so the nearest paths are looked at and not all."""
    paths = [str(tree.top / f"ws/{number}.pem") for number in range(mounts.PROTECTED_LOOKED_AT_MAX + 50)]
    looked: list[str] = []
    exists = os.path.exists

    def look(path: str) -> bool:
        looked.append(path)
        return exists(path)

    for path in paths:
        Path(path).write_text("")
    monkeypatch.setattr(os.path, "exists", look)
    found = tree.plan(*paths)
    assert sum(1 for path in looked if path.endswith(".pem")) <= mounts.PROTECTED_LOOKED_AT_MAX
    assert len(tree.below(found, "ws/")) == PROTECTED_MOUNTS_MAX


def test_hidden_place_inside_a_workspace_is_hidden(tree: Tree) -> None:
    """O1: with the home folder as workspace, its secret places are still hidden, and not mounted as protected."""
    secret = tree.file("home/.ssh/config")
    found = tree.plan(secret, tree.file("home/.npmrc"), folders=(str(tree.top / "home"),))
    assert tree.below(found, "home") == {"home": "writable", "home/.npmrc": "empty_file", "home/.ssh": "empty_folder"}


def test_temporary_folders_are_the_command_s_own(tree: Tree) -> None:
    """O1: its folder on disk is mounted at `/tmp` and `/var/tmp`; a hidden place inside them is gone with them. A
    workspace inside them is there."""
    temporary, inside = str(tree.top / "tmp"), tree.folder("tmp/ws")
    plan = plan_mounts(
        Confinement("bubblewrap", (inside,), str(tree.top / "own"), hidden=(tree.folder("tmp/hidden"),)),
        {**tree.server, "TMPDIR": temporary},
        tree.child,
    )
    own = [mount for mount in plan.mounts if mount.source == str(tree.top / "own")]
    assert [(mount.kind, tree.name(mount)) for mount in own] == [("writable", "tmp"), ("writable", "var/tmp")]
    assert {tree.name(mount) for mount in plan.mounts if mount.path.startswith(temporary)} == {"tmp", "tmp/ws"}
    assert set(plan.writable) == {temporary, str(tree.top / "var/tmp"), inside}
    reading = plan_mounts(Confinement("bubblewrap", (inside,), is_reading=True), tree.server, tree.child)
    assert [mount.kind for mount in reading.mounts if mount.path == temporary] == ["empty_folder"]
    assert reading.writable == ()


def test_reading_command_has_no_writable_mount(tree: Tree) -> None:
    """O2: in bubblewrap everything is read-only, whatever else the confinement names."""
    found = tree.plan(tree.file("ws/.env"), is_reading=True, write=(tree.folder("cache"),))
    assert set(found.values()) <= {"read_only", "empty_folder", "empty_file"}


def test_environment_of_the_server_in_a_workspace_is_read_only(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """O4: the interpreter's prefix, with its programs and packages, also if the user develops in it."""
    tree.file("ws/venv/bin/python")
    monkeypatch.setattr(sys, "prefix", str(tree.top / "ws/venv"))
    assert tree.below(tree.plan(), "ws") == {"ws": "writable", "ws/venv": "read_only"}


def test_missing_folder_is_refused(tree: Tree) -> None:
    """O1: without a folder of the session, or the command's own one, there is no sandbox."""
    with pytest.raises(SandboxFailed, match="missing"):
        tree.plan(folders=(str(tree.top / "gone"),))
    with pytest.raises(SandboxFailed, match="missing"):
        tree.plan(temporary=str(tree.top / "gone"))


def test_resolver_stays_visible(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: `/etc/resolv.conf` is often a link into `/run`."""
    resolver = tree.file("hid/resolv.conf")
    monkeypatch.setattr(mounts, "RESOLVER", resolver)
    assert tree.below(tree.plan(hidden=(f"{tree.top}/hid",)), "hid") == {
        "hid": "empty_folder",
        "hid/resolv.conf": "read_only",
    }


def test_reading_command_reads_programs_and_not_the_home_folder(tree: Tree) -> None:
    """O2: the workspace, the system, git's configuration, the folders of PATH; never a home folder, nor a folder that
    holds something hidden."""
    tree.file("home/.gitconfig")
    tree.folder("home/bin")
    tree.file("holds/secret")
    tree.child["PATH"] = f"/usr/bin:{tree.top}/home/bin:{tree.top}/home:{tree.top}/holds:relative"
    confinement = Confinement(
        "landlock", (str(tree.top / "ws"),), is_reading=True, hidden=(f"{tree.top}/holds/secret",), readable=("/opt",)
    )
    found = readable_places(confinement, tree.server, tree.child)
    assert {os.path.relpath(path, tree.top) for path in found if path.startswith(str(tree.top))} == {
        *("ws", "home/.gitconfig", "home/bin"),
    }
    assert {"/usr", "/etc"} <= set(found)


def test_home_folders_are_those_of_the_variable_and_of_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: HOME may be changed for one program; the account's home has the secrets all the same."""
    monkeypatch.undo()
    assert set(home_folders({"HOME": "/nonexistent-home"})) >= {"/nonexistent-home"}
    assert home_folders({"HOME": "relative"}) == home_folders({})
    assert "/" not in home_folders({"HOME": "/"})


def test_program_folders_never_widen_to_temporary_files(tree: Tree) -> None:
    """O1: `/tmp/bin` in PATH does not show all of `/tmp`."""
    tree.folder("a/bin")
    assert program_folders(f"{tree.top}/a/bin", frozenset()) == [str(tree.top / "a")]
    assert program_folders(f"{tree.top}/a/bin", frozenset({str(tree.top / "a")})) == [str(tree.top / "a/bin")]
