"""Requests as bytes: a golden file for each provider, stable from one request to the next, within the providers' rules.

A golden file is a body as it goes out, and a line end. After an intended change, write the files with
`STEADYHAND_WRITE_GOLDEN=1` and review the diff.
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

from steadyhand.adapters.models.http import HttpClient
from steadyhand.adapters.models.json_body import Raw, body_of, text_of
from steadyhand.adapters.models.remote import OUTPUT_TOKENS_FLOOR, Access, RemoteModel
from steadyhand.adapters.models.responses import responses_body
from steadyhand.domain.model.messages import (
    AssistantMessage,
    ModelRequest,
    OutgoingCall,
    OutMessage,
    ProviderError,
    ReplyMessage,
    UserMessage,
)
from steadyhand.domain.model.provider_profiles import PROFILES, KnownModel
from steadyhand.domain.model.token_estimate import estimate_request_tokens
from tests.models.histories import HISTORY, REQUEST, SEALED, SYSTEM, TOOLS, call_id
from tests.models.streams import remote

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("STEADYHAND_WRITE_GOLDEN") == "1"
providers = pytest.mark.parametrize("provider", PROFILES)


def model_of(provider: str, **more: Any) -> RemoteModel:
    profile = attrs.evolve(PROFILES[provider], **more)
    base_url = None if profile.address else "http://127.0.0.1:1/v1"
    return RemoteModel(Access(profile, profile.model or "some-model", dict, base_url), HttpClient())


def body(provider: str, request: ModelRequest = REQUEST, **more: Any) -> dict[str, Any]:
    told = json.loads(model_of(provider, **more).make_body(request))
    assert isinstance(told, dict)
    return told


@providers
def test_body_of_a_whole_history_matches_its_golden_file(provider: str) -> None:
    """A whole history goes out in exactly these bytes (P1, P4)."""
    made = model_of(provider).make_body(attrs.evolve(REQUEST, output_tokens_max=5000)) + b"\n"
    path = GOLDEN / f"{provider}.json"
    if WRITE:
        path.write_bytes(made)
    assert made == path.read_bytes()


def test_bodies_of_rare_requests_match_their_golden_files() -> None:
    """Without reasoning, continuing an answer, and with sealed reasoning: the exact bytes (P2, case 95)."""
    continued = attrs.evolve(REQUEST, messages=(*HISTORY, AssistantMessage("It is", (), "So.")), is_continuation=True)
    first, second, *rest = HISTORY
    assert isinstance(second, AssistantMessage)
    sealed = attrs.evolve(REQUEST, messages=(first, attrs.evolve(second, sealed=SEALED), *rest))
    for name, provider, request in (
        ("deepseek-without-thinking", "deepseek", attrs.evolve(REQUEST, thinking=False)),
        ("deepseek-continued", "deepseek", continued),
        ("anthropic-without-thinking", "anthropic", attrs.evolve(REQUEST, thinking=False)),
        ("anthropic-sealed", "anthropic", sealed),
        ("responses", "responses", attrs.evolve(REQUEST, output_tokens_max=5000)),
        ("responses-quick-question", "responses", attrs.evolve(REQUEST, can_call=False)),
    ):
        model = remote("responses") if provider == "responses" else model_of(provider)
        made = model.make_body(request) + b"\n"
        path = GOLDEN / f"{name}.json"
        if WRITE:
            path.write_bytes(made)
        assert made == path.read_bytes(), name


@providers
def test_tools_are_first_sorted_and_their_schemas_unchanged(provider: str) -> None:
    """Tools come first, sorted by name, and their schemas go out unchanged, character by character (P4)."""
    text = model_of(provider).make_body(REQUEST).decode()
    assert text.index('"tools"') < text.index('"messages"')
    assert text.index('"read_file"') < text.index('"write_file"')
    assert all(tool.parameters in text for tool in TOOLS)
    again = attrs.evolve(REQUEST, tools=tuple(reversed(TOOLS)))
    assert model_of(provider).make_body(again).decode() == text
    assert "tools" not in body(provider, attrs.evolve(REQUEST, tools=()))


@providers
def test_aside_keeps_the_tools_and_forbids_calls(provider: str) -> None:
    """A quick question keeps the tools, so that everything before the messages is the same, and says that none may be
    called (P4)."""
    aside = model_of(provider).make_body(attrs.evolve(REQUEST, can_call=False))
    assert _stem(aside) == _stem(model_of(provider).make_body(REQUEST))
    told = json.loads(aside)["tool_choice"]
    assert told == ({"type": "none"} if provider == "anthropic" else "none")
    assert "tool_choice" not in body(provider)
    assert "tool_choice" not in body(provider, attrs.evolve(REQUEST, can_call=False, tools=()))


def _stem(made: bytes) -> bytes:
    """A body up to the end of the last block of its last message: the part that only grows."""
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
def test_body_begins_with_the_previous_body(provider: str) -> None:
    """While the history grows, the bytes of each request up to the end of its messages begin the next request (P4,
    T5)."""
    model = model_of(provider)
    ends = [at for at in range(1, len(HISTORY) + 1) if not isinstance(HISTORY[at - 1], AssistantMessage)]
    before = b""
    for end in ends:
        if isinstance(HISTORY[end - 1], ReplyMessage) and isinstance(HISTORY[end], ReplyMessage):
            continue
        stem = _stem(model.make_body(attrs.evolve(REQUEST, messages=HISTORY[:end], output_tokens_max=4000 + end)))
        assert stem.startswith(before), end
        assert len(stem) > len(before)
        before = stem


texts = st.text(max_size=30).filter(str.strip)
asked = st.lists(st.tuples(texts, texts), max_size=3)
turns = st.lists(st.tuples(texts, texts | st.just(""), asked, st.none() | texts), min_size=1, max_size=6)


@providers
@given(told=turns)
def test_any_history_only_grows_at_its_end(
    provider: str, told: list[tuple[str, str, list[tuple[str, str]], Any]]
) -> None:
    """The same for histories of any text, calls and reasoning (P4)."""
    model, messages, before, number = model_of(provider), list[OutMessage](), b"", 0
    for prompt, said, calls, reasoning in told:
        messages.append(UserMessage(prompt))
        stem = _stem(model.make_body(attrs.evolve(REQUEST, messages=tuple(messages))))
        assert stem.startswith(before)
        before = stem
        made = [OutgoingCall(call_id(number + at), "a", json.dumps({"x": x})) for at, (x, _) in enumerate(calls)]
        number += len(made)
        messages.append(AssistantMessage(said, tuple(made), reasoning))
        messages += [
            ReplyMessage(call.call_id, reply, "returned") for call, (_, reply) in zip(made, calls, strict=True)
        ]
        if made:
            stem = _stem(model.make_body(attrs.evolve(REQUEST, messages=tuple(messages))))
            assert stem.startswith(before)
            before = stem


@providers
def test_each_call_is_followed_by_its_one_reply(provider: str) -> None:
    """Each call has one reply behind it, in order, before anything else; ids and names satisfy the rules [I16]."""
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


def test_anthropic_roles_alternate_and_results_come_first() -> None:
    """Neighbours of one role are one message, results come before text, no block is empty, arguments are as written
    (case 17)."""
    told = body("anthropic")["messages"]
    assert [message["role"] for message in told] == ["user", "assistant"] * 3 + ["user"]
    kinds = [[block["type"] for block in message["content"]] for message in told]
    assert kinds == [
        ["text"], ["tool_use", "tool_use"], ["tool_result", "tool_result"], ["text"],
        ["text", "text"], ["text", "tool_use"], ["tool_result", "text"],
    ]  # fmt: skip
    assert told[2]["content"][1]["content"] == "(no output)"
    assert b'"input":{"path":"a.py","limit":1.10}' in model_of("anthropic").make_body(REQUEST)
    assert all(block.get("text", "x").strip() for message in told for block in message["content"])


@providers
def test_blank_message_is_omitted_and_empty_reply_says_so(provider: str) -> None:
    """A blank message is omitted; an empty reply says so; their neighbours stay (case 17)."""
    blank = (UserMessage("Hi"), AssistantMessage("  "), UserMessage(" \n"), UserMessage("Go on"))
    told = body(provider, attrs.evolve(REQUEST, messages=blank))["messages"]
    said = json.dumps([message for message in told if message["role"] != "system"])
    assert "Hi" in said
    assert "Go on" in said
    assert '"  "' not in said
    assert "assistant" not in said
    assert "(no output)" in json.dumps(body(provider)["messages"])


def test_deepseek_gets_reasoning_of_every_assistant_message() -> None:
    """Every assistant message has `reasoning_content`, word by word, also an empty one (P1, cases 94, 95)."""
    told = [message for message in body("deepseek")["messages"] if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in told] == ["I need both.", "Nothing more.", ""]


@pytest.mark.parametrize(
    ("provider", "member"),
    [
        ("openrouter", "reasoning"), ("ollama", "reasoning"), ("vllm", "reasoning"), ("llamacpp", "reasoning_content"),
        ("openai", None), ("compatible", None),
    ],
)  # fmt: skip
def test_other_providers_get_reasoning_under_their_name_or_not(provider: str, member: str | None) -> None:
    """Other providers get it under their own name if there was some, or not at all (P1)."""
    told = [message for message in body(provider)["messages"] if message["role"] == "assistant"]
    found = [set(message) - {"role", "content", "tool_calls"} for message in told]
    assert found == ([{member}, {member}, set()] if member else [set(), set(), set()])


def test_request_without_reasoning_uses_the_provider_s_words() -> None:
    """A request without reasoning says so in the provider's words, behind the messages (case 94)."""
    off = attrs.evolve(REQUEST, thinking=False)
    assert body("deepseek", off)["thinking"] == {"type": "disabled"}
    assert body("anthropic", off)["thinking"] == {"type": "disabled"}
    assert body("openrouter", off)["reasoning"] == {"enabled": False}
    assert body("openai", off) == body("openai")
    on, without = model_of("deepseek").make_body(REQUEST), model_of("deepseek").make_body(off)
    assert _stem(on) == _stem(without)


