"""Paths that lead where the user does not expect (rows E3, G2, O4, W12; cases 125, 137, 145).

In the mode `edits` files of the workspace are changed without a question. Everything else must be asked about or
refused: what is outside, protected names, secrets, the state directory, and names that cannot be told apart.
"""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from steadyhand.domain.model.messages import CallProposed
from tests.hostile.attempts import play, rows, settings_of
from tests.support.model import call, read, write
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
CLASS = "paths"


@attrs.frozen
class Place:
    """A call in the mode `edits`. `must`: what becomes of it; "asked or refused" where both are right."""

    call: CallProposed
    must: str
    pending: str | None = None

    @property
    def name(self) -> str:
        return f"{self.call.tool} {self.call.arguments}"


def change(path: str, must: str = "asked", pending: str | None = None) -> Place:
    return Place(write(path, "x"), must, pending)


def look(path: str, must: str = "asked", pending: str | None = None) -> Place:
    return Place(read(path), must, pending)


def move(start: str, goal: str, must: str = "asked", pending: str | None = None) -> Place:
    return Place(call("move_file", **{"from": start, "to": goal}), must, pending)


def delete(path: str, must: str = "asked", pending: str | None = None) -> Place:
    return Place(call("delete_file", path=path), must, pending)


EITHER = "asked or refused"
TABLE = [
    # Out of the workspace.
    change("../x"),
    change("../ws-other/x"),
    change("a/../../x", EITHER),
    change("src/../../x"),
    change("/tmp/x"),
    change("/etc/cron.d/x"),
    change("//etc/x"),
    change("out/x"),
    change("out/../x"),
    change("link-out"),
    change("src/up/x"),
    change("far/x"),
    change("circle", EITHER),
    change("circle/x", EITHER),
    change("/proc/self/mem", EITHER),
    change("/dev/null", EITHER),
    change("/dev/shm/x"),
    change("~/x", EITHER),
    change("file:///etc/x", EITHER),
    change("C:\\x", EITHER),
    change("\\\\server\\share\\x", EITHER),
    change("..\\x", EITHER),
    change("a.txt/x", EITHER),
    change("", EITHER),
    change(".", EITHER),
    change("..", EITHER),
    change("/", EITHER),
    change("src", EITHER),
    change("src/", EITHER),
    change("new/", EITHER),
    change("a.txt/", EITHER),
    change("pipe", EITHER),
    change("socket", EITHER),
    change("x" * 300, EITHER),
    change("x/" * 3000 + "y", EITHER),
    change("a\0b", EITHER),
    change("a\nb", EITHER),
    change("a\x1b[2Kb", EITHER),
    change("a\u2028b", EITHER),
    change("\udcff", EITHER),
    move("a.txt", "../x"),
    move("../secret.txt", "a2.txt"),
    move("out/secret.txt", "b.txt"),
    move("a.txt", "out/b.txt"),
    move("src", "../src", EITHER),
    move(".", "../x", EITHER),
    move("a.txt", "a.txt/b", EITHER),
    move("src", "src/src", EITHER),
    delete("../secret.txt"),
    delete("out/secret.txt"),
    delete("/etc/hostname"),
    delete("src", EITHER),
    delete(".", EITHER),
    # Protected names.
    change(".git/config"),
    change(".git/hooks/pre-commit"),
    change(".GIT/config"),
    change(".Git/x"),
    change("sub/.git/config"),
    change("git-link/config"),
    change(".git", EITHER),
    change(".vscode/settings.json"),
    change(".vscode/tasks.json"),
    change(".env"),
    change(".env.local"),
    change(".ENV"),
    change("sub/.envrc"),
    change(".bashrc"),
    change("home/.zshrc"),
    change(".profile"),
    change("fish/config.fish"),
    move("a.txt", ".git/hooks/post-checkout"),
    move(".git/hooks", "hooks", EITHER),
    move("a.txt", ".bashrc"),
    move(".env", "env.txt"),
    delete(".env"),
    delete(".git/config"),
    # Files by which editors and tools run code or take orders.
    change(".nvim.lua"),
    change(".exrc"),
    change(".vimrc"),
    change(".dir-locals.el"),
    change(".husky/pre-commit"),
    change(".githooks/pre-push"),
    change(".pre-commit-config.yaml"),
    change(".npmrc"),
    change(".yarnrc.yml"),
    change(".pypirc"),
    change(".idea/workspace.xml"),
    change(".zed/settings.json"),
    change(".cursor/mcp.json"),
    change(".mcp.json"),
    change(".claude/settings.json"),
    change("AGENTS.md"),
    change("CLAUDE.md"),
    change(".github/workflows/ci.yml"),
    change(".gitlab-ci.yml"),
    change(".devcontainer/devcontainer.json"),
    change(".gitmodules"),
    # Secrets are asked about for reads too.
    look(".env"),
    look("sub/.env.production"),
    look(".ssh/id_rsa"),
    look("server.pem"),
    look(".netrc"),
    look(".npmrc"),
    look("secret-link"),
    # Reads of what is outside.
    look("../secret.txt"),
    look("/etc/passwd"),
    look("/proc/self/environ"),
    look("/proc/1/environ"),
    look("out/secret.txt"),
    look("link-to-secret"),
    look("../nothing-there"),
    look("/dev/zero", EITHER),
    look("/dev/stdin", EITHER),
    look("pipe", "refused"),
    Place(call("list_files", path="/"), "asked"),
    Place(call("list_files", path="out"), "asked"),
    Place(call("list_files", path=".."), "asked"),
    Place(call("find_files", pattern="**/*", path="/etc"), "asked"),
    Place(call("find_files", pattern="../*"), "ran"),
    Place(call("search_text", pattern="root", path="/etc"), "asked"),
    Place(call("search_text", pattern="SECRET", path="out"), "asked"),
    Place(call("edit_file", path="../secret.txt", edits=[{"old": "no such text", "new": "x"}]), "asked"),
    Place(call("edit_file", path="../secret.txt", edits=[{"old": "SECRET", "new": "x"}]), "asked"),
    Place(call("edit_file", path="/etc/passwd", edits=[{"old": "guess", "new": "x"}]), "asked"),
    Place(call("edit_file", path="out/secret.txt", edits=[{"old": "guess", "new": "x"}]), "asked"),
    # The state directory is never a tool's target.
    look("../state/permissions.json", "refused"),
    look("state-link/permissions.json", "refused"),
    change("../state/permissions.json", "refused"),
    change("state-link/x", "refused"),
    move("a.txt", "../state/x", "refused"),
    delete("../state/permissions.json", "refused"),
    Place(call("list_files", path="../state"), "refused"),
    Place(call("search_text", pattern="x", path="../state"), "refused"),
    Place(call("run_command", command="ls", cwd="../state"), "refused"),
    Place(call("run_command", command="ls", cwd=".."), "asked"),
    Place(call("run_command", command="ls", cwd="out"), "asked"),
]


