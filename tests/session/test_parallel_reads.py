"""Calls of one answer: reads side by side, effects one after another, all in order (row G3)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from steadyhand.core.record import Result, Started
from steadyhand.core.record import Tool as Replied
from steadyhand.session import prompts
from steadyhand.session import turn as turns
from steadyhand.tools.tool import Done, Running
from tests.support.scripted import (
    Gate,
    ScriptedTool,
    asks,
    assert_closed,
    call,
    calls_of,
    on_disk,
    read,
    replies,
    says,
    staged,
    states,
    until,
    write,
)

pytestmark = pytest.mark.anyio


class Meeting:
    """A body that ends when so many have come."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.there = 0
        self.most = 0
        self.all_there = anyio.Event()

    async def body(self, _: Running) -> Done:
        self.there += 1
        self.most = max(self.most, self.there)
        if self.there == self.wanted:
            self.all_there.set()
        try:
            with anyio.move_on_after(0.2 if self.wanted > 99 else 5):
                await self.all_there.wait()
        finally:
            self.there -= 1
        return Done("returned", "met")


async def test_reads_run_side_by_side(tmp_path: Path) -> None:
    """Row G3: two reads that wait for each other both end."""
    meeting = Meeting(2)
    tool = ScriptedTool("meet", meeting.body)
    async with staged(tmp_path, asks(call("meet", n=1), call("meet", n=2)), says("ok"), tools=[tool]) as stage:
        owner = await stage.session()
        with anyio.fail_after(3):
            assert (await stage.say(owner)).reason == "done"
        assert states(owner) == ["returned", "returned"]
        assert meeting.most == 2
        assert_closed(owner)


async def test_effects_run_one_after_another(tmp_path: Path) -> None:
    """Row G3: never two at once, in the order they were proposed."""
    running: list[str] = []
    most = 0

    async def body(given: Running) -> Done:
        nonlocal most
        running.append(given.attempt_id)
        most = max(most, len(running))
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running.remove(given.attempt_id)
        return Done("returned", "done")

    tool = ScriptedTool("act", body, "opaque")
    async with staged(tmp_path, asks(*[call("act", n=n) for n in range(4)]), says("ok"), tools=[tool]) as stage:
        owner = await stage.session("auto")
        await stage.say(owner)
        assert most == 1
        order = [r for r in on_disk(owner) if isinstance(r, Started | Result)]
        assert [type(r) for r in order] == [Started, Result] * 4
        assert [r.call_id for r in order] == [each.call_id for each in calls_of(owner) for _ in range(2)]


async def test_a_read_behind_an_effect_sees_it(tmp_path: Path) -> None:
    """Row G3: calls of a batch keep their order across the two kinds."""
    answer = asks(read("a.txt"), write("a.txt", "second"), read("a.txt"), write("a.txt", "third"), read("a.txt"))
    async with staged(tmp_path, answer, says("ok")) as stage:
        (stage.root / "a.txt").write_text("first")
        owner = await stage.session("auto")
        await stage.say(owner)
        said = replies(owner)
        assert "first" in said[0]
        assert "second" in said[2]
        assert "third" in said[4]
        assert states(owner) == ["returned"] * 5


async def test_results_of_reads_stand_as_they_settle(tmp_path: Path) -> None:
    """Row J14: the journal has the replies in the order they came, the history in the order of the calls."""
    gate = Gate()

    async def slow(_: Running) -> Done:
        await gate.passed()
        return Done("returned", "slow")

    answer = asks(call("slow"), read("a.txt"))
    async with staged(tmp_path, answer, says("ok"), tools=[ScriptedTool("slow", slow)]) as stage:
        (stage.root / "a.txt").write_text("quick")
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await gate.wait_reached()
        await until(lambda: any(isinstance(r, Replied) for r in on_disk(owner)))
        gate.go.set()
        await stage.ended(owner, accepted.turn_id)
        recorded = [r.text.strip().split("\n")[0] for r in on_disk(owner) if isinstance(r, Replied)]
        assert recorded == ["quick", "slow"]
        sent = [m.text.strip().split("\n")[0] for m in stage.model.requests[1].messages if hasattr(m, "state")]
        assert sent == ["slow", "quick"]


async def test_so_many_reads_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound on reads at once has a name and is kept."""
    monkeypatch.setattr(turns, "reads_at_once_max", 2)
    meeting = Meeting(100)
    tool = ScriptedTool("meet", meeting.body)
    async with staged(tmp_path, asks(*[call("meet", n=n) for n in range(4)]), says("ok"), tools=[tool]) as stage:
        await stage.say(await stage.session())
        assert meeting.most == 2


async def test_stopping_reads_that_run_side_by_side(tmp_path: Path) -> None:
    """Rows G8, C7: each gets its one reply, "cut off", and none is uncertain; the next answer may ask again."""
    gates = [Gate(), Gate()]
    left = iter(gates)

    async def slow(_: Running) -> Done:
        await next(left).passed()
        return Done("returned", "slow")

    answer = asks(call("slow", n=1), call("slow", n=2), write("a.txt", "a"))
    async with staged(tmp_path, answer, says("ok"), tools=[ScriptedTool("slow", slow)]) as stage:
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "one")
        for gate in gates:
            await gate.wait_reached()
        await prompts.cancel(owner, accepted.turn_id)
        await stage.ended(owner, accepted.turn_id)
        assert states(owner) == ["notRun", "notRun", "notRun"]
        assert ["cut off" in text for text in replies(owner)] == [True, True, False]
        assert "did not run" in replies(owner)[2]
        assert owner.ledger.uncertain() == []
        assert stage.content("a.txt") is None
        assert_closed(owner)


async def test_one_read_that_fails_leaves_the_others(tmp_path: Path) -> None:
    """Row G3, case 91: its error is its reply; its neighbours are read."""
    async with staged(tmp_path, asks(read("gone.txt"), read("a.txt"), read("..")), says("ok")) as stage:
        (stage.root / "a.txt").write_text("here")
        owner = await stage.session()
        stage.editor.answers = ["reject"]
        assert (await stage.say(owner)).reason == "done"
        assert states(owner) == ["failed", "returned", "refused"]
