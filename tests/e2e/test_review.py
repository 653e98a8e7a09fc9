"""The review of changes over stdio: requests, commands, code actions, and their refusals (row V4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import RawClient


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def actions_at(client: RawClient, uri: str, *lines: int) -> list[dict[str, Any]]:
    """The code actions between two lines, else at the beginning."""
    document = {"uri": uri}
    start, end = ({"line": line, "character": 0} for line in (lines or (0, 0)))
    params = {"textDocument": document, "range": {"start": start, "end": end}, "context": {"diagnostics": []}}
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


def run(client: CheckedClient, action: dict[str, Any]) -> Any:
    """Execute the command of a code action, as any LSP client does."""
    return client.command(action["command"]["command"].removeprefix("steadyhand."), *action["command"]["arguments"])


def states_of(listed: Any) -> list[str]:
    return [hunk["state"] for file in listed["files"] for hunk in file["hunks"]]


def test_hunks_are_kept_and_undone_at_their_lines_by_a_plain_client(servers: ServerProcesses) -> None:
    """V4: a code action is offered at the lines of a hunk and nowhere else, for each hunk that the selection touches;
    a person's edit moves it, and stays; a kill changes no state.
    """
    client = servers.start_checked()
    session = client.ours("session/create")
    path = servers.root / "a.txt"
    path.write_text("one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    for change in ("two with TWO", "four with FOUR", "seven with SEVEN"):
        client.say(session, f"replace {change} in a.txt")
    uri = path.as_uri()
    (file,) = client.ours("review/list", sessionId=session["sessionId"])["files"]
    line = [hunk["after"]["start"]["line"] for hunk in file["hunks"]]
    assert (file["change"], line) == ("modified", [1, 3, 6])
    assert file["hunks"][2]["before"] == {"start": {"line": 6, "character": 0}, "end": {"line": 7, "character": 0}}
    assert [actions_at(client, uri, at, at) for at in (0, 2, 4, 5)] == [[]] * 4
    both = actions_at(client, uri, 2, 6)[0]["command"]["arguments"][0]["hunkIds"]
    assert both == [hunk["hunkId"] for hunk in file["hunks"][1:]]

    keep, _ = actions_at(client, uri, 1, 1)
    assert states_of(run(client, keep)) == ["kept", "new", "new"]
    path.write_text("mine\n" + path.read_text().replace("SEVEN", "SEVEN and mine"))
    assert actions_at(client, uri, 3, 3) == []
    _, undo = actions_at(client, uri, 4, 4)
    done = run(client, undo)
    assert (done["left"], states_of(done)) == ([], ["kept", "undone", "gone"])
    assert path.read_text() == "mine\none\nTWO\nthree\nfour\nfive\nsix\nSEVEN and mine\n"
    client.kill()

    client = servers.start_checked()
    session_id = session["sessionId"]
    assert client.ours("review/list", sessionId=session_id)["files"] == done["files"]
    left = client.command("review.undo", {"sessionId": session_id, "all": True})["left"]
    assert [(one["uri"], one["why"]) for one in left] == [(uri, "changed")]
    assert states_of(client.command("review.keep", {"sessionId": session_id, "all": True})) == [
        "kept",
        "undone",
        "kept",
    ]
    assert "SEVEN and mine" in path.read_text()


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


def test_review_survives_a_compaction_and_a_kill(servers: ServerProcesses) -> None:
    """V4, K4: what is new, kept and undone stays so, in whole files and in hunks, and the decision goes on."""
    client = servers.start_checked()
    session = client.ours("session/create")
    session_id, epoch = session["sessionId"], session["epoch"]
    (servers.root / "a.txt").write_text("one\ntwo\nthree\nfour\nfive\n")
    client.say(session, "replace one with ONE in a.txt")
    client.say(session, "replace three with THREE in a.txt")
    client.say(session, "replace five with FIVE in a.txt")
    client.say(session, "write b.txt with b")
    first, *_ = client.ours("review/list", sessionId=session_id)["files"][0]["hunks"]
    chosen = {"sessionId": session_id, "epoch": epoch}
    client.ours("review/resolve", **chosen, action="undo", hunkIds=[first["hunkId"]])
    listed = client.ours("review/list", sessionId=session_id)["files"]
    second = next(one for file in listed for one in file["hunks"] if one["state"] == "new" and "after" in one)
    client.ours("review/resolve", **chosen, action="keep", hunkIds=[second["hunkId"]])
    before = client.ours("review/list", sessionId=session_id)
    assert client.ours("session/compact", sessionId=session_id, epoch=epoch)["compacted"]
    assert client.ours("review/list", sessionId=session_id) == before
    client.kill()
    client = servers.start_checked()
    assert client.ours("review/list", sessionId=session_id) == before
    done = client.command("review.undo", {"sessionId": session_id, "all": True})
    assert done["left"] == []
    assert (servers.content("a.txt"), servers.content("b.txt")) == ("one\ntwo\nTHREE\nfour\nfive\n", None)
