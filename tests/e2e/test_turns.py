"""Whole turns over stdio with the practice model: events, permission, cancelling, commands, settings
(docs/protocol.md).

The client checks every answer and notification against the protocol (tests/support/lsp_clients.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.lsp_clients import CheckedClient, opened_calls
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import UNANSWERED, ErrorAnswer, Json
from tests.support.systems import linux_only

CANCELLED = -32800
INVALID = -32602


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def replied(client: CheckedClient, turn_id: str) -> list[str]:
    return [call["reply"]["text"] for call in client.calls(turn_id)]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# --- one turn -----------------------------------------------------------------------------------------------------


def test_write_turn_reports_events_and_changes_the_file(servers: ServerProcesses) -> None:
    """Rows D3, G1, G6: the events go from began to ended, the call goes through its states, the file is on disk, and
    the opened session shows the same."""
    client = servers.start_checked()
    session = client.ours("session/create", title="First")
    started = client.send_prompt(session, "write a.txt with hello", "c1")
    assert (started["accepted"], started["duplicate"], started["queued"]) == (True, False, False)
    ended = client.ended(started["turnId"])
    assert ended == {"kind": "ended", "reason": "done", "changed": [{"path": "a.txt", "change": "created"}]}
    events = client.events(started["turnId"])
    assert events[0] == {"kind": "began", "clientMessageId": "c1"}
    assert events[-1] == ended
    calls = [event["call"] for event in events if event["kind"] == "call"]
    states = [call["state"] for call in calls if call["tool"] == "write_file"]
    assert states == ["proposed", "waiting", "running", "returned"]
    assert servers.content("a.txt") == "hello"
    opened = client.ours("session/open", sessionId=session["sessionId"])
    assert opened["session"]["epoch"] == session["epoch"]
    assert [message["role"] for message in opened["messages"]] == ["user", "assistant", "assistant", "assistant"]
    assert opened_calls(opened) == client.calls(started["turnId"])
    assert "done: 1 of 1" in opened["messages"][3]["text"]
    assert client.shut_down() == 0


def test_command_gets_attempt_ids_workspace_and_no_credentials(servers: ServerProcesses) -> None:
    """Rows N2, E1: a real child process reads the ids of attempt and session and the key, runs in the workspace, and
    gets no credential of the server."""
    client = servers.start_checked(env={"DEPLOY_TOKEN": "tok-en", "PLAIN": "plain"}, options={"mode": "auto"})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "run env; pwd; exit 3")["turnId"]
    assert client.ended(turn_id)["reason"] == "done"
    *_, call = client.calls(turn_id)
    text = call["reply"]["text"]
    assert call["state"] == "returned"
    assert "exit code 3" in text
    assert f"STEADYHAND_ATTEMPT_ID={call['attemptId']}\n" in text
    assert f"STEADYHAND_SESSION_ID={session['sessionId']}\n" in text
    key = next(record["key"] for record in servers.records(session["sessionId"]) if record["kind"] == "intent")
    assert f"STEADYHAND_IDEMPOTENCY_KEY={key}\n" in text
    assert "PLAIN=plain" in text
    assert "tok-en" not in text
    assert str(servers.root) in text


# --- permission ---------------------------------------------------------------------------------------------------


def test_permission_by_own_request_shows_the_call_and_carries_a_note(servers: ServerProcesses) -> None:
    """docs/protocol.md: the question has the tool, the title, the canonical arguments, the diff and the options. A
    refusal with a note reaches the model."""
    asked: list[Json] = []

    def answer(params: Json) -> Json:
        asked.append(params)
        return {"option": "reject", "note": "not today"}

    client = servers.start_checked(permission=answer)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    assert client.ended(turn_id)["changed"] == []
    (question,) = asked
    assert question["arguments"] == '{"content":"hello","path":"a.txt"}'
    assert question["title"] == "write_file: a.txt"
    assert "+hello" in question["diff"]
    assert [option["id"] for option in question["options"]] == ["once", "session", "workspace", "user", "reject"]
    *_, call = client.calls(turn_id)
    assert (call["state"], call["reason"]) == ("refused", "denied")
    assert "not today" in call["reply"]["text"]
    assert servers.content("a.txt") is None


BY_MESSAGE = [
    ({"title": "Allow once"}, "returned", None),
    ({"title": "Allow in this session"}, "returned", None),
    ({"title": "Reject"}, "refused", "denied"),
    ({"title": "Something else"}, "refused", "not_answered"),
    (None, "refused", "not_answered"),
    (ErrorAnswer({"code": -32603, "message": "closed"}), "refused", "not_answered"),
]


def test_permission_by_message_without_an_answer_is_refused(servers: ServerProcesses) -> None:
    """docs/protocol.md: the server asks a client without our requests by showMessageRequest; without a valid answer
    there is no permission (C5)."""
    asked: list[Json] = []

    def chosen(params: Json) -> Any:
        asked.append(params)
        answer = BY_MESSAGE[len(asked) - 1][0]
        if isinstance(answer, ErrorAnswer):
            raise answer
        return answer

    client = servers.start_checked(permission=None)
    client.answer_with("window/showMessageRequest", chosen)
    for number, (_, state, reason) in enumerate(BY_MESSAGE):
        turn_id = client.send_prompt(client.ours("session/create"), f"write {number}.txt with hello")["turnId"]
        client.ended(turn_id)
        *_, call = client.calls(turn_id)
        assert (call["state"], call.get("reason")) == (state, reason)
        titles = [action["title"] for action in asked[-1]["actions"]]
        assert titles == ["Allow once", "Allow in this session", "Reject"]
        assert f"{number}.txt" in asked[-1]["message"]
        assert servers.content(f"{number}.txt") == ("hello" if state == "returned" else None)
    assert len(asked) == len(BY_MESSAGE)


def test_permission_message_for_a_long_command_offers_to_allow_it_only_at_its_end(servers: ServerProcesses) -> None:
    """O7, case 146: the whole command comes in messages of 2,000 characters; the last one shows what the end does."""
    asked: list[Json] = []

    def chosen(params: Json) -> Any:
        asked.append(params)
        titles = [action["title"] for action in params["actions"]]
        return {"title": "Show more" if "Show more" in titles else "Reject"}

    client = servers.start_checked(permission=None)
    client.answer_with("window/showMessageRequest", chosen)
    client.say(client.ours("session/create"), "run true " + "x" * 5_000 + "; touch hidden")
    assert max(len(one["message"]) for one in asked) <= 2_000
    assert "x" * 5_000 + "; touch hidden" in "".join(one["message"] for one in asked)
    titles = [[action["title"] for action in one["actions"]] for one in asked]
    assert titles == [["Show more", "Reject"]] * 2 + [["Allow once", "Allow in this session", "Reject"]]
    assert not (servers.root / "hidden").exists()


def test_permission_answer_of_a_wrong_shape_counts_as_no_answer(servers: ServerProcesses) -> None:
    """docs/protocol.md: the server reads an answer as strictly as a request. An answer that does not fit is no
    answer."""
    answers: list[Any] = [
        {"option": "maybe"},
        {"option": "waive"},
        {},
        None,
        {"option": "once", "more": 1},
        ["once"],
        5,
    ]
    left = iter(answers)
    client = servers.start_checked(permission=lambda _: next(left))
    session = client.ours("session/create")
    for answer in answers:
        turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
        client.ended(turn_id)
        assert client.calls(turn_id)[-1]["reason"] == "not_answered", answer
    assert servers.content("a.txt") is None


def test_cancel_withdraws_the_open_permission_question(servers: ServerProcesses) -> None:
    """Rows G8, case 82: a cancel withdraws the question, and a late answer changes nothing."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    question = client.asked("steadyhand/permission/ask")
    assert client.ours("turn/cancel", sessionId=session["sessionId"], turnId=turn_id) == {"cancelled": True}
    assert client.ended(turn_id)["reason"] == "cancelled"
    client.notification("$/cancelRequest", that=lambda params: params["id"] == question["id"])
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"option": "once"}})
    assert client.ours("turn/cancel", sessionId=session["sessionId"], turnId=turn_id) == {"cancelled": False}
    assert client.calls(turn_id)[-1]["state"] == "notRun"
    assert servers.content("a.txt") is None
    assert "started" not in servers.kinds(session["sessionId"])


