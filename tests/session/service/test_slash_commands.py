"""Slash commands: answered by the events of a turn, without a model request (docs/protocol.md; rows B4, G5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.records.record import User
from steadyhand.domain.views.types import Began, TextDelta, TurnEnded
from steadyhand.session.service import prompt_queue
from tests.support.editor import Park, ScriptedEditor
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, says, write
from tests.support.session_state import assert_closed, on_disk, states
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio


def answer_text(harness: InProcessServer, turn_id: str) -> str:
    return "".join(event.delta for event in harness.events(turn_id) if isinstance(event, TextDelta))


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("/help", "/help: this list."),
        ("/help me", "/help: this list."),
        ("/stop", "No turn is running."),
        ("/recovery", "Nothing is uncertain."),
        ("/recovery inspect", "Nothing is uncertain."),
        ("/recovery dance", "Say /recovery, or"),
        ("/stats", "No effect of this session was ever uncertain."),
        ("/nonsense at all", "There is no command /nonsense.\n/help"),
        ("/", "There is no command /.\n/help"),
    ],
)
async def test_slash_command_is_answered_in_a_turn_without_a_model_request(
    tmp_path: Path, line: str, begins: str
) -> None:
    """docs/protocol.md: a whole turn with its events, no model request, and no part of the model's history (row G5)."""
    async with scripted_server(tmp_path, says("ok")) as harness:
        session = await harness.session()
        accepted = await harness.send(session, line, "c1")
        assert not accepted.queued
        assert await harness.ended(session, accepted.turn_id) == TurnEnded("done", ())
        events = harness.events(accepted.turn_id)
        assert events[0] == Began("c1")
        assert sum(isinstance(event, Began) for event in events) == 1
        assert answer_text(harness, accepted.turn_id).startswith(begins)
        assert harness.model.requests == []
        assert [message.role for message in session.messages(9)[0]] == ["user", "assistant"]
        assert prompt_queue.status_of(session, "c1").state == "ended"
        await harness.say(session, "hello")
        assert [getattr(m, "text", "") for m in harness.model.requests[0].messages] == ["hello"]
        assert not session.view().busy


async def test_slash_commands_run_beside_a_parked_turn(tmp_path: Path) -> None:
    """Row B4: /recovery, /stop and /help are never queued. /stop stops the turn whose question is open."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as harness:
        session = await harness.session()
        first = await harness.send(session, "one")
        await park.wait_open()
        for line in ("/help", "/recovery"):
            accepted = await harness.send(session, line)
            assert not accepted.queued
            assert (await harness.ended(session, accepted.turn_id)).reason == "done"
            assert not park.withdrawn
        accepted = await harness.send(session, "/stop")
        assert (await harness.ended(session, first.turn_id)).reason == "cancelled"
        await harness.ended(session, accepted.turn_id)
        assert answer_text(harness, accepted.turn_id) == "Stopped. 0 prompts wait; /resume or queue/resume goes on."
        assert park.withdrawn
        assert states(session) == ["notRun"]
        assert_closed(session)


async def test_unknown_slash_command_is_queued_like_a_prompt(tmp_path: Path) -> None:
    """Row S4: a line that is none of the three is queued like any prompt, and answered when its turn comes."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("ok")], says("two")) as harness:
        session = await harness.session()
        await harness.send(session, "one")
        await gate.wait_reached()
        unknown_command, last = await harness.send(session, "/nonsense"), await harness.send(session, "two")
        assert (unknown_command.queued, last.queued) == (True, True)
        gate.go.set()
        assert (await harness.ended(session, unknown_command.turn_id)).reason == "done"
        assert (await harness.ended(session, last.turn_id)).reason == "done"
        assert "no command" in answer_text(harness, unknown_command.turn_id)
        assert [(r.text, r.command) for r in on_disk(session) if isinstance(r, User)] == [
            ("one", False), ("/nonsense", True), ("two", False),
        ]  # fmt: skip


async def test_slash_command_with_the_same_id_is_a_duplicate(tmp_path: Path) -> None:
    """Row D1: the same id again is a duplicate for commands too, while the answer is written and later."""
    async with scripted_server(tmp_path) as harness:
        session = await harness.session()
        first = await harness.send(session, "/help", "c1")
        again = await harness.send(session, "/help", "c1")
        assert (again.turn_id, again.duplicate) == (first.turn_id, True)
        await until(lambda: prompt_queue.status_of(session, "c1").state == "ended")
        assert sum(isinstance(r, User) for r in on_disk(session)) == 1


async def test_text_with_a_slash_inside_goes_to_the_model(tmp_path: Path) -> None:
    """docs/protocol.md: only a text that begins with `/` is a command. A path in a sentence goes to the model."""
    async with scripted_server(tmp_path, says("ok")) as harness:
        session = await harness.session()
        await harness.say(session, "look at /help")
        await harness.say(session, " /help")
        assert len(harness.model.requests) == 2


async def test_session_close_during_a_slash_command_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    """Row S2: a close right after a command loses nothing that was acknowledged, and the session opens again."""
    async with scripted_server(tmp_path) as harness:
        session = await harness.session()
        await harness.send(session, "/help", "c1")
        await harness.registry.close(session.session_id)
        again = await harness.opened(session.session_id)
        assert again.read_only is None
        assert prompt_queue.status_of(again, "c1").known
        assert (await harness.send(again, "/help", "c1")).duplicate
