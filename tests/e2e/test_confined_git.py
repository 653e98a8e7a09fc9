"""git in the sandbox where its commits differ in protected files, and where its directory is elsewhere (rows O1, O3).

The server is in the test process, with real child processes and the real sandbox.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.domain.settings import SandboxSettings
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, run
from tests.support.session_state import replies, states
from tests.support.systems import linux_only, require_sandbox
from tests.support.tools import require_tool
from tests.support.users import NOBODY, root_only

pytestmark = [pytest.mark.anyio, linux_only]

WHO = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
NOT_STARTED = "The command was not started; nothing ran."


def git(folder: Path, *words: str) -> str:
    """Run git outside the sandbox; return what it prints."""
    command = [require_tool("git"), "-C", str(folder), *WHO, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


@pytest.fixture(autouse=True)
def ordinary_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A home folder of the test, without configuration."""
    require_sandbox()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def repository(root: Path) -> None:
    """On `main`; `feature` differs in protected files too, `plain` only in others, `behind` is older."""
    (root / ".github" / "workflows").mkdir(parents=True)
    git(root, "init", "-q")
    git(root, "config", "user.name", "A")  # the home folder is below /tmp, which is another one in the sandbox
    git(root, "config", "user.email", "a@b")
    for name, text in (("AGENTS.md", "one\n"), (".github/workflows/ci.yml", "one\n"), ("a.txt", "one\n")):
        (root / name).write_text(text)
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "branch", "behind")
    git(root, "checkout", "-qb", "feature")
    (root / ".github/workflows/ci.yml").write_text("two\n")
    (root / "a.txt").write_text("two\n")
    git(root, "commit", "-qam", "two")
    git(root, "checkout", "-qb", "plain", "behind")
    (root / "b.txt").write_text("b\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "b")
    git(root, "checkout", "-q", "-B", "main", "behind")
    (root / "c.txt").write_text("c\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "c")
    (root / "sub").mkdir()


async def said(folder: Path, *commands: str, write: tuple[str, ...] = (), number: int = 1) -> list[str]:
    """Run each command in the mode `auto`; return the replies. `number`: of the server on this folder."""
    plays = [asks(run(command)) for command in commands]
    settings = SandboxSettings(write=write)
    async with scripted_server(folder, *plays, processes=SystemProcesses(), sandbox=settings, run=number) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert len(states(session)) == len(commands)
        return replies(session)


def everything(root: Path) -> str:
    """What git says of the work tree, and where the branches are."""
    return git(root, "status", "--porcelain", "--branch") + git(root, "for-each-ref")


async def test_git_that_would_replace_protected_files_is_not_started(tmp_path: Path) -> None:
    """O1, O3: nothing is half done; the reply names the files and how to go on."""
    root = tmp_path / "ws"
    root.mkdir()
    repository(root)
    commands = (
        "git checkout feature",
        "git switch --detach feature",
        "git merge feature",
        "git rebase feature",
        "git reset --hard feature",
        "git cherry-pick feature",
        "git checkout feature -- .github",
        "git restore --source feature .github/workflows/ci.yml",
        "cd sub && git checkout feature",
        "echo before > before.txt; git -C sub checkout feature",
        "git checkout -q plain && git merge feature",
    )
    before = everything(root)
    for reply in await said(tmp_path, *commands):
        assert reply.startswith(NOT_STARTED)
        assert "the sandbox: .github/workflows/ci.yml. To replace them" in reply
        assert "`unconfined`" in reply
    assert everything(root) == before


async def test_git_stash_that_would_take_protected_changes_is_not_started(tmp_path: Path) -> None:
    """O1: a change that the user made in a protected file stays, and so do the others."""
    root = tmp_path / "ws"
    root.mkdir()
    repository(root)
    for name in ("AGENTS.md", "a.txt"):
        (root / name).write_text("mine\n")
    before = everything(root)
    for reply in await said(tmp_path, "git stash", "git reset --hard", "git checkout -f", "git restore ."):
        assert "AGENTS.md" in reply
        assert reply.startswith(NOT_STARTED)
    assert everything(root) == before


async def test_git_works_between_commits_that_agree_in_protected_files(tmp_path: Path) -> None:
    """O1: `git commit`, `checkout`, `merge` and `rebase` work."""
    root = tmp_path / "ws"
    root.mkdir()
    repository(root)
    commands = (
        "git checkout -q plain",
        "git rebase -q main",
        "git checkout -q -b mine && echo m > m.txt && git add m.txt && git commit -qm m",
        "git checkout -q main",
        "git merge -q --no-edit mine",
        "git checkout -q behind -- a.txt",
        "echo more >> a.txt && git stash -q && git stash pop -q && git commit -qam more",
        "git revert --no-edit HEAD",
    )
    for command, reply in zip(commands, await said(tmp_path, *commands), strict=True):
        assert "[exit code 0]" in reply, (command, reply)
    assert git(root, "status", "--porcelain") == ""


async def test_script_whose_git_kept_a_protected_file_is_told(tmp_path: Path) -> None:
    """O3: what a script starts is not seen before; the reply says which way leads on."""
    root = tmp_path / "ws"
    root.mkdir()
    repository(root)
    (root / "update.sh").write_text("git checkout feature\n")
    (reply,) = await said(tmp_path, "sh update.sh")
    assert "Protected files may have kept their old content" in reply
    assert "`unconfined`" in reply


async def test_git_in_a_linked_worktree_is_read_and_says_why_it_cannot_write(tmp_path: Path) -> None:
    """O1, O3: its git directory is outside the roots, here even below /tmp; the reply says so and how to go on."""
    main = tmp_path / "main"
    main.mkdir()
    repository(main)
    git(main, "worktree", "add", "-q", "--detach", str(tmp_path / "ws"), "plain")
    (tmp_path / "ws" / "new.txt").write_text("new\n")
    read, commit = await said(tmp_path, "git status --short && git log -1 --format=%s", "git add . && git commit -m x")
    assert read.startswith("?? new.txt\nb\n[exit code 0]")
    assert f"[The git directory {main}/.git is outside the session's folders" in commit
    assert "`unconfined`" in commit


async def test_git_directory_that_the_user_made_writable_keeps_what_chooses_programs(tmp_path: Path) -> None:
    """O1: with the git directory of a linked worktree in `sandbox.write`, git commits there, and makes no hook."""
    main = tmp_path / "main"
    main.mkdir()
    repository(main)
    git(main, "worktree", "add", "-q", "-b", "mine", str(tmp_path / "ws"), "plain")
    commands = (
        "echo n > n.txt && git add n.txt && git commit -qm n",
        f"echo x > {main}/.git/hooks/pre-commit",
        "git config core.pager x",
    )
    commit, hook, config = await said(tmp_path, *commands, write=(f"{main}/.git",))
    assert "[exit code 0]" in commit
    assert "[Changed while it ran: created n.txt]" in commit
    assert "Read-only file system" in hook
    assert "[This changes how git runs programs.]" in config
    (part,) = await said(
        tmp_path, f"echo x > {main}/.git/worktrees/ws/x", write=(f"{main}/.git/worktrees/ws",), number=2
    )
    assert "[exit code 0]" not in part


async def test_folder_below_a_repository_reads_it_and_says_why_it_cannot_write(tmp_path: Path) -> None:
    """O1, O3: the same where the session's folder is a part of a repository."""
    git(tmp_path, "init", "-q")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("a\n")
    read, add = await said(tmp_path, "git status --short -uall . | cat", "git add a.txt")
    assert read.startswith("?? a.txt\n[exit code 0]")
    assert f"[The git directory {tmp_path}/.git is outside the session's folders" in add


async def test_file_that_names_a_foreign_folder_as_git_directory_shows_nothing(tmp_path: Path) -> None:
    """O1: a file `.git` of a workspace chooses nothing that a command sees, unless the repository names it back."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "HEAD").write_text("secret\n")
    (tmp_path / "ws" / ".git").write_text(f"gitdir: {tmp_path}/foreign\n")
    (reply,) = await said(tmp_path, f"cat {tmp_path}/foreign/HEAD || true")
    assert "secret" not in reply


@root_only
async def test_root_in_the_folder_of_another_user_is_told_why_it_cannot_write(tmp_path: Path) -> None:
    """O1, O3: root has no capability inside, so a container's bind mount of a user's folder stays as it is."""
    root = tmp_path / "ws"
    root.mkdir()
    os.chown(root, NOBODY, NOBODY)
    (reply,) = await said(tmp_path, "echo a > a.txt")
    assert f"[{root} belongs to another user" in reply
    assert "`unconfined`" in reply
