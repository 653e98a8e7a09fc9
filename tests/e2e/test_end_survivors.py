"""`steadyhand.recovery.endSurvivors`: end, on request, what an uncertain command left running (E5)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.adapters.processes import process_table
from tests.support.lsp_clients import TypedClient, only
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only

pytestmark = linux_only

WRONG_ID = "f" * 32
COMMAND = "run setsid sleep 300 & echo up > up.txt; sleep 300"


@attrs.define
class KilledCommand:
    """A session with an uncertain command whose processes outlived the server, and a client of the next process run."""

    servers: ServerProcesses
    client: TypedClient
    session_id: str
    attempt_id: str

    def inspected(self) -> Json:
        found: Json = self.client.inspected(self.session_id, self.attempt_id)["inspection"]
        return found

    def end(self, inspection_id: str, **other: Any) -> Any:
        named = {"sessionId": self.session_id, "attemptId": self.attempt_id, "inspectionId": inspection_id}
        return self.client.command("recovery.endSurvivors", **{**named, **other})


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[KilledCommand]:
    with server_processes(tmp_path) as servers:
        client = servers.start()
        session_id = client.own("session/create")["sessionId"]
        client.ask_turn(COMMAND, sessionId=session_id)
        client.wait_for(lambda: True if (servers.root / "up.txt").exists() else None, 20)
        client.process.kill()
        client.wait_exit()
        client = servers.start()
        attempt_id = only(client.snapshot(session_id))["attemptId"]
        try:
            yield KilledCommand(servers, client, session_id, attempt_id)
        finally:
            for one in process_table.find_survivors(attempt_id) or ():
                process_table.signal_process(one.pid, one.started, signal.SIGKILL)


def test_end_survivors_ends_what_the_inspection_found(killed: KilledCommand) -> None:
    """E5: all of them are ended, and a message says so; a second request finds none. It settles nothing, and the next
    inspection finds no process."""
    looked = killed.inspected()
    assert len(looked["survivors"]) >= 2
    answer = killed.end(looked["inspectionId"])
    assert answer == {"ended": len(looked["survivors"]), "left": 0}
    assert killed.end(looked["inspectionId"]) == {"ended": 0, "left": 0}
    assert process_table.find_survivors(killed.attempt_id) == []
    assert only(killed.client.snapshot(killed.session_id))["state"] == "unknown"
    assert killed.inspected()["survivors"] == []
    said = [record["text"] for record in killed.servers.having(killed.session_id, "notice")]
    assert any("Steadyhand ended" in text for text in said)
    assert killed.end(killed.inspected()["inspectionId"]) == {"ended": 0, "left": 0}


def test_end_survivors_spares_processes_that_came_later(killed: KilledCommand) -> None:
    """E5: a process that joined after that inspection lives on, although it carries the mark."""
    looked = killed.inspected()
    marked = {**os.environ, "STEADYHAND_ATTEMPT_ID": killed.attempt_id}
    newcomer = subprocess.Popen(["sleep", "300"], env=marked, stdin=subprocess.DEVNULL)
    try:
        assert killed.end(looked["inspectionId"])["left"] == 0
        assert newcomer.poll() is None
    finally:
        newcomer.kill()
        newcomer.wait(20)


def test_end_survivors_refusals_come_in_order_and_do_nothing(killed: KilledCommand) -> None:
    """A3, docs/protocol.md: params, unknownSession, notOwner, an unknown attempt, an inspection that is not the latest;
    a refusal ends nothing and records nothing."""
    first = killed.inspected()["inspectionId"]
    latest = killed.inspected()["inspectionId"]
    before = killed.servers.workspace.journal(killed.session_id)
    second = killed.servers.start(folders=[])
    cases: list[tuple[int, TypedClient, Json]] = [
        (-32602, killed.client, {"inspection_id": "x", "sessionId": WRONG_ID}),
        (-32050, killed.client, {"sessionId": WRONG_ID, "attemptId": WRONG_ID}),
        (-32058, second, {"attemptId": WRONG_ID}),
        (-32053, killed.client, {"attemptId": WRONG_ID, "inspectionId": first}),
        (-32054, killed.client, {"inspectionId": first}),
        (-32054, killed.client, {"inspectionId": WRONG_ID}),
    ]
    for code, client, other in cases:
        named = {"sessionId": killed.session_id, "attemptId": killed.attempt_id, "inspectionId": latest, **other}
        error = client.refusal(lambda: client.command("recovery.endSurvivors", **named))  # noqa: B023 - called at once
        assert error.code == code, other
    assert len(process_table.find_survivors(killed.attempt_id) or ()) >= 2
    assert killed.servers.workspace.journal(killed.session_id) == before


def test_end_survivors_refuses_an_inspection_of_an_earlier_run(killed: KilledCommand) -> None:
    """A3, decision 6: an inspection counts within its epoch."""
    looked = killed.inspected()["inspectionId"]
    assert killed.client.shut_down() == 0
    killed.client = killed.servers.start()
    error = killed.client.refusal(lambda: killed.end(looked))
    assert error.data["kind"] == "inspectFirst"


def test_command_that_outlived_a_kill_is_named_at_the_next_start(killed: KilledCommand) -> None:
    """Case 121: one message says that it still runs, with its processes, its mark, and how to end it."""
    shown = killed.client.wait_for(
        lambda: [each["message"] for each in killed.client.notifications("window/showMessage")] or None, 30
    )
    (said,) = [text for text in shown if "outlived a crash" in text]
    living = [one.pid for one in process_table.find_survivors(killed.attempt_id) or ()]
    assert living
    assert all(str(pid) in said for pid in living)
    assert killed.attempt_id in said
    assert "Inspect its uncertain effect to end it" in said
