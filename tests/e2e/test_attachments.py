"""Attachments and quick questions over stdio: shapes, places in the client's units, and a killed server between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_client import Desk
from tests.support.raw_client import UNANSWERED, Json

INVALID = -32602


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place whose servers are ended and checked."""
    made = Desk.under(tmp_path)
    yield made
    made.close()


def started(session: Json, text: str, name: str, **more: Json) -> Json:
    return {"sessionId": session["sessionId"], "epoch": session["epoch"], "clientMessageId": name, "text": text, **more}


def test_attachments_over_the_wire(desk: Desk) -> None:
    """Rows D1, G5, wire.md: accepted, shown in message and queue as they were sent, read when the turn begins, and
    the same after a kill."""
    (desk.root / "a.txt").write_text("\U0001d11eone\ntwo\n")
    where = {"start": {"line": 0, "character": 2}, "end": {"line": 1, "character": 0}}
    attachments: list[Json] = [
        {"kind": "file", "path": "a.txt", "range": where},
        {"kind": "file", "path": "missing.txt"},
        {"kind": "selection", "uri": "untitled:X", "range": where, "text": "picked"},
        {"kind": "problems"},
        {"kind": "text", "name": "notes", "text": "more"},
    ]
    client = desk.server(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    first = client.ours("turn/start", **started(session, "write b.txt with hello", "c1", attachments=attachments))
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    client.ours("turn/start", **started(session, "say two", "c2", attachments=attachments[4:]))
    warnings = [event["text"] for event in client.events(first["turnId"]) if event["kind"] == "warning"]
    assert [text.partition(":")[0] for text in warnings] == ["file missing.txt", "problems"]
    other = started(session, "say two", "c2", attachments=attachments[3:])
    assert client.refusal("turn/start", **other) == (INVALID, "invalidParams")
    client.kill()
    (told,) = [record["text"] for record in desk.journal(session["sessionId"]) if record["kind"] == "attached"]
    assert told.startswith(
        "[Attached 1 of 5: file a.txt, line 1]\n```\none\n```\n[Attached 2 of 5: file missing.txt]\n"
    )
    opened = desk.server().ours("session/open", sessionId=session["sessionId"])
    prompts = [message for message in opened["messages"] if message["role"] == "user"]
    assert [message["attachments"] for message in prompts] == [attachments]
    assert [item["attachments"] for item in opened["queue"]] == [attachments[4:]]


def test_a_quick_question_over_the_wire(desk: Desk) -> None:
    """Rows S2, P5, wire.md: the practice model's one sentence, and nothing of it in the session when it is opened."""
    client = desk.server()
    session = client.ours("session/create")
    accepted = client.ours("turn/start", **started(session, "write a.txt with 1", "q1", aside=True))
    assert client.ended(accepted["turnId"])["reason"] == "done"
    said = "".join(event["delta"] for event in client.events(accepted["turnId"]) if event["kind"] == "text")
    assert said == "I do not call tools here."
    assert client.ours("session/open", sessionId=session["sessionId"])["messages"] == []
    assert client.refusal("turn/start", **started(session, "/help", "q2", aside=True)) == (INVALID, "invalidParams")
    assert client.ours("usage", sessionId=session["sessionId"])["billed"]["output"] > 0
