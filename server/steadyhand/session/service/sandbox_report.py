"""What the doctor says about the sandbox: what confines commands here, what that leaves open, which caches to allow
(row O1).
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.permissions.sandbox_folders import CACHES, is_at_or_above
from steadyhand.domain.settings import SandboxMode, SandboxNetwork
from steadyhand.ports.sandbox import SandboxKind
from steadyhand.session.context import SessionContext
from steadyhand_values import frozen


@frozen
class SandboxReport:
    """As `DoctorResult.sandbox` on the wire."""

    mode: SandboxMode
    kind: SandboxKind
    network: SandboxNetwork
    sealed: bool
    why: str | None = None


async def report_sandbox(context: SessionContext, folders: Sequence[str]) -> tuple[SandboxReport, tuple[str, ...]]:
    """Return what confines commands, and a sentence each for what the user should know.

    `folders`: those of the workspace, because no program inside them is used. Confines a real child if that was not
    tried yet."""
    settings = context.settings.sandbox
    if settings.mode == "off":
        why = "The setting sandbox.mode is `off`, so commands run with your rights."
        return SandboxReport("off", "none", settings.network, sealed=False, why=why), ()
    found = await context.in_thread(context.processes.sandbox.probe, folders)
    # No command is sealed yet: row O6 is not built.
    report = SandboxReport(settings.mode, found.kind, settings.network, sealed=False, why=found.why)
    if found.kind == "none":
        return report, ()
    return report, (*found.limits, *await context.in_thread(_suggest_caches, context))


def _suggest_caches(context: SessionContext) -> tuple[str, ...]:
    """Name the caches that exist and that confined commands cannot write. Blocks."""
    home = context.processes.environment().get("HOME")
    if not home:
        return ()
    write = context.settings.sandbox.write
    places = [f"{home.rstrip('/')}/{name}" for name in CACHES]
    missing = [place for place in places if _exists(context, place) and not _is_allowed(place, write)]
    if not missing:
        return ()
    return (
        f"Commands in the sandbox cannot write to these caches: {', '.join(missing)}. If a package manager or a build"
        " needs one, add it to the setting sandbox.write.",
    )


def _is_allowed(place: str, write: Sequence[str]) -> bool:
    return any(is_at_or_above(folder, place) for folder in write)


def _exists(context: SessionContext, path: str) -> bool:
    try:
        context.disk.close(context.disk.open_folder(path))
    except OSError:
        return False
    return True
