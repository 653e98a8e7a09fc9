"""A call that an uncertain effect holds back: the server asks the user and does not refuse the call outright (rows B1,
B4, B6, B8; cases 31, 82).

The uncertain effect comes from a real kill, and somebody changed its file since, so that nothing is proved. The tests
say what is asked, who is asked, what each answer does, and what is never held back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import ASK_MESSAGE, ASK_OWN, TypedClient, never, only
from tests.support.process_server import PRESENT, ServerProcesses, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only

pytestmark = linux_only

FIRST = 'write a.txt with "first\\n"'
LATER = 'write a.txt with "later\\n"'
TITLES = ["Inspect", "Confirm", "Continue without knowing", "Refuse"]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        yield found


def make_uncertain(servers: ServerProcesses) -> str:
    """A session whose write stays uncertain, because somebody changed the file since."""
    session_id = servers.kill_in_turn(FIRST, PRESENT)
    servers.workspace.write("a.txt", "somebody's\n")
    return session_id


def content(servers: ServerProcesses, name: str = "a.txt") -> str:
    return (servers.root / name).read_text()


def held_calls(client: TypedClient) -> int:
    """The number of questions about uncertain effects so far."""
    return sum(message.get("method") in (ASK_MESSAGE, ASK_OWN) for message in client.messages)


# --- the question and its answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "settled"), [("Confirm", "user_confirmed"), ("Continue without knowing", "waived")])
def test_plain_client_is_asked_and_the_call_runs_after_waive(
    servers: ServerProcesses, answer: str, settled: str
) -> None:
    """B4: the turn parks, inspects, and asks with four titles and the finding. The answer rests on that inspection;
    then the call runs, and counts as held back (A1)."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == TITLES
    told = question["params"]["message"]
    assert told.count("write_file: a.txt") == 2
    assert "neither as it was before nor as intended" in told
    assert client.notification("steadyhand/session/changed", 10, lambda session: session["parked"])["busy"]
    (inspection,) = servers.having(session_id, "inspection")
    assert only(client.snapshot(session_id))["inspection"]["inspectionId"] == inspection["inspectionId"]
    client.answer_to(question, answer)
    ended = client.command_result("ask", turn)
    assert ended["changed"] == [{"path": "a.txt", "change": "modified"}]
    assert content(servers) == "later\n"
    (settlement,) = servers.having(session_id, "settlement")
    assert (settlement["settled"], settlement["inspectionId"]) == (settled, inspection["inspectionId"])
    assert client.snapshot(session_id)["statistics"]["heldBack"] == 1


def test_inspect_answer_inspects_again_and_asks_again(servers: ServerProcesses) -> None:
    """B4: each inspection is stored, and the question shows the newest finding."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    (servers.root / "a.txt").write_text("first\n")
    client.answer_to(question, "Inspect")
    again = client.question()
    assert "the file has the intended content now" in again["params"]["message"]
    client.answer_to(again, "Confirm")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert len(servers.having(session_id, "inspection")) == 2
    assert [record["settled"] for record in servers.having(session_id, "settlement")] == ["checked_present"]


def test_refuse_answer_denies_the_call_and_settles_nothing(servers: ServerProcesses) -> None:
    """B4, docs/protocol.md: the call is refused as `denied` and does not run; the effect stays uncertain."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    client.answer_to(client.question(), "Refuse")
    assert f"{LATER}: refused: denied" in client.command_result("ask", turn)["text"]
    assert content(servers) == "somebody's\n"
    assert only(client.snapshot(session_id))["state"] == "unknown"
    assert client.snapshot(session_id)["statistics"]["heldBack"] == 1


