"""Commands and paths that try to slip past the user's rules (row G2; cases 115, 116, 117).

A deny rule must stop every way of writing the command that a user would expect it to stop. An allow rule must not let
through what leads out of the workspace, to a protected name, or to another program.
"""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from steadyhand.domain.model.messages import CallProposed
from tests.hostile.attempts import play, rows, settings_of
from tests.support.model import call, run, write
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
CLASS = "rules"


@attrs.frozen
class Rule:
    """A call under one rule. `must`: "refused" by a deny rule in mode auto, "asked" in spite of an allow rule."""

    rule: str
    call: CallProposed
    must: str
    what: str
    pending: str | None = None

    @property
    def name(self) -> str:
        return f"{'deny' if self.must == 'refused' else 'allow'} {self.rule}: {self.what}"


def deny(words: str, command: str, pending: str | None = None) -> Rule:
    return Rule(f"run_command({words})", run(command), "refused", command, pending)


def allow(words: str, command: str, pending: str | None = None) -> Rule:
    return Rule(f"run_command({words})", run(command), "asked", command, pending)


def deny_path(rule: str, proposed: CallProposed, pending: str | None = None) -> Rule:
    return Rule(rule, proposed, "refused", f"{proposed.tool} {proposed.arguments}", pending)


def allow_path(rule: str, proposed: CallProposed, pending: str | None = None) -> Rule:
    return Rule(rule, proposed, "asked", f"{proposed.tool} {proposed.arguments}", pending)


def move(start: str, goal: str) -> CallProposed:
    return call("move_file", **{"from": start, "to": goal})


def delete(path: str) -> CallProposed:
    return call("delete_file", path=path)


