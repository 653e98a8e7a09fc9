"""A walk over a folder of the workspace: in order of names, bounded, and never through a link (row E3, case 104).

It works on open folders, so that one swapped for a link meanwhile leads nowhere. Left out, and counted: what ignore
files name (`.gitignore` of each folder from the workspace down, and `.git/info/exclude`; not those above the workspace
or of the user). Left out always: `.git` and the state directory. A folder that the walk begins at is never left out
for an ignore file: who asks for it means it.

Bounds are in names, depth and time. A walk that ends before its time says so in `cut`, so that nobody takes a part for
the whole.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import attrs

from steadyhand.core.globs import NO_RULES, Rules, rules
from steadyhand.ports import Folder, Look
from steadyhand.tools.place import Located, entered, one_line, parts_of
from steadyhand.tools.tool import Ground

walk_s_max = 10.0
walked_names_max = 200_000
depth_max = 64
ignore_file_bytes_max = 256 * 1024
"""A larger ignore file is passed over."""
IGNORE_FILE = ".gitignore"


@attrs.frozen
class Entry:
    """One name that was met. `folder` is open while the entry is looked at."""

    path: tuple[str, ...]  # names from where the walk began
    look: Look
    folder: Folder

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def shown(self) -> str:
        """With `/` between names, in one line and in characters that can be written."""
        return readable("/".join(self.path))


@attrs.frozen
class Counts:
    """What a walk left out up to some place."""

    ignored: int = 0
    unreadable: int = 0
    deeper: int = 0  # folders not entered for `levels` or `depth_max`


@attrs.frozen
class _Ignoring:
    """The rules in force in a folder, the nearest last; each with how many names lead to its own folder."""

    rules: tuple[tuple[int, Rules], ...] = ()

    def ignores(self, path: tuple[str, ...], folder: bool) -> bool:
        for depth, one in reversed(self.rules):
            said = one.ignores(path[depth:], folder)
            if said is not None:
                return said
        return False


@attrs.define
class Walk:
    """One walk; `entries` is run once. What it left out is counted as it goes."""

    ground: Ground
    start: Located
    levels: int = depth_max  # how many folders deep; 1: only what is in the folder itself
    counts: Counts = Counts()
    cut: str | None = None  # why it ended before its end, as a clause
    _base: tuple[str, ...] = ()
    _names: int = 0
    _until: float = 0.0

    def entries(self) -> Generator[Entry, None, None]:
        """Folders before what is in them. Raises OSError if the first folder cannot be opened."""
        root = parts_of(self.ground.root or "/")
        self._base = root if self.start.inside else self.start.parts
        self._until = time.monotonic() + walk_s_max
        ignoring = self._ignoring_above()
        with entered(self.ground, self.start.parts) as folder:
            yield from self._below(folder, self.start.parts, ignoring, 1)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reply must say for nobody to take a part for the whole; `cut` first."""
        found = [f"cut: it ended {self.cut}; ask for a smaller part"] if self.cut is not None else []
        if self.counts.deeper and self.levels > 1:
            deeper = counted(self.counts.deeper, "folder", "folders")
            found.append(f"what is in {deeper} of the last level is not shown")
        if self.counts.ignored:
            found.append(f"{counted(self.counts.ignored, 'entry', 'entries')} left out by ignore files")
        if self.counts.unreadable:
            found.append(f"{counted(self.counts.unreadable, 'entry', 'entries')} could not be read")
        return tuple(found)

    @property
    def whole(self) -> bool:
        """Whether everything that is not left out on purpose was met."""
        return self.cut is None and not self.counts.deeper and not self.counts.unreadable

    @property
    def left_s(self) -> float:
        """Seconds of its time that are left."""
        return max(0.0, self._until - time.monotonic())

    def timely(self) -> bool:
        """Whether there is time left; if not, the walk is cut."""
        if time.monotonic() > self._until:
            self.cut = self.cut or f"after {walk_s_max:g} seconds"
        return self.cut is None

    def _below(self, folder: Folder, parts: tuple[str, ...], above: _Ignoring, level: int) -> Iterator[Entry]:
        ignoring = self._with_own(folder, parts, above)
        for name in self._names_in(folder):
            if name == ".git" or (*parts, name) == parts_of(self.ground.state_directory):
                continue
            self._names += 1
            if self._names > walked_names_max:
                self.cut = self.cut or f"after {walked_names_max} names"
            if not self.timely():
                return
            look = self._look(folder, name)
            if look is None:
                continue
            here = (*parts, name)
            if ignoring.ignores(here[len(self._base) :], look.kind == "folder"):
                self.counts = attrs.evolve(self.counts, ignored=self.counts.ignored + 1)
                continue
            yield Entry(here[len(self.start.parts) :], look, folder)
            if look.kind == "folder":
                yield from self._enter(folder, here, ignoring, level)
            if self.cut is not None:
                return

    def _enter(self, folder: Folder, parts: tuple[str, ...], ignoring: _Ignoring, level: int) -> Iterator[Entry]:
        if level >= min(self.levels, depth_max):
            self.counts = attrs.evolve(self.counts, deeper=self.counts.deeper + 1)
            return
        with self._opened(folder, parts[-1]) as below:
            if below is not None:
                yield from self._below(below, parts, ignoring, level + 1)

    @contextmanager
    def _opened(self, folder: Folder, name: str) -> Iterator[Folder | None]:
        """None for what cannot be entered, or is no folder any more."""
        try:
            below = self.ground.disk.enter(folder, name)
        except OSError:
            self.counts = attrs.evolve(self.counts, unreadable=self.counts.unreadable + 1)
            yield None
            return
        try:
            yield below
        finally:
            self.ground.disk.close(below)

    def _look(self, folder: Folder, name: str) -> Look | None:
        try:
            return self.ground.disk.look(folder, name)
        except OSError:
            self.counts = attrs.evolve(self.counts, unreadable=self.counts.unreadable + 1)
            return None

    def _names_in(self, folder: Folder) -> list[str]:
        try:
            return self.ground.disk.names(folder)
        except OSError:
            self.counts = attrs.evolve(self.counts, unreadable=self.counts.unreadable + 1)
            return []

    def _ignoring_above(self) -> _Ignoring:
        """The rules of the folders from the workspace down to the one before the start."""
        if not self.start.inside:
            return _Ignoring()
        found = self._excluded()
        for length in range(len(self._base), len(self.start.parts)):
            try:
                with entered(self.ground, self.start.parts[:length]) as folder:
                    found = self._with_own(folder, self.start.parts[:length], found)
            except OSError:
                break
        return found

    def _excluded(self) -> _Ignoring:
        """`.git/info/exclude` of the workspace, the weakest."""
        try:
            with entered(self.ground, (*self._base, ".git", "info")) as folder:
                return _Ignoring(((0, self._rules_of(folder, "exclude")),))
        except OSError:
            return _Ignoring()

    def _with_own(self, folder: Folder, parts: tuple[str, ...], above: _Ignoring) -> _Ignoring:
        own = self._rules_of(folder, IGNORE_FILE)
        return above if own is NO_RULES else _Ignoring((*above.rules, (len(parts) - len(self._base), own)))

    def _rules_of(self, folder: Folder, name: str) -> Rules:
        try:
            raw = self.ground.disk.read(folder, name, ignore_file_bytes_max + 1)
        except OSError:
            return NO_RULES  # none there, or one that leads elsewhere: git does not follow a link here either
        return NO_RULES if len(raw) > ignore_file_bytes_max else rules(raw.decode("utf-8", "surrogateescape"))


def readable(name: str) -> str:
    """A name in one line; bytes that are no UTF-8 are written out."""
    return one_line(name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


def counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
