"""Real commands of a test: what one wrote and how it ended, and that none of them is left."""

from __future__ import annotations

import signal

import anyio

from steadyhand.adapters.processes import process_table
from steadyhand.ports.processes import Finished


class OutputRecorder:
    """Collects a command's output and how its end is reported."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ends: list[Finished] = []
        self.has_output = anyio.Event()

    def output(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.has_output.set()

    @property
    def text(self) -> str:
        return b"".join(self.pieces).decode()


def assert_no_process_left(mark: str) -> None:
    """Kill what a test left running under this mark, and fail the test."""
    left = process_table.find_survivors(mark) or []
    for one in left:
        process_table.signal_process(one.pid, one.started, signal.SIGKILL)
    assert left == []
