"""The commands of recovery, as any LSP client calls them: list, inspect, and decisions with and without an inspection.

The client has nothing of ours: it knows `workspace/executeCommand` and `window/showMessageRequest`, or not even that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recovered import ABSENT, ASK_MESSAGE, PRESENT, Client, Json, Lives, lives_in, only
from tests.support.systems import linux_only

pytestmark = linux_only

WRITE = 'write a.txt with "new\\n"'
OFFERED = ["Confirm", "Reject", "Continue without knowing", "Restore", "Later"]


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", "old\n")
        yield found


def doubtful(lives: Lives) -> tuple[Client, Json]:
    """A client, and what names the one uncertain attempt."""
    session_id = lives.die(WRITE, PRESENT, settle="ask")
    client = lives.start(settle="ask")
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
def test_without_an_inspection_the_answer_decides(
    lives: Lives, command: str, chosen: str, settled: str | None, state: str | None
) -> None:
    """wire.md: it inspects, shows the finding with the offered titles and Later, and acts as the answer says, whatever
    the command was; the result has the snapshot and that inspection."""
    client, named = doubtful(lives)
    id = client.send_command(f"recovery.{command}", **named)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == OFFERED
    assert "write_file: a.txt" in question["params"]["message"]
    assert "the file has the intended content now" in question["params"]["message"]
    assert "This speaks of the file now" in question["params"]["message"]
    client.answer_to(question, chosen)
    done = client.command_result(f"recovery.{command}", id)
    if settled is not None:
        assert [call["settled"] for call in done["snapshot"]["settled"]] == [settled]
    else:
        assert only(done["snapshot"])["state"] == state
    (inspection,) = lives.having(named["sessionId"], "inspection")
    assert inspection["inspectionId"] == done["inspection"]["inspectionId"], "the decision rests on the one it showed"


@pytest.mark.parametrize("answer", ["later", "null", "error", "unknown title", "not offered", "no such request"])
def test_without_a_usable_answer(lives: Lives, answer: str) -> None:
    """wire.md: Later, null, an error, a title that was not offered: `inspectFirst` with the inspection, which is
    repeated with its id; nothing was decided."""
    client, named = doubtful(lives)
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
    assert lives.having(named["sessionId"], "settlement") == lives.having(named["sessionId"], "reject") == []
    done = client.command("recovery.confirm", **named, inspectionId=looked["inspectionId"])
    assert [call["settled"] for call in done["snapshot"]["settled"]] == ["checked_present"]
    assert "inspection" not in done
    assert not client.server_requests, "with an inspection nobody is asked"


def test_inspect_asks_nobody(lives: Lives) -> None:
    """wire.md: `inspect` answers with the finding; the next command can rest on it."""
    client, named = doubtful(lives)
    looked = client.command("recovery.inspect", **named)
    assert looked["inspection"]["check"] == "satisfied"
    seen, revision = looked["inspection"]["inspectionId"], looked["snapshot"]["revision"]
    done = client.command("recovery.waive", **named, inspectionId=seen, revision=revision)
    assert [call["settled"] for call in done["snapshot"]["settled"]] == ["waived"]
    assert not [message for message in client.messages if message.get("method") == ASK_MESSAGE]


def test_the_world_changes_while_the_question_stands(lives: Lives) -> None:
    """A5, [I8]: a Confirm that comes after the file has changed settles nothing, and shows what there is now."""
    client, named = doubtful(lives)
    id = client.send_command("recovery.confirm", **named)
    question = client.question()
    lives.place.write("a.txt", "other\n")
    client.answer_to(question, "Confirm")
    refused = client.refusal(lambda: client.command_result("recovery.confirm", id))
    assert refused.data["inspection"]["check"] == "conflict"
    assert lives.having(named["sessionId"], "settlement") == []


def test_a_late_answer_changes_nothing(lives: Lives) -> None:
    """A9, case 82: while the question stood the effect was settled by another door; its answer is told so."""
    client, named = doubtful(lives)
    id = client.send_command("recovery.confirm", **named)
    question = client.question()
    snapshot = client.snapshot(named["sessionId"])
    call = only(snapshot)
    client.resolve(snapshot, call["attemptId"], "waive", call["inspection"]["inspectionId"])
    journal = lives.place.journal(named["sessionId"])
    client.answer_to(question, "Confirm")
    refused = client.refusal(lambda: client.command_result("recovery.confirm", id))
    assert refused.data == {"kind": "alreadyResolved", "settled": "waived"}
    assert lives.place.journal(named["sessionId"]) == journal


def test_a_command_that_is_cancelled_decides_nothing(lives: Lives) -> None:
    """wire.md: `$/cancelRequest` works on every command; the question is taken back."""
    client, named = doubtful(lives)
    id = client.send_command("recovery.confirm", **named)
    question = client.question()
    client.notify("$/cancelRequest", {"id": id})
    client.withdrawn(question)
    assert client.answer(id)["error"]["code"] == -32800
    client.answer_to(question, "Confirm")
    assert only(client.snapshot(named["sessionId"]))["state"] == "unknown"


def test_the_list_is_over_the_workspace(lives: Lives) -> None:
    """wire.md `recovery.list`: uncertain and settled of all sessions of the client's folders, however they are spelled,
    or of one; oldest doubts are there although no session was opened by hand (A8)."""
    second = lives.die("write b.txt with new", PRESENT)
    lives.place.write("b.txt", "somebody's\n")
    client = lives.start()
    client.squiggle("b.txt", "uncertain-write")
    assert client.shut_down() == 0
    first = lives.die(WRITE, PRESENT)
    client = lives.start(folders=[lives.place.uri + "/"])
    client.notification("window/showMessage", 20)
    listed = client.command("recovery.list")
    assert [call["sessionId"] for call in listed["uncertain"]] == [second]
    assert [call["sessionId"] for call in listed["settled"]] == [first]
    assert client.command("recovery.list", sessionId=first)["uncertain"] == []
    elsewhere = lives.start(folders=[(lives.place.base / "elsewhere").as_uri()])
    assert elsewhere.command("recovery.list") == {"uncertain": [], "settled": []}


def test_retry_while_it_is_off(lives: Lives) -> None:
    """F1: refused before anybody is asked and anything is looked at."""
    client, named = doubtful(lives)
    assert client.refusal(lambda: client.command("recovery.retry", **named)).data["kind"] == "retryDisabled"
    assert lives.having(named["sessionId"], "inspection") == []


def test_what_is_absent_has_nothing_to_restore(lives: Lives) -> None:
    """A5, wire.md: only what is offered has a title; Confirm of what is absent settles it so."""
    session_id = lives.die(WRITE, ABSENT, settle="ask")
    client = lives.start(settle="ask")
    named = {"sessionId": session_id, "attemptId": only(client.snapshot(session_id))["attemptId"]}
    id = client.send_command("recovery.waive", **named)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == [*OFFERED[:3], "Later"]
    client.answer_to(question, "Confirm")
    done = client.command_result("recovery.waive", id)
    assert [call["settled"] for call in done["snapshot"]["settled"]] == ["checked_absent"]
