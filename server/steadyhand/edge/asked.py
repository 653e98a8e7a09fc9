"""The editor as the house sees it: what it is told, what it is asked (ports.Editor over the wire).

A client that declared our own requests gets those; any other gets `window/showMessageRequest`, whose titles are
wire.md's. No answer in time, an error or null is "not answered", never a yes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio
from lsprotocol import types

from steadyhand.core.plain import plain
from steadyhand.core.questions import Answer, HeldBackQuestion, Option, PermissionQuestion, UserQuestion
from steadyhand.core.told import MessageTold, QueueTold, RecoveryTold, SessionTold, Told
from steadyhand.core.views import TurnEvent
from steadyhand.edge.asking import EditorError
from steadyhand.edge.progress import Progress
from steadyhand.edge.server import Server
from steadyhand.ports import OpenDocument
from steadyhand_protocol.approval import DocumentSaveParams, DocumentSaveResult, PermissionAnswer, UserAnswered

question_wait_s_max = 86_400.0
save_s_max = 60.0
saved_seen_s_max = 2.0
saved_poll_s = 0.02
message_chars_max = 2_000
_LEVELS: Mapping[str, types.MessageType] = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
    "log": types.MessageType.Log,
}


class AskedEditor:
    """ports.Editor on a `Server`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._progress = Progress(server)
        self._on_recovery: Callable[[str], None] = lambda _: None

    def tell(self, told: Told) -> None:
        match told:
            case TurnEvent():
                self._server.notify("steadyhand/turn/event", plain(told))
                self._progress.follow(told)
            case SessionTold(session):
                self._server.notify("steadyhand/session/changed", plain(session))
            case QueueTold():
                self._server.notify("steadyhand/queue/changed", plain(told))
            case RecoveryTold(snapshot):
                self._server.notify("steadyhand/recovery/changed", plain(snapshot))
                self._on_recovery(snapshot.session_id)
            case MessageTold(level, text):
                params = types.ShowMessageParams(type=_LEVELS[level], message=fitted(text))
                self._server.notify(types.WINDOW_SHOW_MESSAGE, params)

    def on_recovery_changed(self, run: Callable[[str], None]) -> None:
        """Called with the session id when something about its uncertain effects changed."""
        self._on_recovery = run

    def on_progress_cancelled(self, cancel: Callable[[str], Awaitable[None]]) -> None:
        """Called with the turn id when the person cancels a turn's progress."""
        self._progress.cancel = cancel

    async def drain(self) -> None:
        await self._server.drain()

    def attached(self) -> bool:
        return self._server.attached

    async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
        if self._server.client.permission:
            return await self._own(_members(plain(question)), question.options)
        return await self._choose(question.text, question.short_options)

    async def ask_held_back(self, question: HeldBackQuestion) -> Answer | None:
        if self._server.client.permission:
            asked = _members(plain(question))
            asked["uncertain"] = [asked["uncertain"]]
            return await self._own(asked, question.options)
        return await self._choose(question.text, question.options)

    async def ask_user(self, question: UserQuestion) -> str | None:
        if self._server.client.user_ask:
            try:
                asked = plain(question)
                answer = await self._server.request("steadyhand/user/ask", asked, question_wait_s_max)
            except EditorError:
                return None
            return answer.answer if isinstance(answer, UserAnswered) else None
        options = tuple(Option(text, text) for text in question.options)
        chosen = await self._choose(question.question, options)
        return chosen.option if chosen else None

    def document(self, path: str) -> OpenDocument | None:
        found = self._server.documents.by_path(path)
        if found is None:
            return None
        return OpenDocument(found.text, found.version, found.unsaved)

    def unsaved_paths(self) -> tuple[str, ...]:
        every = self._server.documents.all()
        return tuple(one.path for one in every if one.path is not None and one.unsaved is not False)

    def saves(self) -> bool:
        return self._server.attached and self._server.client.save

    async def save(self, path: str, version: int) -> bool:
        found = self._server.documents.by_path(path)
        if found is None:
            return False
        params = DocumentSaveParams(uri=found.uri, version=version)
        try:
            answer = await self._server.request("steadyhand/document/save", params, save_s_max)
        except EditorError:
            return False
        return isinstance(answer, DocumentSaveResult) and answer.saved and await self._seen_saved(found.uri, version)

    async def _seen_saved(self, uri: str, version: int) -> bool:
        """Until the mirror has what was saved: an editor may have changed the text while saving it."""
        documents = self._server.documents
        with anyio.move_on_after(saved_seen_s_max):
            while (document := documents.by_uri(uri)) is not None and document.unsaved is not False:
                if document.version == version:
                    documents.save(uri)
                else:
                    # Polled, since nobody tells of what the client has still to send.
                    await anyio.sleep(saved_poll_s)
            return True
        return False

    async def choose(self, text: str, options: tuple[Option, ...]) -> str | None:
        """The id of the option that was chosen in a message; None: not answered."""
        answer = await self._choose(text, options)
        return answer.option if answer else None

    async def _own(self, asked: Mapping[str, object], options: tuple[Option, ...]) -> Answer | None:
        try:
            answer = await self._server.request("steadyhand/permission/ask", asked, question_wait_s_max)
        except EditorError:
            return None
        if not isinstance(answer, PermissionAnswer) or answer.option not in {option.id for option in options}:
            return None
        return Answer(answer.option, answer.note)

    async def _choose(self, text: str, options: tuple[Option, ...]) -> Answer | None:
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Warning,
            message=fitted(text),
            actions=tuple(types.MessageActionItem(title=option.label) for option in options),
        )
        ask = partial(self._server.request, types.WINDOW_SHOW_MESSAGE_REQUEST, params, question_wait_s_max)
        try:
            chosen = await ask()
        except EditorError:
            return None
        if not isinstance(chosen, types.MessageActionItem):
            return None
        return next((Answer(option.id) for option in options if option.label == chosen.title), None)


def _members(asked: object) -> dict[str, object]:
    assert isinstance(asked, dict)
    return asked


def fitted(text: str) -> str:
    """What a message can show; that there is more is said, so that nobody allows what he did not see."""
    if len(text) <= message_chars_max:
        return text
    end = f" … (cut here; {len(text)} characters in all)"
    return text[: message_chars_max - len(end)] + end