@pytest.mark.parametrize("answer", ["null", "error", "not offered"])
def test_unusable_answer_refuses_the_call_as_recovery_required(servers: ServerProcesses, answer: str) -> None:
    """B4, docs/protocol.md: `recovery_required` names the attempt and what the user can do; nothing runs and nothing is
    settled."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    if answer == "error":
        client.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "unknown"}})
    else:
        client.answer_to(question, None if answer == "null" else "Allow once")
    assert f"{LATER}: refused: recovery_required" in client.command_result("ask", turn)["text"]
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    (reply,) = [record["text"] for record in servers.having(session_id, "tool") if record["outcome"] == "refused"]
    short = attempt_id[:8]
    ways = [f"/recovery inspect {short}", "steadyhand.recovery.inspect", "code actions"]
    for way in (attempt_id, *ways, f"steadyhand recovery inspect {short}"):
        assert way in reply
    assert content(servers) == "somebody's\n"


def test_client_with_own_requests_gets_the_question_by_permission_ask(servers: ServerProcesses) -> None:
    """docs/protocol.md, `permission/ask`: the same question with `uncertain` and four option ids; no message is
    sent."""
    session_id = make_uncertain(servers)
    client = servers.start(permission=True)
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question(ASK_OWN)
    asked = question["params"]
    assert [option["id"] for option in asked["options"]] == ["inspect", "confirm", "waive", "refuse"]
    (uncertain,) = asked["uncertain"]
    assert uncertain == only(client.snapshot(session_id))
    assert uncertain["inspection"]["state"] == "unknown"
    assert uncertain["check"] == "conflict"
    assert (asked["tool"], asked["title"], asked["sessionId"]) == ("write_file", "write_file: a.txt", session_id)
    client.answer_to(question, "confirm")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert not [message for message in client.messages if message.get("method") == ASK_MESSAGE]


# --- answers from another place ------------------------------------------------------------------------------------


def by_lightbulb(client: TypedClient, session_id: str) -> None:
    """Answer by the code action at the file."""
    client.wait_for(lambda: any("Continue" in one["title"] for one in client.code_actions("a.txt")) or None, 10)
    (action,) = [one for one in client.code_actions("a.txt") if one["title"] == "Steadyhand: Continue without knowing"]
    client.run(action["command"])


def by_command(client: TypedClient, session_id: str) -> None:
    call = only(client.snapshot(session_id))
    seen = call["inspection"]["inspectionId"]
    client.command("recovery.waive", sessionId=session_id, attemptId=call["attemptId"], inspectionId=seen)


def by_request(client: TypedClient, session_id: str) -> None:
    snapshot = client.snapshot(session_id)
    call = only(snapshot)
    client.resolve(snapshot, call["attemptId"], "waive", call["inspection"]["inspectionId"])


def by_chat(client: TypedClient, session_id: str) -> None:
    """Answer by a line beside the parked turn, which is never queued."""
    said = client.say("/recovery waive", sessionId=session_id)
    assert said["reason"] == "done"
    assert "waived" in said["text"]


@pytest.mark.parametrize("answer_from", [by_lightbulb, by_command, by_request, by_chat])
def test_resolution_from_elsewhere_answers_the_question(
    servers: ServerProcesses, answer_from: Callable[[TypedClient, str], None]
) -> None:
    """B4: a resolution from any other place counts as the answer; the question is withdrawn and the call is
    admitted."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    answer_from(client, session_id)
    client.withdrawn(question)
    assert client.command_result("ask", turn)["reason"] == "done"
    assert content(servers) == "later\n"
    client.answer_to(question, "Refuse")  # too late: no error (A9, case 82)
    assert client.say("say on", sessionId=session_id)["reason"] == "done"


def test_reject_from_elsewhere_asks_again(servers: ServerProcesses) -> None:
    """B4, A5: a reject is a decision, so the server decides again whether the call is admitted. A reject frees nothing,
    so it asks the user again."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    snapshot = client.snapshot(session_id)
    call = only(snapshot)
    client.resolve(snapshot, call["attemptId"], "reject", call["inspection"]["inspectionId"])
    client.withdrawn(question)
    client.answer_to(client.question(), "Refuse")
    assert "refused: denied" in client.command_result("ask", turn)["text"]


def test_stop_in_a_parked_turn_withdraws_the_question(servers: ServerProcesses) -> None:
    """B4, G8: `/stop` is never queued. The question is withdrawn, the call does not run, the effect stays uncertain."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    client.say("/stop", sessionId=session_id)
    client.withdrawn(question)
    assert client.command_result("ask", turn)["reason"] == "cancelled"
    assert content(servers) == "somebody's\n"
    assert only(client.snapshot(session_id))["state"] == "unknown"


def test_retry_in_a_parked_turn_is_refused(servers: ServerProcesses) -> None:
    """A3: a parked turn allows every action but retry."""
    session_id = make_uncertain(servers)
    client = servers.start(retry=True)
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    snapshot = client.snapshot(session_id)
    attempt_id = only(snapshot)["attemptId"]
    assert client.refusal(lambda: client.resolve(snapshot, attempt_id, "retry")).data["kind"] == "turnRunning"
    client.answer_to(question, "Refuse")
    client.command_result("ask", turn)


