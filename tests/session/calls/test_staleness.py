"""What changed since the model read it: refused, said, or asked about (row V3; cases 67, 68, 71 and 135).

The model of these tests reads and writes by its script; the person and their programs write the file between two turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from steadyhand.domain.model.messages import CallProposed
from steadyhand.domain.records.prompt import FileAttachment, Prompt
from steadyhand.domain.records.record import Mode, Permission, ToolResult
from steadyhand.domain.text.positions import Position, Range
from steadyhand.domain.views.questions import Choice
from steadyhand.session.session import Session
from steadyhand.tools.builtin import read_file
from steadyhand.tools.writes.staleness import STALE_DIFF_BYTES_MAX
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, call, read, run, says, write
from tests.support.session_state import on_disk, replies, states

pytestmark = pytest.mark.anyio
OLD = "one\ntwo\nthree\nfour\nfive\nsix\n"
PERSONS = OLD.replace("two\n", "two\nby the person\n")


def edit(old: str, new: str, path: str = "a.txt") -> CallProposed:
    return call("edit_file", path=path, edits=[{"old": old, "new": new}])


def delete(path: str = "a.txt") -> CallProposed:
    return call("delete_file", path=path)


async def turn(stage: InProcessServer, session: Session, *calls: CallProposed) -> tuple[str, str]:
    """One turn with these calls in one answer; the last one's state and reply."""
    stage.model.answers[:] = [asks(*calls), says("ok")]
    await stage.say(session)
    return states(session)[-1], replies(session)[-1]


# The table of row V3.


async def test_edit_of_untouched_lines_goes_on_and_names_the_changed_ones(tmp_path: Path) -> None:
    """V3, case 67: the reply begins with the lines that changed; what the person wrote stays. The model's own edit is
    no change of somebody else."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        stage.workspace.write("a.txt", PERSONS.replace("six", "SIX"))
        state, reply = await turn(stage, session, edit("four", "FOUR"))
        assert state == "returned"
        assert reply.startswith("Changed since you read it (since your reading): lines 3, 7.\na.txt was modified")
        assert stage.content("a.txt") == PERSONS.replace("six", "SIX").replace("four", "FOUR")
        assert stage.editor.questions == []
        state, reply = await turn(stage, session, edit("five", "FIVE"))
        assert reply.startswith("a.txt was modified"), "its own write counts as seen (case 67)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("two\nby the person\nthree", "two\nthree"),  # it names a line that it was never shown
        ("two\nthree", "2\n3"),  # its place is not there any more
        ("nowhere", "x"),
    ],
)
async def test_edit_of_a_changed_place_is_refused_with_the_difference(tmp_path: Path, old: str, new: str) -> None:
    """V3, case 68: an edit begins with what is true now, and says what that is."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        stage.workspace.write("a.txt", PERSONS)
        state, reply = await turn(stage, session, edit(old, new))
        assert state == "refused"
        assert reply.startswith("This call was refused (stale) and did not run. a.txt changed since you read it")
        assert "+by the person\n" in reply
        assert stage.content("a.txt") == PERSONS
        assert (await turn(stage, session, read("a.txt")))[0] == "returned"
        state, _ = await turn(stage, session, edit("two\nby the person", "2\nby the person"))
        assert state == "returned"


