"""What a walk leaves out, compared with git itself on generated folders (cases 128, 129).

A pattern or a name that went wrong once is one more word of a pool; the seed of a layout is in its test id.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from steadyhand.domain.text.git_config import excludes_file
from steadyhand.domain.text.git_index import tracked_paths
from steadyhand.tools.workspace.paths import ResolvedPath, locate
from steadyhand.tools.workspace.walk import DirectoryWalk
from tests.support.tool_calls import ToolWorkspace
from tests.support.tools import require_tool

LAYOUTS = 240
LAYOUTS_IN_A_TEST = 20
run_s_max = 60

NAMES = ("a", "b.txt", "c.log", "build", "src", "lib", "x y", "[id]", "#no", "!yes", "ä", "node_modules", "a.b.c", "-")
PATTERNS = (
    *("a", "*.log", "build/", "/build", "src/lib", "**/lib", "lib/**", "src/**/a", "*", "!*.txt"),
    *("!src/", "!a", "!/src", "x y", r"x\ y", "[id]", r"\[id\]", "[!a]*", "[a-c]*", "?", "??"),
    *("*.b.*", r"\#no", "#no", r"\!yes", "node_modules", "/*", "!/*.txt", "/src/*", "!/src/lib/"),
    *("ä", "*ä*", "a/", "**", "**/", "/**/c.log", "src/", "lib/a", "-", "a  ", "*.LOG", "build/**"),
    *("!build/a", "a/b.txt", "/a/", "b.txt/", r"\a", "[]", "[", r"a\\", ".*", "!.gitignore", "*/a"),
)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, timeout=run_s_max, check=True)
    return os.fsdecode(done.stdout)


def files_of_git(repository: Path) -> set[str]:
    """What git shows below this folder; a repository inside it is one name with `/` at its end."""
    listed = git(repository, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    return {name for name in listed.split("\0") if name and os.path.lexists(repository / name)}


def files_of_walk(workspace: ToolWorkspace, path: str = ".") -> set[str]:
    """The files that a walk from this folder finds, as paths from it."""
    workspace.given = {"HOME": os.environ["HOME"], "GIT_CONFIG_NOSYSTEM": "1"}
    context = workspace.tool_context()
    start = locate(context, path)
    assert isinstance(start, ResolvedPath)
    return {"/".join(entry.path) for entry in DirectoryWalk(context, start).entries() if entry.stat.kind != "folder"}


def fill(folder: Path, chance: random.Random, depth: int = 0) -> None:
    """Make files, folders and ignore files at random."""
    for name in chance.sample(NAMES, chance.randint(2, 6)):
        if depth < 3 and chance.random() < 0.45:
            (folder / name).mkdir()
            fill(folder / name, chance, depth + 1)
        else:
            (folder / name).write_text("x\n")
    if chance.random() < (0.9 if depth == 0 else 0.3):
        lines = chance.choices(PATTERNS, k=chance.randint(1, 5))
        (folder / ".gitignore").write_text("\n".join(lines) + chance.choice(("", "\n", "\r\n")))


def track(repository: Path, chance: random.Random) -> None:
    """Track some files, ignored ones among them, and delete one of them again."""
    files = sorted(path for path in repository.rglob("*") if path.is_file() and ".git" not in path.parts)
    chosen = [str(path.relative_to(repository)) for path in files if chance.random() < 0.25]
    if chosen:
        git(repository, "add", "-f", "--", *chosen)
        if chance.random() < 0.3:
            (repository / chosen[0]).unlink()
    if chance.random() < 0.5:
        git(repository, "update-index", "--index-version", str(chance.choice((2, 3, 4))))


def set_user_rules(home: Path, chance: random.Random) -> None:
    """Write the user's ignore file at its default place, at another one, or nowhere."""
    (home / ".config" / "git").mkdir(parents=True, exist_ok=True)
    for old in (home / ".gitconfig", home / ".config" / "git" / "ignore", home / "mine"):
        old.unlink(missing_ok=True)
    text = "\n".join(chance.choices(PATTERNS, k=2)) + "\n"
    kind = chance.randrange(3)
    if kind == 1:
        (home / ".config" / "git" / "ignore").write_text(text)
    elif kind == 2:
        (home / "mine").write_text(text)
        (home / ".gitconfig").write_text('[core]\n\texcludesFile = "~/mine" ; a comment\n')


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require_tool("git")
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return folder


@pytest.mark.parametrize("first", range(0, LAYOUTS, LAYOUTS_IN_A_TEST))
def test_walk_shows_what_git_shows(tmp_path: Path, home: Path, first: int) -> None:
    """Cases 128, 129: files of a repository, tracked or ignored, its `info/exclude`, the user's ignore file, a
    repository inside it, and a workspace that is a folder of it."""
    for seed in range(first, first + LAYOUTS_IN_A_TEST):
        chance = random.Random(seed)
        workspace = ToolWorkspace.under(tmp_path / str(seed))
        set_user_rules(home, chance)
        git(workspace.root, "init", "-q", ".")
        fill(workspace.root, chance)
        (workspace.root / ".git" / "info" / "exclude").write_text(chance.choice(PATTERNS) + "\n")
        nested = workspace.root / chance.choice(("nested", "src/nested", "build/nested"))
        if chance.random() < 0.5 and not nested.parent.is_file():
            nested.mkdir(parents=True)
            git(nested, "init", "-q", ".")
            fill(nested, chance)
            track(nested, chance)
        track(workspace.root, chance)
        expected = files_of_git(workspace.root)
        inner = f"{nested.relative_to(workspace.root)}/"
        if inner in expected:
            expected = expected - {inner} | {f"{inner}{name}" for name in files_of_git(nested)}
        assert files_of_walk(workspace) == expected, f"layout {seed}"
        if nested.exists():
            assert files_of_walk(workspace, inner) == files_of_git(nested), f"layout {seed}, nested"


