"""Prompts: durable before acknowledged, at most once, in order, paused after a crash (rows D1-D3, S2, S4)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from steadyhand.core.record import Queue, User
from steadyhand.core.refusal import Refused
from steadyhand.core.told import QueueTold
from steadyhand.core.views import Began, TextDelta, TurnEnded, TurnEvent
from steadyhand.session import events as ring
from steadyhand.session import prompts
from steadyhand.session.events import EventRing
from steadyhand.session.owner import Owner
from tests.support.disks import Operation
from tests.support.fakes import FakeProcesses
from tests.support.scripted import Gate, GatedDisk, Stage, asks, kinds, on_disk, says, staged, until, write

pytestmark = pytest.mark.anyio

other_id = "f" * 32


def at_rest(disk: GatedDisk, owner: Owner) -> bool:
    return disk.reached.is_set() or not owner.view().busy


async def refusal(stage: Stage, owner: Owner, epoch: str | None, name: str, text: str) -> str:
    """The word a prompt is refused with; "accepted" if it is not."""
    try:
        await prompts.prompt(owner, epoch, name, text)
    except Refused as refused:
        return refused.kind
    return "accepted"


# --- at most once (row D1) ----------------------------------------------------------------------------------------


async def test_a_prompt_is_durable_before_it_is_acknowledged(tmp_path: Path) -> None:
    """Row D1: while its record waits for the disk nothing is acknowledged and no model is asked."""
    disk = GatedDisk(lambda op: False)
    async with staged(tmp_path, says("ok"), disk=disk) as stage:
        owner = await stage.session()
        written: list[str] = []

        def sync_of_user(op: object) -> bool:
            written.extend(getattr(op, "kinds", ()))
            return getattr(op, "verb", "") == "sync" and "user" in written

        disk.matches = sync_of_user
        accepted: list[object] = []

        async def send() -> None:
            accepted.append(await stage.send(owner, "one", "c1"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            await disk.wait_reached()
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            assert accepted == []
            assert stage.model.requests == []
            assert stage.numbered() == []
            assert not prompts.status(owner, "c1").known
            disk.go.set()
        assert len(accepted) == 1


async def test_the_same_id_again_runs_nothing(tmp_path: Path) -> None:
    """Row D1: acknowledged again with the same turn, before the epoch is compared, while it runs and afterwards."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("ok")]) as stage:
        owner = await stage.session()
        first = await prompts.prompt(owner, owner.epoch, "c1", "hello")
        assert (first.duplicate, first.queued) == (False, False)
        await gate.wait_reached()
        again = await prompts.prompt(owner, other_id, "c1", "hello")
        assert (again.turn_id, again.duplicate, again.queued) == (first.turn_id, True, False)
        gate.go.set()
        await stage.ended(owner, first.turn_id)
        assert (await prompts.prompt(owner, owner.epoch, "c1", "hello")).duplicate
        assert len(stage.model.requests) == 1
        assert kinds(owner).count("user") == 1


async def test_a_known_id_with_another_text_is_refused(tmp_path: Path) -> None:
    """Row D1, wire.md: -32602, and neither text runs again; this comes before the epoch."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        await stage.say(owner, "hello", "c1")
        with pytest.raises(Refused) as refused:
            await prompts.prompt(owner, other_id, "c1", "something else")
        assert refused.value.kind == "invalidParams"
        assert refused.value.more["errors"] == [
            {"path": "$.clientMessageId", "message": "already used for another text"}
        ]
        assert len(stage.model.requests) == 1


async def test_two_sends_of_one_id_at_once(tmp_path: Path) -> None:
    """Row D1: of several at the same moment one is accepted and the others are its duplicates."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        accepted: list[prompts.Accepted] = []

        async def send() -> None:
            accepted.append(await prompts.prompt(owner, owner.epoch, "c1", "hello"))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(send)
        assert sorted(each.duplicate for each in accepted) == [False, True, True, True, True]
        assert len({each.turn_id for each in accepted}) == 1
        await stage.ended(owner, accepted[0].turn_id)
        assert len(stage.model.requests) == 1


async def test_a_resend_after_a_crash_runs_nothing(tmp_path: Path) -> None:
    """Rows D1, D2, case 40: what was acknowledged before the crash is known after it, and never runs by itself [I4]."""
    gate = Gate()
    async with staged(tmp_path, [gate]) as stage:
        owner = await stage.session()
        first = await stage.send(owner, "one", "c1")
        await gate.wait_reached()
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, says("new"), state=state, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        again = await prompts.prompt(owner, other_id, "c1", "one")
        assert (again.turn_id, again.duplicate) == (first.turn_id, True)
        assert prompts.status(owner, "c1").state == "interrupted"
        assert not prompts.status(owner, "c2").known, "it never arrived: send it again"
        assert stage.model.requests == []


