"""What a restore keeps of a file besides its bytes, and what it says that it cannot bring back (row A5, case 167).

`tests/support/redo.py` says where the uncertain effect comes from.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import CallProposed, Finish
from steadyhand.ports.disk import Attributes, File
from steadyhand.session.calls import redo as redo_module
from tests.support.faults import MatchingFault, WatchedDisk, carries
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import kill_in_turn
from tests.support.model import ScriptedModel
from tests.support.redo import (
    NEW,
    OLD,
    WRITE,
    inspect_attempt,
    kinds,
    open_attempt,
    redo,
    settlements,
)
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace.under(tmp_path / "place")


def kill_after(place: Workspace, sentence: str) -> None:
    kill_in_turn(place, sentence, carries("result"))


def kill_after_call(place: Workspace, tool: str, **fields: object) -> None:
    kill_in_turn(
        place, "go", carries("result"), models=ScriptedModel([CallProposed(tool, json.dumps(fields)), Finish("calls")])
    )


async def test_restore_of_a_file_changed_after_its_inspection_does_nothing(place: Workspace) -> None:
    """A5, [I8]: the evidence is compared with the inspection once more, for a save after `resolve` compared it."""
    place.write("a.txt", OLD)
    kill_after(place, WRITE)
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        await inspect_attempt(session, attempt)
        latest = attempt.inspection
        assert latest is not None
        place.write("a.txt", "saved\n")
        before = kinds(place)
        with pytest.raises(Refused) as refused:
            await redo_module.restore(session, attempt, latest)
        assert refused.value.kind == "inspectFirst"
        assert place.files() == {"a.txt": "saved\n"}
        assert kinds(place) == before


def can_have_attributes(path: Path) -> bool:
    try:
        os.setxattr(path, "user.note", b"x\x00y")
    except OSError:
        return False
    return True


async def test_restore_of_a_deleted_file_gives_it_its_owner_and_attributes(place: Workspace) -> None:
    """Case 167: mode, group, owner where that is permitted, and extended attributes are those of the deleted file."""
    path = place.write("a.sh", OLD)
    path.chmod(0o750)
    attributes = can_have_attributes(path)
    owner = (1, 1) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.chown(path, *owner)
    kill_after(place, "delete a.sh")
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        seen = await inspect_attempt(session, attempt)
        assert seen.text.endswith("A restore makes a.sh anew; it does not bring back its time.")
        new = await redo(session, attempt, "restore", seen.inspection_id)
        reply = session.ledger.calls[new.call_id].reply
        assert reply is not None
        assert reply.text == "The earlier content was restored and read back from disk: a.sh."
    stat = path.stat()
    assert (stat.st_mode & 0o777, stat.st_uid, stat.st_gid) == (0o750, *owner)
    assert not attributes or os.getxattr(path, "user.note") == b"x\x00y"


async def test_inspection_names_what_a_restore_cannot_bring_back(place: Workspace) -> None:
    """Case 167: other names of the same file stay other files; that is said before the restore is done."""
    path = place.write("a.txt", OLD)
    for name in ("b.txt", "c.txt"):
        os.link(path, place.root / name)
    kill_after(place, "delete a.txt")
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        seen = await inspect_attempt(session, attempt)
        lost = "its time and its 2 other names (hard links)"
        assert seen.text.endswith(f"A restore makes a.txt anew; it does not bring back {lost}.")


async def test_inspection_of_a_changed_file_has_no_note(place: Workspace) -> None:
    """Case 167: a file that is still there keeps what it has; nothing is lost and nothing is said."""
    place.write("a.txt", OLD)
    kill_after(place, WRITE)
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        assert "A restore makes" not in (await inspect_attempt(session, attempt)).text
        await redo(session, attempt, "restore")
    assert place.files() == {"a.txt": OLD}


class NoAttributes(WatchedDisk):
    """A system that refuses the owner of a new file."""

    def give_attributes(self, file: File, attributes: Attributes) -> list[str]:
        return [*super().give_attributes(file, attributes), "uid", "gid"]


async def test_restore_says_which_attributes_the_system_refused(place: Workspace) -> None:
    """Case 167: what could not be brought back after all is in the reply."""
    place.write("a.txt", OLD)
    kill_after(place, "delete a.txt")
    async with practice_server(place, run=2, disk=NoAttributes(system_disk())) as harness:
        session, attempt = await open_attempt(harness)
        new = await redo(session, attempt, "restore")
        reply = session.ledger.calls[new.call_id].reply
        assert reply is not None
        assert reply.text.endswith("Not brought back, because the system did not allow it: uid, gid.")


async def test_restore_of_a_deletion_without_recorded_attributes_says_so_before(place: Workspace) -> None:
    """Case 167, X1: the journal of an earlier version has the mode alone; so the file gets our own owner."""
    place.write("a.txt", OLD).chmod(0o640)
    kill_after(place, "delete a.txt")
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.started is not None
        (evidence,) = attempt.started.evidence
        object.__setattr__(evidence, "attributes", None)
        seen = await inspect_attempt(session, attempt)
        assert "its time, its owner and its extended attributes (they were not recorded)" in seen.text
        await redo(session, attempt, "restore", seen.inspection_id)
    stat = (place.root / "a.txt").stat()
    assert (stat.st_mode & 0o777, stat.st_uid) == (0o640, os.getuid())


@pytest.mark.parametrize("folders", ["one file system", "two file systems"])
async def test_restore_of_a_move_moves_the_same_file_back(place: Workspace, folders: str) -> None:
    """Case 167, W3: the entry keeps its inode, its other names and its time. Across file systems it is a copy."""
    path = place.write("a.txt", OLD)
    os.link(path, place.root / "other.txt")
    os.utime(path, ns=(5, 5_000_000_000))
    inode = path.stat().st_ino
    kill_after(place, "move a.txt to d/b.txt")
    far = MatchingFault(system_disk(), lambda operation: operation.verb == "rename_to", errno.EXDEV, times=None)
    async with practice_server(place, run=2, disk=far if "two" in folders else None) as harness:
        session, attempt = await open_attempt(harness)
        seen = await inspect_attempt(session, attempt)
        assert "A restore makes" not in seen.text
        new = await redo(session, attempt, "restore", seen.inspection_id)
        assert new.result is not None
        assert (new.result.outcome, new.result.check) == ("returned", "satisfied")
        assert {(change.path, change.change) for change in new.result.files} == {
            ("a.txt", "created"),
            ("d/b.txt", "deleted"),
        }
        assert settlements(place)[-1] == (attempt.attempt_id, "restored")
        assert place.files() == {"a.txt": OLD, "other.txt": OLD}
        if "one" in folders:
            stat = path.stat()
            assert (stat.st_ino, stat.st_nlink, stat.st_mtime_ns) == (inode, 2, 5_000_000_000)
        await redo(session, new, "restore")
        assert place.files() == {"d/b.txt": OLD, "other.txt": OLD}
        assert session.ledger.refused == []
        if "one" in folders:
            assert (place.root / "d" / "b.txt").stat().st_ino == inode


async def test_restore_of_a_move_whose_new_path_was_saved_makes_the_old_path_anew(place: Workspace) -> None:
    """Case 167, A5: somebody saved at the new path, which the restore removes and keeps; the note says what is lost."""
    place.write("a.txt", OLD)
    kill_after(place, "move a.txt to b.txt")
    place.write("b.txt", "saved\n")
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        seen = await inspect_attempt(session, attempt)
        assert "A restore makes a.txt anew" in seen.text
        new = await redo(session, attempt, "restore", seen.inspection_id)
        assert place.files() == {"a.txt": OLD}
        await redo(session, new, "restore")
        assert place.files() == {"b.txt": "saved\n"}


async def test_restore_of_a_move_over_a_file_gives_both_their_own_attributes(place: Workspace) -> None:
    """Case 167: the file that was moved away and the one that was replaced have their own modes and owners again."""
    first, second = place.write("a.txt", OLD), place.write("b.txt", NEW)
    first.chmod(0o600)
    second.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(first, 1, 1)
        os.chown(second, 2, 2)
    stats = [(one.stat().st_mode, one.stat().st_uid, one.stat().st_gid) for one in (first, second)]
    kill_after_call(place, "move_file", **{"from": "a.txt", "to": "b.txt", "overwrite": True})
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        seen = await inspect_attempt(session, attempt)
        assert "A restore makes a.txt anew" in seen.text
        assert "A restore makes b.txt anew" in seen.text
        await redo(session, attempt, "restore", seen.inspection_id)
    assert place.files() == {"a.txt": OLD, "b.txt": NEW}
    assert [(one.stat().st_mode, one.stat().st_uid, one.stat().st_gid) for one in (first, second)] == stats
