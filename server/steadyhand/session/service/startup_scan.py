"""Find sessions with uncertain effects and report them, though nobody opened one (row A8, case 164).

The summaries of all sessions are read. A session with an open or unresolved attempt concerns a folder if its workspace
is that folder, is in it or contains it, or if one of those attempts may touch a path in it; folders are compared by
what they are. Of these the newest are taken. One whose owner lock is free, or becomes free soon, is opened, which
classifies and checks it. One that another process owns is left alone. There is one notification in all. A session that
nobody opened is released again when nothing of it is unresolved or shown as settled.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.records.place import Place, is_within, share_a_place
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.domain.views.types import Snapshot
from steadyhand.journal.journal import load
from steadyhand.session.private_state import UnsafeSession
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.session import Session
from steadyhand.session.session_status import SessionStatus
from steadyhand.session.storage import directory
from steadyhand.session.storage.loaded_ledger import ledger_of
from steadyhand.session.storage.summary import Summary
from steadyhand.session.uris import path_of
from steadyhand.tools.workspace.places import find_place, find_places
from steadyhand_values import define

SESSIONS_SCANNED_MAX = 200
LOCK_WAIT_S_MAX = 10.0
POLL_S = 0.2
TITLES_NAMED_MAX = 3

log = logging.getLogger(__name__)


@define
class ScanResult:
    """What a scan found.

    `elsewhere`: ids of sessions that another process owns. `unread`: session id → why it cannot be read, so it is not
    known whether an effect of it is uncertain. `left_out`: how many were too many."""

    opened: list[Session] = attrs.field(factory=list)
    elsewhere: list[str] = attrs.field(factory=list)
    unread: dict[str, str] = attrs.field(factory=dict)
    left_out: int = 0


@define
class Unsettled:
    """Sessions to open, newest first, and what could not be read."""

    session_ids: list[str]
    unread: dict[str, str]
    left_out: int


async def scan_sessions(registry: SessionRegistry, folders: Sequence[str], free_s: float = LOCK_WAIT_S_MAX) -> None:
    """Open and report them. `folders`: URIs of the open workspace folders; `free_s`: how long to wait for a lock."""
    try:
        found = await open_unsettled(registry, folders, free_s)
    except Refused as refused:  # every request that needs the state directory is refused with the same sentence
        registry.context.editor.tell(MessageNotification("error", refused.message))
        return
    await report_scan(registry, found)


async def open_unsettled(registry: SessionRegistry, folders: Sequence[str], free_s: float) -> ScanResult:
    """Open the sessions that concern these folders. Raise Refused or OSError if the sessions cannot be
    listed."""
    paths = tuple(dict.fromkeys(path for uri in folders if (path := path_of(uri)) is not None))
    found = await registry.context.in_thread(find_unsettled, registry, paths)
    result = ScanResult(unread=found.unread, left_out=found.left_out)

    async def take(session_id: str) -> None:
        await _open_when_free(registry, session_id, free_s, result)

    async with anyio.create_task_group() as tasks:
        for session_id in found.session_ids:
            tasks.start_soon(take, session_id)
    return result


async def report_scan(registry: SessionRegistry, found: ScanResult) -> None:
    """Send the one notification, and release what has nothing to show."""
    registry.context.tell_tightened()
    _notify(
        registry,
        [session.snapshot() for session in found.opened],
        [left for session in found.opened for left in registry.report_left_jobs(session)],
        found,
    )
    for session in found.opened:
        await registry.release_if_done(session)


def find_unsettled(registry: SessionRegistry, paths: Sequence[str], among: frozenset[str] | None = None) -> Unsettled:
    """Return the sessions with something open or unresolved that concern these folders. Blocks.

    `among`: only these session ids are read; None: all of them.
    Settled ones do not count against the bound: the clock may have gone back, and a doubt must not hide behind them."""
    context, unread = registry.context, dict[str, str]()
    folders = find_places(context.disk, paths)
    workspaces: dict[str, bool] = {}  # path of a workspace → whether it overlaps one of the folders
    found: list[tuple[str, Summary]] = []
    for session_id in directory.names(context) if folders else ():
        if session_id in registry.sessions or (among is not None and session_id not in among):
            continue
        try:
            summary = directory.summary(context, session_id)
            if (
                summary is not None
                and summary.is_unsettled
                and _concerns(registry, session_id, summary, folders, workspaces)
            ):
                found.append((session_id, summary))
        except FileNotFoundError:
            continue  # it is being deleted, or was never finished
        except UnsafeSession as unsafe:  # of whatever folder: what its files say is not believed (row O5)
            unread[session_id] = unsafe.message
        except OSError as error:
            unread[session_id] = error.strerror or type(error).__name__
    newest = sorted(found, key=lambda one: (one[1].updated, one[0]), reverse=True)
    return Unsettled(
        [session_id for session_id, _ in newest[:SESSIONS_SCANNED_MAX]], unread, len(newest[SESSIONS_SCANNED_MAX:])
    )


def _concerns(
    registry: SessionRegistry,
    session_id: str,
    summary: Summary,
    folders: Iterable[Place],
    workspaces: dict[str, bool],
) -> bool:
    workspace = path_of(summary.workspace) if summary.workspace is not None else None
    if workspace is None:
        return False  # without a folder it had no effects on files
    if workspace not in workspaces:
        workspaces[workspace] = share_a_place([find_place(registry.context.disk, workspace)], folders)
    return workspaces[workspace] or _may_touch(registry, session_id, folders)


def _may_touch(registry: SessionRegistry, session_id: str, folders: Iterable[Place]) -> bool:
    """Return whether an open or unresolved attempt names a path in one of the folders. Raise OSError."""
    disk = registry.context.disk
    opened = registry.context.private_state.open_session(session_id)
    try:
        loaded = load(disk, opened)
    finally:
        disk.close(opened)
    ledger = ledger_of(loaded)
    pending = (attempt for attempt in ledger.attempts.values() if attempt.uncertain or attempt.stage == "started")
    places = find_places(disk, dict.fromkeys(path for attempt in pending for path in attempt.scope.paths))
    return any(is_within(place, folder) for place in places for folder in folders)


async def _open_when_free(registry: SessionRegistry, session_id: str, free_s: float, result: ScanResult) -> None:
    """Open a session, unless another process owns it. One that cannot be opened fails alone (row S6)."""
    free = partial(registry.context.in_thread, directory.is_free, registry.context, session_id)
    with anyio.move_on_after(free_s) as limit:
        # The client may have opened it meanwhile; then the lock is our own.
        # Polled: a file lock does not announce that it is free.
        try:
            while session_id not in registry.sessions and not await free():  # noqa: ASYNC110
                await anyio.sleep(POLL_S)
        except Refused as refused:  # others control the state directory since
            result.unread[session_id] = refused.message
            return
    if limit.cancelled_caught:
        result.elsewhere.append(session_id)
        return
    # Outside the limit: an opening that is cancelled would keep the lock.
    await open_and_note(registry, session_id, result, anew=False, kept_open=False)


async def open_and_note(
    registry: SessionRegistry, session_id: str, result: ScanResult, *, anew: bool, kept_open: bool
) -> None:
    """Open a session and note in `result` what came of it."""
    try:
        session = await registry.open_session(session_id, anew=anew, kept_open=kept_open)
    except (Refused, OSError) as error:
        log.warning("session %s was not opened: %s", session_id, error)
        if not (isinstance(error, Refused) and error.kind == "unknownSession"):  # else it was deleted meanwhile
            result.unread[session_id] = error.message if isinstance(error, Refused) else str(error.strerror)
        return
    except Exception as defect:  # whatever it is, it concerns this session alone
        log.error("opening session %s failed unexpectedly", session_id, exc_info=defect)
        result.unread[session_id] = "something failed inside Steadyhand"
        return
    if session.ledger.session is None and session.read_only is not None:  # nothing of its journal can be read
        result.unread[session_id] = session.read_only.text
    result.opened.append(session)
    if session.status is SessionStatus.OWNED_ELSEWHERE:
        result.elsewhere.append(session_id)


def _notify(registry: SessionRegistry, snapshots: Sequence[Snapshot], left: Sequence[str], found: ScanResult) -> None:
    """Send one message: what is uncertain, what a check settled, what a crash left running, and what is not known."""
    uncertain = [call.title for snapshot in snapshots for call in snapshot.calls]
    settled = [call.title for snapshot in snapshots for call in snapshot.settled]
    sentences: list[str] = []
    if uncertain:
        effects = "1 earlier effect is" if len(uncertain) == 1 else f"{len(uncertain)} earlier effects are"
        sentences.append(f"{effects} uncertain after a restart: {_join_names(uncertain)}. Nothing was repeated.")
    if settled:
        effects = "1 interrupted effect was" if len(settled) == 1 else f"{len(settled)} interrupted effects were"
        sentences.append(f"{effects} checked and settled after a restart: {_join_names(settled)}.")
    if sentences:
        sentences.append("Open the marked files, or say /recovery in the chat.")
    sentences += left
    unknown = _unknown_sentences(found)
    sentences += unknown
    if sentences:
        registry.context.editor.tell(
            MessageNotification("warning" if uncertain or left or unknown else "info", " ".join(sentences))
        )


def _unknown_sentences(found: ScanResult) -> list[str]:
    """Return what nobody knows after the scan; calls are not held back for it."""
    sentences: list[str] = []
    if found.unread:
        names = _join_names([session_id[:8] for session_id in found.unread])
        sessions = "1 earlier session" if len(found.unread) == 1 else f"{len(found.unread)} earlier sessions"
        why = ", ".join(sorted(set(found.unread.values()))[:TITLES_NAMED_MAX])
        sentences.append(
            f"{sessions} cannot be read ({names}: {why.rstrip('.')}), so it is not known whether an effect there is"
            " uncertain. Make the files readable, then start again."
        )
    if found.left_out:
        sentences.append(
            f"{found.left_out} more sessions with uncertain effects were not opened; open them from the list."
        )
    return sentences


def _join_names(titles: Sequence[str]) -> str:
    unique = sorted(set(titles))
    more = f" and {len(unique) - TITLES_NAMED_MAX} more" if len(unique) > TITLES_NAMED_MAX else ""
    return f"{', '.join(unique[:TITLES_NAMED_MAX])}{more}"
