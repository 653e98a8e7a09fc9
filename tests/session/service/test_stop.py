"""Stop: what waits in the queue is paused, and a prompt that is sent later begins at once (row S9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.model.messages import ProviderError, TextPart
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.records.record import Record
from steadyhand.domain.views.notifications import QueueNotification
from steadyhand.domain.views.types import TextDelta
from steadyhand.session.calls.cancel import stop_turn
from steadyhand.session.service import prompt_queue
from steadyhand.session.session import Session
from tests.support.editor import Park, ScriptedEditor
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.journals import intends, starts, verdict
from tests.support.model import Play, asks, says, write
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio
WRITING = asks(write("a.txt", "a"))


def queued(session: Session) -> list[tuple[str, bool]]:
    return [(one.text, one.paused) for one in session.queue()]


def last_told(stage: InProcessServer) -> list[tuple[str, bool]]:
    told = [one for one in stage.editor.told if isinstance(one, QueueNotification)]
    return [(one.text, one.paused) for one in told[-1].queue]


def said(stage: InProcessServer, turn_id: str) -> str:
    return "".join(one.delta for one in stage.events(turn_id) if isinstance(one, TextDelta))


async def with_two_waiting(stage: InProcessServer, park: Park) -> tuple[Session, str]:
    session = await stage.session()
    accepted = await stage.send(session, "go")
    await park.wait_open()
    await stage.send(session, "one")
    await stage.send(session, "two")
    return session, accepted.turn_id


async def test_cancel_pauses_what_waits_and_a_later_prompt_begins_at_once(tmp_path: Path) -> None:
    """S9, S4, case 158: the notification says it; resumed, the rest runs in its order."""
    park = Park()
    async with scripted_server(
        tmp_path, WRITING, says("now"), says("1"), says("2"), editor=ScriptedEditor(park)
    ) as stage:
        session, turn_id = await with_two_waiting(stage, park)
        assert await prompt_queue.cancel(session, turn_id)
        assert queued(session) == last_told(stage) == [("one", True), ("two", True)]
        await stage.ended(session, turn_id)
        await until(lambda: session.can_begin_turn)
        assert len(stage.model.requests) == 1, "nothing began by itself"
        later = await stage.send(session, "three")
        assert not later.queued
        await stage.ended(session, later.turn_id)
        assert queued(session) == [("one", True), ("two", True)]
        await prompt_queue.resume(session, session.epoch or "")
        await until(lambda: len(stage.model.requests) == 4 and not session.view().busy)
        texts = [message.text for message in stage.model.requests[-1].messages]
        assert [text for text in texts if text in ("one", "two", "three")] == ["three", "one", "two"]


async def test_usage_after_a_stop_keeps_the_context_of_the_last_request(tmp_path: Path) -> None:
    """U1, case 158: the stopped request reported nothing, so the sum is incomplete and the context stays."""
    gate = Gate()
    async with scripted_server(tmp_path, says("ok"), [TextPart("Half"), gate]) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        before = usage_view(session.ledger)
        accepted = await stage.send(session, "on")
        await gate.wait_reached()
        assert await prompt_queue.cancel(session, accepted.turn_id)
        await stage.ended(session, accepted.turn_id)
        after = usage_view(session.ledger)
        assert len(session.ledger.usage) == 2
        assert after.context == before.context == 15
        assert (before.complete, after.complete) == (True, False)


async def test_prompt_that_is_sent_while_the_stopped_turn_ends_runs_behind_it(tmp_path: Path) -> None:
    """S9: it was sent later than the stop, so it is not paused."""
    park = Park()
    async with scripted_server(tmp_path, WRITING, says("now"), editor=ScriptedEditor(park)) as stage:
        session, turn_id = await with_two_waiting(stage, park)
        assert await stop_turn(session, turn_id)
        assert session.turn is not None, "it has not ended yet"
        later = await stage.send(session, "three")
        assert later.queued
        assert queued(session) == [("one", True), ("two", True), ("three", False)]
        assert (await stage.ended(session, later.turn_id)).reason == "done"


async def test_slash_stop_says_how_many_wait_and_slash_resume_goes_on(tmp_path: Path) -> None:
    """S9, B4: neither is queued; without a running turn `/stop` says so."""
    park = Park()
    async with scripted_server(tmp_path, WRITING, says("1"), says("2"), editor=ScriptedEditor(park)) as stage:
        session, turn_id = await with_two_waiting(stage, park)
        stop = await stage.send(session, "/stop")
        await stage.ended(session, stop.turn_id)
        assert said(stage, stop.turn_id) == "Stopped. 2 prompts wait; /resume or queue/resume goes on."
        assert (await stage.ended(session, turn_id)).reason == "cancelled"
        await until(lambda: session.can_begin_turn)
        assert queued(session) == last_told(stage) == [("one", True), ("two", True)]
        again = await stage.send(session, "/stop")
        await stage.ended(session, again.turn_id)
        assert said(stage, again.turn_id) == "No turn is running."
        resume = await stage.send(session, "/resume")
        assert not resume.queued
        await until(lambda: len(stage.model.requests) == 3 and not session.view().busy)
        assert session.queue() == ()


async def test_slash_stop_pauses_what_waits_for_a_resolution(tmp_path: Path) -> None:
    """S9, A3: no turn runs while a resolution is carried out, and the prompt that waits for its end is paused too."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        with session.resolution():
            await stage.send(session, "one")
            stop = await stage.send(session, "/stop")
            await stage.ended(session, stop.turn_id)
            assert said(stage, stop.turn_id) == "Stopped. 1 prompts wait; /resume or queue/resume goes on."
        await session.start_next_prompt()
        assert queued(session) == [("one", True)]
        assert not stage.model.requests


