"""The disk fails at every durable operation of a turn, once and for good, and is mended; the same process goes on.

Faults come in through the disk alone (tests/support/disks.py). What the journal acknowledged is written down beside it
(`Acknowledged`), so that the file can be compared with every promise that was made. The story is the one of
tests/crash/promises.py, with a scripted command.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import attrs
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.ledger import Ledger
from steadyhand.core.record import Record, Stamped, Started
from steadyhand.core.refusal import Refused
from steadyhand.core.show import Live, call_state
from steadyhand.core.transcript import outgoing, validate
from steadyhand.core.views import TurnEnded
from steadyhand.journal.log import Journal
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
    whole_records,
)
from tests.support.disks import CountingDisk, MatchingFault, Operation, carries
from tests.support.fakes import FakeProcesses, Run, Script
from tests.support.systems import linux_only
from tests.support.turns import Place, Rig, rig

pytestmark = [linux_only, pytest.mark.anyio, pytest.mark.timeout(240)]

Error = int | Literal["short"]
operations_min = 50
DID_NOT_RUN = ("notRun", "refused", "failed")


@attrs.define
class Acknowledged:
    """Every record that a journal called durable, and every one it was asked to make so in vain."""

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
def places(in_memory: Path) -> Callable[[], Place]:
    """Places, one after another."""
    numbers = iter(range(10_000))
    return lambda: lay_out(Place.under(in_memory / f"place-{next(numbers)}"))


def processes(place: Place) -> FakeProcesses:
    """The story's command, without a shell."""

    def effect(_: Run) -> None:
        with open(place.workspace / COUNTER, "a", encoding="utf-8") as file:
            file.write("ran\n")

    return FakeProcesses({COMMAND: Script(effect=effect)})


def mend(disk: MatchingFault) -> None:
    """From now on nothing fails any more."""
    disk.matches = lambda operation: False
    disk.then = None


async def story_operations(place: Place) -> list[Operation]:
    counting = CountingDisk(system_disk())
    async with rig(place, disk=counting, processes=processes(place)) as house:
        assert (await house.say(await house.create(), WORDS.prompt, PROMPT)).reason == "done"
        operations = list(counting.operations)
    assert place.files() == WORDS.last_files
    assert len(operations) >= operations_min
    return operations


