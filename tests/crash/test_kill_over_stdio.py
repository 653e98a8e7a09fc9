"""The shipped server, killed once at each kind of durable operation, and asked over the wire afterwards.

tests/support/killed_server.py starts the composition root with a disk that kills; what comes after is the plain
`python -m steadyhand`. What the disk holds is read here anew (`Left`); what the server says has to agree.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.promises import (
    PROMPT,
    WORDS,
    Left,
    lay_out,
    temporary,
    whole_records,
)
from tests.support.killed_server import shipped
from tests.support.raw_client import RawClient
from tests.support.systems import linux_only
from tests.support.turns import Place

pytestmark = linux_only

Json = dict[str, Any]
Start = Callable[..., RawClient]
UNKNOWN_SESSION = -32050
exit_s_max = 20.0

FAULTS: dict[str, Json] = {
    "the state directory is made": {"verb": "make_root", "turn": 2, "when": "after"},
    "the session's folder is made": {"verb": "make_folder", "when": "after"},
    "the journal is created": {"verb": "create", "target": "journal.jsonl", "when": "after"},
    "the first records are written": {"verb": "write", "carries": "session", "when": "half"},
    "the new folder is synced": {"verb": "sync_folder", "turn": 2},
    "the prompt is written": {"verb": "write", "carries": "user"},
    "an intent is written": {"verb": "write", "carries": "intent", "turn": 3, "when": "after"},
    "a checkpoint gets its name": {"verb": "rename", "target": "checkpoints/"},
    "a start is half written": {"verb": "write", "carries": "started", "turn": 2, "when": "half"},
    "a start is about to be synced": {"verb": "sync", "target": "journal.jsonl", "turn": 3},
    "a start is written": {"verb": "write", "carries": "started", "turn": 2, "when": "after"},
    "a temporary file gets its mode": {"verb": "give_attributes", "when": "after"},
    "a new file gets its name": {"verb": "rename_new", "when": "after"},
    "a file is about to be replaced": {"verb": "exchange", "target": "old.txt"},
    "a file was replaced": {"verb": "exchange", "target": "edited.txt", "when": "after"},
    "the old content is removed": {"verb": "unlink", "target": "edited.txt", "when": "after"},
    "a file was moved": {"verb": "rename_to", "target": "here.txt", "when": "after"},
    "a file lies displaced, to be deleted": {"verb": "rename_new", "target": "gone.txt", "when": "after"},
    "a result is half written": {"verb": "write", "carries": "result", "turn": 3, "when": "half"},
    "a command's result is about to be written": {"verb": "write", "carries": "result", "turn": 6},
    "the end is written": {"verb": "write", "carries": "ended", "when": "half"},
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return lay_out(Place.under(tmp_path / "place"))


@pytest.fixture
def start(place: Place) -> Iterator[Start]:
    """Starts servers; `start(*faults)`."""
    started: list[RawClient] = []

    def begin(*faults: Json) -> RawClient:
        command, environment = shipped(place.state, faults)
        client = RawClient(command, environment)
        started.append(client)
        return client

    yield begin
    for client in started:
        client.kill()


def greet(client: RawClient, place: Place) -> None:
    client.initialize(
        {
            "workspaceFolders": [{"uri": place.uri, "name": "work"}],
            "initializationOptions": {"mode": "auto"},
        }
    )


def session_of(place: Place) -> str | None:
    """The one session's id, if it has a folder."""
    folders = list((place.state / "sessions").iterdir()) if (place.state / "sessions").is_dir() else []
    assert len(folders) <= 1
    return folders[0].name if folders else None


def live_until_killed(client: RawClient, place: Place) -> None:
    """The story over the wire, as far as it goes; the server dies by SIGKILL in it."""
    greet(client, place)
    created = client.ask("steadyhand/session/create", {})
    try:
        session = client.result(created, exit_s_max)
        asked = {
            "sessionId": session["sessionId"],
            "epoch": session["epoch"],
            "clientMessageId": PROMPT,
            "text": WORDS.prompt,
        }
        client.ask("steadyhand/turn/start", asked)
    except (AssertionError, BrokenPipeError):
        assert client.process.poll() is not None, "the server neither answers nor dies"
    assert client.wait_exit(exit_s_max) == -signal.SIGKILL, client.stderr()


def test_every_kind_of_operation_is_meant(start: Start, place: Place, tmp_path: Path) -> None:
    """Each verb that the server uses in the story stands in the list of deaths."""
    log = tmp_path / "log"
    client = start({"log": str(log)})
    greet(client, place)
    asked = {"command": "steadyhand.ask", "arguments": [{"text": WORDS.prompt}]}
    assert client.request("workspace/executeCommand", asked)["reason"] == "done"
    assert client.shut_down() == 0
    verbs = {line.split()[0] for line in log.read_text().splitlines()}
    assert verbs == {fault["verb"] for fault in FAULTS.values()}


