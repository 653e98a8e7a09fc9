"""Bounds of a turn: identical calls, requests, calls of one answer, time (row G7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.model.messages import CallProposed, Finish, ReplyMessage
from steadyhand.domain.views.types import Warned
from steadyhand.session.calls.execute import SAME_CALL_MAX
from steadyhand.session.turns import loop as turn_module
from tests.support.editor import ScriptedEditor
from tests.support.in_process_server import scripted_server
from tests.support.model import Play, asks, call, read, says, write
from tests.support.session_state import assert_closed, calls_of, replies, states
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio


async def test_eighth_identical_call_ends_the_turn(tmp_path: Path) -> None:
    """Row G7: Seven pass, the eighth is refused and the turn ends `bound`. The next turn counts from zero."""
    answers = [asks(read("a.txt")) for _ in range(20)]
    async with scripted_server(tmp_path, *answers) as stage:
        (stage.root / "a.txt").write_text("A")
        session = await stage.session()
        assert (await stage.say(session)).reason == "bound"
        assert len(stage.model.requests) == SAME_CALL_MAX == 8
        assert states(session) == ["returned"] * 7 + ["refused"]
        assert calls_of(session)[7].reply is not None
        assert "8 times" in replies(session)[7]
        assert_closed(session)
        stage.model.answers[1:] = [says("done")]
        assert (await stage.say(session)).reason == "done"


async def test_identical_calls_in_other_json_form_count(tmp_path: Path) -> None:
    """Rows G7, N1: The guard compares arguments in their canonical form, so blanks and the order of keys make no
    difference."""
    one, other = call("write_file", path="a", content="b"), call("write_file", content="b", path="a")
    answers = [asks(one if number % 2 else other) for number in range(20)]
    async with scripted_server(tmp_path, *answers, editor=ScriptedEditor(*["reject"] * 20)) as stage:
        session = await stage.session()
        assert (await stage.say(session)).reason == "bound"
        assert len(stage.editor.questions) == 7, "the eighth call asks no question"
        assert len(calls_of(session)) == 8


async def test_calls_with_other_arguments_are_no_loop(tmp_path: Path) -> None:
    """Row G7: Twenty different calls are no loop."""
    async with scripted_server(
        tmp_path, *[asks(write("a.txt", str(number))) for number in range(20)], says("ok")
    ) as stage:
        session = await stage.session("auto")
        assert (await stage.say(session)).reason == "done"
        assert stage.content("a.txt") == "19"


REFUSED_CALLS = {
    "an unknown tool": [CallProposed("no_such_tool", '{"x":1}')],
    "a name with a prefix": [CallProposed("functions.read_file", '{"path":"a.txt"}')],
    "an empty name": [CallProposed("", "{}")],
    "arguments that are no JSON": [CallProposed("read_file", '{"path": "a')],
    "no object": [CallProposed("read_file", "7")],
    "arguments that the tool refuses": [CallProposed("read_file", '{"pfad":"a.txt"}')],
}


@pytest.mark.parametrize("what", REFUSED_CALLS)
async def test_identical_call_that_is_refused_counts_too(tmp_path: Path, what: str) -> None:
    """Case 109, G7: the same call again is the same call, whatever refuses it: the eighth ends the turn `bound`."""
    play: Play = [*REFUSED_CALLS[what], Finish("calls")]
    async with scripted_server(tmp_path, *[play] * 20) as stage:
        session = await stage.session("auto")
        assert (await stage.say(session)).reason == "bound"
        assert len(stage.model.requests) == SAME_CALL_MAX
        assert states(session) == ["refused"] * SAME_CALL_MAX
        assert "8 times" in replies(session)[-1]
        assert_closed(session)


async def test_unknown_tool_is_answered_with_the_tools_there_are(tmp_path: Path) -> None:
    """Case 109: the refusal names every tool, the nearest first, and the next call can be right."""
    for name, nearest, words in (
        ("functions.read_file", "read_file", "There is no tool “functions.read_file” here."),
        ("WriteFile", "write_file", "There is no tool “WriteFile” here."),
        ("list_directory", "list_files", "There is no tool “list_directory” here."),
        ("", "", "The call names no tool."),
    ):
        play: Play = [CallProposed(name, "{}"), Finish("calls")]
        async with scripted_server(tmp_path / (nearest or "none"), play, says("ok")) as stage:
            session = await stage.session()
            assert (await stage.say(session)).reason == "done"
            (reply,) = replies(session)
            listed = reply.split("The tools are: ")[1].split(". ")[0].rstrip(".").split(", ")
            assert words in reply
            assert set(listed) == set(stage.registry.context.tools_of(stage.registry.context.settings.model))
            assert not nearest or listed[0] == nearest


async def test_rest_of_a_batch_after_a_loop_gets_replies(tmp_path: Path) -> None:
    """Rows G7, T1: Of ten identical reads in one answer seven run, one is refused, and the rest get their reply."""
    answer = asks(*[read("a.txt") for _ in range(10)], write("b.txt", "b"))
    async with scripted_server(tmp_path, answer, says("ok")) as stage:
        (stage.root / "a.txt").write_text("A")
        session = await stage.session("auto")
        assert (await stage.say(session)).reason == "bound"
        found = states(session)
        assert found.count("returned") == 7
        assert "refused" in found
        assert found[-1] == "notRun"
        assert stage.content("b.txt") is None
        assert_closed(session)
        assert (await stage.say(session)).reason == "done"


async def test_turn_above_its_request_bound_ends_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row G7: A turn that never stops asking ends `bound`, and says which bound it was."""
    monkeypatch.setattr(turn_module, "REQUESTS_PER_TURN_MAX", 3)
    async with scripted_server(tmp_path, *[asks(write("a.txt", str(number))) for number in range(5)]) as stage:
        session = await stage.session("auto")
        accepted = await stage.send(session, "one")
        assert (await stage.ended(session, accepted.turn_id)).reason == "bound"
        assert len(stage.model.requests) == 3
        warnings = [event for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
        assert [event.code for event in warnings] == ["bound"]
        assert "3 requests" in warnings[0].text


async def test_turn_above_its_time_bound_ends_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row G7: A turn that is out of time ends `bound`, and says which bound it was."""
    monkeypatch.setattr(turn_module, "TURN_S_MAX", 0.05)
    async with scripted_server(tmp_path, [Gate()]) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "one")
        assert (await stage.ended(session, accepted.turn_id)).reason == "bound"
        assert not session.view().busy
        (warnings,) = [event for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
        assert "0.05 seconds" in warnings.text


async def test_calls_above_the_answer_bound_get_replies_and_do_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows G7, T3: Calls above the bound of one answer get a reply and do not run. None is dropped."""
    monkeypatch.setattr(turn_module, "CALLS_PER_ANSWER_MAX", 3)
    async with scripted_server(tmp_path, asks(*[read(f"{n}.txt") for n in range(5)]), says("ok")) as stage:
        session = await stage.session()
        assert (await stage.say(session)).reason == "done"
        assert states(session) == ["failed"] * 3 + ["notRun"] * 2
        assert len([m for m in stage.model.requests[1].messages if isinstance(m, ReplyMessage)]) == 5
        assert_closed(session)
