"""Whole turns near the end of a context window: requests get smaller, an overflow gets a sentence, and no error becomes
history.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.adapters.models.catalog import ModelCatalog
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.records.record import Assistant, ModelName
from steadyhand.domain.settings import CompactionSettings, Settings
from steadyhand.session import context
from steadyhand.session.service import session_settings
from tests.models.streams import KEY
from tests.support.in_process_server import practice_server
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
window_tokens = 1000
patience_s = 60.0
OVERFLOW = "prompt is too long: 1001 tokens > 1000 maximum"


def told(text: str, read: int, wrote: int = 10) -> bytes:
    """An answer of the Messages API that was not streamed."""
    usage = {"input_tokens": read, "output_tokens": wrote}
    content = [{"type": "text", "text": text}]
    return json.dumps({"type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}).encode()


class Small:
    """A provider with one model of a small window. `read`: the tokens it counts for each request; None: too many."""

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


async def test_nearly_full_window_lowers_the_limit_and_a_full_one_stops(tmp_path: Path) -> None:
    """U1, case 86: the window is learned once and shown; the requested limit is what is left; a full window sends
    nothing.

    The sentence says what the user can do; a model with a larger window goes on, and no error is in its history.
    """
    small = Small(970, 1000, 1010)
    workspace = Workspace.under(tmp_path)
    async with ScriptedProvider(answering=small) as served:
        settings = Settings(
            model=ModelName("anthropic", "small"),
            base_url=served.address,
            key_variable="MINE",
            compaction=CompactionSettings(auto=False),
        )
        models = ModelCatalog(lambda: {"MINE": KEY})
        models.connect(lambda: settings, None)
        async with practice_server(workspace, models=models) as server:
            server.registry.context.settings = settings
            with anyio.fail_after(patience_s):
                session = await server.create()
                ends = [(await server.say(session, text, text)).reason for text in ("one", "two", "three")]
                used = usage_view(server.ledger(session))
                await session_settings.set_model(server.registry.sessions[session], "anthropic", "large")
                ends.append((await server.say(session, "four", "four")).reason)
            (warned,) = server.editor.warnings
            said = [entry.record.text for entry in server.ledger(session).said if isinstance(entry.record, Assistant)]
    assert ends == ["done", "done", "modelFailed", "done"]
    assert (used.context, used.window) == (1010, window_tokens)
    first, second, last = (body["max_tokens"] for body in small.bodies)
    assert first <= window_tokens
    assert 1 <= second <= window_tokens - 970
    assert last == 32_000
    assert warned.code == "modelFailed"
    assert "Begin a new session" in warned.text
    assert said == ["Fine."] * 3
    assert warned.text not in json.dumps(small.bodies[-1])
    assert small.listed == 1


async def test_silent_model_list_delays_one_request_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U1, I13: a provider that does not tell its window delays one request, for a bounded time."""
    monkeypatch.setattr(context, "WINDOW_S_MAX", 0.2)
    listed = 0

    def answering(asked: Asked) -> Scripted:
        nonlocal listed
        if asked.method == "GET":
            listed += 1
            return Scripted([anyio.Event()])
        return Scripted([told("Fine.", 10)], headers={"content-type": "application/json"})

    async with ScriptedProvider(answering=answering) as served:
        settings = Settings(model=ModelName("anthropic", "new"), base_url=served.address, key_variable="MINE")
        models = ModelCatalog(lambda: {"MINE": KEY})
        models.connect(lambda: settings, None)
        await models._remote()._client._open()  # loading the library takes longer than the bound of this test
        async with practice_server(Workspace.under(tmp_path), models=models) as server:
            server.registry.context.settings = settings
            with anyio.fail_after(patience_s):
                session = await server.create()
                assert [(await server.say(session, text, text)).reason for text in ("one", "two")] == ["done"] * 2
                assert usage_view(server.ledger(session)).window is None
    assert listed == 1


async def test_overflow_found_by_the_provider_is_not_repeated(tmp_path: Path) -> None:
    """Case 86: a request refused for its length is not repeated; its text is no history, and nothing grows by it."""
    small = Small(None, None, None)
    workspace = Workspace.under(tmp_path)
    async with ScriptedProvider(answering=small) as served:
        settings = Settings(model=ModelName("anthropic", "unlisted"), base_url=served.address, key_variable="MINE")
        models = ModelCatalog(lambda: {"MINE": KEY})
        models.connect(lambda: settings, None)
        async with practice_server(workspace, models=models, requests_again_max=4) as server:
            server.registry.context.settings = settings
            with anyio.fail_after(patience_s):
                session = await server.create()
                ends = [(await server.say(session, text, text)).reason for text in ("one", "two", "three")]
            warned = [warning.text for warning in server.editor.warnings]
    assert ends == ["modelFailed"] * 3
    assert len(small.bodies) == 3
    assert all("Begin a new session" in text for text in warned)
    texts = [block["text"] for message in small.bodies[-1]["messages"] for block in message["content"]]
    assert texts == ["one", "two", "three"]
    assert not any("too long" in json.dumps(body) for body in small.bodies)
