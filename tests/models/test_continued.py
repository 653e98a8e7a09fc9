"""DeepSeek's prefix completion in a whole turn: what the request for the rest looks like, and who is not asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from steadyhand.adapters.http_client import HttpClient
from steadyhand.adapters.model_remote import Access, RemoteModel
from steadyhand.core.profiles import PROFILES
from steadyhand.core.record import Assistant, ModelName
from steadyhand.core.settings import Settings
from steadyhand.core.usage import usage_view
from tests.models.streams import KEY, End, Say, Think, plain, written
from tests.support.scripted_provider import CUT, Asked, Scripted, ScriptedProvider
from tests.support.turns import Place, rig

pytestmark = pytest.mark.anyio
patience_s = 30.0

CUT_SHORT = (Think("Hm."), Say("one, two"), End("length", (100, 10, 0)))
BUSY = Scripted([b"{}"], 503, {}, "length")


def answer(*steps: Any) -> Scripted:
    return Scripted([plain(written("chat", steps))])


@attrs.frozen
class Told:
    """What came of one turn."""

    reason: str
    text: str
    warned: list[str]
    asked: list[Asked]
    billed: tuple[int, int]


async def turn(folder: Path, *answers: Scripted, provider: str = "deepseek") -> Told:
    """One turn with a provider, found by `model.baseUrl`."""
    async with ScriptedProvider(*answers) as served:
        client = HttpClient()
        access = Access(PROFILES[provider], "deepseek-flash", lambda: {"DEEPSEEK_API_KEY": KEY}, f"{served.address}/v1")
        model = RemoteModel(access, client)
        with anyio.fail_after(patience_s):
            async with rig(Place.under(folder), models=lambda _, __: model, requests_again_max=2) as house:
                settings = Settings(model=ModelName(provider, "deepseek-flash"), mode="auto", continuation=True)
                house.house.world.settings = settings
                house.house.world.pause = anyio.sleep  # never reached: a rest is not repeated
                session = await house.create()
                ended = await house.say(session, "Count.")
                ledger = house.ledger(session)
                texts = [said.record.text for said in ledger.said if isinstance(said.record, Assistant)]
                used = usage_view(ledger).billed
                warned = [warning.text for warning in house.editor.warnings]
        await client.close()
    return Told(ended.reason, "|".join(texts), warned, served.asked, (used.input, used.output))


async def test_a_rest_by_prefix_completion(tmp_path: Path) -> None:
    """P2: the beta address, the same messages, the answer behind them as a prefix with its reasoning, and no tools."""
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


async def test_a_rest_is_not_asked_for_again(tmp_path: Path) -> None:
    """P2, P3: busy or cut, the rest is not repeated, though another request would be; what came is kept."""
    for number, (refused, reason, text) in enumerate(
        [(BUSY, "length", "one, two"), (Scripted([plain(written("chat", (Say(", th"),))), CUT]), "cut", "one, two, th")]
    ):
        told = await turn(tmp_path / str(number), answer(*CUT_SHORT), refused)
        assert (told.reason, told.text, len(told.asked), len(told.warned)) == (reason, text, 2, 1)


async def test_who_cannot_is_not_asked(tmp_path: Path) -> None:
    """P2: of other providers none is known to go on with an answer, so the turn ends as it was cut."""
    told = await turn(tmp_path, answer(*CUT_SHORT), provider="compatible")
    assert (told.reason, told.text, len(told.asked)) == ("length", "one, two", 1)
