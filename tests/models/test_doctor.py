"""The doctor of the whole server: it really asks the chosen provider, within a limit, and shows no key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.models.catalog import ModelCatalog
from steadyhand.domain.model.messages import Finding
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.serialize import to_plain
from steadyhand.session.service import doctor
from steadyhand.session.service.doctor import diagnose
from steadyhand_protocol import commands, wire
from tests.models.streams import KEY, Ask, End, Say, written
from tests.models.streams import plain as whole
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
patience_s = 60.0


@asynccontextmanager
async def asking(folder: Path, settings: Settings, environment: Mapping[str, str]) -> AsyncIterator[InProcessServer]:
    """A server with these settings."""
    models = ModelCatalog(lambda: environment)
    models.connect(lambda: settings, None)
    async with practice_server(Workspace.under(folder), models=models) as server:
        server.registry.context.settings = settings
        yield server


def vllm(address: str) -> Settings:
    return Settings(model=ModelName("vllm", "a-model"), base_url=address, key_variable="MINE")


def answering(*answers: Scripted) -> Callable[[Asked], Scripted]:
    waiting = list(answers)

    def answer(asked: Asked) -> Scripted:
        if asked.method == "GET":
            return Scripted([json.dumps({"data": [{"id": "a-model", "max_model_len": 4096}]}).encode()])
        return waiting.pop(0)

    return answer


async def test_doctor_asks_the_chosen_provider_and_hides_the_key(tmp_path: Path) -> None:
    """P1: key, reachable, model, window, streaming, tool calls, in the shape of the protocol, and the key is nowhere
    (E2)."""
    answers = (Say("ready"), End("stop")), (Ask("report_word", ('{"word":"ready"}',)), End("calls"))
    scripted = [Scripted([whole(written("chat", steps))]) for steps in answers]
    async with (
        ScriptedProvider(answering=answering(*scripted)) as served,
        asking(tmp_path, vllm(served.address), {"MINE": KEY}) as server,
    ):
        with anyio.fail_after(patience_s):
            found = to_plain(await diagnose(server.registry.context))
    told = wire.structure(commands.DoctorResult, found)
    assert [(one.what, one.fine) for one in told.provider] == [
        ("key", True), ("reachable", True), ("model", True), ("window", True), ("streaming", True), ("calls", True),
    ]  # fmt: skip
    assert told.window == 4096
    assert KEY not in json.dumps(found)
    assert [asked.method for asked in served.asked] == ["GET", "POST", "POST"]


async def test_doctor_quotes_a_key_error_without_the_key(tmp_path: Path) -> None:
    """E2: the doctor quotes what a provider says against a key without the key; it asks nothing more then."""
    refused = Scripted([json.dumps({"error": {"message": f"no such key {KEY}"}}).encode()], 403, {}, "length")
    async with ScriptedProvider(refused) as served, asking(tmp_path, vllm(served.address), {"MINE": KEY}) as server:
        with anyio.fail_after(patience_s):
            found = to_plain(await diagnose(server.registry.context))
    told = wire.structure(commands.DoctorResult, found)
    assert [one.what for one in told.provider] == ["key", "reachable"]
    assert "no such key [key]" in told.provider[1].text
    assert KEY not in json.dumps(found)
    assert {asked.method for asked in served.asked} == {"GET"}


async def test_doctor_says_that_the_practice_model_is_no_language_model(tmp_path: Path) -> None:
    """P5: nothing is requested, and it is not presented as a language model."""
    async with asking(tmp_path, Settings(), {}) as server:
        (finding,) = (await diagnose(server.registry.context)).provider
    assert (finding.what, finding.fine) == ("model", True)
    assert "practice model is built in" in finding.text
    assert "not a language model" in finding.text


async def test_doctor_says_which_setting_is_missing(tmp_path: Path) -> None:
    """P1: a provider without an address or a model gives one finding that says what to set."""
    async with asking(tmp_path, Settings(model=ModelName("compatible", "x")), {}) as server:
        (finding,) = (await diagnose(server.registry.context)).provider
    assert (finding.what, finding.fine) == ("model", False)
    assert "steadyhand.model.baseUrl" in finding.text


async def test_doctor_gives_up_a_provider_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13: the doctor gives up a provider that never ends its answer, and the other findings still come."""
    monkeypatch.setattr(doctor, "PROVIDER_S_MAX", 0.2)
    async with asking(tmp_path, vllm("http://127.0.0.1:1"), {"MINE": KEY}) as server:
        server.registry.context.models = Silent()
        with anyio.fail_after(patience_s):
            found = await diagnose(server.registry.context)
    assert [(one.what, one.fine) for one in found.provider] == [("reachable", False)]
    assert "did not finish its answer" in found.provider[0].text
    assert found.journal["lock"] == "Session locks work."


async def test_doctor_can_be_cancelled(tmp_path: Path) -> None:
    """docs/protocol.md: `$/cancelRequest` works for every command; the connection is closed at once."""
    async with (
        ScriptedProvider(answering=answering(Scripted([anyio.Event()]))) as served,
        asking(tmp_path, vllm(served.address), {"MINE": KEY}) as server,
    ):
        with anyio.fail_after(patience_s):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(diagnose, server.registry.context)
                while len(served.asked) < 2:  # noqa: ASYNC110 - the provider has no event for a request that came
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
            await served.gone.wait()


class Silent(ModelCatalog):
    """Providers that never finish."""

    def __init__(self) -> None:
        super().__init__(dict)

    async def diagnose(self, provider: str, name: str) -> tuple[Finding, ...]:
        await anyio.sleep_forever()
        raise AssertionError

    async def learn_window(self, provider: str, name: str) -> int | None:
        return None
