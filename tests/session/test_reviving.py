"""The look at the sessions of the open folders, from inside: which, how many, at what cost, and what may go wrong (A8).

`tests/e2e/test_recovery_start.py` shows the same to a client.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import anyio
import pytest

from steadyhand.core.record import Assistant, Ended, Intent, Proposed, Result, Scope, Started, Tool, Usage, User
from steadyhand.core.told import SessionTold
from steadyhand.session import reviving, shelf
from steadyhand.session.folder import OWNER_LOCK
from steadyhand.session.reviving import revive
from tests.support.disks import Operation
from tests.support.scripted import GatedDisk
from tests.support.turns import Place, Rig, rig

pytestmark = pytest.mark.anyio

session_bytes = 1_000_000
sessions_many = 200
added_cpu_s_max = 0.3
slack = 3.0
"""The machine of a build is slower than the one the bound is meant for, and shared."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.under(tmp_path / "place")


async def leave_open(house: Rig, path: str = "a.txt", started: bool = True) -> str:
    """A session with a call that has no end, as a kill leaves it; its lock is let go."""
    session_id = await house.create()
    owner = house.house.owners[session_id]
    ids = house.house.world.ids
    turn, call, attempt = ids.new(), ids.new(), ids.new()
    arguments = json.dumps({"content": "new\n", "path": path}, separators=(",", ":"))
    digest = "0" * 64
    intent = Intent(
        attempt_id=attempt, call_id=call, turn_id=turn, tool="write_file", title=f"write_file: {path}",
        effect="writes_files", arguments_digest=digest, scope=Scope((str(house.place.workspace / path),)), key=digest,
        occurrence=0,
    )  # fmt: skip
    records = [
        User(turn, ids.new(), ids.new(), "go"),
        Assistant(turn, ids.new(), "", (Proposed(call, "write_file", arguments, None),), None, "calls"),
        intent,
    ]
    await owner.append([*records, Started(attempt, call, ())] if started else records, barrier=True)
    await owner.let_go()
    del house.house.owners[session_id]
    (house.place.session(session_id) / "summary.json").unlink()
    return session_id


def opened_here(house: Rig) -> set[str]:
    return set(house.house.owners)


async def test_a_doubt_is_opened_and_told(place: Place) -> None:
    """A8: classified, told once; what it was is named."""
    async with rig(place) as house:
        session_id = await leave_open(house)
    async with rig(place, life=2) as house:
        await revive(house.house, [place.uri])
        assert opened_here(house) == {session_id}
        (told,) = house.editor.messages
        assert "1 earlier effect is uncertain" in told
        assert "write_file: a.txt" in told
        (view,) = [told.session for told in house.editor.told if isinstance(told, SessionTold)]
        assert view.uncertain == 1
        assert view.epoch is not None


async def test_a_list_counts_what_a_kill_left(place: Place) -> None:
    """S3, B1: listed as uncertain though nobody opened it, from its summary and by a fold; while an owner lives, its
    running call is certain; a call that never started is."""
    async with rig(place) as house:
        started = await leave_open(house)
        await leave_open(house, "b.txt", started=False)
    async with rig(place, life=2) as house:
        for _ in range(2):
            assert {view.session_id: view.uncertain for view in await house.house.listed()}[started] == 1
            assert sum(view.uncertain for view in await house.house.listed()) == 1
        folder = house.house.world.disk.open_folder(str(place.session(started)))
        lock = house.house.world.disk.lock(folder, OWNER_LOCK)
        assert lock is not None
        assert [view.uncertain for view in await house.house.listed()] == [0, 0]
        lock.release()
        house.house.world.disk.close(folder)


async def test_nothing_left_is_let_go_and_not_told(place: Place) -> None:
    """A8: a call that did not run leaves nothing; the lock is free again, the verdict stands."""
    async with rig(place) as house:
        session_id = await leave_open(house, started=False)
    async with rig(place, life=2) as house:
        await revive(house.house, [place.uri])
        assert opened_here(house) == set()
        assert house.editor.messages == []
        assert shelf.free(house.house.world, session_id)
        assert b"interrupted_before_execution" in place.journal(session_id)
        found = shelf.summary(house.house.world, session_id)
        assert found is not None
        assert not found.unsettled


async def test_one_that_the_client_opened_is_kept(place: Place) -> None:
    """A8: only what nobody opened is let go."""
    async with rig(place) as house:
        session_id = await leave_open(house, started=False)
    async with rig(place, life=2) as house:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(revive, house.house, [place.uri])
            tasks.start_soon(house.open, session_id)
        assert opened_here(house) == {session_id}
        assert house.house.owners[session_id].kept_open


