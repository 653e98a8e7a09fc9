"""Open documents: each cell of the table of docs/buffers.md, and the questions about two texts (V1, V2; case 136)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steadyhand.domain.model.messages import CallProposed
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.views.questions import UserQuestion
from steadyhand.session.calls.save_first import (
    KEEP_DISK,
    KEEP_MINE,
    LEAVE,
    LEAVE_BOTH,
    SAVE,
    SHOW_BOTH,
)
from steadyhand.session.session import Session
from steadyhand.tools.workspace.open_documents import BOTH_MARK, EDITOR_MARK, GONE_MARK
from tests.support.buffers import Buffers
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.markdown import table_after
from tests.support.model import asks, call, read, says, write
from tests.support.session_state import calls_of, replies, states

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[3] / "docs" / "buffers.md"
TABLE = {row[""]: row for row in table_after(PAGE.read_text(), "States")}
COLUMNS = [f"{document} {disk}" for document in ("closed", "clean", "dirty") for disk in ("same", "newer", "gone")]
OLD, NEWER, TYPED = "line one\nline two\n", "line one\nline two\nline newer\n", "line one\nline two\nline typed\n"
MARKS = {EDITOR_MARK: "buffer¹", BOTH_MARK: "both²", GONE_MARK: "buffer³"}

CALLS: dict[str, Callable[[], CallProposed]] = {
    "read": lambda: read("a.txt"),
    "search": lambda: call("search_text", pattern="line"),
    "edit": lambda: call("edit_file", path="a.txt", edits=[{"old": "one", "new": "ONE"}]),
    "write": lambda: write("a.txt", "line all new\n"),
    "move": lambda: call("move_file", **{"from": "a.txt", "to": "b.txt"}),
    "delete": lambda: call("delete_file", path="a.txt"),
}


async def turn(stage: InProcessServer, session: Session, proposed: CallProposed) -> str:
    """One turn with one call; its reply."""
    stage.model.answers[:] = [asks(proposed), says("ok")]
    await stage.say(session)
    return replies(session)[-1]


def end_of(session: Session) -> tuple[str, str | None]:
    """(outcome, reason) of the last call."""
    reply = calls_of(session)[-1].reply
    assert reply is not None
    return reply.outcome, reply.reason


def bring_about(path: Path, buffers: Buffers, column: str) -> None:
    """Make the state of a column from a file that the model has read."""
    document, disk = column.split()
    if document == "dirty":
        buffers.type(path, TYPED)
    if disk == "newer":
        path.write_text(NEWER)
    if disk == "gone":
        path.unlink()


def word(stage: InProcessServer, session: Session, buffers: Buffers, row: str, column: str, reply: str) -> str:
    """What happened, in the words of the table."""
    outcome, reason = end_of(session)
    asked = [question.options for question in stage.editor.user_questions]
    if asked:
        assert (outcome, reason) == ("refused", "unsaved"), "the person left it"
        assert not buffers.applied
        return "ask save" if asked == [(SAVE, LEAVE)] else "ask both" if SHOW_BOTH in asked[0] else str(asked)
    if reason in ("not_found", "stale"):
        return reason
    assert outcome == "returned", reply
    match row:
        case "read":
            marks = [mark for mark in MARKS if reply.endswith(mark)]
            if marks:
                assert reply.startswith(TYPED)
                return MARKS[marks[0]]
            assert reply == (NEWER if "newer" in column else OLD)
            return "buffer" if column == "clean same" else "disk"
        case "search":
            if "no line contains" in reply:
                return "nothing"
            assert ("newer" in reply) == (column in ("closed newer", "clean newer"))
            assert ("typed" in reply) == (EDITOR_MARK in reply)
            return "buffer¹" if EDITOR_MARK in reply else "disk"
        case "edit" | "write":
            if buffers.applied:
                assert buffers.text(stage.root / "a.txt").startswith("line ONE" if row == "edit" else "line all new")
                if not buffers.saved:
                    assert reply.endswith("[not saved: the editor holds unsaved changes]")
                    assert stage.content("a.txt") == OLD
                return "apply, save" if buffers.saved else "apply⁴"
            assert (stage.content("a.txt") or "").startswith("line ONE" if row == "edit" else "line all new")
            return "V3" if reply.startswith("Changed since you read it") else "write"
        case _:
            assert stage.content("a.txt") is None
            return row


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", list(CALLS))
@pytest.mark.parametrize("able", [True, False], ids=["applies", "saves alone"])
async def test_call_in_each_state_of_buffer_and_disk(tmp_path: Path, row: str, column: str, able: bool) -> None:
    """V1, V2: each cell of the table, with an editor that applies edits and one that only saves. What a person typed
    and what the disk has is never lost."""
    async with scripted_server(tmp_path) as stage:
        path = stage.root / "a.txt"
        path.write_text(OLD)
        buffers = Buffers(stage.editor, applies=able)
        if not column.startswith("closed"):
            buffers.open(path)
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        bring_about(path, buffers, column)
        stage.editor.user_answers = [LEAVE]
        reply = await turn(stage, session, CALLS[row]())
        expected = TABLE[row][column]
        if not able:
            expected = {"apply, save": "write", "apply⁴": "ask save"}.get(expected, expected)
        assert word(stage, session, buffers, row, column, reply) == expected
        if expected.startswith("ask"):
            assert buffers.text(path) == TYPED
            assert stage.content("a.txt") == {"newer": NEWER, "gone": None, "same": OLD}[column.split()[1]]


async def test_newer_file_under_a_clean_document_is_replaced_after_a_reading(tmp_path: Path) -> None:
    """V1: a document that the editor does not read again must not stop the model for ever; the write is on disk."""
    async with scripted_server(tmp_path) as stage:
        path = stage.root / "a.txt"
        path.write_text(OLD)
        buffers = Buffers(stage.editor)
        buffers.open(path)
        path.write_text(NEWER)
        session = await stage.session("auto")
        await turn(stage, session, write("a.txt", "mine\n"))
        assert end_of(session) == ("refused", "stale")
        await turn(stage, session, read("a.txt"))
        await turn(stage, session, write("a.txt", "mine\n"))
        assert (states(session)[-1], stage.content("a.txt"), buffers.applied) == ("returned", "mine\n", [])


async def both(stage: InProcessServer, disk: str | None = NEWER) -> tuple[Buffers, Session, Path]:
    """A document with typed text over a file that changed, or is gone."""
    path = stage.root / "a.txt"
    path.write_text(OLD)
    buffers = Buffers(stage.editor)
    buffers.open(path)
    buffers.type(path, TYPED)
    if disk is None:
        path.unlink()
    else:
        path.write_text(disk)
    return buffers, await stage.session("auto"), path


def kept(session: Session, text: str) -> bool:
    """Whether a text is stored in `checkpoints/`."""
    folder = Path(session.tool_context.session_folder) / "checkpoints"
    return (folder / sha256(text.encode())).is_file()


async def test_blind_save_over_a_newer_file_keeps_what_the_disk_had(tmp_path: Path) -> None:
    """V1, case 136: `Save and go on` is not offered; with `Keep mine` the disk's text is stored first, and said."""
    async with scripted_server(tmp_path) as stage:
        _, session, _ = await both(stage)
        stage.editor.user_answers = [KEEP_MINE]
        await turn(stage, session, CALLS["edit"]())
        (question,) = stage.editor.user_questions
        assert question.options == (SHOW_BOTH, KEEP_DISK, KEEP_MINE, LEAVE_BOTH)
        assert "its file was changed on the disk too" in question.question
        assert kept(session, NEWER)
        assert any("What a.txt had on the disk is kept as" in text for text in stage.editor.messages)
        assert states(session)[-1] == "returned"
        assert stage.content("a.txt") == TYPED.replace("one", "ONE")


