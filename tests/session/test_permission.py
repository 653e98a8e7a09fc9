"""Permission: asked before the start, recorded before it counts, never more than was said (rows C5, G2, W1, E3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.core.model import AssistantMessage, ReplyMessage
from steadyhand.core.questions import Answer
from steadyhand.core.record import Permission
from steadyhand.session import prompts
from tests.support.fakes import FakeProcesses, Script
from tests.support.scripted import (
    Gate,
    Park,
    ScriptedEditor,
    asks,
    assert_closed,
    call,
    calls_of,
    kinds,
    on_disk,
    outcomes,
    read,
    replies,
    run,
    says,
    staged,
    states,
    write,
)

pytestmark = pytest.mark.anyio


def answered(owner: object) -> list[tuple[str, str | None]]:
    """The answers that are recorded: (answer, reason)."""
    from steadyhand.session.owner import Owner

    assert isinstance(owner, Owner)
    return [(r.answer, r.reason) for r in on_disk(owner) if isinstance(r, Permission)]


# --- what is asked ------------------------------------------------------------------------------------------------


async def test_what_a_question_says(tmp_path: Path) -> None:
    """Rows G2, C5: tool, path, canonical arguments, the diff, the possible answers; asked before *started*."""
    park = Park()
    unsorted = call("write_file", path="a.txt", content="new\n")
    async with staged(tmp_path, asks(unsorted), editor=ScriptedEditor(park)) as stage:
        (stage.root / "a.txt").write_text("old\n")
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        question = await park.wait_open()
        assert (question.tool, question.title) == ("write_file", "write_file: a.txt")
        assert question.arguments == '{"content":"new\\n","path":"a.txt"}'
        assert question.diff is not None
        assert "-old" in question.diff
        assert "+new" in question.diff
        assert [option.id for option in question.options] == ["once", "session", "workspace", "user", "reject"]
        assert [option.label for option in question.options] == [
            *("Allow once", "Allow in this session", "Allow in this workspace", "Allow in all workspaces", "Reject"),
        ]
        assert [option.id for option in question.short_options] == ["once", "session", "reject"]
        assert (question.session_id, question.turn_id) == (owner.session_id, accepted.turn_id)
        assert question.call_id == calls_of(owner)[0].call_id
        assert "started" not in kinds(owner)
        assert states(owner) == ["waiting"]
        park.answer_with("once")
        await stage.ended(owner, accepted.turn_id)
        assert stage.content("a.txt") == "new\n"


async def test_once_is_once(tmp_path: Path) -> None:
    """Row C5: allowed once, the next call asks again."""
    answer = asks(write("a.txt", "1"), write("a.txt", "2"))
    async with staged(tmp_path, answer, says("ok"), editor=ScriptedEditor("once", "reject")) as stage:
        owner = await stage.session()
        await stage.say(owner)
        assert len(stage.editor.questions) == 2
        assert answered(owner) == [("once", None), ("reject", None)]
        assert states(owner) == ["returned", "refused"]
        assert stage.content("a.txt") == "1"


async def test_a_no_with_a_note(tmp_path: Path) -> None:
    """Rows C5, C6: refused as `denied`, did not run, and the model is told the note; the note is recorded."""
    editor = ScriptedEditor(Answer("reject", "use b.txt instead"))
    async with staged(tmp_path, asks(write("a.txt", "1")), says("ok"), editor=editor) as stage:
        owner = await stage.session()
        await stage.say(owner)
        assert outcomes(owner) == [("refused", "denied")]
        assert "They say: use b.txt instead. Do not try" in replies(owner)[0]
        assert "did not run" in replies(owner)[0]
        assert [r.note for r in on_disk(owner) if isinstance(r, Permission)] == ["use b.txt instead"]
        assert stage.content("a.txt") is None
        assert "started" not in kinds(owner)


@pytest.mark.parametrize("answer", [None, Answer("confirm"), Answer("yes"), Answer("")])
async def test_no_answer_is_never_a_yes(tmp_path: Path, answer: Answer | None) -> None:
    """wire.md: null, an error or an option that was not offered: refused as not answered, and recorded so."""
    async with staged(tmp_path, asks(write("a.txt", "1")), says("ok"), editor=ScriptedEditor(answer)) as stage:
        owner = await stage.session()
        await stage.say(owner)
        assert outcomes(owner) == [("refused", "not_answered")]
        assert answered(owner) == [("reject", "not_answered")]
        assert "was not answered" in replies(owner)[0]
        assert stage.content("a.txt") is None


async def test_nobody_is_there(tmp_path: Path) -> None:
    """Row C5: with no editor attached nothing is asked, and what needs permission is refused as not answered."""
    async with staged(tmp_path, asks(write("a.txt", "1"), read("b.txt")), says("ok")) as stage:
        stage.editor.somebody = False
        owner = await stage.session()
        await stage.say(owner)
        assert stage.editor.questions == []
        assert outcomes(owner) == [("refused", "not_answered")]
        assert states(owner)[1] != "refused", "reads need nobody"


# --- for the session ----------------------------------------------------------------------------------------------


async def test_a_file_tool_for_the_session(tmp_path: Path) -> None:
    """wire.md: `session` covers that tool on paths inside the workspace, and no other tool."""
    edit = call("edit_file", path="b.txt", edits=[{"old": "1", "new": "2"}])
    answer = asks(write("a.txt", "1"), write("b.txt", "1"), edit)
    async with staged(tmp_path, answer, says("ok"), editor=ScriptedEditor("session", "reject")) as stage:
        owner = await stage.session()
        await stage.say(owner)
        assert [question.tool for question in stage.editor.questions] == ["write_file", "edit_file"]
        assert states(owner) == ["returned", "returned", "refused"]


async def test_a_command_for_the_session(tmp_path: Path) -> None:
    """wire.md: `session` covers this very command in this very folder, nothing like it."""
    answer = asks(run("make"), run("make"), run("make all"), run("make", cwd="sub"), write("a.txt", "1"))
    editor = ScriptedEditor("session", "reject", "reject", "reject")
    async with staged(
        tmp_path, answer, says("ok"), editor=editor, processes=FakeProcesses(otherwise=Script())
    ) as stage:
        (stage.root / "sub").mkdir()
        owner = await stage.session()
        await stage.say(owner)
        assert states(owner) == ["returned", "returned", "refused", "refused", "refused"]
        assert len(stage.editor.questions) == 4


async def test_a_grant_survives_a_restart(tmp_path: Path) -> None:
    """wire.md: it is a `permission` record and holds in the next life of the session."""
    async with staged(tmp_path, asks(write("a.txt", "1")), says("ok"), editor=ScriptedEditor("session")) as stage:
        owner = await stage.session()
        await stage.say(owner)
    async with staged(
        tmp_path, asks(write("a.txt", "2")), says("ok"), life=2, editor=ScriptedEditor("reject")
    ) as stage:
        owner = await stage.opened(owner.session_id)
        await stage.say(owner)
        assert stage.editor.questions == []
        assert stage.content("a.txt") == "2"


@pytest.mark.parametrize(
    "path", [".git/config", ".env", ".vscode/settings.json", ".env.local", "sub/.git/hooks/x", ".bashrc"]
)
async def test_a_grant_never_covers_protected_paths(tmp_path: Path, path: str) -> None:
    """Row G2: asked in every mode and whatever was granted, and never offered for the session."""
    (tmp_path / "ws" / path).parent.mkdir(parents=True)
    answer = asks(write("a.txt", "1"), write(path, "x"))
    async with staged(tmp_path, answer, says("ok"), editor=ScriptedEditor("session", "reject")) as stage:
        owner = await stage.session()
        await stage.say(owner)
        assert states(owner) == ["returned", "refused"]
        assert [o.id for o in stage.editor.questions[1].options] == ["once", "reject"]
        assert "protected" in stage.editor.questions[1].text
        assert stage.content(path) is None


async def test_a_grant_never_leaves_the_workspace(tmp_path: Path) -> None:
    """Row E3: a path outside asks each time, by name, through `..` and through a link; a read of it asks too."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b.txt").write_text("secret")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "link").symlink_to(tmp_path / "out")
    answer = asks(
        write("a.txt", "1"), write("../out/c.txt", "x"), write("link/c.txt", "x"),
        write(str(tmp_path / "out" / "c.txt"), "x"), read("../out/b.txt"),
    )  # fmt: skip
    editor = ScriptedEditor("session", *["reject"] * 4)
    async with staged(tmp_path, answer, says("ok"), editor=editor) as stage:
        owner = await stage.session()
        await stage.say(owner)
        assert states(owner) == ["returned", "refused", "refused", "refused", "refused"]
        assert all([o.id for o in question.options] == ["once", "reject"] for question in stage.editor.questions[1:])
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.txt"]
        assert "secret" not in "".join(replies(owner))


