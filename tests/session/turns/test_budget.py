"""The cost cap of a session: a warning from 80 % on, no request from 100 % on, also after a restart. The server says
when it cannot keep the cap."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from steadyhand.domain.model.messages import Finish, ProviderError, TextPart, UsagePart
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Ended, Usage
from steadyhand.domain.settings import Price, Settings
from steadyhand.domain.views.types import Cost, UsageChanged, Warned
from steadyhand.session.service import prompt_queue, session_settings
from steadyhand.session.session import Session
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import Play, asks, read, says
from tests.support.session_state import assert_closed, on_disk, states
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio

ONE_EACH = {"practice/*": Price(Decimal(1), Decimal(1))}  # 1 USD for a million tokens, read or written


def settings_with_cap(cap: str | None = "1", prices: dict[str, Price] | None = None) -> Settings:
    return Settings(cost_cap=Decimal(cap) if cap is not None else None, prices=ONE_EACH if prices is None else prices)


def answer_costing(cents: int) -> Play:
    """An answer that costs this many cents."""
    return [TextPart("ok"), UsagePart(cents * 5_000, cents * 5_000), Finish("stop")]


def warnings(stage: InProcessServer, code: str) -> list[str]:
    events = [notification.event for notification in stage.numbered() if isinstance(notification.event, Warned)]
    return [event.text for event in events if event.code == code]


async def end_reasons(stage: InProcessServer, session: Session, turns: int) -> list[str]:
    return [(await stage.say(session)).reason for _ in range(turns)]


async def test_cap_warns_from_80_percent_and_stops_at_100_percent(tmp_path: Path) -> None:
    """Rows U2, G7: From 80 % on each turn warns once. At 100 % the server sends no request, and the turn ends with
    `cost` and says what to do.

    A restart keeps the cost, and after the cap is raised the session goes on.
    """
    answers = [answer_costing(40), answer_costing(39), answer_costing(1), answer_costing(20), answer_costing(1)]
    async with scripted_server(tmp_path, *answers, settings=settings_with_cap()) as stage:
        session = await stage.session()
        assert await end_reasons(stage, session, 2) == ["done"] * 2
        assert warnings(stage, "costNear") == [], "79 % is below the warning"
        assert await end_reasons(stage, session, 2) == ["done"] * 2
        near = warnings(stage, "costNear")
        assert [text.split(" of ")[0] for text in near] == ["This session has cost 0.80 USD"] * 2
        assert await end_reasons(stage, session, 1) == ["cost"]
        assert len(stage.model.requests) == 4
        (said,) = warnings(stage, "cost")
        assert said == (
            "This session has cost 1.00 USD, and its cap is 1: the model is not asked."
            " Raise steadyhand.cost.cap, or start a new session."
        )
        usage = [
            notification.event.usage
            for notification in stage.numbered()
            if isinstance(notification.event, UsageChanged)
        ][-1]
        assert usage.cost == Cost("1.00", "USD")
        last = [record for record in on_disk(session) if isinstance(record, Ended)][-1]
        assert (last.reason, last.text) == ("cost", said)
    async with scripted_server(tmp_path, answer_costing(1), settings=settings_with_cap(), run=2) as stage:
        session = await stage.opened(session.session_id)
        assert usage_view(session.ledger).cost == Cost("1.00", "USD")
        assert await end_reasons(stage, session, 1) == ["cost"]
        assert stage.model.requests == []
        stage.registry.context.settings = settings_with_cap("2")
        assert await end_reasons(stage, session, 1) == ["done"]
        assert usage_view(session.ledger).cost == Cost("1.01", "USD")


async def test_turn_that_passes_the_cap_says_that_it_is_passed(tmp_path: Path) -> None:
    """Row U2: After the cap is passed, no message says that it is near."""
    async with scripted_server(tmp_path, answer_costing(90), answer_costing(40), settings=settings_with_cap()) as stage:
        near, beyond = await stage.session(), await stage.session()
        assert await end_reasons(stage, near, 1) == ["done"]
        assert warnings(stage, "costNear")[0].endswith("allows; at the cap the turn ends.")
        stage.registry.context.settings = settings_with_cap("0.1")
        assert await end_reasons(stage, beyond, 1) == ["done"]
        assert warnings(stage, "costNear")[1:] == [
            "This session has cost 0.40 USD of the 0.1 that steadyhand.cost.cap allows; the model is not asked again"
            " until the cap is raised."
        ]


async def test_cap_reached_in_mid_turn_stops_the_next_request(tmp_path: Path) -> None:
    """Row U2: The server does not send the request after a call either. The call keeps its reply, and nothing stays
    open [I16]."""
    expensive = [*asks(read("a.txt"))[:-2], UsagePart(1_000_000, 0), Finish("calls")]
    async with scripted_server(tmp_path, expensive, says("never"), settings=settings_with_cap()) as stage:
        (stage.root / "a.txt").write_text("A")
        session = await stage.session("auto")
        assert await end_reasons(stage, session, 1) == ["cost"]
        assert states(session) == ["returned"]
        assert_closed(session)
        assert len(stage.model.requests) == 1


async def test_quick_question_counts_and_is_not_sent_at_the_cap(tmp_path: Path) -> None:
    """Rows U2, S2: A quick question asks the model like any other request, so its cost counts. At the cap the server
    does not send it."""
    async with scripted_server(tmp_path, answer_costing(100), answer_costing(1), settings=settings_with_cap()) as stage:
        session = await stage.session()
        for name, reason in (("first", "done"), ("second", "cost")):
            accepted = await prompt_queue.submit(session, session.epoch, name, Prompt("what is this?", aside=True))
            assert (await stage.ended(session, accepted.turn_id)).reason == reason
        assert len(stage.model.requests) == 1
        assert usage_view(session.ledger).cost == Cost("1.00", "USD")


async def test_request_input_estimate_is_the_last_answers_input(tmp_path: Path) -> None:
    """Row U1, case 86: The input of the last answer counts what went before it. The input of a quick question does
    not, nor that of another model."""
    answers = [answer_costing(1), answer_costing(50), answer_costing(2), answer_costing(1), answer_costing(1)]
    async with scripted_server(tmp_path, *answers, settings=settings_with_cap(None)) as stage:
        session = await stage.session()
        await end_reasons(stage, session, 1)
        accepted = await prompt_queue.submit(session, session.epoch, "quick", Prompt("what is this?", aside=True))
        await stage.ended(session, accepted.turn_id)
        await end_reasons(stage, session, 2)
        await session_settings.set_model(session, "compatible", "x")
        await end_reasons(stage, session, 1)
        known = [(request.input_tokens, request.counted) for request in stage.model.requests]
        assert known == [(None, None), (5_000, 1), (5_000, 1), (10_000, 3), (None, None)]


async def test_cost_without_a_cap_is_reported_without_warning(tmp_path: Path) -> None:
    """Row U2: The cap is off by default. The session still reports the cost."""
    async with scripted_server(tmp_path, answer_costing(500), settings=settings_with_cap(None)) as stage:
        session = await stage.session()
        assert await end_reasons(stage, session, 2) == ["done"] * 2
        assert not [notification for notification in stage.numbered() if isinstance(notification.event, Warned)]
        assert usage_view(session.ledger).cost == Cost("5.000015", "USD")


async def test_model_that_bills_nothing_is_not_capped(tmp_path: Path) -> None:
    """Row U2: The practice model continues under a cap of 0, without a cost. So does a model that the user priced at
    0."""
    nothing = {"practice/*": Price(Decimal(0), Decimal(0))}
    for number, prices in enumerate(({}, nothing)):
        (folder := tmp_path / str(number)).mkdir()
        async with scripted_server(folder, answer_costing(500), settings=settings_with_cap("0", prices)) as stage:
            session = await stage.session()
            assert await end_reasons(stage, session, 2) == ["done"] * 2
            assert usage_view(session.ledger).cost in (None, Cost("0.00", "USD"))


@pytest.mark.parametrize("cap", [None, "5"])
async def test_model_without_a_price_is_not_asked_under_a_cap(tmp_path: Path, cap: str | None) -> None:
    """Row U2: The server invents no cost. Under a cap, which it could not keep, it does not ask the model, and it
    names what the user can do."""
    async with scripted_server(
        tmp_path, answer_costing(10), answer_costing(10), settings=settings_with_cap(cap, {})
    ) as stage:
        session = await stage.session()
        await session_settings.set_model(session, "compatible", "new")
        assert await end_reasons(stage, session, 1) == ["done" if cap is None else "cost"]
        used = usage_view(session.ledger)
        assert (used.cost, used.complete) == (None, True)
        if cap is None:
            return
        assert stage.model.requests == []
        (said,) = warnings(stage, "cost")
        assert "no known price" in said
        assert "steadyhand.cost.prices, or remove the cap" in said
        stage.registry.context.settings = settings_with_cap(cap, {"compatible/new": Price(Decimal(1), Decimal(1))})
        assert await end_reasons(stage, session, 1) == ["done"]
        assert usage_view(session.ledger).cost == Cost("0.10", "USD")


async def test_billed_cost_of_provider_counts_while_it_is_reported(tmp_path: Path) -> None:
    """Row U2: The cost that OpenRouter reports for each request counts. Once it reports none, the server cannot keep
    a cap."""
    billed: Play = [TextPart("ok"), UsagePart(5, 5, billed="0.85"), Finish("stop")]
    silent: Play = [TextPart("ok"), UsagePart(5, 5), Finish("stop")]
    async with scripted_server(tmp_path, billed, silent, settings=settings_with_cap("1", {})) as stage:
        session = await stage.session()
        await session_settings.set_model(session, "openrouter", "vendor/model")
        assert await end_reasons(stage, session, 1) == ["done"]
        assert usage_view(session.ledger).cost == Cost("0.85", "USD")
        assert len(warnings(stage, "costNear")) == 1
        assert await end_reasons(stage, session, 2) == ["done", "cost"]
        assert "no known price" in warnings(stage, "cost")[0]
        used = usage_view(session.ledger)
        assert (used.cost, used.complete) == (Cost("0.85", "USD"), False)


async def test_request_without_usage_makes_usage_incomplete(tmp_path: Path) -> None:
    """Rows U1, U2: The provider may have billed stopped and withdrawn requests. Usage is incomplete, and under a cap
    the server says so."""
    gate = Gate()
    cut: Play = [TextPart("half")]
    async with scripted_server(
        tmp_path, [gate], cut, answer_costing(1), answer_costing(1), settings=settings_with_cap()
    ) as stage:
        stage.registry.context.requests_again_max = 1
        stage.registry.context.pause = _no_pause
        session = await stage.session()
        accepted = await stage.send(session, "stop me")
        await gate.wait_reached()
        await prompt_queue.cancel(session, accepted.turn_id)
        await stage.ended(session, accepted.turn_id)
        assert await end_reasons(stage, session, 1) == ["done"]
        counts = [record.complete for record in on_disk(session) if isinstance(record, Usage)]
        assert counts == [False, False, True]
        assert usage_view(session.ledger).complete is False
        assert await end_reasons(stage, session, 1) == ["done"]
        said = warnings(stage, "costUncounted")
        assert [text[:2] for text in said] == ["1 ", "2 "]
        assert "is too low" in said[0]


async def test_request_refused_by_provider_leaves_usage_complete(tmp_path: Path) -> None:
    """Row U1: After an answer that only says what is wrong, usage stays complete."""
    async with scripted_server(
        tmp_path, [ProviderError("No.", kind="key")], answer_costing(1), settings=settings_with_cap()
    ) as stage:
        session = await stage.session()
        assert await end_reasons(stage, session, 2) == ["modelFailed", "done"]
        assert usage_view(session.ledger).complete is True


async def test_cost_in_another_currency_is_not_added(tmp_path: Path) -> None:
    """Row U2: The server does not add costs in different currencies. It says that the cap is too low."""
    settings = settings_with_cap("1", {**ONE_EACH, "compatible/*": Price(Decimal(1), Decimal(1), currency="EUR")})
    async with scripted_server(tmp_path, answer_costing(90), answer_costing(30), settings=settings) as stage:
        session = await stage.session()
        assert await end_reasons(stage, session, 1) == ["done"]
        await session_settings.set_model(session, "compatible", "x")
        assert await end_reasons(stage, session, 1) == ["done"]
        used = usage_view(session.ledger)
        assert (used.cost, used.complete) == (Cost("0.30", "EUR"), False)
        assert len(warnings(stage, "costUncounted")) == 1


async def test_new_price_counts_from_the_next_request(tmp_path: Path) -> None:
    """Row U2: A recorded cost keeps the price of its time. A new price counts from the next request on."""
    async with scripted_server(
        tmp_path, answer_costing(10), answer_costing(10), settings=settings_with_cap(None)
    ) as stage:
        session = await stage.session()
        await end_reasons(stage, session, 1)
        stage.registry.context.settings = attrs.evolve(
            settings_with_cap(None), prices={"practice/*": Price(Decimal(3), Decimal(3))}
        )
        await end_reasons(stage, session, 1)
        assert usage_view(session.ledger).cost == Cost("0.40", "USD")
        recorded = [record for record in on_disk(session) if isinstance(record, Usage)]
        assert [(one.cost, one.currency) for one in recorded] == [("0.1", "USD"), ("0.3", "USD")]


async def _no_pause(_: float) -> Any:
    await anyio.lowlevel.checkpoint()
