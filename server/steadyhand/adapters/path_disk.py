"""The disk by paths, for systems without folder handles (Windows): `ports.Disk`, with one promise less.

A folder handle is a number for a path and the identity the folder had when it was opened. Before each use the
path must still lead to that identity; a file's identity before and after opening must be the same. Between
look and use a small gap stays that `SystemDisk` does not have; the docs say so.

Windows has no sync for folders and swaps no names; elsewhere this disk does what the system can by path.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading

import attrs

from steadyhand.adapters import locks
from steadyhand.adapters.open_files import OpenFiles, attributes_of, read_up_to, refuse_other_kinds, regular
from steadyhand.adapters.paths import absolute, component, is_link, seen_as
from steadyhand.ports import Attributes, File, Folder, Lock, Look

folder_mode = 0o700
lock_mode = 0o600

_plain = (
    getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


@attrs.frozen
class _Place:
    path: str
    identity: tuple[int, int]


class PathDisk(OpenFiles):
    """`ports.Disk` by paths. Folder handles are negative, so that they are never taken for a file's."""

    def __init__(self) -> None:
        self._places: dict[int, _Place] = {}
        self._guard = threading.Lock()
        self._last = -1

    def open_folder(self, path: str) -> Folder:
        return self._opened(absolute(path), os.stat(absolute(path)))

    def enter(self, folder: Folder, name: str) -> Folder:
        path = self._at(folder, name)
        return self._opened(path, os.lstat(path))

    def _opened(self, path: str, seen: os.stat_result) -> Folder:
        if is_link(seen) or not stat.S_ISDIR(seen.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        with self._guard:
            self._last -= 1
            self._places[self._last] = _Place(path, (seen.st_dev, seen.st_ino))
            return Folder(self._last)

    def _at(self, folder: Folder, name: str) -> str:
        """The path of a name in a folder that is still the one that was opened."""
        return os.path.join(self.real_path(folder), component(name))

    def make_folder(self, folder: Folder, name: str, mode: int = folder_mode) -> None:
        os.mkdir(self._at(folder, name), mode)

    def make_root(self, path: str) -> None:
        wanted = absolute(path)
        missing = [wanted]
        while not os.path.isdir(os.path.dirname(missing[-1])):
            missing.append(os.path.dirname(missing[-1]))
        for place in reversed(missing):
            try:
                os.mkdir(place, folder_mode)
            except FileExistsError:
                if not os.path.isdir(place):
                    raise
            _sync_folder(os.path.dirname(place))

    def names(self, folder: Folder) -> list[str]:
        return sorted(os.listdir(self.real_path(folder)))

    def look(self, folder: Folder, name: str) -> Look | None:
        path = self._at(folder, name)
        try:
            seen = os.lstat(path)
        except FileNotFoundError:
            return None
        return seen_as(seen, os.readlink(path) if is_link(seen) else None)

    def read(self, folder: Folder, name: str, limit: int) -> bytes:
        file = self.open_read(folder, name)
        try:
            return read_up_to(file, limit)
        finally:
            os.close(file)

    def open_read(self, folder: Folder, name: str) -> File:
        return self._existing(folder, name, os.O_RDONLY)

    def create(self, folder: Folder, name: str, mode: int) -> File:
        return File(os.open(self._at(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _plain, mode))

    def open_append(self, folder: Folder, name: str) -> File:
        return self._existing(folder, name, os.O_WRONLY | os.O_APPEND)

    def _existing(self, folder: Folder, name: str, flags: int) -> File:
        path = self._at(folder, name)
        seen = self._file(path)
        opened = regular(os.open(path, flags | _plain), name)
        if os.path.samestat(os.fstat(opened), seen):
            return File(opened)
        os.close(opened)
        raise OSError(errno.ESTALE, "The file was replaced while it was being opened", name)

    def _file(self, path: str) -> os.stat_result:
        seen = os.lstat(path)
        refuse_other_kinds(stat.S_IFLNK if is_link(seen) else seen.st_mode, path)
        return seen

    def sync_folder(self, folder: Folder) -> None:
        _sync_folder(self.real_path(folder))

    def close(self, handle: Folder | File) -> None:
        if handle >= 0:
            os.close(handle)
            return
        with self._guard:
            if self._places.pop(handle, None) is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def attributes(self, folder: Folder, name: str) -> Attributes:
        file = self.open_read(folder, name)
        try:
            return attributes_of(file)
        finally:
            os.close(file)

    def rename(self, folder: Folder, old: str, new: str) -> None:
        os.replace(self._at(folder, old), self._at(folder, new))

    def rename_new(self, folder: Folder, old: str, new: str) -> None:
        self.rename_to(folder, old, folder, new, True)

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        first, second = self._at(folder, name), self._at(other, new)
        if not exclusive:
            os.replace(first, second)
            return
        if sys.platform == "win32":
            os.rename(first, second)  # never replaces there
            return
        if os.path.lexists(second):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
        os.rename(first, second)

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        for name in (first, second):
            self._at(folder, name)
        return False

    def make_link(self, folder: Folder, name: str, target: str) -> None:
        os.symlink(target, self._at(folder, name))

    def unlink(self, folder: Folder, name: str) -> None:
        os.unlink(self._at(folder, name))

    def remove_folder(self, folder: Folder, name: str) -> None:
        os.rmdir(self._at(folder, name))

    def writable(self, folder: Folder, name: str) -> bool:
        path = self._at(folder, name)
        seen = os.lstat(path)
        if is_link(seen) or not stat.S_ISREG(seen.st_mode) or not seen.st_mode & 0o222:
            return False
        return os.access(path, os.W_OK)

    def lock(self, folder: Folder, name: str) -> Lock | None:
        path = self._at(folder, name)
        if os.path.lexists(path):
            self._file(path)
        opened = regular(os.open(path, os.O_RDWR | os.O_CREAT | _plain, lock_mode), name)
        return locks.take(opened, lambda held: os.path.samestat(os.lstat(path), held))

    def real_path(self, folder: Folder) -> str:
        with self._guard:
            place = self._places.get(folder)
        if place is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        # A root's own path may lead over a link, so its end is followed here; the identity decides.
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
