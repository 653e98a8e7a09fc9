"""Errors inside a turn: each call fails, is checked or stays unknown, and the session continues (rows C6, B7, W6)."""

from __future__ import annotations

import errno
from pathlib import Path

import anyio
import pytest

from steadyhand.domain.model.messages import TextPart
from steadyhand.domain.records.record import EffectClass
from steadyhand.domain.views.types import ChangedFile, Warned
from steadyhand.ports.processes import Finished
from steadyhand.session.service import prompt_queue
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import GatedDisk, Operation
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, read, run, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import calls_of, outcomes, replies, states

pytestmark = pytest.mark.anyio


async def test_defect_ends_only_its_own_turn(tmp_path: Path) -> None:
    """Case 5, row S6: an internal error ends that turn with a warning to the user. The session and the server
    continue.
    """
    async with scripted_server(tmp_path, [TextPart("I "), ValueError("inside")], says("ok")) as harness:
        session = await harness.session()
        accepted = await harness.send(session, "one")
        assert (await harness.ended(session, accepted.turn_id)).reason == "modelFailed"
        assert [event.code for event in harness.events(accepted.turn_id) if isinstance(event, Warned)] == ["defect"]
        assert (await harness.say(session, "two")).reason == "done"
        assert len(harness.defects) == 1, "the defect is logged"
        harness.defects.clear()


async def test_error_after_the_replacement_is_returned_by_the_check(tmp_path: Path) -> None:
    """Rows C6, W6, W7, case 32: the file has the intended content, so the call returned, and the reply says so."""
    disk = GatedDisk(
        lambda op: op.verb in ("exchange", "rename") and op.target.endswith("a.txt"),
        OSError(errno.EIO, "Input/output error"), after=True, held=False,
    )  # fmt: skip
    async with scripted_server(tmp_path, asks(write("a.txt", "new")), says("ok"), disk=disk) as harness:
        (harness.root / "a.txt").write_text("old")
        session = await harness.session("auto")
        ended = await harness.say(session)
        assert ended.changed == (ChangedFile("a.txt", "modified"),)
        assert outcomes(session) == [("returned", "after_error")]
        assert "but the file has the intended content now" in replies(session)[0]
        assert "describes the file now, not what ran" in replies(session)[0]
        assert [path.name for path in harness.root.iterdir()] == ["a.txt"]


async def test_error_before_the_replacement_fails_the_call(tmp_path: Path) -> None:
    """Row C6, case 61: nothing was replaced, so the call failed, and the file is as before."""
    full = OSError(errno.ENOSPC, "No space left on device")
    disk = GatedDisk(lambda op: op.verb == "write" and op.target.endswith(".steadyhand"), full, held=False)
    async with scripted_server(tmp_path, asks(write("a.txt", "new")), says("ok"), disk=disk) as harness:
        (harness.root / "a.txt").write_text("old")
        session = await harness.session("auto")
        assert (await harness.say(session)).changed == ()
        assert [outcome for outcome, _ in outcomes(session)] == ["failed"]
        assert harness.content("a.txt") == "old"
        assert [path.name for path in harness.root.iterdir()] == ["a.txt"]


async def test_error_after_a_concurrent_save_is_unknown_and_not_failed(tmp_path: Path) -> None:
    """Row C6, [I3]: the check says *conflict*: the change may have been there before the save, so it did not fail."""
    place = tmp_path / "ws" / "a.txt"

    def save_and_fail(operation: Operation) -> bool:
        if operation.verb != "exchange":
            return False
        place.write_text("saved meanwhile")
        return True

    disk = GatedDisk(save_and_fail, OSError(errno.EIO, "Input/output error"), after=True, held=False)
    async with scripted_server(tmp_path, asks(write("a.txt", "new")), says("ok"), disk=disk) as harness:
        place.write_text("old")
        session = await harness.session("auto")
        await harness.say(session)
        assert outcomes(session) == [("unknown", "error")]
        (attempt,) = session.ledger.uncertain()
        assert attempt.check == "conflict"
        assert "a.txt" in {path.name for path in place.parent.iterdir()}


async def test_unknown_call_holds_back_the_later_effects_of_its_batch(tmp_path: Path) -> None:
    """Row B7, C6: an error whose effect cannot be proved is unknown. Later effects are held back, and reads are not."""

    async def breaks(_: CallContext) -> ToolOutcome:
        raise RuntimeError("somewhere inside")

    answer = asks(call("deploy"), read("a.txt"), write("b.txt", "b"))
    async with scripted_server(
        tmp_path, answer, says("ok"), tools=[ScriptedTool("deploy", breaks, "opaque")]
    ) as harness:
        (harness.root / "a.txt").write_text("A")
        harness.editor.somebody = False
        session = await harness.session("auto")
        await harness.say(session)
        assert states(session) == ["unknown", "returned", "refused"]
        assert harness.content("b.txt") is None
        attempt = session.ledger.uncertain()[0]
        assert outcomes(session)[1] == ("refused", "recovery_required")
        assert attempt.attempt_id[:8] in replies(session)[2]
        assert "Do not repeat it" in replies(session)[0]


