"""The doubt shows itself after a restart, though nobody opens a session (row A8).

The newest sessions of the open workspace folders are looked at by their summaries; one with an open or unresolved
attempt whose owner lock is free, or becomes free soon, is opened as by a client, which classifies and checks it. One
owned elsewhere is left alone. There is one notification in all. A session that nobody opened is let go again when
nothing of it is unresolved or shown as settled.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from steadyhand.core.refusal import Refused
from steadyhand.core.told import MessageTold
from steadyhand.session.uris import path_of
from steadyhand.session import shelf
from steadyhand.session.house import House
from steadyhand.session.owner import Owner

looked_at_max = 200
free_s_max = 10.0
poll_s = 0.2


async def revive(house: House, folders: Sequence[str]) -> None:
    """`folders`: URIs of the open workspace folders."""
    paths = {path for uri in folders if (path := path_of(uri)) is not None}
    found = await house.world.in_thread(_unsettled, house, frozenset(paths))
    opened: list[Owner] = []

    async def take(session_id: str) -> None:
        owner = await _open_when_free(house, session_id)
        if owner is not None:
            opened.append(owner)

    async with anyio.create_task_group() as tasks:
        for session_id in found:
            tasks.start_soon(take, session_id)
    _tell(house, [owner for owner in opened if owner.ledger.uncertain()])
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


async def _open_when_free(house: House, session_id: str) -> Owner | None:
    with anyio.move_on_after(free_s_max):
        while not await house.world.in_thread(shelf.free, house.world, session_id):
            await anyio.sleep(poll_s)
        try:
            return await house.owner(session_id, kept_open=False)
        except Refused:
            return None
    return None


def _tell(house: House, owners: Sequence[Owner]) -> None:
    count = sum(len(owner.ledger.uncertain()) for owner in owners)
    if not count:
        return
    titles = ", ".join(sorted({attempt.title for owner in owners for attempt in owner.ledger.uncertain()})[:3])
    effects = "1 earlier effect is uncertain" if count == 1 else f"{count} earlier effects are uncertain"
    text = (
        f"{effects} after a restart: {titles}. Nothing was repeated. Look at the marked files, or say /recovery in the"
        " chat, to inspect and settle."
    )
    house.world.editor.tell(MessageTold("warning", text))
