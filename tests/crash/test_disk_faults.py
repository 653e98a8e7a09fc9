"""The disk fails at every durable operation of a turn, once and from then on; it is repaired, and the same process goes
on.

Faults come through the disk alone (tests/support/faults.py). `Acknowledged` lists what the journal acknowledged, so
that the file can be compared with every promise. The scenario is that of tests/crash/promises.py, with a scripted
command.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.transcript import outgoing_messages, validate
from steadyhand.domain.records.record import Record, Stamped, Started
from steadyhand.domain.views.render import LiveState, call_state
from steadyhand.domain.views.types import TurnEnded
from steadyhand.journal.journal import Journal
from tests.crash.promises import (
    COMMAND,
    COUNTER,
    NOTES,
    PROMPT,
    SESSION,
    WORDS,
    changes,
    lay_out,
    temporary,
)
from tests.support.fakes import FakeProcesses, Run, Script
from tests.support.faults import CountingDisk, MatchingFault, Operation, carries
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.journals import whole_records
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.anyio, pytest.mark.timeout(240)]

Error = int | Literal["short"]
operations_min = 50
DID_NOT_RUN = ("notRun", "refused", "failed")


@attrs.define
class Acknowledged:
    """Every record that a journal called durable, and every record that it failed to make durable."""

    durable: list[Stamped] = attrs.field(factory=list)
    waiting: list[Stamped] = attrs.field(factory=list)

    def started(self) -> set[str]:
        return {stamped.record.call_id for stamped in self.durable if isinstance(stamped.record, Started)}


@pytest.fixture
def acknowledged(monkeypatch: pytest.MonkeyPatch) -> Acknowledged:
    """What all journals of the test acknowledge."""
    kept = Acknowledged()
    append = Journal.append

    def noted(journal: Journal, records: Sequence[Record], barrier: bool) -> tuple[Stamped, ...]:
        stamped = append(journal, records, barrier)
        kept.waiting += stamped
        if barrier:
            kept.durable += kept.waiting
            kept.waiting.clear()
        return stamped

    monkeypatch.setattr(Journal, "append", noted)
    return kept


@pytest.fixture
def workspaces(in_memory: Path) -> Callable[[], Workspace]:
    """Workspaces, one after another."""
    numbers = iter(range(10_000))
    return lambda: lay_out(Workspace.under(in_memory / f"place-{next(numbers)}"))


def processes(workspace: Workspace) -> FakeProcesses:
    """The command of the scenario, without a shell."""

    def effect(_: Run) -> None:
        with open(workspace.root / COUNTER, "a", encoding="utf-8") as file:
            file.write("ran\n")

    return FakeProcesses({COMMAND: Script(effect=effect)})


def mend(disk: MatchingFault) -> None:
    """Repair the disk: from now on nothing fails any more."""
    disk.matches = lambda operation: False
    disk.then = None


async def scenario_operations(workspace: Workspace) -> list[Operation]:
    counting = CountingDisk(system_disk())
    async with practice_server(workspace, disk=counting, processes=processes(workspace)) as server:
        assert (await server.say(await server.create(), WORDS.prompt, PROMPT)).reason == "done"
        operations = list(counting.operations)
    assert workspace.files() == WORDS.last_files
    assert len(operations) >= operations_min
    return operations


FAULTS: dict[str, tuple[Error, bool, int | None]] = {
    "full once": (errno.ENOSPC, False, None),
    "full for good": (errno.ENOSPC, True, None),
    "an error once": (errno.EIO, False, None),
    "short, then full": ("short", False, errno.ENOSPC),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_fault_at_every_operation_keeps_all_promises(
    workspaces: Callable[[], Workspace], acknowledged: Acknowledged, fault: str
) -> None:
    """No body runs without a durable start, nothing acknowledged is lost, no call that may have run is called not run,
    and the turn says once what is wrong. After the repair the session goes on in a new epoch, which begins with what
    was not acknowledged (rows J4-J7, C3, C6, W9; [I1] [I3] [I12]; cases 23, 61)."""
    error, for_good, then = FAULTS[fault]
    operations = await scenario_operations(workspaces())
    met = 0
    for operation in operations:
        if error == "short" and operation.verb != "write":
            continue
        workspace = workspaces()
        disk = MatchingFault(
            system_disk(), _at(operation.number, for_good), error, times=None if for_good else 1, then=then
        )
        acknowledged.durable.clear()
        acknowledged.waiting.clear()
        try:
            await _faulty_run(workspace, disk, acknowledged)
            assert disk.failed
            await _next_runs(workspace)
        except AssertionError as broken:
            raise AssertionError(f"{fault} at operation {operation.number}: {operation}\n{broken}") from broken
        met += 1
    assert met > operations_min // 3


def _at(number: int, for_good: bool) -> Callable[[Operation], bool]:
    return lambda operation: operation.number >= number if for_good else operation.number == number


async def _faulty_run(workspace: Workspace, disk: MatchingFault, acknowledged: Acknowledged) -> None:
    async with practice_server(workspace, disk=disk, processes=processes(workspace)) as server:
        ended = await _scenario_or_refusal(server)
        if isinstance(ended, Refused):
            assert ended.kind == "journalBroken"
            assert ended.message.endswith(".")
            assert workspace.files() == {
                **NOTES,
                **{name: old for name, old in WORDS.before.items() if old is not None},
            }
            mend(disk)
            return
        session = server.registry.sessions[SESSION]
        broken = session.log.journal is not None and session.log.journal.broken is not None
        _only_what_was_started(workspace, session.ledger, acknowledged)
        _acknowledged_is_kept(workspace, acknowledged)
        assert ended.reason == ("journalBroken" if broken else "done")
        assert [warning.code for warning in server.editor.warnings] == ["notKept"] * broken
        before, first = workspace.journal(SESSION), acknowledged.durable[-1].seq + 1
        mend(disk)
        await _mended(server, session.epoch, before, first if broken else None)
        _acknowledged_is_kept(workspace, acknowledged)


async def _scenario_or_refusal(server: InProcessServer) -> TurnEnded | Refused:
    try:
        await server.create()
        return await server.say(SESSION, WORDS.prompt, PROMPT)
    except Refused as refused:
        return refused


def _only_what_was_started(workspace: Workspace, ledger: Ledger, acknowledged: Acknowledged) -> None:
    """Every change on disk has a durable start, and no call is said to have done less than it did."""
    files, started = workspace.files(), acknowledged.started()
    for name, content in WORDS.before.items():
        assert files.get(name) in (content, WORDS.after[name]), f"{name} is neither old nor new"
    for call in ledger.calls.values():
        changed = changes(call.tool, call.arguments)
        state = call_state(call, LiveState())
        if changed is None:
            continue
        happened = _happened(files, changed)
        if happened:
            assert call.call_id in started, f"{call.tool} ran without a durable start [I1]"
            assert state not in DID_NOT_RUN, f"{call.tool} happened and is called {state}"
        if state == "returned":
            assert happened
        if call.call_id not in started:
            assert state in DID_NOT_RUN


def _happened(files: dict[str, str], changed: Sequence[str]) -> bool:
    """Whether any of these files has changed."""
    return any(files.get(name) != WORDS.before[name] for name in changed)


def _acknowledged_is_kept(workspace: Workspace, acknowledged: Acknowledged) -> None:
    on_disk = {(record["seq"], record["sum"]) for record in whole_lines(workspace.journal(SESSION))}
    for stamped in acknowledged.durable:
        assert (stamped.seq, stamped.sum) in on_disk, f"record {stamped.seq} was acknowledged and is lost"


def whole_lines(content: bytes) -> list[dict[str, object]]:
    return [record for line in content.split(b"\n") for record in whole_records(line)]


async def _mended(server: InProcessServer, epoch: str | None, before: bytes, first: int | None) -> None:
    """`first`: the first seq that was not acknowledged; None: the journal never failed."""
    view = await server.open(SESSION)
    ledger = server.ledger(SESSION)
    assert view.session.read_only is None
    assert view.session.epoch is not None
    if first is None:
        assert view.session.epoch == epoch
    else:
        assert view.session.epoch != epoch
        known = len(whole_records(before.rpartition(b"\n")[0] + b"\n"))
        added = whole_lines(server.workspace.journal(SESSION))[known:]
        if added and added[0]["kind"] not in ("damage", "epoch"):
            added = added[1:]  # a line that lacked only its end
        assert [record["kind"] for record in added[:2]] == ["damage", "epoch"]
        assert added[0]["unacknowledged"] == first
    assert not [name for name in server.workspace.files() if temporary(name)]
    files = server.workspace.files()
    for call in ledger.calls.values():
        if _happened(files, changes(call.tool, call.arguments) or ()):
            assert call_state(call, LiveState()) not in DID_NOT_RUN
    assert (await server.say(SESSION, "say on", "prompt-2")).reason == "done"
    assert server.workspace.files() == files
    validate(outgoing_messages(ledger))


async def _next_runs(workspace: Workspace) -> None:
    """Later process runs open the session, and the second one finds nothing to do."""
    if not whole_lines(workspace.journal(SESSION)):
        return
    async with practice_server(workspace, run=2) as server:
        assert (await server.open(SESSION)).session.read_only is None
        journal = workspace.journal(SESSION)
    async with practice_server(workspace, run=3) as server:
        assert (await server.open(SESSION)).session.read_only is None
    assert workspace.journal(SESSION) == journal


async def test_short_writes_are_completed_without_a_message(workspaces: Callable[[], Workspace]) -> None:
    """Each write of the turn takes half of its bytes, and neither model nor user notices (row J7)."""
    workspace = workspaces()
    disk = MatchingFault(system_disk(), lambda operation: len(operation.piece) > 1, "short", times=None)
    async with practice_server(workspace, disk=disk, processes=processes(workspace)) as server:
        assert (await server.say(await server.create(), WORDS.prompt, PROMPT)).reason == "done"
        assert server.editor.warnings == []
    assert len(disk.failed) > operations_min
    assert workspace.files() == WORDS.last_files


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk is full: make room"),
        (errno.EIO, "the disk reports an error (Input/output error): check the disk"),
        (errno.EROFS, "it may not be written: make its folder writable"),
        (errno.EACCES, "it may not be written: make its folder writable"),
    ],
)
async def test_unrecorded_start_does_not_run_and_is_explained_once(
    workspaces: Callable[[], Workspace], number: int, sentence: str
) -> None:
    """A start cannot be recorded: the call does not run, the turn goes on reading, says once why nothing is kept, and
    new prompts get the same answer (rows J4, J6, J7; case 23)."""
    workspace = workspaces()
    disk = MatchingFault(system_disk(), carries("started"), number, times=None)
    async with practice_server(workspace, disk=disk) as server:
        session_id = await server.create()
        ended = await server.say(session_id, "write old.txt with x\nshow notes.txt", PROMPT)
        assert ended.reason == "journalBroken"
        assert ended.changed == ()
        (warning,) = server.editor.warnings
        assert warning.code == "notKept"
        assert sentence in warning.text
        assert "not stored" in warning.text
        states = [call_state(call, LiveState()) for call in server.ledger(session_id).calls.values()]
        assert states[1] == "notRun", "the reading came before it"
        assert workspace.files()["old.txt"] == "old\n"
        with pytest.raises(Refused) as refused:
            await server.send(session_id, "say more", "prompt-2")
        assert refused.value.kind == "journalBroken"
        assert sentence in refused.value.message


async def test_lost_result_is_unknown_until_the_file_decides(workspaces: Callable[[], Workspace]) -> None:
    """The body ran and its result cannot be kept: it is unknown, and the turn says so. While the disk stays full the
    session can be opened and read; afterwards the file decides (rows J5, J6, C4, B3; [I3] [I12])."""
    workspace = workspaces()
    disk = MatchingFault(system_disk(), carries("result"), errno.ENOSPC, times=None)
    async with practice_server(workspace, disk=disk) as server:
        session_id = await server.create()
        assert (await server.say(session_id, "write old.txt with x", PROMPT)).reason == "journalBroken"
        _, call = server.ledger(session_id).calls.values()
        assert call_state(call, LiveState()) == "unknown"
        assert call.reply is not None
        assert "unknown" in call.reply.text
        journal = workspace.journal(session_id)
        for _ in range(2):
            view = await server.open(session_id)  # the verdict is a result too, so it cannot be recorded
            assert view.session.read_only is not None
            assert view.session.read_only.reason == "disk"
            assert view.messages[2].calls is not None
            assert view.messages[2].calls[0].state == "unknown"
        with pytest.raises(Refused):
            await server.send(session_id, "write old.txt with y", "prompt-2")
        mend(disk)
        view = await server.open(session_id)
        assert view.session.read_only is None
        assert view.snapshot.settled[0].settled == "checked_present"
        added = whole_lines(workspace.journal(session_id)[len(journal) :])
        assert [record["kind"] for record in added] == ["damage", "epoch", "result", "settlement", "notice"]
        assert added[0]["unacknowledged"] == int(str(whole_lines(journal)[-1]["seq"])) + 1
        assert workspace.files()["old.txt"] == "x"


async def test_unacknowledged_result_counts_for_nothing(workspaces: Callable[[], Workspace]) -> None:
    """The result is in the file, but its sync failed: it counts for nothing, in this process and in every later one,
    also if the first opening after it fails as well (row J6; [I3] [I12])."""
    workspace = workspaces()
    failing: list[str] = ["result"]
    disk = MatchingFault(system_disk(), lambda operation: False, errno.EIO, times=None)
    last: list[Operation] = []

    def sync_after_result(operation: Operation) -> bool:
        if operation.verb == "write" and "journal" in operation.target:
            last[:] = [operation]
        synced = operation.verb == "sync" and "journal" in operation.target
        return synced and bool(last) and bool(failing) and "result" in last[0].kinds

    disk.matches = sync_after_result
    async with practice_server(workspace, disk=disk) as server:
        session_id = await server.create()
        assert (await server.say(session_id, "write old.txt with x", PROMPT)).reason == "journalBroken"
        (result,) = [record for record in whole_lines(workspace.journal(session_id)) if record["kind"] == "result"]
        view = await server.open(session_id)
        assert view.session.read_only is not None, "the sync before taking up work fails as well"
        failing.clear()
        view = await server.open(session_id)
        assert view.session.read_only is None
        (damage,) = [record for record in whole_lines(workspace.journal(session_id)) if record["kind"] == "damage"]
        assert damage["unacknowledged"] == result["seq"]
        assert view.messages[2].calls is not None
        assert (view.messages[2].calls[0].state, view.messages[2].calls[0].settled) == ("unknown", "checked_present")
    async with practice_server(workspace, run=2) as server:
        view = await server.open(session_id)
        assert view.messages[2].calls is not None
        assert view.messages[2].calls[0].state == "unknown"
