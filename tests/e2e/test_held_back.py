"""A call that an uncertain effect holds back is a question, not a wall (rows B1, B4, B6, B8; cases 31, 82).

The uncertain effect comes from a real kill, with a file that somebody changed since, so that nothing is proved. What is
asked, who is asked, what each answer does, and what is never held back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.recovered import (
    ASK_MESSAGE,
    ASK_OWN,
    PRESENT,
    Client,
    Json,
    Lives,
    lives_in,
    never,
    only,
)
from tests.support.systems import linux_only

pytestmark = linux_only

FIRST = 'write a.txt with "first\\n"'
LATER = 'write a.txt with "later\\n"'
TITLES = ["Inspect", "Confirm", "Continue without knowing", "Refuse"]


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", "old\n")
        yield found


def doubtful(lives: Lives) -> str:
    """A session whose write is uncertain for good: somebody changed the file since."""
    session_id = lives.die(FIRST, PRESENT)
    lives.place.write("a.txt", "somebody's\n")
    return session_id


def content(lives: Lives, name: str = "a.txt") -> str:
    return (lives.place.workspace / name).read_text()


def held_calls(client: Client) -> int:
    """How many questions about uncertain effects were put."""
    return sum(message.get("method") in (ASK_MESSAGE, ASK_OWN) for message in client.messages)


# --- the question and its answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "settled"), [("Confirm", "user_confirmed"), ("Continue without knowing", "waived")])
def test_a_bare_client_is_asked_and_the_call_runs(lives: Lives, answer: str, settled: str) -> None:
    """B4: parked, inspected, asked with four titles and what was found; the answer rests on that inspection; then the
    call runs, and counts as held back (A1)."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == TITLES
    told = question["params"]["message"]
    assert told.count("write_file: a.txt") == 2
    assert "neither as it was before nor as intended" in told
    assert client.notification("steadyhand/session/changed", 10, lambda session: session["parked"])["busy"]
    (inspection,) = lives.having(session_id, "inspection")
    assert only(client.snapshot(session_id))["inspection"]["inspectionId"] == inspection["inspectionId"]
    client.answer_to(question, answer)
    ended = client.command_result("ask", turn)
    assert ended["changed"] == [{"path": "a.txt", "change": "modified"}]
    assert content(lives) == "later\n"
    (settlement,) = lives.having(session_id, "settlement")
    assert (settlement["settled"], settlement["inspectionId"]) == (settled, inspection["inspectionId"])
    assert client.snapshot(session_id)["statistics"]["heldBack"] == 1


def test_inspect_looks_anew_and_asks_again(lives: Lives) -> None:
    """B4: each look is stored, and the question says what the newest found."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    (lives.place.workspace / "a.txt").write_text("first\n")
    client.answer_to(question, "Inspect")
    again = client.question()
    assert "the file has the intended content now" in again["params"]["message"]
    client.answer_to(again, "Confirm")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert len(lives.having(session_id, "inspection")) == 2
    assert [record["settled"] for record in lives.having(session_id, "settlement")] == ["checked_present"]


def test_refuse_is_denied(lives: Lives) -> None:
    """B4, wire.md: the call is refused as `denied`, did not run, and the effect stays uncertain."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    client.answer_to(client.question(), "Refuse")
    assert f"{LATER}: refused: denied" in client.command_result("ask", turn)["text"]
    assert content(lives) == "somebody's\n"
    assert only(client.snapshot(session_id))["state"] == "unknown"
    assert client.snapshot(session_id)["statistics"]["heldBack"] == 1


