"""The model's own way out of an uncertain command is killed at every durable operation, and opened again (row B5).

The first life dies in the middle of a command. In the second, one turn writes (held back), inspects, proposes a
settlement and writes again; it dies by SIGKILL somewhere in that. The third opens what is left: what stands there has
to agree with the raw records, and the way out can be taken again. A fourth opening finds nothing new.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.views import CallState
from steadyhand.ports import Disk
from tests.crash.promises import SESSION, whole_records
from tests.crash.test_redoing_killed import points
from tests.journal import second_reader
from tests.support.calling_model import either_models
from tests.support.disks import CountingDisk, KillingDisk, Operation, When
from tests.support.systems import linux_only
from tests.support.turns import Died, Place, ScriptedEditor, forked, rig

pytestmark = [linux_only, pytest.mark.timeout(240)]

COUNTER = "counter.txt"
COMMAND = f"echo ran >> {COUNTER}; kill -KILL $PPID"
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
    """The question of the held-back call is left alone; whatever needs permission is allowed."""
    return ScriptedEditor(held_back=lambda _: None)


@attrs.frozen
class Found:
    """What the third life finds, and what it makes of it."""

    states: list[tuple[str, CallState]]  # tool and state of each call, in order
    uncertain: list[str]  # tools
    refused: list[str]
    files: dict[str, str]
    opening_again_writes: bool
    last_files: dict[str, str]


def way_out(place: Place, number: int, when: When) -> Died[tuple[int, list[Operation]]]:
    """The second life, killed at a point (0: unharmed); the operation before the first of its turn, and all."""

    async def life() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with rig(place, life=2, disk=disk, models=either_models, editor=nobody_answers()) as house:
            await house.open(SESSION)
            first = counting.count
            assert (await house.say(SESSION, WAY_OUT, "prompt-2")).reason == "done"
            last = counting.count
        return first, counting.operations[:last]

    return forked(life)


def after_death(place: Place) -> Found:
    async def life() -> Found:
        async with rig(place, life=3, models=either_models, editor=nobody_answers()) as house:
            view = await house.open(SESSION)
            calls = [call for message in view.messages for call in message.calls or ()]
            ledger, files, journal = house.ledger(SESSION), place.files(), place.journal(SESSION)
            uncertain, refused = [one.tool for one in ledger.uncertain()], list(ledger.refused)
        async with rig(place, life=4, models=either_models, editor=nobody_answers()) as house:
            await house.open(SESSION)
            again = place.journal(SESSION) != journal
            assert (await house.say(SESSION, WAY_OUT, "prompt-3")).reason == "done"
        states = [(call.tool, call.state) for call in calls]
        return Found(states, uncertain, refused, files, again, place.files())

    value = forked(life).value
    assert value is not None
    return value


def test_killed_anywhere_it_is_settled_by_what_is_on_disk_or_not(in_memory: Path) -> None:
    """B5, A4, A5, B1, C1-C4, J2, J14, [I1] [I3] [I4] [I5] [I6]: the command is settled exactly if the model's
    settlement is on disk, which has its inspection before it and a start of its own; nothing is written before that;
    nothing runs twice; and the way out can be taken again."""
    place = Place.under(in_memory / "place")

    async def dies() -> None:
        async with rig(place, models=either_models, editor=nobody_answers()) as house:
            await house.say(await house.create(), f"run {COMMAND}")

    assert forked(dies).signal == signal.SIGKILL
    copy = place.keep("left")
    whole = way_out(place, 0, "before").value
    assert whole is not None
    seen: Counter[bool] = Counter()
    for number, when, point in points(*whole):
        place.put_back(copy)
        assert way_out(place, number, when).signal == signal.SIGKILL, point
        records = whole_records(place.journal(SESSION))
        found = after_death(place)
        try:
            seen[_judged(place, records, found)] += 1
        except AssertionError as broken:
            raise AssertionError(f"{point}\n{found}\n{broken}") from broken
    assert min(seen[True], seen[False]) > 5
    shutil.rmtree(copy)


def _judged(place: Place, records: list[dict[str, object]], found: Found) -> bool:
    """Whether it was settled."""
    kinds = [(record["kind"], record.get("settled")) for record in records]
    settled = ("settlement", "waived") in kinds
    started = {str(record["callId"]) for record in records if record["kind"] == "started"}
    ended = {str(record["callId"]) for record in records if record["kind"] == "result"}
    if settled:
        before = kinds[: kinds.index(("settlement", "waived"))]
        assert ("inspection", None) in before
        assert len(started) >= 2, "it settled without a start of its own [I1]"
    assert ("run_command" in found.uncertain) == (not settled)
    assert settled or "a.txt" not in found.files, "it wrote while the command held it back [I6]"
    assert found.files[COUNTER] == "ran" + os.linesep
    assert found.last_files == {COUNTER: "ran\n", "a.txt": "new"}
    assert found.refused == []
    assert not found.opening_again_writes
    calls = [record for record in records if record["kind"] == "intent" and record["tool"] == "settle_effect"]
    for call in calls:
        state = next(state for tool, state in found.states if tool == "settle_effect")
        ran = call["callId"] in started
        assert state == ("returned" if call["callId"] in ended else "unknown" if ran else "notRun")
    reading = second_reader.read(place.journal(SESSION))
    assert (reading.damaged, reading.breaks) == (0, set())
    return settled
