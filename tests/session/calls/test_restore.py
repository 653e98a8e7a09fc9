"""Restore from inside: its effect on the files, the journal and the old attempt (row A5).

`tests/support/redo.py` says where the uncertain effect comes from.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.model.messages import CallProposed, Finish
from steadyhand.domain.views.recovery_snapshot import actions
from steadyhand.domain.views.types import Action, TextDelta, TurnEvent
from steadyhand.ports.editor import OpenDocument
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from steadyhand.tools.writes import restore as restore_module
from tests.support.faults import GatedDisk, MatchingFault, carries
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.model import ScriptedModel
from tests.support.redo import (
    NEW,
    OLD,
    WRITE,
    Tree,
    assert_refused,
    call_states,
    inspect_attempt,
    notices,
    open_attempt,
    redo,
    run_uncertain_command,
    settlements,
)
from tests.support.systems import linux_only, posix_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


@attrs.frozen
class RestoreCase:
    """What was done before the kill, the files before and after, and which paths the restore changes and how."""

    tool: str
    fields: dict[str, Any]
    before: Tree
    after: Tree
    changes: set[tuple[str, str]]

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel([CallProposed(self.tool, json.dumps(self.fields)), Finish("calls")])


RESTORE_CASES = {
    "modified": RestoreCase(
        "write_file", {"path": "a.txt", "content": NEW}, {"a.txt": OLD}, {"a.txt": NEW}, {("a.txt", "modified")}
    ),
    "edited": RestoreCase(
        "edit_file", {"path": "a.txt", "edits": [{"old": "old", "new": "new"}]}, {"a.txt": OLD}, {"a.txt": NEW},
        {("a.txt", "modified")},
    ),
    "created": RestoreCase(
        "write_file", {"path": "d/b.txt", "content": NEW}, {}, {"d/b.txt": NEW}, {("d/b.txt", "deleted")}
    ),
    "deleted": RestoreCase("delete_file", {"path": "a.txt"}, {"a.txt": OLD}, {}, {("a.txt", "created")}),
    "moved": RestoreCase(
        "move_file", {"from": "a.txt", "to": "d/b.txt"}, {"a.txt": OLD}, {"d/b.txt": OLD},
        {("a.txt", "created"), ("d/b.txt", "deleted")},
    ),
    "moved over": RestoreCase(
        "move_file", {"from": "a.txt", "to": "b.txt", "overwrite": True}, {"a.txt": OLD, "b.txt": "there\n"},
        {"b.txt": OLD}, {("a.txt", "created"), ("b.txt", "modified")},
    ),
}  # fmt: skip


def killed_after(folder: Path, case: RestoreCase) -> Workspace:
    place = Workspace.under(folder / "place")
    for name, content in case.before.items():
        place.write(name, content)
    kill_in_turn(place, "go", carries("result"), models=case.model)
    assert place.files() == case.after
    return place


@pytest.mark.parametrize("case", RESTORE_CASES.values(), ids=RESTORE_CASES)
async def test_restore_brings_back_the_old_files_and_can_be_undone(tmp_path: Path, case: RestoreCase) -> None:
    """A5, W4, W8: the restore is a new checked attempt with the change of each path. It settles the old attempt, and
    another restore undoes it (case 74).
    """
    place = killed_after(tmp_path, case)
    if "a.txt" in case.before and "a.txt" in case.after:
        os.chmod(place.root / "a.txt", 0o640)  # its evidence has the old mode; a later mode is kept
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.settlement is not None
        assert attempt.settlement.settled == "checked_present"
        inspection = await inspect_attempt(session, attempt)
        assert "restore" in actions(attempt, session.snapshot_context())
        new = await redo(session, attempt, "restore", inspection.inspection_id)
        assert place.files() == case.before
        assert new.result is not None
        assert (new.result.outcome, new.result.check) == ("returned", "satisfied")
        assert {(change.path, change.change) for change in new.result.files} == case.changes
        assert settlements(place)[-1] == (attempt.attempt_id, "restored")
        assert session.ledger.uncertain() == []
        assert session.snapshot().statistics.restored == 1
        assert (
            await assert_refused(place, session, attempt, "restore", inspection.inspection_id)
        ).kind == "alreadyResolved"

        undo = await redo(session, new, "restore")
        assert place.files() == case.after
        assert undo.restore_of == new.attempt_id
        assert len(settlements(place)) == 2, "an undone restore has no settlement"
        assert session.ledger.refused == []
        await redo(session, undo, "restore")
        assert place.files() == case.before


async def test_restore_of_a_deleted_file_brings_back_its_mode(tmp_path: Path) -> None:
    """A5: a script stays executable."""
    place = Workspace.under(tmp_path / "place")
    place.write("run.sh", "true\n").chmod(0o750)
    kill_in_turn(place, "delete run.sh", carries("result"))
    async with practice_server(place, run=2) as harness:
        await redo(*(await open_attempt(harness)), "restore")
    assert place.files() == {"run.sh": "true\n"}
    assert (place.root / "run.sh").stat().st_mode & 0o777 == 0o750


@posix_only
@pytest.mark.parametrize("target", ["there.txt", "nowhere", "../outside", "n\udcff"])
@pytest.mark.parametrize("sentence", ["delete link", "move link to d/link"])
async def test_restore_of_a_link_brings_back_the_link_itself(tmp_path: Path, sentence: str, target: str) -> None:
    """A5, W4: the link itself comes back, wherever it leads, with its target as stored. It can be undone and restored
    again.
    """
    place = Workspace.under(tmp_path / "place")
    link, moved = place.root / "link", place.root / "d" / "link"
    link.symlink_to(target)
    kill_in_turn(place, sentence, carries("result"))
    gone = (link.is_symlink(), moved.is_symlink())
    assert gone == (False, "move" in sentence)
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        new = await redo(session, attempt, "restore")
        assert new.result is not None
        assert (new.result.outcome, new.result.check) == ("returned", "satisfied")
        assert os.readlink(link) == target
        assert not moved.is_symlink()
        assert settlements(place)[-1] == (attempt.attempt_id, "restored")
        undo = await redo(session, new, "restore")
        assert (link.is_symlink(), moved.is_symlink()) == gone
        await redo(session, undo, "restore")
        assert os.readlink(link) == target
        assert session.ledger.refused == []


@posix_only
async def test_restore_of_a_link_never_replaces_a_new_file(tmp_path: Path) -> None:
    """A5, W9: someone else created a file there, before the restore or in its last moment. That file stays."""
    place = Workspace.under(tmp_path / "place")
    link = place.root / "link"
    link.symlink_to("nowhere")
    kill_in_turn(place, "delete link", carries("result"))
    disk = GatedDisk(lambda operation: operation.verb == "make_link")
    async with practice_server(place, run=2, disk=disk) as harness, anyio.create_task_group() as tasks:
        session, attempt = await open_attempt(harness)
        link.write_text("theirs\n")
        inspection = await inspect_attempt(session, attempt)
        found = await assert_refused(place, session, attempt, "restore", inspection.inspection_id)
        assert found.kind == "notOffered"
        assert "does not replace it with a link" in found.message
        link.unlink()
        answers: list[Refused] = []
        tasks.start_soon(restore_that_fails, session, attempt, answers)
        await disk.wait_reached()
        link.write_text("theirs\n")
        disk.go.set()
        await harness.until(lambda: answers or None)
    assert link.read_text() == "theirs\n"


@posix_only
@pytest.mark.parametrize("made", [False, True])
async def test_restore_of_a_link_killed_midway_is_settled_by_its_check(tmp_path: Path, made: bool) -> None:
    """A5, C2, B3, case 74: killed right before or right after the link was made. The check shows which, and the restore
    is settled automatically in both cases.
    """
    place = Workspace.under(tmp_path / "place")
    link = place.root / "link"
    link.symlink_to("nowhere")
    kill_in_turn(place, "delete link", carries("result"))
    disk = GatedDisk(lambda operation: b'"returned"' in operation.piece if made else operation.verb == "make_link")
    async with practice_server(place, run=2, disk=disk) as harness, anyio.create_task_group() as tasks:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        tasks.start_soon(
            resolve, session, ResolutionRequest(attempt.attempt_id, "restore", inspection_id=inspection.inspection_id)
        )
        await disk.wait_reached()
        killed = place.keep("killed")
        disk.go.set()
    place.put_back(killed)
    async with practice_server(place, run=3) as harness:
        await harness.open(SESSION)
        ledger = harness.ledger(SESSION)
        new = list(ledger.attempts.values())[-1]
        assert new.settlement is not None
        assert new.settlement.settled == ("checked_present" if made else "checked_absent")
        assert link.is_symlink() is made
        assert ledger.uncertain() == []


async def test_restore_over_a_save_is_undone_from_the_chat(present: Workspace) -> None:
    """A5, case 74: the saved content is kept before it is overwritten, and comes back byte for byte."""
    present.write("a.txt", "somebody's\n")
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.uncertain
        new = await redo(session, attempt, "restore")
        assert present.files() == {"a.txt": OLD}
        (message,) = [text for text in harness.editor.messages if "/recovery restore" in text]
        assert f"/recovery restore {new.attempt_id[:8]}" in message
        line = f"/recovery restore {new.attempt_id}"  # all ids of the harness have the same prefix
        assert "again to act on this" in await say_in_chat(harness, line, "1")
        assert "restored." in await say_in_chat(harness, line, "2")
        assert present.files() == {"a.txt": "somebody's\n"}
        assert any("undid" in text for text in notices(session))


async def say_in_chat(harness: InProcessServer, line: str, name: str) -> str:
    accepted = await harness.send(SESSION, line, name)
    session = harness.registry.sessions[SESSION]
    await session.feed.wait_until_ended(accepted.turn_id)
    events = [one.event for one in harness.editor.told if isinstance(one, TurnEvent)]
    return [event.delta for event in events if isinstance(event, TextDelta)][-1]


async def test_restore_is_undone_after_a_restart(present: Workspace) -> None:
    """A5: the attempt is found by its id as long as the journal has it."""
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        new = await redo(session, attempt, "restore")
    async with practice_server(present, run=3) as harness:
        await harness.open(SESSION)
        session = harness.registry.sessions[SESSION]
        await redo(session, session.ledger.attempts[new.attempt_id], "restore")
    assert present.files() == {"a.txt": NEW}


@pytest.mark.parametrize("content", ["somebody's\n", None])
async def test_restore_of_a_file_changed_since_the_inspection_is_refused(
    present: Workspace, content: str | None
) -> None:
    """A5, [I8], case 73: `inspectFirst` with a new inspection, and nothing changed. A decision can rest on the new
    inspection.
    """
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        if content is None:
            (present.root / "a.txt").unlink()
        else:
            present.write("a.txt", content)
        found = await assert_refused(present, session, attempt, "restore", inspection.inspection_id)
        assert found.kind == "inspectFirst"
        shown = found.more["inspection"]
        assert isinstance(shown, dict)
        assert shown["check"] == "conflict"
        await redo(session, attempt, "restore", shown["inspectionId"])
        assert present.files() == {"a.txt": OLD}


async def test_restore_never_overwrites_a_concurrent_save(present: Workspace) -> None:
    """A5, W9, case 73: someone saves while the restore runs. Their save stays, the answer says that nothing was
    restored, and the old attempt is unchanged.
    """
    disk = GatedDisk(lambda operation: operation.verb == "create" and ".a.txt." in operation.target)
    async with practice_server(present, run=2, disk=disk) as harness, anyio.create_task_group() as tasks:
        session, attempt = await open_attempt(harness)
        answers: list[Refused] = []
        tasks.start_soon(restore_that_fails, session, attempt, answers)
        await disk.wait_reached()
        present.write("a.txt", "saved just now\n")
        disk.go.set()
        await harness.until(lambda: answers or None)
        shown = answers[0].more["inspection"]
        assert isinstance(shown, dict)
        assert shown["check"] == "conflict"
    assert present.files() == {"a.txt": "saved just now\n"}
    assert [settled for _, settled in settlements(present)] == ["checked_present"]


async def restore_that_fails(session: Session, attempt: Attempt, answers: list[Refused]) -> None:
    """A restore that starts and fails is answered with `inspectFirst` and the current state."""
    inspection = await inspect_attempt(session, attempt)
    with pytest.raises(Refused, match="It was not restored") as found:
        await resolve(session, ResolutionRequest(attempt.attempt_id, "restore", inspection_id=inspection.inspection_id))
    assert found.value.kind == "inspectFirst"
    answers.append(found.value)


async def test_restore_that_fails_is_reported_in_the_chat(present: Workspace) -> None:
    """A5, W5: nothing is called restored that was not."""
    fault = MatchingFault(system_disk(), lambda op: op.verb == "create" and ".a.txt." in op.target, errno.ENOSPC)
    async with practice_server(present, run=2, disk=fault) as harness:
        _, attempt = await open_attempt(harness)
        line = f"/recovery restore {attempt.attempt_id[:8]}"
        await say_in_chat(harness, line, "1")
        text_said = await say_in_chat(harness, line, "2")
    assert fault.failed
    assert text_said.startswith("Not done: It was not restored")
    assert present.files() == {"a.txt": NEW}


async def test_restore_of_content_over_the_bound_is_not_offered(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W8, A5: content above the bound was not kept. Restore is not offered, and is refused as `notOffered` with the
    reason.
    """
    monkeypatch.setattr("steadyhand.tools.writes.planned_write.CHECKPOINT_BYTES_MAX", 1)
    kill_in_turn(place, WRITE, carries("result"))
    async with practice_server(place, run=2) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        assert "restore" not in actions(attempt, session.snapshot_context())
        found = await assert_refused(place, session, attempt, "restore", inspection.inspection_id)
        assert found.kind == "notOffered"
        assert "was not stored" in str(found.more["why"])


