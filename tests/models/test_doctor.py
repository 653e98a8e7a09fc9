"""The doctor over a whole house: the chosen provider is really asked, within a bound, and no key is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.providers import AllModels
from steadyhand.core.model import Finding
from steadyhand.core.plain import plain
from steadyhand.core.record import ModelName
from steadyhand.core.settings import Settings
from steadyhand.session import diagnosis
from steadyhand.session.diagnosis import diagnose
from steadyhand_protocol import commands, wire
from tests.models.streams import KEY, Ask, End, Say, written
from tests.models.streams import plain as whole
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.turns import Place, Rig, rig

pytestmark = pytest.mark.anyio
patience_s = 20.0


@asynccontextmanager
async def asking(place: Path, settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[Rig]:
    """A house whose settings these are."""
    models = AllModels(lambda: environment)
    models.connect(lambda: settings, None)
    async with rig(Place.under(place), models=models) as house:
        house.house.world.settings = settings
        yield house


def vllm(address: str) -> Settings:
    return Settings(model=ModelName("vllm", "a-model"), base_url=address, key_variable="MINE")


def answering(*answers: Scripted) -> Callable[[Asked], Scripted]:
    waiting = list(answers)

    def answer(asked: Asked) -> Scripted:
        if asked.method == "GET":
            return Scripted([json.dumps({"data": [{"id": "a-model", "max_model_len": 4096}]}).encode()])
        return waiting.pop(0)

    return answer


async def test_it_asks_the_chosen_provider(tmp_path: Path) -> None:
    """P1: key, reachable, model, window, streaming, tool calls, in the wire's shape, and the key is nowhere (E2)."""
    answers = (Say("ready"), End("stop")), (Ask("report_word", ('{"word":"ready"}',)), End("calls"))
    scripted = [Scripted([whole(written("chat", steps))]) for steps in answers]
    async with (
        ScriptedProvider(answering=answering(*scripted)) as served,
        asking(tmp_path, vllm(served.address), {"MINE": KEY}) as house,
    ):
        with anyio.fail_after(patience_s):
            found = plain(await diagnose(house.house))
    told = wire.structure(commands.DoctorResult, found)
    assert [(one.what, one.fine) for one in told.provider] == [
        ("key", True), ("reachable", True), ("model", True), ("window", True), ("streaming", True), ("calls", True),
    ]  # fmt: skip
    assert told.window == 4096
    assert KEY not in json.dumps(found)
    assert [asked.method for asked in served.asked] == ["GET", "POST", "POST"]


async def test_a_provider_s_words_about_the_key_lose_it(tmp_path: Path) -> None:
    """E2: what a provider says against a key is quoted without it; nothing more is asked then."""
    refused = Scripted([json.dumps({"error": {"message": f"no such key {KEY}"}}).encode()], 403, {}, "length")
    async with ScriptedProvider(refused) as served, asking(tmp_path, vllm(served.address), {"MINE": KEY}) as house:
        with anyio.fail_after(patience_s):
            found = plain(await diagnose(house.house))
    assert [one["what"] for one in found["provider"]] == ["key", "reachable"]
    assert "no such key [key]" in found["provider"][1]["text"]
    assert KEY not in json.dumps(found)
    assert {asked.method for asked in served.asked} == {"GET"}


async def test_the_practice_model_says_what_it_is(tmp_path: Path) -> None:
    """P5: nothing is asked, and it does not pass for a language model."""
    async with asking(tmp_path, Settings(), {}) as house:
        (finding,) = (await diagnose(house.house)).provider
    assert (finding.what, finding.fine) == ("model", True)
    assert "practice model is built in" in finding.text
    assert "no language model" in finding.text


async def test_settings_that_lead_nowhere(tmp_path: Path) -> None:
    """P1: a provider without an address or a model is one finding that says what to set."""
    async with asking(tmp_path, Settings(model=ModelName("compatible", "x")), {}) as house:
        (finding,) = (await diagnose(house.house)).provider
    assert (finding.what, finding.fine) == ("model", False)
    assert "steadyhand.model.baseUrl" in finding.text


async def test_it_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: a provider that never ends its answer is given up, and the other findings come all the same."""
    monkeypatch.setattr(diagnosis, "provider_s_max", 0.2)
    async with asking(tmp_path, vllm("http://127.0.0.1:1"), {"MINE": KEY}) as house:
        house.house.world.models = Silent()
        with anyio.fail_after(patience_s):
            found = await diagnose(house.house)
    assert [(one.what, one.fine) for one in found.provider] == [("reachable", False)]
    assert "was not done answering" in found.provider[0].text
    assert found.journal["lock"] == "Owner locks hold."


async def test_it_can_be_cancelled(tmp_path: Path) -> None:
    """wire.md: `$/cancelRequest` works on every command; the connection is let go at once."""
    async with (
        ScriptedProvider(answering=answering(Scripted([anyio.Event()]))) as served,
        asking(tmp_path, vllm(served.address), {"MINE": KEY}) as house,
    ):
        with anyio.fail_after(patience_s):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(diagnose, house.house)
                while len(served.asked) < 2:  # noqa: ASYNC110 - the provider has no event for a request that came
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
            await served.gone.wait()


class Silent(AllModels):
    """Providers of which none is ever done."""

    def __init__(self) -> None:
        super().__init__(dict)

    async def diagnose(self, provider: str, name: str) -> tuple[Finding, ...]:
        await anyio.sleep_forever()
        raise AssertionError

    async def learn_window(self, provider: str, name: str) -> int | None:
        return None
