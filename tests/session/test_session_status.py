"""The states of an open session: every pair of state and event, compared with the allowed transitions as sentences."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.domain.views.types import LockHolder, ReadOnly
from steadyhand.session.session_status import (
    CLOSING,
    NEXT,
    SHOWN_ONLY,
    SessionEvent,
    SessionStatus,
    first_status,
    next_status,
)

EVENTS: tuple[SessionEvent, ...] = get_args(SessionEvent)

ALLOWED = """
open on close is closing
open on stay is open
open on journal_broke is broken
open on lost is lost
open on release is free
broken on close is closing_broken
broken on stay is broken
broken on journal_broke is broken
broken on release is free
lost on close is lost
lost on stay is lost
lost on lost is lost
lost on release is free
closing on close is closing
closing on stay is open
closing on journal_broke is closing_broken
closing on lost is lost
closing on release is closed
closing_broken on close is closing_broken
closing_broken on stay is broken
closing_broken on journal_broke is closing_broken
closing_broken on release is closed
closed on close is closed
closed on stay is free
closed on release is closed
read_only on close is read_only
read_only on stay is read_only
read_only on release is read_only
owned_elsewhere on close is owned_elsewhere
owned_elsewhere on stay is owned_elsewhere
owned_elsewhere on release is owned_elsewhere
owned_elsewhere on owner_gone is free
free on close is free
free on stay is free
free on release is free
"""


def sentence(status: SessionStatus, event: SessionEvent) -> str | None:
    """The transition as a sentence, or None where the table does not list it."""
    after = NEXT.get((status, event))
    return None if after is None else f"{status.name.lower()} on {event} is {after.name.lower()}"


def reachable(start: SessionStatus) -> set[SessionStatus]:
    """The states that some row of events leads to from a state, with the state itself."""
    found, new = {start}, {start}
    while new:
        new = {after for (status, _), after in NEXT.items() if status in new} - found
        found |= new
    return found


def test_session_states_allow_exactly_the_listed_transitions() -> None:
    """Rows J6, J11, cases 161, 162: over all pairs of state and event, the allowed transitions are exactly this
    list."""
    found = [line for pair in itertools.product(SessionStatus, EVENTS) if (line := sentence(*pair)) is not None]
    assert sorted(found) == sorted(ALLOWED.strip().splitlines())


@pytest.mark.parametrize(("status", "event"), list(itertools.product(SessionStatus, EVENTS)))
def test_session_event_that_is_not_listed_is_a_defect(status: SessionStatus, event: SessionEvent) -> None:
    """The table answers for every pair: with the next state, or with an assertion."""
    if (status, event) in NEXT:
        assert next_status(status, event) is NEXT[status, event]
    else:
        with pytest.raises(AssertionError):
            next_status(status, event)


def test_broken_session_never_records_again() -> None:
    """[I12], case 161: no event leads from a broken journal to a state that records; the session has to be opened
    again."""
    assert SessionStatus.OPEN not in reachable(SessionStatus.LOST)
    assert SessionStatus.OPEN not in reachable(SessionStatus.BROKEN)
    assert SessionStatus.OPEN not in reachable(SessionStatus.CLOSING_BROKEN)


def test_session_that_is_not_owned_never_records() -> None:
    """Row J11, [I15]: without the lock no event leads to a state that records."""
    for status in (*SHOWN_ONLY, SessionStatus.FREE, SessionStatus.CLOSED):
        assert SessionStatus.OPEN not in reachable(status)


def test_every_session_state_is_reached() -> None:
    """Each state is the first one of some session, or follows from one."""
    firsts = {SessionStatus.OPEN, SessionStatus.READ_ONLY, SessionStatus.OWNED_ELSEWHERE, SessionStatus.FREE}
    assert set().union(*map(reachable, firsts)) == set(SessionStatus)
    assert reachable(SessionStatus.CLOSED) == {SessionStatus.CLOSED, SessionStatus.FREE}
    assert SessionStatus.CLOSED in CLOSING


@pytest.mark.parametrize(
    ("owned", "read_only", "status"),
    [
        (True, None, SessionStatus.OPEN),
        (False, None, SessionStatus.FREE),
        (False, ReadOnly("disk", "The disk is full."), SessionStatus.READ_ONLY),
        (False, ReadOnly("newer", "Update."), SessionStatus.READ_ONLY),
        (False, ReadOnly("damaged", "Nothing can be read."), SessionStatus.READ_ONLY),
        (False, ReadOnly("owned", "It is open there.", LockHolder(1, "h", "t")), SessionStatus.OWNED_ELSEWHERE),
    ],
)
def test_opened_session_begins_in_the_state_of_its_reason(
    owned: bool, read_only: ReadOnly | None, status: SessionStatus
) -> None:
    """Rows J11, J13: who holds the lock, and why a session is only shown, give its first state."""
    assert first_status(owned, read_only) is status