async def test_restore_of_damaged_kept_content_changes_nothing(present: Workspace) -> None:
    """W8, A5: bytes that differ from the old content are never written."""
    (kept,) = (present.session_directory(SESSION) / "checkpoints").iterdir()
    kept.write_text("bad\n")
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        await restore_that_fails(session, attempt, [])
        new = list(session.ledger.attempts.values())[-1]
        assert new.result is not None
        assert (new.result.outcome, new.result.reason) == ("failed", "lost")
    assert present.files() == {"a.txt": NEW}


async def test_restore_of_a_file_with_unsaved_changes_is_refused(present: Workspace) -> None:
    """A5, M-rows of documents: an unsaved document belongs to the user. The file under it is not replaced."""
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        path = str(present.root / "a.txt")
        inspection = await inspect_attempt(session, attempt)
        harness.editor.documents[path] = OpenDocument("unsaved\n", 2, unsaved=True)
        found = await assert_refused(present, session, attempt, "restore", inspection.inspection_id)
        assert found.kind == "notOffered"
        assert "unsaved" in found.message


async def test_restore_of_a_read_only_file_is_refused(present: Workspace) -> None:
    """A5, case 58: a restore does not replace a file that its own mode protects."""
    if os.getuid() == 0:
        pytest.skip("to root nothing is read-only")
    (present.root / "a.txt").chmod(0o444)
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        found = await assert_refused(present, session, attempt, "restore", inspection.inspection_id)
        assert found.kind == "notOffered"


