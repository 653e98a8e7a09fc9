"""A start that names or removes stored contents is killed at every durable operation (row K6).

The session has a kept change and a long reply in an old turn, which may go, and an unreviewed change, which may not.
Whatever the kill left, no journal was written, what is needed is there, and the next start goes on.
"""

from __future__ import annotations

import signal
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.ports.disk import Disk
from steadyhand.session.changes.review import Selection, keep, undo
from steadyhand.session.service import retention
from steadyhand.session.service.retention import apply_retention, count_retention
from tests.crash.test_undo_killed import points
from tests.support.fakes import FakeClock
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import SESSION
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

DAY_S = 86_400


@attrs.frozen
class Found:
    """What a later start finds and leaves."""

    damaged: int
    uncertain: int
    before: tuple[int, int]  # named and removed, as the kill left it
    after: tuple[int, int]  # the same after one more start
    stored: int  # checkpoints after it
    undone: str | None  # b.txt after its change was undone


def laid(folder: Path) -> Workspace:
    workspace = Workspace.under(folder)
    workspace.write("a.txt", "old\n")
    workspace.write("b.txt", "first\n")

    async def run() -> None:
        async with practice_server(workspace) as server:
            session = await server.session()
            await server.say(session, "replace old with new in a.txt\nrun seq 1 9000")
            await keep(session, session.epoch, Selection(every=True))
            await server.say(session, "replace first with second in b.txt")
            await server.say(session, "say later")

    run_in_fork(run)
    return workspace


def start(workspace: Workspace, day: float, run: int, number: int, when: When) -> ForkResult[list[Operation]]:
    """A start on that day, killed at a point (0: unharmed)."""

    async def first() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with practice_server(workspace, run=run, disk=disk) as server:
            clock = server.registry.context.clock
            assert isinstance(clock, FakeClock)
            clock.advance(day * DAY_S)
            await apply_retention(server.registry)
            return counting.operations[: counting.count]

    return run_in_fork(first)


def found_on(workspace: Workspace, day: float) -> Found:
    async def run() -> Found:
        async with practice_server(workspace, run=9) as server:
            context = server.registry.context
            assert isinstance(context.clock, FakeClock)
            context.clock.advance(day * DAY_S)
            before = count_retention(context)
            await apply_retention(server.registry)
            after = count_retention(context)
            session = await server.opened(SESSION)
            stored = len(list((workspace.session_directory(SESSION) / "checkpoints").iterdir()))
            await undo(session, session.epoch, Selection(every=True))
            return Found(
                session.damaged,
                len(session.ledger.uncertain()),
                (before.named, before.removed),
                (after.named, after.removed),
                stored,
                workspace.content("b.txt"),
            )

    found = run_in_fork(run).value
    assert found is not None
    return found


@pytest.mark.parametrize("removes", [False, True])
def test_start_killed_anywhere_removes_only_what_nobody_needs(
    in_memory: Path, monkeypatch: pytest.MonkeyPatch, removes: bool
) -> None:
    """K6, [I4] [I5]: a kill while it names, or while it removes. Names that were not written are given anew; a content
    that was removed is not missed; the unreviewed change can be undone."""
    monkeypatch.setattr(retention, "TURNS_KEPT", 1)
    monkeypatch.setattr(retention, "JOURNAL_BYTES_MIN", 0)
    workspace = laid(in_memory / "place")
    journal = workspace.journal(SESSION)
    if removes:
        start(workspace, 91, 2, 0, "before")
    copy = workspace.keep("left")
    day = 99.0 if removes else 91.0
    whole = start(workspace, day, 3, 0, "before").value
    assert whole is not None
    assert [one.verb for one in whole].count("unlink") == (2 if removes else 0)
    results: set[tuple[int, int]] = set()
    for number, when, point in points(0, whole):
        workspace.put_back(copy)
        assert start(workspace, day, 3, number, when).signal == signal.SIGKILL, point
        assert workspace.journal(SESSION) == journal, point
        found = found_on(workspace, day)
        assert (found.damaged, found.uncertain) == (0, 0), point
        assert found.stored == (1 if removes else 2), point
        assert found.undone == "first\n", point
        assert found.after in (((0, 0), (0, 1), (0, 2)) if removes else ((2, 0),)), point
        results.add(found.before)
    assert len(results) > 1
