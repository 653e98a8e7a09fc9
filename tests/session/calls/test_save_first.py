"""Save first: a call meets a document with unsaved changes, and typed text is never overwritten (rows V2, C5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import Mode, Started
from steadyhand.domain.views.questions import UserQuestion
from steadyhand.ports.editor import OpenDocument
from steadyhand.session.calls import execute as calls
from steadyhand.session.calls import holdback
from steadyhand.session.calls.save_first import LEAVE, SAVE, SAVES_MAX
from tests.support.editor import Park, ScriptedEditor
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import Step, asks, call, read, says
from tests.support.session_state import kinds, on_disk, outcomes, replies, states
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

ON_DISK, TYPED = "one\ntwo\n", "one\ntwo\nthree\n"


def edit() -> list[Step]:
    return asks(call("edit_file", path="a.txt", edits=[{"old": "two", "new": "TWO"}]))


class EditingUser:
    """A user with `a.txt` open and changed. `after`: what becomes of the document at each save, in order."""

    def __init__(self, harness: InProcessServer, *after: str, name: str = "a.txt") -> None:
        self.harness, self.path = harness, harness.root / name
        self.after = list(after) or ["saved"]
        self.saved: list[tuple[str, int]] = []
        self.path.write_text(ON_DISK)
        self.show(TYPED, 2, unsaved=True)
        harness.editor.on_save = self.save

    def show(self, text: str, version: int, unsaved: bool) -> None:
        self.harness.editor.documents[str(self.path)] = OpenDocument(text, version, unsaved)

    def write(self, path: str, version: int) -> None:
        text = self.harness.editor.documents[path].text
        Path(path).write_text(text)
        self.harness.editor.documents[path] = OpenDocument(text, version, False)

    async def save(self, path: str, version: int) -> bool:
        self.saved.append((Path(path).name, version))
        match self.after.pop(0):
            case "saved":
                self.write(path, version)
                return True
            case "typed on":
                self.show(TYPED + "four\n", version + 1, unsaved=True)
                return False
            case _:
                return False


def questions_asked(harness: InProcessServer) -> list[str]:
    return [question.question for question in harness.editor.user_questions]


async def test_unsaved_file_saved_on_request_continues_the_call(tmp_path: Path) -> None:
    """V2: one question, one save of that version, then the permission with a diff of the saved text, in one turn."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        user = EditingUser(harness)
        harness.editor.user_answers = [SAVE]
        session = await harness.session("ask")
        await harness.say(session)
        (question,) = harness.editor.user_questions
        assert question.question.startswith("a.txt has unsaved changes")
        assert question.options == (SAVE, LEAVE)
        assert user.saved == [("a.txt", 2)]
        (permission,) = harness.editor.questions
        assert " three" in (permission.diff or "")
        assert states(session) == ["returned"]
        assert harness.content("a.txt") == "one\nTWO\nthree\n"


@pytest.mark.parametrize("mode", ["edits", "auto"])
async def test_unsaved_file_saved_without_permission_gives_evidence_of_the_save(tmp_path: Path, mode: Mode) -> None:
    """V2, W1, W8: the evidence describes the saved text, and that text is kept."""
    write = asks(call("write_file", path="a.txt", content="all new\n"))
    async with scripted_server(tmp_path, asks(read("a.txt")), write, says("ok")) as harness:
        EditingUser(harness)
        harness.editor.user_answers = [SAVE]
        session = await harness.session(mode)
        await harness.say(session)
        assert (states(session)[-1], harness.editor.questions, len(questions_asked(harness))) == ("returned", [], 1)
        ((evidence,),) = [record.evidence for record in on_disk(session) if isinstance(record, Started)]
        assert evidence.before_bytes == len(TYPED)
        assert evidence.checkpoint is not None
        assert evidence.before == sha256(TYPED.encode()), "the typed text can be restored"


@pytest.mark.parametrize("answer", [LEAVE, None, "something else"])
async def test_unsaved_file_not_to_be_saved_refuses_the_call(tmp_path: Path, answer: str | None) -> None:
    """V2: nothing is saved, nothing is overwritten, and no further question is asked. The call is refused as
    `unsaved`.
    """
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        user = EditingUser(harness)
        harness.editor.user_answers = [answer]
        session = await harness.session("ask")
        await harness.say(session)
        assert outcomes(session) == [("refused", "unsaved")]
        assert "chose not to save it" in replies(session)[0]
        assert (user.saved, harness.editor.questions, harness.content("a.txt")) == ([], [], ON_DISK)
        assert "started" not in kinds(session)


async def test_unsaved_file_in_an_editor_that_cannot_save_refuses_the_call(tmp_path: Path) -> None:
    """V2: the call is refused with a sentence, as nobody can be asked to save."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        EditingUser(harness)
        harness.editor.on_save = None
        session = await harness.session("auto")
        await harness.say(session)
        assert outcomes(session) == [("refused", "unsaved")]
        assert "save it first" in replies(session)[0]
        assert (questions_asked(harness), harness.content("a.txt")) == ([], ON_DISK)


async def test_unsaved_file_whose_save_fails_refuses_the_call(tmp_path: Path) -> None:
    """V2: a failure and a missing answer are the same: the call is refused, and nothing started."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        user = EditingUser(harness, "failed")
        harness.editor.user_answers = [SAVE]
        session = await harness.session("auto")
        await harness.say(session)
        assert outcomes(session) == [("refused", "unsaved")]
        assert "could not save it" in replies(session)[0]
        assert (len(user.saved), harness.content("a.txt")) == (1, ON_DISK)