FAULTS: dict[str, tuple[Error, bool, int | None]] = {
    "full once": (errno.ENOSPC, False, None),
    "full for good": (errno.ENOSPC, True, None),
    "an error once": (errno.EIO, False, None),
    "short, then full": ("short", False, errno.ENOSPC),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_at_every_operation(places: Callable[[], Place], acknowledged: Acknowledged, fault: str) -> None:
    """No body runs without a durable start, nothing acknowledged is lost, what may have run is never called not run,
    the turn says once what is wrong; mended, the session goes on in a new epoch that begins with what was not
    acknowledged (rows J4-J7, C3, C6, W9; [I1] [I3] [I12]; cases 23, 61)."""
    error, for_good, then = FAULTS[fault]
    operations = await story_operations(places())
    met = 0
    for operation in operations:
        if error == "short" and operation.verb != "write":
            continue
        place = places()
        disk = MatchingFault(
            system_disk(), _at(operation.number, for_good), error, times=None if for_good else 1, then=then
        )
        acknowledged.durable.clear()
        acknowledged.waiting.clear()
        try:
            await _faulty_life(place, disk, acknowledged)
            assert disk.failed
            await _next_life(place)
        except AssertionError as broken:
            raise AssertionError(f"{fault} at operation {operation.number}: {operation}\n{broken}") from broken
        met += 1
    assert met > operations_min // 3


def _at(number: int, for_good: bool) -> Callable[[Operation], bool]:
    return lambda operation: operation.number >= number if for_good else operation.number == number


async def _faulty_life(place: Place, disk: MatchingFault, acknowledged: Acknowledged) -> None:
    async with rig(place, disk=disk, processes=processes(place)) as house:
        ended = await _story_or_refusal(house)
        if isinstance(ended, Refused):
            assert ended.kind == "journalBroken"
            assert ended.message.endswith(".")
            assert place.files() == {**NOTES, **{name: old for name, old in WORDS.before.items() if old is not None}}
            mend(disk)
            return
        owner = house.house.owners[SESSION]
        broken = owner.journal is not None and owner.journal.broken is not None
        _only_what_was_started(place, owner.ledger, acknowledged)
        _acknowledged_is_kept(place, acknowledged)
        assert ended.reason == ("journalBroken" if broken else "done")
        assert [warning.code for warning in house.editor.warnings] == ["notKept"] * broken
        before, first = place.journal(SESSION), acknowledged.durable[-1].seq + 1
        mend(disk)
        await _mended(house, owner.epoch, before, first if broken else None)
        _acknowledged_is_kept(place, acknowledged)


async def _story_or_refusal(house: Rig) -> TurnEnded | Refused:
    try:
        await house.create()
        return await house.say(SESSION, WORDS.prompt, PROMPT)
    except Refused as refused:
        return refused


def _only_what_was_started(place: Place, ledger: Ledger, acknowledged: Acknowledged) -> None:
    """What happened has a durable start, and no call is said to have done less than it did."""
    files, started = place.files(), acknowledged.started()
    for name, content in WORDS.before.items():
        assert files.get(name) in (content, WORDS.after[name]), f"{name} is neither old nor new"
    for call in ledger.calls.values():
        changed = changes(call.tool, call.arguments)
        state = call_state(call, Live())
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
    """Whether any of these files is no more as it was."""
    return any(files.get(name) != WORDS.before[name] for name in changed)


def _acknowledged_is_kept(place: Place, acknowledged: Acknowledged) -> None:
    on_disk = {(record["seq"], record["sum"]) for record in whole_lines(place.journal(SESSION))}
    for stamped in acknowledged.durable:
        assert (stamped.seq, stamped.sum) in on_disk, f"record {stamped.seq} was acknowledged and is lost"


def whole_lines(content: bytes) -> list[dict[str, object]]:
    return [record for line in content.split(b"\n") for record in whole_records(line)]


async def _mended(house: Rig, epoch: str | None, before: bytes, first: int | None) -> None:
    """`first`: the first seq that was not acknowledged; None: the journal never broke."""
    view = await house.open(SESSION)
    ledger = house.ledger(SESSION)
    assert view.session.read_only is None
    assert view.session.epoch is not None
    if first is None:
        assert view.session.epoch == epoch
    else:
        assert view.session.epoch != epoch
        known = len(whole_records(before.rpartition(b"\n")[0] + b"\n"))
        added = whole_lines(house.place.journal(SESSION))[known:]
        if added and added[0]["kind"] not in ("damage", "epoch"):
            added = added[1:]  # a line that lacked only its end
        assert [record["kind"] for record in added[:2]] == ["damage", "epoch"]
        assert added[0]["unacknowledged"] == first
    assert not [name for name in house.place.files() if temporary(name)]
    files = house.place.files()
    for call in ledger.calls.values():
        if _happened(files, changes(call.tool, call.arguments) or ()):
            assert call_state(call, Live()) not in DID_NOT_RUN
    assert (await house.say(SESSION, "say on", "prompt-2")).reason == "done"
    assert house.place.files() == files
    validate(outgoing(ledger))


async def _next_life(place: Place) -> None:
    """Later processes open it, and the second one finds nothing to do."""
    if not whole_lines(place.journal(SESSION)):
        return
    async with rig(place, life=2) as house:
        assert (await house.open(SESSION)).session.read_only is None
        journal = place.journal(SESSION)
    async with rig(place, life=3) as house:
        assert (await house.open(SESSION)).session.read_only is None
    assert place.journal(SESSION) == journal


async def test_short_writes_are_completed(places: Callable[[], Place]) -> None:
    """Each write of the turn takes half of its bytes, and nobody notices (row J7)."""
    place = places()
    disk = MatchingFault(system_disk(), lambda operation: len(operation.piece) > 1, "short", times=None)
    async with rig(place, disk=disk, processes=processes(place)) as house:
        assert (await house.say(await house.create(), WORDS.prompt, PROMPT)).reason == "done"
        assert house.editor.warnings == []
    assert len(disk.failed) > operations_min
    assert place.files() == WORDS.last_files


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk is full: make room"),
        (errno.EIO, "the disk reports an error (Input/output error): check the disk"),
        (errno.EROFS, "it may not be written: make its folder writable"),
        (errno.EACCES, "it may not be written: make its folder writable"),
    ],
)
async def test_each_trouble_has_one_clear_message(places: Callable[[], Place], number: int, sentence: str) -> None:
    """A start that cannot be recorded: the call is not run, the turn goes on reading, says once why nothing is kept,
    and new prompts get the same answer (rows J4, J6, J7; case 23)."""
    place = places()
    disk = MatchingFault(system_disk(), carries("started"), number, times=None)
    async with rig(place, disk=disk) as house:
        session_id = await house.create()
        ended = await house.say(session_id, "write old.txt with x\nshow notes.txt", PROMPT)
        assert ended.reason == "journalBroken"
        assert ended.changed == ()
        (warning,) = house.editor.warnings
        assert warning.code == "notKept"
        assert sentence in warning.text
        assert "not kept" in warning.text
        states = [call_state(call, Live()) for call in house.ledger(session_id).calls.values()]
        assert states[0] == "notRun"
        assert place.files()["old.txt"] == "old\n"
        with pytest.raises(Refused) as refused:
            await house.send(session_id, "say more", "prompt-2")
        assert refused.value.kind == "journalBroken"
        assert sentence in refused.value.message


