"""What is asked before a command line of git (row O1, decision 59)."""

from __future__ import annotations

import pytest

from steadyhand.domain.shell.git_changes import QUESTIONS_MAX, git_questions

ASKS = {
    "git checkout f": "HEAD f",
    "git checkout -b new f": "HEAD f",
    "git checkout -": "HEAD @{-1}",
    "git checkout f -- a b": "f -- a b",
    "git checkout -f": "HEAD",
    "git switch -c new f": "HEAD f",
    "git switch --discard-changes f": "HEAD",
    "git merge -m x f": "HEAD...f",
    "git merge": "HEAD...@{upstream}",
    "git merge --abort": "HEAD",
    "git rebase f": "HEAD f",
    "git rebase --onto g f": "HEAD g",
    "git rebase -i -x 'make test' f": "HEAD f",
    "git rebase --abort": "HEAD ORIG_HEAD",
    "git pull": "HEAD...@{upstream}",
    "git reset --hard": "HEAD",
    "git reset --keep f": "f",
    "git restore a": "-- a",
    "git restore --source=f a": "f -- a",
    "git cherry-pick f": "f^ f",
    "git revert --no-edit f..g": "f..g",
    "git stash": "HEAD",
    "git stash push -- a": "HEAD -- a",
    "git stash pop": "stash@{0}^ stash@{0}",
    "git stash apply 2": "stash@{2}^ stash@{2}",
    "git stash -u": "ls-files",
    "git -c a.b=c checkout f": "HEAD f",
    "time git merge f": "HEAD...f",
    "make && git merge f | cat": "HEAD...f",
    "sh -c 'git merge f'": "HEAD...f",
}
ASKS_NOTHING = (
    "git status",
    "git commit -am x",
    "git reset f",
    "git restore --staged a",
    "git rebase --continue",
    "git merge --continue",
    "git stash list",
    "git --git-dir=x checkout f",
    'git checkout "$branch"',
    "echo git checkout f",
    "git fetch",
)


@pytest.mark.parametrize(("line", "operands"), ASKS.items())
def test_questions_cover_what_git_would_replace(line: str, operands: str) -> None:
    """O1: as the words show it, with options and their values apart."""
    asked = [" ".join(question.words) for question in git_questions(line)]
    told = [one if "--" in operands else one.replace(" -- ", " ") for one in asked]
    assert any(f"{operands} " in f"{one} " for one in told), asked
    assert all(one.startswith(("diff --name-only", "ls-files")) for one in asked)


@pytest.mark.parametrize("line", ASKS_NOTHING)
def test_command_that_replaces_nothing_or_does_not_show_it_asks_nothing(line: str) -> None:
    """Decision 59: what the words do not show counts as none."""
    assert git_questions(line) == ()


def test_words_of_the_line_are_never_options_of_the_question() -> None:
    """O2: a revision that begins like an option stays one."""
    for question in git_questions("git checkout -- --output=x; git merge -- --output=x"):
        at = question.words.index("--output=x") if "--output=x" in question.words else len(question.words)
        assert "--" in question.words[:at] or "--end-of-options" in question.words[:at]


def test_folder_follows_the_line() -> None:
    """O1: `cd` and `-C` lead to the repository that is asked."""
    folders = [question.folder for question in git_questions("cd a && git -C b merge f; cd /c; git merge f")]
    assert folders == ["./a/b", "/c"]


def test_questions_of_one_line_are_bounded() -> None:
    """I13: a line of many commands asks a bounded number."""
    line = "; ".join(f"git merge f{number}" for number in range(QUESTIONS_MAX + 1))
    assert len(git_questions(line)) == QUESTIONS_MAX
