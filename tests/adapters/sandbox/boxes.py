"""Run the driver as a user, in a folder that no sandbox hides; and the programs that these tests need."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest

from tests.support.tools import in_ci, require_tool

ROOT_FOLDER = Path(__file__).resolve().parents[3]
ORDINARY_UID = 65534
NO_SANDBOX_CODE = 77
"""The exit code of the driver where bubblewrap does not work."""
limit_s = 240
USERS = [pytest.param(0, id="root"), pytest.param(ORDINARY_UID, id="ordinary")]


def require_bubblewrap() -> None:
    """Skip, or fail in CI, where bubblewrap is missing."""
    require_tool("bwrap")


def require_landlock() -> None:
    """Skip, or fail in CI, where the kernel has no Landlock with every part that the table is about."""
    from steadyhand.adapters.sandbox.landlock import landlock_abi

    if landlock_abi() < 6:
        give_up("this kernel has no Landlock of ABI 6")


def give_up(why: str) -> NoReturn:
    """Skip a test that cannot run here; in CI it fails."""
    if in_ci():
        pytest.fail(f"{why}; CI must have it")
    pytest.skip(why)


@contextmanager
def folder_of(uid: int) -> Iterator[Path]:
    """An empty folder of this user, neither in a place for temporary files nor behind a folder that it cannot enter."""
    parent = "/var/lib" if os.geteuid() == 0 else str(Path.home())
    folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="steadyhand-sandbox-", dir=parent)))
    try:
        os.chown(folder, uid, uid if uid else -1)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def python_path() -> str:
    """Where the interpreter finds this repository and what it needs."""
    folders = (ROOT_FOLDER, ROOT_FOLDER / "server", ROOT_FOLDER / "protocol", Path(anyio.__file__).parents[1])
    return os.pathsep.join(str(folder) for folder in folders)


@cache
def python_of(uid: int) -> str | None:
    """An interpreter that this user can run with this repository; None: there is none."""
    for program in dict.fromkeys((sys.executable, "/usr/bin/python3", "/usr/local/bin/python3")):
        try:
            ended = spawn_as(program, uid, "-c", "import anyio, attrs, steadyhand")
        except OSError:  # it is missing, or in a folder that this user cannot enter
            continue
        if ended.returncode == 0:
            return program
    return None


def require_user(uid: int) -> str:
    """The interpreter for a user; skips where this process cannot become that user or there is no interpreter."""
    if os.geteuid() not in (0, uid):
        pytest.skip("only root can start a process of another user")
    program = python_of(uid)
    if program is None:
        pytest.skip(f"no interpreter that user {uid} can run with this repository")
    return program


def spawn_as(program: str, uid: int, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run an interpreter as a user, with this repository in its path and these variables besides the usual ones."""
    change: dict[str, Any] = {} if uid == os.geteuid() else {"user": uid, "group": uid, "extra_groups": []}
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "PYTHONPATH": python_path(),
        "PYTHONDONTWRITEBYTECODE": "1",
        **variables,
    }
    return subprocess.run(
        [program, *arguments],
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
        **change,
    )


def drive(uid: int, what: str, kind: str, *more: str) -> dict[str, Any]:
    """Run the driver as a user and return what it printed."""
    program = require_user(uid)
    with folder_of(uid) as folder:
        ended = spawn_as(program, uid, "-m", "tests.adapters.sandbox.driver", what, kind, str(folder), *more)
    if ended.returncode == NO_SANDBOX_CODE:
        give_up(f"user {uid}: {ended.stderr.strip()}")
    assert ended.returncode == 0, ended.stderr + ended.stdout
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