def test_write_is_refused_if_the_file_changes_during_the_question(servers: ServerProcesses) -> None:
    """Row W1, case 71: the user allowed a change of content that is not there any more."""
    (servers.root / "a.txt").write_text("old")

    def answer(_: Json) -> Json:
        (servers.root / "a.txt").write_text("theirs")
        return {"option": "once"}

    client = servers.start_checked(permission=answer)
    turn_id = client.send_prompt(client.ours("session/create"), "write a.txt with new")["turnId"]
    client.ended(turn_id)
    assert client.calls(turn_id)[-1]["reason"] == "changed"
    assert servers.content("a.txt") == "theirs"


# --- stopping -----------------------------------------------------------------------------------------------------


@linux_only
def test_cancel_kills_the_process_group_and_skips_later_calls(servers: ServerProcesses) -> None:
    """Rows G8, C6, E5: the server ends the whole process group, the output so far is the reply, and no later call
    runs."""
    client = servers.start_checked(options={"mode": "auto"})
    session = client.ours("session/create")
    line = "run echo $$ > pid; echo so far; touch ready; sleep 60\nwrite a.txt with late"
    turn_id = client.send_prompt(session, line)["turnId"]
    wait_for_file(servers.root / "ready")
    begun = time.monotonic()
    assert client.ours("turn/cancel", sessionId=session["sessionId"], turnId=turn_id) == {"cancelled": True}
    assert client.ended(turn_id)["reason"] == "cancelled"
    assert time.monotonic() - begun < 5
    *_, call = client.calls(turn_id)
    assert call["state"] == "stopped"
    assert "so far" in call["reply"]["text"]
    assert "may be half done" in call["reply"]["text"]
    assert gone(int((servers.root / "pid").read_text()))
    assert servers.content("a.txt") is None
    records = servers.kinds(session["sessionId"])
    assert "started" not in records[records.index("cancel") :]
    assert client.say(session, "say hello")["reason"] == "done"


