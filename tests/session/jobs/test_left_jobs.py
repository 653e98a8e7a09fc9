"""Background commands that a crash left: found again, reported, stopped and recorded (row E5, case 98)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.ledger.ledger import fold
from steadyhand.domain.records.record import Damage, Job, Notice, Stamped
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.service.startup_scan import scan_sessions
from tests.support.fakes import FakeProcesses
from tests.support.in_process_server import scripted_server
from tests.support.jobs import ID, call_job_tool, hanging_processes, job_events, slash_answer, start_job
from tests.support.session_state import on_disk, outcomes

pytestmark = pytest.mark.anyio


async def crash_with_a_job(tmp_path: Path) -> tuple[Path, str, str, str]:
    """State directory, session, job and mark of a process that was killed while a job ran."""
    async with scripted_server(tmp_path, processes=hanging_processes()) as stage:
        session, job_id = await start_job(stage)
        return stage.crashed(tmp_path / "later"), session.session_id, job_id, session.ledger.jobs[job_id].attempt_id


async def test_job_left_by_a_crash_is_reported_and_ended_by_its_id(tmp_path: Path) -> None:
    """Row E5, case 98: Opening reports pid and mark. The job is not uncertain, and only a stop with its id ends it."""
    state, session_id, job_id, mark = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    mine, other = OrphanProcess(4001, "s1", "serve"), OrphanProcess(4002, "s2", "serve --other")
    processes.survivors_of = {mark: [mine], "f" * 32: [other]}
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        session = await stage.opened(session_id)
        assert session.snapshot().calls == ()
        (said,) = [text for text in stage.editor.messages if "background" in text]
        assert all(word in said for word in ("4001", mark, job_id))
        assert "it is still running, and its output is not read: 4001 serve" in await call_job_tool(
            stage, session, "command_output", job_id
        )
        assert "it was stopped on request" in await call_job_tool(stage, session, "stop_command", job_id)
        assert processes.ended == [mine]
        assert job_events(session)[-1] == ("ended", "stopped")


async def test_job_left_by_a_crash_is_reported_once_per_process(tmp_path: Path) -> None:
    """Rows E5, A8: There is one notification in all of one process, whether the startup scan or an opening finds the
    job first, and however often the session is opened again."""
    state, session_id, _, mark = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of = {mark: [OrphanProcess(4001, "s1", "serve")]}
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        await scan_sessions(stage.registry, [stage.root.as_uri()])
        for _ in range(2):
            await stage.opened(session_id)
            await stage.registry.close(session_id)
        (said,) = [text for text in stage.editor.messages if "outlived a crash" in text]
        assert mark in said


async def test_jobs_command_lists_and_stops_a_job_left_by_a_crash(tmp_path: Path) -> None:
    """Row E5: Without the model, `/jobs` lists the job with its mark. It ends the process by mark with pid and start
    time and nothing else. The end is recorded, and a notice tells the model. The session shows the job until then."""
    state, session_id, job_id, mark = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    mine, other = OrphanProcess(4001, "s1", "serve"), OrphanProcess(4002, "s2", "serve --other")
    processes.survivors_of = {mark: [mine], "f" * 32: [other]}
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        session = await stage.opened(session_id)
        (shown,) = session.view().jobs or ()
        assert (shown.job_id, shown.attempt_id, shown.state) == (job_id, mark, "left")
        listed = await slash_answer(stage, session, "/jobs")
        assert (
            listed
            == f"1. {job_id[:8]} run_command: serve: still running after a crash, process 4001 serve, mark {mark}"
        )
        assert "Give at least 4" in await slash_answer(stage, session, "/jobs stop ab")
        assert "No background command begins" in await slash_answer(stage, session, "/jobs stop ffff")
        assert "Say /jobs" in await slash_answer(stage, session, "/jobs end")
        assert await slash_answer(stage, session, f"/jobs stop {job_id[:8]}") == "run_command: serve: stopped."
        assert processes.ended == [mine]
        assert job_events(session)[-1] == ("ended", "stopped")
        assert any(isinstance(one, Notice) and "stopped the background command" in one.text for one in on_disk(session))
        assert session.view().jobs is None
        assert await slash_answer(stage, session, "/jobs") == "No background command runs."


@pytest.mark.parametrize("gone", [True, False])
async def test_delete_names_the_process_left_by_a_crash(tmp_path: Path, gone: bool) -> None:
    """Rows E5, S3: After the deletion nothing lists the process any more, so the server names it. It does not name a
    process that is gone."""
    state, session_id, _, mark = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of = {mark: [OrphanProcess(4001, "s1", "serve")]}
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        await stage.opened(session_id)
        if gone:
            processes.survivors_of = {}
        await stage.registry.delete(session_id, force=False)
        messages = [text for text in stage.editor.messages if "are no longer listed" in text]
        assert ["process 4001 serve" in text and mark in text for text in messages] == ([] if gone else [True])
        assert processes.ended == []
        assert not (state / "sessions" / session_id).exists()


async def test_delete_says_when_a_job_cannot_be_checked(tmp_path: Path) -> None:
    """Row E5: The server never claims that no process runs when it cannot find out."""
    state, session_id, _, mark = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of = {mark: None}
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        await stage.opened(session_id)
        await stage.registry.delete(session_id, force=False)
        assert any("cannot be checked here" in text for text in stage.editor.messages)


async def test_jobs_command_stops_a_running_job(tmp_path: Path) -> None:
    """Row E5: The output of the job stays for the model's next call."""
    async with scripted_server(tmp_path, processes=hanging_processes(b"up\n")) as stage:
        session, job_id = await start_job(stage)
        assert [(job.job_id, job.state) for job in session.view().jobs or ()] == [(job_id, "runs")]
        assert "running, process" in await slash_answer(stage, session, "/jobs")
        assert await slash_answer(stage, session, f"/jobs stop {job_id}") == "run_command: serve: stopped."
        assert session.view().jobs is None
        assert (await call_job_tool(stage, session, "command_output", job_id)).startswith("up")


