"""Calls of one answer: reads side by side, effects one after another, all in order (row G3)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from steadyhand.domain.records.record import Result, Started
from steadyhand.domain.records.record import ToolResult as ToolReply
from steadyhand.session.service import prompt_queue
from steadyhand.session.turns import loop as turn_module
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, read, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import assert_closed, calls_of, on_disk, replies, states
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio


class Rendezvous:
    """A tool body that ends when so many calls run at once."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.there = 0
        self.most = 0
        self.all_there = anyio.Event()

    async def body(self, _: CallContext) -> ToolOutcome:
        self.there += 1
        self.most = max(self.most, self.there)
        if self.there == self.wanted:
            self.all_there.set()
        try:
            with anyio.move_on_after(0.2 if self.wanted > 99 else 5):
                await self.all_there.wait()
        finally:
            self.there -= 1
        return ToolOutcome("returned", "met")


async def test_reads_of_one_answer_run_side_by_side(tmp_path: Path) -> None:
    """Row G3: Two reads that wait for each other both end."""
    rendezvous = Rendezvous(2)
    tool = ScriptedTool("meet", rendezvous.body)
    async with scripted_server(tmp_path, asks(call("meet", n=1), call("meet", n=2)), says("ok"), tools=[tool]) as stage:
        session = await stage.session()
        with anyio.fail_after(60):
            assert (await stage.say(session)).reason == "done"
        assert states(session) == ["returned", "returned"]
        assert rendezvous.most == 2
        assert_closed(session)


async def test_effects_of_one_answer_run_one_after_another(tmp_path: Path) -> None:
    """Row G3: Never two at once, in the order in which the model proposed them."""
    running: list[str] = []
    most = 0

    async def body(running_call: CallContext) -> ToolOutcome:
        nonlocal most
        running.append(running_call.attempt_id)
        most = max(most, len(running))
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running.remove(running_call.attempt_id)
        return ToolOutcome("returned", "done")

    tool = ScriptedTool("act", body, "opaque")
    async with scripted_server(
        tmp_path, asks(*[call("act", n=n) for n in range(4)]), says("ok"), tools=[tool]
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert most == 1
        order = [r for r in on_disk(session) if isinstance(r, Started | Result)]
        assert [type(r) for r in order] == [Started, Result] * 4
        assert [r.call_id for r in order] == [each.call_id for each in calls_of(session) for _ in range(2)]


async def test_read_after_an_effect_sees_it(tmp_path: Path) -> None:
    """Row G3: The calls of a batch keep their order across the two kinds."""
    answer = asks(read("a.txt"), write("a.txt", "second"), read("a.txt"), write("a.txt", "third"), read("a.txt"))
    async with scripted_server(tmp_path, answer, says("ok")) as stage:
        (stage.root / "a.txt").write_text("first")
        session = await stage.session("auto")
        await stage.say(session)
        said = replies(session)
        assert "first" in said[0]
        assert "second" in said[2]
        assert "third" in said[4]
        assert states(session) == ["returned"] * 5


async def test_read_results_are_recorded_in_the_order_they_come(tmp_path: Path) -> None:
    """Row J14: The journal has the replies in the order they came, the history in the order of the calls."""
    gate = Gate()

    async def slow(_: CallContext) -> ToolOutcome:
        await gate.passed()
        return ToolOutcome("returned", "slow")

    answer = asks(call("slow"), read("a.txt"))
    async with scripted_server(tmp_path, answer, says("ok"), tools=[ScriptedTool("slow", slow)]) as stage:
        (stage.root / "a.txt").write_text("quick")
        session = await stage.session()
        accepted = await stage.send(session, "one")
        await gate.wait_reached()
        await until(lambda: any(isinstance(r, ToolReply) for r in on_disk(session)))
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        recorded = [r.text.strip().split("\n")[0] for r in on_disk(session) if isinstance(r, ToolReply)]
        assert recorded == ["quick", "slow"]
        sent = [m.text.strip().split("\n")[0] for m in stage.model.requests[1].messages if hasattr(m, "state")]
        assert sent == ["slow", "quick"]


async def test_reads_at_once_stay_within_their_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound on reads at once has a name and holds."""
    monkeypatch.setattr(turn_module, "READS_AT_ONCE_MAX", 2)
    rendezvous = Rendezvous(100)
    tool = ScriptedTool("meet", rendezvous.body)
    async with scripted_server(
        tmp_path, asks(*[call("meet", n=n) for n in range(4)]), says("ok"), tools=[tool]
    ) as stage:
        await stage.say(await stage.session())
        assert rendezvous.most == 2


async def test_stop_during_reads_gives_each_one_reply(tmp_path: Path) -> None:
    """Rows G8, C7: Each read gets its one reply, "cut off", and none is uncertain. The next answer may ask again."""
    gates = [Gate(), Gate()]
    left = iter(gates)

    async def slow(_: CallContext) -> ToolOutcome:
        await next(left).passed()
        return ToolOutcome("returned", "slow")

    answer = asks(call("slow", n=1), call("slow", n=2), write("a.txt", "a"))
    async with scripted_server(tmp_path, answer, says("ok"), tools=[ScriptedTool("slow", slow)]) as stage:
        session = await stage.session("auto")
        accepted = await stage.send(session, "one")
        for gate in gates:
            await gate.wait_reached()
        await prompt_queue.cancel(session, accepted.turn_id)
        await stage.ended(session, accepted.turn_id)
        assert states(session) == ["notRun", "notRun", "notRun"]
        assert ["cut off" in text for text in replies(session)] == [True, True, False]
        assert "did not run" in replies(session)[2]
        assert session.ledger.uncertain() == []
        assert stage.content("a.txt") is None
        assert_closed(session)


async def test_failing_read_leaves_the_others_running(tmp_path: Path) -> None:
    """Row G3, case 91: Its error is its reply. The other files are read."""
    async with scripted_server(tmp_path, asks(read("gone.txt"), read("a.txt"), read("..")), says("ok")) as stage:
        (stage.root / "a.txt").write_text("here")
        session = await stage.session()
        stage.editor.answers = ["reject"]
        assert (await stage.say(session)).reason == "done"
        assert states(session) == ["failed", "returned", "refused"]
