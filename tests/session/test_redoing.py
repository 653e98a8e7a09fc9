"""Restore and retry from inside: what they do to the files, the journal and the old attempt (rows A5, F1-F3, J14).

The uncertain effect is one of an earlier life, killed by its disk in the middle of the exchange or right before
*result*. As a client sees it: `tests/e2e/test_restore_retry.py`; under kills: `tests/crash/test_redoing_killed.py`.
"""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.folded import Attempt
from steadyhand.core.model import CallProposed, Finish
from steadyhand.core.questions import Answer, PermissionQuestion
from steadyhand.core.record import Inspection, Intent, Settlement, Stamped, Unknown
from steadyhand.core.refusal import Refused
from steadyhand.core.rules import Rule, Rules
from steadyhand.core.snapshot import actions
from steadyhand.core.told import RecoveryTold
from steadyhand.core.views import Action, CallChanged, InspectionView, TextDelta, TurnEvent
from steadyhand.journal.format import read_journal
from steadyhand.ports import OpenDocument
from steadyhand.session import resolving
from steadyhand.session.inspecting import Found
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Wanted, resolve
from steadyhand.session.verifying import find
from steadyhand.tools import restore as undoing
from tests.support.disks import MatchingFault, carries
from tests.support.dying import SESSION, died_in, on, retrying
from tests.support.scripted import GatedDisk, ScriptedModel
from tests.support.systems import linux_only, posix_only
from tests.support.turns import Place, Rig, ScriptedEditor, forked, rig

pytestmark = [pytest.mark.anyio, linux_only]

OLD, NEW = "old\n", "new\n"
WRITE = 'write a.txt with "new\\n"'
Tree = dict[str, str]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place.under(tmp_path / "place")
    place.write("a.txt", OLD)
    return place


@pytest.fixture
def absent(place: Place) -> Place:
    """Killed right before the names were exchanged."""
    died_in(place, WRITE, on("exchange", "a.txt"))
    return place


@pytest.fixture
def present(place: Place) -> Place:
    """Killed right before the result."""
    died_in(place, WRITE, carries("result"))
    return place


async def opened(house: Rig) -> tuple[Owner, Attempt]:
    """The owner, and the one attempt with an effect."""
    await house.open(SESSION)
    owner = house.house.owners[SESSION]
    (attempt,) = [attempt for attempt in owner.ledger.attempts.values() if attempt.effect != "reads"]
    return owner, attempt


async def look(owner: Owner, attempt: Attempt) -> InspectionView:
    done = await resolve(owner, Wanted(attempt.attempt_id, "inspect"))
    assert done.inspection is not None
    return done.inspection


async def redo(owner: Owner, attempt: Attempt, action: Action, inspection_id: str | None = None) -> Attempt:
    """Inspect (unless it is given) and carry it out; the new attempt."""
    seen = inspection_id or (await look(owner, attempt)).inspection_id
    await resolve(owner, Wanted(attempt.attempt_id, action, inspection_id=seen))
    new = list(owner.ledger.attempts.values())[-1]
    assert attempt.attempt_id in (new.retry_of, new.restore_of)
    return new


async def refused(place: Place, owner: Owner, attempt: Attempt, action: Action, inspection_id: str | None) -> Refused:
    """It is refused; the files are as before, and the journal too, but for an inspection that is answered with it."""
    before, files = kinds(place), place.files()
    with pytest.raises(Refused) as found:
        await resolve(owner, Wanted(attempt.attempt_id, action, inspection_id=inspection_id))
    new = kinds(place)[len(before) :]
    assert new == (["inspection"] if "inspection" in found.value.more else [])
    assert place.files() == files
    return found.value


def kinds(place: Place) -> list[str]:
    records = [stamped.record for stamped in read_journal(place.journal(SESSION)).records]
    return [record.kind for record in records if not isinstance(record, Unknown)]


def on_disk(place: Place, kind: type) -> list[Stamped]:
    return [stamped for stamped in read_journal(place.journal(SESSION)).records if isinstance(stamped.record, kind)]


def settlements(place: Place) -> list[tuple[str, str]]:
    """(attempt, settled), in order."""
    found = [stamped.record for stamped in on_disk(place, Settlement)]
    return [(one.attempt_id, one.settled) for one in found if isinstance(one, Settlement)]


def notices(owner: Owner) -> list[str]:
    return [said.text for said in owner.messages(99)[0] if said.role == "notice"]


# --- restore --------------------------------------------------------------------------------------------------------


@attrs.frozen
class Story:
    """What was done before the kill, the files before and after, and which paths the restore changes how."""

    tool: str
    fields: dict[str, Any]
    before: Tree
    after: Tree
    changes: set[tuple[str, str]]

    @property
    def model(self) -> ScriptedModel:
        return ScriptedModel([CallProposed(self.tool, json.dumps(self.fields)), Finish("calls")])


