"""Requests as bytes: golden for each provider, stable from one to the next, within the providers' rules.

The golden files are bodies as they go out, and a line end. A wanted change is written with
`STEADYHAND_WRITE_GOLDEN=1`, and looked at in the diff.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.adapters.http_client import HttpClient
from steadyhand.adapters.model_body import Raw, body_of, text_of
from steadyhand.adapters.model_remote import Access, RemoteModel, estimated_tokens, output_tokens_floor
from steadyhand.core.model import (
    AskedCall,
    AssistantMessage,
    ModelRequest,
    ModelTrouble,
    OutMessage,
    ReplyMessage,
    UserMessage,
)
from steadyhand.core.profiles import PROFILES, KnownModel
from tests.models.histories import HISTORY, REQUEST, SEALED, SYSTEM, TOOLS, call_id

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("STEADYHAND_WRITE_GOLDEN") == "1"
providers = pytest.mark.parametrize("provider", PROFILES)


def model_of(provider: str, **more: Any) -> RemoteModel:
    profile = attrs.evolve(PROFILES[provider], **more)
    base_url = None if profile.address else "http://127.0.0.1:1/v1"
    return RemoteModel(Access(profile, profile.model or "some-model", dict, base_url), HttpClient())


def body(provider: str, request: ModelRequest = REQUEST, **more: Any) -> dict[str, Any]:
    told = json.loads(model_of(provider, **more).body(request))
    assert isinstance(told, dict)
    return told


@providers
def test_the_golden_body(provider: str) -> None:
    """A whole history goes out in exactly these bytes (P1, P4)."""
    made = model_of(provider).body(attrs.evolve(REQUEST, output_tokens_max=5000)) + b"\n"
    path = GOLDEN / f"{provider}.json"
    if WRITE:
        path.write_bytes(made)
    assert made == path.read_bytes()


def test_the_golden_bodies_of_what_is_asked_seldom() -> None:
    """Without reasoning, going on with an answer, and with sealed reasoning: the bytes (P2, case 95)."""
    continued = attrs.evolve(REQUEST, messages=(*HISTORY, AssistantMessage("It is", (), "So.")), continues=True)
    first, second, *rest = HISTORY
    assert isinstance(second, AssistantMessage)
    sealed = attrs.evolve(REQUEST, messages=(first, attrs.evolve(second, sealed=SEALED), *rest))
    for name, provider, request in (
        ("deepseek-without-thinking", "deepseek", attrs.evolve(REQUEST, thinking=False)),
        ("deepseek-continued", "deepseek", continued),
        ("anthropic-without-thinking", "anthropic", attrs.evolve(REQUEST, thinking=False)),
        ("anthropic-sealed", "anthropic", sealed),
    ):
        made = model_of(provider).body(request) + b"\n"
        path = GOLDEN / f"{name}.json"
        if WRITE:
            path.write_bytes(made)
        assert made == path.read_bytes(), name


@providers
def test_schemas_and_tools(provider: str) -> None:
    """Tools stand first and sorted by name, and their schemas go out as they are, character by character (P4)."""
    text = model_of(provider).body(REQUEST).decode()
    assert text.index('"tools"') < text.index('"messages"')
    assert text.index('"read_file"') < text.index('"write_file"')
    assert all(tool.parameters in text for tool in TOOLS)
    again = attrs.evolve(REQUEST, tools=tuple(reversed(TOOLS)))
    assert model_of(provider).body(again).decode() == text
    assert "tools" not in body(provider, attrs.evolve(REQUEST, tools=()))


@providers
def test_tools_that_may_not_be_called(provider: str) -> None:
    """An aside keeps the tools, so that what stands before the messages is the same, and says that none may be called
    (P4)."""
    aside = model_of(provider).body(attrs.evolve(REQUEST, may_call=False))
    assert _stem(aside) == _stem(model_of(provider).body(REQUEST))
    told = json.loads(aside)["tool_choice"]
    assert told == ({"type": "none"} if provider == "anthropic" else "none")
    assert "tool_choice" not in body(provider)
    assert "tool_choice" not in body(provider, attrs.evolve(REQUEST, may_call=False, tools=()))


def _stem(made: bytes) -> bytes:
    """A body up to the end of its last message's last block: what may only grow."""
    text = made.decode()
    at = text.index('"messages":')
    depth, quoted, end = 0, False, 0
    skip = False
    for place in range(at + len('"messages":'), len(text)):
        char = text[place]
        if quoted:
            if skip:
                skip = False
            elif char == "\\":
                skip = True
            elif char == '"':
                quoted = False
            continue
        if char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
            if depth == 0:
                end = place
                break
    return re.sub(r"[\]}]*$", "", text[:end]).encode()