def wait_for_file(path: Path) -> None:
    end = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} never came"
        time.sleep(0.01)


def test_close_ends_the_command_and_the_turn_before_it_is_answered(servers: ServerProcesses) -> None:
    """Row S2, case 98: a close ends the command and the turn, with the reason `closed`; it is answered when both have
    ended."""
    client = servers.start_checked(options={"mode": "auto"})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "run touch ready; sleep 60")["turnId"]
    wait_for_file(servers.root / "ready")
    assert client.ours("session/close", sessionId=session["sessionId"]) == {}
    assert client.events(turn_id)[-1]["reason"] == "closed"
    assert client.calls(turn_id)[-1]["state"] == "stopped"
    changed = client.notification("steadyhand/session/changed", that=lambda told: "epoch" not in told)
    assert changed["busy"] is False
    opened = client.ours("session/open", sessionId=session["sessionId"])
    assert opened["session"]["epoch"] != session["epoch"]
    assert opened["snapshot"]["calls"] == []


# --- steadyhand.ask, .cancel, .doctor -----------------------------------------------------------------------------


def test_ask_answers_at_the_end_of_the_turn(servers: ServerProcesses) -> None:
    """docs/protocol.md: the answer has text, reason and changed files. Without a session the command uses the last one,
    else a new one."""
    client = servers.start_checked(options={"mode": "auto"})
    first = client.command("ask", {"text": "write a.txt with hello"})
    assert first["reason"] == "done"
    assert "done: 1 of 1" in first["text"]
    assert first["changed"] == [{"path": "a.txt", "change": "created"}]
    second = client.command("ask", {"text": "say again"})
    assert second["sessionId"] == first["sessionId"]
    assert second["turnId"] != first["turnId"]
    assert len(client.ours("session/list")["sessions"]) == 1
    other = client.ours("session/create")
    third = client.command("ask", {"text": "say here", "sessionId": other["sessionId"]})
    assert third["sessionId"] == other["sessionId"]
    assert client.command("ask", {"text": "say once more"})["sessionId"] == other["sessionId"]
    assert client.command("ask", {"text": "/help"})["text"].startswith("/help")


