"""Walk a folder: in the order of names, bounded, and never through a link (row E3, case 104).

It works on open folders, so replacing one by a link has no effect. It leaves out, and counts, what git ignores
(`ignoring`). It always leaves out `.git` and the state directory, and never the folder at which the walk begins,
because the caller named it.

The walk is bounded in names, depth and time. If a bound ends it, `cut_reason` says so.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import attrs

from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.ports.disk import EntryStat, Folder
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.ignoring import Ignoring, ignoring_above, ignoring_in
from steadyhand.tools.workspace.paths import ResolvedPath, one_line, open_folder, parts_of
from steadyhand_values import define, frozen

WALK_S_MAX = 10.0
WALKED_NAMES_MAX = 200_000
DEPTH_MAX = 64
"""Levels of folders."""


@frozen
class Entry:
    """One name that the walk found. `folder` is open until the next entry is asked for."""

    path: tuple[str, ...]  # names from where the walk began
    stat: EntryStat
    folder: Folder

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def display_name(self) -> str:
        """The path with `/` between names, on one line, in printable characters."""
        return printable("/".join(self.path))


@frozen
class Counts:
    """What a walk left out so far."""

    ignored: int = 0
    unreadable: int = 0
    secret: int = 0  # folders whose names are a secret's; what is in them is not walked (case 137)
    deeper: int = 0  # folders not opened because of `levels` or `DEPTH_MAX`


@define
class DirectoryWalk:
    """One walk; `entries` runs once. It counts what it leaves out."""

    tool_context: ToolContext
    start: ResolvedPath
    levels: int = DEPTH_MAX  # how many folders deep; 1: only what is in the folder itself
    counts: Counts = Counts()
    cut_reason: str | None = None  # why it ended early, as a clause; None: it did not
    _names: int = 0
    _deadline_s: float = 0.0

    def entries(self) -> Generator[Entry, None, None]:
        """Yield each folder before its content. Raises OSError if the first folder cannot be opened."""
        self._deadline_s = time.monotonic() + WALK_S_MAX
        ignoring = ignoring_above(self.tool_context, self.start.parts, self.start.is_inside)
        with open_folder(self.tool_context, self.start.parts) as folder:
            yield from self._walk(folder, self.start.parts, ignoring, 1)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reply must say so that nobody takes a part for the whole; the cut first."""
        found = [f"cut: it ended {self.cut_reason}; ask for a smaller part"] if self.cut_reason is not None else []
        if self.counts.deeper and self.levels > 1:
            deeper = count_phrase(self.counts.deeper, "folder", "folders")
            found.append(f"the content of {deeper} on the last level is not shown")
        if self.counts.ignored:
            found.append(f"{count_phrase(self.counts.ignored, 'entry', 'entries')} left out by ignore files")
        if self.counts.secret:
            secret = count_phrase(self.counts.secret, "folder", "folders")
            found.append(f"the content of {secret} with a secret's name is left out; begin there to ask for it")
        if self.counts.unreadable:
            found.append(f"{count_phrase(self.counts.unreadable, 'entry', 'entries')} could not be read")
        return tuple(found)

    @property
    def is_complete(self) -> bool:
        """Whether the walk found everything that is not left out on purpose."""
        return self.cut_reason is None and not self.counts.deeper and not self.counts.unreadable

    @property
    def remaining_s(self) -> float:
        """Seconds until its time limit."""
        return max(0.0, self._deadline_s - time.monotonic())

    def check_time(self) -> bool:
        """Return whether there is time left; if not, the walk is cut."""
        if time.monotonic() > self._deadline_s:
            self.cut_reason = self.cut_reason or f"after {WALK_S_MAX:g} seconds"
        return self.cut_reason is None

    def _walk(self, folder: Folder, parts: tuple[str, ...], above: Ignoring, level: int) -> Iterator[Entry]:
        ignoring = ignoring_in(self.tool_context, folder, parts, above)
        for name in self._list_names(folder):
            if name == ".git" or (*parts, name) == parts_of(self.tool_context.state_directory):
                continue
            self._names += 1
            if self._names > WALKED_NAMES_MAX:
                self.cut_reason = self.cut_reason or f"after {WALKED_NAMES_MAX} names"
            if not self.check_time():
                return
            look = self._stat(folder, name)
            if look is None:
                continue
            here = (*parts, name)
            if ignoring.ignores(here, look.kind == "folder"):
                self.counts = attrs.evolve(self.counts, ignored=self.counts.ignored + 1)
                continue
            yield Entry(here[len(self.start.parts) :], look, folder)
            if look.kind == "folder":
                yield from self._walk_subfolder(folder, here, ignoring, level)
            if self.cut_reason is not None:
                return

    def _walk_subfolder(
        self, folder: Folder, parts: tuple[str, ...], ignoring: Ignoring, level: int
    ) -> Iterator[Entry]:
        if looks_secret(parts[len(self.start.parts) :]) and not self.tool_context.allows_secret("/" + "/".join(parts)):
            self.counts = attrs.evolve(self.counts, secret=self.counts.secret + 1)
            return
        if level >= min(self.levels, DEPTH_MAX):
            self.counts = attrs.evolve(self.counts, deeper=self.counts.deeper + 1)
            return
        with self._open_subfolder(folder, parts[-1]) as below:
            if below is not None:
                yield from self._walk(below, parts, ignoring, level + 1)

    @contextmanager
    def _open_subfolder(self, folder: Folder, name: str) -> Iterator[Folder | None]:
        """None for what cannot be entered, or is no folder any more."""
        try:
            below = self.tool_context.disk.enter(folder, name)
        except OSError:
            self.counts = attrs.evolve(self.counts, unreadable=self.counts.unreadable + 1)
            yield None
            return
        try:
            yield below
        finally:
            self.tool_context.disk.close(below)

    def _stat(self, folder: Folder, name: str) -> EntryStat | None:
        try:
            return self.tool_context.disk.look(folder, name)
        except OSError:
            self.counts = attrs.evolve(self.counts, unreadable=self.counts.unreadable + 1)
            return None

    def _list_names(self, folder: Folder) -> list[str]:
        try:
            return self.tool_context.disk.names(folder)
        except OSError:
            self.counts = attrs.evolve(self.counts, unreadable=self.counts.unreadable + 1)
            return []


def printable(name: str) -> str:
    """Return a name on one line; bytes that are not UTF-8 are escaped."""
    return one_line(name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


def count_phrase(number: int, one: str, more: str) -> str:
    """The number with its noun."""
    return f"{number} {one if number == 1 else more}"
