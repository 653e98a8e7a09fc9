"""One turn from its first event to its last: what is asked of the model, what is run, what is told (rows G, T, C6)."""

from __future__ import annotations

import errno
import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from steadyhand.core.model import (
    AssistantMessage,
    CallProposed,
    Finish,
    ModelTrouble,
    ReplyMessage,
    TextPart,
    UserMessage,
)
from steadyhand.core.record import Assistant, Cancel, Ended, Intent, Result, Settlement, Started, Supplied
from steadyhand.core.record import Tool as Replied
from steadyhand.core.refusal import Refused
from steadyhand.core.transcript import validate
from steadyhand.core.views import Began, CallChanged, ChangedFile, TextDelta, TurnEnded, UsageTold, Warned
from steadyhand.ports import Finished
from steadyhand.session import prompts
from steadyhand.session.resolving import Wanted, resolve
from steadyhand.tools.tool import Done, Running
from tests.support.disks import Operation
from tests.support.fakes import FakeProcesses, Run, Script
from tests.support.scripted import (
    Gate,
    GatedDisk,
    Park,
    ScriptedEditor,
    ScriptedTool,
    Stage,
    asks,
    assert_closed,
    beside,
    call,
    calls_of,
    kinds,
    on_disk,
    outcomes,
    read,
    replies,
    run,
    says,
    staged,
    states,
    until,
    write,
)

pytestmark = pytest.mark.anyio


def history(model_messages: object) -> list[str]:
    """The outgoing messages in short: who, and for a reply its state."""
    assert isinstance(model_messages, tuple)
    names = {UserMessage: "user", AssistantMessage: "assistant"}
    return [m.state if isinstance(m, ReplyMessage) else names[type(m)] for m in model_messages]


def numbered(number: int) -> Callable[[Operation], bool]:
    return lambda operation: operation.number == number


def held_or_over(disk: GatedDisk, stage: Stage) -> bool:
    """The turn is held in an operation of the disk, or has ended."""
    return disk.reached.is_set() or any(isinstance(told.event, TurnEnded) for told in stage.numbered())


# --- events and records -------------------------------------------------------------------------------------------


async def test_events_of_a_turn(tmp_path: Path) -> None:
    """Row D3: began first, ended last, numbered without gaps; a call is upserted whole through its states (row G6)."""
    async with staged(tmp_path, asks(write("a.txt", "one"), text="I write."), says("It is ", "there.")) as stage:
        owner = await stage.session("edits")
        ended = await stage.say(owner, "write it", "c1")
        numbered = stage.numbered()
        events = [told.event for told in numbered]
        assert [told.number for told in numbered] == list(range(1, len(numbered) + 1))
        assert {(told.session_id, told.epoch) for told in numbered} == {(owner.session_id, owner.epoch)}
        assert events[0] == Began("c1")
        assert events[-1] == ended == TurnEnded("done", (ChangedFile("a.txt", "created"),))
        calls = [event.call for event in events if isinstance(event, CallChanged)]
        assert [view.state for view in calls] == ["proposed", "waiting", "running", "returned"]
        assert len({view.call_id for view in calls}) == 1
        assert calls[-1].files is not None
        assert calls[-1].files[0].path == "a.txt"
        assert [event.delta for event in events if isinstance(event, TextDelta)] == ["I write.", "It is ", "there."]
        assert sum(isinstance(event, UsageTold) for event in events) == 2


async def test_records_stand_in_the_order_that_is_promised(tmp_path: Path) -> None:
    """Rows J2, J3: message, intent, permission, started, result, reply; started and result of a read do not exist."""
    async with staged(tmp_path, asks(read("a.txt"), write("b.txt", "b")), says("done")) as stage:
        (stage.root / "a.txt").write_text("a")
        owner = await stage.session()
        await stage.say(owner)
        turn = [kind for kind in kinds(owner) if kind not in ("session", "epoch", "mode", "title")]
        assert turn == [
            "user", "assistant", "usage", "intent", "tool", "intent", "permission", "started", "result", "tool",
            "assistant", "usage", "ended",
        ]  # fmt: skip
        assert owner.ledger.refused == []


async def test_first_result_is_kept_before_the_second_call_ends(tmp_path: Path) -> None:
    """Case 26: the message and the first result are on disk while the second call still runs."""
    gate = Gate()

    async def slow(_: Running) -> Done:
        await gate.passed()
        return Done("returned", "slow")

    answer = asks(write("a.txt", "one"), call("slow"))
    async with staged(tmp_path, answer, tools=[ScriptedTool("slow", slow, "opaque")]) as stage:
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "both")
        await gate.wait_reached()
        records = on_disk(owner)
        assert [len(r.calls) for r in records if isinstance(r, Assistant)] == [2]
        assert [r.outcome for r in records if isinstance(r, Replied)] == ["returned"]
        async with staged(tmp_path, state=stage.crashed(tmp_path / "later"), life=2) as later:
            again = await later.opened(owner.session_id)
            assert states(again) == ["returned", "unknown"]
            assert [r for r in on_disk(again) if isinstance(r, Ended)] == []
        gate.go.set()
        assert (await stage.ended(owner, accepted.turn_id)).reason == "done"


async def test_changed_files_are_those_of_the_journal(tmp_path: Path) -> None:
    """Row G6, case 35: the list at the end names what was really written, not what the answer claims."""
    async with staged(tmp_path, asks(write("a.py", "x = 1\n")), says("wrote b.json")) as stage:
        owner = await stage.session("edits")
        assert (await stage.say(owner)).changed == (ChangedFile("a.py", "created"),)


