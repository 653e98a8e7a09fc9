"""A disk that ends its own process at the operation a test means, and a life that dies so.

`died_in` runs a turn of the practice model (or of another) in a fork whose disk kills it; what it leaves on disk is
what the next life in this process finds.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs

from steadyhand.adapters.disk import system_disk
from steadyhand.ports import Disk, Models
from tests.support.disks import Operation, WatchedDisk
from tests.support.fakes import id_of
from tests.support.turns import Place, Rig, forked, rig

T = TypeVar("T")
Matches = Callable[[Operation], bool]
SESSION = id_of(1)  # the first id of the first life


class DyingDisk(WatchedDisk):
    """Ends this process right before (or `after`) the first operation that matches."""

    def __init__(self, matches: Matches, after: bool = False, inner: Disk | None = None) -> None:
        super().__init__(inner or system_disk())
        self._matches = matches
        self._after = after

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if not self._matches(operation):
            return act()
        if self._after:
            act()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process outlived its SIGKILL")


def on(verb: str, name: str) -> Matches:
    """An operation of this verb whose target names this."""
    return lambda operation: operation.verb == verb and name in operation.target


def died_in(place: Place, prompt: str, matches: Matches, after: bool = False, models: Models | None = None) -> None:
    """A first life with one session, `SESSION`, and one turn, in which it dies."""

    async def life() -> None:
        given: dict[str, Any] = {} if models is None else {"models": models}
        async with rig(place, disk=DyingDisk(matches, after), **given) as house:
            assert await house.create() == SESSION
            await house.say(SESSION, prompt)

    assert forked(life).signal == signal.SIGKILL


@asynccontextmanager
async def retrying(place: Place, *, life: int = 2, retry: bool = True, **more: Any) -> AsyncIterator[Rig]:
    """A later life, with retry switched on."""
    async with rig(place, life=life, **more) as house:
        house.house.world.settings = attrs.evolve(house.house.world.settings, retry=retry)
        yield house
