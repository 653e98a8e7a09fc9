"""Prompts: durable before they are acknowledged, run at most once and in order, paused after a crash (rows D1-D3,
S2, S4)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import Queue, User
from steadyhand.domain.views.notifications import QueueNotification
from steadyhand.domain.views.types import Began, TextDelta, TurnEnded, TurnEvent
from steadyhand.session import event_buffer
from steadyhand.session.event_buffer import EventBuffer
from steadyhand.session.service import prompt_queue
from steadyhand.session.session import Session
from tests.support.fakes import FakeProcesses
from tests.support.faults import GatedDisk, Operation
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, says, write
from tests.support.session_state import kinds, on_disk
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio

other_id = "f" * 32


def is_held_or_idle(disk: GatedDisk, session: Session) -> bool:
    return disk.reached.is_set() or not session.view().busy


async def refusal_kind(stage: InProcessServer, session: Session, epoch: str | None, name: str, text: str) -> str:
    """The kind of the refusal of a prompt; "accepted" if the server accepts it."""
    try:
        await prompt_queue.submit(session, epoch, name, text)
    except Refused as refused:
        return refused.kind
    return "accepted"


# At most once (row D1).


async def test_prompt_is_durable_before_it_is_acknowledged(tmp_path: Path) -> None:
    """Row D1: While the record waits for the disk, the server acknowledges nothing and asks no model."""
    disk = GatedDisk(lambda op: False)
    async with scripted_server(tmp_path, says("ok"), disk=disk) as stage:
        session = await stage.session()
        written_kinds: list[str] = []

        def sync_of_user(op: object) -> bool:
            written_kinds.extend(getattr(op, "kinds", ()))
            return getattr(op, "verb", "") == "sync" and "user" in written_kinds

        disk.matches = sync_of_user
        accepted: list[object] = []

        async def send() -> None:
            accepted.append(await stage.send(session, "one", "c1"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await disk.wait_reached()
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            assert accepted == []
            assert stage.model.requests == []
            assert stage.numbered() == []
            assert not prompt_queue.status_of(session, "c1").known
            disk.go.set()
        assert len(accepted) == 1


async def test_known_id_again_is_acknowledged_and_runs_nothing(tmp_path: Path) -> None:
    """Row D1: The server acknowledges the id again with the same turn, while the turn runs and afterwards. It does
    so before it compares the epoch."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("ok")]) as stage:
        session = await stage.session()
        first = await prompt_queue.submit(session, session.epoch, "c1", "hello")
        assert (first.duplicate, first.queued) == (False, False)
        await gate.wait_reached()
        again = await prompt_queue.submit(session, other_id, "c1", "hello")
        assert (again.turn_id, again.duplicate, again.queued) == (first.turn_id, True, False)
        gate.go.set()
        await stage.ended(session, first.turn_id)
        assert (await prompt_queue.submit(session, session.epoch, "c1", "hello")).duplicate
        assert len(stage.model.requests) == 1
        assert kinds(session).count("user") == 1


async def test_known_id_with_another_text_is_refused(tmp_path: Path) -> None:
    """Row D1, docs/protocol.md: The server refuses with -32602 and runs neither text again. This check comes before
    the epoch."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        await stage.say(session, "hello", "c1")
        with pytest.raises(Refused) as refused:
            await prompt_queue.submit(session, other_id, "c1", "something else")
        assert refused.value.kind == "invalidParams"
        assert refused.value.more["errors"] == [
            {"path": "$.clientMessageId", "message": "already used for another text"}
        ]
        assert len(stage.model.requests) == 1


async def test_concurrent_sends_of_one_id_run_once(tmp_path: Path) -> None:
    """Row D1: Of several sends at the same moment the server accepts one. The others are its duplicates."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        accepted: list[prompt_queue.Accepted] = []

        async def send() -> None:
            accepted.append(await prompt_queue.submit(session, session.epoch, "c1", "hello"))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(send)
        assert sorted(each.duplicate for each in accepted) == [False, True, True, True, True]
        assert len({each.turn_id for each in accepted}) == 1
        await stage.ended(session, accepted[0].turn_id)
        assert len(stage.model.requests) == 1


