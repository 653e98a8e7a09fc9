"""The installed program ends without the interpreter's teardown and loses no output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATHS = {"PYTHONPATH": f"{ROOT / 'server'}:{ROOT / 'protocol'}"}

BEGIN = """
import atexit, logging, sys, threading, time
from steadyhand.__main__ import end_process
"""


def run_program(code: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    """The result of a program that ends with `end_process`."""
    return subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        env={**os.environ, **PATHS, "PYTHONUNBUFFERED": ""},
        timeout=60,
        check=False,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("code", [0, 1, 143])
def test_end_process_exits_with_its_code_and_no_teardown(code: int) -> None:
    """The exit code is that of the call, and no `atexit` hook runs."""
    found = run_program(f"atexit.register(lambda: print('torn down', file=sys.stderr))\nend_process({code})")
    assert (found.returncode, found.stdout, found.stderr) == (code, b"", b"")


def test_end_process_flushes_buffered_output() -> None:
    """Buffered text of stdout, stderr and a log reaches its reader."""
    found = run_program(
        "from logging.handlers import MemoryHandler\n"
        "logging.getLogger().addHandler(MemoryHandler(100, 100, logging.StreamHandler(sys.stderr)))\n"
        "sys.stdout.write('an answer')\n"
        "logging.getLogger().error('a message')\n"
        "end_process(0)"
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, b"an answer", b"a message\n")


def test_end_process_waits_for_working_threads() -> None:
    """It waits for threads that the interpreter would wait for, and not for daemon threads."""
    found = run_program(
        "def work():\n    time.sleep(0.3)\n    sys.stdout.write('done')\n"
        "threading.Thread(target=work).start()\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "end_process(0)"
    )
    assert (found.returncode, found.stdout) == (0, b"done")


def test_end_process_with_a_closed_reader_exits_with_120() -> None:
    """If stdout cannot be flushed, the exit code is that of the interpreter."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        ours = run_program("sys.stdout.write('an answer')\nend_process(0)", stdout=writes)
        plain = run_program("sys.stdout.write('an answer')\nsys.exit(0)", stdout=writes)
    finally:
        os.close(writes)
    assert ours.returncode == plain.returncode == 120


def test_end_process_with_closed_streams_keeps_its_code() -> None:
    """Closed or missing standard streams do not change the exit code."""
    assert run_program("sys.stdout.close()\nsys.stderr = None\nend_process(3)").returncode == 3
