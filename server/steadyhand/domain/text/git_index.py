"""The paths in a git index: what git tracks, whatever the ignore files say (case 129).

Versions 2 to 4 with SHA-1 or SHA-256 are read. A split index, whose paths are in a second file, is not.
"""

from __future__ import annotations

import struct

from steadyhand_values import frozen

SIGNATURE = b"DIRC"
HEADER_BYTES = 12
STAT_BYTES = 40
"""Of one entry before its object id: times, device, inode, mode, owner, size."""
HASH_BYTES = (20, 32)
EXTENDED = 0x4000
NAME_LENGTH = 0x0FFF
FOLDER_MODE = 0o040000
ENTRIES_MAX = 2_000_000


@frozen
class TrackedPaths:
    """What git tracks below the folder of a repository, with `/` between names. `folders`: those above `files`."""

    files: frozenset[str]
    folders: frozenset[str]


NO_PATHS = TrackedPaths(frozenset(), frozenset())


def tracked_paths(index: bytes) -> TrackedPaths | None:
    """Return the paths of an index file; None for one that this module cannot read. Names are decoded as file names."""
    if len(index) < HEADER_BYTES or index[:4] != SIGNATURE:
        return None
    version, count = struct.unpack_from(">II", index, 4)
    if version not in (2, 3, 4) or count > ENTRIES_MAX:
        return None
    for hash_bytes in HASH_BYTES:
        names = _read_names(index, version, count, hash_bytes)
        if names is not None:
            files = frozenset(name.decode("utf-8", "surrogateescape") for name in names)
            return TrackedPaths(files, _folders_above(files))
    return None


def _read_names(index: bytes, version: int, count: int, hash_bytes: int) -> list[bytes] | None:
    """Return the names of all entries; None if they do not fit this size of an object id."""
    names: list[bytes] = []
    at, previous = HEADER_BYTES, b""
    try:
        for _ in range(count):
            begin = at
            (mode,) = struct.unpack_from(">I", index, begin + 24)
            (flags,) = struct.unpack_from(">H", index, begin + STAT_BYTES + hash_bytes)
            at = begin + STAT_BYTES + hash_bytes + (4 if flags & EXTENDED else 2)
            kept = b""
            if version == 4:
                dropped, at = _read_number(index, at)
                kept = previous[: len(previous) - dropped]
            end = index.index(b"\0", at)
            name = kept + index[at:end]
            if not name or min(len(name), NAME_LENGTH) != flags & NAME_LENGTH or name < previous:
                return None
            at = end + 1 if version == 4 else begin + (end - begin + 8) // 8 * 8
            previous = name
            if mode != FOLDER_MODE:  # a folder that a sparse checkout leaves out
                names.append(name)
    except (struct.error, ValueError, IndexError):
        return None
    return None if b"link" in _extensions(index, at, hash_bytes) else names


def _read_number(index: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable width and the position after it."""
    byte = index[at]
    number = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = index[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1


def _extensions(index: bytes, at: int, hash_bytes: int) -> list[bytes]:
    found: list[bytes] = []
    while at + 8 <= len(index) - hash_bytes:
        found.append(index[at : at + 4])
        at += 8 + int.from_bytes(index[at + 4 : at + 8], "big")
    return found


def _folders_above(files: frozenset[str]) -> frozenset[str]:
    folders: set[str] = set()
    for name in files:
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(folders)