async def test_resend_after_crash_runs_nothing(tmp_path: Path) -> None:
    """Rows D1, D2, case 40 [I4]: After the crash the server knows what it acknowledged before, and never runs it by
    itself."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate]) as stage:
        session = await stage.session()
        first = await stage.send(session, "one", "c1")
        await gate.wait_reached()
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, says("new"), state=state, run=2) as stage:
        session = await stage.opened(session.session_id)
        again = await prompt_queue.submit(session, other_id, "c1", "one")
        assert (again.turn_id, again.duplicate) == (first.turn_id, True)
        assert prompt_queue.status_of(session, "c1").state == "interrupted"
        assert not prompt_queue.status_of(session, "c2").known, "the prompt never arrived, so the client sends it again"
        assert stage.model.requests == []


async def test_refusals_come_in_the_documented_order(tmp_path: Path) -> None:
    """docs/protocol.md: The server checks the parameters, then a known id, then notOwner, then journalBroken, then
    staleEpoch."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        await stage.say(session, "one", "c1")
        assert await refusal_kind(stage, session, other_id, "c2", "two") == "staleEpoch"
        assert await refusal_kind(stage, session, other_id, "c2", "x" * (1024 * 1024 + 1)) == "invalidParams"
        assert await refusal_kind(stage, session, session.epoch, "c2", "  \n") == "invalidParams"
        async with scripted_server(tmp_path, run=2, processes=FakeProcesses()) as second:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("steadyhand.session.service.acquire.OWNER_WAIT_S_MAX", 0.05)
                read_only_session = await second.opened(session.session_id)
            assert read_only_session.read_only is not None
            assert read_only_session.read_only.reason == "owned"
            assert await refusal_kind(second, read_only_session, other_id, "c2", "two") == "notOwner"
            assert await refusal_kind(second, read_only_session, other_id, "c1", "one") == "accepted"
            assert await refusal_kind(second, read_only_session, other_id, "c1", "other") == "invalidParams"
        assert session.log.journal is not None
        session.log.journal.broken = "The disk is full."
        session.change_status("journal_broke")
        assert await refusal_kind(stage, session, other_id, "c2", "two") == "journalBroken"
        assert await refusal_kind(stage, session, other_id, "c1", "one") == "accepted"


async def test_prompt_whose_record_fails_is_refused(tmp_path: Path) -> None:
    """Rows D1, J7: The server refuses the prompt with one clear sentence, begins nothing, and does not know the id."""
    disk = GatedDisk(lambda op: "user" in op.kinds, OSError(errno.ENOSPC, "No space left on device"), held=False)
    async with scripted_server(tmp_path, disk=disk) as stage:
        session = await stage.session()
        with pytest.raises(Refused) as refused:
            await stage.send(session, "one", "c1")
        assert refused.value.kind == "journalBroken"
        assert "full" in refused.value.message
        assert not prompt_queue.status_of(session, "c1").known
        assert not session.view().busy
        assert stage.model.requests == []
        assert stage.numbered() == []


# The queue (row S4).


async def test_prompts_sent_during_a_turn_run_one_by_one_in_order(tmp_path: Path) -> None:
    """Rows S4, S2: A queued prompt is durable at once. The queue shows prompts in order and begins them in order,
    one at a time."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")], says("2"), says("3"), says("4")) as stage:
        session = await stage.session()
        sent = [await stage.send(session, text, text) for text in ("one", "two", "three", "four")]
        assert [each.queued for each in sent] == [False, True, True, True]
        assert [item.text for item in session.queue()] == ["two", "three", "four"]
        assert not any(item.paused for item in session.queue())
        assert [r.text for r in on_disk(session) if isinstance(r, Queue)] == ["two", "three", "four"]
        assert [prompt_queue.status_of(session, name).state for name in ("one", "two")] == ["running", "queued"]
        gate.go.set()
        for each in sent:
            await stage.ended(session, each.turn_id)
        assert [r.text for r in on_disk(session) if isinstance(r, User)] == ["one", "two", "three", "four"]
        shape = [
            (notification.turn_id, type(notification.event))
            for notification in stage.numbered()
            if isinstance(notification.event, Began | TurnEnded)
        ]
        assert shape == [(each.turn_id, kind) for each in sent for kind in (Began, TurnEnded)]
        assert session.queue() == ()
        lengths = [
            len(notification.queue) for notification in stage.editor.told if isinstance(notification, QueueNotification)
        ]
        assert lengths == [1, 2, 3, 2, 1, 0]


async def test_queue_after_crash_is_paused_until_resume(tmp_path: Path) -> None:
    """Row S4, case 76: The queue holds all prompts, in order and paused. A new prompt runs before them. After a
    resume they run in order."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate]) as stage:
        session = await stage.session()
        sent = [await stage.send(session, text, text) for text in ("one", "two", "three", "four")]
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        view = await stage.registry.open(session.session_id, 10)
        assert [(item.text, item.paused) for item in view.queue] == [("two", True), ("three", True), ("four", True)]
        session = await stage.opened(session.session_id)
        assert stage.model.requests == []
        await stage.say(session, "new", "five")
        await until(lambda: not session.view().busy)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert len(stage.model.requests) == 1, "a paused prompt does not begin by itself"
        assert [item.text for item in session.queue()] == ["two", "three", "four"]
        assert prompt_queue.status_of(session, "two").state == "queued"
        with pytest.raises(Refused) as refused:
            await prompt_queue.resume(session, other_id)
        assert refused.value.kind == "staleEpoch"
        assert session.epoch is not None
        left = await prompt_queue.resume(session, session.epoch)
        assert [item.text for item in left] == ["three", "four"]
        for each in sent[1:]:
            assert (await stage.ended(session, each.turn_id)).reason == "done"
        assert [r.text for r in on_disk(session) if isinstance(r, User)] == ["one", "new", "two", "three", "four"]