async def test_order_of_refusals(tmp_path: Path) -> None:
    """wire.md: params, then a known id, then notOwner, then journalBroken, then staleEpoch."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        await stage.say(owner, "one", "c1")
        assert await refusal(stage, owner, other_id, "c2", "two") == "staleEpoch"
        assert await refusal(stage, owner, other_id, "c2", "x" * (1024 * 1024 + 1)) == "invalidParams"
        assert await refusal(stage, owner, owner.epoch, "c2", "  \n") == "invalidParams"
        async with staged(tmp_path, life=2, processes=FakeProcesses()) as second:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("steadyhand.session.house.owner_wait_s_max", 0.05)
                theirs = await second.opened(owner.session_id)
            assert theirs.read_only is not None
            assert theirs.read_only.reason == "owned"
            assert await refusal(second, theirs, other_id, "c2", "two") == "notOwner"
            assert await refusal(second, theirs, other_id, "c1", "one") == "accepted"
            assert await refusal(second, theirs, other_id, "c1", "other") == "invalidParams"
        assert owner.journal is not None
        owner.journal.broken = "The disk is full."
        assert await refusal(stage, owner, other_id, "c2", "two") == "journalBroken"
        assert await refusal(stage, owner, other_id, "c1", "one") == "accepted"


async def test_a_prompt_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    """Rows D1, J7: its record fails, so it is refused with one clear sentence, begins nothing and stays unknown."""
    disk = GatedDisk(lambda op: "user" in op.kinds, OSError(errno.ENOSPC, "No space left on device"), held=False)
    async with staged(tmp_path, disk=disk) as stage:
        owner = await stage.session()
        with pytest.raises(Refused) as refused:
            await stage.send(owner, "one", "c1")
        assert refused.value.kind == "journalBroken"
        assert "full" in refused.value.message
        assert not prompts.status(owner, "c1").known
        assert not owner.view().busy
        assert stage.model.requests == []
        assert stage.numbered() == []


# --- the queue (row S4) -------------------------------------------------------------------------------------------


async def test_prompts_sent_while_busy_run_in_order(tmp_path: Path) -> None:
    """Row S4: durable at once, shown in order, begun in order, one at a time (row S2)."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")], says("2"), says("3"), says("4")) as stage:
        owner = await stage.session()
        sent = [await stage.send(owner, text, text) for text in ("one", "two", "three", "four")]
        assert [each.queued for each in sent] == [False, True, True, True]
        assert [item.text for item in owner.queue()] == ["two", "three", "four"]
        assert not any(item.paused for item in owner.queue())
        assert [r.text for r in on_disk(owner) if isinstance(r, Queue)] == ["two", "three", "four"]
        assert [prompts.status(owner, name).state for name in ("one", "two")] == ["running", "queued"]
        gate.go.set()
        for each in sent:
            await stage.ended(owner, each.turn_id)
        assert [r.text for r in on_disk(owner) if isinstance(r, User)] == ["one", "two", "three", "four"]
        shape = [
            (told.turn_id, type(told.event)) for told in stage.numbered() if isinstance(told.event, Began | TurnEnded)
        ]
        assert shape == [(each.turn_id, kind) for each in sent for kind in (Began, TurnEnded)]
        assert owner.queue() == ()
        lengths = [len(told.queue) for told in stage.editor.told if isinstance(told, QueueTold)]
        assert lengths == [1, 2, 3, 2, 1, 0]


async def test_a_queue_is_paused_after_a_crash(tmp_path: Path) -> None:
    """Row S4, case 76: all are there, in order and paused; a new prompt passes them; resumed they run in order."""
    gate = Gate()
    async with staged(tmp_path, [gate]) as stage:
        owner = await stage.session()
        sent = [await stage.send(owner, text, text) for text in ("one", "two", "three", "four")]
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, state=state, life=2) as stage:
        view = await stage.house.open(owner.session_id, 10)
        assert [(item.text, item.paused) for item in view.queue] == [("two", True), ("three", True), ("four", True)]
        owner = await stage.opened(owner.session_id)
        assert stage.model.requests == []
        await stage.say(owner, "new", "five")
        await until(lambda: not owner.view().busy)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert len(stage.model.requests) == 1, "what is paused does not begin by itself"
        assert [item.text for item in owner.queue()] == ["two", "three", "four"]
        assert prompts.status(owner, "two").state == "queued"
        with pytest.raises(Refused) as refused:
            await prompts.resume(owner, other_id)
        assert refused.value.kind == "staleEpoch"
        assert owner.epoch is not None
        left = await prompts.resume(owner, owner.epoch)
        assert [item.text for item in left] == ["three", "four"]
        for each in sent[1:]:
            assert (await stage.ended(owner, each.turn_id)).reason == "done"
        assert [r.text for r in on_disk(owner) if isinstance(r, User)] == ["one", "new", "two", "three", "four"]


