"""A secret in the output of a command: where it stays, and where it never appears (case 106; rows E2, J3, J10)."""

from __future__ import annotations

import json
import logging
import stat
from pathlib import Path

import pytest

from steadyhand.adapters.logs import RedactingFormatter
from steadyhand.domain.records.record import Assistant, ToolResult, User
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.session.service import session_settings
from tests.support.in_process_server import practice_server
from tests.support.session_state import on_disk, replies
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]

SECRET = "abc123fake"
PROMPT = f"write made.txt with token={SECRET}\nrun echo token={SECRET} | tee ran.txt"


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace.under(tmp_path)


async def test_secret_in_output_stands_in_no_receipt_log_or_message(
    place: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    """Case 106, E2, J3, J10: receipts hold digests, so only the conversation has the value. No message and no log line
    has it, and the files of the session are the user's alone. What a tool and a command write is byte-true."""
    caplog.set_level(logging.DEBUG)
    async with practice_server(place) as server:
        session = await server.session("auto")
        await server.say(session, PROMPT)
        assert place.content("made.txt") == f"token={SECRET}"
        assert place.content("ran.txt") == f"token={SECRET}\n"
        assert f"token={SECRET}" in replies(session)[2]
        with_it = {type(record) for record in on_disk(session) if SECRET in repr(record)}
        titles = {record.kind for record in on_disk(session) if SECRET in repr(record)} - {"user", "assistant", "tool"}
        assert with_it >= {User, Assistant, ToolResult}
        assert titles <= {"title", "permission"}  # the first line of the prompt; the text of the command
        told = [one for one in server.editor.told if isinstance(one, MessageNotification)]
        assert SECRET not in repr(told) + caplog.text
        folder = place.session_directory(session.session_id)
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}
        assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*")) if path.is_dir()} == {0o700}


async def test_redacted_export_hides_the_secret_and_changes_nothing_stored(place: Workspace) -> None:
    """Case 106: redaction is asked for, is of the export alone, and leaves harmless text and the JSON as they are."""
    async with practice_server(place) as server:
        session = await server.session("auto")
        await server.say(session, f"{PROMPT}\nsay the tokens are 12 and the key idea stays")
        before = [repr(record) for record in on_disk(session)]
        plain = session_settings.export_text(session, "markdown")
        assert plain.count(SECRET) >= 4
        for form in ("markdown", "json"):
            text = session_settings.export_text(session, form, redacted=True)
            assert SECRET not in text
            assert "made.txt" in text
            assert "the tokens are 12 and the key idea stays" in text
        found = json.loads(session_settings.export_text(session, "json", redacted=True))
        calls = [call for message in found["messages"] for call in message.get("calls", [])]
        assert [list(json.loads(call["arguments"])) for call in calls] == [["path"], ["content", "path"], ["command"]]
        assert [repr(record) for record in on_disk(session)] == before
        assert session_settings.export_text(session, "markdown") == plain
        await server.say(session, "show made.txt")
        assert f"token={SECRET}" in replies(session)[-1]


async def test_redacted_export_hides_the_known_values(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 106: the value of a variable that is a credential's is hidden wherever it stands, without a name beside."""
    monkeypatch.setenv("DEPLOY_PASSWORD", "correct-horse-battery")
    async with practice_server(place) as server:
        session = await server.session("auto")
        await server.say(session, "say it was correct-horse-battery then")
        assert "correct-horse-battery" in session_settings.export_text(session, "markdown")
        assert "correct-horse-battery" not in session_settings.export_text(session, "markdown", redacted=True)


def test_log_line_holds_no_credential_of_an_exception() -> None:
    """E2, case 106: the log's lines are redacted by key and by known value, the text of an exception too."""
    try:
        raise ValueError(f"bad header Authorization: Bearer {SECRET}-long and known-value-of-mine")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "failed with password=%s", (SECRET,), None)
        record.exc_info = (type(error), error, error.__traceback__)
    line = RedactingFormatter({"MY_TOKEN": "known-value-of-mine", "HOME": "/root"}).format(record)
    assert SECRET not in line
    assert "known-value-of-mine" not in line
    assert line.startswith("failed with ***\n")
    assert "ValueError: bad header" in line
