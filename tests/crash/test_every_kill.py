"""The process is killed at every durable operation of a turn, before, after and halfway, and the session is opened
again.

A process run is a fork that dies by SIGKILL at the n-th operation of its disk; n counts from 1 until a run ends
unharmed. The kills inside recovery, in the middle of a command, and during a question to the user are the same with
another process run. tests/crash/promises.py has what must hold.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.recovery.tables import SettleSetting
from steadyhand.domain.views.questions import Choice, PermissionQuestion
from tests.crash.promises import (
    COMMAND,
    COUNTER,
    HAND,
    PROMPT,
    SESSION,
    WORDS,
    Left,
    Opened,
    Scenario,
    keeps_promises,
    later_runs,
    lay_out,
    opened,
    play_scenario,
    runs_without_session,
)
from tests.support.editor import ScriptedEditor
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

T = TypeVar("T")
operations_min = 50
"""The least number of durable operations of a scenario; fewer would mean that not all were killed."""
recovery_points_min = 60


@attrs.frozen
class Point:
    """One point to die at."""

    number: int
    when: When
    what: str = ""

    def __str__(self) -> str:
        return f"killed {self.when} operation {self.number}: {self.what}"


def killed_at(
    workspace: Workspace, point: Point | None, scenario: Scenario = WORDS
) -> ForkResult[tuple[str, list[Operation]]]:
    """Play the scenario, killed at a point: how it ended, and every durable operation."""

    async def run() -> tuple[str, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk = counting if point is None else KillingDisk(counting, point.number, point.when)
        async with scenario.server(workspace, 1, disk=disk) as server:
            reason = await play_scenario(server, scenario)
        return reason, counting.operations

    return run_in_fork(run)


def whole_scenario(folder: Path, scenario: Scenario = WORDS) -> list[Operation]:
    """Every durable operation of the scenario up to its end; it ends well and does each thing once."""
    workspace = lay_out(Workspace.under(folder / "unharmed"), scenario)
    died = killed_at(workspace, None, scenario)
    assert died.value is not None
    reason, operations = died.value
    assert reason == "done"
    assert workspace.files() == scenario.last_files
    # What follows the journal's last record (a summary for the list) is not always the same.
    last = max(operation.number for operation in operations if operation.target.endswith("/journal.jsonl"))
    return operations[:last]


EVERY_WAY: tuple[When, ...] = ("before", "half", "after")
NOT_BEFORE: tuple[When, ...] = ("half", "after")
"""Before an operation the disk is the same as after the previous one; only what is not on disk may differ."""


def variants(number: int, operation: Operation | None, ways: Sequence[When]) -> list[Point]:
    """The ways to die at an operation; only a write has a half."""
    halves = operation is not None and operation.verb == "write"
    return [Point(number, when, str(operation)) for when in ways if halves or when != "half"]


@pytest.mark.parametrize(
    ("scenario", "settle"), [(WORDS, "checked"), (WORDS, "ask"), (HAND, "checked")], ids=["words", "words-ask", "hand"]
)
def test_turn_killed_at_every_operation_keeps_all_promises(
    in_memory: Path, scenario: Scenario, settle: SettleSetting
) -> None:
    """Nothing happens twice, nothing that may have run is called not run, and every file is old or new. What can be
    checked is settled (or stays uncertain, with `ask`). Nothing is left behind, opening again writes nothing, and the
    work goes on; the resent prompt runs only if it was never durable. A move killed between its two paths is named so.
    A background command is reported, is no uncertain effect and can be stopped.

    Rows J2, J3, J4, J8, C1-C4, C7, C8, D1, W2, W3, W4, W8, W9, B3, E5, T1; [I1] [I3] [I4] [I5] [I9] [I16]; cases 20,
    61, 98.
    """
    _killed_everywhere(in_memory, settle, EVERY_WAY, scenario)


@pytest.mark.parametrize("scenario", [WORDS, HAND], ids=["words", "hand"])
def test_turn_killed_at_every_operation_on_a_real_disk_does_too(tmp_path: Path, scenario: Scenario) -> None:
    """The same on a real disk (rows J4, C1, C2; [I1])."""
    _killed_everywhere(tmp_path, "checked", NOT_BEFORE, scenario)


def _first_of(scenario: Scenario, operations: Sequence[Operation]) -> int:
    """What comes before the first call is the same in every scenario, and is killed in one of them."""
    if scenario is WORDS:
        return 1
    return next(operation.number for operation in operations if "assistant" in operation.kinds)


def _killed_everywhere(folder: Path, settle: SettleSetting, ways: Sequence[When], scenario: Scenario) -> None:
    operations = whole_scenario(folder, scenario)
    assert len(operations) >= operations_min
    points, first = 0, _first_of(scenario, operations)
    for number in itertools.count(first):
        operation = operations[number - 1] if number <= len(operations) else None
        for point in variants(number, operation, ways):
            workspace = lay_out(Workspace.under(folder / f"{number}-{point.when}"), scenario)
            died = killed_at(workspace, point, scenario)
            if died.value is not None:
                assert died.value[0] == "done"
                assert number > len(operations), f"not {point}"
                assert points > len(operations[first:])
                return
            assert died.signal == signal.SIGKILL, point
            left = Left.of(workspace, has_jobs=scenario.has_jobs)
            after_this_death(workspace, left, str(point), settle, scenario=scenario)
            points += 1
            shutil.rmtree(workspace.base)


def after_this_death(
    workspace: Workspace,
    left: Left,
    point: str,
    settle: SettleSetting = "checked",
    run: int = 2,
    scenario: Scenario = WORDS,
) -> None:
    try:
        if not left.records:
            assert run_in_fork(lambda: runs_without_session(workspace, scenario)).value == scenario.last_files
            return
        later = run_in_fork(lambda: later_runs(workspace, settle, run, scenario)).value
        assert later is not None
        keeps_promises(left, later, settle, scenario)
    except AssertionError as broken:
        raise AssertionError(f"{point}\n{broken}") from broken


EDIT = "edited.txt"
DEATHS: dict[str, tuple[str, int, When]] = {
    "while the prompt is written": ('write {journal} "user"', 1, "half"),
    "started, and nothing done": ('write {journal} "started"', 3, "after"),
    "a temporary file, empty": (f"create .{EDIT}.", 1, "after"),
    "a temporary file, half written": (f"write .{EDIT}.", 1, "half"),
    "replaced, the old content beside it": (f"exchange .{EDIT}.", 1, "after"),
    "replaced, its result torn": ('write {journal} "result"', 3, "half"),
    "moved, and nothing synced": ("rename_to here.txt", 1, "after"),
    "displaced to be deleted": ("rename_new gone.txt .gone.txt.", 1, "after"),
    "a command was about to run": ('write {journal} "started"', 6, "after"),
    "a command has run, its result torn": ('write {journal} "result"', 6, "half"),
}
"""How it looked on disk → the operation to die at: words in the order of its name, and its number among those."""


def operation_of(operations: list[Operation], words: str, turn: int, when: When) -> Point:
    wanted = words.format(journal="journal.jsonl").split()
    found = [operation for operation in operations if _stands_in(wanted, str(operation))]
    assert len(found) >= turn, f"the scenario has no such operation: {words}"
    return Point(found[turn - 1].number, when, str(found[turn - 1]))


def _stands_in(words: list[str], name: str) -> bool:
    at = 0
    for word in words:
        at = name.find(word, at) + len(word)
        if at < len(word):
            return False
    return True


def test_recovery_killed_at_every_operation_reports_the_same(in_memory: Path) -> None:
    """A second kill at each operation of the opening after the first: everything holds as if it had not happened (rows
    C4, B3, W9, J8; [I5] [I4])."""
    operations = whole_scenario(in_memory)
    points = 0
    for scenario, death in DEATHS.items():
        workspace = lay_out(Workspace.under(in_memory / f"death-{points}"))
        assert killed_at(workspace, operation_of(operations, *death)).signal == signal.SIGKILL
        left, copy = Left.of(workspace), workspace.keep("left")
        opening = _opening(workspace, None)
        assert opening.value is not None
        for operation in opening.value:
            for point in variants(operation.number, operation, NOT_BEFORE):
                workspace.put_back(copy)
                assert _opening(workspace, point).signal == signal.SIGKILL
                after_this_death(workspace, left, f"{scenario}; then, while opening, {point}", run=3)
                points += 1
    assert points > recovery_points_min


def _opening(workspace: Workspace, point: Point | None) -> ForkResult[list[Operation]]:
    """The process run after a kill, killed at a point; every durable operation of the opening."""

    async def run() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk = counting if point is None else KillingDisk(counting, point.number, point.when)
        async with practice_server(workspace, run=2, disk=disk) as server:
            await server.open(SESSION)
        return list(counting.operations)

    return run_in_fork(run)


def test_call_killed_during_its_question_did_not_run(in_memory: Path) -> None:
    """The question comes before the start: the call did not run, and may be proposed and allowed again, as another
    attempt (rows C1, C5; case 83)."""
    workspace = lay_out(Workspace.under(in_memory / "asked"))

    def die(_: PermissionQuestion) -> Choice | None:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process outlived its SIGKILL")

    async def asked() -> None:
        async with practice_server(workspace, mode="ask", editor=ScriptedEditor(permission=die)) as server:
            await server.say(await server.create(), 'write old.txt with "changed\\n"', PROMPT)

    async def allowed() -> tuple[Opened, str, Ledger]:
        async with practice_server(workspace, run=2, mode="ask") as server:
            first = await opened(server)
            ended = await server.say(SESSION, 'write old.txt with "changed\\n"', "prompt-2")
            return first, ended.reason, server.ledger(SESSION)

    assert run_in_fork(asked).signal == signal.SIGKILL
    assert Left.of(workspace).having("started") == set()
    assert workspace.files()["old.txt"] == "old\n"
    first, reason, ledger = value_of(run_in_fork(allowed))
    assert list(first.states.values()) == ["returned", "notRun"], "the model has read the file, and not written it"
    assert first.snapshot.calls == ()
    assert reason == "done"
    assert workspace.files()["old.txt"] == "changed\n"
    assert [attempt.result.outcome for attempt in ledger.attempts.values() if attempt.result] == [
        "interrupted_before_execution",
        "returned",
    ]


def test_crash_that_kills_the_server_is_unknown_and_not_repeated(in_memory: Path) -> None:
    """A command is done, and an opaque call kills the server: that one is unknown, uncertain, and never runs again
    (rows C2, C3, F4, O1, P5; [I3])."""
    workspace = lay_out(Workspace.under(in_memory / "command"))
    prompt = f"run {COMMAND}\ncrash"

    async def ended_by_it() -> str:
        async with practice_server(workspace) as server:
            return (await server.say(await server.create(), prompt, PROMPT)).reason

    assert run_in_fork(ended_by_it).signal == signal.SIGKILL
    left = Left.of(workspace)
    assert left.files[COUNTER] == WORDS.after[COUNTER]
    assert len(left.having("started") - left.having("result")) == 1
    later = value_of(run_in_fork(lambda: later_runs(workspace, scenario=attrs.evolve(WORDS, prompt=prompt))))
    _, attempt = later.opened.ledger.attempts.values()
    assert attempt.tool == "crash"
    assert list(later.opened.states.values()) == ["returned", "unknown"]
    assert attempt.uncertain
    assert attempt.check is None
    assert [uncertain.title for uncertain in later.opened.snapshot.calls] == [attempt.title]
    assert later.journals == [later.opened.journal] * 2
    assert later.resent is None
    assert later.last_files[COUNTER] == WORDS.after[COUNTER]


def value_of(died: ForkResult[T]) -> T:
    assert died.signal is None
    assert died.value is not None
    return died.value
