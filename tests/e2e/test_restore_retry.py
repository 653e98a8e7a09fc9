"""Restore and retry as a client sees them, through real kills of the shipped server (rows A5, B3, F1-F3; case 74).

By `recovery/resolve`, by command, by the lightbulb and in the chat; what is offered when, how it is refused with which
code, and what the files and the journal say then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.recovered import ABSENT, PRESENT, Client, Json, Lives, lives_in, only
from tests.support.systems import linux_only

pytestmark = linux_only

OLD, NEW, OTHER = "old\n", "new\n", "somebody's\n"
WRITE = 'write a.txt with "new\\n"'
RETRY_VARIABLE = "STEADYHAND_RECOVERY_RETRY"
REPLACING: Json = {"verb": "exchange", "target": "a.txt"}
CODES = {"retryUnsafe": -32057, "alreadyResolved": -32055, "inspectFirst": -32054, "retryDisabled": -32056,
         "turnRunning": -32052, "notOffered": -32061, "recoveryRequired": -32060}  # fmt: skip


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", OLD)
        yield found


@pytest.fixture
def retried(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Lives]:
    """Killed right before the exchange; the variable is set for the lives after."""
    session_id = lives.die(WRITE, REPLACING)
    assert (lives.place.workspace / "a.txt").read_text() == OLD
    monkeypatch.setenv(RETRY_VARIABLE, "1")
    return session_id, lives


def content(lives: Lives) -> str:
    return (lives.place.workspace / "a.txt").read_text()


def shown(client: Client, session_id: str) -> Json:
    """The one effect, unresolved or settled."""
    snapshot = client.snapshot(session_id)
    found: list[Json] = snapshot["calls"] + snapshot["settled"]
    assert len(found) == 1
    return found[0]


def opened(client: Client, session_id: str) -> Json:
    """The one effect, once the session is open."""
    client.opened(session_id)
    return shown(client, session_id)


def refused(client: Client, session_id: str, kind: str, attempt_id: str, action: str, inspection_id: str) -> Json:
    before = client.place.journal(session_id)
    error = client.refusal(lambda: client.resolve(client.snapshot(session_id), attempt_id, action, inspection_id))
    assert (error.code, error.data["kind"]) == (CODES[kind], kind)
    if "inspection" not in error.data:
        assert client.place.journal(session_id) == before
    data: Json = error.data
    return data


# --- restore --------------------------------------------------------------------------------------------------------


def test_a_conflict_is_brought_back_and_that_is_undone(lives: Lives) -> None:
    """A5, J14, A8, case 74: offered after an inspection; the old attempt is settled by it, its warning is gone; and by
    command, with the new attempt's id, what was there comes back."""
    session_id = lives.die(WRITE, PRESENT)
    lives.place.write("a.txt", OTHER)
    client = lives.start()
    client.squiggle("a.txt", "uncertain-write")
    call = only(client.snapshot(session_id))
    looked = client.inspected(session_id, call["attemptId"])
    assert only(looked["snapshot"])["actions"] == ["inspect", "confirm", "reject", "waive", "restore"]
    done = client.resolve(
        looked["snapshot"], call["attemptId"], "restore", looked["inspection"]["inspectionId"]
    )["snapshot"]  # fmt: skip
    assert content(lives) == OLD
    assert done["calls"] == []
    assert [(one["settled"], one["actions"]) for one in done["settled"]] == [("restored", [])]
    assert done["statistics"]["restored"] == 1
    client.squiggle("a.txt", None)
    (settlement,) = lives.having(session_id, "settlement")
    assert (settlement["settled"], settlement["by"]) == ("restored", "user")

    (intent,) = [one for one in lives.having(session_id, "intent") if one.get("restoreOf") == call["attemptId"]]
    named = {"sessionId": session_id, "attemptId": intent["attemptId"]}
    again = client.command("recovery.inspect", **named)["inspection"]
    assert again["check"] == "satisfied"
    (path,) = again["paths"]
    assert path["before"]["exists"]
    assert path["intended"]["digest"] == path["now"]["digest"]
    client.command("recovery.restore", **named, inspectionId=again["inspectionId"])
    assert content(lives) == OTHER
    assert len(lives.having(session_id, "settlement")) == 1


