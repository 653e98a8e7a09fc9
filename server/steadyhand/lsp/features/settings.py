"""Settings from the editor: read at `initialize`, and again whenever the editor sends new ones.

`initializationOptions` or its later replacement has the settings of this machine. The answer to
`workspace/configuration` may only make permissions stricter; it is requested after `initialized`.
"""

from __future__ import annotations

import logging

import anyio

from steadyhand.config.machine_scope import ignored_sentence
from steadyhand.config.settings import machine_of, read_settings
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.editor.editor import LspEditor
from steadyhand.lsp.rpc.pending_requests import EditorError
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.service.registry import SessionRegistry

CONFIGURATION_S_MAX = 2.0

log = logging.getLogger(__name__)


class SettingsFeature:
    """Keeps `registry.context.settings` current."""

    def __init__(
        self, server: Server, editor: LspEditor, registry: SessionRegistry, state_directory_fault: str | None
    ) -> None:
        """Read the settings of this machine. `state_directory_fault`: a sentence that the user is shown with others."""
        self._server = server
        self._editor = editor
        self._registry = registry
        self._machine = server.client.options  # JSON, as the editor sent it
        self._workspace: object = None  # the editor's latest answer for the section `steadyhand`
        self._folders: tuple[object, ...] = ()  # the same for each folder, where there are several (row S11)
        self._first_answer: anyio.Event | None = None  # set when the first request for it has ended
        self._faults_shown: frozenset[str] = frozenset()
        self._ignored_named: set[str] = set()
        server.on_lsp(types.WORKSPACE_DID_CHANGE_CONFIGURATION, self.follow_change)
        self._read((state_directory_fault,) if state_directory_fault else ())

    async def ready_registry(self) -> SessionRegistry:
        """Return the registry when the first settings are known; wait at most `CONFIGURATION_S_MAX` for them.

        For requests that begin work: the workspace's rules may ask about the work or deny it."""
        if self._first_answer is not None:
            await self._first_answer.wait()
        return self._registry

    async def ask_workspace(self) -> None:
        """Request the workspace's settings, from a client that answers such requests."""
        workspace = self._server.client.capabilities.workspace
        if workspace is None or workspace.configuration is not True:
            return
        folders = self._server.client.folders
        scopes = (None, *(folder.uri for folder in folders)) if len(folders) > 1 else (None,)
        items = tuple(types.ConfigurationItem(section="steadyhand", scope_uri=uri) for uri in scopes)
        params = types.ConfigurationParams(items=items)
        ended = anyio.Event()
        self._first_answer = self._first_answer or ended
        try:
            answer = await self._server.request(types.WORKSPACE_CONFIGURATION, params, CONFIGURATION_S_MAX)
        except EditorError as error:
            log.info("no settings from the editor: %s", error)
            return
        finally:
            ended.set()
        self._workspace, *own = answer if isinstance(answer, list | tuple) and answer else [None]
        self._folders = tuple(own)
        self._read()

    async def follow_change(self, params: types.DidChangeConfigurationParams) -> None:
        machine = machine_of(params.settings)
        if machine is not None:
            self._machine = machine
            self._read()
        await self.ask_workspace()
        for session in list(self._registry.sessions.values()):
            session.feed.notify_changes()  # a snapshot says whether retry is on

    def _read(self, faults: tuple[str, ...] = ()) -> None:
        """Read every source. Bad values become defaults, and one message names all of them. A machine-scoped setting of
        the workspace is ignored and named once."""
        context = self._registry.context
        environment = context.processes.environment()
        found = read_settings(
            self._machine,
            environment,
            self._workspace,
            state_directory=context.state_directory,
            folders=self._folders,
        )
        context.settings = found.settings
        every = frozenset((*faults, *found.faults))
        if every and every != self._faults_shown:
            text = f"Some settings are invalid, so their defaults apply: {'; '.join(sorted(every))}."
            self._editor.tell(MessageNotification("warning", text))
        self._faults_shown = every
        ignored = tuple(name for name in found.ignored if name not in self._ignored_named)
        if ignored:
            self._ignored_named.update(ignored)
            self._editor.tell(MessageNotification("warning", ignored_sentence(ignored)))
