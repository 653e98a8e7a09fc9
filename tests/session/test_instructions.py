"""AGENTS.md of the workspace in the system text: read once, stored, the same for the whole session (rows G5, P4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.core.model import ModelTrouble
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import Instructions
from steadyhand.core.settings import Settings
from steadyhand.core.views import Warned
from steadyhand.ports import OpenDocument
from steadyhand.session import prompts
from steadyhand.session.asking import SYSTEM, SYSTEM_WITHOUT_FILES
from steadyhand.session.instructions import AGENTS, instructions_bytes_max
from steadyhand.session.owner import Owner
from tests.support.scripted import Gate, Stage, asks, kinds, on_disk, read, says, staged

pytestmark = pytest.mark.anyio


def systems(stage: Stage) -> list[str]:
    return [request.system for request in stage.model.requests]


def warned(stage: Stage) -> list[str]:
    return [told.event.text for told in stage.numbered() if isinstance(told.event, Warned)]


def kept(owner: Owner) -> list[str]:
    return [record.text for record in on_disk(owner) if isinstance(record, Instructions)]


async def test_it_stays_as_it_was(tmp_path: Path) -> None:
    """Rows G5, P4: byte for byte the same in every request, also after a change, after a restart, when it is gone."""
    async with staged(tmp_path, asks(read("a.txt")), says("1"), says("2")) as stage:
        (stage.root / AGENTS).write_text("Use tabs.\n")
        owner = await stage.session()
        await stage.say(owner, "one", "c1")
        (stage.root / AGENTS).write_text("Use spaces.\n")
        await stage.say(owner, "two", "c2")
        first = systems(stage)[0]
        assert first.startswith(SYSTEM)
        assert first.endswith("It says:\n\nUse tabs.\n")
        assert systems(stage) == [first] * 3
        assert kept(owner) == [first.removeprefix(SYSTEM)]
        state = stage.crashed(tmp_path / "later")
        newer = await stage.session()
        await stage.say(newer, "one", "c1")
        assert systems(stage)[-1].endswith("Use spaces.\n"), "another session reads it anew"
    (tmp_path / "ws" / AGENTS).unlink()
    async with staged(tmp_path, state=state, life=2) as stage:
        again = await stage.opened(owner.session_id)
        await stage.say(again, "three", "c3")
        assert systems(stage) == [first]
        assert warned(stage) == []


async def test_it_is_durable_before_it_goes_out(tmp_path: Path) -> None:
    """Row P4: the record stands in the journal when the model is asked for the first time; after a kill it holds."""
    gate = Gate()
    async with staged(tmp_path, [gate]) as stage:
        (stage.root / AGENTS).write_text("Use tabs.")
        owner = await stage.session()
        await stage.send(owner, "one", "c1")
        await gate.wait_reached()
        assert len(kept(owner)) == 1
        state = stage.crashed(tmp_path / "later")
        first = systems(stage)[0]
    (tmp_path / "ws" / AGENTS).write_text("Use spaces.")
    async with staged(tmp_path, state=state, life=2) as stage:
        again = await stage.opened(owner.session_id)
        await stage.say(again, "two", "c2")
        assert systems(stage) == [first]


async def test_a_session_that_went_on_without(tmp_path: Path) -> None:
    """Row P4: one that was asked before there was a file stays as it is; slash commands ask nobody, and a request that
    came to nothing leaves nothing to keep."""
    async with staged(tmp_path, [ModelTrouble("No key.")], says("1"), says("2")) as stage:
        owner = await stage.session()
        await stage.say(owner, "/help", "c0")
        await stage.say(owner, "one", "c1")
        (stage.root / AGENTS).write_text("Use tabs.")
        await stage.say(owner, "two", "c2")
        assert [system.endswith("Use tabs.") for system in systems(stage)] == [False, True]
        other = await stage.session()
        (stage.root / AGENTS).unlink()
        await stage.say(other, "one", "c1")
        (stage.root / AGENTS).write_text("Use tabs.")
        await stage.say(other, "two", "c2")
        assert systems(stage)[-2:] == [SYSTEM, SYSTEM]
        assert "instructions" not in kinds(other)


@pytest.mark.parametrize("size", [instructions_bytes_max, instructions_bytes_max + 1])
async def test_what_does_not_fit_is_said(tmp_path: Path, size: int) -> None:
    """Row G5 [I13]: at the bound it is whole; above it whole lines are taken, and model and person are told."""
    async with staged(tmp_path) as stage:
        line = ("é" * 15 + "\n").encode()
        (stage.root / AGENTS).write_bytes((line * (size // len(line))).ljust(size, b"x"))
        owner = await stage.session()
        await stage.say(owner, "one", "c1")
        (system,) = systems(stage)
        cut = size > instructions_bytes_max
        assert ("Read the file for the rest." in system) == cut
        assert len(warned(stage)) == cut
        if cut:
            assert f"it has {size} bytes" in warned(stage)[0]
            assert system.split("It says:\n\n")[1].rpartition("\n[")[0].endswith("é\n")


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"\xff\xfe\x00", "UTF-16"), (b"\x7fELF\0\0\0\0" * 9, "binary"), (b"", "is empty")],
)
async def test_what_is_not_taken_says_why(tmp_path: Path, content: bytes, why: str) -> None:
    """Row G5: no text is no instruction; the person is told once, and the turn goes on."""
    async with staged(tmp_path) as stage:
        (stage.root / AGENTS).write_bytes(content)
        owner = await stage.session()
        assert (await stage.say(owner, "one", "c1")).reason == "done"
        await stage.say(owner, "two", "c2")
        assert systems(stage) == [SYSTEM, SYSTEM]
        (text,) = warned(stage)
        assert text.startswith("AGENTS.md is not used. ")
        assert why in text


async def test_a_link_out_of_the_workspace(tmp_path: Path) -> None:
    """Row E3, case 104: what leaves the workspace is no part of it."""
    async with staged(tmp_path) as stage:
        (tmp_path / "outside.md").write_text("from outside")
        (stage.root / AGENTS).symlink_to(tmp_path / "outside.md")
        owner = await stage.session()
        await stage.say(owner, "one", "c1")
        assert systems(stage) == [SYSTEM]
        assert "outside the workspace" in warned(stage)[0]


async def test_a_workspace_that_is_not_trusted(tmp_path: Path) -> None:
    """Row G2: it gives no instructions, and that is said."""
    async with staged(tmp_path, settings=Settings(trusted=False)) as stage:
        (stage.root / AGENTS).write_text("Use tabs.")
        owner = await stage.session()
        await stage.say(owner, "one", "c1")
        assert systems(stage) == [SYSTEM]
        assert "not trusted" in warned(stage)[0]


async def test_unsaved_text_counts(tmp_path: Path) -> None:
    """Row V1: open with unsaved changes, it is what the editor shows."""
    async with staged(tmp_path) as stage:
        (stage.root / AGENTS).write_text("Use tabs.")
        stage.editor.documents[str(stage.root / AGENTS)] = OpenDocument("Use spaces.", 2, True)
        owner = await stage.session()
        await stage.say(owner, "one", "c1")
        assert systems(stage)[0].endswith("Use spaces.")


async def test_without_a_folder_or_a_file(tmp_path: Path) -> None:
    """Rows S7, G5: nothing is read, recorded or said."""
    async with staged(tmp_path) as stage:
        owner, folderless = await stage.session(), await stage.session(folder=False)
        await stage.say(owner, "one", "c1")
        await stage.say(folderless, "one", "c1")
        assert systems(stage) == [SYSTEM, SYSTEM + SYSTEM_WITHOUT_FILES]
        assert warned(stage) == []
        assert "instructions" not in [*kinds(owner), *kinds(folderless)]


async def test_a_quick_question_comes_first(tmp_path: Path) -> None:
    """Rows S2, P4: whichever request is the first, the text is the same from then on."""
    async with staged(tmp_path) as stage:
        (stage.root / AGENTS).write_text("Use tabs.")
        owner = await stage.session()
        accepted = await prompts.prompt(owner, owner.epoch, "q1", Prompt("quick", aside=True))
        await stage.ended(owner, accepted.turn_id)
        (stage.root / AGENTS).write_text("Use spaces.")
        await stage.say(owner, "one", "c1")
        assert systems(stage)[0].endswith("Use tabs.")
        assert systems(stage) == [systems(stage)[0]] * 2
