"""`steadyhand.recovery.endSurvivors`: what an uncertain command left running is ended on request (E5)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.adapters import process_list
from tests.support.recovered import Client, Json, Lives, lives_in, only
from tests.support.systems import linux_only

pytestmark = linux_only

WRONG_ID = "f" * 32
COMMAND = "run setsid sleep 300 & echo up > up.txt; sleep 300"


@attrs.define
class Desk:
    """A session with an uncertain command whose processes outlived the server, and a client in the next life."""

    lives: Lives
    client: Client
    session_id: str
    attempt_id: str

    def inspected(self) -> Json:
        found: Json = self.client.inspected(self.session_id, self.attempt_id)["inspection"]
        return found

    def end(self, inspection_id: str, **other: Any) -> Any:
        named = {"sessionId": self.session_id, "attemptId": self.attempt_id, "inspectionId": inspection_id}
        return self.client.command("recovery.endSurvivors", **{**named, **other})


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with lives_in(tmp_path) as lives:
        client = lives.start()
        session_id = client.own("session/create")["sessionId"]
        client.ask_turn(COMMAND, sessionId=session_id)
        client.wait_for(lambda: True if (lives.place.workspace / "up.txt").exists() else None, 20)
        client.process.kill()
        client.wait_exit()
        client = lives.start()
        attempt_id = only(client.snapshot(session_id))["attemptId"]
        try:
            yield Desk(lives, client, session_id, attempt_id)
        finally:
            for one in process_list.survivors(attempt_id) or ():
                process_list.signal_exactly(one.pid, one.started, signal.SIGKILL)


def test_what_the_inspection_found_is_ended(desk: Desk) -> None:
    """E5: all of it, and it is told; asked again there is nobody left to end; it settles nothing, and the next
    inspection finds nobody."""
    looked = desk.inspected()
    assert len(looked["survivors"]) >= 2
    answer = desk.end(looked["inspectionId"])
    assert answer == {"ended": len(looked["survivors"]), "left": 0}
    assert desk.end(looked["inspectionId"]) == {"ended": 0, "left": 0}
    assert process_list.survivors(desk.attempt_id) == []
    assert only(desk.client.snapshot(desk.session_id))["state"] == "unknown"
    assert desk.inspected()["survivors"] == []
    said = [record["text"] for record in desk.lives.having(desk.session_id, "notice")]
    assert any("were ended" in text for text in said)
    assert desk.end(desk.inspected()["inspectionId"]) == {"ended": 0, "left": 0}


def test_nobody_else_is_ended(desk: Desk) -> None:
    """E5: what joined since that inspection lives on, although it carries the mark."""
    looked = desk.inspected()
    marked = {**os.environ, "STEADYHAND_ATTEMPT_ID": desk.attempt_id}
    newcomer = subprocess.Popen(["sleep", "300"], env=marked, stdin=subprocess.DEVNULL)
    try:
        assert desk.end(looked["inspectionId"])["left"] == 0
        assert newcomer.poll() is None
    finally:
        newcomer.kill()
        newcomer.wait(20)


def test_it_is_refused_in_order(desk: Desk) -> None:
    """A3, wire.md: params, unknownSession, notOwner, attempt not known, an inspection that is not the latest; nothing
    is ended and nothing recorded by it."""
    first = desk.inspected()["inspectionId"]
    latest = desk.inspected()["inspectionId"]
    before = desk.lives.place.journal(desk.session_id)
    second = desk.lives.start(folders=[])
    cases: list[tuple[int, Client, Json]] = [
        (-32602, desk.client, {"inspection_id": "x", "sessionId": WRONG_ID}),
        (-32050, desk.client, {"sessionId": WRONG_ID, "attemptId": WRONG_ID}),
        (-32058, second, {"attemptId": WRONG_ID}),
        (-32053, desk.client, {"attemptId": WRONG_ID, "inspectionId": first}),
        (-32054, desk.client, {"inspectionId": first}),
        (-32054, desk.client, {"inspectionId": WRONG_ID}),
    ]
    for code, client, other in cases:
        named = {"sessionId": desk.session_id, "attemptId": desk.attempt_id, "inspectionId": latest, **other}
        error = client.refusal(lambda: client.command("recovery.endSurvivors", **named))  # noqa: B023 - called at once
        assert error.code == code, other
    assert len(process_list.survivors(desk.attempt_id) or ()) >= 2
    assert desk.lives.place.journal(desk.session_id) == before


def test_an_inspection_of_an_earlier_life_is_none(desk: Desk) -> None:
    """A3, decision 6: inspections count within their epoch."""
    looked = desk.inspected()["inspectionId"]
    assert desk.client.shut_down() == 0
    desk.client = desk.lives.start()
    error = desk.client.refusal(lambda: desk.end(looked))
    assert error.data["kind"] == "inspectFirst"
