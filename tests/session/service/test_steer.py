"""Steer: a text for the running turn is durable, waits, and goes out with the next request of that turn (row S8)."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Sequence
from pathlib import Path

import anyio.lowlevel
import attrs
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import Finish, ModelRequest, ProviderError, TextPart
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Assistant, Steer, Taken, User
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.notifications import QueueNotification
from steadyhand.domain.views.types import Steered, Steering
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.prompt_limits import STEER_BYTES_MAX
from steadyhand.session.service.steer import STEERS_WAITING_MAX, steer
from steadyhand.session.session import Session
from tests.session.turns.test_continuation import ContinuingModel, text_answer
from tests.support.editor import Park, ScriptedEditor
from tests.support.faults import GatedDisk
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import Play, asks, call, history, read, says, some_usage, write
from tests.support.session_state import kinds, on_disk
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio
ACCEPTED = Steering(duplicate=False, queued=False)


async def send_to(session: Session, turn_id: str, text: str, name: str = "s1") -> Steering:
    assert session.epoch is not None
    return await steer(session, session.epoch, turn_id, name, text)


async def parked(stage: InProcessServer, park: Park) -> tuple[Session, str]:
    """A session with a turn that asks whether it may write: (session, turn id)."""
    session = await stage.session()
    accepted = await stage.send(session, "go")
    await park.wait_open()
    return session, accepted.turn_id


def sent_texts(requests: Sequence[ModelRequest]) -> list[list[str]]:
    return [[message.text for message in request.messages] for request in requests]


def assert_only_grows(requests: Sequence[ModelRequest]) -> None:
    for earlier, later in itertools.pairwise(requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages


def queued(session: Session) -> list[tuple[str, bool, bool]]:
    """Text, whether it is paused, and whether it is a steer."""
    return [(one.text, one.paused, one.steers is not None) for one in session.queue()]


def steered(stage: InProcessServer, turn_id: str) -> list[tuple[str, str]]:
    return [(event.client_message_id, event.text) for event in stage.events(turn_id) if isinstance(event, Steered)]


def queues_told(stage: InProcessServer) -> list[list[str]]:
    return [[item.text for item in one.queue] for one in stage.editor.told if isinstance(one, QueueNotification)]


# Waiting and taking.


async def test_steer_waits_paused_and_goes_out_behind_the_replies(tmp_path: Path) -> None:
    """S8, T1, T5, P4: a parked turn takes it with its next request, one record before that request; it answers no
    question. Every later request, and one of the next process, repeats the same bytes."""
    park = Park()
    answers = asks(write("a.txt", "a"), write("b.txt", "b")), asks(read("a.txt")), says("ok"), says("on")
    async with scripted_server(tmp_path, *answers, editor=ScriptedEditor(park)) as stage:
        session, turn_id = await parked(stage, park)
        assert await send_to(session, turn_id, "only a.txt") == ACCEPTED
        assert queued(session) == [("only a.txt", True, True)]
        assert [one.steers for one in session.queue()] == [turn_id]
        assert park.answer is None
        assert not park.gate.go.is_set()
        status = prompt_queue.status_of(session, "s1")
        assert (status.known, status.turn_id, status.state) == (True, turn_id, "queued")
        park.answer_with("once")
        ended = await stage.ended(session, turn_id)
        assert ended.reason == "done"
        requests = stage.model.requests
        assert history(requests[1].messages) == ["user", "assistant", "returned", "returned", "user"]
        assert requests[1].messages[-1].text == "only a.txt"
        await stage.say(session, "next")
        assert_only_grows(requests)
        assert steered(stage, turn_id) == [("s1", "only a.txt")]
        assert queues_told(stage) == [["only a.txt"], []]
        status = prompt_queue.status_of(session, "s1")
        assert (status.turn_id, status.state, status.reason) == (turn_id, "ended", "done")
        records = on_disk(session)
        answers_given = [one for one in records if isinstance(one, Assistant)]
        (taking,) = [one for one in records if isinstance(one, Taken)]
        assert (taking.client_message_id, taking.turn_id, taking.after) == ("s1", turn_id, answers_given[0].message_id)
        assert records.index(answers_given[0]) < records.index(taking) < records.index(answers_given[1])
        shown, _ = session.messages(100)
        views = [(one.role, one.turn_id, one.client_message_id) for one in shown if one.text == "only a.txt"]
        assert views == [("user", turn_id, "s1")]
        before = requests[-1].messages
    async with scripted_server(tmp_path, says("two"), run=2) as stage:
        await stage.say(await stage.opened(session.session_id), "again")
        assert stage.model.requests[0].messages[: len(before)] == before


async def test_steers_are_taken_together_in_order(tmp_path: Path) -> None:
    """S8: those that were sent before a request go out with it; the one that is sent later with the next."""
    first, second = Park(), Park()
    answers = asks(write("a.txt", "a")), asks(write("b.txt", "b")), says("ok")
    async with scripted_server(tmp_path, *answers, editor=ScriptedEditor(first, second)) as stage:
        session, turn_id = await parked(stage, first)
        await stage.send(session, "a prompt")
        for name in ("one", "two"):
            await send_to(session, turn_id, name, name)
        assert [one.text for one in session.queue()] == ["one", "two", "a prompt"]
        first.answer_with("once")
        await second.wait_open()
        await send_to(session, turn_id, "three", "three")
        second.answer_with("once")
        await stage.ended(session, turn_id)
        shapes = [history(request.messages) for request in stage.model.requests[:3]]
        assert shapes[1] == ["user", "assistant", "returned", "user", "user"]
        assert shapes[2] == [*shapes[1], "assistant", "returned", "user"]
        assert sent_texts(stage.model.requests)[2][-1] == "three"
        assert steered(stage, turn_id) == [("one", "one"), ("two", "two"), ("three", "three")]


async def test_steer_before_the_first_answer_stands_behind_the_prompt(tmp_path: Path) -> None:
    """S8, P3: the request that is repeated after an error takes it, and the record names the prompt."""
    gate = Gate()
    cut: Play = [TextPart("Half"), gate]

    async def no_pause(_: float) -> None:
        await anyio.lowlevel.checkpoint()

    async with scripted_server(tmp_path, cut, says("whole")) as stage:
        stage.registry.context.requests_again_max = 1
        stage.registry.context.pause = no_pause
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await gate.wait_reached()
        await send_to(session, accepted.turn_id, "quickly")
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        assert sent_texts(stage.model.requests) == [["go"], ["go", "quickly"]]
        (prompt,) = [one for one in on_disk(session) if isinstance(one, User)]
        assert [one.after for one in on_disk(session) if isinstance(one, Taken)] == [prompt.message_id]


async def test_edited_steer_goes_out_as_edited_and_a_removed_one_never(tmp_path: Path) -> None:
    """S8, S4: it is visible and can be changed as any prompt that waits, by the same rules as when it was sent."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), editor=ScriptedEditor(park)) as stage:
        session, turn_id = await parked(stage, park)
        await send_to(session, turn_id, "one", "s1")
        await send_to(session, turn_id, "two", "s2")
        await prompt_queue.edit_queue(session, "s1", "ONE", False)
        await prompt_queue.edit_queue(session, "s2", None, True)
        for text in ("/help", "/stop", "é" * (STEER_BYTES_MAX // 2) + "x"):
            with pytest.raises(Refused, match=r"slash command|longer than"):
                await prompt_queue.edit_queue(session, "s1", text, False)
        assert queued(session) == [("ONE", True, True)]
        park.answer_with("once")
        await stage.ended(session, turn_id)
        assert sent_texts(stage.model.requests)[-1][-1] == "ONE"
        assert steered(stage, turn_id) == [("s1", "ONE")]
        assert prompt_queue.status_of(session, "s2").reason == "cancelled"
        assert (await send_to(session, turn_id, "one", "s1")) == Steering(duplicate=True, queued=False)


# What takes nothing, and what becomes of a steer then.


async def test_steer_that_no_request_takes_is_the_next_prompt(tmp_path: Path) -> None:
    """S8: after the end `done`, before the prompts that were queued earlier; then it is a prompt like any other."""
    gate = Gate()
    answer: Play = [TextPart("All done."), gate, some_usage, Finish("stop")]
    async with scripted_server(tmp_path, answer, says("1"), says("2")) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await gate.wait_reached()
        await stage.send(session, "queued before")
        await send_to(session, accepted.turn_id, "one more thing")
        assert queued(session) == [("one more thing", True, True), ("queued before", False, False)]
        gate.go.set()
        await until(lambda: len(stage.model.requests) == 3 and not session.view().busy)
        last = sent_texts(stage.model.requests)[-1]
        assert last == ["go", "All done.", "one more thing", "1", "queued before"]
        assert steered(stage, accepted.turn_id) == []
        status = prompt_queue.status_of(session, "s1")
        assert (status.state, status.reason) == ("ended", "done")
        assert status.turn_id not in (None, accepted.turn_id)
        again = await send_to(session, accepted.turn_id, "one more thing")
        assert again == Steering(duplicate=True, queued=True)
        assert kinds(session).count("user") == 3


@pytest.mark.parametrize("end", ["cancelled", "modelFailed", "bound"])
async def test_steer_stays_paused_after_any_other_end(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S8, S9: it is not lost, it begins nothing, and `queue/resume` lets it begin as a prompt."""
    monkeypatch.setattr("steadyhand.session.turns.loop.REQUESTS_PER_TURN_MAX", 1)
    gate = Gate()
    failing: Play = [gate, ProviderError("It failed.")]
    calling: Play = [gate, call("todo", items=[]), some_usage, Finish("calls")]
    async with scripted_server(tmp_path, calling if end == "bound" else failing, says("then")) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await gate.wait_reached()
        await send_to(session, accepted.turn_id, "and this")
        if end == "cancelled":
            assert await prompt_queue.cancel(session, accepted.turn_id)
        gate.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == end
        await until(lambda: session.can_begin_turn)
        assert queued(session) == [("and this", True, True)]
        assert not await prompt_queue.cancel(session, accepted.turn_id), "the turn has ended; nothing is removed"
        late = await send_to(session, accepted.turn_id, "late", "s2")
        assert late == Steering(duplicate=False, queued=True)
        assert queued(session) == [("and this", True, True), ("late", True, True)]
        assert len(stage.model.requests) == 1
        await prompt_queue.resume(session, session.epoch or "")
        await until(lambda: len(stage.model.requests) == 3 and not session.view().busy)
        assert sent_texts(stage.model.requests)[-1][-1] == "late"


async def test_steer_for_a_turn_that_is_done_begins_at_once(tmp_path: Path) -> None:
    """S8: the turn ended while the text was on its way."""
    async with scripted_server(tmp_path, says("1"), says("2")) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await stage.ended(session, accepted.turn_id)
        await until(lambda: session.can_begin_turn)
        assert await send_to(session, accepted.turn_id, "late") == Steering(duplicate=False, queued=True)
        await until(lambda: len(stage.model.requests) == 2 and not session.view().busy)
        assert sent_texts(stage.model.requests)[-1] == ["go", "1", "late"]


async def test_quick_question_takes_no_steer(tmp_path: Path) -> None:
    """S8, S2: the question's one request goes out without it; afterwards it is the next prompt."""
    gate = Gate()
    answer: Play = [gate, *says("a number")]
    async with scripted_server(tmp_path, answer, says("ok")) as stage:
        stage.registry.context.requests_again_max = 1
        session = await stage.session()
        accepted = await stage.send(session, Prompt("what is 7?", aside=True))
        await gate.wait_reached()
        await send_to(session, accepted.turn_id, "really")
        gate.go.set()
        await until(lambda: len(stage.model.requests) == 2 and not session.view().busy)
        assert sent_texts(stage.model.requests) == [["what is 7?"], ["really"]]
        assert "taken" not in kinds(session)


async def test_continuation_takes_no_steer(tmp_path: Path) -> None:
    """S8, P2: the request for the rest of an answer ends with that answer."""
    gate = Gate()
    cut = text_answer("Once upon", finish="length")
    model = ContinuingModel([gate, *cut], text_answer(" a time."), text_answer("ok"))
    async with scripted_server(tmp_path, models=model, settings=Settings(continuation=True)) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "tell")
        await gate.wait_reached()
        await send_to(session, accepted.turn_id, "a short one")
        gate.go.set()
        await until(lambda: len(model.requests) == 3 and not session.view().busy)
        assert sent_texts(model.requests)[1:] == [
            ["tell", "Once upon"],
            ["tell", "Once upon a time.", "a short one"],
        ]
        assert "taken" not in kinds(session)


async def test_turn_that_is_being_stopped_takes_nothing(tmp_path: Path) -> None:
    """S8, S9, G8: the stop is noted while the record of the taking waits for the disk; nothing is taken after it."""
    disk = GatedDisk(lambda op: "cancel" in op.kinds)
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), editor=ScriptedEditor(park), disk=disk) as stage:
        session, turn_id = await parked(stage, park)
        await send_to(session, turn_id, "and b.txt")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt_queue.cancel, session, turn_id)
            await disk.wait_reached()
            park.answer_with("reject")
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            disk.go.set()
        assert (await stage.ended(session, turn_id)).reason == "cancelled"
        assert queued(session) == [("and b.txt", True, True)]
        assert len(stage.model.requests) == 1


