"""The doubt at the file: diagnostics, code actions, lenses, for any LSP client (row A8, wire.md "Standard parts").

One mark for each path of an unresolved effect (`uncertain-write`), or of one settled by a check and still shown
(`checked-write`). A mark stands on the first line in which the file differs from what was intended. Code actions and
lenses carry what was shown, so that the server can refuse what is no longer so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import anyio
import attrs
from lsprotocol import types

from steadyhand.core.folded import Attempt
from steadyhand.core.postcondition import Aim
from steadyhand.core.snapshot import shown_settled, uncertain_view
from steadyhand.core.views import Action, Uncertain
from steadyhand.core.words import aim_of, check_sentence
from steadyhand.edge.client import Folder
from steadyhand.edge.positions import width
from steadyhand.edge.server import Server
from steadyhand.session.house import House
from steadyhand.session.owner import Owner
from steadyhand.session.texts import first_difference, texts
from steadyhand.session.uris import path_of, quoted, uri_of
from steadyhand.tools.place import display

SOURCE = "steadyhand"
TITLES: dict[Action, str] = {
    "inspect": "Steadyhand: Inspect",
    "confirm": "Steadyhand: Confirm",
    "reject": "Steadyhand: Reject (do not repeat; stays uncertain)",
    "waive": "Steadyhand: Continue without knowing",
    "restore": "Steadyhand: Restore",
    "retry": "Steadyhand: Retry",
}


@attrs.frozen
class Mark:
    """One path of one effect, as it is shown."""

    uri: str
    line: int
    width: int  # of the line, in the client's units
    uncertain: Uncertain
    epoch: str | None
    revision: str
    aim: Aim = "content"

    @property
    def range(self) -> types.Range:
        return types.Range(types.Position(self.line, 0), types.Position(self.line, self.width))

    @property
    def settled(self) -> bool:
        return self.uncertain.state == "settled"


class Marks:
    """Publishes what changed, one session at a time; `house` is None before `initialize`."""

    def __init__(self, server: Server, house: Callable[[], House | None]) -> None:
        self._server = server
        self._house = house
        self._by_session: dict[str, tuple[Mark, ...]] = {}
        self._stale: set[str] = set()
        self._working = anyio.Lock()
        server.on_lsp(types.TEXT_DOCUMENT_CODE_ACTION, self.code_actions)
        server.on_lsp(types.TEXT_DOCUMENT_CODE_LENS, self.lenses)
        server.on_lsp(types.TEXT_DOCUMENT_DID_SAVE, self.saved)

    def refresh(self, session_id: str) -> None:
        """Something about the session's effects changed."""
        self._stale.add(session_id)
        self._server.start(self._catch_up, "showing uncertain effects")

    async def saved(self, params: types.DidSaveTextDocumentParams) -> None:
        """The place of a mark moves with the text."""
        for session_id, marks in self._by_session.items():
            if any(mark.uri == params.text_document.uri for mark in marks):
                self.refresh(session_id)

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        await self._catch_up()
        only = params.context.only
        if only and not any(_covers(kind) for kind in only):
            return []
        marks = [
            mark
            for mark in self._at(params.text_document.uri)
            if _meets(mark.range, params.range) or any(_shows(found, mark) for found in params.context.diagnostics)
        ]
        return [
            types.CodeAction(
                title=TITLES[action],
                kind=types.CodeActionKind.QuickFix,
                diagnostics=(_diagnostic(mark),),
                command=_command(mark, action),
            )
            for mark in marks
            for action in mark.uncertain.actions
        ]

    async def lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        await self._catch_up()
        return [
            types.CodeLens(range=mark.range, command=_command(mark, action))
            for mark in self._at(params.text_document.uri)
            for action in mark.uncertain.actions
        ]

    def _at(self, uri: str) -> list[Mark]:
        path = path_of(uri)
        return [
            mark
            for marks in self._by_session.values()
            for mark in marks
            if mark.uri == uri or (path is not None and path_of(mark.uri) == path)
        ]

    async def settled(self) -> None:
        """Wait until all that changed is published."""
        await self._catch_up()

    async def _catch_up(self) -> None:
        async with self._working:
            touched: set[str] = set()
            changed = False
            while self._stale:
                session_id = self._stale.pop()
                before = self._by_session.get(session_id, ())
                after = await self._marks_of(session_id)
                self._by_session[session_id] = after
                changed = changed or before != after
                if [_diagnostic(mark) for mark in before] != [_diagnostic(mark) for mark in after]:
                    touched |= {mark.uri for mark in (*before, *after)}
            for uri in sorted(touched):
                found = tuple(
                    _diagnostic(mark) for marks in self._by_session.values() for mark in marks if mark.uri == uri
                )
                self._server.notify(
                    types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS,
                    types.PublishDiagnosticsParams(uri=uri, diagnostics=found),
                )
            if changed:
                self._refresh_lenses()

    async def _marks_of(self, session_id: str) -> tuple[Mark, ...]:
        house = self._house()
        owner = house.owners.get(session_id) if house is not None else None
        if owner is None:
            return ()
        client, revision, marks = self._server.client, owner.snapshot().revision, list[Mark]()
        folder = _spelling(owner, client.folders)
        for attempt, view in _shown(owner):
            for path, line, text in await owner.world.in_thread(_places, owner, attempt):
                uri, units = _uri(owner, folder, path), width(text, client.encoding)
                marks.append(Mark(uri, line, units, view, owner.epoch, revision, aim_of(attempt)))
        return tuple(marks)

    def _refresh_lenses(self) -> None:
        """As a task of its own: a client may take its time with the answer."""
        workspace = self._server.client.capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            ask = partial(self._server.ask_aside, types.WORKSPACE_CODE_LENS_REFRESH, None)
            self._server.start(ask, "refreshing lenses")