async def test_a_read_outside_that_was_allowed(tmp_path: Path) -> None:
    """Row E3: allowed once, the reading is done and its reply is the text."""
    (tmp_path / "out.txt").write_text("beyond")
    async with staged(tmp_path, asks(read("../out.txt")), says("ok"), editor=ScriptedEditor("once")) as stage:
        owner = await stage.session()
        await stage.say(owner)
        assert states(owner) == ["returned"]
        assert "beyond" in replies(owner)[0]


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
async def test_the_state_directory_is_never_a_target(tmp_path: Path, mode: str) -> None:
    """Row G2: refused by policy in every mode, and nobody is asked."""
    state = tmp_path / "state"
    answer = asks(write(str(state / "x"), "1"), write("../state/sessions/x", "1"), run("make", cwd=str(state)))
    async with staged(tmp_path, answer, says("ok")) as stage:
        owner = await stage.session(mode)  # type: ignore[arg-type]  # of the table
        await stage.say(owner)
        assert states(owner) == ["refused", "refused", "refused"]
        assert {each.reply.reason for each in calls_of(owner) if each.reply} == {"policy"}
        assert stage.editor.questions == []
        assert not (state / "x").exists()


# --- what changes while it is asked -------------------------------------------------------------------------------


@pytest.mark.parametrize("now", ["theirs", None])
async def test_a_file_that_changed_between_diff_and_answer(tmp_path: Path, now: str | None) -> None:
    """Row W1, case 71: what was allowed is not what is there, so it is refused as `changed` and their bytes stay."""
    park = Park()
    async with staged(tmp_path, asks(write("a.txt", "new")), says("ok"), editor=ScriptedEditor(park)) as stage:
        path = stage.root / "a.txt"
        path.write_text("old")
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await park.wait_open()
        if now is None:
            path.unlink()
        else:
            path.write_text(now)
        park.answer_with("once")
        await stage.ended(owner, accepted.turn_id)
        assert outcomes(owner) == [("refused", "changed")]
        assert "started" not in kinds(owner)
        assert stage.content("a.txt") == now
        assert answered(owner) == [("once", None)]


