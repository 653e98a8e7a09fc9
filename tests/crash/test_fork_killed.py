"""A fork is killed at every durable operation, and at every operation that fails: it is whole or not there (row S3).

The first process run has a turn that writes a file and a command whose reply is stored beside the journal, and is
killed before the result of a last one. The second forks the session and dies by SIGKILL. The third lists what is left,
opens it and forks again.
"""

from __future__ import annotations

import errno
import signal
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.model.transcript import outgoing_messages
from steadyhand.ports.disk import Disk
from steadyhand.session.service.fork import fork
from tests.crash.test_undo_killed import points
from tests.support.faults import CountingDisk, FaultDisk, KillingDisk, Operation, When, carries
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

PROMPT = "write a.txt with text\nrun seq 1 9000\nrun echo last > b.txt"


@attrs.frozen
class Found:
    """What the run after the kill finds."""

    sessions: list[str]
    messages: list[str]  # of each listed session but the origin: what goes to a model
    origins: list[int]  # how many unresolved attempts each names
    outputs: list[int]  # sizes of the stored replies of each
    refused: list[str]  # records that may not stand where they are
    left: list[str]  # folders beside, after the next fork
    again: str  # what goes to a model from that one


def laid(folder: Path) -> Workspace:
    """The origin after its kill."""
    workspace = Workspace.under(folder)
    kill_in_turn(workspace, PROMPT, lambda one: carries("result")(one) and (workspace.root / "b.txt").exists())
    return workspace


def forking(workspace: Workspace, number: int, when: When) -> ForkResult[list[Operation]]:
    """The second run, killed at a point (0: unharmed)."""

    async def run() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with practice_server(workspace, run=2, disk=disk) as server:
            await fork(server.registry, SESSION, None, None)
            return counting.operations[: counting.count]

    return run_in_fork(run)


async def sent(server: InProcessServer, session_id: str) -> str:
    return repr(outgoing_messages((await server.opened(session_id)).ledger))


def after_death(workspace: Workspace) -> Found:
    async def run() -> Found:
        async with practice_server(workspace, run=3) as server:
            views = await server.registry.list_sessions()
            forks = [view.session_id for view in views if view.session_id != SESSION]
            messages = [await sent(server, one) for one in forks]
            ledgers = [server.ledger(one) for one in forks]
            folders = [workspace.session_directory(one) / "outputs" for one in forks]
            again = await fork(server.registry, SESSION, None, None)
            left = [path.name for path in (workspace.state / "sessions").iterdir() if path.name.startswith(".")]
            return Found(
                [view.session_id for view in views],
                messages,
                [len(one.origins[0].attempts) for one in ledgers],
                [path.stat().st_size for folder in folders for path in folder.iterdir()],
                [text for one in ledgers for text in one.refused],
                left,
                await sent(server, again.session_id),
            )

    found = run_in_fork(run).value
    assert found is not None
    return found


def test_fork_killed_anywhere_is_whole_or_not_there(in_memory: Path) -> None:
    """S3, [I4] [I5]: whatever is listed has every message, its reply beside and its origin's doubt; what is not whole
    is not listed, and the next fork clears it away."""
    workspace = laid(in_memory / "place")
    copy = workspace.keep("left")
    whole = forking(workspace, 0, "before").value
    assert whole is not None
    expected = after_death(workspace)
    assert len(expected.sessions) == 2
    assert expected.origins == [1]
    assert len(expected.outputs) == 1
    counts: set[int] = set()
    for number, when, point in points(0, whole):
        workspace.put_back(copy)
        assert forking(workspace, number, when).signal == signal.SIGKILL, point
        found = after_death(workspace)
        assert len(found.sessions) in (1, 2), point
        assert found.messages == expected.messages[: len(found.messages)], point
        assert found.origins == expected.origins[: len(found.origins)], point
        assert found.outputs == expected.outputs[: len(found.messages)], point
        assert found.refused == [], point
        assert found.left == [], point
        assert found.again == expected.again, point
        counts.add(len(found.sessions))
    assert counts == {1, 2}


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_fork_that_fails_anywhere_leaves_nothing_half(in_memory: Path, error: int) -> None:
    """S3, J7: each operation of the making fails once. The fork is refused, or made; nothing lies beside it, and one
    that is listed is whole."""
    workspace = laid(in_memory / "place")
    copy = workspace.keep("left")
    whole = forking(workspace, 0, "before").value
    assert whole is not None
    making = [one.number for one in whole if ".fork" in one.target or one.target.endswith("sessions")]
    expected = after_death(workspace)
    refusals = 0
    for number in making:
        workspace.put_back(copy)

        async def run(number: int = number) -> str | None:
            async with practice_server(workspace, run=2, disk=FaultDisk(system_disk(), number, error)) as server:
                try:
                    await fork(server.registry, SESSION, None, None)
                except Refused as refused:
                    return refused.kind
            return None

        kind = run_in_fork(run).value
        assert kind in (None, "journalBroken"), number
        refusals += kind is not None
        found = after_death(workspace)
        assert found.messages == expected.messages[: len(found.messages)], number
        assert len(found.messages) <= 1, number
        assert found.left == [], number
    assert refusals >= 5
