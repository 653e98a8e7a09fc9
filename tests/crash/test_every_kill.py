"""The process is killed at every durable operation of a turn, before, after and halfway, and opened again.

A life runs in a fork of its own and dies by SIGKILL at the n-th operation of its disk; n goes from 1 until a life gets
through unharmed. The kills inside recovery, in the middle of a command, and while the person is being asked are the
same with another life. What must hold stands in tests/crash/promises.py.
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

from steadyhand.adapters.disk import system_disk
from steadyhand.core.ledger import Ledger
from steadyhand.core.questions import Answer, PermissionQuestion
from steadyhand.core.recovery import SettleSetting
from tests.crash.promises import (
    COMMAND,
    COUNTER,
    HAND,
    PROMPT,
    SESSION,
    WORDS,
    Left,
    Opened,
    Story,
    keeps_promises,
    lay_out,
    lives_after,
    lives_without,
    opened,
    tell_story,
)
from tests.support.disks import CountingDisk, KillingDisk, Operation, When
from tests.support.systems import linux_only
from tests.support.turns import Died, Place, ScriptedEditor, forked, rig

pytestmark = [linux_only, pytest.mark.timeout(240)]

T = TypeVar("T")
operations_min = 50
"""So many durable operations a story has at least; fewer would mean that not all were killed."""
recovery_points_min = 60


@attrs.frozen
class Point:
    """One place to die."""

    number: int
    when: When
    what: str = ""

    def __str__(self) -> str:
        return f"killed {self.when} operation {self.number}: {self.what}"


def tell(place: Place, point: Point | None, story: Story = WORDS) -> Died[tuple[str, list[Operation]]]:
    """The story, killed at a point; how it ended, and every durable operation."""

    async def life() -> tuple[str, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk = counting if point is None else KillingDisk(counting, point.number, point.when)
        async with story.life(place, 1, disk=disk) as house:
            reason = await tell_story(house, story)
        return reason, counting.operations

    return forked(life)


def whole_story(folder: Path, story: Story = WORDS) -> list[Operation]:
    """Every durable operation of the story up to its end; it ends well and does each thing once."""
    place = lay_out(Place.under(folder / "unharmed"), story)
    died = tell(place, None, story)
    assert died.value is not None
    reason, operations = died.value
    assert reason == "done"
    assert place.files() == story.last_files
    # What follows the journal's last record (a summary for the list) is not always the same.
    last = max(operation.number for operation in operations if operation.target.endswith("/journal.jsonl"))
    return operations[:last]


EVERY_WAY: tuple[When, ...] = ("before", "half", "after")
NOT_BEFORE: tuple[When, ...] = ("half", "after")
"""Before an operation the disk is as after the one before it; only what is no disk may differ."""


def variants(number: int, operation: Operation | None, ways: Sequence[When]) -> list[Point]:
    """The ways to die at an operation; only a write has a half."""
    halves = operation is not None and operation.verb == "write"
    return [Point(number, when, str(operation)) for when in ways if halves or when != "half"]


@pytest.mark.parametrize(
    ("story", "settle"), [(WORDS, "checked"), (WORDS, "ask"), (HAND, "checked")], ids=["words", "words-ask", "hand"]
)
def test_a_turn_killed_at_every_operation_in_memory(in_memory: Path, story: Story, settle: SettleSetting) -> None:
    """Nothing happens twice, nothing that may have run is called not run, every file is old or new, what can be
    checked is settled (or stays, with `ask`), nothing is left behind, opening again writes nothing, and the work
    goes on; the resent prompt runs only if it was never durable. A move killed between its two paths is named so, and
    what runs in the background is told, is no uncertain effect and can be stopped.

    Rows J2, J3, J4, J8, C1-C4, C7, C8, D1, W2, W3, W4, W8, W9, B3, E5, T1; [I1] [I3] [I4] [I5] [I9] [I16];
    cases 20, 61, 98.
    """
    _killed_everywhere(in_memory, settle, EVERY_WAY, story)


@pytest.mark.parametrize("story", [WORDS, HAND], ids=["words", "hand"])
def test_a_turn_killed_at_every_operation_on_disk(tmp_path: Path, story: Story) -> None:
    """The same where files really lie (rows J4, C1, C2; [I1])."""
    _killed_everywhere(tmp_path, "checked", NOT_BEFORE, story)


def _first_of(story: Story, operations: Sequence[Operation]) -> int:
    """What comes before the first call is the same in every story, and is killed in one of them."""
    if story is WORDS:
        return 1
    return next(operation.number for operation in operations if "assistant" in operation.kinds)


def _killed_everywhere(folder: Path, settle: SettleSetting, ways: Sequence[When], story: Story) -> None:
    operations = whole_story(folder, story)
    assert len(operations) >= operations_min
    points, first = 0, _first_of(story, operations)
    for number in itertools.count(first):
        operation = operations[number - 1] if number <= len(operations) else None
        for point in variants(number, operation, ways):
            place = lay_out(Place.under(folder / f"{number}-{point.when}"), story)
            died = tell(place, point, story)
            if died.value is not None:
                assert died.value[0] == "done"
                assert number > len(operations), f"not {point}"
                assert points > len(operations[first:])
                return
            assert died.signal == signal.SIGKILL, point
            left = Left.of(place, has_jobs=story.has_jobs)
            after_this_death(place, left, str(point), settle, story=story)
            points += 1
            shutil.rmtree(place.base)


def after_this_death(
    place: Place, left: Left, point: str, settle: SettleSetting = "checked", life: int = 2, story: Story = WORDS
) -> None:
    try:
        if not left.records:
            assert forked(lambda: lives_without(place, story)).value == story.last_files
            return
        later = forked(lambda: lives_after(place, settle, life, story)).value
        assert later is not None
        keeps_promises(left, later, settle, story)
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
"""How it looked on disk → the operation to die at: words its name has in this order, the how-manieth of them."""


def operation_of(operations: list[Operation], words: str, turn: int, when: When) -> Point:
    wanted = words.format(journal="journal.jsonl").split()
    found = [operation for operation in operations if _stands_in(wanted, str(operation))]
    assert len(found) >= turn, f"the story has no such operation: {words}"
    return Point(found[turn - 1].number, when, str(found[turn - 1]))


def _stands_in(words: list[str], name: str) -> bool:
    at = 0
    for word in words:
        at = name.find(word, at) + len(word)
        if at < len(word):
            return False
    return True


def test_recovery_killed_at_every_operation_says_the_same(in_memory: Path) -> None:
    """A second death, at each operation of the opening after the first: what must hold holds as if it had not been
    (rows C4, B3, W9, J8; [I5] [I4])."""
    operations = whole_story(in_memory)
    points = 0
    for story, death in DEATHS.items():
        place = lay_out(Place.under(in_memory / f"death-{points}"))
        assert tell(place, operation_of(operations, *death)).signal == signal.SIGKILL
        left, copy = Left.of(place), place.keep("left")
        opening = _opening(place, None)
        assert opening.value is not None
        for operation in opening.value:
            for point in variants(operation.number, operation, NOT_BEFORE):
                place.put_back(copy)
                assert _opening(place, point).signal == signal.SIGKILL
                after_this_death(place, left, f"{story}; then, while opening, {point}", life=3)
                points += 1
    assert points > recovery_points_min


def _opening(place: Place, point: Point | None) -> Died[list[Operation]]:
    """The life after a death, killed at a point; every durable operation of the opening."""

    async def life() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk = counting if point is None else KillingDisk(counting, point.number, point.when)
        async with rig(place, life=2, disk=disk) as house:
            await house.open(SESSION)
        return list(counting.operations)

    return forked(life)


def test_killed_while_the_person_is_asked_it_did_not_run(in_memory: Path) -> None:
    """The question comes before the start: the call is not run, and may be proposed and allowed anew, as another
    attempt (rows C1, C5; case 83)."""
    place = lay_out(Place.under(in_memory / "asked"))

    def die(_: PermissionQuestion) -> Answer | None:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process outlived its SIGKILL")

    async def asked() -> None:
        async with rig(place, mode="ask", editor=ScriptedEditor(permission=die)) as house:
            await house.say(await house.create(), 'write old.txt with "changed\\n"', PROMPT)

    async def allowed() -> tuple[Opened, str, Ledger]:
        async with rig(place, life=2, mode="ask") as house:
            first = await opened(house)
            ended = await house.say(SESSION, 'write old.txt with "changed\\n"', "prompt-2")
            return first, ended.reason, house.ledger(SESSION)

    assert forked(asked).signal == signal.SIGKILL
    assert Left.of(place).having("started") == set()
    assert place.files()["old.txt"] == "old\n"
    first, reason, ledger = value_of(forked(allowed))
    assert list(first.states.values()) == ["notRun"]
    assert first.snapshot.calls == ()
    assert reason == "done"
    assert place.files()["old.txt"] == "changed\n"
    assert [attempt.result.outcome for attempt in ledger.attempts.values() if attempt.result] == [
        "interrupted_before_execution",
        "returned",
    ]


def test_killed_in_the_middle_of_a_command_it_is_unknown(in_memory: Path) -> None:
    """The command has done its work and ends the server: unknown, uncertain, and never run again (rows C2, C3, F4;
    [I3])."""
    place = lay_out(Place.under(in_memory / "command"))
    prompt = f"run {COMMAND}; kill -KILL $PPID"

    async def ended_by_it() -> str:
        async with rig(place) as house:
            return (await house.say(await house.create(), prompt, PROMPT)).reason

    assert forked(ended_by_it).signal == signal.SIGKILL
    left = Left.of(place)
    assert left.files[COUNTER] == WORDS.after[COUNTER]
    assert left.having("result") == set()
    later = value_of(forked(lambda: lives_after(place, story=attrs.evolve(WORDS, prompt=prompt))))
    (attempt,) = later.opened.ledger.attempts.values()
    assert list(later.opened.states.values()) == ["unknown"]
    assert attempt.uncertain
    assert attempt.check is None
    assert [uncertain.title for uncertain in later.opened.snapshot.calls] == [attempt.title]
    assert later.journals == [later.opened.journal] * 2
    assert later.resent is None
    assert later.last_files[COUNTER] == WORDS.after[COUNTER]


def value_of(died: Died[T]) -> T:
    assert died.signal is None
    assert died.value is not None
    return died.value