async def test_restore_through_a_link_out_of_the_workspace_is_refused(present: Workspace, tmp_path: Path) -> None:
    """A5, E3, case 104: a link in the place of the file leads nothing out of the workspace."""
    outside = tmp_path / "outside.txt"
    outside.write_text("outside\n")
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        (present.root / "a.txt").unlink()
        (present.root / "a.txt").symlink_to(outside)
        inspection = await inspect_attempt(session, attempt)
        found = await assert_refused(present, session, attempt, "restore", inspection.inspection_id)
        assert found.kind == "notOffered"
    assert outside.read_text() == "outside\n"


async def test_restore_of_an_unchanged_file_is_not_offered(absent: Workspace) -> None:
    """docs/protocol.md, `notOffered`: the old content is already there."""
    async with practice_server(absent, run=2) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        assert "restore" not in actions(attempt, session.snapshot_context())
        assert (
            await assert_refused(absent, session, attempt, "restore", inspection.inspection_id)
        ).kind == "notOffered"


async def test_restore_waits_for_another_uncertain_effect_on_the_file(present: Workspace) -> None:
    """[I6], A5, docs/protocol.md: `recoveryRequired` with that effect. When it is settled, the restore proceeds."""
    present.write("a.txt", "somebody's\n")
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        other = await harness.create()
        command = await run_uncertain_command(harness, other)
        found = await assert_refused(present, session, attempt, "restore", inspection.inspection_id)
        assert found.kind == "recoveryRequired"
        held = found.more["uncertain"]
        assert isinstance(held, list)
        (shown,) = held
        assert (shown["attemptId"], shown["sessionId"]) == (command.attempt_id, other)
        other_session = harness.registry.sessions[other]
        last = await inspect_attempt(other_session, command)
        await resolve(other_session, ResolutionRequest(command.attempt_id, "waive", inspection_id=last.inspection_id))
        await redo(session, attempt, "restore", inspection.inspection_id)
    assert present.files() == {"a.txt": OLD}


