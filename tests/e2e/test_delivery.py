"""Delivery over stdio: acknowledged once durable, run once, queued in order, across a killed server too (D, S4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_client import CheckedClient, Desk
from tests.support.raw_client import UNANSWERED, ErrorAnswer, Json

INVALID = -32602
OTHER = "f" * 32


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place whose servers are ended and checked."""
    made = Desk.under(tmp_path)
    yield made
    made.close()


def parked(desk: Desk) -> tuple[CheckedClient, Json, str]:
    """A server with a turn whose question stays open: (client, session, turn id); its prompt is `c1`."""
    client = desk.server(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, "write a.txt with hello", "c1")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    return client, session, turn_id


def test_acknowledged_is_on_disk(desk: Desk) -> None:
    """Row D1: killed right behind the acknowledgement, the prompt is in the journal, running or queued."""
    client = desk.server(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    first = client.send_prompt(session, "write a.txt with hello", "c1")
    second = client.send_prompt(session, "say two", "c2")
    client.kill()
    records = desk.journal(session["sessionId"])
    found = {r["clientMessageId"]: (r["kind"], r["turnId"]) for r in records if "clientMessageId" in r}
    assert found == {"c1": ("user", first["turnId"]), "c2": ("queue", second["turnId"])}


def test_a_resend_after_a_kill(desk: Desk) -> None:
    """Rows D1, D2, case 40: with the old epoch it is a duplicate of the same turn and runs nothing."""
    client, session, turn_id = parked(desk)
    client.kill()
    client = desk.server()
    again = client.send_prompt(session, "write a.txt with hello", "c1")
    assert again == {"turnId": turn_id, "accepted": True, "duplicate": True, "queued": False}
    status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="c1")
    assert status == {"known": True, "turnId": turn_id, "state": "interrupted"}
    unknown = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="c2")
    assert unknown == {"known": False}
    assert desk.content("a.txt") is None
    assert "started" not in desk.kinds(session["sessionId"])
    opened = client.ours("session/open", sessionId=session["sessionId"])
    assert opened["messages"][1]["calls"][0]["state"] == "notRun"
    assert client.refusal(
        "turn/start", sessionId=session["sessionId"], epoch=session["epoch"], clientMessageId="c2", text="say two"
    ) == (-32051, "staleEpoch")
    assert client.say(opened["session"], "write a.txt with hello", "c2")["changed"] != []


def test_many_sends_of_one_prompt(desk: Desk) -> None:
    """Row D1: sent eight times without waiting, it runs once, and every answer names the same turn."""
    client = desk.server()
    session = client.ours("session/create")
    params = {"sessionId": session["sessionId"], "epoch": session["epoch"], "clientMessageId": "c1", "text": "say one"}
    ids = [client.ask("steadyhand/turn/start", params) for _ in range(8)]
    answers = [client.result(each) for each in ids]
    assert len({answer["turnId"] for answer in answers}) == 1
    assert sum(not answer["duplicate"] for answer in answers) == 1
    client.ended(answers[0]["turnId"])
    assert desk.kinds(session["sessionId"]).count("user") == 1
    assert desk.kinds(session["sessionId"]).count("assistant") == 1


def test_what_turn_start_refuses(desk: Desk) -> None:
    """wire.md: codes and words, in their order: params, unknownSession, a known id's other text, staleEpoch."""
    client = desk.server()
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


def test_a_queue_over_a_kill(desk: Desk) -> None:
    """Row S4, case 76: three queued while busy are there after a kill, in order, paused; resumed they run."""
    client, session, _ = parked(desk)
    for number in (1, 2, 3):
        assert client.send_prompt(session, f"say number {number}", f"q{number}")["queued"]
    client.kill()
    client = desk.server()
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
    texts = [r["text"] for r in desk.journal(session["sessionId"]) if r["kind"] == "user"]
    assert texts == ["write a.txt with hello", "say number 1", "say number 2", "say number 3"]


def test_events_after_a_lost_connection(desk: Desk) -> None:
    """Row D3: what was told can be asked for again by number; another epoch or a number never given is a reset."""
    client = desk.server()
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


def test_a_crash_while_the_user_decides(desk: Desk) -> None:
    """Row C5, case 83: the card says that it did not run; asked for anew it is a new attempt and runs once."""
    client, session, _ = parked(desk)
    client.kill()
    client = desk.server()
    opened = client.ours("session/open", sessionId=session["sessionId"])
    (call,) = opened["messages"][1]["calls"]
    assert call["state"] == "notRun"
    assert opened["snapshot"]["calls"] == []
    turn_id = client.send_prompt(opened["session"], "write a.txt with hello", "c2")["turnId"]
    client.ended(turn_id)
    (anew,) = client.calls(turn_id)
    assert anew["state"] == "returned"
    assert anew["attemptId"] != call["attemptId"]
    records = desk.journal(session["sessionId"])
    assert len({r["key"] for r in records if r["kind"] == "intent"}) == 1, "the first one never happened (N2)"
    assert desk.content("a.txt") == "hello"


def test_opening_is_a_pure_read(desk: Desk) -> None:
    """Case 10, row C4: opened by two servers, one after another, the journal's bytes stay as they are."""
    client = desk.server()
    session = client.ours("session/create")
    client.say(session, "write a.txt with hello")
    assert client.shut_down() == 0
    path = desk.state / "sessions" / session["sessionId"] / "journal.jsonl"
    before = path.read_bytes()
    shown = []
    for _ in range(2):
        client = desk.server()
        opened = client.ours("session/open", sessionId=session["sessionId"])
        shown.append(json.dumps([opened["messages"], opened["queue"], opened["damaged"]]))
        assert client.shut_down() == 0
    assert path.read_bytes() == before
    assert len(set(shown)) == 1
