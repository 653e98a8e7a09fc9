"""Grants beyond the session over the wire: remembered over a restart, listed, taken back by every door (row G2)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_client import PATHS, CheckedClient, Desk
from tests.support.raw_client import ErrorAnswer, Json

run_s_max = 30


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place whose servers are ended and checked."""
    made = Desk.under(tmp_path)
    yield made
    made.close()


def asked(client: CheckedClient) -> list[Json]:
    return [message["params"] for message in client.messages if message.get("method") == "steadyhand/permission/ask"]


def command_line(desk: Desk, *words: str) -> Json:
    """What `steadyhand … --json` answers."""
    command = [sys.executable, "-m", "steadyhand", *words, "--json", "--state-dir", str(desk.state)]
    done = subprocess.run(command, capture_output=True, env=PATHS, cwd=desk.root, timeout=run_s_max, check=True)
    answer: Json = json.loads(done.stdout)
    return answer


def test_remembered_listed_and_taken_back(desk: Desk) -> None:
    """G2: asked once in a workspace and once for all, over a killed server; taken back by command and command line."""
    client = desk.server(
        permission=lambda question: {"option": "workspace" if "a.txt" in question["title"] else "user"}
    )
    session = client.ours("session/create")
    assert client.say(session, "write a.txt with a\nrun true")["reason"] == "done"
    assert [option["id"] for option in asked(client)[0]["options"]] == [
        "once",
        "session",
        "workspace",
        "user",
        "reject",
    ]
    assert [record["answer"] for record in desk.journal(session["sessionId"]) if record["kind"] == "permission"] == [
        *("workspace", "user"),
    ]
    client.kill()
    client = desk.server(permission="reject")
    session = client.ours("session/create")
    assert client.say(session, "write b.txt with b\nrun true")["reason"] == "done"
    assert (asked(client), desk.content("b.txt")) == ([], "b")
    (file, command) = client.command("permissions.list")["grants"]
    assert (file["lasts"], file["tool"], file["workspace"]) == ("workspace", "write_file", str(desk.root.resolve()))
    assert (command["lasts"], command["command"], command["cwd"]) == ("user", "true", ".")
    assert client.command("permissions.forget", {"grantId": file["grantId"]})["grants"] == [command]
    with pytest.raises(ErrorAnswer):
        client.command("permissions.forget", {"grantId": file["grantId"]})
    client.say(session, "write c.txt with c\nrun true")
    assert ([question["title"] for question in asked(client)], desk.content("c.txt")) == (["write_file: c.txt"], None)
    assert command_line(desk, "permissions")["grants"] == [command]
    assert command_line(desk, "permissions", "forget", command["grantId"][:12])["grants"] == []
    client.say(session, "run true")
    assert len(asked(client)) == 2, "what another process took back counts at once"


def test_of_a_session(desk: Desk) -> None:
    """G2: a session's own is listed while it is open, and taken back by the same command."""
    client = desk.server(permission="session")
    session = client.ours("session/create")
    client.say(session, "write a.txt with a\nwrite b.txt with b")
    assert len(asked(client)) == 1
    (grant,) = client.command("permissions.list")["grants"]
    assert (grant["lasts"], grant["tool"], grant["sessionId"]) == ("session", "write_file", session["sessionId"])
    assert client.command("permissions.forget", {"grantId": grant["grantId"]}) == {"grants": []}
    assert desk.kinds(session["sessionId"])[-1] == "forget"
    client.say(session, "write c.txt with c")
    assert len(asked(client)) == 2
