"""Whole turns over stdio with the practice model: events, permission, stopping, commands, settings (wire.md).

Every answer and notification is held to the protocol by the client itself (tests/support/checked_client.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.checked_client import CheckedClient, Desk
from tests.support.raw_client import UNANSWERED, ErrorAnswer, Json
from tests.support.systems import linux_only

CANCELLED = -32800
INVALID = -32602


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place whose servers are ended and checked."""
    made = Desk.under(tmp_path)
    yield made
    made.close()


def replied(client: CheckedClient, turn_id: str) -> list[str]:
    return [call["reply"]["text"] for call in client.calls(turn_id)]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


# --- one turn -----------------------------------------------------------------------------------------------------


def test_a_whole_turn(desk: Desk) -> None:
    """Rows D3, G1, G6: began to ended, a call through its states, the file on disk, the same in the opened session."""
    client = desk.server()
    session = client.ours("session/create", title="First")
    started = client.send_prompt(session, "write a.txt with hello", "c1")
    assert (started["accepted"], started["duplicate"], started["queued"]) == (True, False, False)
    ended = client.ended(started["turnId"])
    assert ended == {"kind": "ended", "reason": "done", "changed": [{"path": "a.txt", "change": "created"}]}
    events = client.events(started["turnId"])
    assert events[0] == {"kind": "began", "clientMessageId": "c1"}
    assert events[-1] == ended
    states = [event["call"]["state"] for event in events if event["kind"] == "call"]
    assert states == ["proposed", "waiting", "running", "returned"]
    assert desk.content("a.txt") == "hello"
    opened = client.ours("session/open", sessionId=session["sessionId"])
    assert opened["session"]["epoch"] == session["epoch"]
    assert [message["role"] for message in opened["messages"]] == ["user", "assistant", "assistant"]
    assert opened["messages"][1]["calls"] == client.calls(started["turnId"])
    assert "done: 1 of 1" in opened["messages"][2]["text"]
    assert client.shut_down() == 0


def test_what_a_command_runs_in(desk: Desk) -> None:
    """Rows N2, E1: a real child reads attempt, key and session, in the workspace, and no credential of ours."""
    client = desk.server(env={"DEPLOY_TOKEN": "tok-en", "PLAIN": "plain"}, options={"mode": "auto"})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "run env; pwd; exit 3")["turnId"]
    assert client.ended(turn_id)["reason"] == "done"
    (call,) = client.calls(turn_id)
    text = call["reply"]["text"]
    assert call["state"] == "returned"
    assert "exit code 3" in text
    assert f"STEADYHAND_ATTEMPT_ID={call['attemptId']}\n" in text
    assert f"STEADYHAND_SESSION_ID={session['sessionId']}\n" in text
    key = next(record["key"] for record in desk.journal(session["sessionId"]) if record["kind"] == "intent")
    assert f"STEADYHAND_IDEMPOTENCY_KEY={key}\n" in text
    assert "PLAIN=plain" in text
    assert "tok-en" not in text
    assert str(desk.root) in text


# --- permission ---------------------------------------------------------------------------------------------------


def test_permission_by_our_own_request(desk: Desk) -> None:
    """wire.md: tool, title, canonical arguments, diff and options; a no with a note reaches the model."""
    asked: list[Json] = []

    def answer(params: Json) -> Json:
        asked.append(params)
        return {"option": "reject", "note": "not today"}

    client = desk.server(permission=answer)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    assert client.ended(turn_id)["changed"] == []
    (question,) = asked
    assert question["arguments"] == '{"content":"hello","path":"a.txt"}'
    assert question["title"] == "write_file: a.txt"
    assert "+hello" in question["diff"]
    assert [option["id"] for option in question["options"]] == ["once", "session", "workspace", "user", "reject"]
    (call,) = client.calls(turn_id)
    assert (call["state"], call["reason"]) == ("refused", "denied")
    assert "not today" in call["reply"]["text"]
    assert desk.content("a.txt") is None


BY_MESSAGE = [
    ({"title": "Allow once"}, "returned", None),
    ({"title": "Allow in this session"}, "returned", None),
    ({"title": "Reject"}, "refused", "denied"),
    ({"title": "Something else"}, "refused", "not_answered"),
    (None, "refused", "not_answered"),
    (ErrorAnswer({"code": -32603, "message": "closed"}), "refused", "not_answered"),
]


