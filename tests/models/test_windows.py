"""Whole turns near the end of a window: what is asked for shrinks, what cannot fit is said, and no error is history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.adapters.providers import AllModels
from steadyhand.core.record import Assistant, ModelName
from steadyhand.core.settings import Settings
from steadyhand.core.usage import usage_view
from steadyhand.session import desk, world
from tests.models.streams import KEY
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.turns import Place, rig

pytestmark = pytest.mark.anyio
window_tokens = 1000
patience_s = 30.0
OVERFLOW = "prompt is too long: 1001 tokens > 1000 maximum"


def told(text: str, read: int, wrote: int = 10) -> bytes:
    """An answer of the Messages API that was not streamed."""
    usage = {"input_tokens": read, "output_tokens": wrote}
    content = [{"type": "text", "text": text}]
    return json.dumps({"type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}).encode()


class Small:
    """A provider with one model of a small window; `read`: the tokens it counts for each request, None: too many."""

    def __init__(self, *read: int | None) -> None:
        self.read = list(read)
        self.bodies: list[dict[str, Any]] = []
        self.listed = 0

    def __call__(self, asked: Asked) -> Scripted:
        if asked.method == "GET":
            self.listed += 1
            models = [{"id": "small", "max_input_tokens": window_tokens}, {"id": "large", "max_input_tokens": 10**6}]
            return Scripted([json.dumps({"data": models}).encode()])
        self.bodies.append(json.loads(asked.body))
        read = self.read.pop(0)
        if read is None:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": OVERFLOW}}
            return Scripted([json.dumps(error).encode()], 400, {}, "length")
        return Scripted([told("Fine.", read)], headers={"content-type": "application/json"})


async def test_a_nearly_full_window(tmp_path: Path) -> None:
    """U1, case 86: the window is learnt once and shown; the limit asked for is what is left; a full one is not sent.

    The sentence names the ways out; a model with a larger window goes on, and no error stands in its history."""
    small = Small(970, 1000, 1010)
    place = Place.under(tmp_path)
    async with ScriptedProvider(answering=small) as served:
        settings = Settings(model=ModelName("anthropic", "small"), base_url=served.address, key_variable="MINE")
        models = AllModels(lambda: {"MINE": KEY})
        models.connect(lambda: settings, None)
        async with rig(place, models=models) as house:
            house.house.world.settings = settings
            with anyio.fail_after(patience_s):
                session = await house.create()
                ends = [(await house.say(session, text, text)).reason for text in ("one", "two", "three")]
                used = usage_view(house.ledger(session))
                await desk.set_model(house.house.owners[session], "anthropic", "large")
                ends.append((await house.say(session, "four", "four")).reason)
            (warned,) = house.editor.warnings
            said = [entry.record.text for entry in house.ledger(session).said if isinstance(entry.record, Assistant)]
    assert ends == ["done", "done", "modelFailed", "done"]
    assert (used.context, used.window) == (1010, window_tokens)
    first, second, last = (body["max_tokens"] for body in small.bodies)
    assert first <= window_tokens
    assert 1 <= second <= window_tokens - 970
    assert last == 32_000
    assert warned.code == "modelFailed"
    assert "begin a new session" in warned.text
    assert said == ["Fine."] * 3
    assert warned.text not in json.dumps(small.bodies[-1])
    assert small.listed == 1


async def test_a_list_that_never_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U1, I13: a provider that does not say how large its window is delays one request, for a bounded time."""
    monkeypatch.setattr(world, "window_s_max", 0.2)
    listed = 0

    def answering(asked: Asked) -> Scripted:
        nonlocal listed
        if asked.method == "GET":
            listed += 1
            return Scripted([anyio.Event()])
        return Scripted([told("Fine.", 10)], headers={"content-type": "application/json"})

    async with ScriptedProvider(answering=answering) as served:
        settings = Settings(model=ModelName("anthropic", "new"), base_url=served.address, key_variable="MINE")
        models = AllModels(lambda: {"MINE": KEY})
        models.connect(lambda: settings, None)
        async with rig(Place.under(tmp_path), models=models) as house:
            house.house.world.settings = settings
            with anyio.fail_after(patience_s):
                session = await house.create()
                assert [(await house.say(session, text, text)).reason for text in ("one", "two")] == ["done"] * 2
                assert usage_view(house.ledger(session)).window is None
    assert listed == 1


async def test_an_overflow_that_the_provider_finds(tmp_path: Path) -> None:
    """Case 86: refused for its length, a request is not repeated; its text is no history, and nothing grows by it."""
    small = Small(None, None, None)
    place = Place.under(tmp_path)
    async with ScriptedProvider(answering=small) as served:
        settings = Settings(model=ModelName("anthropic", "unlisted"), base_url=served.address, key_variable="MINE")
        models = AllModels(lambda: {"MINE": KEY})
        models.connect(lambda: settings, None)
        async with rig(place, models=models, requests_again_max=4) as house:
            house.house.world.settings = settings
            with anyio.fail_after(patience_s):
                session = await house.create()
                ends = [(await house.say(session, text, text)).reason for text in ("one", "two", "three")]
            warned = [warning.text for warning in house.editor.warnings]
    assert ends == ["modelFailed"] * 3
    assert len(small.bodies) == 3
    assert all("begin a new session" in text for text in warned)
    texts = [block["text"] for message in small.bodies[-1]["messages"] for block in message["content"]]
    assert texts == ["one", "two", "three"]
    assert not any("too long" in json.dumps(body) for body in small.bodies)
