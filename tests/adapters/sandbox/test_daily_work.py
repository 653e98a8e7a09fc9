"""Daily work goes on in a sandbox (row O1): git, tests, scripts, builds; and what git must not change stays."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.ports.sandbox import Confinement
from tests.adapters.sandbox.boxes import python_path
from tests.adapters.sandbox.conftest import Box
from tests.support.systems import linux_only
from tests.support.tools import require_tool

pytestmark = [pytest.mark.anyio, linux_only]

limit_s = 240.0
AS_SOMEBODY = "-c user.name=A -c user.email=a@example.com -c init.defaultBranch=main -c advice.detachedHead=false"


async def played(box: Box, text: str, confinement: Confinement | None = None) -> str:
    """Run a command to its end, and return its output; it must succeed."""
    pieces: list[bytes] = []
    environment = {"PATH": os.environ["PATH"], "HOME": str(box.folder / "home"), "LC_ALL": "C"}
    finished = await box.processes.run(
        f'set -e\ngit() {{ command git {AS_SOMEBODY} "$@"; }}\n{text}',
        str(box.workspace),
        environment,
        limit_s,
        pieces.append,
        confinement=confinement or box.confinement(),
    )
    output = b"".join(pieces).decode(errors="replace")
    assert finished.exit_code == 0, output
    return output


def git(folder: Path, *arguments: str) -> str:
    """Run git outside the sandbox; return what it prints."""
    command = ["git", *AS_SOMEBODY.split(), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout


def make_repository(folder: Path) -> None:
    require_tool("git")
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("one\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        git(folder, *arguments)


async def test_git_commits_checks_out_merges_and_rebases(box: Box) -> None:
    """O1: commit, branch, check out, merge, rebase, stash, cherry-pick, tag, gc: what a day needs."""
    make_repository(box.workspace)
    await played(
        box,
        """
        echo two >> a.txt; git add a.txt; git commit -qm second
        git checkout -q -b side HEAD~1; echo side > b.txt; git add b.txt; git commit -qm side
        git checkout -q main; git merge -q --no-edit side
        git checkout -q -b other HEAD~1; echo other > c.txt; git add c.txt; git commit -qm other
        git rebase -q main
        echo more >> a.txt; git stash -q; git stash pop -q; git commit -qam stashed
        git checkout -q main; git cherry-pick other >/dev/null; git tag v1; git gc -q; git status --short
        """,
    )
    log = git(box.workspace, "log", "--format=%s").split()
    assert log[0] == "stashed"
    assert {"first", "second", "side"} <= set(log)


async def test_git_initializes_and_clones_inside(box: Box) -> None:
    """O1: a repository that the command makes itself has nothing to protect yet."""
    require_tool("git")
    text = "git init -q new; cd new; echo a > a; git add a; git commit -qm first; cd ..; git clone -q new copy; ls copy"
    assert (await played(box, text)).strip() == "a"


@pytest.mark.parametrize(
    "text",
    [
        "git config core.fsmonitor ./evil",
        "echo '* filter=evil' >> .git/info/attributes",
        "echo /elsewhere > .git/objects/info/alternates",
        "cp a.txt .git/hooks/post-commit",
        "mv .git/hooks .git/other",
        "mv .git/info .git/other",
        "rm -f .git/info/attributes",
        "echo '[filter]' >> .git/modules/part/config",
        "cp a.txt .git/modules/part/hooks/post-checkout",
        "cp a.txt .git/modules/group/inner/hooks/post-checkout",
        "mv .git/modules/part .git/modules/moved",
        "echo /elsewhere > .git/worktrees/linked/commondir",
        "mv .git old",
    ],
)
async def test_what_makes_git_run_programs_stays(text: str, box: Box) -> None:
    """O1: in a git directory what exists and chooses programs is read-only, that of submodules and worktrees too."""
    make_repository(box.workspace)
    directory = box.workspace / ".git"
    (directory / "hooks").mkdir(exist_ok=True)
    (directory / "info" / "attributes").write_text("# none\n")
    (directory / "objects" / "info" / "alternates").write_text("")
    for inner in ("modules/part", "modules/group/inner"):
        (directory / inner / "hooks").mkdir(parents=True)
        (directory / inner / "HEAD").write_text("ref: refs/heads/main\n")
        (directory / inner / "config").write_text("[core]\n")
    (directory / "worktrees" / "linked").mkdir(parents=True)
    (directory / "worktrees" / "linked" / "HEAD").write_text("ref: refs/heads/main\n")
    (directory / "worktrees" / "linked" / "commondir").write_text("../..\n")

    def state() -> dict[str, str]:
        entries = sorted(path for path in directory.rglob("*") if path.is_file())
        return {str(path.relative_to(directory)): path.read_text(errors="replace") for path in entries}

    before = state()
    output = await played(box, f"( {text} ) && echo changed || echo refused")
    assert output.strip().endswith("refused")
    assert state() == before


async def test_git_directory_outside_the_workspace_is_read_only(box: Box) -> None:
    """O1: a linked worktree whose repository is outside can be read; a commit fails and changes nothing."""
    make_repository(box.folder / "main")
    git(box.folder / "main", "worktree", "add", "-q", str(box.workspace / "linked"))
    output = await played(box, "cd linked; git log --format=%s; git commit -q --allow-empty -m no || echo refused")
    assert output.split("\n")[0] == "first"
    assert "Read-only file system" in output
    assert output.strip().endswith("refused")


async def test_pytest_runs_with_its_temporary_folders(box: Box) -> None:
    """O1: the command has a `/tmp` of its own on disk, and its caches are in the workspace."""
    (box.workspace / "test_a.py").write_text(
        "import asyncio, socket, subprocess, concurrent.futures\n"
        "def test_a(tmp_path):\n    (tmp_path / 'a').write_text('a')\n"
        "def test_server():\n"
        "    with socket.create_server(('127.0.0.1', 0)) as one:\n"
        "        socket.create_connection(one.getsockname()).close()\n"
        "def test_pool():\n"
        "    with concurrent.futures.ProcessPoolExecutor(1) as pool:\n"
        "        assert pool.submit(abs, -1).result() == 1\n"
        "def test_loop():\n    asyncio.run(asyncio.sleep(0))\n"
        "def test_child():\n    assert subprocess.run(['sh', '-c', 'echo a'], capture_output=True).stdout == b'a\\n'\n"
    )
    output = await played(
        box, f"PYTHONPATH={python_path()} {sys.executable} -m pytest -q -p no:cacheprovider test_a.py"
    )
    assert "5 passed" in output
    assert list(box.own.rglob("a")) != []


async def test_node_runs_a_script(box: Box) -> None:
    """O1: an interpreter with threads, timers, a local server and a worker."""
    node = require_tool("node")
    (box.workspace / "a.js").write_text(
        "const http = require('http'), fs = require('fs'), os = require('os');\n"
        "fs.writeFileSync(os.tmpdir() + '/a', 'a');\n"
        "const server = http.createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', () =>\n"
        "  http.get({ port: server.address().port, host: '127.0.0.1' }, (r) =>\n"
        "    r.on('data', (d) => { console.log(String(d)); server.close(); })));\n"
    )
    assert (await played(box, f"{node} a.js")).strip() == "served"


async def test_make_and_a_compiler_run(box: Box) -> None:
    """O1: a build that writes below the workspace and in TMPDIR."""
    require_tool("make")
    require_tool("cc")
    (box.workspace / "Makefile").write_text("all: a\n\t./a\na: a.c\n\tcc -o a a.c\n")
    (box.workspace / "a.c").write_text('#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n')
    assert "built" in await played(box, "make -s")


async def test_cargo_builds_without_new_packages(box: Box) -> None:
    """O1: cargo, where it is installed; its own folder of packages is only read."""
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo is not installed")
    (box.workspace / "src").mkdir()
    (box.workspace / "Cargo.toml").write_text('[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n')
    (box.workspace / "src" / "main.rs").write_text('fn main() { println!("built"); }\n')
    real_home = pwd.getpwuid(os.getuid()).pw_dir  # the tests have a home folder of their own
    variables = f"HOME={real_home} CARGO_HOME={box.folder}/own-cargo RUSTUP_HOME={real_home}/.rustup"
    (box.folder / "own-cargo").mkdir()
    confinement = attrs.evolve(box.confinement(), write=(str(box.folder / "own-cargo"),))
    output = await played(box, f"{variables} {cargo} run --offline 2>&1 || true", confinement)
    if "rustup could not choose" in output:
        pytest.skip("cargo has no toolchain")
    assert "built" in output


async def test_network_is_the_host_s_own_only_if_it_is_allowed(box: Box) -> None:
    """O1 `sandbox.network`: with `allow` the command reaches a server of the host, with `deny` it does not."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        address = ("127.0.0.1", listener.extra(anyio.abc.SocketAttribute.local_port))
        connect = f'{sys.executable} -c "import socket; socket.create_connection({address})" 2>/dev/null'
        allowed = attrs.evolve(box.confinement(), network="allow")
        assert (await played(box, f"{connect} && echo open || echo closed", allowed)).strip() == "open"
        assert (await played(box, f"{connect} && echo open || echo closed")).strip() == "closed"


