"""What a list and an opening do, counted: folders opened, steps in threads, journals read and folded (issue 17)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.ledger import ledger as ledger_module
from steadyhand.journal.journal import JOURNAL
from steadyhand.session.service import registry as registry_module
from steadyhand.session.storage import loaded_ledger
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, says, write

pytestmark = pytest.mark.anyio
sessions_listed = 12


class CountingDisk:
    """`ports.Disk` that counts the calls of each method, and the readings of a journal."""

    def __init__(self) -> None:
        self._inner = system_disk()
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._inner, name)

        def counted(*arguments: Any) -> Any:
            self.calls[name] += 1
            self.calls["read journal"] += name == "read" and JOURNAL in arguments
            return method(*arguments)

        return counted


async def test_list_opens_each_folder_once_in_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row S3: a closed session costs one folder, one lock and no fold; the list is one step of a thread a hundred."""
    disk = CountingDisk()
    async with scripted_server(tmp_path, disk=disk) as stage:
        for _ in range(sessions_listed):
            session = await stage.session()
            await stage.registry.close(session.session_id)
        steps: list[object] = []
        run = stage.registry.context.threads.run

        async def counted(work: Callable[..., Any], *arguments: Any) -> Any:
            steps.append(work)
            return await run(work, *arguments)

        monkeypatch.setattr(stage.registry.context.threads, "run", counted)
        monkeypatch.setattr(registry_module, "LISTED_AT_ONCE", 5)
        disk.calls.clear()
        views = await stage.registry.list_sessions()
        assert len(views) == sessions_listed
        assert all(view.read_only is None for view in views)
        assert len(steps) == 1 + 3, "the names, then three parts"
        assert disk.calls["enter"] == sessions_listed + 4, "one for each session, and that of all for each step"
        assert disk.calls["lock"] == sessions_listed
        assert disk.calls["read journal"] == 0


async def test_opening_reads_and_folds_a_journal_once_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reading and one fold of a whole journal, and neither on the event loop."""
    disk = CountingDisk()
    folded: list[int] = []
    fold = ledger_module.fold

    def counted(*arguments: Any) -> Any:
        folded.append(threading.get_ident())
        return fold(*arguments)

    monkeypatch.setattr(loaded_ledger, "fold", counted)
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), says("ok"), disk=disk) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        await stage.registry.close(session.session_id)
        disk.calls.clear()
        folded.clear()
        again = await stage.opened(session.session_id)
        assert again.ledger.turns.keys() == session.ledger.turns.keys()
        assert disk.calls["read journal"] == 1
        assert len(folded) == 1
        assert threading.get_ident() not in folded
