"""Grants beyond a session over the protocol: kept over a restart, listed, and revoked by command and command line (row
G2).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import PYTHON_PATH, ServerProcesses, server_processes
from tests.support.raw_client import ErrorAnswer, Json

run_s_max = 60


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def asked(client: CheckedClient) -> list[Json]:
    return [message["params"] for message in client.messages if message.get("method") == "steadyhand/permission/ask"]


def command_line(servers: ServerProcesses, *words: str) -> Json:
    """The answer of `steadyhand … --json`."""
    command = [sys.executable, "-m", "steadyhand", *words, "--json", "--state-dir", str(servers.state)]
    done = subprocess.run(
        command, capture_output=True, env=PYTHON_PATH, cwd=servers.root, timeout=run_s_max, check=True
    )
    answer: Json = json.loads(done.stdout)
    return answer


def test_grants_survive_a_kill_are_listed_and_revoked(servers: ServerProcesses) -> None:
    """G2: the server asks once in a workspace and once for all of them, over a kill; a command and the command line
    revoke a grant."""
    client = servers.start_checked(
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
    assert [record["answer"] for record in servers.records(session["sessionId"]) if record["kind"] == "permission"] == [
        *("workspace", "user"),
    ]
    client.kill()
    client = servers.start_checked(permission="reject")
    session = client.ours("session/create")
    assert client.say(session, "write b.txt with b\nrun true")["reason"] == "done"
    assert (asked(client), servers.content("b.txt")) == ([], "b")
    (file, command) = client.command("permissions.list")["grants"]
    assert (file["lasts"], file["tool"], file["workspace"]) == ("workspace", "write_file", str(servers.root.resolve()))
    assert (command["lasts"], command["command"], command["cwd"]) == ("user", "true", ".")
    assert client.command("permissions.forget", {"grantId": file["grantId"]})["grants"] == [command]
    with pytest.raises(ErrorAnswer):
        client.command("permissions.forget", {"grantId": file["grantId"]})
    client.say(session, "write c.txt with c\nrun true")
    assert ([question["title"] for question in asked(client)], servers.content("c.txt")) == (
        ["write_file: c.txt"],
        None,
    )
    assert command_line(servers, "permissions")["grants"] == [command]
    assert command_line(servers, "permissions", "forget", command["grantId"][:12])["grants"] == []
    client.say(session, "run true")
    assert len(asked(client)) == 2, "what another process took back counts at once"


def test_session_grant_is_listed_while_open_and_revoked(servers: ServerProcesses) -> None:
    """G2: a grant of one session is listed while the session is open; the same command revokes it."""
    client = servers.start_checked(permission="session")
    session = client.ours("session/create")
    client.say(session, "write a.txt with a\nwrite b.txt with b")
    assert len(asked(client)) == 1
    (grant,) = client.command("permissions.list")["grants"]
    assert (grant["lasts"], grant["tool"], grant["sessionId"]) == ("session", "write_file", session["sessionId"])
    assert client.command("permissions.forget", {"grantId": grant["grantId"]}) == {"grants": []}
    assert servers.kinds(session["sessionId"])[-1] == "forget"
    client.say(session, "write c.txt with c")
    assert len(asked(client)) == 2