def test_ask_without_wait_answers_at_once_and_shows_the_text_later(servers: ServerProcesses) -> None:
    """docs/protocol.md: with `wait` false the command is answered at once, and a message shows the text when the turn
    ends."""
    client = servers.start_checked()
    begun = client.command("ask", {"text": "say hello there", "wait": False})
    assert set(begun) == {"sessionId", "turnId"}
    shown = client.notification("window/showMessage", that=lambda told: "hello there" in told["message"])
    assert shown["type"] == 3


def test_ask_in_a_busy_session_is_queued_and_answered_after_its_turn(servers: ServerProcesses) -> None:
    """docs/protocol.md: the prompt is queued and answered when its own turn ends; the same id again gives the same turn
    (D1). A cancel pauses what waits (S9)."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    asked = {"text": "say second", "sessionId": session["sessionId"], "clientMessageId": "again"}
    ids = [client.ask("workspace/executeCommand", client.commanded("ask", asked)) for _ in range(2)]
    queue = client.notification("steadyhand/queue/changed", that=lambda told: bool(told["queue"]))["queue"]
    assert [item["text"] for item in queue] == ["say second"]
    assert [client.answers(each) for each in ids] == [[], []]
    client.ours("turn/cancel", sessionId=session["sessionId"], turnId=turn_id)
    client.notification(
        "steadyhand/queue/changed", that=lambda told: [one["paused"] for one in told["queue"]] == [True]
    )
    client.ours("queue/resume", sessionId=session["sessionId"], epoch=session["epoch"])
    results = [client.result(each) for each in ids]
    assert results[0] == results[1]
    assert "second" in results[0]["text"]


def test_cancel_request_for_ask_cancels_a_running_or_queued_turn(servers: ServerProcesses) -> None:
    """docs/protocol.md: `$/cancelRequest` works for the command of a running turn and for that of a queued one."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    asked = {"text": "write a.txt with hello", "sessionId": session["sessionId"], "clientMessageId": "c1"}
    running = client.ask("workspace/executeCommand", client.commanded("ask", asked))
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    later = {**asked, "text": "say never", "clientMessageId": "c2"}
    queued = client.ask("workspace/executeCommand", client.commanded("ask", later))
    client.notification("steadyhand/queue/changed", that=lambda told: len(told["queue"]) == 1)
    for each in (queued, running):
        client.notify("$/cancelRequest", {"id": each})
        assert client.answer(each)["error"]["code"] == CANCELLED
    client.notification("steadyhand/turn/event", that=lambda told: told["event"]["kind"] == "ended")
    for name in ("c1", "c2"):
        status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId=name)
        assert (status["state"], status["reason"]) == ("ended", "cancelled")
    assert servers.content("a.txt") is None


def test_cancel_command_stops_the_running_turn_and_reports_it(servers: ServerProcesses) -> None:
    """docs/protocol.md: `steadyhand.cancel` stops the running turn of the session, if there is one, and says whether
    there was."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    argument = {"sessionId": session["sessionId"]}
    assert client.command("cancel", argument) == {"cancelled": False}
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    assert client.command("cancel", argument) == {"cancelled": True}
    assert client.ended(turn_id)["reason"] == "cancelled"


def test_ask_resent_after_a_crash_is_answered_and_runs_nothing(servers: ServerProcesses) -> None:
    """Rows D1, D2: after a crash the same id is answered at once and runs nothing; no client waits for a turn that
    cannot end."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello", "c1")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    client.kill()
    client = servers.start_checked()
    asked = {"text": "write a.txt with hello", "sessionId": session["sessionId"], "clientMessageId": "c1"}
    result = client.command("ask", asked)
    assert result["turnId"] == turn_id
    assert "reason" not in result
    assert servers.content("a.txt") is None


