"""Attachments and quick questions over stdio: shapes, positions in the client's encoding, and a killed server in
between.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import UNANSWERED, Json

INVALID = -32602


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def started(session: Json, text: str, name: str, **more: Any) -> Json:
    return {"sessionId": session["sessionId"], "epoch": session["epoch"], "clientMessageId": name, "text": text, **more}


def test_attachments_are_queued_as_sent_and_survive_a_kill(servers: ServerProcesses) -> None:
    """Rows D1, G5, docs/protocol.md: the server accepts attachments and shows them in message and queue as they were
    sent. It reads them when the turn begins. After a kill they are the same."""
    (servers.root / "a.txt").write_text("\U0001d11eone\ntwo\n")
    where = {"start": {"line": 0, "character": 2}, "end": {"line": 1, "character": 0}}
    attachments: list[Json] = [
        {"kind": "file", "path": "a.txt", "range": where},
        {"kind": "file", "path": "missing.txt"},
        {"kind": "selection", "uri": "untitled:X", "range": where, "text": "picked"},
        {"kind": "problems"},
        {"kind": "text", "name": "notes", "text": "more"},
    ]
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    first = client.ours("turn/start", **started(session, "write b.txt with hello", "c1", attachments=attachments))
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    client.ours("turn/start", **started(session, "say two", "c2", attachments=attachments[4:]))
    warnings = [event["text"] for event in client.events(first["turnId"]) if event["kind"] == "warning"]
    assert [text.partition(":")[0] for text in warnings] == ["file missing.txt", "problems"]
    other = started(session, "say two", "c2", attachments=attachments[3:])
    assert client.refusal("turn/start", **other) == (INVALID, "invalidParams")
    client.kill()
    (told,) = [record["text"] for record in servers.records(session["sessionId"]) if record["kind"] == "attached"]
    assert told.startswith(
        "[Attached 1 of 5: file a.txt, line 1]\n```\none\n```\n[Attached 2 of 5: file missing.txt]\n"
    )
    opened = servers.start_checked().ours("session/open", sessionId=session["sessionId"])
    prompts = [message for message in opened["messages"] if message["role"] == "user"]
    assert [message["attachments"] for message in prompts] == [attachments]
    assert [item["attachments"] for item in opened["queue"]] == [attachments[4:]]


def test_quick_question_is_answered_and_leaves_nothing_in_the_session(servers: ServerProcesses) -> None:
    """Rows S2, P5, docs/protocol.md: the practice model answers with one sentence; the opened session contains nothing
    of it."""
    client = servers.start_checked()
    session = client.ours("session/create")
    accepted = client.ours("turn/start", **started(session, "write a.txt with 1", "q1", aside=True))
    assert client.ended(accepted["turnId"])["reason"] == "done"
    said = "".join(event["delta"] for event in client.events(accepted["turnId"]) if event["kind"] == "text")
    assert said == "I do not call tools here."
    assert client.ours("session/open", sessionId=session["sessionId"])["messages"] == []
    assert client.refusal("turn/start", **started(session, "/help", "q2", aside=True)) == (INVALID, "invalidParams")
    assert client.ours("usage", sessionId=session["sessionId"])["billed"]["output"] > 0
