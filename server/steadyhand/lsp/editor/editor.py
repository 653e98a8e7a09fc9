"""`ports.Editor` over LSP: notifications and questions to the editor, and its open documents.

A client that declares an own request gets it; any other client gets `window/showMessageRequest`, with the titles of
docs/protocol.md. An error, null, or no answer in time counts as no answer, and never as consent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import anyio
import attrs

from steadyhand.domain.text.hidden_characters import show_hidden, show_hidden_in_value
from steadyhand.domain.views.notifications import (
    EditorNotification,
    MessageNotification,
    QueueNotification,
    RecoveryNotification,
    SessionNotification,
)
from steadyhand.domain.views.questions import Choice, HeldBackQuestion, Option, PermissionQuestion, UserQuestion
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import Snapshot, TurnEvent
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.editor.document_edit import edit_of, one_clause
from steadyhand.lsp.editor.progress import Progress
from steadyhand.lsp.rpc.pending_requests import EditorError
from steadyhand.lsp.rpc.server import Server
from steadyhand.ports.editor import EditAnswer, OpenDocument
from steadyhand_protocol.approval import (
    DocumentEncodingParams,
    DocumentEncodingResult,
    DocumentSaveParams,
    DocumentSaveResult,
    PermissionAnswer,
    SecretGetParams,
    SecretGetResult,
    UserAnswered,
)

QUESTION_WAIT_S_MAX = 86_400.0
SAVE_S_MAX = 60.0
SECRET_S_MAX = 60.0
ENCODING_S_MAX = 5.0
SAVED_SEEN_S_MAX = 2.0
APPLY_S_MAX = 60.0
APPLIED_SEEN_S_MAX = 5.0
"""How long after its answer an editor may take to report the text: some collect changes before they send them."""
METHOD_NOT_FOUND = -32601
SAVED_POLL_S = 0.02
MESSAGE_CHARS_MAX = 2_000
SHOW_MORE = Option("showMore", "Show more")
"""In place of what allows something, as long as the question goes on in the next message."""
REFUSING = frozenset({"reject", "refuse"})
"""Options that each of these messages offers."""
_LEVELS: Mapping[str, types.MessageType] = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
    "log": types.MessageType.Log,
}


class LspEditor:
    """ports.Editor on a `Server`."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._progress = Progress(server)
        self._on_snapshot: Callable[[Snapshot], None] | None = None

    def tell(self, notification: EditorNotification) -> None:
        match notification:
            case TurnEvent():
                self._server.notify("steadyhand/turn/event", to_plain(notification))
                self._progress.follow(notification)
            case SessionNotification(session):
                self._server.notify("steadyhand/session/changed", to_plain(session))
            case QueueNotification():
                self._server.notify("steadyhand/queue/changed", to_plain(notification))
            case RecoveryNotification(snapshot):
                self._server.notify("steadyhand/recovery/changed", to_plain(snapshot))
                if self._on_snapshot is not None:
                    self._on_snapshot(snapshot)
            case MessageNotification(level, text):
                params = types.ShowMessageParams(type=_LEVELS[level], message=shorten(show_hidden(text)))
                self._server.notify(types.WINDOW_SHOW_MESSAGE, params)

    def on_snapshot(self, run: Callable[[Snapshot], None]) -> None:
        """Call `run` with each recovery snapshot that the editor is notified of."""
        self._on_snapshot = run

    def on_progress_cancelled(self, cancel: Callable[[str], Awaitable[None]]) -> None:
        """Call `cancel` with the turn id when the user cancels the progress of a turn."""
        self._progress.cancel = cancel

    async def drain(self) -> None:
        await self._server.drain()

    def attached(self) -> bool:
        return self._server.is_attached

    async def ask_permission(self, question: PermissionQuestion) -> Choice | None:
        shown = attrs.evolve(question, title=show_hidden_in_value(question.title), text=show_hidden(question.text))
        if self._server.client.permission:
            return await self._ask_permission(_members(to_plain(shown)), question.options)
        return await self._ask_by_message(shown.text, question.short_options)

    async def ask_held_back(self, question: HeldBackQuestion) -> Choice | None:
        shown = attrs.evolve(question, title=show_hidden_in_value(question.title), text=show_hidden(question.text))
        if self._server.client.permission:
            params = _members(to_plain(shown))
            if question.uncertain is not None:
                params["uncertain"] = [params["uncertain"]]
            return await self._ask_permission(params, question.options)
        return await self._ask_by_message(shown.text, question.options)

    async def ask_user(self, question: UserQuestion) -> str | None:
        labels = tuple(show_hidden_in_value(option) for option in question.options)
        shown = attrs.evolve(question, question=show_hidden(question.question), options=labels)
        if self._server.client.user_ask:
            try:
                answer = await self._server.request("steadyhand/user/ask", to_plain(shown), QUESTION_WAIT_S_MAX)
            except EditorError:
                return None
            said = answer.answer if isinstance(answer, UserAnswered) else None
            return question.options[labels.index(said)] if said in labels else said
        options = tuple(Option(text, label) for text, label in zip(question.options, labels, strict=True))
        chosen = await self._ask_by_message(shown.question, options)
        return chosen.option if chosen else None

    def document(self, path: str) -> OpenDocument | None:
        document = self._server.documents.by_path(path)
        if document is None:
            return None
        return OpenDocument(
            document.text,
            document.version,
            document.is_unsaved,
            document.language,
            document.text_at_save if document.on_disk else None,
            document.first_text,
            document.opened_over,
        )

    async def encoding(self, path: str) -> str | None:
        found = self._server.documents.by_path(path)
        if found is None or not self._server.client.document_encoding or not self._server.is_attached:
            return None
        params = DocumentEncodingParams(uri=found.uri)
        try:
            answer = await self._server.request("steadyhand/document/encoding", params, ENCODING_S_MAX)
        except EditorError:
            return None
        return answer.encoding if isinstance(answer, DocumentEncodingResult) else None

    def unsaved_paths(self) -> tuple[str, ...]:
        every = self._server.documents.all()
        return tuple(one.path for one in every if one.path is not None and one.is_unsaved is not False)

    def open_paths(self) -> tuple[str, ...]:
        return tuple(one.path for one in self._server.documents.all() if one.path is not None)

    def saves(self) -> bool:
        return self._server.is_attached and self._server.client.save

    def applies(self) -> bool:
        return self._server.is_attached and self._server.client.applies

    async def apply(self, path: str, version: int, text: str) -> EditAnswer:
        documents = self._server.documents
        found = documents.by_path(path)
        if found is None or found.version != version:
            return EditAnswer("refused", "it was changed meanwhile")
        params = edit_of(found, text, documents.encoding)
        with documents.watch(found.uri, text) as shown:
            is_refused, why = False, "the editor says that it applied it, and its text does not show it"
            try:
                answer = await self._server.request(types.WORKSPACE_APPLY_EDIT, params, APPLY_S_MAX)
                is_refused = not answer.applied
                why = answer.failure_reason or "the editor does not say why" if is_refused else why
            except EditorError as error:
                is_refused, why = error.code == METHOD_NOT_FOUND, str(error)
            if not is_refused:
                with anyio.move_on_after(APPLIED_SEEN_S_MAX):
                    await shown.wait()
            if shown.is_set():
                return EditAnswer("applied")
        return EditAnswer("refused" if is_refused else "lost", one_clause(why))

    def pid(self) -> int | None:
        return self._server.client.process

    async def save(self, path: str, version: int) -> bool:
        found = self._server.documents.by_path(path)
        if found is None:
            return False
        params = DocumentSaveParams(uri=found.uri, version=version)
        try:
            answer = await self._server.request("steadyhand/document/save", params, SAVE_S_MAX)
        except EditorError:
            return False
        return isinstance(answer, DocumentSaveResult) and answer.saved and await self._wait_saved(found.uri, version)

    async def secret(self, name: str) -> str | None:
        """Request a key from the editor's own store; None where it has none or does not give it."""
        if not self._server.client.secret:
            return None
        try:
            answer = await self._server.request("steadyhand/secret/get", SecretGetParams(name=name), SECRET_S_MAX)
        except EditorError:
            return None
        return answer.value if isinstance(answer, SecretGetResult) else None

    async def _wait_saved(self, uri: str, version: int) -> bool:
        """Wait until the mirror has the saved text; an editor may have changed the text while saving it."""
        documents = self._server.documents
        with anyio.move_on_after(SAVED_SEEN_S_MAX):
            while (document := documents.by_uri(uri)) is not None and document.is_unsaved is not False:
                if document.version == version:
                    documents.save(uri)
                else:
                    # The client does not announce what it has still to send.
                    await anyio.sleep(SAVED_POLL_S)
            return True
        return False

    async def choose(self, text: str, options: tuple[Option, ...]) -> str | None:
        """Ask in a message and return the id of the chosen option; None: no answer."""
        answer = await self._ask_by_message(show_hidden(text), options)
        return answer.option if answer else None

    async def _ask_permission(self, question: Mapping[str, object], options: tuple[Option, ...]) -> Choice | None:
        try:
            answer = await self._server.request("steadyhand/permission/ask", question, QUESTION_WAIT_S_MAX)
        except EditorError:
            return None
        if not isinstance(answer, PermissionAnswer) or answer.option not in {option.id for option in options}:
            return None
        return Choice(answer.option, answer.note)

    async def _ask_by_message(self, text: str, options: tuple[Option, ...]) -> Choice | None:
        """Ask in as many messages as the text needs. Only the last one offers what allows something (row O7)."""
        *before, last = [text[at : at + MESSAGE_CHARS_MAX] for at in range(0, len(text), MESSAGE_CHARS_MAX)] or [""]
        refusing = tuple(option for option in options if option.id in REFUSING)
        for part in before:
            answer = await self._ask_once(part, (SHOW_MORE, *refusing))
            if answer is None or answer.option != SHOW_MORE.id:
                return answer
        return await self._ask_once(last, options)

    async def _ask_once(self, text: str, options: tuple[Option, ...]) -> Choice | None:
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Warning,
            message=text,
            actions=tuple(types.MessageActionItem(title=option.label) for option in options),
        )
        ask = partial(self._server.request, types.WINDOW_SHOW_MESSAGE_REQUEST, params, QUESTION_WAIT_S_MAX)
        try:
            chosen = await ask()
        except EditorError:
            return None
        if not isinstance(chosen, types.MessageActionItem):
            return None
        return next((Choice(option.id) for option in options if option.label == chosen.title), None)


def _members(plain: object) -> dict[str, object]:
    assert isinstance(plain, dict)
    return plain


def shorten(text: str) -> str:
    """Return a text that a message can show. It says how much is missing. A question is never shortened."""
    if len(text) <= MESSAGE_CHARS_MAX:
        return text
    end = f" … (cut here; {len(text)} characters in all)"
    return text[: MESSAGE_CHARS_MAX - len(end)] + end
