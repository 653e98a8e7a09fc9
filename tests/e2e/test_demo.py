"""`make demo` works: each scene ends as it says."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.systems import linux_only

ROOT = Path(__file__).resolve().parents[2]
DEMO_S_MAX = 110

pytestmark = linux_only


@pytest.mark.timeout(DEMO_S_MAX + 10)
def test_demo_ends_with_every_row_agreeing() -> None:
    """P5: the demo needs no editor, network or key; it kills the server seven times and nothing happens twice."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.demo"], cwd=ROOT, capture_output=True, text=True, timeout=DEMO_S_MAX, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Every row agrees" in done.stdout
