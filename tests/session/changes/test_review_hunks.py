"""Hunks of lines under review: listed, kept, undone, and what somebody else changed is spared (row V4)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from steadyhand.domain.changes import hunks as hunks_of_lines
from steadyhand.domain.model.messages import CallProposed
from steadyhand.domain.records.record import Evidence
from steadyhand.domain.recovery.postcondition import Now
from steadyhand.domain.views.types import ReviewHunk
from steadyhand.ports.editor import OpenDocument
from steadyhand.session.changes import review
from steadyhand.session.changes.bring_back import store_contents
from steadyhand.session.changes.review import Selection
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.inspection import file_changes
from steadyhand.session.session import Session
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.writes.postcondition_check import read_path
from tests.session.changes.test_review import decide, does, left, move
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import call
from tests.support.redo import redo

pytestmark = pytest.mark.anyio

TEN = "".join(f"{number}\n" for number in range(10))


def edit(path: str, changes: Mapping[str, str]) -> CallProposed:
    """One call that replaces several texts."""
    edits = [{"old": old, "new": new} for old, new in changes.items()]
    return call("edit_file", path=path, edits=edits)


async def hunks(session: Session, *states: str) -> list[ReviewHunk]:
    """The hunks of the one file with these states; without any, those under review."""
    (file,) = (await review.list_review(session)).files
    return [hunk for hunk in file.hunks if hunk.state in (states or ("new", "gone"))]


def text(stage: InProcessServer) -> str:
    found = stage.content("a.txt")
    assert found is not None
    return found


def lines(hunk: ReviewHunk) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    before, after = (None if one is None else (one.start.line, one.end.line) for one in (hunk.before, hunk.after))
    return before, after


async def choose(session: Session, action: str, *chosen: ReviewHunk) -> dict[str, str]:
    return left(await decide(session, action, Selection(hunk_ids=tuple(hunk.hunk_id for hunk in chosen))))


async def test_hunks_are_listed_kept_and_undone_for_themselves(tmp_path: Path) -> None:
    """V4, case 107: three hunks with their lines; one is kept, which changes no file, one is undone by an attempt of
    its own, and the model is told; a restart knows the states, and the last one is undone with everything."""
    change = edit("a.txt", {"1\n": "one\n", "5\n": "", "8\n": "8\n8.5\n"})
    async with scripted_server(tmp_path, *does(change)) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        first, second, third = await hunks(session)
        assert [lines(hunk) for hunk in (first, second, third)] == [
            ((1, 2), (1, 2)), ((5, 6), (5, 5)), ((9, 9), (8, 9)),
        ]  # fmt: skip
        changed = text(stage)
        assert await choose(session, "keep", first) == {}
        assert text(stage) == changed, "to keep changes no file"
        second, third = await hunks(session)
        assert [lines(hunk)[1] for hunk in (second, third)] == [(5, 5), (8, 9)]
        assert await choose(session, "undo", third) == {}
        assert text(stage) == TEN.replace("1\n", "one\n").replace("5\n", "")
        assert {hunk.state for hunk in await hunks(session, "kept", "undone")} == {"kept", "undone"}
        said = [told.record.text for told in session.ledger.said if hasattr(told.record, "from_")]
        assert said == ["The user took back a part of your change of a.txt."]
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        assert {hunk.hunk_id: hunk.state for hunk in await hunks(again, "kept", "undone")} == {
            first.hunk_id: "kept", third.hunk_id: "undone",
        }  # fmt: skip
        (rest,) = await hunks(again)
        assert lines(rest) == ((5, 6), (5, 5))
        assert left(await decide(again, "undo")) == {}
        assert text(stage) == TEN.replace("1\n", "one\n")
        assert await hunks(again) == []


async def test_undone_hunk_can_be_restored_and_is_new_again(tmp_path: Path) -> None:
    """V4, A5: the attempt of the undo is restored like any other."""
    async with scripted_server(tmp_path, *does(edit("a.txt", {"1\n": "one\n", "8\n": "eight\n"}))) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        changed = text(stage)
        before = await hunks(session)
        await choose(session, "undo", before[0])
        assert [hunk.state for hunk in await hunks(session)] == ["new"]
        await redo(session, list(session.ledger.attempts.values())[-1], "restore")
        assert text(stage) == changed
        assert await hunks(session, "new", "undone") == before


async def test_hunks_beside_the_persons_changes_are_undone_and_the_others_left(tmp_path: Path) -> None:
    """V4, V5, case 73: the person changed one of our lines and added lines above; that hunk is gone, the others are at
    their new places. Undo takes these back and nothing else; then the review knows what is undone."""
    change = edit("a.txt", {"1\n": "one\n", "5\n": "five\n", "9\n": "nine\n"})
    async with scripted_server(tmp_path, *does(change)) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        mine = "mine\n" + text(stage).replace("five\n", "five and mine\n")
        stage.workspace.write("a.txt", mine)
        first, second, third = await hunks(session)
        assert [hunk.state for hunk in (first, second, third)] == ["new", "gone", "new"]
        assert [lines(hunk)[1] for hunk in (first, second, third)] == [(2, 3), None, (10, 11)]
        assert await choose(session, "undo", first) == {}
        assert text(stage) == mine.replace("one\n", "1\n")
        assert [hunk.state for hunk in await hunks(session)] == ["gone", "new"]
        result = await decide(session, "undo")
        assert [(one.hunk_id is not None, one.why) for one in result.left] == [(True, "changed")]
        assert text(stage) == mine.replace("one\n", "1\n").replace("nine\n", "9\n")
        assert len(await hunks(session, "undone")) == 2
        (gone,) = await hunks(session)
        assert await choose(session, "keep", gone) == {}
        assert await hunks(session) == []
        assert "five and mine\n" in text(stage)


async def test_restored_undo_below_the_persons_change_is_new_again(tmp_path: Path) -> None:
    """V4, A5: the hunk that came back by a restore is under review again, beside what the person wrote."""
    async with scripted_server(tmp_path, *does(edit("a.txt", {"1\n": "one\n", "8\n": "eight\n"}))) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        mine = text(stage).replace("5\n", "mine\n")
        stage.workspace.write("a.txt", mine)
        before = await hunks(session)
        await choose(session, "undo", before[1])
        assert text(stage) == mine.replace("eight\n", "8\n")
        await redo(session, list(session.ledger.attempts.values())[-1], "restore")
        assert text(stage) == mine
        assert await hunks(session, "new", "gone", "undone") == before


async def test_file_that_changes_during_the_decision_is_left(tmp_path: Path) -> None:
    """V4, W9: the undo rests on the content that was read; the person saved after that, so nothing is replaced."""
    async with scripted_server(tmp_path, *does(edit("a.txt", {"1\n": "one\n", "8\n": "eight\n"}))) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        first, _ = await hunks(session)

        def saved_meanwhile(*given: object) -> list[str] | None:
            stage.workspace.write("a.txt", "mine\n")
            return store_contents(*given)  # type: ignore[arg-type]  # what it was given

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("steadyhand.session.changes.review.store_contents", saved_meanwhile)
            assert await choose(session, "undo", first) == {"a.txt": "changed"}
        assert text(stage) == "mine\n"


async def test_hunks_of_unsaved_text_are_where_the_editor_shows_them(tmp_path: Path) -> None:
    """V2, V4: the ranges are those of the unsaved text; keep works, undo is left until the file is saved."""
    async with scripted_server(tmp_path, *does(edit("a.txt", {"1\n": "one\n", "8\n": "eight\n"}))) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        shown = "unsaved €\n" + text(stage).replace("eight\n", "")
        stage.editor.documents[str(stage.root / "a.txt")] = OpenDocument(shown, 2, True)
        first, second = await hunks(session)
        assert (lines(first), first.state) == (((1, 2), (2, 3)), "new")
        assert (lines(second)[1], second.state) == (None, "gone")
        assert await choose(session, "undo", first) == {"a.txt": "unsaved"}
        assert await choose(session, "keep", first) == {}
        assert [hunk.hunk_id for hunk in await hunks(session, "kept")] == [first.hunk_id]


async def test_hunks_survive_a_rewind_of_the_conversation(tmp_path: Path) -> None:
    """V4, G4: what is kept and undone is known after the conversation went back."""
    async with scripted_server(tmp_path, *does(edit("a.txt", {"1\n": "one\n", "8\n": "eight\n"}))) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        first, _ = await hunks(session)
        await choose(session, "keep", first)
        before = (await review.list_review(session)).files
        await rewind(session, session.epoch, next(iter(session.ledger.turns)), "conversation")
        assert (await review.list_review(session)).files == before


async def test_change_with_too_many_hunks_is_one_hunk_and_undone_to_its_base(tmp_path: Path) -> None:
    """V4, I13: beyond the bound the file is one hunk; where a part was kept before, the undo leads to that base."""
    turns = (*does(edit("a.txt", {"1\n": "one\n", "8\n": "eight\n"})), *does(edit("a.txt", {"4\n": "four\n"})))
    async with scripted_server(tmp_path, *turns) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        await choose(session, "keep", (await hunks(session))[0])
        await stage.say(session)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hunks_of_lines, "HUNKS_MAX", 1)
            (whole,) = await hunks(session)
            assert lines(whole) == (None, None)
            assert await choose(session, "undo", whole) == {}
        assert text(stage) == TEN.replace("1\n", "one\n")


@pytest.mark.parametrize(
    ("name", "content", "config"),
    [
        ("utf-16-le", "\ufeff" + TEN.replace("\n", "\r\n"), ""),
        ("utf-32-be", "\ufeff" + TEN, ""),
        ("utf-8", "\ufeff" + TEN.replace("4\n", "4 é\r\n"), ""),
        ("cp1252", TEN.replace("4\n", "4 é€\r\n"), "[*]\ncharset = latin1\n"),
        ("utf-8", TEN.replace("4\n", "4 é\r"), ""),
    ],
)
async def test_hunks_of_encoded_files_keep_every_other_byte(
    tmp_path: Path, name: str, content: str, config: str
) -> None:
    """V4, W10: marks, wide units, single bytes and line ends of every kind; the undo splices bytes alone."""
    name = "iso8859-1" if config else name
    content = content.replace("€", "")
    async with scripted_server(tmp_path, *does(edit("a.txt", {"1": "one", "8": "eight\nmore"}))) as stage:
        if config:
            stage.workspace.write(".editorconfig", config)
        path = stage.root / "a.txt"
        path.write_bytes(before := content.encode(name))
        session = await stage.session("auto")
        await stage.say(session)
        changed = path.read_bytes()
        first, second = await hunks(session)
        assert await choose(session, "undo", first) == {}
        assert path.read_bytes() == changed.replace("one".encode(name), "1".encode(name))
        (second,) = await hunks(session)
        assert await choose(session, "undo", second) == {}
        assert path.read_bytes() == before


async def test_file_whose_encoding_the_person_changed_is_left(tmp_path: Path) -> None:
    """V4, W10: the lines of another encoding are never joined with those of the file."""
    async with scripted_server(tmp_path, *does(edit("a.txt", {"1\n": "one\n", "8\n": "eight\n"}))) as stage:
        path = stage.root / "a.txt"
        path.write_bytes((TEN + "é\n").encode())
        session = await stage.session("auto")
        await stage.say(session)
        path.write_bytes(path.read_bytes().decode().encode("utf-16"))
        mine = path.read_bytes()
        assert left(await decide(session, "undo")) == {"a.txt": "changed"}
        assert path.read_bytes() == mine


async def test_look_for_one_name_reads_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V4: an editor asks for code actions at each move of the cursor. A moved file is read at both of its paths."""
    changes = (
        call("write_file", path="a.txt", content="a\n"),
        call("write_file", path="b.txt", content="b\n"),
        move("b.txt", "c.txt"),
    )
    async with scripted_server(tmp_path, *does(*changes)) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        seen: list[str] = []

        def read(tool_context: ToolContext, evidence: Evidence) -> Now:
            seen.append(evidence.path)
            return read_path(tool_context, evidence)

        monkeypatch.setattr(file_changes, "read_path", read)
        for name, expected in {"a.txt": ["a.txt"], "c.txt": ["b.txt", "c.txt"], "d.txt": []}.items():
            seen.clear()
            found = await review.list_review(session, name)
            assert sorted(seen) == expected
            assert [file.path for file in found.files] == [name for _ in expected[:1]]


