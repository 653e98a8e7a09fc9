"""DeepSeek's prefix completion in a whole turn: the request for the rest of an answer, and who never gets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from steadyhand.adapters.models.http import HttpClient
from steadyhand.adapters.models.remote import Access, RemoteModel
from steadyhand.domain.model.provider_profiles import PROFILES
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.records.record import Assistant, ModelName
from steadyhand.domain.settings import Settings
from tests.models.streams import KEY, End, Say, Think, plain, written
from tests.support.in_process_server import practice_server
from tests.support.scripted_provider import CUT, Asked, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
patience_s = 60.0

CUT_SHORT = (Think("Hm."), Say("one, two"), End("length", (100, 10, 0)))
BUSY = Scripted([b"{}"], 503, {}, "length")


def answer(*steps: Any) -> Scripted:
    return Scripted([plain(written("chat", steps))])


@attrs.frozen
class Told:
    """What one turn became."""

    reason: str
    text: str
    warned: list[str]
    asked: list[Asked]
    billed: tuple[int, int]


async def turn(folder: Path, *answers: Scripted, provider: str = "deepseek") -> Told:
    """One turn with a provider, which `model.baseUrl` addresses."""
    async with ScriptedProvider(*answers) as served:
        client = HttpClient()
        access = Access(PROFILES[provider], "deepseek-flash", lambda: {"DEEPSEEK_API_KEY": KEY}, f"{served.address}/v1")
        model = RemoteModel(access, client)
        with anyio.fail_after(patience_s):
            async with practice_server(
                Workspace.under(folder), models=lambda _, __: model, requests_again_max=2
            ) as server:
                settings = Settings(model=ModelName(provider, "deepseek-flash"), mode="auto", continuation=True)
                server.registry.context.settings = settings
                server.registry.context.pause = anyio.sleep  # never reached: the request for a rest is not repeated
                session = await server.create()
                ended = await server.say(session, "Count.")
                ledger = server.ledger(session)
                texts = [said.record.text for said in ledger.said if isinstance(said.record, Assistant)]
                used = usage_view(ledger).billed
                warned = [warning.text for warning in server.editor.warnings]
        await client.close()
    return Told(ended.reason, "|".join(texts), warned, served.asked, (used.input, used.output))


async def test_rest_is_requested_by_prefix_completion(tmp_path: Path) -> None:
    """P2: the beta address, the same messages, behind them the answer as a prefix with its reasoning, and no tools."""
    told = await turn(tmp_path, answer(*CUT_SHORT), answer(Say(", three"), End("stop", (110, 4, 64))))
    assert (told.reason, told.text, told.warned) == ("done", "one, two, three", [])
    assert told.billed == (210, 14)
    first, rest = (json.loads(asked.body) for asked in told.asked)
    assert [asked.target for asked in told.asked] == ["/v1/chat/completions", "/beta/chat/completions"]
    assert rest["messages"][:-1] == first["messages"]
    assert rest["messages"][-1] == {
        "role": "assistant", "content": "one, two", "reasoning_content": "Hm.", "prefix": True,
    }  # fmt: skip
    assert "tools" in first
    assert "tools" not in rest
    assert {asked.headers["authorization"] for asked in told.asked} == {f"Bearer {KEY}"}


async def test_request_for_the_rest_is_not_repeated(tmp_path: Path) -> None:
    """P2, P3: if the provider is busy or the rest is cut, the request is not repeated, though another request would be;
    what came is kept."""
    for number, (refused, reason, text) in enumerate(
        [(BUSY, "length", "one, two"), (Scripted([plain(written("chat", (Say(", th"),))), CUT]), "cut", "one, two, th")]
    ):
        told = await turn(tmp_path / str(number), answer(*CUT_SHORT), refused)
        assert (told.reason, told.text, len(told.asked), len(told.warned)) == (reason, text, 2, 1)


async def test_provider_without_prefix_completion_is_not_asked_for_a_rest(tmp_path: Path) -> None:
    """P2: no other provider is known to continue an answer, so the turn ends with the cut answer."""
    told = await turn(tmp_path, answer(*CUT_SHORT), provider="compatible")
    assert (told.reason, told.text, len(told.asked)) == ("length", "one, two", 1)