@pytest.mark.parametrize("answer", ["null", "error", "not offered"])
def test_no_usable_answer_is_nobody_to_ask(lives: Lives, answer: str) -> None:
    """B4, wire.md: `recovery_required`, naming the attempt and the ways out; nothing ran, nothing was settled."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    if answer == "error":
        client.send({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32601, "message": "unknown"}})
    else:
        client.answer_to(question, None if answer == "null" else "Allow once")
    assert f"{LATER}: refused: recovery_required" in client.command_result("ask", turn)["text"]
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    (reply,) = [record["text"] for record in lives.having(session_id, "tool") if record["outcome"] == "refused"]
    short = attempt_id[:8]
    ways = [f"/recovery inspect {short}", "steadyhand.recovery.inspect", "code actions"]
    for way in (attempt_id, *ways, f"steadyhand recovery inspect {short}"):
        assert way in reply
    assert content(lives) == "somebody's\n"


def test_a_client_with_our_requests(lives: Lives) -> None:
    """wire.md `permission/ask`: the same question with `uncertain` and four option ids; nothing by message."""
    session_id = doubtful(lives)
    client = lives.start(permission=True)
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


# --- other doors ----------------------------------------------------------------------------------------------------


def by_lightbulb(client: Client, session_id: str) -> None:
    """The code action at the file."""
    client.wait_for(lambda: any("Continue" in one["title"] for one in client.code_actions("a.txt")) or None, 10)
    (action,) = [one for one in client.code_actions("a.txt") if one["title"] == "Steadyhand: Continue without knowing"]
    client.run(action["command"])


def by_command(client: Client, session_id: str) -> None:
    call = only(client.snapshot(session_id))
    seen = call["inspection"]["inspectionId"]
    client.command("recovery.waive", sessionId=session_id, attemptId=call["attemptId"], inspectionId=seen)


def by_request(client: Client, session_id: str) -> None:
    snapshot = client.snapshot(session_id)
    call = only(snapshot)
    client.resolve(snapshot, call["attemptId"], "waive", call["inspection"]["inspectionId"])


def by_chat(client: Client, session_id: str) -> None:
    """A line beside the parked turn, which is never queued."""
    said = client.say("/recovery waive", sessionId=session_id)
    assert said["reason"] == "done"
    assert "waived" in said["text"]


@pytest.mark.parametrize("door", [by_lightbulb, by_command, by_request, by_chat])
def test_another_door_answers(lives: Lives, door: Callable[[Client, str], None]) -> None:
    """B4: a resolution by any other door counts as the answer; the question is withdrawn and the call admitted."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    door(client, session_id)
    client.withdrawn(question)
    assert client.command_result("ask", turn)["reason"] == "done"
    assert content(lives) == "later\n"
    client.answer_to(question, "Refuse")  # too late, and nobody minds (A9, case 82)
    assert client.say("say on", sessionId=session_id)["reason"] == "done"


def test_reject_by_another_door_asks_anew(lives: Lives) -> None:
    """B4, A5: rejecting is a decision, so admission is decided anew; it frees nothing, so the person is asked again."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    snapshot = client.snapshot(session_id)
    call = only(snapshot)
    client.resolve(snapshot, call["attemptId"], "reject", call["inspection"]["inspectionId"])
    client.withdrawn(question)
    client.answer_to(client.question(), "Refuse")
    assert "refused: denied" in client.command_result("ask", turn)["text"]


def test_stopping_the_parked_turn(lives: Lives) -> None:
    """B4, G8: `/stop` is never queued: the question is withdrawn, the call did not run, the effect stays."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    client.say("/stop", sessionId=session_id)
    client.withdrawn(question)
    assert client.command_result("ask", turn)["reason"] == "cancelled"
    assert content(lives) == "somebody's\n"
    assert only(client.snapshot(session_id))["state"] == "unknown"


def test_retry_is_refused_in_a_parked_turn(lives: Lives) -> None:
    """A3: in a parked turn everything but retry is carried out."""
    session_id = doubtful(lives)
    client = lives.start(retry=True)
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    snapshot = client.snapshot(session_id)
    attempt_id = only(snapshot)["attemptId"]
    assert client.refusal(lambda: client.resolve(snapshot, attempt_id, "retry")).data["kind"] == "turnRunning"
    client.answer_to(question, "Refuse")
    client.command_result("ask", turn)


