"""Create a symbolic link: as intended, or not at all; nothing that exists is replaced (row A5).

    check       the path still leads to the same place, nothing has its name, and the call is not cancelled
    create      in one step, which fails if the name has been taken; then the folder is synced
    read back   only a link with the intended target, found by a new resolution, makes it `LinkCreated` (row W5)

A kill leaves the link created or not created. A returned value states what was observed. An OSError means that it is
one of the two; the check finds out which. The target is not examined: a link is restored as it was, also a dangling
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from steadyhand.domain.records.record import Evidence
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Folder
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.workspace.paths import locate, make_folders, open_folder, parts_of, sync_folder_names
from steadyhand.tools.writes.entry_state import is_same_folder, matches_evidence
from steadyhand.tools.writes.remove import Untouched, concurrent_change
from steadyhand.tools.writes.replace_file import Conflict
from steadyhand_values import frozen


@frozen
class LinkCreated:
    """The link is at its path, as read back."""


LinkOutcome: TypeAlias = "LinkCreated | Untouched | Conflict"


def create_link(
    tool_context: ToolContext, evidence: Evidence, target: str, is_cancelled: Callable[[], bool]
) -> LinkOutcome:
    """Create the link that the evidence intends. Raises OSError (see above)."""
    if is_cancelled():
        return Untouched("cancelled", "It was cancelled before anything was done.")
    parts, shown = parts_of(evidence.resolved), display_path(evidence.resolved, tool_context.root)
    make_folders(tool_context, parts[:-1])
    # If a power loss removed a folder, it would remove the link too.
    sync_folder_names(tool_context, parts[:-1])
    with open_folder(tool_context, parts[:-1]) as folder:
        stopped = _find_obstacle(tool_context, folder, evidence, shown)
        if stopped is not None:
            return stopped
        if is_cancelled():
            return Untouched("cancelled", "It was cancelled before the link was made.")
        try:
            tool_context.disk.make_link(folder, parts[-1], target)
        except FileExistsError:
            return concurrent_change(shown)
        tool_context.disk.sync_folder(folder)
    with open_folder(tool_context, parts[:-1]) as folder:
        if matches_evidence(tool_context.disk, folder, parts[-1], "link", evidence.intended):
            return LinkCreated()
    return Conflict(f"{shown} was made, but reading it back finds that somebody else put something there.")


def _find_obstacle(tool_context: ToolContext, folder: Folder, evidence: Evidence, shown: str) -> Untouched | None:
    located = locate(tool_context, evidence.path, follow=False)
    if isinstance(located, Refusal) or located.resolved != evidence.resolved:
        return Untouched("changed", f"The path {shown} now leads somewhere else.")
    if not is_same_folder(tool_context, folder, located.folders):
        return Untouched("changed", f"The path {shown} now leads somewhere else.")
    return concurrent_change(shown) if located.kind is not None else None
