"""What all sessions of this process share: ports, settings, permissions, the task group.

`service/build_context.py` builds it once. It does not know how anything is stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio
import anyio.from_thread
import attrs

from steadyhand.domain.changes.chain import SessionChanges
from steadyhand.domain.model.provider_profiles import key_variables
from steadyhand.domain.permissions.child_environment import ChildEnvironment, child_environment
from steadyhand.domain.permissions.grants import StandingGrant
from steadyhand.domain.permissions.rules import Target, first_lifting_rule
from steadyhand.domain.permissions.unattended import UNATTENDED_ENVIRONMENT
from steadyhand.domain.records.record import ModelName, Scope
from steadyhand.domain.recovery.start_order import StartOrder
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.ports.disk import Disk
from steadyhand.ports.editor import Editor
from steadyhand.ports.encodings import DetectEncodings, EncodingSources, no_detection
from steadyhand.ports.model import Models, Providers
from steadyhand.ports.processes import Processes
from steadyhand.ports.system import Clock, Ids, TextFilter
from steadyhand.session.known_folders import KnownFolders
from steadyhand.session.private_state import PrivateState
from steadyhand.session.threads import DiskThreads
from steadyhand.session.uris import path_of
from steadyhand.tools.contract import OtherFolder, Tool, ToolContext
from steadyhand.tools.registry import PROVIDER_TOOLS
from steadyhand_values import define, frozen

T = TypeVar("T")


@frozen
class OpenFolder:
    """One folder that the client has open."""

    uri: str  # as the client spells it
    name: str


WINDOW_S_MAX = 20.0
NO_NAMES: Mapping[str, str] = {}


class StoredGrants(Protocol):
    """What the user allowed beyond one session, as a store keeps it (row G2)."""

    async def load_all(self) -> tuple[StandingGrant, ...]:
        """Return all grants, or none where the store cannot be read; the user is warned once."""
        ...

    async def remember(self, grant: StandingGrant) -> str | None:
        """Store one grant durably; return a sentence where that is not certain."""
        ...

    async def forget(self, grant_ids: Sequence[str]) -> None:
        """Remove these grants. Raise Refused where that cannot be stored."""
        ...


@define
class SessionContext:
    """Ports and what is fixed at `initialize`. `settings` may be replaced while running."""

    disk: Disk
    processes: Processes
    clock: Clock
    ids: Ids
    models: Models
    editor: Editor
    tools: dict[str, Tool]
    version: str
    state_directory: str  # absolute, links resolved
    private_state: PrivateState  # opens what is in it
    folders: KnownFolders
    spawn: Callable[[Callable[[], Awaitable[None]], str], None]
    threads: DiskThreads
    grants: StoredGrants
    settings: Settings = attrs.field(factory=Settings)
    starts: StartOrder = attrs.field(factory=StartOrder)
    file_changes: Mapping[str, tuple[tuple[int, int], SessionChanges]] = attrs.field(factory=dict)
    """Closed session → size and time of its journal when it was read, and what it did to files (row V5)."""
    text_filter: TextFilter | None = None
    detect: DetectEncodings = no_detection
    window_folders: Callable[[], Sequence[str]] = tuple  # absolute paths of the workspace folders that are open now
    open_folders: Callable[[], Sequence[OpenFolder]] = tuple  # the client's folders now, in its order
    requests_again_max: int = 4  # repeats of one request to a model that fails (row P3)
    pause: Callable[[float], Awaitable[None]] = anyio.sleep  # seconds
    has_warned_of_sandbox: bool = False  # whether the chat has said that commands are not confined (row O1)

    @property
    def providers(self) -> Providers | None:
        """The providers' own interface; None where `models` is a plain function."""
        models: object = self.models
        return models if isinstance(models, Providers) else None

    def tools_of(self, model: ModelName) -> Mapping[str, Tool]:
        """Return the tools that this model may call, by name."""
        return {**self.tools, **PROVIDER_TOOLS.get(model.provider, {})}

    async def learn_window(self, model: ModelName) -> int | None:
        """Return how many tokens a model takes, or None if no provider says so within `WINDOW_S_MAX`."""
        if self.providers is None:
            return None
        with anyio.move_on_after(WINDOW_S_MAX):
            return await self.providers.learn_window(model.provider, model.name)
        return None

    def tell_tightened(self) -> None:
        """Tell the user once which files of the state directory others could write (row O5)."""
        text = self.private_state.take_notes()
        if text is not None:
            self.editor.tell(MessageNotification("warning", text))

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run blocking work in one of the shared threads."""
        return await self.threads.run(work, *arguments)

    def child_environment(self, own: Mapping[str, str]) -> ChildEnvironment:
        """Return what every child process gets, by the current settings (row E1).

        It contains no variable that a model's key is read from, whatever the variable is called."""
        settings = self.settings
        withheld = key_variables(settings.key_variable)
        added = {**UNATTENDED_ENVIRONMENT, **settings.environment_add}
        return child_environment(self.processes.environment(), added, own, withheld)

    def _allows_secret(self, root: str | None, path: str) -> bool:
        """Return whether a rule of the settings takes this secret name off the list for searches (case 137)."""
        rules = self.settings.rules.allow
        targets = (Target(tool, Scope(paths=(path,)), root, None) for tool in ("search_text", "read_file"))
        return bool(rules) and any(first_lifting_rule(rules, target, True) is not None for target in targets)

    def trusts(self, paths: Iterable[str | None]) -> bool:
        """Return whether the user trusts a folder that has these paths (row S11)."""
        trusted = self.settings.trusted_folders
        return self.settings.trusted and (
            trusted is None or bool({path_of(uri) for uri in trusted}.intersection(paths))
        )

    def _reported_encoding(self, path: str) -> str | None:
        """Ask the editor about an open document, from a thread of the event loop, and wait for the answer."""
        if self.editor.document(path) is None:
            return None
        return anyio.from_thread.run(self.editor.encoding, path)

    def tool_context(
        self,
        root: str | None,
        session_folder: str,
        missing: str | None = None,
        others: tuple[OtherFolder, ...] = (),
        named: Mapping[str, str] = NO_NAMES,
        own_name: str | None = None,
    ) -> ToolContext:
        """Return what the tools of one session work with. `named`: folder → its path as the client has it."""
        return ToolContext(
            disk=self.disk,
            processes=self.processes,
            root=root,
            missing=missing,
            state_directory=self.state_directory,
            session_folder=session_folder,
            document=self.editor.document,
            unsaved_paths=self.editor.unsaved_paths,
            open_paths=self.editor.open_paths,
            environment=lambda own: self.child_environment(own).values,
            allows_secret=partial(self._allows_secret, root),
            text_filter=self.text_filter,
            sandbox=lambda: self.settings.sandbox,
            trusts=lambda folder: self.trusts((folder, named.get(folder))),
            others=others,
            own_name=own_name if others else None,
            window_folders=self.window_folders,
            applies=self.editor.applies,
            saves=self.editor.saves,
            own_folders=self.processes.own_folders(),
            encodings=EncodingSources(self._reported_encoding, lambda: self.settings.encodings, self.detect),
        )
