"""Save first: a call meets a document with unsaved changes, and what was typed is never overwritten (rows V2, C5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.core.identity import sha256
from steadyhand.core.questions import UserQuestion
from steadyhand.core.record import Mode, Started
from steadyhand.ports import OpenDocument
from steadyhand.session import call as calls
from steadyhand.session.saving import LEAVE, SAVE, saves_max
from tests.support.scripted import (
    Park,
    ScriptedEditor,
    Stage,
    Step,
    asks,
    call,
    kinds,
    on_disk,
    outcomes,
    replies,
    says,
    staged,
    states,
    until,
)

pytestmark = pytest.mark.anyio

DISK, TYPED = "one\ntwo\n", "one\ntwo\nthree\n"


def edit() -> list[Step]:
    return asks(call("edit_file", path="a.txt", edits=[{"old": "two", "new": "TWO"}]))


class Typist:
    """A person with `a.txt` open and changed. `after`: what becomes of the document by each saving, in order."""

    def __init__(self, stage: Stage, *after: str, name: str = "a.txt") -> None:
        self.stage, self.path = stage, stage.root / name
        self.after = list(after) or ["saved"]
        self.saved: list[tuple[str, int]] = []
        self.path.write_text(DISK)
        self.has(TYPED, 2, unsaved=True)
        stage.editor.on_save = self.save

    def has(self, text: str, version: int, unsaved: bool) -> None:
        self.stage.editor.documents[str(self.path)] = OpenDocument(text, version, unsaved)

    def write(self, path: str, version: int) -> None:
        text = self.stage.editor.documents[path].text
        Path(path).write_text(text)
        self.stage.editor.documents[path] = OpenDocument(text, version, False)

    async def save(self, path: str, version: int) -> bool:
        self.saved.append((Path(path).name, version))
        match self.after.pop(0):
            case "saved":
                self.write(path, version)
                return True
            case "typed on":
                self.has(TYPED + "four\n", version + 1, unsaved=True)
                return False
            case _:
                return False


def asked(stage: Stage) -> list[str]:
    return [question.question for question in stage.editor.user_questions]


async def test_saved_and_gone_on(tmp_path: Path) -> None:
    """V2: one question, one save of that version, then the permission with a diff of what was saved; in one turn."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        typist = Typist(stage)
        stage.editor.user_answers = [SAVE]
        owner = await stage.session("ask")
        await stage.say(owner)
        (question,) = stage.editor.user_questions
        assert question.question.startswith("a.txt has unsaved changes")
        assert question.options == (SAVE, LEAVE)
        assert typist.saved == [("a.txt", 2)]
        (permission,) = stage.editor.questions
        assert " three" in (permission.diff or "")
        assert states(owner) == ["returned"]
        assert stage.content("a.txt") == "one\nTWO\nthree\n"


@pytest.mark.parametrize("mode", ["edits", "auto"])
async def test_where_nobody_is_asked_for_permission(tmp_path: Path, mode: Mode) -> None:
    """V2, W1, W8: the evidence is of what was saved, and that is kept."""
    write = asks(call("write_file", path="a.txt", content="all new\n"))
    async with staged(tmp_path, write, says("ok")) as stage:
        Typist(stage)
        stage.editor.user_answers = [SAVE]
        owner = await stage.session(mode)
        await stage.say(owner)
        assert (states(owner), stage.editor.questions, len(asked(stage))) == (["returned"], [], 1)
        ((evidence,),) = [record.evidence for record in on_disk(owner) if isinstance(record, Started)]
        assert evidence.before_bytes == len(TYPED)
        assert evidence.checkpoint is not None
        assert evidence.before == sha256(TYPED.encode()), "what the person typed can be brought back"


@pytest.mark.parametrize("answer", [LEAVE, None, "something else"])
async def test_a_no_is_a_no(tmp_path: Path, answer: str | None) -> None:
    """V2: nothing is saved, nothing is overwritten, nobody is asked for more; refused as `unsaved`."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        typist = Typist(stage)
        stage.editor.user_answers = [answer]
        owner = await stage.session("ask")
        await stage.say(owner)
        assert outcomes(owner) == [("refused", "unsaved")]
        assert "did not want it saved" in replies(owner)[0]
        assert (typist.saved, stage.editor.questions, stage.content("a.txt")) == ([], [], DISK)
        assert "started" not in kinds(owner)


async def test_an_editor_that_cannot_save(tmp_path: Path) -> None:
    """V2: refused with a sentence, as nobody can be asked to save."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        Typist(stage)
        stage.editor.on_save = None
        owner = await stage.session("auto")
        await stage.say(owner)
        assert outcomes(owner) == [("refused", "unsaved")]
        assert "must be saved first" in replies(owner)[0]
        assert (asked(stage), stage.content("a.txt")) == ([], DISK)


async def test_a_save_that_fails(tmp_path: Path) -> None:
    """V2: a failure and a dead answer are one: refused, nothing started."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        typist = Typist(stage, "failed")
        stage.editor.user_answers = [SAVE]
        owner = await stage.session("auto")
        await stage.say(owner)
        assert outcomes(owner) == [("refused", "unsaved")]
        assert "could not be saved" in replies(owner)[0]
        assert (len(typist.saved), stage.content("a.txt")) == (1, DISK)


async def test_typed_on_meanwhile(tmp_path: Path) -> None:
    """V2: a stale version saves nothing; the person is asked anew, and then the newest text is saved."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        typist = Typist(stage, "typed on", "saved")
        stage.editor.user_answers = [SAVE, SAVE]
        owner = await stage.session("auto")
        await stage.say(owner)
        assert typist.saved == [("a.txt", 2), ("a.txt", 3)]
        assert stage.content("a.txt") == "one\nTWO\nthree\nfour\n"