@pytest.mark.parametrize("name", ["with space", "línea", "new\nline", "quote'\"", "-dash", "byte\udcff"])
async def test_folders_with_unusual_names(name: str, box: Box) -> None:
    """O1: names go to the kernel byte for byte."""
    folder = box.workspace / name
    folder.mkdir()
    (folder / ".env").write_text("A=1\n")
    confinement = Confinement("bubblewrap", (str(folder),), str(box.own), protected=(str(folder / ".env"),))
    pieces: list[bytes] = []
    finished = await box.processes.run(
        "echo a > made; echo b > .env || pwd",
        str(folder),
        {"PATH": os.environ["PATH"]},
        limit_s,
        pieces.append,
        confinement=confinement,
    )
    assert finished.exit_code == 0, pieces
    assert os.fsencode(str(folder)) in b"".join(pieces)
    assert (folder / "made").read_text() == "a\n"
    assert (folder / ".env").read_text() == "A=1\n"


READINGS = [
    ("ls -la", "a.txt"),
    ("cat a.txt", "one"),
    ("head -n 1 a.txt; tail -n 1 a.txt; wc -l a.txt; pwd", "2 a.txt"),
    ("command git --no-optional-locks status --short", "?? new"),
    ("command git --no-pager diff", "+two"),
    ("command git --no-pager log --format=%s", "first"),
    ("echo x > b.txt || echo refused", "refused"),
    ("rm a.txt || echo refused", "refused"),
    ("echo x > $TMPDIR/x || echo refused", "refused"),
    ("cat $HOME/.ssh/id || echo refused", "refused"),
    ("command git commit -qam no || echo refused", "refused"),
    ("ls > /dev/null && echo quiet", "quiet"),
]


@pytest.mark.parametrize("kind", ["landlock", "bubblewrap"])
@pytest.mark.parametrize(("text", "shown"), READINGS, ids=[text for text, _ in READINGS])
async def test_reading_commands_read_and_change_nothing(text: str, shown: str, kind: str, box: Box) -> None:
    """O2: what only reads works in both sandboxes for it; a write fails, also in what the command may read."""
    make_repository(box.workspace)
    (box.workspace / "a.txt").write_text("one\ntwo\n")
    (box.workspace / "new").write_text("")
    (box.folder / "home" / ".ssh").mkdir()
    (box.folder / "home" / ".ssh" / "id").write_text("secret")
    (box.folder / "home" / ".gitconfig").write_text(f"[safe]\n\tdirectory = {box.workspace}\n")
    before = {path: path.stat() for path in box.folder.rglob("*")}
    confinement = attrs.evolve(box.confinement(kind), is_reading=True, temporary=None)
    assert shown in await played(box, f"export TMPDIR=/tmp\n{text}", confinement)
    after = {path: path.stat() for path in box.folder.rglob("*")}
    assert {path: entry.st_ctime_ns for path, entry in after.items()} == {
        path: entry.st_ctime_ns for path, entry in before.items()
    }
