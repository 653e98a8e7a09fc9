"""A file edited by a real model through the whole product: server over stdio, provider, permission, disk, journal.

And the same with the server killed in mid-write: the next life says what is so, and runs nothing again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.realmodel.narrow import Narrow
from tests.support.killed_server import shipped
from tests.support.recovered import ASK_OWN, Client, Json, Lives, lives_in
from tests.support.systems import linux_only

pytestmark = linux_only

OLD = "one\n"
turn_s_max = 100
REPLACED: Json = {"verb": "exchange", "target": "notes.txt", "when": "after"}
REPLACING: Json = {"verb": "exchange", "target": "notes.txt"}


@pytest.fixture
def door(address: str) -> Iterator[Narrow]:
    with Narrow(address) as opened:
        yield opened


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("notes.txt", OLD)
        yield found


def started(lives: Lives, door: Narrow, *faults: Json) -> Client:
    """A greeted server whose model is the real one; the person allows once."""
    command, environment = shipped(lives.place.state, faults)
    client = Client(command, environment)
    client.place = lives.place
    lives.started.append(client)
    client.answer_with(ASK_OWN, lambda params: {"option": "once"})
    client.initialize(
        {
            "capabilities": {"experimental": {"steadyhand": {"permission": True}}},
            "workspaceFolders": [{"uri": lives.place.uri, "name": "work"}],
            "initializationOptions": {
                "mode": "ask",
                "model": {"provider": "llamacpp", "name": "default", "baseUrl": door.address},
            },
        }
    )
    return client


def only_call(lives: Lives, session_id: str) -> tuple[str, str]:
    """(id, the word that the model chose): the session proposed one call, and it is the narrow one."""
    calls = [call for record in lives.having(session_id, "assistant") for call in record.get("calls", [])]
    (call,) = calls
    arguments = json.loads(call["arguments"])
    assert (call["tool"], arguments["path"], len(arguments["edits"])) == ("edit_file", "notes.txt", 1)
    word = arguments["edits"][0]["new"]
    assert word.isalpha()
    return call["callId"], word


def counted(lives: Lives, session_id: str, call_id: str) -> Counter[str]:
    """How many records of each kind the call has."""
    return Counter(record["kind"] for record in lives.records(session_id) if record.get("callId") == call_id)


def test_a_real_model_edits_a_file(lives: Lives, door: Narrow) -> None:
    """P1, W5, G6, J3, I1: the model's call, held by a grammar, is asked for, permitted, run, journalled and answered;
    the file holds the model's word; the next request carries the one reply."""
    client = started(lives, door)
    said = client.say("Replace one in notes.txt by another word", turn_s_max)
    assert said["reason"] in ("done", "length"), said
    assert said["changed"] == [{"path": "notes.txt", "change": "modified"}]
    call_id, word = only_call(lives, said["sessionId"])
    assert lives.place.files() == {"notes.txt": f"{word}\n"}
    assert word != "one"
    assert counted(lives, said["sessionId"], call_id) == Counter(
        ("intent", "permission", "started", "result", "tool")
    )  # fmt: skip
    questions = [told for told in client.messages if told.get("method") == ASK_OWN]
    assert len(questions) == 1
    assert f"+{word}" in questions[0]["params"]["diff"]
    usage = client.own("usage", sessionId=said["sessionId"])
    assert usage["complete"]
    assert usage["billed"]["input"] > 0 < usage["billed"]["output"]
    first, second = door.asked
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][3]["tool_call_id"] == second["messages"][2]["tool_calls"][0]["id"] == call_id
    assert client.shut_down() == 0


@pytest.mark.parametrize(
    ("fault", "settled", "changed"),
    [(REPLACING, "checked_absent", False), (REPLACED, "checked_present", True)],
    ids=["before the file is replaced", "after the file was replaced"],
)
def test_killed_in_the_models_write(lives: Lives, door: Narrow, fault: Json, settled: str, changed: bool) -> None:
    """C2, C8, B3, I4, I16: killed in the write that the model asked for. The next life finds out by looking, says it at
    the file, asks no model and runs nothing; the next prompt goes out with the one reply and the notice."""
    client = started(lives, door, fault)
    client.ask_turn("Replace one in notes.txt by another word")
    assert client.wait_exit(turn_s_max) == -9, client.stderr()
    (session_id,) = lives.sessions()
    call_id, word = only_call(lives, session_id)
    assert lives.place.files()["notes.txt"] == (f"{word}\n" if changed else OLD)
    assert len(door.asked) == 1

    client = started(lives, door)
    opened = client.opened(session_id)
    assert opened["snapshot"]["calls"] == []
    (shown,) = opened["snapshot"]["settled"]
    assert (shown["callId"], shown["settled"]) == (call_id, settled)
    (call,) = [call for message in opened["messages"] for call in message.get("calls", [])]
    assert (call["state"], call["settled"]) == ("unknown", settled)
    assert "checked-write" in client.squiggle("notes.txt", "checked-write")["code"]
    assert len(door.asked) == 1
    assert lives.place.files() == {"notes.txt": f"{word}\n" if changed else OLD}
    assert counted(lives, session_id, call_id)["started"] == 1

    client.own("session/setMode", sessionId=session_id, mode="plan")  # whatever the model says, nothing is changed
    said = client.say("What about it?", turn_s_max, sessionId=session_id)
    assert said["changed"] == []
    assert counted(lives, session_id, call_id)["started"] == 1
    told = door.asked[1]["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "tool", "user", "user"]
    assert "unknown" in told[3]["content"]
    assert told[4]["content"].startswith("[Notice]")
    assert client.shut_down() == 0
