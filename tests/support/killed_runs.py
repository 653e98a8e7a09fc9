"""A process run that is killed in the middle of a turn, and the run after it."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from steadyhand.ports.model import Models
from tests.support.fakes import id_of
from tests.support.faults import DyingDisk, Matches
from tests.support.forks import run_in_fork
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.workspace import Workspace

SESSION = id_of(1)  # the first id of the first run


def kill_in_turn(
    workspace: Workspace, prompt: str, matches: Matches, after: bool = False, models: Models | None = None
) -> None:
    """Run a first server in a fork, with one session, `SESSION`, and one turn; its disk kills it in that turn."""

    async def first_run() -> None:
        chosen: dict[str, Any] = {} if models is None else {"models": models}
        async with practice_server(workspace, disk=DyingDisk(matches, after), **chosen) as server:
            assert await server.create() == SESSION
            await server.say(SESSION, prompt)

    assert run_in_fork(first_run).signal == signal.SIGKILL


@asynccontextmanager
async def retrying_server(
    workspace: Workspace, *, run: int = 2, retry: bool = True, **more: Any
) -> AsyncIterator[InProcessServer]:
    """A later run with the setting `retry` switched on."""
    async with practice_server(workspace, run=run, retry=retry, **more) as server:
        yield server