async def test_typed_on_for_ever(tmp_path: Path) -> None:
    """I13: so many times it is asked, then it is refused."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        typist = Typist(stage, *["typed on"] * saves_max)
        stage.editor.user_answers = [SAVE] * (saves_max + 1)
        owner = await stage.session("auto")
        await stage.say(owner)
        assert outcomes(owner) == [("refused", "unsaved")]
        assert len(typist.saved) == len(asked(stage)) == saves_max
        assert stage.content("a.txt") == DISK


async def test_saved_by_hand_while_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V2: then nothing is left to save, and the call goes on."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        typist = Typist(stage)
        owner = await stage.session("auto")

        async def by_hand(question: object) -> str:
            typist.path.write_text(TYPED)
            typist.has(TYPED, 2, unsaved=False)
            return SAVE

        monkeypatch.setattr(stage.editor, "ask_user", by_hand)
        await stage.say(owner)
        assert (typist.saved, stage.content("a.txt")) == ([], "one\nTWO\nthree\n")


async def test_typed_after_the_permission(tmp_path: Path) -> None:
    """W1: what is saved then is not what the diff showed, so the call is refused as `changed`."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        typist = Typist(stage)
        typist.has(DISK, 1, unsaved=False)
        stage.editor.on_question = lambda _: typist.has(TYPED, 2, unsaved=True)
        stage.editor.user_answers = [SAVE]
        owner = await stage.session("ask")
        await stage.say(owner)
        assert outcomes(owner) == [("refused", "changed")]
        assert stage.content("a.txt") == TYPED


async def test_both_paths_of_a_move(tmp_path: Path) -> None:
    """V2: each document is asked about by its name."""
    move = asks(call("move_file", **{"from": "a.txt", "to": "b.txt"}, overwrite=True))
    async with staged(tmp_path, move, says("ok")) as stage:
        Typist(stage, "saved", "saved", name="b.txt")
        Typist(stage, "saved", "saved")
        stage.editor.user_answers = [SAVE, SAVE]
        owner = await stage.session("auto")
        await stage.say(owner)
        assert [question.split()[0] for question in asked(stage)] == ["a.txt", "b.txt"]
        assert (states(owner), stage.content("b.txt"), stage.content("a.txt")) == (["returned"], TYPED, None)


async def test_plan_asks_nothing(tmp_path: Path) -> None:
    """G2: what will not be done is not saved for."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        Typist(stage)
        await stage.say(owner := await stage.session("plan"))
        assert (outcomes(owner), asked(stage)) == ([("refused", "policy")], [])


async def test_stopped_or_killed_while_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C5, G8: the call did not run, in this life and as the next one finds it; the turn is parked meanwhile."""
    async with staged(tmp_path, edit(), says("ok")) as stage:
        Typist(stage)

        async def never(question: UserQuestion) -> str:
            stage.editor.user_questions.append(question)
            await anyio.sleep_forever()

        monkeypatch.setattr(stage.editor, "ask_user", never)
        owner = await stage.session("auto")
        await stage.send(owner, "one")
        await until(lambda: bool(asked(stage)))
        assert owner.view().parked
        state = stage.crashed(tmp_path / "later")
        await stage.house.close(owner.session_id)
        assert states(await stage.opened(owner.session_id)) == ["notRun"]
        assert stage.content("a.txt") == DISK
    async with staged(tmp_path, state=state, life=2) as stage:
        owner = await stage.opened(owner.session_id)
        assert states(owner) == ["notRun"]
        assert outcomes(owner) == [("interrupted_before_execution", None)]


async def test_what_holds_back_is_looked_at_after_the_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I6: a doubt may come while the person decides, so admission is the last thing before the evidence."""
    order: list[str] = []
    clear_way = calls.clear_way

    async def watched(*arguments: Any) -> object:
        order.append("admit")
        return await clear_way(*arguments)

    monkeypatch.setattr(calls, "clear_way", watched)
    async with staged(tmp_path, edit(), says("ok")) as stage:
        typist = Typist(stage)
        stage.editor.user_answers = [SAVE]

        async def save(path: str, version: int) -> bool:
            order.append("save")
            return await typist.save(path, version)

        stage.editor.on_save = save
        owner = await stage.session("auto")
        await stage.say(owner)
        assert states(owner) == ["returned"]
    assert order[order.index("save") :] == ["save", "admit"]


async def test_a_parked_permission_is_not_a_save(tmp_path: Path) -> None:
    """V2: a document that is saved already asks for no saving."""
    park = Park()
    async with staged(tmp_path, edit(), says("ok"), editor=ScriptedEditor(park)) as stage:
        typist = Typist(stage)
        typist.has(DISK, 1, unsaved=False)
        owner = await stage.session("ask")
        accepted = await stage.send(owner, "one")
        await park.wait_open()
        park.answer_with("once")
        await stage.ended(owner, accepted.turn_id)
        assert (asked(stage), typist.saved, states(owner)) == ([], [], ["returned"])