async def test_removing_a_prompt_that_waits_pauses_nothing(tmp_path: Path) -> None:
    """S9, S4: `turn/cancel` of a queued prompt stops no turn."""
    park = Park()
    async with scripted_server(tmp_path, WRITING, says("ok"), says("2"), editor=ScriptedEditor(park)) as stage:
        session, _ = await with_two_waiting(stage, park)
        first = next(iter(session.ledger.queue.values()))
        assert await prompt_queue.cancel(session, first.turn_id)
        assert queued(session) == [("two", False)]
        park.answer_with("once")
        await until(lambda: len(stage.model.requests) == 3 and not session.view().busy)


async def test_close_pauses_what_waits_in_a_session_that_stays_held(tmp_path: Path) -> None:
    """S9, B1, decision 4: an uncertain session stays open after its close, and nothing begins in it by itself."""
    park = Park()
    async with scripted_server(tmp_path, WRITING, editor=ScriptedEditor(park)) as stage:
        session, turn_id = await with_two_waiting(stage, park)
        lost: list[Record] = [intends("lost", "t"), starts("lost"), verdict("lost", "unknown_after_restart", "t")]
        await session.log.append(lost, barrier=True)
        await stage.registry.close(session.session_id)
        assert (await stage.ended(session, turn_id)).reason == "closed"
        assert stage.registry.sessions[session.session_id] is session
        assert queued(session) == last_told(stage) == [("one", True), ("two", True)]
        assert len(stage.model.requests) == 1


async def test_close_and_crash_leave_the_queue_paused(tmp_path: Path) -> None:
    """S9, D1: opened again in this process, and in another one after a kill."""
    park = Park()
    async with scripted_server(tmp_path, WRITING, editor=ScriptedEditor(park)) as stage:
        session, _ = await with_two_waiting(stage, park)
        state = stage.crashed(tmp_path / "later")
        await stage.registry.close(session.session_id)
        again = await stage.opened(session.session_id)
        assert again is not session
        assert queued(again) == [("one", True), ("two", True)]
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        assert queued(await stage.opened(session.session_id)) == [("one", True), ("two", True)]


@pytest.mark.parametrize("kind", ["modelFailed", "length"])
async def test_other_ends_pause_no_prompt(tmp_path: Path, kind: str) -> None:
    """S9, S4: a turn that failed by itself is no stop: the next prompt begins."""
    gate = Gate()
    ends: Play = [ProviderError("It failed.")] if kind == "modelFailed" else says("half", finish="length")
    async with scripted_server(tmp_path, [gate, *ends], says("1")) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await gate.wait_reached()
        await stage.send(session, "one")
        gate.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == kind
        await until(lambda: len(stage.model.requests) == 2 and not session.view().busy)
