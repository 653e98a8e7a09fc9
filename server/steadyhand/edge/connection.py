"""One editor's connection, put together: server, settings, the house behind it, and the way out.

The state directory is fixed at `initialize`; the house is built then, at the first need of it. Settings are read
again when the editor sends new ones. On the way out turns are cancelled, children ended and journals closed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import anyio
from lsprotocol import types

from steadyhand import __version__
from steadyhand.core.told import MessageTold
from steadyhand.edge.asked import AskedEditor
from steadyhand.edge.asking import EditorError
from steadyhand.edge.commands import Commands
from steadyhand.edge.inbound import Inbound
from steadyhand.edge.marks import Marks
from steadyhand.edge.recovery import Recovery
from steadyhand.edge.server import Server
from steadyhand.edge.settings import machine_of, read_settings, resolved_state_directory, state_directory
from steadyhand.edge.stdio import Stdio
from steadyhand.edge.virtual import VirtualDocuments
from steadyhand.ports import Clock, Disk, Ids, Models, Processes, TextFilter
from steadyhand.session import prompts
from steadyhand.session.house import House
from steadyhand.session.reviving import revive
from steadyhand.session.world import World
from steadyhand.tools.catalogue import TOOLS
from steadyhand.tools.open_document import is_on_disk
from steadyhand_protocol.approval import SecretGetParams, SecretGetResult

configuration_s_max = 2.0
secret_s_max = 60.0

log = logging.getLogger(__name__)


class Connection:
    """Runs once."""

    def __init__(
        self, stdio: Stdio, client_process_id: int | None, state_flag: str | None,
        disk: Disk, processes: Processes, clock: Clock, ids: Ids, models: Models,
        text_filter: TextFilter | None = None,
    ) -> None:  # fmt: skip
        self._server = Server(stdio, client_process_id=client_process_id)
        self._editor = AskedEditor(self._server)
        self._state_flag = state_flag
        self._disk = disk
        self._processes = processes
        self._clock = clock
        self._ids = ids
        self._models = models
        self._text_filter = text_filter
        self._built: House | None = None
        self._machine: object = None
        self._first_answer: anyio.Event | None = (
            None  # set when the editor has said what the workspace wants, or is late
        )
        self._workspace: object = None  # the editor's latest answer for the section `steadyhand`
        self._faults_told: frozenset[str] = frozenset()
        Inbound(self._server, self.house, self.settled_house)
        Commands(self._server, self.house, self.settled_house)
        Recovery(self._server, self._editor, self.house, lambda: self._marks.settled())
        self._virtual = VirtualDocuments(self._server, self.house)
        self._marks = Marks(self._server, lambda: self._built)
        self._editor.on_recovery_changed(self._marks.refresh)
        self._editor.on_progress_cancelled(self._cancel_turn)
        self._server.on_initialized(self._initialized)
        self._server.on_stop(self._stop)
        self._server.on_lsp(types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._configuration_changed)
        self._server.on_lsp(types.TEXT_DOCUMENT_DID_OPEN, self._opened)

    def run(self) -> int:
        """Serve; the exit code."""
        return self._server.run()

    async def house(self) -> House:
        """The house, built at the first need after `initialize`."""
        if self._built is None:
            self._machine = self._server.client.options
            environment = self._processes.environment()
            chosen, fault = state_directory(self._state_flag, environment, self._machine)
            world = World(
                disk=self._disk, processes=self._processes, clock=self._clock, ids=self._ids, models=self._models,
                editor=self._editor, tools={tool.name: tool for tool in TOOLS}, version=__version__,
                state_directory=resolved_state_directory(self._disk, chosen), spawn=self._server.start,
                text_filter=self._text_filter,
            )  # fmt: skip
            self._built = House(world)
            if world.providers is not None:
                world.providers.connect(lambda: world.settings, self._secret)
            self._read_settings(environment, (fault,) if fault else ())
        return self._built

    async def settled_house(self) -> House:
        """The house for what begins work: what the workspace wants to be asked or denied is known, or does not come."""
        house = await self.house()
        if self._first_answer is not None:
            await self._first_answer.wait()
        return house

    async def _initialized(self) -> None:
        """Settings first, then the sessions of the open folders are looked at (row A8)."""
        house = await self.house()
        self._server.start(self._virtual.register, "registering texts")  # its answer is nothing to wait for
        await self._ask_configuration()
        await revive(house, [folder.uri for folder in self._server.client.folders])

    async def _ask_configuration(self) -> None:
        """What a workspace answers may only tighten; its first answer starts the look."""
        workspace = self._server.client.capabilities.workspace
        if workspace is None or workspace.configuration is not True:
            return
        params = types.ConfigurationParams(items=(types.ConfigurationItem(section="steadyhand"),))
        answered = anyio.Event()
        self._first_answer = self._first_answer or answered
        try:
            answer = await self._server.request(types.WORKSPACE_CONFIGURATION, params, configuration_s_max)
        except EditorError as error:
            log.info("no settings from the editor: %s", error)
            return
        finally:
            answered.set()
        self._workspace = answer[0] if isinstance(answer, list | tuple) and answer else None
        self._read_settings(self._processes.environment(), ())

    async def _configuration_changed(self, params: types.DidChangeConfigurationParams) -> None:
        house = await self.house()
        machine = machine_of(params.settings)
        if machine is not None:
            self._machine = machine
            self._read_settings(self._processes.environment(), ())
        await self._ask_configuration()
        for owner in list(house.owners.values()):
            owner.tell_changes()  # a snapshot says whether retry is on

    async def _opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """A document may come with text that was never saved; its file tells, at once (row V1)."""
        document = self._server.documents.by_uri(params.text_document.uri)
        if document is None or document.path is None:
            return
        house = await self.house()
        text = params.text_document.text
        found = await house.world.in_thread(is_on_disk, self._disk, document.path, text)
        self._server.documents.compared(document, found)

    def _read_settings(self, environment: Mapping[str, str], faults: tuple[str, ...]) -> None:
        """Bad values become defaults, and one message names all of them."""
        assert self._built is not None
        read = read_settings(self._machine, environment, self._workspace)
        self._built.world.settings = read.settings
        every = frozenset((*faults, *read.faults))
        if every and every != self._faults_told:
            text = f"Some settings are not used and have their defaults: {'; '.join(sorted(every))}."
            self._editor.tell(MessageTold("warning", text))
        self._faults_told = every

    async def _secret(self, name: str) -> str | None:
        """A key from the editor's own store; None where it has none or does not give it."""
        if not self._server.client.secret:
            return None
        try:
            answer = await self._server.request("steadyhand/secret/get", SecretGetParams(name=name), secret_s_max)
        except EditorError:
            return None
        return answer.value if isinstance(answer, SecretGetResult) else None

    async def _cancel_turn(self, turn_id: str) -> None:
        house = await self.house()
        for owner in list(house.owners.values()):
            if owner.turn is not None and owner.turn.turn_id == turn_id:
                await prompts.cancel(owner, turn_id)

    async def _stop(self) -> None:
        if self._built is not None:
            await self._built.stop()
        else:
            await self._processes.end_all()
