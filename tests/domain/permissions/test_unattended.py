"""No editor, pager, prompt or terminal blocks a command (case 118). A new program is one line of a table."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from steadyhand.domain.permissions.unattended import EDITOR_NAMES, FAILING_EDITOR, UNATTENDED_ENVIRONMENT
from tests.support.tools import require_tool

run_s_max = 60
WANTED = "cannot open an editor"

REPOSITORY = (
    "git init -q . && git config user.name T && git config user.email t@example.org && echo 1 > a && git add a"
    " && git commit -qm first && echo 2 > a && git commit -qam second && git checkout -qb side HEAD~1"
    " && echo b > b && git add b && git commit -qm third && git checkout -q -"
)
# A command that wants an editor: it fails, says that one was wanted, and changes nothing.
WANT_AN_EDITOR = (
    "git commit --allow-empty",
    "git commit --amend",
    "git tag -a v1",
    "git rebase -i HEAD~1",
    "git -c core.editor=cat -c sequence.editor=cat rebase -i HEAD~1",
    "git notes add",
    "git branch --edit-description",
    "git merge --edit side",
    'sh -c "$EDITOR a"',
    'sh -c "$VISUAL a"',
)
# A command that would page, ask or wait elsewhere: it ends by itself.
GO_ON = (
    "git log",
    "git -c core.pager=less diff HEAD~1",
    "git merge side",
    "git pull --no-rebase . side",
    "git --paginate log",
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    require_tool("git")
    assert run(REPOSITORY, tmp_path).returncode == 0
    return tmp_path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as a command of the agent: without a terminal and without input."""
    return subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={**os.environ, **UNATTENDED_ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=run_s_max,
        start_new_session=True,
        check=False,
    )


@pytest.mark.parametrize("command", WANT_AN_EDITOR)
def test_command_that_wants_an_editor_fails_and_says_so(repository: Path, command: str) -> None:
    """Case 118."""
    before = run("git log --all --format=%H; git status --short; git tag", repository).stdout
    ended = run(command, repository)
    assert WANTED in ended.stdout + ended.stderr
    assert ended.returncode != 0
    run("git rebase --abort; git merge --abort", repository)
    assert run("git log --all --format=%H; git status --short; git tag", repository).stdout == before


@pytest.mark.parametrize("command", GO_ON)
def test_command_that_pages_or_asks_ends_by_itself(repository: Path, command: str) -> None:
    """Case 118."""
    ended = run(command, repository)
    assert (ended.returncode, WANTED in ended.stderr) == (0, False), ended.stderr


@pytest.mark.parametrize("words", [[*shlex.split(FAILING_EDITOR), "file"], FAILING_EDITOR.split()])
def test_failing_editor_fails_however_its_words_are_split(words: list[str]) -> None:
    """Case 118: some programs start an editor without a shell, and some split its words at each blank."""
    assert subprocess.run(words, capture_output=True, timeout=run_s_max, check=False).returncode != 0


def test_unattended_environment_sets_every_editor() -> None:
    """Case 118: no editor of the table can be opened."""
    assert {UNATTENDED_ENVIRONMENT[name] for name in EDITOR_NAMES} == {FAILING_EDITOR}
