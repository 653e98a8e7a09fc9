"""A provider that requires reasoning which does not exist, in whole turns over HTTP (cases 94, 95)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.adapters.models.http import HttpClient
from steadyhand.adapters.models.remote import Access, RemoteModel
from steadyhand.domain.model.provider_profiles import PROFILES
from steadyhand.domain.views.questions import UserQuestion
from steadyhand.session.turns.reasoning import END, GO_ON, REFUSALS_IN_A_ROW_MAX
from tests.models.dialogue import Reply, Talk, answer, assert_answered_once, said, talking
from tests.models.streams import Ask, Dialect, End, Say, Step, Think
from tests.support.scripted_provider import Asked, Scripted, ScriptedProvider
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio
# test_responses_dialect.py has the refusal of encrypted reasoning, which is left out of the next request.
both = pytest.mark.parametrize("dialect", ["chat", "messages"])

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
    """`ScriptedProvider(answering=…)`: three calls without reasoning, then a text, in each turn. It refuses a history
    with a call unless the request is without reasoning, or refuses that too."""

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
    return [(await talk.server.say(session, f"Read: {name}", name)).reason for name in names]


async def test_missing_reasoning_goes_back_as_an_empty_text(tmp_path: Path) -> None:
    """Case 94, P1: a call came without reasoning; every later request has the key for it, empty, and the text of the
    others word by word, in the turn and after a restart."""
    workspace = Workspace.under(tmp_path)
    answers = [answer("chat", *read("a")), answer("chat", Think("So."), *read("b")), answer("chat", *read("c"))]
    async with ScriptedProvider(*answers, answer("chat", Say("Done."), End("stop"))) as provider:
        async with talking(workspace, "chat", provider) as talk:
            session = await talk.server.create()
            assert await turns(talk, session, "one") == ["done"]
        async with talking(workspace, "chat", provider, run=2) as talk:
            await talk.server.open(session)
            assert await turns(talk, session, "two") == ["done"]
    sent = [
        [told["reasoning_content"] for told in json.loads(asked.body)["messages"] if told["role"] == "assistant"]
        for asked in provider.asked
    ]
    assert sent == [[], [""], ["", "So."], ["", "So.", ""], ["", "So.", "", ""]]
    assert talk.warned() == []


@both
async def test_refused_reasoning_continues_the_turn_without_it(tmp_path: Path, dialect: Dialect) -> None:
    """Cases 94, 95: three calls without reasoning in a row, and each history is refused: the work does not stop. There
    is one refusal, one sentence that explains it, no reasoning for the rest of the turn, and reasoning again in the
    next turn."""
    workspace, strict = Workspace.under(tmp_path), Strict(dialect)
    async with ScriptedProvider(answering=strict) as provider, talking(workspace, dialect, provider) as talk:
        session = await talk.server.create()
        assert await turns(talk, session, "one") == ["done"]
        assert (strict.refused, strict.without, len(provider.asked)) == (1, 3, 5)
        ((code, text),) = talk.warned()
        assert code == "withoutReasoning"
        assert text.endswith("Retrying without reasoning in this turn.")
        assert await turns(talk, session, "two") == ["done"]
        assert (strict.refused, strict.without) == (2, 7)
    assert talk.pauses.seconds == []
    assert talk.editor.all_questions == []


@both
async def test_third_refusal_in_a_row_asks_the_user_once(tmp_path: Path, dialect: Dialect) -> None:
    """Case 95: the third refused turn in a row asks once, clearly, with a choice; after "go on" nothing is refused or
    asked any more, as long as the session is open here."""
    workspace, strict = Workspace.under(tmp_path), Strict(dialect)
    async with ScriptedProvider(answering=strict) as provider, talking(workspace, dialect, provider) as talk:
        talk.editor.user = lambda question: GO_ON
        session = await talk.server.create()
        assert await turns(talk, session, "one", "two", "three", "four", "five") == ["done"] * 5
        (question,) = talk.editor.all_questions
        assert isinstance(question, UserQuestion)
        assert question.options == (GO_ON, END)
        assert f"in {REFUSALS_IN_A_ROW_MAX} turns in a row" in question.question
        assert strict.refused == REFUSALS_IN_A_ROW_MAX
        assert talk.warned()[-1][1].endswith("without reasoning in this session.")
        assert len(talk.warned()) == REFUSALS_IN_A_ROW_MAX


@both
@pytest.mark.parametrize("person", ["ends it", "dismisses it", "is not there"])
async def test_end_or_no_answer_to_that_question_ends_the_turn(tmp_path: Path, dialect: Dialect, person: str) -> None:
    """Case 95: "end" and a dismissed question end the turn with one sentence, and the next turn asks again; without a
    user to ask the turn goes on without reasoning, and says so."""
    workspace, strict = Workspace.under(tmp_path), Strict(dialect)
    answers: dict[str, Callable[[UserQuestion], str | None]] = {
        "ends it": lambda _: END,
        "dismisses it": lambda _: None,
    }
    async with ScriptedProvider(answering=strict) as provider, talking(workspace, dialect, provider) as talk:
        talk.editor.user = answers.get(person, lambda _: GO_ON)
        talk.editor.somebody = person != "is not there"
        session = await talk.server.create()
        reasons = await turns(talk, session, "one", "two", "three", "four")
        if person == "is not there":
            assert reasons == ["done"] * 4
            assert talk.editor.all_questions == []
            return
        assert reasons == ["done", "done", "modelFailed", "modelFailed"]
        assert len(talk.editor.all_questions) == 2
        codes = [code for code, _ in talk.warned()]
        assert codes == ["withoutReasoning", "withoutReasoning", "modelFailed", "modelFailed"]
        assert "Begin a new session, or choose another model." in talk.warned()[-1][1]


@both
async def test_refusal_without_reasoning_too_ends_the_turn(tmp_path: Path, dialect: Dialect) -> None:
    """Case 95: if the request without reasoning is refused as well, the turn ends after that one try, and says what the
    user can do."""
    workspace, strict = Workspace.under(tmp_path), Strict(dialect, always=True)
    async with ScriptedProvider(answering=strict) as provider, talking(workspace, dialect, provider) as talk:
        session = await talk.server.create()
        assert await turns(talk, session, "one") == ["modelFailed"]
        assert [code for code, _ in talk.warned()] == ["withoutReasoning", "modelFailed"]
    assert (strict.refused, len(provider.asked)) == (2, 3)


async def test_accepted_reasoning_resets_the_count_of_refusals(tmp_path: Path) -> None:
    """Case 95: only refusals in a row count; an accepted history with reasoning in between begins a new count."""
    workspace, refusing = Workspace.under(tmp_path), [False]

    def answering(asked: Asked) -> Scripted:
        without = json.loads(asked.body).get("thinking") == {"type": "disabled"}
        return refusal("chat") if refusing[0] and not without else answer("chat", Say("Yes."), End("stop"))

    async with ScriptedProvider(answering=answering) as provider, talking(workspace, "chat", provider) as talk:
        session = await talk.server.create()
        for name in ("one", "two", "three", "four", "five"):
            refusing[0] = name != "three"
            assert await turns(talk, session, name) == ["done"]
        assert talk.editor.all_questions == []


@pytest.mark.parametrize("provider_word", ["compatible", "openai"])
async def test_profile_without_a_switch_for_reasoning_does_not_repeat(tmp_path: Path, provider_word: str) -> None:
    """Case 95: if a profile has no way to switch reasoning off, the same request would fail again: it is not sent
    again, and the sentence names the setting."""
    workspace = Workspace.under(tmp_path)
    async with ScriptedProvider(refusal("chat")) as provider:
        access = Access(
            PROFILES[provider_word], "deepseek-flash", lambda: {"OPENAI_API_KEY": "k" * 20}, provider.address
        )
        model = RemoteModel(access, HttpClient())
        async with talking(workspace, "chat", provider, model=model) as talk:
            session = await talk.server.create()
            assert await turns(talk, session, "one") == ["modelFailed"]
            ((_, text),) = talk.warned()
    assert len(provider.asked) == 1
    assert f"which is not sent for the provider “{provider_word}” in your settings" in text
