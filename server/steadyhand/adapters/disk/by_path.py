"""The disk by paths, for systems without folder handles (Windows): `ports.Disk` with one promise less.

A folder handle is a number for a path and for the identity that the folder had when it was opened. Before each use the
path must still lead to that identity; the identity of a file must be the same before and after opening it. Between the
stat and the use a small gap remains, which `SystemDisk` does not have; docs/architecture.md names it.

Windows has no sync for folders and cannot exchange names; on other systems this disk does what is possible by path.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading

from steadyhand.adapters.disk import locks
from steadyhand.adapters.disk.open_files import OpenFiles, attributes_of, read_up_to, refuse_irregular, require_regular
from steadyhand.adapters.disk.paths import entry_stat_of, is_link, look_path, normalize_absolute, require_component
from steadyhand.adapters.disk.replacing import limits_of_folder, replace_limits
from steadyhand.ports.disk import Attributes, EntryStat, File, Folder, Lock, ReplaceLimits
from steadyhand_values import frozen

FOLDER_MODE = 0o700
LOCK_MODE = 0o600

_PLAIN = (
    getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


@frozen
class _OpenDirectory:
    """The path of an open folder, and the (device, inode) that it had when it was opened."""

    path: str
    identity: tuple[int, int]


class PathDisk(OpenFiles):
    """`ports.Disk` by paths. Folder handles are negative, so they never equal a file's."""

    def __init__(self) -> None:
        self._directories: dict[int, _OpenDirectory] = {}
        self._guard = threading.Lock()
        self._last_handle = -1

    def open_folder(self, path: str) -> Folder:
        return self._open_directory(normalize_absolute(path), os.stat(normalize_absolute(path)))

    def enter(self, folder: Folder, name: str) -> Folder:
        path = self._path_in(folder, name)
        return self._open_directory(path, os.lstat(path))

    def _open_directory(self, path: str, seen: os.stat_result) -> Folder:
        if is_link(seen) or not stat.S_ISDIR(seen.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        with self._guard:
            self._last_handle -= 1
            self._directories[self._last_handle] = _OpenDirectory(path, (seen.st_dev, seen.st_ino))
            return Folder(self._last_handle)

    def _path_in(self, folder: Folder, name: str) -> str:
        """Return the path of a name, after checking that the folder is still the one that was opened."""
        return os.path.join(self.real_path(folder), require_component(name))

    def make_folder(self, folder: Folder, name: str, mode: int = FOLDER_MODE) -> None:
        os.mkdir(self._path_in(folder, name), mode)

    def make_root(self, path: str) -> None:
        wanted = normalize_absolute(path)
        missing = [wanted]
        while not os.path.isdir(os.path.dirname(missing[-1])):
            missing.append(os.path.dirname(missing[-1]))
        for place in reversed(missing):
            try:
                os.mkdir(place, FOLDER_MODE)
            except FileExistsError:
                if not os.path.isdir(place):
                    raise
            _sync_folder(os.path.dirname(place))

    def names(self, folder: Folder) -> list[str]:
        return sorted(os.listdir(self.real_path(folder)))

    def look(self, folder: Folder, name: str) -> EntryStat | None:
        path = self._path_in(folder, name)
        try:
            seen = os.lstat(path)
        except FileNotFoundError:
            return None
        return entry_stat_of(seen, os.readlink(path) if is_link(seen) else None)

    def look_path(self, path: str) -> EntryStat | None:
        return look_path(path)

    def look_open(self, handle: Folder | File) -> EntryStat:
        return entry_stat_of(os.fstat(handle) if handle >= 0 else os.stat(self.real_path(Folder(handle))), None)

    def read(self, folder: Folder, name: str, limit: int) -> bytes:
        file = self.open_read(folder, name)
        try:
            return read_up_to(file, limit)
        finally:
            os.close(file)

    def open_read(self, folder: Folder, name: str) -> File:
        return self._open_existing(folder, name, os.O_RDONLY)

    def create(self, folder: Folder, name: str, mode: int) -> File:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _PLAIN
        return File(os.open(self._path_in(folder, name), flags, mode))

    def open_append(self, folder: Folder, name: str) -> File:
        return self._open_existing(folder, name, os.O_WRONLY | os.O_APPEND)

    def open_update(self, folder: Folder, name: str) -> File:
        return self._open_existing(folder, name, os.O_RDWR)

    def _open_existing(self, folder: Folder, name: str, flags: int) -> File:
        path = self._path_in(folder, name)
        seen = self._stat_regular_file(path)
        opened = require_regular(os.open(path, flags | _PLAIN), name)
        if os.path.samestat(os.fstat(opened), seen):
            return File(opened)
        os.close(opened)
        raise OSError(errno.ESTALE, "The file was replaced while it was being opened", name)

    def _stat_regular_file(self, path: str) -> os.stat_result:
        seen = os.lstat(path)
        refuse_irregular(stat.S_IFLNK if is_link(seen) else seen.st_mode, path)
        return seen

    def sync_folder(self, folder: Folder) -> None:
        _sync_folder(self.real_path(folder))

    def close(self, handle: Folder | File) -> None:
        if handle >= 0:
            os.close(handle)
            return
        with self._guard:
            if self._directories.pop(handle, None) is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def attributes(self, folder: Folder, name: str) -> Attributes:
        file = self.open_read(folder, name)
        try:
            return attributes_of(file)
        finally:
            os.close(file)

    def rename(self, folder: Folder, old: str, new: str) -> None:
        os.replace(self._path_in(folder, old), self._path_in(folder, new))

    def rename_new(self, folder: Folder, old: str, new: str) -> None:
        self.rename_to(folder, old, folder, new, True)

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        first, second = self._path_in(folder, name), self._path_in(other, new)
        if not exclusive:
            os.replace(first, second)
            return
        if sys.platform == "win32":
            os.rename(first, second)  # on Windows it never replaces
            return
        if os.path.lexists(second):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        os.rename(first, second)

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        for name in (first, second):
            self._path_in(folder, name)
        return False

    def make_link(self, folder: Folder, name: str, target: str) -> None:
        os.symlink(target, self._path_in(folder, name))

    def unlink(self, folder: Folder, name: str) -> None:
        os.unlink(self._path_in(folder, name))

    def remove_folder(self, folder: Folder, name: str) -> None:
        os.rmdir(self._path_in(folder, name))

    def set_mode(self, handle: Folder | File, mode: int) -> None:
        os.chmod(handle if handle >= 0 else self.real_path(Folder(handle)), mode)

    def user(self) -> int | None:
        return os.geteuid() if sys.platform != "win32" else None

    def writable(self, folder: Folder, name: str) -> bool:
        path = self._path_in(folder, name)
        seen = os.lstat(path)
        if is_link(seen) or not stat.S_ISREG(seen.st_mode) or not seen.st_mode & 0o222:
            return False
        return os.access(path, os.W_OK)

    def replace_limits(self, folder: Folder, name: str) -> ReplaceLimits:
        if sys.platform == "win32":
            return ReplaceLimits()
        opened = os.open(self.real_path(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if self.look(folder, name) is None:
                return limits_of_folder(opened)
            file = self.open_read(folder, name)
            try:
                return replace_limits(opened, file)
            finally:
                os.close(file)
        finally:
            os.close(opened)

    def lock(self, folder: Folder, name: str) -> Lock | None:
        path = self._path_in(folder, name)
        if os.path.lexists(path):
            self._stat_regular_file(path)
        opened = require_regular(os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, LOCK_MODE), name)
        return locks.acquire(opened, lambda held: os.path.samestat(os.lstat(path), held))

    def real_path(self, folder: Folder) -> str:
        with self._guard:
            place = self._directories.get(folder)
        if place is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        # The path of a root may end in a link, so it is followed; the identity decides.
        seen = os.stat(place.path)
        if (seen.st_dev, seen.st_ino) != place.identity:
            raise OSError(errno.ESTALE, "The folder is not the one that was opened", place.path)
        return place.path


def _sync_folder(path: str) -> None:
    if sys.platform == "win32":
        return
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