async def test_steer_is_kept_where_its_taking_cannot_be_recorded(tmp_path: Path) -> None:
    """S8, J6 [I12]: the request goes out without it, and after another opening it waits, paused."""
    disk = GatedDisk(lambda op: "taken" in op.kinds, OSError(errno.ENOSPC, "No space left on device"), held=False)
    park = Park()
    async with scripted_server(
        tmp_path, asks(write("a.txt", "a")), says("ok"), editor=ScriptedEditor(park), disk=disk
    ) as stage:
        session, turn_id = await parked(stage, park)
        await send_to(session, turn_id, "and b.txt")
        park.answer_with("once")
        assert (await stage.ended(session, turn_id)).reason == "journalBroken"
        assert history(stage.model.requests[1].messages) == ["user", "assistant", "returned"]
        again = await stage.opened(session.session_id)
        assert queued(again) == [("and b.txt", True, True)]


# At most once, and what is refused.


async def test_known_id_is_a_duplicate_before_epochs_are_compared(tmp_path: Path) -> None:
    """S8, D1: of a steer and of a prompt, by either request, also in the next process; another text is refused."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), editor=ScriptedEditor(park)) as stage:
        session, turn_id = await parked(stage, park)
        await send_to(session, turn_id, "S", "s1")
        written = kinds(session)
        assert await steer(session, "0" * 32, turn_id, "s1", "S") == Steering(duplicate=True, queued=False)
        assert await steer(session, "0" * 32, turn_id, "client-0", "go") == Steering(duplicate=True, queued=False)
        assert (await prompt_queue.submit(session, "0" * 32, "s1", "S")).duplicate
        for name, text in (("s1", "other"), ("client-0", "other")):
            with pytest.raises(Refused, match="another text"):
                await steer(session, session.epoch or "", turn_id, name, text)
        with pytest.raises(Refused, match="another text"):
            await prompt_queue.submit(session, session.epoch, "s1", "other")
        assert kinds(session) == written
        state = stage.crashed(tmp_path / "later")
        park.answer_with("once")
    async with scripted_server(tmp_path, run=2, state=state) as stage:
        later = await stage.opened(session.session_id)
        assert queued(later) == [("S", True, True)]
        written = kinds(later)
        assert await steer(later, session.epoch or "", turn_id, "s1", "S") == Steering(duplicate=True, queued=True)
        assert kinds(later) == written
        assert not stage.model.requests


async def test_concurrent_sends_of_one_steer_record_it_once(tmp_path: Path) -> None:
    """S8, D1: eight sends of the same id at the same time."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), editor=ScriptedEditor(park)) as stage:
        session, turn_id = await parked(stage, park)
        found: list[Steering] = []

        async def send() -> None:
            found.append(await send_to(session, turn_id, "S"))

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(send)
        assert sum(not one.duplicate for one in found) == 1
        assert kinds(session).count("steer") == 1
        park.answer_with("once")
        await stage.ended(session, turn_id)