def _shown(owner: Owner) -> list[tuple[Attempt, Uncertain]]:
    """What has marks: unresolved, or settled by a check and still shown."""
    stand, ledger = owner.stand(), owner.ledger
    return [
        (attempt, uncertain_view(attempt, ledger, stand))
        for attempt in ledger.attempts.values()
        if attempt.uncertain or (attempt.stage == "checked" and shown_settled(attempt, ledger, stand))
    ]


def _places(owner: Owner, attempt: Attempt) -> list[tuple[str, int, str]]:
    """(absolute path, line, text of the line) for each path of a file effect. Blocks: it reads the files."""
    if attempt.started is None or not attempt.started.evidence:
        return [(path, 0, "") for path in attempt.scope.paths]
    places: list[tuple[str, int, str]] = []
    for evidence in attempt.started.evidence:
        line, text = first_difference(texts(owner.ground, owner.ledger, attempt, evidence))
        places.append((evidence.resolved, line, text))
    return places


def _spelling(owner: Owner, folders: Sequence[Folder]) -> str | None:
    """The session's folder as this client spells it; another client may have created the session."""
    if owner.workspace is None:
        return None
    path = path_of(owner.workspace)
    return next((folder.uri for folder in folders if folder.path == path), owner.workspace)


def _uri(owner: Owner, folder: str | None, path: str) -> str:
    """Below the folder as it is spelled, so that it is the URI of the open document."""
    shown = display(owner.ground.root, path)
    if folder is None or shown.startswith("/"):
        return uri_of(path)
    return f"{folder.rstrip('/')}/{quoted(shown)}"


def _diagnostic(mark: Mark) -> types.Diagnostic:
    uncertain = mark.uncertain
    if mark.settled:
        done = "is there" if uncertain.settled == "checked_present" else "is not there"
        text = f"After a restart it was checked: what “{uncertain.title}” intended {done} now."
    else:
        rejected = " You rejected a repeat." if uncertain.state == "rejected" else ""
        checked = check_sentence(uncertain.check, mark.aim)
        text = f"It is uncertain whether “{uncertain.title}” happened. {checked}{rejected}"
    return types.Diagnostic(
        range=mark.range,
        message=text,
        severity=types.DiagnosticSeverity.Information if mark.settled else types.DiagnosticSeverity.Warning,
        code="checked-write" if mark.settled else "uncertain-write",
        source=SOURCE,
        data={"sessionId": uncertain.session_id, "attemptId": uncertain.attempt_id},
    )


def _command(mark: Mark, action: Action) -> types.Command:
    uncertain = mark.uncertain
    shown: dict[str, object] = {"sessionId": uncertain.session_id, "attemptId": uncertain.attempt_id}
    if mark.epoch is not None:
        shown["runtimeEpoch"] = mark.epoch
    shown["revision"] = mark.revision
    if uncertain.inspection is not None and action != "inspect":
        shown["inspectionId"] = uncertain.inspection.inspection_id
    return types.Command(title=TITLES[action], command=f"steadyhand.recovery.{action}", arguments=(shown,))


def _covers(kind: str) -> bool:
    """Whether asking for this kind asks for quick fixes; kinds are hierarchical."""
    return kind in ("", types.CodeActionKind.QuickFix)


def _meets(first: types.Range, second: types.Range) -> bool:
    return _key(first.start) <= _key(second.end) and _key(second.start) <= _key(first.end)


def _key(position: types.Position) -> tuple[int, int]:
    return position.line, position.character


def _shows(found: types.Diagnostic, mark: Mark) -> bool:
    """Whether a diagnostic of the client is this mark's; a client that keeps no `data` is known by the text."""
    if found.source != SOURCE:
        return False
    if isinstance(found.data, dict):
        return found.data.get("attemptId") == mark.uncertain.attempt_id
    return found.message == _diagnostic(mark).message