async def test_restore_is_shown_as_running_while_it_runs(present: Workspace) -> None:
    """docs/protocol.md, "States": a started, live call is `running`, although its turn has ended."""
    async with practice_server(present, run=2) as harness:
        session, attempt = await open_attempt(harness)
        new = await redo(session, attempt, "restore")
        assert call_states(harness, new.call_id) == ["running", "returned"]


async def test_session_close_waits_for_a_running_restore(present: Workspace) -> None:
    """S2, [I2]: a restore that has started runs to its end, and its result is kept."""
    disk = GatedDisk(lambda operation: operation.verb == "exchange")
    async with practice_server(present, run=2, disk=disk) as harness, anyio.create_task_group() as tasks:
        session, attempt = await open_attempt(harness)
        tasks.start_soon(redo, session, attempt, "restore")
        await disk.wait_reached()
        tasks.start_soon(harness.registry.close, SESSION)
        await anyio.wait_all_tasks_blocked()
        disk.go.set()
    assert settlements(present)[-1] == (attempt.attempt_id, "restored")
    assert present.files() == {"a.txt": OLD}


@pytest.mark.parametrize(("action", "restored"), [("confirm", True), ("waive", False)])
async def test_restore_that_is_itself_uncertain_settles_the_old_one_by_outcome(
    present: Workspace, action: Action, restored: bool
) -> None:
    """A5, J14: the outcome of the new attempt settles the old one. If it is confirmed, the file was restored. If it is
    waived, that is unknown, now and after the next start.
    """
    present.write("a.txt", "somebody's\n")
    fault = MatchingFault(system_disk(), lambda op: b'"returned"' in op.piece and "result" in op.kinds, errno.EIO)
    async with practice_server(present, run=2, disk=fault, settle="ask") as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        with pytest.raises(Refused, match="The restore is itself uncertain now") as found:
            await resolve(
                session, ResolutionRequest(attempt.attempt_id, "restore", inspection_id=inspection.inspection_id)
            )
        assert found.value.kind == "recoveryRequired"
    async with practice_server(present, run=3, settle="ask") as harness:
        await harness.open(SESSION)
        session = harness.registry.sessions[SESSION]
        old, new = session.ledger.uncertain()
        assert new.restore_of == old.attempt_id
        inspection = await inspect_attempt(session, new)
        await resolve(session, ResolutionRequest(new.attempt_id, action, inspection_id=inspection.inspection_id))
        assert (old.settlement is not None and old.settlement.settled == "restored") == restored
    async with practice_server(present, run=4, settle="ask") as harness:
        await harness.open(SESSION)
        ledger = harness.ledger(SESSION)
        assert ledger.refused == []
        assert [attempt.attempt_id for attempt in ledger.uncertain()] == ([] if restored else [old.attempt_id])


def test_hindrance_to_restore_without_evidence_is_given() -> None:
    """A5: an attempt without evidence, such as that of a command, brings nothing back."""
    assert restore_module.restore_obstacle(()) is not None
