"""A tail that this process did not acknowledge, and that another process took up since (row J6, case 161)."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.record import Damage
from steadyhand.ports.disk import Disk
from steadyhand.session.session_status import SessionStatus
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import MatchingFault
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, run, says
from tests.support.session_state import on_disk, states

pytestmark = pytest.mark.anyio


def _commands(pid: int) -> FakeProcesses:
    processes = FakeProcesses(otherwise=Script((b"done\n",)))
    processes.identity = (pid, "here", "boot-1")
    return processes


def _failing_once() -> Disk:
    """A disk that reports one sync of a result as failed, though the bytes are there."""
    results: list[int] = []

    def is_sync_of_a_result(operation: object) -> bool:
        if "result" in getattr(operation, "kinds", ()):
            results.append(1)
        return getattr(operation, "verb", "") == "sync" and len(results) == 1

    return MatchingFault(system_disk(), is_sync_of_a_result, errno.EIO)


async def test_results_of_another_owner_count_after_this_process_failed_to_acknowledge_earlier_ones(
    tmp_path: Path,
) -> None:
    """Row J6: the other owner read that tail and went on from it, so its acknowledged results are no doubt, and what
    it took up counts as it took it up."""
    async with scripted_server(
        tmp_path, asks(run("one")), says("ok"), disk=_failing_once(), processes=_commands(1)
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session, "go")
        assert session.status is SessionStatus.BROKEN
        assert states(session) == ["unknown"]
        await stage.registry._close(session)
        async with scripted_server(tmp_path, asks(run("two")), says("ok"), run=2, processes=_commands(2)) as other:
            taken = await other.opened(session.session_id)
            assert (await other.say(taken, "more")).reason == "done"
            said = states(taken)
            assert said[1] == "returned"
        again = await stage.opened(session.session_id)
        assert states(again) == said
        assert not [record for record in on_disk(again) if isinstance(record, Damage)]


async def test_own_tail_that_nobody_took_up_stays_unacknowledged(tmp_path: Path) -> None:
    """Row J6: without another owner the unacknowledged result does not count, also after closing and opening."""
    async with scripted_server(
        tmp_path, asks(run("one")), says("ok"), disk=_failing_once(), processes=_commands(1)
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session, "go")
        await stage.registry._close(session)
        again = await stage.opened(session.session_id)
        assert states(again) == ["unknown"]
        assert [record for record in on_disk(again) if isinstance(record, Damage)]