STORIES = {
    "modified": Story(
        "write_file", {"path": "a.txt", "content": NEW}, {"a.txt": OLD}, {"a.txt": NEW}, {("a.txt", "modified")}
    ),
    "edited": Story(
        "edit_file", {"path": "a.txt", "edits": [{"old": "old", "new": "new"}]}, {"a.txt": OLD}, {"a.txt": NEW},
        {("a.txt", "modified")},
    ),
    "created": Story(
        "write_file", {"path": "d/b.txt", "content": NEW}, {}, {"d/b.txt": NEW}, {("d/b.txt", "deleted")}
    ),
    "deleted": Story("delete_file", {"path": "a.txt"}, {"a.txt": OLD}, {}, {("a.txt", "created")}),
    "moved": Story(
        "move_file", {"from": "a.txt", "to": "d/b.txt"}, {"a.txt": OLD}, {"d/b.txt": OLD},
        {("a.txt", "created"), ("d/b.txt", "deleted")},
    ),
    "moved over": Story(
        "move_file", {"from": "a.txt", "to": "b.txt", "overwrite": True}, {"a.txt": OLD, "b.txt": "there\n"},
        {"b.txt": OLD}, {("a.txt", "created"), ("b.txt", "modified")},
    ),
}  # fmt: skip


def laid(folder: Path, story: Story) -> Place:
    place = Place.under(folder / "place")
    for name, content in story.before.items():
        place.write(name, content)
    died_in(place, "go", carries("result"), models=story.model)
    assert place.files() == story.after
    return place


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
async def test_what_was_there_before_comes_back(tmp_path: Path, story: Story) -> None:
    """A5, W4, W8: as a new checked attempt with the change of each path; the old one is settled by it; and the
    restore is undone by a restore of its own (case 74)."""
    place = laid(tmp_path, story)
    if "a.txt" in story.before and "a.txt" in story.after:
        os.chmod(place.workspace / "a.txt", 0o640)  # its evidence has the mode of then; a later one is kept
    async with rig(place, life=2) as house:
        owner, attempt = await opened(house)
        assert attempt.settlement is not None
        assert attempt.settlement.settled == "checked_present"
        seen = await look(owner, attempt)
        assert "restore" in actions(attempt, owner.stand())
        new = await redo(owner, attempt, "restore", seen.inspection_id)
        assert place.files() == story.before
        assert new.result is not None
        assert (new.result.outcome, new.result.check) == ("returned", "satisfied")
        assert {(change.path, change.change) for change in new.result.files} == story.changes
        assert settlements(place)[-1] == (attempt.attempt_id, "restored")
        assert owner.ledger.uncertain() == []
        assert owner.snapshot().statistics.restored == 1
        assert (await refused(place, owner, attempt, "restore", seen.inspection_id)).kind == "alreadyResolved"

        undo = await redo(owner, new, "restore")
        assert place.files() == story.after
        assert undo.restore_of == new.attempt_id
        assert len(settlements(place)) == 2, "a restore that is undone has no settlement"
        assert owner.ledger.refused == []
        await redo(owner, undo, "restore")
        assert place.files() == story.before


async def test_the_mode_of_a_deleted_file_comes_back(tmp_path: Path) -> None:
    """A5: a script stays one."""
    place = Place.under(tmp_path / "place")
    place.write("run.sh", "true\n").chmod(0o750)
    died_in(place, "delete run.sh", carries("result"))
    async with rig(place, life=2) as house:
        await redo(*(await opened(house)), "restore")
    assert place.files() == {"run.sh": "true\n"}
    assert (place.workspace / "run.sh").stat().st_mode & 0o777 == 0o750


@posix_only
@pytest.mark.parametrize("target", ["there.txt", "nowhere", "../outside", "n\udcff"])
@pytest.mark.parametrize("sentence", ["delete link", "move link to d/link"])
async def test_a_link_comes_back(tmp_path: Path, sentence: str, target: str) -> None:
    """A5, W4: the link itself, wherever it leads, with its target as it was stored; undone and restored again."""
    place = Place.under(tmp_path / "place")
    link, moved = place.workspace / "link", place.workspace / "d" / "link"
    link.symlink_to(target)
    died_in(place, sentence, carries("result"))
    gone = (link.is_symlink(), moved.is_symlink())
    assert gone == (False, "move" in sentence)
    async with rig(place, life=2) as house:
        owner, attempt = await opened(house)
        new = await redo(owner, attempt, "restore")
        assert new.result is not None
        assert (new.result.outcome, new.result.check) == ("returned", "satisfied")
        assert os.readlink(link) == target
        assert not moved.is_symlink()
        assert settlements(place)[-1] == (attempt.attempt_id, "restored")
        undo = await redo(owner, new, "restore")
        assert (link.is_symlink(), moved.is_symlink()) == gone
        await redo(owner, undo, "restore")
        assert os.readlink(link) == target
        assert owner.ledger.refused == []