async def test_edit_of_a_file_never_shown_goes_on(tmp_path: Path) -> None:
    """V3: an edit names the text that it replaces, so it needs no reading."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        assert (await turn(stage, session, edit("two", "2")))[0] == "returned"


@pytest.mark.parametrize("mode", ["auto", "edits", "ask"])
@pytest.mark.parametrize("which", ["write", "delete", "move"])
async def test_file_that_changed_is_not_replaced_or_removed_in_any_mode(tmp_path: Path, which: str, mode: Mode) -> None:
    """V3, cases 135 and 71: refused with the difference, and nobody is asked."""
    calls = {
        "write": write("a.txt", "mine\n"),
        "delete": delete(),
        "move": call("move_file", **{"from": "b.txt", "to": "a.txt", "overwrite": True}),
    }
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        stage.workspace.write("b.txt", "b\n")
        session = await stage.session(mode)
        await turn(stage, session, read("a.txt"))
        stage.workspace.write("a.txt", PERSONS)
        state, reply = await turn(stage, session, calls[which])
        assert (state, stage.editor.questions) == ("refused", [])
        assert "(stale)" in reply
        assert "+by the person\n" in reply
        assert stage.workspace.files() == {"a.txt": PERSONS, "b.txt": "b\n"}
        stage.workspace.write("a.txt", OLD)  # it is again as the model knows it
        assert (await turn(stage, session, calls[which]))[0] == "returned"


@pytest.mark.parametrize("mode", ["auto", "edits"])
@pytest.mark.parametrize(("answer", "state"), [("once", "returned"), ("reject", "refused"), ("session", "refused")])
async def test_write_over_a_file_never_shown_asks_with_the_difference(
    tmp_path: Path, mode: Mode, answer: str, state: str
) -> None:
    """V3: in every mode; only once or no can be answered, and an answer that was not offered is a no."""
    async with scripted_server(tmp_path, editor=ScriptedEditor(answer)) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session(mode)
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == state
        (question,) = stage.editor.questions
        assert question.text.endswith("Asked because the model has not read it.")
        assert question.text.count("has not read") == 1, "one reason, said once"
        assert [option.id for option in question.options] == ["once", "reject"]
        assert question.diff is not None
        assert "-two\n" in question.diff
        assert "+mine\n" in question.diff
        assert stage.content("a.txt") == ("mine\n" if state == "returned" else OLD)


async def test_question_says_beside_its_own_reason_that_a_file_was_read_in_part(tmp_path: Path) -> None:
    """V3: in `ask` the mode is why the user is asked, and what the model has not read is said too."""
    async with scripted_server(tmp_path, editor=ScriptedEditor("once")) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("ask")
        await turn(stage, session, call("read_file", path="a.txt", limit=2))
        await turn(stage, session, write("a.txt", "mine\n"))
        (question,) = stage.editor.questions
        assert " Note that the model has not read all of it.\nAsked because " in question.text
        assert question.text.count("has not read") == 1


async def test_grant_covers_no_write_over_a_file_never_shown(tmp_path: Path) -> None:
    """V3, G2: a grant for the session was given for another file; the question of this one comes all the same."""
    async with scripted_server(tmp_path, editor=ScriptedEditor("session", None)) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("ask")
        assert (await turn(stage, session, write("new.txt", "x")))[0] == "returned"
        assert (await turn(stage, session, write("other.txt", "x")))[0] == "returned"
        state, _ = await turn(stage, session, write("a.txt", "mine\n"))
        assert (state, len(stage.editor.questions)) == ("refused", 2)


async def test_write_over_a_file_never_shown_is_refused_where_nobody_can_be_asked(tmp_path: Path) -> None:
    """V3: refused `stale`; after a reading it goes on, unasked."""
    async with scripted_server(tmp_path, editor=ScriptedEditor(somebody=False)) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        state, reply = await turn(stage, session, write("a.txt", "mine\n"))
        assert (state, stage.content("a.txt")) == ("refused", OLD)
        assert "(stale)" in reply
        assert "read it first" in reply
        await turn(stage, session, read("a.txt"))
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == "returned"
        assert [one for one in on_disk(session) if isinstance(one, Permission)] == []


async def test_write_of_what_is_there_already_asks_nobody(tmp_path: Path) -> None:
    """V3: nothing is written, so nothing can be lost."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        assert (await turn(stage, session, write("a.txt", OLD)))[0] == "returned"
        assert stage.editor.questions == []


# Case 135: every order of what the model, the person and a program do.

EVENTS = ("read", "write", "format", "save")


@pytest.mark.parametrize("order", list(itertools.permutations(EVENTS)), ids=" ".join)
async def test_no_order_of_events_loses_a_line_unasked(tmp_path: Path, order: Sequence[str]) -> None:
    """Case 135, V3: in every order of reading, writing, formatting and saving, the model's write goes on exactly if
    what is there is what it knows; else it is refused, or the user is asked if the model never saw the file."""
    editor = ScriptedEditor(permission=lambda _: Choice("reject"))
    async with scripted_server(tmp_path, editor=editor) as stage:
        now: str = OLD
        known: str | None = None
        stage.workspace.write("a.txt", now)
        session = await stage.session("auto")
        for number, event in enumerate((*order, "write")):
            if event == "read":
                await turn(stage, session, read("a.txt"))
                known = now
            elif event in ("format", "save"):
                now = now.upper() if event == "format" else f"{now}by the person {number}\n"
                stage.workspace.write("a.txt", now)
            else:
                mine = f"mine {number}\n"
                asked = len(editor.questions)
                state, reply = await turn(stage, session, write("a.txt", mine))
                assert (state == "returned") == (known == now), order
                assert (len(editor.questions) > asked) == (known is None)
                assert ("(stale)" in reply) == (known is not None and known != now)
                known = mine if state == "returned" else known
                now = stage.content("a.txt") or ""
            assert stage.content("a.txt") == now


