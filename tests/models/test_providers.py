"""Keys, addresses, names, model lists and the doctor: everything between the settings and a model that answers."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.adapters.models import doctor
from steadyhand.adapters.models.doctor import diagnose
from steadyhand.adapters.models.errors import NOT_CONNECTED, QUOTED_CHARS_MAX, ProviderErrors
from steadyhand.adapters.models.http import HttpClient, HttpError
from steadyhand.adapters.models.remote import Access, RemoteModel
from steadyhand.adapters.models.remote_models import ModelListing, ModelSettings, RemoteModels, list_models
from steadyhand.domain.model.messages import Finish, ModelRequest, ProviderError, StreamPart, UserMessage
from steadyhand.domain.model.provider_profiles import PROFILES, is_on_this_machine, key_variables
from steadyhand.domain.permissions.child_environment import child_environment
from tests.models.streams import KEY, Ask, Dialect, End, Say, plain, written
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider

pytestmark = pytest.mark.anyio
REQUEST = ModelRequest("Be good.", (), (UserMessage("Hi"),))
patience_s = 60.0


def model(
    provider: str,
    environment: Mapping[str, str] | None = None,
    secret: Callable[[str], Awaitable[str | None]] | None = None,
    name: str | None = None,
    **access: Any,
) -> RemoteModel:
    profile = PROFILES[provider]
    given = environment if environment is not None else {profile.key_variable or "": KEY}
    made = Access(profile, name or profile.model or "some-model", lambda: given, secret=secret, **access)
    return RemoteModel(made, HttpClient())


async def parts_of(made: RemoteModel) -> list[StreamPart]:
    with anyio.fail_after(patience_s):
        try:
            return [part async for part in made.ask(REQUEST)]
        finally:
            await made.client.close()


def _told(kind: str, made: Callable[[], object]) -> str:
    with pytest.raises(ProviderError) as raised:
        made()
    assert raised.value.kind == kind
    assert not raised.value.retryable
    return str(raised.value)


# --- keys ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROFILES)
async def test_key_comes_from_named_variable_provider_or_secret_store(provider: str) -> None:
    """The named variable, else the provider's own, else the secret store; never the key of another provider (E2)."""
    asked: list[str] = []

    async def secret(name: str) -> str | None:
        asked.append(name)
        return f" {KEY}-stored\n"

    base_url = None if PROFILES[provider].address else "http://127.0.0.1:1/v1"
    own = PROFILES[provider].key_variable
    every = {name: f"{KEY}-{name}" for name in key_variables()}

    async def sent(environment: Mapping[str, str], **more: Any) -> str:
        headers = await model(provider, environment, base_url=base_url, **more).make_headers()
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")

    assert await sent({**every, "MINE": KEY}, key_variable="MINE", secret=secret) == KEY
    assert await sent(every, secret=secret) == (f"{KEY}-{own}" if own else f"{KEY}-stored")
    assert await sent({}, secret=secret) == f"{KEY}-stored"
    assert set(asked) == {provider}
    if PROFILES[provider].key_needed:
        with pytest.raises(ProviderError) as raised:
            await sent({})
        assert raised.value.kind == "keyMissing"
        assert own
        assert own in str(raised.value)
    else:
        assert await sent({}) == ""


async def test_empty_or_malformed_key_is_reported_and_not_sent() -> None:
    """A named variable that is empty counts as missing; a key with invalid characters is reported, and not sent
    (E2)."""
    for key, kind in (
        ("", "keyMissing"),
        ("  ", "keyMissing"),
        ("a b", "key"),
        ("schlüssel", "key"),
        ("a\nb", "key"),
        ("x" * 5000, "key"),
    ):
        made = model("ollama", {"MINE": key}, key_variable="MINE")
        with pytest.raises(ProviderError) as raised:
            await parts_of(made)
        assert raised.value.kind == kind
        assert "MINE" in str(raised.value)
        assert not key.strip() or key not in str(raised.value)


@pytest.mark.parametrize("provider", PROFILES)
def test_provider_label_reads_well_within_a_sentence(provider: str) -> None:
    """P1, P3: every error sentence reads well; a provider without a name is "the provider" within one."""
    troubles = ProviderErrors(PROFILES[provider], "host:1", "m", "the variable K")
    every = [troubles.of_status(status, {}, b"{}") for status in range(400, 600)]
    every += [troubles.of_connection(HttpError(kind), 1.0) for kind in NOT_CONNECTED]
    every += [troubles.no_progress(1.0), troubles.out_of_capacity(), troubles.garbled(), troubles.too_many_calls(3)]
    every += [troubles.not_a_provider(), troubles.too_long(), troubles.key_missing(), troubles.key_unusable()]
    for said in map(str, every):
        assert not said.startswith("the ")
        assert re.search(r"[a-z,] The |\b[Tt]he [Tt]he\b", said) is None, said