async def test_only_the_newest(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A8, I13: so many are looked at, the newest first."""
    async with rig(place) as house:
        every = [await leave_open(house, f"{n}.txt") for n in range(4)]
    monkeypatch.setattr(reviving, "looked_at_max", 2)
    async with rig(place, life=2) as house:
        await revive(house.house, [place.uri])
        assert opened_here(house) == set(every[2:])
        (told,) = house.editor.messages
        assert "2 earlier effects" in told


async def test_many_are_named_by_a_few(place: Place) -> None:
    """A8, I13: the one notification stays short."""
    async with rig(place) as house:
        for n in range(5):
            await leave_open(house, f"{n}.txt")
    async with rig(place, life=2) as house:
        await revive(house.house, [place.uri])
        (told,) = house.editor.messages
        assert "5 earlier effects" in told
        assert "0.txt" in told
        assert "and 2 more" in told
        assert "4.txt" not in told


async def test_one_that_vanishes_fails_alone(place: Place) -> None:
    """S6: a session whose folder is taken away between the look and the opening takes no other with it."""
    async with rig(place) as house:
        first = await leave_open(house)
        second = await leave_open(house, "b.txt")
    async with rig(place, life=2) as house:
        found = shelf.free

        def free(world: object, session_id: str) -> bool:
            assert found(house.house.world, session_id)
            if session_id == first:
                os.rename(place.session(first), place.base / "gone")
            return True

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shelf, "free", free)
            await revive(house.house, [place.uri])
        assert opened_here(house) == {second}
        assert len(house.editor.messages) == 1


async def test_an_opening_is_not_broken_off(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A8, J11: the 10 s are for the lock alone: an opening that began in time ends; no lock is kept for nothing."""
    async with rig(place) as house:
        session_id = await leave_open(house)
    monkeypatch.setattr(reviving, "free_s_max", 0.3)

    def of_verdict(operation: Operation) -> bool:
        return operation.verb == "write" and "result" in operation.kinds

    disk = GatedDisk(of_verdict)
    async with rig(place, life=2, disk=disk) as house, anyio.create_task_group() as tasks:
        tasks.start_soon(revive, house.house, [place.uri])
        await disk.wait_reached()
        await anyio.sleep(0.5)  # longer than the limit; this is what is tested
        disk.go.set()
        await house.until(lambda: house.editor.messages or None)
        assert opened_here(house) == {session_id}
        assert house.house.owners[session_id].epoch is not None


async def test_the_cost_of_many_sessions(place: Place) -> None:
    """A8: 200 sessions of 1 MB, all settled, add less than 300 ms of processor time to a start, because of their
    summaries; without them it would be many times that."""
    spent, folded = await cost_of_a_start(place)
    assert spent < added_cpu_s_max * slack
    assert folded > spent


async def cost_of_a_start(place: Place) -> tuple[float, float]:
    """Processor seconds of the look at `sessions_many` sessions of `session_bytes`, with summaries; and what folding
    them would take, from a sample of ten. For the bench too."""
    async with rig(place) as house:
        template = await large_session(house)
    source = place.session(template)
    for number in range(1, sessions_many):
        folder = place.session(f"{number:032x}".replace("0", "f", 1))
        folder.mkdir(mode=0o700)
        os.link(source / "journal.jsonl", folder / "journal.jsonl")
        (folder / "summary.json").write_bytes((source / "summary.json").read_bytes())
    async with rig(place, life=2) as house:
        begin = time.process_time()
        await revive(house.house, [place.uri])
        spent = time.process_time() - begin
        assert opened_here(house) == set()
        for folder in list((place.state / "sessions").iterdir())[:10]:
            (folder / "summary.json").unlink()
        begin = time.process_time()
        await revive(house.house, [place.uri])
        folded = (time.process_time() - begin) * sessions_many / 10
    return spent, folded


async def large_session(house: Rig) -> str:
    """A session of about `session_bytes`, at its end."""
    session_id = await house.create()
    owner = house.house.owners[session_id]
    ids = house.house.world.ids
    while len(house.place.journal(session_id)) < session_bytes:
        turn, call, attempt = ids.new(), ids.new(), ids.new()
        path = str(house.place.workspace / "a.txt")
        intent = Intent(
            attempt_id=attempt, call_id=call, turn_id=turn, tool="write_file", title="write_file: a.txt",
            effect="writes_files", arguments_digest="0" * 64, scope=Scope((path,)), key="0" * 64, occurrence=0,
        )  # fmt: skip
        arguments = json.dumps({"content": "x" * 8000, "path": "a.txt"}, separators=(",", ":"))
        await owner.append(
            [
                User(turn, ids.new(), ids.new(), "go"),
                Assistant(turn, ids.new(), "I write.", (Proposed(call, "write_file", arguments, None),), None, "calls"),
                Usage(turn, complete=False),
                intent,
                Started(attempt, call, ()),
                Result(attempt, call, turn, "returned"),
                Tool(turn, call, "returned", "Written.", 8, False, None, attempt),
                Ended(turn, "done"),
            ],
            barrier=False,
        )
    return session_id
