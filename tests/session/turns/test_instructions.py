"""AGENTS.md of the workspace in the system text: read once, stored, the same for the whole session (rows G5, P4)."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from steadyhand.domain.model.messages import ProviderError
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Instructions
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.types import Warned
from steadyhand.ports.editor import OpenDocument
from steadyhand.session.service import prompt_queue
from steadyhand.session.session import Session
from steadyhand.session.turns.instructions import AGENTS, INSTRUCTIONS_BYTES_MAX
from steadyhand.session.turns.system_text import SYSTEM, SYSTEM_WITHOUT_FILES, fixed_text
from tests.support.fakes import FakeClock
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, read, says
from tests.support.session_state import kinds, on_disk
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio


def system_texts(stage: InProcessServer) -> list[str]:
    return [request.system for request in stage.model.requests]


def warnings(stage: InProcessServer) -> list[str]:
    return [notification.event.text for notification in stage.numbered() if isinstance(notification.event, Warned)]


def stored_instructions(session: Session) -> list[str]:
    return [record.text for record in on_disk(session) if isinstance(record, Instructions)]


async def test_instructions_stay_the_same_for_the_whole_session(tmp_path: Path) -> None:
    """Rows G5, P4: The text is the same, byte for byte, in every request: after a change, after a restart, and when
    the file is gone."""
    async with scripted_server(tmp_path, asks(read("a.txt")), says("1"), says("2")) as stage:
        (stage.root / AGENTS).write_text("Use tabs.\n")
        session = await stage.session()
        await stage.say(session, "one", "c1")
        (stage.root / AGENTS).write_text("Use spaces.\n")
        await stage.say(session, "two", "c2")
        first = system_texts(stage)[0]
        assert first.startswith(SYSTEM)
        assert first.endswith("It says:\n\nUse tabs.\n")
        assert system_texts(stage) == [first] * 3
        assert stored_instructions(session) == [first.removeprefix(fixed_text(session))]
        state = stage.crashed(tmp_path / "later")
        newer = await stage.session()
        await stage.say(newer, "one", "c1")
        assert system_texts(stage)[-1].endswith("Use spaces.\n"), "another session reads the file again"
    (tmp_path / "ws" / AGENTS).unlink()
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        await stage.say(again, "three", "c3")
        assert system_texts(stage) == [first]
        assert warnings(stage) == []


async def test_instructions_are_durable_before_the_first_request(tmp_path: Path) -> None:
    """Row P4: The journal holds the record when the server asks the model for the first time. After a kill the
    record still counts."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate]) as stage:
        (stage.root / AGENTS).write_text("Use tabs.")
        session = await stage.session()
        await stage.send(session, "one", "c1")
        await gate.wait_reached()
        assert len(stored_instructions(session)) == 1
        state = stage.crashed(tmp_path / "later")
        first = system_texts(stage)[0]
    (tmp_path / "ws" / AGENTS).write_text("Use spaces.")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        await stage.say(again, "two", "c2")
        assert system_texts(stage) == [first]


async def test_instructions_added_after_the_first_request_are_ignored(tmp_path: Path) -> None:
    """Row P4: A session that asked its model before the file existed stays as it is. A slash command asks no model,
    and a request that failed leaves nothing to keep."""
    async with scripted_server(tmp_path, [ProviderError("No key.")], says("1"), says("2")) as stage:
        session = await stage.session()
        await stage.say(session, "/help", "c0")
        await stage.say(session, "one", "c1")
        (stage.root / AGENTS).write_text("Use tabs.")
        await stage.say(session, "two", "c2")
        assert [system.endswith("Use tabs.") for system in system_texts(stage)] == [False, True]
        other = await stage.session()
        (stage.root / AGENTS).unlink()
        await stage.say(other, "one", "c1")
        (stage.root / AGENTS).write_text("Use tabs.")
        await stage.say(other, "two", "c2")
        assert system_texts(stage)[-2:] == [fixed_text(other)] * 2
        assert "instructions" not in kinds(other)


