"""Fills `server/` of the extension: our packages, their dependencies, and the program that starts them.

The dependencies are the locked ones for the oldest Python, with their back-ports, so that one folder serves every
Python from 3.10 on; a wheel that is not pure is refused. Run by `make vsix` with the house's own Python, which has
uv. The folder is made anew each time and is not in git.
"""

import shutil
import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1]
SERVER = Path(__file__).resolve().parent / "server"
OLDEST = "3.10"
OURS = (HOUSE / "server" / "steadyhand", HOUSE / "protocol" / "steadyhand_protocol")
install_seconds_max = 300
START = '''"""Starts the server that lies beside this file: `python FOLDER`."""

import sys

if sys.version_info < (3, 10):
    sys.exit("Steadyhand needs Python 3.10 or newer, not " + sys.version.split()[0])

from steadyhand.__main__ import main

sys.exit(main())
'''


def main() -> int:
    """The exit code of the program."""
    shutil.rmtree(SERVER, ignore_errors=True)
    install()
    for package in OURS:
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
    """The locked dependencies, as the oldest Python would get them."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:"]
    command += ["--python-version", OLDEST, "--link-mode", "copy", "--target", str(SERVER)]
    command += ["-r", str(HOUSE / "requirements.lock")]
    subprocess.run(command, check=True, timeout=install_seconds_max)


if __name__ == "__main__":
    sys.exit(main())
