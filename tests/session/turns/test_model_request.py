"""What a turn sends to the model, and what it makes of an answer that is not whole (rows T1-T7, P2, U1)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    Finish,
    ProviderError,
    ReplyMessage,
    TextPart,
)
from steadyhand.domain.model.transcript import validate
from steadyhand.domain.records.record import Assistant, Supplied
from steadyhand.domain.views.types import UsageChanged, Warned
from steadyhand.session.service import prompt_queue
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.editor import Park, ScriptedEditor
from tests.support.in_process_server import scripted_server
from tests.support.model import Play, asks, call, history, read, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import assert_closed, calls_of, kinds, on_disk, replies, states
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio


async def test_model_request_extends_the_one_before(tmp_path: Path) -> None:
    """Row T5: the next request starts with the last one, byte for byte. The system text and the tools stay (row P4)."""
    async with scripted_server(tmp_path, asks(read("a.txt")), says("one"), asks(read("b.txt")), says("two")) as harness:
        session = await harness.session()
        await harness.say(session, "first")
        await harness.say(session, "second")
        requests = harness.model.requests
        assert len(requests) == 4
        for earlier, later in itertools.pairwise(requests):
            assert later.messages[: len(earlier.messages)] == earlier.messages
            assert (later.system, later.tools) == (earlier.system, earlier.tools)
        assert [tool.name for tool in requests[0].tools] == sorted(tool.name for tool in requests[0].tools)


async def test_model_request_after_a_restart_repeats_the_history(tmp_path: Path) -> None:
    """Rows T5, J1: after a restart the history is sent byte for byte as before, plus the new text."""
    async with scripted_server(tmp_path, asks(read("a.txt"), write("b.txt", "b")), says("one")) as harness:
        session = await harness.session("edits")
        await harness.say(session, "first")
        before = harness.model.requests[-1].messages
    async with scripted_server(tmp_path, says("two"), run=2) as harness:
        await harness.say(await harness.opened(session.session_id), "second")
        after = harness.model.requests[0].messages
        assert after[: len(before)] == before
        assert history(after[len(before) :]) == ["assistant", "user"]


async def test_calls_with_repeated_provider_ids_are_told_apart_by_our_ids(tmp_path: Path) -> None:
    """Row T7: the same provider id in every turn, and twice in one. Our own ids decide."""
    twice = [
        CallProposed("read_file", '{"path": "a.txt"}', "call_0"),
        CallProposed("read_file", '{"path": "b"}', "call_0"),
    ]
    async with scripted_server(tmp_path, asks(*twice), says("one"), asks(twice[0]), says("two")) as harness:
        (harness.root / "a.txt").write_text("A")
        session = await harness.session()
        await harness.say(session, "first")
        await harness.say(session, "second")
        assert states(session) == ["returned", "failed", "returned"]
        validate(harness.model.requests[-1].messages)
        assert len(calls_of(session)) == 3
        assert_closed(session)


@pytest.mark.parametrize("name", ["re\0ad", "", "no such tool", "write file", "x" * 70])
async def test_call_with_an_invalid_tool_name_is_refused_and_sent_renamed(tmp_path: Path, name: str) -> None:
    """Case 16: the call is refused and sent under a name that providers accept. The record keeps the original name."""
    async with scripted_server(tmp_path, asks(CallProposed(name, "{}")), says("done")) as harness:
        session = await harness.session()
        assert (await harness.say(session)).reason == "done"
        requested = [m for m in harness.model.requests[1].messages if isinstance(m, AssistantMessage)]
        assert [each.tool for each in requested[0].calls] == ["invalid_tool_name"]
        assert [c.tool for r in on_disk(session) if isinstance(r, Assistant) for c in r.calls] == [name]
        assert states(session) == ["refused"]


async def test_empty_answers_are_left_out_and_empty_outputs_are_marked(tmp_path: Path) -> None:
    """Case 17: an empty stream that is cancelled leaves no message. An empty output is sent as "(no output)"."""

    async def nothing(_: CallContext) -> ToolOutcome:
        return ToolOutcome("returned", "")

    gate = Gate()
    quiet = ScriptedTool("quiet", nothing)
    async with scripted_server(
        tmp_path, [TextPart(""), gate], asks(call("quiet"), text=" "), says("done"), tools=[quiet]
    ) as harness:
        session = await harness.session()
        first = await harness.send(session, "one")
        await gate.wait_reached()
        assert await prompt_queue.cancel(session, first.turn_id)
        assert (await harness.ended(session, first.turn_id)).reason == "cancelled"
        await harness.say(session, "two")
        assert history(harness.model.requests[1].messages) == ["user", "user"]
        last = harness.model.requests[2].messages
        assert [m.text for m in last if isinstance(m, ReplyMessage)] == ["(no output)"]
        assert [m.text for m in last if isinstance(m, AssistantMessage)] == [""]


@pytest.mark.parametrize(("finish", "reason"), [(None, "cut"), ("length", "length")])
async def test_incomplete_answer_runs_none_of_its_calls(tmp_path: Path, finish: str | None, reason: str) -> None:
    """Row T6, cases 89, 92: the calls of a truncated answer get a reply and do not run."""
    cut = asks(write("a.txt", "x"), read("b.txt"), text="well", finish=finish)  # type: ignore[arg-type]  # from the table
    async with scripted_server(tmp_path, cut, says("done")) as harness:
        session = await harness.session("auto")
        assert (await harness.say(session)).reason == reason
        assert states(session) == ["notRun", "notRun"]
        assert all("did not run" in text and "cut" in text for text in replies(session))
        assert "intent" not in kinds(session)
        assert harness.content("a.txt") is None
        await harness.say(session, "again")
        assert history(harness.model.requests[1].messages) == ["user", "assistant", "notRun", "notRun", "user"]
        assert_closed(session)


@pytest.mark.parametrize(
    "arguments",
    ['{"path": "a.txt", "content": "x', '{"path": "a", "path": "b"}', "[]", "", '{"path": NaN}', '{"path": "\\ud800"}'],
)
async def test_call_with_invalid_arguments_is_refused_and_the_turn_continues(tmp_path: Path, arguments: str) -> None:
    """Rows T4, T6, N1, case 91: valid empty arguments are sent, and the original text stays stored."""
    async with scripted_server(tmp_path, asks(CallProposed("write_file", arguments)), says("I see")) as harness:
        session = await harness.session("auto")
        assert (await harness.say(session)).reason == "done"
        assert states(session) == ["refused"]
        assert calls_of(session)[0].arguments == arguments
        requested = [m for m in harness.model.requests[1].messages if isinstance(m, AssistantMessage)]
        assert requested[0].calls[0].arguments == "{}"
        assert list(harness.root.iterdir()) == []


async def test_filtered_answer_ends_the_turn_and_runs_no_call(tmp_path: Path) -> None:
    """Row T6: the reason of the end says that the provider filtered the answer, and its calls do not run."""
    answers = says("no", finish="filtered"), asks(write("a.txt", "x"), finish="filtered")
    async with scripted_server(tmp_path, *answers) as harness:
        session = await harness.session("auto")
        for _ in answers:
            assert (await harness.say(session)).reason == "filtered"
        assert states(session) == ["notRun"]
        assert "filtered" in replies(session)[0]
        assert harness.content("a.txt") is None


async def test_model_error_ends_the_turn_with_its_sentence_as_a_warning(tmp_path: Path) -> None:
    """`modelFailed` with the provider's one sentence as a warning. The session continues with the next prompt."""
    trouble = ProviderError("The key is not accepted. Set another one.")
    async with scripted_server(tmp_path, [TextPart("I "), trouble], says("done")) as harness:
        session = await harness.session()
        accepted = await harness.send(session, "one")
        assert (await harness.ended(session, accepted.turn_id)).reason == "modelFailed"
        assert Warned("modelFailed", str(trouble)) in harness.events(accepted.turn_id)
        assert (await harness.say(session, "two")).reason == "done"