# --- history (rows T1-T7) -----------------------------------------------------------------------------------------


async def test_a_healthy_history_only_grows(tmp_path: Path) -> None:
    """Row T5: the next request begins with the last one, byte for byte; system text and tools stay (row P4)."""
    async with staged(tmp_path, asks(read("a.txt")), says("one"), asks(read("b.txt")), says("two")) as stage:
        owner = await stage.session()
        await stage.say(owner, "first")
        await stage.say(owner, "second")
        requests = stage.model.requests
        assert len(requests) == 4
        for earlier, later in itertools.pairwise(requests):
            assert later.messages[: len(earlier.messages)] == earlier.messages
            assert (later.system, later.tools) == (earlier.system, earlier.tools)
        assert [tool.name for tool in requests[0].tools] == sorted(tool.name for tool in requests[0].tools)


async def test_history_of_a_session_that_was_taken_up_again(tmp_path: Path) -> None:
    """Rows T5, J1: after a restart the history goes out byte for byte as before, plus the new text."""
    async with staged(tmp_path, asks(read("a.txt"), write("b.txt", "b")), says("one")) as stage:
        owner = await stage.session("edits")
        await stage.say(owner, "first")
        before = stage.model.requests[-1].messages
    async with staged(tmp_path, says("two"), life=2) as stage:
        await stage.say(await stage.opened(owner.session_id), "second")
        after = stage.model.requests[0].messages
        assert after[: len(before)] == before
        assert history(after[len(before) :]) == ["assistant", "user"]


async def test_provider_ids_may_repeat(tmp_path: Path) -> None:
    """Row T7: the same provider id in every turn, and twice in one; our own ids decide."""
    twice = [
        CallProposed("read_file", '{"path": "a.txt"}', "call_0"),
        CallProposed("read_file", '{"path": "b"}', "call_0"),
    ]
    async with staged(tmp_path, asks(*twice), says("one"), asks(twice[0]), says("two")) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session()
        await stage.say(owner, "first")
        await stage.say(owner, "second")
        assert states(owner) == ["returned", "failed", "returned"]
        validate(stage.model.requests[-1].messages)
        assert len(calls_of(owner)) == 3
        assert_closed(owner)


@pytest.mark.parametrize("name", ["re\0ad", "", "no such tool", "write file", "x" * 70])
async def test_a_tool_name_no_provider_accepts(tmp_path: Path, name: str) -> None:
    """Case 16: the call is refused and goes out under a name that is accepted; the record keeps the very name."""
    async with staged(tmp_path, asks(CallProposed(name, "{}")), says("done")) as stage:
        owner = await stage.session()
        assert (await stage.say(owner)).reason == "done"
        asked = [m for m in stage.model.requests[1].messages if isinstance(m, AssistantMessage)]
        assert [each.tool for each in asked[0].calls] == ["invalid_tool_name"]
        assert [c.tool for r in on_disk(owner) if isinstance(r, Assistant) for c in r.calls] == [name]
        assert states(owner) == ["refused"]


async def test_empty_texts_and_outputs(tmp_path: Path) -> None:
    """Case 17: an empty stream that is cancelled leaves no message; an empty output goes out as "(no output)"."""

    async def nothing(_: Running) -> Done:
        return Done("returned", "")

    gate = Gate()
    quiet = ScriptedTool("quiet", nothing)
    async with staged(
        tmp_path, [TextPart(""), gate], asks(call("quiet"), text=" "), says("done"), tools=[quiet]
    ) as stage:
        owner = await stage.session()
        first = await stage.send(owner, "one")
        await gate.wait_reached()
        assert await prompts.cancel(owner, first.turn_id)
        assert (await stage.ended(owner, first.turn_id)).reason == "cancelled"
        await stage.say(owner, "two")
        assert history(stage.model.requests[1].messages) == ["user", "user"]
        last = stage.model.requests[2].messages
        assert [m.text for m in last if isinstance(m, ReplyMessage)] == ["(no output)"]
        assert [m.text for m in last if isinstance(m, AssistantMessage)] == [""]


async def test_what_was_streamed_before_a_stop_is_kept(tmp_path: Path) -> None:
    """Rows J1, G8: text and calls that were shown are in the journal when the turn is stopped, and none of them ran."""
    gate = Gate()
    async with staged(tmp_path, [TextPart("I begin"), write("a.txt", "x"), gate], says("done")) as stage:
        owner = await stage.session("auto")
        first = await stage.send(owner, "one")
        await gate.wait_reached()
        await prompts.cancel(owner, first.turn_id)
        await stage.ended(owner, first.turn_id)
        assert [message.text for message in owner.messages(9)[0]] == ["one", "I begin"]
        assert states(owner) == ["notRun"]
        assert stage.content("a.txt") is None
        await stage.say(owner, "two")
        assert history(stage.model.requests[-1].messages) == ["user", "assistant", "notRun", "user"]
        assert_closed(owner)


# --- answers that are not whole (row T6) --------------------------------------------------------------------------


@pytest.mark.parametrize(("finish", "reason"), [(None, "cut"), ("length", "length")])
async def test_an_answer_that_is_not_whole_runs_nothing(tmp_path: Path, finish: str | None, reason: str) -> None:
    """Row T6, cases 89, 92: the calls of a cut or length-truncated answer get a reply and do not run."""
    cut = asks(write("a.txt", "x"), read("b.txt"), text="well", finish=finish)  # type: ignore[arg-type]  # of the table
    async with staged(tmp_path, cut, says("done")) as stage:
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == reason
        assert states(owner) == ["notRun", "notRun"]
        assert all("did not run" in text and "cut" in text for text in replies(owner))
        assert "intent" not in kinds(owner)
        assert stage.content("a.txt") is None
        await stage.say(owner, "again")
        assert history(stage.model.requests[1].messages) == ["user", "assistant", "notRun", "notRun", "user"]
        assert_closed(owner)


