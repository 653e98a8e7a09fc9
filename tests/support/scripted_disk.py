"""A disk on which somebody acts right before chosen operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from steadyhand.adapters.disk.posix import system_disk
from tests.support.faults import Operation, WatchedDisk

T = TypeVar("T")


class ScriptedDisk(WatchedDisk):
    """Calls `steps` in order, each before the next operation with one of these verbs; an OSError is raised there."""

    def __init__(self, verbs: tuple[str, ...], *steps: Callable[[], object]) -> None:
        super().__init__(system_disk())
        self._verbs = verbs
        self._steps = list(steps)

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if operation.verb in self._verbs and self._steps:
            self._steps.pop(0)()
        return act()
