"""`ports.Sandbox` of a system for which there is none."""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.adapters.sandbox.launch import Channels, Command, Launch
from steadyhand.ports.sandbox import Confinement, SandboxFailed, SandboxStatus
from steadyhand_values import frozen


@frozen
class NoSandbox:
    """It finds that nothing can be confined, and says why."""

    why: str = "Steadyhand has no sandbox for this system."

    def probe(self, folders: Sequence[str] = ()) -> SandboxStatus:
        return SandboxStatus("none", "none", is_sealable=False, landlock_abi=0, why=self.why)

    def status(self) -> SandboxStatus | None:
        return self.probe()

    def launch(self, confinement: Confinement, command: Command, channels: Channels) -> Launch:
        """Raise SandboxFailed."""
        raise SandboxFailed(self.why)

    def note_failure(self) -> None:
        """Do nothing: the answer does not change."""
