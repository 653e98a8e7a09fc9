"""The user's Python variables and locale change neither what the server loads nor the names of files (cases 126, 127).

The program is the installed one: its packages are found by the interpreter itself and not through `PYTHONPATH`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process_server import ServerProcesses, server_processes
from tests.support.systems import linux_only

EIGHT_BIT = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SHADOWED = ("anyio", "attr", "attrs", "cattrs", "httpx2", "filelock", "platformdirs", "typing_extensions")
run_s_max = 60


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


@pytest.fixture
def shadowing(tmp_path: Path) -> Path:
    """A folder for `PYTHONPATH` whose modules have the names of ours and fail, and whose start file prints."""
    folder = tmp_path / "shadowing"
    folder.mkdir()
    for name in SHADOWED:
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong module')\n")
    (folder / "sitecustomize.py").write_text("print('text before the first message')\n")
    return folder


def test_modules_on_pythonpath_do_not_replace_ours(servers: ServerProcesses, shadowing: Path) -> None:
    """Case 127: the server answers, its output begins with the protocol, and the log names the variable."""
    client = servers.start_checked(env={"PYTHONPATH": str(shadowing), "PYTHONUNBUFFERED": ""})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "run echo path=$PYTHONPATH")["turnId"]
    assert client.ended(turn_id)["reason"] == "done"
    (call,) = client.calls(turn_id)
    assert f"path={shadowing}" in call["reply"]["text"], "the environment of commands stays as it was"
    assert client.shut_down() == 0
    assert "PYTHONPATH is set; the server ignores it" in client.stderr()


def test_verb_ignores_modules_on_pythonpath(shadowing: Path, tmp_path: Path) -> None:
    """Case 127: the command line too, and it names both variables."""
    ended = subprocess.run(
        [sys.executable, "-m", "steadyhand", "sessions", "--state-dir", str(tmp_path / "state")],
        env={**os.environ, "PYTHONPATH": str(shadowing), "PYTHONHOME": sys.base_prefix, "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=run_s_max,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, "There are no sessions.\n"), ended.stderr
    assert "PYTHONPATH and PYTHONHOME are set" in ended.stderr


@linux_only
def test_names_are_utf8_in_an_8_bit_locale(servers: ServerProcesses) -> None:
    """Case 126: a name on disk is UTF-8, an existing one is found, and a command with an emoji starts."""
    (servers.root / "grüße.txt").write_text("hello\n", encoding="utf-8")
    client = servers.start_checked(env=EIGHT_BIT)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "show grüße.txt\nwrite größe.txt with 1\nrun echo 🙂 > ß.txt")["turnId"]
    assert client.ended(turn_id)["reason"] == "done"
    assert [call["state"] for call in client.calls(turn_id)] == ["returned", "failed", "returned", "returned"]
    names = {os.fsencode(path.name) for path in servers.root.iterdir()}
    assert names == {name.encode("utf-8") for name in ("grüße.txt", "größe.txt", "ß.txt")}
    assert (servers.root / "ß.txt").read_text(encoding="utf-8") == "🙂\n"
    assert client.shut_down() == 0
