"""One continuation of an answer that was cut by its length: merged, bounded, and honest about what did not come."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from steadyhand.core.model import (
    AssistantMessage,
    CallProposed,
    Finish,
    FinishReason,
    ModelTrouble,
    ReasoningPart,
    TextPart,
    UsagePart,
)
from steadyhand.core.record import Assistant, Usage
from steadyhand.core.settings import Price, Settings
from steadyhand.core.transcript import outgoing
from steadyhand.core.usage import usage_view
from steadyhand.core.views import TextDelta, Warned
from steadyhand.session import prompts
from steadyhand.session.owner import Owner
from steadyhand.session.turn import requests_per_turn_max
from tests.support.scripted import Gate, Play, ScriptedModel, Stage, asks, on_disk, read, staged

pytestmark = pytest.mark.anyio

ON = Settings(continuation=True)
CALL = CallProposed("write_file", '{"path":"a.txt","content":"x"}')


class Able(ScriptedModel):
    """A scripted model that can go on with its own answer."""

    can_continue = True


def told(*texts: str, finish: FinishReason | None = "stop", read: int = 100, wrote: int = 10, **more: Any) -> Play:
    usage = UsagePart(read, wrote, window=more.pop("window", 100_000), **more)
    return [*map(TextPart, texts), usage, *([Finish(finish)] if finish else [])]


FIRST = told("The beginning", finish="length")


def warned(stage: Stage) -> list[Warned]:
    return [event.event for event in stage.numbered() if isinstance(event.event, Warned)]


def answers_of(owner: Owner) -> list[Assistant]:
    """The answers of a model as they are shown and sent."""
    return [said.record for said in owner.ledger.said if isinstance(said.record, Assistant)]


async def test_the_rest_is_merged(tmp_path: Path) -> None:
    """P2: one more request; text, reasoning and usage are merged, over a restart too."""
    first = [ReasoningPart("Hm. "), *FIRST]
    rest = [ReasoningPart("So."), *told(" and the end.", read=120, wrote=20)]
    model = Able(first, rest, told("next"))
    async with staged(tmp_path, models=model, settings=ON) as stage:
        owner = await stage.session()
        ended = await stage.say(owner)
        assert (ended.reason, warned(stage)) == ("done", [])
        asked, again = model.requests
        assert (asked.continues, again.continues) == (False, True)
        assert again.messages == (*asked.messages, AssistantMessage("The beginning", (), "Hm. "))
        (answer,) = answers_of(owner)
        assert (answer.text, answer.reasoning, answer.finish) == ("The beginning and the end.", "Hm. So.", "stop")
        deltas = [event.event for event in stage.numbered() if isinstance(event.event, TextDelta)]
        assert {delta.message_id for delta in deltas} == {answer.message_id}
        used = usage_view(owner.ledger)
        assert (used.billed.input, used.billed.output, used.context, used.complete) == (220, 30, 140, True)
        before = outgoing(owner.ledger)
    async with staged(tmp_path, models=model, settings=ON, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        assert outgoing(owner.ledger) == before
        assert [answer.text for answer in answers_of(owner)] == ["The beginning and the end."]
        await stage.say(owner)
        assert model.requests[-1].messages[: len(before)] == before


ENDS: list[tuple[Play, str, str | None, str]] = [
    (told(" end", finish="stop"), "done", None, "The beginning end"),
    (told(" more", finish="length"), "length", "so was its rest", "The beginning more"),
    (told(" odd", finish="unknown"), "length", "reason that nobody gave", "The beginning odd"),
    (told(" part", finish=None), "cut", "broke off", "The beginning part"),
    (told(" bad", finish="filtered"), "filtered", "filtered the rest", "The beginning bad"),
    ([TextPart(" half"), ModelTrouble("Busy.", retryable=True)], "length", "did not come. Busy.", "The beginning half"),
    ([ModelTrouble("Busy.", retryable=True)], "length", "did not come. Busy.", "The beginning"),
    ([CALL, *told(" call", finish="calls")], "length", "reason that nobody gave", "The beginning call"),
    ([CALL, *told(" call", finish="stop")], "length", "reason that nobody gave", "The beginning call"),
]


@pytest.mark.parametrize(("rest", "reason", "said", "text"), ENDS)
async def test_how_it_can_end(tmp_path: Path, rest: Play, reason: str, said: str | None, text: str) -> None:
    """P2: at most one more request, never repeated; still cut or ended for an unknown reason, a warning says so. A call
    that it proposes all the same is not run."""
    model = Able(FIRST, rest, told("never"))
    async with staged(tmp_path, models=model, settings=ON) as stage:
        stage.house.world.requests_again_max = 4
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == reason
        assert len(model.requests) == 2
        assert [answer.text for answer in answers_of(owner)] == [text]
        codes = [warning.code for warning in warned(stage)]
        assert codes == ([] if said is None else ["stillCut"])
        assert said is None or said in warned(stage)[0].text
        assert owner.ledger.calls == {}
        assert list(stage.root.iterdir()) == []
        assert all(len(record.calls) == 0 for record in on_disk(owner) if isinstance(record, Assistant))


Turned = Callable[[Stage], None]
NO_WINDOW = [TextPart("The beginning"), UsagePart(100, 10), Finish("length")]
CAPPED = Settings(continuation=True, cost_cap=Decimal("0.0001"), prices={"practice/*": Price(Decimal(1), Decimal(1))})
FORBIDDEN: list[tuple[str, Play, Settings, type[ScriptedModel]]] = [
    ("off by default", FIRST, Settings(), Able),
    ("nobody can", FIRST, ON, ScriptedModel),
    ("no usage", [TextPart("The beginning"), Finish("length")], ON, Able),
    ("half a usage", [TextPart("The beginning"), UsagePart(100, None, window=9_000), Finish("length")], ON, Able),
    ("no known window", NO_WINDOW, ON, Able),
    ("no room", told("The beginning", finish="length", window=1000), ON, Able),
    ("no text", told("", finish="length"), ON, Able),
    ("no budget", FIRST, CAPPED, Able),
    ("cut otherwise", told("The beginning", finish=None), ON, Able),
    ("whole", told("The beginning", finish="stop"), ON, Able),
]


@pytest.mark.parametrize(("why", "first", "settings", "able"), FORBIDDEN, ids=[row[0] for row in FORBIDDEN])
async def test_what_forbids_it(
    tmp_path: Path, why: str, first: Play, settings: Settings, able: type[ScriptedModel]
) -> None:
    """P2: without one of the conditions there is no second request, and the turn ends as it would have."""
    model = able(first, told("never"))
    async with staged(tmp_path, models=model, settings=settings) as stage:
        owner = await stage.session()
        ended = await stage.say(owner)
        assert len(model.requests) == 1, why
        assert ended.reason == {"cut otherwise": "cut", "whole": "done"}.get(why, "length")


async def test_an_answer_with_calls_is_not_continued(tmp_path: Path) -> None:
    """P2, T6: calls of an answer cut by its length are not run, and nothing more is asked for."""
    model = Able([TextPart("I write."), CALL, UsagePart(100, 10, window=100_000), Finish("length")], told("never"))
    async with staged(tmp_path, models=model, settings=ON) as stage:
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == "length"
        assert len(model.requests) == 1
        assert list(stage.root.iterdir()) == []


async def test_the_last_request_of_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P2, G7: the bound on a turn's requests holds for the rest too."""
    monkeypatch.setattr("steadyhand.session.turn.requests_per_turn_max", 2)
    assert requests_per_turn_max > 2
    model = Able([*asks(read("a.txt"))], FIRST, told("never"))
    async with staged(tmp_path, models=model, settings=ON) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == "length"
        assert len(model.requests) == 2