def test_doctor_reports_version_paths_model_and_disk(servers: ServerProcesses) -> None:
    """docs/protocol.md: the version, Python, the paths, the model and the state of the journal's disk."""
    client = servers.start_checked()
    found = client.command("doctor")
    assert found["paths"]["state"] == str(servers.state.resolve())
    assert found["model"] == {"provider": "practice", "name": "practice"}
    assert found["journal"]["lock"] == "Session locks work."


# --- modes and settings -------------------------------------------------------------------------------------------


def test_set_mode_changes_permission_and_notifies(servers: ServerProcesses) -> None:
    """Row G2: mode plan refuses every effect, mode auto asks nothing, and the notification of the session has its new
    mode."""
    client = servers.start_checked(permission="reject")
    session = client.ours("session/create")
    changed = client.ours("session/setMode", sessionId=session["sessionId"], mode="plan")
    assert changed["mode"] == "plan"
    assert changed["epoch"] == session["epoch"]
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.ended(turn_id)
    assert client.calls(turn_id)[-1]["reason"] == "policy"
    client.ours("session/setMode", sessionId=session["sessionId"], mode="auto")
    assert client.say(session, "write a.txt with hello")["changed"] != []
    assert client.refusal("session/setMode", sessionId=session["sessionId"], mode="yolo")[0] == INVALID


def test_invalid_settings_fall_back_to_defaults_with_one_message(servers: ServerProcesses) -> None:
    """docs/protocol.md: a setting never fails a request; one message names every setting that is not used."""
    options = {
        "mode": "yolo", "recovery": {"settle": 5, "retry": "yes"}, "environment": {"add": ["A"]},
        "model": {"provider": "nobody", "name": None}, "unknown": {"key": 1},
    }  # fmt: skip
    client = servers.start_checked(options=options)
    session = client.ours("session/create")
    assert (session["mode"], session["model"]["provider"]) == ("ask", "practice")
    (shown,) = client.shown()
    for name in ("mode", "recovery.settle", "recovery.retry", "environment.add", "model.provider"):
        assert f"steadyhand.{name}" in shown
    assert "unknown" not in shown
    assert "model.name" not in shown
    assert client.say(session, "say hello")["reason"] == "done"
    assert len(client.shown()) == 1


def test_settings_of_a_wrong_type_are_ignored_with_a_message(servers: ServerProcesses) -> None:
    """docs/protocol.md: whatever initializationOptions holds, the server runs, and says once that it does not use
    it."""
    client = servers.start_checked(options=["text", 5])
    assert client.ours("session/create")["mode"] == "ask"
    assert len(client.shown()) == 1


def test_configuration_change_replaces_machine_settings_only(servers: ServerProcesses) -> None:
    """docs/protocol.md: `steadyhand.machine` in didChangeConfiguration replaces the settings for new sessions; other
    sections do not."""
    client = servers.start_checked(options={"mode": "edits"})
    assert client.ours("session/create")["mode"] == "edits"
    client.notify("workspace/didChangeConfiguration", {"settings": {"steadyhand": {"mode": "auto"}}})
    assert client.ours("session/create")["mode"] == "edits", "a workspace may not set it"
    machine = {"mode": "plan", "environment": {"add": {"ADDED": "by the user"}}}
    client.notify("workspace/didChangeConfiguration", {"settings": {"steadyhand": {"machine": machine}}})
    session = client.ours("session/create")
    assert session["mode"] == "plan"
    client.ours("session/setMode", sessionId=session["sessionId"], mode="auto")
    turn_id = client.send_prompt(session, "run env")["turnId"]
    client.ended(turn_id)
    assert "ADDED=by the user" in replied(client, turn_id)[0]
    for settings in (None, 5, {"steadyhand": {"machine": {"mode": 7}}}):
        client.notify("workspace/didChangeConfiguration", {"settings": settings})
    assert client.ours("session/create")["mode"] == "ask"
    assert len(client.shown()) == 1