async def test_a_duplicate_of_a_queued_prompt(tmp_path: Path) -> None:
    """Row D1: it is acknowledged as queued, with its turn id, and stands in the queue once."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")]) as stage:
        owner = await stage.session()
        await stage.send(owner, "one", "c1")
        second = await stage.send(owner, "two", "c2")
        again = await stage.send(owner, "two", "c2")
        assert (again.turn_id, again.duplicate, again.queued) == (second.turn_id, True, True)
        assert len(owner.queue()) == 1
        gate.go.set()
        await stage.ended(owner, second.turn_id)


async def test_a_queued_prompt_is_taken_out(tmp_path: Path) -> None:
    """Rows S4, G8: cancelled while queued it never runs, durably; its status says so and a resend changes nothing."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")]) as stage:
        owner = await stage.session()
        await stage.send(owner, "one", "c1")
        second = await stage.send(owner, "two", "c2")
        assert await prompts.cancel(owner, second.turn_id)
        assert not await prompts.cancel(owner, second.turn_id)
        assert owner.queue() == ()
        found = prompts.status(owner, "c2")
        assert (found.known, found.state, found.reason) == (True, "ended", "cancelled")
        again = await stage.send(owner, "two", "c2")
        assert (again.duplicate, again.queued) == (True, False)
        assert (await stage.ended(owner, again.turn_id)).reason == "cancelled"
        gate.go.set()
        await until(lambda: not owner.view().busy)
        assert len(stage.model.requests) == 1


