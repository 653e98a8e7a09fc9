"""A rewind is killed at every durable operation, and the session is opened again (row G4).

The first process run has a turn that creates one file and changes another. The second one rewinds files and
conversation to before it and dies by SIGKILL. The third one opens what is left: what is done is done, the conversation
is as it was unless the whole rewind is recorded, and a sentence says how many files are done. The same request goes on.
"""

from __future__ import annotations

import signal
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.ports.disk import Disk
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.service.revise import revise
from steadyhand.session.session import Session
from tests.crash.test_undo_killed import CHANGES, Tree, points
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import SESSION
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]


@attrs.frozen
class Found:
    """What the run after the kill finds, and what the same request makes of it."""

    files: Tree
    prompts: list[str]
    said: list[str]  # messages about rewinds at the opening
    refused: list[str]
    doubts: int
    at_last: Tree
    prompts_at_last: list[str]


def first_turn(session: Session) -> str:
    return next(iter(session.ledger.turns))


def prompts(session: Session) -> list[str]:
    return [message.text for message in session.messages(99)[0] if message.role == "user"]


def rewinding(workspace: Workspace, number: int, when: When) -> ForkResult[tuple[int, list[Operation]]]:
    """The second run, killed at a point (0: unharmed)."""

    async def run() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with practice_server(workspace, run=2, disk=disk) as server:
            session = await server.opened(SESSION)
            first = counting.count
            done = await rewind(session, session.epoch, first_turn(session), "both")
            assert done.left == ()
            return first, counting.operations[: counting.count]

    return run_in_fork(run)


def after_death(workspace: Workspace) -> Found:
    async def run() -> Found:
        async with practice_server(workspace, run=3) as server:
            session = await server.opened(SESSION)
            files, shown, refused = workspace.files(), prompts(session), list(session.ledger.refused)
            told = [one.text for one in server.editor.told if isinstance(one, MessageNotification)]
            said = [text.partition(": ")[2] for text in told if "Rewind: " in text]
            doubts = session.ledger.uncertain()
            for doubt in doubts:  # a torn start has no evidence to check
                looked = await resolve(session, ResolutionRequest(doubt.attempt_id, "inspect"))
                assert looked.inspection is not None
                waive = ResolutionRequest(doubt.attempt_id, "waive", inspection_id=looked.inspection.inspection_id)
                await resolve(session, waive)
            if session.ledger.has_conversation_of(first_turn(session)):
                await rewind(session, session.epoch, first_turn(session), "both")
            return Found(files, shown, said, refused, len(doubts), workspace.files(), prompts(session))

    found = run_in_fork(run).value
    assert found is not None
    return found


def test_rewind_killed_anywhere_says_how_far_it_came_and_goes_on(in_memory: Path) -> None:
    """G4, W8, W9, C4, J14, [I1] [I3] [I4]: each file is as the turn left it or as before it; the sentence counts the
    latter; the conversation is whole until the rewind is. The same request ends with everything taken back.
    """
    changes = CHANGES["created and modified"]
    workspace = changes.lay(in_memory / "place")
    copy = workspace.keep("left")
    whole = rewinding(workspace, 0, "before").value
    assert whole is not None
    assert workspace.files() == changes.before
    seen: set[str] = set()
    for number, when, point in points(*whole):
        workspace.put_back(copy)
        assert rewinding(workspace, number, when).signal == signal.SIGKILL, point
        found = after_death(workspace)
        assert found.refused == [], point
        back = [path for path in changes.after if found.files.get(path) == changes.before.get(path)]
        there = [path for path in changes.after if found.files.get(path) == changes.after[path]]
        assert len(back) + len(there) == len(changes.after), (point, found.files)
        is_whole = changes.prompt not in found.prompts
        assert found.said in ([], [f"Rewind: {len(back)} of 2 files are done."]), (point, found.said)
        assert not (is_whole and (there or found.said)), point
        assert found.said or is_whole or not back, point
        torn = point.startswith("killed half") and '"started"' in point
        assert found.doubts <= torn, point
        assert found.at_last == changes.before, point
        assert changes.prompt not in found.prompts_at_last, point
        seen |= {*found.said, "whole" if is_whole else "begun"}
    assert seen == {"whole", "begun", *(f"Rewind: {count} of 2 files are done." for count in range(3))}


def revising(workspace: Workspace, number: int, when: When) -> ForkResult[tuple[int, list[Operation]]]:
    """The second run replaces the first prompt, killed at a point (0: unharmed)."""

    async def run() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with practice_server(workspace, run=2, disk=disk) as server:
            session = await server.opened(SESSION)
            first = counting.count
            assert session.epoch is not None
            done = await revise(session, session.epoch, first_turn(session), "revised", "say hello")
            last = counting.count
            await server.ended(session, done.turn_id)
            return first, counting.operations[:last]

    return run_in_fork(run)


def test_revise_killed_anywhere_leaves_the_old_or_the_new_conversation(in_memory: Path) -> None:
    """S8, J2, D1: the prompt that replaces another is one record, so the chat has either of them and never both."""
    changes = CHANGES["deleted"]
    workspace = changes.lay(in_memory / "place")
    copy = workspace.keep("left")
    whole = revising(workspace, 0, "before").value
    assert whole is not None
    seen: set[str] = set()
    for number, when, point in points(*whole):
        workspace.put_back(copy)
        assert revising(workspace, number, when).signal == signal.SIGKILL, point

        async def shown() -> list[str]:
            async with practice_server(workspace, run=3) as server:
                session = await server.opened(SESSION)
                assert session.ledger.refused == []
                return prompts(session)

        found = run_in_fork(shown).value
        assert found in ([changes.prompt], ["say hello"]), point
        assert workspace.files() == changes.after, point
        seen |= set(found)
    assert seen == {changes.prompt, "say hello"}
