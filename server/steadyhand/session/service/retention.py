"""Room on disk: at a start, remove stored contents that an earlier start named and nobody needs (row K6).

One start names a content; a start at least `DAYS_NAMED_MIN` later by the clock removes it, if it still qualifies. So a
clock that is wrong once removes nothing. Each session is handled alone, under its owner lock: one that is open here
only while nothing runs in it, one that another process owns not at all. A session with any damage, of a newer version
or read-only is left alone. No journal is written. A removal that is killed has removed only what nobody needs; the next
start goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

import anyio

from steadyhand.domain.changes.retention import TURNS_KEPT, Unneeded, unneeded_contents
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Damage
from steadyhand.journal.journal import JOURNAL, load
from steadyhand.ports.disk import Disk, Folder
from steadyhand.session.context import SessionContext
from steadyhand.session.recovery.resolve import resolution
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.session import Session
from steadyhand.session.storage import directory
from steadyhand.session.storage.loaded_ledger import ledger_of
from steadyhand.session.storage.lock import session_path, take_lock
from steadyhand.session.storage.retention_file import RETENTION, NamedContents, read_named, write_named
from steadyhand.tools.writes.blob_store import STORES, StoreName
from steadyhand_values import frozen

DAYS_NAMED_MIN = 7
"""Days by the clock between the start that names a content and the one that removes it."""
JOURNAL_BYTES_MIN = 200 * 150
"""A journal with more than 200 turns is longer than this; a shorter one is not read."""
_FORM = "%Y-%m-%dT%H:%M:%S.%f"

log = logging.getLogger(__name__)


@frozen
class Retention:
    """How many stored contents are named for removal, and how many were removed, over all sessions."""

    named: int
    removed: int


async def apply_retention(registry: SessionRegistry) -> None:
    """Name and remove in every session of the state directory, one after another. A session that fails fails alone."""
    context = registry.context
    try:
        names = await context.in_thread(directory.names, context)
    except Refused:
        return  # every request that needs the state directory is refused with the reason
    for session_id in names:
        try:
            async with registry.opening_lock(session_id):
                live = registry.sessions.get(session_id)
                if live is not None:
                    await _apply_to_open(live)
                else:
                    await context.in_thread(_apply_to_closed, context, session_id)
        except (OSError, Refused) as error:
            log.warning("contents of session %s were not removed: %s", session_id, error)


def count_retention(context: SessionContext) -> Retention:
    """Return what the files of all sessions say. Blocks."""
    named = removed = 0
    try:
        for session_id in directory.names(context):
            try:
                folder = context.private_state.open_session(session_id)
            except (OSError, Refused):
                continue
            try:
                found = read_named(context.disk, folder)
            finally:
                context.disk.close(folder)
            named, removed = named + found.count, removed + found.removed
    except Refused:
        pass  # the report on the journal says why nothing can be read
    return Retention(named, removed)


async def _apply_to_open(session: Session) -> None:
    """Nothing runs meanwhile: no turn, no resolution and no background command stores a content."""
    if not _is_idle(session) or session.damaged:
        return
    async with resolution(session), session.settling:
        lock = session.log.lock
        if session.turn is not None or session.ledger.open_jobs() or lock is None or not await session.log.may_act():
            return
        unneeded = _unneeded(session.context, session.ledger)
        with anyio.CancelScope(shield=True):
            await session.context.in_thread(_name_and_remove, session.context, lock.folder, unneeded)


def _is_idle(session: Session) -> bool:
    return session.can_record and session.can_begin_turn and not session.ledger.open_jobs()


def _apply_to_closed(context: SessionContext, session_id: str) -> None:
    """Blocks. Raise OSError, UnsafeState or UnsafeSession."""
    disk = context.disk
    folder = context.private_state.open_session(session_id)
    try:
        if not _may_qualify(disk, folder):
            return
        context.private_state.check_session(folder, session_id)
        held = take_lock(disk, folder, session_path(context.state_directory, session_id))
        if held is None:
            return
        try:
            ledger = _sound_ledger(disk, folder, session_id)
            if ledger is not None:
                _name_and_remove(context, folder, _unneeded(context, ledger))
        finally:
            held.lock.release()
    finally:
        disk.close(folder)


def _may_qualify(disk: Disk, folder: Folder) -> bool:
    """Whether there is something to name, to remove or to take back the name of."""
    if disk.look(folder, RETENTION) is not None:
        return True
    journal = disk.look(folder, JOURNAL)
    is_long = journal is not None and journal.size >= JOURNAL_BYTES_MIN
    return is_long and any(disk.look(folder, name) is not None for name in STORES)


def _sound_ledger(disk: Disk, folder: Folder, session_id: str) -> Ledger | None:
    """Return the ledger of a journal that is whole, of this version, and this session's; else None."""
    loaded = load(disk, folder)
    is_whole = not loaded.damaged and not loaded.breaks and not loaded.torn_starts and loaded.tail == "clean"
    if loaded.newer or not is_whole or any(isinstance(one.record, Damage) for one in loaded.records):
        return None
    ledger = ledger_of(loaded)
    if ledger.session is None or ledger.session.session_id != session_id or ledger.open_jobs():
        return None
    return ledger


def _unneeded(context: SessionContext, ledger: Ledger) -> Unneeded:
    days = context.settings.retention_days
    return unneeded_contents(ledger, _earlier(context.clock.now(), days), TURNS_KEPT) if days > 0 else Unneeded()


def _name_and_remove(context: SessionContext, folder: Folder, unneeded: Unneeded) -> None:
    """Remove what was named long enough ago, then write down what is named now. Blocks; raises OSError."""
    disk, now = context.disk, context.clock.now()
    known = read_named(disk, folder)
    qualified: Mapping[StoreName, frozenset[str]] = {
        "checkpoints": unneeded.checkpoints,
        "outputs": unneeded.outputs,
    }
    named: dict[StoreName, dict[str, str]] = {name: {} for name in STORES}
    removed = 0
    for store, digests in qualified.items():
        since = known.named[store]
        if disk.look(folder, store) is None:
            continue
        opened = disk.enter(folder, store)
        try:
            there = digests.intersection(disk.names(opened)) if digests else frozenset()
            due = {digest for digest in there if _is_due(since.get(digest), now)}
            for digest in sorted(due):
                disk.unlink(opened, digest)
            removed += len(due)
        finally:
            disk.close(opened)
        named[store] = {digest: _named_at(since.get(digest), now) for digest in sorted(there - due)}
    found = NamedContents(named, known.removed + removed)
    if found != known:
        write_named(disk, context.ids, folder, found)


def _is_due(named: str | None, now: str) -> bool:
    return named is not None and named <= _earlier(now, DAYS_NAMED_MIN)


def _named_at(named: str | None, now: str) -> str:
    """Return when it counts as named: a time that is still to come is that of a wrong clock."""
    return now if named is None or named > now else named


def _earlier(at: str, days: int) -> str:
    moment = datetime.strptime(at.rstrip("Z"), _FORM).replace(tzinfo=timezone.utc) - timedelta(days=days)
    return f"{moment.strftime('%Y-%m-%dT%H:%M:%S')}.{moment.microsecond // 1000:03d}Z"