def test_key_variables_are_removed_from_child_environments() -> None:
    """Every variable that a key is read from by default is removed from the environment of a child (E1)."""
    given = dict.fromkeys(key_variables(), KEY)
    assert len(given) >= 7
    assert child_environment(given, {}, {}).values == {}
    assert "MINE" in key_variables("MINE")


# --- addresses and names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "base_url", "address"),
    [
        ("openai", None, "https://api.openai.com/v1"),
        ("compatible", "http://127.0.0.1:9/v1/", "http://127.0.0.1:9/v1"),
        ("compatible", " http://[::1]:9/v1/chat/completions ", "http://[::1]:9/v1"),
        ("anthropic", "http://127.0.0.1:9/v1/", "http://127.0.0.1:9"),
        ("anthropic", "http://127.0.0.1:9/v1/messages", "http://127.0.0.1:9"),
        ("anthropic", "https://api.deepseek.com/anthropic", "https://api.deepseek.com/anthropic"),
    ],
)
def test_base_url_is_accepted_as_people_copy_it(provider: str, base_url: str | None, address: str) -> None:
    """A base URL is accepted in every form that people copy (P1)."""
    assert model(provider, base_url=base_url).address == address


@pytest.mark.parametrize(
    "base_url",
    [
        "localhost:8080", "ftp://127.0.0.1/v1", "http://", "http:///v1", "http://127.0.0.1:99999/v1", "http://[::1/v1",
        f"https://user:{KEY}@provider.example/v1", f"https://provider.example/v1?key={KEY}", "https://h/v1#x",
    ],
)  # fmt: skip
def test_unusable_base_url_gives_one_sentence_without_it(base_url: str) -> None:
    """A base URL that is none, or that contains a key, gives one sentence without it (E2)."""
    said = _told("settings", lambda: model("compatible", base_url=base_url))
    assert "steadyhand.model.baseUrl" in said
    assert KEY not in said


def test_settings_choose_address_variable_and_default_model() -> None:
    """The address and the variable of the settings belong to their provider alone; without a name the provider's
    default counts (P1)."""
    settings = ModelSettings("compatible", "http://127.0.0.1:9/v1", "MINE")
    models = RemoteModels(lambda: settings, dict)
    mine = models.model("compatible", "a-model")
    assert (mine.address, mine.access.key_variable, mine.access.name) == ("http://127.0.0.1:9/v1", "MINE", "a-model")
    other = models.model("deepseek", "deepseek")
    assert (other.address, other.access.key_variable) == ("https://api.deepseek.com", None)
    assert other.access.name == "deepseek-flash"
    assert models.model("deepseek", "deepseek") is other
    assert "steadyhand.model.name" in _told("settings", lambda: models.model("ollama", "ollama"))
    assert "deepseek" in _told("settings", lambda: models.model("nobody", "x"))
    settings = ModelSettings("compatible")
    assert "steadyhand.model.baseUrl" in _told("settings", lambda: models.model("compatible", "x"))
    assert models.model("deepseek", "deepseek") is not other


@pytest.mark.parametrize(
    ("base_url", "own", "here"),
    [
        ("https://api.deepseek.com", True, False),
        (" https://API.deepseek.com/v1/chat/completions ", True, False),
        ("http://api.deepseek.com", False, False),
        ("https://api.deepseek.com.example/v1", False, False),
        ("https://api.deepseek.com:8443", False, False),
        ("http://127.0.0.1:8080/v1", False, True),
        ("http://localhost/v1", False, True),
        ("http://[::1]:9/v1", False, True),
        ("http://127.0.0.1.example/v1", False, False),
        ("http://[::1/v1", False, False),
        ("", False, False),
    ],
)
def test_provider_s_own_address_is_recognized(base_url: str, own: bool, here: bool) -> None:
    """U2: the provider's own address in every form, and every address of this machine; no other address passes."""
    assert PROFILES["deepseek"].is_at(base_url) is own
    assert is_on_this_machine(base_url) is here
    assert PROFILES["deepseek"].is_at(None)


@pytest.mark.parametrize("provider", PROFILES)
def test_profile_parts_are_consistent(provider: str) -> None:
    """The parts of a profile fit each other (P1)."""
    profile = PROFILES[provider]
    assert profile.provider == provider
    assert profile.dialect == "chat" or profile.output_tokens_default
    assert (profile.reasoning_back == "never") == (profile.reasoning_member is None)
    assert not profile.address or profile.address.startswith("https://") or not profile.key_needed
    for members in (profile.thinking_off, profile.extra):
        assert members is None or json.loads("{" + members + "}")
    assert not set(profile.renamed) & {known.name for known in profile.known}
    assert all(known.output_max < known.window for known in profile.known)


