"""The disk by folder handles (Linux, macOS): `ports.Disk` over the system's own calls (rows J4, J7, J10, E3).

Every name is resolved inside an open folder (dir_fd) and never through a link (O_NOFOLLOW); only roots are opened by
path. Every descriptor is closed on exec. Anything but a regular file is refused before it is opened, so a pipe never
blocks and a device is never activated, and again on the open descriptor, which nobody can replace.

Python repeats a call that a signal interrupts; nothing else is repeated here. `system_disk` returns the disk of this
system: this one, or `PathDisk` if there are no folder handles (Windows).
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from steadyhand.adapters.disk import locks, renames
from steadyhand.adapters.disk.by_path import PathDisk
from steadyhand.adapters.disk.open_files import (
    OpenFiles,
    attributes_of,
    read_up_to,
    refuse_irregular,
    require_regular,
    sync_descriptor,
)
from steadyhand.adapters.disk.paths import entry_stat_of, look_path, normalize_absolute, require_component
from steadyhand.adapters.disk.replacing import limits_of_folder, replace_limits
from steadyhand.ports.disk import Attributes, Disk, EntryStat, File, Folder, Lock, ReplaceLimits

FOLDER_MODE = 0o700
LOCK_MODE = 0o600
REAL_PATH_BYTES_MAX = 1024  # what F_GETPATH fills on macOS

# Missing on Windows, which imports this module but does not use the class.
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | _CLOSE_ON_EXEC
_NO_WAIT = _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FOLDER_ONLY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


class SystemDisk(OpenFiles):
    """`ports.Disk` over dir_fd. A handle is the descriptor itself."""

    def open_folder(self, path: str) -> Folder:
        return Folder(os.open(normalize_absolute(path), _FOLDER_ONLY | _CLOSE_ON_EXEC))

    def enter(self, folder: Folder, name: str) -> Folder:
        return Folder(os.open(require_component(name), _FOLDER_ONLY | _NO_LINK, dir_fd=folder))

    def make_folder(self, folder: Folder, name: str, mode: int = FOLDER_MODE) -> None:
        os.mkdir(require_component(name), mode, dir_fd=folder)

    def make_root(self, path: str) -> None:
        make_root(path)

    def names(self, folder: Folder) -> list[str]:
        # Listing moves the position of a descriptor, and threads share `folder`: open another one.
        listing = os.open(".", _FOLDER_ONLY | _CLOSE_ON_EXEC, dir_fd=folder)
        try:
            return sorted(os.listdir(listing))
        finally:
            os.close(listing)

    def look(self, folder: Folder, name: str) -> EntryStat | None:
        try:
            seen = os.stat(require_component(name), dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        target = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(seen.st_mode) else None
        return entry_stat_of(seen, target)

    def look_path(self, path: str) -> EntryStat | None:
        return look_path(path)

    def look_open(self, handle: Folder | File) -> EntryStat:
        return entry_stat_of(os.fstat(handle), None)

    def read(self, folder: Folder, name: str, limit: int) -> bytes:
        file = self.open_read(folder, name)
        try:
            return read_up_to(file, limit)
        finally:
            os.close(file)

    def open_read(self, folder: Folder, name: str) -> File:
        return self._open_existing(folder, name, os.O_RDONLY)

    def create(self, folder: Folder, name: str, mode: int) -> File:
        """Create a file as the port says; the umask clears bits of `mode`."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _NO_LINK
        return File(os.open(require_component(name), flags, mode, dir_fd=folder))

    def open_append(self, folder: Folder, name: str) -> File:
        return self._open_existing(folder, name, os.O_WRONLY | os.O_APPEND)

    def open_update(self, folder: Folder, name: str) -> File:
        return self._open_existing(folder, name, os.O_RDWR)

    def _open_existing(self, folder: Folder, name: str, flags: int) -> File:
        seen = os.stat(require_component(name), dir_fd=folder, follow_symlinks=False)
        refuse_irregular(seen.st_mode, name)
        return File(require_regular(os.open(name, flags | _NO_WAIT, dir_fd=folder), name))

    def sync_folder(self, folder: Folder) -> None:
        sync_folder(folder)

    def close(self, handle: Folder | File) -> None:
        os.close(handle)

    def attributes(self, folder: Folder, name: str) -> Attributes:
        file = self.open_read(folder, name)
        try:
            return attributes_of(file)
        finally:
            os.close(file)

    def rename(self, folder: Folder, old: str, new: str) -> None:
        os.rename(require_component(old), require_component(new), src_dir_fd=folder, dst_dir_fd=folder)

    def rename_new(self, folder: Folder, old: str, new: str) -> None:
        renames.rename_new(folder, require_component(old), require_component(new))

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        if exclusive:
            renames.rename_new(folder, require_component(name), require_component(new), other)
        else:
            os.rename(require_component(name), require_component(new), src_dir_fd=folder, dst_dir_fd=other)

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        return renames.exchange(folder, require_component(first), require_component(second))

    def make_link(self, folder: Folder, name: str, target: str) -> None:
        os.symlink(target, require_component(name), dir_fd=folder)

    def unlink(self, folder: Folder, name: str) -> None:
        os.unlink(require_component(name), dir_fd=folder)

    def remove_folder(self, folder: Folder, name: str) -> None:
        os.rmdir(require_component(name), dir_fd=folder)

    def set_mode(self, handle: Folder | File, mode: int) -> None:
        os.fchmod(handle, mode)

    def user(self) -> int | None:
        return os.geteuid()

    def writable(self, folder: Folder, name: str) -> bool:
        seen = os.stat(require_component(name), dir_fd=folder, follow_symlinks=False)
        # Root may write every file; a mode without a write bit says that nobody should (case 58).
        if not stat.S_ISREG(seen.st_mode) or not seen.st_mode & 0o222:
            return False
        effective = os.access in os.supports_effective_ids
        return os.access(name, os.W_OK, dir_fd=folder, effective_ids=effective)

    def replace_limits(self, folder: Folder, name: str) -> ReplaceLimits:
        if self.look(folder, name) is None:
            return limits_of_folder(folder)
        file = self.open_read(folder, name)
        try:
            return replace_limits(folder, file)
        finally:
            os.close(file)

    def lock(self, folder: Folder, name: str) -> Lock | None:
        flags = os.O_RDWR | os.O_CREAT | _NO_WAIT
        opened = require_regular(os.open(require_component(name), flags, LOCK_MODE, dir_fd=folder), name)
        return locks.acquire(opened, lambda held: _is_name_of(folder, name, held))

    def real_path(self, folder: Folder) -> str:
        path = _path_of(folder)
        try:
            same = os.path.samestat(os.stat(path), os.fstat(folder))
        except FileNotFoundError:
            same = False
        if not same:
            raise OSError(errno.ENOENT, "The folder has no path any more", path)
        return path


