"""The shipped server with a model that calls the tools a prompt names, for tools the practice model has no word for.

Run as `python tests/support/calling_server.py [flags of steadyhand]`. What a prompt may say stands in
tests/support/calling_model.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from steadyhand.__main__ import read_flags, run, system_ports
from steadyhand.edge.stdio import claim_stdio
from tests.support.calling_model import calling_models

ROOT = Path(__file__).resolve().parents[2]


def command(state: Path) -> tuple[list[str], dict[str, str]]:
    """What starts it, and additions to the environment."""
    paths = [str(ROOT / "server"), str(ROOT / "protocol"), str(ROOT)]
    return [sys.executable, str(Path(__file__)), "--state-dir", str(state)], {"PYTHONPATH": os.pathsep.join(paths)}


def main() -> int:
    stdio = claim_stdio()
    flags = read_flags(sys.argv[1:])
    assert flags is not None, sys.argv
    return run(stdio, system_ports()._replace(models=calling_models), flags)


if __name__ == "__main__":
    sys.exit(main())
