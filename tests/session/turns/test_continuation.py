"""One continuation of an answer that its length limit cut: merged, bounded, with a warning about what is missing
(row P2)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    Finish,
    FinishReason,
    ProviderError,
    ReasoningPart,
    TextPart,
    UsagePart,
)
from steadyhand.domain.model.transcript import outgoing_messages
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.records.record import Assistant, Usage
from steadyhand.domain.settings import Price, Settings
from steadyhand.domain.views.types import TextDelta, Warned
from steadyhand.session.service import prompt_queue
from steadyhand.session.session import Session
from steadyhand.session.stored_messages import tell_model
from steadyhand.session.turns.loop import REQUESTS_PER_TURN_MAX
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import Play, ScriptedModel, asks, read
from tests.support.session_state import on_disk
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio

ON = Settings(continuation=True)
CALL = CallProposed("write_file", '{"path":"a.txt","content":"x"}')


class ContinuingModel(ScriptedModel):
    """A scripted model that can continue its own answer."""

    can_continue = True


def text_answer(
    *texts: str, finish: FinishReason | None = "stop", read: int = 100, wrote: int = 10, **more: Any
) -> Play:
    usage = UsagePart(read, wrote, window=more.pop("window", 100_000), **more)
    return [*map(TextPart, texts), usage, *([Finish(finish)] if finish else [])]


FIRST = text_answer("The beginning", finish="length")


def warnings(stage: InProcessServer) -> list[Warned]:
    return [event.event for event in stage.numbered() if isinstance(event.event, Warned)]


def answers_of(session: Session) -> list[Assistant]:
    """The model's answers as they are shown and sent."""
    return [entry.record for entry in session.ledger.said if isinstance(entry.record, Assistant)]


async def test_continuation_is_merged_into_one_answer(tmp_path: Path) -> None:
    """Row P2: The server sends one more request. Text, reasoning and usage are merged, also after a restart."""
    first = [ReasoningPart("Hm. "), *FIRST]
    rest = [ReasoningPart("So."), *text_answer(" and the end.", read=120, wrote=20)]
    model = ContinuingModel(first, rest, text_answer("next"))
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        session = await stage.session()
        ended = await stage.say(session)
        assert (ended.reason, warnings(stage)) == ("done", [])
        asked, again = model.requests
        assert (asked.is_continuation, again.is_continuation) == (False, True)
        assert again.messages == (*asked.messages, AssistantMessage("The beginning", (), "Hm. "))
        (answer,) = answers_of(session)
        assert (answer.text, answer.reasoning, answer.finish) == ("The beginning and the end.", "Hm. So.", "stop")
        deltas = [event.event for event in stage.numbered() if isinstance(event.event, TextDelta)]
        assert {delta.message_id for delta in deltas} == {answer.message_id}
        used = usage_view(session.ledger)
        assert (used.billed.input, used.billed.output, used.context, used.complete) == (220, 30, 140, True)
        before = outgoing_messages(session.ledger)
    async with scripted_server(tmp_path, models=model, settings=ON, run=2) as stage:
        session = await stage.opened(session.session_id)
        assert outgoing_messages(session.ledger) == before
        assert [answer.text for answer in answers_of(session)] == ["The beginning and the end."]
        await stage.say(session)
        assert model.requests[-1].messages[: len(before)] == before


async def test_continuation_takes_no_stored_message(tmp_path: Path) -> None:
    """Rows P2, G15: what the model is told during the first part goes out behind the whole answer, not before its
    rest."""
    gate = Gate()
    model = ContinuingModel([TextPart("The beginning"), gate, *FIRST[1:]], text_answer(" end"), text_answer("next"))
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "go on")
        await gate.wait_reached()
        await tell_model(session, "mcp", "told")
        gate.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == "done"
        await stage.say(session, "next")
        asked, again, later = model.requests
        assert again.messages == (*asked.messages, AssistantMessage("The beginning"))
        assert [one.text for one in later.messages] == ["go on", "The beginning end", "[Notice] told", "next"]