@pytest.mark.parametrize(("answers", "state"), [(("once", "once"), "returned"), (("once", "reject"), "refused")])
async def test_write_outside_over_a_file_never_shown_asks_again_with_the_difference(
    tmp_path: Path, answers: tuple[str, ...], state: str
) -> None:
    """V3, case 125: the first question is made from the call alone; the second one has what would be lost."""
    async with scripted_server(tmp_path, editor=ScriptedEditor(*answers)) as stage:
        there, free = tmp_path / "there.txt", tmp_path / "free.txt"
        there.write_text(OLD)
        session = await stage.session("auto")
        assert (await turn(stage, session, write(str(there), "mine\n")))[0] == state
        first, second = stage.editor.questions
        assert "-one" not in (first.diff or "")
        assert "-one" in (second.diff or "")
        assert second.text.endswith("Asked because the model has not read it.")
        assert [option.id for option in second.options] == ["once", "reject"]
        assert there.read_text() == ("mine\n" if state == "returned" else OLD)
        await turn(stage, session, write(str(free), "new\n"))
        assert len(stage.editor.questions) == 3, "there is nothing to lose"


# What counts as shown.


@pytest.mark.parametrize(
    ("calls", "is_whole"),
    [
        ((read("a.txt"),), True),
        ((call("read_file", path="a.txt", limit=3),), False),
        ((call("read_file", path="a.txt", limit=3), call("read_file", path="a.txt", offset=4)), True),
        ((call("read_file", path="a.txt", limit=2), call("read_file", path="a.txt", offset=4)), False),
        ((run("cat a.txt"),), True),
        ((run("head -n 6 a.txt"),), True),
        ((run("head -n 2 a.txt"),), False),
        ((run("head -n 2 a.txt"), run("tail -n 4 a.txt")), True),
        ((run("tail -n 2 a.txt"),), False),
        ((run("wc -l a.txt"),), False),
        ((run("ls"),), False),
        ((call("search_text", pattern="two"),), False),
    ],
)
async def test_lines_that_were_shown_add_up(tmp_path: Path, calls: tuple[CallProposed, ...], is_whole: bool) -> None:
    """V3, O2: the union of the lines of one content, from `read_file` and from the server's own answers."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        for one in calls:
            assert (await turn(stage, session, one))[0] == "returned"
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == "returned"
        assert (stage.editor.questions == []) == is_whole


@pytest.mark.parametrize(
    ("first_part", "old", "new", "is_whole"),
    [(3, "one", "1", True), (3, "one\ntwo", "2\n1", True), (2, "one", "1", False), (3, "one", "1\n1", False)],
)
async def test_parts_count_after_an_edit_that_keeps_the_number_of_lines(
    tmp_path: Path, first_part: int, old: str, new: str, is_whole: bool
) -> None:
    """V3: what was shown in parts and edited is known as well as what was shown at once."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        await turn(stage, session, call("read_file", path="a.txt", limit=first_part))
        await turn(stage, session, call("read_file", path="a.txt", offset=4))
        await turn(stage, session, edit(old, new))
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == "returned"
        assert (stage.editor.questions == []) == is_whole


async def test_reading_in_the_same_answer_does_not_count(tmp_path: Path) -> None:
    """V3: the model proposed the write before it saw the reply; its own edits of that answer count (case 67)."""
    async with scripted_server(tmp_path, editor=ScriptedEditor("reject")) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        assert (await turn(stage, session, read("a.txt"), write("a.txt", "mine\n")))[0] == "refused"
        state, reply = await turn(stage, session, edit("one", "1"), edit("two", "2"))
        assert (state, reply.startswith("a.txt was modified")) == ("returned", True)
        assert stage.content("a.txt") == OLD.replace("one", "1").replace("two", "2")
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == "returned", "read whole, then edited"