@pytest.mark.parametrize("whole", [False, True])
async def test_part_before_somebody_elses_change_is_kept_for_itself(tmp_path: Path, whole: bool) -> None:
    """V4, V5: what we changed before a person's change and after it are two changes. To keep a hunk of the first one
    says nothing of the second one, so no line of the person is offered to be undone."""
    turns = (does(edit("a.txt", {"1\n": "one\n", "3\n": "three\n"})), does(edit("a.txt", {"9\n": "nine\n"})))
    async with scripted_server(tmp_path, *(step for turn in turns for step in turn)) as stage:
        stage.workspace.write("a.txt", TEN)
        session = await stage.session("auto")
        await stage.say(session)
        stage.workspace.write("a.txt", text(stage).replace("6\n", "the person's\n"))
        await stage.say(session)
        assert await choose(session, "keep", *await hunks(session)) == {}
        first, second = await hunks(session)
        assert [lines(hunk)[1] for hunk in (first, second)] == [(1, 2), (3, 4)]
        assert await choose(session, "keep", *((first, second) if whole else (first,))) == {}
        assert [lines(hunk)[1] for hunk in await hunks(session)] == ([] if whole else [(3, 4)])
        await decide(session, "undo", Selection(every=True))
        assert text(stage) == "0\none\n2\n%s\n4\n5\nthe person's\n7\n8\nnine\n" % ("three" if whole else "3")
        assert [hunk for hunk in await hunks(session) if hunk.state == "new"] == []


