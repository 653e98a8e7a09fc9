"""Permission: asked before the start, recorded before it counts, never more than the user said (rows C5, G2, W1,
E3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.model.messages import AssistantMessage, ReplyMessage
from steadyhand.domain.records.record import Permission
from steadyhand.domain.views.questions import Choice
from steadyhand.session.service import prompt_queue
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, read, run, says, write
from tests.support.session_state import assert_closed, calls_of, kinds, on_disk, outcomes, replies, states
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio


def recorded_answers(session: object) -> list[tuple[str, str | None]]:
    """The recorded answers: (answer, reason)."""
    from steadyhand.session.session import Session

    assert isinstance(session, Session)
    return [(r.answer, r.reason) for r in on_disk(session) if isinstance(r, Permission)]


# The question.


async def test_question_shows_tool_path_arguments_diff_and_options(tmp_path: Path) -> None:
    """Rows G2, C5: The question shows tool, path, canonical arguments, the diff and the possible answers. It comes
    before *started*."""
    park = Park()
    unsorted = call("write_file", path="a.txt", content="new\n")
    async with scripted_server(tmp_path, asks(unsorted), editor=ScriptedEditor(park)) as stage:
        (stage.root / "a.txt").write_text("old\n")
        session = await stage.session()
        accepted = await stage.send(session, "one")
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
        assert (question.session_id, question.turn_id) == (session.session_id, accepted.turn_id)
        assert question.call_id == calls_of(session)[0].call_id
        assert "started" not in kinds(session)
        assert states(session) == ["waiting"]
        park.answer_with("once")
        await stage.ended(session, accepted.turn_id)
        assert stage.content("a.txt") == "new\n"


async def test_answer_once_permits_one_call(tmp_path: Path) -> None:
    """Row C5: After `once` the next call asks again."""
    answer = asks(write("a.txt", "1"), write("a.txt", "2"))
    async with scripted_server(tmp_path, answer, says("ok"), editor=ScriptedEditor("once", "reject")) as stage:
        session = await stage.session()
        await stage.say(session)
        assert len(stage.editor.questions) == 2
        assert recorded_answers(session) == [("once", None), ("reject", None)]
        assert states(session) == ["returned", "refused"]
        assert stage.content("a.txt") == "1"


async def test_rejection_with_a_note_is_recorded_and_told_to_the_model(tmp_path: Path) -> None:
    """Rows C5, C6: The call is refused as `denied` and did not run. The model gets the note, and the journal records
    it."""
    editor = ScriptedEditor(Choice("reject", "use b.txt instead"))
    async with scripted_server(tmp_path, asks(write("a.txt", "1")), says("ok"), editor=editor) as stage:
        session = await stage.session()
        await stage.say(session)
        assert outcomes(session) == [("refused", "denied")]
        assert "They say: use b.txt instead. Do not try" in replies(session)[0]
        assert "did not run" in replies(session)[0]
        assert [r.note for r in on_disk(session) if isinstance(r, Permission)] == ["use b.txt instead"]
        assert stage.content("a.txt") is None
        assert "started" not in kinds(session)


@pytest.mark.parametrize("answer", [None, Choice("confirm"), Choice("yes"), Choice("")])
async def test_missing_or_unoffered_answer_refuses_the_call(tmp_path: Path, answer: Choice | None) -> None:
    """docs/protocol.md: After null, an error or an option that was not offered, the call is refused as not answered,
    and the journal records it so."""
    async with scripted_server(tmp_path, asks(write("a.txt", "1")), says("ok"), editor=ScriptedEditor(answer)) as stage:
        session = await stage.session()
        await stage.say(session)
        assert outcomes(session) == [("refused", "not_answered")]
        assert recorded_answers(session) == [("reject", "not_answered")]
        assert "did not answer" in replies(session)[0]
        assert stage.content("a.txt") is None


async def test_call_without_an_editor_is_refused_as_not_answered(tmp_path: Path) -> None:
    """Row C5: Without an editor the server asks nothing, and refuses what needs permission as not answered."""
    async with scripted_server(tmp_path, asks(write("a.txt", "1"), read("b.txt")), says("ok")) as stage:
        stage.editor.somebody = False
        session = await stage.session()
        await stage.say(session)
        assert stage.editor.questions == []
        assert outcomes(session) == [("refused", "not_answered")]
        assert states(session)[1] != "refused", "a read needs no permission"


# A grant for the session.


async def test_session_grant_of_a_file_tool_covers_that_tool_only(tmp_path: Path) -> None:
    """docs/protocol.md: `session` covers that tool on paths inside the workspace, and no other tool."""
    edit = call("edit_file", path="b.txt", edits=[{"old": "1", "new": "2"}])
    answer = asks(write("a.txt", "1"), write("b.txt", "1"), edit)
    async with scripted_server(tmp_path, answer, says("ok"), editor=ScriptedEditor("session", "reject")) as stage:
        session = await stage.session()
        await stage.say(session)
        assert [question.tool for question in stage.editor.questions] == ["write_file", "edit_file"]
        assert states(session) == ["returned", "returned", "refused"]


async def test_session_grant_of_a_command_covers_that_command_only(tmp_path: Path) -> None:
    """docs/protocol.md: `session` covers exactly this command in exactly this folder, and nothing similar."""
    answer = asks(run("make"), run("make"), run("make all"), run("make", cwd="sub"), write("a.txt", "1"))
    editor = ScriptedEditor("session", "reject", "reject", "reject")
    async with scripted_server(
        tmp_path, answer, says("ok"), editor=editor, processes=FakeProcesses(otherwise=Script())
    ) as stage:
        (stage.root / "sub").mkdir()
        session = await stage.session()
        await stage.say(session)
        assert states(session) == ["returned", "returned", "refused", "refused", "refused"]
        assert len(stage.editor.questions) == 4


async def test_session_grant_survives_a_restart(tmp_path: Path) -> None:
    """docs/protocol.md: The grant is a `permission` record and holds when the next process opens the session."""
    async with scripted_server(
        tmp_path, asks(write("a.txt", "1")), says("ok"), editor=ScriptedEditor("session")
    ) as stage:
        session = await stage.session()
        await stage.say(session)
    async with scripted_server(
        tmp_path, asks(write("a.txt", "2")), says("ok"), run=2, editor=ScriptedEditor("reject")
    ) as stage:
        session = await stage.opened(session.session_id)
        await stage.say(session)
        assert stage.editor.questions == []
        assert stage.content("a.txt") == "2"


@pytest.mark.parametrize(
    "path", [".git/config", ".env", ".vscode/settings.json", ".env.local", "sub/.git/hooks/x", ".bashrc"]
)
async def test_session_grant_never_covers_protected_paths(tmp_path: Path, path: str) -> None:
    """Row G2: A protected path asks in every mode and whatever was granted. The option `session` is never offered
    for it."""
    (tmp_path / "ws" / path).parent.mkdir(parents=True)
    answer = asks(write("a.txt", "1"), write(path, "x"))
    async with scripted_server(tmp_path, answer, says("ok"), editor=ScriptedEditor("session", "reject")) as stage:
        session = await stage.session()
        await stage.say(session)
        assert states(session) == ["returned", "refused"]
        assert [o.id for o in stage.editor.questions[1].options] == ["once", "reject"]
        assert "protected" in stage.editor.questions[1].text
        assert stage.content(path) is None


async def test_session_grant_never_covers_paths_outside_the_workspace(tmp_path: Path) -> None:
    """Row E3: A path outside asks each time, by name, through `..` and through a link. A read of it asks too."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b.txt").write_text("secret")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "link").symlink_to(tmp_path / "out")
    answer = asks(
        write("a.txt", "1"), write("../out/c.txt", "x"), write("link/c.txt", "x"),
        write(str(tmp_path / "out" / "c.txt"), "x"), read("../out/b.txt"),
    )  # fmt: skip
    editor = ScriptedEditor("session", *["reject"] * 4)
    async with scripted_server(tmp_path, answer, says("ok"), editor=editor) as stage:
        session = await stage.session()
        await stage.say(session)
        assert states(session) == ["returned", "refused", "refused", "refused", "refused"]
        assert all([o.id for o in question.options] == ["once", "reject"] for question in stage.editor.questions[1:])
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["b.txt"]
        assert "secret" not in "".join(replies(session))


