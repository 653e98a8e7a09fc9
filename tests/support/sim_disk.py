"""A disk in memory that implements `ports.Disk` and remembers what has not been synced.

The running process sees the volatile state: every operation takes effect at once. `log` has the durable operations in
their order and what was promised between them (`mark`); tests/prove/power.py computes from it every state that a power
loss may leave. A folder is an inode with entries, a file an inode with bytes, as on a real disk; a name that was not
synced can be lost independently of the bytes behind it.

A fault lets the n-th durable operation fail, once or from then on. A failed `sync` is as bad as on Linux: the data
stays readable and is never written, although later syncs succeed. Attributes are durable at once. There are no symbolic
links, and a file has several names only if the first tree says so. `before` is called before each durable operation, in
the thread that requests it.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from typing import Literal

import attrs

from steadyhand.ports.disk import Attributes, EntryStat, File, Folder, Kind, Lock, ReplaceLimits

ROOT = 1
DEVICE = 1
Error = Literal["EIO", "ENOSPC", "EINTR", "short"]
Entry = tuple[object, ...]
"""
("link", folder, name, inode, is a folder)    ("unlink", folder, name)         ("rename", folder, old, new, inode)
("rename_to", folder, old, folder, new, inode)    ("exchange", folder, a, b, inode a, inode b)
("write", inode, position, bytes)    ("truncate", inode, size)
("sync", inode)    ("failed_sync", inode)    ("sync_folder", folder)    ("mark", what)
"""


@attrs.frozen
class Tree:
    """The content of a disk: inode → entries of a folder, inode → bytes of a file."""

    folders: dict[int, dict[str, int]]
    files: dict[int, bytes]

    def walk(self) -> dict[str, bytes | None]:
        """Path → bytes of every file, None for a folder."""
        found: dict[str, bytes | None] = {}
        pending = [("", ROOT)]
        while pending:
            path, inode = pending.pop()
            for name, child in self.folders[inode].items():
                is_folder = child in self.folders
                found[f"{path}/{name}"] = None if is_folder else self.files[child]
                if is_folder:
                    pending.append((f"{path}/{name}", child))
        return found


def tree_of(files: dict[str, bytes | None], names: dict[str, str] | None = None) -> Tree:
    """A tree with these paths (None: an empty folder) and the folders on the way.

    `names`: another name in the same folder → the path of the file that has it too (a hard link).
    """
    tree = Tree({ROOT: {}}, {})
    inode = ROOT
    for path, content in files.items():
        parts = path.strip("/").split("/")
        here = ROOT
        for part in parts if content is None else parts[:-1]:
            if part not in tree.folders[here]:
                inode += 1
                tree.folders[here][part] = inode
                tree.folders[inode] = {}
            here = tree.folders[here][part]
        if content is not None:
            inode += 1
            tree.folders[here][parts[-1]] = inode
            tree.files[inode] = content
    for second, path in (names or {}).items():
        *above, name = path.strip("/").split("/")
        here = ROOT
        for part in above:
            here = tree.folders[here][part]
        tree.folders[here][second] = tree.folders[here][name]
    return tree


@attrs.frozen
class Fault:
    """Which durable operation fails, numbered from 1, and how.

    "short": a write takes half of its bytes; for good, no later write takes any, as on a disk that fills up.
    """

    number: int
    error: Error
    for_good: bool = False


@attrs.define
class _Handle:
    inode: int
    position: int = 0
    appends: bool = False  # each write goes to the end of the file, as with O_APPEND


class _HeldLock:
    def __init__(self, disk: SimDisk, inode: int) -> None:
        self._disk, self._inode = disk, inode
        self.identity = (DEVICE, inode)

    def release(self) -> None:
        self._disk.locked.discard(self._inode)


_room_takers = ("create", "make_folder", "write")


class SimDisk:
    """`ports.Disk` over a `Tree`, which is durable at first. Threads may share it."""

    def __init__(self, tree: Tree, fault: Fault | None = None) -> None:
        self.first = tree
        self.folders = {inode: dict(entries) for inode, entries in tree.folders.items()}
        self.files = dict(tree.files)
        self.log: list[Entry] = []
        self.fault = fault
        self.failed = 0
        self.count = 0
        self.begun: list[tuple[str, str]] = []
        """What each of these operations was: its kind and its target."""
        self.before: Callable[[str, str], None] | None = None
        self.exchanges = True
        self.locked: set[int] = set()
        self.links: dict[int, int] = {}
        """Inode → its number of names where somebody else gave it more than one."""
        self.removed: set[int] = set()
        """Folders that somebody else removed; nothing can be created in them."""
        self.misused = 0
        """The number of uses of a closed handle; on a real disk it could belong to another file by then."""
        self._parents = {child: (inode, name) for inode, each in tree.folders.items() for name, child in each.items()}
        self._attributes: dict[int, Attributes] = {}
        self._touched: dict[int, int] = {}
        self._medium = dict(tree.files)
        """Inode → its bytes on the disk itself; what was not synced is missing, and what a failed sync lost."""
        self._unsynced: dict[int, list[Entry]] = {}
        self._handles: dict[int, _Handle] = {}
        self._next_handle = 10
        self._next_inode = max([*tree.folders, *tree.files]) + 1
        self._guard = threading.RLock()

    # For the tests.

    def mark(self, what: object) -> None:
        """Put into the log that something was promised or begun here."""
        with self._guard:
            self.log.append(("mark", what))

    @staticmethod
    def killed_after(disk: SimDisk, prefix: int) -> SimDisk:
        """The disk as the next process finds it after a kill at this operation: nothing is lost, and little of it is
        durable."""
        found = SimDisk(disk.first)
        found._next_inode = disk._next_inode
        found._attributes = dict(disk._attributes)
        for entry in disk.log[:prefix]:
            found._happened(entry)
        found.log = disk.log[:prefix]
        return found

    def _happened(self, entry: Entry) -> None:
        match entry:
            case ("link", int(parent), str(name), int(inode), bool(is_folder)):
                self.folders[parent][name] = inode
                self._parents[inode] = (parent, name)
                if is_folder:
                    self.folders[inode] = {}
                else:
                    self.files[inode] = b""
            case ("rename", int(folder), str(old), str(new), int(inode)):
                self.folders[folder].pop(old, None)
                self.folders[folder][new] = inode
            case ("rename_to", int(folder), str(old), int(target), str(new), int(inode)):
                del self.folders[folder][old]
                self.folders[target][new] = inode
            case ("exchange", int(folder), str(first), str(second), int(one), int(other)):
                self.folders[folder][first], self.folders[folder][second] = other, one
            case ("unlink", int(folder), str(name)):
                del self.folders[folder][name]
            case ("write" | "truncate", int(inode), *_):
                self.files[inode] = _written(self.files[inode], [entry])
                self._unsynced.setdefault(inode, []).append(entry)
            case ("sync", int(inode)):
                self._medium[inode] = _written(self._medium.get(inode, b""), self._unsynced.pop(inode, ()))
            case ("failed_sync", int(inode)):
                self._unsynced.pop(inode, None)
            case _:
                pass

    def now(self) -> Tree:
        """The volatile state, as a copy."""
        with self._guard:
            return Tree({inode: dict(each) for inode, each in self.folders.items()}, dict(self.files))

    def die(self) -> None:
        """End the process: its handles and locks are gone; what was not synced stays as it is."""
        self.locked.clear()
        self._handles.clear()
        self.fault = None
        self.before = None

    def content(self, path: str) -> bytes | None:
        """The bytes of a file as the process sees them; None if there is no file."""
        inode = self._at(path)
        return None if inode is None else self.files.get(inode)

    def place(self, path: str, content: bytes) -> None:
        """Somebody else puts a new file under a name and syncs both, as an editor saves."""
        with self._guard:
            folder, _, name = path.rpartition("/")
            parent = self._at(folder)
            assert parent is not None, folder
            inode = self._new_inode()
            self.files[inode] = self._medium[inode] = content
            self._attributes[inode] = Attributes(0o644, 0, 0, {})
            self.log.append(("link", parent, ".save", inode, False))
            self.log.append(("write", inode, 0, content))
            self.log.append(("sync", inode))
            self.log.append(("rename", parent, ".save", name, inode))
            self.folders[parent][name] = inode
            self.log.append(("sync_folder", parent))

    def append_unsynced(self, path: str, content: bytes) -> None:
        """Somebody else, such as a command, appends to a file and syncs nothing."""
        with self._guard:
            folder, _, name = path.rpartition("/")
            parent = self._at(folder)
            assert parent is not None, folder
            inode = self.folders[parent].get(name)
            if inode is None:
                inode = self._link(parent, name, None)
            self.log.append(("write", inode, len(self.files[inode]), content))
            self._unsynced.setdefault(inode, []).append(self.log[-1])
            self.files[inode] += content

    def save_unsynced(self, path: str, content: bytes) -> None:
        """An editor writes over a file and syncs nothing."""
        with self._guard:
            inode = self._at(path)
            assert inode is not None, path
            for entry in (("truncate", inode, 0), ("write", inode, 0, content)):
                self.log.append(entry)
                self._unsynced.setdefault(inode, []).append(entry)
            self.files[inode] = content
            self._touch(inode)

    def folder_unsynced(self, path: str) -> None:
        """Somebody else creates a folder and syncs nothing."""
        with self._guard:
            folder, _, name = path.rpartition("/")
            parent = self._at(folder)
            assert parent is not None, folder
            self._link(parent, name, {})

    # Folders.

    def open_folder(self, path: str) -> Folder:
        with self._guard:
            inode = self._at(path)
            if inode is None:
                raise _error(errno.ENOENT, path)
            return Folder(self._opened(self._as_folder(inode, path)))

    def enter(self, folder: Folder, name: str) -> Folder:
        with self._guard:
            return Folder(self._opened(self._as_folder(self._child(folder, name), name)))

    def make_folder(self, folder: Folder, name: str, mode: int = 0o700) -> None:
        self._announce("make_folder", name)
        with self._guard:
            parent = self._inode(folder)
            if name in self.folders[parent]:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            self._begin("make_folder", name)
            self._link(parent, name, {})

    def make_root(self, path: str) -> None:
        self._announce("make_root", path)
        with self._guard:
            here = ROOT
            for name in path.strip("/").split("/"):
                if name not in self.folders[here]:
                    self._begin("make_folder", name)
                    self._link(here, name, {})
                self._begin("sync_folder", name)
                self.log.append(("sync_folder", here))
                here = self.folders[here][name]

    def remove_folder(self, folder: Folder, name: str) -> None:
        self._announce("remove_folder", name)
        with self._guard:
            inode = self._as_folder(self._child(folder, name), name)
            if self.folders[inode]:
                raise _error(errno.ENOTEMPTY, name)
            self._begin("remove_folder", name)
            del self.folders[self._inode(folder)][name]
            self.log.append(("unlink", self._inode(folder), name))

    def names(self, folder: Folder) -> list[str]:
        with self._guard:
            return sorted(self.folders[self._inode(folder)])

    def sync_folder(self, folder: Folder) -> None:
        self._announce("sync_folder", "")
        with self._guard:
            self._begin("sync_folder", "")
            self.log.append(("sync_folder", self._inode(folder)))

    def real_path(self, folder: Folder) -> str:
        with self._guard:
            parts: list[str] = []
            inode = self._inode(folder)
            while inode != ROOT:
                inode, name = self._parents[inode]
                parts.append(name)
            return "/" + "/".join(reversed(parts))

    # Files.

    def look(self, folder: Folder, name: str) -> EntryStat | None:
        with self._guard:
            inode = self.folders[self._inode(folder)].get(name)
            return None if inode is None else self._stat(inode)

    def look_path(self, path: str) -> EntryStat | None:
        with self._guard:
            inode = self._at(path)
            return None if inode is None else self._stat(inode)

    def look_open(self, handle: Folder | File) -> EntryStat:
        with self._guard:
            return self._stat(self._handle(handle).inode)

    def _stat(self, inode: int) -> EntryStat:
        kind: Kind = "folder" if inode in self.folders else "file"
        size = 0 if kind == "folder" else len(self.files[inode])
        has, links = self._attributes_of(inode), self.links.get(inode) or self._names_of(inode)
        touched = self._touched.get(inode, 0)
        return EntryStat(kind, size, has.mode, has.uid, has.gid, links, touched, (DEVICE, inode))

    def _names_of(self, inode: int) -> int:
        if inode in self.folders:
            return 1
        return max(1, sum(child == inode for each in self.folders.values() for child in each.values()))

    def read(self, folder: Folder, name: str, limit: int) -> bytes:
        with self._guard:
            return self.files[self._as_file(self._child(folder, name), name)][:limit]

    def open_read(self, folder: Folder, name: str) -> File:
        with self._guard:
            return File(self._opened(self._as_file(self._child(folder, name), name)))

    def read_piece(self, file: File, size: int) -> bytes:
        with self._guard:
            handle = self._handle(file)
            piece = self.files[handle.inode][handle.position : handle.position + size]
            handle.position += len(piece)
            return piece

    def move_to(self, file: File, position: int) -> None:
        self._handle(file).position = position

    def create(self, folder: Folder, name: str, mode: int) -> File:
        self._announce("create", name)
        with self._guard:
            parent = self._inode(folder)
            if name in self.folders[parent]:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            self._begin("create", name)
            inode = self._link(parent, name, None)
            self._attributes[inode] = Attributes(mode, 0, 0, {})
            handle = self._opened(inode)
            self._handles[handle].appends = True
            return File(handle)

    def open_append(self, folder: Folder, name: str) -> File:
        with self._guard:
            handle = self._opened(self._as_file(self._child(folder, name), name))
            self._handles[handle].appends = True
            return File(handle)

    def open_update(self, folder: Folder, name: str) -> File:
        return self.open_read(folder, name)

    def write(self, file: File, piece: bytes) -> int:
        self._announce("write", self._name(self._handle(file).inode))
        with self._guard:
            handle = self._handle(file)
            if self._begin("write", self._name(handle.inode)):
                piece = piece[: len(piece) // 2]
            content = self.files[handle.inode]
            at = len(content) if handle.appends else handle.position
            self.log.append(("write", handle.inode, at, piece))
            self._unsynced.setdefault(handle.inode, []).append(self.log[-1])
            self.files[handle.inode] = content[:at] + piece + content[at + len(piece) :]
            self._touch(handle.inode)
            handle.position = at + len(piece)
            return len(piece)

    def truncate(self, file: File, size: int) -> None:
        self._announce("truncate", self._name(self._handle(file).inode))
        with self._guard:
            inode = self._handle(file).inode
            self._begin("truncate", self._name(inode))
            self.log.append(("truncate", inode, size))
            self._unsynced.setdefault(inode, []).append(self.log[-1])
            self.files[inode] = self.files[inode][:size].ljust(size, b"\0")
            self._touch(inode)

    def reread(self, file: File) -> None:
        """What a failed sync lost is not there any more, in whatever way the log is read (`gate` of power.states)."""
        with self._guard:
            inode = self._handle(file).inode
            found = _written(self._medium.get(inode, b""), self._unsynced.get(inode, ()))
            if found != self.files[inode]:
                self.log += [("write", inode, 0, found), ("truncate", inode, len(found)), ("sync", inode)]
                self.files[inode] = self._medium[inode] = found
                self._unsynced.pop(inode, None)
                self._touch(inode)

    def sync(self, file: File) -> None:
        self._announce("sync", self._name(self._handle(file).inode))
        with self._guard:
            inode = self._handle(file).inode
            try:
                self._begin("sync", self._name(inode))
            except OSError:
                self.log.append(("failed_sync", inode))
                self._unsynced.pop(inode, None)
                raise
            self.log.append(("sync", inode))
            self._medium[inode] = _written(self._medium.get(inode, b""), self._unsynced.pop(inode, ()))

    def close(self, handle: Folder | File) -> None:
        with self._guard:
            if self._handles.pop(handle, None) is None:
                raise _error(errno.EBADF, "closed already")

    def attributes(self, folder: Folder, name: str) -> Attributes:
        with self._guard:
            return self._attributes_of(self._as_file(self._child(folder, name), name))

    def give_attributes(self, file: File, attributes: Attributes) -> list[str]:
        self._announce("give_attributes", "")
        with self._guard:
            self._begin("give_attributes", "")
            self._attributes[self._handle(file).inode] = attributes
            return []

    def set_mode(self, handle: Folder | File, mode: int) -> None:
        self._announce("set_mode", "")
        with self._guard:
            self._begin("set_mode", "")
            inode = self._handle(handle).inode
            self._attributes[inode] = attrs.evolve(self._attributes_of(inode), mode=mode)

    def user(self) -> int | None:
        return 0

    def writable(self, folder: Folder, name: str) -> bool:
        with self._guard:
            return bool(self._attributes_of(self._child(folder, name)).mode & 0o222)

    def replace_limits(self, folder: Folder, name: str) -> ReplaceLimits:
        return ReplaceLimits()

    # Names.

    def rename(self, folder: Folder, old: str, new: str) -> None:
        self._announce("rename", f"{old} -> {new}")
        with self._guard:
            inode = self._child(folder, old)
            self._begin("rename", f"{old} -> {new}")
            entries = self.folders[self._inode(folder)]
            del entries[old]
            entries[new] = inode
            self.log.append(("rename", self._inode(folder), old, new, inode))

    def rename_new(self, folder: Folder, old: str, new: str) -> None:
        self._announce("rename_new", f"{old} -> {new}")
        with self._guard:
            inode = self._child(folder, old)
            self._begin("rename_new", f"{old} -> {new}")
            entries = self.folders[self._inode(folder)]
            if new in entries:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
            del entries[old]
            entries[new] = inode
            self.log.append(("rename", self._inode(folder), old, new, inode))

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        self._announce("rename_to", f"{name} -> {new}")
        with self._guard:
            inode = self._child(folder, name)
            self._begin("rename_to", f"{name} -> {new}")
            source, target = self._inode(folder), self._inode(other)
            if exclusive and new in self.folders[target]:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
            del self.folders[source][name]
            self.folders[target][new] = inode
            self._parents[inode] = (target, new)
            self.log.append(("rename_to", source, name, target, new, inode))

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        self._announce("exchange", f"{first} -> {second}")
        with self._guard:
            if not self.exchanges:
                return False
            one, other = self._child(folder, first), self._child(folder, second)
            self._begin("exchange", f"{first} -> {second}")
            one, other = self._child(folder, first), self._child(folder, second)
            entries = self.folders[self._inode(folder)]
            entries[first], entries[second] = other, one
            self.log.append(("exchange", self._inode(folder), first, second, one, other))
            return True

    def make_link(self, folder: Folder, name: str, target: str) -> None:
        """There are no links on this disk."""
        raise _error(errno.EPERM, name)

    def unlink(self, folder: Folder, name: str) -> None:
        self._announce("unlink", name)
        with self._guard:
            self._as_file(self._child(folder, name), name)
            self._begin("unlink", name)
            del self.folders[self._inode(folder)][name]
            self.log.append(("unlink", self._inode(folder), name))

    def lock(self, folder: Folder, name: str) -> Lock | None:
        with self._guard:
            parent = self._inode(folder)
            inode = self.folders[parent].get(name)
            if inode is None:
                inode = self._link(parent, name, None)
            if inode in self.locked:
                return None
            self.locked.add(inode)
            return _HeldLock(self, inode)

    # Private.

    def _announce(self, verb: str, target: str) -> None:
        """Call `before` without the lock, because the callee may wait for other threads that use this disk."""
        if self.before is not None:
            self.before(verb, target)

    def _begin(self, verb: str, target: str) -> bool:
        """Count a durable operation and let it fail if a fault says so; True: it is to be short."""
        self.count += 1
        self.begun.append((verb, target))
        fault = self.fault
        if fault is None or self.count < fault.number or (self.count > fault.number and not fault.for_good):
            return False
        if fault.error == "short":
            if verb != "write":
                return False
            self.failed += 1
            if fault.for_good and self.failed > 1:
                raise _error(errno.ENOSPC, target)
            return True
        if fault.error == "ENOSPC" and self.count > fault.number and verb not in _room_takers:
            return False
        self.failed += 1
        raise _error(getattr(errno, fault.error), target)

    def _at(self, path: str) -> int | None:
        here = ROOT
        for name in path.split("/"):
            if not name:
                continue
            if here not in self.folders or name not in self.folders[here]:
                return None
            here = self.folders[here][name]
        return here

    def _link(self, parent: int, name: str, entries: dict[str, int] | None) -> int:
        if parent in self.removed:
            raise _error(errno.ENOENT, name)
        inode = self._new_inode()
        if entries is None:
            self.files[inode] = b""
        else:
            self.folders[inode] = entries
        self._parents[inode] = (parent, name)
        self.folders[parent][name] = inode
        self.log.append(("link", parent, name, inode, inode in self.folders))
        return inode

    def _new_inode(self) -> int:
        self._next_inode += 1
        return self._next_inode - 1

    def _opened(self, inode: int) -> int:
        self._next_handle += 1
        self._handles[self._next_handle] = _Handle(inode)
        return self._next_handle

    def _inode(self, folder: Folder) -> int:
        return self._handle(folder).inode

    def _handle(self, handle: int) -> _Handle:
        found = self._handles.get(handle)
        if found is None:
            self.misused += 1
            raise _error(errno.EBADF, "closed")
        return found

    def _child(self, folder: Folder, name: str) -> int:
        inode = self.folders[self._inode(folder)].get(name)
        if inode is None:
            raise _error(errno.ENOENT, name)
        return inode

    def _as_folder(self, inode: int, name: str) -> int:
        if inode not in self.folders:
            raise _error(errno.ENOTDIR, name)
        return inode

    def _as_file(self, inode: int, name: str) -> int:
        if inode in self.folders:
            raise _error(errno.EISDIR, name)
        return inode

    def _name(self, inode: int) -> str:
        return self._parents.get(inode, (0, "?"))[1]

    def _attributes_of(self, inode: int) -> Attributes:
        return self._attributes.get(inode) or Attributes(0o700 if inode in self.folders else 0o644, 0, 0, {})

    def _touch(self, inode: int) -> None:
        self._touched[inode] = self._touched.get(inode, 0) + 1


def _written(content: bytes, entries: Iterable[Entry]) -> bytes:
    """The content after these writes and truncations."""
    for entry in entries:
        match entry:
            case ("write", _, int(at), bytes(piece)):
                content = content[:at].ljust(at, b"\0") + piece + content[at + len(piece) :]
            case ("truncate", _, int(size)):
                content = content[:size].ljust(size, b"\0")
            case _:
                pass
    return content


def _error(number: int, name: str) -> OSError:
    return OSError(number, os.strerror(number), name)