def system_disk() -> Disk:
    """Return the disk of this system."""
    if os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY"):
        return SystemDisk()
    return PathDisk()


def sync_folder(descriptor: int) -> None:
    """Make a folder's names durable. EINVAL and EROFS are ignored: no such sync, or nothing to sync."""
    try:
        if sys.platform == "darwin":
            sync_descriptor(descriptor)
        else:
            os.fsync(descriptor)
    except OSError as trouble:
        if trouble.errno not in (errno.EINVAL, errno.EROFS):
            raise


def make_root(path: str) -> None:
    """Create a folder and its missing parents, 0700, so that a power loss cannot remove any of them.

    An existing folder that belongs to this user is synced too: the process that created it may have been killed before
    its sync.
    """
    wanted = normalize_absolute(path)
    chain = [wanted]
    while (parent := os.path.dirname(chain[-1])) != chain[-1]:
        chain.append(parent)
    for place in reversed(chain[:-1]):
        if not os.path.isdir(place):
            try:
                os.mkdir(place, FOLDER_MODE)
            except FileExistsError:
                if not os.path.isdir(place):
                    raise
        elif os.stat(place).st_uid != os.geteuid():
            continue
        _sync_path(os.path.dirname(place))


def _sync_path(path: str) -> None:
    try:
        opened = os.open(path, _FOLDER_ONLY | _CLOSE_ON_EXEC)
    except PermissionError:
        # This user may search the folder but not read it, so it cannot be synced.
        return
    try:
        sync_folder(opened)
    finally:
        os.close(opened)


def _is_name_of(folder: int, name: str, held: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), held)
    except FileNotFoundError:
        return False


def _path_of(descriptor: int) -> str:
    if sys.platform == "darwin":
        import fcntl  # missing on Windows

        filled = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(REAL_PATH_BYTES_MAX))
        return os.fsdecode(filled.rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{descriptor}")