async def test_a_stop_in_between(tmp_path: Path) -> None:
    """P2, G8: stopped while the rest comes, what came of it is kept in its message, as one that was cut."""
    gate = Gate()
    model = Able(FIRST, [TextPart(" and then"), gate])
    async with staged(tmp_path, models=model, settings=ON) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "tell me")
        await gate.wait_reached()
        await prompts.cancel(owner, accepted.turn_id)
        assert (await stage.ended(owner, accepted.turn_id)).reason == "cancelled"
        (answer,) = answers_of(owner)
        assert (answer.text, answer.finish) == ("The beginning and then", None)
        assert usage_view(owner.ledger).complete is False
    async with staged(tmp_path, models=model, settings=ON, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        assert [answer.text for answer in answers_of(owner)] == ["The beginning and then"]


async def test_a_stop_before_it_is_asked_for(tmp_path: Path) -> None:
    """P2: a turn that is being stopped asks for nothing more."""
    gate = Gate()
    model = Able([*FIRST[:-1], gate, FIRST[-1]], told("never"))
    async with staged(tmp_path, models=model, settings=ON) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "tell me")
        await gate.wait_reached()
        assert owner.turn is not None
        owner.turn.stopping = "cancelled"  # as a stop that is being recorded leaves it
        gate.go.set()
        assert (await stage.ended(owner, accepted.turn_id)).reason == "cancelled"
        assert len(model.requests) == 1


