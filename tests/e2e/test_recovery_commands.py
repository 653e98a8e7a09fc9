"""The commands of recovery, as any LSP client calls them: list, inspect, and decisions with and without an inspection.

The client has none of our requests: it knows `workspace/executeCommand` and `window/showMessageRequest`, or not even
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import ASK_MESSAGE, TypedClient, only
from tests.support.process_server import ABSENT, PRESENT, ServerProcesses, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only

pytestmark = linux_only

WRITE = 'write a.txt with "new\\n"'
OFFERED = ["Confirm", "Reject", "Continue without knowing", "Restore", "Later"]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        yield found


def make_uncertain(servers: ServerProcesses) -> tuple[TypedClient, Json]:
    """A client, and the ids of its one uncertain attempt."""
    session_id = servers.kill_in_turn(WRITE, PRESENT, settle="ask")
    client = servers.start(settle="ask")
    return client, {"sessionId": session_id, "attemptId": only(client.snapshot(session_id))["attemptId"]}


@pytest.mark.parametrize(
    ("command", "chosen", "settled", "state"),
    [
        ("confirm", "Confirm", "checked_present", None),
        ("waive", "Confirm", "checked_present", None),
        ("confirm", "Continue without knowing", "waived", None),
        ("reject", "Reject", None, "rejected"),
        ("confirm", "Reject", None, "rejected"),
    ],
)
def test_command_without_inspection_acts_on_the_answer(
    servers: ServerProcesses, command: str, chosen: str, settled: str | None, state: str | None
) -> None:
    """docs/protocol.md: the command inspects, shows the finding with the offered titles and Later, and acts as the
    answer says, whatever the command was. The result has the snapshot and that inspection."""
    client, named = make_uncertain(servers)
    id = client.send_command(f"recovery.{command}", **named)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == OFFERED
    assert "write_file: a.txt" in question["params"]["message"]
    assert "the file has the intended content now" in question["params"]["message"]
    assert "This describes the file now" in question["params"]["message"]
    client.answer_to(question, chosen)
    done = client.command_result(f"recovery.{command}", id)
    if settled is not None:
        assert [call["settled"] for call in done["snapshot"]["settled"]] == [settled]
    else:
        assert only(done["snapshot"])["state"] == state
    (inspection,) = servers.having(named["sessionId"], "inspection")
    assert inspection["inspectionId"] == done["inspection"]["inspectionId"], "the decision rests on the one it showed"


@pytest.mark.parametrize("answer", ["later", "null", "error", "unknown title", "not offered", "no such request"])
def test_command_without_a_usable_answer_returns_inspect_first(servers: ServerProcesses, answer: str) -> None:
    """docs/protocol.md: Later, null, an error, or a title that was not offered gives `inspectFirst` with the
    inspection, whose id works in a second call; nothing was decided."""
    client, named = make_uncertain(servers)
    id = client.send_command("recovery.confirm", **named)
    question = client.question()
    if answer in ("error", "no such request"):
        code = -32601 if answer == "no such request" else -32603
        client.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": code, "message": "no"}})
    else:
        titles = {"later": "Later", "null": None, "unknown title": "Yes", "not offered": "Retry"}
        client.answer_to(question, titles[answer])
    refused = client.refusal(lambda: client.command_result("recovery.confirm", id))
    assert refused.data["kind"] == "inspectFirst"
    looked = refused.data["inspection"]
    assert servers.having(named["sessionId"], "settlement") == servers.having(named["sessionId"], "reject") == []
    done = client.command("recovery.confirm", **named, inspectionId=looked["inspectionId"])
    assert [call["settled"] for call in done["snapshot"]["settled"]] == ["checked_present"]
    assert "inspection" not in done
    assert not client.server_requests, "with an inspection nobody is asked"


def test_inspect_command_asks_nothing(servers: ServerProcesses) -> None:
    """docs/protocol.md: `inspect` answers with the finding; the next command can rest on it."""
    client, named = make_uncertain(servers)
    looked = client.command("recovery.inspect", **named)
    assert looked["inspection"]["check"] == "satisfied"
    seen, revision = looked["inspection"]["inspectionId"], looked["snapshot"]["revision"]
    done = client.command("recovery.waive", **named, inspectionId=seen, revision=revision)
    assert [call["settled"] for call in done["snapshot"]["settled"]] == ["waived"]
    assert not [message for message in client.messages if message.get("method") == ASK_MESSAGE]


def test_confirm_after_a_change_during_the_question_settles_nothing(servers: ServerProcesses) -> None:
    """A5, [I8]: a Confirm that comes after the file has changed settles nothing, and shows what is there now."""
    client, named = make_uncertain(servers)
    id = client.send_command("recovery.confirm", **named)
    question = client.question()
    servers.workspace.write("a.txt", "other\n")
    client.answer_to(question, "Confirm")
    refused = client.refusal(lambda: client.command_result("recovery.confirm", id))
    assert refused.data["inspection"]["check"] == "conflict"
    assert servers.having(named["sessionId"], "settlement") == []


def test_answer_after_a_resolution_from_elsewhere_changes_nothing(servers: ServerProcesses) -> None:
    """A9, case 82: the effect was settled from another place during the question; the answer to the question reports
    that."""
    client, named = make_uncertain(servers)
    id = client.send_command("recovery.confirm", **named)
    question = client.question()
    snapshot = client.snapshot(named["sessionId"])
    call = only(snapshot)
    client.resolve(snapshot, call["attemptId"], "waive", call["inspection"]["inspectionId"])
    journal = servers.workspace.journal(named["sessionId"])
    client.answer_to(question, "Confirm")
    refused = client.refusal(lambda: client.command_result("recovery.confirm", id))
    assert refused.data == {"kind": "alreadyResolved", "settled": "waived"}
    assert servers.workspace.journal(named["sessionId"]) == journal


def test_cancelled_command_decides_nothing(servers: ServerProcesses) -> None:
    """docs/protocol.md: `$/cancelRequest` works for every command; the question is withdrawn."""
    client, named = make_uncertain(servers)
    id = client.send_command("recovery.confirm", **named)
    question = client.question()
    client.notify("$/cancelRequest", {"id": id})
    client.withdrawn(question)
    assert client.answer(id)["error"]["code"] == -32800
    client.answer_to(question, "Confirm")
    assert only(client.snapshot(named["sessionId"]))["state"] == "unknown"


def test_recovery_list_covers_the_folders_of_the_client(servers: ServerProcesses) -> None:
    """docs/protocol.md `recovery.list`: uncertain and settled effects of all sessions of the client's folders, however
    they are spelled, or of one session. The list contains effects of sessions that nobody opened (A8)."""
    second = servers.kill_in_turn("write b.txt with new", PRESENT)
    servers.workspace.write("b.txt", "somebody's\n")
    client = servers.start()
    client.wait_diagnostic("b.txt", "uncertain-write")
    assert client.shut_down() == 0
    first = servers.kill_in_turn(WRITE, PRESENT)
    client = servers.start(folders=[servers.workspace.uri + "/"])
    client.notification("window/showMessage", 20)
    listed = client.command("recovery.list")
    assert [call["sessionId"] for call in listed["uncertain"]] == [second]
    assert [call["sessionId"] for call in listed["settled"]] == [first]
    assert client.command("recovery.list", sessionId=first)["uncertain"] == []
    elsewhere = servers.start(folders=[(servers.workspace.base / "elsewhere").as_uri()])
    assert elsewhere.command("recovery.list") == {"uncertain": [], "settled": []}


def test_retry_command_while_disabled_is_refused_first(servers: ServerProcesses) -> None:
    """F1: the command is refused before it asks and inspects."""
    client, named = make_uncertain(servers)
    assert client.refusal(lambda: client.command("recovery.retry", **named)).data["kind"] == "retryDisabled"
    assert servers.having(named["sessionId"], "inspection") == []


def test_absent_effect_offers_no_restore(servers: ServerProcesses) -> None:
    """A5, docs/protocol.md: only an offered action has a title; Confirm of an absent effect settles it as absent."""
    session_id = servers.kill_in_turn(WRITE, ABSENT, settle="ask")
    client = servers.start(settle="ask")
    named = {"sessionId": session_id, "attemptId": only(client.snapshot(session_id))["attemptId"]}
    id = client.send_command("recovery.waive", **named)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == [*OFFERED[:3], "Later"]
    client.answer_to(question, "Confirm")
    done = client.command_result("recovery.waive", id)
    assert [call["settled"] for call in done["snapshot"]["settled"]] == ["checked_absent"]
