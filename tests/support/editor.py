"""An editor that keeps every notification and answers questions as the test says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio
import anyio.lowlevel
import attrs

from steadyhand.domain.views.notifications import EditorNotification, MessageNotification
from steadyhand.domain.views.questions import Choice, HeldBackQuestion, PermissionQuestion, UserQuestion
from steadyhand.domain.views.types import TurnEvent, Uncertain, Warned
from steadyhand.ports.editor import EditAnswer, OpenDocument
from tests.support.waiting import Gate


@attrs.define(eq=False)
class Park:
    """A question that stays open until `answer_with`; `withdrawn` says that the server withdrew it before."""

    question: PermissionQuestion | HeldBackQuestion | None = None
    withdrawn: bool = False
    gate: Gate = attrs.field(factory=Gate)
    answer: Choice | None = None

    def answer_with(self, option: str | None, note: str | None = None) -> None:
        self.answer = Choice(option, note) if option is not None else None
        self.gate.go.set()

    async def wait_open(self) -> PermissionQuestion:
        question = await self.wait_any()
        assert isinstance(question, PermissionQuestion)
        return question

    async def wait_any(self) -> PermissionQuestion | HeldBackQuestion:
        await self.gate.wait_reached()
        assert self.question is not None
        return self.question


Reaction: TypeAlias = "str | Choice | Park | None"
"""How the editor answers: the id of an option, an answer, no answer, or a question that stays open."""


def uncertain_of(question: HeldBackQuestion) -> Uncertain:
    """The effect that a question is about."""
    assert question.uncertain is not None
    return question.uncertain


class ScriptedEditor:
    """`ports.Editor`.

    `answers` are used in order for permissions and for held-back calls. When none is left, the functions `permission`
    and `held_back` answer; without them the editor allows once and refuses a held-back call. `user_answers`, then
    `user`, answer a question to the user; without them the question is dismissed.
    """

    def __init__(
        self,
        *answers: Reaction,
        permission: Callable[[PermissionQuestion], Choice | None] = lambda _: Choice("once"),
        held_back: Callable[[HeldBackQuestion], Choice | None] = lambda _: Choice("refuse"),
        user: Callable[[UserQuestion], str | None] = lambda _: None,
        somebody: bool = True,
    ) -> None:
        self.answers: list[Reaction] = list(answers)
        self.permission = permission
        self.held_back = held_back
        self.user = user
        self.user_answers: list[str | None] = []
        self.somebody = somebody  # whether an editor is attached
        self.told: list[EditorNotification] = []
        self.news = anyio.Event()  # set, and replaced by a new one, at each notification
        self.questions: list[PermissionQuestion] = []
        self.held_back_questions: list[HeldBackQuestion] = []
        self.user_questions: list[UserQuestion] = []
        self.all_questions: list[PermissionQuestion | HeldBackQuestion | UserQuestion] = []
        self.documents: dict[str, OpenDocument] = {}
        self.encodings: dict[str, str] = {}  # path of an open document → what the editor reports
        self.on_save: Callable[[str, int], Awaitable[bool]] | None = None  # None: it cannot save on request
        self.on_apply: Callable[[str, int, str], Awaitable[EditAnswer]] | None = None  # None: it applies no edits
        self.editor_pid: int | None = None
        self.on_question: Callable[[PermissionQuestion], None] = lambda _: None

    def tell(self, told: EditorNotification) -> None:
        self.told.append(told)
        self.news.set()
        self.news = anyio.Event()

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()

    def attached(self) -> bool:
        return self.somebody

    async def ask_permission(self, question: PermissionQuestion) -> Choice | None:
        self.questions.append(question)
        self.all_questions.append(question)
        self.on_question(question)
        return await self._react(question, self.answers.pop(0) if self.answers else self.permission(question))

    async def ask_held_back(self, question: HeldBackQuestion) -> Choice | None:
        self.held_back_questions.append(question)
        self.all_questions.append(question)
        return await self._react(question, self.answers.pop(0) if self.answers else self.held_back(question))

    async def ask_user(self, question: UserQuestion) -> str | None:
        self.user_questions.append(question)
        self.all_questions.append(question)
        await anyio.lowlevel.checkpoint()
        return self.user_answers.pop(0) if self.user_answers else self.user(question)

    async def _react(self, question: PermissionQuestion | HeldBackQuestion, answer: Reaction) -> Choice | None:
        if not isinstance(answer, Park):
            await anyio.lowlevel.checkpoint()
            return Choice(answer) if isinstance(answer, str) else answer
        answer.question = question
        try:
            await answer.gate.passed()
        except anyio.get_cancelled_exc_class():
            answer.withdrawn = True
            raise
        return answer.answer

    def document(self, path: str) -> OpenDocument | None:
        return self.documents.get(path)

    async def encoding(self, path: str) -> str | None:
        await anyio.lowlevel.checkpoint()
        return self.encodings.get(path) if path in self.documents else None

    def unsaved_paths(self) -> list[str]:
        return [path for path, document in self.documents.items() if document.unsaved is not False]

    def open_paths(self) -> list[str]:
        return list(self.documents)

    def saves(self) -> bool:
        return self.on_save is not None

    def applies(self) -> bool:
        return self.on_apply is not None

    async def apply(self, path: str, version: int, text: str) -> EditAnswer:
        assert self.on_apply is not None, "only what can apply is asked to"
        return await self.on_apply(path, version, text)

    def pid(self) -> int | None:
        return self.editor_pid

    async def save(self, path: str, version: int) -> bool:
        assert self.on_save is not None, "only what can save is asked to"
        return await self.on_save(path, version)

    @property
    def messages(self) -> list[str]:
        """The messages that were shown to the user, in order."""
        return [told.text for told in self.told if isinstance(told, MessageNotification)]

    @property
    def warnings(self) -> list[Warned]:
        """The warnings of all turns, in order."""
        events = [told.event for told in self.told if isinstance(told, TurnEvent)]
        return [event for event in events if isinstance(event, Warned)]