@posix_only
async def test_no_link_takes_the_place_of_something_else(tmp_path: Path) -> None:
    """A5, W9: somebody made a file there since, before the restore or in its very last moment: theirs stays."""
    place = Place.under(tmp_path / "place")
    link = place.workspace / "link"
    link.symlink_to("nowhere")
    died_in(place, "delete link", carries("result"))
    disk = GatedDisk(lambda operation: operation.verb == "make_link")
    async with rig(place, life=2, disk=disk) as house, anyio.create_task_group() as tasks:
        owner, attempt = await opened(house)
        link.write_text("theirs\n")
        seen = await look(owner, attempt)
        found = await refused(place, owner, attempt, "restore", seen.inspection_id)
        assert found.kind == "notOffered"
        assert "no link takes its place" in found.message
        link.unlink()
        answers: list[Refused] = []
        tasks.start_soon(unrestored, owner, attempt, answers)
        await disk.wait_reached()
        link.write_text("theirs\n")
        disk.go.set()
        await house.until(lambda: answers or None)
    assert link.read_text() == "theirs\n"


@posix_only
@pytest.mark.parametrize("made", [False, True])
async def test_a_restore_of_a_link_that_is_killed(tmp_path: Path, made: bool) -> None:
    """A5, C2, B3, case 74: killed right before or right after the link was made: the check tells which, and either
    way it is settled by itself."""
    place = Place.under(tmp_path / "place")
    link = place.workspace / "link"
    link.symlink_to("nowhere")
    died_in(place, "delete link", carries("result"))
    disk = GatedDisk(lambda operation: b'"returned"' in operation.piece if made else operation.verb == "make_link")
    async with rig(place, life=2, disk=disk) as house, anyio.create_task_group() as tasks:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        tasks.start_soon(resolve, owner, Wanted(attempt.attempt_id, "restore", inspection_id=seen.inspection_id))
        await disk.wait_reached()
        killed = place.keep("killed")
        disk.go.set()
    place.put_back(killed)
    async with rig(place, life=3) as house:
        await house.open(SESSION)
        ledger = house.ledger(SESSION)
        new = list(ledger.attempts.values())[-1]
        assert new.settlement is not None
        assert new.settlement.settled == ("checked_present" if made else "checked_absent")
        assert link.is_symlink() is made
        assert ledger.uncertain() == []


async def test_a_restored_conflict_is_undone_by_its_line_in_the_chat(present: Place) -> None:
    """A5, case 74: what somebody saved is kept before it is overwritten, and comes back byte for byte."""
    present.write("a.txt", "somebody's\n")
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        assert attempt.uncertain
        new = await redo(owner, attempt, "restore")
        assert present.files() == {"a.txt": OLD}
        (told,) = [text for text in house.editor.messages if "/recovery restore" in text]
        assert f"/recovery restore {new.attempt_id[:8]}" in told
        line = f"/recovery restore {new.attempt_id}"  # the ids of a rig begin all alike
        assert "again to act on this" in await _chat(house, line, "1")
        assert "restored." in await _chat(house, line, "2")
        assert present.files() == {"a.txt": "somebody's\n"}
        assert any("undid" in text for text in notices(owner))


async def _chat(house: Rig, line: str, name: str) -> str:
    accepted = await house.send(SESSION, line, name)
    owner = house.house.owners[SESSION]
    await owner.wait_ended(accepted.turn_id)
    events = [told.event for told in house.editor.told if isinstance(told, TurnEvent)]
    return [event.delta for event in events if isinstance(event, TextDelta)][-1]


async def test_a_restore_is_undone_in_a_later_life(present: Place) -> None:
    """A5: the attempt is found by its id as long as the journal has it."""
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        new = await redo(owner, attempt, "restore")
    async with rig(present, life=3) as house:
        await house.open(SESSION)
        owner = house.house.owners[SESSION]
        await redo(owner, owner.ledger.attempts[new.attempt_id], "restore")
    assert present.files() == {"a.txt": NEW}


@pytest.mark.parametrize("content", ["somebody's\n", None])
async def test_a_file_that_changed_since_the_inspection(present: Place, content: str | None) -> None:
    """A5, [I8], case 73: `inspectFirst` with a new inspection, and nothing changed; on that one it can be decided."""
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        if content is None:
            (present.workspace / "a.txt").unlink()
        else:
            present.write("a.txt", content)
        found = await refused(present, owner, attempt, "restore", seen.inspection_id)
        assert found.kind == "inspectFirst"
        shown = found.more["inspection"]
        assert isinstance(shown, dict)
        assert shown["check"] == "conflict"
        await redo(owner, attempt, "restore", shown["inspectionId"])
        assert present.files() == {"a.txt": OLD}