@pytest.mark.parametrize(
    "arguments",
    ['{"path": "a.txt", "content": "x', '{"path": "a", "path": "b"}', "[]", "", '{"path": NaN}', '{"path": "\\ud800"}'],
)
async def test_arguments_that_do_not_parse_strictly(tmp_path: Path, arguments: str) -> None:
    """Rows T4, T6, N1, case 91: refused, the turn goes on; valid empty arguments go out, the text stays."""
    async with staged(tmp_path, asks(CallProposed("write_file", arguments)), says("I see")) as stage:
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == "done"
        assert states(owner) == ["refused"]
        assert calls_of(owner)[0].arguments == arguments
        asked = [m for m in stage.model.requests[1].messages if isinstance(m, AssistantMessage)]
        assert asked[0].calls[0].arguments == "{}"
        assert list(stage.root.iterdir()) == []


async def test_a_filtered_answer(tmp_path: Path) -> None:
    """Row T6: the reason of the end says that the provider filtered the answer, and its calls do not run."""
    answers = says("no", finish="filtered"), asks(write("a.txt", "x"), finish="filtered")
    async with staged(tmp_path, *answers) as stage:
        owner = await stage.session("auto")
        for _ in answers:
            assert (await stage.say(owner)).reason == "filtered"
        assert states(owner) == ["notRun"]
        assert "filtered" in replies(owner)[0]
        assert stage.content("a.txt") is None


async def test_a_defect_ends_its_turn_alone(tmp_path: Path) -> None:
    """Case 5, row S6: what fails inside ends that turn with a warning to the person; session and server go on."""
    async with staged(tmp_path, [TextPart("I "), ValueError("inside")], says("ok")) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        assert (await stage.ended(owner, accepted.turn_id)).reason == "modelFailed"
        assert [event.code for event in stage.events(accepted.turn_id) if isinstance(event, Warned)] == ["defect"]
        assert (await stage.say(owner, "two")).reason == "done"
        assert len(stage.defects) == 1, "the log is told"
        stage.defects.clear()


async def test_a_model_that_cannot_answer(tmp_path: Path) -> None:
    """`modelFailed` with the provider's one sentence as a warning; the session goes on with the next prompt."""
    trouble = ModelTrouble("The key is not accepted. Set another one.")
    async with staged(tmp_path, [TextPart("I "), trouble], says("done")) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        assert (await stage.ended(owner, accepted.turn_id)).reason == "modelFailed"
        assert Warned("modelFailed", str(trouble)) in stage.events(accepted.turn_id)
        assert (await stage.say(owner, "two")).reason == "done"


# --- stopping (row G8) --------------------------------------------------------------------------------------------


async def test_an_end_for_a_reason_nobody_knows(tmp_path: Path) -> None:
    """P2: the answer counts, and one warning says that it may not be whole."""
    async with staged(tmp_path, says("so far", finish="unknown"), says("whole")) as stage:
        owner = await stage.session()
        for warnings in (1, 0):
            accepted = await stage.send(owner, "go on")
            assert (await stage.ended(owner, accepted.turn_id)).reason == "done"
            told = [event for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
            assert [event.code for event in told] == ["unknownEnd"] * warnings


async def test_stopping_closes_every_open_call(tmp_path: Path) -> None:
    """Case 1, [I16]: three open calls, stopped in the first; the next request has one reply each, in order."""
    started = anyio.Event()
    sleeping = Script(hangs=True, started=started)
    answer = asks(run("sleep 1"), run("sleep 2"), run("sleep 3"))
    async with staged(tmp_path, answer, says("ok"), processes=FakeProcesses(otherwise=sleeping)) as stage:
        owner = await stage.session("auto")
        first = await stage.send(owner, "sleep")
        await started.wait()
        assert await prompts.cancel(owner, first.turn_id)
        assert (await stage.ended(owner, first.turn_id)).reason == "cancelled"
        assert states(owner) == ["stopped", "notRun", "notRun"]
        assert all("did not run: the user stopped the turn" in text for text in replies(owner)[1:])
        assert_closed(owner)
        await stage.say(owner, "go on")
        sent = stage.model.requests[1].messages
        assert history(sent) == ["user", "assistant", "stopped", "notRun", "notRun", "user"]
        validate(sent)


async def test_stopping_while_the_answer_streams(tmp_path: Path) -> None:
    """Case 38: a stop while a call is being streamed; nothing starts after its record."""
    gate = Gate()
    async with staged(tmp_path, [write("a.txt", "x"), gate, Finish("calls")]) as stage:
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "one")
        await gate.wait_reached()
        assert await prompts.cancel(owner, accepted.turn_id)
        assert not await prompts.cancel(owner, accepted.turn_id), "it is stopping already"
        gate.go.set()
        await stage.ended(owner, accepted.turn_id)
        assert stage.content("a.txt") is None
        assert "started" not in kinds(owner)
        assert_closed(owner)


async def test_stopping_while_a_question_is_open(tmp_path: Path) -> None:
    """Rows G8, C5, case 82: the question is withdrawn, it and the later calls did not run; a late yes does nothing."""
    park = Park()
    answer = asks(write("a.txt", "1"), write("b.txt", "2"))
    async with staged(tmp_path, answer, editor=ScriptedEditor(park)) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await park.wait_open()
        assert owner.view().parked
        await prompts.cancel(owner, accepted.turn_id)
        await stage.ended(owner, accepted.turn_id)
        assert park.withdrawn
        park.answer_with("once")
        await anyio.lowlevel.checkpoint()
        assert not owner.view().parked
        assert states(owner) == ["notRun", "notRun"]
        assert list(stage.root.iterdir()) == []
        assert outcomes(owner) == [("not_started", "cancelled")]
        assert_closed(owner)


