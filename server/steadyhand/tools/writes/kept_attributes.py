"""What a file has besides its bytes, as evidence keeps it; and what a restore cannot bring back (row A5, case 167).

Evidence keeps mode, owner and extended attributes of a file that is there before a change, so that a restore that makes
the file again gives it these. What no restore can bring back is named before: in the inspection, and in the reply.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from contextlib import suppress

from steadyhand.domain.records.record import Evidence, ExtendedAttribute, FileAttributes, PathFinding
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Attributes, Disk, EntryStat, Folder
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.paths import parts_of

EXTENDED_BYTES_MAX = 16 * 1024
"""Of the names and values of a file's extended attributes; above it the evidence has no attributes."""


def read_attributes(disk: Disk, folder: Folder, name: str, stat: EntryStat) -> FileAttributes | None:
    """Return what evidence keeps of a regular file; None if it cannot be read or is too much to record."""
    with suppress(OSError, UnicodeEncodeError):
        found = disk.attributes(folder, name)
        extended = [(one.encode("utf-8").decode(), value) for one, value in found.extended.items()]
        if sum(len(one) + len(value) for one, value in extended) > EXTENDED_BYTES_MAX:
            return None
        kept = [ExtendedAttribute(name=one, value=base64.b64encode(value).decode()) for one, value in extended]
        return FileAttributes(mode=found.mode, uid=found.uid, gid=found.gid, links=stat.links, extended=tuple(kept))
    return None


def attributes_to_give(tool_context: ToolContext, old: Evidence) -> Attributes | None:
    """Return the attributes of a file that is made again; None if the evidence has not even its mode.

    Where the evidence has only the mode, the file gets our own user and group.
    """
    kept = old.attributes
    if kept is not None:
        with suppress(binascii.Error):
            extended = {one.name: base64.b64decode(one.value, validate=True) for one in kept.extended}
            return Attributes(kept.mode, kept.uid, kept.gid, extended)
    if old.mode is None:
        return None
    uid, gid = _own_ids(tool_context)
    return Attributes(old.mode, uid, gid, {})


def is_movable_back(old: Sequence[Evidence], digests: Sequence[str | None]) -> bool:
    """Whether the effect moved an entry that still has its new path, and nothing has the old path.

    `digests`: of what each path has now, in the order of the evidence; None: nothing.
    """
    pair = moved_pair(old)
    if pair is None:
        return False
    start, goal = pair
    return digests[start] is None and digests[goal] == old[goal].intended


def moved_pair(old: Sequence[Evidence]) -> tuple[int, int] | None:
    """Return the positions of the old and the new path of a move to a path that was free; None for other effects."""
    if len(old) != 2:
        return None
    for start, goal in ((0, 1), (1, 0)):
        gone, made = old[start], old[goal]
        freed = gone.existed and gone.intended is None and gone.before is not None
        if freed and not made.existed and made.intended == gone.before and made.kind == gone.kind:
            return start, goal
    return None


def restore_note(tool_context: ToolContext, old: Sequence[Evidence], now: Sequence[PathFinding]) -> str:
    """Return a sentence for each path of which a restore makes a new file, with what it cannot have; else nothing."""
    digests = [finding.digest for finding in now]
    if len(digests) != len(old) or is_movable_back(old, digests):
        return ""
    made_anew = [one for one, digest in zip(old, digests, strict=True) if _is_made_anew(old, one, digest)]
    return "".join(f" {_sentence(tool_context, one)}" for one in made_anew)


def _is_made_anew(old: Sequence[Evidence], one: Evidence, digest: str | None) -> bool:
    """Whether a restore of this path makes a file, in place of nothing or of a file that was moved there."""
    if not one.existed or one.kind == "link" or digest == one.before:
        return False
    return digest is None or replaces_moved(old, one)


def replaces_moved(old: Sequence[Evidence], one: Evidence) -> bool:
    """Whether the effect moved another file over this one, so that the attributes there are those of the other."""
    return one.existed and any(
        other is not one and other.intended is None and other.before == one.intended for other in old
    )


def _sentence(tool_context: ToolContext, one: Evidence) -> str:
    kept = one.attributes
    lost = ["its time"]
    if kept is None:
        lost += ["its owner", "its extended attributes (they were not recorded)"]
    else:
        ours, _ = _own_ids(tool_context)
        lost += ["its owner"] if kept.uid != ours and ours != 0 else []
        lost += (
            [f"its {kept.links - 1} other name{'s' if kept.links > 2 else ''} (hard links)"] if kept.links > 1 else []
        )
    listed = lost[0] if len(lost) == 1 else f"{', '.join(lost[:-1])} and {lost[-1]}"
    shown = display_path(one.resolved, tool_context.root)
    return f"A restore makes {shown} anew; it does not bring back {listed}."


def _own_ids(tool_context: ToolContext) -> tuple[int, int]:
    """Return the user and group of the session's own folder: those of this process."""
    parts = parts_of(tool_context.session_folder)
    parent = tool_context.disk.open_folder("/" + "/".join(parts[:-1]))
    try:
        ours = tool_context.disk.look(parent, parts[-1])
    finally:
        tool_context.disk.close(parent)
    assert ours is not None, "the session's own folder"
    return ours.uid, ours.gid