@pytest.mark.parametrize(("place", "is_whole"), [(None, True), (Range(Position(0, 0), Position(2, 0)), False)])
async def test_attached_file_counts_as_shown(tmp_path: Path, place: Range | None, is_whole: bool) -> None:
    """V3, G5: whole, or the lines of its range; recorded with the text."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        stage.model.answers[:] = [asks(write("a.txt", "mine\n")), says("ok")]
        await stage.say(session, Prompt("go", (FileAttachment("a.txt", place),)))
        assert states(session) == ["returned"]
        assert (stage.editor.questions == []) == is_whole


async def test_large_file_counts_as_shown_by_a_part_of_what_is_there(tmp_path: Path) -> None:
    """V3: above 256 KiB; of another content no part counts."""
    large = "x" * 99 + "\n"
    async with scripted_server(tmp_path, editor=ScriptedEditor(somebody=False)) as stage:
        stage.workspace.write("a.txt", large * 2700)
        session = await stage.session("auto")
        await turn(stage, session, call("read_file", path="a.txt", limit=1))
        stage.workspace.write("a.txt", large * 2701)
        state, reply = await turn(stage, session, write("a.txt", "mine\n"))
        assert (state, "(stale)" in reply) == ("refused", True)
        await turn(stage, session, call("read_file", path="a.txt", limit=1))
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == "returned"


async def test_reading_of_a_window_counts_for_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V3, case 64: a file that is read in pieces is known by its digest, so "read it again" can be done."""
    monkeypatch.setattr(read_file, "WHOLE_BYTES_MAX", 1000)
    async with scripted_server(tmp_path, editor=ScriptedEditor(somebody=False)) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        stage.workspace.write("a.txt", OLD.replace("five", "FIVE") + "many\n" * 60_000)
        assert (await turn(stage, session, edit("FIVE\n", "5\n")))[0] == "refused"
        await turn(stage, session, call("read_file", path="a.txt", offset=2, limit=3))
        (shown,) = [one for one in on_disk(session) if isinstance(one, ToolResult)][-1].shown
        assert (shown.from_, shown.to, shown.whole, shown.encoding) == (2, 4, False, "utf-8")
        assert (await turn(stage, session, edit("FIVE\n", "5\n")))[0] == "returned"
        await turn(stage, session, call("read_file", path="a.txt", offset=2, limit=3))
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == "returned"


@pytest.mark.parametrize("scanned", [None, 2000])
async def test_reading_that_finds_no_text_or_no_digest_ends_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanned: int | None
) -> None:
    """V3: the model saw that its text is gone, so the file counts as never read."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        if scanned is None:
            (stage.root / "a.txt").write_bytes(b"\0\1")
        else:
            monkeypatch.setattr(read_file, "WHOLE_BYTES_MAX", 1000)
            monkeypatch.setattr(read_file, "SCANNED_BYTES_MAX", scanned)
            stage.workspace.write("a.txt", "many\n" * 1000)
        assert (await turn(stage, session, delete()))[0] == "refused"
        await turn(stage, session, read("a.txt"))
        assert (await turn(stage, session, delete()))[0] == "returned"


async def test_deleted_file_is_made_again_only_after_a_reading(tmp_path: Path) -> None:
    """V3, V1: a write of a file that is gone since the reading is refused, until a reading finds nothing there."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        (stage.root / "a.txt").unlink()
        state, reply = await turn(stage, session, write("a.txt", "mine\n"))
        assert (state, "a.txt was deleted since you read it" in reply) == ("refused", True)
        assert (await turn(stage, session, read("a.txt")))[0] == "failed"
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == "returned"
        assert (await turn(stage, session, delete()))[0] == "returned"
        assert (await turn(stage, session, write("a.txt", "mine\n")))[0] == "returned", "it deleted the file itself"


