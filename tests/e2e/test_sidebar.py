"""The requests of a sidebar over stdio: the shapes and refusals of each, with a restart in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import UNANSWERED, ErrorAnswer

INVALID = -32602


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def test_session_requests_from_rename_to_delete_work_across_a_restart(servers: ServerProcesses) -> None:
    """Rows S3, G5, U1, W8, case 80: rename, both exports, usage, changed files, model and delete, each by its own
    request; after a restart the title is still the user's."""
    client = servers.start_checked()
    session = client.ours("session/create")
    session_id = session["sessionId"]
    client.say(session, "write a.txt with hello")
    assert client.ours("session/rename", sessionId=session_id, title="mine")["titleSource"] == "user"
    client.say(session, "say more")
    assert client.ours("session/export", sessionId=session_id, format="markdown")["text"].startswith("# mine\n")
    exported = json.loads(client.ours("session/export", sessionId=session_id, format="json")["text"])
    assert exported["session"]["title"] == "mine"
    assert client.refusal("session/export", sessionId=session_id, format="html") == (INVALID, "invalidParams")
    (turn,) = client.ours("checkpoint/list", sessionId=session_id)["turns"]
    assert (turn["prompt"], turn["files"]) == ("write a.txt with hello", [{"path": "a.txt", "change": "created"}])
    used = client.ours("usage", sessionId=session_id)
    assert used["complete"]
    assert used["billed"]["input"] > used["context"] > 0
    assert client.ours("model/list")["models"] == [{"provider": "practice", "name": "practice"}]
    checked = client.ours("model/check", provider="practice")
    assert (checked["ok"], checked["models"]) == (True, [{"provider": "practice", "name": "practice"}])
    nowhere = client.ours("model/check", provider="ollama", name="x", baseUrl="http://127.0.0.1:1/v1")
    assert not nowhere["ok"]
    assert "ollama serve" in nowhere["text"]
    assert client.refusal("model/check", provider="ollama", dialect="chat") == (INVALID, "invalidParams")
    chosen = client.ours("session/setModel", sessionId=session_id, provider="openai", name="large")
    assert chosen["model"] == {"provider": "openai", "name": "large"}
    wrong = client.refusal("session/setModel", sessionId=session_id, provider="nobody", name="large")
    assert wrong == (INVALID, "invalidParams")
    client.kill()
    client = servers.start_checked()
    (listed,) = client.ours("session/list")["sessions"]
    assert (listed["title"], listed["titleSource"], listed["model"]["name"]) == ("mine", "user", "large")
    assert client.ours("usage", sessionId=session_id) == used
    assert client.ours("session/delete", sessionId=session_id) == {}
    assert client.ours("session/list")["sessions"] == []
    assert client.refusal("session/rename", sessionId=session_id, title="x")[1] == "unknownSession"


def test_queue_is_edited_and_stays_paused_over_a_kill_until_resumed(servers: ServerProcesses) -> None:
    """Row S4, case 76: prompts are edited and removed, an unknown one is refused, and after a kill the queue is paused
    until it is resumed."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    session_id = session["sessionId"]
    client.send_prompt(session, "write a.txt with hello", "c1")
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    for name in ("c2", "c3"):
        client.send_prompt(session, f"say {name}", name)
    edited = client.ours("queue/edit", sessionId=session_id, clientMessageId="c2", text="say edited")["queue"]
    assert [item["text"] for item in edited] == ["say edited", "say c3"]
    assert client.notifications("steadyhand/queue/changed")[-1]["queue"] == edited
    removed = client.ours("queue/edit", sessionId=session_id, clientMessageId="c3", remove=True)["queue"]
    assert [item["text"] for item in removed] == ["say edited"]
    with pytest.raises(ErrorAnswer) as refused:
        client.ours("queue/edit", sessionId=session_id, clientMessageId="c3", text="again")
    assert (refused.value.data or {})["errors"] == [
        {"path": "$.clientMessageId", "message": "no prompt with this id is waiting"}
    ]
    client.kill()
    client = servers.start_checked()
    opened = client.ours("session/open", sessionId=session_id)
    assert [(item["text"], item["paused"]) for item in opened["queue"]] == [("say edited", True)]
    turn_id = client.ours("turn/status", sessionId=session_id, clientMessageId="c2")["turnId"]
    assert client.ours("queue/resume", sessionId=session_id, epoch=opened["session"]["epoch"])["queue"] == []
    assert client.ended(turn_id)["reason"] == "done"


def test_delete_with_an_uncertain_effect_needs_force(servers: ServerProcesses) -> None:
    """Row B8: after a kill in a command, delete is refused and names what is uncertain; with force it deletes."""
    client = servers.start_checked()
    session = client.ours("session/create")
    session_id = session["sessionId"]
    started = servers.root / "started"
    client.send_prompt(session, f"run touch {started.name}; sleep 30", "c1")
    client.wait_for(lambda: started.exists() or None, 30, "the command")
    client.kill()
    client = servers.start_checked()
    with pytest.raises(ErrorAnswer) as refused:
        client.ours("session/delete", sessionId=session_id)
    data = refused.value.data or {}
    assert (refused.value.code, data["kind"]) == (-32060, "recoveryRequired")
    assert [one["state"] for one in data["uncertain"]] == ["unknown"]
    assert client.ours("session/delete", sessionId=session_id, force=True) == {}
    assert client.ours("session/list")["sessions"] == []
