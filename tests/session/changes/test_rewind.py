"""Rewind of files, conversation or both to before a turn, and its undo (row G4)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import UserMessage
from steadyhand.domain.records.record import RewindWhat
from steadyhand.domain.views.types import ModelTold, RewindResult, TextDelta
from steadyhand.session.changes import review
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.service.session_settings import checkpoints
from steadyhand.session.session import Session
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.session.changes.test_review import ALL, delete, does, edit, move
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import GatedDisk
from tests.support.folding_disk import folding_disk
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, call, read, run, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import kinds
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio


async def go_back(session: Session, turn_id: str, what: RewindWhat = "both") -> RewindResult:
    return await rewind(session, session.epoch, turn_id, what)


def restored(result: RewindResult) -> dict[str, str]:
    return {one.path: one.change for one in result.restored}


def left(result: RewindResult) -> dict[str, str]:
    return {one.path: one.why for one in result.left}


def turn_named(session: Session, text: str) -> str:
    return next(turn.turn_id for turn in session.ledger.turns.values() if turn.text == text)


def prompts(session: Session) -> list[str]:
    """The prompts that the chat shows."""
    return [message.text for message in session.messages(99)[0] if message.role == "user"]


def sent_texts(stage: InProcessServer) -> list[str]:
    return [one.text for one in stage.model.requests[-1].messages if isinstance(one, UserMessage)]


async def three_turns(stage: InProcessServer) -> Session:
    """A session with three turns: a.txt is created, changed, then deleted; b.txt is changed in the second."""
    stage.workspace.write("b.txt", "old\n")
    session = await stage.session("auto")
    for text in ("first", "second", "third"):
        await stage.say(session, text)
    assert stage.workspace.files() == {"b.txt": "new\n"}
    return session


TURNS = (
    *does(write("a.txt", "1\n")),
    *does(edit("a.txt", "1", "2"), edit("b.txt", "old", "new")),
    *does(delete("a.txt")),
)


async def test_rewind_of_files_and_conversation_goes_to_before_the_prompt(tmp_path: Path) -> None:
    """G4, S1, case 74: each file has what it had before the prompt, the chat ends before it, the epoch is new, and a
    rewind to the rewind undoes it once.
    """
    async with scripted_server(tmp_path, *TURNS, says("fourth"), says("fifth")) as stage:
        session = await three_turns(stage)
        epoch = session.epoch
        done = await go_back(session, turn_named(session, "second"))
        assert stage.workspace.files() == {"a.txt": "1\n", "b.txt": "old\n"}
        assert restored(done) == {"a.txt": "created", "b.txt": "modified"}
        assert (left(done), done.session.epoch) == ({}, session.epoch)
        assert epoch != session.epoch
        assert prompts(session) == ["first", "Rewind to before “second”"]
        await stage.say(session, "fourth")
        assert sent_texts(stage) == ["first", "fourth"]
        listed = {turn.prompt: turn.undone for turn in await checkpoints(session)}
        assert listed == {"first": None, "second": True, "third": True, "Rewind to before “second”": None}

        undone = await go_back(session, done.undo)
        assert stage.workspace.files() == {"b.txt": "new\n"}
        assert restored(undone) == {"a.txt": "deleted", "b.txt": "modified"}
        assert prompts(session)[:3] == ["first", "second", "third"]
        listed = {turn.prompt: turn.undone for turn in await checkpoints(session)}
        assert (listed["second"], listed["Rewind to before “second”"]) == (None, True)
        await stage.say(session, "fifth")
        assert sent_texts(stage) == ["first", "second", "third", "fifth"]
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        assert prompts(again)[:3] == ["first", "second", "third"]
        assert again.ledger.refused == []


async def test_rewind_of_files_keeps_the_conversation_and_tells_the_model(tmp_path: Path) -> None:
    """G4, G15: the model still sees what it did, so it is told which files went back."""
    async with scripted_server(tmp_path, *TURNS, says("fourth")) as stage:
        session = await three_turns(stage)
        epoch = session.epoch
        done = await go_back(session, turn_named(session, "second"), "files")
        assert stage.workspace.files() == {"a.txt": "1\n", "b.txt": "old\n"}
        assert session.epoch == epoch == done.session.epoch
        assert prompts(session)[:3] == ["first", "second", "third"]
        await stage.say(session, "fourth")
        assert sent_texts(stage)[-2] == (
            "[Notice] The user took these files back to what they were before the prompt “second”:\n"
            "- a.txt: created\n- b.txt: modified"
        )


async def test_rewind_of_the_conversation_keeps_files_and_tells_the_model(tmp_path: Path) -> None:
    """G4, S8, G15: the files that were changed in what is removed go before the next prompt with their state."""
    async with scripted_server(tmp_path, *TURNS, says("fourth")) as stage:
        session = await three_turns(stage)
        stage.workspace.write("b.txt", "mine\n")
        await go_back(session, turn_named(session, "first"), "conversation")
        assert stage.workspace.files() == {"b.txt": "mine\n"}
        assert prompts(session) == ["Rewind to before “first”"]
        await stage.say(session, "fourth")
        assert sent_texts(stage) == [
            "[Notice] The user rewound the conversation to before the prompt “first”.\n"
            "Files that you changed in what was removed:\n- b.txt: somebody changed it since.",
            "fourth",
        ]


async def test_rewind_spares_what_somebody_else_changed_and_names_commands(tmp_path: Path) -> None:
    """G4, V5, case 73: a file that is not ours is left; one that somebody changed in between goes back to their
    content and is named too; commands are listed by title.
    """
    second = (asks(read("b.txt")), *does(edit("b.txt", "theirs", "3"), run("make")))
    turns = (*does(write("a.txt", "1\n"), write("b.txt", "1\n")), *second)
    async with scripted_server(tmp_path, *turns, processes=FakeProcesses({"make": Script()})) as stage:
        session = await stage.session("auto")
        await stage.say(session, "first")
        stage.workspace.write("a.txt", "theirs\n")
        stage.workspace.write("b.txt", "theirs\n")
        await stage.say(session, "second")
        done = await go_back(session, turn_named(session, "first"), "files")
        assert stage.workspace.files() == {"a.txt": "theirs\n", "b.txt": "theirs\n"}
        assert restored(done) == {"b.txt": "modified"}
        assert left(done) == {"a.txt": "changed", "b.txt": "changed", "run_command: make": "command"}


async def test_rewind_takes_a_move_back_as_a_move(tmp_path: Path) -> None:
    """G4, W4: both paths of a move go back together, and the file keeps its inode."""
    async with scripted_server(tmp_path, *does(move("a.txt", "d/b.txt"))) as stage:
        stage.workspace.write("a.txt", "old\n")
        inode = (stage.root / "a.txt").stat().st_ino
        session = await stage.session("auto")
        await stage.say(session, "first")
        await go_back(session, turn_named(session, "first"), "files")
        assert stage.workspace.files() == {"a.txt": "old\n"}
        assert (stage.root / "a.txt").stat().st_ino == inode


async def test_rewind_spares_a_moved_file_whose_old_path_somebody_else_took(tmp_path: Path) -> None:
    """G4, V5: to remove the new path alone would lose the content."""
    async with scripted_server(tmp_path, *does(move("a.txt", "b.txt"), write("c.txt", "1\n"))) as stage:
        stage.workspace.write("a.txt", "old\n")
        session = await stage.session("auto")
        await stage.say(session, "first")
        stage.workspace.write("a.txt", "theirs\n")
        done = await go_back(session, turn_named(session, "first"), "files")
        assert (restored(done), left(done)) == ({"c.txt": "deleted"}, {"a.txt": "changed", "b.txt": "changed"})
        assert stage.workspace.files() == {"a.txt": "theirs\n", "b.txt": "old\n"}


@pytest.mark.parametrize("folds", [True, False])
async def test_rewind_spares_a_file_that_has_the_name_of_a_deleted_one_in_other_letters(
    tmp_path: Path, folds: bool
) -> None:
    """G4, W12: where the disk folds names, the old name has the new content, so neither is taken back; elsewhere both
    are.
    """
    disk = folding_disk(str(tmp_path)) if folds else None
    async with scripted_server(tmp_path, *does(delete("App.ts"), write("app.ts", "new\n")), disk=disk) as stage:
        stage.workspace.write("App.ts", "old\n")
        session = await stage.session("auto")
        await stage.say(session, "first")
        done = await go_back(session, turn_named(session, "first"), "files")
        if folds:
            assert (restored(done), left(done)) == ({}, {"App.ts": "changed", "app.ts": "changed"})
            assert stage.workspace.files() == {"app.ts": "new\n"}
        else:
            assert (restored(done), left(done)) == ({"App.ts": "created", "app.ts": "deleted"}, {})
            assert stage.workspace.files() == {"App.ts": "old\n"}


async def test_rewind_is_refused_in_the_order_of_the_protocol(tmp_path: Path) -> None:
    """G4, B8, I6: a running turn, another epoch, an unknown or rewound turn, an uncertain effect on the files; the
    conversation alone is never refused for the last.
    """
    gate = Gate()

    async def lose(_: CallContext) -> ToolOutcome:
        return ToolOutcome("unknown", "Nobody knows.", "output_lost")

    doubtful = ScriptedTool("doubtful", lose, "opaque")
    answers = (*does(write("a.txt", "1\n")), [gate, *asks(call("doubtful"))], says("done"), says("third"))
    async with scripted_server(tmp_path, *answers, tools=[doubtful]) as stage:
        session = await stage.session("auto")
        await stage.say(session, "first")
        first = turn_named(session, "first")
        accepted = await stage.send(session, "second")
        await gate.wait_reached()
        assert await refusal(session, first) == "turnRunning"
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        await stage.until(lambda: True if session.turn is None else None)
        with pytest.raises(Refused) as refused:
            await rewind(session, "0" * 32, first, "both")
        assert refused.value.kind == "staleEpoch"
        assert await refusal(session, "0" * 32) == "invalidParams"
        records = kinds(session)
        assert await refusal(session, first) == await refusal(session, first, "files") == "recoveryRequired"
        assert kinds(session) == records
        doubt = session.ledger.uncertain()
        await go_back(session, first, "conversation")
        assert session.ledger.uncertain() == doubt, "a rewind keeps what is unresolved"
        assert await refusal(session, accepted.turn_id, "conversation") == "invalidParams"
        await stage.say(session, "third")
        assert f"Its attempt is {doubt[0].attempt_id}." in sent_texts(stage)[0]


async def test_rewind_of_files_waits_for_an_uncertain_effect_in_its_range(tmp_path: Path) -> None:
    """G4, I6: also where somebody else wrote the file since, so that it would be spared. The sentence names what is
    uncertain."""

    async def lose(_: CallContext) -> ToolOutcome:
        return ToolOutcome("unknown", "Nobody knows.", "output_lost")

    doubtful = ScriptedTool("doubtful", lose, "opaque", paths=(f"{tmp_path}/ws/u.txt",))
    answers = (*does(write("a.txt", "1\n"), write("u.txt", "1\n")), *does(call("doubtful")))
    async with scripted_server(tmp_path, *answers, tools=[doubtful]) as stage:
        session = await stage.session("auto")
        await stage.say(session, "first")
        await stage.say(session, "second")
        stage.workspace.write("u.txt", "somebody else\n")
        records = kinds(session)
        with pytest.raises(Refused, match=r"“doubtful.*” is uncertain and may touch the same files") as refused:
            await go_back(session, turn_named(session, "first"), "files")
        assert refused.value.kind == "recoveryRequired"
        assert kinds(session) == records


async def refusal(session: Session, turn_id: str, what: RewindWhat = "both") -> str:
    with pytest.raises(Refused) as refused:
        await go_back(session, turn_id, what)
    return refused.value.kind


async def test_rewind_command_lists_turns_and_rewinds(tmp_path: Path) -> None:
    """G4: `/rewind` in the chat lists the turns with their files, takes an ID, and says how to undo it."""
    async with scripted_server(tmp_path, *TURNS) as stage:
        session = await three_turns(stage)

        async def say(text: str) -> str:
            accepted = await stage.send(session, text)
            await stage.ended(session, accepted.turn_id)
            told = [event.delta for event in stage.events(accepted.turn_id) if isinstance(event, TextDelta)]
            return "".join(told)

        second = turn_named(session, "second")
        listed = await say("/rewind")
        assert f"{second[:8]} “second”: a.txt modified, b.txt modified" in listed
        assert await say("/rewind 0000000 both") == "No turn begins with that ID."
        assert await say("/rewind 00") == "Give at least 4 digits of the ID."
        assert (await say(f"/rewind {second} everything")).startswith("Say /rewind ID")
        done = await say(f"/rewind {second} files")
        assert done.startswith("Rewound. Say /rewind ")
        assert "- b.txt: modified" in done
        assert stage.workspace.files() == {"a.txt": "1\n", "b.txt": "old\n"}
        assert await say("/rewind") != listed


@pytest.mark.parametrize("what", ["rewind", "undo"])
async def test_cancelled_request_finishes_what_it_began_and_tells_the_model(tmp_path: Path, what: str) -> None:
    """G4, V4: a cancel while the start of the first change is recorded; a rewind is whole
    then, and what an undo did is told and shown."""
    began = False
    disk = GatedDisk(lambda operation: began and operation.verb == "write" and "started" in operation.kinds)
    answers = (*does(edit("a.txt", "a0", "a1")), *does(edit("b.txt", "b0", "b1")), says("third"))
    async with scripted_server(tmp_path, *answers, disk=disk) as stage:
        stage.workspace.write("a.txt", "a0\n")
        stage.workspace.write("b.txt", "b0\n")
        session = await stage.session("auto")
        await stage.say(session, "first")
        await stage.say(session, "second")
        began = True

        async def asks_for_it() -> None:
            with scope:
                if what == "rewind":
                    await go_back(session, turn_named(session, "first"), "files")
                else:
                    await review.undo(session, session.epoch, ALL)

        scope = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asks_for_it)
            await disk.wait_reached()
            scope.cancel()
            disk.go.set()
        taken_back = [one for one in session.ledger.attempts.values() if one.tool == what]
        assert all(one.has_certainly_happened for one in taken_back)
        shown = [event for event in stage.events(next(reversed(session.ledger.turns))) if isinstance(event, ModelTold)]
        assert len(shown) == (1 if what == "rewind" else len(taken_back)) > 0
        if what == "rewind":
            assert stage.workspace.files() == {"a.txt": "a0\n", "b.txt": "b0\n"}
        await stage.say(session, "third")
        assert sent_texts(stage)[-2].startswith("[Notice] The user")


async def test_rewind_that_was_killed_goes_on_as_the_same_rewind(tmp_path: Path) -> None:
    """G4, I4: the same request after a kill names every file to the model, and one rewind undoes all of it."""
    began = False
    disk = GatedDisk(lambda operation: began and operation.verb == "write" and "result" in operation.kinds)
    answers = (*does(edit("a.txt", "a0", "a1")), *does(edit("b.txt", "b0", "b1")))
    async with scripted_server(tmp_path, *answers, disk=disk) as stage:
        stage.workspace.write("a.txt", "a0\n")
        stage.workspace.write("b.txt", "b0\n")
        session = await stage.session("auto")
        await stage.say(session, "first")
        await stage.say(session, "second")
        began = True
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_back, session, turn_named(session, "first"), "files")
            await disk.wait_reached()
            state = stage.crashed(tmp_path / "later")
            disk.go.set()
    stage.workspace.write("a.txt", "a1\n")
    stage.workspace.write("b.txt", "b0\n")
    async with scripted_server(tmp_path, says("third"), state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        done = await go_back(again, turn_named(again, "first"), "files")
        assert stage.workspace.files() == {"a.txt": "a0\n", "b.txt": "b0\n"}
        assert restored(done) == {"a.txt": "modified", "b.txt": "modified"}
        await stage.say(again, "third")
        assert "- a.txt: modified\n- b.txt: modified" in "\n".join(sent_texts(stage))
        await go_back(again, done.undo, "files")
        assert stage.workspace.files() == {"a.txt": "a1\n", "b.txt": "b1\n"}


async def test_rewind_of_the_conversation_keeps_what_is_told_of_the_turns_that_stay(tmp_path: Path) -> None:
    """G4, S8, V4, F4: an undo and a decision about earlier turns outlive the turn in which they were told, and the
    undo is not called a change of the model; those about a removed turn go with it.
    """

    async def lose(_: CallContext) -> ToolOutcome:
        return ToolOutcome("unknown", "Nobody knows.", "conflict", check="conflict")

    deploy = ScriptedTool("deploy", lose, "opaque")
    answers = (*does(write("a.txt", "1\n")), *does(call("deploy")), says("3"), says("4"), says("5"))
    async with scripted_server(tmp_path, *answers, tools=[deploy]) as stage:
        session = await stage.session("auto")
        for text in ("first", "second", "third"):
            await stage.say(session, text)
        (doubt,) = session.ledger.uncertain()
        looked = await resolve(session, ResolutionRequest(doubt.attempt_id, "inspect"))
        assert looked.inspection is not None
        found = looked.inspection.inspection_id
        await resolve(session, ResolutionRequest(doubt.attempt_id, "confirm", inspection_id=found))
        assert (await review.undo(session, session.epoch, ALL)).left == ()
        settled = "[Notice] The uncertain call “deploy” is settled: the user confirmed it."
        undone = "[Notice] The user took back your change of a.txt."
        await go_back(session, turn_named(session, "third"), "conversation")
        await stage.say(session, "fourth")
        assert sent_texts(stage) == ["first", "second", settled, undone, "fourth"]
        await go_back(session, turn_named(session, "second"), "conversation")
        await stage.say(session, "fifth")
        assert sent_texts(stage) == ["first", undone, "fifth"]
