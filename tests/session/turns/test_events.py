"""The events and records of one turn, from its first event to its last (rows D3, G6, J2, J3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.records.record import Assistant, Ended
from steadyhand.domain.records.record import ToolResult as Replied
from steadyhand.domain.views.types import Began, CallChanged, ChangedFile, TextDelta, TurnEnded, UsageChanged
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, read, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import kinds, on_disk, states
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio


async def test_turn_events_are_numbered_from_began_to_ended(tmp_path: Path) -> None:
    """Row D3: began comes first, ended last, numbered without gaps. A call is sent whole in each of its
    states (row G6).
    """
    async with scripted_server(
        tmp_path, asks(write("a.txt", "one"), text="I write."), says("It is ", "there.")
    ) as harness:
        session = await harness.session("edits")
        ended = await harness.say(session, "write it", "c1")
        notifications = harness.numbered()
        events = [notification.event for notification in notifications]
        assert [notification.number for notification in notifications] == list(range(1, len(notifications) + 1))
        assert {(notification.session_id, notification.epoch) for notification in notifications} == {
            (session.session_id, session.epoch)
        }
        assert events[0] == Began("c1")
        assert events[-1] == ended == TurnEnded("done", (ChangedFile("a.txt", "created"),))
        calls = [event.call for event in events if isinstance(event, CallChanged)]
        assert [view.state for view in calls] == ["proposed", "waiting", "running", "returned"]
        assert len({view.call_id for view in calls}) == 1
        assert calls[-1].files is not None
        assert calls[-1].files[0].path == "a.txt"
        assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == "I write.It is there."
        assert sum(isinstance(event, UsageChanged) for event in events) == 2


async def test_turn_records_follow_the_promised_order(tmp_path: Path) -> None:
    """Rows J2, J3: message, intent, permission, started, result, reply. A read has no started and no result record."""
    async with scripted_server(tmp_path, asks(read("a.txt"), write("b.txt", "b")), says("done")) as harness:
        (harness.root / "a.txt").write_text("a")
        session = await harness.session()
        await harness.say(session)
        turn = [kind for kind in kinds(session) if kind not in ("session", "epoch", "mode", "title")]
        assert turn == [
            "user", "assistant", "usage", "intent", "tool", "intent", "permission", "started", "result", "tool",
            "assistant", "usage", "ended",
        ]  # fmt: skip
        assert session.ledger.refused == []


async def test_turn_stores_the_first_result_while_the_second_call_runs(tmp_path: Path) -> None:
    """Case 26: the message and the first result are on disk while the second call still runs."""
    gate = Gate()

    async def slow(_: CallContext) -> ToolOutcome:
        await gate.passed()
        return ToolOutcome("returned", "slow")

    answer = asks(write("a.txt", "one"), call("slow"))
    async with scripted_server(tmp_path, answer, tools=[ScriptedTool("slow", slow, "opaque")]) as harness:
        session = await harness.session("auto")
        accepted = await harness.send(session, "both")
        await gate.wait_reached()
        records = on_disk(session)
        assert [len(r.calls) for r in records if isinstance(r, Assistant)] == [2]
        assert [r.outcome for r in records if isinstance(r, Replied)] == ["returned"]
        async with scripted_server(tmp_path, state=harness.crashed(tmp_path / "later"), run=2) as later:
            again = await later.opened(session.session_id)
            assert states(again) == ["returned", "unknown"]
            assert [r for r in on_disk(again) if isinstance(r, Ended)] == []
        gate.go.set()
        assert (await harness.ended(session, accepted.turn_id)).reason == "done"


async def test_turn_end_lists_the_changed_files_of_the_journal(tmp_path: Path) -> None:
    """Row G6, case 35: the list at the end names the files that were written, and not those that the answer claims."""
    async with scripted_server(tmp_path, asks(write("a.py", "x = 1\n")), says("wrote b.json")) as harness:
        session = await harness.session("edits")
        assert (await harness.say(session)).changed == (ChangedFile("a.py", "created"),)
