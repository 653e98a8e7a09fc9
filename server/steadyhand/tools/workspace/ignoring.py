"""Decide as git does which entries of a folder are ignored (rows G1, E3, cases 128, 129).

The rules of a repository are its ignore files from its own folder down, its `info/exclude`, and the user's ignore file.
What git tracks is never ignored. A repository inside another one has rules of its own. Where there is no repository,
the ignore files from the workspace down count.

The caller named the folder at which a walk begins, so a rule that ignores this folder does not count in it.
Git itself is not started, because a repository can make it run programs. An index that cannot be read, or that is
larger than `INDEX_BYTES_MAX`, counts as empty.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import cached_property

from steadyhand.domain.text.git_config import excludes_file
from steadyhand.domain.text.git_index import NO_PATHS, TrackedPaths, tracked_paths
from steadyhand.domain.text.globs import NO_RULES, IgnoreRules, rules
from steadyhand.ports.disk import Folder
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.paths import open_folder, parts_of, root_depth
from steadyhand_values import frozen

IGNORE_FILE = ".gitignore"
IGNORE_FILE_BYTES_MAX = 256 * 1024
"""A larger ignore file is not read."""
CONFIG_BYTES_MAX = 256 * 1024
POINTER_BYTES_MAX = 4096
"""Of a `.git` file and of `commondir`."""
INDEX_BYTES_MAX = 64 * 1024 * 1024
INDEXES_KEPT_MAX = 4
_POINTER = "gitdir:"

Parts = tuple[str, ...]
_kept_indexes: dict[tuple[object, ...], TrackedPaths] = {}


class Repository:
    """One repository: the folder that holds `.git`, and where git's own files are."""

    def __init__(self, tool_context: ToolContext, folder: Parts, git: Parts, common: Parts) -> None:
        self.folder = folder
        self._context = tool_context
        self._git = git
        self._common = common

    @cached_property
    def tracked(self) -> TrackedPaths:
        """What its index names. Blocks; read when an entry is first ignored."""
        try:
            with open_folder(self._context, self._git) as git:
                stat = self._context.disk.look(git, "index")
                if stat is None or stat.size > INDEX_BYTES_MAX:
                    return NO_PATHS
                key = (stat.identity, stat.size, stat.modified_ns)
                if key not in _kept_indexes:
                    found = tracked_paths(self._context.disk.read(git, "index", INDEX_BYTES_MAX)) or NO_PATHS
                    while len(_kept_indexes) >= INDEXES_KEPT_MAX:
                        _kept_indexes.pop(next(iter(_kept_indexes)), None)
                    _kept_indexes[key] = found
                return _kept_indexes.get(key, NO_PATHS)
        except OSError:
            return NO_PATHS

    def rules(self) -> tuple[tuple[int, IgnoreRules], ...]:
        """Return the weakest rules: the user's ignore file, and above it `info/exclude`."""
        own = _read_rules_at(self._context, (*self._common, "info"), "exclude")
        return ((0, _user_rules(self._context, self._common)), (0, own))


@frozen
class Ignoring:
    """What is ignored in one folder and below. Each of `rules` has the number of names from `base` to its own folder.

    `is_hidden`: the folder itself is ignored, so only what git tracks is shown.
    """

    base: Parts
    rules: tuple[tuple[int, IgnoreRules], ...] = ()
    repository: Repository | None = None
    is_hidden: bool = False

    def ignores(self, path: Parts, is_folder: bool) -> bool:
        """Return whether this entry is left out. `path`: its names from `/` on."""
        return self.matches(path, is_folder) and not self._is_tracked(path, is_folder)

    def matches(self, path: Parts, is_folder: bool) -> bool:
        """Return whether the rules name this entry, tracked or not."""
        if self.is_hidden:
            return True
        inside = _as_bytes(path[len(self.base) :])
        for depth, one in reversed(self.rules):
            said = one.ignores(inside[depth:], is_folder)
            if said is not None:
                return said
        return False

    def _is_tracked(self, path: Parts, is_folder: bool) -> bool:
        if self.repository is None:
            return False
        name, tracked = "/".join(path[len(self.base) :]), self.repository.tracked
        return name in tracked.files or (is_folder and name in tracked.folders)


def ignoring_above(tool_context: ToolContext, start: Parts, is_inside: bool) -> Ignoring:
    """Return what counts above the folder at which a walk begins. Blocks.

    `is_inside`: it is in the workspace; no rules count above one that is outside."""
    if not is_inside:
        return Ignoring(start)
    repository = _repository_around(tool_context, start)
    found = Ignoring(start[: root_depth(tool_context, start)])
    if repository is not None:
        found = Ignoring(repository.folder, repository.rules(), repository)
    elif len(start) < len(found.base):
        found = Ignoring(start)
    for length in range(len(found.base), len(start)):
        try:
            with open_folder(tool_context, start[:length]) as folder:
                found = _with_own_rules(tool_context, folder, start[:length], found)
        except OSError:
            pass  # a folder above the workspace may be closed to us
    return _without_rules_for(found, start)


def _without_rules_for(above: Ignoring, start: Parts) -> Ignoring:
    """Return what counts in a folder that the caller named: no rule that ignores it or a folder above it."""
    inside = _as_bytes(start[len(above.base) :])
    kept = tuple(
        (depth, one.without_those_for([inside[depth:end] for end in range(depth + 1, len(inside) + 1)]))
        for depth, one in above.rules
    )
    return Ignoring(above.base, kept, above.repository)