async def test_steer_is_refused_in_the_order_of_the_protocol(tmp_path: Path) -> None:
    """S8, docs/protocol.md: params, a known id, notOwner, staleEpoch, then turn, slash command and number."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), editor=ScriptedEditor(park)) as stage:
        session, turn_id = await parked(stage, park)
        waiting = await stage.send(session, "later")
        epoch, other = session.epoch or "", "0" * 32

        async def refusal(epoch: str, turn_id: str, name: str, text: str) -> tuple[str, str]:
            with pytest.raises(Refused) as refused:
                await steer(session, epoch, turn_id, name, text)
            return refused.value.kind, str(refused.value.more.get("errors", ""))

        long = "é" * (STEER_BYTES_MAX // 2) + "x"
        for text in ("", " \n", long):
            kind, errors = await refusal(other, other, "client-0", text)
            assert kind == "invalidParams"
            assert "$.text" in errors
        assert (await refusal(other, other, "client-0", "other"))[0] == "invalidParams"
        assert (await refusal(other, other, "s1", "/help"))[0] == "staleEpoch"
        for unknown in (other, waiting.turn_id):
            assert "$.turnId" in (await refusal(epoch, unknown, "s1", "/help"))[1]
        for text in ("/help", "/", "/stopp", "/rewind", "/resume"):
            assert "$.text" in (await refusal(epoch, turn_id, "s1", text))[1]
        await send_to(session, turn_id, long[:-1], "n0")
        for number in range(1, STEERS_WAITING_MAX):
            await send_to(session, turn_id, "more", f"n{number}")
        assert "waiting already" in (await refusal(epoch, turn_id, "s1", "too many"))[1]
        assert kinds(session).count("steer") == STEERS_WAITING_MAX
        assert not prompt_queue.status_of(session, "s1").known, "no refusal uses the id up"
        await send_to(session, turn_id, "/stop", "stop")


async def test_stop_and_recovery_run_beside_the_turn(tmp_path: Path) -> None:
    """S8, B4: sent as a steer they are the slash commands that they always are."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), editor=ScriptedEditor(park)) as stage:
        session, turn_id = await parked(stage, park)
        assert await send_to(session, turn_id, "/recovery", "s1") == ACCEPTED
        assert await send_to(session, turn_id, "/recovery", "s1") == attrs.evolve(ACCEPTED, duplicate=True)
        assert session.queue() == ()
        assert session.view().parked
        assert await send_to(session, turn_id, "/stop", "s2") == ACCEPTED
        assert (await stage.ended(session, turn_id)).reason == "cancelled"
        assert [one for one in on_disk(session) if isinstance(one, Steer)] == []
        assert kinds(session).count("user") == 3


