"""Background commands over the whole server: with the session, on the way out, and after the server was killed."""

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

from steadyhand.adapters import process_list
from tests.crash.promises import whole_records
from tests.support.calling_server import command
from tests.support.recovered import Client, Json
from tests.support.systems import linux_only
from tests.support.turns import Place

pytestmark = linux_only

exit_s_max = 20.0


@attrs.define
class Desk:
    """Servers on one place; what their jobs left running is ended with the test."""

    place: Place
    clients: list[Client] = attrs.field(factory=list)
    marks: list[str] = attrs.field(factory=list)

    def start(self) -> Client:
        program, environment = command(self.place.state)
        client = Client(program, environment)
        client.place = self.place
        self.clients.append(client)
        folders = [{"uri": self.place.uri, "name": "work"}]
        client.initialize({"capabilities": {}, "workspaceFolders": folders, "initializationOptions": {"mode": "auto"}})
        return client

    def job(self, client: Client, session_id: str, line: str) -> Json:
        """Start a background command; its record."""
        asked = json.dumps({"command": line, "background": True})
        said = client.say(f"run_command {asked}", sessionId=session_id)
        assert "It runs in the background" in said["text"]
        record = self.jobs(session_id)[-1]
        self.marks.append(record["attemptId"])
        return record

    def typed(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One run of the program with a verb."""
        program = [sys.executable, "-m", "steadyhand", *words, "--state-dir", str(self.place.state)]
        return subprocess.run(program, capture_output=True, text=True, timeout=exit_s_max, check=False)

    def jobs(self, session_id: str) -> list[Json]:
        return [record for record in whole_records(self.place.journal(session_id)) if record["kind"] == "job"]

    def alive(self, record: Json) -> bool:
        return process_list.is_running(record["pid"], record["started"])


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(Place.under(tmp_path / "place"))
    try:
        yield desk
        for client in desk.clients:
            client.everything_fits()
    finally:
        for client in desk.clients:
            client.kill()
        for mark in desk.marks:
            for one in process_list.survivors(mark) or ():
                process_list.signal_exactly(one.pid, one.started, signal.SIGKILL)


def test_a_job_runs_beside_later_turns_and_ends_with_its_session(desk: Desk) -> None:
    """E5, case 98: nothing is held back by it; it is read; closing the session ends it and says so."""
    client = desk.start()
    session_id = client.own("session/create")["sessionId"]
    job = desk.job(client, session_id, "echo up; sleep 300")
    assert desk.alive(job)
    written = client.say('write_file {"path": "a.txt", "content": "new"}', sessionId=session_id)
    assert [change["path"] for change in written["changed"]] == ["a.txt"]
    look = f"command_output {json.dumps({'jobId': job['jobId'], 'waitMs': 300})}"
    assert client.say(look, sessionId=session_id)["text"] == "up\n[it runs]"
    client.own("session/close", sessionId=session_id)
    assert not desk.alive(job)
    assert [(one["event"], one.get("reason")) for one in desk.jobs(session_id)] == [
        ("started", None), ("ended", "closed"),
    ]  # fmt: skip


def test_a_job_ends_on_the_way_out(desk: Desk) -> None:
    """Case 98: a server that is told to end leaves none."""
    client = desk.start()
    session_id = client.own("session/create")["sessionId"]
    job = desk.job(client, session_id, "trap '' TERM; while :; do sleep 300; done")
    client.process.terminate()
    assert client.wait_exit(exit_s_max) == 128 + signal.SIGTERM
    assert not desk.alive(job)
    assert desk.jobs(session_id)[-1]["reason"] == "closed"


def test_a_job_that_outlives_a_killed_server_is_reported(desk: Desk) -> None:
    """E5, A8, case 98: the next start tells of it with pid and mark, though nobody opens the session; it is no
    uncertain effect; it runs until it is stopped, and a server after that has nothing to tell."""
    client = desk.start()
    session_id = client.own("session/create")["sessionId"]
    job = desk.job(client, session_id, "sleep 300")
    os.kill(client.process.pid, signal.SIGKILL)
    client.wait_exit(exit_s_max)
    assert desk.alive(job)

    client = desk.start()
    told = client.notification("window/showMessage", that=lambda told: "outlived a crash" in told["message"])
    assert job["attemptId"] in told["message"]
    assert str(job["pid"]) in told["message"]
    assert client.snapshot(session_id)["calls"] == []
    assert desk.alive(job)
    stop = f"stop_command {json.dumps({'jobId': job['jobId']})}"
    assert "stopped on request" in client.say(stop, sessionId=session_id)["text"]
    assert not desk.alive(job)
    assert client.shut_down() == 0

    client = desk.start()
    client.own("session/open", sessionId=session_id)
    assert [told for told in client.notifications("window/showMessage") if "background" in told["message"]] == []


def test_it_is_listed_and_stopped_on_a_command_line(desk: Desk) -> None:
    """E5: without editor and model, with its mark; while somebody owns the session it is stopped there."""
    client = desk.start()
    session_id = client.own("session/create")["sessionId"]
    job = desk.job(client, session_id, "sleep 300")
    (shown,) = client.own("session/open", sessionId=session_id)["session"]["jobs"]
    assert (shown["jobId"], shown["attemptId"], shown["state"]) == (job["jobId"], job["attemptId"], "runs")
    assert desk.typed("jobs", "stop", job["jobId"]).returncode == 1
    os.kill(client.process.pid, signal.SIGKILL)
    client.wait_exit(exit_s_max)

    (listed,) = json.loads(desk.typed("jobs", "--json").stdout)["jobs"]
    assert (listed["jobId"], listed["attemptId"], listed["state"]) == (job["jobId"], job["attemptId"], "left")
    assert job["pid"] in [one["pid"] for one in listed["processes"]]
    assert job["attemptId"] in desk.typed("jobs").stdout
    assert desk.alive(job)
    stopped = desk.typed("jobs", "stop", job["jobId"][:8])
    assert (stopped.returncode, stopped.stdout) == (0, "run_command: sleep: stopped.\n")
    assert not desk.alive(job)
    assert desk.jobs(session_id)[-1]["reason"] == "stopped"
    assert desk.typed("jobs").stdout == "No background command runs.\n"


def test_a_job_that_a_killed_server_left_may_have_ended(desk: Desk) -> None:
    """E5: one that is gone by then is noted as ended, and the person is not bothered."""
    client = desk.start()
    session_id = client.own("session/create")["sessionId"]
    job = desk.job(client, session_id, "sleep 300")
    os.kill(client.process.pid, signal.SIGKILL)
    client.wait_exit(exit_s_max)
    for one in process_list.survivors(job["attemptId"]) or ():
        process_list.signal_exactly(one.pid, one.started, signal.SIGKILL)
    client = desk.start()
    client.wait_for(lambda: True if desk.jobs(session_id)[-1]["event"] == "ended" else None, exit_s_max)
    assert desk.jobs(session_id)[-1]["reason"] == "gone"
    assert client.notifications("window/showMessage") == []
