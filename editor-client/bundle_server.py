"""Fills `server/` of the extension: our packages, their dependencies, and the program that starts them.

The folder serves every Python from 3.10 on, so the dependencies are the locked ones for the oldest Python, with their
back-ports. Some packages have compiled wheels too; of these the pure one of the lock file is taken. A wheel that is not
pure Python is refused. `make vsix` runs this program with the Python of the virtual
environment, which has uv. Each run makes the folder again; git ignores it.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVER = Path(__file__).resolve().parent / "server"
OLDEST_PYTHON = "3.10"
PACKAGES = (
    ROOT / "server" / "steadyhand",
    ROOT / "protocol" / "steadyhand_protocol",
    ROOT / "protocol" / "steadyhand_values",
)
INSTALL_MAX_S = 300
ALSO_COMPILED = ("charset-normalizer",)
"""Packages of the lock file that have compiled wheels besides the pure one; they depend on nothing."""
START = '''"""Starts the server in the folder of this file: `python FOLDER`."""

import sys

if sys.version_info < (3, 10):
    sys.exit("Steadyhand needs Python 3.10 or newer, not " + sys.version.split()[0])

from steadyhand.__main__ import main

sys.exit(main())
'''


def main() -> int:
    """Fill the folder; returns the exit code."""
    shutil.rmtree(SERVER, ignore_errors=True)
    install()
    for package in PACKAGES:
        shutil.copytree(package, SERVER / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    (SERVER / "__main__.py").write_text(START, encoding="utf-8")
    compiled = [path for path in SERVER.rglob("*") if path.suffix in (".so", ".pyd", ".dylib")]
    if compiled:
        sys.stderr.write(f"not pure Python: {', '.join(path.name for path in compiled)}\n")
        return 1
    for left in ("bin", ".lock"):
        path = SERVER / left
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    return 0


def install() -> None:
    """Install the locked dependencies as for the oldest Python."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    apart, others = split_lock(lock)
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
    uv += ["--python-version", OLDEST_PYTHON, "--link-mode", "copy", "--target", str(SERVER)]
    # pip takes a wheel for the platform `any` only if it is pure.
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--require-hashes", "--only-binary", ":all:", "--no-deps"]
    pip += ["--platform", "any", "--target", str(SERVER), "--upgrade"]
    with tempfile.TemporaryDirectory() as folder:
        for command, locked in ((uv, others), (pip, apart)):
            listed = Path(folder) / "requirements.txt"
            listed.write_text(locked, encoding="utf-8")
            subprocess.run([*command, "-r", str(listed)], check=True, timeout=INSTALL_MAX_S)


def split_lock(lock: str) -> tuple[str, str]:
    """Return the entries of `ALSO_COMPILED`, and the others."""
    entries = re.split(r"\n(?=\S)", lock.rstrip("\n"))
    apart = [entry for entry in entries if entry.partition("==")[0] in ALSO_COMPILED]
    return "\n".join(apart) + "\n", "\n".join(entry for entry in entries if entry not in apart) + "\n"


if __name__ == "__main__":
    sys.exit(main())
