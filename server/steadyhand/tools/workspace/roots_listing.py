"""List what is below the roots of a command, nearest first, and compare two lists (row O1, case 124).

The search is bounded in entries and time, and never goes through a link. Two complete lists say exactly which files
changed between them. Otherwise the modification times give a hint (row A4). What is in a `.git` folder is git's own
state and no file of the user; of it only the entries are looked at that choose which programs git runs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

import attrs

from steadyhand.domain.permissions.git_names import GIT_DIRECTORY_PARENTS, GIT_ENTRIES
from steadyhand.domain.permissions.protected_paths import PROTECTED
from steadyhand.domain.records.record import ChangedDuring, SeenChange
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import EntryStat, Folder
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.prepared_command import EntryMark, RootsListing
from steadyhand.tools.workspace.modified_since import find_changed_files
from steadyhand.tools.workspace.paths import open_folder, parts_of
from steadyhand_values import define

LISTED_ENTRIES_MAX = 20_000
LISTING_S_MAX = 2.0
DURING_FILES_MAX = 200
"""Changed files that are recorded; the others are counted."""
GIT_DIRECTORIES_MAX = 200
"""Folders that are searched for the git directories of submodules and worktrees."""
GIT_ENTRIES_MAX = 500
"""Entries of one `.git` folder that are looked at."""
CLOCK_TICK_NS = 20_000_000
"""A file system's clock may be this much behind the system's."""

GIT_FOLDER = ".git"


def list_roots(tool_context: ToolContext, roots: Sequence[str]) -> RootsListing:
    """List everything below these absolute folders. Blocks, at most about `LISTING_S_MAX`."""
    listing = _Listing(tool_context, time.monotonic() + LISTING_S_MAX)
    moment_ns = time.time_ns() - CLOCK_TICK_NS
    listing.walk([parts_of(root) for root in roots])
    return RootsListing(
        listing.files,
        listing.protected,
        tuple(listing.tops),
        frozenset(listing.repositories),
        listing.is_complete,
        moment_ns,
    )


def changes_between(tool_context: ToolContext, before: RootsListing, after: RootsListing) -> ChangedDuring:
    """Return the files that changed between two lists; a hint by modification time where one is not complete."""
    root = tool_context.root
    if not (before.is_complete and after.is_complete):
        hint = find_changed_files(tool_context, before.moment_ns)
        files = tuple(SeenChange(path=path, change="modified") for path in hint.paths[:DURING_FILES_MAX])
        return ChangedDuring(files=files, more=hint.more + len(hint.paths) - len(files))
    found = [SeenChange(path=display_path(path, root), change=change) for path, change in _differences(before, after)]
    found.sort(key=lambda seen: seen.path)
    more = max(0, len(found) - DURING_FILES_MAX)
    return ChangedDuring(files=tuple(found[:DURING_FILES_MAX]), more=more, exact=True)


def protected_since(before: RootsListing, after: RootsListing) -> tuple[list[str], list[str]]:
    """Return the protected paths (absolute) that are new, and those that changed. Of a new folder only it is named.

    Where the first list is not complete, an entry that it does not have is new only if it changed after that list."""
    new = [
        path
        for path, mark in after.protected.items()
        if path not in before.protected and (before.is_complete or mark.changed_ns >= before.moment_ns)
    ]
    tops = {*after.tops, *after.repositories} - {*before.tops, *before.repositories}
    tops_above = {path: tops.intersection(_upwards(path)) for path in new}
    whole = sorted(set().union(*tops_above.values()))
    others = [path for path, above in tops_above.items() if not above]
    changed = [path for path, mark in after.protected.items() if before.protected.get(path, mark) != mark]
    return [*whole, *others], changed


def _upwards(path: str) -> Iterator[str]:
    """Yield an absolute path and each folder above it, without `/`."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _differences(before: RootsListing, after: RootsListing) -> Iterator[tuple[str, str]]:
    for path, mark in after.files.items():
        if path not in before.files:
            yield path, "created"
        elif before.files[path] != mark:
            yield path, "modified"
    for path in before.files:
        if path not in after.files:
            yield path, "deleted"


