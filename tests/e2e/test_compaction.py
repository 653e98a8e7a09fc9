"""Compaction over stdio with the practice model: by request, by slash command, and before a request (row K4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import RawClient

INVALID = -32602
END = "Where the summary and the lines above disagree, the lines above are right."


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def events(client: RawClient, kind: str) -> list[dict[str, Any]]:
    told = client.notifications("steadyhand/turn/event")
    return [one["event"] for one in told if one["event"]["kind"] == kind]


def test_session_is_compacted_by_request_and_by_command_and_goes_on_after_a_kill(servers: ServerProcesses) -> None:
    """K1, K4, P5, U1: the result, the event, the message in the chat and the usage say the same; after a kill the
    session shows it, and the next prompt is answered. Refusals come in their order.
    """
    client = servers.start_checked()
    session = client.ours("session/create")
    session_id, epoch = session["sessionId"], session["epoch"]
    assert client.refusal("session/compact", sessionId=session_id) == (INVALID, "invalidParams")
    assert client.refusal("session/compact", sessionId=session_id, epoch=epoch, focus=1) == (INVALID, "invalidParams")
    assert client.refusal("session/compact", sessionId="0" * 32, epoch=epoch)[1] == "unknownSession"
    assert client.refusal("session/compact", sessionId=session_id, epoch="0" * 32)[1] == "staleEpoch"
    assert client.ours("session/compact", sessionId=session_id, epoch=epoch) == {"compacted": False, "why": "short"}
    client.say(session, "write a.txt with hello")
    client.say(session, "show a.txt")
    done = client.ours("session/compact", sessionId=session_id, epoch=epoch, focus="the file")
    assert (done["compacted"], done["after"]) == (True, {"messages": 1})
    (event,) = events(client, "compacted")
    assert (event["before"], event["after"], event["automatic"]) == (done["before"], done["after"], False)
    assert f"Summary by the model:\nSummary: {done['before']['messages']} messages.\n" in event["text"]
    assert event["text"].endswith(END)
    assert client.ours("usage", sessionId=session_id)["auxiliary"]["requests"] == 1
    client.say(session, "say more")
    client.say(session, "/compact")
    assert [one["before"]["messages"] for one in events(client, "compacted")] == [done["before"]["messages"], 3]
    client.kill()
    client = servers.start_checked()
    opened = client.ours("session/open", sessionId=session_id)
    notes = [one for one in opened["messages"] if "compaction" in one]
    assert [(one["role"], one["compaction"]["after"]) for one in notes] == [("notice", {"messages": 1})] * 2
    assert notes[0]["text"] == event["text"]
    prompts = [one["text"] for one in opened["messages"] if one["role"] == "user"]
    assert prompts == ["/compact", "write a.txt with hello", "show a.txt", "/compact the file", "say more", "/compact"]
    client.say(opened["session"], "append more to a.txt", "later")
    assert servers.content("a.txt") == "hello\nmore\n"
    assert len(servers.having(session_id, "compaction")) == 2


def test_window_of_the_settings_makes_the_server_compact_by_itself(servers: ServerProcesses) -> None:
    """K2, K4: above the share of the window, before the request, and once; the prompt is answered in the same turn.
    Only the machine's settings have the window.
    """
    options = {"mode": "auto", "model": {"window": 2_000}, "compaction": {"at": 0.6}}
    client = servers.start_checked(options=options)
    session = client.ours("session/create")
    (servers.root / "big.txt").write_text("word " * 900)
    assert client.say(session, "show big.txt")["reason"] == "done"
    assert events(client, "compacted") == []
    assert client.say(session, "write a.txt with hello")["reason"] == "done"
    (event,) = events(client, "compacted")
    assert event["automatic"]
    assert servers.content("a.txt") == "hello"
    used = client.ours("usage", sessionId=session["sessionId"])
    assert (used["window"], used["auxiliary"]["requests"]) == (2_000, 1)
