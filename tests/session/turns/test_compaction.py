"""Compaction: manual and automatic, with the practice model and with providers (rows K1, K2, K4)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model.first_message import BY_MODEL
from steadyhand.domain.model.messages import (
    ModelRequest,
    OutMessage,
    ProviderError,
    ReplyMessage,
    TextPart,
    UserMessage,
)
from steadyhand.domain.model.transcript import OMITTED_REPLY, Invalid
from steadyhand.domain.records.record import Compaction, ModelName, Usage
from steadyhand.domain.settings import CompactionSettings, Price, Settings
from steadyhand.domain.views.sentences import unknown_reply
from steadyhand.domain.views.types import Compacted, CompactResult, TextDelta, Warned
from steadyhand.ports.model import Model
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from steadyhand.session.turns import compaction
from steadyhand.session.turns.room import STILL_TOO_LONG
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import InProcessServer, practice_server, scripted_server
from tests.support.model import Play, ScriptedModel, asks, read, run, says, write
from tests.support.session_state import on_disk
from tests.support.waiting import Gate
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio

WINDOW = 8_000
FULL = Settings(mode="auto", window=WINDOW)
TOO_LONG = ProviderError("The conversation is too long for the model.", kind="window")
BIG = "word " * 4_000
"""A text of about 6,700 tokens by the estimate."""


async def compact(session: Session, focus: str | None = None) -> CompactResult:
    assert session.epoch is not None
    return await prompt_queue.compact(session, session.epoch, focus)


def sent(session: Session) -> tuple[OutMessage, ...]:
    return session.transcript.outgoing_messages(session.ledger)


def texts(messages: Sequence[OutMessage]) -> list[str]:
    return [message.text for message in messages]


def compactions(session: Session) -> list[Compaction]:
    return [record for record in on_disk(session) if isinstance(record, Compaction)]


def summaries(stage: InProcessServer) -> list[ModelRequest]:
    return [request for request in stage.model.requests if request.purpose == "summary"]


def warnings(stage: InProcessServer) -> list[str]:
    return [told.event.text for told in stage.numbered() if isinstance(told.event, Warned)]


def compacted(stage: InProcessServer) -> list[Compacted]:
    return [told.event for told in stage.numbered() if isinstance(told.event, Compacted)]


async def two_turns(stage: InProcessServer) -> Session:
    session = await stage.session("auto")
    for text in ("first", "second"):
        await stage.say(session, text)
    return session


TURNS = (says("1"), says("2"))


# On request.


async def test_practice_model_summarises_by_counting(tmp_path: Path) -> None:
    """K4, P5: N is the number of messages of the request without the last; the chat shows and keeps everything."""
    async with practice_server(Workspace.under(tmp_path)) as stage:
        session = await stage.session()
        await stage.say(session, "write a.txt with hello")
        count = len(sent(session))
        done = await compact(session)
        assert done.compacted
        assert done.before is not None
        assert done.after is not None
        assert (done.before.messages, done.after.messages) == (count, 1)
        (first,) = sent(session)
        assert f"Summary by the model:\nSummary: {count} messages.\n" in first.text
        assert "write a.txt with hello" in first.text
        assert "- a.txt: created, 5 bytes" in first.text
        (event,) = compacted(stage)
        assert (event.text, event.automatic, event.before, event.after) == (first.text, False, done.before, done.after)
        shown = session.messages(99)[0]
        assert [one.text for one in shown if one.role == "user"] == ["write a.txt with hello", "/compact"]
        (note,) = [one for one in shown if one.compaction is not None]
        assert (note.role, note.text, note.message_id) == ("notice", first.text, event.message_id)
        assert await compact(session) == CompactResult(False, "short")


async def test_command_compacts_in_its_turn_with_a_focus(tmp_path: Path) -> None:
    """K4: `/compact FOCUS` queues like a prompt; the focus goes to the model, and the chat gets one sentence."""
    async with scripted_server(tmp_path, *TURNS, says("They talked.")) as stage:
        session = await two_turns(stage)
        accepted = await stage.send(session, "/compact the  second")
        assert (await stage.ended(session, accepted.turn_id)).reason == "done"
        (request,) = summaries(stage)
        assert texts(request.messages[:-1]) == ["first", "1", "second", "2"]
        assert request.messages[-1].text.endswith(" The user wants it to keep in particular: the  second")
        assert (request.can_call, request.tools) == (False, stage.model.requests[0].tools)
        assert request.system == stage.model.requests[0].system
        deltas = [one.delta for one in stage.events(accepted.turn_id) if isinstance(one, TextDelta)]
        assert deltas == ["Compacted: the model gets 1 message in place of 4. The chat keeps everything."]
        await stage.say(session, "third")
        assert texts(stage.model.requests[-1].messages)[1:] == ["third"]


async def test_prefix_is_stable_again_after_a_compaction(tmp_path: Path) -> None:
    """P4, T5, K4: each later request begins with the one before it, also after a restart; AGENTS.md stays."""
    async with scripted_server(tmp_path, *TURNS, says("sum"), says("3"), says("4")) as stage:
        stage.workspace.write("AGENTS.md", "Be brief.\n")
        session = await two_turns(stage)
        await compact(session)
        for text in ("third", "fourth"):
            await stage.say(session, text)
        before, after = stage.model.requests[-2:]
        assert after.messages[: len(before.messages)] == before.messages
        assert {request.system for request in stage.model.requests} == {after.system}
        assert "Be brief." in after.system
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, says("5"), state=state, run=2) as stage:
        session = await stage.opened(session.session_id)
        await stage.say(session, "fifth")
        again = stage.model.requests[-1]
        assert again.messages[: len(after.messages)] == after.messages
        assert again.system == after.system


async def test_compact_is_refused_in_the_order_of_the_protocol(tmp_path: Path) -> None:
    """K4: params, then notOwner, journalBroken, turnRunning, staleEpoch; a running turn may be parked."""
    gate = Gate()
    async with scripted_server(tmp_path, *TURNS, [gate, *says("3")]) as stage:
        session = await two_turns(stage)
        epoch = session.epoch
        assert epoch is not None

        async def refusal(epoch: str, focus: str | None = None) -> str:
            with pytest.raises(Refused) as refused:
                await prompt_queue.compact(session, epoch, focus)
            return refused.value.kind

        assert await refusal("wrong", "x" * 2_001) == "invalidParams"
        assert await refusal("wrong") == "staleEpoch"
        accepted = await stage.send(session, "third")
        await gate.wait_reached()
        assert await refusal("wrong") == "turnRunning"
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        with session.resolution():
            assert await refusal("wrong") == "turnRunning"
        assert await refusal("wrong", "y" * 2_001) == "invalidParams"
        assert compactions(session) == []


async def test_what_arrives_meanwhile_waits_and_stands_behind_it(tmp_path: Path) -> None:
    """K4, S4, cases 85, 88: a prompt and a notice come while the model summarises; both follow the summary."""
    gate = Gate()
    async with scripted_server(tmp_path, *TURNS, [gate, *says("sum")], says("3")) as stage:
        session = await two_turns(stage)
        results: list[CompactResult] = []

        async def run() -> None:
            results.append(await compact(session))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await gate.wait_reached()
            accepted = await stage.send(session, "third")
            assert accepted.queued
            gate.go.set()
        assert results[0].compacted
        assert (await stage.ended(session, accepted.turn_id)).reason == "done"
        assert texts(stage.model.requests[-1].messages)[1:] == ["third"]
        assert len(compactions(session)) == 1


@pytest.mark.parametrize("by", ["turn/cancel", "$/cancelRequest"])
async def test_stopped_compaction_changes_nothing(tmp_path: Path, by: str) -> None:
    """K4: nothing is committed; what was billed is counted, and the next prompt goes out as if nothing had been."""
    gate = Gate()
    async with scripted_server(tmp_path, *TURNS, [TextPart("half"), gate, *says("sum")], says("3")) as stage:
        session = await two_turns(stage)
        results: list[CompactResult] = []

        async def run() -> None:
            results.append(await compact(session))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await gate.wait_reached()
            if by == "turn/cancel":
                assert session.turn is not None
                assert await prompt_queue.cancel(session, session.turn.turn_id)
            else:
                tasks.cancel_scope.cancel()
        assert results == ([CompactResult(False, "cancelled")] if by == "turn/cancel" else [])
        assert [turn.ended.reason for turn in session.ledger.turns.values() if turn.ended][-1] == "cancelled"
        assert compactions(session) == []
        assert session.ledger.usage_sums.auxiliary[0] == 1
        await stage.say(session, "third")
        assert texts(stage.model.requests[-1].messages) == ["first", "1", "second", "2", "third"]


REFUSALS: dict[str, Play] = {
    "nothing": says(""),
    "blank": says(" \n"),
    "cut": says("half", finish=None),
    "filtered": says("half", finish="filtered"),
    "error": [ProviderError("No.", kind="rejected")],
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_model_that_gives_no_summary_leaves_the_conversation(tmp_path: Path, name: str) -> None:
    """K4: empty, broken off or refused: `refused`, and the chat says why."""
    async with scripted_server(tmp_path, *TURNS, REFUSALS[name], says("3")) as stage:
        session = await two_turns(stage)
        assert await compact(session) == CompactResult(False, "refused")
        said = session.messages(1)[0][0].text
        assert said.startswith("Not compacted. The model gave no summary.")
        assert said.endswith("or choose another model in the setting steadyhand.compaction.model.")
        assert compactions(session) == []
        await stage.say(session, "third")
        assert texts(stage.model.requests[-1].messages) == ["first", "1", "second", "2", "third"]


async def test_call_in_the_answer_is_not_run(tmp_path: Path) -> None:
    """K4: its text is the summary; the file is not written and no call is recorded."""
    answer = asks(write("a.txt", "x"), text="They talked.")
    async with scripted_server(tmp_path, *TURNS, answer) as stage:
        session = await two_turns(stage)
        assert (await compact(session)).compacted
        assert stage.workspace.files() == {}
        assert session.ledger.calls == {}


async def test_changed_base_throws_the_summary_away_and_is_tried_once_more(tmp_path: Path) -> None:
    """K1, K4, S1, case 88: an epoch that began meanwhile is another base. Each summary is counted."""
    async with scripted_server(tmp_path, *TURNS) as stage:
        session = await two_turns(stage)

        def other_epoch() -> None:
            session.use_folders(session.tool_context, stage.registry.context.ids.new())

        for changes, expected in (((True, False), None), ((True, True), "changed")):
            gates = [Gate(), Gate()]
            stage.model.answers = [[gate, *says(f"sum {at}")] for at, gate in enumerate(gates)]
            results: list[CompactResult] = []

            async def run(results: list[CompactResult] = results) -> None:
                results.append(await compact(session))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                for gate, is_changed in zip(gates, changes, strict=True):
                    await gate.wait_reached()
                    if is_changed:
                        other_epoch()
                    gate.go.set()
            assert results[0].why == expected
            await stage.say(session, "more")
            await stage.say(session, "even more")
        assert len(compactions(session)) == 1
        assert "sum 1" in compactions(session)[0].text
        assert session.ledger.usage_sums.auxiliary[0] == 4
        assert len([text for text in warnings(stage) if "thrown away" in text]) == 3


async def test_compaction_at_the_cap_asks_nothing(tmp_path: Path) -> None:
    """K4, U2, G7: `cost`, before the model is asked. Below it the summary is part of the cost and counted apart."""
    price = Price(Decimal(1), Decimal(1))
    settings = Settings(prices={"practice/*": price}, cost_cap=Decimal("0.00005"))
    async with scripted_server(tmp_path, *TURNS, says("sum"), *TURNS, settings=settings) as stage:
        session = await two_turns(stage)
        assert (await compact(session)).compacted
        assert session.ledger.usage_sums.auxiliary == (1, 10, 5)
        assert session.ledger.usage_sums.in_currency("USD") == (Decimal("0.000045"), 0)
        await stage.say(session, "third")
        count = len(stage.model.requests)
        await stage.say(session, "fourth")
        assert await compact(session) == CompactResult(False, "cost")
        assert len(stage.model.requests) == count
        assert [turn.ended.reason for turn in session.ledger.turns.values() if turn.ended][-1] == "cost"


async def test_failed_prompt_stays_behind_the_cut_and_can_be_sent_again(tmp_path: Path) -> None:
    """K4, case 114: the request that failed goes out again with its prompt."""
    async with scripted_server(
        tmp_path, *TURNS, [ProviderError("No.", kind="rejected")], says("sum"), says("3")
    ) as stage:
        session = await two_turns(stage)
        failed = await stage.send(session, "third")
        await stage.ended(session, failed.turn_id)
        assert (await compact(session)).compacted
        assert texts(sent(session))[1:] == ["third"]


# Automatic.


async def test_full_window_is_compacted_before_the_request(tmp_path: Path) -> None:
    """K2, K4: above the share of the window, once; the prompt of the running turn stays and goes out behind it."""
    answers = (says(BIG), says("2"), says("sum"), says("3"), says("4"))
    async with scripted_server(tmp_path, *answers, settings=FULL) as stage:
        session = await stage.session()
        await stage.say(session, "first")
        assert compactions(session) == []
        await stage.say(session, "second")
        (request,) = summaries(stage)
        assert texts(request.messages[:-1]) == ["first", BIG]
        (record,) = compactions(session)
        assert record.automatic
        (event,) = compacted(stage)
        assert (event.automatic, event.before.messages, event.after.messages) == (True, 3, 2)
        assert texts(stage.model.requests[-1].messages)[1:] == ["second"]
        await stage.say(session, "third")
        assert len(compactions(session)) == 1


async def test_nothing_is_compacted_without_a_window_or_where_it_is_switched_off(tmp_path: Path) -> None:
    """K4: unknown, wide enough, or off: no summary is asked for before a request."""
    off = attrs.evolve(FULL, compaction=CompactionSettings(auto=False))
    for number, settings in enumerate((Settings(), off, attrs.evolve(FULL, window=100_000))):
        async with scripted_server(tmp_path / str(number), says(BIG), says("2"), settings=settings) as stage:
            session = await two_turns(stage)
            assert summaries(stage) == []
            assert len(sent(session)) == 4


async def test_share_of_the_window_is_a_setting(tmp_path: Path) -> None:
    """K4: `compaction.at`: about 84 % of the window is full at 0.8 and not at 0.95."""
    for share, count in ((0.8, 1), (0.95, 0)):
        settings = attrs.evolve(FULL, compaction=CompactionSettings(at=share))
        async with scripted_server(tmp_path / str(share), says(BIG), says("sum"), settings=settings) as stage:
            await two_turns(stage)
            assert len(summaries(stage)) == count


async def test_conversation_is_not_compacted_again_before_it_has_grown(tmp_path: Path) -> None:
    """K4: after a try that came to nothing, and after one that did, it waits for 10 % of the window."""
    refused = says("")
    answers = (says(BIG), refused, says("2"), says("3"), says("word " * 600), says("sum"), says("5"))
    async with scripted_server(tmp_path, *answers, settings=FULL) as stage:
        session = await two_turns(stage)
        assert len(summaries(stage)) == 1
        assert any("The conversation is not compacted." in text for text in warnings(stage))
        await stage.say(session, "third")
        await stage.say(session, "fourth")
        assert len(summaries(stage)) == 1
        session.ledger.counted.clear()  # the test's model counts 10 tokens, whatever it reads
        await stage.say(session, "fifth")
        assert len(summaries(stage)) == 2
        assert len(compactions(session)) == 1


async def test_request_that_is_too_long_goes_out_once_more_behind_a_compaction(tmp_path: Path) -> None:
    """K2, K4, case 86: the window was not known; the provider says so, and the same turn goes on."""
    answers = (says("1"), [TOO_LONG], says("sum"), says("2"))
    async with scripted_server(tmp_path, *answers) as stage:
        session = await two_turns(stage)
        assert [turn.ended.reason for turn in session.ledger.turns.values() if turn.ended] == ["done", "done"]
        assert texts(stage.model.requests[-1].messages)[1:] == ["second"]
        assert [record.automatic for record in compactions(session)] == [True]
        assert [one.text for one in session.messages(9)[0]][-1] == "2"


async def test_too_long_ends_the_turn_where_compaction_is_switched_off(tmp_path: Path) -> None:
    """K4: `compaction.auto` false: nothing is asked and nothing left out."""
    off = Settings(compaction=CompactionSettings(auto=False))
    async with scripted_server(tmp_path, says("1"), [TOO_LONG], settings=off) as stage:
        session = await two_turns(stage)
        assert [turn.ended.reason for turn in session.ledger.turns.values() if turn.ended] == ["done", "modelFailed"]
        assert compactions(session) == []


def outputs(request: ModelRequest) -> list[str]:
    return [one.text for one in request.messages if isinstance(one, ReplyMessage)]


async def test_one_giant_output_is_left_out_and_the_session_goes_on(tmp_path: Path) -> None:
    """K4: nothing before the prompt can be summarised; the newest output is left out, byte for byte the same from then
    on, and its receipt stays.
    """
    answers = (asks(read("big.txt")), [TOO_LONG], says("I cannot see it."), says("later"))
    async with scripted_server(tmp_path, *answers) as stage:
        stage.workspace.write("big.txt", "x" * 20_000)
        session = await stage.session("auto")
        assert (await stage.say(session, "first")).reason == "done"
        assert outputs(stage.model.requests[-1]) == [OMITTED_REPLY]
        assert any("1 tool output is left out" in text for text in warnings(stage))
        await stage.say(session, "second")
        assert outputs(stage.model.requests[-1]) == [OMITTED_REPLY]
        (only,) = session.ledger.calls.values()
        assert only.reply is not None
        assert len(only.reply.text) > 10_000
        assert [one.compaction for one in session.messages(9)[0]] == [None] * 5
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        session = await stage.opened(session.session_id)
        await stage.say(session, "third")
        assert outputs(stage.model.requests[-1]) == [OMITTED_REPLY]


async def test_old_outputs_are_left_out_before_the_newest(tmp_path: Path) -> None:
    """K4: the request goes out once more for each thing that made it shorter."""
    answers = (asks(read("one.txt")), asks(read("two.txt")), [TOO_LONG], says("done"))
    async with scripted_server(tmp_path, *answers) as stage:
        for name in ("one.txt", "two.txt"):
            stage.workspace.write(name, f"{name}\n" * 100)
        session = await stage.session("auto")
        assert (await stage.say(session, "first")).reason == "done"
        first, second = outputs(stage.model.requests[-1])
        assert first == OMITTED_REPLY
        assert second.startswith("two.txt")


async def test_turn_that_is_still_too_long_ends_bound_and_the_session_goes_on(tmp_path: Path) -> None:
    """K4: the sentence names a new session; the next prompt is answered after a compaction."""
    tries = ([TOO_LONG],) * 3
    answers = (asks(read("one.txt")), asks(read("two.txt")), *tries, [TOO_LONG], says("sum"), says("done"))
    async with scripted_server(tmp_path, *answers) as stage:
        for name in ("one.txt", "two.txt"):
            stage.workspace.write(name, f"{name}\n" * 100)
        session = await stage.session("auto")
        accepted = await stage.send(session, "first")
        assert (await stage.ended(session, accepted.turn_id)).reason == "bound"
        ended = session.ledger.turns[accepted.turn_id].ended
        assert ended is not None
        assert ended.text == STILL_TOO_LONG
        assert "new session" in STILL_TOO_LONG
        assert (await stage.say(session, "second")).reason == "done"
        assert texts(stage.model.requests[-1].messages)[1:] == ["second"]


async def test_conversation_too_long_to_summarise_goes_without_outputs_then_in_pieces(tmp_path: Path) -> None:
    """K2, K4: the ladder of a summary; each request is counted apart, and the last summary counts."""
    answers = (asks(read("big.txt")), says(BIG), [TOO_LONG], [TOO_LONG], says("part 1"), says("part 2"), says("part 3"))
    settings = attrs.evolve(FULL, compaction=CompactionSettings(auto=False), window=4_000)
    async with scripted_server(tmp_path, *answers, settings=settings) as stage:
        stage.workspace.write("big.txt", "x" * 5_000)
        session = await stage.session("auto")
        await stage.say(session, "first")
        stage.model.answers += [says(f"part {at}") for at in range(4, 9)]
        assert (await compact(session)).compacted
        whole, short, *pieces = summaries(stage)
        assert outputs(short) == [OMITTED_REPLY]
        assert len(outputs(whole)[0]) > 5_000
        assert all(len(request.messages[0].text) <= 4_000 * 3 // 2 + 200 for request in pieces)
        assert pieces[1].messages[0].text.startswith("The summary of the parts before:\npart 1\n\nThe next part:\n")
        assert "".join(
            one.messages[0].text.partition("next part:\n")[2] or one.messages[0].text for one in pieces
        ).count("word ") == BIG.count("word ")
        assert f"part {len(pieces)}\n" in compactions(session)[0].text
        assert session.ledger.usage_sums.auxiliary[0] == len(pieces)


async def test_pieces_that_stay_too_long_end_the_compaction(tmp_path: Path) -> None:
    """K4: a bounded number of requests, then `refused`."""
    async with scripted_server(tmp_path, says(BIG)) as stage:
        session = await stage.session()
        await stage.say(session, "first")
        stage.model.answers = [[TOO_LONG]] * 50
        assert await compact(session) == CompactResult(False, "refused")
        assert len(summaries(stage)) < 12


async def test_model_of_another_provider_gets_the_view_as_text(tmp_path: Path) -> None:
    """K4: `compaction.model`; the usage is that of the model that was asked."""
    own, other = ScriptedModel(asks(read("a.txt")), says("1")), ScriptedModel(says("They talked."))

    def models(provider: str, name: str) -> Model:
        return {"practice": own, "openai": other}[provider]

    settings = Settings(compaction=CompactionSettings(model=ModelName("openai", "small")))
    async with scripted_server(tmp_path, settings=settings, models=models) as stage:
        stage.workspace.write("a.txt", "content\n")
        session = await stage.session("auto")
        await stage.say(session, "first")
        assert (await compact(session)).compacted
        (request,) = other.requests
        view, order = request.messages
        assert isinstance(order, UserMessage)
        assert (request.tools, request.can_call) == ((), False)
        assert view.text.startswith("User:\nfirst\n\nAssistant:\nCall ")
        assert "content" in view.text
        (used,) = [record for record in on_disk(session) if isinstance(record, Usage) and record.auxiliary]
        assert used.model == ModelName("openai", "small")
        assert [request.purpose for request in own.requests] == ["turn", "turn"]


async def test_retried_summary_waits_as_a_turn_does(tmp_path: Path) -> None:
    """P3, K4: a provider that is overloaded is asked again a bounded number of times."""
    overloaded = ProviderError("Busy.", kind="overloaded", retryable=True, retry_after_s=7)
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    model = ScriptedModel(says("1"), says("2"), [overloaded], says("half", finish=None), says("sum"))
    async with practice_server(
        Workspace.under(tmp_path), models=lambda provider, name: model, requests_again_max=2, pause=pause
    ) as stage:
        session = await two_turns(stage)
        assert (await compact(session)).compacted
        assert pauses == [7, 2.0]


async def test_unresolved_effect_outlives_a_compaction_and_its_settlement_stands_behind_it(tmp_path: Path) -> None:
    """B8, J14, K4: what a kill left unknown is named in the message with its attempt, stays unresolved over a restart,
    and the notice of its settlement goes out with the next prompt.
    """
    started = anyio.Event()
    processes = FakeProcesses({"make": Script(hangs=True, started=started)})
    async with scripted_server(tmp_path, says("1"), asks(run("make")), processes=processes) as stage:
        session = await stage.session("auto")
        await stage.say(session, "first")
        await stage.send(session, "second")
        with anyio.fail_after(60):
            await started.wait()
        killed = stage.crashed(tmp_path / "killed")
    async with scripted_server(tmp_path, says("sum: nothing is uncertain"), state=killed, run=2) as stage:
        session = await stage.opened(session.session_id)
        (doubt,) = session.ledger.uncertain()
        assert (await compact(session)).compacted
        (message,) = [one.text for one in sent(session)]
        assert f"run_command: make: {unknown_reply(doubt)}" in message.partition(BY_MODEL)[0]
        assert doubt.attempt_id in message
        assert session.ledger.uncertain() == [doubt]
        again = stage.crashed(tmp_path / "again")
    async with scripted_server(tmp_path, says("3"), state=again, run=3) as stage:
        session = await stage.opened(session.session_id)
        (doubt,) = session.ledger.uncertain()
        looked = await resolve(session, ResolutionRequest(doubt.attempt_id, "inspect"))
        assert looked.inspection is not None
        waive = ResolutionRequest(doubt.attempt_id, "waive", inspection_id=looked.inspection.inspection_id)
        await resolve(session, waive)
        await stage.say(session, "third")
        first, notice, prompt = texts(stage.model.requests[-1].messages)
        assert first == message
        assert notice.startswith("[Notice] The uncertain call “run_command: make” is settled")
        assert prompt == "third"


async def test_history_that_would_be_unsound_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T1, K4, case 8: the validator judges the compacted history before it is committed; if it fails, nothing is."""

    def fail(messages: Sequence[OutMessage]) -> None:
        assert texts(messages)[1:] == []
        raise Invalid("a call without its reply")

    async with scripted_server(tmp_path, *TURNS, says("sum"), says("3")) as stage:
        session = await two_turns(stage)
        monkeypatch.setattr(compaction, "validate", fail)
        assert await compact(session) == CompactResult(False, "refused")
        assert compactions(session) == []
        await stage.say(session, "third")
        assert texts(stage.model.requests[-1].messages) == ["first", "1", "second", "2", "third"]
