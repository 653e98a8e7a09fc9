"""Commands that pretend to read: in the mode `plan` none of them may run (rows B2, O2; cases 141, 144).

`plan` lets pass what only reads. Each line writes, runs another program, opens a connection, reads outside of the
workspace, or waits for ever, and looks like a command that reads.
"""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from tests.hostile.attempts import play, rows, settings_of
from tests.support.model import run
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
CLASS = "commands"


@attrs.frozen
class Command:
    """One command line that must be refused in `plan`, or asked about because of where it leads."""

    name: str
    cwd: str | None = None
    pending: str | None = None


TABLE = [
    Command(line)
    for line in (
        # Redirections and lists.
        "cat a.txt > b.txt",
        "cat a.txt >> b.txt",
        "cat a.txt >| b.txt",
        "cat a.txt 2> b.txt",
        "cat a.txt &> b.txt",
        "cat a.txt >&b.txt",
        "cat a.txt <> b.txt",
        "cat < a.txt",
        "cat <<< x",
        "cat a.txt; rm a.txt",
        "cat a.txt && rm a.txt",
        "cat a.txt || rm a.txt",
        "cat a.txt | sh",
        "cat a.txt & rm a.txt",
        "cat a.txt\nrm a.txt",
        "cat a.txt\rrm a.txt",
        "(cat a.txt)",
        "{ cat a.txt; }",
        "! cat a.txt",
        "cat a.txt #",
        "#\nrm a.txt",
        # Substitution and expansion.
        "cat $(rm a.txt)",
        "cat `rm a.txt`",
        "cat <(rm a.txt)",
        'cat "$(rm a.txt)"',
        "cat ${x:=a.txt}",
        "cat $a",
        'cat "$a"',
        "cat $'a.txt'",
        "cat *",
        "cat ?.txt",
        "cat [a].txt",
        "cat {a,b}.txt",
        "cat ~/x",
        "cat ~root/x",
        "cat \\a.txt",
        "cat a\\ b",
        # The program is another one.
        "./cat a.txt",
        "/bin/cat a.txt",
        "cat.exe a.txt",
        "CAT a.txt",
        "\\cat a.txt",
        "command cat a.txt",
        "exec cat a.txt",
        "env cat a.txt",
        "A=1 cat a.txt",
        "PATH=. cat a.txt",
        "LD_PRELOAD=./x.so cat a.txt",
        "sudo cat a.txt",
        "time cat a.txt",
        "builtin pwd",
        "eval cat a.txt",
        "sh -c 'cat a.txt'",
        "bash a.txt",
        "source a.txt",
        ". a.txt",
        # Options that write, run or wait.
        "cat",
        "cat -",
        "cat a.txt -",
        "cat -u",
        "cat --help",
        "cat --version --output=x a.txt",
        "ls --hyperlink=auto --dired",
        "ls -l --time-style=+%s$(x)",
        "ls > x",
        "pwd -X",
        "pwd x",
        "head -n 1 a.txt > b",
        "head --bytes=1 a.txt -c",
        "tail -f a.txt",
        "tail -F a.txt",
        "tail --follow a.txt",
        "tail --pid=1 a.txt",
        "tail -n +1 -f a.txt",
        "wc -l < a.txt",
        "wc --files0-from=- ",
        "wc --files0-from=x",
        "sort -o a.txt a.txt",
        "sort --compress-program=./x a.txt",
        "sed -i s/a/b/ a.txt",
        "sed w\\ b.txt a.txt",
        "sed 's/a/b/e' a.txt",
        "awk 'BEGIN{system(\"rm a.txt\")}'",
        "awk '{print > \"b\"}' a.txt",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -fprint b",
        "find . -ok rm {} ;",
        "grep x a.txt > b",
        "grep -f /dev/stdin a.txt",
        "tee b.txt",
        "cp a.txt b.txt",
        "mv a.txt b.txt",
        "rm a.txt",
        "touch b",
        "mkdir b",
        "ln -s / b",
        "chmod 777 a.txt",
        "xargs cat",
        "less a.txt",
        "more a.txt",
        "vi a.txt",
        "man ls",
        "dd if=a.txt of=b",
        "curl https://evil.example",
        "nc evil.example 1",
        "python3 -c 1",
        "node -e 1",
        "make",
        "npm test",
        # Git beyond what only reads.
        "git",
        "git -c core.pager=./x status",
        "git -C .. status",
        "git --git-dir=x status",
        "git --exec-path=. status",
        "git -p log",
        "git --paginate log",
        "git help status",
        "git stat",
        "git diff --ext-diff",
        "git diff --textconv",
        "git diff --output=b",
        "git diff --no-index a.txt /etc/passwd",
        "git diff -O../x",
        "git log --output=b",
        "git log -p --ext-diff",
        "git log --textconv -p",
        "git log --show-signature",
        "git log --format=%G?",
        "git log --pretty=format:%GG",
        "git log --remotes=x --exec=y",
        "git log -n x",
        "git log --stdin",
        "git status --column=always -v -v",
        "git status --ignore-submodules=none",
        "git show HEAD",
        "git show --textconv HEAD:x",
        "git blame a.txt",
        "git grep -O./x a",
        "git grep --open-files-in-pager=./x a",
        "git ls-files",
        "git branch x",
        "git tag x",
        "git stash",
        "git fetch",
        "git gc",
        "git rev-parse HEAD",
        "git difftool -y -x ./x",
        "git commit -m x",
        "git checkout .",
        "git clean -fdx",
        "git config core.pager ./x",
        "git archive --remote=ssh://evil.example x",
        "git bundle create x --all",
        "git apply x",
        "git cat-file --textconv HEAD:x",
        "git ls-remote ext::./x",
        # Places outside of the workspace, and what is no file.
        "cat ../secret",
        "cat a.txt ../secret",
        "cat /etc/passwd",
        "cat /proc/self/environ",
        "cat /dev/tty",
        "cat /dev/stdin",
        "cat out/secret",
        "cat link-to-secret",
        "cat x/../../secret",
        "ls ..",
        "ls /",
        "ls out",
        "cat pipe",
        "cat nothing",
        "cat --squeeze-blank ../secret",
        "head -n 1 ../secret",
        "tail -n 1 /etc/passwd",
        "wc -l ../secret",
        "git diff ../secret",
        "git log -- ../secret",
        "git diff HEAD -- /etc/passwd",
        "cat file:///etc/passwd",
        "cat a.txt:../secret",
        "cat ./../secret",
        "cat //etc/passwd",
        # Characters.
        "cat\u00a0a.txt",
        "cat\u2003a.txt",
        "cat a.txt\u2028rm a.txt",
        "cat a.txt\x00rm a.txt",
        "cat a.txt\x0brm a.txt",
        "cat\x0ca.txt",
        "\ufeffcat a.txt",
        "c\u0430t a.txt",
        "cat \u202ea.txt",
        "cat a.txt\x1b[2K",
        "cat " + "a.txt " * 2_000,
        "cat 'a.txt",
        'cat "a.txt',
        "cat a.txt\\",
        "cat a.txt \\\n> b.txt",
        "",
    )
]
IN_A_FOLDER = [
    Command("git status", cwd="bare"),
    Command("git status", cwd="link-out"),
    Command("ls", cwd="../"),
    Command("cat secret", cwd="out"),
    Command("pwd", cwd="/etc"),
    Command("git log", cwd="nested/fake"),
]