async def test_a_stop_is_recorded_before_it_acts(tmp_path: Path) -> None:
    """Row G8: while its record waits for the disk nothing is taken back; then the question is withdrawn."""
    disk = GatedDisk(lambda op: "cancel" in op.kinds)
    park = Park()
    async with staged(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park), disk=disk) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await park.wait_open()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompts.cancel, owner, accepted.turn_id)
            await disk.wait_reached()
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert not park.withdrawn
            disk.go.set()
        assert (await stage.ended(owner, accepted.turn_id)).reason == "cancelled"
        assert park.withdrawn


async def test_a_start_that_waits_while_the_stop_is_recorded(tmp_path: Path) -> None:
    """Row G8, case 38: a call already past its permission may not write *started* behind the record of the stop."""
    disk = GatedDisk(beside("make_folder", "checkpoints"))
    recording = GatedDisk(lambda op: "cancel" in op.kinds)
    recording.inner = disk
    async with staged(tmp_path, asks(write("a.txt", "new")), disk=recording) as stage:
        (stage.root / "a.txt").write_text("old")
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "one")
        await disk.wait_reached()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prompts.cancel, owner, accepted.turn_id)
            await recording.wait_reached()
            disk.go.set()
            await until(lambda: owner._writing.statistics().tasks_waiting == 1)
            recording.go.set()
        await stage.ended(owner, accepted.turn_id)
        assert_closed(owner)
        assert states(owner) == ["notRun"]
        assert stage.content("a.txt") == "old"


async def test_stopping_during_the_replacement(tmp_path: Path) -> None:
    """Case 37: behind the last look at the cancel the write is completed, said so, and stays; the turn is cancelled."""
    disk = GatedDisk(lambda op: op.verb in ("exchange", "rename", "rename_new") and op.target.endswith("a.txt"))
    async with staged(tmp_path, asks(write("a.txt", "new"), read("a.txt")), disk=disk) as stage:
        (stage.root / "a.txt").write_text("old")
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "one")
        await disk.wait_reached()
        await prompts.cancel(owner, accepted.turn_id)
        disk.go.set()
        ended = await stage.ended(owner, accepted.turn_id)
        assert ended == TurnEnded("cancelled", (ChangedFile("a.txt", "modified"),))
        assert states(owner) == ["returned", "notRun"]
        assert stage.content("a.txt") == "new"
        assert_closed(owner)


async def test_stopping_before_the_replacement(tmp_path: Path) -> None:
    """Case 37: stopped while the new content is written beside the file, the file is not touched, and is said so."""
    disk = GatedDisk(lambda op: op.verb == "create" and op.target.endswith(".steadyhand"))
    async with staged(tmp_path, asks(write("a.txt", "new")), says("ok"), disk=disk) as stage:
        (stage.root / "a.txt").write_text("old")
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "one")
        await disk.wait_reached()
        await prompts.cancel(owner, accepted.turn_id)
        disk.go.set()
        assert (await stage.ended(owner, accepted.turn_id)).changed == ()
        assert states(owner) == ["stopped"]
        assert stage.content("a.txt") == "old"
        assert [path.name for path in stage.root.iterdir()] == ["a.txt"]
        assert owner.ledger.uncertain() == []


async def test_an_interruption_is_not_told_as_a_refusal(tmp_path: Path) -> None:
    """Case 14: a command that wrote and is then stopped is told as "may be half done", never as not run."""
    started = anyio.Event()
    root = tmp_path / "ws"

    def make(_: Run) -> None:
        (root / "a").write_text("x")

    wrote = Script(output=[b"half"], effect=make, hangs=True, started=started)
    async with staged(tmp_path, asks(run("make")), processes=FakeProcesses(otherwise=wrote)) as stage:
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "one")
        await until((root / "a").exists)
        await prompts.cancel(owner, accepted.turn_id)
        await stage.ended(owner, accepted.turn_id)
        (text,) = replies(owner)
        assert "half" in text
        assert "may be half done" in text
        assert "did not run" not in text
        assert outcomes(owner) == [("stopped", "cancelled")]


async def test_a_turn_stopped_at_every_operation_of_its_disk(tmp_path: Path) -> None:
    """Row G8, [I2, I16], case 37: wherever the stop falls, each call has one reply that agrees with the disk."""
    seen: set[tuple[str, ...]] = set()
    for number in range(1, 60):
        folder = tmp_path / str(number)
        folder.mkdir()
        disk = GatedDisk(lambda op: False)
        answer = asks(write("a.txt", "1"), read("a.txt"), write("b.txt", "2"))
        async with staged(folder, answer, says("ok"), disk=disk) as stage:
            (stage.root / "a.txt").write_text("0")
            owner = await stage.session("auto")
            disk.matches = numbered(disk.count + number)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.say, owner, "one")
                await until(partial(held_or_over, disk, stage))
                if disk.reached.is_set():
                    tasks.start_soon(prompts.cancel, owner, None)
                    await anyio.lowlevel.checkpoint()
                disk.go.set()
            assert_closed(owner)
            # Stopped while the answer still came, it has fewer calls than it would have had.
            a, _, b = (*states(owner), *["notRun"] * 3)[:3]
            assert stage.content("a.txt") == ("1" if a == "returned" else "0"), number
            assert stage.content("b.txt") == ("2" if b == "returned" else None), number
            assert not [path for path in stage.root.iterdir() if path.name.startswith(".")]
            assert owner.ledger.uncertain() == []
            seen.add(tuple(states(owner)))
            if not disk.reached.is_set():
                break
    else:
        pytest.fail("the turn has no end")
    assert {("returned", "returned", "returned"), ("notRun", "notRun", "notRun")} <= seen
    assert any("stopped" in each for each in seen)


