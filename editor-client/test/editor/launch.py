"""Starts the server of this repository for one scenario, with the state of the scenario and, once, with its faults.

The state folder is `$STEADYHAND_SCENARIOS/<name>`. The name is that of the current folder, or the value of a first
argument `--scenario=`. The next start alone uses `faults.json` in it, so a server that died starts again without
faults. Every start uses `environment.json`. The folder also gets the stderr of the server, for the report of a scenario
that fails.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAME_FLAG = "--scenario="


def main() -> None:
    """Becomes the server."""
    arguments = sys.argv[1:]
    name = Path.cwd().name
    if arguments[:1] and arguments[0].startswith(NAME_FLAG):
        name = arguments.pop(0).removeprefix(NAME_FLAG)
    state_folder = Path(os.environ["STEADYHAND_SCENARIOS"]) / name
    state_folder.mkdir(parents=True, exist_ok=True)  # a window with several folders may start the server in any of them
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(str(ROOT / name) for name in ("server", "protocol", ""))
    additions = state_folder / "environment.json"
    if additions.exists():
        environment |= json.loads(additions.read_text(encoding="utf-8"))
    program = ["-m", "steadyhand"]
    faults = state_folder / "faults.json"
    if faults.exists():
        environment["STEADYHAND_TEST_FAULTS"] = faults.read_text(encoding="utf-8")
        faults.unlink()
        program = [str(ROOT / "tests" / "support" / "faulty_server.py")]
    with (state_folder / "pids").open("a", encoding="utf-8") as pids:
        pids.write(f"{os.getpid()}\n")
    stderr = os.open(state_folder / "stderr", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(stderr, 2)
    command = [sys.executable, *program, "--state-dir", str(state_folder / "state"), *arguments]
    os.execve(sys.executable, command, environment)


if __name__ == "__main__":
    main()
