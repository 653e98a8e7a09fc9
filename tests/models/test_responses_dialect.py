"""The Responses dialect against a provider that holds clients to its rules (row P6)."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.adapters.models.remote import RemoteModel
from steadyhand.adapters.models.remote_models import ModelSettings, RemoteModels
from steadyhand.adapters.models.responses import responses_body
from steadyhand.domain.model.messages import AssistantMessage, ModelRequest, OutgoingCall, ReplyMessage, UserMessage
from steadyhand.domain.model.provider_profiles import PROFILES
from steadyhand.domain.model.transcript import Invalid
from steadyhand.domain.settings import DialectSetting
from tests.models.dialogue import StruckClient, Talk, talking
from tests.models.fake_responses import FakeResponses
from tests.models.histories import HISTORY, REQUEST, call_id
from tests.models.streams import KEY, Ask, End, Say, remote
from tests.support.scripted_provider import ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
WRITE = (Say("I write."), Ask("write_file", ('{"path":"a.txt",', '"content":"a"}'), "call_9"), End("calls"))
TWO = (Ask("list_files", (), "call_1"), Ask("read_file", ('{"path":"a.txt"}',), "call_2"), End("calls"))
DONE = (Say("Done."), End("stop"))


def model_at(provider: ScriptedProvider, name: str = "gpt-5.1", word: str = "openai") -> RemoteModel:
    access = attrs.evolve(
        remote("responses", f"{provider.address}/v1").access, profile=PROFILES[word].in_dialect("responses"), name=name
    )
    access = attrs.evolve(access, environment=lambda: {PROFILES[word].key_variable or "": KEY})
    return RemoteModel(access, StruckClient(provider))


async def say(talk: Talk, session: str, *prompts: str) -> list[str]:
    return [(await talk.server.say(session, prompt, f"{prompt}-id")).reason for prompt in prompts]


def kinds(body: dict[str, Any]) -> list[str]:
    return [item.get("role") or item["type"] for item in body["input"]]


async def test_turns_with_calls_keep_to_the_rules_of_the_provider(tmp_path: Path) -> None:
    """P6, T1, I16: items go out paired, one output for each call id; encrypted reasoning goes back in its place, also
    after a restart. The provider refuses nothing."""
    workspace, fake = Workspace.under(tmp_path), FakeResponses([WRITE, TWO, DONE, DONE, DONE])
    async with ScriptedProvider(answering=fake) as provider:
        async with talking(workspace, "responses", provider, model=model_at(provider)) as talk:
            session = await talk.server.create()
            assert await say(talk, session, "Write", "And now?") == ["done", "done"]
            assert talk.warned() == []
        async with talking(workspace, "responses", provider, model=model_at(provider), run=2) as talk:
            await talk.server.open(session)
            assert await say(talk, session, "After a restart") == ["done"]
    assert workspace.files() == {"a.txt": "a"}
    assert fake.refused == []
    assert kinds(fake.bodies[2]) == [
        "user", "reasoning", "assistant", "function_call", "function_call_output",
        "reasoning", "function_call", "function_call", "function_call_output", "function_call_output",
    ]  # fmt: skip
    last = fake.bodies[-1]["input"]
    assert [item["encrypted_content"] for item in last if item["type"] == "reasoning"] == fake.given[:4]
    for before, body in zip(fake.bodies, fake.bodies[1:], strict=False):
        assert body["input"][: len(before["input"])] == before["input"]


async def test_encrypted_reasoning_goes_only_to_the_model_that_gave_it(tmp_path: Path) -> None:
    """P6: another model, another provider and another address get the texts and calls, and no encrypted reasoning."""
    workspace, fake = Workspace.under(tmp_path), FakeResponses([WRITE, DONE])
    async with ScriptedProvider(answering=fake) as provider:
        async with talking(workspace, "responses", provider, model=model_at(provider)) as talk:
            session = await talk.server.create()
            assert await say(talk, session, "Write") == ["done"]
        others: list[tuple[str, RemoteModel, ScriptedProvider]] = []
        async with ScriptedProvider(answering=FakeResponses([DONE])) as elsewhere:
            others = [
                ("another model", model_at(provider, name="gpt-5-mini"), provider),
                ("another provider", model_at(provider, word="openrouter"), provider),
                ("another address", model_at(elsewhere), elsewhere),
            ]
            for run, (what, model, at) in enumerate(others, 2):
                fake.answers = [DONE]
                async with talking(workspace, "responses", at, model=model, run=run) as talk:
                    await talk.server.open(session)
                    assert await say(talk, session, what) == ["done"]
                sent = json.loads(at.asked[-1].body)["input"]
                ours = [item for item in sent if item["type"] == "reasoning"]
                assert ours == [], what
                assert [item["type"] for item in sent][:4] == [
                    "message",
                    "message",
                    "function_call",
                    "function_call_output",
                ]
        fake.answers = [DONE]
        async with talking(workspace, "responses", provider, model=model_at(provider), run=9) as talk:
            await talk.server.open(session)
            assert await say(talk, session, "back again") == ["done"]
    assert [item["encrypted_content"] for item in fake.bodies[-1]["input"] if item["type"] == "reasoning"][:2] == [
        "encrypted-0", "encrypted-1",
    ]  # fmt: skip
    assert fake.refused == []


async def test_refused_reasoning_is_left_out_and_the_turn_goes_on(tmp_path: Path) -> None:
    """P6, cases 94, 95: a provider that cannot decrypt its own reasoning any more is asked once more without it, with
    one warning; nothing runs twice."""
    workspace, fake = Workspace.under(tmp_path), FakeResponses([WRITE, DONE, DONE])
    async with (
        ScriptedProvider(answering=fake) as provider,
        talking(workspace, "responses", provider, model=model_at(provider)) as talk,
    ):
        session = await talk.server.create()
        assert await say(talk, session, "Write") == ["done"]
        fake.forgets = True
        assert await say(talk, session, "And now?") == ["done"]
        ((code, text),) = talk.warned()
    assert code == "withoutReasoning"
    assert "could not be verified" in text
    assert "reasoning" not in kinds(fake.bodies[-1])
    assert fake.refused == ["The encrypted content could not be verified"]


def body_of(*messages: Any) -> bytes:
    return responses_body(PROFILES["openai"].in_dialect("responses"), "m", ModelRequest("", (), messages), None)


def test_body_with_a_call_that_is_not_answered_once_is_a_defect() -> None:
    """P6, T1: the last check before the bytes: no call without its one output, no output without its call."""
    call = AssistantMessage("", (OutgoingCall(call_id(1), "a", "{}"),))
    reply = ReplyMessage(call_id(1), "ok", "returned")
    assert b"function_call_output" in body_of(UserMessage("Hi"), call, reply)
    wrong = [
        (UserMessage("Hi"), call), (UserMessage("Hi"), reply), (call, reply, reply), (call, UserMessage("Hi"), reply),
        (call, reply, call, reply),
    ]  # fmt: skip
    for messages in wrong:
        with pytest.raises(Invalid):
            body_of(*messages)


SEALED = json.dumps(
    {
        "origin": "openai@api.openai.com",
        "model": "gpt-5.1",
        "items": [{"type": "reasoning", "summary": [], "encrypted_content": "Z2Vo"}, "call", 0, "call"],
    }
)


@pytest.mark.parametrize(
    "seal", ["", "7", "[]", "{}", '{"origin":"openai@api.openai.com","model":"gpt-5.1"}', SEALED[:-1], "null"]
)
def test_seal_that_cannot_be_read_is_left_out(seal: str) -> None:
    """P6: a damaged seal, or one of another dialect, is no reasoning; texts and calls go out all the same."""
    first, second, *rest = HISTORY
    assert isinstance(second, AssistantMessage)
    request = attrs.evolve(REQUEST, messages=(first, attrs.evolve(second, sealed=seal), *rest))
    assert remote("responses").make_body(request) == remote("responses").make_body(REQUEST)
    good = attrs.evolve(REQUEST, messages=(first, attrs.evolve(second, sealed=SEALED), *rest))
    assert b"Z2Vo" in remote("responses").make_body(good)
    assert b"Z2Vo" not in remote("responses").make_body(attrs.evolve(good, thinking=False))


def test_setting_chooses_the_dialect_of_the_configured_provider_only() -> None:
    """P6: `model.dialect` counts for the provider of the settings; `auto` is its usual one. Members, address and key
    header follow."""
    paths: dict[DialectSetting, str] = {
        "auto": "/chat/completions",
        "responses": "/responses",
        "messages": "/v1/messages",
    }
    for dialect, path in paths.items():
        models = RemoteModels(partial(ModelSettings, "deepseek", dialect=dialect), dict)
        configured, other = models.model("deepseek", "x"), models.model("openai", "x")
        assert configured._url(REQUEST).endswith(path)
        assert other._url(REQUEST) == "https://api.openai.com/v1/chat/completions"
        body = json.loads(configured.make_body(attrs.evolve(REQUEST, output_tokens_max=5)))
        assert ("input" in body) is (dialect == "responses")
        assert ("max_output_tokens" in body) is (dialect == "responses")
        assert configured.can_continue is (dialect == "auto")
    assert models.model("deepseek", "x").address == "https://api.deepseek.com/anthropic"


@pytest.mark.parametrize("provider", PROFILES)
def test_every_provider_has_every_dialect(provider: str) -> None:
    """P6: each profile gives a request in each dialect; what belongs to its usual one is not in another."""
    usual = PROFILES[provider]
    assert usual.in_dialect("auto") is usual
    assert usual.in_dialect(usual.dialect) is usual
    for dialect in ("chat", "messages", "responses"):
        profile = usual.in_dialect(dialect)
        assert profile.dialect == dialect
        assert profile.dialect == usual.dialect or (profile.extra, profile.reasoning_member) == (None, None)
        assert (profile.output_tokens_default is not None) is (dialect == "messages")
