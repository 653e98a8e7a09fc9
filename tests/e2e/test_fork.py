"""Forks over stdio: the request and its refusals, and an origin that another server owns (row S3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.process_server import PRESENT, ServerProcesses, server_processes
from tests.support.systems import linux_only

pytestmark = linux_only

NOBODY = "0" * 32


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        servers.workspace.write("a.txt", "old\n")
        yield servers


def prompts(opened: Any) -> list[str]:
    return [one["text"] for one in opened["messages"] if one["role"] == "user"]


def test_fork_by_request_has_the_history_up_to_the_turn_and_survives_a_kill(servers: ServerProcesses) -> None:
    """S3: the answer is the new session, open, with its origin; refusals come in their order; after a kill the fork is
    listed with its origin and goes on."""
    client = servers.start_checked()
    session = client.ours("session/create", title="First")
    for text in ("say one", "write b.txt with text"):
        client.say(session, text)
    origin = session["sessionId"]
    opened = client.ours("session/open", sessionId=origin)
    first = next(one["turnId"] for one in opened["messages"] if one["role"] == "user")

    assert client.refusal("session/fork", sessionId=origin, extra=1) == (-32602, "invalidParams")
    assert client.refusal("session/fork", sessionId=NOBODY, turnId=NOBODY) == (-32050, "unknownSession")
    assert client.refusal("session/fork", sessionId=origin, turnId=NOBODY) == (-32602, "invalidParams")

    copy = client.ours("session/fork", sessionId=origin, turnId=first)
    assert copy["origin"] == {"sessionId": origin, "turnId": first}
    assert (copy["title"], copy["titleSource"], copy["mode"]) == ("First (fork)", "auto", "ask")
    assert copy["epoch"]
    assert prompts(client.ours("session/open", sessionId=copy["sessionId"])) == ["say one"]
    whole = client.ours("session/fork", sessionId=origin, title="Another way")
    assert whole["origin"] == {"sessionId": origin}
    calls = [call for one in client.ours("session/open", sessionId=whole["sessionId"])["messages"]
             for call in one.get("calls", [])]  # fmt: skip
    assert [(call["tool"], call["state"]) for call in calls] == [("read_file", "failed"), ("write_file", "returned")]
    assert not any("attemptId" in call for call in calls)
    assert client.ours("checkpoint/list", sessionId=whole["sessionId"])["turns"] == []
    client.kill()

    client = servers.start_checked()
    listed = {one["sessionId"]: one.get("origin") for one in client.ours("session/list")["sessions"]}
    assert listed == {origin: None, copy["sessionId"]: copy["origin"], whole["sessionId"]: whole["origin"]}
    again = client.ours("session/open", sessionId=copy["sessionId"])["session"]
    client.say(again, "say two")
    assert prompts(client.ours("session/open", sessionId=copy["sessionId"])) == ["say one", "say two"]
    assert prompts(client.ours("session/open", sessionId=origin)) == ["say one", "write b.txt with text"]


def test_doubt_of_an_origin_in_another_server_can_only_be_refused_until_it_is_settled_there(
    servers: ServerProcesses,
) -> None:
    """S3, B1, B4: two servers on one state directory. The question in the fork's has one answer; it is withdrawn when
    the owner of the origin settles the effect, and the call runs."""
    origin = servers.kill_in_turn('write a.txt with "new\\n"', PRESENT)
    servers.workspace.write("a.txt", "somebody's\n")
    owner = servers.start()
    (doubt,) = owner.opened(origin)["snapshot"]["calls"]

    client = servers.start(folders=[])
    copy = client.own("session/fork", sessionId=origin)
    seen = {**client.snapshot(copy["sessionId"]), "calls": [doubt]}
    refused = client.refusal(lambda: client.resolve(seen, doubt["attemptId"], "inspect"))
    assert refused.data["kind"] == "notOffered"
    turn = client.ask_turn("run echo hi > c.txt", sessionId=copy["sessionId"])
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == ["Refuse"]
    name = copy["title"].removesuffix(" (fork)")
    assert question["params"]["message"].endswith(f"Settle it in session {name}.")
    assert servers.content("c.txt") is None

    looked = owner.inspected(origin, doubt["attemptId"])
    owner.resolve(owner.snapshot(origin), doubt["attemptId"], "waive", looked["inspection"]["inspectionId"])
    client.withdrawn(question, 60)
    assert client.command_result("ask", turn, 60)["reason"] == "done"
    assert servers.content("c.txt") == "hi\n"
    assert "settlement" not in servers.kinds(copy["sessionId"])
