"""Run something in a fork of the test process, so that SIGKILL can end it."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import anyio
import attrs

T = TypeVar("T")


@attrs.frozen
class ForkResult(Generic[T]):
    """How a fork ended: `signal` if a signal ended it, else `value`."""

    signal: int | None
    value: T | None = None


def run_in_fork(work: Callable[[], Awaitable[T]]) -> ForkResult[T]:
    """Run a coroutine in a fork of this process and return its value (pickled) or the signal that ended the fork.

    An exception in the fork is raised here as AssertionError with its traceback. A fork does not copy threads: this
    process must have no other thread.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _run_as_fork(work, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            content = pipe.read()
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code < 0:
        return ForkResult(-code)
    done, value = pickle.loads(content)
    assert done, value
    return ForkResult(None, value)


@contextmanager
def repeating(act: Callable[[], object]) -> Iterator[None]:
    """A process that does this again and again, as this user, until the end of the context."""
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                act()
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _run_as_fork(work: Callable[[], Awaitable[Any]], writing: int) -> None:
    try:
        gc.disable()
        try:
            result = (True, anyio.run(work))
        except BaseException:
            result = (False, traceback.format_exc())
        content = pickle.dumps(result)
        while content:
            content = content[os.write(writing, content) :]
    finally:
        os._exit(0)
