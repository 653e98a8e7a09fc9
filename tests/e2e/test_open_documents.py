"""Files open in the editor: the server keeps unsaved text, and never takes saved text for unsaved (V1, V2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.systems import linux_only

pytestmark = linux_only


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def opens(client: CheckedClient, path: Path, text: str) -> None:
    item = {"uri": path.as_uri(), "languageId": "plaintext", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": item})


def changes(client: CheckedClient, path: Path, version: int, text: str) -> None:
    document = {"uri": path.as_uri(), "version": version}
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})


def written(client: CheckedClient, session: dict[str, object], text: str) -> tuple[str, str | None]:
    """(state, reason) of the write call of a whole turn; the file is read before it (V3)."""
    started = client.send_prompt(session, f"write a.txt with {text}")
    client.ended(started["turnId"])
    reading, call = client.calls(started["turnId"])
    assert (reading["tool"], call["tool"]) == ("read_file", "write_file")
    return call["state"], call.get("reason")


def test_document_opened_with_unsaved_text_is_not_overwritten(servers: ServerProcesses) -> None:
    """V1, V2: an editor restores unsaved text, or opens it for a restarted server: the write is refused as unsaved.
    After the save it runs."""
    path = servers.root / "a.txt"
    path.write_text("on disk\n")
    client = servers.start_checked(options={"mode": "auto"})
    opens(client, path, "typed, not saved\n")
    session = client.ours("session/create")
    assert written(client, session, "agent") == ("refused", "unsaved")
    assert path.read_text() == "on disk\n"
    path.write_text("typed, not saved\n")
    client.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
    assert written(client, session, "agent") == ("returned", None)
    assert path.read_text() == "agent"


def test_unsaved_document_below_a_linked_workspace_is_not_overwritten(servers: ServerProcesses) -> None:
    """V1, V2: the editor spells every document through the link; the server reads its unsaved text and does not
    overwrite it."""
    (servers.root / "a.txt").write_text("on disk\n")
    came = servers.root.parent / "came"
    came.symlink_to(servers.root)
    client = servers.start_checked(options={"mode": "auto"}, folders=[came])
    opens(client, came / "a.txt", "on disk\n")
    changes(client, came / "a.txt", 2, "typed\n")
    session = client.ours("session/create")
    started = client.send_prompt(session, "show a.txt")
    client.ended(started["turnId"])
    (call,) = client.calls(started["turnId"])
    assert call["reply"]["text"].startswith("typed\n")
    assert written(client, session, "agent") == ("refused", "unsaved")
    assert (servers.root / "a.txt").read_text() == "on disk\n"


def test_document_reloaded_after_a_write_counts_as_saved(servers: ServerProcesses) -> None:
    """V2: after a write under an open document, the editor reloads it and sends a change, but never a save."""
    path = servers.root / "a.txt"
    path.write_bytes(b"one\r\n")
    client = servers.start_checked(options={"mode": "auto"})
    opens(client, path, "one\r\n")
    session = client.ours("session/create")
    assert written(client, session, "two") == ("returned", None)
    assert written(client, session, "three") == ("returned", None), "the editor has not read it again yet"
    changes(client, path, 2, "three")
    assert written(client, session, "four") == ("returned", None)
    changes(client, path, 3, "typed")
    assert written(client, session, "five") == ("refused", "unsaved")
    assert path.read_text() == "four"


def test_new_document_counts_as_unsaved_only_with_text(servers: ServerProcesses) -> None:
    """V2: an editor opens a name that does not exist yet; the document is unsaved only if it has text."""
    path = servers.root / "a.txt"
    client = servers.start_checked(options={"mode": "auto"})
    opens(client, path, "")
    session = client.ours("session/create")
    assert written(client, session, "new") == ("returned", None)
    path.unlink()
    changes(client, path, 2, "typed")
    assert written(client, session, "other") == ("refused", "unsaved")
    assert not path.exists()