# --- what is held back, and what is not -----------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["show a.txt", "run cat a.txt", "run ls", "run pwd", "show no-such-file"])
def test_reads_are_never_held_back(servers: ServerProcesses, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """B1, case 31: reads, and commands that only read, run beside any uncertain effect, also beside that of a
    command."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # with one of them no command counts as a reading command
    session_id = servers.kill_in_turn("run echo x >> b.txt; echo done", PRESENT)
    client = servers.start()
    client.snapshot(session_id)
    ended = client.say(line, sessionId=session_id)
    assert ended["reason"] == "done"
    assert "1 of 1" in ended["text"] or "failed" in ended["text"]
    assert held_calls(client) == 0


def test_inspection_is_never_held_back(servers: ServerProcesses) -> None:
    """B1, case 31: beside a parked turn every way to inspect the effect works."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    assert client.inspected(session_id, attempt_id)["inspection"]["check"] == "conflict"
    named = {"sessionId": session_id, "attemptId": attempt_id}
    assert client.command("recovery.inspect", **named)["inspection"]["check"] == "conflict"
    assert "neither as it was before" in client.say("/recovery inspect", sessionId=session_id)["text"]
    client.answer_to(question, "Refuse")
    client.command_result("ask", turn)


def test_write_to_another_file_is_not_held_back(servers: ServerProcesses) -> None:
    """B1, B2: the scope of a file effect is its path; a write elsewhere runs."""
    session_id = make_uncertain(servers)
    client = servers.start()
    ended = client.say("write other.txt with x", sessionId=session_id)
    assert ended["changed"] == [{"path": "other.txt", "change": "created"}]
    assert held_calls(client) == 0


def test_uncertain_write_holds_back_a_command(servers: ServerProcesses) -> None:
    """B2: the scope of a command is everything."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn("run echo x > c.txt", sessionId=session_id)
    client.answer_to(client.question(), "Refuse")
    client.command_result("ask", turn)
    assert not (servers.root / "c.txt").exists()


def test_uncertain_command_holds_back_every_write(servers: ServerProcesses) -> None:
    """B2: it is unknown what a command touched that may have run, so every write waits."""
    session_id = servers.kill_in_turn("run echo y > d.txt; echo done", PRESENT)
    client = servers.start()
    assert only(client.snapshot(session_id))["scope"] == {"everything": True}
    turn = client.ask_turn("write e.txt with e", sessionId=session_id)
    question = client.question()
    assert "run_command: echo" in question["params"]["message"]
    client.answer_to(question, "Refuse")
    client.command_result("ask", turn)
    assert not (servers.root / "e.txt").exists()


def test_uncertain_effect_holds_back_other_sessions_of_the_workspace(servers: ServerProcesses) -> None:
    """B1: the question names the other session by its title, or by the first 8 digits of its id; `uncertain` has its
    id. The answer settles the effect in that session."""
    uncertain = make_uncertain(servers)
    client = servers.start(permission=True)
    client.wait_diagnostic("a.txt", "uncertain-write")
    fresh = client.own("session/create")
    turn = client.ask_turn(LATER, sessionId=fresh["sessionId"])
    question = client.question(ASK_OWN)
    assert question["params"]["sessionId"] == fresh["sessionId"]
    assert question["params"]["uncertain"][0]["sessionId"] == uncertain
    client.answer_to(question, "waive")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert [record["settled"] for record in servers.having(uncertain, "settlement")] == ["waived"]
    assert servers.having(fresh["sessionId"], "settlement") == []
    assert client.snapshot(fresh["sessionId"])["statistics"]["heldBack"] == 1


def test_held_back_texts_name_the_other_session(servers: ServerProcesses) -> None:
    """B1, docs/protocol.md: the message to a plain client names it, and so does the reply to the model when there is no
    answer."""
    uncertain = make_uncertain(servers)
    client = servers.start()
    client.wait_diagnostic("a.txt", "uncertain-write")
    session = client.opened(uncertain)["session"]
    fresh = client.own("session/create")["sessionId"]
    turn = client.ask_turn(LATER, sessionId=fresh)
    question = client.question()
    name = session["title"] or uncertain[:8]
    assert f"of session “{name}”" in question["params"]["message"]
    client.answer_to(question, None)
    client.command_result("ask", turn)
    (reply,) = [record["text"] for record in servers.having(fresh, "tool") if record["outcome"] == "refused"]
    assert f"of session “{name}”" in reply


def test_closed_session_still_holds_back_others(servers: ServerProcesses) -> None:
    """B8: closing a session with an unresolved effect does not let other calls through."""
    uncertain = make_uncertain(servers)
    client = servers.start()
    client.wait_diagnostic("a.txt", "uncertain-write")
    client.own("session/close", sessionId=uncertain)
    assert client.wait_diagnostic("a.txt", "uncertain-write")
    fresh = client.own("session/create")["sessionId"]
    turn = client.ask_turn(LATER, sessionId=fresh)
    client.answer_to(client.question(), "Continue without knowing")
    assert client.command_result("ask", turn)["reason"] == "done"
    client.wait_diagnostic("a.txt", None)


def test_each_uncertain_effect_is_one_question_oldest_first(servers: ServerProcesses) -> None:
    """B4: the oldest first; the call is admitted when no effect is left."""
    session_id = make_uncertain(servers)
    client = servers.start()
    client.wait_diagnostic("a.txt", "uncertain-write")
    assert client.shut_down() == 0
    assert servers.kill_in_turn("write b.txt with b", PRESENT, session_id=session_id) == session_id
    servers.workspace.write("b.txt", "somebody's\n")
    client = servers.start()
    turn = client.ask_turn("run echo x > c.txt", sessionId=session_id)
    first = client.question()
    assert "write_file: a.txt" in first["params"]["message"]
    client.answer_to(first, "Confirm")
    second = client.question()
    assert "write_file: b.txt" in second["params"]["message"]
    assert not (servers.root / "c.txt").exists()
    client.answer_to(second, "Continue without knowing")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert content(servers, "c.txt") == "x\n"
    assert client.snapshot(session_id)["statistics"]["heldBack"] == 1


def test_session_grant_does_not_cover_a_held_back_call(servers: ServerProcesses) -> None:
    """docs/protocol.md: `Allow in this session` never covers a held-back call; the server still asks."""
    client = servers.start(mode="ask")
    session_id = client.own("session/create")["sessionId"]
    turn = client.ask_turn("write a.txt with granted", sessionId=session_id)
    client.answer_to(client.question(), "Allow in this session")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert client.say("write a.txt with again", sessionId=session_id)["reason"] == "done", "the grant covers this one"
    assert client.shut_down() == 0
    servers.kill_in_turn(FIRST, PRESENT, session_id=session_id)
    servers.workspace.write("a.txt", "somebody's\n")
    client = servers.start(mode="ask")
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == TITLES
    client.answer_to(question, "Continue without knowing")
    assert client.command_result("ask", turn)["reason"] == "done", "once it is free the grant covers it"
    assert not client.server_requests


def test_repeating_a_confirmed_call_is_asked_once(servers: ServerProcesses) -> None:
    """B6: after `user_confirmed` the exact same call does not run again by itself: there is one question, with the
    titles of a permission, that says so; its answer clears it."""
    session_id = make_uncertain(servers)
    client = servers.start()
    snapshot = client.snapshot(session_id)
    attempt_id = only(snapshot)["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    client.resolve(looked["snapshot"], attempt_id, "confirm", looked["inspection"]["inspectionId"])
    turn = client.ask_turn(FIRST, sessionId=session_id)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == ["Allow once", "Reject"]
    assert "you confirmed the same call" in question["params"]["message"]
    client.answer_to(question, "Allow once")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert content(servers) == "first\n"
    assert client.say(FIRST, sessionId=session_id)["reason"] == "done"
    assert client.say(LATER, sessionId=session_id)["reason"] == "done", "another call was never meant"
    assert not client.server_requests


def test_held_back_call_confirmed_as_done_does_not_run_unasked(servers: ServerProcesses) -> None:
    """B4, B6: the held-back call is the very call that is then confirmed as done: it does not run again without a
    question."""
    session_id = make_uncertain(servers)
    client = servers.start()
    turn = client.ask_turn(FIRST, sessionId=session_id)
    client.answer_to(client.question(), "Confirm")
    question = client.question()
    assert "you confirmed the same call" in question["params"]["message"]
    client.answer_to(question, "Reject")
    assert "refused: denied" in client.command_result("ask", turn)["text"]
    assert content(servers) == "somebody's\n"


def test_parked_call_is_not_run_after_a_restart(servers: ServerProcesses) -> None:
    """C5, I4: the server is killed while the user decides: the call is `notRun`, the effect is still uncertain, nothing
    is asked."""
    session_id = make_uncertain(servers)
    client = servers.start()
    client.ask_turn(LATER, sessionId=session_id)
    client.question()
    client.process.kill()
    client.wait_exit()
    client = servers.start()
    opened = client.opened(session_id)
    calls = [call for message in opened["messages"] for call in message.get("calls", ())]
    states = [call["state"] for call in calls if call["tool"] != "read_file"]
    assert states == ["unknown", "notRun"]
    assert content(servers) == "somebody's\n"
    never(lambda: client.server_requests or None, client)


def test_one_answer_frees_two_waiting_sessions(servers: ServerProcesses) -> None:
    """B1, B4: one answer frees both sessions; the other question is withdrawn."""
    make_uncertain(servers)
    client = servers.start()
    client.wait_diagnostic("a.txt", "uncertain-write")
    waiting: list[tuple[int, Json]] = []
    for text in (LATER, "run echo x > c.txt"):
        fresh = client.own("session/create")["sessionId"]
        waiting.append((client.ask_turn(text, sessionId=fresh), client.question()))
    client.answer_to(waiting[1][1], "Continue without knowing")
    client.withdrawn(waiting[0][1])
    assert [client.command_result("ask", turn)["reason"] for turn, _ in waiting] == ["done", "done"]