async def test_a_save_between_the_last_look_and_the_deed(present: Place) -> None:
    """A5, W9, case 73: somebody saves while the restore is on its way: their save stays, and it is said that nothing
    was restored; the old attempt stays as it was."""
    disk = GatedDisk(lambda operation: operation.verb == "create" and ".a.txt." in operation.target)
    async with rig(present, life=2, disk=disk) as house, anyio.create_task_group() as tasks:
        owner, attempt = await opened(house)
        answers: list[Refused] = []
        tasks.start_soon(unrestored, owner, attempt, answers)
        await disk.wait_reached()
        present.write("a.txt", "saved just now\n")
        disk.go.set()
        await house.until(lambda: answers or None)
        shown = answers[0].more["inspection"]
        assert isinstance(shown, dict)
        assert shown["check"] == "conflict"
    assert present.files() == {"a.txt": "saved just now\n"}
    assert [settled for _, settled in settlements(present)] == ["checked_present"]


async def unrestored(owner: Owner, attempt: Attempt, answers: list[Refused]) -> None:
    """A restore that begins and fails is answered as that: `inspectFirst` with what is there now."""
    seen = await look(owner, attempt)
    with pytest.raises(Refused, match="It was not restored") as found:
        await resolve(owner, Wanted(attempt.attempt_id, "restore", inspection_id=seen.inspection_id))
    assert found.value.kind == "inspectFirst"
    answers.append(found.value)


async def test_the_chat_says_that_a_restore_failed(present: Place) -> None:
    """A5, W5: nothing is called restored that was not."""
    fault = MatchingFault(system_disk(), lambda op: op.verb == "create" and ".a.txt." in op.target, errno.ENOSPC)
    async with rig(present, life=2, disk=fault) as house:
        _, attempt = await opened(house)
        line = f"/recovery restore {attempt.attempt_id[:8]}"
        await _chat(house, line, "1")
        said = await _chat(house, line, "2")
    assert fault.failed
    assert said.startswith("Not done: It was not restored")
    assert present.files() == {"a.txt": NEW}


async def test_what_was_not_kept_cannot_come_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """W8, A5: content above the bound was not kept: not offered, and `notOffered` with the reason."""
    monkeypatch.setattr("steadyhand.tools.change.checkpoint_bytes_max", 1)
    died_in(place, WRITE, carries("result"))
    async with rig(place, life=2) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        assert "restore" not in actions(attempt, owner.stand())
        found = await refused(place, owner, attempt, "restore", seen.inspection_id)
        assert found.kind == "notOffered"
        assert "not kept" in str(found.more["why"])


async def test_a_kept_content_that_is_damaged_restores_nothing(present: Place) -> None:
    """W8, A5: bytes that are not those of before are never put there."""
    (kept,) = (present.session(SESSION) / "checkpoints").iterdir()
    kept.write_text("bad\n")
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        await unrestored(owner, attempt, [])
        new = list(owner.ledger.attempts.values())[-1]
        assert new.result is not None
        assert (new.result.outcome, new.result.reason) == ("failed", "lost")
    assert present.files() == {"a.txt": NEW}


async def test_unsaved_changes_in_the_editor(present: Place) -> None:
    """A5, M-rows of documents: an unsaved document is the person's; nothing is put under it."""
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        path = str(present.workspace / "a.txt")
        seen = await look(owner, attempt)
        house.editor.documents[path] = OpenDocument("unsaved\n", 2, unsaved=True)
        found = await refused(present, owner, attempt, "restore", seen.inspection_id)
        assert found.kind == "notOffered"
        assert "unsaved" in found.message


async def test_a_protected_file_is_not_replaced(present: Place) -> None:
    """A5, case 58: what its own mode protects is not replaced by a restore either."""
    if os.getuid() == 0:
        pytest.skip("to root nothing is read-only")
    (present.workspace / "a.txt").chmod(0o444)
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        found = await refused(present, owner, attempt, "restore", seen.inspection_id)
        assert found.kind == "notOffered"


async def test_a_path_that_leads_elsewhere(present: Place, tmp_path: Path) -> None:
    """A5, E3, case 104: a link in its place leads nothing out of the workspace."""
    outside = tmp_path / "outside.txt"
    outside.write_text("outside\n")
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        (present.workspace / "a.txt").unlink()
        (present.workspace / "a.txt").symlink_to(outside)
        seen = await look(owner, attempt)
        found = await refused(present, owner, attempt, "restore", seen.inspection_id)
        assert found.kind == "notOffered"
    assert outside.read_text() == "outside\n"


async def test_what_is_as_before_needs_no_restore(absent: Place) -> None:
    """wire.md, `notOffered`: the content before is there already."""
    async with rig(absent, life=2) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        assert "restore" not in actions(attempt, owner.stand())
        assert (await refused(absent, owner, attempt, "restore", seen.inspection_id)).kind == "notOffered"