@providers
def test_each_body_begins_with_the_one_before(provider: str) -> None:
    """While the history grows, each request's bytes up to the end of its messages begin the next one's (P4, T5)."""
    model = model_of(provider)
    ends = [at for at in range(1, len(HISTORY) + 1) if not isinstance(HISTORY[at - 1], AssistantMessage)]
    before = b""
    for end in ends:
        if isinstance(HISTORY[end - 1], ReplyMessage) and isinstance(HISTORY[end], ReplyMessage):
            continue
        stem = _stem(model.body(attrs.evolve(REQUEST, messages=HISTORY[:end], output_tokens_max=4000 + end)))
        assert stem.startswith(before), end
        assert len(stem) > len(before)
        before = stem


texts = st.text(max_size=30).filter(str.strip)
asked = st.lists(st.tuples(texts, texts), max_size=3)
turns = st.lists(st.tuples(texts, texts | st.just(""), asked, st.none() | texts), min_size=1, max_size=6)


@providers
@given(told=turns)
def test_any_history_grows_by_its_end_alone(
    provider: str, told: list[tuple[str, str, list[tuple[str, str]], Any]]
) -> None:
    """The same for histories of any text, calls and reasoning (P4)."""
    model, messages, before, number = model_of(provider), list[OutMessage](), b"", 0
    for prompt, said, calls, reasoning in told:
        messages.append(UserMessage(prompt))
        stem = _stem(model.body(attrs.evolve(REQUEST, messages=tuple(messages))))
        assert stem.startswith(before)
        before = stem
        made = [AskedCall(call_id(number + at), "a", json.dumps({"x": x})) for at, (x, _) in enumerate(calls)]
        number += len(made)
        messages.append(AssistantMessage(said, tuple(made), reasoning))
        messages += [
            ReplyMessage(call.call_id, reply, "returned") for call, (_, reply) in zip(made, calls, strict=True)
        ]
        if made:
            stem = _stem(model.body(attrs.evolve(REQUEST, messages=tuple(messages))))
            assert stem.startswith(before)
            before = stem


@providers
def test_every_call_has_its_one_reply(provider: str) -> None:
    """Each call stands with one reply behind it, in order, before anything else; ids and names fit the rules [I16]."""
    told = body(provider)["messages"]
    owed: list[str] = []
    for message in told:
        blocks = message["content"] if isinstance(message["content"], list) else [message]
        for block in blocks:
            if block.get("role") == "tool" or block.get("type") == "tool_result":
                assert owed.pop(0) == block.get("tool_call_id", block.get("tool_use_id"))
                assert block["content"].strip()
            else:
                assert not owed or block.get("type") == "tool_use"
            owed += [call["id"] for call in block.get("tool_calls") or []]
            owed += [block["id"]] if block.get("type") == "tool_use" else []
    assert owed == []
    text = json.dumps(told)
    ids = re.findall(r'"(?:id|tool_call_id|tool_use_id)": "([^"]*)"', text)
    assert len(ids) == 6
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", id) for id in ids)


def test_anthropic_turns_alternate_with_results_first() -> None:
    """Neighbours of one role are one message, results before text, no empty block, arguments as written (case 17)."""
    told = body("anthropic")["messages"]
    assert [message["role"] for message in told] == ["user", "assistant"] * 3 + ["user"]
    kinds = [[block["type"] for block in message["content"]] for message in told]
    assert kinds == [
        ["text"], ["tool_use", "tool_use"], ["tool_result", "tool_result"], ["text"],
        ["text", "text"], ["text", "tool_use"], ["tool_result", "text"],
    ]  # fmt: skip
    assert told[2]["content"][1]["content"] == "(no output)"
    assert b'"input":{"path":"a.py","limit":1.10}' in model_of("anthropic").body(REQUEST)
    assert all(block.get("text", "x").strip() for message in told for block in message["content"])