@define
class _Listing:
    tool_context: ToolContext
    deadline_s: float
    files: dict[str, EntryMark] = attrs.field(factory=dict)
    protected: dict[str, EntryMark] = attrs.field(factory=dict)
    tops: list[str] = attrs.field(factory=list)
    repositories: set[str] = attrs.field(factory=set)
    is_complete: bool = True
    roots: frozenset[tuple[str, ...]] = frozenset()
    _count: int = 0

    def walk(self, roots: Sequence[tuple[str, ...]]) -> None:
        """List breadth first: what is nearest to a root has its place before a bound ends the search."""
        self.roots = frozenset(roots)
        for root in roots:
            if root[-1:] == (GIT_FOLDER,):
                self.repositories.add("/" + "/".join(root))
                self._list_repository("/" + "/".join(root), root)
        waiting = deque((root, False) for root in roots if root[-1:] != (GIT_FOLDER,))
        own = parts_of(self.tool_context.state_directory)
        while waiting:
            parts, is_protected = waiting.popleft()
            if self._count >= LISTED_ENTRIES_MAX or time.monotonic() > self.deadline_s:
                self.is_complete = False
                return
            if parts == own:
                continue
            try:
                with open_folder(self.tool_context, parts) as folder:
                    waiting.extend(self._list(folder, parts, is_protected))
            except OSError:
                self.is_complete = False

    def _list(self, folder: Folder, parts: tuple[str, ...], is_protected: bool) -> list[tuple[tuple[str, ...], bool]]:
        """Note the entries of one folder, and return the folders in it that are still to be listed."""
        below: list[tuple[tuple[str, ...], bool]] = []
        disk = self.tool_context.disk
        beginning = PROTECTED.may_begin(parts[-1]) if parts and parts not in self.roots else False
        for name in disk.names(folder):
            self._count += 1
            if self._count > LISTED_ENTRIES_MAX:
                self.is_complete = False
                break
            stat = disk.look(folder, name)
            if stat is None:
                continue
            path = "/" + "/".join((*parts, name))
            is_top = not is_protected and (beginning or PROTECTED.may_begin(name)) and self._is_protected(parts, name)
            if is_top:
                self.tops.append(path)
            if name == GIT_FOLDER and stat.kind == "folder":
                self.repositories.add(path)
                self._list_repository(path, (*parts, name))
                continue
            if is_protected or is_top:
                self.protected[path] = _mark_of(stat)
            if stat.kind == "folder":
                below.append(((*parts, name), is_protected or is_top))
            else:
                self.files[path] = _mark_of(stat)
        return below

    def _is_protected(self, parts: tuple[str, ...], name: str) -> bool:
        near = (name,) if parts in self.roots else (parts[-1], name)  # no entry of the table is longer
        return PROTECTED.kind_of(near) is not None

    def _list_repository(self, path: str, parts: tuple[str, ...]) -> None:
        """Note what in a `.git` folder chooses programs."""
        directories = ["", *self._directories_below(parts)]
        for entry in [f"{directory}{name}" for directory in directories for name in GIT_ENTRIES]:
            *folders, name = entry.split("/")
            stat = self._look((*parts, *folders), name)
            if stat is None:
                continue
            self.protected[f"{path}/{entry}"] = _mark_of(stat)
            if stat.kind == "folder":
                for one, found in self._entries((*parts, *folders, name)):
                    self.protected[f"{path}/{entry}/{one}"] = _mark_of(found)

    def _directories_below(self, parts: tuple[str, ...]) -> list[str]:
        """Return the git directories of submodules and linked worktrees, each with `/` at its end."""
        found: list[str] = []
        waiting = [f"{name}/" for name in GIT_DIRECTORY_PARENTS]
        for _ in range(GIT_DIRECTORIES_MAX):
            if not waiting:
                break
            folder = waiting.pop(0)
            for name in self._names(parts, folder.rstrip("/"))[:GIT_ENTRIES_MAX]:
                below = f"{folder}{name}/"
                if self._look((*parts, *below.rstrip("/").split("/")), "HEAD") is not None:
                    found.append(below)
                    waiting.append(f"{below}{GIT_DIRECTORY_PARENTS[0]}/")
                else:
                    waiting.append(below)
        return found

    def _look(self, parts: tuple[str, ...], name: str) -> EntryStat | None:
        try:
            with open_folder(self.tool_context, parts) as folder:
                return self.tool_context.disk.look(folder, name)
        except OSError:
            return None

    def _entries(self, parts: tuple[str, ...]) -> Iterator[tuple[str, EntryStat]]:
        disk = self.tool_context.disk
        with suppress(OSError), open_folder(self.tool_context, parts) as folder:
            for name in disk.names(folder)[:GIT_ENTRIES_MAX]:
                with suppress(OSError):
                    if (seen := disk.look(folder, name)) is not None:
                        yield name, seen

    def _names(self, parts: tuple[str, ...], name: str) -> list[str]:
        try:
            with open_folder(self.tool_context, (*parts, *name.split("/"))) as folder:
                return self.tool_context.disk.names(folder)
        except OSError:
            return []


def _mark_of(stat: EntryStat) -> EntryMark:
    # The time of a folder changes with what is in it, which has an entry of its own.
    changed_ns = 0 if stat.kind == "folder" else stat.changed_ns or stat.modified_ns
    size = 0 if stat.kind == "folder" else stat.size
    return EntryMark(stat.kind, stat.identity, size, stat.mode, changed_ns, stat.target)