@pytest.mark.parametrize("size", [INSTRUCTIONS_BYTES_MAX, INSTRUCTIONS_BYTES_MAX + 1])
async def test_instructions_above_the_bound_are_cut_with_a_warning(tmp_path: Path, size: int) -> None:
    """Row G5 [I13]: At the bound the text is whole. Above it the server takes whole lines and tells the model and
    the user."""
    async with scripted_server(tmp_path) as stage:
        line = ("é" * 15 + "\n").encode()
        (stage.root / AGENTS).write_bytes((line * (size // len(line))).ljust(size, b"x"))
        session = await stage.session()
        await stage.say(session, "one", "c1")
        (system,) = system_texts(stage)
        cut = size > INSTRUCTIONS_BYTES_MAX
        assert ("Read the file for the rest." in system) == cut
        assert len(warnings(stage)) == cut
        if cut:
            assert f"it has {size} bytes" in warnings(stage)[0]
            assert system.split("It says:\n\n")[1].rpartition("\n[")[0].endswith("é\n")


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"\xff\xfe\x00", "UTF-16"), (b"\x7fELF\0\0\0\0" * 9, "binary"), (b"", "is empty")],
)
async def test_instructions_that_are_no_text_are_skipped_with_the_reason(
    tmp_path: Path, content: bytes, why: str
) -> None:
    """Row G5: A file that is no text gives no instructions. The user is told once, and the turn goes on."""
    async with scripted_server(tmp_path) as stage:
        (stage.root / AGENTS).write_bytes(content)
        session = await stage.session()
        assert (await stage.say(session, "one", "c1")).reason == "done"
        await stage.say(session, "two", "c2")
        assert system_texts(stage) == [fixed_text(session)] * 2
        (text,) = warnings(stage)
        assert text.startswith("AGENTS.md is not used. ")
        assert why in text


async def test_instructions_linked_from_outside_are_skipped(tmp_path: Path) -> None:
    """Row E3, case 104: A file outside the workspace is no part of it."""
    async with scripted_server(tmp_path) as stage:
        (tmp_path / "outside.md").write_text("from outside")
        (stage.root / AGENTS).symlink_to(tmp_path / "outside.md")
        session = await stage.session()
        await stage.say(session, "one", "c1")
        assert system_texts(stage) == [fixed_text(session)]
        assert "outside the workspace" in warnings(stage)[0]


async def test_instructions_of_an_untrusted_workspace_are_skipped(tmp_path: Path) -> None:
    """Row G2: A workspace without trust gives no instructions, and the server says so."""
    async with scripted_server(tmp_path, settings=Settings(trusted=False)) as stage:
        (stage.root / AGENTS).write_text("Use tabs.")
        session = await stage.session()
        await stage.say(session, "one", "c1")
        assert system_texts(stage) == [fixed_text(session)]
        assert "not trusted" in warnings(stage)[0]


async def test_instructions_with_unsaved_changes_come_from_the_editor(tmp_path: Path) -> None:
    """Row V1: If the file is open with unsaved changes, the server takes the editor's text."""
    async with scripted_server(tmp_path) as stage:
        (stage.root / AGENTS).write_text("Use tabs.")
        stage.editor.documents[str(stage.root / AGENTS)] = OpenDocument("Use spaces.", 2, True)
        session = await stage.session()
        await stage.say(session, "one", "c1")
        assert system_texts(stage)[0].endswith("Use spaces.")


async def test_instructions_without_folder_or_file_are_silent(tmp_path: Path) -> None:
    """Rows S7, G5: The server reads, records and says nothing."""
    async with scripted_server(tmp_path) as stage:
        session, folderless = await stage.session(), await stage.session(folder=False)
        await stage.say(session, "one", "c1")
        await stage.say(folderless, "one", "c1")
        assert system_texts(stage) == [fixed_text(session), fixed_text(folderless)]
        assert fixed_text(folderless).startswith(SYSTEM + SYSTEM_WITHOUT_FILES)
        assert warnings(stage) == []
        assert "instructions" not in [*kinds(session), *kinds(folderless)]


async def test_instructions_read_for_a_quick_question_stay_the_same(tmp_path: Path) -> None:
    """Rows S2, P4: Whichever request is the first, the text is the same from then on."""
    async with scripted_server(tmp_path) as stage:
        (stage.root / AGENTS).write_text("Use tabs.")
        session = await stage.session()
        accepted = await prompt_queue.submit(session, session.epoch, "q1", Prompt("quick", aside=True))
        await stage.ended(session, accepted.turn_id)
        (stage.root / AGENTS).write_text("Use spaces.")
        await stage.say(session, "one", "c1")
        assert system_texts(stage)[0].endswith("Use tabs.")
        assert system_texts(stage) == [system_texts(stage)[0]] * 2


async def test_system_text_names_shell_system_folder_and_date(tmp_path: Path) -> None:
    """Case 120: The model learns where its commands run. The text is the same on the next day and after a restart,
    because the date is the session's first day (row P4)."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        await stage.say(session, "one", "c1")
        (system,) = system_texts(stage)
        assert session.ledger.created is not None
        for named in ("/bin/sh", "Linux", str(stage.root), f"began on {session.ledger.created[:10]} (UTC)"):
            assert named in system
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, state=state, run=2) as stage:
        again = await stage.opened(session.session_id)
        cast("FakeClock", again.context.clock).advance(3 * 24 * 3600)
        await stage.say(again, "two", "c2")
        assert system_texts(stage) == [system]