async def test_another_uncertain_effect_on_the_same_file(present: Place) -> None:
    """[I6], A5, wire.md: `recoveryRequired` with it; when that is settled, the restore goes on."""
    present.write("a.txt", "somebody's\n")
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        other = await house.create()
        command = await _uncertain_command(house, other)
        found = await refused(present, owner, attempt, "restore", seen.inspection_id)
        assert found.kind == "recoveryRequired"
        held = found.more["uncertain"]
        assert isinstance(held, list)
        (shown,) = held
        assert (shown["attemptId"], shown["sessionId"]) == (command.attempt_id, other)
        holder = house.house.owners[other]
        last = await look(holder, command)
        await resolve(holder, Wanted(command.attempt_id, "waive", inspection_id=last.inspection_id))
        await redo(owner, attempt, "restore", seen.inspection_id)
    assert present.files() == {"a.txt": OLD}


async def _uncertain_command(house: Rig, session_id: str) -> Attempt:
    """A command of another session that became uncertain before it knew of the first doubt."""
    owner = house.house.owners[session_id]
    neighbours, owner.neighbours = owner.neighbours, lambda: [owner]
    world = house.house.world
    tool = world.tools["run_command"]
    world.tools["run_command"] = _Failing(tool)
    await house.say(session_id, "run touch later.txt", "other")
    world.tools["run_command"] = tool
    owner.neighbours = neighbours
    (attempt,) = owner.ledger.uncertain()
    return attempt


class _Failing:
    """A tool whose calls lose sight of what they did."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def prepare(self, *arguments: Any) -> Any:
        planned = self._inner.prepare(*arguments)

        class Planned:
            def __getattr__(self, name: str) -> Any:
                return getattr(planned, name)

            async def run(self, running: Any) -> Any:
                raise ConnectionError

        return Planned()


async def test_while_it_runs_it_is_shown_as_running(present: Place) -> None:
    """wire.md, "States": started and live is `running`, though its turn has ended."""
    async with rig(present, life=2) as house:
        owner, attempt = await opened(house)
        new = await redo(owner, attempt, "restore")
        assert _states(house, new.call_id) == ["running", "returned"]


def _states(house: Rig, call_id: str) -> list[str]:
    events = [told.event for told in house.editor.told if isinstance(told, TurnEvent)]
    return [event.call.state for event in events if isinstance(event, CallChanged) and event.call.call_id == call_id]


async def test_closing_waits_for_a_restore(present: Place) -> None:
    """S2, [I2]: a restore that has begun comes to its end and its result is kept."""
    disk = GatedDisk(lambda operation: operation.verb == "exchange")
    async with rig(present, life=2, disk=disk) as house, anyio.create_task_group() as tasks:
        owner, attempt = await opened(house)
        tasks.start_soon(redo, owner, attempt, "restore")
        await disk.wait_reached()
        tasks.start_soon(house.house.close, SESSION)
        await anyio.wait_all_tasks_blocked()
        disk.go.set()
    assert settlements(present)[-1] == (attempt.attempt_id, "restored")
    assert present.files() == {"a.txt": OLD}


@pytest.mark.parametrize(("action", "restored"), [("confirm", True), ("waive", False)])
async def test_a_restore_that_is_itself_uncertain(present: Place, action: Action, restored: bool) -> None:
    """A5, J14: the old attempt is settled by the outcome of the new one: confirmed, it was restored; waived, that is
    not known, now and after the next start."""
    present.write("a.txt", "somebody's\n")
    fault = MatchingFault(system_disk(), lambda op: b'"returned"' in op.piece and "result" in op.kinds, errno.EIO)
    async with rig(present, life=2, disk=fault, settle="ask") as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        with pytest.raises(Refused, match="The restore is itself uncertain now") as found:
            await resolve(owner, Wanted(attempt.attempt_id, "restore", inspection_id=seen.inspection_id))
        assert found.value.kind == "recoveryRequired"
    async with rig(present, life=3, settle="ask") as house:
        await house.open(SESSION)
        owner = house.house.owners[SESSION]
        old, new = owner.ledger.uncertain()
        assert new.restore_of == old.attempt_id
        seen = await look(owner, new)
        await resolve(owner, Wanted(new.attempt_id, action, inspection_id=seen.inspection_id))
        assert (old.settlement is not None and old.settlement.settled == "restored") == restored
    async with rig(present, life=4, settle="ask") as house:
        await house.open(SESSION)
        ledger = house.ledger(SESSION)
        assert ledger.refused == []
        assert [attempt.attempt_id for attempt in ledger.uncertain()] == ([] if restored else [old.attempt_id])


def test_what_hinders_a_restore() -> None:
    """A5: an attempt without evidence, such as a command's, brings nothing back."""
    assert undoing.hindrance_to_restore(()) is not None


# --- retry ----------------------------------------------------------------------------------------------------------


