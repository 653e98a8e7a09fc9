"""The virtual documents of an attempt: `steadyhand:/attempt/<attemptId>/before|intended|now/<path>`.

`workspace/textDocumentContent` returns their read-only texts, for a diff editor. The server registers the method with
clients that support dynamic registration.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from steadyhand.domain.errors import invalid_params
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.views.render import display_path
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.inspection.versions import readable_text, versions_of
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.session import Session

SCHEME = "steadyhand"
REGISTRATION_ID = "steadyhand-texts"
VERSIONS = ("before", "intended", "now")


class VirtualDocuments:
    """Answers for the scheme `steadyhand`."""

    def __init__(self, server: Server, registry: SessionRegistry) -> None:
        self._server = server
        self._registry = registry
        server.on_lsp(types.WORKSPACE_TEXT_DOCUMENT_CONTENT, self.read)

    async def register(self) -> None:
        """Register the method, if the client supports it."""
        workspace = self._server.client.capabilities.workspace
        ability = workspace.text_document_content if workspace is not None else None
        if ability is None or ability.dynamic_registration is not True:
            return
        registration = types.Registration(
            id=REGISTRATION_ID,
            method=types.WORKSPACE_TEXT_DOCUMENT_CONTENT,
            register_options=types.TextDocumentContentRegistrationOptions(schemes=(SCHEME,)),
        )
        await self._server.request_optional(
            types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(registrations=(registration,))
        )

    async def read(self, params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        attempt_id, version, path = _parse(params.uri)
        registry = self._registry
        for session in registry.sessions.values():
            attempt = session.ledger.attempts.get(attempt_id)
            if attempt is not None:
                text = await session.context.in_thread(_read_text, session, attempt, version, path)
                if text is not None:
                    return types.TextDocumentContentResult(text=text)
        raise invalid_params("$.uri", "there is no such document")


def _parse(uri: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise invalid_params("$.uri", "not the URI of a document of an attempt") from None
    segments = parts.path.lstrip("/").split("/", 3)
    if parts.scheme != SCHEME or len(segments) != 4 or segments[0] != "attempt" or segments[2] not in VERSIONS:
        raise invalid_params("$.uri", "not the URI of a document of an attempt")
    return segments[1], segments[2], unquote(segments[3])


def _read_text(session: Session, attempt: Attempt, version: str, path: str) -> str | None:
    for evidence in attempt.started.evidence if attempt.started else ():
        if display_path(evidence.resolved, session.tool_context.root).lstrip("/") == path.lstrip("/"):
            found = versions_of(session.tool_context, session.ledger, attempt, evidence)
            content = {"before": found.before, "intended": found.intended, "now": found.now}[version]
            return readable_text(content, found.encoding)
    return None
