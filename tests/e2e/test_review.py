"""The review of changes over stdio: requests, commands, code actions, and their refusals (row V4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import RawClient

START = {"line": 0, "character": 0}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def actions_at(client: RawClient, uri: str) -> list[dict[str, Any]]:
    document = {"uri": uri}
    params = {"textDocument": document, "range": {"start": START, "end": START}, "context": {"diagnostics": []}}
    found = client.request("textDocument/codeAction", params)
    assert isinstance(found, list)
    return found


def test_changes_are_kept_and_undone_by_request_command_and_code_action(servers: ServerProcesses) -> None:
    """V4: the list of a session's files; one is undone by the code action that any LSP client offers, one is kept by
    its uri, one is undone with everything that is left; a kill in between changes no state. Selectors are checked
    first, then the session, then the epoch.
    """
    client = servers.start_checked()
    session = client.ours("session/create")
    session_id, epoch = session["sessionId"], session["epoch"]
    for name in ("a", "b", "c"):
        client.say(session, f"write {name}.txt with {name}")
    listed = client.ours("review/list", sessionId=session_id)
    assert listed["more"] == 0
    assert [(file["path"], file["change"]) for file in listed["files"]] == [
        ("a.txt", "created"), ("b.txt", "created"), ("c.txt", "created"),
    ]  # fmt: skip
    uris = [file["uri"] for file in listed["files"]]
    assert uris[0] == f"{servers.root.as_uri()}/a.txt"

    wrong = {"sessionId": session_id, "epoch": epoch, "action": "undo"}
    assert client.refusal("review/resolve", **wrong) == (-32602, "invalidParams")
    assert client.refusal("review/resolve", **wrong, all=True, uri=uris[0]) == (-32602, "invalidParams")
    assert client.refusal("review/resolve", **{**wrong, "sessionId": "0" * 32}, all=True)[1] == "unknownSession"
    assert client.refusal("review/resolve", **{**wrong, "epoch": "0" * 32}, all=True)[1] == "staleEpoch"

    keep, undo = actions_at(client, uris[0])
    assert (keep["title"], undo["title"]) == ("Steadyhand: Keep", "Steadyhand: Undo this change")
    done = client.command(undo["command"]["command"].removeprefix("steadyhand."), *undo["command"]["arguments"])
    assert done["left"] == []
    assert not (servers.root / "a.txt").exists()
    assert actions_at(client, uris[0]) == []
    kept = client.ours("review/resolve", sessionId=session_id, epoch=epoch, action="keep", uri=uris[1])
    client.kill()

    client = servers.start_checked()
    assert client.ours("review/list", sessionId=session_id)["files"] == kept["files"]
    done = client.command("review.undo", {"sessionId": session_id, "all": True})
    assert {file["path"]: [hunk["state"] for hunk in file["hunks"]] for file in done["files"]} == {
        "a.txt": ["undone"], "b.txt": ["kept"], "c.txt": ["undone"],
    }  # fmt: skip
    assert sorted(path.name for path in servers.root.glob("*.txt")) == ["b.txt"]


def test_rewind_by_request_takes_files_and_conversation_back(servers: ServerProcesses) -> None:
    """G4: the request answers with what it restored and the new epoch; the old epoch is refused; after a kill the
    conversation is still rewound, and a rewind to the rewind brings everything back.
    """
    client = servers.start_checked()
    session = client.ours("session/create")
    session_id, epoch = session["sessionId"], session["epoch"]
    client.say(session, "write a.txt with one")
    client.say(session, "write b.txt with two")
    first, second = client.ours("checkpoint/list", sessionId=session_id)["turns"]
    asked = {"sessionId": session_id, "turnId": second["turnId"], "what": "both"}
    done = client.ours("checkpoint/rewind", **asked, epoch=epoch)
    assert (done["restored"], done["left"]) == ([{"path": "b.txt", "change": "deleted"}], [])
    assert done["session"]["epoch"] != epoch
    assert client.refusal("checkpoint/rewind", **asked, epoch=epoch)[1] == "staleEpoch"
    assert client.refusal("checkpoint/rewind", **asked, epoch=done["session"]["epoch"])[0] == -32602
    client.kill()
    client = servers.start_checked()
    opened = client.ours("session/open", sessionId=session_id)
    shown = [message["text"] for message in opened["messages"] if message["role"] == "user"]
    assert shown == [first["prompt"], "Rewind to before “write b.txt with two”"]
    undo = {"sessionId": session_id, "turnId": done["undo"], "what": "both", "epoch": opened["session"]["epoch"]}
    assert client.ours("checkpoint/rewind", **undo)["restored"] == [{"path": "b.txt", "change": "created"}]
    assert sorted(path.name for path in servers.root.glob("*.txt")) == ["a.txt", "b.txt"]