ENDS: list[tuple[Play, str, str | None, str]] = [
    (text_answer(" end", finish="stop"), "done", None, "The beginning end"),
    (text_answer(" more", finish="length"), "length", "its continuation were both cut", "The beginning more"),
    (text_answer(" odd", finish="unknown"), "length", "ended for an unknown reason", "The beginning odd"),
    (text_answer(" part", finish=None), "cut", "broke off", "The beginning part"),
    (text_answer(" bad", finish="filtered"), "filtered", "filtered the rest", "The beginning bad"),
    (
        [TextPart(" half"), ProviderError("Busy.", retryable=True)],
        "length",
        "did not come. Busy.",
        "The beginning half",
    ),
    ([ProviderError("Busy.", retryable=True)], "length", "did not come. Busy.", "The beginning"),
    ([CALL, *text_answer(" call", finish="calls")], "length", "ended for an unknown reason", "The beginning call"),
    ([CALL, *text_answer(" call", finish="stop")], "length", "ended for an unknown reason", "The beginning call"),
]


@pytest.mark.parametrize(("rest", "reason", "said", "text"), ENDS)
async def test_continuation_end_decides_reason_and_warning(
    tmp_path: Path, rest: Play, reason: str, said: str | None, text: str
) -> None:
    """Row P2: The server sends at most one more request and never repeats it. If the answer is still cut or ends for
    an unknown reason, a warning says so. The server does not run a call that the continuation proposes."""
    model = ContinuingModel(FIRST, rest, text_answer("never"))
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        stage.registry.context.requests_again_max = 4
        session = await stage.session("auto")
        assert (await stage.say(session)).reason == reason
        assert len(model.requests) == 2
        assert [answer.text for answer in answers_of(session)] == [text]
        codes = [warning.code for warning in warnings(stage)]
        assert codes == ([] if said is None else ["stillCut"])
        assert said is None or said in warnings(stage)[0].text
        assert session.ledger.calls == {}
        assert list(stage.root.iterdir()) == []
        assert all(len(record.calls) == 0 for record in on_disk(session) if isinstance(record, Assistant))


Turned = Callable[[InProcessServer], None]
NO_WINDOW: Play = [TextPart("The beginning"), UsagePart(100, 10), Finish("length")]
CAPPED = Settings(continuation=True, cost_cap=Decimal("0.0001"), prices={"practice/*": Price(Decimal(1), Decimal(1))})
FORBIDDEN: list[tuple[str, Play, Settings, type[ScriptedModel]]] = [
    ("off by default", FIRST, Settings(), ContinuingModel),
    ("nobody can", FIRST, ON, ScriptedModel),
    ("no usage", [TextPart("The beginning"), Finish("length")], ON, ContinuingModel),
    (
        "half a usage",
        [TextPart("The beginning"), UsagePart(100, None, window=9_000), Finish("length")],
        ON,
        ContinuingModel,
    ),
    ("no known window", NO_WINDOW, ON, ContinuingModel),
    ("no room", text_answer("The beginning", finish="length", window=1000), ON, ContinuingModel),
    ("no text", text_answer("", finish="length"), ON, ContinuingModel),
    ("no budget", FIRST, CAPPED, ContinuingModel),
    ("cut otherwise", text_answer("The beginning", finish=None), ON, ContinuingModel),
    ("whole", text_answer("The beginning", finish="stop"), ON, ContinuingModel),
]


@pytest.mark.parametrize(("why", "first", "settings", "able"), FORBIDDEN, ids=[row[0] for row in FORBIDDEN])
async def test_continuation_without_one_condition_is_not_requested(
    tmp_path: Path, why: str, first: Play, settings: Settings, able: type[ScriptedModel]
) -> None:
    """Row P2: Without one of the conditions there is no second request, and the turn ends as it would have."""
    model = able(first, text_answer("never"))
    async with scripted_server(tmp_path, models=model, settings=settings) as stage:
        session = await stage.session()
        ended = await stage.say(session)
        assert len(model.requests) == 1, why
        assert ended.reason == {"cut otherwise": "cut", "whole": "done"}.get(why, "length")


async def test_cut_answer_with_calls_is_not_continued(tmp_path: Path) -> None:
    """Rows P2, T6: The server does not run the calls of an answer that its length limit cut, and requests nothing
    more."""
    model = ContinuingModel(
        [TextPart("I write."), CALL, UsagePart(100, 10, window=100_000), Finish("length")], text_answer("never")
    )
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        session = await stage.session("auto")
        assert (await stage.say(session)).reason == "length"
        assert len(model.requests) == 1
        assert list(stage.root.iterdir()) == []


