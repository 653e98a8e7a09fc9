"""Bounds of a turn: the same call again and again, requests, calls of one answer, time (row G7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.core.model import ReplyMessage
from steadyhand.core.views import Warned
from steadyhand.session import turn as turns
from steadyhand.session.call import same_call_max
from tests.support.scripted import (
    Gate,
    ScriptedEditor,
    asks,
    assert_closed,
    call,
    calls_of,
    read,
    replies,
    says,
    staged,
    states,
    write,
)

pytestmark = pytest.mark.anyio


async def test_the_eighth_same_call_ends_the_turn(tmp_path: Path) -> None:
    """Row G7: seven pass, the eighth is refused and the turn ends `bound`; the next turn counts anew."""
    answers = [asks(read("a.txt")) for _ in range(20)]
    async with staged(tmp_path, *answers) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session()
        assert (await stage.say(owner)).reason == "bound"
        assert len(stage.model.requests) == same_call_max == 8
        assert states(owner) == ["returned"] * 7 + ["refused"]
        assert calls_of(owner)[7].reply is not None
        assert "8 times" in replies(owner)[7]
        assert_closed(owner)
        stage.model.answers[1:] = [says("done")]
        assert (await stage.say(owner)).reason == "done"


async def test_the_same_in_other_words(tmp_path: Path) -> None:
    """Rows G7, N1: arguments are compared in their canonical form, so blanks and order of keys do not help."""
    one, other = call("write_file", path="a", content="b"), call("write_file", content="b", path="a")
    answers = [asks(one if number % 2 else other) for number in range(20)]
    async with staged(tmp_path, *answers, editor=ScriptedEditor(*["reject"] * 20)) as stage:
        owner = await stage.session()
        assert (await stage.say(owner)).reason == "bound"
        assert len(stage.editor.questions) == 7, "the eighth is not even asked about"
        assert len(calls_of(owner)) == 8


async def test_other_arguments_are_another_call(tmp_path: Path) -> None:
    """Row G7: twenty different calls are no loop."""
    async with staged(tmp_path, *[asks(write("a.txt", str(number))) for number in range(20)], says("ok")) as stage:
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == "done"
        assert stage.content("a.txt") == "19"


async def test_the_rest_of_a_batch_is_closed(tmp_path: Path) -> None:
    """Rows G7, T1: ten same reads in one answer: seven run, one is refused, the rest get their reply."""
    answer = asks(*[read("a.txt") for _ in range(10)], write("b.txt", "b"))
    async with staged(tmp_path, answer, says("ok")) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == "bound"
        found = states(owner)
        assert found.count("returned") == 7
        assert "refused" in found
        assert found[-1] == "notRun"
        assert stage.content("b.txt") is None
        assert_closed(owner)
        assert (await stage.say(owner)).reason == "done"


async def test_a_turn_has_so_many_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row G7: a turn that never stops asking ends `bound`, and says which bound it was."""
    monkeypatch.setattr(turns, "requests_per_turn_max", 3)
    async with staged(tmp_path, *[asks(write("a.txt", str(number))) for number in range(5)]) as stage:
        owner = await stage.session("auto")
        accepted = await stage.send(owner, "one")
        assert (await stage.ended(owner, accepted.turn_id)).reason == "bound"
        assert len(stage.model.requests) == 3
        warned = [event for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
        assert [event.code for event in warned] == ["bound"]
        assert "3 requests" in warned[0].text


async def test_a_turn_has_so_much_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row G7: out of time, the turn ends `bound` and its open calls get their reply."""
    monkeypatch.setattr(turns, "turn_s_max", 0.05)
    async with staged(tmp_path, [Gate()]) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        assert (await stage.ended(owner, accepted.turn_id)).reason == "bound"
        assert not owner.view().busy
        (warned,) = [event for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
        assert "0.05 seconds" in warned.text


async def test_an_answer_has_so_many_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows G7, T3: a bound on one answer: calls above it get a reply and do not run; none is dropped."""
    monkeypatch.setattr(turns, "calls_per_answer_max", 3)
    async with staged(tmp_path, asks(*[read(f"{n}.txt") for n in range(5)]), says("ok")) as stage:
        owner = await stage.session()
        assert (await stage.say(owner)).reason == "done"
        assert states(owner) == ["failed"] * 3 + ["notRun"] * 2
        assert len([m for m in stage.model.requests[1].messages if isinstance(m, ReplyMessage)]) == 5
        assert_closed(owner)
