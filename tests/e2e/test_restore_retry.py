"""Restore and retry as a client uses them, with real kills of the shipped server (rows A5, B3, F1-F3; case 74).

By `recovery/resolve`, by command, by code action and in the chat: what is offered when, which code a refusal has, and
what the files and the journal contain then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import TypedClient, only
from tests.support.process_server import ABSENT, PRESENT, ServerProcesses, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only

pytestmark = linux_only

OLD, NEW, OTHER = "old\n", "new\n", "somebody's\n"
WRITE = 'write a.txt with "new\\n"'
RETRY_VARIABLE = "STEADYHAND_RECOVERY_RETRY"
REVIEW = ["Steadyhand: Keep", "Steadyhand: Undo this change"]
"""The code actions at a change under review, after those of the diagnostic."""
REPLACING: Json = {"verb": "exchange", "target": "a.txt"}
CODES = {"retryUnsafe": -32057, "alreadyResolved": -32055, "inspectFirst": -32054, "retryDisabled": -32056,
         "turnRunning": -32052, "notOffered": -32061, "recoveryRequired": -32060}  # fmt: skip


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", OLD)
        yield found


@pytest.fixture
def retried(servers: ServerProcesses, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ServerProcesses]:
    """A server killed right before the exchange; the environment switches retry on for the later servers."""
    session_id = servers.kill_in_turn(WRITE, REPLACING)
    assert (servers.root / "a.txt").read_text() == OLD
    monkeypatch.setenv(RETRY_VARIABLE, "1")
    return session_id, servers


def content(servers: ServerProcesses) -> str:
    return (servers.root / "a.txt").read_text()


def shown(client: TypedClient, session_id: str) -> Json:
    """The only effect, unresolved or settled."""
    snapshot = client.snapshot(session_id)
    found: list[Json] = snapshot["calls"] + snapshot["settled"]
    assert len(found) == 1
    return found[0]


def opened(client: TypedClient, session_id: str) -> Json:
    """The only effect, after the session is opened."""
    client.opened(session_id)
    return shown(client, session_id)


def refused(client: TypedClient, session_id: str, kind: str, attempt_id: str, action: str, inspection_id: str) -> Json:
    before = client.workspace.journal(session_id)
    error = client.refusal(lambda: client.resolve(client.snapshot(session_id), attempt_id, action, inspection_id))
    assert (error.code, error.data["kind"]) == (CODES[kind], kind)
    if "inspection" not in error.data:
        assert client.workspace.journal(session_id) == before
    data: Json = error.data
    return data


# --- restore --------------------------------------------------------------------------------------------------------


def test_restore_of_a_conflict_is_undone_by_restoring_again(servers: ServerProcesses) -> None:
    """A5, J14, A8, case 74: restore is offered after an inspection. It settles the old attempt and removes its
    diagnostic. By command, with the id of the new attempt, the content from before the restore comes back."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    servers.workspace.write("a.txt", OTHER)
    client = servers.start()
    client.wait_diagnostic("a.txt", "uncertain-write")
    call = only(client.snapshot(session_id))
    looked = client.inspected(session_id, call["attemptId"])
    assert only(looked["snapshot"])["actions"] == ["inspect", "confirm", "reject", "waive", "restore"]
    done = client.resolve(
        looked["snapshot"], call["attemptId"], "restore", looked["inspection"]["inspectionId"]
    )["snapshot"]  # fmt: skip
    assert content(servers) == OLD
    assert done["calls"] == []
    assert [(one["settled"], one["actions"]) for one in done["settled"]] == [("restored", [])]
    assert done["statistics"]["restored"] == 1
    client.wait_diagnostic("a.txt", None)
    (settlement,) = servers.having(session_id, "settlement")
    assert (settlement["settled"], settlement["by"]) == ("restored", "user")

    (intent,) = [one for one in servers.having(session_id, "intent") if one.get("restoreOf") == call["attemptId"]]
    named = {"sessionId": session_id, "attemptId": intent["attemptId"]}
    again = client.command("recovery.inspect", **named)["inspection"]
    assert again["check"] == "satisfied"
    (path,) = again["paths"]
    assert path["before"]["exists"]
    assert path["intended"]["digest"] == path["now"]["digest"]
    client.command("recovery.restore", **named, inspectionId=again["inspectionId"])
    assert content(servers) == OTHER
    assert len(servers.having(session_id, "settlement")) == 1