# --- errors after the start (row C6) ------------------------------------------------------------------------------


async def test_an_error_after_the_replacement(tmp_path: Path) -> None:
    """Rows C6, W6, W7, case 32: the file has the intended content, so it returned, and that is said."""
    disk = GatedDisk(
        lambda op: op.verb in ("exchange", "rename") and op.target.endswith("a.txt"),
        OSError(errno.EIO, "Input/output error"), after=True, held=False,
    )  # fmt: skip
    async with staged(tmp_path, asks(write("a.txt", "new")), says("ok"), disk=disk) as stage:
        (stage.root / "a.txt").write_text("old")
        owner = await stage.session("auto")
        ended = await stage.say(owner)
        assert ended.changed == (ChangedFile("a.txt", "modified"),)
        assert outcomes(owner) == [("returned", "after_error")]
        assert "but the file has the intended content now" in replies(owner)[0]
        assert "of the file now, not of what happened" in replies(owner)[0]
        assert [path.name for path in stage.root.iterdir()] == ["a.txt"]


async def test_an_error_before_the_replacement(tmp_path: Path) -> None:
    """Row C6, case 61: nothing was replaced, so the call failed, and the file is as before."""
    full = OSError(errno.ENOSPC, "No space left on device")
    disk = GatedDisk(lambda op: op.verb == "write" and op.target.endswith(".steadyhand"), full, held=False)
    async with staged(tmp_path, asks(write("a.txt", "new")), says("ok"), disk=disk) as stage:
        (stage.root / "a.txt").write_text("old")
        owner = await stage.session("auto")
        assert (await stage.say(owner)).changed == ()
        assert [outcome for outcome, _ in outcomes(owner)] == ["failed"]
        assert stage.content("a.txt") == "old"
        assert [path.name for path in stage.root.iterdir()] == ["a.txt"]


async def test_an_unknown_holds_back_the_rest_of_its_batch(tmp_path: Path) -> None:
    """Row B7, C6: an error whose effect nothing can prove is unknown; later effects are held back, reads not."""

    async def breaks(_: Running) -> Done:
        raise RuntimeError("somewhere inside")

    answer = asks(call("deploy"), read("a.txt"), write("b.txt", "b"))
    async with staged(tmp_path, answer, says("ok"), tools=[ScriptedTool("deploy", breaks, "opaque")]) as stage:
        (stage.root / "a.txt").write_text("A")
        stage.editor.somebody = False
        owner = await stage.session("auto")
        await stage.say(owner)
        assert states(owner) == ["unknown", "returned", "refused"]
        assert stage.content("b.txt") is None
        attempt = owner.ledger.uncertain()[0]
        assert outcomes(owner)[1] == ("refused", "recovery_required")
        assert attempt.attempt_id[:8] in replies(owner)[2]
        assert "Do not repeat it" in replies(owner)[0]


async def test_exit_code_and_time_limit_of_a_command(tmp_path: Path) -> None:
    """Row C6: a non-zero exit is `returned`; a command out of time is `stopped` with its output so far."""
    scripts = {
        "fails": Script(output=[b"no such thing"], finished=Finished(3, None, False, (), True)),
        "slow": Script(output=[b"so far"], finished=Finished(None, 15, True, (), True)),
    }
    answer = asks(run("fails"), run("slow", timeoutMs=5))
    async with staged(tmp_path, answer, says("ok"), processes=FakeProcesses(scripts)) as stage:
        owner = await stage.session("auto")
        await stage.say(owner)
        assert outcomes(owner) == [("returned", None), ("stopped", "timeout")]
        assert "no such thing" in replies(owner)[0]
        assert "exit code 3" in replies(owner)[0]
        assert "so far" in replies(owner)[1]
        assert "may be half done" in replies(owner)[1]
        assert owner.ledger.uncertain() == []


async def test_the_size_of_a_reply(tmp_path: Path) -> None:
    """J12, wire.md, "Shapes": one rule for all tools: the bytes of the text where it is all there is, else of the whole
    that it was cut from."""
    plays = [Done("returned", "(no output)", bytes=0), Done("returned", "a … é", bytes=90_000, truncated=True)]

    async def body(_: Running) -> Done:
        return plays.pop(0)

    answers = [asks(call("look", n=number)) for number in range(2)]
    async with staged(tmp_path, *answers, says("ok"), tools=[ScriptedTool("look", body)]) as stage:
        owner = await stage.session()
        await stage.say(owner)
        views = [stage.last_view(one.call_id).reply for one in calls_of(owner)]
        assert [(view.bytes, view.truncated) for view in views if view] == [(11, False), (90_000, True)]


async def test_a_command_that_could_not_be_ended(tmp_path: Path) -> None:
    """Rows C6, B1, B2: out of time and not surely gone, it is unknown and holds back what comes after it."""
    lives_on = Script(output=[b"so far"], finished=Finished(None, 15, True, (), False))
    answer = asks(run("serve", timeoutMs=5), write("a.txt", "a"), read("b.txt"))
    async with staged(tmp_path, answer, says("ok"), processes=FakeProcesses(otherwise=lives_on)) as stage:
        (stage.root / "b.txt").write_text("B")
        stage.editor.somebody = False
        owner = await stage.session("auto")
        await stage.say(owner)
        assert states(owner) == ["unknown", "refused", "returned"]
        assert "may still run" in replies(owner)[0]
        assert owner.view().uncertain == 1
        assert stage.content("a.txt") is None


