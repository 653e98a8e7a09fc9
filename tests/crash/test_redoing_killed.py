"""A restore and a retry are killed at every durable operation, and opened again (rows A5, F2, F3, J2, J14).

Each life runs in a fork and dies by SIGKILL. The first dies in a turn, the second while it restores or tries again, the
third opens what is left, judges it, and goes on as far as a person could: restoring or trying again once more where
that is offered. A fourth opening finds nothing new.
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

from steadyhand.adapters.disk import system_disk
from steadyhand.core.folded import Attempt
from steadyhand.core.model import CallProposed, Finish
from steadyhand.core.refusal import Refused
from steadyhand.core.snapshot import actions
from steadyhand.core.views import Action
from steadyhand.ports import Disk
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Wanted, resolve
from tests.support.disks import CountingDisk, KillingDisk, Operation, When, carries
from tests.support.dying import SESSION, Matches, died_in, on, retrying
from tests.support.scripted import ScriptedModel
from tests.support.sink import SendTool, Sink
from tests.support.systems import linux_only
from tests.support.turns import Died, Place, Rig, forked

pytestmark = [linux_only, pytest.mark.timeout(240)]

OLD, OTHER, NEW = "old\n", "what was there\n", "new\n"
Tree = dict[str, str]
Halves = tuple[Tree, ...]


@attrs.frozen
class Story:
    """The turn in which the first life dies, and where; the files before it, left by it, and half-way back."""

    tool: str
    fields: dict[str, Any]
    before: Tree
    left: Tree
    dies: Matches = attrs.field(factory=lambda: carries("result"))
    changed: Tree = attrs.field(factory=dict)  # what somebody saves after the death
    half: Halves = ()

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel([CallProposed(self.tool, json.dumps(self.fields)), Finish("calls")])

    @property
    def found(self) -> Tree:
        """What the second life finds."""
        return {**self.left, **self.changed}

    def lay(self, folder: Path) -> Place:
        place = Place.under(folder)
        for name, content in self.before.items():
            place.write(name, content)
        died_in(place, "go", self.dies, models=self.model)
        assert place.files() == self.left, place.files()
        for name, content in self.changed.items():
            place.write(name, content)
        return place


WRITE = {"path": "a.txt", "content": NEW}
RESTORES = {
    "modified": Story("write_file", WRITE, {"a.txt": OLD}, {"a.txt": NEW}),
    "conflict": Story("write_file", WRITE, {"a.txt": OLD}, {"a.txt": NEW}, changed={"a.txt": OTHER}),
    "created": Story("write_file", WRITE, {}, {"a.txt": NEW}),
    "deleted": Story("delete_file", {"path": "a.txt"}, {"a.txt": OLD}, {}),
    "moved over": Story(
        "move_file", {"from": "a.txt", "to": "b.txt", "overwrite": True},
        {"a.txt": OLD, "b.txt": OTHER}, {"b.txt": OLD}, half=({"a.txt": OLD, "b.txt": OLD},),
    ),
}  # fmt: skip


@attrs.frozen
class Found:
    """What the life after the second death finds, and what going on makes of it."""

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
    place: Place, action: Action, number: int, when: When, tool: Callable[[], SendTool] | None = None
) -> Died[tuple[int, list[Operation]]]:
    """The second life, killed at a point (0: unharmed); the operation before the first of the decision, and all."""

    async def life() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with retrying(place, disk=disk) as house:
            owner, attempt = await opened(house, tool)
            seen = await look(owner, attempt)
            first = counting.count
            await resolve(owner, Wanted(attempt.attempt_id, action, inspection_id=seen))
            last = counting.count
        return first, counting.operations[:last]

    return forked(life)


async def opened(house: Rig, tool: Callable[[], SendTool] | None = None) -> tuple[Owner, Attempt]:
    """The owner, and the first attempt with an effect."""
    if tool is not None:
        made = tool()
        house.house.world.tools[made.name] = made
    await house.open(SESSION)
    owner = house.house.owners[SESSION]
    attempt = next(one for one in owner.ledger.attempts.values() if one.effect != "reads")
    return owner, attempt


async def look(owner: Owner, attempt: Attempt) -> str:
    done = await resolve(owner, Wanted(attempt.attempt_id, "inspect"))
    assert done.inspection is not None
    return done.inspection.inspection_id


async def go_on(owner: Owner, attempt: Attempt, action: Action) -> str:
    """As far as a person could: the newest attempt that the action may still be of."""
    every = [one for one in owner.ledger.attempts.values() if one.effect != "reads"]
    newest = every[-1] if action == "retry" else attempt
    if newest.stage not in ("uncertain", "checked"):
        return f"{newest.stage} already"
    for other in every:
        if other is not newest and other.uncertain:
            seen = await look(owner, other)
            await resolve(owner, Wanted(other.attempt_id, "waive", inspection_id=seen))
    seen = await look(owner, newest)
    if action not in actions(newest, owner.stand()):
        return "not offered"
    try:
        await resolve(owner, Wanted(newest.attempt_id, action, inspection_id=seen))
    except Refused as refused:
        return refused.kind
    return "done"


def after_death(place: Place, action: Action, tool: Callable[[], SendTool] | None = None) -> Found:
    async def life() -> Found:
        async with retrying(place, life=3) as house:
            owner, attempt = await opened(house, tool)
            ledger, files, journal = owner.ledger, place.files(), place.journal(SESSION)
            settled = attempt.settlement.settled if attempt.settlement else None
            new = [one for one in ledger.attempts.values() if one.restore_of or one.retry_of]
            last = new[-1] if new else None
            ended = None
            if last is not None:
                assert last.result is not None
                ended = last.settlement.settled if last.settlement else last.result.outcome
        async with retrying(place, life=4) as house:
            await opened(house, tool)
            again = place.journal(SESSION) != journal
        async with retrying(place, life=5) as house:
            owner, attempt = await opened(house, tool)
            going_on = await go_on(owner, attempt, action)
            ledger = owner.ledger
            intended = [one for one in ledger.attempts.values() if one is attempt or one.retry_of]
        return Found(
            settled == "restored", settled, ended, files, list(ledger.refused), again, going_on, place.files(),
            {one.key for one in intended}, sum(one.started is not None for one in intended),
        )  # fmt: skip

    value = forked(life).value
    assert value is not None
    return value


def points(first: int, operations: list[Operation]) -> Iterator[tuple[int, When, str]]:
    """Every way to die from the decision on."""
    for one in operations[first:]:
        whens: tuple[When, ...] = ("before", "half", "after") if one.verb == "write" else ("before", "after")
        for when in whens:
            yield one.number, when, f"killed {when} {one}"


def everywhere(
    folder: Path, lay: Callable[[Path], Place], action: Action, judge: Callable[[Found, str], None],
    tool: Callable[[Place], SendTool] | None = None,
) -> None:  # fmt: skip
    """Kill at each point, open, judge."""

    def made(place: Place) -> Callable[[], SendTool] | None:
        return None if tool is None else lambda: tool(place)

    place = lay(folder / "place")
    copy = place.keep("left")
    whole = redoing(place, action, 0, "before", made(place)).value
    assert whole is not None
    count = 0
    for number, when, point in points(*whole):
        place.put_back(copy)
        died = redoing(place, action, number, when, made(place))
        assert died.signal == signal.SIGKILL, point
        found = after_death(place, action, made(place))
        try:
            judge(found, point)
        except AssertionError as broken:
            raise AssertionError(f"{point}\n{found}\n{broken}") from broken
        count += 1
    assert count >= 2 * len(whole[1][whole[0] :]) > 10
    shutil.rmtree(copy)


@pytest.mark.parametrize("story", RESTORES.values(), ids=RESTORES)
def test_a_restore_killed_anywhere(in_memory: Path, story: Story) -> None:
    """A5, W4, W8, W9, J2, J14, C2, [I1] [I4] [I5]: the files are as they were found, as before, or path by path the one
    or the other, and nothing else; the old attempt is settled `restored` exactly if the restore has happened; nothing
    is left beside them; and the restore can be carried out, or was."""
    seen: set[bool] = set()

    def judge(found: Found, point: str) -> None:
        assert found.opened in (story.found, story.before, *story.half)
        happened = found.opened == story.before
        assert found.restored == happened
        assert found.refused == []
        assert not found.opening_again_writes
        assert found.at_last == story.before
        assert found.going_on == ("closed already" if happened else "done")
        assert found.new in (None, "interrupted_before_execution", "checked_absent", "checked_present", "returned",
                             "unknown_after_restart")  # fmt: skip
        assert (found.new == "unknown_after_restart") == (found.opened in story.half)
        seen.add(happened)

    everywhere(in_memory, story.lay, "restore", judge)
    assert seen == {True, False}


@pytest.mark.parametrize("story", RESTORES.values(), ids=RESTORES)
def test_an_undone_restore_killed_anywhere(in_memory: Path, story: Story) -> None:
    """A5, case 74: the same for the restore of a restore: as it was found again, or still as before."""
    seen: set[str] = set()

    def lay(folder: Path) -> Place:
        place = story.lay(folder)
        forked(_restored(place))
        assert place.files() == story.before
        return place

    place = lay(in_memory / "place")
    copy = place.keep("left")
    counted = forked(_undone(place, 0, "before")).value
    assert counted is not None
    for number, when, point in points(*counted):
        place.put_back(copy)
        assert forked(_undone(place, number, when)).signal == signal.SIGKILL, point
        files = forked(_looked_at(place)).value
        assert files is not None
        assert files in (story.before, story.found, *story.half), point
        seen.add(json.dumps(files, sort_keys=True))
    assert {json.dumps(one, sort_keys=True) for one in (story.before, story.found)} <= seen


def _restored(place: Place) -> Callable[[], Awaitable[None]]:
    async def life() -> None:
        async with retrying(place, life=6) as house:
            owner, attempt = await opened(house)
            seen = await look(owner, attempt)
            await resolve(owner, Wanted(attempt.attempt_id, "restore", inspection_id=seen))

    return life


def _undone(place: Place, number: int, when: When) -> Callable[[], Awaitable[tuple[int, list[Operation]]]]:
    async def life() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with retrying(place, life=7, disk=disk) as house:
            owner, _ = await opened(house)
            restored = next(one for one in owner.ledger.attempts.values() if one.undoable)
            seen = await look(owner, restored)
            first = counting.count
            await resolve(owner, Wanted(restored.attempt_id, "restore", inspection_id=seen))
            last = counting.count
        return first, counting.operations[:last]

    return life


def _looked_at(place: Place) -> Callable[[], Awaitable[Tree]]:
    """Opened; nothing is left beside the files, and what is not half-way is not uncertain."""

    async def life() -> Tree:
        async with retrying(place, life=8) as house:
            owner, _ = await opened(house)
            assert owner.ledger.refused == []
            assert all(one.check == "conflict" for one in owner.ledger.uncertain())
            return place.files()

    return life


def test_a_retry_of_a_write_killed_anywhere(in_memory: Path) -> None:
    """F2, F3, J2, N2, C1, C2, [I1] [I4] [I10]: old or new and nothing else; the old attempt is superseded exactly if
    the new one is there whose way it was to make; the key is one; and opening runs nothing."""
    seen: set[tuple[str | None, str | None]] = set()

    def lay(folder: Path) -> Place:
        place = Place.under(folder)
        place.write("a.txt", OLD)
        died_in(place, 'write a.txt with "new\\n"', on("exchange", "a.txt"))
        assert place.files()["a.txt"] == OLD
        return place

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
        seen.add((found.settled, found.new))

    everywhere(in_memory, lay, "retry", judge)
    assert {new for _, new in seen} == {
        None, "interrupted_before_execution", "checked_absent", "checked_present", "returned",
    }  # fmt: skip
    assert {settled for settled, new in seen if new not in (None, "interrupted_before_execution")} == {"superseded"}


def test_a_retry_of_a_message_never_arrives_twice(in_memory: Path) -> None:
    """F2, F3, F4, N2, [I10]: wherever the retry dies, and whatever a person tries again after it, it arrives at most
    once, and every try has the one key."""
    arrived: set[int] = set()
    sink = Sink(in_memory / "place" / "service")

    def tool(place: Place) -> SendTool:
        return SendTool(Sink(place.base / "service"))

    def lay(folder: Path) -> Place:
        place = Place.under(folder)
        (folder / "service").mkdir()

        async def life() -> None:
            async with retrying(place, life=1, models=model) as house:
                house.house.world.tools["send"] = SendTool(Sink(place.base / "service"), fails="before")
                assert await house.create() == SESSION
                await house.say(SESSION, "go")

        model = ScriptedModel([CallProposed("send", '{"text":"hello"}'), Finish("calls")])
        assert forked(life).signal is None
        return place

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
