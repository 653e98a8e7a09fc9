"""Starts the server of one story: with the state and, once, with the faults that lie in the story's place.

The place is `$STEADYHAND_STORIES/<name of the workspace folder>`. `faults.json` there is used by the next start
alone, so that a server that was killed comes back whole; `environment.json` by every start. What the server says on
stderr is also kept there, for a story that fails. The server is that of this repository.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    """Becomes the server."""
    place = Path(os.environ["STEADYHAND_STORIES"]) / Path.cwd().name
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(str(ROOT / name) for name in ("server", "protocol", ""))
    additions = place / "environment.json"
    if additions.exists():
        environment |= json.loads(additions.read_text(encoding="utf-8"))
    program = ["-m", "steadyhand"]
    faults = place / "faults.json"
    if faults.exists():
        environment["STEADYHAND_TEST_FAULTS"] = faults.read_text(encoding="utf-8")
        faults.unlink()
        program = [str(ROOT / "tests" / "support" / "killed_server.py")]
    with (place / "pids").open("a", encoding="utf-8") as pids:
        pids.write(f"{os.getpid()}\n")
    said = os.open(place / "stderr", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(said, 2)
    command = [sys.executable, *program, "--state-dir", str(place / "state"), *sys.argv[1:]]
    os.execve(sys.executable, command, environment)


if __name__ == "__main__":
    main()
