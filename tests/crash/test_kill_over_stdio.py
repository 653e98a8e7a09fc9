"""The shipped server, killed once at each kind of durable operation, and asked over the protocol afterwards.

tests/support/faulty_server.py starts the composition root with a disk that kills it; every later server is the plain
`python -m steadyhand`. The test reads the disk itself (`Left`); the answers of the server must agree.
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
)
from tests.support.journals import whole_records
from tests.support.process_server import server_command
from tests.support.raw_client import RawClient
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = linux_only

Json = dict[str, Any]
Start = Callable[..., RawClient]
UNKNOWN_SESSION = -32050
exit_s_max = 60.0

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
def workspace(tmp_path: Path) -> Workspace:
    return lay_out(Workspace.under(tmp_path / "place"))


@pytest.fixture
def start(workspace: Workspace) -> Iterator[Start]:
    """Start servers: `start(*faults)`."""
    started: list[RawClient] = []

    def begin(*faults: Json) -> RawClient:
        command, environment = server_command(workspace.state, faults)
        client = RawClient(command, environment)
        started.append(client)
        return client

    yield begin
    for client in started:
        client.kill()


def greet(client: RawClient, workspace: Workspace) -> None:
    client.initialize(
        {
            "workspaceFolders": [{"uri": workspace.uri, "name": "work"}],
            "initializationOptions": {"mode": "auto"},
        }
    )


def session_of(workspace: Workspace) -> str | None:
    """The id of the only session, if it has a directory."""
    folders = list((workspace.state / "sessions").iterdir()) if (workspace.state / "sessions").is_dir() else []
    assert len(folders) <= 1
    return folders[0].name if folders else None


def run_until_killed(client: RawClient, workspace: Workspace) -> None:
    """Play the scenario over the protocol, as far as it goes; SIGKILL ends the server in it."""
    greet(client, workspace)
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


def test_list_of_kills_covers_every_kind_of_operation(start: Start, workspace: Workspace, tmp_path: Path) -> None:
    """Each verb that the server uses in the scenario is in the list of kills."""
    log = tmp_path / "log"
    client = start({"log": str(log)})
    greet(client, workspace)
    asked = {"command": "steadyhand.ask", "arguments": [{"text": WORDS.prompt}]}
    assert client.request("workspace/executeCommand", asked)["reason"] == "done"
    assert client.shut_down() == 0
    verbs = {line.split()[0] for line in log.read_text().splitlines()}
    assert verbs == {fault["verb"] for fault in FAULTS.values()}


@pytest.mark.parametrize("death", FAULTS)
def test_answers_after_a_kill_agree_with_the_disk(start: Start, workspace: Workspace, death: str) -> None:
    """The answers of the next server agree with the disk, opening again changes nothing, the resent prompt runs only if
    it was never durable, and the work goes on (rows C1-C4, C8, D1, J4, J8, W9, B3; [I1] [I3] [I4])."""
    run_until_killed(start(FAULTS[death]), workspace)
    session_id = session_of(workspace)
    client = start()
    greet(client, workspace)
    if session_id is None or not whole_records(workspace.journal(session_id)):
        _nothing_was_promised(client, session_id)
        return
    left = Left.of(workspace, session_id)
    opened = client.request("steadyhand/session/open", {"sessionId": session_id})
    _says_what_is(left, opened, workspace)
    journal, files = workspace.journal(session_id), workspace.files()
    client.request("steadyhand/session/close", {"sessionId": session_id})
    again = client.request("steadyhand/session/open", {"sessionId": session_id})
    assert _states(again) == _states(opened)
    assert workspace.journal(session_id) == journal, "opening again wrote something"
    _goes_on(client, again["session"], left, workspace, files)
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


def _attempt_of(opened: Json, call_id: str) -> str:
    calls = [call for message in opened["messages"] for call in message.get("calls", ())]
    return next(str(call.get("attemptId", "")) for call in calls if call["callId"] == call_id)


def _says_what_is(left: Left, opened: Json, workspace: Workspace) -> None:
    states = _states(opened)
    assert set(states) == set(left.proposed)
    files, missing = workspace.files(), left.reads_of_nothing(WORDS)
    assert files == {name: content for name, content in left.files.items() if not temporary(name)}
    assert opened["damaged"] == 0
    uncertain = {each["callId"] for each in opened["snapshot"]["calls"]}
    settled = {each["callId"]: each["settled"] for each in opened["snapshot"]["settled"]}
    for call_id, (tool, changed) in left.proposed.items():
        if changed is None:
            over = "failed" if call_id in missing else "returned"
            assert states[call_id] == ((over if call_id in left.having("tool") else "notRun"), None)
            continue
        new = {name for name in changed if files.get(name) == WORDS.after[name]}
        assert new == {name for name in changed if files.get(name) != WORDS.before[name]}
        assert new in (set(), set(changed)), "no call of it can stop half-way"
        happened = bool(new)
        if call_id in left.having("result"):
            assert states[call_id] == ("returned", None)
            assert happened
        elif left.torn_start is not None and left.torn_start == _attempt_of(opened, call_id)[: len(left.torn_start)]:
            assert states[call_id] == ("unknown", None), "a half-written start counts as a start (case 134)"
            assert not happened
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


def _goes_on(client: RawClient, session: Json, left: Left, workspace: Workspace, files: dict[str, str]) -> None:
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
        assert workspace.files() == files, "the resent prompt ran again"
    else:
        client.notification(
            "steadyhand/turn/event", that=lambda told: told["turnId"] == turn_id and told["event"]["kind"] == "ended"
        )
        assert workspace.files() == WORDS.last_files
