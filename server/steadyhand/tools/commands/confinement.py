"""Decide how a command is confined, from the settings and from what this system can confine (row O1).

`prepare_command` is the last step before *started*: it asks whether the sandbox works, lists what stands below the
roots, and returns the confinement with which the command runs, or a refusal. Nothing falls back afterwards: a sandbox
that then cannot be set up makes the call fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.permissions.sandbox_folders import is_at_or_above
from steadyhand.ports.sandbox import Confinement
from steadyhand.tools.commands.own_temporary import own_temporary
from steadyhand.tools.commands.sandbox_causes import git_directory, known_causes
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.prepared_command import PreparedCommand, RootsListing
from steadyhand.tools.workspace.paths import parts_of
from steadyhand.tools.workspace.roots_listing import GIT_FOLDER, list_roots

INSTALLED_FOLDERS = frozenset({"node_modules", "site-packages", "dist-packages"})
"""Folders that package managers fill."""
SANDBOX_FAILED = "The sandbox could not be set up; nothing ran."
"""A fixed sentence (row O1)."""
NO_SANDBOX = "Commands run without a sandbox here, with your rights."


def prepare_command(
    tool_context: ToolContext, attempt_id: str, folder: str, unconfined: bool
) -> PreparedCommand | Refusal:
    """Return what is fixed for a command before its start. `folder`: where it runs. Blocks."""
    roots = roots_of(tool_context)
    settings = tool_context.sandbox()
    if settings.mode == "off" or unconfined:
        return PreparedCommand(before=list_roots(tool_context, roots))
    found = tool_context.processes.sandbox.probe(tool_context.workspace_folders())
    why = found.why or "No sandbox works on this system."
    if found.kind == "none":
        if settings.mode == "required":
            return Refusal("sandbox", f"sandbox.mode is `required`, and no sandbox works here. {why}")
        return PreparedCommand(warning=f"{NO_SANDBOX} {why}", before=list_roots(tool_context, roots))
    before = list_roots(tool_context, roots)
    git = git_directory(tool_context, folder)
    confinement = Confinement(
        kind=found.kind,
        folders=session_folders(tool_context),
        temporary=own_temporary(tool_context.session_folder, attempt_id),
        write=roots[len(session_folders(tool_context)) :],
        protected=_protected(before, _programs_in(tool_context, roots)),
        hidden=(tool_context.state_directory,),
        visible=(git.path,) if git is not None and git.is_known else (),
        network=settings.network,
    )
    return PreparedCommand(
        confinement, before=before, causes=known_causes(tool_context, git, roots, found.user, settings.network)
    )


def session_folders(tool_context: ToolContext) -> tuple[str, ...]:
    """Return the folders of the session."""
    return tool_context.folders


def roots_of(tool_context: ToolContext) -> tuple[str, ...]:
    """Return the folders below which a confined command can write: the session's, then those of `sandbox.write` that
    exist, links resolved.

    One through which it could write to the whole system, the home folder, the state directory or a part of a git
    directory is left out.
    """
    found = list(session_folders(tool_context))
    home = tool_context.processes.environment().get("HOME")
    write = tool_context.sandbox().write
    forbidden = _both(tool_context, ["/", tool_context.state_directory, *([home] if home else [])]) if write else []
    for folder in write:
        resolved = _resolve(tool_context, folder)
        if resolved is None or any(is_at_or_above(resolved, path) for path in forbidden):
            continue
        if GIT_FOLDER in parts_of(resolved)[:-1]:  # only of a whole git directory is known what must stay
            continue
        if not is_at_or_above(tool_context.state_directory, resolved) and resolved not in found:
            found.append(resolved)
    return tuple(found)


def _both(tool_context: ToolContext, paths: Sequence[str]) -> list[str]:
    """Return the paths as they are written and with links resolved."""
    resolved = [_resolve(tool_context, path) for path in paths]
    return [*paths, *(path for path in resolved if path is not None)]


def _resolve(tool_context: ToolContext, path: str) -> str | None:
    try:
        folder = tool_context.disk.open_folder(path)
    except OSError:
        return None
    try:
        return tool_context.disk.real_path(folder)
    except OSError:
        return None
    finally:
        tool_context.disk.close(folder)


def _programs_in(tool_context: ToolContext, roots: Sequence[str]) -> list[str]:
    """Return the folders of the server's own interpreter that are below one of the roots (row O4)."""
    return [
        folder
        for folder in tool_context.own_folders
        if any(folder != root and is_at_or_above(root, folder) for root in roots)
    ]


def _protected(listing: RootsListing, programs: Sequence[str]) -> tuple[str, ...]:
    """Return the names that exist and stay read-only, nearest first; of a `.git` folder the adapter protects a part.

    The server's own programs come before all others: the number of protected mounts is bounded."""
    others = (path for path in {*listing.tops, *listing.repositories}.difference(programs) if not _is_installed(path))
    return (*programs, *sorted(others, key=lambda path: (path.count("/"), path)))


def _is_installed(path: str) -> bool:
    """Return whether a package manager put this path there: its names are looked for after a command, and not mounted,
    because the package manager has to remove and replace them."""
    return any(name in INSTALLED_FOLDERS for name in path.split("/"))
