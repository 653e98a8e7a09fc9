"""How a retry that ended is reported, and what refuses one before its tool is asked (rows F2, T2, V2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.record import Evidence, Notice, Started
from steadyhand.ports.editor import OpenDocument
from steadyhand.session.calls.redo import _find_refusal
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.editor import Park, ScriptedEditor
from tests.support.faults import CountingDisk
from tests.support.killed_runs import retrying_server
from tests.support.redo import assert_refused, cancel_asked_retry, inspect_attempt, kinds, on_disk, open_attempt, redo
from tests.support.scripted_tool import ScriptedPlan
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


def last_notice(place: Workspace) -> Notice:
    record = on_disk(place, Notice)[-1].record
    assert isinstance(record, Notice)
    return record


async def test_retry_that_ended_is_reported_by_one_durable_notice(absent: Workspace) -> None:
    """F2, T2, J4: no answer of the model proposed it, so the notice is its report; it belongs to the old turn."""
    disk = CountingDisk(system_disk())
    async with retrying_server(absent, disk=disk) as harness:
        session, attempt = await open_attempt(harness)
        new = await redo(session, attempt, "retry")
        settled, told = (stamped.record for stamped in on_disk(absent, Notice)[-2:])
        assert isinstance(settled, Notice)
        assert isinstance(told, Notice)
        assert (settled.attempt_id, settled.turn_id) == (attempt.attempt_id, attempt.turn_id)
        assert "a new attempt replaces it" in settled.text
        assert attempt.settlement is not None
        assert (attempt.settlement.check, attempt.settlement.superseded_by) == ("unchanged", new.attempt_id)
        assert attempt.inspection is not None
        assert attempt.settlement.inspection_id == attempt.inspection.inspection_id
        assert (told.attempt_id, told.turn_id) == (new.attempt_id, attempt.turn_id)
        assert told.text.startswith(f"The user retried “{attempt.title}”. The new attempt: returned.")
        assert kinds(absent)[-1] == "notice"
        written = [number for number, line in enumerate(disk.log) if line.endswith('"notice"')][-1]
        assert any(line.startswith("sync ") and "journal" in line for line in disk.log[written:])


async def test_retry_cancelled_before_its_start_is_reported_as_cancelled(absent: Workspace) -> None:
    """F2, G8: its end says why it did not run, and the notice names the new attempt."""
    park = Park()
    async with retrying_server(absent, editor=ScriptedEditor(park)) as harness:
        new = await cancel_asked_retry(harness, park)
        assert new.result is not None
        assert (new.result.outcome, new.result.reason) == ("not_started", "cancelled")
        assert last_notice(absent).attempt_id == new.attempt_id
        assert any("It still replaces the earlier attempt." in text for text in harness.editor.messages)


async def test_retry_whose_arguments_cannot_be_prepared_says_why(absent: Workspace) -> None:
    """F2: the reason is the tool's own sentence, as a clause."""
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        path = absent.root / "a.txt"
        path.unlink()
        path.symlink_to("a.txt")
        seen = await inspect_attempt(session, attempt)
        refused = await assert_refused(absent, session, attempt, "retry", seen.inspection_id)
        why = str(refused.more["why"])
        assert refused.kind == "retryUnsafe"
        assert why == why.rstrip(".")
        assert why[0].isupper()
        assert refused.message == f"It cannot be retried: {why}."


async def test_retry_is_refused_for_unsaved_text_at_a_path_of_the_old_effect(absent: Workspace) -> None:
    """V2, F2: whatever its tool says: the paths of the evidence are compared before the tool is asked."""

    async def body(_: CallContext) -> ToolOutcome:
        raise AssertionError("it must not run")

    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        planned = ScriptedPlan("deploy", "opaque", body, ())
        assert await _find_refusal(session, attempt, planned) is None
        path = absent.root / "a.txt"
        harness.editor.documents[str(path)] = OpenDocument("mine\n", 2, True)
        why = await _find_refusal(session, attempt, planned)
        assert why == "a.txt has unsaved changes in the editor; save it first"
        other = Evidence(path="b.txt", resolved=str(Path(absent.root) / "b.txt"), existed=False)
        attempt.started = Started(attempt_id=attempt.attempt_id, call_id=attempt.call_id, evidence=(other,))
        assert await _find_refusal(session, attempt, planned) is None
        attempt.started = None
        assert await _find_refusal(session, attempt, planned) is None
