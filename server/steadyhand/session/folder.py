"""The folder of one session in the state directory: names, the owner lock, and who holds it (row J11)."""

from __future__ import annotations

import json
from contextlib import suppress

import attrs

from steadyhand.core.views import Owner as OwnerView
from steadyhand.journal.log import write_all
from steadyhand.ports import Clock, Disk, Folder, Ids, Lock, Processes

SESSIONS = "sessions"
OWNER_LOCK = "owner.lock"
OWNER = "owner.json"
owner_bytes_max = 4096
file_mode = 0o600


@attrs.frozen
class Held:
    """A session folder whose owner lock this process holds."""

    folder: Folder
    path: str
    lock: Lock


def sessions_path(state_directory: str) -> str:
    return f"{state_directory.rstrip('/')}/{SESSIONS}"


def session_path(state_directory: str, session_id: str) -> str:
    return f"{sessions_path(state_directory)}/{session_id}"


def take(disk: Disk, folder: Folder, path: str) -> Held | None:
    """The owner lock, taken at once; None if another process holds it."""
    lock = disk.lock(folder, OWNER_LOCK)
    return Held(folder, path, lock) if lock is not None else None


def announce(disk: Disk, processes: Processes, clock: Clock, ids: Ids, held: Held) -> None:
    """Write `owner.json`, once it is sure that the session is ours to touch (row J13)."""
    pid, host, _ = processes.here()
    content = json.dumps({"pid": pid, "host": host, "since": clock.now()}, separators=(",", ":")).encode() + b"\n"
    with suppress(OSError):  # owner.json only names the owner to others; the lock is the proof
        _replace(disk, ids, held.folder, content)


def make_names_durable(disk: Disk, held: Held) -> None:
    """The names that lead to the journal: whoever laid the session down may have been killed before it synced them,
    and what is recorded from now on must not go with them (row J4). Raises OSError."""
    disk.sync_folder(held.folder)
    parent = disk.open_folder(held.path.rpartition("/")[0])
    try:
        disk.sync_folder(parent)
    finally:
        disk.close(parent)


def owner_of(disk: Disk, folder: Folder) -> OwnerView | None:
    """Who holds the lock, as `owner.json` says; None where it does not say."""
    try:
        found = json.loads(disk.read(folder, OWNER, owner_bytes_max))
        return OwnerView(int(found["pid"]), str(found["host"]), str(found["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _replace(disk: Disk, ids: Ids, folder: Folder, content: bytes) -> None:
    temporary = f".{OWNER}.{ids.new()}"
    file = disk.create(folder, temporary, file_mode)
    try:
        write_all(disk, file, content)
    finally:
        disk.close(file)
    disk.rename(folder, temporary, OWNER)
