"""Somebody else on a `SimDisk`: a person, a backup program, another program. It takes no lock and syncs everything.

Each operation is durable at once and calls no `before`.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from tests.support.sim_disk import SimDisk


@attrs.frozen
class Outsider:
    """Changes files and folders below the server, by their paths."""

    disk: SimDisk

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with everything in it."""
        parent, name = self._place(path)
        inode = self.disk.folders[parent][name]
        for child in list(self.disk.folders.get(inode, ())):
            self.remove(f"{path}/{child}")
        if inode in self.disk.folders:
            self.disk.removed.add(inode)
        del self.disk.folders[parent][name]
        self.disk.log.append(("unlink", parent, name))

    def move(self, path: str, new: str) -> None:
        """Give a file or folder another path, where nothing is yet."""
        (parent, name), (goal, new_name) = self._place(path), self._place(new)
        inode = self.disk.folders[parent].pop(name)
        self.disk.folders[goal][new_name] = inode
        self.disk._parents[inode] = (goal, new_name)
        self.disk.log.append(("rename_to", parent, name, goal, new_name, inode))

    def replace(self, path: str, content: bytes) -> None:
        """Put a new file under the name of another one."""
        self.disk.place(path, content)

    def change(self, path: str, content: bytes) -> None:
        """Change the bytes of a file in place."""
        inode = self.disk._at(path)
        assert inode is not None, path
        self.disk.files[inode] = content
        self.disk._touch(inode)
        self.disk.log += [("truncate", inode, 0), ("write", inode, 0, content), ("sync", inode)]

    def link(self, path: str, new: str) -> None:
        """Give a file one more name."""
        inode, (goal, new_name) = self.disk._at(path), self._place(new)
        assert inode is not None, path
        self.disk.folders[goal][new_name] = inode
        self.disk.links[inode] = self.disk.links.get(inode, 1) + 1
        self.disk.log.append(("link", goal, new_name, inode, False))

    def make_folder(self, path: str, files: Mapping[str, bytes]) -> None:
        """Make a folder with these files in it."""
        self.disk.folder_unsynced(path)
        for name, content in files.items():
            self.disk.place(f"{path}/{name}", content)

    def files(self, path: str) -> dict[str, bytes]:
        """The files of a folder by their names, as a backup keeps them."""
        inode = self.disk._at(path)
        assert inode is not None, path
        return {name: self.disk.files[at] for name, at in self.disk.folders[inode].items() if at in self.disk.files}

    def _place(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rpartition("/")
        parent = self.disk._at(folder)
        assert parent is not None, folder
        return parent, name