async def test_unknown_finish_reason_warns_that_the_answer_may_be_incomplete(tmp_path: Path) -> None:
    """P2: the answer counts, and one warning says that it may not be whole."""
    async with scripted_server(tmp_path, says("so far", finish="unknown"), says("whole")) as harness:
        session = await harness.session()
        for warnings in (1, 0):
            accepted = await harness.send(session, "go on")
            assert (await harness.ended(session, accepted.turn_id)).reason == "done"
            warnings_sent = [event for event in harness.events(accepted.turn_id) if isinstance(event, Warned)]
            assert [event.code for event in warnings_sent] == ["unknownEnd"] * warnings


async def test_whole_calls_with_an_unfamiliar_end_run_and_half_ones_do_not(tmp_path: Path) -> None:
    """Case 113, T6: whole calls with an unfamiliar end run, without a warning and without a repeat. A call that is not
    whole is refused once, with its reason and a warning that has the provider's word; its neighbour runs."""
    whole: Play = [CallProposed("write_file", '{"path":"a.txt","content":"a"}'), Finish("unknown", "eos_7")]
    half: Play = [
        CallProposed("write_file", '{"path":"b.txt","content":"b"}'),
        CallProposed("write_file", '{"path":"c.txt","content":'),
        CallProposed("list_files", ""),
        Finish("unknown", "eos_7"),
    ]
    async with scripted_server(tmp_path, whole, says("done"), half, says("done")) as harness:
        session = await harness.session("auto")
        for number, warned in ((1, 0), (2, 1)):
            accepted = await harness.send(session, f"prompt {number}")
            assert (await harness.ended(session, accepted.turn_id)).reason == "done"
            warnings = [event for event in harness.events(accepted.turn_id) if isinstance(event, Warned)]
            assert [event.code for event in warnings] == ["unknownEnd"] * warned
        assert "“eos_7”" in warnings[0].text
        assert [harness.content(f"{name}.txt") for name in "abc"] == ["a", "b", None]
        assert states(session) == ["returned", "returned", "refused", "refused"]
        assert len(harness.model.requests) == 4


