"""Modes: what passes without asking (row G2), and sessions with no folder or several (row S7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.core.record import Mode, ModeSet
from steadyhand.core.refusal import Refused
from steadyhand.core.settings import Settings
from steadyhand.core.told import SessionTold
from steadyhand.session.asking import SYSTEM_WITHOUT_FILES
from tests.support.fakes import FakeProcesses, Script
from tests.support.scripted import (
    Park,
    ScriptedEditor,
    asks,
    call,
    calls_of,
    on_disk,
    read,
    replies,
    run,
    says,
    staged,
    states,
    write,
)

pytestmark = pytest.mark.anyio

# For each mode, which of these ask: a read, a file write, a command, a reading command, a write of `.env`.
TABLE: list[tuple[Mode, list[str], list[str]]] = [
    ("plan", [], ["returned", "refused", "refused", "returned", "refused"]),
    ("ask", ["write_file", "run_command", "write_file"], ["returned"] * 5),
    ("edits", ["run_command", "write_file"], ["returned"] * 5),
    ("auto", ["write_file"], ["returned"] * 5),
]


@pytest.mark.parametrize(("mode", "asked", "expected"), TABLE)
async def test_what_a_mode_lets_pass(tmp_path: Path, mode: Mode, asked: list[str], expected: list[str]) -> None:
    """Row G2: plan reads only, ask asks, edits lets file edits pass, auto all but protected paths."""
    answer = asks(read("a.txt"), write("b.txt", "b"), run("make"), run("ls"), write(".env", "x"))
    processes = FakeProcesses(otherwise=Script(), environment={"PATH": "/usr/bin:/bin"})
    async with staged(tmp_path, answer, says("ok"), processes=processes) as stage:
        (stage.root / "a.txt").write_text("A")
        owner = await stage.session(mode)
        await stage.say(owner)
        assert [question.tool for question in stage.editor.questions] == asked
        assert states(owner) == expected
        if mode == "plan":
            assert {each.reply.reason for each in calls_of(owner) if each.reply} == {None, "policy"}
            assert "plan mode" in replies(owner)[1]
            assert [path.name for path in stage.root.iterdir()] == ["a.txt"]


async def test_a_mode_is_kept(tmp_path: Path) -> None:
    """A mode is a record, is told once, and holds after a restart; set to what it is, nothing is written."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        assert owner.view().mode == "ask"
        for mode in ("edits", "edits", "plan"):
            await owner.set_mode(mode)
        assert [r.mode for r in on_disk(owner) if isinstance(r, ModeSet)] == ["edits", "plan"]
        told = [each.session.mode for each in stage.editor.told if isinstance(each, SessionTold)]
        assert told == ["ask", "edits", "plan"]
    async with staged(tmp_path, life=2) as stage:
        assert (await stage.opened(owner.session_id)).view().mode == "plan"


async def test_a_mode_counts_from_the_next_call_on(tmp_path: Path) -> None:
    """wire.md: set while a question is open, that question stays and the next call passes."""
    park = Park()
    answer = asks(write("a.txt", "1"), write("b.txt", "2"))
    async with staged(tmp_path, answer, says("ok"), editor=ScriptedEditor(park, "reject")) as stage:
        owner = await stage.session()
        accepted = await stage.send(owner, "one")
        await park.wait_open()
        await owner.set_mode("auto")
        park.answer_with("reject")
        await stage.ended(owner, accepted.turn_id)
        assert states(owner) == ["refused", "returned"]
        assert len(stage.editor.questions) == 1


async def test_a_mode_cannot_be_set_where_nothing_can_be_kept(tmp_path: Path) -> None:
    """Row J6: a broken journal refuses it, and the mode stays."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        assert owner.journal is not None
        owner.journal.broken = "The disk is full."
        with pytest.raises(Refused) as refused:
            await owner.set_mode("auto")
        assert refused.value.kind == "journalBroken"
        assert owner.view().mode == "ask"


async def test_settings_are_those_of_a_new_session(tmp_path: Path) -> None:
    """Mode of the settings: taken at creation; a session there is already keeps its own."""
    async with staged(tmp_path, settings=Settings(mode="edits")) as stage:
        owner = await stage.session()
        assert owner.view().mode == "edits"
        stage.house.world.settings = Settings(mode="auto")
        assert owner.view().mode == "edits"
        assert (await stage.session()).view().mode == "auto"


async def test_no_folder_is_open(tmp_path: Path) -> None:
    """Row S7: the agent talks and has no files: the tools stay offered, and each says why not."""
    async with staged(tmp_path, asks(write("a.txt", "1"), read("b.txt"), run("ls")), says("I have no files.")) as stage:
        owner = await stage.session("auto", folder=False)
        assert owner.view().workspace is None
        assert (await stage.say(owner)).reason == "done"
        assert [offer.name for offer in stage.model.requests[0].tools] == sorted(owner.world.tools)
        assert stage.model.requests[0].system.endswith(SYSTEM_WITHOUT_FILES)
        assert set(states(owner)) <= {"refused", "failed"}
        assert list(stage.root.iterdir()) == []


async def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    """Row S7: a session whose folder does not exist any more talks on without files."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
    (tmp_path / "ws").rename(tmp_path / "elsewhere")
    async with staged(tmp_path, says("hello"), life=2) as stage:
        stage.root.rmdir()
        owner = await stage.opened(owner.session_id)
        assert (await stage.say(owner)).reason == "done"
        assert [offer.name for offer in stage.model.requests[0].tools] == sorted(owner.world.tools)


async def test_a_tool_of_no_such_name(tmp_path: Path) -> None:
    """G1: an unknown tool is refused with a reply; the turn goes on."""
    async with staged(tmp_path, asks(call("fly_to_moon")), says("ok")) as stage:
        owner = await stage.session("auto")
        assert (await stage.say(owner)).reason == "done"
        assert states(owner) == ["refused"]
        assert calls_of(owner)[0].reply is not None
        assert calls_of(owner)[0].reply.reason == "unknown_tool"  # type: ignore[union-attr]  # asserted above