async def test_duplicate_of_a_queued_prompt_is_queued_once(tmp_path: Path) -> None:
    """Row D1: The server acknowledges the duplicate as queued, with its turn id. The queue holds it once."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")]) as stage:
        session = await stage.session()
        await stage.send(session, "one", "c1")
        second = await stage.send(session, "two", "c2")
        again = await stage.send(session, "two", "c2")
        assert (again.turn_id, again.duplicate, again.queued) == (second.turn_id, True, True)
        assert len(session.queue()) == 1
        gate.go.set()
        await stage.ended(session, second.turn_id)


async def test_cancelled_queued_prompt_never_runs(tmp_path: Path) -> None:
    """Rows S4, G8: A prompt that is cancelled while queued never runs, durably. Its status says so, and a resend
    changes nothing."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")]) as stage:
        session = await stage.session()
        await stage.send(session, "one", "c1")
        second = await stage.send(session, "two", "c2")
        assert await prompt_queue.cancel(session, second.turn_id)
        assert not await prompt_queue.cancel(session, second.turn_id)
        assert session.queue() == ()
        found = prompt_queue.status_of(session, "c2")
        assert (found.known, found.state, found.reason) == (True, "ended", "cancelled")
        again = await stage.send(session, "two", "c2")
        assert (again.duplicate, again.queued) == (True, False)
        assert (await stage.ended(session, again.turn_id)).reason == "cancelled"
        gate.go.set()
        await until(lambda: not session.view().busy)
        assert len(stage.model.requests) == 1