async def test_permitted_read_outside_the_workspace_returns_the_text(tmp_path: Path) -> None:
    """Row E3: After `once` the read is done, and its reply is the text."""
    (tmp_path / "out.txt").write_text("beyond")
    async with scripted_server(tmp_path, asks(read("../out.txt")), says("ok"), editor=ScriptedEditor("once")) as stage:
        session = await stage.session()
        await stage.say(session)
        assert states(session) == ["returned"]
        assert "beyond" in replies(session)[0]


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
async def test_state_directory_is_refused_in_every_mode(tmp_path: Path, mode: str) -> None:
    """Row G2: The policy refuses it in every mode, and nobody is asked."""
    state = tmp_path / "state"
    answer = asks(write(str(state / "x"), "1"), write("../state/sessions/x", "1"), run("make", cwd=str(state)))
    async with scripted_server(tmp_path, answer, says("ok")) as stage:
        session = await stage.session(mode)  # type: ignore[arg-type]  # a mode of the table
        await stage.say(session)
        assert states(session) == ["refused", "refused", "refused"]
        assert {each.reply.reason for each in calls_of(session) if each.reply} == {"policy"}
        assert stage.editor.questions == []
        assert not (state / "x").exists()


# Changes while the question is open.


@pytest.mark.parametrize("now", ["theirs", None])
async def test_file_that_changed_before_the_answer_is_not_written(tmp_path: Path, now: str | None) -> None:
    """Row W1, case 71: What the user permitted is not what is there, so the call is refused as `changed` and the
    other content stays."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "new")), says("ok"), editor=ScriptedEditor(park)) as stage:
        path = stage.root / "a.txt"
        path.write_text("old")
        session = await stage.session()
        accepted = await stage.send(session, "one")
        await park.wait_open()
        if now is None:
            path.unlink()
        else:
            path.write_text(now)
        park.answer_with("once")
        await stage.ended(session, accepted.turn_id)
        assert outcomes(session) == [("refused", "changed")]
        assert "started" not in kinds(session)
        assert stage.content("a.txt") == now
        assert recorded_answers(session) == [("once", None)]


async def test_crash_during_the_question_leaves_the_call_not_run(tmp_path: Path) -> None:
    """Row C5, case 83: The call did not run and says so. Proposed again, it is a new attempt with the same key."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as stage:
        session = await stage.session()
        await stage.send(session, "one")
        await park.wait_open()
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, asks(write("a.txt", "1")), says("ok"), state=state, run=2) as stage:
        session = await stage.opened(session.session_id)
        assert states(session) == ["notRun"]
        assert outcomes(session) == [("interrupted_before_execution", None)]
        (shown,) = session.messages(9)[0][-1].calls or ()
        assert shown.reason == "interrupted_before_execution", "the call's view says so"
        assert session.view().uncertain == 0
        assert stage.content("a.txt") is None
        await stage.say(session, "go on")
        first, second = (each.attempt for each in calls_of(session))
        assert first is not None
        assert second is not None
        assert first.attempt_id != second.attempt_id
        assert first.key == second.key, "the first attempt never happened"
        assert len(stage.editor.questions) == 1
        assert states(session) == ["notRun", "returned"]


