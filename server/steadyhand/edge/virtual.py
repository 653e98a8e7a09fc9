"""The virtual documents of an attempt: `steadyhand:/attempt/<attemptId>/before|intended|now/<path>`.

Read-only texts for a diff editor, by `workspace/textDocumentContent`, registered dynamically where the client can.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import unquote, urlsplit

from lsprotocol import types

from steadyhand.core.folded import Attempt
from steadyhand.core.refusal import invalid
from steadyhand.edge.server import Server
from steadyhand.session.house import House
from steadyhand.session.owner import Owner
from steadyhand.session.texts import shown, texts
from steadyhand.tools.place import display

SCHEME = "steadyhand"
REGISTRATION = "steadyhand-texts"
WHICH = ("before", "intended", "now")


class VirtualDocuments:
    """Answers for the scheme `steadyhand`."""

    def __init__(self, server: Server, house: Callable[[], Awaitable[House]]) -> None:
        self._server = server
        self._house = house
        server.on_lsp(types.WORKSPACE_TEXT_DOCUMENT_CONTENT, self.content)

    async def register(self) -> None:
        """Tell the client, if it takes registrations for such documents."""
        workspace = self._server.client.capabilities.workspace
        able = workspace.text_document_content if workspace is not None else None
        if able is None or able.dynamic_registration is not True:
            return
        registration = types.Registration(
            id=REGISTRATION,
            method=types.WORKSPACE_TEXT_DOCUMENT_CONTENT,
            register_options=types.TextDocumentContentRegistrationOptions(schemes=(SCHEME,)),
        )
        await self._server.ask_aside(
            types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams(registrations=(registration,))
        )

    async def content(self, params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        attempt_id, which, path = _parts(params.uri)
        house = await self._house()
        for owner in house.owners.values():
            attempt = owner.ledger.attempts.get(attempt_id)
            if attempt is not None:
                text = await owner.world.in_thread(_text, owner, attempt, which, path)
                if text is not None:
                    return types.TextDocumentContentResult(text=text)
        raise invalid("$.uri", "no such text")


def _parts(uri: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise invalid("$.uri", "not a document of an attempt") from None
    names = parts.path.lstrip("/").split("/", 3)
    if parts.scheme != SCHEME or len(names) != 4 or names[0] != "attempt" or names[2] not in WHICH:
        raise invalid("$.uri", "not a document of an attempt")
    return names[1], names[2], unquote(names[3])


def _text(owner: Owner, attempt: Attempt, which: str, path: str) -> str | None:
    for evidence in attempt.started.evidence if attempt.started else ():
        if display(owner.ground.root, evidence.resolved).lstrip("/") == path.lstrip("/"):
            found = texts(owner.ground, owner.ledger, attempt, evidence)
            return shown({"before": found.before, "intended": found.intended, "now": found.now}[which])
    return None