async def test_command_exit_code_is_returned_and_a_timeout_is_stopped(tmp_path: Path) -> None:
    """Row C6: a non-zero exit is `returned`. A command out of time is `stopped` with its output so far."""
    scripts = {
        "fails": Script(output=[b"no such thing"], finished=Finished(3, None, False, (), True)),
        "slow": Script(output=[b"so far"], finished=Finished(None, 15, True, (), True)),
    }
    answer = asks(run("fails"), run("slow", timeoutMs=5))
    async with scripted_server(tmp_path, answer, says("ok"), processes=FakeProcesses(scripts)) as harness:
        session = await harness.session("auto")
        await harness.say(session)
        assert outcomes(session) == [("returned", None), ("stopped", "timeout")]
        assert "no such thing" in replies(session)[0]
        assert "exit code 3" in replies(session)[0]
        assert "so far" in replies(session)[1]
        assert "may be half done" in replies(session)[1]
        assert session.ledger.uncertain() == []


async def test_reply_size_counts_its_text_or_the_whole_it_was_cut_from(tmp_path: Path) -> None:
    """J12, docs/protocol.md, "Shapes": one rule for all tools: the bytes of the text, or of the whole from which it was
    cut.
    """
    results = [
        ToolOutcome("returned", "(no output)", bytes=0),
        ToolOutcome("returned", "a … é", bytes=90_000, is_truncated=True),
    ]

    async def body(_: CallContext) -> ToolOutcome:
        return results.pop(0)

    answers = [asks(call("look", n=number)) for number in range(2)]
    async with scripted_server(tmp_path, *answers, says("ok"), tools=[ScriptedTool("look", body)]) as harness:
        session = await harness.session()
        await harness.say(session)
        views = [harness.last_view(one.call_id).reply for one in calls_of(session)]
        assert [(view.bytes, view.truncated) for view in views if view] == [(11, False), (90_000, True)]


async def test_command_that_cannot_be_ended_is_unknown_and_holds_back(tmp_path: Path) -> None:
    """Rows C6, B1, B2: out of time and not certainly ended, it is unknown and holds back the later effects."""
    survives = Script(output=[b"so far"], finished=Finished(None, 15, True, (), False))
    answer = asks(run("serve", timeoutMs=5), write("a.txt", "a"), read("b.txt"))
    async with scripted_server(tmp_path, answer, says("ok"), processes=FakeProcesses(otherwise=survives)) as harness:
        (harness.root / "b.txt").write_text("B")
        harness.editor.somebody = False
        session = await harness.session("auto")
        await harness.say(session)
        assert states(session) == ["unknown", "refused", "returned"]
        assert "may still run" in replies(session)[0]
        assert session.view().uncertain == 1
        assert harness.content("a.txt") is None


async def test_reply_wording_differs_for_each_of_five_outcomes(tmp_path: Path) -> None:
    """Row C6, case 14: the text for the model distinguishes denied, not run, failed, stopped and unknown."""

    async def breaks(_: CallContext) -> ToolOutcome:
        raise RuntimeError("inside")

    started = anyio.Event()
    missing = Script(not_started=FileNotFoundError(errno.ENOENT, "No such file"))
    scripts = {"no": missing, "hang": Script(hangs=True, started=started)}
    editor = ScriptedEditor("reject", "once", "once", "once")
    answer = asks(write("denied.txt", "x"), run("no"), run("hang"), write("late.txt", "x"))
    tools = [ScriptedTool("deploy", breaks, "opaque")]
    async with scripted_server(
        tmp_path, answer, asks(call("deploy")), editor=editor, processes=FakeProcesses(scripts), tools=tools
    ) as harness:
        session = await harness.session()
        first = await harness.send(session, "one")
        await started.wait()
        await prompt_queue.cancel(session, first.turn_id)
        await harness.ended(session, first.turn_id)
        await harness.say(session, "two")
        assert states(session) == ["refused", "failed", "stopped", "notRun", "unknown"]
        wordings = [text.split(".")[0] for text in replies(session)]
        assert len(set(wordings)) == 5, wordings


async def test_error_inside_a_read_fails_only_that_call(tmp_path: Path) -> None:
    """Rows C6, C7: whatever a read raises, its call failed and the turn continues. It is never uncertain."""

    async def breaks(_: CallContext) -> ToolOutcome:
        raise ValueError("inside")

    broken = ScriptedTool("broken", breaks)
    async with scripted_server(tmp_path, asks(call("broken"), read("a.txt")), says("ok"), tools=[broken]) as harness:
        (harness.root / "a.txt").write_text("A")
        session = await harness.session()
        assert (await harness.say(session)).reason == "done"
        assert states(session) == ["failed", "returned"]
        assert session.ledger.uncertain() == []


@pytest.mark.parametrize("effect", ["reads", "opaque"])
async def test_disk_error_while_a_call_is_prepared_refuses_only_that_call(tmp_path: Path, effect: EffectClass) -> None:
    """An error before the start refuses that one call in a sentence. The turn continues and nothing ran."""

    async def body(_: CallContext) -> ToolOutcome:
        raise AssertionError("it must not run")

    tool = ScriptedTool("touchy", body, effect, fails=OSError(errno.EIO, "Input/output error"))
    async with scripted_server(tmp_path, asks(call("touchy"), read("a.txt")), says("ok"), tools=[tool]) as harness:
        (harness.root / "a.txt").write_text("A")
        session = await harness.session("auto")
        assert (await harness.say(session)).reason == "done"
        assert states(session) == ["refused", "returned"]
        assert "Input/output error" in replies(session)[0]
