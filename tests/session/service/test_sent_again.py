"""A failed request is sent again as it was, in a turn of its own (case 114)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import AssistantMessage, ProviderError, ReplyMessage, TextPart
from steadyhand.domain.records.prompt import Prompt, TextAttachment
from steadyhand.domain.records.record import Notice, User
from steadyhand.session.service import prompt_queue
from steadyhand.session.session import Session
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import Play, asks, says, write
from tests.support.session_state import assert_closed, on_disk
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio

DOWN = ProviderError("The provider is down. Try again in a moment.")
FAILED: dict[str, Play] = {
    "before any answer": [DOWN],
    "after a part of it": [TextPart("half an ans"), DOWN],
    "cut off": [TextPart("half an ans")],
}


async def failed_turn(stage: InProcessServer, session: Session, text: str = "Do it", name: str = "first") -> str:
    accepted = await stage.send(session, text, name)
    assert (await stage.ended(session, accepted.turn_id)).reason in ("modelFailed", "cut")
    return accepted.turn_id


async def send_again(stage: InProcessServer, session: Session, turn_id: str, text: str = "Do it") -> str:
    sent = Prompt(text, again=turn_id)
    accepted = await prompt_queue.submit(session, session.epoch, f"again-{turn_id}", sent)
    await stage.ended(session, accepted.turn_id)
    return accepted.turn_id


@pytest.mark.parametrize("how", FAILED)
async def test_same_request_goes_out_once_more(tmp_path: Path, how: str) -> None:
    """Case 114, T5: the request has the very messages of the one that failed; what had come of the answer is not in it.
    The next prompt extends it."""
    async with scripted_server(tmp_path, says("hello"), FAILED[how], says("done"), says("and")) as stage:
        session = await stage.session()
        await stage.say(session, "Hi", "zero")
        turn_id = await failed_turn(stage, session)
        await send_again(stage, session, turn_id)
        assert (await stage.say(session, "Go on", "next")).reason == "done"
        _, failed, again, later = stage.model.requests
        assert (again.system, again.tools, again.messages) == (failed.system, failed.tools, failed.messages)
        assert later.messages[: len(again.messages)] == again.messages
        assert later.messages[len(again.messages)] == AssistantMessage("done")
        assert_closed(session)


async def test_effects_before_the_failure_are_not_repeated(tmp_path: Path) -> None:
    """Case 114: the request after a call failed; sent again it has the call and its reply, and the call runs once."""
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), [DOWN], says("done")) as stage:
        session = await stage.session("auto")
        turn_id = await failed_turn(stage, session)
        await send_again(stage, session, turn_id)
        _, failed, again = stage.model.requests
        assert again == failed
        assert isinstance(again.messages[-1], ReplyMessage)
        assert stage.content("a.txt") == "a"
        assert_closed(session)


async def test_turn_that_fails_again_can_be_sent_again(tmp_path: Path) -> None:
    """Case 114: an outage may last; the second attempt is the last turn now, and the first cannot be named any more."""
    async with scripted_server(tmp_path, [TextPart("one"), DOWN], [TextPart("two"), DOWN], says("done")) as stage:
        session = await stage.session()
        first = await failed_turn(stage, session)
        second = await send_again(stage, session, first)
        with pytest.raises(Refused):
            await prompt_queue.submit(session, session.epoch, "old", Prompt("Do it", again=first))
        await send_again(stage, session, second)
        assert stage.model.requests[0] == stage.model.requests[1] == stage.model.requests[2]


async def test_request_is_the_same_after_a_restart(tmp_path: Path) -> None:
    """Case 114, J1: which turn it repeats is in the journal and in the messages; a restart sends the same history."""
    async with scripted_server(tmp_path, [TextPart("half"), DOWN], says("done")) as stage:
        session = await stage.session()
        turn_id = await failed_turn(stage, session)
        await send_again(stage, session, turn_id)
        assert [record.again for record in on_disk(session) if isinstance(record, User)] == [None, turn_id]
        session_id = session.session_id
    async with scripted_server(tmp_path, says("later"), run=2) as stage:
        opened = await stage.open(session_id)
        assert [(message.role, message.text, message.again) for message in opened.messages] == [
            ("user", "Do it", None),
            ("assistant", "half", None),
            ("user", "Do it", turn_id),
            ("assistant", "done", None),
        ]
        assert (await stage.say(session_id, "Go on", "next")).reason == "done"
        (request,) = stage.model.requests
        assert [getattr(message, "text", "") for message in request.messages] == ["Do it", "done", "Go on"]


async def test_notice_that_waits_goes_out_at_the_end(tmp_path: Path) -> None:
    """Case 114, T2: a notice that was recorded after the failure goes out with the request, behind what was sent."""
    async with scripted_server(tmp_path, [DOWN], says("done"), says("later")) as stage:
        session = await stage.session()
        turn_id = await failed_turn(stage, session)
        await session.log.append([Notice(message_id="a" * 32, text="A write was settled.", model=True)], barrier=True)
        await send_again(stage, session, turn_id)
        assert (await stage.say(session, "Go on", "next")).reason == "done"
        first, again, later = ([getattr(m, "text", "") for m in told.messages] for told in stage.model.requests)
        assert again == [*first, "[Notice] A write was settled."]
        assert later == [*again, "done", "Go on"]


async def test_repeated_client_id_is_acknowledged_once_more(tmp_path: Path) -> None:
    """Case 114, D1: the same id again runs nothing; with another turn or without one it is another prompt."""
    async with scripted_server(tmp_path, [DOWN], says("done")) as stage:
        session = await stage.session()
        turn_id = await failed_turn(stage, session)
        sent = Prompt("Do it", again=turn_id)
        accepted = await prompt_queue.submit(session, session.epoch, "twice", sent)
        await stage.ended(session, accepted.turn_id)
        assert await prompt_queue.submit(session, session.epoch, "twice", sent) == prompt_queue.Accepted(
            accepted.turn_id, True, False
        )
        with pytest.raises(Refused, match="another prompt"):
            await prompt_queue.submit(session, session.epoch, "twice", Prompt("Do it"))
        assert len(stage.model.requests) == 2


async def test_request_that_cannot_be_sent_again_is_refused(tmp_path: Path) -> None:
    """Case 114: only the last turn, only if its request failed, with its own text and without attachments."""
    gate = Gate()
    async with scripted_server(tmp_path, says("fine"), [DOWN], [gate, DOWN]) as stage:
        session = await stage.session()
        done = await stage.send(session, "Hi", "zero")
        await stage.ended(session, done.turn_id)
        refused: list[tuple[Prompt, str]] = [(Prompt("Hi", again=done.turn_id), "did not end as")]
        turn_id = await failed_turn(stage, session)
        refused += [
            (Prompt("Hi", again=done.turn_id), "not the last turn"),
            (Prompt("Do it", again="f" * 32), "not the last turn"),
            (Prompt("Do something else", again=turn_id), "not the text of that turn"),
            (Prompt("Do it", (TextAttachment("a", "b"),), again=turn_id), "sent again as it was"),
            (Prompt("Do it", aside=True, again=turn_id), "sent again as it was"),
        ]
        for number, (sent, words) in enumerate(refused[1:]):
            with pytest.raises(Refused, match=words):
                await prompt_queue.submit(session, session.epoch, f"refused-{number}", sent)
        running = await stage.send(session, "Wait", "waiting")
        await gate.wait_reached()
        with pytest.raises(Refused, match="not the last turn"):
            await prompt_queue.submit(session, session.epoch, "while", Prompt("Do it", again=turn_id))
        gate.go.set()
        await stage.ended(session, running.turn_id)
        assert len(stage.model.requests) == 3
