"""A provider that wants reasoning back which nobody has, as whole turns over HTTP (cases 94, 95)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.adapters.http_client import HttpClient
from steadyhand.adapters.model_remote import Access, RemoteModel
from steadyhand.core.profiles import PROFILES
from steadyhand.core.questions import UserQuestion
from steadyhand.session.reasoning import END, GO_ON, refusals_in_a_row_max
from tests.models.dialogue import Reply, Talk, answer, assert_answered_once, said, talking
from tests.models.streams import DIALECTS, Ask, Dialect, End, Say, Step, Think
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.turns import Place

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("dialect", DIALECTS)

REFUSED = {
    "chat": "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "messages": "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
}


def read(name: str) -> tuple[Step, ...]:
    """A call without any reasoning before it."""
    return Ask("read_file", (json.dumps({"path": name}),)), End("calls")


def refusal(dialect: Dialect) -> Scripted:
    error = {"error": {"message": REFUSED[dialect], "type": "invalid_request_error", "param": None}}
    return Scripted([json.dumps(error).encode()], 400, {"content-type": "application/json"}, "length")


@attrs.define
class Strict:
    """`ScriptedProvider(answering=…)`: three calls without reasoning, then a word, each turn; it takes back no history
    with a call unless it is asked without reasoning, or not even then."""

    dialect: Dialect
    always: bool = False
    refused: int = 0
    without: int = 0  # requests without reasoning

    def __call__(self, asked: Asked) -> Scripted:
        without = json.loads(asked.body).get("thinking") == {"type": "disabled"}
        self.without += without
        told = said(self.dialect, asked.body)
        if assert_answered_once(self.dialect, asked.body) and (self.always or not without):
            self.refused += 1
            return refusal(self.dialect)
        replies = sum(isinstance(turned, Reply) for turned in told[_last_prompt(told) :])
        return answer(self.dialect, *(read(f"{replies}.txt") if replies < 3 else (Say("Done."), End("stop"))))


def _last_prompt(told: list[Any]) -> int:
    return max(at for at, turned in enumerate(told) if getattr(turned, "who", "") == "user")


async def turns(talk: Talk, session: str, *names: str) -> list[str]:
    return [(await talk.rig.say(session, f"Read: {name}", name)).reason for name in names]


async def test_an_absent_reasoning_goes_back_as_an_empty_one(tmp_path: Path) -> None:
    """Case 94, P1: a call came without reasoning; every later request carries the key for it, empty, and the text of
    the others word by word, in the turn and after a restart."""
    place = Place.under(tmp_path)
    answers = [answer("chat", *read("a")), answer("chat", Think("So."), *read("b")), answer("chat", *read("c"))]
    async with ScriptedProvider(*answers, answer("chat", Say("Done."), End("stop"))) as provider:
        async with talking(place, "chat", provider) as talk:
            session = await talk.rig.create()
            assert await turns(talk, session, "one") == ["done"]
        async with talking(place, "chat", provider, life=2) as talk:
            await talk.rig.open(session)
            assert await turns(talk, session, "two") == ["done"]
    sent = [
        [told["reasoning_content"] for told in json.loads(asked.body)["messages"] if told["role"] == "assistant"]
        for asked in provider.asked
    ]
    assert sent == [[], [""], ["", "So."], ["", "So.", ""], ["", "So.", "", ""]]
    assert talk.warned() == []


@both
async def test_the_turn_goes_on_without_reasoning(tmp_path: Path, dialect: Dialect) -> None:
    """Cases 94, 95: three calls without reasoning in a row, and each history refused: the work does not stop. One
    refusal, one sentence that explains it, no reasoning for the rest of the turn, with it again in the next one."""
    place, strict = Place.under(tmp_path), Strict(dialect)
    async with ScriptedProvider(answering=strict) as provider, talking(place, dialect, provider) as talk:
        session = await talk.rig.create()
        assert await turns(talk, session, "one") == ["done"]
        assert (strict.refused, strict.without, len(provider.asked)) == (1, 3, 5)
        ((code, text),) = talk.warned()
        assert code == "withoutReasoning"
        assert text.endswith("The model is asked again, without reasoning in this turn.")
        assert await turns(talk, session, "two") == ["done"]
        assert (strict.refused, strict.without) == (2, 7)
    assert talk.pauses.seconds == []
    assert talk.editor.questions == []


@both
async def test_the_third_refusal_in_a_row_is_the_persons_to_decide(tmp_path: Path, dialect: Dialect) -> None:
    """Case 95: the third turn in a row that is refused asks once, clearly, with a choice; after "go on" nothing is
    refused or asked any more, as long as the session is open here."""
    place, strict = Place.under(tmp_path), Strict(dialect)
    async with ScriptedProvider(answering=strict) as provider, talking(place, dialect, provider) as talk:
        talk.editor.user = lambda question: GO_ON
        session = await talk.rig.create()
        assert await turns(talk, session, "one", "two", "three", "four", "five") == ["done"] * 5
        (question,) = talk.editor.questions
        assert isinstance(question, UserQuestion)
        assert question.options == (GO_ON, END)
        assert f"in {refusals_in_a_row_max} turns in a row" in question.question
        assert strict.refused == refusals_in_a_row_max
        assert talk.warned()[-1][1].endswith("without reasoning in this session.")
        assert len(talk.warned()) == refusals_in_a_row_max


@both
@pytest.mark.parametrize("person", ["ends it", "dismisses it", "is not there"])
async def test_other_answers_to_that_question(tmp_path: Path, dialect: Dialect, person: str) -> None:
    """Case 95: "end" and a dismissed question end the turn in one sentence, and the next one asks again; with nobody to
    ask it goes on without reasoning, and says so."""
    place, strict = Place.under(tmp_path), Strict(dialect)
    answers: dict[str, Callable[[UserQuestion], str | None]] = {
        "ends it": lambda _: END,
        "dismisses it": lambda _: None,
    }
    async with ScriptedProvider(answering=strict) as provider, talking(place, dialect, provider) as talk:
        talk.editor.user = answers.get(person, lambda _: GO_ON)
        talk.editor.somebody = person != "is not there"
        session = await talk.rig.create()
        reasons = await turns(talk, session, "one", "two", "three", "four")
        if person == "is not there":
            assert reasons == ["done"] * 4
            assert talk.editor.questions == []
            return
        assert reasons == ["done", "done", "modelFailed", "modelFailed"]
        assert len(talk.editor.questions) == 2
        codes = [code for code, _ in talk.warned()]
        assert codes == ["withoutReasoning", "withoutReasoning", "modelFailed", "modelFailed"]
        assert "begin a new session, or choose another model." in talk.warned()[-1][1]


@both
async def test_a_refusal_without_reasoning_too_is_the_end(tmp_path: Path, dialect: Dialect) -> None:
    """Case 95: where asking without reasoning is refused as well, the turn ends after that one try, with a way out."""
    place, strict = Place.under(tmp_path), Strict(dialect, always=True)
    async with ScriptedProvider(answering=strict) as provider, talking(place, dialect, provider) as talk:
        session = await talk.rig.create()
        assert await turns(talk, session, "one") == ["modelFailed"]
        assert [code for code, _ in talk.warned()] == ["withoutReasoning", "modelFailed"]
    assert (strict.refused, len(provider.asked)) == (2, 3)


async def test_an_answer_with_reasoning_ends_the_row(tmp_path: Path) -> None:
    """Case 95: refusals count in a row; a history that is taken with reasoning in between begins a new one."""
    place, refusing = Place.under(tmp_path), [False]

    def answering(asked: Asked) -> Scripted:
        without = json.loads(asked.body).get("thinking") == {"type": "disabled"}
        return refusal("chat") if refusing[0] and not without else answer("chat", Say("Yes."), End("stop"))

    async with ScriptedProvider(answering=answering) as provider, talking(place, "chat", provider) as talk:
        session = await talk.rig.create()
        for name in ("one", "two", "three", "four", "five"):
            refusing[0] = name != "three"
            assert await turns(talk, session, name) == ["done"]
        assert talk.editor.questions == []


@pytest.mark.parametrize("provider_word", ["compatible", "openai"])
async def test_a_profile_that_cannot_ask_for_none(tmp_path: Path, provider_word: str) -> None:
    """Case 95: where a profile has no word for an answer without reasoning the same request would fail again: it is not
    sent again, and the sentence names the setting."""
    place = Place.under(tmp_path)
    async with ScriptedProvider(refusal("chat")) as provider:
        access = Access(
            PROFILES[provider_word], "deepseek-flash", lambda: {"OPENAI_API_KEY": "k" * 20}, provider.address
        )
        model = RemoteModel(access, HttpClient())
        async with talking(place, "chat", provider, model=model) as talk:
            session = await talk.rig.create()
            assert await turns(talk, session, "one") == ["modelFailed"]
            ((_, text),) = talk.warned()
    assert len(provider.asked) == 1
    assert f"which the provider “{provider_word}” of the settings does not send" in text
