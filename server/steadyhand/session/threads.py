"""The threads that block for the event loop: disk access, hashing and locks.

At most `DISK_THREADS_MAX` run at once. A thread is never abandoned, so what it did is always known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")
DISK_THREADS_MAX = 8


class DiskThreads:
    """One limit on threads, shared by everything in this process that blocks."""

    def __init__(self) -> None:
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run blocking work in a thread and return its result. A cancel takes effect only after the work."""
        if self._limiter is None:  # a limiter can only be made inside an event loop
            self._limiter = anyio.CapacityLimiter(DISK_THREADS_MAX)
        return await anyio.to_thread.run_sync(work, *arguments, limiter=self._limiter)