async def test_killed_before_the_exchange_it_is_tried_again_once(absent: Place) -> None:
    """F2, F3, B3, N2, [I10]: settled as absent and shown; after an inspection it is offered; it runs once, with the
    same key and the stored arguments; the old one is superseded by the new."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        (shown,) = owner.snapshot().settled
        assert (shown.settled, shown.actions) == ("checked_absent", ("inspect",))
        seen = await look(owner, attempt)
        assert seen.state == "absent_fenced"
        assert actions(attempt, owner.stand()) == ("inspect", "retry")
        new = await redo(owner, attempt, "retry", seen.inspection_id)
        assert absent.files() == {"a.txt": NEW}
        assert (new.key, new.occurrence, new.tool) == (attempt.key, attempt.occurrence, attempt.tool)
        assert new.arguments_digest == attempt.arguments_digest
        assert owner.ledger.calls[new.call_id].arguments == owner.ledger.calls[attempt.call_id].arguments
        assert new.result is not None
        assert (new.result.outcome, new.result.check) == ("returned", "satisfied")
        assert settlements(absent) == [(attempt.attempt_id, "checked_absent"), (attempt.attempt_id, "superseded")]
        (last,) = [one.record for one in on_disk(absent, Settlement)][1:]
        assert isinstance(last, Settlement)
        assert last.superseded_by == new.attempt_id
        after = kinds(absent)[kinds(absent).index("inspection") :]
        assert after == ["inspection", "intent", "settlement", "notice", "started", "result", "tool", "notice"]
        assert any("tried again" in text and "returned" in text for text in notices(owner))
        assert (await refused(absent, owner, attempt, "retry", seen.inspection_id)).kind == "alreadyResolved"
        assert owner.ledger.refused == []


async def test_it_is_shown_running_and_asked_for_in_ask_mode(absent: Place) -> None:
    """F2, G2: the whole way of a call: permission is asked, with the stored arguments and a diff, and the call is shown
    as waiting meanwhile."""
    states: list[list[str]] = []

    def allow(question: PermissionQuestion) -> Answer:
        states.append(_states(house, question.call_id))
        return Answer("once")

    async with retrying(absent, editor=ScriptedEditor(permission=allow)) as house:
        owner, attempt = await opened(house)
        await owner.set_mode("ask")
        new = await redo(owner, attempt, "retry")
        (question,) = house.editor.questions
        assert isinstance(question, PermissionQuestion)
        assert question.call_id == new.call_id
        assert json.loads(question.arguments) == {"path": "a.txt", "content": NEW}
        assert question.diff is not None
        assert states == [["waiting"]]
        assert _states(house, new.call_id) == ["waiting", "running", "returned"]
    assert absent.files() == {"a.txt": NEW}


@pytest.mark.parametrize(("answer", "reason"), [(Answer("reject"), "denied"), (None, "not_answered")])
async def test_permission_refused(absent: Place, answer: Answer | None, reason: str) -> None:
    """F2: the new attempt is refused and did not run; the old one stays superseded: nothing of it can run any more."""
    async with retrying(absent, editor=ScriptedEditor(permission=lambda _: answer)) as house:
        owner, attempt = await opened(house)
        await owner.set_mode("ask")
        seen = await look(owner, attempt)
        new = await redo(owner, attempt, "retry", seen.inspection_id)
        assert new.result is not None
        assert (new.result.outcome, new.result.reason) == ("refused", reason)
        assert new.started is None
        assert settlements(absent)[-1] == (attempt.attempt_id, "superseded")
        assert any(
            f"Its new attempt: refused. This call was refused ({reason})" in text for text in house.editor.messages
        )
        assert (await refused(absent, owner, attempt, "retry", seen.inspection_id)).kind == "alreadyResolved"
    assert absent.files() == {"a.txt": OLD}


async def test_a_request_that_is_cancelled_while_permission_is_asked(absent: Place) -> None:
    """F2, G8, [I16]: it did not run and has its one end."""
    asked = anyio.Event()

    @attrs.define
    class Waiting(ScriptedEditor):
        async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
            asked.set()
            await anyio.sleep_forever()
            raise AssertionError

    async with retrying(absent, editor=Waiting()) as house:
        owner, attempt = await opened(house)
        await owner.set_mode("ask")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(redo, owner, attempt, "retry")
            with anyio.fail_after(10):
                await asked.wait()
            tasks.cancel_scope.cancel()
        new = list(owner.ledger.attempts.values())[-1]
        assert new.result is not None
        assert new.result.outcome == "not_started"
        assert owner.ledger.open_calls() == []
        assert owner.resolving == 0
    assert absent.files() == {"a.txt": OLD}


async def test_other_resolutions_do_not_wait_for_its_permission(absent: Place) -> None:
    """A6, B4: whoever holds a call back because of it hears at once that it is superseded."""
    heard: list[bool] = []

    @attrs.define
    class Waiting(ScriptedEditor):
        async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
            await anyio.lowlevel.checkpoint()
            heard.append(resolved.is_set())
            return Answer("once")

    resolved = anyio.Event()
    async with retrying(absent, settle="ask", editor=Waiting()) as house, anyio.create_task_group() as tasks:
        owner, attempt = await opened(house)
        await owner.set_mode("ask")
        seen = await look(owner, attempt)

        async def wait() -> None:
            while attempt.uncertain:
                await owner.next_resolution()
            resolved.set()

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await redo(owner, attempt, "retry", seen.inspection_id)
    assert heard == [True]


async def test_with_the_switch_off(absent: Place) -> None:
    """F1: not shown, and refused; switched off again, the journal and the other ways are as before."""
    async with retrying(absent, retry=False) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        assert actions(attempt, owner.stand()) == ("inspect",)
        assert (await refused(absent, owner, attempt, "retry", seen.inspection_id)).kind == "retryDisabled"


async def test_first_an_inspection(absent: Place) -> None:
    """wire.md: without its latest inspection nothing is tried again."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        assert (await refused(absent, owner, attempt, "retry", None)).kind == "inspectFirst"


