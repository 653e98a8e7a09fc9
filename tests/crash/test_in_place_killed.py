"""A write in place, and its restore, killed at every durable operation, before, halfway and after (row W11).

A kill in the middle leaves a mix of old and new under every name of the file. No opening may call that old, new or not
run, and the old bytes can be restored through the same inode.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.recovery.tables import SettleSetting
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from tests.support.faults import CountingDisk, KillingDisk, Operation, When, on
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.redo import inspect_attempt, redo
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

OLD, NEW, MIX = "old line\n", "a new and longer line\n", "a new aline\n"
PROMPT = f'write a.txt with "{NEW[:-1]}\\n"'
NAMES = ("a.txt", "b.txt")


def lay_out(folder: Path, content: str = OLD) -> Workspace:
    workspace = Workspace.under(folder)
    workspace.write("a.txt", content)
    os.link(workspace.root / "a.txt", workspace.root / "b.txt")
    return workspace


def content_of(workspace: Workspace) -> str:
    first, second = ((workspace.root / name).read_text() for name in NAMES)
    assert first == second, "both names are one file"
    assert set(workspace.files()) == set(NAMES), "nothing is left beside it"
    return first


def points(operations: list[Operation]) -> Iterator[tuple[Operation, When]]:
    for operation in operations:
        for when in ("before", "half", "after"):
            if when != "half" or operation.verb == "write":
                yield operation, when


def written(workspace: Workspace, point: tuple[Operation, When] | None) -> ForkResult[list[Operation]]:
    """The turn that writes in place, killed at a point; its operations from the start of the call on."""

    async def run() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk = counting if point is None else KillingDisk(counting, point[0].number, point[1])
        async with practice_server(workspace, disk=disk) as server:
            assert await server.create() == SESSION
            assert (await server.say(SESSION, PROMPT)).reason == "done"
        begun = next(at for at, one in enumerate(counting.operations) if "assistant" in one.kinds)
        last = max(at for at, one in enumerate(counting.operations) if "result" in one.kinds)
        return counting.operations[begun : last + 1]

    return run_in_fork(run)


@pytest.mark.parametrize("settle", ["checked", "ask"])
def test_write_in_place_killed_at_every_operation_is_called_what_it_is(in_memory: Path, settle: SettleSetting) -> None:
    """W11, W2, C1-C3, I3, I4: not run only without a start; otherwise unknown, and the check says old, new or conflict.
    Opening changes nothing, and a conflict is restored in place.
    """
    unharmed = lay_out(in_memory / "unharmed")
    operations = written(unharmed, None).value
    assert operations is not None
    assert content_of(unharmed) == NEW
    checks = set()
    for operation, when in points(operations):
        workspace = lay_out(in_memory / f"{operation.number}-{when}")
        inode = (workspace.root / "a.txt").stat().st_ino
        assert written(workspace, (operation, when)).signal == signal.SIGKILL, operation
        left = content_of(workspace)

        async def reopened(workspace: Workspace = workspace, left: str = left) -> str | None:
            async with practice_server(workspace, run=2, settle=settle) as server:
                await server.open(SESSION)
                assert content_of(workspace) == left, "opening changes nothing"
                found = await judged(server, left, settle)
                if found == "conflict":
                    (attempt,) = server.ledger(SESSION).uncertain()
                    await redo(server.registry.sessions[SESSION], attempt, "restore")
                    assert content_of(workspace) == OLD
                return found

        found = run_in_fork(reopened)
        assert found.signal is None, f"{when} {operation}"
        checks.add(found.value)
        assert (workspace.root / "a.txt").stat().st_ino == inode
        shutil.rmtree(workspace.base)
    assert checks == {None, "unchanged", "conflict", "satisfied"}


async def judged(server: InProcessServer, left: str, settle: SettleSetting) -> str | None:
    """What the session says of its one effect must fit the bytes; the check, or None where it did not start.

    The model reads the file first; that reading was answered, or is called interrupted [C7].
    """
    attempts = []
    for one in server.ledger(SESSION).attempts.values():
        if one.tool == "write_file":
            attempts.append(one)
        else:
            assert one.tool == "read_file"
            assert one.result is None or one.result.outcome == "interrupted"
            assert not one.uncertain
    if not attempts:
        assert left == OLD
        return None
    (attempt,) = attempts
    assert attempt.result is not None
    if attempt.started is None:
        assert left == OLD
        assert attempt.result.outcome in ("interrupted_before_execution", "not_started")
        return None
    if attempt.is_start_torn:
        assert left == OLD
        assert attempt.uncertain
        return None
    if attempt.result.outcome == "returned":
        assert left == NEW
        return attempt.check
    assert attempt.result.outcome == "unknown_after_restart"
    assert attempt.check == {OLD: "unchanged", NEW: "satisfied"}.get(left, "conflict")
    assert attempt.uncertain == (settle == "ask" or attempt.check == "conflict")
    return attempt.check


def test_restore_in_place_killed_at_every_operation_can_be_done_again(in_memory: Path) -> None:
    """W11, A5, I5, I8: a half-written file is restored, and the restore is killed too. It is never called done while
    the bytes are a mix, and another restore brings the old bytes back."""
    torn = lay_out(in_memory / "torn")
    kill_in_turn(torn, PROMPT, on("truncate", "a.txt"))
    (torn.root / "a.txt").write_text(MIX)
    copy = torn.keep("left")
    operations = restored(torn, None).value
    assert operations is not None
    assert content_of(torn) == OLD
    for operation, when in points(operations):
        torn.put_back(copy)
        os.unlink(torn.root / "b.txt")  # a copy has two files
        os.link(torn.root / "a.txt", torn.root / "b.txt")
        assert restored(torn, (operation, when)).signal == signal.SIGKILL, operation
        left = content_of(torn)

        async def again(left: str = left) -> None:
            async with practice_server(torn, run=3) as server:
                await server.open(SESSION)
                session = server.registry.sessions[SESSION]
                assert content_of(torn) == left
                for attempt in session.ledger.uncertain():
                    if attempt.restore_of is not None:
                        assert left not in (OLD, MIX), "what is old or unchanged is settled by its check"
                        seen = await inspect_attempt(session, attempt)
                        request = ResolutionRequest(attempt.attempt_id, "waive", inspection_id=seen.inspection_id)
                        await resolve(session, request)
                for attempt in session.ledger.uncertain():
                    await redo(session, attempt, "restore")
                assert content_of(torn) == OLD

        assert run_in_fork(again).signal is None, f"{when} {operation}"


def restored(workspace: Workspace, point: tuple[Operation, When] | None) -> ForkResult[list[Operation]]:
    """The next run restores the effect, killed at a point; its operations from the inspection on."""

    async def run() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk = counting if point is None else KillingDisk(counting, point[0].number, point[1])
        async with practice_server(workspace, run=2, disk=disk) as server:
            await server.open(SESSION)
            begun = len(counting.operations)
            session = server.registry.sessions[SESSION]
            (attempt,) = session.ledger.uncertain()
            await redo(session, attempt, "restore")
            return counting.operations[begun:]

    return run_in_fork(run)