async def test_prompt_above_the_queue_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server refuses a prompt above the named bound and loses nothing of the queue."""
    monkeypatch.setattr(prompt_queue, "QUEUE_LENGTH_MAX", 2)
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")]) as stage:
        session = await stage.session()
        for name in ("one", "two", "three"):
            await stage.send(session, name, name)
        with pytest.raises(Refused) as refused:
            await stage.send(session, "four", "four")
        assert refused.value.kind == "invalidParams"
        assert not prompt_queue.status_of(session, "four").known
        assert len(session.queue()) == 2
        gate.go.set()
        await until(lambda: not session.view().busy and not session.queue())


async def test_queued_prompt_survives_the_close_of_its_session(tmp_path: Path) -> None:
    """Rows S2, S4: Closing ends only the running turn. A queued prompt is there, paused, when the session is opened
    again."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate], says("2")) as stage:
        session = await stage.session()
        first = await stage.send(session, "one", "c1")
        second = await stage.send(session, "two", "c2")
        waited: list[TurnEnded] = []

        async def wait() -> None:
            waited.append(await session.feed.wait_until_ended(second.turn_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await gate.wait_reached()
            await stage.registry.close(session.session_id)
        assert [ended.reason for ended in waited] == ["closed"], "the waiter gets the end"
        again = await stage.opened(session.session_id)
        assert prompt_queue.status_of(again, "c1").reason == "closed"
        assert [(item.text, item.paused) for item in again.queue()] == [("two", True)]
        assert len(stage.model.requests) == 1
        assert again.epoch is not None
        await prompt_queue.resume(again, again.epoch)
        assert (await stage.ended(again, second.turn_id)).reason == "done"
        del first


def nth_after_end_record(number: int) -> Callable[[Operation], bool]:
    """Matches the operation this many places after the write of the `ended` record."""
    seen = 0

    def matches(operation: Operation) -> bool:
        nonlocal seen
        if seen or "ended" in operation.kinds:
            seen += 1
        return seen == number + 1

    return matches


async def test_prompt_at_the_end_of_a_turn_never_overlaps_it(tmp_path: Path) -> None:
    """Row S2: At whichever of the last operations of a turn a prompt comes, one turn runs at a time and both end."""
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = GatedDisk(lambda op: False)
        hold = Gate()
        async with scripted_server(folder, says("1"), [hold, *says("2")], says("3"), disk=disk) as stage:
            session = await stage.session()
            disk.matches = nth_after_end_record(number)
            first = await stage.send(session, "one", "c1")
            await until(partial(is_held_or_idle, disk, session))
            accepted: list[prompt_queue.Accepted] = []

            async def second(session: Session = session, into: list[prompt_queue.Accepted] = accepted) -> None:
                into.append(await prompt_queue.submit(session, session.epoch, "c2", "two"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(second)
                await anyio.lowlevel.checkpoint()
                disk.go.set()
            await hold.wait_reached()
            assert session.view().busy, number
            third = await stage.send(session, "three", "c3")
            assert third.queued, "the lease is held"
            hold.go.set()
            for each in (first, *accepted, third):
                assert (await stage.ended(session, each.turn_id)).reason == "done"
            open_turns = 0
            for event in stage.numbered():
                open_turns += isinstance(event.event, Began) - isinstance(event.event, TurnEnded)
                assert open_turns in (0, 1)


# Status (row D2).


async def test_status_is_running_parked_ended_or_unknown(tmp_path: Path) -> None:
    """Row D2: A turn is running, parked, or ended with its reason. A prompt that never arrived is not known."""
    from tests.support.editor import Park, ScriptedEditor

    park, gate = Park(), Gate()
    answer = [gate, *asks(write("a.txt", "a"))]
    async with scripted_server(tmp_path, answer, says("ok"), editor=ScriptedEditor(park)) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "one", "c1")
        await gate.wait_reached()
        assert prompt_queue.status_of(session, "c1").state == "running"
        gate.go.set()
        await park.wait_open()
        assert prompt_queue.status_of(session, "c1").state == "parked"
        assert (session.view().busy, session.view().parked) == (True, True)
        park.answer_with("once")
        await stage.ended(session, accepted.turn_id)
        found = prompt_queue.status_of(session, "c1")
        assert (found.state, found.reason, found.turn_id) == ("ended", "done", accepted.turn_id)
        assert (session.view().busy, session.view().parked) == (False, False)
        assert prompt_queue.status_of(session, "c9") == prompt_queue.StatusView(False)


# Events (row D3).


async def test_events_after_a_number_are_complete_or_reset(tmp_path: Path) -> None:
    """Row D3: A client gets everything after a number, without gaps, and nothing after the last. For another epoch
    it gets a reset."""
    async with scripted_server(tmp_path, asks(write("a.txt", "a")), says("ok")) as stage:
        session = await stage.session("edits")
        assert session.epoch is not None
        await stage.say(session)
        sent = stage.numbered()
        everything = session.feed.events_after(session.epoch, 0)
        assert list(everything.events) == sent
        assert (everything.next, everything.reset) == (len(sent), False)
        for after in range(len(sent) + 1):
            missed = session.feed.events_after(session.epoch, after)
            assert [each.number for each in missed.events] == list(range(after + 1, len(sent) + 1))
            assert not missed.reset
        assert session.feed.events_after(other_id, 0) == event_buffer.EventPage((), len(sent), True)
        assert session.feed.events_after(session.epoch, len(sent) + 1).reset, "the number was never assigned"


async def test_events_of_an_earlier_epoch_are_reset_after_reopen(tmp_path: Path) -> None:
    """Rows D3, S1: A new epoch counts from the start. The events of the old epoch are gone, and the server tells the
    client to open the session."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        before = session.epoch
        assert before is not None
        await stage.say(session)
        await stage.registry.close(session.session_id)
        again = await stage.opened(session.session_id)
        assert again.epoch not in (None, before)
        assert again.feed.events_after(before, 0).reset
        assert again.epoch is not None
        assert again.feed.events_after(again.epoch, 0) == event_buffer.EventPage((), 0, False)


def test_event_buffer_keeps_a_bounded_number_and_size() -> None:
    """Row D3: The buffer keeps the last 4,096 events and 8 MiB. A number before the oldest event gives a reset; a
    number exactly at it does not."""
    buffer = EventBuffer("s", "e")
    for _ in range(event_buffer.EVENTS_KEPT_MAX + 10):
        buffer.add("t", Began("c"))
    last = event_buffer.EVENTS_KEPT_MAX + 10
    assert buffer.after("e", 9).reset
    assert not buffer.after("e", 10).reset
    assert len(buffer.after("e", 10).events) == event_buffer.EVENTS_KEPT_MAX
    large = EventBuffer("s", "e")
    for _ in range(20):
        large.add("t", TextDelta("m", "x" * (1024 * 1024)))
    assert large.after("e", 0).reset
    found: tuple[TurnEvent, ...] = large.after("e", 14).events
    assert [event.number for event in found] == list(range(15, 21))
    assert len(buffer.after("e", last).events) == 0
