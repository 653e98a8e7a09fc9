"""A read that ends soon after it is cancelled: its thread stops at the next access to the disk (row G8).

A thread is never abandoned, so a cancel waits for it. A read changes nothing, so it may end anywhere: once it is
cancelled, every access to the disk raises `ReadStopped`. What is open is closed on the way out, as after an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import anyio
import anyio.lowlevel
import anyio.to_thread

from steadyhand.ports.disk import Disk

T = TypeVar("T")
_CLOSING = "close"
"""The access that is still allowed."""


class ReadStopped(Exception):
    """The read was cancelled."""


class StoppableDisk:
    """Every method of `ports.Disk`, until `stop`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._is_stopped = threading.Event()

    def stop(self) -> None:
        """Let every access but the closing of handles raise ReadStopped."""
        self._is_stopped.set()

    def __getattr__(self, name: str) -> Any:
        if name != _CLOSING and self._is_stopped.is_set():
            raise ReadStopped
        return getattr(self._disk, name)


async def run_stoppable(disk: Disk, read: Callable[[Disk], T]) -> T:
    """Run a blocking read in a thread, with a disk that stops it when this task is cancelled."""
    stoppable = StoppableDisk(disk)
    found: list[T] = []

    async def follow_cancel() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stoppable.stop()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow_cancel)
        try:
            found.append(await anyio.to_thread.run_sync(read, cast("Disk", stoppable)))
        except ReadStopped:
            await anyio.lowlevel.checkpoint()  # raises the cancel that stopped it
            raise
        tasks.cancel_scope.cancel()
    return found[0]
