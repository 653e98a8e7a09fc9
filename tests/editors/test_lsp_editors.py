"""Editors that know nothing of us but LSP: Neovim (0.7 and 0.11) and Emacs, each with its own client, headless.

The server was killed in mid-write in an earlier life and the file changed since. Each editor opens the file and starts
the server: the doubt is shown at it by itself, Inspect and then Confirm settle it, and a prompt's permission is a
message request.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.editors import place
from tests.support.killed_server import shipped
from tests.support.recovered import PRESENT, Lives, lives_in
from tests.support.systems import linux_only
from tests.support.tools import require_tool

pytestmark = [linux_only, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
story_s_max = 120.0
CHANGED = "one\ntwo changed by somebody\nthree\n"


def doubt(lives: Lives) -> None:
    """An edit of a.txt whose outcome nobody knows."""
    lives.place.write("a.txt", "one\ntwo\nthree\n")
    lives.die("replace two with TWO in a.txt", PRESENT)
    lives.place.write("a.txt", CHANGED)


def tell(lives: Lives, program: Sequence[str], home: Path, door: str) -> str:
    """What the editor printed while it told its story; it must have come to the end. `door`: see story.lua."""
    command, environment = shipped(lives.place.state)
    story = {"command": command, "root": str(lives.place.workspace), "file": "a.txt", "door": door}
    done = subprocess.run(
        program,
        env=clean(home) | environment | {"STORY": json.dumps(story)},
        cwd=lives.place.workspace,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=story_s_max,
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


def came_to_its_end(lives: Lives, said: str) -> None:
    assert re.search(r"ok diagnostic uncertain-write: It is uncertain", said), said
    assert "ok inspected" in said
    assert "ok settled" in said
    assert re.search(r"ok asked: .*Allow once", said), said
    assert lives.place.files() == {"a.txt": CHANGED, "b.txt": "hello"}
    (session, _) = sorted(lives.sessions(), key=lambda one: -len(lives.having(one, "settlement")))
    assert [record["settled"] for record in lives.having(session, "settlement")] == ["user_confirmed"]


@pytest.mark.parametrize("door", ["actions", "command"])
@pytest.mark.parametrize("which", ["of the system", "0.11"])
def test_neovim(tmp_path: Path, which: str, door: str) -> None:
    """Diagnostics by themselves, by code actions or one command to a settled attempt (A8)."""
    nvim = require_tool("nvim") if which == "of the system" else place.newer_neovim()
    with lives_in(tmp_path) as lives:
        doubt(lives)
        program = [nvim, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", f"luafile {HERE / 'story.lua'}"]
        came_to_its_end(lives, tell(lives, program, tmp_path / "home", door))


@pytest.mark.parametrize("door", ["actions", "command"])
def test_emacs(tmp_path: Path, door: str) -> None:
    """The same in Emacs with eglot: flymake shows the doubt, its code actions or one command settle it (A8)."""
    emacs = require_tool("emacs")
    with lives_in(tmp_path) as lives:
        doubt(lives)
        program = [emacs, "-Q", "--batch", "-l", str(HERE / "story.el")]
        came_to_its_end(lives, tell(lives, program, tmp_path / "home", door))
