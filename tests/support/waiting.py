"""Waiting with a limit."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import attrs

wait_s_max = 60.0


async def until(holds: Callable[[], bool], limit_s: float = wait_s_max) -> None:
    """Wait until `holds` returns true."""
    with anyio.fail_after(limit_s):
        # The condition reads the state of a thread or of a file; neither sets an event.
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.001)


@attrs.define(eq=False)
class Gate:
    """A point where a task waits until the test sets `go`."""

    reached: anyio.Event = attrs.field(factory=anyio.Event)
    go: anyio.Event = attrs.field(factory=anyio.Event)

    async def passed(self) -> None:
        self.reached.set()
        await self.go.wait()

    async def wait_reached(self) -> None:
        with anyio.fail_after(wait_s_max):
            await self.reached.wait()
