"""Questions and messages to the editor: whole, and without hidden characters (row O7, case 146)."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.domain.views.questions import Choice, HeldBackQuestion, Option, PermissionQuestion, UserQuestion
from steadyhand.domain.views.types import ScopeEverything, Uncertain
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.editor.editor import MESSAGE_CHARS_MAX, LspEditor
from steadyhand.lsp.rpc.server import Server
from steadyhand_protocol.approval import PermissionAnswer, UserAnswered

pytestmark = pytest.mark.anyio

ONCE, SESSION, REJECT = Option("once", "Allow once"), Option("session", "Allow"), Option("reject", "Reject")
HARM = "\x1b[2K\r\u202e\u200b"


class _Client:
    """A client that answers each request by a function of its params; `asked` are the params of all requests."""

    def __init__(self, answer: Callable[[Any], object], permission: bool = False, user_ask: bool = False) -> None:
        self.client = SimpleNamespace(permission=permission, user_ask=user_ask)
        self.is_attached = True
        self.asked: list[Any] = []
        self.told: list[Any] = []
        self._answer = answer

    def on_lsp(self, method: str, handler: object) -> None:
        pass

    def notify(self, method: str, params: object) -> None:
        self.told.append(params)

    async def request(self, method: str, params: object, wait_s: float) -> object:
        self.asked.append(params)
        return self._answer(params)

    @property
    def editor(self) -> LspEditor:
        return LspEditor(cast(Server, self))

    @property
    def titles(self) -> list[list[str]]:
        """The titles that each message offered."""
        return [[action.title for action in params.actions] for params in self.asked]

    @property
    def messages(self) -> list[str]:
        return [params.message for params in self.asked]


def clicks(*titles: str) -> Callable[[Any], object]:
    """Answers that click these titles in order."""
    left = list(titles)
    return lambda params: types.MessageActionItem(title=left.pop(0))


def permission(text: str) -> PermissionQuestion:
    return PermissionQuestion("a", "s", "t", "c", "run_command", f"run {HARM}", "{}", text, (ONCE, SESSION, REJECT))


def held_back(text: str) -> HeldBackQuestion:
    effect = Uncertain("s", "b", "c", "t", "run_command", "x", ScopeEverything(), "unknown", "now", ())
    options = (Option("inspect", "Inspect"), Option("waive", "Continue"), Option("refuse", "Refuse"))
    return HeldBackQuestion("a", "s", "t", "c", "run_command", "run", "{}", text, effect, options)


@pytest.mark.parametrize("length", [0, 1, MESSAGE_CHARS_MAX])
async def test_short_question_is_one_message_with_every_title(length: int) -> None:
    """O7: up to 2,000 characters nothing changes."""
    client = _Client(clicks("Allow once"))
    assert await client.editor.ask_permission(permission("x" * length)) == Choice("once")
    assert client.titles == [["Allow once", "Allow", "Reject"]]


async def test_long_question_offers_what_allows_only_in_its_last_message() -> None:
    """O7, case 146: the harm at the end of 5,000 characters is read before anything can be allowed."""
    client = _Client(clicks("Show more", "Show more", "Allow once"))
    text = "a" * 4990 + "; rm -rf ~"
    assert await client.editor.ask_permission(permission(text)) == Choice("once")
    assert "".join(client.messages) == text
    assert [len(message) for message in client.messages] == [MESSAGE_CHARS_MAX, MESSAGE_CHARS_MAX, 1000]
    assert client.titles == [["Show more", "Reject"], ["Show more", "Reject"], ["Allow once", "Allow", "Reject"]]


@pytest.mark.parametrize(("clicked", "answer"), [(("Reject",), "reject"), (("Show more", "Reject"), "reject")])
async def test_long_question_can_be_rejected_in_each_message(clicked: tuple[str, ...], answer: str) -> None:
    """O7: `Reject` stands in each."""
    client = _Client(clicks(*clicked))
    assert await client.editor.ask_permission(permission("x" * 4001)) == Choice(answer)


@pytest.mark.parametrize("reply", [None, types.MessageActionItem(title="Allow once"), "Allow once", 7])
async def test_answer_that_a_message_did_not_offer_is_no_answer(reply: object) -> None:
    """O7: a client that answers *Allow once* by itself allows nothing that was not shown whole."""
    client = _Client(lambda params: reply)
    assert await client.editor.ask_permission(permission("x" * 2001)) is None
    assert len(client.asked) == 1


async def test_long_question_about_a_held_back_call_offers_to_refuse_in_each_message() -> None:
    """O7: what waives or confirms comes last."""
    client = _Client(clicks("Show more", "Continue"))
    assert await client.editor.ask_held_back(held_back("x" * 2001)) == Choice("waive")
    assert client.titles == [["Show more", "Refuse"], ["Inspect", "Continue", "Refuse"]]


async def test_long_question_of_the_model_is_shown_whole() -> None:
    """O7: its answers come with the last part."""
    client = _Client(clicks("Show more", "b"))
    assert await client.editor.ask_user(UserQuestion("a", "s", "t", "q" * 2001, ("a", "b"))) == "b"
    assert client.titles == [["Show more"], ["a", "b"]]


async def test_client_with_permission_gets_the_whole_text_in_one_piece() -> None:
    """O7: title and text without hidden characters; the arguments as the model wrote them."""
    client = _Client(lambda params: PermissionAnswer(option="once"), permission=True)
    question = permission("x" * 5000 + HARM)
    assert await client.editor.ask_permission(question) == Choice("once")
    (params,) = client.asked
    assert params["text"] == "x" * 5000 + "\\u001b[2K\\u000d\\u202e\\u200b"
    assert params["title"] == "run \\u001b[2K\\u000d\\u202e\\u200b"
    assert params["arguments"] == question.arguments


@pytest.mark.parametrize("user_ask", [True, False])
async def test_option_with_hidden_characters_is_answered_as_the_model_wrote_it(user_ask: bool) -> None:
    """O7: the person sees the escape, the model gets its own option back."""
    shown = "yes\\u202e"
    client = _Client((lambda params: UserAnswered(answer=shown)) if user_ask else clicks(shown), user_ask=user_ask)
    question = UserQuestion("a", "s", "t", f"{HARM}?", ("yes\u202e", "no"))
    assert await client.editor.ask_user(question) == "yes\u202e"
    (params,) = client.asked
    asked = params["question"] if user_ask else params.message
    assert asked == "\\u001b[2K\\u000d\\u202e\\u200b?"


def test_message_shows_hidden_characters() -> None:
    """O7: messages too."""
    client = _Client(lambda params: None)
    client.editor.tell(MessageNotification("warning", f"a\n{HARM}"))
    assert client.told[0].message == "a\n\\u001b[2K\\u000d\\u202e\\u200b"
