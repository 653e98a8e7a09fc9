"""The folders of the client and of the sessions, resolved once: when the client reports them (rows S10, S11).

A command that can write the parent of a folder can put a link, or another folder, in its place. So a folder counts only
while its path leads where it led, and to the same folder. Blocks; called in a thread.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from steadyhand.ports.disk import Disk
from steadyhand.session.uris import path_of
from steadyhand.tools.workspace.spelling import own_path
from steadyhand_values import frozen


@frozen
class FoundFolder:
    """A folder by its URI. Neither member: there is no URI, or the folder cannot be opened."""

    root: str | None = None  # absolute, links resolved, as its file system spells it
    missing: str | None = None  # absolute, as the URI has it: nothing is there, or another folder (row S10)


@frozen
class _Place:
    """Where a path leads. `identity` is (device, inode); None: nothing that can be opened was there."""

    real: str
    identity: tuple[int, int] | None
    is_absent: bool = False

    def leads_to(self, now: _Place) -> bool:
        return self.real == now.real and self.identity in (None, now.identity)


class KnownFolders:
    """Where each folder led when the client reported it, or when it was first used if that was earlier."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._known: dict[str, _Place] = {}
        self._told: set[str] = set()

    def learn(self, uris: Iterable[str]) -> None:
        """Resolve these folders anew, because the user opened them or chose them."""
        for path in filter(None, map(path_of, uris)):
            self._known[path] = self._resolve(path)
            self._told.discard(path)

    def resolve(self, uri: str | None) -> FoundFolder:
        """Return where a URI leads now, whatever is known of it."""
        path = path_of(uri) if uri else None
        return FoundFolder() if path is None else _found(path, self._resolve(path))

    def find(self, uri: str | None) -> FoundFolder:
        """Return a folder; it is missing if its URI leads elsewhere than it did, or to another folder."""
        path = path_of(uri) if uri else None
        if path is None:
            return FoundFolder()
        now = self._resolve(path)
        known = self._known.setdefault(path, now)
        if now.identity is None:
            return _found(path, now)
        if not known.leads_to(now):
            return FoundFolder(missing=path)
        self._known[path] = now
        return _found(path, now)

    def take_exchanged(self, uris: Iterable[str]) -> tuple[str, ...]:
        """Return the paths of those that now lead elsewhere, or to another folder; each once until it is learned."""
        found = []
        for path in dict.fromkeys(filter(None, map(path_of, uris))):
            known, now = self._known.get(path), self._resolve(path)
            if known and now.identity is not None and not known.leads_to(now) and path not in self._told:
                self._told.add(path)
                found.append(path)
        return tuple(found)

    def _resolve(self, path: str) -> _Place:
        try:
            real, identity = self._open(path)
        except OSError as error:
            return _Place(self._expected(path), None, isinstance(error, (FileNotFoundError, NotADirectoryError)))
        return _Place(real, identity)

    def _open(self, path: str) -> tuple[str, tuple[int, int]]:
        folder = self._disk.open_folder(path)
        try:
            return own_path(self._disk, self._disk.real_path(folder)), self._disk.look_open(folder).identity
        finally:
            self._disk.close(folder)

    def _expected(self, path: str) -> str:
        """Where a folder will be that cannot be opened now: below the nearest one that can."""
        above, name = posixpath.split(path)
        while above != "/":
            try:
                return posixpath.join(self._open(above)[0], name)
            except OSError:
                above, last = posixpath.split(above)
                name = posixpath.join(last, name)
        return path


def _found(path: str, place: _Place) -> FoundFolder:
    if place.identity is not None:
        return FoundFolder(place.real)
    return FoundFolder(missing=path) if place.is_absent else FoundFolder()