@providers
def test_empty_texts_do_not_go_out(provider: str) -> None:
    """A blank message is left out; an empty reply says so; neighbours still stand (case 17)."""
    blank = (UserMessage("Hi"), AssistantMessage("  "), UserMessage(" \n"), UserMessage("Go on"))
    told = body(provider, attrs.evolve(REQUEST, messages=blank))["messages"]
    said = json.dumps([message for message in told if message["role"] != "system"])
    assert "Hi" in said
    assert "Go on" in said
    assert '"  "' not in said
    assert "assistant" not in said
    assert "(no output)" in json.dumps(body(provider)["messages"])


def test_reasoning_goes_back_as_deepseek_wants_it() -> None:
    """Every assistant message carries `reasoning_content`, word by word, an empty one too (P1, cases 94, 95)."""
    told = [message for message in body("deepseek")["messages"] if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in told] == ["I need both.", "Nothing more.", ""]


@pytest.mark.parametrize(
    ("provider", "member"),
    [
        ("openrouter", "reasoning"), ("ollama", "reasoning"), ("vllm", "reasoning"), ("llamacpp", "reasoning_content"),
        ("openai", None), ("compatible", None),
    ],
)  # fmt: skip
def test_reasoning_of_others(provider: str, member: str | None) -> None:
    """Others get it under their name where there was some, or not at all (P1)."""
    told = [message for message in body(provider)["messages"] if message["role"] == "assistant"]
    found = [set(message) - {"role", "content", "tool_calls"} for message in told]
    assert found == ([{member}, {member}, set()] if member else [set(), set(), set()])


def test_without_thinking() -> None:
    """What is asked without reasoning says so in the provider's words, behind the messages (case 94)."""
    off = attrs.evolve(REQUEST, thinking=False)
    assert body("deepseek", off)["thinking"] == {"type": "disabled"}
    assert body("anthropic", off)["thinking"] == {"type": "disabled"}
    assert body("openrouter", off)["reasoning"] == {"enabled": False}
    assert body("openai", off) == body("openai")
    on, without = model_of("deepseek").body(REQUEST), model_of("deepseek").body(off)
    assert _stem(on) == _stem(without)


def test_going_on_with_an_answer() -> None:
    """The last message goes out as a prefix, with its reasoning, without tools, to the beta address (P2)."""
    model = model_of("deepseek")
    request = attrs.evolve(REQUEST, messages=(*HISTORY, AssistantMessage("It is", (), "So.")), continues=True)
    told = json.loads(model.body(request))
    assert told["messages"][-1] == {
        "role": "assistant", "content": "It is", "reasoning_content": "So.", "prefix": True,
    }  # fmt: skip
    assert "tools" not in told
    assert model._url(request) == "https://api.deepseek.com/beta/chat/completions"
    assert model._url(REQUEST) == "https://api.deepseek.com/chat/completions"
    assert model.can_continue
    assert not any(model_of(provider).can_continue for provider in PROFILES if provider != "deepseek")
    access = attrs.evolve(model.access, base_url="http://127.0.0.1:1/v1")
    assert RemoteModel(access, HttpClient())._url(request) == "http://127.0.0.1:1/beta/chat/completions"


