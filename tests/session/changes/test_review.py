"""The review of a session's changes: listed, kept, undone, and what is left as it was (row V4)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import CallProposed
from steadyhand.domain.views.types import ReviewFile, ReviewResult
from steadyhand.ports.editor import OpenDocument
from steadyhand.session.changes import review, units
from steadyhand.session.changes.review import Selection
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.session import Session
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.folding_disk import folding_disk
from tests.support.in_process_server import scripted_server
from tests.support.model import Step, asks, call, says, write
from tests.support.redo import redo
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import kinds
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio

ALL = Selection(every=True)


def does(*calls: CallProposed) -> tuple[list[Step], list[Step]]:
    """The answers of one turn: calls, then its end."""
    return asks(*calls), says("done")


def move(start: str, goal: str) -> CallProposed:
    return CallProposed("move_file", json.dumps({"from": start, "to": goal}))


def delete(path: str) -> CallProposed:
    return call("delete_file", path=path)


def edit(path: str, old: str, new: str) -> CallProposed:
    return call("edit_file", path=path, edits=[{"old": old, "new": new}])


async def files(session: Session) -> dict[str, tuple[str, list[str]]]:
    """Path → its change and the states of its hunks."""
    listed = await review.list_review(session)
    return {file.path: (file.change, states(file)) for file in listed.files}


def states(file: ReviewFile) -> list[str]:
    return [hunk.state for hunk in file.hunks]


async def decide(session: Session, action: str, selection: Selection = ALL) -> ReviewResult:
    carry_out = review.keep if action == "keep" else review.undo
    return await carry_out(session, session.epoch, selection)


def left(result: ReviewResult) -> dict[str, str]:
    return {one.uri.rpartition("/")[2]: one.why for one in result.left}


async def test_review_lists_keeps_and_undoes_whole_files(tmp_path: Path) -> None:
    """V4: a created, a modified and a deleted file; one is kept, the others are undone by attempts that can be
    restored, and the model is told. The states survive a restart.
    """
    changes = (write("a.txt", "1\n"), edit("b.txt", "old", "new"), delete("c.txt"))
    async with scripted_server(tmp_path, *does(*changes), says("again")) as stage:
        for name in ("b.txt", "c.txt"):
            stage.workspace.write(name, "old\n")
        session = await stage.session("auto")
        await stage.say(session)
        assert await files(session) == {
            "a.txt": ("created", ["new"]),
            "b.txt": ("modified", ["new"]),
            "c.txt": ("deleted", ["new"]),
        }
        before = stage.workspace.files()
        (kept,) = [file for file in (await review.list_review(session)).files if file.path == "b.txt"]
        assert left(await decide(session, "keep", Selection(uri=kept.uri))) == {}
        assert stage.workspace.files() == before, "to keep changes no file"
        assert left(await decide(session, "undo")) == {}
        assert stage.workspace.files() == {"b.txt": "new\n", "c.txt": "old\n"}
        expected = {"a.txt": "undone", "b.txt": "kept", "c.txt": "undone"}
        assert {path: found[1] for path, found in (await files(session)).items()} == {
            path: [state] for path, state in expected.items()
        }
        undone = [one for one in session.ledger.attempts.values() if one.tool == "undo"]
        assert [one.review_of.path for one in undone if one.review_of is not None] == ["a.txt", "c.txt"]
        assert [one.started.evidence[0].checkpoint is not None for one in undone if one.started] == [True, False]
        await stage.say(session, "what now?")
        sent = " ".join(str(message) for message in stage.model.requests[-1].messages)
        assert "The user took back your change of a.txt." in sent
        assert "The user took back your change of c.txt." in sent
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        found = await files(again)
        assert {path: one[1][-1] for path, one in found.items()} == expected
        first = next(one for one in again.ledger.attempts.values() if one.tool == "undo")
        await redo(again, first, "restore")
        assert stage.content("a.txt") == "1\n"
        assert (await files(again))["a.txt"] == ("created", ["new"]), "an undo that is restored is a change again"


async def test_review_undoes_a_move_as_one_file(tmp_path: Path) -> None:
    """V4: a moved file is one entry and moves back; moved and changed since, both paths are undone together."""
    async with scripted_server(
        tmp_path, *does(move("a.txt", "d/b.txt")), *does(move("a.txt", "c.txt"), edit("c.txt", "old", "new"))
    ) as stage:
        stage.workspace.write("a.txt", "old\n")
        inode = (stage.root / "a.txt").stat().st_ino
        session = await stage.session("auto")
        await stage.say(session)
        (file,) = (await review.list_review(session)).files
        assert (file.path, file.change, file.from_, states(file)) == ("d/b.txt", "moved", "a.txt", ["new"])
        assert left(await decide(session, "undo", Selection(uri=file.uri))) == {}
        assert stage.workspace.files() == {"a.txt": "old\n"}
        assert (stage.root / "a.txt").stat().st_ino == inode, "a move is undone by a move"
        await stage.say(session)
        hunks = [hunk for file in (await review.list_review(session)).files for hunk in file.hunks]
        chosen = [hunk.hunk_id for hunk in hunks if hunk.state == "new"]
        assert len(chosen) == 2
        assert left(await decide(session, "undo", Selection(hunk_ids=(chosen[0],)))) == {}
        assert stage.workspace.files() == {"a.txt": "old\n"}


async def test_review_spares_what_somebody_else_changed(tmp_path: Path) -> None:
    """V4, V5, case 73: a file that the user changed since is left, others are undone; the change can still be kept."""
    async with scripted_server(tmp_path, *does(write("a.txt", "1\n"), write("b.txt", "2\n"))) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        stage.workspace.write("a.txt", "mine\n")
        result = await decide(session, "undo")
        assert left(result) == {"a.txt": "changed"}
        assert result.left[0].hunk_id is not None
        assert stage.workspace.files() == {"a.txt": "mine\n"}
        assert await files(session) == {"a.txt": ("created", ["gone"]), "b.txt": ("created", ["undone"])}
        assert left(await decide(session, "keep")) == {}
        assert (await files(session))["a.txt"] == ("created", ["kept"])
        assert stage.content("a.txt") == "mine\n"


async def test_review_leaves_what_it_cannot_undo_and_says_why(tmp_path: Path) -> None:
    """V4: unsaved text in the editor, content that was never stored or is gone, an id that nobody knows."""
    async with scripted_server(tmp_path, *does(edit("a.txt", "old", "new"), edit("b.txt", "old", "new"))) as stage:
        for name in ("a.txt", "b.txt"):
            stage.workspace.write(name, f"old {name}\n")
        session = await stage.session("auto")
        await stage.say(session)
        stage.editor.documents[str(stage.root / "a.txt")] = OpenDocument("unsaved\n", 2, True)
        for stored in (Path(session.path) / "checkpoints").iterdir():
            if stored.read_bytes() == b"old b.txt\n":
                stored.unlink()
        assert left(await decide(session, "undo")) == {"a.txt": "unsaved", "b.txt": "expired"}
        unknown = await decide(session, "undo", Selection(hunk_ids=("0" * 32,)))
        assert [(one.uri, one.hunk_id, one.why) for one in unknown.left] == [("", "0" * 32, "changed")]
        assert stage.content("b.txt") == "new b.txt\n"


async def test_review_is_refused_in_the_order_of_the_protocol(tmp_path: Path) -> None:
    """V4, I6: a running turn, another epoch, an uncertain effect; the last holds back an undo alone."""
    gate = Gate()

    async def lose(_: CallContext) -> ToolOutcome:
        return ToolOutcome("unknown", "Nobody knows.", "output_lost")

    doubtful = ScriptedTool("doubtful", lose, "opaque")
    answers = (*does(write("a.txt", "1\n")), [gate, *asks(call("doubtful"))], says("done"))
    async with scripted_server(tmp_path, *answers, tools=[doubtful]) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        accepted = await stage.send(session, "go on")
        await gate.wait_reached()
        assert await refusals(session) == ["turnRunning", "turnRunning"]
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        await stage.until(lambda: True if session.turn is None else None)
        with pytest.raises(Refused) as refused:
            await review.keep(session, "0" * 32, ALL)
        assert refused.value.kind == "staleEpoch"
        records = kinds(session)
        assert await refusals(session, "undo") == ["recoveryRequired"]
        assert kinds(session) == records
        assert left(await decide(session, "keep")) == {}
        assert kinds(session)[len(records) :] == ["review"]


async def refusals(session: Session, *actions: str) -> list[str]:
    found: list[str] = []
    for action in actions or ("keep", "undo"):
        with pytest.raises(Refused) as refused:
            await decide(session, action)
        found.append(refused.value.kind)
    return found


async def test_review_lists_at_most_its_bound_of_files(tmp_path: Path) -> None:
    """V4, I13: the files that were changed last are listed, and the rest is counted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(units, "REVIEW_FILES_MAX", 2)
        async with scripted_server(tmp_path, *does(*(write(f"{name}.txt", "1\n") for name in "abc"))) as stage:
            session = await stage.session("auto")
            await stage.say(session)
            listed = await review.list_review(session)
            assert ([file.path for file in listed.files], listed.more) == (["b.txt", "c.txt"], 1)