async def test_steer_whose_record_fails_is_refused(tmp_path: Path) -> None:
    """S8, D1 [I12]: it is not acknowledged, it does not wait, and after another opening nothing of it is known."""
    disk = GatedDisk(lambda op: "steer" in op.kinds, OSError(errno.ENOSPC, "No space left on device"), held=False)
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), editor=ScriptedEditor(park), disk=disk) as stage:
        session, turn_id = await parked(stage, park)
        with pytest.raises(Refused) as refused:
            await send_to(session, turn_id, "S")
        assert refused.value.kind == "journalBroken"
        assert session.queue() == ()
        park.answer_with("reject")
        await stage.ended(session, turn_id)
        again = await stage.opened(session.session_id)
        assert again.queue() == ()
        assert not prompt_queue.status_of(again, "s1").known


async def test_steer_does_not_end_what_is_shown_as_settled(tmp_path: Path) -> None:
    """B3, S8: only the next turn does."""
    park = Park()
    async with scripted_server(
        tmp_path, asks(write("a.txt", "a")), editor=ScriptedEditor(park), settings=Settings()
    ) as stage:
        session, turn_id = await parked(stage, park)
        begun = session.ledger.turns_begun
        await send_to(session, turn_id, "S")
        park.answer_with("once")
        await stage.ended(session, turn_id)
        assert "taken" in kinds(session)
        assert session.ledger.turns_begun == begun
