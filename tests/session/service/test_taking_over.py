"""Taking a session over, releasing it and closing it, where two of them meet (rows A8, J11, S2)."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.views.notifications import EditorNotification, RecoveryNotification
from steadyhand.session.service import acquire
from steadyhand.session.service.acquire import SessionOpener
from steadyhand.session.session import Session
from steadyhand.session.session_log import SessionLog
from steadyhand.session.session_state import SessionState
from steadyhand.session.session_status import SessionStatus
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import MatchingFault, carries
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, run, says
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

wait_s_max = 60.0


def snapshots(stage: InProcessServer, session_id: str) -> list[RecoveryNotification]:
    told: list[EditorNotification] = stage.editor.told
    return [
        one for one in told if isinstance(one, RecoveryNotification) and one.snapshot.session_id == session_id
    ]  # fmt: skip


async def shown_elsewhere(stage: InProcessServer, session_id: str, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session that another process owns, as this one shows it."""
    monkeypatch.setattr(acquire, "OWNER_WAIT_S_MAX", 0.01)
    session = await stage.opened(session_id)
    assert session.status is SessionStatus.OWNED_ELSEWHERE
    return session


async def test_session_that_becomes_free_while_it_is_released_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row J11: the status of a session changes on the event loop alone, so neither of two changes is lost."""
    go, begun = threading.Event(), threading.Event()
    changed: set[int] = set()
    release, change = SessionLog._release, SessionState.change_status

    def slow(self: SessionLog, *arguments: object) -> None:
        begun.set()
        assert go.wait(wait_s_max)
        release(self, *arguments)  # type: ignore[arg-type]  # passed on

    def noted(self: SessionState, *arguments: object) -> None:
        changed.add(threading.get_ident())
        change(self, *arguments)  # type: ignore[arg-type]  # passed on

    async with scripted_server(tmp_path) as owner, scripted_server(tmp_path, run=2) as stage:
        session_id = await owner.create()
        session = await shown_elsewhere(stage, session_id, monkeypatch)
        monkeypatch.setattr(SessionLog, "_release", slow)
        monkeypatch.setattr(SessionState, "change_status", noted)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.log.release)
            assert await anyio.to_thread.run_sync(begun.wait, wait_s_max)
            session.change_status("owner_gone")
            go.set()
        assert session.status is SessionStatus.FREE
        assert changed == {threading.get_ident()}


async def test_close_that_meets_an_opening_that_fails_leaves_a_session_to_take_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows A8, B1: it has uncertain effects, so it stays listed; the next request opens it, not only session/open."""
    processes = FakeProcesses(otherwise=Script((b"done\n",)))
    disk = MatchingFault(system_disk(), carries("result"), errno.EIO)
    async with scripted_server(tmp_path, asks(run("one")), says("ok"), disk=disk, processes=processes) as stage:
        session = await stage.session("auto")
        await stage.say(session, "go")
        assert session.status is SessionStatus.BROKEN
        assert session.ledger.uncertain()

        async def fail(*_: object) -> None:
            raise OSError(errno.EIO, "the disk fails")

        async with anyio.create_task_group() as tasks, session.settling:
            tasks.start_soon(stage.registry.close, session.session_id)
            await until(lambda: session.is_closing)
            with monkeypatch.context() as patched:
                patched.setattr(SessionOpener, "_take_in", fail)
                with pytest.raises(OSError, match="the disk fails"):
                    await stage.open(session.session_id)
        left = stage.registry.sessions[session.session_id]
        assert left is session
        assert left.status is SessionStatus.FREE
        again = await stage.registry.open_session(session.session_id)
        assert again.status is SessionStatus.OPEN
        assert again.ledger.uncertain(), "its effect is still held to be uncertain"


async def test_session_that_is_taken_over_sends_its_recovery_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row A8: a client that saw the session under another owner learns the new revision, also where nothing is
    uncertain; a session that nobody saw before sends none."""
    async with scripted_server(tmp_path, run=2) as stage:
        async with scripted_server(tmp_path) as owner:
            session_id = await owner.create()
            assert snapshots(owner, session_id) == [], "nothing is uncertain in a new session"
            shown = await shown_elsewhere(stage, session_id, monkeypatch)
            assert snapshots(stage, session_id) == []
        with anyio.fail_after(wait_s_max):
            while shown.status is not SessionStatus.FREE:
                await stage.editor.news.wait()
        taken = await stage.registry.open_session(session_id)
        assert taken.status is SessionStatus.OPEN
        (told,) = snapshots(stage, session_id)
        assert told.snapshot == taken.snapshot()
        assert told.snapshot.calls == ()