async def test_moved_file_is_known_at_its_new_path(tmp_path: Path) -> None:
    """V3: a move keeps the content, and with it what the model knows."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        await turn(stage, session, call("move_file", **{"from": "a.txt", "to": "b.txt"}))
        assert (await turn(stage, session, write("b.txt", "mine\n")))[0] == "returned"
        assert stage.editor.questions == []


# After a restart, and who changed it.


async def test_knowledge_survives_a_restart_and_the_earlier_text_does_not(tmp_path: Path) -> None:
    """V3, J1: what was shown is in the journal. Without the earlier bytes there is no difference to show."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        stage.workspace.write("b.txt", "b\n")
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"), read("b.txt"))
        path = str(stage.root / "a.txt")
        every = [one.shown[0] for one in on_disk(session) if isinstance(one, ToolResult)]
        (shown,) = [one for one in every if one.path == path]
        assert (shown.path, shown.from_, shown.to, shown.whole, shown.encoding) == (path, 1, 6, True, "utf-8")
    async with scripted_server(tmp_path, run=2) as stage:
        session = await stage.opened(session.session_id)
        assert (await turn(stage, session, write("b.txt", "mine\n")))[0] == "returned"
        assert stage.editor.questions == []
        stage.workspace.write("a.txt", PERSONS)
        state, reply = await turn(stage, session, edit("four", "FOUR"))
        assert state == "refused"
        assert reply.endswith("It changed since you read it; read it again.")


async def test_change_is_put_down_to_the_session_that_made_it(tmp_path: Path) -> None:
    """V3: by the digest of what is there now; another session of this process is named."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session, other = await stage.session("auto"), await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        await turn(stage, other, edit("two", "2"))
        state, reply = await turn(stage, session, edit("four", "4"))
        assert (state, reply.partition("\n")[0]) == (
            "returned", "Changed since you read it (by session go on): lines 2.",
        )  # fmt: skip


async def test_change_by_a_session_that_is_not_open_is_put_down_to_it(tmp_path: Path) -> None:
    """V3, V5: its journal says so, and is read only when the file is not as the model knows it."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", OLD)
        session, other = await stage.session("auto"), await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        await turn(stage, other, edit("two", "2"), edit("three", "3"))
        await stage.registry.close(other.session_id)
        await turn(stage, session, write("b.txt", "b\n"))
        assert session.context.file_changes == {}
        state, reply = await turn(stage, session, edit("six", "6"))
        assert (state, reply.partition("\n")[0]) == (
            "returned", "Changed since you read it (by session go on): lines 2-3.",
        )  # fmt: skip
        stage.workspace.write("a.txt", PERSONS)
        _, reply = await turn(stage, session, write("a.txt", "mine\n"))
        assert "(since your reading)" in reply, "the closed session did not make this content"


async def test_change_after_a_command_of_the_turn_names_its_program(tmp_path: Path) -> None:
    """V3: perhaps by the command, if it ran since the reading; a command before it explains nothing."""
    async with scripted_server(tmp_path, processes=FakeProcesses(otherwise=Script())) as stage:
        stage.workspace.write("a.txt", OLD)
        session = await stage.session("auto")
        stage.model.answers[:] = [asks(run("make")), asks(read("a.txt")), asks(run("black a.txt")), says("ok")]
        await stage.say(session)
        stage.workspace.write("a.txt", PERSONS)
        _, reply = await turn(stage, session, edit("four", "4"))
        assert "(since your reading)" in reply, "those commands were of another turn"
        await turn(stage, session, read("a.txt"))
        stage.model.answers[:] = [asks(run("black a.txt"), edit("one", "1")), says("ok")]
        stage.workspace.write("a.txt", (stage.content("a.txt") or "").replace("six", "SIX"))
        await stage.say(session)
        assert "(since your reading, perhaps by black)" in replies(session)[-1]


async def test_difference_is_bounded(tmp_path: Path) -> None:
    """V3 [I13]: at most 8 KiB of it."""
    async with scripted_server(tmp_path) as stage:
        stage.workspace.write("a.txt", "".join(f"line {number}\n" for number in range(2000)))
        session = await stage.session("auto")
        await turn(stage, session, read("a.txt"))
        stage.workspace.write("a.txt", "".join(f"LINE {number}\n" for number in range(2000)))
        _, reply = await turn(stage, session, write("a.txt", "x"))
        assert STALE_DIFF_BYTES_MAX - 200 < len(reply.encode()) < STALE_DIFF_BYTES_MAX + 300
