"""The mounts of a confined child, as values (row O1).

Everything is read-only; on top of it, parents first, lie empty folders over what is hidden, the writable roots, and the
read-only mounts of protected paths. Every folder between a root and a protected path, or a root inside it, is mounted
on itself: a mount point cannot be renamed, so nothing can take the place of the folder that holds the other.

What does not exist cannot be protected or hidden. A mount over a missing name would create it on the user's disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from steadyhand.adapters.programs import is_inside
from steadyhand.adapters.sandbox.places import (
    OWN_TEMPORARY,
    RESOLVER,
    hidden_places,
    interpreter_folders,
    program_folders,
    server_folders,
)
from steadyhand.domain.permissions.git_names import GIT_DIRECTORY_PARENTS, GIT_ENTRIES
from steadyhand.ports.sandbox import PROTECTED_MOUNTS_MAX, Confinement, SandboxFailed
from steadyhand_values import frozen

PROTECTED_LOOKED_AT_MAX = 4 * PROTECTED_MOUNTS_MAX
"""Protected paths that are considered for a mount, nearest first: the loop waits meanwhile."""
GIT_DIRECTORIES_MAX = 200
"""Folders below `modules` and `worktrees` of one git directory that are looked at."""

MountKind = Literal["empty_folder", "empty_file", "writable", "read_only"]


@frozen
class Mount:
    """One mount. `source` is what is mounted there; None for the empty ones."""

    kind: MountKind
    path: str
    source: str | None = None


@frozen
class MountPlan:
    """The mounts in their order. `writable`: the paths below which the child can write, as it sees them."""

    mounts: tuple[Mount, ...]
    writable: tuple[str, ...]


def plan_mounts(
    confinement: Confinement, server_environment: Mapping[str, str], child_environment: Mapping[str, str]
) -> MountPlan:
    """Return the mounts of a confinement. Raises SandboxFailed if a folder of it is missing. Looks at the disk."""
    roots = _roots(confinement)
    is_writable = not confinement.is_reading
    hidden = hidden_places(server_environment, confinement.hidden, roots)
    layers = {path: Mount("empty_folder", path) for path in hidden.folders}
    layers |= {path: Mount("empty_file", path) for path in hidden.files}
    layers |= _own_temporary(confinement)
    _show(layers, program_folders(child_environment.get("PATH", os.defpath), hidden.folders))
    shown = [os.path.realpath(path) for path in (RESOLVER, *interpreter_folders(), *confinement.visible)]
    _show(layers, [path for path in shown if not any(is_inside(path, root) for root in roots)])
    layers |= {root: Mount("writable" if is_writable else "read_only", root, root) for root in roots}
    _drop_buried(layers)
    writable = tuple(path for path, mount in layers.items() if mount.kind == "writable")
    if is_writable:
        layers |= _between(roots, layers)
        layers |= _protections((*server_folders(), *confinement.protected), layers)
    return MountPlan(tuple(layers[path] for path in sorted(layers, key=_parts)), writable)


def require_folders(confinement: Confinement) -> None:
    """Raise SandboxFailed if a folder of the workspace is missing, or if a link leads out of its path by now."""
    for folder in confinement.folders:
        if not os.path.isdir(folder):
            raise SandboxFailed(f"The folder {folder} is missing.")
        if os.path.realpath(folder) != folder:
            raise SandboxFailed(f"The folder {folder} leads elsewhere now, through a link.")


def _roots(confinement: Confinement) -> list[str]:
    require_folders(confinement)
    roots = list(confinement.folders)
    if not confinement.is_reading:
        roots += [os.path.realpath(folder) for folder in confinement.write if os.path.isdir(folder)]
    return roots


def _between(roots: Sequence[str], layers: Mapping[str, Mount]) -> dict[str, Mount]:
    """The mounts of the folders between a root and another one inside it."""
    folders = {folder for root in roots for folder in _ancestors(root) if _is_in_root(layers, folder)}
    return {folder: Mount("writable", folder, folder) for folder in folders}


def _own_temporary(confinement: Confinement) -> dict[str, Mount]:
    """The child's own folder for temporary files; an empty one if it has none."""
    places = {os.path.realpath(place) for place in OWN_TEMPORARY if os.path.isdir(place)}
    if confinement.temporary is None or confinement.is_reading:
        return {place: Mount("empty_folder", place) for place in places}
    if not os.path.isdir(confinement.temporary):
        raise SandboxFailed(f"The folder {confinement.temporary} is missing.")
    own = os.path.realpath(confinement.temporary)
    return {place: Mount("writable", place, own) for place in places}


