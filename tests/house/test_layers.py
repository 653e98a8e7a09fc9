"""Imports point one way.

The contracts stand in pyproject.toml and import-linter judges them. A contract can hold because it forbids
nothing (a renamed folder, a misspelt module), so the same contracts are also judged over a copy of the house
into which each test builds one sin.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = """
import sys
from importlinter.cli import lint_imports
sys.exit(lint_imports(no_cache=True, limit_to_contracts=tuple(sys.argv[1:])))
"""
lint_seconds_max = 60

# (contract, module that sins, what it says)
SINS = [
    ("layers", "steadyhand/core/sin.py", "import steadyhand.ports"),
    ("layers", "steadyhand/journal/sin.py", "import steadyhand.tools"),
    ("layers", "steadyhand/edge/sin.py", "import steadyhand.adapters"),
    ("layers", "steadyhand/cli/sin.py", "import steadyhand.edge"),
    ("layers", "steadyhand/ports.py", "import steadyhand.session"),
    ("layers", "steadyhand/attic.py", ""),
    ("wire-types", "steadyhand/session/sin.py", "import steadyhand_protocol"),
    ("wire-types", "steadyhand/__main__.py", "import steadyhand_protocol"),
    ("wire-alone", "steadyhand_protocol/sin.py", "import steadyhand.core"),
    ("json-rpc", "steadyhand/adapters/sin.py", "from lsprotocol import types"),
    ("json-rpc", "steadyhand/cli/sin.py", "from lsprotocol import types"),
    ("wire-types", "steadyhand/cli/sin.py", "import steadyhand_protocol"),
    ("json-rpc", "steadyhand/__main__.py", "from pygls.server import JsonRPCServer"),
    ("core-pure", "steadyhand/core/sin.py", "def late():\n    import time"),
    ("core-pure", "steadyhand/core/sin.py", "from os import path"),
    ("core-pure", "steadyhand/core/sin.py", "from concurrent.futures import Future"),
]


def judge(packages: tuple[Path, Path], contract: str | None = None) -> tuple[bool, str]:
    """Judge the packages in two folders by one contract of pyproject.toml, or by all: (kept, report)."""
    path = os.pathsep.join(map(str, packages))
    ended = subprocess.run(
        [sys.executable, "-c", LINT, *([contract] if contract else [])],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=lint_seconds_max,
        check=False,
    )
    return ended.returncode == 0, ended.stdout + ended.stderr


def test_imports_point_one_way() -> None:
    """Every contract holds: layers, wire types at the edge alone [I14], and a core without IO [I11]."""
    kept, report = judge((ROOT / "server", ROOT / "protocol"))
    assert kept, report
    assert "5 kept, 0 broken" in report, report


@pytest.mark.parametrize(("contract", "module", "line"), SINS)
def test_no_contract_is_vacuous(tmp_path: Path, contract: str, module: str, line: str) -> None:
    """Each contract is broken by a sin against it ([I11], [I14]): one it cannot see would be no contract."""
    for folder, package in (("server", "steadyhand"), ("protocol", "steadyhand_protocol")):
        shutil.copytree(ROOT / folder / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / module).open("a", encoding="utf-8") as sinner:
        sinner.write(f"\n{line}\n")
    kept, report = judge((tmp_path, tmp_path), contract)
    assert not kept, report
    assert "BROKEN" in report, report