def test_nested_repository_is_shown_when_it_is_named(tmp_path: Path, home: Path) -> None:
    """Case 128: its parent ignores everything, and its own rules decide inside it."""
    workspace = ToolWorkspace.under(tmp_path)
    git(workspace.root, "init", "-q", ".")
    workspace.write(".gitignore", b"*\n")
    workspace.write("inner/a.txt", b"1")
    workspace.write("inner/b.log", b"1")
    workspace.write("inner/.gitignore", b"*.log\n")
    git(workspace.root / "inner", "init", "-q", ".")
    assert files_of_walk(workspace) == set()
    assert files_of_walk(workspace, "inner") == {".gitignore", "a.txt"}


def test_folder_of_a_repository_follows_the_rules_above_the_workspace(tmp_path: Path, home: Path) -> None:
    """Case 129: the workspace is a folder of a repository, and git's rules begin at the repository."""
    workspace = ToolWorkspace.under(tmp_path)
    git(tmp_path, "init", "-q", ".")
    (tmp_path / ".gitignore").write_text("*.log\n/ws/made/\n")
    for name in ("a.txt", "b.log", "made/x", "kept.log"):
        workspace.write(name, b"1")
    git(tmp_path, "add", "-f", "ws/kept.log")
    assert files_of_walk(workspace) == {"a.txt", "kept.log"}


def test_worktree_and_submodule_have_rules_of_their_own(tmp_path: Path, home: Path) -> None:
    """Case 129: `.git` is a file there, and the index is elsewhere."""
    workspace = ToolWorkspace.under(tmp_path)
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q", ".")
    (main / ".gitignore").write_text("*.log\n")
    (main / "kept.log").write_text("1")
    git(main, "add", "-f", ".")
    git(main, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-qm", "1")
    git(main, "worktree", "add", "-q", str(workspace.root / "tree"))
    workspace.write("tree/other.log", b"1")
    workspace.write("tree/new.txt", b"1")
    assert files_of_walk(workspace, "tree") == {".gitignore", "kept.log", "new.txt"}


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_index_of_every_version_is_read(tmp_path: Path, home: Path, version: int, object_format: str) -> None:
    """Case 129."""
    git(tmp_path, "init", "-q", f"--object-format={object_format}", "repository")
    repository = tmp_path / "repository"
    names = {"a", "b/c", "b/cc/d", "b/cd", "long/" + "x" * 200, "ä"}
    for name in names:
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(name)
    git(repository, "add", ".")
    git(repository, "add", "-N", "--", "a")
    git(repository, "update-index", "--skip-worktree", "a")
    git(repository, "update-index", "--index-version", str(version))
    found = tracked_paths((repository / ".git" / "index").read_bytes())
    assert found is not None
    assert found.files == names
    assert found.folders == {"b", "b/cc", "long"}


def test_index_that_is_damaged_or_split_is_not_read(tmp_path: Path, home: Path) -> None:
    """Case 129: any cut of an index gives no paths and no error."""
    git(tmp_path, "init", "-q", ".")
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    git(tmp_path, "add", "a", "b", "c")
    whole = (tmp_path / ".git" / "index").read_bytes()
    body = len(whole) - 20
    assert {tracked_paths(whole[:end]) for end in range(body - 80)} == {None}
    git(tmp_path, "update-index", "--split-index")
    assert tracked_paths((tmp_path / ".git" / "index").read_bytes()) is None


CONFIGS = (
    ("", None),
    ("[core]\nexcludesFile = /a\n", "/a"),
    ("[CORE]\n  ExcludesFile=/a # comment\n", "/a"),
    ('[core] excludesfile = "/a ; b"\n', "/a ; b"),
    ('[core]\nexcludesFile = "/a\\\\b\\"c"\n', '/a\\b"c'),
    ("[core]\nexcludesFile = /a\nexcludesFile = /b\n", "/b"),
    ('[core "x"]\nexcludesFile = /a\n', None),
    ("[other]\nexcludesFile = /a\n", None),
    ("[core]\nexcludesFile = /a\\\nb\n", "/ab"),
    ("[core]\r\nexcludesFile = /a b  \r\n", "/a b"),
)


@pytest.mark.parametrize(("config", "value"), CONFIGS)
def test_excludes_file_is_read_as_git_reads_it(tmp_path: Path, home: Path, config: str, value: str | None) -> None:
    """Case 129: the value is git's own."""
    (tmp_path / "config").write_text(config, newline="")
    asked = subprocess.run(
        ["git", "config", "-f", "config", "core.excludesFile"], cwd=tmp_path, capture_output=True, check=False
    )
    assert excludes_file(config) == value
    assert asked.stdout.decode().rstrip("\n") == (value or "")