@pytest.mark.parametrize("death", FAULTS)
def test_killed_and_asked_over_the_wire(start: Start, place: Place, death: str) -> None:
    """The answers of the next server fit what is on disk, opening again changes nothing, the resent prompt runs only
    if it was never durable, and the work goes on (rows C1-C4, C8, D1, J4, J8, W9, B3; [I1] [I3] [I4])."""
    live_until_killed(start(FAULTS[death]), place)
    session_id = session_of(place)
    client = start()
    greet(client, place)
    if session_id is None or not whole_records(place.journal(session_id)):
        _nothing_was_promised(client, session_id)
        return
    left = Left.of(place, session_id)
    opened = client.request("steadyhand/session/open", {"sessionId": session_id})
    _says_what_is(left, opened, place)
    journal, files = place.journal(session_id), place.files()
    client.request("steadyhand/session/close", {"sessionId": session_id})
    again = client.request("steadyhand/session/open", {"sessionId": session_id})
    assert _states(again) == _states(opened)
    assert place.journal(session_id) == journal, "opening again wrote something"
    _goes_on(client, again["session"], left, place, files)
    assert client.shut_down() == 0


def _nothing_was_promised(client: RawClient, session_id: str | None) -> None:
    """The session was never acknowledged; the server works all the same."""
    if session_id is not None:
        answer = client.answer(client.ask("steadyhand/session/open", {"sessionId": session_id}))
        assert "result" in answer or answer["error"]["code"] == UNKNOWN_SESSION
    asked = {"command": "steadyhand.ask", "arguments": [{"text": "show notes.txt"}]}
    answer = client.request("workspace/executeCommand", asked)
    assert answer["reason"] == "done"
    assert "done: 1 of 1" in answer["text"]
    assert client.shut_down() == 0


def _states(opened: Json) -> dict[str, tuple[str, str | None]]:
    calls = [call for message in opened["messages"] for call in message.get("calls", ())]
    return {call["callId"]: (call["state"], call.get("settled")) for call in calls}


def _says_what_is(left: Left, opened: Json, place: Place) -> None:
    states = _states(opened)
    assert set(states) == set(left.proposed)
    files = place.files()
    assert files == {name: content for name, content in left.files.items() if not temporary(name)}
    assert opened["damaged"] == 0
    uncertain = {each["callId"] for each in opened["snapshot"]["calls"]}
    settled = {each["callId"]: each["settled"] for each in opened["snapshot"]["settled"]}
    for call_id, (tool, changed) in left.proposed.items():
        if changed is None:
            assert states[call_id] == (("returned" if call_id in left.having("tool") else "notRun"), None)
            continue
        new = {name for name in changed if files.get(name) == WORDS.after[name]}
        assert new == {name for name in changed if files.get(name) != WORDS.before[name]}
        assert new in (set(), set(changed)), "no call of it can stop half-way"
        happened = bool(new)
        if call_id in left.having("result"):
            assert states[call_id] == ("returned", None)
            assert happened
        elif call_id not in left.having("started"):
            assert states[call_id] == ("notRun", None)
            assert not happened
        elif tool == "run_command":
            assert states[call_id] == ("unknown", None)
            assert call_id in uncertain
        else:
            proved = "checked_present" if happened else "checked_absent"
            assert states[call_id] == ("unknown", proved)
            assert settled[call_id] == proved


def _goes_on(client: RawClient, session: Json, left: Left, place: Place, files: dict[str, str]) -> None:
    asked = {"sessionId": session["sessionId"], "text": "say on\nshow notes.txt"}
    answer = client.request("workspace/executeCommand", {"command": "steadyhand.ask", "arguments": [asked]})
    assert answer["reason"] == "done"
    assert answer["changed"] == []
    assert "done: 1 of 1" in answer["text"]
    resent = {"sessionId": session["sessionId"], "clientMessageId": PROMPT, "text": WORDS.prompt}
    answer = client.request(
        "workspace/executeCommand", {"command": "steadyhand.ask", "arguments": [{**resent, "wait": False}]}
    )
    turn_id = answer["turnId"]
    if left.prompted:
        known = {"sessionId": session["sessionId"], "clientMessageId": PROMPT}
        status = client.request("steadyhand/turn/status", known)
        assert status["known"]
        assert status["turnId"] == turn_id
        assert status["state"] in ("ended", "interrupted")
        assert place.files() == files, "the resent prompt ran again"
    else:
        client.notification(
            "steadyhand/turn/event", that=lambda told: told["turnId"] == turn_id and told["event"]["kind"] == "ended"
        )
        assert place.files() == WORDS.last_files