def test_a_present_one_is_brought_back_by_the_lightbulb(lives: Lives) -> None:
    """A8, B3: checked present, it is still shown, with Inspect and Restore at the file; afterwards no mark is left."""
    session_id = lives.die(WRITE, PRESENT)
    client = lives.start()
    client.squiggle("a.txt", "checked-write")
    (action,) = client.code_actions("a.txt")
    assert action["title"] == "Steadyhand: Inspect"
    client.run(action["command"])
    titles = [action["title"] for action in client.code_actions("a.txt")]
    assert titles == ["Steadyhand: Inspect", "Steadyhand: Restore"]
    client.run(client.code_actions("a.txt")[1]["command"])
    assert content(lives) == OLD
    client.squiggle("a.txt", None)
    assert [one["settled"] for one in lives.having(session_id, "settlement")] == ["checked_present", "restored"]


def test_in_the_chat(lives: Lives) -> None:
    """A5, wire.md: the line inspects, says the finding, and acts the second time; the answer names how to undo it."""
    session_id = lives.die(WRITE, PRESENT)
    lives.place.write("a.txt", OTHER)
    client = lives.start()
    first = client.say("/recovery restore", sessionId=session_id)["text"]
    assert "Say /recovery restore again" in first
    assert content(lives) == OTHER
    second = client.say("/recovery restore", sessionId=session_id)["text"]
    assert content(lives) == OLD
    (undo,) = re.findall(r"/recovery restore ([0-9a-f]{8})", second)
    client.say(f"/recovery inspect {undo}", sessionId=session_id)
    assert "restored" in client.say(f"/recovery restore {undo}", sessionId=session_id)["text"]
    assert content(lives) == OTHER


def test_a_question_offers_it(lives: Lives) -> None:
    """wire.md: called without an inspection, the command asks; its titles are those that are offered."""
    session_id = lives.die(WRITE, PRESENT)
    lives.place.write("a.txt", OTHER)
    client = lives.start()
    call = only(client.opened(session_id)["snapshot"])
    sent = client.send_command("recovery.restore", sessionId=session_id, attemptId=call["attemptId"])
    question = client.question()
    titles = [action["title"] for action in question["params"]["actions"]]
    assert titles == ["Confirm", "Reject", "Continue without knowing", "Restore", "Later"]
    client.answer_to(question, "Restore")
    client.command_result("recovery.restore", sent)
    assert content(lives) == OLD


def test_what_changed_since_is_shown_first(lives: Lives) -> None:
    """A5, [I8]: `inspectFirst` with the new inspection; nothing has changed; on that one it goes on."""
    session_id = lives.die(WRITE, PRESENT)
    client = lives.start()
    call = opened(client, session_id)
    seen = client.inspected(session_id, call["attemptId"])["inspection"]
    lives.place.write("a.txt", OTHER)
    data = refused(client, session_id, "inspectFirst", call["attemptId"], "restore", seen["inspectionId"])
    assert data["inspection"]["check"] == "conflict"
    assert content(lives) == OTHER
    client.resolve(client.snapshot(session_id), call["attemptId"], "restore", data["inspection"]["inspectionId"])
    assert content(lives) == OLD


def test_a_document_with_unsaved_changes(lives: Lives) -> None:
    """A5: nothing is put under what the person has not saved."""
    session_id = lives.die(WRITE, PRESENT)
    client = lives.start()
    call = opened(client, session_id)
    uri = (lives.place.workspace / "a.txt").as_uri()
    item = {"uri": uri, "languageId": "plaintext", "version": 1, "text": NEW}
    client.notify("textDocument/didOpen", {"textDocument": item})
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "typing\n"}]}
    client.notify("textDocument/didChange", change)
    seen = client.inspected(session_id, call["attemptId"])["inspection"]
    data = refused(client, session_id, "notOffered", call["attemptId"], "restore", seen["inspectionId"])
    assert "unsaved" in data["why"]
    assert content(lives) == NEW


