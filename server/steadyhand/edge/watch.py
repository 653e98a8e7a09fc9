"""Ways in which the other side ends: signals, and processes that are gone.

A process is waited for with a pidfd where the system has one: it tells of a zombie too and cannot be fooled
by a number that is used again. Elsewhere the process is asked for once a second.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import anyio

poll_s = 1.0


async def follow_signals(on_signal: Callable[[int], None]) -> None:
    """Call with the number of every signal that asks this process to end. Runs until it is cancelled."""
    names = ("SIGTERM", "SIGINT", "SIGHUP")
    wanted = [getattr(signal, name) for name in names if hasattr(signal, name)]
    with anyio.open_signal_receiver(*wanted) as received:
        async for number in received:
            on_signal(int(number))


async def until_gone(pid: int) -> None:
    """Return when the process has ended; never for a number that no process can have."""
    if not 0 < pid < 1 << 31:
        await anyio.sleep_forever()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):
        await _polled(pid)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


async def _polled(pid: int) -> None:
    # Nothing tells of the end of a process that is not a child of ours.
    while _exists(pid):  # noqa: ASYNC110
        await anyio.sleep(poll_s)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True
