"""Revise: another prompt in the place of an earlier one, in one record (row S8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Turn
from steadyhand.domain.records.prompt import Prompt, TextAttachment
from steadyhand.domain.views.types import Revised
from steadyhand.session.context import OpenFolder
from steadyhand.session.service.revise import revise
from steadyhand.session.session import Session
from tests.session.changes.test_review import does
from tests.session.changes.test_rewind import prompts, sent_texts, turn_named
from tests.support.in_process_server import practice_server, scripted_server
from tests.support.model import says, write
from tests.support.session_state import kinds
from tests.support.waiting import Gate
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio


async def replace(session: Session, turn_id: str, text: str, name: str = "r1") -> Revised:
    assert session.epoch is not None
    return await revise(session, session.epoch, turn_id, name, text)


async def test_revise_replaces_the_conversation_from_a_prompt_on(tmp_path: Path) -> None:
    """S8, S1, D1: the new prompt goes out in the place of the old one with its attachments, under a new epoch; files
    stay and are told before it; the same id again is a duplicate. All of it is the same after a restart.
    """
    answers = (says("1"), *does(write("a.txt", "1\n")), says("3"), says("4"))
    async with scripted_server(tmp_path, *answers) as stage:
        session = await stage.session("auto")
        await stage.say(session, "first")
        await stage.say(session, Prompt("second", (TextAttachment("notes", "remember"),)))
        await stage.say(session, "third")
        epoch, second = session.epoch, turn_named(session, "second")
        done = await replace(session, second, "another")
        await stage.ended(session, done.turn_id)
        assert (done.accepted, done.duplicate) == (True, False)
        assert epoch != session.epoch == done.session.epoch
        assert prompts(session) == ["first", "another"]
        assert sent_texts(stage) == [
            "first",
            "[Notice] The user rewound the conversation to before the prompt “second”.\n"
            "Files that you changed in what was removed:\n- a.txt: it is as you left it.",
            "another",
        ]
        assert session.ledger.turns[done.turn_id].prompt.attachments == (TextAttachment("notes", "remember"),)
        assert stage.workspace.files() == {"a.txt": "1\n"}
        assert kinds(session).count("user") == 4
        records = kinds(session)
        again = await revise(session, "0" * 32, second, "r1", "another")
        assert (again.turn_id, again.duplicate) == (done.turn_id, True)
        assert kinds(session) == records
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, says("5"), state=state, run=2) as stage:
        opened = await stage.opened(session.session_id)
        assert prompts(opened) == ["first", "another"]
        assert opened.ledger.refused == []
        await stage.say(opened, "next")
        assert sent_texts(stage)[-2:] == ["another", "next"]


async def test_revise_is_refused_in_the_order_of_the_protocol(tmp_path: Path) -> None:
    """S8: a used id with another text, a running turn, another epoch, a turn that cannot be replaced; the queue stays
    and waits.
    """
    gate = Gate()
    async with scripted_server(tmp_path, says("1"), [gate, *says("2")], says("3")) as stage:
        session = await stage.session()
        await stage.say(session, "first", "c1")
        await stage.say(session, "/help", "c2")
        first = turn_named(session, "first")
        running = await stage.send(session, "second", "c3")
        await gate.wait_reached()
        await stage.send(session, "waits", "c4")
        assert await refusal(session, first, "other text", "c1") == "invalidParams"
        assert await refusal(session, first) == "turnRunning"
        gate.go.set()
        await stage.ended(session, running.turn_id)
        await stage.until(lambda: True if not session.view().busy and not session.queue() else None)
        with pytest.raises(Refused) as refused:
            await revise(session, "0" * 32, first, "r1", "/help")
        assert refused.value.kind == "staleEpoch", "what the text is comes last"
        for turn_id in ("0" * 32, turn_named(session, "/help")):
            assert await refusal(session, turn_id) == "invalidParams"
        assert await refusal(session, first, "/help") == "invalidParams"


async def refusal(session: Session, turn_id: str, text: str = "x", name: str = "r1") -> str:
    with pytest.raises(Refused) as refused:
        await replace(session, turn_id, text, name)
    return refused.value.kind


async def test_revise_keeps_the_queue_paused(tmp_path: Path) -> None:
    """S8, S4: what waits belongs to the earlier epoch, so it waits until the queue is resumed."""
    async with scripted_server(tmp_path, says("1"), says("2")) as stage:
        session = await stage.session()
        await stage.say(session, "first")
        state = stage.crashed(tmp_path / "later")
        first = turn_named(session, "first")
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("2")], says("3"), state=state, run=2) as stage:
        session = await stage.opened(session.session_id)
        running = await stage.send(session, "second")
        await gate.wait_reached()
        await stage.send(session, "waits")
        state = stage.crashed(tmp_path / "last")
        gate.go.set()
        await stage.ended(session, running.turn_id)
    async with scripted_server(tmp_path, says("3"), state=state, run=3) as stage:
        session = await stage.opened(session.session_id)
        done = await replace(session, first, "another")
        await stage.ended(session, done.turn_id)
        await stage.until(lambda: True if not session.view().busy else None)
        assert [(one.text, one.paused) for one in session.queue()] == [("waits", True)]


async def test_revise_keeps_what_is_told_of_folders(tmp_path: Path) -> None:
    """S8, S11, G13: the folders and their instructions are recorded once, so the new prompt follows their messages."""
    place = Workspace.under(tmp_path / "place")
    second = place.base / "second"
    second.mkdir()
    (second / "AGENTS.md").write_text("Use tabs.\n")
    folders = [OpenFolder(place.root.as_uri(), place.root.name), OpenFolder(second.as_uri(), "second")]
    async with practice_server(place, open_folders=lambda: folders) as server:
        session = await server.session("auto")
        await server.say(session, "hello")
        before = [one.text for one in session.transcript.outgoing_messages(session.ledger)]
        done = await replace(session, turn_named(session, "hello"), "hello again")
        await server.ended(session, done.turn_id)
        after = [one.text for one in session.transcript.outgoing_messages(session.ledger)]
        folder_texts = [text.removeprefix("[Notice] ") for text in after[: after.index("hello again")]]
        told = [text for text in before if text.startswith("[Notice]")]
        assert len(told) == 2
        assert folder_texts == [text.removeprefix("[Notice] ") for text in told]


async def test_queued_prompt_does_not_begin_while_a_prompt_is_revised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S8, S2: the turn before has just ended, so the queue goes on while the files are looked at for the message."""

    async def meanwhile(session: Session, target: Turn) -> None:
        await session.start_next_prompt()

    monkeypatch.setattr("steadyhand.session.service.revise.text_about_removed", meanwhile)
    async with scripted_server(tmp_path, says("1"), says("2")) as stage:
        session = await stage.session()
        await stage.say(session, "first")
        await stage.until(lambda: True if session.can_begin_turn else None)
        with session.resolution():
            await stage.send(session, "waits")
        done = await replace(session, turn_named(session, "first"), "another")
        assert (await stage.ended(session, done.turn_id)).reason == "done"
        assert [(one.text, one.paused) for one in session.queue()] == [("waits", True)]
        assert prompts(session) == ["another"]
