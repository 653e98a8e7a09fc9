"""Files of the workspace changed after a moment: a hint for the inspection of a command, never a proof (row A4).

Bounded in names, files and depth; `.git/` and links are passed over. A file changed by somebody else stands here too,
and one whose time was set back does not.
"""

from __future__ import annotations

import attrs

from steadyhand.ports import Folder
from steadyhand.tools.tool import Ground

listed_max = 200
looked_at_max = 20_000
depth_max = 40
_PASSED_OVER = frozenset({".git", "node_modules"})


@attrs.frozen
class ChangedFiles:
    """`paths` relative to the workspace, sorted; `more`: how many beyond them, of those looked at."""

    paths: tuple[str, ...] = ()
    more: int = 0


def changed_after(ground: Ground, moment_ns: int) -> ChangedFiles:
    """Regular files whose modification time is at or after the moment. Blocks; OSError of one folder skips it."""
    if ground.root is None:
        return ChangedFiles()
    try:
        root = ground.disk.open_folder(ground.root)
    except OSError:
        return ChangedFiles()
    walk = _Walk(ground, moment_ns)
    try:
        walk.enter(root, "", 0)
    finally:
        ground.disk.close(root)
    found = sorted(walk.found)
    return ChangedFiles(tuple(found[:listed_max]), max(0, len(found) - listed_max))


@attrs.define
class _Walk:
    ground: Ground
    moment_ns: int
    found: list[str] = attrs.field(factory=list)
    looked_at: int = 0

    def enter(self, folder: Folder, path: str, depth: int) -> None:
        disk = self.ground.disk
        for name in disk.names(folder):
            if name in _PASSED_OVER or self.looked_at >= looked_at_max:
                continue
            self.looked_at += 1
            look = disk.look(folder, name)
            if look is None:
                continue
            if look.kind == "file" and look.modified_ns >= self.moment_ns:
                self.found.append(path + name)
            if look.kind == "folder" and depth < depth_max:
                self._below(folder, name, path, depth)

    def _below(self, folder: Folder, name: str, path: str, depth: int) -> None:
        try:
            below = self.ground.disk.enter(folder, name)
        except OSError:
            return
        try:
            self.enter(below, f"{path}{name}/", depth + 1)
        except OSError:
            pass
        finally:
            self.ground.disk.close(below)