def _show(layers: dict[str, Mount], paths: Sequence[str]) -> None:
    """Mount what is inside a hidden folder again, read-only."""
    for path in paths:
        below = _nearest(layers, path)
        if os.path.exists(path) and below is not None and _hides(below) and below.path != path:
            layers[path] = Mount("read_only", path, path)


def _drop_buried(layers: dict[str, Mount]) -> None:
    """Leave out the empty mounts whose path another empty one has taken away."""
    for path in [path for path, mount in layers.items() if mount.kind in ("empty_folder", "empty_file")]:
        below = _nearest(layers, os.path.dirname(path))
        if below is not None and _hides(below):
            del layers[path]


def _hides(mount: Mount) -> bool:
    return mount.source != mount.path


def _nearest(layers: Mapping[str, Mount], path: str) -> Mount | None:
    """The mount that decides what is at a path."""
    while path not in layers:
        if path == "/":
            return None
        path = os.path.dirname(path)
    return layers[path]


def _protections(protected: Sequence[str], layers: Mapping[str, Mount]) -> dict[str, Mount]:
    """The mounts for protected paths, nearest first, and for the folders that hold them."""
    found: dict[str, Mount] = {}
    for mount in _protecting_mounts(protected):
        if not _is_in_root(layers, mount.path) or _is_read_only(found, mount.path):
            continue
        folders = [folder for folder in _ancestors(mount.path) if folder not in found and _is_in_root(layers, folder)]
        # Nothing inside a read-only path stays writable.
        inside = [at for at in found if is_inside(at, mount.path)] if mount.kind == "read_only" else []
        if len(found) - len(inside) + len(folders) + (mount.path not in found) > PROTECTED_MOUNTS_MAX:
            continue
        for at in inside:
            del found[at]
        found |= {folder: Mount("writable", folder, folder) for folder in folders}
        found[mount.path] = mount
    return found


def _protecting_mounts(protected: Sequence[str]) -> list[Mount]:
    """The mount for each protected path that exists; for a git directory itself and its entries. Those of submodules
    come last, because there may be more of them than the bound allows."""
    return sorted(_each_protecting_mount(protected), key=lambda mount: _MODULES in mount.path)


_MODULES = "/.git/modules/"


def _each_protecting_mount(protected: Sequence[str]) -> Iterator[Mount]:
    for path in islice(_resolved(protected), PROTECTED_LOOKED_AT_MAX):
        if os.path.basename(path) == ".git" and os.path.isdir(path):
            yield Mount("writable", path, path)
            yield from (Mount("read_only", entry, entry) for entry in git_entries(path))
        else:
            yield Mount("read_only", path, path)


def _is_read_only(mounts: Mapping[str, Mount], path: str) -> bool:
    below = _nearest(mounts, path)
    return below is not None and below.kind == "read_only"


def _is_in_root(layers: Mapping[str, Mount], path: str) -> bool:
    """Whether it is below a writable root, and neither a mount already nor hidden."""
    below = _nearest(layers, path)
    return path not in layers and below is not None and below.kind == "writable" and not _hides(below)


def _resolved(paths: Sequence[str]) -> Iterator[str]:
    """The paths that exist, with links resolved: a mount protects what a link leads to, and not the link."""
    seen = set()
    for path in map(os.path.realpath, paths):
        if path not in seen and os.path.exists(path):
            seen.add(path)
            yield path


def _ancestors(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def git_entries(git_directory: str) -> list[str]:
    """Return the existing entries of a git directory that choose programs, those of its submodules and worktrees too.

    A link among them counts as what it leads to, if that is in the git directory.
    """
    found = []
    for directory in _git_directories(git_directory):
        for name in GIT_ENTRIES:
            entry = os.path.realpath(os.path.join(directory, name))
            if os.path.exists(entry) and is_inside(entry, git_directory):
                found.append(entry)
    return found


def _git_directories(top: str) -> Iterator[str]:
    yield top
    waiting = [os.path.join(top, name) for name in GIT_DIRECTORY_PARENTS]
    for _ in range(GIT_DIRECTORIES_MAX):
        if not waiting:
            return
        folder = waiting.pop(0)
        try:
            with os.scandir(folder) as entries:
                inner = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        for path in inner:
            if os.path.lexists(os.path.join(path, "HEAD")):
                yield path
                waiting.append(os.path.join(path, GIT_DIRECTORY_PARENTS[0]))
            else:
                waiting.append(path)


def _parts(path: str) -> list[str]:
    return path.split("/")
