"""What a sidebar asks for, over stdio: each request with its shapes, its refusals, and a restart in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_client import Desk
from tests.support.raw_client import UNANSWERED, ErrorAnswer

INVALID = -32602


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place whose servers are ended and checked."""
    made = Desk.under(tmp_path)
    yield made
    made.close()


def test_a_session_from_title_to_deletion(desk: Desk) -> None:
    """Rows S3, G5, U1, W8, case 80: renamed, exported both ways, counted, listed by its changes, given a model, and
    deleted, each by its own request; the title is the user's also after a restart."""
    client = desk.server()
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
    chosen = client.ours("session/setModel", sessionId=session_id, provider="openai", name="large")
    assert chosen["model"] == {"provider": "openai", "name": "large"}
    wrong = client.refusal("session/setModel", sessionId=session_id, provider="nobody", name="large")
    assert wrong == (INVALID, "invalidParams")
    client.kill()
    client = desk.server()
    (listed,) = client.ours("session/list")["sessions"]
    assert (listed["title"], listed["titleSource"], listed["model"]["name"]) == ("mine", "user", "large")
    assert client.ours("usage", sessionId=session_id) == used
    assert client.ours("session/delete", sessionId=session_id) == {}
    assert client.ours("session/list")["sessions"] == []
    assert client.refusal("session/rename", sessionId=session_id, title="x")[1] == "unknownSession"


def test_the_queue_from_edit_to_resume(desk: Desk) -> None:
    """Row S4, case 76: edited, removed, unknown, and over a kill paused until it is resumed."""
    client = desk.server(permission=lambda _: UNANSWERED)
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
    client = desk.server()
    opened = client.ours("session/open", sessionId=session_id)
    assert [(item["text"], item["paused"]) for item in opened["queue"]] == [("say edited", True)]
    turn_id = client.ours("turn/status", sessionId=session_id, clientMessageId="c2")["turnId"]
    assert client.ours("queue/resume", sessionId=session_id, epoch=opened["session"]["epoch"])["queue"] == []
    assert client.ended(turn_id)["reason"] == "done"


def test_a_session_with_an_uncertain_effect_is_deleted_by_force(desk: Desk) -> None:
    """Row B8: after a kill in mid-command it is refused with what is uncertain, and goes by force."""
    client = desk.server()
    session = client.ours("session/create")
    session_id = session["sessionId"]
    started = desk.root / "started"
    client.send_prompt(session, f"run touch {started.name}; sleep 30", "c1")
    client.wait_for(lambda: started.exists() or None, 30, "the command")
    client.kill()
    client = desk.server()
    with pytest.raises(ErrorAnswer) as refused:
        client.ours("session/delete", sessionId=session_id)
    data = refused.value.data or {}
    assert (refused.value.code, data["kind"]) == (-32060, "recoveryRequired")
    assert [one["state"] for one in data["uncertain"]] == ["unknown"]
    assert client.ours("session/delete", sessionId=session_id, force=True) == {}
    assert client.ours("session/list")["sessions"] == []
