"""Find out whether a file must be written in place, and which names it has (row W11).

A replacement by name damages a file that has several names (hard links), attributes that a new file would not have, a
mount point as its name, or a folder that lets no name be replaced. Such a file keeps its inode: its bytes are written
over (`write_in_place`), after a question that counts its names.

`plan_in_place` reads only: the file's stat and attributes, and, where it has several names, a bounded search for them.
A name that it does not find may be anywhere, so it counts as one outside the workspace.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from steadyhand.domain.permissions.protected_paths import protected_kind
from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.domain.records.place import Identity, identity_text
from steadyhand.domain.records.record import Scope
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import EntryStat, ReplaceLimits
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, Refusal, ToolContext
from steadyhand.tools.workspace.paths import ResolvedPath, one_line, open_folder, parts_of
from steadyhand.tools.workspace.walk import printable
from steadyhand_values import frozen

NAMES_SEARCHED_MAX = 20_000
SEARCH_S_MAX = 2.0
SHOWN_NAMES_MAX = 20
IN_PLACE_TITLE = "Write in place: "
RISK = "A crash in the middle leaves a mix of old and new, and a save by another program meanwhile can be lost."


@frozen
class InPlacePlan:
    """Why a file is written in place, and its names."""

    identity: Identity
    reasons: tuple[str, ...]  # clauses; empty: the effect that is undone wrote in place
    count: int  # names that the file has
    names: tuple[str, ...]  # absolute paths that were found, sorted
    outside: tuple[str, ...]  # those of them outside the workspace

    @property
    def missing(self) -> int:
        """How many names were not found."""
        return max(0, self.count - len(self.names))

    @property
    def counts_as_outside(self) -> bool:
        """Whether a name is outside the workspace, or may be."""
        return bool(self.outside) or self.missing > 0

    def scope(self, paths: tuple[str, ...]) -> Scope:
        """Return the scope of the effect: these paths, every name that was found, and the file itself."""
        found = tuple(name for name in self.names if _is_text(name))
        return Scope(paths=(*paths, *found), identities=(identity_text(self.identity),))

    def is_same_file(self, other: InPlacePlan | None) -> bool:
        """Whether the other plan is for the same file, with as many names and for the same reasons."""
        return other is not None and (self.identity, self.reasons, self.count) == (
            other.identity,
            other.reasons,
            other.count,
        )

    def protected(self, tool_context: ToolContext) -> tuple[str, ...]:
        """Return the names that ask in every mode, or whose names are a secret's."""
        below = ((name, len(parts_of(tool_context.folder_of(name) or "/"))) for name in self.names)
        inside = ((name, parts_of(name)[depth:]) for name, depth in below)
        return tuple(name for name, parts in inside if protected_kind(parts) or looks_secret(parts))

    def sentences(self, root: str | None) -> list[str]:
        """Return what the user should know before allowing it; what is outside comes first."""
        found = []
        if self.outside:
            found.append(f"It has names outside the workspace: {_listed(self.outside, root)}.")
        if self.missing:
            verb = "was" if self.missing == 1 else "were"
            found.append(f"{self.missing} of its names {verb} not found and may be anywhere.")
        inside = [name for name in self.names if name not in self.outside]
        names = "1 name" if self.count == 1 else f"{self.count} names"
        found.append(f"{names}, {len(inside)} of them in this workspace: {_listed(tuple(inside), root)}.")
        return [*found, f"Its bytes are written over, because {' and '.join(self.reasons)}.", RISK]


