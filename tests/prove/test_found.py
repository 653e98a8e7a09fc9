"""States that the proof found, kept: each was a broken promise once."""

from __future__ import annotations

import threading

import anyio
import pytest

from tests.prove.lives import SCENE, SESSION, life, many, seen
from tests.prove.power import states
from tests.prove.stories import STORIES
from tests.prove.truth import WORK, broken_on_disk, bytes_of, truths
from tests.support.sim_disk import SimDisk

wait_s_max = 10.0


def broken_after(disk: SimDisk, begun: int) -> list[str]:
    """What is broken in any state that power loss leaves of the log from there on."""
    known = truths(disk.log)
    every = (
        broken_on_disk(SCENE, known[state.marks], bytes_of(state.tree, SESSION))
        for state in states(disk, begun, "whole")
    )
    return sorted({sentence for broken in every for sentence in broken})


async def work(disk: SimDisk, number: int, text: str) -> None:
    async with life(disk, number) as stage:
        await stage.house.open(SESSION, 100)
        await stage.say(text)
        disk.mark("created")


def test_a_session_found_half_laid_down_does_not_vanish_with_what_was_done_in_it() -> None:
    """Its first process was killed before it synced the session's name; the next one worked in it, and power loss took
    the whole session while the files stayed changed (row J4, [I1])."""
    disk = STORIES["plain"].told()
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


def test_a_written_file_outlasts_power_loss_in_a_folder_that_a_command_made() -> None:
    """`mkdir` syncs nothing; the file was synced, its folder's own name was not, and the result said it is there
    (rows W5, W9)."""
    disk = STORIES["again"].told()
    assert f"{WORK}/made/b.txt" in seen(disk).work
    assert broken_after(disk, 0) == []


@pytest.mark.anyio
async def test_a_session_is_not_let_go_while_its_summary_is_written() -> None:
    """The folder's handle was closed under the writer, and could have been another session's by then (row A8)."""
    disk = STORIES["plain"].disk()
    go, begun = threading.Event(), threading.Event()

    def hang(verb: str, target: str) -> None:
        if verb == "create" and target.startswith(".summary.json.") and not begun.is_set():
            begun.set()
            go.wait(wait_s_max)

    async with life(disk) as stage:
        owner = await stage.house.owner(await stage.create())
        disk.before = hang
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(owner.keep_summary)
            assert await anyio.to_thread.run_sync(begun.wait, wait_s_max)
            tasks.start_soon(stage.house.close, SESSION)
            await anyio.wait_all_tasks_blocked()
            assert owner.held is not None, "it was let go meanwhile"
            go.set()
    assert disk.misused == 0