async def test_review_joins_the_changes_of_other_sessions(tmp_path: Path) -> None:
    """V4, V5: what another session changed on top is undone with it; what it changed before stays."""
    async with scripted_server(
        tmp_path, *does(write("a.txt", "1\n")), *does(write("a.txt", "2\n")), *does(write("a.txt", "3\n"))
    ) as stage:
        first, second = await stage.session("auto"), await stage.session("auto")
        for session in (first, second, first):
            await stage.say(session)
        assert left(await decide(second, "undo")) == {}
        assert stage.content("a.txt") == "1\n"
        assert not [state for _, found in (await files(second)).values() for state in found if state == "new"]
        assert (await files(first))["a.txt"] == ("created", ["new"])
        assert left(await decide(first, "undo")) == {}
        assert stage.content("a.txt") is None


async def test_undo_does_not_take_back_what_was_kept_before_another_sessions_change(tmp_path: Path) -> None:
    """V4: the user kept "2", a change of this session with one of another on top; "3" belongs to the other alone."""
    async with scripted_server(tmp_path, *(step for text in "123" for step in does(write("a.txt", text)))) as stage:
        stage.workspace.write("a.txt", "0")
        first, second = await stage.session("auto"), await stage.session("auto")
        await stage.say(first)
        await stage.say(second)
        await decide(first, "keep")
        await stage.say(second)
        assert left(await decide(first, "undo")) == {}
        assert stage.content("a.txt") == "3"
        assert left(await decide(second, "undo")) == {}
        assert stage.content("a.txt") == "1"


