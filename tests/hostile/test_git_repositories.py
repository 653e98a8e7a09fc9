"""Repositories whose configuration or contents run a program when git reads them (row O2, case 141).

In the mode `plan` nobody is asked, and git commands that count as reading run for real. Whatever a repository holds,
none of its programs may start; the command may be refused instead.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from tests.hostile.attempts import rows, settings_of
from tests.support.editor import ScriptedEditor
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, run, says
from tests.support.session_state import states
from tests.support.systems import linux_only
from tests.support.tools import require_tool

pytestmark = [pytest.mark.anyio, linux_only]
CLASS = "git repositories"
REAL_MIN = 20
NONE = subprocess.DEVNULL
COMMANDS = ("git status", "git diff", "git log -p")
CLEAN = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


@attrs.frozen
class Repository:
    """A repository and what makes it hostile. `config` is added to its configuration; `more` does the rest.

    `{evil}` is a program that leaves a file beside the workspace when it runs."""

    name: str
    config: str = ""
    more: Callable[[Path, str], object] = lambda root, evil: None
    cwd: str | None = None
    pending: str | None = None


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def attributes(text: str) -> Callable[[Path, str], object]:
    return lambda root, evil: put(root, ".gitattributes", text)


def inner(root: Path, evil: str, name: str = "sub") -> Path:
    """A repository inside the workspace whose configuration runs the program."""
    git("init", "-q", name, cwd=root)
    put(root, f"{name}/s.txt", "s\n")
    git("add", ".", cwd=root / name)
    git("commit", "-qm", "s", cwd=root / name)
    add(root / name / ".git" / "config", f'[core]\n\tfsmonitor = {evil}\n[filter "x"]\n\tclean = {evil}\n')
    put(root, f"{name}/.git/info/attributes", "* filter=x\n")
    put(root, f"{name}/s.txt", "t\n")  # of the same size, so that git has to read it
    return root / name


def submodule_in_index(root: Path, evil: str, ignore: str = "none") -> None:
    """Case 141 (b): `.gitmodules` stands in the index alone, and tells git to look into the submodule."""
    inner(root, evil)
    put(root, ".gitmodules", f'[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = {ignore}\n')
    git("add", ".gitmodules", "sub", cwd=root)
    (root / ".gitmodules").unlink()


def no_valid_head(root: Path, evil: str) -> None:
    """Case 141 (a): `sub/.git` has a clean configuration and no valid HEAD, so git goes on to the hostile one above."""
    put(root, "sub/.git/config", "[core]\n\tbare = false\n")
    (root / "sub/.git/objects").mkdir()
    (root / "sub/.git/refs").mkdir()
    put(root, "sub/.git/HEAD", "no ref\n")
    add(root / ".git" / "config", f'[filter "x"]\n\tclean = {evil}\n')
    put(root, ".git/info/attributes", "* filter=x\n")


def worktree_config(root: Path, evil: str) -> None:
    put(root, ".git/config.worktree", f"[core]\n\tfsmonitor = {evil}\n")


def git_file(root: Path, evil: str) -> None:
    (root / ".git").rename(root / "elsewhere")
    add(root / "elsewhere" / "config", f"[core]\n\tfsmonitor = {evil}\n")
    put(root, ".git", "gitdir: elsewhere\n")


def git_link(root: Path, evil: str) -> None:
    (root / ".git").rename(root.parent / "elsewhere")
    add(root.parent / "elsewhere" / "config", f"[core]\n\tfsmonitor = {evil}\n")
    (root / ".git").symlink_to(root.parent / "elsewhere")


def commondir(root: Path, evil: str) -> None:
    git("init", "-q", "other", cwd=root)
    add(root / "other/.git/config", f"[core]\n\tfsmonitor = {evil}\n")
    put(root, ".git/commondir", "../other/.git\n")


def bare_decoy(root: Path, evil: str) -> None:
    git("init", "-q", "--bare", "decoy", cwd=root)
    add(root / "decoy" / "config", f"[core]\n\tfsmonitor = {evil}\n\tworktree = ..\n\tbare = false\n")


def included(root: Path, evil: str) -> None:
    put(root, ".git/more", f"[core]\n\tfsmonitor = {evil}\n")


def hook(name: str) -> Callable[[Path, str], object]:
    def add(root: Path, evil: str) -> None:
        (root / ".git/hooks").mkdir(exist_ok=True)
        (root / ".git/hooks" / name).write_text(f"#!/bin/sh\n{evil}\n")
        (root / ".git/hooks" / name).chmod(0o755)
        os.utime(root / "a.txt", (1, 1))  # so that the index wants a refresh

    return add


def signed(root: Path, evil: str) -> None:
    tree = git("write-tree", cwd=root).strip()
    text = (
        f"tree {tree}\nauthor a <a@example.com> 1 +0000\ncommitter a <a@example.com> 1 +0000\n"
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
    )
    put(root.parent, "commit", text)
    commit = git("hash-object", "-t", "commit", "-w", str(root.parent / "commit"), cwd=root).strip()
    git("update-ref", "HEAD", commit, cwd=root)


TABLE = [
    Repository("a file system monitor", "[core]\n\tfsmonitor = {evil}\n"),
    Repository("a file system monitor in upper case", "[CORE]\n\tFSMONITOR = {evil}\n"),
    Repository("a file system monitor on the line of its section", "[core] fsmonitor = {evil}\n"),
    Repository("a file system monitor on two lines", "[core]\n\tfsmonitor = \\\n{evil}\n"),
    Repository("a file system monitor with a byte order mark before", "\ufeff[core]\n\tfsmonitor = {evil}\n"),
    Repository("a file system monitor after carriage returns", "[core]\r\n\tfsmonitor = {evil}\r\n"),
    Repository("a hooks folder", "[core]\n\thooksPath = .\n", hook("post-index-change")),
    Repository("a hook of the index", "", hook("post-index-change")),
    Repository("a hook of a checkout", "", hook("post-checkout")),
    Repository("a filter", '[filter "x"]\n\tclean = {evil}\n', attributes("* filter=x\n")),
    Repository("a filter process", '[filter "x"]\n\tprocess = {evil}\n', attributes("* filter=x\n")),
    Repository(
        "a filter with a required mark", '[filter "x"]\n\tclean = {evil}\n\trequired\n', attributes("* filter=x\n")
    ),
    Repository("a filter that smudges", '[filter "x"]\n\tsmudge = {evil}\n', attributes("* filter=x\n")),
    Repository("a filter named by a dot", "[filter.x]\n\tclean = {evil}\n", attributes("* filter=x\n")),
    Repository("an external diff", "[diff]\n\texternal = {evil}\n"),
    Repository("a diff driver", '[diff "x"]\n\tcommand = {evil}\n', attributes("* diff=x\n")),
    Repository("a text conversion", '[diff "x"]\n\ttextconv = {evil}\n', attributes("* diff=x\n")),
    Repository(
        "a text conversion with a cache",
        '[diff "x"]\n\ttextconv = {evil}\n\tcachetextconv = true\n',
        attributes("* diff=x\n"),
    ),
    Repository(
        "attributes elsewhere",
        '[core]\n\tattributesFile = .git/a\n[diff "x"]\n\ttextconv = {evil}\n',
        lambda r, e: put(r, ".git/a", "* diff=x\n"),
    ),
    Repository(
        "attributes in the git folder",
        '[diff "x"]\n\ttextconv = {evil}\n',
        lambda r, e: put(r, ".git/info/attributes", "* diff=x\n"),
    ),
    Repository("a pager", "[core]\n\tpager = {evil}\n"),
    Repository("a pager of one command", "[pager]\n\tlog = {evil}\n\tdiff = {evil}\n\tstatus = {evil}\n"),
    Repository("an alias that runs the shell", "[alias]\n\tstatus = !{evil}\n\tlog = !{evil}\n"),
    Repository("an included file", "[include]\n\tpath = more\n", included),
    Repository("an included file by a condition", '[includeIf "gitdir:**"]\n\tpath = more\n', included),
    Repository("an included file by a branch", '[includeIf "onbranch:**"]\n\tpath = more\n', included),
    Repository("an included file through a quoted name", '[include]\n\tpath = "more"\n', included),
    Repository(
        "an included file by a dotted section", "[include.x]\n\tpath = more\n[include]\n\tpath = more\n", included
    ),
    Repository("a configuration of the worktree", "[extensions]\n\tworktreeConfig = true\n", worktree_config),
    Repository("a worktree elsewhere", "[core]\n\tworktree = ../..\n\tfsmonitor = {evil}\n"),
    Repository("a git file that leads elsewhere", "", git_file),
    Repository("a link in place of the git folder", "", git_link),
    Repository("a common folder elsewhere", "", commondir),
    Repository("a bare repository in the current folder", "", bare_decoy, cwd="decoy"),
    Repository("a repository inside", "", inner),
    Repository("a repository inside, from inside", "", inner, cwd="sub"),
    Repository("a git folder without a valid head", "", no_valid_head, cwd="sub"),
    Repository("a submodule that stands in the index alone", "", submodule_in_index),
    Repository("a submodule that ignores what is dirty", "", lambda r, e: submodule_in_index(r, e, "dirty")),
    Repository(
        "a submodule in the configuration", '[submodule "sub"]\n\tactive = true\n\tignore = none\n', submodule_in_index
    ),
    Repository("a nested repository as a commit", "", lambda r, e: (inner(r, e), git("add", "sub", cwd=r))),
    Repository("a program for signatures", "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {evil}\n", signed),
    Repository("a program for signatures by a format", "[format]\n\tpretty = %G?\n[gpg]\n\tprogram = {evil}\n", signed),
    Repository(
        "a program for signatures of ssh",
        '[log]\n\tshowSignature = true\n[gpg]\n\tformat = ssh\n[gpg "ssh"]\n\tprogram = {evil}\n',
        signed,
    ),
    Repository("an editor", "[core]\n\teditor = {evil}\n[sequence]\n\teditor = {evil}\n"),
    Repository("a credential helper", "[credential]\n\thelper = !{evil}\n"),
    Repository(
        "a program for ssh", '[core]\n\tsshCommand = {evil}\n[remote "o"]\n\turl = ssh://x/y\n\tpromisor = true\n'
    ),
    Repository(
        "a remote that fetches on demand",
        '[remote "o"]\n\turl = ext::{evil}\n\tpromisor = true\n[extensions]\n\tpartialClone = o\n',
        lambda r, e: missing_object(r),
    ),
    Repository(
        "a program that packs",
        '[remote "o"]\n\turl = .\n\tuploadpack = {evil}\n\tpromisor = true\n[extensions]\n\tpartialClone = o\n',
        lambda r, e: missing_object(r),
    ),
    Repository("a merge driver", '[merge "x"]\n\tdriver = {evil}\n', attributes("* merge=x\n")),
    Repository("a program that lists alternates", "[core]\n\talternateRefsCommand = {evil}\n"),
    Repository("a program of the interactive diff", "[interactive]\n\tdiffFilter = {evil}\n"),
    Repository(
        "an untracked cache and a split index",
        "[core]\n\tuntrackedCache = true\n\tsplitIndex = true\n\tfsmonitor = {evil}\n",
    ),
    Repository("a trace that is written to a file", "[trace2]\n\tnormalTarget = {ran}\n\teventTarget = {ran}\n"),
    Repository("a giant configuration", "# x\n" * 90_000 + "[core]\n\tfsmonitor = {evil}\n"),
    Repository("a configuration with a NUL", "[core]\n\tbare = false\0\n\tfsmonitor = {evil}\n"),
]


def missing_object(root: Path) -> None:
    """Take an object away that a diff needs, so that a partial clone would fetch it."""
    name = git("rev-parse", "HEAD:a.txt", cwd=root).strip()
    (root / ".git/objects" / name[:2] / name[2:]).unlink()


def git(*words: str, cwd: Path) -> str:
    return subprocess.run(("git", *words), cwd=cwd, env=CLEAN, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit and one change, to copy."""
    require_tool("git")
    root = tmp_path_factory.mktemp("plain") / "ws"
    root.mkdir()
    git("init", "-q", "-b", "main", cwd=root)
    for name in ("a.txt", "b.txt"):
        put(root, name, "one\n")
    git("add", ".", cwd=root)
    git("commit", "-qm", "first", cwd=root)
    put(root, "a.txt", "two\n")  # of the same size, so that git has to read it
    return root


