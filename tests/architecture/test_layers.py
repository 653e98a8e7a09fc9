"""The import contracts hold, and each of them can fail.

The contracts are in pyproject.toml, and import-linter checks them. A contract can hold because it forbids nothing (a
renamed folder, a misspelt module). So each contract is also checked over a copy of the packages with violations of it
added, and the report has to name every one.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = """
import sys
from importlinter.cli import lint_imports
sys.exit(lint_imports(no_cache=True, limit_to_contracts=tuple(sys.argv[1:])))
"""
LINT_S_MAX = 60
PACKAGES = (("server", "steadyhand"), ("protocol", "steadyhand_protocol"), ("protocol", "steadyhand_values"))

# (contract, module that violates it, its import, the imported module as the report names it)
VIOLATIONS: list[tuple[str, str, str, str | None]] = [
    ("layers", "steadyhand/domain/violation.py", "import steadyhand.ports", "steadyhand.ports"),
    ("layers", "steadyhand/journal/violation.py", "import steadyhand.tools", "steadyhand.tools"),
    ("layers", "steadyhand/lsp/violation.py", "import steadyhand.adapters", "steadyhand.adapters"),
    ("layers", "steadyhand/cli/violation.py", "import steadyhand.lsp", "steadyhand.lsp"),
    ("layers", "steadyhand/ports/disk.py", "import steadyhand.session", "steadyhand.session"),
    ("layers", "steadyhand/attic.py", "", None),
    (
        "session-layers",
        "steadyhand/session/calls/violation.py",
        "from steadyhand.session.turns import loop",
        "steadyhand.session.turns.loop",
    ),
    (
        "session-layers",
        "steadyhand/session/context.py",
        "def late():\n    from steadyhand.session.storage import grants",
        "steadyhand.session.storage.grants",
    ),
    ("session-layers", "steadyhand/session/attic.py", "", None),
    ("wire-types", "steadyhand/session/violation.py", "import steadyhand_protocol", "steadyhand_protocol"),
    ("wire-types", "steadyhand/__main__.py", "import steadyhand_protocol", "steadyhand_protocol"),
    ("wire-alone", "steadyhand_protocol/violation.py", "import steadyhand.domain", "steadyhand.domain"),
    ("wire-alone", "steadyhand_values/violation.py", "import steadyhand.domain", "steadyhand.domain"),
    ("json-rpc", "steadyhand/adapters/violation.py", "from lsprotocol import types", "lsprotocol"),
    ("json-rpc", "steadyhand/cli/violation.py", "from lsprotocol import types", "lsprotocol"),
    ("wire-types", "steadyhand/cli/violation.py", "import steadyhand_protocol", "steadyhand_protocol"),
    ("json-rpc", "steadyhand/__main__.py", "from pygls.server import JsonRPCServer", "pygls"),
    ("domain-pure", "steadyhand/domain/violation.py", "def late():\n    import time", "time"),
    ("domain-pure", "steadyhand/domain/violation.py", "from os import path", "os"),
    ("domain-pure", "steadyhand/domain/violation.py", "from concurrent.futures import Future", "concurrent"),
]


def lint(packages: tuple[Path, Path], contract: str | None = None) -> tuple[bool, str]:
    """Check the packages in two folders against one contract of pyproject.toml, or against all: (kept, report)."""
    path = os.pathsep.join(map(str, packages))
    ended = subprocess.run(
        [sys.executable, "-c", LINT, *([contract] if contract else [])],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=LINT_S_MAX,
        check=False,
    )
    return ended.returncode == 0, ended.stdout + ended.stderr


def test_import_contracts_all_hold() -> None:
    """Every contract holds: layers, wire types in lsp alone [I14], and a domain without IO [I11]."""
    kept, report = lint((ROOT / "server", ROOT / "protocol"))
    assert kept, report
    assert "6 kept, 0 broken" in report, report


@pytest.fixture(scope="module")
def report_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Contract → the report on a copy of the packages that has all violations of that contract."""

    @cache
    def report_of(contract: str) -> str:
        folder = tmp_path_factory.mktemp(contract)
        for source, package in PACKAGES:
            shutil.copytree(ROOT / source / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
        for violated, module, line, _ in VIOLATIONS:
            if violated == contract:
                with (folder / module).open("a", encoding="utf-8") as file:
                    file.write(f"\n{line}\n")
        kept, report = lint((folder, folder), contract)
        assert not kept, report
        assert "BROKEN" in report, report
        return report

    return report_of


@pytest.mark.parametrize(("contract", "module", "line", "imported"), VIOLATIONS)
def test_import_contract_fails_on_a_violation(
    report_of: Callable[[str], str], contract: str, module: str, line: str, imported: str | None
) -> None:
    """A violation breaks its contract ([I11], [I14]): a contract that cannot fail proves nothing."""
    report = report_of(contract)
    name = re.escape(module.removesuffix(".py").replace("/", "."))
    by = rf" -> {re.escape(imported)} \(l\.\d+\)" if imported else ""
    assert re.search(rf"^- +{name}{by}$", report, re.MULTILINE), report