def test_code_action_restores_an_effect_that_was_checked_present(servers: ServerProcesses) -> None:
    """A8, B3: an effect that was checked present is still shown, with Inspect and Restore at the file, and as a change
    under review (V4); afterwards neither a diagnostic nor a change under review is left."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    client = servers.start()
    client.wait_diagnostic("a.txt", "checked-write")
    actions = client.code_actions("a.txt")
    assert [action["title"] for action in actions] == ["Steadyhand: Inspect", *REVIEW]
    client.run(actions[0]["command"])
    actions = client.code_actions("a.txt")
    assert [action["title"] for action in actions] == ["Steadyhand: Inspect", "Steadyhand: Restore", *REVIEW]
    client.run(actions[1]["command"])
    assert content(servers) == OLD
    client.wait_diagnostic("a.txt", None)
    assert client.code_actions("a.txt") == []
    assert [one["settled"] for one in servers.having(session_id, "settlement")] == ["checked_present", "restored"]


def test_chat_line_restores_when_repeated_and_names_the_undo(servers: ServerProcesses) -> None:
    """A5, docs/protocol.md: the line inspects, shows the finding, and acts the second time; the answer says how to undo
    it."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    servers.workspace.write("a.txt", OTHER)
    client = servers.start()
    first = client.say("/recovery restore", sessionId=session_id)["text"]
    assert "Say /recovery restore again" in first
    assert content(servers) == OTHER
    second = client.say("/recovery restore", sessionId=session_id)["text"]
    assert content(servers) == OLD
    (undo,) = re.findall(r"/recovery restore ([0-9a-f]{8})", second)
    client.say(f"/recovery inspect {undo}", sessionId=session_id)
    assert "restored" in client.say(f"/recovery restore {undo}", sessionId=session_id)["text"]
    assert content(servers) == OTHER


def test_restore_command_without_inspection_asks(servers: ServerProcesses) -> None:
    """docs/protocol.md: called without an inspection, the command asks; the titles are those of the offered actions."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    servers.workspace.write("a.txt", OTHER)
    client = servers.start()
    call = only(client.opened(session_id)["snapshot"])
    sent = client.send_command("recovery.restore", sessionId=session_id, attemptId=call["attemptId"])
    question = client.question()
    titles = [action["title"] for action in question["params"]["actions"]]
    assert titles == ["Confirm", "Reject", "Continue without knowing", "Restore", "Later"]
    client.answer_to(question, "Restore")
    client.command_result("recovery.restore", sent)
    assert content(servers) == OLD


def test_restore_after_a_change_answers_inspect_first(servers: ServerProcesses) -> None:
    """A5, [I8]: `inspectFirst` with the new inspection; nothing has changed on disk; with that inspection the restore
    runs."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    client = servers.start()
    call = opened(client, session_id)
    seen = client.inspected(session_id, call["attemptId"])["inspection"]
    servers.workspace.write("a.txt", OTHER)
    data = refused(client, session_id, "inspectFirst", call["attemptId"], "restore", seen["inspectionId"])
    assert data["inspection"]["check"] == "conflict"
    assert content(servers) == OTHER
    client.resolve(client.snapshot(session_id), call["attemptId"], "restore", data["inspection"]["inspectionId"])
    assert content(servers) == OLD


def test_restore_under_unsaved_changes_is_refused(servers: ServerProcesses) -> None:
    """A5: the server writes no file that has unsaved changes in the editor."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    client = servers.start()
    call = opened(client, session_id)
    uri = (servers.root / "a.txt").as_uri()
    item = {"uri": uri, "languageId": "plaintext", "version": 1, "text": NEW}
    client.notify("textDocument/didOpen", {"textDocument": item})
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": "typing\n"}]}
    client.notify("textDocument/didChange", change)
    seen = client.inspected(session_id, call["attemptId"])["inspection"]
    data = refused(client, session_id, "notOffered", call["attemptId"], "restore", seen["inspectionId"])
    assert "unsaved" in data["why"]
    assert content(servers) == NEW


def test_command_can_be_neither_restored_nor_retried(servers: ServerProcesses) -> None:
    """A5: there is no content before; the action is neither offered nor carried out."""
    session_id = servers.kill_in_turn("run touch made.txt", PRESENT)
    client = servers.start(retry=True)
    call = only(client.opened(session_id)["snapshot"])
    looked = client.inspected(session_id, call["attemptId"])
    assert only(looked["snapshot"])["actions"] == ["inspect", "confirm", "reject", "waive"]
    seen = looked["inspection"]["inspectionId"]
    for action in ("restore", "retry"):
        refused(client, session_id, "notOffered", call["attemptId"], action, seen)


# --- retry ----------------------------------------------------------------------------------------------------------


def test_retry_after_a_real_kill_runs_once_with_the_same_key(retried: tuple[str, ServerProcesses]) -> None:
    """F1, F2, F3, B3, N2: unchanged, settled as absent and shown. Retry is offered after an inspection. It runs once,
    with the same key. Then the old attempt is superseded, and a second retry is refused."""
    session_id, servers = retried
    client = servers.start()
    client.wait_diagnostic("a.txt", "checked-write")
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
    assert content(servers) == NEW
    assert after["statistics"]["retried"] == 1
    refused(client, session_id, "alreadyResolved", call["attemptId"], "retry", seen)

    old, new = servers.change_intents(session_id)
    assert (new["key"], new["retryOf"]) == (old["key"], old["attemptId"])
    assert new["argumentsDigest"] == old["argumentsDigest"]
    assert new["attemptId"] != old["attemptId"]
    assert new["callId"] != old["callId"]
    absent, superseded = servers.having(session_id, "settlement")
    assert (absent["settled"], superseded["settled"]) == ("checked_absent", "superseded")
    assert superseded["supersededBy"] == new["attemptId"]
    assert superseded["seq"] == new["seq"] + 1
    told = [_state(one, new["callId"]) for one in client.notifications("steadyhand/turn/event")]
    assert [state for state in told if state is not None] == ["waiting", "running", "returned"]


def _state(told: Json, call_id: str) -> str | None:
    event = told["event"]
    return event["call"]["state"] if event["kind"] == "call" and event["call"]["callId"] == call_id else None


def test_retry_in_ask_mode_asks_for_permission(retried: tuple[str, ServerProcesses]) -> None:
    """F2, G2: with the stored arguments; if the user refuses, the new attempt is refused and the old one stays
    superseded."""
    session_id, servers = retried
    client = servers.start(mode="ask", permission=True)
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
    assert content(servers) == OLD
    (result,) = [one for one in servers.having(session_id, "result") if one["outcome"] == "refused"]
    assert result["reason"] == "denied"
    assert shown(client, session_id)["settled"] == "superseded"


def test_retry_is_off_by_default_and_refused(servers: ServerProcesses) -> None:
    """F1: off by default: not in the actions, and refused."""
    session_id = servers.kill_in_turn(WRITE, REPLACING)
    client = servers.start()
    call = opened(client, session_id)
    looked = client.inspected(session_id, call["attemptId"])
    assert looked["snapshot"]["retryEnabled"] is False
    assert [one["actions"] for one in looked["snapshot"]["settled"]] == [["inspect"]]
    seen = looked["inspection"]["inspectionId"]
    refused(client, session_id, "retryDisabled", call["attemptId"], "retry", seen)


def test_retry_of_a_present_effect_is_unsafe(servers: ServerProcesses) -> None:
    """F3: `retryUnsafe`, with the reason in a sentence."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    client = servers.start(retry=True)
    call = opened(client, session_id)
    seen = client.inspected(session_id, call["attemptId"])["inspection"]["inspectionId"]
    data = refused(client, session_id, "retryUnsafe", call["attemptId"], "retry", seen)
    assert "satisfied" in data["why"]
    assert content(servers) == NEW