@pytest.mark.parametrize("seed", range(12))
async def test_any_decisions_with_a_persons_change_between_ours(tmp_path: Path, seed: int) -> None:
    """V4, V5: as below, where the person changed the file before our last change of it too."""
    chance = random.Random(seed)
    turns = [does(edit("a.txt", ours(chance, turn))) for turn in range(2)]
    async with scripted_server(tmp_path, *(step for turn in turns for step in turn)) as stage:
        stage.workspace.write("a.txt", "".join(f"b{number}:\n" for number in range(30)))
        session = await stage.session("auto")
        await stage.say(session)
        first, mark, second = text(stage).partition("b15:\n")
        stage.workspace.write("a.txt", persons(chance, first) + mark + second)
        theirs = [line for line in text(stage).splitlines() if line.startswith("p")]
        await stage.say(session)
        for _ in range(40):
            found = [hunk for hunk in await hunks(session) if hunk.state == "new"]
            if not found:
                break
            await decide_and_compare(stage, session, chance, found)
            assert [line for line in text(stage).splitlines() if line.startswith("p")] == theirs
        assert {hunk.state for hunk in await hunks(session)} <= {"gone"}


@pytest.mark.parametrize("seed", range(12))
async def test_any_decisions_about_any_changes_spare_what_the_person_wrote(tmp_path: Path, seed: int) -> None:
    """V4, V5: our edits and a person's at random, then hunks at random: kept ones change no byte, undone ones change
    their own lines alone, and no line of the person is lost or comes back. The review ends with nothing to decide but
    what the person changed."""
    chance = random.Random(seed)
    numbers = range(30)
    turns = [does(edit("a.txt", ours(chance, turn))) for turn in range(2)]
    async with scripted_server(tmp_path, *(step for turn in turns for step in turn)) as stage:
        stage.workspace.write("a.txt", "".join(f"b{number}:\n" for number in numbers))
        session = await stage.session("auto")
        for _ in turns:
            await stage.say(session)
        stage.workspace.write("a.txt", persons(chance, text(stage)))
        theirs = [line for line in text(stage).splitlines() if line.startswith("p")]
        for _ in range(40):
            found = [hunk for hunk in await hunks(session) if hunk.state == "new"]
            if not found:
                break
            await decide_and_compare(stage, session, chance, found)
            assert [line for line in text(stage).splitlines() if line.startswith("p")] == theirs
        assert {hunk.state for hunk in await hunks(session)} <= {"gone"}