def build(plain: Path, base: Path, attempt: Repository) -> Path:
    """Make the repository in `base/ws`; return the file that its program leaves, which is not there yet."""
    ran, evil, root = base / "ran", base / "evil", base / "ws"
    evil.write_text(f"#!/bin/sh\necho \"$0 $@\" >> '{ran}'\n")
    evil.chmod(0o755)
    subprocess.run(("cp", "-a", str(plain), str(root)), check=True)
    attempt.more(root, str(evil))
    if (root / ".git").is_dir():
        add(root / ".git" / "config", attempt.config.replace("{evil}", str(evil)).replace("{ran}", str(ran)))
    ran.unlink(missing_ok=True)  # what the arrangement itself has run
    return ran


@pytest.fixture(scope="module")
def processes() -> SystemProcesses:
    """One for all attempts, because it finds out once which sandbox works."""
    return SystemProcesses()


@pytest.fixture
def no_git_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a variable of git's in the environment no git command counts as reading, and nothing would be tried."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


async def read_with_git(folder: Path, cwd: str | None, processes: SystemProcesses) -> list[str]:
    """Play the commands in `plan`, where nobody is asked; return what became of each call."""
    where = {} if cwd is None else {"cwd": cwd}
    answer = asks(*(run(line, **where) for line in COMMANDS))
    settings = settings_of(mode="plan")
    editor = ScriptedEditor()
    async with scripted_server(
        folder,
        answer,
        says("ok"),
        editor=editor,
        processes=processes,
        settings=settings,
        sandbox=settings.sandbox,
    ) as stage:
        session = await stage.session()
        await stage.say(session)
        assert editor.questions == []
        return states(session)