async def test_five_wordings(tmp_path: Path) -> None:
    """Row C6, case 14: denied, not run, failed, stopped and unknown are told apart in the words for the model."""

    async def breaks(_: Running) -> Done:
        raise RuntimeError("inside")

    started = anyio.Event()
    missing = Script(not_started=FileNotFoundError(errno.ENOENT, "No such file"))
    scripts = {"no": missing, "hang": Script(hangs=True, started=started)}
    editor = ScriptedEditor("reject", "once", "once", "once")
    answer = asks(write("denied.txt", "x"), run("no"), run("hang"), write("late.txt", "x"))
    tools = [ScriptedTool("deploy", breaks, "opaque")]
    async with staged(
        tmp_path, answer, asks(call("deploy")), editor=editor, processes=FakeProcesses(scripts), tools=tools
    ) as stage:
        owner = await stage.session()
        first = await stage.send(owner, "one")
        await started.wait()
        await prompts.cancel(owner, first.turn_id)
        await stage.ended(owner, first.turn_id)
        await stage.say(owner, "two")
        assert states(owner) == ["refused", "failed", "stopped", "notRun", "unknown"]
        said = [text.split(".")[0] for text in replies(owner)]
        assert len(set(said)) == 5, said


async def test_an_error_inside_a_read_fails_that_call_alone(tmp_path: Path) -> None:
    """Rows C6, C7: whatever a read throws, its call failed and the turn goes on; it is never uncertain."""

    async def breaks(_: Running) -> Done:
        raise ValueError("inside")

    broken = ScriptedTool("broken", breaks)
    async with staged(tmp_path, asks(call("broken"), read("a.txt")), says("ok"), tools=[broken]) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session()
        assert (await stage.say(owner)).reason == "done"
        assert states(owner) == ["failed", "returned"]
        assert owner.ledger.uncertain() == []


@pytest.mark.parametrize("effect", ["reads", "opaque"])
async def test_a_disk_error_while_a_call_is_prepared(tmp_path: Path, effect: str) -> None:
    """An error before the start refuses that one call in a sentence; the turn goes on and nothing ran."""

    async def body(_: Running) -> Done:
        raise AssertionError("it may not run")

    tool = ScriptedTool("touchy", body, effect, fails=OSError(errno.EIO, "Input/output error"))  # type: ignore[arg-type]
    async with staged(tmp_path, asks(call("touchy"), read("a.txt")), says("ok"), tools=[tool]) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == "done"
        assert states(owner) == ["refused", "returned"]
        assert "Input/output error" in replies(owner)[0]


