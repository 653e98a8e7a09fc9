"""What every session of this process shares: ports, settings, the task group. Built once by `__main__`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import attrs

from steadyhand.core.environment import ChildEnvironment, child_environment
from steadyhand.core.profiles import key_variables
from steadyhand.core.record import ModelName
from steadyhand.core.settings import Settings
from steadyhand.ports import Clock, Disk, Editor, Ids, Models, Processes, Providers, TextFilter
from steadyhand.session.grants import Grants
from steadyhand.tools.tool import Ground, Tool

T = TypeVar("T")
disk_threads_max = 8
window_s_max = 20.0


@attrs.define
class World:
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
    spawn: Callable[[Callable[[], Awaitable[None]], str], None]
    settings: Settings = attrs.field(factory=Settings)
    text_filter: TextFilter | None = None
    requests_again_max: int = 4  # repeats of one request to a model that fails (row P3)
    pause: Callable[[float], Awaitable[None]] = anyio.sleep  # seconds
    _threads: anyio.CapacityLimiter | None = None
    _grants: Grants | None = None

    @property
    def providers(self) -> Providers | None:
        """What is known of providers beside asking; None where `models` is a plain function."""
        models: object = self.models
        return models if isinstance(models, Providers) else None

    async def learn_window(self, model: ModelName) -> int | None:
        """Tokens a model takes, asked for where they are not known, for `window_s_max` at most; None where nobody tells
        in time."""
        if self.providers is None:
            return None
        with anyio.move_on_after(window_s_max):
            return await self.providers.learn_window(model.provider, model.name)
        return None

    @property
    def grants(self) -> Grants:
        """What the person allowed beyond one session."""
        if self._grants is None:
            self._grants = Grants(self.disk, self.ids, self.editor, self.state_directory, self.in_thread)
        return self._grants

    async def in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run blocking work in a thread; never abandoned, so what it did is always known."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(disk_threads_max)
        return await anyio.to_thread.run_sync(work, *arguments, limiter=self._threads)

    def child_environment(self, own: Mapping[str, str]) -> ChildEnvironment:
        """What every child is given, with the settings of this moment (row E1). No variable that a model's key is read
        from is among it, whatever it is called."""
        settings = self.settings
        withheld = key_variables(settings.key_variable)
        return child_environment(self.processes.environment(), settings.environment_add, own, withheld)

    def ground(self, root: str | None, session_folder: str) -> Ground:
        """Where the tools of one session stand."""
        return Ground(
            disk=self.disk,
            processes=self.processes,
            root=root,
            state_directory=self.state_directory,
            session_folder=session_folder,
            document=self.editor.document,
            unsaved_paths=self.editor.unsaved_paths,
            environment=lambda own: self.child_environment(own).values,
            text_filter=self.text_filter,
        )