def test_continuation_sends_the_answer_as_a_prefix() -> None:
    """The last message goes out as a prefix, with its reasoning, without tools, to the beta address (P2)."""
    model = model_of("deepseek")
    request = attrs.evolve(REQUEST, messages=(*HISTORY, AssistantMessage("It is", (), "So.")), is_continuation=True)
    told = json.loads(model.make_body(request))
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
def test_sealed_reasoning_goes_back_unread_to_its_own_model(sealed: str, kept: bool) -> None:
    """Signed blocks go back unread in the order they came; those of another model, and those that do not fit, are
    omitted (P1)."""
    calls = (OutgoingCall(call_id(1), "a", '{"x":1}'), OutgoingCall(call_id(2), "b", '{"x":2}'))
    replies = tuple(ReplyMessage(call.call_id, "ok", "returned") for call in calls)
    history: tuple[OutMessage, ...] = (UserMessage("Hi"), AssistantMessage("", calls, "Hm", sealed), *replies)
    blocks = body("anthropic", attrs.evolve(REQUEST, messages=history))["messages"][1]["content"]
    kinds = [block["type"] for block in blocks]
    if kept:
        assert kinds == ["thinking", "tool_use", "redacted_thinking", "tool_use"]
        assert blocks[0] == {"type": "thinking", "thinking": "", "signature": "c2ln"}
    else:
        assert kinds == ["tool_use", "tool_use"]


