"""Rules and trust over the wire: from the machine, from a workspace's answer, and when they change (row G2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_client import CheckedClient, Desk
from tests.support.raw_client import UNANSWERED, Json

PULLS: Json = {"workspace": {"configuration": True}}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place whose servers are ended and checked."""
    made = Desk.under(tmp_path)
    yield made
    made.close()


def outcome(client: CheckedClient, session: Json, text: str) -> tuple[str, str | None, str]:
    """(state, reason, reply) of the one call of a turn."""
    turn_id = client.send_prompt(session, text)["turnId"]
    client.ended(turn_id)
    (call,) = client.calls(turn_id)
    return call["state"], call.get("reason"), call["reply"]["text"]


def asked(client: CheckedClient) -> int:
    return sum(message.get("method") == "steadyhand/permission/ask" for message in client.messages)


def test_rules_of_the_machine(desk: Desk) -> None:
    """G2: `permissions.allow|ask|deny` of initializationOptions hold; a bad one is named in the one message."""
    rules = {"allow": ["write_file(src/**)"], "ask": ["delete_file"], "deny": ["*(lock/)", "write_fil"]}
    client = desk.server(options={"mode": "ask", "permissions": rules})
    session = client.ours("session/create")
    assert outcome(client, session, "write src/a.txt with a")[:2] == ("returned", None)
    assert asked(client) == 0
    assert outcome(client, session, "delete src/a.txt")[:2] == ("returned", None)
    assert asked(client) == 1
    state, reason, reply = outcome(client, session, "write lock/a.txt with a")
    assert (state, reason) == ("refused", "policy")
    assert "“*(lock/)” in permissions.deny" in reply
    assert (asked(client), desk.content("lock/a.txt")) == (1, None)
    (shown,) = client.shown()
    assert "“write_fil”" in shown


def test_a_workspace_may_only_tighten(desk: Desk) -> None:
    """G2: what it denies counts for the first turn, which waits for the answer; what it allows counts for nothing."""
    client = desk.server(options={"mode": "ask"}, capabilities=PULLS, initialize=False)
    client.answer_with("workspace/configuration", lambda _: UNANSWERED)
    folder = {"uri": desk.root.as_uri(), "name": "ws"}
    own = {"experimental": {"steadyhand": {"permission": True}}}
    client.initialize({"workspaceFolders": [folder], "capabilities": {**PULLS, **own}})
    question = client.asked("workspace/configuration")
    assert question["params"]["items"] == [{"section": "steadyhand"}]
    session = client.ours("session/create")
    epoch = {"sessionId": session["sessionId"], "epoch": session["epoch"]}
    prompt = {**epoch, "clientMessageId": "c1", "text": "write a.txt with a"}
    early = client.ask("steadyhand/turn/start", prompt)
    permissions = {"allow": ["*"], "deny": ["write_file"]}
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": [{"permissions": permissions, "trusted": False}]})
    turn_id = client.result(early)["turnId"]
    client.ended(turn_id)
    (call,) = client.calls(turn_id)
    assert (call["state"], call["reason"]) == ("refused", "policy")
    assert "permissions.deny" in call["reply"]["text"]
    assert outcome(client, session, "run touch b.txt")[0] == "returned"
    assert asked(client) == 1, "its `allow` is not heard"


def test_a_workspace_is_asked_again(desk: Desk) -> None:
    """wire.md: when settings change its answer is fetched anew, and replaces the one before."""
    answers: list[Json] = [{"permissions": {"deny": ["write_file"]}}, {}]
    client = desk.server(options={"mode": "auto"}, initialize=False)
    client.answer_with("workspace/configuration", lambda _: [answers.pop(0)])
    folder = {"uri": desk.root.as_uri(), "name": "ws"}
    client.initialize({"workspaceFolders": [folder], "capabilities": PULLS, "initializationOptions": {"mode": "auto"}})
    session = client.ours("session/create")
    assert outcome(client, session, "write a.txt with a")[0] == "refused"
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.wait_for(lambda: None if answers else True, 5, "the second question")
    assert outcome(client, session, "write a.txt with a")[0] == "returned"


def test_a_workspace_that_is_not_trusted(desk: Desk) -> None:
    """G2: the server itself refuses every effect, whatever mode is set; trusted later, the same session goes on."""
    client = desk.server(options={"mode": "auto", "trusted": False})
    session = client.ours("session/create")
    client.ours("session/setMode", sessionId=session["sessionId"], mode="auto")
    state, reason, reply = outcome(client, session, "write a.txt with a")
    assert (state, reason) == ("refused", "policy")
    assert "not trusted" in reply
    (desk.root / "b.txt").write_text("b")
    assert outcome(client, session, "show b.txt")[0] == "returned"
    machine = {"mode": "auto", "trusted": True}
    client.notify("workspace/didChangeConfiguration", {"settings": {"steadyhand": {"machine": machine}}})
    assert outcome(client, session, "write a.txt with a")[0] == "returned"
    assert desk.content("a.txt") == "a"
