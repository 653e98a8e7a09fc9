"""`ports.Sandbox` of this system; it imports what it needs at the first use, because most starts confine nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steadyhand.adapters.sandbox.launch import Channels, Command, Launch
    from steadyhand.adapters.sandbox.linux import LinuxSandbox
    from steadyhand.adapters.sandbox.no_sandbox import NoSandbox
    from steadyhand.ports.sandbox import Confinement, SandboxStatus


class SystemSandbox:
    """`environment`: this process's own."""

    def __init__(self, environment: Callable[[], Mapping[str, str]]) -> None:
        self._environment = environment

    @cached_property
    def _found(self) -> LinuxSandbox | NoSandbox:
        from steadyhand.adapters.sandbox.no_sandbox import NoSandbox

        if sys.platform == "darwin":
            return NoSandbox("Steadyhand has a sandbox for macOS that was never run there, so it is not used.")
        if sys.platform != "linux":
            return NoSandbox()
        try:
            from steadyhand.adapters.sandbox.linux import LinuxSandbox
        except ImportError as missing:
            return NoSandbox(f"This Python cannot call the kernel: {missing}.")
        return LinuxSandbox(self._environment)

    def probe(self, folders: Sequence[str] = ()) -> SandboxStatus:
        return self._found.probe(folders)

    def status(self) -> SandboxStatus | None:
        return self._found.status()

    def launch(self, confinement: Confinement, command: Command, channels: Channels) -> Launch:
        """As `ConfiningSandbox.launch`."""
        return self._found.launch(confinement, command, channels)

    def note_failure(self) -> None:
        """As `ConfiningSandbox.note_failure`."""
        self._found.note_failure()