def test_providers_page_has_a_row_for_every_profile() -> None:
    """docs/providers.md has a row for each profile, with its variable, address and default model (P1)."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "providers.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in page.split("\n") if line[:3] == "| `"]
    assert {row[0]: tuple(row[1:4]) for row in rows if "/" not in row[0]} == {
        profile.provider: (profile.address or "", profile.key_variable or "", profile.model or "")
        for profile in PROFILES.values()
    }


# --- sentences -----------------------------------------------------------------------------------------------


def trouble(status: int, told: Any, name: str = "deepseek-flash", **headers: str) -> ProviderError:
    troubles = ProviderErrors(PROFILES["deepseek"], "api.deepseek.com", name, "the environment variable X")
    troubles.secrets = (KEY, "plain-words-as-a-key", "is")
    text = told if isinstance(told, str) else json.dumps(told)
    return troubles.of_status(status, {name.replace("_", "-"): value for name, value in headers.items()}, text.encode())


REASONING = "The `reasoning_content` in the thinking mode must be passed back to the API."


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (400, REASONING, "reasoning"),
        (400, "This model's maximum context length is 65536 tokens. However, you requested 99999", "window"),
        (400, "request (9531 tokens) exceeds the available context size (8192 tokens)", "window"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "window"),
        (400, "Your credit balance is too low to access the API", "balance"),
        (400, "Model Not Exist", "notFound"),
        (404, "The model `x` does not exist or you do not have access to it", "notFound"),
        (400, "Messages have bad roles", "rejected"),
        (429, "You exceeded your current quota: insufficient_quota", "balance"),
        (429, "Rate limit for maximum context length requests", "rate"),
        (500, "prompt is too long", "window"),
        (401, "insufficient_quota", "key"),
    ],
)
def test_error_words_refine_the_status(status: int, message: str, kind: str) -> None:
    """A full window, used-up credit, a missing model and missing reasoning are recognized by their words (P3, cases 86,
    94)."""
    assert trouble(status, {"error": {"message": message, "type": "invalid_request_error"}}).kind == kind


def test_error_message_is_found_in_every_body_shape() -> None:
    """The message is found wherever providers put it, and quoted short, on one line (P3)."""
    shapes: list[Any] = [
        {"error": {"message": "Bad thing"}}, {"error": "Bad thing"}, {"message": "Bad thing"}, "Bad thing",
        {"detail": "Bad thing"}, {"detail": [{"msg": "Bad thing", "loc": []}]}, [{"error": {"message": "Bad thing"}}],
        {"type": "error", "error": {"type": "x", "message": "Bad\n\tthing."}},
        {"object": "error", "message": "Bad thing"},
    ]  # fmt: skip
    for told in shapes:
        assert "“Bad thing”" in str(trouble(400, told)), told
    for odd in ("", "[]", "{}", "null", '{"error": 7}', '{"error": {"message": 7}}', "[" * 100_000, "\x00"):
        assert "(400)" in str(trouble(400, odd))
    long = str(trouble(400, {"error": {"message": "x " * 5000}}))
    assert len(long) < QUOTED_CHARS_MAX + 200


def test_keys_are_removed_from_quoted_provider_text() -> None:
    """The key, and everything that looks like one, is removed from a quotation (E2)."""
    for secret in (KEY, "plain-words-as-a-key", "sk-proj-" + "a1B2" * 8, "Bearer " + "abcdefgh" * 3):
        said = str(trouble(400, {"error": {"message": f"no such key: {secret} here"}}))
        assert secret not in said
        assert "[key]" in said
        assert "here" in said


def test_retired_model_name_is_answered_with_the_current_one() -> None:
    """The sentence about a retired name has the current name (P1)."""
    said = str(trouble(400, {"error": {"message": "Model Not Exist"}}, "deepseek-chat"))
    assert "deepseek-chat" in said
    assert "“deepseek-flash”" in said


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"retry_after": "30"}, 30.0), ({"retry_after": "1.5"}, 1.5),
        ({"retry_after_ms": "250", "retry_after": "1"}, 0.25),
        ({"retry_after": "soon"}, None), ({"retry_after": "-1"}, None), ({"retry_after": "nan"}, None), ({}, None),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0), ({"retry_after": "9" * 40}, None),
    ],
)  # fmt: skip
def test_retry_after_reads_seconds_milliseconds_and_dates(headers: dict[str, str], wanted: float | None) -> None:
    """Seconds, milliseconds or a date; an invalid value counts as none (P3)."""
    assert trouble(429, {}, **headers).retry_after_s == wanted


# --- model lists and the doctor ------------------------------------------------------------------------------------


def answering(dialect: Dialect, listed: Any, *answers: Scripted) -> Callable[[Asked], Scripted]:
    waiting = list(answers)

    def answer(asked: Asked) -> Scripted:
        if asked.method == "GET":
            if isinstance(listed, Scripted):
                return listed
            return Scripted([json.dumps(listed).encode()], headers={"content-type": "application/json"})
        return waiting.pop(0)

    return answer


def said(dialect: Dialect, *steps: Any) -> Scripted:
    return Scripted([plain(written(dialect, steps))])


WORKS = (Ask("report_word", ('{"word":"ready"}',)), End("calls"))
LISTS: dict[str, tuple[Any, int | None]] = {
    "deepseek": ({"object": "list", "data": [{"id": "deepseek-flash"}, {"id": "deepseek-v4-pro"}]}, 1_000_000),
    "openrouter": ({"data": [{"id": "some-model", "context_length": 131072}]}, 131072),
    "vllm": ({"data": [{"id": "some-model", "max_model_len": 4096}]}, 4096),
    "llamacpp": ({"models": [], "data": [{"id": "/m.gguf", "meta": {"n_ctx_train": 8192}}]}, 8192),
    "ollama": ({"object": "list", "data": [{"id": "some-model", "created": 1}]}, None),
    "anthropic": ({"data": [{"id": "claude-sonnet-5", "max_input_tokens": 500_000}]}, 500_000),
}


@pytest.mark.parametrize("provider", LISTS)
async def test_model_list_is_read_and_the_window_remembered(provider: str) -> None:
    """The offered models are listed, and the window that the list has for the chosen model is remembered (P1, U2)."""
    told, window = LISTS[provider]
    dialect: Dialect = PROFILES[provider].dialect
    async with ScriptedProvider(answering=answering(dialect, told)) as served:
        made = model(provider, base_url=served.address)
        with anyio.fail_after(patience_s):
            listed = await list_models(made)
        await made.client.close()
    assert all(isinstance(entry, ModelListing) for entry in listed)
    assert made.window == window
    assert served.asked[0].target.split("?")[0] == ("/models" if dialect == "chat" else "/v1/models")


async def test_model_list_works_before_a_model_is_chosen() -> None:
    """A provider lists models without a chosen one; the windows in the list count for models made before and after
    (U2)."""
    told = {"data": [{"id": "a", "max_model_len": 4096}, {"id": "b", "max_model_len": 8192}]}
    async with ScriptedProvider(answering=answering("chat", told)) as served:
        models = RemoteModels(lambda: ModelSettings("vllm", served.address), dict)
        before = models.model("vllm", "a")
        assert models.model("vllm", "a").window is None
        with anyio.fail_after(patience_s):
            assert await models.list_models("vllm") == (ModelListing("a", 4096), ModelListing("b", 8192))
        assert models.model("vllm", "a") is before
        assert [models.model("vllm", name).window for name in ("a", "b")] == [4096, 8192]
        await models.close()
    assert len(served.asked) == 1


async def test_unknown_window_is_requested_once() -> None:
    """An unknown window is requested once, a known one never; a provider that does not tell it causes no error (U2)."""
    told = {"data": [{"id": "a", "max_model_len": 4096}]}
    async with ScriptedProvider(answering=answering("chat", told)) as served:
        models = RemoteModels(lambda: ModelSettings("vllm", served.address), dict)
        with anyio.fail_after(patience_s):
            assert [await models.learn_window("vllm", "a") for _ in range(2)] == [4096, 4096]
            assert [await models.learn_window("vllm", "b") for _ in range(2)] == [None, None]
            assert await models.learn_window("deepseek", "deepseek") == 1_000_000
        await models.close()
    assert len(served.asked) == 2


async def test_window_is_requested_again_after_a_failed_request() -> None:
    """A local server that did not run at the first request for its window is asked again (U1)."""
    told = {"data": [{"id": "a", "max_model_len": 4096}]}
    busy = Scripted([b"busy"], 503, {}, "length")
    answers = [busy, Scripted([json.dumps(told).encode()])]
    async with ScriptedProvider(*answers) as served:
        models = RemoteModels(lambda: ModelSettings("vllm", served.address), dict)
        with anyio.fail_after(patience_s):
            assert [await models.learn_window("vllm", "a") for _ in range(3)] == [None, 4096, 4096]
        await models.close()
    assert len(served.asked) == 2


@pytest.mark.parametrize("told", ["<html>", "{", "[]", '{"data": 7}', '{"data": ["x"]}', "7"])
async def test_unreadable_model_list_gives_one_sentence(told: str) -> None:
    """A list that cannot be read gives one sentence (P3)."""
    async with ScriptedProvider(Scripted([told.encode()])) as served:
        made = model("compatible", base_url=served.address)
        with anyio.fail_after(patience_s), pytest.raises(ProviderError):
            await list_models(made)
        await made.client.close()


@pytest.mark.parametrize("provider", ["deepseek", "anthropic"])
async def test_doctor_without_findings_has_one_sentence_for_each_check(provider: str) -> None:
    """Key, address, model, window, streaming and tool calls: one sentence each, and two requests (P1)."""
    dialect: Dialect = PROFILES[provider].dialect
    told, _ = LISTS[provider]
    answers = said(dialect, Say("re"), Say("ady"), End("stop")), said(dialect, *WORKS)
    async with ScriptedProvider(answering=answering(dialect, told, *answers)) as served:
        made = model(provider, base_url=served.address)
        with anyio.fail_after(patience_s):
            found = await diagnose(made)
        await made.client.close()
    assert [one.what for one in found] == ["key", "reachable", "model", "window", "streaming", "calls"]
    assert all(one.fine and one.text.endswith(".") and KEY not in one.text for one in found)
    assert [asked.method for asked in served.asked] == ["GET", "POST", "POST"]


async def test_doctor_reports_each_fault_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault is reported where it is found, with what to do (P1)."""
    monkeypatch.setattr(doctor, "STEP_S_MAX", 0.3)
    good = {"data": [{"id": "deepseek-flash"}]}
    error = {"error": {"message": "no", "type": "x"}}
    refused = Scripted([json.dumps(error).encode()], 401, {"content-type": "application/json"}, "length")
    missing = Scripted([b"404"], 404, {}, "length")
    fine, calls = said("chat", Say("ready"), End("stop", None)), said("chat", *WORKS)
    broken = said("chat", Say("par"))
    talk, bad = said("chat", Say("no"), End("stop")), said("chat", Ask("report_word", ('{"w',)), End("calls"))
    silent = Scripted([anyio.Event()])
    cases: list[tuple[Any, tuple[Scripted, ...], str, str, str | None]] = [
        (good, (fine, calls), "deepseek-flash", "without a count of tokens", None),
        (refused, (), "deepseek-flash", "does not accept the key", "reachable"),
        (missing, (fine, calls), "deepseek-flash", "does not list its models", None),
        (good, (fine, calls), "deepseek-chat", "Set steadyhand.model.name to “deepseek-flash”", "model"),
        (good, (fine, calls), "flash", "for instance to “deepseek-flash”", "model"),
        ({"data": []}, (fine, calls), "flash", "The list is empty", "model"),
        (good, (broken, calls), "deepseek-flash", "broke off", "streaming"),
        (good, (fine, talk), "deepseek-flash", "The model made none", "calls"),
        (good, (fine, bad), "deepseek-flash", "it was incomplete or wrong", "calls"),
        (good, (silent, calls), "deepseek-flash", "No complete answer within", "streaming"),
        (good, (refused,), "deepseek-flash", "does not accept the key", "streaming"),
    ]
    for listed, answers, name, words, what in cases:
        async with ScriptedProvider(answering=answering("chat", listed, *answers)) as served:
            made = model("deepseek", name=name, base_url=served.address)
            with anyio.fail_after(patience_s):
                found = await diagnose(made)
            await made.client.close()
        assert any(words in one.text for one in found), (words, found)
        assert KEY not in str(found)
        wrong = [one.what for one in found if not one.fine]
        assert wrong == ([what] if what else []), (words, found)
    (keyless,) = await diagnose(model("deepseek", {}))
    assert (keyless.what, keyless.fine) == ("key", False)
    assert "There is no key" in keyless.text
    unreachable = model("ollama", name="x", base_url="http://127.0.0.1:1/v1")
    assert "cannot be reached" in (last := (await diagnose(unreachable))[-1]).text
    assert (last.what, last.fine) == ("reachable", False)
    await unreachable.client.close()


async def test_ask_yields_the_stream_and_ends_with_finish() -> None:
    """What `ask` yields is what was streamed, ended by `Finish` (P1)."""
    async with ScriptedProvider(said("chat", Say("Hi"), End("stop"))) as served:
        parts = await parts_of(model("compatible", base_url=served.address))
    assert parts[-1] == Finish("stop")
