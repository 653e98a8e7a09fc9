"""The cost of a sandboxed start: a command that does nothing, plain and in each sandbox, in turns."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import anyio

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.adapters.sandbox.linux import LinuxSandbox
from steadyhand.ports.sandbox import PROTECTED_MOUNTS_MAX, Confinement, SandboxStatus

starts_measured = 15
COMMAND = ":"
Measured = list[tuple[str, list[float]]]


def sandbox_starts(base: Path) -> tuple[SandboxStatus, Measured]:
    """What the sandbox of this machine is, and seconds from the spawn of each kind to its reported end."""
    sandbox = LinuxSandbox(lambda: dict(os.environ))
    status = sandbox.probe()
    wanted = list(_wanted(base, status))
    return status, anyio.run(_measure, SystemProcesses(sandbox), wanted)


def _wanted(base: Path, status: SandboxStatus) -> Iterator[tuple[str, Confinement | None]]:
    """Every kind that works here, by name; the plain start comes last, as the yardstick."""
    workspace, own = base / "workspace", base / "own"
    (workspace / ".git" / "hooks").mkdir(parents=True)
    own.mkdir()
    (workspace / ".git" / "config").write_text("[core]\n")
    protected = [str(workspace / ".git")]
    for number in range(PROTECTED_MOUNTS_MAX):
        path = workspace / f".env{number}"
        path.write_text("A=1\n")
        protected.append(str(path))
    folders = (str(workspace),)
    if status.kind == "bubblewrap":
        few = Confinement("bubblewrap", folders, str(own), protected=tuple(protected[:1]))
        yield "a command in bubblewrap: from the spawn to its end", few
        many = Confinement("bubblewrap", folders, str(own), protected=tuple(protected))
        yield f"the same with {PROTECTED_MOUNTS_MAX} protected mounts", many
    if status.landlock_abi:
        yield "a command by Landlock alone", Confinement("landlock", folders, str(own))
        yield "a reading command by Landlock", Confinement("landlock", folders, is_reading=True)
    yield "  a plain command", None


async def _measure(processes: SystemProcesses, wanted: list[tuple[str, Confinement | None]]) -> Measured:
    times: dict[str, list[float]] = {name: [] for name, _ in wanted}
    for _ in range(starts_measured):
        for name, confinement in wanted:
            begun_at = time.perf_counter()
            await processes.run(COMMAND, "/", {"PATH": os.defpath}, 60.0, _ignore, confinement=confinement)
            times[name].append(time.perf_counter() - begun_at)
    return list(times.items())


def _ignore(piece: bytes) -> None:
    """Drop the output."""
