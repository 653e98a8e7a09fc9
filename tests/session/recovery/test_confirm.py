"""What a confirm rests on: the finding that its caller saw, the same now, and durable before the last look (row A5, B3,
[I8]).

The uncertain write comes from an earlier process run, which its disk killed right before *result*. With `settle="ask"`
the opening settles nothing, so the user decides.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.ports.disk import Disk
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.faults import Operation, WatchedDisk
from tests.support.in_process_server import practice_server
from tests.support.redo import assert_refused, inspect_attempt, open_attempt, settlements
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]

T = TypeVar("T")


class HookedDisk(WatchedDisk):
    """Calls `hook` before each durable operation, once it is set."""

    def __init__(self) -> None:
        super().__init__(system_disk())
        self.hook: Callable[[Operation], None] | None = None

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if self.hook is not None:
            self.hook(operation)
        return act()


@asynccontextmanager
async def uncertain(place: Workspace, disk: Disk | None = None) -> AsyncIterator[tuple[Session, Attempt]]:
    """The session with its uncertain write."""
    async with practice_server(place, run=2, settle="ask", disk=disk) as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.uncertain
        yield session, attempt


def is_sync_of_the_file(operation: Operation) -> bool:
    return operation.verb == "sync" and operation.target.endswith("a.txt")


async def test_confirm_after_one_conflict_became_another_is_refused(place: Workspace) -> None:
    """A5, [I8]: both findings say *conflict*, and a confirm of the first settles nothing about the second."""
    async with uncertain(place) as (session, attempt):
        place.write("a.txt", "theirs\n")
        seen = await inspect_attempt(session, attempt)
        place.write("a.txt", "others\n")
        assert (
            "has changed since that inspection"
            in (await assert_refused(place, session, attempt, "confirm", seen.inspection_id)).message
        )
        assert attempt.uncertain
        assert settlements(place) == []


async def test_confirm_after_a_conflict_stayed_settles_by_the_user_s_word(place: Workspace) -> None:
    """A5: the same conflict, unchanged, is settled as confirmed by the user and never as checked."""
    async with uncertain(place) as (session, attempt):
        place.write("a.txt", "theirs\n")
        seen = await inspect_attempt(session, attempt)
        await resolve(session, ResolutionRequest(attempt.attempt_id, "confirm", inspection_id=seen.inspection_id))
        assert settlements(place) == [(attempt.attempt_id, "user_confirmed")]


async def test_confirm_of_a_finding_that_cannot_be_made_durable_is_refused(place: Workspace) -> None:
    """B3: *satisfied* that a power loss may undo proves nothing; the new inspection says *unknown*."""
    disk = HookedDisk()
    async with uncertain(place, disk) as (session, attempt):
        seen = await inspect_attempt(session, attempt)
        assert seen.check == "satisfied"

        def fail(operation: Operation) -> None:
            if is_sync_of_the_file(operation):
                raise OSError(errno.EIO, "Input/output error")

        disk.hook = fail
        refused = await assert_refused(place, session, attempt, "confirm", seen.inspection_id)
        assert "cannot be made durable" in refused.message
        assert attempt.check == "unknown"
        assert attempt.uncertain
        disk.hook = None
        again = await inspect_attempt(session, attempt)
        await resolve(session, ResolutionRequest(attempt.attempt_id, "confirm", inspection_id=again.inspection_id))
        assert settlements(place) == [(attempt.attempt_id, "checked_present")]


async def test_confirm_looks_after_it_made_the_finding_durable(place: Workspace) -> None:
    """B3, [I9]: a save during the sync is seen by the look after it; looked at first, it would be settled."""
    disk = HookedDisk()
    async with uncertain(place, disk) as (session, attempt):
        seen = await inspect_attempt(session, attempt)

        def save(operation: Operation) -> None:
            if is_sync_of_the_file(operation):
                place.write("a.txt", "saved meanwhile\n")

        disk.hook = save
        with pytest.raises(Refused) as refused:
            await resolve(session, ResolutionRequest(attempt.attempt_id, "confirm", inspection_id=seen.inspection_id))
        assert refused.value.kind == "inspectFirst"
        assert attempt.uncertain
        assert attempt.check == "conflict"


async def test_opening_checks_an_attempt_once_and_keeps_a_failed_sync(place: Workspace) -> None:
    """B3, I5: the first sync may have lost the data that a second one reports as kept; so the effect stays unknown."""
    failed: list[Operation] = []
    disk = HookedDisk()

    def fail_once(operation: Operation) -> None:
        if is_sync_of_the_file(operation) and not failed:
            failed.append(operation)
            raise OSError(errno.EIO, "Input/output error")

    disk.hook = fail_once
    async with practice_server(place, run=2, disk=disk) as harness:
        _, attempt = await open_attempt(harness)
        assert len(failed) == 1
        assert attempt.uncertain
        assert attempt.check == "unknown"
    assert settlements(place) == []
