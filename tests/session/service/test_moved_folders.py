"""A session whose folder moved: it opens, says which folder is gone, and can be bound to the new place (row S10)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.session.inspection.file_state import check_files
from steadyhand.session.service.moved_folders import rebind
from steadyhand.session.session import Session
from steadyhand.session.turns.system_text import fixed_text
from tests.support.editor import Park, ScriptedEditor
from tests.support.faults import MatchingFault, Operation, carries
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.session_state import kinds, on_disk, replies, states
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", "old\n")
    return place


def move_away(place: Workspace) -> Path:
    """Rename the workspace's folder; return its new path."""
    moved = place.base / "moved"
    os.rename(place.root, moved)
    return moved


async def refusal(session: Session, workspace: str | None) -> tuple[str, str]:
    """The word and the sentence with which a rebind is refused. Nothing is recorded then."""
    before = kinds(session)
    with pytest.raises(Refused) as refused:
        await rebind(session, workspace)
    assert kinds(session) == before
    errors: Any = refused.value.more.get("errors", [{"message": refused.value.message}])
    return refused.value.kind, errors[0]["message"]


async def test_session_whose_folder_is_gone_opens_and_says_which(place: Workspace) -> None:
    """Case 130, S10: the session can be read, the message and each call name the folder, and nothing runs."""
    async with practice_server(place) as server:
        session_id = await server.create()
        await server.say(session_id, "show a.txt")
    move_away(place)
    async with practice_server(place, run=2) as server:
        session = await server.opened(session_id)
        assert session.view().workspace_gone is True
        (said,) = [text for text in server.editor.messages if f"is gone: {place.root}." in text]
        assert "start a new session there, or bind this session to it (in VS Code" in said, "any editor can do one"
        await server.say(session, "write a.txt with new")
        assert f"The session's folder {place.root} is gone" in replies(session)[-1]
        await server.say(session, "run echo x > b.txt")
        assert f"The session's folder {place.root} is gone" in replies(session)[-1]
        assert states(session) == ["returned", "refused", "refused"]


async def test_folder_that_goes_and_comes_back_is_followed_at_the_next_turn(place: Workspace) -> None:
    """S10: an open session finds out when a turn begins. A folder that is put back needs no rebind."""
    async with practice_server(place) as server:
        session = await server.session("auto")
        moved = move_away(place)
        await server.say(session, "show a.txt")
        assert session.view().workspace_gone is True
        os.rename(moved, place.root)
        await server.say(session, "show a.txt")
        assert session.view().workspace_gone is None
        assert states(session) == ["failed", "returned"] or states(session) == ["refused", "returned"]
        assert len([text for text in server.editor.messages if "is gone" in text]) == 1


async def test_rebind_goes_on_in_the_new_folder_under_a_new_epoch(place: Workspace) -> None:
    """Case 130, S10, S1: one record has folder and epoch. Grants of the session end, the queue waits, the model is
    told, and a restart knows it all."""
    editor = ScriptedEditor("session")
    async with practice_server(place, mode="ask", editor=editor) as server:
        session = await server.session()
        await server.say(session, "write a.txt with new")
        assert len(session.ledger.grants) == 1
        old = session.epoch
        moved = move_away(place)
        view = await rebind(session, moved.as_uri())
        assert (view.workspace, view.workspace_gone) == (moved.as_uri(), None)
        assert view.epoch not in (None, old)
        assert session.feed.events_after(old or "", 0).reset
        assert kinds(session)[-2:] == ["rebind", "told"]
        assert session.ledger.grants == []
        with pytest.raises(Refused, match="opened again or rewound"):
            session.require_epoch(old or "")
        await server.say(session, "write a.txt with newer")
        assert len(editor.questions) == 2
        assert (moved / "a.txt").read_text() == "newer"
        assert not place.root.exists()
        session_id, epoch = session.session_id, session.epoch
    async with practice_server(place, run=2, mode="ask") as server:
        session = await server.opened(session_id)
        assert session.workspace == moved.as_uri()
        assert session.tool_context.root == str(moved)
        assert session.epoch != epoch
        assert session.view().workspace_gone is None


async def test_rebind_ends_readings(place: Workspace) -> None:
    """S10, V3: also of a file that did not move, also where they were folded before, and after a restart."""
    there = place.base / "there.txt"
    there.write_text("x\n")
    async with practice_server(place) as server:
        session = await server.session("auto")
        await server.say(session, f"show {there}")
        assert list(session.readings.fold(session.ledger, "").files) == [str(there)]
        await rebind(session, move_away(place).as_uri())
        assert session.readings.fold(session.ledger, "").files == {}
        await server.say(session, "show a.txt")
        assert list(session.readings.fold(session.ledger, "").files) == [str(place.base / "moved" / "a.txt")]
        session_id = session.session_id
    async with practice_server(place, run=2) as server:
        session = await server.opened(session_id)
        assert list(session.readings.fold(session.ledger, "").files) == [str(place.base / "moved" / "a.txt")]


