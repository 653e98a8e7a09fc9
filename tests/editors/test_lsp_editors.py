"""Editors that know only LSP: Neovim (0.7 and 0.11) and Emacs, each with its own client, headless.

An earlier server was killed in the middle of a write, and the file changed since. Each editor opens the file and starts
the server: the diagnostic appears by itself, Inspect and then Confirm settle the effect, and the permission for a
prompt is a message request.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.editors import install
from tests.support.process_server import PRESENT, ServerProcesses, server_command, server_processes
from tests.support.systems import linux_only
from tests.support.tools import require_tool

pytestmark = [linux_only, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
scenario_s_max = 120.0
CHANGED = "one\ntwo changed by somebody\nthree\n"


def make_uncertain(servers: ServerProcesses) -> None:
    """An edit of a.txt whose outcome is unknown."""
    servers.workspace.write("a.txt", "one\ntwo\nthree\n")
    servers.kill_in_turn("replace two with TWO in a.txt", PRESENT)
    servers.workspace.write("a.txt", CHANGED)


def play(servers: ServerProcesses, program: Sequence[str], home: Path, route: str) -> str:
    """The output of the editor, which must play the scenario to its end. `route`: see scenario.lua."""
    command, environment = server_command(servers.state)
    scenario = {"command": command, "root": str(servers.root), "file": "a.txt", "route": route}
    done = subprocess.run(
        program,
        env={**clean(home), **environment, "SCENARIO": json.dumps(scenario)},
        cwd=servers.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=scenario_s_max,
        check=False,
    )
    said = done.stdout + done.stderr
    assert re.search(r"^ok all\b", said, re.MULTILINE), said[-3000:]
    return said


def clean(home: Path) -> Mapping[str, str]:
    """The user's environment without the user's settings."""
    home.mkdir()
    kinds = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    return dict(os.environ) | kinds | {"HOME": str(home)}


def assert_played(servers: ServerProcesses, said: str) -> None:
    assert re.search(r"ok diagnostic uncertain-write: It is uncertain", said), said
    assert "ok inspected" in said
    assert "ok settled" in said
    assert re.search(r"ok asked: .*Allow once", said), said
    assert servers.workspace.files() == {"a.txt": CHANGED, "b.txt": "hello"}
    (session, _) = sorted(servers.sessions(), key=lambda one: -len(servers.having(one, "settlement")))
    assert [record["settled"] for record in servers.having(session, "settlement")] == ["user_confirmed"]


@pytest.mark.parametrize("route", ["actions", "command"])
@pytest.mark.parametrize("which", ["of the system", "0.11"])
def test_neovim_shows_and_settles_an_uncertain_effect(tmp_path: Path, which: str, route: str) -> None:
    """The diagnostic appears by itself, and code actions or one command lead to a settled attempt (A8)."""
    nvim = require_tool("nvim") if which == "of the system" else install.newer_neovim()
    with server_processes(tmp_path) as servers:
        make_uncertain(servers)
        program = [nvim, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", f"luafile {HERE / 'scenario.lua'}"]
        assert_played(servers, play(servers, program, tmp_path / "home", route))


@pytest.mark.parametrize("route", ["actions", "command"])
def test_emacs_shows_and_settles_an_uncertain_effect(tmp_path: Path, route: str) -> None:
    """The same in Emacs with eglot: flymake shows the diagnostic, code actions or one command settle it (A8)."""
    emacs = require_tool("emacs")
    with server_processes(tmp_path) as servers:
        make_uncertain(servers)
        program = [emacs, "-Q", "--batch", "-l", str(HERE / "scenario.el")]
        assert_played(servers, play(servers, program, tmp_path / "home", route))