def test_permission_by_a_message(desk: Desk) -> None:
    """wire.md: a client without our requests is asked by showMessageRequest; no answer is never a yes (C5)."""
    asked: list[Json] = []

    def chosen(params: Json) -> Any:
        asked.append(params)
        answer = BY_MESSAGE[len(asked) - 1][0]
        if isinstance(answer, ErrorAnswer):
            raise answer
        return answer

    client = desk.server(permission=None)
    client.answer_with("window/showMessageRequest", chosen)
    for number, (_, state, reason) in enumerate(BY_MESSAGE):
        turn_id = client.send_prompt(client.ours("session/create"), f"write {number}.txt with hello")["turnId"]
        client.ended(turn_id)
        (call,) = client.calls(turn_id)
        assert (call["state"], call.get("reason")) == (state, reason)
        titles = [action["title"] for action in asked[-1]["actions"]]
        assert titles == ["Allow once", "Allow in this session", "Reject"]
        assert f"{number}.txt" in asked[-1]["message"]
        assert desk.content(f"{number}.txt") == ("hello" if state == "returned" else None)
    assert len(asked) == len(BY_MESSAGE)


def test_a_question_too_long_for_a_message(desk: Desk) -> None:
    """Row G2: what a message cannot show of a command is not left out silently."""
    asked: list[Json] = []
    client = desk.server(permission=None)
    client.answer_with("window/showMessageRequest", lambda params: asked.append(params))
    client.say(client.ours("session/create"), "run true " + "x" * 5_000 + "; touch hidden")
    assert len(asked[0]["message"]) <= 2_000
    assert asked[0]["message"].endswith("characters in all)")
    assert not (desk.root / "hidden").exists()


def test_an_answer_that_does_not_fit(desk: Desk) -> None:
    """wire.md: an answer is read as strictly as a request, and one that does not fit is no answer."""
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
    client = desk.server(permission=lambda _: next(left))
    session = client.ours("session/create")
    for answer in answers:
        turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
        client.ended(turn_id)
        assert client.calls(turn_id)[0]["reason"] == "not_answered", answer
    assert desk.content("a.txt") is None


def test_a_question_is_withdrawn(desk: Desk) -> None:
    """Rows G8, case 82: the stop takes the question back; a late answer changes nothing."""
    client = desk.server(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    question = client.asked("steadyhand/permission/ask")
    assert client.ours("turn/cancel", sessionId=session["sessionId"], turnId=turn_id) == {"cancelled": True}
    assert client.ended(turn_id)["reason"] == "cancelled"
    client.notification("$/cancelRequest", that=lambda params: params["id"] == question["id"])
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"option": "once"}})
    assert client.ours("turn/cancel", sessionId=session["sessionId"], turnId=turn_id) == {"cancelled": False}
    assert client.calls(turn_id)[0]["state"] == "notRun"
    assert desk.content("a.txt") is None
    assert "started" not in desk.kinds(session["sessionId"])


def test_a_file_changed_under_its_question(desk: Desk) -> None:
    """Row W1, case 71: what was allowed is not what is there now."""
    (desk.root / "a.txt").write_text("old")

    def answer(_: Json) -> Json:
        (desk.root / "a.txt").write_text("theirs")
        return {"option": "once"}

    client = desk.server(permission=answer)
    turn_id = client.send_prompt(client.ours("session/create"), "write a.txt with new")["turnId"]
    client.ended(turn_id)
    assert client.calls(turn_id)[0]["reason"] == "changed"
    assert desk.content("a.txt") == "theirs"


# --- stopping -----------------------------------------------------------------------------------------------------


@linux_only
def test_stopping_a_command(desk: Desk) -> None:
    """Rows G8, C6, E5: its whole group is ended, its output so far is the reply, and what follows does not run."""
    client = desk.server(options={"mode": "auto"})
    session = client.ours("session/create")
    line = "run echo $$ > pid; echo so far; touch ready; sleep 60\nwrite a.txt with late"
    turn_id = client.send_prompt(session, line)["turnId"]
    wait_for_file(desk.root / "ready")
    begun = time.monotonic()
    assert client.ours("turn/cancel", sessionId=session["sessionId"], turnId=turn_id) == {"cancelled": True}
    assert client.ended(turn_id)["reason"] == "cancelled"
    assert time.monotonic() - begun < 5
    (call,) = client.calls(turn_id)
    assert call["state"] == "stopped"
    assert "so far" in call["reply"]["text"]
    assert "may be half done" in call["reply"]["text"]
    assert gone(int((desk.root / "pid").read_text()))
    assert desk.content("a.txt") is None
    records = desk.kinds(session["sessionId"])
    assert "started" not in records[records.index("cancel") :]
    assert client.say(session, "say hello")["reason"] == "done"


def wait_for_file(path: Path) -> None:
    end = time.monotonic() + 10
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} never came"
        time.sleep(0.01)


