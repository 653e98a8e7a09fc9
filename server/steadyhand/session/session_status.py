"""The states of an open session as one table: which event leads from which state to which.

A state says who may record here. It does not say whether a turn or a resolution runs: both may run while the session
closes, and after its journal broke. An event that the table does not list for a state is a defect of the caller.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from steadyhand.domain.views.types import ReadOnly


class SessionStatus(Enum):
    """Who may record in a session of this process."""

    OPEN = "this process holds the session's lock and its journal takes records"
    BROKEN = "a write of the journal failed: what follows is shown and not kept"
    LOST = "its lock, folder or journal was taken away: it is shown, and nothing more starts or is kept"
    CLOSING = "its work is being ended: no new work begins"
    CLOSING_BROKEN = "its work is being ended, and its journal is broken"
    CLOSED = "this process released the journal and the lock"
    READ_ONLY = "it is shown for a reason of its own: damaged, of a newer version, or on a disk that refuses"
    OWNED_ELSEWHERE = "another process holds the lock: it is shown as that process records it"
    FREE = "no process holds the lock: the next request takes the session over"


SessionEvent = Literal["close", "stay", "journal_broke", "lost", "release", "owner_gone"]

NEXT: dict[tuple[SessionStatus, SessionEvent], SessionStatus] = {
    (SessionStatus.OPEN, "close"): SessionStatus.CLOSING,
    (SessionStatus.OPEN, "stay"): SessionStatus.OPEN,
    (SessionStatus.OPEN, "journal_broke"): SessionStatus.BROKEN,
    (SessionStatus.OPEN, "lost"): SessionStatus.LOST,
    (SessionStatus.OPEN, "release"): SessionStatus.FREE,
    (SessionStatus.BROKEN, "close"): SessionStatus.CLOSING_BROKEN,
    (SessionStatus.BROKEN, "stay"): SessionStatus.BROKEN,
    (SessionStatus.BROKEN, "journal_broke"): SessionStatus.BROKEN,
    (SessionStatus.BROKEN, "release"): SessionStatus.FREE,  # it is opened again, which may fail
    (SessionStatus.LOST, "close"): SessionStatus.LOST,  # no new work begins in it anyway
    (SessionStatus.LOST, "stay"): SessionStatus.LOST,
    (SessionStatus.LOST, "lost"): SessionStatus.LOST,
    (SessionStatus.LOST, "release"): SessionStatus.FREE,
    (SessionStatus.CLOSING, "close"): SessionStatus.CLOSING,
    (SessionStatus.CLOSING, "stay"): SessionStatus.OPEN,  # it has uncertain effects, or was not deleted
    (SessionStatus.CLOSING, "journal_broke"): SessionStatus.CLOSING_BROKEN,
    (SessionStatus.CLOSING, "lost"): SessionStatus.LOST,
    (SessionStatus.CLOSING, "release"): SessionStatus.CLOSED,
    (SessionStatus.CLOSING_BROKEN, "close"): SessionStatus.CLOSING_BROKEN,
    (SessionStatus.CLOSING_BROKEN, "stay"): SessionStatus.BROKEN,
    (SessionStatus.CLOSING_BROKEN, "journal_broke"): SessionStatus.CLOSING_BROKEN,
    (SessionStatus.CLOSING_BROKEN, "release"): SessionStatus.CLOSED,
    (SessionStatus.CLOSED, "close"): SessionStatus.CLOSED,
    (SessionStatus.CLOSED, "stay"): SessionStatus.FREE,  # another opening released it, and failed
    (SessionStatus.CLOSED, "release"): SessionStatus.CLOSED,
    # A session that this process does not own has nothing to end and nothing to release.
    (SessionStatus.READ_ONLY, "close"): SessionStatus.READ_ONLY,
    (SessionStatus.READ_ONLY, "stay"): SessionStatus.READ_ONLY,
    (SessionStatus.READ_ONLY, "release"): SessionStatus.READ_ONLY,
    (SessionStatus.OWNED_ELSEWHERE, "close"): SessionStatus.OWNED_ELSEWHERE,
    (SessionStatus.OWNED_ELSEWHERE, "stay"): SessionStatus.OWNED_ELSEWHERE,
    (SessionStatus.OWNED_ELSEWHERE, "release"): SessionStatus.OWNED_ELSEWHERE,
    (SessionStatus.OWNED_ELSEWHERE, "owner_gone"): SessionStatus.FREE,
    (SessionStatus.FREE, "close"): SessionStatus.FREE,
    (SessionStatus.FREE, "stay"): SessionStatus.FREE,
    (SessionStatus.FREE, "release"): SessionStatus.FREE,
}

CLOSING = frozenset({SessionStatus.CLOSING, SessionStatus.CLOSING_BROKEN, SessionStatus.CLOSED})
"""The states in which no new work begins because the session is closed."""
SHOWN_ONLY = frozenset({SessionStatus.LOST, SessionStatus.READ_ONLY, SessionStatus.OWNED_ELSEWHERE})
"""The states that have a reason to show."""


def first_status(owned: bool, read_only: ReadOnly | None) -> SessionStatus:
    """Return the state of a session that was just opened."""
    if owned:
        return SessionStatus.OPEN
    if read_only is None:
        return SessionStatus.FREE
    return SessionStatus.OWNED_ELSEWHERE if read_only.reason == "owned" else SessionStatus.READ_ONLY


def next_status(status: SessionStatus, event: SessionEvent) -> SessionStatus:
    """Return the state after the event."""
    assert (status, event) in NEXT, f"{event} in state {status.name}"
    return NEXT[status, event]
