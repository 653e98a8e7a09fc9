"""Files open in the editor: unsaved text is never overwritten, and saved text is never taken for unsaved (V1, V2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_client import CheckedClient, Desk
from tests.support.systems import linux_only

pytestmark = linux_only


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk.under(tmp_path)
    yield desk
    for server in desk.servers:
        server.close()


def opens(client: CheckedClient, path: Path, text: str) -> None:
    item = {"uri": path.as_uri(), "languageId": "plaintext", "version": 1, "text": text}
    client.notify("textDocument/didOpen", {"textDocument": item})


def changes(client: CheckedClient, path: Path, version: int, text: str) -> None:
    document = {"uri": path.as_uri(), "version": version}
    client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})


def written(client: CheckedClient, session: dict[str, object], text: str) -> tuple[str, str | None]:
    """(state, reason) of the write of a whole turn."""
    started = client.send_prompt(session, f"write a.txt with {text}")
    client.ended(started["turnId"])
    (call,) = client.calls(started["turnId"])
    return call["state"], call.get("reason")


def test_a_document_that_comes_unsaved_is_not_overwritten(desk: Desk) -> None:
    """V1, V2: an editor restores unsaved text, or tells a restarted server of it: its file says that it is unsaved.
    Once it is saved it may be written."""
    path = desk.root / "a.txt"
    path.write_text("on disk\n")
    client = desk.server(options={"mode": "auto"})
    opens(client, path, "typed, not saved\n")
    session = client.ours("session/create")
    assert written(client, session, "agent") == ("refused", "unsaved")
    assert path.read_text() == "on disk\n"
    path.write_text("typed, not saved\n")
    client.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})
    assert written(client, session, "agent") == ("returned", None)
    assert path.read_text() == "agent"


def test_a_workspace_that_the_editor_came_to_through_a_link(desk: Desk) -> None:
    """V1, V2: the editor spells every document through the link; its unsaved text is read and not overwritten."""
    (desk.root / "a.txt").write_text("on disk\n")
    came = desk.root.parent / "came"
    came.symlink_to(desk.root)
    client = desk.server(options={"mode": "auto"}, folders=[came])
    opens(client, came / "a.txt", "on disk\n")
    changes(client, came / "a.txt", 2, "typed\n")
    session = client.ours("session/create")
    started = client.send_prompt(session, "show a.txt")
    client.ended(started["turnId"])
    (call,) = client.calls(started["turnId"])
    assert call["reply"]["text"].startswith("typed\n")
    assert written(client, session, "agent") == ("refused", "unsaved")
    assert (desk.root / "a.txt").read_text() == "on disk\n"


def test_a_document_read_again_by_the_editor_is_saved(desk: Desk) -> None:
    """V2: after a write under an open document the editor reads it again and tells a change, never a save."""
    path = desk.root / "a.txt"
    path.write_bytes(b"one\r\n")
    client = desk.server(options={"mode": "auto"})
    opens(client, path, "one\r\n")
    session = client.ours("session/create")
    assert written(client, session, "two") == ("returned", None)
    assert written(client, session, "three") == ("returned", None), "the editor has not read it again yet"
    changes(client, path, 2, "three")
    assert written(client, session, "four") == ("returned", None)
    changes(client, path, 3, "typed")
    assert written(client, session, "five") == ("refused", "unsaved")
    assert path.read_text() == "four"


def test_a_new_document_without_text_stands_in_no_way(desk: Desk) -> None:
    """V2: an editor opens a name that is not there yet; with text in it, it is unsaved."""
    path = desk.root / "a.txt"
    client = desk.server(options={"mode": "auto"})
    opens(client, path, "")
    session = client.ours("session/create")
    assert written(client, session, "new") == ("returned", None)
    path.unlink()
    changes(client, path, 2, "typed")
    assert written(client, session, "other") == ("refused", "unsaved")
    assert not path.exists()