def ignoring_in(tool_context: ToolContext, folder: Folder, path: Parts, above: Ignoring) -> Ignoring:
    """Return what counts in this folder. Blocks. `path`: its names from `/` on."""
    if path != above.base:
        nested = _repository_at(tool_context, folder, path)
        if nested is not None:
            return _with_own_rules(tool_context, folder, path, Ignoring(path, nested.rules(), nested))
    is_hidden = path != above.base and bool(above.rules or above.is_hidden) and above.matches(path, is_folder=True)
    return _with_own_rules(tool_context, folder, path, Ignoring(above.base, above.rules, above.repository, is_hidden))


def _with_own_rules(tool_context: ToolContext, folder: Folder, path: Parts, above: Ignoring) -> Ignoring:
    own = _read_rules(tool_context, folder, IGNORE_FILE)
    if own is NO_RULES:
        return above
    depth = len(path) - len(above.base)
    return Ignoring(above.base, (*above.rules, (depth, own)), above.repository, above.is_hidden)


def _repository_around(tool_context: ToolContext, start: Parts) -> Repository | None:
    """Return the nearest repository that holds this folder, searching upwards as git does."""
    for length in range(len(start), -1, -1):
        try:
            with open_folder(tool_context, start[:length]) as folder:
                found = _repository_at(tool_context, folder, start[:length])
        except OSError:
            continue
        if found is not None:
            return found
    return None


def _repository_at(tool_context: ToolContext, folder: Folder, path: Parts) -> Repository | None:
    """Return the repository whose `.git` is in this folder; None where git would find none."""
    try:
        seen = tool_context.disk.look(folder, ".git")
        if seen is None or seen.kind not in ("file", "folder"):
            return None
        git: Parts = (*path, ".git")
        if seen.kind == "file":
            text = tool_context.disk.read(folder, ".git", POINTER_BYTES_MAX).decode("utf-8", "surrogateescape")
            if not text.startswith(_POINTER):
                return None
            git = _resolved(path, text.removeprefix(_POINTER).strip())
        common = git
        with open_folder(tool_context, git) as opened:
            if tool_context.disk.look(opened, "commondir") is not None:
                raw = tool_context.disk.read(opened, "commondir", POINTER_BYTES_MAX)
                common = _resolved(git, raw.decode("utf-8", "surrogateescape").strip())
            if tool_context.disk.look(opened, "HEAD") is None:
                return None
        with open_folder(tool_context, common) as opened:
            if any(tool_context.disk.look(opened, name) is None for name in ("objects", "refs")):
                return None
    except OSError:
        return None
    return Repository(tool_context, path, git, common)


def _user_rules(tool_context: ToolContext, common: Parts) -> IgnoreRules:
    """Return the rules of the ignore file that git's configuration names, or of the default one."""
    environment = tool_context.environment({})
    home = environment.get("HOME", "")
    xdg = environment.get("XDG_CONFIG_HOME") or posixpath.join(home, ".config")
    named = environment.get("GIT_CONFIG_GLOBAL")
    configs = [posixpath.join(xdg, "git", "config"), posixpath.join(home, ".gitconfig")] if named is None else [named]
    if environment.get("GIT_CONFIG_NOSYSTEM") is None:
        configs.insert(0, "/etc/gitconfig")
    value: str | None = None
    for path in (*configs, "/" + "/".join((*common, "config"))):
        if posixpath.isabs(path):
            read = excludes_file(_text_at(tool_context, parts_of(posixpath.normpath(path)), CONFIG_BYTES_MAX))
            value = value if read is None else read
    if value is None:
        value = posixpath.join(xdg, "git", "ignore")
    if value.startswith("~/"):
        value = posixpath.join(home, value[2:])
    parts = parts_of(posixpath.normpath(value)) if posixpath.isabs(value) else ()
    return _read_rules_at(tool_context, parts[:-1], parts[-1]) if parts else NO_RULES


def _as_bytes(path: Parts) -> Parts:
    """Return the names with one character for each byte: to git `?` is one byte, and an ignore file is bytes."""
    return tuple(name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("latin-1") for name in path)


def _resolved(folder: Parts, value: str) -> Parts:
    return parts_of(posixpath.normpath(posixpath.join("/" + "/".join(folder), value)))


def _text_at(tool_context: ToolContext, parts: Parts, limit: int) -> str:
    try:
        with open_folder(tool_context, parts[:-1]) as folder:
            return tool_context.disk.read(folder, parts[-1], limit).decode("utf-8", "surrogateescape")
    except (OSError, IndexError):
        return ""


def _read_rules_at(tool_context: ToolContext, folder: Sequence[str], name: str) -> IgnoreRules:
    try:
        with open_folder(tool_context, folder) as opened:
            return _read_rules(tool_context, opened, name)
    except OSError:
        return NO_RULES


def _read_rules(tool_context: ToolContext, folder: Folder, name: str) -> IgnoreRules:
    try:
        raw = tool_context.disk.read(folder, name, IGNORE_FILE_BYTES_MAX + 1)
    except OSError:
        return NO_RULES  # none, or a link: git does not follow one here either
    return NO_RULES if len(raw) > IGNORE_FILE_BYTES_MAX else rules(raw.decode("latin-1"))
