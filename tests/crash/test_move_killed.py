"""A turn that moves or deletes is killed at every durable operation and opened again: what recovery makes of it.

Each process run is a fork that dies by SIGKILL. The verdict must follow from the journal and the file tree alone:
without a start the call did not run; with a result the result is known; between them the call is unknown and checked
path by path.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.model.messages import CallProposed, Finish
from steadyhand.domain.records.record import Check
from steadyhand.session.inspection.inspect import finding_text, inspect_files, record_of
from tests.support.fakes import id_of
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.model import ScriptedModel
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

SESSION = id_of(1)  # the first id of the first run
OLD, OTHER = "the content\n", "what was there\n"
Tree = dict[str, str]


@attrs.frozen
class Scenario:
    tool: str
    fields: dict[str, object]
    before: Tree
    after: Tree

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel([CallProposed(self.tool, json.dumps(self.fields)), Finish("calls")])

    def lay(self, workspace: Workspace) -> Workspace:
        for name, content in self.before.items():
            workspace.write(name, content)
        return workspace


SCENARIOS = {
    "delete": Scenario("delete_file", {"path": "a.txt"}, {"a.txt": OLD}, {}),
    "move": Scenario("move_file", {"from": "a.txt", "to": "d/b.txt"}, {"a.txt": OLD}, {"d/b.txt": OLD}),
    "move over": Scenario(
        "move_file", {"from": "a.txt", "to": "b.txt", "overwrite": True},
        {"a.txt": OLD, "b.txt": OTHER}, {"b.txt": OLD},
    ),
}  # fmt: skip


@attrs.frozen
class Found:
    """What the run after a kill finds."""

    state: str | None  # the state of the call in the protocol; None: it was never proposed
    check: Check | None
    settled: str | None
    told: str  # by an inspection
    files: Tree
    again: bool  # opening once more wrote nothing


def killed(scenario: Scenario, workspace: Workspace, number: int, when: When) -> ForkResult[list[Operation]]:
    async def run() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with practice_server(workspace, disk=disk, models=scenario.model) as server:
            assert (await server.say(await server.create(), "go")).reason == "done"
        return counting.operations

    return run_in_fork(run)


def opened(workspace: Workspace) -> Found:
    async def run() -> Found:
        async with practice_server(workspace, run=2) as server:
            view = await server.open(SESSION)
            calls = [call for message in view.messages for call in message.calls or ()]
            attempts = list(server.ledger(SESSION).attempts.values())
            told = ""
            if attempts and attempts[0].uncertain:
                tool_context = server.registry.sessions[SESSION].tool_context
                inspected = inspect_files(tool_context, server.ledger(SESSION), attempts[0])
                record = record_of(server.registry.context.ids, attempts[0], inspected, "user")
                told = finding_text(attempts[0], record)
        journal = workspace.journal(SESSION)
        async with practice_server(workspace, run=3) as server:
            await server.open(SESSION)
        settlement = attempts[0].settlement if attempts else None
        return Found(
            calls[0].state if calls else None,
            attempts[0].check if attempts else None,
            settlement.settled if settlement else None,
            told,
            workspace.files(),
            workspace.journal(SESSION) == journal,
        )

    value = run_in_fork(run).value
    assert value is not None
    return value


def points(operations: list[Operation]) -> Iterator[tuple[int, When]]:
    """From the first record of the call on; what comes before is the same for every tool."""
    first = next(one.number for one in operations if "assistant" in one.kinds)
    for one in operations[first - 1 :]:
        whens: tuple[When, ...] = ("before", "half", "after") if one.verb == "write" else ("before", "after")
        for when in whens:
            yield one.number, when


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_move_or_delete_killed_anywhere_is_reported_path_by_path(tmp_path: Path, scenario: Scenario) -> None:
    """W2-W4, W8, W9, B3, C1, C2, C4 [I1, I3, I4]: every path is old or new, the check settles what agrees, and a move
    that was killed half-way is a conflict whose inspection says how each path is."""
    whole = killed(scenario, scenario.lay(Workspace.under(tmp_path / "whole")), 0, "before").value
    assert whole is not None
    seen: set[str | None] = set()
    for number, when in points(whole):
        workspace = scenario.lay(Workspace.under(tmp_path / f"{number}-{when}"))
        assert killed(scenario, workspace, number, when).signal == signal.SIGKILL
        found = opened(workspace)
        _judge(scenario, found, f"killed {when} {whole[number - 1]}: {found}")
        seen.add(found.check if found.state == "unknown" else found.state)
        shutil.rmtree(workspace.base)
    assert seen >= {"notRun", "unchanged", "satisfied", "returned"}
    assert ("conflict" in seen) == (scenario is SCENARIOS["move over"])


def _judge(scenario: Scenario, found: Found, point: str) -> None:
    assert found.again, point
    assert not [name for name in found.files if name.endswith(".steadyhand")], point
    match found.state:
        case None | "notRun":
            assert found.files == scenario.before, point
        case "returned":
            assert found.files == scenario.after, point
        case "unknown":
            expected = {
                "unchanged": (scenario.before, "checked_absent"),
                "satisfied": (scenario.after, "checked_present"),
            }
            if found.check == "conflict":
                assert found.files == {**scenario.before, **scenario.after}, point
                assert found.settled is None, point
                assert "a.txt: unchanged, b.txt: satisfied" in found.told, point
            elif found.check is None:  # a half-written start, which counts as a start without evidence (case 134)
                assert point.startswith("killed half"), point
                assert '"started"' in point, point
                assert (found.files, found.settled) == (scenario.before, None), point
            else:
                assert (found.files, found.settled) == expected[found.check], point
        case _:
            pytest.fail(f"a state out of place: {point}")
