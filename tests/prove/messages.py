"""L1, continued: a message to an outside service is sent again, after a kill at each operation of the first try.

The service knows idempotency keys (tests/support/sink.py). The next process meets, one after the other, a verifier that
cannot tell, one that says "absent" and fences nothing, a living process of the first try, and finally fenced absence.
Only then may the message be sent again (rows F2-F4, N2, [I10]): once, with the same key, and at most one message
arrives. Then power is lost at every moment of that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.prove.decisions import written_by
from tests.prove.kills import scratch
from tests.prove.power_loss import Prover
from tests.prove.simulated_server import SCENE, SESSION, first_tree, simulated_server
from tests.prove.tally import Tally
from tests.prove.truth import Truth, truths
from tests.support.fakes import FakeProcesses
from tests.support.sim_disk import SimDisk
from tests.support.sink import SendTool, Sink

PROMPT = 'send {"text": "hello"}'


@attrs.define
class Outside:
    """The service of one history, and the tool that sends to it."""

    folder: Path
    tool: SendTool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.tool = SendTool(Sink(self.folder))

    @property
    def arrived(self) -> list[str]:
        return self.tool.sink.arrived()


def try_again(tally: Tally) -> None:
    """`states` counts kills of the first try, and the states that a power loss leaves of the second."""
    folder = scratch()
    try:
        for arrives in (False, True):
            disk = anyio.run(_first_try, Outside(folder / "service"), arrives)
            known = truths(disk.log)
            started = next(at for at, entry in enumerate(disk.log) if b'"kind":"started"' in written_by(entry))
            for prefix in range(started + 1, len(disk.log) + 1):
                where = f"a message that {'arrived' if arrives else 'was lost'}, killed after operation {prefix}"
                marks = sum(entry[0] == "mark" for entry in disk.log[:prefix])
                _one(folder, arrives, SimDisk.killed_after(disk, prefix), known[marks], tally, where)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _first_try(outside: Outside, arrives: bool) -> SimDisk:
    disk = SimDisk(first_tree())
    outside.tool.fails = "after" if arrives else "before"
    async with simulated_server(disk, tools=[outside.tool]) as server:
        await server.create()
        await server.turn(PROMPT)
    return disk


def _one(folder: Path, arrived: bool, disk: SimDisk, truth: Truth, tally: Tally, where: str) -> None:
    outside = Outside(folder / "service")
    begun = len(disk.log)
    tally.states += 1
    try:
        anyio.run(_second_try, outside, arrived, disk, tally, where)
    except Exception as error:
        tally.violation(f"a retry raises {type(error).__name__}: {error}", where)
        return
    Prover(SCENE, tally).every_state(disk, truth, where, "sector", after=begun, product=12, depth=3)


async def _second_try(outside: Outside, arrived: bool, disk: SimDisk, tally: Tally, where: str) -> None:
    processes = FakeProcesses()
    async with simulated_server(disk, 2, settle="ask", tools=[outside.tool], processes=processes) as server:
        await server.registry.open(SESSION, 100)
        session = await server.main_session()
        for attempt in session.ledger.uncertain():
            if arrived:
                outside.tool.deliver(attempt.key)
            await _refused_unless_fenced(outside, session, attempt, processes, tally, where)
            if await _retried(session, attempt) == arrived:
                tally.violation("a fenced absent message is not retried, or a present one is", where)
            if await _retried(session, attempt) and not arrived:
                tally.violation("a superseded attempt is retried", where)
            if outside.arrived != [attempt.key]:
                tally.violation("a message arrived twice, or under another key, or not at all", where)


async def _refused_unless_fenced(
    outside: Outside, session: Session, attempt: Attempt, processes: FakeProcesses, tally: Tally, where: str
) -> None:
    """Unknown, absent and not fenced, fenced while a process of it lives, another scope: none of these is retried."""
    tool, before = outside.tool, outside.arrived
    tool.unreachable = True
    refused = [not await _retried(session, attempt)]
    tool.unreachable, tool.fences = False, False
    refused.append(not await _retried(session, attempt))
    tool.fences = True
    processes.survivors_of[attempt.attempt_id] = [OrphanProcess(77, "start-77", "curl")]
    refused.append(not await _retried(session, attempt))
    processes.survivors_of.clear()
    tool.paths = ("/elsewhere",)
    refused.append(not await _retried(session, attempt))
    tool.paths = None
    if not all(refused) or outside.arrived != before:
        tally.violation("something was retried that is not absent and fenced", where)


async def _retried(session: Session, attempt: Attempt) -> bool:
    """Whether it was retried, after an inspection."""
    try:
        looked = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
        assert looked.inspection is not None
        wanted = ResolutionRequest(attempt.attempt_id, "retry", inspection_id=looked.inspection.inspection_id)
        await resolve(session, wanted)
    except Refused:
        return False
    return True
