"""Whether a session's lock, folder and journal still stand under their names, as this process took them [I15].

`Ownership` remembers the identity (device, inode) of the three when the journal is opened. `find_loss` compares each
name with it, in three stat calls: the journal and the lock in the open folder, and the folder by its path. The journal
and the lock must be regular files with one name, and the journal must have the size that its writer left it with.

The identity of an open file is not given to another file, so what is compared stays comparable. A change of bytes that
keeps the size is not seen; loading the journal sees it by the checksums. A stat that fails counts as a loss, as does an
identity that the file system does not keep.
"""

from __future__ import annotations

from steadyhand.ports.disk import Disk, EntryStat, File, Folder, Lock
from steadyhand_values import frozen

OWNER_LOCK = "owner.lock"


@frozen
class SessionLock:
    """A session folder whose owner lock this process holds. `path` is absolute."""

    folder: Folder
    path: str
    lock: Lock


class Ownership:
    """The identity of one session's lock, folder and open journal."""

    def __init__(self, disk: Disk, held: SessionLock, name: str, file: File) -> None:
        """`name` is the name of the journal in the folder, `file` the open journal. Raises OSError."""
        self._disk = disk
        self._held = held
        self._name = name
        self._folder_identity = disk.look_open(held.folder).identity
        self._journal_identity = disk.look_open(file).identity

    def find_loss(self, size: int) -> str | None:
        """Return one sentence on what was taken away or changed; None: everything stands.

        `size`: the bytes that the journal must have. Three stat calls. The folder comes last: what was found in it
        counts only if its path still leads to it."""
        disk, held = self._disk, self._held
        try:
            journal = disk.look(held.folder, self._name)
            lock = disk.look(held.folder, OWNER_LOCK)
        except OSError as error:
            return self._folder_loss() or _not_examined(held.path, error)
        return (
            self._folder_loss()
            or _file_loss(lock, held.lock.identity, f"owner lock {held.path}/{OWNER_LOCK}")
            or _file_loss(journal, self._journal_identity, f"journal {held.path}/{self._name}")
            or _size_loss(journal, size, f"{held.path}/{self._name}")
        )

    def _folder_loss(self) -> str | None:
        path = self._held.path
        try:
            seen = self._disk.look_path(path)
        except OSError as error:
            return _not_examined(path, error)
        if seen is None or seen.kind != "folder" or seen.identity != self._folder_identity:
            return f"The session's folder {path} was removed, moved or replaced while the session was open."
        return None


def _not_examined(path: str, error: OSError) -> str:
    return f"The session's folder {path} cannot be examined ({error.strerror or error})."


def _file_loss(seen: EntryStat | None, identity: tuple[int, int], what: str) -> str | None:
    if seen is None or seen.kind != "file" or seen.identity != identity:
        return f"The session's {what} was removed or replaced while the session was open."
    if seen.links > 1:
        return f"The session's {what} has {seen.links} names (hard links) and must have one: remove the others."
    return None


def _size_loss(seen: EntryStat | None, size: int, path: str) -> str | None:
    if seen is None or seen.size == size:
        return None
    return f"Another program changed the session's journal {path}: it has {seen.size} bytes, and {size} were written."