@pytest.mark.usefixtures("no_git_variables")
async def test_plain_repository_is_read_without_a_question(
    tmp_path: Path, plain: Path, processes: SystemProcesses
) -> None:
    """Row B2: the commands of this module count as reading where nothing is wrong with the repository."""
    build(plain, tmp_path, Repository("plain"))
    assert await read_with_git(tmp_path, None, processes) == ["returned"] * len(COMMANDS)


@pytest.mark.usefixtures("no_git_variables")
@pytest.mark.parametrize("attempt", rows(TABLE))
async def test_repository_runs_nothing_when_it_is_read(
    tmp_path: Path, plain: Path, processes: SystemProcesses, attempt: Repository
) -> None:
    """Row O2, case 141: git commands that count as reading start no program of the repository; a command may be
    refused instead."""
    ran = build(plain, tmp_path, attempt)
    await read_with_git(tmp_path, attempt.cwd, processes)
    assert not ran.exists(), ran.read_text()


def test_plain_git_runs_the_programs_of_many_of_these(tmp_path: Path, plain: Path) -> None:
    """The attempts are real: git without our care runs something in a good part of these repositories."""
    real = 0
    for number, attempt in enumerate(TABLE):
        base = tmp_path / str(number)
        base.mkdir()
        ran = build(plain, base, attempt)
        cwd = base / "ws" / (attempt.cwd or ".")
        for line in COMMANDS:
            subprocess.run(line.split(), cwd=cwd, env=CLEAN, stdin=NONE, stdout=NONE, stderr=NONE, check=False)
        real += ran.exists()
    assert real >= REAL_MIN