async def test_continuation_counts_towards_the_request_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows P2, G7: The bound on a turn's requests also applies to the continuation."""
    monkeypatch.setattr("steadyhand.session.turns.loop.REQUESTS_PER_TURN_MAX", 2)
    assert REQUESTS_PER_TURN_MAX > 2
    model = ContinuingModel([*asks(read("a.txt"))], FIRST, text_answer("never"))
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        (stage.root / "a.txt").write_text("A")
        session = await stage.session("auto")
        assert (await stage.say(session)).reason == "length"
        assert len(model.requests) == 2


async def test_stop_during_continuation_keeps_the_received_text(tmp_path: Path) -> None:
    """Rows P2, G8: If a stop comes during the continuation, its message keeps the received text, as an answer that
    was cut."""
    gate = Gate()
    model = ContinuingModel(FIRST, [TextPart(" and then"), gate])
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "tell me")
        await gate.wait_reached()
        await prompt_queue.cancel(session, accepted.turn_id)
        assert (await stage.ended(session, accepted.turn_id)).reason == "cancelled"
        (answer,) = answers_of(session)
        assert (answer.text, answer.finish) == ("The beginning and then", None)
        assert usage_view(session.ledger).complete is False
    async with scripted_server(tmp_path, models=model, settings=ON, run=2) as stage:
        session = await stage.opened(session.session_id)
        assert [answer.text for answer in answers_of(session)] == ["The beginning and then"]


async def test_stop_before_continuation_prevents_the_request(tmp_path: Path) -> None:
    """Row P2: A turn that is being stopped sends no further request."""
    gate = Gate()
    model = ContinuingModel([*FIRST[:-1], gate, FIRST[-1]], text_answer("never"))
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "tell me")
        await gate.wait_reached()
        assert session.turn is not None
        session.turn.begin_stopping("cancelled")  # the state while a stop is being recorded
        gate.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == "cancelled"
        assert len(model.requests) == 1


@pytest.mark.parametrize(("what", "reason"), [("epoch", "length"), ("not kept", "journalBroken")])
async def test_epoch_change_or_lost_record_prevents_continuation(tmp_path: Path, what: str, reason: str) -> None:
    """Rows P2, J6 [I7]: The server requests nothing more once the session has another epoch, or the journal did not
    keep the answer."""
    gate = Gate()
    model = ContinuingModel([*FIRST[:-1], gate, FIRST[-1]], text_answer("never"))
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "tell me")
        await gate.wait_reached()
        assert session.turn is not None
        if what == "epoch":
            session.epoch = "f" * 32
        else:
            session.turn.mark_not_kept()
        gate.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == reason
        assert len(model.requests) == 1


async def test_crash_during_continuation_keeps_the_first_part(tmp_path: Path) -> None:
    """Row P2 [I4]: The journal holds the first part before the server requests the rest. Opening requests nothing,
    and the history continues with the answer as received."""
    gate = Gate()
    model = ContinuingModel(FIRST, [TextPart(" lost"), gate])
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "tell me")
        await gate.wait_reached()
        state = stage.crashed(tmp_path / "crashed")
        await prompt_queue.cancel(session, accepted.turn_id)
        await stage.ended(session, accepted.turn_id)
    later = ContinuingModel(text_answer("Fine."))
    async with scripted_server(tmp_path, models=later, settings=ON, state=state, run=2) as stage:
        session = await stage.opened(session.session_id)
        assert later.requests == []
        (answer,) = answers_of(session)
        assert (answer.text, answer.finish) == ("The beginning", "length")
        assert prompt_queue.status_of(session, "client-0").state == "interrupted"
        assert [record.complete for record in on_disk(session) if isinstance(record, Usage)] == [True]
        assert (await stage.say(session, "and?")).reason == "done"
        (request,) = later.requests
        assert [message.text for message in request.messages] == ["tell me", "The beginning", "and?"]


async def test_continuation_without_its_first_part_stands_alone(tmp_path: Path) -> None:
    """Row J9: If the record of the first part is damaged, the continuation is a message of its own and joins no
    other."""
    model = ContinuingModel(text_answer("Earlier."), FIRST, text_answer(" and the end."))
    async with scripted_server(tmp_path, models=model, settings=ON) as stage:
        session = await stage.session()
        await stage.say(session)
        await stage.say(session)
    journal = Path(session.path) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"text":"The beginning"', b'"text":"The beginninX"'))
    async with scripted_server(tmp_path, models=model, settings=ON, run=2) as stage:
        session = await stage.opened(session.session_id)
        assert [answer.text for answer in answers_of(session)] == ["Earlier.", " and the end."]