# --- what is held back, and what is not -----------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["show a.txt", "run cat a.txt", "run ls -la", "run pwd", "show no-such-file"])
def test_reading_is_never_held_back(lives: Lives, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """B1, case 31: reads and commands that only read go on beside any uncertain effect, a command's too."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # with one of them no command is taken for a reading
    session_id = lives.die("run echo x >> b.txt; echo done", PRESENT)
    client = lives.start()
    client.snapshot(session_id)
    ended = client.say(line, sessionId=session_id)
    assert ended["reason"] == "done"
    assert "1 of 1" in ended["text"] or "failed" in ended["text"]
    assert held_calls(client) == 0


def test_inspecting_is_never_held_back(lives: Lives) -> None:
    """B1, case 31: beside a parked turn the effect can be looked at by every way."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    attempt_id = only(client.snapshot(session_id))["attemptId"]
    assert client.inspected(session_id, attempt_id)["inspection"]["check"] == "conflict"
    named = {"sessionId": session_id, "attemptId": attempt_id}
    assert client.command("recovery.inspect", **named)["inspection"]["check"] == "conflict"
    assert "neither as it was before" in client.say("/recovery inspect", sessionId=session_id)["text"]
    client.answer_to(question, "Refuse")
    client.command_result("ask", turn)


def test_another_file_is_not_held_back(lives: Lives) -> None:
    """B1, B2: a file effect touches its path; a write elsewhere goes on."""
    session_id = doubtful(lives)
    client = lives.start()
    ended = client.say("write other.txt with x", sessionId=session_id)
    assert ended["changed"] == [{"path": "other.txt", "change": "created"}]
    assert held_calls(client) == 0


def test_a_command_is_held_back_by_a_file(lives: Lives) -> None:
    """B2: a command touches everything."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn("run echo x > c.txt", sessionId=session_id)
    client.answer_to(client.question(), "Refuse")
    client.command_result("ask", turn)
    assert not (lives.place.workspace / "c.txt").exists()


def test_a_command_holds_back_a_file(lives: Lives) -> None:
    """B2: whatever a command that may have run touched is not known, so every write waits."""
    session_id = lives.die("run echo y > d.txt; echo done", PRESENT)
    client = lives.start()
    assert only(client.snapshot(session_id))["scope"] == {"everything": True}
    turn = client.ask_turn("write e.txt with e", sessionId=session_id)
    question = client.question()
    assert "run_command: echo" in question["params"]["message"]
    client.answer_to(question, "Refuse")
    client.command_result("ask", turn)
    assert not (lives.place.workspace / "e.txt").exists()


def test_another_session_of_the_workspace_is_held_back(lives: Lives) -> None:
    """B1: the question names the other session, by its title or the first 8 digits of its id; `uncertain` says whose it
    is; the answer settles it there."""
    uncertain = doubtful(lives)
    client = lives.start(permission=True)
    client.squiggle("a.txt", "uncertain-write")
    fresh = client.own("session/create")
    turn = client.ask_turn(LATER, sessionId=fresh["sessionId"])
    question = client.question(ASK_OWN)
    assert question["params"]["sessionId"] == fresh["sessionId"]
    assert question["params"]["uncertain"][0]["sessionId"] == uncertain
    client.answer_to(question, "waive")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert [record["settled"] for record in lives.having(uncertain, "settlement")] == ["waived"]
    assert lives.having(fresh["sessionId"], "settlement") == []
    assert client.snapshot(fresh["sessionId"])["statistics"]["heldBack"] == 1


def test_the_other_session_is_named(lives: Lives) -> None:
    """B1, wire.md: in the words of a bare client, and to the model when nobody answers."""
    uncertain = doubtful(lives)
    client = lives.start()
    client.squiggle("a.txt", "uncertain-write")
    session = client.opened(uncertain)["session"]
    fresh = client.own("session/create")["sessionId"]
    turn = client.ask_turn(LATER, sessionId=fresh)
    question = client.question()
    name = session["title"] or uncertain[:8]
    assert f"of session “{name}”" in question["params"]["message"]
    client.answer_to(question, None)
    client.command_result("ask", turn)
    (reply,) = [record["text"] for record in lives.having(fresh, "tool") if record["outcome"] == "refused"]
    assert f"of session “{name}”" in reply


def test_a_closed_session_still_holds_back(lives: Lives) -> None:
    """B8: closing a session with an unresolved effect does not let others through."""
    uncertain = doubtful(lives)
    client = lives.start()
    client.squiggle("a.txt", "uncertain-write")
    client.own("session/close", sessionId=uncertain)
    assert client.squiggle("a.txt", "uncertain-write")
    fresh = client.own("session/create")["sessionId"]
    turn = client.ask_turn(LATER, sessionId=fresh)
    client.answer_to(client.question(), "Continue without knowing")
    assert client.command_result("ask", turn)["reason"] == "done"
    client.squiggle("a.txt", None)


def test_each_uncertain_effect_is_one_question(lives: Lives) -> None:
    """B4: oldest first; the call is admitted when none is left."""
    session_id = doubtful(lives)
    client = lives.start()
    client.squiggle("a.txt", "uncertain-write")
    assert client.shut_down() == 0
    assert lives.die("write b.txt with b", PRESENT, session_id=session_id) == session_id
    lives.place.write("b.txt", "somebody's\n")
    client = lives.start()
    turn = client.ask_turn("run echo x > c.txt", sessionId=session_id)
    first = client.question()
    assert "write_file: a.txt" in first["params"]["message"]
    client.answer_to(first, "Confirm")
    second = client.question()
    assert "write_file: b.txt" in second["params"]["message"]
    assert not (lives.place.workspace / "c.txt").exists()
    client.answer_to(second, "Continue without knowing")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert content(lives, "c.txt") == "x\n"
    assert client.snapshot(session_id)["statistics"]["heldBack"] == 1


def test_a_grant_of_the_session_covers_no_held_back_call(lives: Lives) -> None:
    """wire.md: `Allow in this session` never covers a held-back call: the question comes in spite of it."""
    client = lives.start(mode="ask")
    session_id = client.own("session/create")["sessionId"]
    turn = client.ask_turn("write a.txt with granted", sessionId=session_id)
    client.answer_to(client.question(), "Allow in this session")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert client.say("write a.txt with again", sessionId=session_id)["reason"] == "done", "the grant covers this one"
    assert client.shut_down() == 0
    lives.die(FIRST, PRESENT, session_id=session_id)
    lives.place.write("a.txt", "somebody's\n")
    client = lives.start(mode="ask")
    turn = client.ask_turn(LATER, sessionId=session_id)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == TITLES
    client.answer_to(question, "Continue without knowing")
    assert client.command_result("ask", turn)["reason"] == "done", "once it is free the grant covers it"
    assert not client.server_requests


def test_the_very_call_that_was_confirmed_is_asked_once(lives: Lives) -> None:
    """B6: after `user_confirmed` the exact same call is not run again by itself: one question, with the titles of a
    permission, that says so; its answer clears it."""
    session_id = doubtful(lives)
    client = lives.start()
    snapshot = client.snapshot(session_id)
    attempt_id = only(snapshot)["attemptId"]
    looked = client.inspected(session_id, attempt_id)
    client.resolve(looked["snapshot"], attempt_id, "confirm", looked["inspection"]["inspectionId"])
    turn = client.ask_turn(FIRST, sessionId=session_id)
    question = client.question()
    assert [action["title"] for action in question["params"]["actions"]] == ["Allow once", "Reject"]
    assert "you confirmed this very call" in question["params"]["message"]
    client.answer_to(question, "Allow once")
    assert client.command_result("ask", turn)["reason"] == "done"
    assert content(lives) == "first\n"
    assert client.say(FIRST, sessionId=session_id)["reason"] == "done"
    assert client.say(LATER, sessionId=session_id)["reason"] == "done", "another call was never meant"
    assert not client.server_requests


def test_confirmed_while_it_is_held_back_itself(lives: Lives) -> None:
    """B4, B6: the held-back call is the very one that is then confirmed as happened: it does not run again unasked."""
    session_id = doubtful(lives)
    client = lives.start()
    turn = client.ask_turn(FIRST, sessionId=session_id)
    client.answer_to(client.question(), "Confirm")
    question = client.question(limit_s=5)
    assert "you confirmed this very call" in question["params"]["message"]
    client.answer_to(question, "Reject")
    assert "refused: denied" in client.command_result("ask", turn)["text"]
    assert content(lives) == "somebody's\n"


def test_a_turn_that_waits_is_not_run_by_a_restart(lives: Lives) -> None:
    """C5, I4: killed while the person decides: the call is `notRun`, the effect still uncertain, nothing is asked."""
    session_id = doubtful(lives)
    client = lives.start()
    client.ask_turn(LATER, sessionId=session_id)
    client.question()
    client.process.kill()
    client.wait_exit()
    client = lives.start()
    opened = client.opened(session_id)
    states = [call["state"] for message in opened["messages"] for call in message.get("calls", ())]
    assert states == ["unknown", "notRun"]
    assert content(lives) == "somebody's\n"
    never(lambda: client.server_requests or None, client)


def test_two_sessions_wait_for_one_effect(lives: Lives) -> None:
    """B1, B4: one answer frees both: the other question is withdrawn."""
    doubtful(lives)
    client = lives.start()
    client.squiggle("a.txt", "uncertain-write")
    waiting: list[tuple[int, Json]] = []
    for text in (LATER, "run echo x > c.txt"):
        fresh = client.own("session/create")["sessionId"]
        waiting.append((client.ask_turn(text, sessionId=fresh), client.question()))
    client.answer_to(waiting[1][1], "Continue without knowing")
    client.withdrawn(waiting[0][1])
    assert [client.command_result("ask", turn)["reason"] for turn, _ in waiting] == ["done", "done"]
