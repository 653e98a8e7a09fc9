"""Reading commands in the real sandbox: repositories that try to run their own programs (rows B2, O2; case 141).

The server is in the test process, with real child processes. The agent is in plan mode, where only reads pass.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.domain.settings import SandboxSettings
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, run, says
from tests.support.session_state import calls_of, replies, states
from tests.support.systems import linux_only, require_sandbox
from tests.support.tools import require_tool

pytestmark = [pytest.mark.anyio, linux_only]

COMMANDS = ("git status", "git diff", "git diff HEAD", "git log -p", "git status --short", "git diff --stat")


def git(folder: Path, *words: str) -> None:
    """Run git as the attacker does, when nobody is looking."""
    who = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    subprocess.run([require_tool("git"), "-C", str(folder), *who, *words], check=True, capture_output=True, timeout=30)


def repository(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "one")
    (folder / "a.txt").write_text("two\n")


def plain(root: Path, evil: str) -> None:
    repository(root)


def monitor(root: Path, evil: str) -> None:
    repository(root)
    git(root, "config", "core.fsmonitor", evil)


def own_filter(root: Path, evil: str) -> None:
    repository(root)
    git(root, "config", "filter.x.clean", evil)
    (root / ".gitattributes").write_text("* filter=x\n")


def external_diff(root: Path, evil: str) -> None:
    repository(root)
    git(root, "config", "diff.external", evil)


def decoy_below_a_hostile_repository(root: Path, evil: str) -> None:
    """Case 141 (a): `sub/.git` is clean and no repository, so git would go up to the hostile one."""
    monitor(root, evil)
    (root / "sub" / ".git").mkdir(parents=True)
    (root / "sub" / ".git" / "config").write_text("[core]\n\trepositoryformatversion = 0\n")


def submodule_only_in_the_index(root: Path, evil: str) -> None:
    """Case 141 (b): `.gitmodules` is only in the index, with `ignore = none`; the submodule has a filter."""
    repository(root)
    repository(root / "module")
    git(root / "module", "config", "filter.x.clean", evil)
    (root / "module" / ".git" / "info").mkdir(exist_ok=True)
    (root / "module" / ".git" / "info" / "attributes").write_text("* filter=x\n")
    (root / ".gitmodules").write_text('[submodule "module"]\n\tpath = module\n\turl = ./module\n\tignore = none\n')
    git(root, "add", ".gitmodules", "module")
    git(root, "commit", "-q", "-m", "module")
    (root / ".gitmodules").unlink()


def filter_of_the_user(root: Path, evil: str) -> None:
    """The user's own configuration has a filter, which the repository chooses by its attributes."""
    repository(root)
    (Path.home() / ".gitconfig").write_text(f'[filter "x"]\n\tclean = {evil}\n[diff "x"]\n\ttextconv = {evil}\n')
    (root / ".gitattributes").write_text("* filter=x diff=x\n")


def included_by_the_user(root: Path, evil: str) -> None:
    """The user's configuration includes a file that the sandbox does not show: it counts as none."""
    filter_of_the_user(root, evil)
    (Path.home() / "more").write_text(f"[core]\n\tfsmonitor = {evil}\n")
    with (Path.home() / ".gitconfig").open("a") as file:
        file.write("[include]\n\tpath = ~/more\n")


HOSTILE = [
    monitor,
    own_filter,
    included_by_the_user,
    external_diff,
    decoy_below_a_hostile_repository,
    submodule_only_in_the_index,
    filter_of_the_user,
]


@pytest.fixture(autouse=True)
def ordinary_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a variable of git's own, git would be no reading; and a home folder of the test."""
    require_sandbox()
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def evil(tmp_path: Path) -> str:
    """A program outside the workspace that leaves a mark where a confined reader cannot write."""
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\ncat\n")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("attack", HOSTILE, ids=lambda attack: attack.__name__)
async def test_git_that_counts_as_reading_runs_nothing_of_the_repository(
    tmp_path: Path, evil: str, attack: Callable[[Path, str], None]
) -> None:
    """O2, B2, case 141: in plan mode each command is refused or leaves no mark, from every folder of the repository."""
    root = tmp_path / "ws"
    attack(root, evil)
    folders = [".", *(["sub"] if (root / "sub").exists() else []), *(["module"] if (root / "module").exists() else [])]
    calls = [asks(run(command, cwd=folder)) for command in COMMANDS for folder in folders]
    plays = [play for call in calls for play in (call, says("ok"))]
    async with scripted_server(tmp_path, *plays, processes=SystemProcesses(), sandbox=SandboxSettings()) as stage:
        session = await stage.session("plan")
        for _ in calls:  # a turn each: confined commands are slow on a busy machine
            await stage.say(session)
        assert not (tmp_path / "ran").exists()
        assert set(states(session)) <= {"returned", "refused"}
        assert len(states(session)) == len(calls)
        assert "returned" in states(session), "it is still read"


