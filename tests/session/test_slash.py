"""Slash commands: answered by the events of a turn, without a model request (wire.md; rows B4, G5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.core.record import User
from steadyhand.core.views import Began, TextDelta, TurnEnded
from steadyhand.session import prompts
from tests.support.scripted import (
    Gate,
    Park,
    ScriptedEditor,
    Stage,
    asks,
    assert_closed,
    on_disk,
    says,
    staged,
    states,
    until,
    write,
)

pytestmark = pytest.mark.anyio


def said(stage: Stage, turn_id: str) -> str:
    return "".join(event.delta for event in stage.events(turn_id) if isinstance(event, TextDelta))


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("/help", "/help: this list."),
        ("/help me", "/help: this list."),
        ("/stop", "No turn is running."),
        ("/recovery", "Nothing is uncertain."),
        ("/recovery inspect", "Nothing is uncertain."),
        ("/recovery dance", "Say /recovery, or"),
        ("/nonsense at all", "There is no command /nonsense.\n/help"),
        ("/", "There is no command /.\n/help"),
    ],
)
async def test_what_a_command_answers(tmp_path: Path, line: str, begins: str) -> None:
    """wire.md: a whole turn with its events, no model request, and no part of the model's history (row G5)."""
    async with staged(tmp_path, says("ok")) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, line, "c1")
        assert not accepted.queued
        assert await stage.ended(owner, accepted.turn_id) == TurnEnded("done", ())
        events = stage.events(accepted.turn_id)
        assert events[0] == Began("c1")
        assert sum(isinstance(event, Began) for event in events) == 1
        assert said(stage, accepted.turn_id).startswith(begins)
        assert stage.model.requests == []
        assert [message.role for message in owner.messages(9)[0]] == ["user", "assistant"]
        assert prompts.status(owner, "c1").state == "ended"
        await stage.say(owner, "hello")
        assert [getattr(m, "text", "") for m in stage.model.requests[0].messages] == ["hello"]
        assert not owner.view().busy


async def test_commands_beside_a_parked_turn(tmp_path: Path) -> None:
    """Row B4: /recovery, /stop and /help are never queued; /stop stops the turn whose question is open."""
    park = Park()
    async with staged(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as stage:
        owner = await stage.session()
        first = await stage.send(owner, "one")
        await park.wait_open()
        for line in ("/help", "/recovery"):
            accepted = await stage.send(owner, line)
            assert not accepted.queued
            assert (await stage.ended(owner, accepted.turn_id)).reason == "done"
            assert not park.withdrawn
        accepted = await stage.send(owner, "/stop")
        assert (await stage.ended(owner, first.turn_id)).reason == "cancelled"
        await stage.ended(owner, accepted.turn_id)
        assert said(stage, accepted.turn_id) == "The turn is stopped."
        assert park.withdrawn
        assert states(owner) == ["notRun"]
        assert_closed(owner)


async def test_other_commands_wait_their_turn(tmp_path: Path) -> None:
    """Row S4: a line that is none of the three queues like any prompt, and is answered when its turn comes."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("ok")], says("two")) as stage:
        owner = await stage.session()
        await stage.send(owner, "one")
        await gate.wait_reached()
        odd, last = await stage.send(owner, "/nonsense"), await stage.send(owner, "two")
        assert (odd.queued, last.queued) == (True, True)
        gate.go.set()
        assert (await stage.ended(owner, odd.turn_id)).reason == "done"
        assert (await stage.ended(owner, last.turn_id)).reason == "done"
        assert "no command" in said(stage, odd.turn_id)
        assert [(r.text, r.command) for r in on_disk(owner) if isinstance(r, User)] == [
            ("one", False), ("/nonsense", True), ("two", False),
        ]  # fmt: skip


async def test_a_command_is_delivered_once(tmp_path: Path) -> None:
    """Row D1: the same id again is a duplicate for commands too, while the answer is written and later."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        first = await stage.send(owner, "/help", "c1")
        again = await stage.send(owner, "/help", "c1")
        assert (again.turn_id, again.duplicate) == (first.turn_id, True)
        await until(lambda: prompts.status(owner, "c1").state == "ended")
        assert sum(isinstance(r, User) for r in on_disk(owner)) == 1


async def test_a_text_that_only_looks_like_a_command(tmp_path: Path) -> None:
    """wire.md: only a text that begins with `/` is a command; a path in a sentence goes to the model."""
    async with staged(tmp_path, says("ok")) as stage:
        owner = await stage.session()
        await stage.say(owner, "look at /help")
        await stage.say(owner, " /help")
        assert len(stage.model.requests) == 2


async def test_closing_while_a_command_is_answered(tmp_path: Path) -> None:
    """Row S2: a close right behind a command loses nothing that was acknowledged, and the session opens again."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        await stage.send(owner, "/help", "c1")
        await stage.house.close(owner.session_id)
        again = await stage.opened(owner.session_id)
        assert again.read_only is None
        assert prompts.status(again, "c1").known
        assert (await stage.send(again, "/help", "c1")).duplicate
