"""`model/check` (row P7): settings are tried out before they are used. The text says what to do; nothing is changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from steadyhand.adapters.models import check
from steadyhand.adapters.models.catalog import PRACTICE_TEXT, ModelCatalog
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import Settings
from steadyhand.ports.model import ModelCandidate, ModelCheck, OfferedModel
from tests.models.streams import KEY, End, Say, plain, written
from tests.support.scripted_provider import CUT, Asked, Scripted, ScriptedProvider

pytestmark = pytest.mark.anyio
patience_s = 60.0
LISTED = {"data": [{"id": "qwen3", "max_model_len": 4096}, {"id": "qwen3-coder"}]}
ANSWER = Scripted([plain(written("chat", (Say("ready"), End("stop"))))])


def json_answer(told: Any, status: int = 200) -> Scripted:
    text = told if isinstance(told, str) else json.dumps(told)
    return Scripted([text.encode()], status, {"content-type": "application/json"}, "length")


def answering(listed: Scripted | None, asked_once: Scripted = ANSWER) -> Callable[[Asked], Scripted]:
    return lambda asked: (listed or json_answer(LISTED)) if asked.method == "GET" else asked_once


def catalog(secret: str | None = None, settings: Settings | None = None, **environment: str) -> ModelCatalog:
    async def ask_secret(name: str) -> str | None:
        return secret

    made = ModelCatalog(lambda: environment)
    made.connect(lambda: settings or Settings(), ask_secret if secret is not None else None)
    return made


async def checked(candidate: ModelCandidate, **more: Any) -> ModelCheck:
    models = catalog(**more)
    with anyio.fail_after(patience_s):
        found = await models.check(candidate)
    await models.close()
    assert KEY not in found.text
    assert found.text.endswith((".", "`."))
    return found


async def at(provider: ScriptedProvider, name: str | None = "qwen3", **more: Any) -> ModelCheck:
    return await checked(ModelCandidate("compatible", name, provider.address), **more)


async def test_working_model_is_ok_and_its_list_is_returned() -> None:
    """P7: one list and one small request; the result has the models with their windows."""
    async with ScriptedProvider(answering=answering(None)) as provider:
        found = await at(provider)
    assert found.ok
    assert "answers as “qwen3”" in found.text
    assert found.models == (OfferedModel("compatible", "qwen3", 4096), OfferedModel("compatible", "qwen3-coder"))
    assert [asked.method for asked in provider.asked] == ["GET", "POST"]


async def test_provider_without_a_model_lists_what_can_be_chosen() -> None:
    """P7: without a name, and where the provider has no usual model, the list is all that is asked for."""
    async with ScriptedProvider(answering=answering(None)) as provider:
        found = await at(provider, None)
        none = await at(provider, "")
    assert found == none
    assert found.ok
    assert "lists 2 models. Choose one, for instance “qwen3”, “qwen3-coder”" in found.text
    assert [asked.method for asked in provider.asked] == ["GET", "GET"]
    async with ScriptedProvider(answering=answering(json_answer({"data": []}))) as provider:
        empty = await at(provider, None)
    assert not empty.ok
    assert "Set steadyhand.model.name" in empty.text


REFUSED = {"error": {"message": "no such thing", "type": "x"}}
FAILURES: dict[str, tuple[Scripted | None, Scripted, str]] = {
    "a wrong key": (json_answer(REFUSED, 401), ANSWER, "does not accept the key (401): “no such thing”. Check"),
    "a wrong key at the request": (None, json_answer(REFUSED, 401), "does not accept the key (401)"),
    "no credit": (None, json_answer(REFUSED, 402), "out of credit"),
    "a rate limit": (None, json_answer(REFUSED, 429), "Rate limited"),
    "a rate limit at the list": (json_answer(REFUSED, 429), ANSWER, "Rate limited"),
    "an unknown model": (None, json_answer({"error": {"code": "model_not_found"}}, 404), "It lists “qwen3”"),
    "a web page": (json_answer("<html><title>Nextcloud</title>"), ANSWER, "Nextcloud"),
    "a server of another kind": (json_answer({"hello": 1}), json_answer({"hello": 1}), "cannot be read"),
    "a wrong path": (json_answer("404 page not found", 404), json_answer("404 page not found", 404), "Check"),
    "a redirect": (Scripted([], 302, {"location": "https://elsewhere.example/"}, "length"), ANSWER, "baseUrl"),
    "another dialect": (None, json_answer({"type": "message", "content": []}), "Set steadyhand.model.dialect"),
    "an answer that breaks off": (None, Scripted([b"data: {}\n\n", CUT]), "broke off"),
    "a server error": (None, json_answer(REFUSED, 500), "no such thing"),
    "no connection": (Scripted([CUT], raw=True), ANSWER, "closed the connection"),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_failure_is_explained_with_what_to_do(case: str) -> None:
    """P7: each failure is not ok and has a text that says what to do."""
    listed, answer, words = FAILURES[case]
    async with ScriptedProvider(answering=answering(listed, answer)) as provider:
        found = await at(provider, "qwen4" if case == "an unknown model" else "qwen3")
    assert not found.ok
    assert words in found.text
    assert (found.models is None) is (listed is not None)


async def test_provider_that_does_not_list_its_models_may_still_answer() -> None:
    """P7: no list (404, 403, or one that cannot be read) is no failure if the model answers."""
    for listed in (json_answer({}, 404), json_answer({}, 403), json_answer("[]")):
        async with ScriptedProvider(answering=answering(listed)) as provider:
            found = await at(provider)
        assert (found.ok, found.models) == (True, None)


async def test_local_server_that_does_not_run_says_how_to_start_it() -> None:
    """P7: Ollama, llama.cpp and vLLM that do not run: the sentence has the command that starts them."""
    for provider, command in (("ollama", "ollama serve"), ("llamacpp", "llama-server"), ("vllm", "vllm serve")):
        found = await checked(ModelCandidate(provider, "x", "http://127.0.0.1:1/v1"))
        assert not found.ok
        assert f"Start it with `{command}`." in found.text
    nowhere = await checked(ModelCandidate("compatible", "x", "http://provider.invalid/v1"))
    assert "Can't find provider.invalid" in nowhere.text


async def test_unusable_settings_are_said_before_anything_is_sent() -> None:
    """P7, E2: an unknown provider, an address that is none, a missing key, and a key in place of a variable's name."""
    cases = [
        (ModelCandidate("nobody"), "There is no provider “nobody”"),
        (ModelCandidate("compatible", "x"), "Set steadyhand.model.baseUrl"),
        (ModelCandidate("compatible", "x", "no address"), "is not an address like"),
        (ModelCandidate("compatible", "x", "https://me:secret@host/v1"), "must not contain a user"),
        (ModelCandidate("deepseek"), "There is no key for DeepSeek"),
        (ModelCandidate("compatible", "x", "http://127.0.0.1:1", "MINE"), "There is no key"),
        (ModelCandidate("deepseek", None, None, KEY), "not the name of an environment variable"),
    ]
    for candidate, words in cases:
        found = await checked(candidate)
        assert (found.ok, found.models) == (False, None)
        assert words in found.text


