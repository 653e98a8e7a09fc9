"""Publish the diagnostics of uncertain effects, whenever a recovery snapshot or a saved file changes them (row A8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import anyio

from steadyhand.domain.views.types import Snapshot
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.features.document_uris import document_uris
from steadyhand.lsp.features.effect_diagnostics import (
    EffectDiagnostic,
    effect_diagnostics,
    effects_with_diagnostics,
)
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.inspection.effect_places import find_places
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.uris import path_of


class DiagnosticsPublisher:
    """Holds what the client shows, by session. It computes one session at a time and publishes each change once."""

    def __init__(self, server: Server, registry: SessionRegistry) -> None:
        self._server = server
        self._registry = registry
        self._published: dict[str, tuple[EffectDiagnostic, ...]] = {}
        self._stale: set[str] = set()  # sessions to compute again
        self._computing = anyio.Lock()
        self._observers: list[Callable[[], None]] = []

    def observe(self, run: Callable[[], None]) -> None:
        """Call `run` after each change of `at`."""
        self._observers.append(run)

    def follow_snapshot(self, snapshot: Snapshot) -> None:
        """Compute the session of a new snapshot again, and publish in a task of its own."""
        self._refresh(snapshot.session_id)

    async def follow_save(self, params: types.DidSaveTextDocumentParams) -> None:
        """The first line that differs may be another one now."""
        for session_id, diagnostics in self._published.items():
            if any(diagnostic.uri == params.text_document.uri for diagnostic in diagnostics):
                self._refresh(session_id)

    def at(self, uri: str) -> list[EffectDiagnostic]:
        """Return the published diagnostics of a document, whatever spelling of its URI is given."""
        path = path_of(uri)
        return [
            diagnostic
            for diagnostics in self._published.values()
            for diagnostic in diagnostics
            if diagnostic.uri == uri or (path is not None and path_of(diagnostic.uri) == path)
        ]

    async def flush(self) -> None:
        """Publish all that changed; return when the notifications are sent."""
        async with self._computing:
            changed_uris: set[str] = set()
            has_changed = False
            try:
                while self._stale:
                    session_id = self._stale.pop()
                    before = self._published.get(session_id, ())
                    after = self._published[session_id] = await self._compute(session_id)
                    has_changed = has_changed or before != after
                    if _to_lsp(before) != _to_lsp(after):
                        changed_uris |= {diagnostic.uri for diagnostic in (*before, *after)}
            finally:  # what was computed is published, also if a later session fails or the request is cancelled
                for uri in sorted(changed_uris):
                    self._publish(uri)
                if has_changed:
                    for run in self._observers:
                        run()

    def _refresh(self, session_id: str) -> None:
        self._stale.add(session_id)
        self._server.start(self.flush, "publishing diagnostics")

    async def _compute(self, session_id: str) -> tuple[EffectDiagnostic, ...]:
        session = self._registry.sessions.get(session_id)
        if session is None:
            return ()
        # The present state: a session that was taken over has sent no snapshot yet.
        snapshot, client = session.snapshot(), self._server.client
        places = await find_places(session, [effect.attempt_id for effect in effects_with_diagnostics(snapshot)])
        every = [place for found in places.values() for place in found.places]
        context = session.context
        uris = await context.in_thread(document_uris, context.disk, every, session.workspace, client.folders)
        return effect_diagnostics(snapshot, places, uris, client.encoding)

    def _publish(self, uri: str) -> None:
        every = (one for diagnostics in self._published.values() for one in diagnostics if one.uri == uri)
        params = types.PublishDiagnosticsParams(uri=uri, diagnostics=tuple(_to_lsp(every)))
        self._server.notify(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, params)


def _to_lsp(diagnostics: Iterable[EffectDiagnostic]) -> list[types.Diagnostic]:
    return [diagnostic.to_lsp() for diagnostic in diagnostics]
