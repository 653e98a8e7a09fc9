"""A cancelled search or large read ends at its next access to the disk (row G8). Accesses are counted, not time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.model.messages import CallProposed
from steadyhand.session.service import prompt_queue
from steadyhand.tools.builtin import read_file
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, says
from tests.support.session_state import assert_closed, states

pytestmark = pytest.mark.anyio
held_s_max = 60.0
files_searched = 400


class HeldReads:
    """`ports.Disk`: holds the nth access of a search to its files, and counts those that come after the release."""

    def __init__(self, nth: int) -> None:
        self._inner = system_disk()
        self.nth = nth
        self.reached, self.go = threading.Event(), threading.Event()
        self.before = self.after = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._inner, name)

        def passed_on(*arguments: Any) -> Any:
            if name == "read_piece" or any(isinstance(one, str) and one.endswith(".py") for one in arguments):
                self._follow()
            return method(*arguments)

        return passed_on

    def _follow(self) -> None:
        if self.go.is_set():
            self.after += 1
            return
        self.before += 1
        if self.before == self.nth:
            self.reached.set()
            assert self.go.wait(held_s_max)


@pytest.mark.parametrize(
    "asked",
    [
        call("search_text", pattern="needle"),
        call("find_files", pattern="*.py"),
        call("list_files", depth=5),
        call("read_file", path="large.txt", offset=900_000),
    ],
    ids=lambda one: one.tool,
)
async def test_cancelled_read_stops_at_its_next_access(tmp_path: Path, asked: CallProposed) -> None:
    """Of hundreds of accesses that were ahead, one more begins; the call ends as one that was stopped by the user."""
    disk = HeldReads(3 if asked.tool == "read_file" else 50)
    async with scripted_server(tmp_path, asks(asked), says("ok"), disk=disk) as stage:
        (stage.root / "src").mkdir()
        for number in range(files_searched):
            (stage.root / "src" / f"f{number}.py").write_text("text\n")
        (stage.root / "large.txt").write_bytes(b"a line of text\n" * (2 * read_file.WHOLE_BYTES_MAX // 15))
        session = await stage.session("auto")
        accepted = await stage.send(session, "look")
        assert await anyio.to_thread.run_sync(disk.reached.wait, held_s_max)
        await prompt_queue.cancel(session, accepted.turn_id)
        for _ in range(20):  # the cancel reaches the tasks of the turn
            await anyio.lowlevel.checkpoint()
        disk.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == "cancelled"
        assert disk.after == 0, "it went on reading"
        assert states(session) == ["notRun"]
        assert_closed(session)
        assert (await stage.say(session, "go on")).reason == "done"
