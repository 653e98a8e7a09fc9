"""Permission rules and trust over the protocol: from the machine, from a workspace, and when they change (row G2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import UNANSWERED, Json

PULLS: Json = {"workspace": {"configuration": True}}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def outcome(client: CheckedClient, session: Json, text: str) -> tuple[str, str | None, str]:
    """(state, reason, reply) of the only call of a turn."""
    turn_id = client.send_prompt(session, text)["turnId"]
    client.ended(turn_id)
    *_, call = client.calls(turn_id)
    return call["state"], call.get("reason"), call["reply"]["text"]


def asked(client: CheckedClient) -> int:
    return sum(message.get("method") == "steadyhand/permission/ask" for message in client.messages)


def test_machine_rules_apply_and_invalid_ones_are_named(servers: ServerProcesses) -> None:
    """G2: `permissions.allow|ask|deny` of initializationOptions apply; the one message names an invalid rule."""
    rules = {"allow": ["write_file(src/**)"], "ask": ["delete_file"], "deny": ["*(lock/)", "write_fil"]}
    client = servers.start_checked(options={"mode": "ask", "permissions": rules})
    session = client.ours("session/create")
    assert outcome(client, session, "write src/a.txt with a")[:2] == ("returned", None)
    assert asked(client) == 0
    assert outcome(client, session, "delete src/a.txt")[:2] == ("returned", None)
    assert asked(client) == 1
    state, reason, reply = outcome(client, session, "write lock/a.txt with a")
    assert (state, reason) == ("refused", "policy")
    assert "“*(lock/)” in permissions.deny" in reply
    assert (asked(client), servers.content("lock/a.txt")) == (1, None)
    (shown,) = client.shown()
    assert "“write_fil”" in shown


def test_workspace_rules_can_deny_but_not_allow(servers: ServerProcesses) -> None:
    """G2: a deny of the workspace applies to the first turn, which waits for the settings; an allow has no effect."""
    client = servers.start_checked(options={"mode": "ask"}, capabilities=PULLS, initialize=False)
    client.answer_with("workspace/configuration", lambda _: UNANSWERED)
    folder = {"uri": servers.root.as_uri(), "name": "ws"}
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
    *_, call = client.calls(turn_id)
    assert (call["state"], call["reason"]) == ("refused", "policy")
    assert "permissions.deny" in call["reply"]["text"]
    assert outcome(client, session, "run touch b.txt")[0] == "returned"
    assert asked(client) == 1, "its `allow` is not heard"


def test_configuration_change_fetches_workspace_rules_again(servers: ServerProcesses) -> None:
    """docs/protocol.md: when settings change, the server fetches the workspace's answer again; it replaces the previous
    one."""
    answers: list[Json] = [{"permissions": {"deny": ["write_file"]}}, {}]
    client = servers.start_checked(options={"mode": "auto"}, initialize=False)
    client.answer_with("workspace/configuration", lambda _: [answers.pop(0)])
    folder = {"uri": servers.root.as_uri(), "name": "ws"}
    client.initialize({"workspaceFolders": [folder], "capabilities": PULLS, "initializationOptions": {"mode": "auto"}})
    session = client.ours("session/create")
    assert outcome(client, session, "write a.txt with a")[0] == "refused"
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.wait_for(lambda: None if answers else True, 5, "the second question")
    assert outcome(client, session, "write a.txt with a")[0] == "returned"


def test_untrusted_workspace_refuses_effects_until_trusted(servers: ServerProcesses) -> None:
    """G2: the server itself refuses every effect in every mode; when the workspace is trusted later, the same session
    goes on."""
    client = servers.start_checked(options={"mode": "auto", "trusted": False})
    session = client.ours("session/create")
    client.ours("session/setMode", sessionId=session["sessionId"], mode="auto")
    state, reason, reply = outcome(client, session, "write a.txt with a")
    assert (state, reason) == ("refused", "policy")
    assert "not trusted" in reply
    (servers.root / "b.txt").write_text("b")
    assert outcome(client, session, "show b.txt")[0] == "returned"
    machine = {"mode": "auto", "trusted": True}
    client.notify("workspace/didChangeConfiguration", {"settings": {"steadyhand": {"machine": machine}}})
    assert outcome(client, session, "write a.txt with a")[0] == "returned"
    assert servers.content("a.txt") == "a"


def test_machine_settings_of_a_workspace_are_ignored_and_named_once(servers: ServerProcesses) -> None:
    """Case 140: the mode, address and rules of a workspace have no effect. One message names them, and none comes when
    the editor sends the same answer again."""
    client = servers.start_checked(options={"mode": "plan"}, capabilities=PULLS, initialize=False)
    answer = {"mode": "auto", "model": {"baseUrl": "https://evil.example"}, "permissions": {"allow": ["*"]}}
    client.answer_with("workspace/configuration", lambda _: [answer])
    own = {"experimental": {"steadyhand": {"permission": True}}}
    client.initialize(
        {
            "workspaceFolders": [{"uri": servers.root.as_uri(), "name": "ws"}],
            "capabilities": {**PULLS, **own},
            "initializationOptions": {"mode": "plan"},
        }
    )
    session = client.ours("session/create")
    assert session["mode"] == "plan"
    assert outcome(client, session, "write a.txt with a")[:2] == ("refused", "policy")
    client.notify("workspace/didChangeConfiguration", {"settings": {}})
    assert outcome(client, session, "write a.txt with b")[:2] == ("refused", "policy")
    (shown,) = client.shown()
    assert all(f"steadyhand.{name}" in shown for name in ("mode", "model.baseUrl", "permissions.allow"))
