"""A restore and a retry are killed at every durable operation, and the session is opened again (rows A5, F2, F3, J2,
J14).

Each process run is a fork that dies by SIGKILL. The first one dies in a turn, the second one while it restores or
retries. The third one opens what is left, judges it, and goes on as far as a user could: it restores or retries once
more where that is offered. A fourth opening finds nothing new.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.model.messages import CallProposed, Finish
from steadyhand.domain.records.record import Evidence
from steadyhand.domain.views.recovery_snapshot import actions
from steadyhand.domain.views.types import Action
from steadyhand.ports.disk import Disk
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.faults import CountingDisk, KillingDisk, Matches, Operation, When, carries, on
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import InProcessServer
from tests.support.killed_runs import SESSION, kill_in_turn, retrying_server
from tests.support.model import ScriptedModel
from tests.support.sink import SendTool, Sink
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

OLD, OTHER, NEW = "old\n", "what was there\n", "new\n"
Tree = dict[str, str]
Halves = tuple[Tree, ...]


@attrs.frozen
class Scenario:
    """The turn in which the first run dies, and where; the files before it, left by it, and half-way back."""

    tool: str
    fields: dict[str, Any]
    before: Tree
    left: Tree
    dies: Matches = attrs.field(factory=lambda: carries("result"))
    changed: Tree = attrs.field(factory=dict)  # what somebody saves after the kill
    half: Halves = ()

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel([CallProposed(self.tool, json.dumps(self.fields)), Finish("calls")])

    @property
    def found(self) -> Tree:
        """The files that the second run finds."""
        return {**self.left, **self.changed}

    def lay(self, folder: Path) -> Workspace:
        workspace = Workspace.under(folder)
        for name, content in self.before.items():
            workspace.write(name, content)
        kill_in_turn(workspace, "go", self.dies, models=self.model)
        assert workspace.files() == self.left, workspace.files()
        for name, content in self.changed.items():
            workspace.write(name, content)
        return workspace


WRITE = {"path": "a.txt", "content": NEW}
RESTORES = {
    "modified": Scenario("write_file", WRITE, {"a.txt": OLD}, {"a.txt": NEW}),
    "conflict": Scenario("write_file", WRITE, {"a.txt": OLD}, {"a.txt": NEW}, changed={"a.txt": OTHER}),
    "created": Scenario("write_file", WRITE, {}, {"a.txt": NEW}),
    "deleted": Scenario("delete_file", {"path": "a.txt"}, {"a.txt": OLD}, {}),
    "moved over": Scenario(
        "move_file", {"from": "a.txt", "to": "b.txt", "overwrite": True},
        {"a.txt": OLD, "b.txt": OTHER}, {"b.txt": OLD}, half=({"a.txt": OLD, "b.txt": OLD},),
    ),
}  # fmt: skip


@attrs.frozen
class Found:
    """What the run after the second kill finds, and what going on makes of it."""

    restored: bool  # the old attempt is settled so
    settled: str | None
    new: str | None  # how the newest restore or retry ended; None: there is none
    opened: Tree
    refused: list[str]
    opening_again_writes: bool
    going_on: str  # "done", or why not
    at_last: Tree
    keys: set[str]
    started: int  # attempts of the intention, retries and all, that started


def redoing(
    workspace: Workspace, action: Action, number: int, when: When, tool: Callable[[], SendTool] | None = None
) -> ForkResult[tuple[int, list[Operation]]]:
    """The second run, killed at a point (0: unharmed): the number of operations before the decision, and all
    operations."""

    async def run() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with retrying_server(workspace, disk=disk) as server:
            session, attempt = await opened(server, tool)
            seen = await look(session, attempt)
            first = counting.count
            await resolve(session, ResolutionRequest(attempt.attempt_id, action, inspection_id=seen))
            last = counting.count
        return first, counting.operations[:last]

    return run_in_fork(run)


async def opened(server: InProcessServer, tool: Callable[[], SendTool] | None = None) -> tuple[Session, Attempt]:
    """The session, and the first attempt with an effect."""
    if tool is not None:
        made = tool()
        server.registry.context.tools[made.name] = made
    await server.open(SESSION)
    session = server.registry.sessions[SESSION]
    attempt = next(one for one in session.ledger.attempts.values() if one.effect != "reads")
    return session, attempt


async def look(session: Session, attempt: Attempt) -> str:
    done = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
    assert done.inspection is not None
    return done.inspection.inspection_id


async def go_on(session: Session, attempt: Attempt, action: Action) -> str:
    """Go on as far as a user could, with the newest attempt that the action may apply to."""
    every = [one for one in session.ledger.attempts.values() if one.effect != "reads"]
    newest = every[-1] if action == "retry" else attempt
    if newest.stage not in ("uncertain", "checked"):
        return f"{newest.stage} already"
    for other in every:
        if other is not newest and other.uncertain:
            seen = await look(session, other)
            await resolve(session, ResolutionRequest(other.attempt_id, "waive", inspection_id=seen))
    seen = await look(session, newest)
    if action not in actions(newest, session.snapshot_context()):
        return "not offered"
    try:
        await resolve(session, ResolutionRequest(newest.attempt_id, action, inspection_id=seen))
    except Refused as refused:
        return refused.kind
    return "done"


def after_death(workspace: Workspace, action: Action, tool: Callable[[], SendTool] | None = None) -> Found:
    async def run() -> Found:
        async with retrying_server(workspace, run=3) as server:
            session, attempt = await opened(server, tool)
            ledger, files, journal = session.ledger, workspace.files(), workspace.journal(SESSION)
            settled = attempt.settlement.settled if attempt.settlement else None
            new = [one for one in ledger.attempts.values() if one.restore_of or one.retry_of]
            last = new[-1] if new else None
            ended = None
            if last is not None:
                assert last.result is not None
                ended = last.settlement.settled if last.settlement else last.result.outcome
        async with retrying_server(workspace, run=4) as server:
            await opened(server, tool)
            again = workspace.journal(SESSION) != journal
        async with retrying_server(workspace, run=5) as server:
            session, attempt = await opened(server, tool)
            going_on = await go_on(session, attempt, action)
            ledger = session.ledger
            intended = [one for one in ledger.attempts.values() if one is attempt or one.retry_of]
        return Found(
            settled == "restored", settled, ended, files, list(ledger.refused), again, going_on, workspace.files(),
            {one.key for one in intended}, sum(one.started is not None for one in intended),
        )  # fmt: skip

    value = run_in_fork(run).value
    assert value is not None
    return value


def points(first: int, operations: list[Operation]) -> Iterator[tuple[int, When, str]]:
    """Every way to die from the decision on."""
    for one in operations[first:]:
        whens: tuple[When, ...] = ("before", "half", "after") if one.verb == "write" else ("before", "after")
        for when in whens:
            yield one.number, when, f"killed {when} {one}"


def everywhere(
    folder: Path, lay: Callable[[Path], Workspace], action: Action, judge: Callable[[Found, str], None],
    tool: Callable[[Workspace], SendTool] | None = None,
) -> None:  # fmt: skip
    """Kill at each point, open, judge."""

    def made(workspace: Workspace) -> Callable[[], SendTool] | None:
        return None if tool is None else lambda: tool(workspace)

    workspace = lay(folder / "place")
    copy = workspace.keep("left")
    whole = redoing(workspace, action, 0, "before", made(workspace)).value
    assert whole is not None
    count = 0
    for number, when, point in points(*whole):
        workspace.put_back(copy)
        died = redoing(workspace, action, number, when, made(workspace))
        assert died.signal == signal.SIGKILL, point
        found = after_death(workspace, action, made(workspace))
        try:
            judge(found, point)
        except AssertionError as broken:
            raise AssertionError(f"{point}\n{found}\n{broken}") from broken
        count += 1
    assert count >= 2 * len(whole[1][whole[0] :]) > 10
    shutil.rmtree(copy)


def evidence_of(attempt: Attempt) -> tuple[Evidence, ...]:
    return attempt.started.evidence if attempt.started is not None else ()


def tears_a_start(point: str) -> bool:
    """Whether a half-written start may be the end of the journal; it counts as a start (case 134)."""
    return point.startswith("killed half") and '"started"' in point


@pytest.mark.parametrize("scenario", RESTORES.values(), ids=RESTORES)
def test_restore_killed_anywhere_leaves_old_or_new_and_can_be_redone(in_memory: Path, scenario: Scenario) -> None:
    """A5, W4, W8, W9, J2, J14, C2, [I1] [I4] [I5]: each path has the content that was found or the content before, and
    nothing else. The old attempt is settled `restored` exactly if the restore has happened. Nothing is left beside the
    files, and the restore can be carried out, or was."""
    seen: set[bool] = set()

    def judge(found: Found, point: str) -> None:
        assert found.opened in (scenario.found, scenario.before, *scenario.half)
        happened = found.opened == scenario.before
        assert found.restored == happened
        assert found.refused == []
        assert not found.opening_again_writes
        assert found.at_last == scenario.before
        assert found.going_on == ("closed already" if happened else "done")
        assert found.new in (None, "interrupted_before_execution", "checked_absent", "checked_present", "returned",
                             "unknown_after_restart")  # fmt: skip
        unknown = found.new == "unknown_after_restart"
        assert unknown == (found.opened in scenario.half) or (tears_a_start(point) and found.opened == scenario.found)
        seen.add(happened)

    everywhere(in_memory, scenario.lay, "restore", judge)
    assert seen == {True, False}


@pytest.mark.parametrize("scenario", RESTORES.values(), ids=RESTORES)
def test_restore_of_a_restore_killed_anywhere_leaves_old_or_new(in_memory: Path, scenario: Scenario) -> None:
    """A5, case 74: the same for the restore of a restore: the files are again as they were found, or still as
    before."""
    seen: set[str] = set()

    def lay(folder: Path) -> Workspace:
        workspace = scenario.lay(folder)
        run_in_fork(_restored(workspace))
        assert workspace.files() == scenario.before
        return workspace

    workspace = lay(in_memory / "place")
    copy = workspace.keep("left")
    counted = run_in_fork(_undone(workspace, 0, "before")).value
    assert counted is not None
    for number, when, point in points(*counted):
        workspace.put_back(copy)
        assert run_in_fork(_undone(workspace, number, when)).signal == signal.SIGKILL, point
        files = run_in_fork(_looked_at(workspace)).value
        assert files is not None
        assert files in (scenario.before, scenario.found, *scenario.half), point
        seen.add(json.dumps(files, sort_keys=True))
    assert {json.dumps(one, sort_keys=True) for one in (scenario.before, scenario.found)} <= seen


def _restored(workspace: Workspace) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        async with retrying_server(workspace, run=6) as server:
            session, attempt = await opened(server)
            seen = await look(session, attempt)
            await resolve(session, ResolutionRequest(attempt.attempt_id, "restore", inspection_id=seen))

    return run


def _undone(workspace: Workspace, number: int, when: When) -> Callable[[], Awaitable[tuple[int, list[Operation]]]]:
    async def run() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with retrying_server(workspace, run=7, disk=disk) as server:
            session, _ = await opened(server)
            restored = next(one for one in session.ledger.attempts.values() if one.is_undoable)
            seen = await look(session, restored)
            first = counting.count
            await resolve(session, ResolutionRequest(restored.attempt_id, "restore", inspection_id=seen))
            last = counting.count
        return first, counting.operations[:last]

    return run


def _looked_at(workspace: Workspace) -> Callable[[], Awaitable[Tree]]:
    """Open the session; nothing is left beside the files, and an effect that is not half-way is not uncertain.

    A half-written start counts as a start, and has no evidence to check (case 134)."""

    async def run() -> Tree:
        async with retrying_server(workspace, run=8) as server:
            session, _ = await opened(server)
            assert session.ledger.refused == []
            assert all(one.check == "conflict" or not evidence_of(one) for one in session.ledger.uncertain())
            return workspace.files()

    return run


def test_retry_of_a_write_killed_anywhere_keeps_its_key(in_memory: Path) -> None:
    """F2, F3, J2, N2, C1, C2, [I1] [I4] [I10]: the file is old or new and nothing else. The old attempt is superseded
    exactly if the attempt that replaces it is there. The key is the same, and opening runs nothing."""
    seen: set[tuple[str | None, str | None]] = set()

    def lay(folder: Path) -> Workspace:
        workspace = Workspace.under(folder)
        workspace.write("a.txt", OLD)
        kill_in_turn(workspace, 'write a.txt with "new\\n"', on("exchange", "a.txt"))
        assert workspace.files()["a.txt"] == OLD
        return workspace

    def judge(found: Found, point: str) -> None:
        assert found.opened in ({"a.txt": OLD}, {"a.txt": NEW})
        assert found.refused == []
        assert not found.opening_again_writes
        assert len(found.keys) == 1
        assert found.at_last == ({"a.txt": NEW} if found.going_on == "done" else found.opened)
        if found.new is None:
            assert found.settled == "checked_absent"
        if found.opened == {"a.txt": NEW}:
            assert found.new in ("checked_present", "returned")
            assert found.going_on != "done"
        if found.new == "unknown_after_restart":
            assert tears_a_start(point)
        seen.add((found.settled, found.new))

    everywhere(in_memory, lay, "retry", judge)
    assert {new for _, new in seen} - {"unknown_after_restart"} == {
        None, "interrupted_before_execution", "checked_absent", "checked_present", "returned",
    }  # fmt: skip
    assert {settled for settled, new in seen if new not in (None, "interrupted_before_execution")} == {"superseded"}


def test_retry_of_a_message_killed_anywhere_never_arrives_twice(in_memory: Path) -> None:
    """F2, F3, F4, N2, [I10]: wherever the retry dies, and whatever a user retries after it, the message arrives at most
    once, and every attempt has the same key."""
    arrived: set[int] = set()
    sink = Sink(in_memory / "place" / "service")

    def tool(workspace: Workspace) -> SendTool:
        return SendTool(Sink(workspace.base / "service"))

    def lay(folder: Path) -> Workspace:
        workspace = Workspace.under(folder)
        (folder / "service").mkdir()

        async def run() -> None:
            async with retrying_server(workspace, run=1, models=model) as server:
                server.registry.context.tools["send"] = SendTool(Sink(workspace.base / "service"), fails="before")
                assert await server.create() == SESSION
                await server.say(SESSION, "go")

        model = ScriptedModel([CallProposed("send", '{"text":"hello"}'), Finish("calls")])
        assert run_in_fork(run).signal is None
        return workspace

    def judge(found: Found, point: str) -> None:
        count = len(sink.arrived())
        assert count <= 1
        assert len({*sink.arrived(), *found.keys}) == 1
        if found.going_on == "done":
            assert count == 1
        assert found.refused == []
        assert not found.opening_again_writes
        arrived.add(count)

    everywhere(in_memory, lay, "retry", judge, tool)
    assert arrived == {0, 1}