async def test_the_queue_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound has a name: above it a prompt is refused, and nothing of the queue is lost."""
    monkeypatch.setattr(prompts, "queue_length_max", 2)
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")]) as stage:
        owner = await stage.session()
        for name in ("one", "two", "three"):
            await stage.send(owner, name, name)
        with pytest.raises(Refused) as refused:
            await stage.send(owner, "four", "four")
        assert refused.value.kind == "invalidParams"
        assert not prompts.status(owner, "four").known
        assert len(owner.queue()) == 2
        gate.go.set()
        await until(lambda: not owner.view().busy and not owner.queue())


async def test_what_is_queued_survives_a_close(tmp_path: Path) -> None:
    """Rows S2, S4: closing ends the running turn alone; what is queued is there, paused, when it comes back."""
    gate = Gate()
    async with staged(tmp_path, [gate], says("2")) as stage:
        owner = await stage.session()
        first = await stage.send(owner, "one", "c1")
        second = await stage.send(owner, "two", "c2")
        waited: list[TurnEnded] = []

        async def wait() -> None:
            waited.append(await owner.wait_ended(second.turn_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await gate.wait_reached()
            await stage.house.close(owner.session_id)
        assert [ended.reason for ended in waited] == ["closed"], "who waits for it is told"
        again = await stage.opened(owner.session_id)
        assert prompts.status(again, "c1").reason == "closed"
        assert [(item.text, item.paused) for item in again.queue()] == [("two", True)]
        assert len(stage.model.requests) == 1
        assert again.epoch is not None
        await prompts.resume(again, again.epoch)
        assert (await stage.ended(again, second.turn_id)).reason == "done"
        del first


def nth_from_the_end_record(number: int) -> Callable[[Operation], bool]:
    """The operation so many behind the write of the `ended` record."""
    seen = 0

    def matches(operation: Operation) -> bool:
        nonlocal seen
        if seen or "ended" in operation.kinds:
            seen += 1
        return seen == number + 1

    return matches


async def test_a_prompt_in_the_moment_a_turn_ends(tmp_path: Path) -> None:
    """Row S2: wherever in the last operations of a turn a prompt comes, one turn runs at a time and both end."""
    for number in range(12):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = GatedDisk(lambda op: False)
        hold = Gate()
        async with staged(folder, says("1"), [hold, *says("2")], says("3"), disk=disk) as stage:
            owner = await stage.session()
            disk.matches = nth_from_the_end_record(number)
            first = await stage.send(owner, "one", "c1")
            await until(partial(at_rest, disk, owner))
            accepted: list[prompts.Accepted] = []

            async def second(owner: Owner = owner, into: list[prompts.Accepted] = accepted) -> None:
                into.append(await prompts.prompt(owner, owner.epoch, "c2", "two"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(second)
                await anyio.lowlevel.checkpoint()
                disk.go.set()
            await hold.wait_reached()
            assert owner.view().busy, number
            third = await stage.send(owner, "three", "c3")
            assert third.queued, "the lease is held"
            hold.go.set()
            for each in (first, *accepted, third):
                assert (await stage.ended(owner, each.turn_id)).reason == "done"
            open_turns = 0
            for told in stage.numbered():
                open_turns += isinstance(told.event, Began) - isinstance(told.event, TurnEnded)
                assert open_turns in (0, 1)


# --- status (row D2) ----------------------------------------------------------------------------------------------


async def test_states_of_a_turn(tmp_path: Path) -> None:
    """Row D2: running, parked, ended with its reason; one that never arrived is not known."""
    from tests.support.scripted import Park, ScriptedEditor

    park, gate = Park(), Gate()
    answer = [gate, *asks(write("a.txt", "a"))]
    async with staged(tmp_path, answer, says("ok"), editor=ScriptedEditor(park)) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one", "c1")
        await gate.wait_reached()
        assert prompts.status(owner, "c1").state == "running"
        gate.go.set()
        await park.wait_open()
        assert prompts.status(owner, "c1").state == "parked"
        assert (owner.view().busy, owner.view().parked) == (True, True)
        park.answer_with("once")
        await stage.ended(owner, accepted.turn_id)
        found = prompts.status(owner, "c1")
        assert (found.state, found.reason, found.turn_id) == ("ended", "done", accepted.turn_id)
        assert (owner.view().busy, owner.view().parked) == (False, False)
        assert prompts.status(owner, "c9") == prompts.StatusView(False)


# --- events (row D3) ----------------------------------------------------------------------------------------------


async def test_events_a_client_lacks(tmp_path: Path) -> None:
    """Row D3: everything after a number, without gaps; none after the last; of another epoch: reset."""
    async with staged(tmp_path, asks(write("a.txt", "a")), says("ok")) as stage:
        owner = await stage.session("edits")
        assert owner.epoch is not None
        await stage.say(owner)
        told = stage.numbered()
        everything = owner.events.after(owner.epoch, 0)
        assert list(everything.events) == told
        assert (everything.next, everything.reset) == (len(told), False)
        for after in range(len(told) + 1):
            missed = owner.events.after(owner.epoch, after)
            assert [each.number for each in missed.events] == list(range(after + 1, len(told) + 1))
            assert not missed.reset
        assert owner.events.after(other_id, 0) == ring.Missed((), len(told), True)
        assert owner.events.after(owner.epoch, len(told) + 1).reset, "a number that was never given"


async def test_events_of_a_session_that_was_opened_again(tmp_path: Path) -> None:
    """Rows D3, S1: numbers count anew in a new epoch; the old epoch's are gone, and the client is told to open."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        before = owner.epoch
        assert before is not None
        await stage.say(owner)
        await stage.house.close(owner.session_id)
        again = await stage.opened(owner.session_id)
        assert again.epoch not in (None, before)
        assert again.events.after(before, 0).reset
        assert again.epoch is not None
        assert again.events.after(again.epoch, 0) == ring.Missed((), 0, False)


def test_events_are_kept_within_bounds() -> None:
    """Row D3: the last 4,096 events and 8 MiB; older than the oldest kept: reset, and exactly at it: not."""
    kept = EventRing("s", "e")
    for _ in range(ring.events_kept_max + 10):
        kept.add("t", Began("c"))
    last = ring.events_kept_max + 10
    assert kept.after("e", 9).reset
    assert not kept.after("e", 10).reset
    assert len(kept.after("e", 10).events) == ring.events_kept_max
    large = EventRing("s", "e")
    for _ in range(20):
        large.add("t", TextDelta("m", "x" * (1024 * 1024)))
    assert large.after("e", 0).reset
    found: tuple[TurnEvent, ...] = large.after("e", 14).events
    assert [told.number for told in found] == list(range(15, 21))
    assert len(kept.after("e", last).events) == 0
