"""The disk, by folder handles (Linux, macOS): `ports.Disk` as the system itself keeps it (rows J4, J7, J10,
E3).

Every name is resolved inside an open folder (dir_fd) and never through a link (O_NOFOLLOW); only roots are
opened by path. Every descriptor is closed on exec. What is no regular file is refused before it is opened, so
that a pipe never blocks and a device is never woken, and again on the open descriptor, where nobody can swap
it.

Python repeats a call that a signal interrupted; nothing else is repeated here. `system_disk` gives the disk
of this system: this one, or `PathDisk` where there are no folder handles (Windows).
"""

from __future__ import annotations

import errno
import os
import stat
import sys

from steadyhand.adapters import locks, renames
from steadyhand.adapters.open_files import (
    OpenFiles,
    attributes_of,
    read_up_to,
    refuse_other_kinds,
    regular,
    sync_descriptor,
)
from steadyhand.adapters.path_disk import PathDisk
from steadyhand.adapters.paths import absolute, component, seen_as
from steadyhand.ports import Attributes, Disk, File, Folder, Lock, Look

folder_mode = 0o700
lock_mode = 0o600
real_path_bytes_max = 1024  # what F_GETPATH fills on macOS

# Absent on Windows, where this class is not used but its file is imported.
_close_on_exec = getattr(os, "O_CLOEXEC", 0)
_no_link = getattr(os, "O_NOFOLLOW", 0) | _close_on_exec
_no_wait = _no_link | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_folder_only = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)


class SystemDisk(OpenFiles):
    """`ports.Disk` over dir_fd. A handle is the descriptor itself."""

    def open_folder(self, path: str) -> Folder:
        return Folder(os.open(absolute(path), _folder_only | _close_on_exec))

    def enter(self, folder: Folder, name: str) -> Folder:
        return Folder(os.open(component(name), _folder_only | _no_link, dir_fd=folder))

    def make_folder(self, folder: Folder, name: str, mode: int = folder_mode) -> None:
        os.mkdir(component(name), mode, dir_fd=folder)

    def make_root(self, path: str) -> None:
        make_root(path)

    def names(self, folder: Folder) -> list[str]:
        # A listing moves the position of its descriptor, which threads share: it gets one of its own.
        listing = os.open(".", _folder_only | _close_on_exec, dir_fd=folder)
        try:
            return sorted(os.listdir(listing))
        finally:
            os.close(listing)

    def look(self, folder: Folder, name: str) -> Look | None:
        try:
            seen = os.stat(component(name), dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        target = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(seen.st_mode) else None
        return seen_as(seen, target)

    def read(self, folder: Folder, name: str, limit: int) -> bytes:
        file = self.open_read(folder, name)
        try:
            return read_up_to(file, limit)
        finally:
            os.close(file)

    def open_read(self, folder: Folder, name: str) -> File:
        return self._existing(folder, name, os.O_RDONLY)

    def create(self, folder: Folder, name: str, mode: int) -> File:
        """As the port says; `mode` is less what the umask takes away."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _no_link
        return File(os.open(component(name), flags, mode, dir_fd=folder))

    def open_append(self, folder: Folder, name: str) -> File:
        return self._existing(folder, name, os.O_WRONLY | os.O_APPEND)

    def _existing(self, folder: Folder, name: str, flags: int) -> File:
        seen = os.stat(component(name), dir_fd=folder, follow_symlinks=False)
        refuse_other_kinds(seen.st_mode, name)
        return File(regular(os.open(name, flags | _no_wait, dir_fd=folder), name))

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
        os.rename(component(old), component(new), src_dir_fd=folder, dst_dir_fd=folder)

    def rename_new(self, folder: Folder, old: str, new: str) -> None:
        renames.rename_new(folder, component(old), component(new))

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        if exclusive:
            renames.rename_new(folder, component(name), component(new), other)
        else:
            os.rename(component(name), component(new), src_dir_fd=folder, dst_dir_fd=other)

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        return renames.exchange(folder, component(first), component(second))

    def make_link(self, folder: Folder, name: str, target: str) -> None:
        os.symlink(target, component(name), dir_fd=folder)

    def unlink(self, folder: Folder, name: str) -> None:
        os.unlink(component(name), dir_fd=folder)

    def remove_folder(self, folder: Folder, name: str) -> None:
        os.rmdir(component(name), dir_fd=folder)

    def writable(self, folder: Folder, name: str) -> bool:
        seen = os.stat(component(name), dir_fd=folder, follow_symlinks=False)
        # Root may write everything; a file without any write bit says that nobody should (case 58).
        if not stat.S_ISREG(seen.st_mode) or not seen.st_mode & 0o222:
            return False
        effective = os.access in os.supports_effective_ids
        return os.access(name, os.W_OK, dir_fd=folder, effective_ids=effective)

    def lock(self, folder: Folder, name: str) -> Lock | None:
        flags = os.O_RDWR | os.O_CREAT | _no_wait
        opened = regular(os.open(component(name), flags, lock_mode, dir_fd=folder), name)
        return locks.take(opened, lambda held: _leads_to(folder, name, held))

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
    """The disk of this system."""
    if os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY"):
        return SystemDisk()
    return PathDisk()


def sync_folder(descriptor: int) -> None:
    """Make a folder's names durable. EINVAL and EROFS: there is no such sync, or nothing to sync."""
    try:
        if sys.platform == "darwin":
            sync_descriptor(descriptor)
        else:
            os.fsync(descriptor)
    except OSError as trouble:
        if trouble.errno not in (errno.EINVAL, errno.EROFS):
            raise


def make_root(path: str) -> None:
    """Create a folder and its missing parents, 0700, so that power loss cannot take one of them back.

    An entry that is there and ours is synced as well: the run that made it may have been killed before its
    sync.
    """
    wanted = absolute(path)
    chain = [wanted]
    while (parent := os.path.dirname(chain[-1])) != chain[-1]:
        chain.append(parent)
    for place in reversed(chain[:-1]):
        if not os.path.isdir(place):
            try:
                os.mkdir(place, folder_mode)
            except FileExistsError:
                if not os.path.isdir(place):
                    raise
        elif os.stat(place).st_uid != os.geteuid():
            continue
        _sync_path(os.path.dirname(place))


def _sync_path(path: str) -> None:
    try:
        opened = os.open(path, _folder_only | _close_on_exec)
    except PermissionError:
        # This user may pass but not read it, so it cannot be synced at all.
        return
    try:
        sync_folder(opened)
    finally:
        os.close(opened)


def _leads_to(folder: int, name: str, held: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), held)
    except FileNotFoundError:
        return False


def _path_of(descriptor: int) -> str:
    if sys.platform == "darwin":
        import fcntl  # missing on Windows

        filled = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(real_path_bytes_max))
        return os.fsdecode(filled.rstrip(b"\0"))
    return os.readlink(f"/proc/self/fd/{descriptor}")
