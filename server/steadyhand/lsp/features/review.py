"""Answers `steadyhand/review/*`, the `steadyhand.review.*` commands, and the code actions at a change under review.

The code actions work in any LSP client: at the lines of a hunk under review, *Keep* and *Undo this change*; at a file
that is one hunk, everywhere in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from steadyhand.domain.errors import Refused, invalid_params
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import ReviewFile, ReviewHunk, ReviewResult
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.features.diagnostics_publisher import DiagnosticsPublisher
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.changes.review import Selection, keep, list_review, undo
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.session import Session
from steadyhand.session.uris import path_of
from steadyhand.tools.workspace.places import is_same_place
from steadyhand_protocol.review import ReviewArguments, ReviewListParams, ReviewResolveParams

Action = Literal["keep", "undo"]
TITLES: dict[Action, str] = {"keep": "Steadyhand: Keep", "undo": "Steadyhand: Undo this change"}


class ReviewFeature:
    """Answers the requests, the commands, and which code actions there are at a document."""

    def __init__(self, server: Server, registry: SessionRegistry, publisher: DiagnosticsPublisher) -> None:
        """A decision is answered after `publisher` has published what it changed."""
        self._registry = registry
        self._publisher = publisher
        server.on("steadyhand/review/list", self.list_files)
        server.on("steadyhand/review/resolve", self.resolve)
        server.on_command("steadyhand.review.keep", partial(self.run_command, "keep"))
        server.on_command("steadyhand.review.undo", partial(self.run_command, "undo"))

    async def list_files(self, params: ReviewListParams) -> object:
        return to_plain(await list_review(await self._registry.open_session(params.session_id)))

    async def resolve(self, params: ReviewResolveParams) -> object:
        _require_one_selector(params, "$")
        session = await self._registry.open_session(params.session_id)
        return await self._resolve(session, params.action, params.epoch, params)

    async def run_command(self, action: Action, arguments: ReviewArguments) -> object:
        _require_one_selector(arguments, "$.arguments")
        session = await self._registry.open_session(arguments.session_id)
        return await self._resolve(session, action, arguments.epoch, arguments)

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """Return *Keep* and *Undo this change* for the hunks under review at the requested lines of the document."""
        found: list[types.CodeAction] = []
        for session in list(self._registry.sessions.values()):
            if session.epoch is None or not session.ledger.file_events:
                continue
            for file in await self._files_at(session, params.text_document.uri):
                hunk_ids = [one.hunk_id for one in file.hunks if one.state == "new" and is_at(one, params.range)]
                found += [_code_action(session, action, hunk_ids) for action in TITLES if hunk_ids]
        return found

    async def _files_at(self, session: Session, uri: str) -> list[ReviewFile]:
        """Return the reviewed files that are this document. Nothing of the review may fail a code action."""
        try:
            files = (await list_review(session, _last_name(uri))).files
        except Refused:
            return []
        return [file for file in files if await self._is_document(file.uri, uri)]

    async def _is_document(self, reviewed: str, uri: str) -> bool:
        one, other, context = path_of(reviewed), path_of(uri), self._registry.context
        if one is None or other is None or one.rpartition("/")[2] != other.rpartition("/")[2]:
            return False
        return one == other or await context.in_thread(is_same_place, context.disk, one, other)

    async def _resolve(
        self, session: Session, action: Action, epoch: str | None, selector: ReviewResolveParams | ReviewArguments
    ) -> object:
        carry_out = keep if action == "keep" else undo
        done: ReviewResult = await carry_out(session, epoch, await self._selection(session, selector))
        await self._publisher.flush()
        return to_plain(done)

    async def _selection(self, session: Session, selector: ReviewResolveParams | ReviewArguments) -> Selection:
        if selector.uri is None:
            return Selection(selector.hunk_ids, None, selector.all is True)
        for file in (await list_review(session, _last_name(selector.uri))).files:
            if await self._is_document(file.uri, selector.uri):
                return Selection(uri=file.uri)
        return Selection(uri=selector.uri)


def is_at(hunk: ReviewHunk, requested: types.Range) -> bool:
    """Return whether a hunk is at these lines. Where lines were only removed, it is at the lines on both sides."""
    if hunk.after is None:
        return True
    first, end = hunk.after.start.line, hunk.after.end.line
    lines = (first, end - 1) if first < end else (first - 1, first)
    return lines[0] <= requested.end.line and requested.start.line <= lines[1]


def _last_name(uri: str) -> str:
    return (path_of(uri) or "").rpartition("/")[2]


def _require_one_selector(selector: ReviewResolveParams | ReviewArguments, root: str) -> None:
    given = [selector.hunk_ids is not None, selector.uri is not None, selector.all is not None]
    if sum(given) != 1:
        raise invalid_params(root, "give exactly one of hunkIds, uri and all")


def _code_action(session: Session, action: Action, hunk_ids: Sequence[str]) -> types.CodeAction:
    argument: dict[str, object] = {"sessionId": session.session_id, "hunkIds": list(hunk_ids)}
    if session.epoch is not None:
        argument["epoch"] = session.epoch
    command = types.Command(title=TITLES[action], command=f"steadyhand.review.{action}", arguments=(argument,))
    return types.CodeAction(title=TITLES[action], kind=types.CodeActionKind.QuickFix, command=command)