async def test_unsaved_file_edited_during_the_save_is_asked_about_again(tmp_path: Path) -> None:
    """V2: a stale version saves nothing. The user is asked again, and then the newest text is saved."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        user = EditingUser(harness, "typed on", "saved")
        harness.editor.user_answers = [SAVE, SAVE]
        session = await harness.session("auto")
        await harness.say(session)
        assert user.saved == [("a.txt", 2), ("a.txt", 3)]
        assert harness.content("a.txt") == "one\nTWO\nthree\nfour\n"


async def test_unsaved_file_edited_at_every_save_is_refused_after_the_limit(tmp_path: Path) -> None:
    """I13: the user is asked a limited number of times, and then the call is refused."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        user = EditingUser(harness, *["typed on"] * SAVES_MAX)
        harness.editor.user_answers = [SAVE] * (SAVES_MAX + 1)
        session = await harness.session("auto")
        await harness.say(session)
        assert outcomes(session) == [("refused", "unsaved")]
        assert len(user.saved) == len(questions_asked(harness)) == SAVES_MAX
        assert harness.content("a.txt") == ON_DISK


async def test_unsaved_file_saved_by_the_user_meanwhile_continues_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V2: then nothing is left to save, and the call continues."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        user = EditingUser(harness)
        session = await harness.session("auto")

        async def by_hand(question: object) -> str:
            user.path.write_text(TYPED)
            user.show(TYPED, 2, unsaved=False)
            return SAVE

        monkeypatch.setattr(harness.editor, "ask_user", by_hand)
        await harness.say(session)
        assert (user.saved, harness.content("a.txt")) == ([], "one\nTWO\nthree\n")


async def test_file_edited_after_the_permission_refuses_the_call(tmp_path: Path) -> None:
    """W1: the saved text is not what the diff showed, so the call is refused as `changed`."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        user = EditingUser(harness)
        user.show(ON_DISK, 1, unsaved=False)
        harness.editor.on_question = lambda _: user.show(TYPED, 2, unsaved=True)
        harness.editor.user_answers = [SAVE]
        session = await harness.session("ask")
        await harness.say(session)
        assert outcomes(session) == [("refused", "changed")]
        assert harness.content("a.txt") == TYPED


async def test_move_of_two_unsaved_files_asks_about_each(tmp_path: Path) -> None:
    """V2: the user is asked about each document by its name."""
    move = asks(call("move_file", **{"from": "a.txt", "to": "b.txt"}, overwrite=True))
    async with scripted_server(tmp_path, move, says("ok")) as harness:
        EditingUser(harness, "saved", "saved", name="b.txt")
        EditingUser(harness, "saved", "saved")
        harness.editor.user_answers = [SAVE, SAVE]
        session = await harness.session("auto")
        await harness.say(session)
        assert [question.split()[0] for question in questions_asked(harness)] == ["a.txt", "b.txt"]
        assert (states(session), harness.content("b.txt"), harness.content("a.txt")) == (["returned"], TYPED, None)


async def test_unsaved_file_in_plan_mode_is_not_asked_about(tmp_path: Path) -> None:
    """G2: a call that the mode refuses asks for no save."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        EditingUser(harness)
        await harness.say(session := await harness.session("plan"))
        assert (outcomes(session), questions_asked(harness)) == ([("refused", "policy")], [])


async def test_save_question_stopped_or_killed_means_the_call_did_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C5, G8: the call did not run, in this process and after a restart. The turn is parked meanwhile."""
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        EditingUser(harness)

        async def never(question: UserQuestion) -> None:
            harness.editor.user_questions.append(question)
            await anyio.sleep_forever()

        monkeypatch.setattr(harness.editor, "ask_user", never)
        session = await harness.session("auto")
        await harness.send(session, "one")
        await until(lambda: bool(questions_asked(harness)))
        assert session.view().parked
        state = harness.crashed(tmp_path / "later")
        await harness.registry.close(session.session_id)
        assert states(await harness.opened(session.session_id)) == ["notRun"]
        assert harness.content("a.txt") == ON_DISK
    async with scripted_server(tmp_path, state=state, run=2) as harness:
        session = await harness.opened(session.session_id)
        assert states(session) == ["notRun"]
        assert outcomes(session) == [("interrupted_before_execution", None)]


async def test_held_back_check_comes_after_the_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I6: an effect may become uncertain while the user decides, so admission is the last step before the evidence."""
    order: list[str] = []
    clear_holdback = holdback.clear_holdback

    async def recording(*arguments: Any) -> object:
        order.append("admit")
        return await clear_holdback(*arguments)

    monkeypatch.setattr(calls, "clear_holdback", recording)
    async with scripted_server(tmp_path, edit(), says("ok")) as harness:
        user = EditingUser(harness)
        harness.editor.user_answers = [SAVE]

        async def save(path: str, version: int) -> bool:
            order.append("save")
            return await user.save(path, version)

        harness.editor.on_save = save
        session = await harness.session("auto")
        await harness.say(session)
        assert states(session) == ["returned"]
    assert order[order.index("save") :] == ["save", "admit"]


async def test_saved_file_asks_for_no_save(tmp_path: Path) -> None:
    """V2: a document that is already saved needs no save."""
    park = Park()
    async with scripted_server(tmp_path, edit(), says("ok"), editor=ScriptedEditor(park)) as harness:
        user = EditingUser(harness)
        user.show(ON_DISK, 1, unsaved=False)
        session = await harness.session("ask")
        accepted = await harness.send(session, "one")
        await park.wait_open()
        park.answer_with("once")
        await harness.ended(session, accepted.turn_id)
        assert (questions_asked(harness), user.saved, states(session)) == ([], [], ["returned"])