async def test_missing_replies_are_supplied_once_and_stay_the_same(tmp_path: Path) -> None:
    """Row T2, cases 2, 4: the replies that a crash left out are supplied once, by records, with a text that follows the
    verdict.
    """
    park = Park()
    editor = ScriptedEditor(park)
    async with scripted_server(tmp_path, asks(write("a.txt", "1"), write("b.txt", "2")), editor=editor) as harness:
        session = await harness.session()
        await harness.send(session, "one")
        await park.wait_open()
        state = harness.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, says("ok"), says("ok"), state=state, run=2) as harness:
        session = await harness.opened(session.session_id)
        assert states(session) == ["notRun", "notRun"]
        await harness.say(session, "two")
        await harness.say(session, "three")
        supplied = [r for r in on_disk(session) if isinstance(r, Supplied)]
        assert len(supplied) == 2
        assert all("did not run" in record.text for record in supplied)
        first, second = (request.messages for request in harness.model.requests)
        assert second[: len(first)] == first
        assert history(first) == ["user", "assistant", "notRun", "notRun", "user"]
    async with scripted_server(tmp_path, says("ok"), state=state, run=3) as harness:
        session = await harness.opened(session.session_id)
        await harness.say(session, "four")
        assert len([r for r in on_disk(session) if isinstance(r, Supplied)]) == 2
        assert harness.model.requests[0].messages[: len(second)] == second


async def test_usage_is_summed_over_requests_and_restarts(tmp_path: Path) -> None:
    """Row U1, case 158: billed is summed over requests, and context is that of the last one that told it. The view is
    incomplete where a request gave no usage.
    """
    async with scripted_server(tmp_path, says("one"), [TextPart("two"), Finish("stop")]) as harness:
        session = await harness.session()
        await harness.say(session, "one")
        await harness.say(session, "two")
        usages = [
            notification.event.usage
            for notification in harness.numbered()
            if isinstance(notification.event, UsageChanged)
        ]
        assert [(u.billed.input, u.billed.output, u.context, u.complete) for u in usages] == [
            (10, 5, 15, True),
            (10, 5, 15, False),
        ]
    async with scripted_server(tmp_path, says("three"), run=2) as harness:
        session = await harness.opened(session.session_id)
        await harness.say(session, "three")
        usage = [
            notification.event.usage
            for notification in harness.numbered()
            if isinstance(notification.event, UsageChanged)
        ][-1]
        assert (usage.billed.input, usage.billed.output, usage.complete) == (20, 10, False)
