"""Find what a path leads to now: its names with links resolved, and the identity of each of them. Blocks.

A folder that this user cannot list has no known identity; places in it are compared by their names alone.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping

from steadyhand.domain.records.place import Identity, Place, leads_to, names_below, needs_places, share_a_place
from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import overlaps
from steadyhand.ports.disk import Disk
from steadyhand.tools.workspace.paths import parts_of

UNKNOWABLE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG})
"""Errors that say something about the path; any other, such as too many open files, says that nobody knows."""


def find_place(disk: Disk, path: str, strict: bool = False) -> Place:
    """Return where an absolute path leads now: what cannot be found out is not known.

    It raises only if `strict`, and then an OSError that says nothing about the path."""
    names = _resolve(disk, parts_of(path), strict)
    return Place(names, (None, *(_identity(disk, names[:length], strict) for length in range(1, len(names) + 1))))


def overlapping_now(disk: Disk, wanted: Scope, others: Mapping[str, Scope]) -> frozenset[str]:
    """Return the keys of the scopes that overlap the wanted one, by their paths or by the places these lead to.

    Where the disk does not tell, each scope that is left counts as overlapping."""
    found = {key for key, scope in others.items() if overlaps(scope, wanted)}
    by_place = {key: scope for key, scope in others.items() if key not in found and needs_places(scope, wanted)}
    try:
        here = find_places(disk, wanted.paths, strict=True) if by_place else ()
        for key, scope in by_place.items():
            there = find_places(disk, scope.paths, strict=True)
            if share_a_place(here, there) or leads_to(here, scope.identities) or leads_to(there, wanted.identities):
                found.add(key)
    except OSError:
        found |= set(by_place)
    return frozenset(found)


def find_places(disk: Disk, paths: Iterable[str], strict: bool = False) -> tuple[Place, ...]:
    """Return where these paths lead, as `find_place` does."""
    return tuple(find_place(disk, path, strict) for path in paths)


def overlapping_paths(disk: Disk, paths: Iterable[str], folders: Iterable[str]) -> frozenset[str]:
    """Return those of the paths that are one of the folders now, are in one or contain one."""
    here = find_places(disk, folders)
    return frozenset(path for path in paths if share_a_place([find_place(disk, path)], here))


def is_same_place(disk: Disk, first: str, second: str) -> bool:
    """Return whether two absolute paths lead to the same now, names compared as they are spelled (row W12)."""
    one, other = find_place(disk, first), find_place(disk, second)
    return names_below(one, other) == () and names_below(other, one) == ()


def _is_raised(error: OSError, strict: bool) -> bool:
    return strict and error.errno not in UNKNOWABLE


def _resolve(disk: Disk, names: tuple[str, ...], strict: bool) -> tuple[str, ...]:
    """Return the names with the links in them resolved, as far as their folders can be opened."""
    for length in range(len(names), -1, -1):
        try:
            folder = disk.open_folder("/" + "/".join(names[:length]))
        except OSError as error:
            if _is_raised(error, strict):
                raise
            continue
        try:
            return (*parts_of(disk.real_path(folder)), *names[length:])
        except OSError as error:
            if _is_raised(error, strict):
                raise
            return names
        finally:
            disk.close(folder)
    return names


def _identity(disk: Disk, names: tuple[str, ...], strict: bool) -> Identity | None:
    try:
        folder = disk.open_folder("/" + "/".join(names[:-1]))
        try:
            seen = disk.look(folder, names[-1])
        finally:
            disk.close(folder)
    except OSError as error:
        if _is_raised(error, strict):
            raise
        return None
    return seen.identity if seen is not None else None