@pytest.mark.parametrize(("what", "reason"), [("epoch", "length"), ("not kept", "journalBroken")])
async def test_what_changes_while_it_streams(tmp_path: Path, what: str, reason: str) -> None:
    """P2, I7, J6: nothing more is asked for once the session was taken up anew, or what came is not kept."""
    gate = Gate()
    model = Able([*FIRST[:-1], gate, FIRST[-1]], told("never"))
    async with staged(tmp_path, models=model, settings=ON) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "tell me")
        await gate.wait_reached()
        assert owner.turn is not None
        if what == "epoch":
            owner.epoch = "f" * 32
        else:
            owner.turn.not_kept = True
        gate.go.set()
        assert (await stage.ended(owner, accepted.turn_id)).reason == reason
        assert len(model.requests) == 1


async def test_a_crash_between_the_two_requests(tmp_path: Path) -> None:
    """P2, I4: what came stands in the journal before the rest is asked for; opening asks for nothing, and the history
    goes on with the answer as it was received."""
    gate = Gate()
    model = Able(FIRST, [TextPart(" lost"), gate])
    async with staged(tmp_path, models=model, settings=ON) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "tell me")
        await gate.wait_reached()
        state = stage.crashed(tmp_path / "crashed")
        await prompts.cancel(owner, accepted.turn_id)
        await stage.ended(owner, accepted.turn_id)
    later = Able(told("Fine."))
    async with staged(tmp_path, models=later, settings=ON, state=state, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        assert later.requests == []
        (answer,) = answers_of(owner)
        assert (answer.text, answer.finish) == ("The beginning", "length")
        assert prompts.status(owner, "client-0").state == "interrupted"
        assert [record.complete for record in on_disk(owner) if isinstance(record, Usage)] == [True]
        assert (await stage.say(owner, "and?")).reason == "done"
        (request,) = later.requests
        assert [message.text for message in request.messages] == ["tell me", "The beginning", "and?"]


async def test_a_rest_whose_beginning_is_lost(tmp_path: Path) -> None:
    """J9: where the record of the beginning is damaged, the rest stands as a message of its own and joins no other."""
    model = Able(told("Earlier."), FIRST, told(" and the end."))
    async with staged(tmp_path, models=model, settings=ON) as stage:
        owner = await stage.session()
        await stage.say(owner)
        await stage.say(owner)
    journal = Path(owner.path) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"text":"The beginning"', b'"text":"The beginninX"'))
    async with staged(tmp_path, models=model, settings=ON, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        assert [answer.text for answer in answers_of(owner)] == ["Earlier.", " and the end."]