def test_a_command_brings_nothing_back(lives: Lives) -> None:
    """A5: there is no content before; it is neither offered nor done."""
    session_id = lives.die("run touch made.txt", PRESENT)
    client = lives.start(retry=True)
    call = only(client.opened(session_id)["snapshot"])
    looked = client.inspected(session_id, call["attemptId"])
    assert only(looked["snapshot"])["actions"] == ["inspect", "confirm", "reject", "waive"]
    seen = looked["inspection"]["inspectionId"]
    for action in ("restore", "retry"):
        refused(client, session_id, "notOffered", call["attemptId"], action, seen)


# --- retry ----------------------------------------------------------------------------------------------------------


def test_through_a_real_kill(retried: tuple[str, Lives]) -> None:
    """F1, F2, F3, B3, N2: unchanged, settled as absent and shown; offered after an inspection; it runs once, with the
    same key; then the old one is superseded, and a second retry is refused."""
    session_id, lives = retried
    client = lives.start()
    client.squiggle("a.txt", "checked-write")
    snapshot = client.opened(session_id)["snapshot"]
    assert snapshot["retryEnabled"] is True
    call = shown(client, session_id)
    assert (call["settled"], call["actions"]) == ("checked_absent", ["inspect"])
    looked = client.inspected(session_id, call["attemptId"])
    assert looked["inspection"]["state"] == "absent_fenced"
    assert [one["actions"] for one in looked["snapshot"]["settled"]] == [["inspect", "retry"]]
    assert [one["title"] for one in client.code_actions("a.txt")] == ["Steadyhand: Inspect", "Steadyhand: Retry"]
    seen = looked["inspection"]["inspectionId"]
    after = client.resolve(looked["snapshot"], call["attemptId"], "retry", seen)["snapshot"]
    assert content(lives) == NEW
    assert after["statistics"]["retried"] == 1
    refused(client, session_id, "alreadyResolved", call["attemptId"], "retry", seen)

    old, new = lives.having(session_id, "intent")
    assert (new["key"], new["retryOf"]) == (old["key"], old["attemptId"])
    assert new["argumentsDigest"] == old["argumentsDigest"]
    assert new["attemptId"] != old["attemptId"]
    assert new["callId"] != old["callId"]
    absent, superseded = lives.having(session_id, "settlement")
    assert (absent["settled"], superseded["settled"]) == ("checked_absent", "superseded")
    assert superseded["supersededBy"] == new["attemptId"]
    assert superseded["seq"] == new["seq"] + 1
    told = [_state(one, new["callId"]) for one in client.notifications("steadyhand/turn/event")]
    assert [state for state in told if state is not None] == ["waiting", "running", "returned"]


def _state(told: Json, call_id: str) -> str | None:
    event = told["event"]
    return event["call"]["state"] if event["kind"] == "call" and event["call"]["callId"] == call_id else None


def test_in_ask_mode_permission_is_asked(retried: tuple[str, Lives]) -> None:
    """F2, G2: with the stored arguments; refused, the new attempt is refused and the old one stays superseded."""
    session_id, lives = retried
    client = lives.start(mode="ask", permission=True)
    client.opened(session_id)
    client.own("session/setMode", sessionId=session_id, mode="ask")
    call = shown(client, session_id)
    looked = client.inspected(session_id, call["attemptId"])
    sent = client.send_command(
        "recovery.retry", sessionId=session_id, attemptId=call["attemptId"],
        inspectionId=looked["inspection"]["inspectionId"],
    )  # fmt: skip
    question = client.question("steadyhand/permission/ask")
    assert question["params"]["arguments"] == '{"content":"new\\n","path":"a.txt"}'
    client.answer_to(question, "reject")
    client.command_result("recovery.retry", sent)
    assert content(lives) == OLD
    (result,) = [one for one in lives.having(session_id, "result") if one["outcome"] == "refused"]
    assert result["reason"] == "denied"
    assert shown(client, session_id)["settled"] == "superseded"