async def test_key_comes_from_the_variable_or_the_secret_store() -> None:
    """P7, E2: the variable that is named, else the provider's, else the editor's secret store."""
    async with ScriptedProvider(answering=answering(None)) as provider:
        for more, variable in (({"MINE": KEY}, "MINE"), ({"DEEPSEEK_API_KEY": KEY}, None), ({"secret": KEY}, None)):
            candidate = ModelCandidate("deepseek", "qwen3", provider.address, variable)
            assert (await checked(candidate, **more)).ok
    assert all(asked.headers["authorization"] == f"Bearer {KEY}" for asked in provider.asked)


async def test_check_changes_and_remembers_nothing() -> None:
    """P7: the models in use, their windows and what they leave out are as before, also of the same provider."""
    async with ScriptedProvider(answering=answering(None)) as provider:
        settings = Settings(model=ModelName("vllm", "qwen3"), base_url=provider.address)
        models = catalog(settings=settings)
        used = models("vllm", "qwen3")
        with anyio.fail_after(patience_s):
            for candidate in (ModelCandidate("vllm", "qwen3", provider.address), ModelCandidate("openai")):
                await models.check(candidate)
        assert models("vllm", "qwen3") is used
        assert getattr(used, "window", 0) is None
        await models.close()


async def test_slow_provider_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """P7 [I13]: 30 s for all of it, at most; a slow list leaves time for the request."""
    assert check.CHECK_S_MAX == 30.0
    monkeypatch.setattr(check, "LIST_S_MAX", 0.1)
    async with ScriptedProvider(answering=answering(Scripted([anyio.Event()], raw=True))) as provider:
        assert (await at(provider)).ok
    monkeypatch.setattr(check, "CHECK_S_MAX", 0.5)
    async with ScriptedProvider(answering=answering(None, Scripted([anyio.Event()], raw=True))) as provider:
        found = await at(provider)
    assert not found.ok
    assert "no complete answer within" in found.text


async def test_check_that_is_cancelled_closes_its_connection() -> None:
    """P7: a cancel ends the check at once, and the provider sees the connection go."""
    async with ScriptedProvider(answering=answering(None, Scripted([anyio.Event()]))) as provider:
        models = catalog()
        candidate = ModelCandidate("compatible", "qwen3", provider.address)
        task = asyncio.ensure_future(models.check(candidate))
        with anyio.fail_after(patience_s):
            await provider.stalled.wait()
            task.cancel()
            await provider.gone.wait()
        await asyncio.gather(task, return_exceptions=True)
        await models.close()


async def test_practice_model_needs_no_check() -> None:
    """P7, P5: the practice model is always ok and needs no network."""
    found = await checked(ModelCandidate("practice"))
    assert found == ModelCheck(True, PRACTICE_TEXT, (OfferedModel("practice", "practice"),))