async def test_rebind_tells_the_model_and_keeps_the_system_text(place: Workspace) -> None:
    """S10, G15, P4: a stored message names both folders; the beginning of each request stays as it was."""
    async with practice_server(place) as server:
        session = await server.session("auto")
        before = fixed_text(session)
        moved = move_away(place)
        await rebind(session, moved.as_uri())
        (told,) = [record for record in on_disk(session) if record.kind == "told"]
        assert f"is now {moved}; it was {place.root}." in getattr(told, "text", "")
        assert fixed_text(session) == before


async def test_rebind_is_refused_while_the_folder_is_there(place: Workspace) -> None:
    """S10: only a session whose folder is gone, or is the same one under another path, is bound anew."""
    other = place.base / "other"
    other.mkdir()
    link = place.base / "link"
    link.symlink_to(place.root)
    async with practice_server(place) as server:
        session = await server.session()
        assert await refusal(session, None) == ("invalidParams", "not one of the client's folders")
        kind, text = await refusal(session, other.as_uri())
        assert (kind, f"{place.root} is still there" in text) == ("invalidParams", True)
        assert await refusal(session, (place.base / "none").as_uri()) == ("invalidParams", "there is no such folder")
        assert (await rebind(session, link.as_uri())).workspace == link.as_uri()
        without = await server.session(folder=False)
        assert "no folder that could have moved" in (await refusal(without, other.as_uri()))[1]


async def test_rebind_to_the_folder_that_it_has_changes_nothing(place: Workspace) -> None:
    """S10, S1: no record, no new epoch, so grants and readings stay."""
    async with practice_server(place) as server:
        session = await server.session()
        before, epoch = kinds(session), session.epoch
        view = await rebind(session, place.uri)
        assert (view.workspace, view.epoch) == (place.uri, epoch)
        assert kinds(session) == before


async def test_another_folder_in_the_place_of_the_sessions_counts_as_missing(place: Workspace) -> None:
    """S10, S11: the session does not follow a link that came into its place; the user may bind it there."""
    other = place.base / "other"
    other.mkdir()
    async with practice_server(place) as server:
        session = await server.session("auto")
        move_away(place)
        place.root.symlink_to(other)
        await server.say(session, "write a.txt with new")
        assert session.view().workspace_gone is True
        assert list(other.iterdir()) == []
        assert len([text for text in server.editor.messages if "is gone" in text]) == 1
        await rebind(session, place.uri)
        assert session.tool_context.root == str(other)


async def test_rebind_waits_for_the_end_of_the_turn(place: Workspace) -> None:
    """S10: a turn that runs, a parked one too, answers turnRunning."""
    park = Park()
    async with practice_server(place, mode="ask", editor=ScriptedEditor(park)) as server:
        session = await server.session()
        accepted = await server.send(session, "write a.txt with new")
        await park.wait_open()
        moved = move_away(place)
        assert (await refusal(session, moved.as_uri()))[0] == "turnRunning"
        park.answer_with("reject")
        await server.ended(session, accepted.turn_id)
        assert (await rebind(session, moved.as_uri())).workspace == moved.as_uri()


async def test_rebind_waits_for_the_decision_on_an_uncertain_effect(place: Workspace) -> None:
    """S10: while an effect is unresolved, recoveryRequired. Its check is unknown as long as its folder is gone (I3)."""
    kill_in_turn(place, 'write a.txt with "new\\n"', carries("result"))
    moved = move_away(place)
    async with practice_server(place, run=2) as server:
        session = await server.opened(SESSION)
        (attempt,) = session.ledger.uncertain()
        assert attempt.check == "unknown"
        assert (await refusal(session, moved.as_uri()))[0] == "recoveryRequired"
        await server.say(session, "/recovery waive")
        await server.say(session, "/recovery waive")
        assert session.ledger.uncertain() == []
        assert (await rebind(session, moved.as_uri())).workspace == moved.as_uri()


async def test_evidence_from_the_old_folder_is_unknown_in_the_new_one(place: Workspace) -> None:
    """S10, W2: the file has the intended content at its new place, and still nobody checked that path [I9]."""
    async with practice_server(place) as server:
        session = await server.session("auto")
        await server.say(session, 'write a.txt with "new\\n"')
        *_, attempt = session.ledger.attempts.values()
        assert attempt.started is not None
        moved = move_away(place)
        await rebind(session, moved.as_uri())
        assert check_files(session.tool_context, session.ledger, attempt).check == "unknown"


async def test_rebind_that_cannot_be_recorded_changes_nothing(place: Workspace) -> None:
    """S10, I12: without the record the session stays where it was."""

    def is_rebind(operation: Operation) -> bool:
        return operation.verb == "write" and "rebind" in operation.kinds

    async with practice_server(place, disk=MatchingFault(system_disk(), is_rebind, 28)) as server:
        session = await server.session("auto")
        epoch = session.epoch
        moved = move_away(place)
        with pytest.raises(Refused) as refused:
            await rebind(session, moved.as_uri())
        assert refused.value.kind == "journalBroken"
        assert session.workspace == place.uri
        assert session.epoch == epoch