async def test_undo_and_rewind_of_a_write_in_place_are_in_place(tmp_path: Path) -> None:
    """W11, V4, G4: the first change replaced the file; then it got a second name, and the next change was in place.
    What is taken back goes through the same inode, and nobody is asked."""
    turns = (*does(write("a.txt", "1\n")), *does(write("a.txt", "2\n")), says("again"))
    async with scripted_server(tmp_path, *turns) as stage:
        stage.workspace.write("a.txt", "old\n")
        session = await stage.session("auto")
        await stage.say(session)
        path, other = stage.root / "a.txt", stage.root / "b.txt"
        os.link(path, other)
        await stage.say(session, "p2")
        assert other.read_text() == "2\n"
        asked, inode = len(stage.editor.questions), path.stat().st_ino
        assert left(await decide(session, "undo")) == {}
        assert (path.read_text(), other.read_text()) == ("old\n", "old\n")
        assert path.stat().st_ino == inode
        undo = list(session.ledger.attempts.values())[-1]
        assert undo.started is not None
        assert [one.in_place for one in undo.started.evidence] == [True]
        assert len(stage.editor.questions) == asked


async def test_unsaved_text_under_another_name_stops_undo_and_rewind_in_place(tmp_path: Path) -> None:
    """W11, V2, V4, G4: the editor would not know that the file below its text is another one."""
    async with scripted_server(tmp_path, *does(write("a.txt", "new\n"))) as stage:
        stage.workspace.write("a.txt", "old\n")
        os.link(stage.root / "a.txt", stage.root / "b.txt")
        session = await stage.session("auto")
        await stage.say(session)
        stage.editor.documents[str(stage.root / "b.txt")] = OpenDocument("unsaved\n", 2, True)
        assert left(await decide(session, "undo")) == {"a.txt": "unsaved"}
        result = await rewind(session, session.epoch, next(iter(session.ledger.turns)), "files")
        assert {(one.path, one.why) for one in result.left} == {("a.txt", "unsaved")}
        assert stage.workspace.files() == {"a.txt": "new\n", "b.txt": "new\n"}


