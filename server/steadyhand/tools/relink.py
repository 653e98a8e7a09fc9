"""The one way a link is made: there as it is meant, or nothing of it; and nothing that stands there is replaced (A5).

    gate         the path leads where it led, nothing stands under it, the last look at cancellation
    made         in one step, which fails if somebody was quicker; then the folder is synced
    read back    only the very link that was meant, walked to anew, makes it `Linked` (row W5)

A kill leaves it made or not made. A value says what was observed. An OSError means that it is one of the two, and the
check answers it. Where a link leads is nobody's concern here: it comes back as it was, also one that leads nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from steadyhand.core.record import Evidence
from steadyhand.ports import Folder
from steadyhand.tools.place import display, entered, locate, make_folders, parts_of, sync_way
from steadyhand.tools.remove import Untouched, changed_meanwhile
from steadyhand.tools.replace import Conflict
from steadyhand.tools.standing import same_folder, stands
from steadyhand.tools.tool import Ground, Refusal


@attrs.frozen
class Linked:
    """The link stands under its path, as read back."""


Linking: TypeAlias = "Linked | Untouched | Conflict"


def relink(ground: Ground, evidence: Evidence, target: str, cancelled: Callable[[], bool]) -> Linking:
    """Make the link that the evidence intends. Raises OSError (see above)."""
    if cancelled():
        return Untouched("cancelled", "It was cancelled before anything was done.")
    parts, shown = parts_of(evidence.resolved), display(ground.root, evidence.resolved)
    make_folders(ground, parts[:-1])
    # A folder that power takes back would take the link along.
    sync_way(ground, parts[:-1])
    with entered(ground, parts[:-1]) as folder:
        stopped = _hindrance(ground, folder, evidence, shown)
        if stopped is not None:
            return stopped
        if cancelled():
            return Untouched("cancelled", "It was cancelled before the link was made.")
        try:
            ground.disk.make_link(folder, parts[-1], target)
        except FileExistsError:
            return changed_meanwhile(shown)
        ground.disk.sync_folder(folder)
    with entered(ground, parts[:-1]) as folder:
        if stands(ground.disk, folder, parts[-1], "link", evidence.intended):
            return Linked()
    return Conflict(f"{shown} was made, but reading it back finds that somebody else put something there.")


def _hindrance(ground: Ground, folder: Folder, evidence: Evidence, shown: str) -> Untouched | None:
    located = locate(ground, evidence.path, follow=False)
    if isinstance(located, Refusal) or located.resolved != evidence.resolved:
        return Untouched("changed", f"The path {shown} leads elsewhere now.")
    if not same_folder(ground, folder, located.folders):
        return Untouched("changed", f"The path {shown} leads elsewhere now.")
    return changed_meanwhile(shown) if located.kind is not None else None