def test_unavailable_model_ends_the_turn_with_advice(servers: ServerProcesses) -> None:
    """If the provider cannot answer, the turn ends with `modelFailed` and a sentence that says what to do."""
    client = servers.start_checked(options={"model": {"provider": "openai", "name": "x"}})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "hello")["turnId"]
    assert client.ended(turn_id)["reason"] == "modelFailed"
    (warning,) = [event for event in client.events(turn_id) if event["kind"] == "warning"]
    assert "OPENAI_API_KEY" in warning["text"], "it says where a key is looked for"
    client.command("ask", {"text": "hello again", "sessionId": session["sessionId"], "wait": False})
    shown = client.notification("window/showMessage", that=lambda told: "OPENAI_API_KEY" in told["message"])
    assert shown["type"] == 2, "a message gives the reason to a client that did not wait"


def test_cost_cap_ends_the_next_turn_also_after_a_restart(servers: ServerProcesses) -> None:
    """U2: the usage has the cost; at the cap the next turn ends with `cost` and its sentence, also after a restart."""
    cost = {"cap": 0.000001, "prices": {"practice/*": {"input": 0.1, "output": "0.2"}}}
    client = servers.start_checked(options={"cost": cost})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "say hello")["turnId"]
    assert client.ended(turn_id)["reason"] == "done"
    used = client.ours("usage", sessionId=session["sessionId"])
    assert used["cost"]["currency"] == "USD"
    assert float(used["cost"]["amount"]) >= 0.000001
    assert [event["code"] for event in client.events(turn_id) if event["kind"] == "warning"] == ["costNear"]
    ended = client.command("ask", {"text": "say more", "sessionId": session["sessionId"]})
    assert (ended["reason"], ended["text"]) == ("cost", "")
    client.close()
    client = servers.start_checked(options={"cost": cost})
    assert client.command("ask", {"text": "say more", "sessionId": session["sessionId"]})["reason"] == "cost"
    assert client.ours("usage", sessionId=session["sessionId"])["cost"] == used["cost"]


# --- progress -----------------------------------------------------------------------------------------------------


def progress(client: CheckedClient, turn_id: str) -> list[str]:
    return [told["value"]["kind"] for told in client.notifications("$/progress") if told["token"] == turn_id]


def test_progress_follows_the_turn_and_its_cancel_cancels_the_turn(servers: ServerProcesses) -> None:
    """docs/protocol.md: each turn has one token, which begins after the client created it and ends with the turn;
    cancelling it cancels the turn."""
    client = servers.start_checked(permission=lambda _: UNANSWERED, capabilities={"window": {"workDoneProgress": True}})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.notification("$/progress", that=lambda told: told["token"] == turn_id)
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    client.notify("window/workDoneProgress/cancel", {"token": turn_id})
    assert client.ended(turn_id)["reason"] == "cancelled"
    client.notification("$/progress", that=lambda told: told["token"] == turn_id and told["value"]["kind"] == "end")
    assert progress(client, turn_id) == ["begin", "end"]


def test_progress_is_not_reported_before_the_client_created_the_token(servers: ServerProcesses) -> None:
    """docs/protocol.md, LSP: the server reports nothing on a token before the client has created it, however short the
    turn is."""
    client = servers.start_checked(capabilities={"window": {"workDoneProgress": True}})
    client.answer_with("window/workDoneProgress/create", lambda _: UNANSWERED)
    turn_id = client.send_prompt(client.ours("session/create"), "say hello")["turnId"]
    client.ended(turn_id)
    made = client.asked("window/workDoneProgress/create")
    client.ours("session/list")
    assert progress(client, turn_id) == []
    client.send({"jsonrpc": "2.0", "id": made["id"], "result": None})
    client.notification("$/progress", that=lambda told: told["value"]["kind"] == "end")
    assert progress(client, turn_id) == ["begin", "end"]


def test_progress_is_omitted_without_the_capability(servers: ServerProcesses) -> None:
    """LSP: without the capability the server creates no token."""
    client = servers.start_checked()
    turn_id = client.send_prompt(client.ours("session/create"), "say hello")["turnId"]
    client.ended(turn_id)
    client.ours("session/list")
    assert not [each for each in client.messages if each.get("method") == "window/workDoneProgress/create"]