async def test_jobs_command_reports_a_process_that_does_not_end(tmp_path: Path) -> None:
    """Row E5: The job stays listed, and nothing is recorded."""
    state, session_id, job_id, mark = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of, processes.immortal = {mark: [OrphanProcess(4001, "s1", "serve")]}, {4001}
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        session = await stage.opened(session_id)
        assert "it did not end: 4001 serve" in await slash_answer(stage, session, f"/jobs stop {job_id}")
        processes.untold = True
        assert "cannot check here" in await slash_answer(stage, session, f"/jobs stop {job_id}")
        assert "cannot be checked here" in await slash_answer(stage, session, "/jobs")
        assert job_events(session) == [("started", None)]


async def test_stop_command_fails_on_a_process_that_does_not_end(tmp_path: Path) -> None:
    """Row E5: The job stays open, and the call fails."""
    state, session_id, job_id, mark = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of, processes.immortal = {mark: [OrphanProcess(4001, "s1", "serve")]}, {4001}
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        session = await stage.opened(session_id)
        assert "4001" in await call_job_tool(stage, session, "stop_command", job_id)
        assert outcomes(session)[-1] == ("failed", "not_ended")
        assert len(session.ledger.open_jobs()) == 1


async def test_job_that_is_gone_is_recorded_once_and_not_reported(tmp_path: Path) -> None:
    """Rows E5, C4: Another opening finds nothing new, and no message names a job that does not run."""
    state, session_id, job_id, _ = await crash_with_a_job(tmp_path)
    for process_number in (2, 3):
        async with scripted_server(tmp_path, state=state, run=process_number) as stage:
            session = await stage.opened(session_id)
            assert job_events(session) == [("started", None), ("ended", "gone")]
            assert [text for text in stage.editor.messages if "background" in text] == []
            assert "it was not running any more" in await call_job_tool(stage, session, "command_output", job_id)


async def test_job_that_cannot_be_checked_stays_open(tmp_path: Path) -> None:
    """Row E5: The server never claims that a job is gone when it cannot find out."""
    state, session_id, job_id, _ = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    processes.untold = True
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        session = await stage.opened(session_id)
        assert any("cannot check here" in text for text in stage.editor.messages)
        assert "cannot say whether it is still running" in await call_job_tool(stage, session, "stop_command", job_id)
        assert len(session.ledger.open_jobs()) == 1


@pytest.mark.parametrize("alive", [True, False])
async def test_startup_scan_reports_running_jobs_of_its_folders(tmp_path: Path, alive: bool) -> None:
    """Row A8, case 98: Nobody opened the session. The one notification names what runs, and the server releases the
    session again."""
    state, session_id, _, mark = await crash_with_a_job(tmp_path)
    processes = FakeProcesses()
    processes.survivors_of = {mark: [OrphanProcess(4001, "s1", "serve")] if alive else []}
    async with scripted_server(tmp_path, processes=processes, state=state, run=2) as stage:
        await scan_sessions(stage.registry, [stage.root.as_uri()])
        assert [mark in text for text in stage.editor.messages] == [True] * alive
        assert session_id not in stage.registry.sessions
        await scan_sessions(stage.registry, [stage.root.as_uri()])
        assert len(stage.editor.messages) == alive, "one process reports the job once"


def test_job_end_in_an_unacknowledged_tail_does_not_count() -> None:
    """Row J6: In an unacknowledged tail a start counts and an end does not. An end is final."""
    started = Job(
        job_id=ID, attempt_id="a" * 32, call_id="c" * 32, event="started", pid=7, started="t", title="run_command: x"
    )
    ended = Job(
        job_id=ID,
        attempt_id="a" * 32,
        call_id="c" * 32,
        event="ended",
        pid=7,
        started="t",
        title="run_command: x",
        exit_code=0,
    )
    tail = [
        Stamped(seq=1, at="", sum="", record=started),
        Stamped(seq=2, at="", sum="", record=ended),
        Stamped(seq=3, at="", sum="", record=Damage(count=0, unacknowledged=1)),
    ]
    assert fold(tail, ()).open_jobs() == [started]
    again = fold(
        [
            Stamped(seq=1, at="", sum="", record=started),
            Stamped(seq=2, at="", sum="", record=ended),
            Stamped(seq=3, at="", sum="", record=started),
        ],
        (),
    )
    assert again.open_jobs() == []
    assert len(again.refused) == 1