async def test_a_crash_while_the_user_decides(tmp_path: Path) -> None:
    """Row C5, case 83: the call did not run and says so; asked for again it is a new attempt with the same key."""
    park = Park()
    async with staged(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as stage:
        owner = await stage.session()
        await stage.send(owner, "one")
        await park.wait_open()
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, asks(write("a.txt", "1")), says("ok"), state=state, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        assert states(owner) == ["notRun"]
        assert outcomes(owner) == [("interrupted_before_execution", None)]
        (shown,) = owner.messages(9)[0][-1].calls or ()
        assert shown.reason == "interrupted_before_execution", "the card says so"
        assert owner.view().uncertain == 0
        assert stage.content("a.txt") is None
        await stage.say(owner, "go on")
        first, second = (each.attempt for each in calls_of(owner))
        assert first is not None
        assert second is not None
        assert first.attempt_id != second.attempt_id
        assert first.key == second.key, "the first one never happened"
        assert len(stage.editor.questions) == 1
        assert states(owner) == ["notRun", "returned"]


async def test_the_turn_goes_on_after_a_no(tmp_path: Path) -> None:
    """Row C6: a refusal is a reply like any other; later calls of the batch are decided on their own."""
    editor = ScriptedEditor("reject", "once")
    async with staged(tmp_path, asks(write("a.txt", "1"), write("b.txt", "2")), says("ok"), editor=editor) as stage:
        owner = await stage.session()
        assert (await stage.say(owner)).reason == "done"
        sent = stage.model.requests[1].messages
        assert [m.state for m in sent if isinstance(m, ReplyMessage)] == ["refused", "returned"]
        assert sum(isinstance(m, AssistantMessage) for m in sent) == 1
        assert_closed(owner)


async def test_a_session_that_closes_while_it_asks(tmp_path: Path) -> None:
    """Rows S2, G8: the question is withdrawn, the call did not run, and the turn ends `closed`."""
    park = Park()
    async with staged(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one", "c1")
        await park.wait_open()
        await stage.house.close(owner.session_id)
        assert park.withdrawn
        again = await stage.opened(owner.session_id)
        assert prompts.status(again, "c1").reason == "closed"
        assert states(again) == ["notRun"]
        assert "closed before it started" in replies(again)[0]
        assert stage.events(accepted.turn_id)[-1].kind == "ended"


async def test_nobody_is_asked_once_nothing_can_start(tmp_path: Path) -> None:
    """Row J6: with a broken journal an effect is not run, and the person is not asked about it."""
    gate = Gate()
    async with staged(tmp_path, [gate, *asks(write("a.txt", "1"))], says("ok")) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await gate.wait_reached()
        assert owner.journal is not None
        owner.journal.broken = "The disk is full."
        gate.go.set()
        assert (await stage.ended(owner, accepted.turn_id)).reason == "journalBroken"
        assert stage.editor.questions == []
        assert states(owner) == ["notRun"]