@pytest.mark.parametrize(
    ("sealed", "kept"),
    [
        (SEALED, True), (SEALED.replace("claude-sonnet-5", "another"), False), ("{", False), ("[]", False),
        ("7", False),
        ('{"model":"claude-sonnet-5","blocks":["call"]}', False),
        ('{"model":"claude-sonnet-5","blocks":[5,"call","call"]}', False),
        ('{"model":"claude-sonnet-5","blocks":["call","call","call"]}', False),
    ],
)  # fmt: skip
def test_sealed_reasoning(sealed: str, kept: bool) -> None:
    """Signed blocks go back unread in the order they came; another model's, or any that do not fit, stay away (P1)."""
    calls = (AskedCall(call_id(1), "a", '{"x":1}'), AskedCall(call_id(2), "b", '{"x":2}'))
    replies = tuple(ReplyMessage(call.call_id, "ok", "returned") for call in calls)
    history: tuple[OutMessage, ...] = (UserMessage("Hi"), AssistantMessage("", calls, "Hm", sealed), *replies)
    blocks = body("anthropic", attrs.evolve(REQUEST, messages=history))["messages"][1]["content"]
    kinds = [block["type"] for block in blocks]
    if kept:
        assert kinds == ["thinking", "tool_use", "redacted_thinking", "tool_use"]
        assert blocks[0] == {"type": "thinking", "thinking": "", "signature": "c2ln"}
    else:
        assert kinds == ["tool_use", "tool_use"]


# --- limits --------------------------------------------------------------------------------------------------

SMALL = (KnownModel("deepseek-flash", 1000, 64),)


def limit(provider: str = "deepseek", known: Any = SMALL, **more: Any) -> int | None:
    request = attrs.evolve(ModelRequest("S", (), (UserMessage("Hi"),)), **more)
    found = body(provider, request, known=known).get(PROFILES[provider].output_member)
    assert found is None or isinstance(found, int)
    return found


def test_the_output_limit_is_what_is_left() -> None:
    """A window of 1000 with 980 taken leaves 20, whatever was asked for (U2, case 86)."""
    assert limit(output_tokens_max=64, input_tokens=980) == 20
    assert limit(output_tokens_max=64_000, input_tokens=999) == 1
    assert limit(output_tokens_max=64_000, input_tokens=10) == 64
    assert limit(output_tokens_max=10, input_tokens=10) == 10
    assert limit(output_tokens_max=None, input_tokens=10) is None
    assert limit(output_tokens_max=64_000, known=()) == 64_000


def test_a_full_window_is_one_sentence() -> None:
    """Nothing is sent where nothing is left; the sentence says the ways out, and is no history (case 86)."""
    for taken in (1000, 5000):
        with pytest.raises(ModelTrouble) as raised:
            limit(output_tokens_max=64, input_tokens=taken)
        assert (raised.value.kind, raised.value.retryable) == ("window", False)
        assert "new session" in str(raised.value)


def test_an_estimate_clamps_and_never_refuses() -> None:
    """Where the count is only estimated, the limit shrinks to a floor, and the provider has the last word (U2)."""
    known = (KnownModel("deepseek-flash", 20_000, 15_000),)
    long = (UserMessage("word " * 6000),)
    request = ModelRequest("S", (), long)
    estimate = estimated_tokens(request)
    assert 6000 < estimate < 12_000
    assert limit(known=known, messages=long, output_tokens_max=15_000) == 20_000 - estimate
    longer = (UserMessage("word " * 60_000),)
    assert limit(known=known, messages=longer, output_tokens_max=15_000) == output_tokens_floor


def test_anthropic_always_has_a_limit() -> None:
    """The Messages API wants a limit: the default, within the model's own (P1)."""
    assert body("anthropic")["max_tokens"] == 32_000
    small = (KnownModel("claude-sonnet-5", 200_000, 4096),)
    assert body("anthropic", known=small)["max_tokens"] == 4096
    assert body("openai", attrs.evolve(REQUEST, output_tokens_max=9))["max_completion_tokens"] == 9


def test_the_writer() -> None:
    """Compact JSON in the order given; raw text as it is; half a surrogate pair, which no UTF-8 can hold, replaced."""
    made = body_of({"b": [1, None, True, "é\n"], "a": Raw('{"x": 1.0}')}, '"z":1', None)
    assert made == '{"b":[1,null,true,"é\\n"],"a":{"x": 1.0},"z":1}'.encode()
    assert body_of({"a": "\ud800x"}) == '{"a":"\ufffdx"}'.encode()
    assert text_of({"é": ()}) == '{"\\u00e9":[]}'
    assert SYSTEM in model_of("deepseek").body(REQUEST).decode()
