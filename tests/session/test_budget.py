"""The cap on a session's cost: said from 80 % on, kept at 100 % and over restarts; what cannot be kept is said."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from steadyhand.core.model import Finish, ModelTrouble, TextPart, UsagePart
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import Ended, Usage
from steadyhand.core.settings import Price, Settings
from steadyhand.core.usage import usage_view
from steadyhand.core.views import Cost, UsageTold, Warned
from steadyhand.session import desk, prompts
from steadyhand.session.owner import Owner
from tests.support.scripted import Gate, Play, Stage, asks, assert_closed, on_disk, read, says, staged, states

pytestmark = pytest.mark.anyio

ONE_EACH = {"practice/*": Price(Decimal(1), Decimal(1))}  # a million tokens read or written: 1 USD


def priced(cap: str | None = "1", prices: dict[str, Price] | None = None) -> Settings:
    return Settings(cost_cap=Decimal(cap) if cap is not None else None, prices=ONE_EACH if prices is None else prices)


def costs(cents: int) -> Play:
    """An answer that costs so many cents."""
    return [TextPart("ok"), UsagePart(cents * 5_000, cents * 5_000), Finish("stop")]


def warned(stage: Stage, code: str) -> list[str]:
    events = [told.event for told in stage.numbered() if isinstance(told.event, Warned)]
    return [event.text for event in events if event.code == code]


async def ends(stage: Stage, owner: Owner, turns: int) -> list[str]:
    return [(await stage.say(owner)).reason for _ in range(turns)]


async def test_the_cap_is_kept(tmp_path: Path) -> None:
    """U2, G7: at 80 % each turn says so once; at 100 % nothing is sent, and the turn ends `cost` with what to do.

    A restart forgets nothing, and a raised cap goes on."""
    answers = [costs(40), costs(39), costs(1), costs(20), costs(1)]
    async with staged(tmp_path, *answers, settings=priced()) as stage:
        owner = await stage.session()
        assert await ends(stage, owner, 2) == ["done"] * 2
        assert warned(stage, "costNear") == [], "79 % is not yet near"
        assert await ends(stage, owner, 2) == ["done"] * 2
        near = warned(stage, "costNear")
        assert [text.split(" of ")[0] for text in near] == ["This session has cost 0.80 USD"] * 2
        assert await ends(stage, owner, 1) == ["cost"]
        assert len(stage.model.requests) == 4
        (said,) = warned(stage, "cost")
        assert said == (
            "This session has cost 1.00 USD, and its cap is 1: the model is not asked."
            " Raise steadyhand.cost.cap, or begin a new session."
        )
        told = [told.event.usage for told in stage.numbered() if isinstance(told.event, UsageTold)][-1]
        assert told.cost == Cost("1.00", "USD")
        last = [record for record in on_disk(owner) if isinstance(record, Ended)][-1]
        assert (last.reason, last.text) == ("cost", said)
    async with staged(tmp_path, costs(1), settings=priced(), life=2) as stage:
        owner = await stage.opened(owner.session_id)
        assert usage_view(owner.ledger).cost == Cost("1.00", "USD")
        assert await ends(stage, owner, 1) == ["cost"]
        assert stage.model.requests == []
        stage.house.world.settings = priced("2")
        assert await ends(stage, owner, 1) == ["done"]
        assert usage_view(owner.ledger).cost == Cost("1.01", "USD")


async def test_a_turn_that_goes_beyond_the_cap_says_that_it_did(tmp_path: Path) -> None:
    """U2: nobody is told that the end is near where it is behind him."""
    async with staged(tmp_path, costs(90), costs(40), settings=priced()) as stage:
        near, beyond = await stage.session(), await stage.session()
        assert await ends(stage, near, 1) == ["done"]
        assert warned(stage, "costNear")[0].endswith("allows; at the cap the turn ends.")
        stage.house.world.settings = priced("0.1")
        assert await ends(stage, beyond, 1) == ["done"]
        assert warned(stage, "costNear")[1:] == [
            "This session has cost 0.40 USD of the 0.1 that steadyhand.cost.cap allows; the model is not asked again"
            " until the cap is raised."
        ]


async def test_a_cap_reached_in_mid_turn(tmp_path: Path) -> None:
    """U2: the request after a call is not sent either; the call keeps its reply, and nothing stays open [I16]."""
    dear = [*asks(read("a.txt"))[:-2], UsagePart(1_000_000, 0), Finish("calls")]
    async with staged(tmp_path, dear, says("never"), settings=priced()) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session("auto")
        assert await ends(stage, owner, 1) == ["cost"]
        assert states(owner) == ["returned"]
        assert_closed(owner)
        assert len(stage.model.requests) == 1


async def test_a_quick_question_is_capped_too(tmp_path: Path) -> None:
    """U2, S2: it asks the model like any other request, so it counts, and at the cap it is not sent."""
    async with staged(tmp_path, costs(100), costs(1), settings=priced()) as stage:
        owner = await stage.session()
        for name, reason in (("first", "done"), ("second", "cost")):
            accepted = await prompts.prompt(owner, owner.epoch, name, Prompt("what is this?", aside=True))
            assert (await stage.ended(owner, accepted.turn_id)).reason == reason
        assert len(stage.model.requests) == 1
        assert usage_view(owner.ledger).cost == Cost("1.00", "USD")


async def test_what_is_known_of_the_next_request(tmp_path: Path) -> None:
    """U1, case 86: the last answer's input counts what went before it; a quick question's does not, another model's
    neither."""
    answers = [costs(1), costs(50), costs(2), costs(1), costs(1)]
    async with staged(tmp_path, *answers, settings=priced(None)) as stage:
        owner = await stage.session()
        await ends(stage, owner, 1)
        accepted = await prompts.prompt(owner, owner.epoch, "quick", Prompt("what is this?", aside=True))
        await stage.ended(owner, accepted.turn_id)
        await ends(stage, owner, 2)
        await desk.set_model(owner, "compatible", "x")
        await ends(stage, owner, 1)
        known = [(request.input_tokens, request.counted) for request in stage.model.requests]
        assert known == [(None, None), (5_000, 1), (5_000, 1), (10_000, 3), (None, None)]


async def test_without_a_cap_nothing_is_said(tmp_path: Path) -> None:
    """U2: the cap is off by default; the cost is told all the same."""
    async with staged(tmp_path, costs(500), settings=priced(None)) as stage:
        owner = await stage.session()
        assert await ends(stage, owner, 2) == ["done"] * 2
        assert not [told for told in stage.numbered() if isinstance(told.event, Warned)]
        assert usage_view(owner.ledger).cost == Cost("5.000015", "USD")


async def test_what_bills_nothing_is_not_capped(tmp_path: Path) -> None:
    """U2: the practice model goes on under a cap of 0, without a cost; so does a model the user priced at 0."""
    nothing = {"practice/*": Price(Decimal(0), Decimal(0))}
    for number, prices in enumerate(({}, nothing)):
        (folder := tmp_path / str(number)).mkdir()
        async with staged(folder, costs(500), settings=priced("0", prices)) as stage:
            owner = await stage.session()
            assert await ends(stage, owner, 2) == ["done"] * 2
            assert usage_view(owner.ledger).cost in (None, Cost("0.00", "USD"))


@pytest.mark.parametrize("cap", [None, "5"])
async def test_a_model_without_a_price(tmp_path: Path, cap: str | None) -> None:
    """U2: no cost is invented; under a cap, which could not be kept, it is not asked, and the ways out are named."""
    async with staged(tmp_path, costs(10), costs(10), settings=priced(cap, {})) as stage:
        owner = await stage.session()
        await desk.set_model(owner, "compatible", "new")
        assert await ends(stage, owner, 1) == ["done" if cap is None else "cost"]
        used = usage_view(owner.ledger)
        assert (used.cost, used.complete) == (None, True)
        if cap is None:
            return
        assert stage.model.requests == []
        (said,) = warned(stage, "cost")
        assert "no known price" in said
        assert "steadyhand.cost.prices, or take the cap away" in said
        stage.house.world.settings = priced(cap, {"compatible/new": Price(Decimal(1), Decimal(1))})
        assert await ends(stage, owner, 1) == ["done"]
        assert usage_view(owner.ledger).cost == Cost("0.10", "USD")


async def test_a_provider_that_tells_what_it_billed(tmp_path: Path) -> None:
    """U2: what OpenRouter says each request cost is what counts; once it says nothing, a cap cannot be kept."""
    billed = [TextPart("ok"), UsagePart(5, 5, billed="0.85"), Finish("stop")]
    silent = [TextPart("ok"), UsagePart(5, 5), Finish("stop")]
    async with staged(tmp_path, billed, silent, settings=priced("1", {})) as stage:
        owner = await stage.session()
        await desk.set_model(owner, "openrouter", "vendor/model")
        assert await ends(stage, owner, 1) == ["done"]
        assert usage_view(owner.ledger).cost == Cost("0.85", "USD")
        assert len(warned(stage, "costNear")) == 1
        assert await ends(stage, owner, 2) == ["done", "cost"]
        assert "no known price" in warned(stage, "cost")[0]
        used = usage_view(owner.ledger)
        assert (used.cost, used.complete) == (Cost("0.85", "USD"), False)


async def test_requests_that_told_nothing(tmp_path: Path) -> None:
    """U1, U2: stopped and withdrawn requests were perhaps billed: usage is incomplete, and under a cap it is said."""
    gate = Gate()
    cut: Play = [TextPart("half")]
    async with staged(tmp_path, [gate], cut, costs(1), costs(1), settings=priced()) as stage:
        stage.house.world.requests_again_max = 1
        stage.house.world.pause = _at_once
        owner = await stage.session()
        accepted = await stage.send(owner, "stop me")
        await gate.wait_reached()
        await prompts.cancel(owner, accepted.turn_id)
        await stage.ended(owner, accepted.turn_id)
        assert await ends(stage, owner, 1) == ["done"]
        counts = [record.complete for record in on_disk(owner) if isinstance(record, Usage)]
        assert counts == [False, False, True]
        assert usage_view(owner.ledger).complete is False
        assert await ends(stage, owner, 1) == ["done"]
        said = warned(stage, "costUncounted")
        assert [text[:2] for text in said] == ["1 ", "2 "]
        assert "counts too little" in said[0]


async def test_a_refused_request_bills_nothing(tmp_path: Path) -> None:
    """U1: a provider that only says what is wrong leaves the usage complete."""
    async with staged(tmp_path, [ModelTrouble("No.", kind="key")], costs(1), settings=priced()) as stage:
        owner = await stage.session()
        assert await ends(stage, owner, 2) == ["modelFailed", "done"]
        assert usage_view(owner.ledger).complete is True


async def test_another_currency(tmp_path: Path) -> None:
    """U2: costs in another currency are not added up with these; the cap says that it counts too little."""
    settings = priced("1", {**ONE_EACH, "compatible/*": Price(Decimal(1), Decimal(1), currency="EUR")})
    async with staged(tmp_path, costs(90), costs(30), settings=settings) as stage:
        owner = await stage.session()
        assert await ends(stage, owner, 1) == ["done"]
        await desk.set_model(owner, "compatible", "x")
        assert await ends(stage, owner, 1) == ["done"]
        used = usage_view(owner.ledger)
        assert (used.cost, used.complete) == (Cost("0.30", "EUR"), False)
        assert len(warned(stage, "costUncounted")) == 1


async def test_the_price_of_then_stays(tmp_path: Path) -> None:
    """U2: what was recorded at a price keeps it; a new price counts from the next request on."""
    async with staged(tmp_path, costs(10), costs(10), settings=priced(None)) as stage:
        owner = await stage.session()
        await ends(stage, owner, 1)
        stage.house.world.settings = attrs.evolve(priced(None), prices={"practice/*": Price(Decimal(3), Decimal(3))})
        await ends(stage, owner, 1)
        assert usage_view(owner.ledger).cost == Cost("0.40", "USD")
        recorded = [record for record in on_disk(owner) if isinstance(record, Usage)]
        assert [(one.cost, one.currency) for one in recorded] == [("0.1", "USD"), ("0.3", "USD")]


async def _at_once(_: float) -> Any:
    await anyio.lowlevel.checkpoint()