def arrange(workspace: Workspace) -> None:
    """Links out of the workspace, in a circle and to protected names; a pipe; a secret beside the workspace."""
    root, base = workspace.root, workspace.base
    for name in ("a.txt", "src/b.txt", ".git/config", ".git/hooks/x", ".env", "sub/.env.production", ".ssh/id_rsa"):
        workspace.write(name, "SECRET\n")
    for name in ("server.pem", ".netrc", ".npmrc"):
        workspace.write(name, "SECRET\n")
    (base / "secret.txt").write_text("SECRET\n")
    (base / "outside").mkdir()
    (base / "outside" / "secret.txt").write_text("SECRET\n")
    (base / "state" / "permissions.json").touch(0o600)
    outside = {"out": base / "outside", "link-out": base / "outside" / "new", "src/up": "../..", "far": "/"}
    inside = {"circle": "circle", "git-link": ".git", "secret-link": ".env"}
    beside = {"link-to-secret": base / "secret.txt", "state-link": base / "state"}
    for name, target in {**outside, **inside, **beside}.items():
        (root / name).symlink_to(str(target))
    os.mkfifo(root / "pipe")
    os.mkfifo(root / "socket")


@pytest.mark.parametrize("attempt", rows(TABLE))
async def test_path_is_asked_about_or_refused(tmp_path: Path, attempt: Place) -> None:
    """Rows E3, G2, case 125: nobody reads or changes such a place without a question, and before the answer nothing of
    a file outside is told."""
    done = await play(tmp_path, attempt.call, settings_of(mode="edits"), arrange)
    assert done.did in attempt.must.split(" or "), done.reply
    assert "SECRET" not in done.reply
    assert (tmp_path / "secret.txt").read_text() == "SECRET\n"
    assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["secret.txt"]
