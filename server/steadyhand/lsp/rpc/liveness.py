"""Notice that this process or the client's process has to end: signals, and processes that have ended.

Where the system has pidfds, `wait_gone` waits with one: it notices a zombie too, and a pid that is used again does not
mislead it. Elsewhere it checks once a second.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import anyio

POLL_S = 1.0


async def follow_signals(on_signal: Callable[[int], None]) -> None:
    """Call `on_signal` with the number of every signal that asks this process to end. Runs until it is cancelled."""
    names = ("SIGTERM", "SIGINT", "SIGHUP")
    wanted = [getattr(signal, name) for name in names if hasattr(signal, name)]
    with anyio.open_signal_receiver(*wanted) as received:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, wanted)  # `greeting` blocked them
        async for number in received:
            on_signal(int(number))


async def wait_gone(pid: int) -> None:
    """Return when the process has ended; never for a number that no process can have."""
    if not 0 < pid < 1 << 31:
        await anyio.sleep_forever()
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):
        await _poll_until_gone(pid)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


async def _poll_until_gone(pid: int) -> None:
    # The system reports only the end of a child.
    while _exists(pid):  # noqa: ASYNC110
        await anyio.sleep(POLL_S)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to another user
        return True
    return True