async def test_a_lost_result_is_unknown_and_never_repeated(places: Callable[[], Place]) -> None:
    """The body ran and its result cannot be kept: unknown, said so; while the disk stays full it can be opened and
    looked at, and afterwards the file decides (rows J5, J6, C4, B3; [I3] [I12])."""
    place = places()
    disk = MatchingFault(system_disk(), carries("result"), errno.ENOSPC, times=None)
    async with rig(place, disk=disk) as house:
        session_id = await house.create()
        assert (await house.say(session_id, "write old.txt with x", PROMPT)).reason == "journalBroken"
        (call,) = house.ledger(session_id).calls.values()
        assert call_state(call, Live()) == "unknown"
        assert call.reply is not None
        assert "unknown" in call.reply.text
        journal = place.journal(session_id)
        for _ in range(2):
            view = await house.open(session_id)  # the verdict is a result too, so it cannot be recorded
            assert view.session.read_only is not None
            assert view.session.read_only.reason == "disk"
            assert view.messages[1].calls is not None
            assert view.messages[1].calls[0].state == "unknown"
        with pytest.raises(Refused):
            await house.send(session_id, "write old.txt with y", "prompt-2")
        mend(disk)
        view = await house.open(session_id)
        assert view.session.read_only is None
        assert view.snapshot.settled[0].settled == "checked_present"
        added = whole_lines(place.journal(session_id)[len(journal) :])
        assert [record["kind"] for record in added] == ["damage", "epoch", "result", "settlement", "notice"]
        assert added[0]["unacknowledged"] == int(str(whole_lines(journal)[-1]["seq"])) + 1
        assert place.files()["old.txt"] == "x"


async def test_a_tail_nobody_acknowledged_counts_against_us_only(places: Callable[[], Place]) -> None:
    """The result is in the file, its sync failed: it counts for nothing, in this process and in every later one, also
    when the first opening after it fails as well (row J6; [I3] [I12])."""
    place = places()
    failing: list[str] = ["result"]
    disk = MatchingFault(system_disk(), lambda operation: False, errno.EIO, times=None)
    last: list[Operation] = []

    def sync_after_result(operation: Operation) -> bool:
        if operation.verb == "write" and "journal" in operation.target:
            last[:] = [operation]
        synced = operation.verb == "sync" and "journal" in operation.target
        return synced and bool(last) and bool(failing) and "result" in last[0].kinds

    disk.matches = sync_after_result
    async with rig(place, disk=disk) as house:
        session_id = await house.create()
        assert (await house.say(session_id, "write old.txt with x", PROMPT)).reason == "journalBroken"
        (result,) = [record for record in whole_lines(place.journal(session_id)) if record["kind"] == "result"]
        view = await house.open(session_id)
        assert view.session.read_only is not None, "the sync before taking up work fails as well"
        failing.clear()
        view = await house.open(session_id)
        assert view.session.read_only is None
        (damage,) = [record for record in whole_lines(place.journal(session_id)) if record["kind"] == "damage"]
        assert damage["unacknowledged"] == result["seq"]
        assert view.messages[1].calls is not None
        assert (view.messages[1].calls[0].state, view.messages[1].calls[0].settled) == ("unknown", "checked_present")
    async with rig(place, life=2) as house:
        view = await house.open(session_id)
        assert view.messages[1].calls is not None
        assert view.messages[1].calls[0].state == "unknown"