async def test_what_is_there_is_not_tried_again(present: Place) -> None:
    """F3: absence is asked for, and not found."""
    async with retrying(present) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        assert "retry" not in actions(attempt, owner.stand())
        assert (await refused(present, owner, attempt, "retry", seen.inspection_id)).kind == "retryUnsafe"


async def test_the_file_changed_since_the_inspection(absent: Place) -> None:
    """F3, wire.md: `inspectFirst` with what is there now; then it is not absent any more."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        absent.write("a.txt", "somebody's\n")
        found = await refused(absent, owner, attempt, "retry", seen.inspection_id)
        assert found.kind == "inspectFirst"
        shown = found.more["inspection"]
        assert isinstance(shown, dict)
        assert (await refused(absent, owner, attempt, "retry", shown["inspectionId"])).kind == "retryUnsafe"


async def test_the_file_changes_in_the_very_last_moment(absent: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3, [I10]: absent at that moment, and not only a moment before."""

    async def and_then_it_changes(owner: Owner, attempt: Attempt) -> Found:
        found = await find(owner, attempt)
        absent.write("a.txt", "somebody's\n")
        return found

    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        monkeypatch.setattr(resolving, "find", and_then_it_changes)
        with pytest.raises(Refused) as found:
            await resolve(owner, Wanted(attempt.attempt_id, "retry", inspection_id=seen.inspection_id))
        assert found.value.kind == "retryUnsafe"
    assert absent.files() == {"a.txt": "somebody's\n"}


async def test_a_later_effect_on_the_same_file(absent: Place) -> None:
    """F3: it was restored by hand to what it was, and is absent; but not only by itself any more."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        other = await house.create()
        await house.say(other, 'write a.txt with "other\\n"', "other")
        absent.write("a.txt", OLD)
        seen = await look(owner, attempt)
        assert seen.state == "absent_fenced"
        _is_later(house, other, attempt)
        found = await refused(absent, owner, attempt, "retry", seen.inspection_id)
        assert found.kind == "retryUnsafe"
        assert "has started since" in str(found.more["why"])


async def test_it_is_offered_until_a_later_effect_starts(absent: Place) -> None:
    """F3, A1: an effect of another session on the same file takes the offer away as it starts, and that is told."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        attempt.started_at = f"2020{(attempt.started_at or '')[4:]}"
        await look(owner, attempt)
        other = await house.create()
        await house.say(other, "write free.txt with text", "free")
        assert "retry" in actions(attempt, owner.stand())
        await house.say(other, 'write a.txt with "other\\n"', "other")
        assert actions(attempt, owner.stand()) == ("inspect",)
        told = [one.snapshot for one in house.editor.told if isinstance(one, RecoveryTold)]
        shown = [one for one in told if one.session_id == SESSION][-1]
        assert shown.revision == owner.snapshot().revision
        assert [one.actions for one in shown.settled] == [("inspect",)]


def _is_later(house: Rig, session_id: str, attempt: Attempt) -> None:
    """The clock of each life of the rig begins anew; a real one goes on."""
    (later,) = [one for one in house.ledger(session_id).attempts.values() if one.started_at is not None]
    later.started_at = f"2027{(attempt.started_at or '')[4:]}"


async def test_when_the_work_has_gone_on(absent: Place) -> None:
    """F3, B3: it can be tried again only while it is shown."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        await house.say(SESSION, "say hello", "next")
        seen = await look(owner, attempt)
        assert owner.snapshot().settled == ()
        assert (await refused(absent, owner, attempt, "retry", seen.inspection_id)).kind == "notOffered"


async def test_while_a_turn_is_parked(absent: Place) -> None:
    """A3: in a parked turn everything but retry is carried out."""
    kinds_found: list[str] = []

    @attrs.define
    class Trying(ScriptedEditor):
        async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
            owner = house.house.owners[SESSION]
            (attempt,) = [one for one in owner.ledger.attempts.values() if one.result is not None]
            seen = await look(owner, attempt)
            for action in ("retry", "waive"):
                try:
                    await resolve(owner, Wanted(attempt.attempt_id, action, inspection_id=seen.inspection_id))
                except Refused as refused:
                    kinds_found.append(refused.kind)
            return Answer("once")

    async with retrying(absent, settle="ask", editor=Trying()) as house:
        owner, _ = await opened(house)
        await owner.set_mode("ask")
        await house.say(SESSION, "write other.txt with text", "next")
    assert kinds_found == ["turnRunning"]


async def test_another_uncertain_effect_holds_a_retry_back(absent: Place) -> None:
    """[I6], I10: only the one that it retries does not count."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        other = await house.create()
        await _uncertain_command(house, other)
        assert (await refused(absent, owner, attempt, "retry", seen.inspection_id)).kind == "recoveryRequired"


