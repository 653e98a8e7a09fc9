"""States that the proof found, kept as tests: each one broke a promise once."""

from __future__ import annotations

import threading

import anyio
import pytest

from tests.prove.power import states
from tests.prove.scenarios import SCENARIOS
from tests.prove.simulated_server import SCENE, SESSION, many, seen, simulated_server
from tests.prove.truth import WORK, broken_on_disk, bytes_of, truths
from tests.support.sim_disk import SimDisk

wait_s_max = 60.0


def broken_after(disk: SimDisk, begun: int) -> list[str]:
    """What is broken in any state that a power loss leaves of the log from this operation on."""
    known = truths(disk.log)
    every = (
        broken_on_disk(SCENE, known[state.marks], bytes_of(state.tree, SESSION))
        for state in states(disk, begun, "whole")
    )
    return sorted({sentence for broken in every for sentence in broken})


async def work(disk: SimDisk, number: int, text: str) -> None:
    async with simulated_server(disk, number) as server:
        await server.registry.open(SESSION, 100)
        await server.turn(text)
        disk.mark("created")


def test_session_whose_name_was_not_synced_outlasts_power_loss() -> None:
    """The first process was killed before it synced the session's name. The next one worked in the session, and a power
    loss removed the whole session while the files stayed changed (row J4, [I1])."""
    disk = SCENARIOS["plain"].played()
    created = next(place for place, entry in enumerate(disk.log) if entry == ("mark", "created"))
    tried = 0
    for prefix in range(created):
        found = SimDisk.killed_after(disk, prefix)
        journal = seen(found).journal
        if journal:
            anyio.run(work, found, 2, f'write new.txt with "{many("new")}"')
            assert broken_after(found, prefix) == [], f"killed after operation {prefix}"
            tried += 1
    assert tried


def test_file_in_a_folder_made_by_a_command_outlasts_power_loss() -> None:
    """`mkdir` syncs nothing. The file was synced, the name of its folder was not, and the result said that the file is
    there (rows W5, W9)."""
    disk = SCENARIOS["again"].played()
    assert f"{WORK}/made/b.txt" in seen(disk).work
    assert broken_after(disk, 0) == []


@pytest.mark.anyio
async def test_session_is_not_released_while_its_summary_is_written() -> None:
    """The handle of the folder was closed during the write, and could have belonged to another session by then (row
    A8)."""
    disk = SCENARIOS["plain"].disk()
    go, begun = threading.Event(), threading.Event()

    def hang(verb: str, target: str) -> None:
        if verb == "create" and target.startswith(".summary.json.") and not begun.is_set():
            begun.set()
            go.wait(wait_s_max)

    async with simulated_server(disk) as server:
        session = await server.registry.open_session(await server.create())
        disk.before = hang
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.log.keep_summary)
            assert await anyio.to_thread.run_sync(begun.wait, wait_s_max)
            tasks.start_soon(server.registry.close, SESSION)
            await anyio.wait_all_tasks_blocked()
            assert session.log.lock is not None, "it was let go meanwhile"
            go.set()
    assert disk.misused == 0
