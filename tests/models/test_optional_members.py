"""A provider that refuses an optional member of a request is asked once more without it, and never gets it again.

Each wording was seen, or is the usual one of a framework. The fake provider refuses what has the member and answers
everything else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from steadyhand.domain.model.messages import AssistantMessage, ModelRequest, ProviderError, UsagePart, UserMessage
from steadyhand.session.service import session_settings
from tests.models.dialogue import talking
from tests.models.histories import TOOLS
from tests.models.streams import Dialect, End, Heard, Say, plain, remote, written
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
patience_s = 60.0
HISTORY = (UserMessage("Hi"), AssistantMessage("Hello.", (), "Hm."), UserMessage("And now?"))
REQUEST = ModelRequest("Be good.", TOOLS, HISTORY, output_tokens_max=100, can_call=False)


@attrs.define
class Refusing:
    """`ScriptedProvider(answering=…)`: refuses requests that have a member, wherever it stands."""

    dialect: Dialect
    member: str
    status: int
    body: Any

    def __call__(self, asked: Asked) -> Scripted:
        if f'"{self.member}":' in asked.body.decode():
            told = self.body if isinstance(self.body, str) else json.dumps(self.body)
            if self.status == 200:
                return Scripted([f"data: {told}\n\n".encode()])
            return Scripted([told.encode()], self.status, {"content-type": "application/json"}, "length")
        usage = (100, 7, 64) if self.member != "stream_options" else None
        return Scripted([plain(written(self.dialect, (Say("Hi"), End("stop", usage))))])


def error(message: str, **more: Any) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


EXTRA = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted", "input": {}}
WORDINGS: list[tuple[Dialect, str, int, Any]] = [
    ("chat", "stream_options", 400, error("Unknown parameter: 'stream_options'.", param="stream_options")),
    ("chat", "stream_options", 400, error("Unrecognized request argument supplied: stream_options")),
    ("chat", "stream_options", 400, error("Unsupported parameter", param="stream_options")),
    ("chat", "stream_options", 400, error('json: unknown field "stream_options"')),
    ("chat", "stream_options", 400, error("Stream options can only be defined when `stream=True`.")),
    ("chat", "stream_options", 400, error("Additional properties are not allowed ('stream_options' was unexpected)")),
    ("chat", "stream_options", 400, error('Invalid JSON payload received. Unknown name "stream_options": no field.')),
    ("chat", "stream_options", 400, "extraneous key [stream_options] is not permitted"),
    ("chat", "stream_options", 400, {"detail": "property 'stream_options' is unsupported"}),
    ("chat", "stream_options", 422, {"detail": [{**EXTRA, "loc": ["body", "stream_options"]}]}),
    ("chat", "stream_options", 422, {"message": {"detail": [{**EXTRA, "loc": ["body", "stream_options"]}]}}),
    ("chat", "stream_options", 422, {"error": {"detail": {"error": {"message": "stream_options: not permitted"}}}}),
    ("chat", "stream_options", 200, error("Unknown parameter: 'stream_options'.")),
    ("chat", "tool_choice", 400, error("tool_choice is not supported by this model")),
    ("chat", "reasoning_content", 400, error("messages.1: property 'reasoning_content' is unsupported")),
    ("chat", "reasoning_content", 422, {"detail": [{**EXTRA, "loc": ["body", "messages", 1, "reasoning_content"]}]}),
    ("chat", "max_tokens", 400, error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")),
    ("messages", "cache_control", 400, error("cache_control: Extra inputs are not permitted")),
    ("messages", "tool_choice", 422, {"detail": [{**EXTRA, "loc": ["body", "tool_choice"]}]}),
    ("responses", "include", 400, error("Unknown parameter: 'include'.", param="include")),
    ("responses", "store", 400, error("Unsupported field: store")),
    ("responses", "strict", 422, {"detail": [{**EXTRA, "loc": ["body", "tools", 0, "strict"]}]}),
    ("responses", "max_output_tokens", 400, error("Unsupported parameter: max_output_tokens")),
]


async def hear(model: Any, request: ModelRequest = REQUEST) -> Heard:
    heard = Heard()
    with anyio.fail_after(patience_s):
        async for part in model.ask(request):
            heard.parts.append(part)
    return heard


@pytest.mark.parametrize(
    ("dialect", "member", "status", "body"), WORDINGS, ids=[f"{row[1]}-{number}" for number, row in enumerate(WORDINGS)]
)
async def test_refused_member_is_left_out_once_and_for_all(
    dialect: Dialect, member: str, status: int, body: Any
) -> None:
    """Case 112: asked once more without the member that was refused and with all else; remembered from then on; the
    usage is unknown where it was the member that asks for it."""
    async with ScriptedProvider(answering=Refusing(dialect, member, status, body)) as provider:
        model = remote(dialect, provider.address)
        first = await hear(model)
        assert first.whole
        assert len(provider.asked) == 2
        assert (await hear(model)).whole
        assert len(provider.asked) == 3
        await model.client.close()
    refused, sent, later = (json.loads(asked.body) for asked in provider.asked)
    assert sent == later
    instead = {"max_completion_tokens"} if member == "max_tokens" else set()
    assert set(refused) - set(sent) <= {member}
    assert set(sent) - set(refused) == instead
    assert any(isinstance(part, UsagePart) for part in first.parts) is (member != "stream_options")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("Messages have bad roles")),
        (400, error("Please include at least one message in your store of messages")),
        (401, error("stream_options needs a key")),
        (500, error("stream_options crashed the worker")),
        (400, error("maximum context length is 10 tokens, see max_tokens and stream_options")),
    ],
)
async def test_other_refusal_is_not_asked_again(status: int, body: Any) -> None:
    """Case 112: a refusal that names no optional member, or that is about something else, is one request and ends with
    its sentence."""
    for dialect in ("chat", "responses"):
        refused = Scripted([json.dumps(body).encode()], status, {"content-type": "application/json"}, "length")
        async with ScriptedProvider(refused) as provider:
            model = remote(dialect, provider.address)
            with pytest.raises(ProviderError):
                await hear(model)
            await model.client.close()
        assert len(provider.asked) == 1


async def test_member_refused_whatever_is_left_out_ends_with_the_refusal() -> None:
    """Case 112 [I13]: a provider that refuses whatever it gets is asked once for each member, and no more."""

    def refuse(asked: Asked) -> Scripted:
        names = [name for name in ("stream_options", "tool_choice", "max_tokens") if name in asked.body.decode()]
        told = json.dumps(error(f"Unknown parameter: '{names[0] if names else 'stream_options'}'"))
        return Scripted([told.encode()], 400, {"content-type": "application/json"}, "length")

    async with ScriptedProvider(answering=refuse) as provider:
        model = remote("chat", provider.address)
        with pytest.raises(ProviderError, match="Unknown parameter"):
            await hear(model)
        await model.client.close()
    assert len(provider.asked) == 4


async def test_output_limit_that_is_too_large_becomes_the_stated_one() -> None:
    """Case 112: the Messages API requires a limit; where it names a smaller one than ours, that one is sent."""

    def answer(asked: Asked) -> Scripted:
        if json.loads(asked.body)["max_tokens"] > 8192:
            told = error("max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for m")
            return Scripted([json.dumps(told).encode()], 400, {"content-type": "application/json"}, "length")
        return Scripted([plain(written("messages", (Say("Hi"), End("stop"))))])

    async with ScriptedProvider(answering=answer) as provider:
        model = remote("messages", provider.address)
        for _ in range(2):
            assert (await hear(model, attrs.evolve(REQUEST, output_tokens_max=None))).whole
        await model.client.close()
    assert [json.loads(asked.body)["max_tokens"] for asked in provider.asked] == [32_000, 8192, 8192]


async def test_session_goes_on_without_a_refused_member_and_without_usage(tmp_path: Path) -> None:
    """Case 112: in a session nothing is said or withdrawn, the prefix stays, and the usage is incomplete."""
    refusing = Refusing("chat", "stream_options", 400, error("Unknown parameter: 'stream_options'."))
    async with (
        ScriptedProvider(answering=refusing) as provider,
        talking(Workspace.under(tmp_path), "chat", provider) as talk,
    ):
        session = await talk.server.create()
        for number in range(2):
            assert (await talk.server.say(session, "Hi", f"prompt-{number}")).reason == "done"
        usage = session_settings.usage(talk.server.registry.sessions[session])
        assert talk.warned() == []
    assert (len(provider.asked), usage.complete) == (3, False)