async def test_file_that_changes_while_the_save_is_asked_about_is_not_overwritten(tmp_path: Path) -> None:
    """V1, case 136: the file is looked at again right before the save; then the other question comes."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await both(stage, OLD)

        def answer(question: UserQuestion) -> str:
            if SAVE in question.options:
                path.write_text(NEWER)
                return SAVE
            return LEAVE_BOTH

        stage.editor.user = answer
        await turn(stage, session, CALLS["write"]())
        assert [SAVE in question.options for question in stage.editor.user_questions] == [True, False]
        assert (end_of(session), stage.content("a.txt"), buffers.saved) == (("refused", "unsaved"), NEWER, [])


async def test_text_of_the_disk_is_kept_and_the_typed_one_stored(tmp_path: Path) -> None:
    """V1: the document gets the text of its file; the edit then goes through it."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, path = await both(stage)
        stage.editor.user_answers = [KEEP_DISK]
        await turn(stage, session, CALLS["edit"]())
        assert kept(session, TYPED)
        assert any("The unsaved text of a.txt is kept as" in text for text in stage.editor.messages)
        assert states(session)[-1] == "returned"
        assert buffers.text(path) == stage.content("a.txt") == NEWER.replace("one", "ONE")


@pytest.mark.parametrize("answer", [KEEP_DISK, KEEP_MINE])
async def test_place_of_the_stored_text_is_said_where_the_answer_is_lost(tmp_path: Path, answer: str) -> None:
    """V1, [I3]: the editor may replace the text later; whoever looks for the other one then knows where it is."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, _ = await both(stage)
        buffers.habit, buffers.saves = "dead", "lies"
        stage.editor.user_answers = [answer]
        await turn(stage, session, CALLS["edit"]())
        assert end_of(session) == ("refused", "unsaved")
        assert kept(session, TYPED if answer == KEEP_DISK else NEWER)
        assert any("is kept as" in text for text in stage.editor.messages)


async def test_both_are_shown_before_the_person_decides(tmp_path: Path) -> None:
    """V1: the question comes again with the difference."""
    async with scripted_server(tmp_path) as stage:
        _, session, _ = await both(stage)
        stage.editor.user_answers = [SHOW_BOTH, LEAVE_BOTH]
        await turn(stage, session, CALLS["edit"]())
        first, second = stage.editor.user_questions
        assert second.options == (KEEP_DISK, KEEP_MINE, LEAVE_BOTH)
        assert "-line newer\n+line typed\n" in second.question
        assert "-line newer" not in first.question


async def test_file_that_is_gone_is_made_again_by_keeping_the_text(tmp_path: Path) -> None:
    """V1: there is no text of the disk to keep."""
    async with scripted_server(tmp_path) as stage:
        _, session, _ = await both(stage, None)
        stage.editor.user_answers = [KEEP_MINE]
        await turn(stage, session, CALLS["edit"]())
        (question,) = stage.editor.user_questions
        assert question.options == (SHOW_BOTH, KEEP_MINE, LEAVE_BOTH)
        assert states(session)[-1] == "returned"
        assert stage.content("a.txt") == TYPED.replace("one", "ONE")


@pytest.mark.parametrize(
    ("disk", "why"),
    [
        (OLD, "The user chose not to save it"),
        (NEWER, "Its file was changed on the disk too, and the user left both as they are"),
        (None, "Its file is gone from the disk, and the user left that as it is"),
    ],
)
async def test_refusal_says_what_the_person_left(tmp_path: Path, disk: str | None, why: str) -> None:
    """V1: the model is told of the file on the disk too, because a saved document would not be all that it meets."""
    async with scripted_server(tmp_path) as stage:
        _, session, _ = await both(stage, disk)
        Buffers(stage.editor, applies=False)
        stage.editor.user_answers = [LEAVE if disk == OLD else LEAVE_BOTH]
        reply = await turn(stage, session, CALLS["edit"]())
        assert reply.endswith(f"a.txt has unsaved changes in the editor. {why}, so it was not changed.")


@pytest.mark.parametrize("able", [(False, True), (True, False), (False, False)])
async def test_only_what_the_editor_can_do_is_offered(tmp_path: Path, able: tuple[bool, bool]) -> None:
    """V1: an editor without `save` is not offered `Keep mine`, one without `applyEdit` not the disk's text; an editor
    with neither is not asked."""
    async with scripted_server(tmp_path) as stage:
        _, session, _ = await both(stage)
        Buffers(stage.editor, *able)
        stage.editor.user_answers = [LEAVE_BOTH]
        await turn(stage, session, CALLS["edit"]())
        assert end_of(session) == ("refused", "unsaved")
        offered = [question.options for question in stage.editor.user_questions]
        applies, saves = able
        assert offered == (
            [(SHOW_BOTH, *([KEEP_DISK] if applies else []), *([KEEP_MINE] if saves else []), LEAVE_BOTH)]
            if any(able)
            else []
        )


async def test_save_that_an_editor_only_claims_refuses_the_call(tmp_path: Path) -> None:
    """V2: the disk decides whether it was saved; a claim proves nothing, and nothing is overwritten."""
    async with scripted_server(tmp_path) as stage:
        buffers, session, _ = await both(stage, OLD)
        buffers.saves = "lies"
        stage.editor.user_answers = [SAVE]
        await turn(stage, session, CALLS["write"]())
        assert end_of(session) == ("refused", "unsaved")
        assert "could not save it" in replies(session)[-1]
        assert stage.content("a.txt") == OLD
