"""A turn that moves or deletes is killed at every durable operation and opened again: what recovery makes of it.

Each life runs in a fork and dies by SIGKILL. The verdict must follow from the journal and the tree alone: without a
start it did not run, with a result it is known, in between it is unknown and checked path by path.
"""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.model import CallProposed, Finish
from steadyhand.core.record import Check
from steadyhand.session.inspecting import look_at, record_of, sentence
from tests.support.disks import CountingDisk, KillingDisk, Operation, When
from tests.support.fakes import id_of
from tests.support.scripted import ScriptedModel
from tests.support.systems import linux_only
from tests.support.turns import Died, Place, forked, rig

pytestmark = [linux_only, pytest.mark.timeout(240)]

SESSION = id_of(1)  # the first id of the first life
OLD, OTHER = "the content\n", "what was there\n"
Tree = dict[str, str]


@attrs.frozen
class Story:
    tool: str
    fields: dict[str, object]
    before: Tree
    after: Tree

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel([CallProposed(self.tool, json.dumps(self.fields)), Finish("calls")])

    def lay(self, place: Place) -> Place:
        for name, content in self.before.items():
            place.write(name, content)
        return place


STORIES = {
    "delete": Story("delete_file", {"path": "a.txt"}, {"a.txt": OLD}, {}),
    "move": Story("move_file", {"from": "a.txt", "to": "d/b.txt"}, {"a.txt": OLD}, {"d/b.txt": OLD}),
    "move over": Story(
        "move_file", {"from": "a.txt", "to": "b.txt", "overwrite": True},
        {"a.txt": OLD, "b.txt": OTHER}, {"b.txt": OLD},
    ),
}  # fmt: skip


@attrs.frozen
class Found:
    """What the life after a death finds."""

    state: str | None  # of the call on the wire; None: it was never proposed
    check: Check | None
    settled: str | None
    told: str  # by an inspection
    files: Tree
    again: bool  # opening once more wrote nothing


def killed(story: Story, place: Place, number: int, when: When) -> Died[list[Operation]]:
    async def life() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with rig(place, disk=disk, models=story.model) as house:
            assert (await house.say(await house.create(), "go")).reason == "done"
        return counting.operations

    return forked(life)


def opened(place: Place) -> Found:
    async def life() -> Found:
        async with rig(place, life=2) as house:
            view = await house.open(SESSION)
            calls = [call for message in view.messages for call in message.calls or ()]
            attempts = list(house.ledger(SESSION).attempts.values())
            told = ""
            if attempts and attempts[0].uncertain:
                ground = house.house.owners[SESSION].ground
                record = record_of(house.house.world.ids, attempts[0], look_at(ground, attempts[0]), "user")
                told = sentence(attempts[0], record)
        journal = place.journal(SESSION)
        async with rig(place, life=3) as house:
            await house.open(SESSION)
        settlement = attempts[0].settlement if attempts else None
        return Found(
            calls[0].state if calls else None,
            attempts[0].check if attempts else None,
            settlement.settled if settlement else None,
            told,
            place.files(),
            place.journal(SESSION) == journal,
        )

    value = forked(life).value
    assert value is not None
    return value


def points(operations: list[Operation]) -> Iterator[tuple[int, When]]:
    """From the first record of the call on; what comes before is the same for every tool."""
    first = next(one.number for one in operations if "assistant" in one.kinds)
    for one in operations[first - 1 :]:
        whens: tuple[When, ...] = ("before", "half", "after") if one.verb == "write" else ("before", "after")
        for when in whens:
            yield one.number, when


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_killed_at_every_operation_each_path_is_told_as_it_is(tmp_path: Path, story: Story) -> None:
    """W2-W4, W8, W9, B3, C1, C2, C4 [I1, I3, I4]: every path is old or new, what agrees is settled by the check, and a
    move that was killed half-way is a conflict whose inspection names how each path is."""
    whole = killed(story, story.lay(Place.under(tmp_path / "whole")), 0, "before").value
    assert whole is not None
    seen: set[str | None] = set()
    for number, when in points(whole):
        place = story.lay(Place.under(tmp_path / f"{number}-{when}"))
        assert killed(story, place, number, when).signal == signal.SIGKILL
        found = opened(place)
        _judge(story, found, f"killed {when} {whole[number - 1]}: {found}")
        seen.add(found.check if found.state == "unknown" else found.state)
        shutil.rmtree(place.base)
    assert seen >= {"notRun", "unchanged", "satisfied", "returned"}
    assert ("conflict" in seen) == (story is STORIES["move over"])


def _judge(story: Story, found: Found, point: str) -> None:
    assert found.again, point
    assert not [name for name in found.files if name.endswith(".steadyhand")], point
    match found.state:
        case None | "notRun":
            assert found.files == story.before, point
        case "returned":
            assert found.files == story.after, point
        case "unknown":
            expected = {"unchanged": (story.before, "checked_absent"), "satisfied": (story.after, "checked_present")}
            if found.check == "conflict":
                assert found.files == {**story.before, **story.after}, point
                assert found.settled is None, point
                assert "a.txt: unchanged, b.txt: satisfied" in found.told, point
            else:
                assert found.check is not None
                assert (found.files, found.settled) == expected[found.check], point
        case _:
            pytest.fail(f"a state out of place: {point}")