# --- a journal that breaks (rows J4, J5, J6) ----------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["write", "sync"])
async def test_a_journal_that_breaks_before_the_start(tmp_path: Path, verb: str) -> None:
    """Row J4, case 23: *started* cannot be made durable, so the body does not run; reads go on, shown as not kept."""
    disk = GatedDisk(lambda op: False, OSError(errno.ENOSPC, "No space left on device"), held=False)
    last: list[str] = []

    def at_started(op: object) -> bool:
        last.extend(getattr(op, "kinds", ()))
        return getattr(op, "verb", "") == verb and last[-1:] == ["started"]

    answer = asks(write("a.txt", "new"), read("b.txt"))
    async with staged(tmp_path, answer, asks(read("b.txt"), write("c.txt", "c")), says("ok"), disk=disk) as stage:
        (stage.root / "b.txt").write_text("B")
        owner = await stage.session("auto")
        disk.matches = at_started
        accepted = await stage.send(owner, "one")
        ended = await stage.ended(owner, accepted.turn_id)
        assert ended.reason == "journalBroken"
        assert states(owner) == ["notRun", "returned", "returned", "notRun"]
        assert [path.name for path in stage.root.iterdir()] == ["b.txt"]
        warned = [event for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
        assert [event.code for event in warned] == ["notKept"]
        assert "full" in warned[0].text
        assert "not kept" in warned[0].text
        assert len(stage.model.requests) == 3, "the reads were answered"


async def test_a_broken_journal_is_taken_up_by_opening(tmp_path: Path) -> None:
    """Row J6: new prompts are refused until `session/open` takes the journal up again, with a new epoch."""
    full = OSError(errno.ENOSPC, "No space left on device")
    disk = GatedDisk(lambda op: False, full, held=False)
    async with staged(tmp_path, says("one"), says("two"), disk=disk) as stage:
        owner = await stage.session()
        disk.matches = lambda op: "assistant" in op.kinds
        assert (await stage.say(owner, "first", "c1")).reason == "journalBroken"
        with pytest.raises(Refused) as refused:
            await stage.send(owner, "second", "c2")
        assert refused.value.kind == "journalBroken"
        assert (await stage.send(owner, "first", "c1")).duplicate, "what is known is acknowledged again"
        again = await stage.opened(owner.session_id)
        assert again is not owner
        assert again.epoch not in (None, owner.epoch)
        assert (await stage.say(again, "second", "c2")).reason == "done"
        assert prompts.status(again, "c1").state == "interrupted"
        assert "damage" in kinds(again)


async def test_an_unacknowledged_result_counts_for_nothing(tmp_path: Path) -> None:
    """Rows J5, J6, [I12]: a result that was written and not synced is not believed, now or at any later opening."""
    broken = OSError(errno.EIO, "Input/output error")
    last: list[str] = []
    disk = GatedDisk(lambda op: False, broken, held=False)

    def at_result(op: object) -> bool:
        last.extend(getattr(op, "kinds", ()))
        return getattr(op, "verb", "") == "sync" and "result" in last[-2:]

    processes = FakeProcesses(otherwise=Script(output=[b"done"]))
    async with staged(tmp_path, asks(run("make it")), says("ok"), disk=disk, processes=processes) as stage:
        owner = await stage.session("auto")
        disk.matches = at_result
        assert (await stage.say(owner)).reason == "journalBroken"
        assert states(owner) == ["unknown"]
        assert "could not be recorded" in replies(owner)[0]
        again = await stage.opened(owner.session_id)
        assert states(again) == ["unknown"]
        await stage.house.close(owner.session_id)
        size = len((Path(owner.path) / "journal.jsonl").read_bytes())
        third = await stage.opened(owner.session_id)
        assert states(third) == ["unknown"]
        assert len((Path(owner.path) / "journal.jsonl").read_bytes()) == size, "opening again finds nothing new (C4)"


# --- what a child is told (rows N2, E1) ---------------------------------------------------------------------------


async def test_a_command_can_read_who_it_is(tmp_path: Path) -> None:
    """Rows N2, E1: attempt, key and session are in a command's environment; credentials are not."""
    processes = FakeProcesses(otherwise=Script(), environment={"PATH": "/bin", "API_TOKEN": "x", "HOME": "/h"})
    async with staged(tmp_path, asks(run("make")), says("ok"), processes=processes) as stage:
        owner = await stage.session("auto")
        await stage.say(owner)
        (made,) = processes.runs
        attempt = calls_of(owner)[0].attempt
        assert attempt is not None
        assert made.environment["STEADYHAND_ATTEMPT_ID"] == attempt.attempt_id
        assert made.environment["STEADYHAND_IDEMPOTENCY_KEY"] == attempt.key
        assert made.environment["STEADYHAND_SESSION_ID"] == owner.session_id
        assert "API_TOKEN" not in made.environment
        assert made.environment["HOME"] == "/h"
        assert [r.mark for r in on_disk(owner) if isinstance(r, Started)] == [attempt.attempt_id]


async def test_the_key_of_what_is_asked_again(tmp_path: Path) -> None:
    """Row N2: asked again after an unknown one the key is the same; after one that returned it is new."""

    outcomes_of = iter(["unknown", "returned", "returned"])

    async def body(_: Running) -> Done:
        return Done(next(outcomes_of), "as the script says")  # type: ignore[arg-type]  # the words above

    deploy = asks(call("deploy", to="x"))
    tool = ScriptedTool("deploy", body, "opaque")
    async with staged(tmp_path, deploy, says("1"), deploy, says("2"), deploy, says("3"), tools=[tool]) as stage:
        owner = await stage.session("auto")
        await stage.say(owner, "one")
        unknown = owner.ledger.uncertain()[0]
        settled = Settlement(unknown.attempt_id, unknown.call_id, "checked_absent", "recovery")
        await owner.append([settled], barrier=True)
        await stage.say(owner, "two")
        await stage.say(owner, "three")
        keys = [attempt.key for attempt in owner.ledger.attempts.values()]
        assert keys[0] == keys[1] != keys[2]
        assert len({attempt.attempt_id for attempt in owner.ledger.attempts.values()}) == 3


@pytest.mark.parametrize(("answer", "settled"), [("confirm", "user_confirmed"), ("waive", "waived")])
async def test_the_key_of_a_call_that_waited_for_its_own_like(tmp_path: Path, answer: str, settled: str) -> None:
    """Row N2, B4: it was held back by an uncertain try of the same intention, which the person takes for happened: so
    it is a new intention by then, and its body is given a key that no earlier try had; *started* says so."""
    outcomes_of = iter(["unknown", "returned", "returned"])
    keys: list[str] = []

    async def body(running: Running) -> Done:
        keys.append(running.key)
        return Done(next(outcomes_of), "as the script says")  # type: ignore[arg-type]  # the words above

    deploy = asks(call("deploy", to="x"))
    tool = ScriptedTool("deploy", body, "opaque")
    editor = ScriptedEditor(answer, "once")
    script = (deploy, says("1"), deploy, says("2"), asks(call("deploy", to="y")), says("3"))
    async with staged(tmp_path, *script, tools=[tool], editor=editor) as stage:
        owner = await stage.session("auto")
        for text in ("one", "two", "three"):
            await stage.say(owner, text)
        records = on_disk(owner)
        assert [record.settled for record in records if isinstance(record, Settlement)] == [settled]
        intents = [record for record in records if isinstance(record, Intent)]
        starts = [record for record in records if isinstance(record, Started)]
        assert intents[0].key == intents[1].key == keys[0]
        assert starts[1].key == keys[1] not in (keys[0], None)
        assert [start.occurrence for start in starts] == [None, 1, None]
        assert intents[2].key == keys[2]
        assert [owner.ledger.attempts[intent.attempt_id].key for intent in intents] == keys


async def test_the_key_stays_where_another_effect_was_waited_for(tmp_path: Path) -> None:
    """Row N2: what was settled meanwhile was another intention, so *started* holds no key of its own."""
    outcomes_of = iter(["unknown", "returned"])

    async def body(_: Running) -> Done:
        return Done(next(outcomes_of), "as the script says")  # type: ignore[arg-type]  # the words above

    script = (asks(call("deploy", to="x")), says("1"), asks(call("deploy", to="y")), says("2"))
    tool = ScriptedTool("deploy", body, "opaque")
    async with staged(tmp_path, *script, tools=[tool], editor=ScriptedEditor("confirm")) as stage:
        owner = await stage.session("auto")
        await stage.say(owner, "one")
        await stage.say(owner, "two")
        assert [record.key for record in on_disk(owner) if isinstance(record, Started)] == [None, None]
        assert len(owner.ledger.uncertain()) == 0


async def test_a_read_that_was_cut_off_is_asked_for_again(tmp_path: Path) -> None:
    """Rows F5, C7, N2: killed while it reads: `notRun`, never uncertain, no Retry at it; the model is told to read
    again and does so by an ordinary call, though a command is uncertain, with the same key and a new attempt."""
    reading = anyio.Event()

    async def hangs(_: Running) -> Done:
        reading.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def reads(_: Running) -> Done:
        return Done("returned", "the lines")

    async def nobody_knows(_: Running) -> Done:
        return Done("unknown", "it may have run")

    deploy = ScriptedTool("deploy", nobody_knows, "opaque")
    asked = (asks(call("deploy")), asks(call("look", at="x")))
    async with staged(tmp_path, *asked, tools=[deploy, ScriptedTool("look", hangs)]) as stage:
        owner = await stage.session("auto")
        await stage.send(owner, "one")
        with anyio.fail_after(5):
            await reading.wait()
        state = stage.crashed(tmp_path / "later")
    again = (asks(call("look", at="x")), says("seen"))
    editor = ScriptedEditor()
    tools = [deploy, ScriptedTool("look", reads)]
    async with staged(tmp_path, *again, tools=tools, state=state, life=2, editor=editor) as stage:
        owner = await stage.opened(owner.session_id)
        assert states(owner) == ["unknown", "notRun"]
        (cut,) = [attempt for attempt in owner.ledger.attempts.values() if attempt.tool == "look"]
        assert [view.tool for view in owner.snapshot().calls] == ["deploy"]
        before = kinds(owner)
        with pytest.raises(Refused) as refused:
            await resolve(owner, Wanted(cut.attempt_id, "retry"))
        assert refused.value.kind == "staleSnapshot"
        assert kinds(owner) == before
        await stage.say(owner, "two")
        assert states(owner) == ["unknown", "notRun", "returned"]
        assert "Read again if you need it" in [r.text for r in on_disk(owner) if isinstance(r, Supplied)][-1]
        new = list(owner.ledger.attempts.values())[-1]
        assert new.attempt_id != cut.attempt_id
        assert new.key == cut.key
        assert editor.questions == editor.held_back == []


# --- missing replies (rows T2, T3; cases 2, 4, 13) ----------------------------------------------------------------


async def test_words_that_went_out_once_stay(tmp_path: Path) -> None:
    """Row T2, cases 2, 4: the holes of a crash are filled once, by records, with words that follow the verdict."""
    park = Park()
    editor = ScriptedEditor(park)
    async with staged(tmp_path, asks(write("a.txt", "1"), write("b.txt", "2")), editor=editor) as stage:
        owner = await stage.session()
        await stage.send(owner, "one")
        await park.wait_open()
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, says("ok"), says("ok"), state=state, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        assert states(owner) == ["notRun", "notRun"]
        await stage.say(owner, "two")
        await stage.say(owner, "three")
        supplied = [r for r in on_disk(owner) if isinstance(r, Supplied)]
        assert len(supplied) == 2
        assert all("did not run" in record.text for record in supplied)
        first, second = (request.messages for request in stage.model.requests)
        assert second[: len(first)] == first
        assert history(first) == ["user", "assistant", "notRun", "notRun", "user"]
    async with staged(tmp_path, says("ok"), state=state, life=3) as stage:
        owner = await stage.opened(owner.session_id)
        await stage.say(owner, "four")
        assert len([r for r in on_disk(owner) if isinstance(r, Supplied)]) == 2
        assert stage.model.requests[0].messages[: len(second)] == second


async def test_usage_is_counted_over_restarts(tmp_path: Path) -> None:
    """Row U1: billed is summed over requests, context is the last one's; incomplete where a request gave none."""
    async with staged(tmp_path, says("one"), [TextPart("two"), Finish("stop")]) as stage:
        owner = await stage.session()
        await stage.say(owner, "one")
        await stage.say(owner, "two")
        told = [told.event.usage for told in stage.numbered() if isinstance(told.event, UsageTold)]
        assert [(u.billed.input, u.billed.output, u.context, u.complete) for u in told] == [
            (10, 5, 15, True),
            (10, 5, 0, False),
        ]
    async with staged(tmp_path, says("three"), life=2) as stage:
        owner = await stage.opened(owner.session_id)
        await stage.say(owner, "three")
        usage = [told.event.usage for told in stage.numbered() if isinstance(told.event, UsageTold)][-1]
        assert (usage.billed.input, usage.billed.output, usage.complete) == (20, 10, False)


async def test_cancel_record_stands_before_the_end(tmp_path: Path) -> None:
    """Row G8: the stop is recorded before it takes effect, and the turn's end names it."""
    gate = Gate()
    async with staged(tmp_path, [gate]) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await gate.wait_reached()
        await prompts.cancel(owner, accepted.turn_id)
        await stage.ended(owner, accepted.turn_id)
        tail = [r for r in on_disk(owner) if isinstance(r, Cancel | Ended)]
        assert tail == [Cancel(accepted.turn_id), Ended(accepted.turn_id, "cancelled")]
        assert [r for r in on_disk(owner) if isinstance(r, Result)] == []
        assert json.loads((Path(owner.path) / "owner.json").read_text())["pid"] == 1
