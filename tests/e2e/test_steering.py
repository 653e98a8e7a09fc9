"""Steering and stopping over stdio: what waits, what a turn takes, what a kill leaves, and the bytes for a provider
(rows S8, S9, D1)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest

from tests.models.streams import DIALECTS, KEY, PROVIDER, Ask, Dialect, End, Say, Step, plain, written
from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import UNANSWERED, Json
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider

INVALID = -32602
OTHER = "f" * 32


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def parked(servers: ServerProcesses, text: str, **more: Any) -> tuple[CheckedClient, Json, str]:
    """A server with a turn that waits for a permission: (client, session, turn id). The id of its prompt is `c1`."""
    client = servers.start_checked(permission=lambda _: UNANSWERED, **more)
    session = client.ours("session/create")
    turn_id = client.send_prompt(session, text, "c1")["turnId"]
    client.notification("steadyhand/session/changed", that=lambda told: told["parked"])
    return client, session, turn_id


def allow(client: CheckedClient) -> None:
    """Answer the open question."""
    question = client.asked("steadyhand/permission/ask")
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"option": "once"}})


def send(client: CheckedClient, session: Json, turn_id: str, text: str, name: str) -> Json:
    answer: Json = client.ours(
        "turn/steer",
        sessionId=session["sessionId"],
        epoch=session["epoch"],
        turnId=turn_id,
        clientMessageId=name,
        text=text,
    )
    return answer


def queue_told(client: CheckedClient, *texts: str) -> list[Json]:
    """Wait for a queue of these texts."""
    told: Json = client.notification(
        "steadyhand/queue/changed", that=lambda told: [one["text"] for one in told["queue"]] == list(texts)
    )
    queue: list[Json] = told["queue"]
    return queue


def test_steer_waits_is_taken_and_is_shown_also_after_a_restart(servers: ServerProcesses) -> None:
    """S8: every notification, answer and view, in their shapes; the model acts on it in the same turn."""
    client, session, turn_id = parked(servers, "write a.txt with hello")
    assert send(client, session, turn_id, "say only that", "s1") == {
        "accepted": True, "duplicate": False, "queued": False,
    }  # fmt: skip
    (waiting,) = queue_told(client, "say only that")
    assert (waiting["paused"], waiting["steers"], waiting["clientMessageId"]) == (True, turn_id, "s1")
    status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="s1")
    assert status == {"known": True, "turnId": turn_id, "state": "queued"}
    allow(client)
    assert client.ended(turn_id)["reason"] == "done"
    queue_told(client)
    kinds = [(event["kind"], event.get("text")) for event in client.events(turn_id)]
    assert kinds.count(("steered", "say only that")) == 1
    assert servers.content("a.txt") == "hello"
    status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="s1")
    assert status == {"known": True, "turnId": turn_id, "state": "ended", "reason": "done"}
    shown = shown_messages(client, session)
    assert [(role, text) for role, text, _ in shown][-2:] == [
        ("user", "say only that"), ("assistant", "only that\ndone: 0 of 0"),
    ]  # fmt: skip
    assert shown[-2][2] == turn_id
    client.kill()
    client = servers.start_checked()
    assert shown_messages(client, session) == shown
    again = client.ours(
        "turn/steer", sessionId=session["sessionId"], epoch=session["epoch"], turnId=turn_id, clientMessageId="s1",
        text="say only that",
    )  # fmt: skip
    assert again == {"accepted": True, "duplicate": True, "queued": False}


def shown_messages(client: CheckedClient, session: Json) -> list[tuple[str, str, str]]:
    opened = client.ours("session/open", sessionId=session["sessionId"])
    return [(one["role"], one["text"], one["turnId"]) for one in opened["messages"]]


def test_steer_that_was_not_taken_survives_a_kill_paused_and_resumes(servers: ServerProcesses) -> None:
    """S8, D1: acknowledged, so it is there; it begins nothing by itself; resumed, it is a prompt."""
    client, session, turn_id = parked(servers, "write a.txt with hello")
    client.send_prompt(session, "say queued", "c2")
    send(client, session, turn_id, "say one", "s1")
    client.kill()
    client = servers.start_checked()
    opened = client.ours("session/open", sessionId=session["sessionId"])
    waiting = [(one["text"], one["paused"], one.get("steers")) for one in opened["queue"]]
    assert waiting == [("say one", True, turn_id), ("say queued", True, None)]
    again = send(client, session, turn_id, "say one", "s1")
    assert again == {"accepted": True, "duplicate": True, "queued": True}
    assert client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="s1")["state"] == "queued"
    client.ours("queue/resume", sessionId=session["sessionId"], epoch=opened["session"]["epoch"])
    client.notification("steadyhand/queue/changed", that=lambda told: told["queue"] == [])
    status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="c2")
    client.ended(status["turnId"])
    texts = [record["text"] for record in servers.records(session["sessionId"]) if record["kind"] == "user"]
    assert texts == ["write a.txt with hello", "say one", "say queued"]


def test_steer_refusals_come_in_their_documented_order(servers: ServerProcesses) -> None:
    """S8, docs/protocol.md: params, unknownSession, another text under a known id, staleEpoch, then -32602."""
    client, session, turn_id = parked(servers, "write a.txt with hello")
    good = {
        "sessionId": session["sessionId"], "epoch": session["epoch"], "turnId": turn_id, "clientMessageId": "s1",
        "text": "say one",
    }  # fmt: skip

    def refused(**changed: object) -> tuple[int, str]:
        return client.refusal("turn/steer", **{**good, **changed})

    assert refused(text=5, sessionId=OTHER) == (INVALID, "invalidParams")
    assert refused(attachments=[]) == (INVALID, "invalidParams")
    assert refused(text="") == (INVALID, "invalidParams")
    assert refused(text="x" * 65_537) == (INVALID, "invalidParams")
    assert refused(sessionId=OTHER, epoch=OTHER) == (-32050, "unknownSession")
    assert refused(clientMessageId="c1", epoch=OTHER) == (INVALID, "invalidParams")
    assert refused(epoch=OTHER, turnId=OTHER, text="/help") == (-32051, "staleEpoch")
    assert refused(turnId=OTHER) == (INVALID, "invalidParams")
    assert refused(text="/help") == (INVALID, "invalidParams")
    assert not client.ours("turn/steer", **good)["duplicate"], "no refusal has used the id up"
    assert client.ours("turn/steer", **{**good, "epoch": OTHER})["duplicate"]


@pytest.mark.parametrize("way", ["turn/cancel", "/stop", "steadyhand.cancel", "session/close"])
def test_stop_pauses_what_waits(servers: ServerProcesses, way: str) -> None:
    """S9, case 158: the queue says it; a prompt that is sent later begins at once."""
    client, session, turn_id = parked(servers, "write a.txt with hello")
    named = {"sessionId": session["sessionId"]}
    client.send_prompt(session, "say queued", "c2")
    match way:
        case "turn/cancel":
            assert client.ours(way, **named, turnId=turn_id) == {"cancelled": True}
        case "/stop":
            said = client.send_prompt(session, way)["turnId"]
            client.ended(said)
            text = "".join(event["delta"] for event in client.events(said) if event["kind"] == "text")
            assert text == "Stopped. 1 prompts wait; /resume or queue/resume goes on."
        case "steadyhand.cancel":
            assert client.command("cancel", named) == {"cancelled": True}
        case _:
            client.ours(way, **named)
    client.notification(
        "steadyhand/queue/changed", that=lambda told: [one["paused"] for one in told["queue"]] == [True]
    )
    assert client.ended(turn_id)["reason"] == ("closed" if way == "session/close" else "cancelled")
    opened = client.ours("session/open", **named)["session"]
    assert client.say(opened, "say later")["reason"] == "done"
    assert [one["paused"] for one in client.ours("session/open", **named)["queue"]] == [True]
    assert servers.content("a.txt") is None


# What a provider gets.


def answer(dialect: Dialect, *steps: Step) -> Scripted:
    return Scripted([plain(written(dialect, steps))])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_bytes_for_the_provider_stay_the_same_after_a_steer(servers: ServerProcesses, dialect: Dialect) -> None:
    """S8, T1, T5, P4: in each dialect the steer stands behind the replies; each later request, one after a kill too,
    begins with the bytes of the one before."""
    write = Ask("write_file", ('{"path":"a.txt","content":"x"}',), "call_9")
    answers = [
        answer(dialect, Say("I write."), write, End("calls")),
        *(answer(dialect, Say(text), End("stop")) for text in ("Only that.", "Next.", "After.")),
    ]

    def answering(asked: Asked) -> Scripted:
        return answers.pop(0) if asked.method == "POST" else Scripted([b"{}"], 404, {}, "length")

    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ScriptedProvider(answering=answering)) as provider,
    ):
        model = {"provider": PROVIDER[dialect], "name": "m", "baseUrl": provider.address, "apiKeyEnv": "MINE"}
        more: dict[str, Any] = {"options": {"model": {**model, "dialect": dialect}}, "env": {"MINE": KEY}}
        client, session, turn_id = parked(servers, "Write a.txt", **more)
        send(client, session, turn_id, "Only that, please.", "s1")
        allow(client)
        assert client.ended(turn_id)["reason"] == "done"
        client.say(session, "Next?")
        client.kill()
        client = servers.start_checked(**more)
        opened = client.ours("session/open", sessionId=session["sessionId"])["session"]
        assert client.say(opened, "And after?", "c9")["reason"] == "done"
        bodies = [asked.body for asked in provider.asked if asked.method == "POST"]
    ends = [body.rindex(b"]", 0, body.index(b'"stream":true')) for body in bodies]
    for earlier, end, later in zip(bodies, ends, bodies[1:], strict=False):
        assert later.startswith(earlier[: end - 2])
    assert (
        shape(dialect, json.loads(bodies[1]))
        == {
            "chat": ["system", "user", "assistant", "tool", "user: Only that, please."],
            "messages": ["user", "assistant", "tool_result, text: Only that, please."],
            "responses": ["user", "assistant", "function_call", "function_call_output", "user: Only that, please."],
        }[dialect]
    )


def shape(dialect: Dialect, body: Json) -> list[str]:
    """One word for each message or item, and what the last one says."""
    if dialect == "responses":
        items = body["input"]
        return [item.get("role") or item["type"] for item in items[:-1]] + [f"user: {items[-1]['content'][0]['text']}"]
    messages = body["messages"]
    words = [message["role"] for message in messages[:-1]]
    last = messages[-1]["content"]
    if dialect == "messages":
        return [*words, ", ".join(f"{b['type']}: {b['text']}" if b["type"] == "text" else b["type"] for b in last)]
    return [*words, f"user: {last}"]
