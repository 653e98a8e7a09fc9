"""The doubt shows itself after a restart, though nobody opens a session (row A8).

The newest sessions of the open workspace folders are looked at by their summaries; one with an open or unresolved
attempt whose owner lock is free, or becomes free soon, is opened as by a client, which classifies and checks it. One
owned elsewhere is left alone. There is one notification in all. A session that nobody opened is let go again when
nothing of it is unresolved or shown as settled.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import anyio

from steadyhand.core.refusal import Refused
from steadyhand.core.told import MessageTold
from steadyhand.core.views import Snapshot
from steadyhand.session import shelf
from steadyhand.session.house import House
from steadyhand.session.owner import Owner
from steadyhand.session.uris import path_of

looked_at_max = 200
free_s_max = 10.0
poll_s = 0.2
named_max = 3

log = logging.getLogger(__name__)


async def revive(house: House, folders: Sequence[str], free_s: float = free_s_max) -> None:
    """`folders`: URIs of the open workspace folders; `free_s`: how long one owned elsewhere is waited for."""
    paths = {path for uri in folders if (path := path_of(uri)) is not None}
    found = await house.world.in_thread(_unsettled, house, frozenset(paths))
    opened: list[Owner] = []

    async def take(session_id: str) -> None:
        owner = await _open_when_free(house, session_id, free_s)
        if owner is not None:
            opened.append(owner)

    async with anyio.create_task_group() as tasks:
        for session_id in found:
            tasks.start_soon(take, session_id)
    _tell(
        house, [owner.snapshot() for owner in opened], [left for owner in opened for left in house.left_untold(owner)]
    )
    for owner in opened:
        await house.let_go_if_done(owner)


def _unsettled(house: House, paths: frozenset[str]) -> list[str]:
    """Sessions of these folders with something open or unresolved, newest first; blocks."""
    found: list[tuple[str, str]] = []
    for session_id in shelf.names(house.world):
        if session_id in house.owners:
            continue
        try:
            summary = shelf.summary(house.world, session_id)
        except OSError:
            continue  # it cannot be read; opening it will say so
        if summary is None or summary.workspace is None or path_of(summary.workspace) not in paths:
            continue
        found.append((summary.updated, session_id if summary.unsettled else ""))
    newest = sorted(found, reverse=True)[:looked_at_max]
    return [session_id for _, session_id in newest if session_id]


async def _open_when_free(house: House, session_id: str, free_s: float) -> Owner | None:
    """None: owned elsewhere, or it cannot be opened, which fails alone (row S6)."""
    free = partial(house.world.in_thread, shelf.free, house.world, session_id)
    with anyio.move_on_after(free_s) as limit:
        # The client may have opened it meanwhile; then the lock is our own.
        # Polled, since a lock of the system tells nobody that it is free.
        while session_id not in house.owners and not await free():  # noqa: ASYNC110
            await anyio.sleep(poll_s)
    if limit.cancelled_caught:
        return None
    try:  # outside the limit: an opening that is broken off would keep the lock
        return await house.owner(session_id, kept_open=False)
    except (Refused, OSError) as error:
        log.warning("session %s was not opened: %s", session_id, error)
        return None


def _tell(house: House, snapshots: Sequence[Snapshot], left: Sequence[str]) -> None:
    """One notification in all: of what is uncertain, what a check has settled, and background commands left behind."""
    uncertain = [call.title for snapshot in snapshots for call in snapshot.calls]
    settled = [call.title for snapshot in snapshots for call in snapshot.settled]
    sentences: list[str] = []
    if uncertain:
        effects = "1 earlier effect is" if len(uncertain) == 1 else f"{len(uncertain)} earlier effects are"
        sentences.append(f"{effects} uncertain after a restart: {_named(uncertain)}. Nothing was repeated.")
    if settled:
        effects = "1 interrupted effect was" if len(settled) == 1 else f"{len(settled)} interrupted effects were"
        sentences.append(f"{effects} checked and settled after a restart: {_named(settled)}.")
    if sentences:
        sentences.append("Look at the marked files, or say /recovery in the chat.")
    sentences += left
    if sentences:
        house.world.editor.tell(MessageTold("warning" if uncertain or left else "info", " ".join(sentences)))


def _named(titles: Sequence[str]) -> str:
    unique = sorted(set(titles))
    more = f" and {len(unique) - named_max} more" if len(unique) > named_max else ""
    return f"{', '.join(unique[:named_max])}{more}"