def ours(chance: random.Random, turn: int) -> dict[str, str]:
    """What a turn replaces: some of the lines that are there for sure."""
    chosen = chance.sample(range(turn * 15, turn * 15 + 15), 5)
    return {f"b{number}:\n": chance.choice(["", f"o{number}:\n", f"b{number}:\no{number}:\n"]) for number in chosen}


def persons(chance: random.Random, content: str) -> str:
    found: list[str] = []
    for at, line in enumerate(content.splitlines(keepends=True)):
        way = chance.choice(["keep"] * 5 + ["add", "replace", "remove"])
        found += [f"p{at}:\n"] * (way in ("add", "replace"))
        found += [line] * (way in ("keep", "add"))
    return "".join(found)


async def decide_and_compare(
    stage: InProcessServer, session: Session, chance: random.Random, found: list[ReviewHunk]
) -> None:
    chosen = chance.sample(found, chance.randint(1, len(found)))
    before = text(stage).splitlines()
    action = chance.choice(["keep", "undo"])
    assert await choose(session, action, *chosen) == {}
    after = text(stage).splitlines()
    if action == "keep":
        assert after == before
        return
    taken = {at for hunk in chosen if hunk.after for at in range(hunk.after.start.line, hunk.after.end.line)}
    outside = [line for at, line in enumerate(before) if at not in taken]
    rest = iter(after)
    assert all(line in rest for line in outside), (before, after)
    removed = {f"b{number}:" for number in range(30)} - set(before)
    came_back = set(after) - set(before)
    assert came_back <= removed, "only lines of the base come back"