async def test_turn_goes_on_after_a_rejection(tmp_path: Path) -> None:
    """Row C6: A refusal is a reply like any other. Later calls of the batch are decided on their own."""
    editor = ScriptedEditor("reject", "once")
    async with scripted_server(
        tmp_path, asks(write("a.txt", "1"), write("b.txt", "2")), says("ok"), editor=editor
    ) as stage:
        session = await stage.session()
        assert (await stage.say(session)).reason == "done"
        sent = stage.model.requests[1].messages
        assert [m.state for m in sent if isinstance(m, ReplyMessage)] == ["refused", "returned"]
        assert sum(isinstance(m, AssistantMessage) for m in sent) == 1
        assert_closed(session)


async def test_close_during_the_question_withdraws_it(tmp_path: Path) -> None:
    """Rows S2, G8: The question is withdrawn, the call did not run, and the turn ends `closed`."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "one", "c1")
        await park.wait_open()
        await stage.registry.close(session.session_id)
        assert park.withdrawn
        again = await stage.opened(session.session_id)
        assert prompt_queue.status_of(again, "c1").reason == "closed"
        assert states(again) == ["notRun"]
        assert "closed before it started" in replies(again)[0]
        assert stage.events(accepted.turn_id)[-1].kind == "ended"


async def test_broken_journal_runs_no_effect_and_asks_nothing(tmp_path: Path) -> None:
    """Row J6: With a broken journal the server does not run an effect, and does not ask the user about it."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *asks(write("a.txt", "1"))], says("ok")) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "one")
        await gate.wait_reached()
        assert session.log.journal is not None
        session.log.journal.broken = "The disk is full."
        session.change_status("journal_broke")
        gate.go.set()
        assert (await stage.ended(session, accepted.turn_id)).reason == "journalBroken"
        assert stage.editor.questions == []
        assert states(session) == ["notRun"]
