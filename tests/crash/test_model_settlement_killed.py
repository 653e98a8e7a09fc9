"""The model settles an uncertain command itself; it is killed at every durable operation, and opened again (row B5).

The first process run dies in the middle of a command. In the second one, one turn writes (held back), inspects,
proposes a settlement and writes again; it dies by SIGKILL somewhere in that. The third run opens what is left: its
answers must agree with the raw records, and the model can settle again. A fourth opening finds nothing new.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.views.types import CallState
from steadyhand.ports.disk import Disk
from tests.crash.promises import SESSION
from tests.crash.test_redo_killed import points
from tests.journal import second_reader
from tests.support.editor import ScriptedEditor
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.journals import whole_records
from tests.support.model import either_models
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

COUNTER = "counter.txt"
COMMAND = f"run echo ran >> {COUNTER}\ncrash"
WRITE = 'write_file {"path": "a.txt", "content": "new"}'
WAY_OUT = "\n".join(
    [
        WRITE,
        'inspect_effect {"attemptId": "<attempt>"}',
        'settle_effect {"attemptId": "<attempt>", "inspectionId": "<inspection>", "action": "waive", "evidence": "ok"}',
        WRITE,
    ]
)


def nobody_answers() -> ScriptedEditor:
    """An editor that leaves the question of the held-back call open, and allows whatever needs permission."""
    return ScriptedEditor(held_back=lambda _: None)


@attrs.frozen
class Found:
    """What the third run finds, and what it makes of it."""

    states: list[tuple[str, CallState]]  # tool and state of each call, in order
    uncertain: list[str]  # tools
    refused: list[str]
    files: dict[str, str]
    opening_again_writes: bool
    last_files: dict[str, str]


def settling_run(workspace: Workspace, number: int, when: When) -> ForkResult[tuple[int, list[Operation]]]:
    """The second run, killed at a point (0: unharmed): the number of operations before its turn, and all operations."""

    async def run() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with practice_server(
            workspace, run=2, disk=disk, models=either_models, editor=nobody_answers()
        ) as server:
            await server.open(SESSION)
            first = counting.count
            assert (await server.say(SESSION, WAY_OUT, "prompt-2")).reason == "done"
            last = counting.count
        return first, counting.operations[:last]

    return run_in_fork(run)


def after_death(workspace: Workspace) -> Found:
    async def run() -> Found:
        async with practice_server(workspace, run=3, models=either_models, editor=nobody_answers()) as server:
            view = await server.open(SESSION)
            calls = [call for message in view.messages for call in message.calls or ()]
            ledger, files, journal = server.ledger(SESSION), workspace.files(), workspace.journal(SESSION)
            uncertain, refused = [one.tool for one in ledger.uncertain()], list(ledger.refused)
        async with practice_server(workspace, run=4, models=either_models, editor=nobody_answers()) as server:
            await server.open(SESSION)
            again = workspace.journal(SESSION) != journal
            assert (await server.say(SESSION, WAY_OUT, "prompt-3")).reason == "done"
        states = [(call.tool, call.state) for call in calls]
        return Found(states, uncertain, refused, files, again, workspace.files())

    value = run_in_fork(run).value
    assert value is not None
    return value


def test_settlement_by_the_model_killed_anywhere_counts_only_if_on_disk(in_memory: Path) -> None:
    """B5, A4, A5, B1, C1-C4, J2, J14, [I1] [I3] [I4] [I5] [I6]: the command is settled exactly if the model's
    settlement is on disk, with its inspection before it and a start of its own. Nothing is written before that, nothing
    runs twice, and the model can settle again."""
    workspace = Workspace.under(in_memory / "place")

    async def dies() -> None:
        async with practice_server(workspace, models=either_models, editor=nobody_answers()) as server:
            await server.say(await server.create(), COMMAND)

    assert run_in_fork(dies).signal == signal.SIGKILL
    copy = workspace.keep("left")
    whole = settling_run(workspace, 0, "before").value
    assert whole is not None
    seen: Counter[bool] = Counter()
    for number, when, point in points(*whole):
        workspace.put_back(copy)
        assert settling_run(workspace, number, when).signal == signal.SIGKILL, point
        records = whole_records(workspace.journal(SESSION))
        torn = second_reader.read(workspace.journal(SESSION)).torn_start
        found = after_death(workspace)
        try:
            seen[_judged(workspace, records, torn, found)] += 1
        except AssertionError as broken:
            raise AssertionError(f"{point}\n{found}\n{broken}") from broken
    assert min(seen[True], seen[False]) > 5
    shutil.rmtree(copy)


def _judged(workspace: Workspace, records: list[dict[str, object]], torn: str | None, found: Found) -> bool:
    """Whether it was settled. `torn`: the beginning of the attempt id in a half-written start at the end, which counts
    as a start (case 134)."""
    kinds = [(record["kind"], record.get("settled")) for record in records]
    settled = ("settlement", "waived") in kinds
    started = {str(record["callId"]) for record in records if record["kind"] == "started"}
    ended = {str(record["callId"]) for record in records if record["kind"] == "result"}
    if settled:
        before = kinds[: kinds.index(("settlement", "waived"))]
        assert ("inspection", None) in before
        assert len(started) >= 2, "it settled without a start of its own [I1]"
    assert ("crash" in found.uncertain) == (not settled)
    assert settled or "a.txt" not in found.files, "it wrote while the command held it back [I6]"
    assert found.files[COUNTER] == "ran" + os.linesep
    assert found.last_files == {COUNTER: "ran\n", "a.txt": "new"}
    assert found.refused == []
    assert not found.opening_again_writes
    calls = [record for record in records if record["kind"] == "intent" and record["tool"] == "settle_effect"]
    for call in calls:
        state = next(state for tool, state in found.states if tool == "settle_effect")
        ran = call["callId"] in started or (torn is not None and str(call["attemptId"]).startswith(torn))
        assert state == ("returned" if call["callId"] in ended else "unknown" if ran else "notRun")
    reading = second_reader.read(workspace.journal(SESSION))
    assert (reading.damaged, reading.breaks) == (0, set())
    return settled
