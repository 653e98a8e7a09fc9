"""A real model edits a file through the whole product: server over stdio, provider, permission, disk, journal.

Then the same with the server killed in the middle of the write: the next process run reports what is on disk, and runs
nothing again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.realmodel.narrow import Narrow
from tests.support.lsp_clients import ASK_OWN, TypedClient
from tests.support.process_server import ServerProcesses, server_command, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only

pytestmark = linux_only

OLD = "one\n"
turn_s_max = 100
REPLACED: Json = {"verb": "exchange", "target": "notes.txt", "when": "after"}
REPLACING: Json = {"verb": "exchange", "target": "notes.txt"}


@pytest.fixture
def proxy(address: str) -> Iterator[Narrow]:
    with Narrow(address) as opened:
        yield opened


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("notes.txt", OLD)
        yield found


def started(servers: ServerProcesses, proxy: Narrow, *faults: Json) -> TypedClient:
    """An initialized server whose model is the real one; the user allows once."""
    command, environment = server_command(servers.state, faults)
    client = TypedClient(command, environment)
    client.workspace = servers.workspace
    servers.clients.append(client)
    client.answer_with(ASK_OWN, lambda params: {"option": "once"})
    client.initialize(
        {
            "capabilities": {"experimental": {"steadyhand": {"permission": True}}},
            "workspaceFolders": [{"uri": servers.workspace.uri, "name": "work"}],
            "initializationOptions": {
                "mode": "ask",
                "model": {"provider": "llamacpp", "name": "default", "baseUrl": proxy.address},
            },
        }
    )
    return client


def only_call(servers: ServerProcesses, session_id: str) -> tuple[str, str]:
    """(id, the word that the model chose): the session proposed one call, and it is the narrow one."""
    calls = [call for record in servers.having(session_id, "assistant") for call in record.get("calls", [])]
    (call,) = calls
    arguments = json.loads(call["arguments"])
    assert (call["tool"], arguments["path"], len(arguments["edits"])) == ("edit_file", "notes.txt", 1)
    word = arguments["edits"][0]["new"]
    assert word.isalpha()
    return call["callId"], word


def counted(servers: ServerProcesses, session_id: str, call_id: str) -> Counter[str]:
    """The number of records of each kind for the call."""
    return Counter(record["kind"] for record in servers.records(session_id) if record.get("callId") == call_id)


def test_real_model_edits_a_file_after_permission(servers: ServerProcesses, proxy: Narrow) -> None:
    """P1, W5, G6, J3, I1: the model's call, restricted by a grammar, asks for permission, runs, is recorded and
    answered. The file has the model's word, and the next request has the one reply."""
    client = started(servers, proxy)
    said = client.say("Replace one in notes.txt by another word", turn_s_max)
    assert said["reason"] in ("done", "length"), said
    assert said["changed"] == [{"path": "notes.txt", "change": "modified"}]
    call_id, word = only_call(servers, said["sessionId"])
    assert servers.workspace.files() == {"notes.txt": f"{word}\n"}
    assert word != "one"
    assert counted(servers, said["sessionId"], call_id) == Counter(
        ("intent", "permission", "started", "result", "tool")
    )  # fmt: skip
    questions = [told for told in client.messages if told.get("method") == ASK_OWN]
    assert len(questions) == 1
    assert f"+{word}" in questions[0]["params"]["diff"]
    usage = client.own("usage", sessionId=said["sessionId"])
    assert usage["complete"]
    assert usage["billed"]["input"] > 0 < usage["billed"]["output"]
    first, second = proxy.asked
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][3]["tool_call_id"] == second["messages"][2]["tool_calls"][0]["id"] == call_id
    assert client.shut_down() == 0


@pytest.mark.parametrize(
    ("fault", "settled", "changed"),
    [(REPLACING, "checked_absent", False), (REPLACED, "checked_present", True)],
    ids=["before the file is replaced", "after the file was replaced"],
)
def test_kill_in_the_model_s_write_is_reported_and_not_repeated(
    servers: ServerProcesses, proxy: Narrow, fault: Json, settled: str, changed: bool
) -> None:
    """C2, C8, B3, I4, I16: the server is killed in the write that the model requested. The next process run checks the
    file, shows the result there, sends the model nothing and runs nothing; the next prompt goes out with the one reply
    and the notice."""
    client = started(servers, proxy, fault)
    client.ask_turn("Replace one in notes.txt by another word")
    assert client.wait_exit(turn_s_max) == -9, client.stderr()
    (session_id,) = servers.sessions()
    call_id, word = only_call(servers, session_id)
    assert servers.workspace.files()["notes.txt"] == (f"{word}\n" if changed else OLD)
    assert len(proxy.asked) == 1

    client = started(servers, proxy)
    opened = client.opened(session_id)
    assert opened["snapshot"]["calls"] == []
    (shown,) = opened["snapshot"]["settled"]
    assert (shown["callId"], shown["settled"]) == (call_id, settled)
    (call,) = [call for message in opened["messages"] for call in message.get("calls", [])]
    assert (call["state"], call["settled"]) == ("unknown", settled)
    assert "checked-write" in client.wait_diagnostic("notes.txt", "checked-write")["code"]
    assert len(proxy.asked) == 1
    assert servers.workspace.files() == {"notes.txt": f"{word}\n" if changed else OLD}
    assert counted(servers, session_id, call_id)["started"] == 1

    client.own("session/setMode", sessionId=session_id, mode="plan")  # so that the model cannot change anything
    said = client.say("What about it?", turn_s_max, sessionId=session_id)
    assert said["changed"] == []
    assert counted(servers, session_id, call_id)["started"] == 1
    told = proxy.asked[1]["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "tool", "user", "user"]
    assert "unknown" in told[3]["content"]
    assert told[4]["content"].startswith("[Notice]")
    assert client.shut_down() == 0
