"""Files of the workspace that changed after a moment: a hint for the inspection of a command, never a proof (row A4).

Bounded in names, files and depth; `.git/` and links are left out. A file that somebody else changed is listed too, and
one whose modification time was set back is not.
"""

from __future__ import annotations

import attrs

from steadyhand.ports.disk import Folder
from steadyhand.tools.contract import ToolContext
from steadyhand_values import define, frozen

LISTED_MAX = 200  # files
WALKED_NAMES_MAX = 20_000
DEPTH_MAX = 40  # levels of folders
_SKIPPED_NAMES = frozenset({".git", "node_modules"})


@frozen
class ChangedFiles:
    """`paths` relative to the workspace, sorted; `more`: how many other files have changed."""

    paths: tuple[str, ...] = ()
    more: int = 0


def find_changed_files(tool_context: ToolContext, moment_ns: int) -> ChangedFiles:
    """Return the regular files whose modification time is at or after the moment. Blocks; skips a folder on OSError."""
    walk = _ModifiedWalk(tool_context, moment_ns)
    for path in tool_context.folders:
        try:
            folder = tool_context.disk.open_folder(path)
        except OSError:
            continue
        try:
            walk.walk(folder, "" if path == tool_context.root else f"{path.rstrip('/')}/", 0)
        finally:
            tool_context.disk.close(folder)
    found = sorted(walk.found)
    return ChangedFiles(tuple(found[:LISTED_MAX]), max(0, len(found) - LISTED_MAX))


@define
class _ModifiedWalk:
    tool_context: ToolContext
    moment_ns: int
    found: list[str] = attrs.field(factory=list)
    name_count: int = 0

    def walk(self, folder: Folder, path: str, depth: int) -> None:
        disk = self.tool_context.disk
        for name in disk.names(folder):
            if name in _SKIPPED_NAMES or self.name_count >= WALKED_NAMES_MAX:
                continue
            self.name_count += 1
            look = disk.look(folder, name)
            if look is None:
                continue
            if look.kind == "file" and look.modified_ns >= self.moment_ns:
                self.found.append(path + name)
            if look.kind == "folder" and depth < DEPTH_MAX:
                self._walk_subfolder(folder, name, path, depth)

    def _walk_subfolder(self, folder: Folder, name: str, path: str, depth: int) -> None:
        try:
            below = self.tool_context.disk.enter(folder, name)
        except OSError:
            return
        try:
            self.walk(below, f"{path}{name}/", depth + 1)
        except OSError:
            pass
        finally:
            self.tool_context.disk.close(below)
