"""A change through the editor over the wire: `workspace/applyEdit` with a version, and the habits of several editors
(row V2, docs/buffers.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import ErrorAnswer, Json

DISK, NEW = "one\ntwo\n", "one\nTWO\n"
EDIT = "replace two with TWO in a.txt"
ABLE: Json = {"permission": True, "userAsk": True, "save": True}
EDITS: Json = {"applyEdit": True, "workspaceEdit": {"documentChanges": True}}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        servers.root.joinpath("a.txt").write_text(DISK)
        yield servers


class Editor:
    """A client with `a.txt` open. `edit` answers `workspace/applyEdit`, `save` answers `document/save`."""

    def __init__(self, servers: ServerProcesses, edits: Json = EDITS, answers_edits: bool = True) -> None:
        capabilities = {"workspace": edits, "experimental": {"steadyhand": ABLE}}
        self.client = servers.start_checked(capabilities=capabilities, options={"mode": "auto"})
        self.path = servers.root / "a.txt"
        self.uri = self.path.as_uri()
        self.text, self.version = DISK, 1
        document = {"uri": self.uri, "languageId": "plaintext", "version": 1, "text": DISK}
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        if answers_edits:
            self.client.answer_with("workspace/applyEdit", self.edit)
        self.client.answer_with("steadyhand/document/save", self.save)
        self.session = self.client.ours("session/create")

    def change(self, text: str) -> None:
        self.text, self.version = text, self.version + 1
        document = {"uri": self.uri, "version": self.version}
        self.client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def edit(self, params: Json) -> Json:
        (change,) = params["edit"]["documentChanges"]
        if change["textDocument"] != {"uri": self.uri, "version": self.version}:
            return {"applied": False, "failureReason": "the document has another version"}
        (one,) = change["edits"]
        lines = self.text.splitlines(keepends=True)
        start, end = one["range"]["start"], one["range"]["end"]
        before = "".join(lines[: start["line"]]) + lines[start["line"]][: start["character"]]
        after = "".join(lines[end["line"] :])[end["character"] :]
        self.change(before + one["newText"] + after)
        return {"applied": True}

    def save(self, params: Json) -> Json:
        if params != {"uri": self.uri, "version": self.version}:
            return {"saved": False}
        self.path.write_text(self.text)
        self.client.notify("textDocument/didSave", {"textDocument": {"uri": self.uri}})
        return {"saved": True}

    def run(self, text: str = EDIT) -> Json:
        """The last call of one turn."""
        turn_id = self.client.send_prompt(self.session, text)["turnId"]
        self.client.ended(turn_id)
        *_, call = self.client.calls(turn_id)
        found: Json = call
        return found

    def requests(self, method: str) -> int:
        return sum(message.get("method") == method for message in self.client.messages)


def test_edit_of_an_open_document_is_one_range_with_its_version(servers: ServerProcesses) -> None:
    """V2, case 70: the editor changes its text and saves it; the call has the file as it is on the disk."""
    editor = Editor(servers)
    call = editor.run()
    assert (call["state"], editor.text, editor.path.read_text()) == ("returned", NEW, NEW)
    (change,) = editor.client.asked("workspace/applyEdit")["params"]["edit"]["documentChanges"]
    assert change["edits"] == [
        {"range": {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}, "newText": "TWO"}
    ]
    assert [file["change"] for file in call["files"]] == ["modified"]


def test_text_typed_meanwhile_is_never_overwritten(servers: ServerProcesses) -> None:
    """V2: the editor has a later version when the edit comes; it refuses, and the call failed."""
    editor = Editor(servers)

    def late(params: Json) -> Json:
        editor.change(DISK + "typed\n")
        return editor.edit(params)

    editor.client.answer_with("workspace/applyEdit", late)
    call = editor.run()
    assert (call["state"], call["reason"]) == ("failed", "changed")
    assert "the document has another version" in call["reply"]["text"]
    assert (editor.text, editor.path.read_text()) == (DISK + "typed\n", DISK)


def test_editor_that_reports_changes_after_its_answer_is_waited_for(servers: ServerProcesses) -> None:
    """V2: some editors collect changes before they send them (`debounce_text_changes` of Neovim)."""
    editor = Editor(servers, answers_edits=False)
    turn_id = editor.client.send_prompt(editor.session, EDIT)["turnId"]
    asked = editor.client.server_request("workspace/applyEdit")
    editor.client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"applied": True}})
    editor.edit(asked["params"])
    editor.client.ended(turn_id)
    assert editor.path.read_text() == NEW


def says_applied(_: object) -> Json:
    return {"applied": True}


def says_garbage(_: object) -> Json:
    return {"applied": "yes"}


def says_error(_: object) -> Json:
    raise ErrorAnswer({"code": -32603, "message": "no"})


@pytest.mark.parametrize("answer", [says_applied, says_garbage, says_error])
def test_answer_without_the_text_leaves_the_call_unknown(
    servers: ServerProcesses, answer: Callable[[object], Json]
) -> None:
    """V2: "applied" for another version, a broken answer and an error prove nothing; the edit may come late. When it
    comes and is saved, the effect is settled."""
    editor = Editor(servers)
    editor.client.answer_with("workspace/applyEdit", answer)
    call = editor.run()
    assert call["state"] == "unknown"
    assert editor.path.read_text() == DISK
    editor.change(NEW)
    editor.path.write_text(NEW)
    editor.client.notify("textDocument/didSave", {"textDocument": {"uri": editor.uri}})
    editor.client.notification(
        "steadyhand/recovery/changed", 60, lambda shown: not shown["calls"] and bool(shown["settled"])
    )


def test_editor_without_the_method_changed_nothing(servers: ServerProcesses) -> None:
    """V2: "method not found" is a certain no."""
    editor = Editor(servers)

    def missing(_: object) -> Json:
        raise ErrorAnswer({"code": -32601, "message": "no such method"})

    editor.client.answer_with("workspace/applyEdit", missing)
    assert (editor.run()["state"], editor.path.read_text()) == ("failed", DISK)


@pytest.mark.parametrize(
    "edits", [{}, {"applyEdit": True}, {"applyEdit": True, "workspaceEdit": {"documentChanges": False}}]
)
def test_editor_that_takes_no_versions_gets_no_edit(servers: ServerProcesses, edits: Json) -> None:
    """V1: the file is written on the disk, as before; the editor reads it again."""
    editor = Editor(servers, edits=edits)
    assert editor.run()["state"] == "returned"
    assert (editor.requests("workspace/applyEdit"), editor.path.read_text()) == (0, NEW)


def test_unsaved_text_is_edited_and_stays_unsaved(servers: ServerProcesses) -> None:
    """V1, V2: no question, no save; the reply says that it is not saved, and `files` is empty."""
    editor = Editor(servers)
    editor.change(DISK + "typed\n")
    call = editor.run()
    assert call["reply"]["text"].endswith("[not saved: the editor holds unsaved changes]")
    assert (editor.text, editor.path.read_text()) == (NEW + "typed\n", DISK)
    assert call.get("files", []) == []
    assert editor.requests("steadyhand/document/save") == editor.requests("steadyhand/user/ask") == 0


def test_document_that_the_editor_read_again_is_not_newer(servers: ServerProcesses) -> None:
    """V1: after another program wrote the file, the editor reads it again and sends a change, never a save; what the
    person types then is over the file as the editor has it."""
    editor = Editor(servers)
    editor.path.write_text(DISK + "other\n")
    editor.change(DISK + "other\n")
    editor.change(DISK + "other\ntyped\n")
    call = editor.run()
    assert call["reply"]["text"].endswith("[not saved: the editor holds unsaved changes]")
    assert editor.requests("steadyhand/user/ask") == 0


def test_server_killed_while_the_edit_is_open_is_settled_by_the_next_one(servers: ServerProcesses) -> None:
    """V2, B3: the editor applies and saves after the server died. The next server finds the text in both halves."""
    editor = Editor(servers, answers_edits=False)
    editor.client.send_prompt(editor.session, EDIT)
    editor.client.server_request("workspace/applyEdit")
    servers.kill()
    editor.path.write_text(NEW)
    again = servers.start_checked(options={"mode": "auto"})
    document = {"uri": editor.uri, "languageId": "plaintext", "version": 1, "text": NEW}
    again.notify("textDocument/didOpen", {"textDocument": document})
    again.ours("session/open", sessionId=editor.session["sessionId"])
    (settled,) = again.ours("recovery/snapshot", sessionId=editor.session["sessionId"])["settled"]
    assert (settled["settled"], editor.path.read_text()) == ("checked_present", NEW)