def test_closing_ends_a_command(desk: Desk) -> None:
    """Row S2, case 98: a close ends the command and the turn, `closed`, and is answered when both are over."""
    client = desk.server(options={"mode": "auto"})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "run touch ready; sleep 60")["turnId"]
    wait_for_file(desk.root / "ready")
    assert client.ours("session/close", sessionId=session["sessionId"]) == {}
    assert client.events(turn_id)[-1]["reason"] == "closed"
    assert client.calls(turn_id)[0]["state"] == "stopped"
    changed = client.notification("steadyhand/session/changed", that=lambda told: "epoch" not in told)
    assert changed["busy"] is False
    opened = client.ours("session/open", sessionId=session["sessionId"])
    assert opened["session"]["epoch"] != session["epoch"]
    assert opened["snapshot"]["calls"] == []


# --- steadyhand.ask, .cancel, .doctor -----------------------------------------------------------------------------


def test_ask_waits_for_the_answer(desk: Desk) -> None:
    """wire.md: text, reason and changed at the end; without a session the one used last, else a new one."""
    client = desk.server(options={"mode": "auto"})
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


def test_ask_does_not_wait(desk: Desk) -> None:
    """wire.md: `wait` false is answered at once, and the answer is shown as a message when it is there."""
    client = desk.server()
    begun = client.command("ask", {"text": "say hello there", "wait": False})
    assert set(begun) == {"sessionId", "turnId"}
    shown = client.notification("window/showMessage", that=lambda told: "hello there" in told["message"])
    assert shown["type"] == 3


