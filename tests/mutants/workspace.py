"""The copy of the repository in which mutmut works: the layout that it expects, its settings, and its earlier results.

mutmut finds packages below `src/`, so `server/` and `protocol/` are copied to there. Only a file that changed is copied
again: mutmut then tests the functions that differ since its last run, and keeps the other results.
"""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

from tests.mutants.modules import MODULES

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".scratch" / "mutants"
PACKAGES = {
    "server/steadyhand": "src/steadyhand",
    "protocol/steadyhand_protocol": "src/steadyhand_protocol",
    "protocol/steadyhand_values": "src/steadyhand_values",
}
TESTS = ("tests/domain", "tests/journal", "tests/config", "tests/tools", "tests/session", "tests/scenarios")
"""The tests that run against each mistake: fast, and all in one process."""
PROOF = ("tests/crash", "tests/prove")
"""What runs against a mistake that survived, where it is asked for."""
READ_BY_TESTS = ("tests/conftest.py", "tests/support", "docs", "protocol/examples", "editor-client/package.json")

SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {modules}
also_copy = ["docs", "protocol", "editor-client", "conftest.py"]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=1800"]
use_git_change_detection = false
on_dependency_change = "ignore"
"""
# As in pyproject.toml, except for what every mutated file has: decorators without types, and comments that ignore them.
TYPES = """
[mypy]
strict = true
python_version = 3.10
mypy_path = mutants/src
explicit_package_bases = true
namespace_packages = true
warn_unused_ignores = false
disable_error_code = untyped-decorator, no-redef
ignore_missing_imports = true
cache_dir = types-cache
"""
# mutmut forks a process that has run tests, so what a function keeps for later calls was made without the mistake. And
# while it finds out which tests call which function, only the first test calls a function that keeps its result.
FORGETS = """
import os
import sys


def forget():
    for module in [module for name, module in sys.modules.items() if name.startswith("steadyhand")]:
        for value in list(vars(module).values()):
            if type(value).__name__ == "_lru_cache_wrapper":
                value.cache_clear()


def pytest_sessionstart():
    forget()


def pytest_runtest_setup():
    if os.environ.get("MUTANT_UNDER_TEST") == "stats":
        forget()
"""


def prepare() -> None:
    """Bring the copy up to date."""
    for source, target in {**PACKAGES, **{path: path for path in (*TESTS, *PROOF, *READ_BY_TESTS)}}.items():
        _copy_changed(ROOT / source, WORK / target)
    chosen = [f"src/steadyhand/{module}.py" for module in MODULES]
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    _write_changed(WORK / "pyproject.toml", settings + SETTINGS.format(modules=chosen, tests=list(TESTS)))
    _write_changed(WORK / "mypy.ini", TYPES)
    _write_changed(WORK / "conftest.py", FORGETS)


def _copy_changed(source: Path, target: Path) -> None:
    """Copy a file or a tree. A file with the same bytes keeps its time; what is gone is removed."""
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or not filecmp.cmp(source, target, shallow=False):
            shutil.copy(source, target)
        return
    names = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    for name in names:
        _copy_changed(source / name, target / name)
    for old in [path for path in target.rglob("*") if path.is_file() and path.relative_to(target) not in names]:
        old.unlink()


def _write_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