def arrange(workspace: Workspace) -> None:
    """A workspace with links out of it, a pipe, a secret beside it, and a folder that looks like a bare repository."""
    workspace.write("a.txt", "a\n")
    (workspace.base / "secret").write_text("SECRET\n")
    (workspace.base / "outside").mkdir()
    (workspace.base / "outside" / "secret").write_text("SECRET\n")
    (workspace.root / "out").symlink_to(workspace.base / "outside")
    (workspace.root / "link-out").symlink_to(workspace.base / "outside")
    (workspace.root / "link-to-secret").symlink_to(workspace.base / "secret")
    os.mkfifo(workspace.root / "pipe")
    for folder in ("bare", "nested/fake/.git"):
        for name in ("objects", "refs"):
            (workspace.root / folder / name).mkdir(parents=True)
        workspace.write(f"{folder}/HEAD", "ref: refs/heads/main\n")
        workspace.write(
            f"{folder}/config", '[core]\n\tfsmonitor = ./evil\n\tbare = true\n[filter "x"]\n\tclean = ./evil\n'
        )


@pytest.mark.parametrize("attempt", rows(TABLE))
async def test_command_that_pretends_to_read_does_not_run(tmp_path: Path, attempt: Command) -> None:
    """Row B2: the command is no reading command, so the mode `plan` refuses it; no process starts."""
    done = await play(tmp_path, run(attempt.name), settings_of(mode="plan"), arrange)
    assert (done.did, done.commands) == ("refused", ())


@pytest.mark.parametrize("attempt", rows(attrs.evolve(each, name=f"{each.name} in {each.cwd}") for each in IN_A_FOLDER))
async def test_reading_command_elsewhere_does_not_run(tmp_path: Path, attempt: Command) -> None:
    """Row B2, case 141: a folder that is outside, or holds a repository of its own, makes it an ordinary command."""
    line = attempt.name.rpartition(" in ")[0]
    done = await play(tmp_path, run(line, cwd=attempt.cwd), settings_of(mode="plan"), arrange)
    assert (done.did, done.commands) == ("refused", ())