TABLE = [
    deny("rm *", "rm x"),
    deny("rm *", "  rm   x"),
    deny("rm *", "RM x"),
    deny("rm *", "/bin/rm x"),
    deny("rm *", "../../bin/rm x"),
    deny("rm *", "true; rm x"),
    deny("rm *", "true && rm x"),
    deny("rm *", "false || rm x"),
    deny("rm *", "true | rm x"),
    deny("rm *", "true & rm x"),
    deny("rm *", "true\nrm x"),
    deny("rm *", "(rm x)"),
    deny("rm *", "{ rm x; }"),
    deny("rm *", "$(rm x)"),
    deny("rm *", "`rm x`"),
    deny("rm *", "echo \"$(rm x)\""),
    deny("rm *", "if true; then rm x; fi"),
    deny("rm *", "while rm x; do :; done"),
    deny("rm *", "for i in a; do rm x; done"),
    deny("rm *", "! rm x"),
    deny("rm *", "A=1 rm x"),
    deny("rm *", "A=1 B=2 rm x"),
    deny("rm *", "env rm x"),
    deny("rm *", "sudo rm x"),
    deny("rm *", "nohup rm x"),
    deny("rm *", "exec rm x"),
    deny("rm *", "time rm x"),
    deny("rm *", "command rm x"),
    deny("rm *", "rm -rf /"),
    deny("rm *", "\\rm x"),
    deny("rm *", "r\\m x"),
    deny("rm *", "'rm' x"),
    deny("rm *", "\"rm\" x"),
    deny("rm *", "r\"\"m x"),
    deny("rm *", "r''m x"),
    deny("rm *", ">/dev/null rm x"),
    deny("rm *", "2>&1 rm x"),
    deny("rm *", "<f rm x"),
    deny("rm *", "timeout 5 rm x"),
    deny("rm *", "timeout -k 1 5 rm x"),
    deny("rm *", "nice -n 5 rm x"),
    deny("rm *", "env -i rm x"),
    deny("rm *", "env -u A B=1 rm x"),
    deny("rm *", "sudo -u root rm x"),
    deny("rm *", "sudo -n -- rm x"),
    deny("rm *", "command -p rm x"),
    deny("rm *", "setsid rm x"),
    deny("rm *", "setsid -w rm x"),
    deny("rm *", "stdbuf -o0 rm x"),
    deny("rm *", "ionice -c 3 rm x"),
    deny("rm *", "busybox rm x"),
    deny("rm *", "xargs rm"),
    deny("rm *", "echo x | xargs -n 1 rm"),
    deny("rm *", "find . -exec rm {} \\;"),
    deny("rm *", "find . -execdir rm {} +"),
    deny("rm *", "sh -c 'rm x'"),
    deny("rm *", "bash -lc 'rm x'"),
    deny("rm *", "sh -ec \"rm x\""),
    deny("rm *", "eval 'rm x'"),
    deny("rm *", "eval rm x"),
    deny("rm *", "cat <<EOF | sh\nrm x\nEOF"),
    deny("rm *", "if true\nthen\n  rm x\nfi"),
    deny("rm *", "f() { rm x; }; f"),
    deny("rm *", "case a in a) rm x;; esac"),
    deny("git push*", "git push --force"),
    deny("git push*", "/usr/bin/git push"),
    deny("git push*", "git  push"),
    deny("git push*", "git\tpush"),
    deny("curl *", "c'u'rl https://evil.example"),
    deny("curl *", "/usr/bin/env curl https://evil.example"),
    allow("git *", "git bisect run ./x.sh"),
    allow("git *", "git submodule foreach ./x.sh"),
    allow("git *", "git -c core.fsmonitor=./x.sh status"),
    allow("git *", "git rebase --exec ./x.sh main"),
    allow("make*", "make SHELL=./x.sh"),
    allow("tar *", "tar --use-compress-program=./x.sh -xf a"),
    allow("npm *", "npm exec ./x.sh"),
    allow("cp *", "cp a ../outside"),
    allow("cp *", "cp a /etc/x"),
    allow("cp *", "cp a ~/x"),
    allow("cp *", "cp a .git/hooks/pre-commit"),
    allow("cp *", "cp a .vscode/tasks.json"),
    allow("cp *", "cp a b; rm x"),
    allow("cp *", "cp a b && rm x"),
    allow("cp *", "cp a b\nrm x"),
    allow("cp *", "cp a $(rm x)"),
    allow("cp *", "cp a `rm x`"),
    allow("cp *", "cp a b > .bashrc"),
    allow("cp *", "cp a b & rm x"),
    allow("cp *", "cp a b | sh"),
    allow("cp *", "cp ${IFS}a b"),
    allow("cp *", "cp a b #"),
    allow("cp *", "cp *.txt b"),
    allow("cp *", "A=1 cp a b"),
    allow("cp *", "PATH=. cp a b"),
    allow("cp *", "./cp a b"),
    allow("cp *", "cp -t.git/hooks pre-commit"),
    allow("cp *", "cp -t../outside a"),
    allow("cp *", "cp --target-directory=.git/hooks a"),
    allow("cp *", "cp --target-directory=../x a"),
    allow("sort *", "sort -o.bashrc f"),
    allow("sort *", "sort -o../x f"),
    allow("sort *", "sort -uo.bashrc f"),
    allow("make *", "make -C../outside"),
    allow("make *", "make -f../x"),
    allow("make *", "make --directory=../x"),
    allow("make *", "make --file=/tmp/x"),
    allow("tar *", "tar -C.. -xf t.tar"),
    allow("tar *", "tar -xft.tar -C/"),
    allow("tar *", "tar xf t.tar --directory=.."),
    allow("git diff *", "git diff -O../x"),
    allow("git diff *", "git diff --output=../x"),
    allow("git diff*", "git difftool -y -x ./evil.sh"),
    allow("git diff*", "git diff-files -O../x"),
    allow("npm test*", "npm test-evil"),
    allow("curl *", "curl -o.bashrc u"),
    allow("curl *", "curl -d@../secret u"),
    allow("curl *", "curl -d @../secret u"),
    allow("curl *", "curl -K.env u"),
    allow("gcc *", "gcc @../flags"),
    allow("git *", "git -C../x status"),
    allow("git *", "git --git-dir=../x status"),
    allow("date *", "date +%s -f.env"),
    allow("make", "make all"),
    allow("make", "make "),
    allow("make", "make;rm x"),
    allow("make", "Make"),
    deny_path("write_file(secrets/**)", write("secrets/a", "x")),
    deny_path("write_file(secrets/**)", write("./secrets//a", "x")),
    deny_path("write_file(secrets/**)", write("SECRETS/a", "x")),
    deny_path("write_file(secrets/**)", write("x/../secrets/a", "x")),
    deny_path("write_file(secrets/**)", write("link/a", "x")),
    deny_path("*(secrets/**)", move("secrets/s.txt", "a.txt")),
    deny_path("*(secrets/**)", move("a.txt", "secrets/b.txt")),
    deny_path("*(secrets/**)", delete("secrets/s.txt")),
    deny_path("*(*.pem)", write("deep/er/key.PEM", "x")),
    deny_path("*(/etc/**)", write("/etc/x", "x")),
    deny_path("write_file(app/[id]/**)", write("app/[id]/p.tsx", "x")),
    deny_path("*(app/[...all]/**)", delete("app/[...all]/p.tsx")),
    allow_path("write_file(src/**)", write("src/../.git/config", "x")),
    allow_path("write_file(src/**)", write("src/out/x", "x")),
    allow_path("write_file(src/**)", write("SRC/a", "x")),
    allow_path("write_file(**)", write("../x", "x")),
    allow_path("write_file(**)", write(".git/hooks/pre-commit", "x")),
    allow_path("write_file(**)", write(".env", "x")),
    allow_path("move_file(src/**)", move("src/a.txt", "b.txt")),
    allow_path("*(src/**)", delete("a.txt")),
]  # fmt: skip


def arrange(workspace: Workspace) -> None:
    """A workspace with a folder of secrets, links into it and out of the workspace, and folders named in brackets."""
    for name in ("a.txt", "src/a.txt", "secrets/s.txt", "app/[id]/p.tsx", "app/[...all]/p.tsx", "x/y"):
        workspace.write(name, "old\n")
    (workspace.root / "link").symlink_to("secrets")
    (workspace.base / "out").mkdir()
    (workspace.root / "src" / "out").symlink_to(workspace.base / "out")


@pytest.mark.parametrize("attempt", rows(TABLE))
async def test_rule_is_not_evaded(tmp_path: Path, attempt: Rule) -> None:
    """Row G2, cases 115, 116 and 117: the call is refused by the deny rule, or asked about in spite of the allow rule,
    and nothing runs."""
    denies = attempt.must == "refused"
    settings = (
        settings_of(mode="auto", deny=[attempt.rule]) if denies else settings_of(mode="ask", allow=[attempt.rule])
    )
    done = await play(tmp_path, attempt.call, settings, arrange)
    assert done.commands == ()
    assert done.did == attempt.must
    assert not denies or done.reason == "policy", done.reply
