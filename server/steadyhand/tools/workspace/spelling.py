"""How a folder spells an entry, on file systems that take several spellings for one name (row W12). Blocks.

The spelling that the folder lists is the entry's own; what is inside the workspace, and what a grant or an allow rule
covers, is decided on it. Whether a folder folds is found out for one entry: another spelling of its name then leads to
the same entry.
"""

from __future__ import annotations

import errno
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from steadyhand.domain.text.folding import compose, fold
from steadyhand.ports.disk import Disk, EntryStat, Folder


def own_path(disk: Disk, path: str) -> str:
    """Return an absolute path without links as its folders spell it; what cannot be found out stays as it is."""
    parts = tuple(part for part in path.split("/") if part)
    for at, name in enumerate(parts):
        try:
            with _opened(disk, "/" + "/".join(parts[:at])) as folder:
                seen = disk.look(folder, name)
                found = name if seen is None else own_spelling(disk, folder, name, seen)
        except OSError:
            continue
        parts = (*parts[:at], found, *parts[at + 1 :])
    return "/" + "/".join(parts)


def open_own(disk: Disk, path: str) -> Folder:
    """Open the folder at a path that `own_path` returned. Raise OSError: ELOOP where a link has come into it since."""
    handle = disk.open_folder(path)
    try:
        real = disk.real_path(handle)
        if real != path and own_path(disk, real) != path:
            raise OSError(errno.ELOOP, "The path leads elsewhere now, through a link", path)
    except BaseException:
        disk.close(handle)
        raise
    return handle


def own_spelling(disk: Disk, folder: Folder, name: str, seen: EntryStat) -> str:
    """Return the name under which the folder lists an entry. `seen`: what is found under `name`."""
    if not any(_leads_to(disk, folder, other, seen) for other in _other_spellings(name)):
        return name
    try:
        listed = disk.names(folder)
    except OSError:
        return name
    if name in listed:  # also where both spellings are entries of their own, for instance two names of one file
        return name
    wanted = fold(name)
    same = (one for one in listed if fold(one) == wanted and _leads_to(disk, folder, one, seen))
    return next(same, name)


def _other_spellings(name: str) -> list[str]:
    """Return spellings that a folder takes for the name only if it folds case or Unicode form."""
    others = (name.swapcase(), compose(name), name if name.isascii() else unicodedata.normalize("NFD", name))
    return [other for other in dict.fromkeys(others) if other != name]


def _leads_to(disk: Disk, folder: Folder, name: str, wanted: EntryStat) -> bool:
    try:
        seen = disk.look(folder, name)
    except (OSError, ValueError):  # for instance too long in this spelling
        return False
    return seen is not None and seen.identity == wanted.identity


@contextmanager
def _opened(disk: Disk, path: str) -> Iterator[Folder]:
    folder = disk.open_folder(path)
    try:
        yield folder
    finally:
        disk.close(folder)