def test_ask_while_busy(desk: Desk) -> None:
    """wire.md: it is queued and answered when its own turn has ended; the same id again gives the same turn (D1)."""
    client = desk.server(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    asked = {"text": "say second", "sessionId": session["sessionId"], "clientMessageId": "again"}
    ids = [client.ask("workspace/executeCommand", client.commanded("ask", asked)) for _ in range(2)]
    queue = client.notification("steadyhand/queue/changed", that=lambda told: bool(told["queue"]))["queue"]
    assert [item["text"] for item in queue] == ["say second"]
    assert [client.answers(each) for each in ids] == [[], []]
    client.ours("turn/cancel", sessionId=session["sessionId"], turnId=turn_id)
    results = [client.result(each) for each in ids]
    assert results[0] == results[1]
    assert "second" in results[0]["text"]


def test_cancelling_ask_cancels_its_turn(desk: Desk) -> None:
    """wire.md: `$/cancelRequest` of the command, of a running turn and of a queued one."""
    client = desk.server(permission=lambda _: UNANSWERED)
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
    assert desk.content("a.txt") is None


def test_the_cancel_command(desk: Desk) -> None:
    """wire.md: `steadyhand.cancel` stops whatever turn of the session runs, and says whether one did."""
    client = desk.server(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    argument = {"sessionId": session["sessionId"]}
    assert client.command("cancel", argument) == {"cancelled": False}
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    assert client.command("cancel", argument) == {"cancelled": True}
    assert client.ended(turn_id)["reason"] == "cancelled"


def test_ask_for_a_turn_that_a_crash_interrupted(desk: Desk) -> None:
    """Rows D1, D2: the same id after a crash is answered at once and runs nothing; nobody waits for what cannot end."""
    client = desk.server(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello", "c1")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    client.kill()
    client = desk.server()
    asked = {"text": "write a.txt with hello", "sessionId": session["sessionId"], "clientMessageId": "c1"}
    result = client.command("ask", asked)
    assert result["turnId"] == turn_id
    assert "reason" not in result
    assert desk.content("a.txt") is None


def test_doctor(desk: Desk) -> None:
    """wire.md: version, Python, paths, model and the state of the journal's disk."""
    client = desk.server()
    found = client.command("doctor")
    assert found["paths"]["state"] == str(desk.state.resolve())
    assert found["model"] == {"provider": "practice", "name": "practice"}
    assert found["journal"]["lock"] == "Owner locks hold."


# --- modes and settings -------------------------------------------------------------------------------------------


def test_set_mode(desk: Desk) -> None:
    """Row G2: plan refuses every effect, auto asks nothing; the session is told with its new mode."""
    client = desk.server(permission="reject")
    session = client.ours("session/create")
    changed = client.ours("session/setMode", sessionId=session["sessionId"], mode="plan")
    assert changed["mode"] == "plan"
    assert changed["epoch"] == session["epoch"]
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.ended(turn_id)
    assert client.calls(turn_id)[0]["reason"] == "policy"
    client.ours("session/setMode", sessionId=session["sessionId"], mode="auto")
    assert client.say(session, "write a.txt with hello")["changed"] != []
    assert client.refusal("session/setMode", sessionId=session["sessionId"], mode="yolo")[0] == INVALID


def test_bad_settings_become_defaults(desk: Desk) -> None:
    """wire.md: settings never fail a request; one message names all that are not used."""
    options = {
        "mode": "yolo", "recovery": {"settle": 5, "retry": "yes"}, "environment": {"add": ["A"]},
        "model": {"provider": "nobody", "name": None}, "unknown": {"key": 1},
    }  # fmt: skip
    client = desk.server(options=options)
    session = client.ours("session/create")
    assert (session["mode"], session["model"]["provider"]) == ("ask", "practice")
    (shown,) = client.shown()
    for name in ("mode", "recovery.settle", "recovery.retry", "environment.add", "model.provider"):
        assert f"steadyhand.{name}" in shown
    assert "unknown" not in shown
    assert "model.name" not in shown
    assert client.say(session, "say hello")["reason"] == "done"
    assert len(client.shown()) == 1


def test_settings_that_are_no_object(desk: Desk) -> None:
    """wire.md: whatever stands in initializationOptions, the server serves, and says once that it is not used."""
    client = desk.server(options=["text", 5])
    assert client.ours("session/create")["mode"] == "ask"
    assert len(client.shown()) == 1


def test_settings_are_replaced(desk: Desk) -> None:
    """wire.md: `steadyhand.machine` of didChangeConfiguration replaces them for new sessions; other sections do not."""
    client = desk.server(options={"mode": "edits"})
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


def test_a_model_that_is_not_there(desk: Desk) -> None:
    """A provider that cannot answer ends the turn `modelFailed` with a sentence that says what to do."""
    client = desk.server(options={"model": {"provider": "openai", "name": "x"}})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "hello")["turnId"]
    assert client.ended(turn_id)["reason"] == "modelFailed"
    (warning,) = [event for event in client.events(turn_id) if event["kind"] == "warning"]
    assert "OPENAI_API_KEY" in warning["text"], "it says where a key is looked for"
    client.command("ask", {"text": "hello again", "sessionId": session["sessionId"], "wait": False})
    shown = client.notification("window/showMessage", that=lambda told: "OPENAI_API_KEY" in told["message"])
    assert shown["type"] == 2, "whoever did not wait is told why"


def test_the_cap_over_the_wire(desk: Desk) -> None:
    """U2: the cost stands in the usage; at the cap the next turn ends `cost` with its sentence, after a restart too."""
    cost = {"cap": 0.000001, "prices": {"practice/*": {"input": 0.1, "output": "0.2"}}}
    client = desk.server(options={"cost": cost})
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
    client = desk.server(options={"cost": cost})
    assert client.command("ask", {"text": "say more", "sessionId": session["sessionId"]})["reason"] == "cost"
    assert client.ours("usage", sessionId=session["sessionId"])["cost"] == used["cost"]


# --- progress -----------------------------------------------------------------------------------------------------


def progress(client: CheckedClient, turn_id: str) -> list[str]:
    return [told["value"]["kind"] for told in client.notifications("$/progress") if told["token"] == turn_id]


def test_progress_of_a_turn(desk: Desk) -> None:
    """wire.md: a token a turn, begun after it was made, ended with the turn; cancelling it cancels the turn."""
    client = desk.server(permission=lambda _: UNANSWERED, capabilities={"window": {"workDoneProgress": True}})
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.notification("$/progress", that=lambda told: told["token"] == turn_id)
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    client.notify("window/workDoneProgress/cancel", {"token": turn_id})
    assert client.ended(turn_id)["reason"] == "cancelled"
    client.notification("$/progress", that=lambda told: told["token"] == turn_id and told["value"]["kind"] == "end")
    assert progress(client, turn_id) == ["begin", "end"]


def test_progress_that_is_made_after_the_end(desk: Desk) -> None:
    """wire.md, LSP: nothing is reported on a token before the client has made it, however short the turn was."""
    client = desk.server(capabilities={"window": {"workDoneProgress": True}})
    client.answer_with("window/workDoneProgress/create", lambda _: UNANSWERED)
    turn_id = client.send_prompt(client.ours("session/create"), "say hello")["turnId"]
    client.ended(turn_id)
    made = client.asked("window/workDoneProgress/create")
    client.ours("session/list")
    assert progress(client, turn_id) == []
    client.send({"jsonrpc": "2.0", "id": made["id"], "result": None})
    client.notification("$/progress", that=lambda told: told["value"]["kind"] == "end")
    assert progress(client, turn_id) == ["begin", "end"]


def test_no_progress_for_clients_that_do_not_show_it(desk: Desk) -> None:
    """LSP: without the capability no token is made."""
    client = desk.server()
    turn_id = client.send_prompt(client.ours("session/create"), "say hello")["turnId"]
    client.ended(turn_id)
    client.ours("session/list")
    assert not [each for each in client.messages if each.get("method") == "window/workDoneProgress/create"]