async def test_git_of_an_ordinary_repository_is_read_in_plan_mode(tmp_path: Path) -> None:
    """O2: status, diff and log work, confined, and say how."""
    repository(tmp_path / "ws")
    plays = [
        asks(run("git status --short")),
        asks(run("git diff")),
        asks(run("git log --oneline")),
        asks(run("ls -la")),
    ]
    async with scripted_server(tmp_path, *plays, processes=SystemProcesses(), sandbox=SandboxSettings()) as stage:
        session = await stage.session("plan")
        await stage.say(session)
        assert states(session) == ["returned"] * 4, replies(session)
        assert " M a.txt" in replies(session)[0]
        assert "-one\n+two" in replies(session)[1]
        assert "one" in replies(session)[2]
        for call in calls_of(session):
            view = stage.last_view(call.call_id)
            assert view.sandbox is not None
            assert view.sandbox.kind in ("landlock", "bubblewrap")


async def test_git_reads_with_the_user_s_excludes_and_without_filters(tmp_path: Path, evil: str) -> None:
    """O2: global excludes count, wherever in the home folder they are; a filter of user or repository, as LFS has, does
    not run and makes an unchanged file no changed one."""
    root = tmp_path / "ws"
    repository(root)
    git(root, "config", "filter.lfs.clean", "sed s/two/one/")
    (root / ".gitattributes").write_text("a.txt filter=lfs\n")
    os.utime(root / "a.txt", (1, 1))  # older than the index, so that git need not read it again
    git(root, "add", "a.txt", ".gitattributes")  # the filter ran here: the index has another text than the file
    git(root, "commit", "-q", "-m", "two")
    git(root, "config", "filter.lfs.clean", evil)
    (Path.home() / ".gitconfig").write_text(f'[core]\n\texcludesFile = ~/.ignored\n[filter "lfs"]\n\tclean = {evil}\n')
    (Path.home() / ".ignored").write_text("*.scratch\n")
    (root / "b.scratch").write_text("b")
    (root / "new.txt").write_text("new")
    plays = [asks(run("git status --short"))]
    async with scripted_server(tmp_path, *plays, processes=SystemProcesses(), sandbox=SandboxSettings()) as stage:
        session = await stage.session("plan")
        await stage.say(session)
        (reply,) = replies(session)
        assert reply.split("\n[")[0].splitlines() == ["?? new.txt"]
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("whose", ["user", "repository"])
async def test_no_filter_starts_even_in_the_sandbox(tmp_path: Path, whose: str) -> None:
    """O2, case 141: a filter or text conversion that starts would show in what git prints; no sandbox prevents that."""
    root = tmp_path / "ws"
    repository(root)
    programs = (
        '[filter "a b"]\n\tclean = echo MARKED\n\tsmudge = echo MARKED\n\tprocess = echo MARKED\n\trequired = true\n'
        '[diff "a"]\n\ttextconv = echo MARKED\n\tcommand = echo MARKED\n[diff]\n\texternal = echo MARKED\n'
    )
    with (Path.home() / ".gitconfig" if whose == "user" else root / ".git" / "config").open("a") as file:
        file.write(programs.replace("a b", "ab"))
    (root / ".gitattributes").write_text("* filter=ab diff=a\n")
    plays = [asks(run("git diff")), asks(run("git log -p"))]
    async with scripted_server(tmp_path, *plays, processes=SystemProcesses(), sandbox=SandboxSettings()) as stage:
        session = await stage.session("plan")
        await stage.say(session)
        assert states(session) == ["returned"] * 2
        assert "-one\n+two" in replies(session)[0]
        assert "+one" in replies(session)[1]
        assert not any("MARKED" in reply for reply in replies(session))


async def test_untrusted_repository_is_not_read_by_git(tmp_path: Path) -> None:
    """O2: in an untrusted workspace git is an ordinary command, which is refused there."""
    repository(tmp_path / "ws")
    async with scripted_server(
        tmp_path,
        asks(run("git status")),
        asks(run("cat a.txt")),
        processes=SystemProcesses(),
        sandbox=SandboxSettings(),
    ) as stage:
        stage.registry.context.settings = attrs.evolve(stage.registry.context.settings, trusted=False)
        session = await stage.session("auto")
        await stage.say(session)
        assert states(session) == ["refused", "returned"]
