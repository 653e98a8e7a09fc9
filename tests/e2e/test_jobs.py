"""Background commands of the shipped server: they end with their session or the server, or outlive a killed server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.processes import process_table
from tests.support.lsp_clients import TypedClient
from tests.support.process_server import ServerProcesses, calling_server_command, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only

pytestmark = linux_only

exit_s_max = 60.0


@attrs.define
class JobServers:
    """Servers with background commands; the end of the test kills every process that a command left."""

    servers: ServerProcesses
    marks: list[str] = attrs.field(factory=list)

    def start(self) -> TypedClient:
        command, environment = calling_server_command(self.servers.state)
        return self.servers.start_command(command, environment, {"mode": "auto"})

    def job(self, client: TypedClient, session_id: str, line: str) -> Json:
        """Start a background command and return its record."""
        asked = json.dumps({"command": line, "background": True})
        said = client.say(f"run_command {asked}", sessionId=session_id)
        assert "It runs in the background" in said["text"]
        record = self.jobs(session_id)[-1]
        self.marks.append(record["attemptId"])
        return record

    def typed(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the program once with these words of its command line."""
        program = [sys.executable, "-m", "steadyhand", *words, "--state-dir", str(self.servers.state)]
        return subprocess.run(program, capture_output=True, text=True, timeout=exit_s_max, check=False)

    def jobs(self, session_id: str) -> list[Json]:
        return self.servers.having(session_id, "job")

    def alive(self, record: Json) -> bool:
        return process_table.is_running(record["pid"], record["started"])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[JobServers]:
    with server_processes(tmp_path) as servers:
        running = JobServers(servers)
        try:
            yield running
        finally:
            servers.kill()
            for mark in running.marks:
                for one in process_table.find_survivors(mark) or ():
                    process_table.signal_process(one.pid, one.started, signal.SIGKILL)


def test_job_runs_beside_later_turns_and_ends_with_its_session(running: JobServers) -> None:
    """E5, case 98: the job holds nothing back, its output can be read, and closing the session ends it and records
    that."""
    client = running.start()
    session_id = client.own("session/create")["sessionId"]
    job = running.job(client, session_id, "echo up; sleep 300")
    assert running.alive(job)
    written = client.say('write_file {"path": "a.txt", "content": "new"}', sessionId=session_id)
    assert [change["path"] for change in written["changed"]] == ["a.txt"]
    look = f"command_output {json.dumps({'jobId': job['jobId'], 'waitMs': 300})}"
    assert client.say(look, sessionId=session_id)["text"] == "up\n[it is running]"
    client.own("session/close", sessionId=session_id)
    assert not running.alive(job)
    assert [(one["event"], one.get("reason")) for one in running.jobs(session_id)] == [
        ("started", None), ("ended", "closed"),
    ]  # fmt: skip


def test_job_ends_when_the_server_is_terminated(running: JobServers) -> None:
    """Case 98: a server that is told to end leaves no job."""
    client = running.start()
    session_id = client.own("session/create")["sessionId"]
    job = running.job(client, session_id, "trap '' TERM; while :; do sleep 300; done")
    client.process.terminate()
    assert client.wait_exit(exit_s_max) == 128 + signal.SIGTERM
    assert not running.alive(job)
    assert running.jobs(session_id)[-1]["reason"] == "closed"


def test_job_that_outlives_a_killed_server_is_reported_and_stopped(running: JobServers) -> None:
    """E5, A8, case 98: the next start reports the job with pid and mark, though nobody opens the session. It is no
    uncertain effect. It runs until it is stopped, and the server after that reports nothing."""
    client = running.start()
    session_id = client.own("session/create")["sessionId"]
    job = running.job(client, session_id, "sleep 300")
    os.kill(client.process.pid, signal.SIGKILL)
    client.wait_exit(exit_s_max)
    assert running.alive(job)

    client = running.start()
    told = client.notification("window/showMessage", that=lambda told: "outlived a crash" in told["message"])
    assert job["attemptId"] in told["message"]
    assert str(job["pid"]) in told["message"]
    assert client.snapshot(session_id)["calls"] == []
    assert running.alive(job)
    stop = f"stop_command {json.dumps({'jobId': job['jobId']})}"
    assert "stopped on request" in client.say(stop, sessionId=session_id)["text"]
    assert not running.alive(job)
    assert client.shut_down() == 0

    client = running.start()
    client.own("session/open", sessionId=session_id)
    assert [told for told in client.notifications("window/showMessage") if "background" in told["message"]] == []


def test_job_of_a_killed_server_is_listed_and_stopped_by_command_line(running: JobServers) -> None:
    """E5: the command line lists and stops the job with its mark, without editor and model; while another process holds
    the session, only that process stops it."""
    client = running.start()
    session_id = client.own("session/create")["sessionId"]
    job = running.job(client, session_id, "sleep 300")
    (shown,) = client.own("session/open", sessionId=session_id)["session"]["jobs"]
    assert (shown["jobId"], shown["attemptId"], shown["state"]) == (job["jobId"], job["attemptId"], "runs")
    assert running.typed("jobs", "stop", job["jobId"]).returncode == 1
    os.kill(client.process.pid, signal.SIGKILL)
    client.wait_exit(exit_s_max)

    (listed,) = json.loads(running.typed("jobs", "--json").stdout)["jobs"]
    assert (listed["jobId"], listed["attemptId"], listed["state"]) == (job["jobId"], job["attemptId"], "left")
    assert job["pid"] in [one["pid"] for one in listed["processes"]]
    assert job["attemptId"] in running.typed("jobs").stdout
    assert running.alive(job)
    stopped = running.typed("jobs", "stop", job["jobId"][:8])
    assert (stopped.returncode, stopped.stdout) == (0, "run_command: sleep: stopped.\n")
    assert not running.alive(job)
    assert running.jobs(session_id)[-1]["reason"] == "stopped"
    assert running.typed("jobs").stdout == "No background command runs.\n"


def test_job_that_ended_after_the_kill_is_recorded_silently(running: JobServers) -> None:
    """E5: a job that is gone by then is recorded as ended, and the user gets no message."""
    client = running.start()
    session_id = client.own("session/create")["sessionId"]
    job = running.job(client, session_id, "sleep 300")
    os.kill(client.process.pid, signal.SIGKILL)
    client.wait_exit(exit_s_max)
    for one in process_table.find_survivors(job["attemptId"]) or ():
        process_table.signal_process(one.pid, one.started, signal.SIGKILL)
    client = running.start()
    client.wait_for(lambda: True if running.jobs(session_id)[-1]["event"] == "ended" else None, exit_s_max)
    assert running.jobs(session_id)[-1]["reason"] == "gone"
    assert client.notifications("window/showMessage") == []
