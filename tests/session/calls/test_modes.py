"""Modes: what passes without a question (row G2), and sessions without their folder (row S7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import Mode, ModeSet
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.notifications import SessionNotification
from steadyhand.session.turns.system_text import fixed_text
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, read, run, says, write
from tests.support.session_state import calls_of, on_disk, replies, states

pytestmark = pytest.mark.anyio

# For each mode, which of these ask: a read, a file write, a command, a reading command, a write of `.env`.
TABLE: list[tuple[Mode, list[str], list[str]]] = [
    ("plan", [], ["returned", "refused", "refused", "returned", "refused"]),
    ("ask", ["write_file", "run_command", "write_file"], ["returned"] * 5),
    ("edits", ["run_command", "write_file"], ["returned"] * 5),
    ("auto", ["write_file"], ["returned"] * 5),
]


@pytest.mark.parametrize(("mode", "asked", "expected"), TABLE)
async def test_mode_decides_which_calls_ask(tmp_path: Path, mode: Mode, asked: list[str], expected: list[str]) -> None:
    """Row G2: `plan` only reads, `ask` asks, `edits` permits file edits, `auto` permits all but protected paths."""
    answer = asks(read("a.txt"), write("b.txt", "b"), run("make"), run("ls"), write(".env", "x"))
    processes = FakeProcesses(otherwise=Script(), environment={"PATH": "/usr/bin:/bin"})
    async with scripted_server(tmp_path, answer, says("ok"), processes=processes) as stage:
        (stage.root / "a.txt").write_text("A")
        session = await stage.session(mode)
        await stage.say(session)
        assert [question.tool for question in stage.editor.questions] == asked
        assert states(session) == expected
        if mode == "plan":
            assert {each.reply.reason for each in calls_of(session) if each.reply} == {None, "policy"}
            assert "plan mode" in replies(session)[1]
            assert [path.name for path in stage.root.iterdir()] == ["a.txt"]


async def test_mode_is_recorded_once_and_survives_a_restart(tmp_path: Path) -> None:
    """A mode is a record, is notified once, and holds after a restart. Setting the mode to what it is writes
    nothing."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        assert session.view().mode == "ask"
        for mode in ("edits", "edits", "plan"):
            await session.set_mode(mode)
        assert [r.mode for r in on_disk(session) if isinstance(r, ModeSet)] == ["edits", "plan"]
        notified_modes = [each.session.mode for each in stage.editor.told if isinstance(each, SessionNotification)]
        assert notified_modes == ["ask", "edits", "plan"]
    async with scripted_server(tmp_path, run=2) as stage:
        assert (await stage.opened(session.session_id)).view().mode == "plan"


async def test_mode_counts_from_the_next_call(tmp_path: Path) -> None:
    """docs/protocol.md: If the mode changes while a question is open, that question stays and the next call passes."""
    park = Park()
    answer = asks(write("a.txt", "1"), write("b.txt", "2"))
    async with scripted_server(tmp_path, answer, says("ok"), editor=ScriptedEditor(park, "reject")) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "one")
        await park.wait_open()
        await session.set_mode("auto")
        park.answer_with("reject")
        await stage.ended(session, accepted.turn_id)
        assert states(session) == ["refused", "returned"]
        assert len(stage.editor.questions) == 1


async def test_mode_change_with_a_broken_journal_is_refused(tmp_path: Path) -> None:
    """Row J6: A broken journal refuses the change, and the mode stays."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        assert session.log.journal is not None
        session.log.journal.broken = "The disk is full."
        session.change_status("journal_broke")
        with pytest.raises(Refused) as refused:
            await session.set_mode("auto")
        assert refused.value.kind == "journalBroken"
        assert session.view().mode == "ask"


async def test_mode_of_the_settings_applies_to_new_sessions_only(tmp_path: Path) -> None:
    """A session takes the mode of the settings at its creation. A session that exists keeps its own."""
    async with scripted_server(tmp_path, settings=Settings(mode="edits")) as stage:
        session = await stage.session()
        assert session.view().mode == "edits"
        stage.registry.context.settings = Settings(mode="auto")
        assert session.view().mode == "edits"
        assert (await stage.session()).view().mode == "auto"


async def test_session_without_a_folder_offers_tools_that_say_why_not(tmp_path: Path) -> None:
    """Row S7: The model talks and has no files. The tools stay offered, and each says why it does nothing."""
    async with scripted_server(
        tmp_path, asks(write("a.txt", "1"), read("b.txt"), run("ls")), says("I have no files.")
    ) as stage:
        session = await stage.session("auto", folder=False)
        assert session.view().workspace is None
        assert (await stage.say(session)).reason == "done"
        tools = session.context.tools_of(session.ledger.model)
        assert [offer.name for offer in stage.model.requests[0].tools] == sorted(tools)
        assert stage.model.requests[0].system == fixed_text(session)
        assert set(states(session)) <= {"refused", "failed"}
        assert list(stage.root.iterdir()) == []


async def test_session_whose_folder_is_gone_continues_without_files(tmp_path: Path) -> None:
    """Row S7: A session whose folder does not exist any more continues without files."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
    (tmp_path / "ws").rename(tmp_path / "elsewhere")
    async with scripted_server(tmp_path, says("hello"), run=2) as stage:
        stage.root.rmdir()
        session = await stage.opened(session.session_id)
        assert (await stage.say(session)).reason == "done"
        assert [offer.name for offer in stage.model.requests[0].tools] == sorted(
            session.context.tools_of(session.ledger.model)
        )


async def test_unknown_tool_is_refused_and_the_turn_continues(tmp_path: Path) -> None:
    """Row G1: The call of an unknown tool gets a reply that refuses it."""
    async with scripted_server(tmp_path, asks(call("fly_to_moon")), says("ok")) as stage:
        session = await stage.session("auto")
        assert (await stage.say(session)).reason == "done"
        assert states(session) == ["refused"]
        assert calls_of(session)[0].reply is not None
        assert calls_of(session)[0].reply.reason == "unknown_tool"  # type: ignore[union-attr]  # asserted above