async def test_write_in_place_that_was_moved_is_left_by_undo_and_rewind(tmp_path: Path) -> None:
    """W11, V4, G4: to bring both paths back would part the names of the file, so nothing is done and it is said."""
    async with scripted_server(tmp_path, *does(write("h1", "2\n"), move("h1", "h9")), says("again")) as stage:
        stage.workspace.write("h1", "old\n")
        os.link(stage.root / "h1", stage.root / "h2")
        session = await stage.session("auto")
        await stage.say(session, "go")
        assert stage.workspace.files() == {"h2": "2\n", "h9": "2\n"}
        assert set(left(await decide(session, "undo")).values()) == {"io"}
        result = await rewind(session, session.epoch, next(iter(session.ledger.turns)), "files")
        assert {(one.path, one.why) for one in result.left} == {("h1", "inPlace"), ("h9", "inPlace")}
        assert stage.workspace.files() == {"h2": "2\n", "h9": "2\n"}
        assert (stage.root / "h2").stat().st_ino == (stage.root / "h9").stat().st_ino


async def test_undo_spares_a_file_that_has_the_name_of_a_deleted_one_in_other_letters(tmp_path: Path) -> None:
    """V4, W12: the disk folds names, so the old name has the new content; to remove it would leave no file."""
    answers = does(delete("App.ts"), write("app.ts", "new\n"))
    async with scripted_server(tmp_path, *answers, disk=folding_disk(str(tmp_path))) as stage:
        stage.workspace.write("App.ts", "old\n")
        session = await stage.session("auto")
        await stage.say(session)
        assert left(await decide(session, "undo")) == {"App.ts": "changed", "app.ts": "changed"}
        assert stage.workspace.files() == {"app.ts": "new\n"}


@pytest.mark.parametrize("later", [(), (write("h1", "3\n"),)])
async def test_write_in_place_that_was_deleted_is_left_by_undo_and_rewind(
    tmp_path: Path, later: tuple[CallProposed, ...]
) -> None:
    """W11, V4, G4: a file made again is not the one that the other name still has, so nothing is done."""
    async with scripted_server(tmp_path, *does(write("h1", "2\n"), delete("h1"), *later)) as stage:
        stage.workspace.write("h1", "old\n")
        os.link(stage.root / "h1", stage.root / "h2")
        session = await stage.session("auto")
        await stage.say(session, "go")
        before = stage.workspace.files()
        assert before["h2"] == "2\n"
        assert left(await decide(session, "undo")) == {"h1": "io"}
        result = await rewind(session, session.epoch, next(iter(session.ledger.turns)), "files")
        assert [(one.path, one.why) for one in result.left] == [("h1", "inPlace")]
        assert (result.restored, stage.workspace.files()) == ((), before)