async def test_in_plan_mode_nothing_runs(absent: Place) -> None:
    """F2, G2: what policy forbids is refused before anything is recorded, so that it can be tried again later."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        await owner.set_mode("plan")
        seen = await look(owner, attempt)
        found = await refused(absent, owner, attempt, "retry", seen.inspection_id)
        assert (found.kind, found.more["why"]) == (
            "retryUnsafe", "the session is in plan mode, in which nothing is changed",
        )  # fmt: skip
        await owner.set_mode("auto")
        new = await redo(owner, attempt, "retry", seen.inspection_id)
        assert new.result is not None
        assert new.result.outcome == "returned"
    assert absent.files() == {"a.txt": NEW}


async def test_an_unsaved_document_is_not_tried_again(absent: Place) -> None:
    """F2, G2, V2: nor what its editor has unsaved text of, nor what a rule denies: refused with why, nothing is
    recorded, and the old attempt can still be decided."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        path = str(absent.workspace / "a.txt")
        house.editor.documents[path] = OpenDocument("mine\n", 2, True)
        found = await refused(absent, owner, attempt, "retry", seen.inspection_id)
        assert found.kind == "retryUnsafe"
        assert "unsaved changes" in str(found.more["why"])
        del house.editor.documents[path]
        house.house.world.settings = attrs.evolve(
            house.house.world.settings, rules=Rules(deny=(Rule("write_file", "write_file", None),))
        )
        found = await refused(absent, owner, attempt, "retry", seen.inspection_id)
        assert found.kind == "retryUnsafe"
        assert "permissions.deny forbids it" in str(found.more["why"])
        assert "retry" in actions(attempt, owner.stand())


async def test_a_retry_that_dies_can_be_tried_again(absent: Place) -> None:
    """F2, F3: a retry is an attempt like any other: killed, absent and fenced, it has the same key at the next."""
    async with retrying(absent, disk=(disk := GatedDisk(on("exchange", "a.txt"), OSError(errno.EIO, "lost")))) as house:
        disk.go.set()
        owner, attempt = await opened(house)
        new = await redo(owner, attempt, "retry")
        assert new.result is not None
        assert new.result.outcome == "failed"
    keys = {stamped.record.key for stamped in on_disk(absent, Intent) if isinstance(stamped.record, Intent)}
    assert keys == {attempt.key}
    assert absent.files() == {"a.txt": OLD}


async def test_a_retry_killed_while_its_permission_is_asked_is_told(absent: Place) -> None:
    """C5, C6, F2: the old attempt is superseded and the new one did not run; model and user are told so, once."""

    async def life() -> None:
        def die(_: PermissionQuestion) -> Answer:
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        async with retrying(absent, life=3, editor=ScriptedEditor(permission=die)) as house:
            owner, attempt = await opened(house)
            await owner.set_mode("ask")
            await redo(owner, attempt, "retry")

    assert forked(life).signal == signal.SIGKILL
    for number in (4, 5):
        async with retrying(absent, life=number) as house:
            await house.open(SESSION)
            owner = house.house.owners[SESSION]
            told = [text for text in notices(owner) if "tried again" in text]
            assert len(told) == 1
            assert "interrupted_before_execution" in told[0]
            assert "did not run" in told[0]
    assert [settled for _, settled in settlements(absent)] == ["checked_absent", "superseded"]
    assert absent.files() == {"a.txt": OLD}


async def test_a_restore_is_not_tried_again(present: Place) -> None:
    """wire.md, `notOffered`."""
    async with retrying(present) as house:
        owner, attempt = await opened(house)
        new = await redo(owner, attempt, "restore")
        await look(owner, new)
        found = await refused(present, owner, new, "retry", new.inspection.inspection_id if new.inspection else None)
        assert found.kind == "staleSnapshot", "it is not uncertain"


async def test_each_inspection_is_stored(absent: Place) -> None:
    """A4: before it is answered."""
    async with retrying(absent) as house:
        owner, attempt = await opened(house)
        seen = await look(owner, attempt)
        (stored,) = on_disk(absent, Inspection)
        assert isinstance(stored.record, Inspection)
        assert stored.record.inspection_id == seen.inspection_id
