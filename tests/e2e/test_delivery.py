"""Delivery of prompts over stdio: durable before the acknowledgement, run once, queued in order, also across a kill (D,
S4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import CheckedClient, opened_calls
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import UNANSWERED, ErrorAnswer, Json

INVALID = -32602
OTHER = "f" * 32


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def parked(servers: ServerProcesses) -> tuple[CheckedClient, Json, str]:
    """A server with a turn whose question stays open: (client, session, turn id). The id of its prompt is `c1`."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello", "c1")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    return client, session, turn_id


def test_acknowledged_prompt_is_in_the_journal_after_a_kill(servers: ServerProcesses) -> None:
    """Row D1: if the server is killed right after the acknowledgement, the prompt is in the journal, whether it runs or
    waits."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    first = client.send_prompt(session, "write a.txt with hello", "c1")
    second = client.send_prompt(session, "say two", "c2")
    client.kill()
    records = servers.records(session["sessionId"])
    found = {r["clientMessageId"]: (r["kind"], r["turnId"]) for r in records if "clientMessageId" in r}
    assert found == {"c1": ("user", first["turnId"]), "c2": ("queue", second["turnId"])}


def test_prompt_resent_after_a_kill_is_a_duplicate(servers: ServerProcesses) -> None:
    """Rows D1, D2, case 40: a prompt resent with the old epoch is a duplicate of the same turn and runs nothing."""
    client, session, turn_id = parked(servers)
    client.kill()
    client = servers.start_checked()
    again = client.send_prompt(session, "write a.txt with hello", "c1")
    assert again == {"turnId": turn_id, "accepted": True, "duplicate": True, "queued": False}
    status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="c1")
    assert status == {"known": True, "turnId": turn_id, "state": "interrupted"}
    unknown = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="c2")
    assert unknown == {"known": False}
    assert servers.content("a.txt") is None
    assert "started" not in servers.kinds(session["sessionId"])
    opened = client.ours("session/open", sessionId=session["sessionId"])
    assert [call["state"] for call in opened_calls(opened)] == ["failed", "notRun"], "there was no file to read"
    assert client.refusal(
        "turn/start", sessionId=session["sessionId"], epoch=session["epoch"], clientMessageId="c2", text="say two"
    ) == (-32051, "staleEpoch")
    assert client.say(opened["session"], "write a.txt with hello", "c2")["changed"] != []


def test_prompt_sent_eight_times_runs_once(servers: ServerProcesses) -> None:
    """Row D1: the client sends it eight times without waiting. It runs once, and every answer names the same turn."""
    client = servers.start_checked()
    session = client.ours("session/create")
    params = {"sessionId": session["sessionId"], "epoch": session["epoch"], "clientMessageId": "c1", "text": "say one"}
    ids = [client.ask("steadyhand/turn/start", params) for _ in range(8)]
    answers = [client.result(each) for each in ids]
    assert len({answer["turnId"] for answer in answers}) == 1
    assert sum(not answer["duplicate"] for answer in answers) == 1
    client.ended(answers[0]["turnId"])
    assert servers.kinds(session["sessionId"]).count("user") == 1
    assert servers.kinds(session["sessionId"]).count("assistant") == 1


def test_turn_start_refusals_come_in_their_documented_order(servers: ServerProcesses) -> None:
    """docs/protocol.md: codes and words in their order: params, unknownSession, another text under a known id,
    staleEpoch."""
    client = servers.start_checked()
    session = client.ours("session/create")
    client.say(session, "say one", "c1")
    good = {"sessionId": session["sessionId"], "epoch": session["epoch"], "clientMessageId": "c2", "text": "say two"}

    def refused(**changed: object) -> tuple[int, str]:
        return client.refusal("turn/start", **{**good, **changed})

    assert refused(text=5, sessionId=OTHER) == (INVALID, "invalidParams")
    assert refused(more=1) == (INVALID, "invalidParams")
    assert refused(clientMessageId="") == (INVALID, "invalidParams")
    assert refused(clientMessageId="\n") == (INVALID, "invalidParams")
    assert refused(text="") == (INVALID, "invalidParams")
    assert refused(sessionId=OTHER, epoch=OTHER) == (-32050, "unknownSession")
    assert refused(clientMessageId="c1", epoch=OTHER) == (INVALID, "invalidParams")
    assert refused(epoch=OTHER) == (-32051, "staleEpoch")
    with pytest.raises(ErrorAnswer) as stale:
        client.ours("turn/start", **{**good, "epoch": OTHER})
    assert stale.value.data["epoch"] == session["epoch"]
    assert not client.ours("turn/start", **good)["duplicate"], "no refusal has used the id up"


def test_queue_after_a_kill_is_paused_in_order_and_resumes(servers: ServerProcesses) -> None:
    """Row S4, case 76: three prompts queued in a busy session are there after a kill, in order and paused; resumed,
    they run."""
    client, session, _ = parked(servers)
    for number in (1, 2, 3):
        assert client.send_prompt(session, f"say number {number}", f"q{number}")["queued"]
    client.kill()
    client = servers.start_checked()
    opened = client.ours("session/open", sessionId=session["sessionId"])
    expected = [(f"q{number}", f"say number {number}", True) for number in (1, 2, 3)]
    assert [(q["clientMessageId"], q["text"], q["paused"]) for q in opened["queue"]] == expected
    status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="q2")
    assert status["state"] == "queued"
    epoch = opened["session"]["epoch"]
    assert client.refusal("queue/resume", sessionId=session["sessionId"], epoch=session["epoch"])[1] == "staleEpoch"
    left = client.ours("queue/resume", sessionId=session["sessionId"], epoch=epoch)["queue"]
    assert [item["clientMessageId"] for item in left] == ["q2", "q3"]
    client.notification("steadyhand/queue/changed", that=lambda told: told["queue"] == [])
    last = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="q3")["turnId"]
    client.ended(last)
    texts = [r["text"] for r in servers.records(session["sessionId"]) if r["kind"] == "user"]
    assert texts == ["write a.txt with hello", "say number 1", "say number 2", "say number 3"]


def test_missed_events_are_replayed_by_number_or_reset(servers: ServerProcesses) -> None:
    """Row D3: a client can ask for earlier events by number; another epoch or a number that was never sent gives a
    reset."""
    client = servers.start_checked()
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    client.ended(turn_id)
    told = client.notifications("steadyhand/turn/event")
    asked = {"sessionId": session["sessionId"], "epoch": session["epoch"]}
    everything = client.ours("turn/events", **asked, after=0)
    assert everything == {"events": told, "next": len(told), "reset": False}
    tail = client.ours("turn/events", **asked, after=len(told) - 2)
    assert tail["events"] == told[-2:]
    assert client.ours("turn/events", **asked, after=len(told)) == {"events": [], "next": len(told), "reset": False}
    for strange in ({**asked, "epoch": OTHER, "after": 0}, {**asked, "after": 10_000}):
        found = client.ours("turn/events", **strange)
        assert found["reset"] is True
        assert found["events"] == []
    assert client.refusal("turn/events", **asked, after=-1)[0] == INVALID


def test_crash_during_a_permission_question_means_not_run(servers: ServerProcesses) -> None:
    """Row C5, case 83: the call is shown as not run; asked for again, it is a new attempt and runs once."""
    client, session, _ = parked(servers)
    client.kill()
    client = servers.start_checked()
    opened = client.ours("session/open", sessionId=session["sessionId"])
    reading, call = opened_calls(opened)
    assert (reading["tool"], reading["state"]) == ("read_file", "failed"), "there was no file to read"
    assert (call["tool"], call["state"]) == ("write_file", "notRun")
    assert opened["snapshot"]["calls"] == []
    turn_id = client.send_prompt(opened["session"], "write a.txt with hello", "c2")["turnId"]
    client.ended(turn_id)
    *_, anew = client.calls(turn_id)
    assert (anew["tool"], anew["state"]) == ("write_file", "returned")
    assert anew["attemptId"] != call["attemptId"]
    first, second = servers.change_intents(session["sessionId"])
    assert first["key"] == second["key"], "the first one never happened (N2)"
    assert servers.content("a.txt") == "hello"


def test_opening_twice_leaves_the_journal_unchanged(servers: ServerProcesses) -> None:
    """Case 10, row C4: two servers open the session one after the other; the bytes of the journal stay the same."""
    client = servers.start_checked()
    session = client.ours("session/create")
    client.say(session, "write a.txt with hello")
    assert client.shut_down() == 0
    path = servers.state / "sessions" / session["sessionId"] / "journal.jsonl"
    before = path.read_bytes()
    shown = []
    for _ in range(2):
        client = servers.start_checked()
        opened = client.ours("session/open", sessionId=session["sessionId"])
        shown.append(json.dumps([opened["messages"], opened["queue"], opened["damaged"]]))
        assert client.shut_down() == 0
    assert path.read_bytes() == before
    assert len(set(shown)) == 1
