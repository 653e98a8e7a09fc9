"""The folder of one session in the state directory: its path, the owner lock, and who holds it (row J11)."""

from __future__ import annotations

import json
from contextlib import suppress

from steadyhand.domain.views.types import LockHolder as OwnerView
from steadyhand.journal.ownership import OWNER_LOCK, SessionLock
from steadyhand.ports.disk import Disk, Folder, write_all
from steadyhand.ports.processes import Processes
from steadyhand.ports.system import Clock, Ids
from steadyhand.session.private_state import sessions_path

OWNER = "owner.json"
OWNER_BYTES_MAX = 4096
FILE_MODE = 0o600


def session_path(state_directory: str, session_id: str) -> str:
    """Return the folder of one session."""
    return f"{sessions_path(state_directory)}/{session_id}"


def take_lock(disk: Disk, folder: Folder, path: str) -> SessionLock | None:
    """Take the owner lock without waiting; None if another process holds it."""
    lock = disk.lock(folder, OWNER_LOCK)
    return SessionLock(folder, path, lock) if lock is not None else None


def write_owner(disk: Disk, processes: Processes, clock: Clock, ids: Ids, held: SessionLock) -> None:
    """Write `owner.json`; the caller knows that this process may write in the session (row J13)."""
    pid, host, _ = processes.here()
    content = json.dumps({"pid": pid, "host": host, "since": clock.now()}, separators=(",", ":")).encode() + b"\n"
    with suppress(OSError):  # owner.json only names the owner to others; the lock is the proof
        _replace(disk, ids, held.folder, content)


def make_names_durable(disk: Disk, held: SessionLock) -> None:
    """Sync the names that lead to the journal. Raise OSError.

    A crash may have come before they were synced, and new records must not be lost with them (row J4)."""
    disk.sync_folder(held.folder)
    parent = disk.open_folder(held.path.rpartition("/")[0])
    try:
        disk.sync_folder(parent)
    finally:
        disk.close(parent)


def owner_of(disk: Disk, folder: Folder) -> OwnerView | None:
    """Return who holds the lock, as `owner.json` says; None where it does not say."""
    try:
        found = json.loads(disk.read(folder, OWNER, OWNER_BYTES_MAX))
        return OwnerView(int(found["pid"]), str(found["host"]), str(found["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _replace(disk: Disk, ids: Ids, folder: Folder, content: bytes) -> None:
    temporary = f".{OWNER}.{ids.new()}"
    file = disk.create(folder, temporary, FILE_MODE)
    try:
        write_all(disk, file, content)
    finally:
        disk.close(file)
    disk.rename(folder, temporary, OWNER)
