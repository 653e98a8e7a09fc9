"""A turn that is cancelled: nothing starts afterwards, and every open call gets its reply (row G8, [I2])."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from steadyhand.domain.model.messages import Finish, TextPart
from steadyhand.domain.model.transcript import validate
from steadyhand.domain.records.record import Cancel, Ended, Result
from steadyhand.domain.views.types import ChangedFile, TurnEnded
from steadyhand.session.service import prompt_queue
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeProcesses, Run, Script
from tests.support.faults import GatedDisk, Operation, beside
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, history, read, run, says, write
from tests.support.session_state import assert_closed, kinds, on_disk, outcomes, replies, states
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio


def nth_operation(number: int) -> Callable[[Operation], bool]:
    return lambda operation: operation.number == number


def is_held_or_ended(disk: GatedDisk, harness: InProcessServer) -> bool:
    """Whether the turn is held in an operation of the disk, or has ended."""
    return disk.reached.is_set() or any(
        isinstance(notification.event, TurnEnded) for notification in harness.numbered()
    )


async def test_cancelled_turn_keeps_the_text_and_calls_streamed_so_far(tmp_path: Path) -> None:
    """Rows J1, G8: text and calls that were shown are in the journal when the turn is cancelled, and none of the calls
    ran.
    """
    gate = Gate()
    async with scripted_server(tmp_path, [TextPart("I begin"), write("a.txt", "x"), gate], says("done")) as harness:
        session = await harness.session("auto")
        first = await harness.send(session, "one")
        await gate.wait_reached()
        await prompt_queue.cancel(session, first.turn_id)
        await harness.ended(session, first.turn_id)
        assert [message.text for message in session.messages(9)[0]] == ["one", "I begin"]
        assert states(session) == ["notRun"]
        assert harness.content("a.txt") is None
        await harness.say(session, "two")
        assert history(harness.model.requests[-1].messages) == ["user", "assistant", "notRun", "user"]
        assert_closed(session)


async def test_cancel_during_the_first_call_closes_every_open_call(tmp_path: Path) -> None:
    """Case 1, [I16]: three open calls, cancelled in the first. The next request has one reply for each, in order."""
    started = anyio.Event()
    sleeping = Script(hangs=True, started=started)
    answer = asks(run("sleep 1"), run("sleep 2"), run("sleep 3"))
    async with scripted_server(tmp_path, answer, says("ok"), processes=FakeProcesses(otherwise=sleeping)) as harness:
        session = await harness.session("auto")
        first = await harness.send(session, "sleep")
        await started.wait()
        assert await prompt_queue.cancel(session, first.turn_id)
        assert (await harness.ended(session, first.turn_id)).reason == "cancelled"
        assert states(session) == ["stopped", "notRun", "notRun"]
        assert all("did not run: the user stopped the turn" in text for text in replies(session)[1:])
        assert_closed(session)
        await harness.say(session, "go on")
        sent = harness.model.requests[1].messages
        assert history(sent) == ["user", "assistant", "stopped", "notRun", "notRun", "user"]
        validate(sent)


async def test_cancel_while_the_answer_streams_starts_nothing(tmp_path: Path) -> None:
    """Case 38: the turn is cancelled while a call is streamed. Nothing starts after the record of the cancel."""
    gate = Gate()
    async with scripted_server(tmp_path, [write("a.txt", "x"), gate, Finish("calls")]) as harness:
        session = await harness.session("auto")
        accepted = await harness.send(session, "one")
        await gate.wait_reached()
        assert await prompt_queue.cancel(session, accepted.turn_id)
        assert not await prompt_queue.cancel(session, accepted.turn_id), "the turn is already stopping"
        gate.go.set()
        await harness.ended(session, accepted.turn_id)
        assert harness.content("a.txt") is None
        assert "started" not in kinds(session)
        assert_closed(session)


async def test_cancel_while_a_question_is_open_withdraws_it(tmp_path: Path) -> None:
    """Rows G8, C5, case 82: the question is withdrawn, and its call and the later ones did not run. A late yes has no
    effect.
    """
    park = Park()
    answer = asks(write("a.txt", "1"), write("b.txt", "2"))
    async with scripted_server(tmp_path, answer, editor=ScriptedEditor(park)) as harness:
        session = await harness.session()
        accepted = await harness.send(session, "one")
        await park.wait_open()
        assert session.view().parked
        await prompt_queue.cancel(session, accepted.turn_id)
        await harness.ended(session, accepted.turn_id)
        assert park.withdrawn
        park.answer_with("once")
        await anyio.lowlevel.checkpoint()
        assert not session.view().parked
        assert states(session) == ["notRun", "notRun"]
        assert list(harness.root.iterdir()) == []
        assert outcomes(session) == [("not_started", "cancelled")]
        assert_closed(session)


async def test_cancel_is_recorded_before_it_withdraws_a_question(tmp_path: Path) -> None:
    """Row G8: nothing is withdrawn while the record waits for the disk. Then the question is withdrawn."""
    disk = GatedDisk(lambda op: "cancel" in op.kinds)
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park), disk=disk) as harness:
        session = await harness.session()
        accepted = await harness.send(session, "one")
        await park.wait_open()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt_queue.cancel, session, accepted.turn_id)
            await disk.wait_reached()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert not park.withdrawn
            disk.go.set()
        assert (await harness.ended(session, accepted.turn_id)).reason == "cancelled"
        assert park.withdrawn


async def test_cancel_recorded_before_a_waiting_start_prevents_the_start(tmp_path: Path) -> None:
    """Row G8, case 38: a call that already has its permission must not write *started* after the record of
    the cancel.
    """
    disk = GatedDisk(beside("make_folder", "checkpoints"))
    recording = GatedDisk(lambda op: "cancel" in op.kinds)
    recording.inner = disk
    async with scripted_server(tmp_path, asks(write("a.txt", "new")), disk=recording) as harness:
        (harness.root / "a.txt").write_text("old")
        session = await harness.session("auto")
        accepted = await harness.send(session, "one")
        await disk.wait_reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompt_queue.cancel, session, accepted.turn_id)
            await recording.wait_reached()
            disk.go.set()
            await until(lambda: session.log._writing.statistics().tasks_waiting == 1)
            recording.go.set()
        await harness.ended(session, accepted.turn_id)
        assert_closed(session)
        assert states(session) == ["notRun"]
        assert harness.content("a.txt") == "old"


async def test_cancel_during_the_replacement_completes_the_write(tmp_path: Path) -> None:
    """Case 37: after the last check for a cancel the write is completed, reported and kept. The turn is cancelled."""
    disk = GatedDisk(lambda op: op.verb in ("exchange", "rename", "rename_new") and op.target.endswith("a.txt"))
    async with scripted_server(tmp_path, asks(write("a.txt", "new"), read("a.txt")), disk=disk) as harness:
        (harness.root / "a.txt").write_text("old")
        session = await harness.session("auto")
        accepted = await harness.send(session, "one")
        await disk.wait_reached()
        await prompt_queue.cancel(session, accepted.turn_id)
        disk.go.set()
        ended = await harness.ended(session, accepted.turn_id)
        assert ended == TurnEnded("cancelled", (ChangedFile("a.txt", "modified"),))
        assert states(session) == ["returned", "notRun"]
        assert harness.content("a.txt") == "new"
        assert_closed(session)


async def test_cancel_before_the_replacement_leaves_the_file_untouched(tmp_path: Path) -> None:
    """Case 37: cancelled while the new content is written beside the file, the call leaves the file untouched and says
    so.
    """
    disk = GatedDisk(lambda op: op.verb == "create" and op.target.endswith(".steadyhand"))
    async with scripted_server(tmp_path, asks(write("a.txt", "new")), says("ok"), disk=disk) as harness:
        (harness.root / "a.txt").write_text("old")
        session = await harness.session("auto")
        accepted = await harness.send(session, "one")
        await disk.wait_reached()
        await prompt_queue.cancel(session, accepted.turn_id)
        disk.go.set()
        assert (await harness.ended(session, accepted.turn_id)).changed == ()
        assert states(session) == ["stopped"]
        assert harness.content("a.txt") == "old"
        assert [path.name for path in harness.root.iterdir()] == ["a.txt"]
        assert session.ledger.uncertain() == []


async def test_cancelled_command_is_reported_as_half_done_and_not_as_refused(tmp_path: Path) -> None:
    """Case 14: a command that wrote and was then cancelled is reported as "may be half done", and never as not run."""
    started = anyio.Event()
    root = tmp_path / "ws"

    def make(_: Run) -> None:
        (root / "a").write_text("x")

    wrote = Script(output=[b"half"], effect=make, hangs=True, started=started)
    async with scripted_server(tmp_path, asks(run("make")), processes=FakeProcesses(otherwise=wrote)) as harness:
        session = await harness.session("auto")
        accepted = await harness.send(session, "one")
        await until((root / "a").exists)
        await prompt_queue.cancel(session, accepted.turn_id)
        await harness.ended(session, accepted.turn_id)
        (text,) = replies(session)
        assert "half" in text
        assert "may be half done" in text
        assert "did not run" not in text
        assert outcomes(session) == [("stopped", "cancelled")]


async def test_cancel_at_every_disk_operation_gives_each_call_a_true_reply(tmp_path: Path) -> None:
    """Row G8, [I2, I16], case 37: wherever the cancel comes, each call has one reply that agrees with the disk."""
    seen: set[tuple[str, ...]] = set()
    for number in range(1, 60):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = GatedDisk(lambda op: False)
        answer = asks(write("a.txt", "1"), read("a.txt"), write("b.txt", "2"))
        async with scripted_server(folder, answer, says("ok"), disk=disk) as harness:
            (harness.root / "a.txt").write_text("0")
            session = await harness.session("auto")
            disk.matches = nth_operation(disk.count + number)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(harness.say, session, "one")
                await until(partial(is_held_or_ended, disk, harness))
                if disk.reached.is_set():
                    tasks.start_soon(prompt_queue.cancel, session, None)
                    await anyio.lowlevel.checkpoint()
                disk.go.set()
            assert_closed(session)
            # A turn that is cancelled while the answer streams has fewer calls.
            a, _, b = (*states(session), *["notRun"] * 3)[:3]
            assert harness.content("a.txt") == ("1" if a == "returned" else "0"), number
            assert harness.content("b.txt") == ("2" if b == "returned" else None), number
            assert not [path for path in harness.root.iterdir() if path.name.startswith(".")]
            assert session.ledger.uncertain() == []
            seen.add(tuple(states(session)))
            if not disk.reached.is_set():
                break
    else:
        pytest.fail("the turn has no end")
    assert {("returned", "returned", "returned"), ("notRun", "notRun", "notRun")} <= seen
    assert any("stopped" in each for each in seen)


async def test_cancel_record_comes_before_the_end_of_the_turn(tmp_path: Path) -> None:
    """Row G8: the cancel is recorded before it takes effect, and the turn's end names it."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate]) as harness:
        session = await harness.session()
        accepted = await harness.send(session, "one")
        await gate.wait_reached()
        await prompt_queue.cancel(session, accepted.turn_id)
        await harness.ended(session, accepted.turn_id)
        tail = [r for r in on_disk(session) if isinstance(r, Cancel | Ended)]
        assert tail == [Cancel(turn_id=accepted.turn_id), Ended(turn_id=accepted.turn_id, reason="cancelled")]
        assert [r for r in on_disk(session) if isinstance(r, Result)] == []
        assert json.loads((Path(session.path) / "owner.json").read_text())["pid"] == 1