def test_switched_off_it_is_not_shown(lives: Lives) -> None:
    """F1: off by default: not in the actions, and refused."""
    session_id = lives.die(WRITE, REPLACING)
    client = lives.start()
    call = opened(client, session_id)
    looked = client.inspected(session_id, call["attemptId"])
    assert looked["snapshot"]["retryEnabled"] is False
    assert [one["actions"] for one in looked["snapshot"]["settled"]] == [["inspect"]]
    seen = looked["inspection"]["inspectionId"]
    refused(client, session_id, "retryDisabled", call["attemptId"], "retry", seen)


def test_what_is_there_is_not_tried_again(lives: Lives) -> None:
    """F3: `retryUnsafe`, with the reason in words."""
    session_id = lives.die(WRITE, PRESENT)
    client = lives.start(retry=True)
    call = opened(client, session_id)
    seen = client.inspected(session_id, call["attemptId"])["inspection"]["inspectionId"]
    data = refused(client, session_id, "retryUnsafe", call["attemptId"], "retry", seen)
    assert "satisfied" in data["why"]
    assert content(lives) == NEW


def test_a_later_attempt_on_the_same_file(retried: tuple[str, Lives]) -> None:
    """F3: another session's write has started since; the file was put back by hand, and still it is refused."""
    session_id, lives = retried
    client = lives.start()
    call = opened(client, session_id)
    client.say('write a.txt with "other\\n"')
    lives.place.write("a.txt", OLD)
    seen = client.inspected(session_id, call["attemptId"])["inspection"]
    assert seen["state"] == "absent_fenced"
    data = refused(client, session_id, "retryUnsafe", call["attemptId"], "retry", seen["inspectionId"])
    assert "has started since" in data["why"]
    assert content(lives) == OLD


def test_in_a_parked_turn(retried: tuple[str, Lives]) -> None:
    """A3: everything but retry is carried out beside it."""
    session_id, lives = retried
    client = lives.start(settle="ask", permission=True)
    client.opened(session_id)
    client.own("session/setMode", sessionId=session_id, mode="ask")
    call = shown(client, session_id)
    turn = client.ask_turn("write b.txt with b", sessionId=session_id)
    question = client.question("steadyhand/permission/ask")
    seen = client.inspected(session_id, call["attemptId"])["inspection"]["inspectionId"]
    refused(client, session_id, "turnRunning", call["attemptId"], "retry", seen)
    client.answer_to(question, "reject")
    client.command_result("ask", turn)


def test_a_retry_that_is_killed_too(retried: tuple[str, Lives]) -> None:
    """F2, F3, C1, C2: killed once more before the exchange, its own attempt is absent and can be tried again; the key
    is the same for all three, and it happens once."""
    session_id, lives = retried
    dying = lives.start(REPLACING)
    call = opened(dying, session_id)
    seen = dying.inspected(session_id, call["attemptId"])["inspection"]["inspectionId"]
    dying.send_command("recovery.retry", sessionId=session_id, attemptId=call["attemptId"], inspectionId=seen)
    assert dying.wait_exit(20) == -9
    client = lives.start()
    call = opened(client, session_id)
    assert call["settled"] == "checked_absent"
    looked = client.inspected(session_id, call["attemptId"])
    client.resolve(looked["snapshot"], call["attemptId"], "retry", looked["inspection"]["inspectionId"])
    assert content(lives) == NEW
    intents = lives.having(session_id, "intent")
    assert len(intents) == 3
    assert len({intent["key"] for intent in intents}) == 1
    assert [one["outcome"] for one in lives.having(session_id, "result")].count("returned") == 1


def test_killed_right_after_the_start(lives: Lives, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3: the same where nothing at all was done after *started*; in the chat."""
    session_id = lives.die(WRITE, ABSENT)
    monkeypatch.setenv(RETRY_VARIABLE, "1")
    client = lives.start()
    assert "Say /recovery retry again" in client.say("/recovery retry", sessionId=session_id)["text"]
    assert "tried again." in client.say("/recovery retry", sessionId=session_id)["text"]
    assert content(lives) == NEW
