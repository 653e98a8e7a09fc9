"""Background commands: started, stopped, ended with their session, and as real processes (row E5)."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.processes import process_table
from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.domain.records.record import Job, Result
from steadyhand.session.jobs import jobs
from steadyhand.tools.builtin.command_output import WAIT_MS_MAX, CommandOutput
from steadyhand.tools.builtin.run_command import RunCommand
from steadyhand.tools.builtin.stop_command import StopCommand
from steadyhand.tools.contract import CallContext, Preview, Tool, ToolOutcome
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import scripted_server
from tests.support.jobs import ID, call_job_tool, hanging_processes, job_events, slash_answer, start_job
from tests.support.model import asks, call, run, says
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import assert_closed, kinds, on_disk, outcomes, replies
from tests.support.systems import linux_only
from tests.support.tool_calls import ToolWorkspace, carried_out, planned, refusal
from tests.support.waiting import until

pytestmark = pytest.mark.anyio


async def test_background_call_returns_at_spawn_with_its_job_recorded(tmp_path: Path) -> None:
    """Rows E5, J2: The call has returned while its process runs. The journal holds the job before the result."""
    async with scripted_server(tmp_path, processes=hanging_processes()) as stage:
        session, job_id = await start_job(stage)
        assert job_id in replies(session)[0]
        assert outcomes(session) == [("returned", None)]
        assert session.ledger.uncertain() == []
        order = [kind for kind in kinds(session) if kind in ("intent", "started", "job", "result", "tool")]
        assert order == ["intent", "started", "job", "result", "tool"]
        (job,) = [record for record in on_disk(session) if isinstance(record, Job)]
        result = next(record for record in on_disk(session) if isinstance(record, Result))
        assert (job.attempt_id, job.pid, job.started, job.title) == (
            result.attempt_id, 1001, "start-1001", "run_command: serve",
        )  # fmt: skip
        assert_closed(session)


async def test_background_command_that_cannot_spawn_fails_without_a_job(tmp_path: Path) -> None:
    """Row C6: Nothing ran, and there is no job."""
    processes = FakeProcesses(otherwise=Script(not_started=FileNotFoundError(errno.ENOENT, "No such file")))
    async with scripted_server(tmp_path, asks(run("serve", background=True)), processes=processes) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert outcomes(session) == [("failed", "not_started")]
        assert "Nothing ran" in replies(session)[0]
        assert session.ledger.jobs == {}


async def test_job_above_the_bound_is_refused_before_the_spawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[I13]: The server refuses one job more than may run at once before it spawns it. After a job ends, another one
    may start."""
    monkeypatch.setattr(jobs, "JOBS_AT_ONCE_MAX", 1)
    async with scripted_server(tmp_path, processes=hanging_processes()) as stage:
        session, job_id = await start_job(stage)
        stage.model.answers.insert(0, asks(run("other", background=True)))
        await stage.say(session)
        assert outcomes(session)[-1] == ("failed", "not_started")
        assert len(session.ledger.jobs) == 1
        await call_job_tool(stage, session, "stop_command", job_id)
        stage.model.answers.insert(0, asks(run("other", background=True)))
        await stage.say(session)
        assert len(session.ledger.jobs) == 2


async def test_background_read_only_command_is_opaque(tmp_path: Path) -> None:
    """Row B2: A command that runs on after its call needs permission like any command, whatever its words are. The
    preview says that it stays."""
    workspace = ToolWorkspace.under(tmp_path)
    seen = planned(RunCommand(), workspace.tool_context(), command="cat a", background=True)
    assert seen.effect == "opaque"
    preview = seen.preview()
    assert isinstance(preview, Preview)
    assert "in the background until it ends, is stopped, or the session is closed" in preview.text


