"""Only commands that certainly read are classified as reading commands (row B2)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from steadyhand.domain.permissions.git_reading import READING_ENVIRONMENT, git_trouble
from steadyhand.domain.permissions.readonly_commands import (
    COMMAND_CHARS_MAX,
    is_git,
    is_reading_command,
    reading_paths,
)

READS: list[tuple[str, tuple[str, ...]]] = [
    ("ls", ()),
    ("  ls  ", ()),
    ("ls -la", ()),
    ("ls -1 src tests", ("src", "tests")),
    ("ls -- -odd", ("-odd",)),
    ("ls --recursive src", ("src",)),
    ("ls 'a b'", ("a b",)),
    ("ls ../up /etc", ("../up", "/etc")),
    ("pwd", ()),
    ("pwd -P", ()),
    ("cat a.txt", ("a.txt",)),
    ('cat "a b.txt" c', ("a b.txt", "c")),
    ("cat -n a.txt", ("a.txt",)),
    ("cat -vET a.txt", ("a.txt",)),
    ("cat /etc/passwd", ("/etc/passwd",)),
    ("cat naïve.txt", ("naïve.txt",)),
    ("head a", ("a",)),
    ("head -n 3 a b", ("a", "b")),
    ("tail -20 a", ("a",)),
    ("wc -lw a", ("a",)),
    ("git status", ()),
    ("git --no-pager status", ()),
    ("git status --porcelain=v2 -b", ()),
    ("git status -sb src", ("src",)),
    ("git diff", ()),
    ("git diff --stat HEAD~1", ("HEAD~1",)),
    ("git diff --cached -- a.py", ("a.py",)),
    ("git diff HEAD^ HEAD -U10", ("HEAD^", "HEAD")),
    ("git diff main..topic", ("main..topic",)),
    ("git log", ()),
    ("git log --oneline -n 5", ()),
    ("git log -5 --stat", ()),
    ("git log -n5 -p -- src/a.py", ("src/a.py",)),
    ("git log --since='2 weeks ago' --author=Ann", ()),
    ("git log --format=oneline", ()),
    ("git --no-pager log --graph --all", ()),
]

NOT_READING: list[str] = [
    # empty commands and commands that are not on the list
    "",
    "   ",
    "rm a",
    "echo x",
    "find . -delete",
    "grep x y",
    "head",
    "head -c 5 a",
    "tail -f a",
    "tail -F a",
    "tail --follow a",
    "wc",
    "wc --files0-from=a",
    "env ls",
    "sudo ls",
    "command ls",
    "exec ls",
    "./ls",
    "/bin/ls",
    "LS",
    "ls.exe",
    # more than one command
    "ls; rm a",
    "ls && rm a",
    "ls || rm a",
    "ls | tee a",
    "ls & rm a",
    "ls &",
    "ls\nrm a",
    "ls\r\nrm a",
    "ls \\\n-l",
    "! ls",
    "(ls)",
    "{ ls; }",
    # redirections and substitutions
    "ls > a",
    "ls>a",
    "cat a >> b",
    "cat < a",
    "cat <(rm a)",
    "ls 2>&1",
    "cat $(rm a)",
    "cat `rm a`",
    'cat "$(rm a)"',
    "cat '$(harmless)'",
    "cat $HOME",
    "cat ${X}",
    "ls $IFS-la",
    # words that the shell would expand or strip
    "ls *",
    "cat a?",
    "cat [ab]",
    "cat {a,b}",
    "ls ~",
    "ls ~root",
    "cat ~/x",
    "git diff --author=~/x",
    "ls a\\ b",
    "ls # x",
    "ls 'a",
    'ls "a',
    "A=b ls",
    "GIT_PAGER=evil git log",
    "ls \x00",
    "ls \x1b",
    "ls\u00a0-l",
    "ls \u2028",
    # options not on the list
    "ls --dired-oops",
    "ls --col=always",
    "ls -L",
    "ls -w 5",
    "ls --hyperlink",
    "pwd x",
    "pwd -x",
    "cat",
    "cat -",
    "cat -- ",
    "cat -x a",
    "cat --num a",
    # git
    "git",
    "git -c core.pager=evil status",
    "git -C .. status",
    "git --git-dir=x status",
    "git --exec-path=. status",
    "git -p log",
    "git --paginate log",
    "git --no-pager --no-pager log",
    "git --no-pager commit",
    "git commit -m x",
    "git checkout .",
    "git stash",
    "git branch",
    "git show",
    "git grep -Oevil x",
    "git status -v",
    "git status --verbose",
    "git status --column",
    "git diff --output=a",
    "git diff --output a",
    "git diff -o a",
    "git diff --outp=a",
    "git diff --ext-diff",
    "git diff --textconv",
    "git diff --no-index a b",
    "git diff -Oa",
    "git diff -U",
    "git diff -U9999999",
    "git difftool",
    "git log --ext-diff",
    "git log --show-signature",
    "git log --format=%G?",
    "git log --pretty=format:%GG",
    "git log --output=a",
    "git log -n",
    "git log -n x",
    "git log -n --output=a",
    "git log -L1,2:a",
    "git log --since",
    "git log --oneline=x",
    "git log HEAD@{1}",
    "git diff :(top)x",
]


@pytest.mark.parametrize(("command", "paths"), READS)
def test_reading_command_on_the_list_gives_its_possible_paths(command: str, paths: tuple[str, ...]) -> None:
    """Row B2: the command is on the list, and the words that may name a path are returned."""
    assert is_reading_command(command)
    assert reading_paths(command) == paths


@pytest.mark.parametrize("command", [*NOT_READING, "ls " + "a" * COMMAND_CHARS_MAX])
def test_reading_command_any_other_command_is_not_reading(command: str) -> None:
    """Row B2: every other command may have an effect."""
    assert not is_reading_command(command)
    assert reading_paths(command) == ()
    assert not is_git(command)


def test_is_git_is_true_only_for_git_commands() -> None:
    """Row B2: for git the repository matters too."""
    assert is_git("git --no-pager diff")
    assert not is_git("cat git")


ORDINARY = """[core]
\trepositoryformatversion = 0
\tbare = false
[remote "origin"]
\turl = https://example.org/x.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
\tmerge = refs/heads/main
"""


def test_git_trouble_ordinary_configuration_is_accepted() -> None:
    """Row B2."""
    assert git_trouble(ORDINARY, gitmodules=False) is None


@pytest.mark.parametrize(
    "config",
    [
        '[filter "x"]\n\tclean = evil',
        "[FILTER.x]\nsmudge=a",
        '[core] [filter "x"]',
        '[diff "x"]\n\ttextconv = evil',
        '[diff "x"] command = evil',
        '[diff "x"]command=evil',
        "[diff]\n\texternal=evil",
        "[diff]\r\n\tExternal = evil\r\n",
        "\ufeff[filter.x]",
    ],
)
def test_git_trouble_filters_and_drivers_are_no_trouble(config: str) -> None:
    """Row O2: they are switched off one by one when git is run."""
    assert git_trouble(ORDINARY + config, gitmodules=False) is None


@pytest.mark.parametrize(
    "config",
    [
        "[include]\n path = evil",
        '[includeIf "gitdir:x"]\npath=evil',
        "[core]\n\tworktree = /elsewhere",
        "[core]\n attributesFile=x",
        '[submodule "x"]\n\tactive = true',
        "[extensions]\n\tworktreeConfig = true",
        "[extensions]\n\tpartialClone = origin",
        '[remote "o"]\n\tpromisor',
    ],
)
def test_git_trouble_configuration_that_names_programs_is_refused(config: str) -> None:
    """Row B2: what includes another file or leads elsewhere is no reading."""
    assert git_trouble(ORDINARY + config, gitmodules=False) is not None
    assert git_trouble(config, gitmodules=False) is not None


def test_git_trouble_submodules_are_refused() -> None:
    """Row B2: git would enter them and use their configuration."""
    assert git_trouble(ORDINARY, gitmodules=True) is not None


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("command", ["git status", "git diff", "git log -p", "git --no-pager log --oneline"])
def test_reading_environment_keeps_git_from_running_repository_programs(tmp_path: Path, command: str) -> None:
    """Row B2: a real git, a monitor program in the repository and in one inside it, and signatures to be checked."""
    plain = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str, cwd: Path = tmp_path) -> None:
        named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *named, *words], cwd=cwd, env=plain, check=True, capture_output=True, timeout=30)

    inner = tmp_path / "inner"
    for place in (inner, tmp_path):
        place.mkdir(exist_ok=True)
        git("init", "-q", cwd=place)
        (place / "f").write_text("1\n")
        git("add", "--all", cwd=place)
        git("commit", "-q", "-m", "x", cwd=place)
    for place in (inner, tmp_path):
        (place / "f").write_text("2\n")
        git("config", "core.fsmonitor", f"touch '{tmp_path}/ran'; false", cwd=place)
    git("config", "log.showSignature", "true")
    index = (tmp_path / ".git" / "index").read_bytes()

    guarded = {**plain, **READING_ENVIRONMENT}
    done = subprocess.run(command, shell=True, cwd=tmp_path, env=guarded, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / ".git" / "index").read_bytes() == index

    subprocess.run("git status", shell=True, cwd=tmp_path, env=plain, capture_output=True, timeout=30, check=False)
    assert (tmp_path / "ran").exists(), "without the environment the program must run, or this test would prove nothing"