def plan_in_place(
    tool_context: ToolContext, located: ResolvedPath, search: bool = True
) -> InPlacePlan | Refusal | None:
    """Return the plan for a regular file; None: there is none, or it can be replaced. Raises OSError; blocks.

    `search` false: its other names are not looked for.
    """
    disk = tool_context.disk
    with open_folder(tool_context, located.folders) as folder:
        seen = disk.look(folder, located.name)
        if seen is None or seen.kind != "file":
            return None
        limits = disk.replace_limits(folder, located.name)
    shown = one_line(display_path(located.resolved, tool_context.root))
    if limits.is_append_only:
        return Refusal("read_only", f"{shown} can only be appended to; a command can do that.")
    reasons = _reasons(seen, limits)
    if not reasons:
        return None
    if seen.size > CHECKPOINT_BYTES_MAX:
        limit = f"is larger than {CHECKPOINT_BYTES_MAX} bytes, the limit for writing in place"
        return Refusal("too_large", f"{shown} {limit} ({' and '.join(reasons)}).")
    # What is mounted has its own name, and the mount point is one more.
    return _with_names(tool_context, located, seen.identity, reasons, seen.links + limits.is_mount, search)


def plan_again(tool_context: ToolContext, located: ResolvedPath) -> InPlacePlan | Refusal | None:
    """Return the plan for undoing a write in place, which writes in place too; None: there is no file. Blocks.

    Raises OSError.
    """
    found = plan_in_place(tool_context, located)
    if found is not None:
        return found
    with open_folder(tool_context, located.folders) as folder:
        seen = tool_context.disk.look(folder, located.name)
    if seen is None or seen.kind != "file":
        return None
    return _with_names(tool_context, located, seen.identity, (), seen.links, True)


def _reasons(seen: EntryStat, limits: ReplaceLimits) -> tuple[str, ...]:
    found = [f"it has {seen.links} names (hard links)"] if seen.links > 1 else []
    found += [f"a new file would not have its {', '.join(limits.unkept)}"] if limits.unkept else []
    found += ["its name is a mount point"] if limits.is_mount else []
    found += ["its folder lets no name be replaced"] if limits.is_folder_fixed else []
    return tuple(found)


def _with_names(
    tool_context: ToolContext,
    located: ResolvedPath,
    identity: Identity,
    reasons: tuple[str, ...],
    count: int,
    search: bool,
) -> InPlacePlan | Refusal:
    names = {located.resolved}
    if search and count > 1:
        own = parts_of(tool_context.state_directory)
        if any(True for _ in _names_below(tool_context, [own], identity)):
            shown = one_line(display_path(located.resolved, tool_context.root))
            return Refusal("policy", f"{shown} is also a file of Steadyhand itself and cannot be changed by a tool.")
        folders = [located.folders, *(parts_of(folder) for folder in tool_context.workspace_folders())]
        for name in _names_below(tool_context, folders, identity):
            names.add(name)
            if len(names) == count:
                break
    outside = tuple(name for name in sorted(names) if tool_context.folder_of(name) is None)
    return InPlacePlan(identity, reasons, count, tuple(sorted(names)), outside)


def _names_below(tool_context: ToolContext, folders: Sequence[tuple[str, ...]], identity: Identity) -> Iterator[str]:
    """Yield the names of the file in and below these folders, the nearest first; bounded, and never through a link."""
    disk, until, left = tool_context.disk, time.monotonic() + SEARCH_S_MAX, NAMES_SEARCHED_MAX
    waiting, met = deque(folders), set(folders)
    while waiting:
        parts = waiting.popleft()
        with suppress(OSError), open_folder(tool_context, parts) as folder:
            for name in disk.names(folder):
                left -= 1
                if left < 0 or time.monotonic() > until:
                    return
                seen = disk.look(folder, name)
                if seen is not None and seen.kind == "folder" and (*parts, name) not in met:
                    met.add((*parts, name))
                    waiting.append((*parts, name))
                elif seen is not None and seen.identity == identity:
                    yield "/" + "/".join((*parts, name))


def _is_text(path: str) -> bool:
    """Whether a record can hold the path; a name that is not UTF-8 is found by the file's identity."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _listed(names: tuple[str, ...], root: str | None) -> str:
    shown = [printable(display_path(name, root)) for name in names[:SHOWN_NAMES_MAX]]
    more = f" and {len(names) - SHOWN_NAMES_MAX} more" if len(names) > SHOWN_NAMES_MAX else ""
    return ", ".join(shown) + more