def test_stored_message_stands_behind_the_replies_in_each_dialect() -> None:
    """G15, T1: a text block after the tool results of the same user message; a user message after the tool messages; an
    item after the outputs."""
    calls = (OutgoingCall(call_id(1), "a", "{}"), OutgoingCall(call_id(2), "b", "{}"))
    replies = tuple(ReplyMessage(call.call_id, "ok", "returned") for call in calls)
    told = UserMessage("[Notice] Told.", is_told=True)
    request = attrs.evolve(REQUEST, messages=(UserMessage("Hi"), AssistantMessage("", calls), *replies, told))
    _, _, user = body("anthropic", request)["messages"]
    assert [block["type"] for block in user["content"]] == ["tool_result", "tool_result", "text"]
    assert user["content"][-1] == {"type": "text", "text": "[Notice] Told."}
    roles = [message["role"] for message in body("deepseek", request)["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    made = json.loads(responses_body(PROFILES["openai"], "m", request, None))["input"]
    kinds = [item.get("role") or item["type"] for item in made]
    assert kinds == ["user", "function_call", "function_call", "function_call_output", "function_call_output", "user"]


# --- limits --------------------------------------------------------------------------------------------------

SMALL = (KnownModel("deepseek-flash", 1000, 64),)


def limit(provider: str = "deepseek", known: Any = SMALL, **more: Any) -> int | None:
    request = attrs.evolve(ModelRequest("S", (), (UserMessage("Hi"),)), **more)
    found = body(provider, request, known=known).get(PROFILES[provider].output_member)
    assert found is None or isinstance(found, int)
    return found


def test_output_limit_is_what_the_window_leaves() -> None:
    """A window of 1000 with 980 used leaves 20, whatever was requested (U2, case 86)."""
    assert limit(output_tokens_max=64, input_tokens=980) == 20
    assert limit(output_tokens_max=64_000, input_tokens=999) == 1
    assert limit(output_tokens_max=64_000, input_tokens=10) == 64
    assert limit(output_tokens_max=10, input_tokens=10) == 10
    assert limit(output_tokens_max=None, input_tokens=10) is None
    assert limit(output_tokens_max=64_000, known=()) == 64_000


def test_full_window_sends_nothing_and_gives_one_sentence() -> None:
    """Nothing is sent if nothing is left; the sentence says what the user can do, and is not part of the history (case
    86)."""
    for taken in (1000, 5000):
        with pytest.raises(ProviderError) as raised:
            limit(output_tokens_max=64, input_tokens=taken)
        assert (raised.value.kind, raised.value.retryable) == ("window", False)
        assert "new session" in str(raised.value)


def test_estimated_count_lowers_the_limit_but_never_refuses() -> None:
    """If the count is only an estimate, the limit shrinks to a minimum, and the provider decides (U2)."""
    known = (KnownModel("deepseek-flash", 20_000, 15_000),)
    long = (UserMessage("word " * 6000),)
    request = ModelRequest("S", (), long)
    estimate = estimate_request_tokens(request)
    assert 6000 < estimate < 12_000
    assert limit(known=known, messages=long, output_tokens_max=15_000) == 20_000 - estimate
    longer = (UserMessage("word " * 60_000),)
    assert limit(known=known, messages=longer, output_tokens_max=15_000) == OUTPUT_TOKENS_FLOOR


def test_anthropic_request_always_has_an_output_limit() -> None:
    """The Messages API requires a limit: the default, within the model's own (P1)."""
    assert body("anthropic")["max_tokens"] == 32_000
    small = (KnownModel("claude-sonnet-5", 200_000, 4096),)
    assert body("anthropic", known=small)["max_tokens"] == 4096
    assert body("openai", attrs.evolve(REQUEST, output_tokens_max=9))["max_completion_tokens"] == 9


def test_json_writer_is_compact_ordered_and_replaces_surrogates() -> None:
    """Compact JSON in the given order; raw text is unchanged; half a surrogate pair, which UTF-8 cannot hold, is
    replaced."""
    made = body_of({"b": [1, None, True, "é\n"], "a": Raw('{"x": 1.0}')}, '"z":1', None)
    assert made == '{"b":[1,null,true,"é\\n"],"a":{"x": 1.0},"z":1}'.encode()
    assert body_of({"a": "\ud800x"}) == '{"a":"\ufffdx"}'.encode()
    assert text_of({"é": ()}) == '{"\\u00e9":[]}'
    assert SYSTEM in model_of("deepseek").make_body(REQUEST).decode()
