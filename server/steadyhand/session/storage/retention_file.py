"""`retention.json` beside a journal: the stored contents that a later start may remove (row K6).

    {"v": 1, "checkpoints": {"<digest>": "<time>"}, "outputs": {…}, "removed": 0}

A time says when a start named the content; `removed` counts what was removed so far. It is written under the owner
lock, and replaced in one step. One that cannot be read names nothing, so that a content is named anew and stays longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs

from steadyhand.ports.disk import Disk, Folder, write_all
from steadyhand.ports.system import Ids
from steadyhand.tools.writes.blob_store import STORES, StoreName
from steadyhand_values import frozen, pattern

RETENTION = "retention.json"
VERSION = 1
RETENTION_BYTES_MAX = 16 << 20
FILE_MODE = 0o600
_DIGEST = pattern(r"[0-9a-f]{64}")
_TIME = pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@frozen
class NamedContents:
    """Store → digest → when it was named."""

    named: Mapping[StoreName, Mapping[str, str]] = attrs.field(factory=lambda: {name: {} for name in STORES})
    removed: int = 0

    @property
    def count(self) -> int:
        """How many contents are named."""
        return sum(len(of_store) for of_store in self.named.values())


def read_named(disk: Disk, folder: Folder) -> NamedContents:
    """Return what is named; nothing where the file is missing, damaged or of another version."""
    try:
        content = disk.read(folder, RETENTION, RETENTION_BYTES_MAX + 1)
        found = json.loads(content)
        if len(content) > RETENTION_BYTES_MAX or found["v"] != VERSION or type(found["removed"]) is not int:
            return NamedContents()
        named = {name: {str(digest): str(at) for digest, at in found[name].items()} for name in STORES}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return NamedContents()
    every = [pair for of_store in named.values() for pair in of_store.items()]
    if not all(_DIGEST.fullmatch(digest) and _TIME.fullmatch(at) for digest, at in every):
        return NamedContents()
    return NamedContents(named, max(0, found["removed"]))


def write_named(disk: Disk, ids: Ids, folder: Folder, named: NamedContents) -> None:
    """Replace the file durably. Raise OSError."""
    members: dict[str, object] = {"v": VERSION, **dict(named.named.items()), "removed": named.removed}
    temporary = f".{RETENTION}.{ids.new()}"
    file = disk.create(folder, temporary, FILE_MODE)
    try:
        write_all(disk, file, json.dumps(members, separators=(",", ":")).encode("ascii"))
        disk.sync(file)
    finally:
        disk.close(file)
    disk.rename(folder, temporary, RETENTION)
    disk.sync_folder(folder)
