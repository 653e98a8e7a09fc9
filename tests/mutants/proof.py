"""What survives the fast tests, against the slow ones: a kill or a fault at every operation, and the short proof.

Each takes minutes, so a mistake that one of them catches is remembered, and so is one that passes all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.mutants.results import Mutant
from tests.mutants.workspace import PROOF, WORK

FOUND = WORK / "proof.json"
TEST_S_MAX = 1800


def is_caught_by_proof(mutant: Mutant) -> bool | None:
    """Return what the slow tests said of the mistake; None: they were not run, or the function has changed since."""
    return _found().get(_key(mutant))


def run_proof(mutant: Mutant) -> bool:
    """Run the slow tests with the mistake, up to the first that fails; remember and return whether one failed."""
    environment = {**os.environ, "MUTANT_UNDER_TEST": mutant.name, "PYTHONPATH": str(WORK / "mutants" / "src")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *PROOF]
    try:
        code = subprocess.run(
            command, cwd=WORK / "mutants", env=environment, capture_output=True, check=False, timeout=TEST_S_MAX
        ).returncode
    except subprocess.TimeoutExpired:
        code = 1
    FOUND.write_text(json.dumps({**_found(), _key(mutant): code != 0}, indent=1), encoding="utf-8")
    return code != 0


def _found() -> dict[str, bool]:
    found: dict[str, bool] = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    return found


def _key(mutant: Mutant) -> str:
    """The mistake, as long as its function is the same."""
    return f"{mutant.name} {mutant.version}"