@pytest.mark.parametrize(
    ("tool", "fields", "named"),
    [
        (CommandOutput(), {}, "jobId"),
        (CommandOutput(), {"jobId": "1"}, "jobId"),
        (CommandOutput(), {"jobId": ID, "waitMs": WAIT_MS_MAX + 1}, "waitMs"),
        (CommandOutput(), {"jobId": ID, "waitMs": -1}, "waitMs"),
        (StopCommand(), {"jobId": ID.upper().replace("0", "A")}, "jobId"),
        (StopCommand(), {"jobId": ID, "force": True}, "force"),
    ],
)
async def test_job_tools_refuse_invalid_arguments(
    tmp_path: Path, tool: Tool, fields: dict[str, object], named: str
) -> None:
    """Row N1: The refusal is a sentence that names the field."""
    found = refusal(tool, ToolWorkspace.under(tmp_path).tool_context(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


async def test_job_tools_without_a_session_fail(tmp_path: Path) -> None:
    """Row G1: Without a session there are no jobs, and the tools say so."""
    context = ToolWorkspace.under(tmp_path).tool_context()
    assert (await carried_out(RunCommand(), context, command="x", background=True)).reason == "not_started"
    for tool in (CommandOutput(), StopCommand()):
        done = await carried_out(tool, context, jobId=ID)
        assert (done.outcome, done.reason) == ("failed", "not_found")


async def test_stop_command_ends_the_job_and_returns_its_last_output(tmp_path: Path) -> None:
    """Row E5: The reply holds the last output. The call holds nothing back, and it needs the permission of the mode."""
    async with scripted_server(tmp_path, processes=hanging_processes(b"up\n")) as stage:
        session, job_id = await start_job(stage)
        await session.set_mode("ask")
        said = await call_job_tool(stage, session, "stop_command", job_id)
        assert said == "up\n[ended by signal 15]\n[it has ended; it was stopped on request]"
        assert outcomes(session)[-1] == ("returned", None)
        assert [question.tool for question in stage.editor.questions] == ["stop_command"]
        assert job_events(session) == [("started", None), ("ended", "stopped")]
        assert session.ledger.attempts[list(session.ledger.attempts)[-1]].scope.plain() == {"paths": []}
        assert "it has ended" in await call_job_tool(stage, session, "stop_command", job_id), (
            "a second stop finds the job ended"
        )
        assert len(job_events(session)) == 2


async def test_close_ends_the_job_and_records_it(tmp_path: Path) -> None:
    """Case 98: Closing ends the job, and the journal says so before the lock is free."""
    async with scripted_server(tmp_path, processes=hanging_processes()) as stage:
        session, _ = await start_job(stage)
        await stage.registry.close(session.session_id)
        assert job_events(session) == [("started", None), ("ended", "closed")]


async def test_close_of_a_session_that_stays_locked_ends_its_job(tmp_path: Path) -> None:
    """Row B1, case 98: A session with an uncertain effect keeps its lock when it is closed. Its jobs end all the
    same."""
    unknown = ToolOutcome("unknown", "?", "error")

    async def body(_: CallContext) -> ToolOutcome:
        return unknown

    doubtful = ScriptedTool("doubtful", body, "opaque")
    async with scripted_server(tmp_path, processes=hanging_processes(), tools=[doubtful]) as stage:
        session, _ = await start_job(stage)
        stage.model.answers.insert(0, asks(call("doubtful")))
        await stage.say(session)
        await stage.registry.close(session.session_id)
        assert session.session_id in stage.registry.sessions
        assert job_events(session) == [("started", None), ("ended", "closed")]
        assert all(running.over.is_set() for running in session.jobs.running.values())


async def test_delete_ends_the_job(tmp_path: Path) -> None:
    """Case 98: Deleting the session ends its job."""
    async with scripted_server(tmp_path, processes=hanging_processes()) as stage:
        session, _ = await start_job(stage)
        await stage.registry.delete(session.session_id, force=False)
        assert all(running.over.is_set() for running in session.jobs.running.values())


async def test_server_stop_ends_the_job(tmp_path: Path) -> None:
    """Case 98: The stop of the server ends the job too."""
    async with scripted_server(tmp_path, processes=hanging_processes()) as stage:
        session, _ = await start_job(stage)
    assert job_events(session) == [("started", None), ("ended", "closed")]


async def test_output_of_the_oldest_ended_job_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[I13]: The server drops the last output of the oldest ended job, but still knows that it ended."""
    monkeypatch.setattr(jobs, "ENDED_KEPT_MAX", 0)
    processes = FakeProcesses({"short": Script(), "long": Script(hangs=True)})
    async with scripted_server(tmp_path, processes=processes) as stage:
        session, first = await start_job(stage, "short")
        await until(lambda: session.jobs.running[first].over.is_set())
        stage.model.answers.insert(0, asks(run("long", background=True)))
        await stage.say(session)
        assert first not in session.jobs.running
        assert "no longer available" in await call_job_tool(stage, session, "command_output", first)
        assert await slash_answer(stage, session, "/output") == "This session has no stored output."


async def test_repeated_reads_of_a_running_job_are_no_loop(tmp_path: Path) -> None:
    """Row G7: While the job runs, the same call again and again ends no turn. Once the job has ended, the loop guard
    counts."""
    async with scripted_server(tmp_path, processes=hanging_processes()) as stage:
        session, job_id = await start_job(stage)
        stage.model.answers = [*(asks(call("command_output", jobId=job_id)) for _ in range(20)), says("it runs")]
        assert (await stage.say(session)).reason == "done"
        assert await slash_answer(stage, session, f"/jobs stop {job_id}")
        stage.model.answers = [asks(call("command_output", jobId=job_id)) for _ in range(20)]
        assert (await stage.say(session)).reason == "bound"


@pytest.mark.parametrize("spoilt", ["", "missing", "damaged"])
async def test_kept_output_is_shown_after_a_restart_unless_damaged(tmp_path: Path, spoilt: str) -> None:
    """Row J12: In a later process the model gets the output by its tool and the user by `/output`. The server tells
    both what is missing or damaged, and invents nothing."""
    processes = FakeProcesses({"short": Script(output=[b"up\n"])})
    async with scripted_server(tmp_path, processes=processes) as stage:
        session, job_id = await start_job(stage, "short")
        await until(lambda: session.jobs.running[job_id].over.is_set())
        call_id = session.ledger.jobs[job_id].call_id
    (file,) = (Path(session.path) / "outputs").iterdir()
    if spoilt == "missing":
        file.unlink()
    elif spoilt:
        file.write_bytes(b"down\n")
    async with scripted_server(tmp_path, run=2) as stage:
        session = await stage.opened(session.session_id)
        seen = await call_job_tool(stage, session, "command_output", job_id)
        listed = await slash_answer(stage, session, "/output")
        shown = await slash_answer(stage, session, f"/output {call_id}")
        assert listed == f"{call_id[:8]} run_command: short"
        if spoilt:
            assert "is missing, damaged or larger" in seen
            assert "down" not in seen + shown
            assert "is missing, damaged or larger" in shown
        else:
            assert seen.startswith("up\n")
            assert "this is its stored output" in seen
            assert shown == f"up\n[3 bytes; the whole output is in {file}]"
        assert "No stored output" in await slash_answer(stage, session, "/output ffffffff")
        assert "at least 4" in await slash_answer(stage, session, "/output f")


@pytest.fixture
def marks_to_end(tmp_path: Path) -> Iterator[list[str]]:
    """Marks whose processes must be gone at the end of the test."""
    marks: list[str] = []
    yield marks
    assert [process_table.find_survivors(mark) for mark in marks] == [[] for _ in marks]


@linux_only
async def test_real_job_is_read_while_it_runs_and_ends_whole(tmp_path: Path, marks_to_end: list[str]) -> None:
    """Row E5, case 97: The output arrives while the job runs. What left its group ends with it. Pid and start time
    name its shell."""
    async with scripted_server(tmp_path, processes=SystemProcesses()) as stage:
        session, job_id = await start_job(stage, "setsid sleep 300 & echo up; sleep 300")
        marks_to_end.append(session.ledger.jobs[job_id].attempt_id)
        job = session.ledger.jobs[job_id]
        assert process_table.is_running(job.pid, job.started)
        with anyio.fail_after(60):
            while "up" not in (said := await call_job_tool(stage, session, "command_output", job_id, waitMs=50)):
                assert said == "(no new output)\n[it is running]"
        said = await call_job_tool(stage, session, "stop_command", job_id)
        assert "left running, and ended now" in said
        assert not process_table.is_running(job.pid, job.started)


@linux_only
async def test_real_job_ends_at_its_time_limit(tmp_path: Path, marks_to_end: list[str]) -> None:
    """Row E5: The time limit applies in the background too."""
    async with scripted_server(tmp_path, processes=SystemProcesses()) as stage:
        session, job_id = await start_job(stage, "sleep 300", timeoutMs=50)
        marks_to_end.append(session.ledger.jobs[job_id].attempt_id)
        assert "time limit" in await call_job_tool(stage, session, "command_output", job_id, waitMs=20_000)


@linux_only
async def test_real_job_that_ignores_sigterm_is_killed_at_server_stop(tmp_path: Path, marks_to_end: list[str]) -> None:
    """Case 98: A job that ignores SIGTERM is killed."""
    async with scripted_server(tmp_path, says("never asked"), processes=SystemProcesses()) as stage:
        session, job_id = await start_job(stage, "trap '' TERM; echo up; while :; do sleep 300; done")
        marks_to_end.append(session.ledger.jobs[job_id].attempt_id)
    assert job_events(session)[-1] == ("ended", "closed")