def test_retry_after_a_later_attempt_on_the_file_is_unsafe(retried: tuple[str, ServerProcesses]) -> None:
    """F3: a write of another session has started since; the file was put back by hand, and retry is still refused."""
    session_id, servers = retried
    client = servers.start()
    call = opened(client, session_id)
    client.say('write a.txt with "other\\n"')
    servers.workspace.write("a.txt", OLD)
    seen = client.inspected(session_id, call["attemptId"])["inspection"]
    assert seen["state"] == "absent_fenced"
    data = refused(client, session_id, "retryUnsafe", call["attemptId"], "retry", seen["inspectionId"])
    assert "has started since" in data["why"]
    assert content(servers) == OLD


def test_retry_beside_a_parked_turn_is_refused(retried: tuple[str, ServerProcesses]) -> None:
    """A3: beside a parked turn every action but retry is carried out."""
    session_id, servers = retried
    client = servers.start(settle="ask", permission=True)
    client.opened(session_id)
    client.own("session/setMode", sessionId=session_id, mode="ask")
    call = shown(client, session_id)
    turn = client.ask_turn("write b.txt with b", sessionId=session_id)
    question = client.question("steadyhand/permission/ask")
    seen = client.inspected(session_id, call["attemptId"])["inspection"]["inspectionId"]
    refused(client, session_id, "turnRunning", call["attemptId"], "retry", seen)
    client.answer_to(question, "reject")
    client.command_result("ask", turn)


def test_killed_retry_is_retried_with_the_same_key(retried: tuple[str, ServerProcesses]) -> None:
    """F2, F3, C1, C2: killed again before the exchange, the retry itself is absent and can be retried; the key is the
    same for all three attempts, and the effect happens once."""
    session_id, servers = retried
    dying = servers.start(REPLACING)
    call = opened(dying, session_id)
    seen = dying.inspected(session_id, call["attemptId"])["inspection"]["inspectionId"]
    dying.send_command("recovery.retry", sessionId=session_id, attemptId=call["attemptId"], inspectionId=seen)
    assert dying.wait_exit() == -9
    client = servers.start()
    call = opened(client, session_id)
    assert call["settled"] == "checked_absent"
    looked = client.inspected(session_id, call["attemptId"])
    client.resolve(looked["snapshot"], call["attemptId"], "retry", looked["inspection"]["inspectionId"])
    assert content(servers) == NEW
    intents = servers.change_intents(session_id)
    assert len(intents) == 3
    assert len({intent["key"] for intent in intents}) == 1
    assert [one["outcome"] for one in servers.having(session_id, "result")].count("returned") == 1


def test_retry_in_the_chat_after_a_kill_right_after_started(
    servers: ServerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3: the same where nothing was done after *started*; in the chat."""
    session_id = servers.kill_in_turn(WRITE, ABSENT)
    monkeypatch.setenv(RETRY_VARIABLE, "1")
    client = servers.start()
    assert "Say /recovery retry again" in client.say("/recovery retry", sessionId=session_id)["text"]
    assert "retried." in client.say("/recovery retry", sessionId=session_id)["text"]
    assert content(servers) == NEW
