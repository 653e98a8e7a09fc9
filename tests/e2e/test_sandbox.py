"""The real sandbox around the commands of the whole server over its pipes (rows O1, O3; case 142).

Every other suite runs with the sandbox off. These tests need bubblewrap.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import SANDBOX, ServerProcesses, calling_server_command, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only, require_sandbox

pytestmark = linux_only

RAN_IN = "[This command ran in a sandbox (bubblewrap, network deny).]"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    require_sandbox()
    with server_processes(tmp_path) as servers:
        yield servers


def confined(servers: ServerProcesses, mode: str = "auto", **options: object) -> CheckedClient:
    """A server with the sandbox required, so that nothing passes without one."""
    return servers.start_checked(env={SANDBOX: "required"}, options={"mode": mode, **options})


def run(client: CheckedClient, command: str) -> tuple[Json, Json]:
    """Run one command in a new session; its call, and the end of the turn."""
    session = client.ours("session/create", title="Sandbox")
    turn = client.send_prompt(session, f"run {command}")["turnId"]
    ended = client.ended(turn)
    (call,) = client.calls(turn)
    return call, ended


def test_confined_command_writes_in_the_workspace_and_nowhere_else(servers: ServerProcesses) -> None:
    """O1, O3, case 124: the call says how it is confined and what changed; the reply, that the sandbox may be why."""
    servers.workspace.write("old.txt", "old")
    call, ended = run(
        confined(servers), "rm old.txt; echo a > new.txt; echo b > /tmp/own; touch /usr/steadyhand-was-here"
    )
    assert call["sandbox"] == {"kind": "bubblewrap", "sealed": False}
    assert servers.content("new.txt") == "a\n"
    assert not Path("/usr/steadyhand-was-here").exists()
    assert not Path("/tmp/own").exists()
    assert f"[exit code 1]\n{RAN_IN}\n[The sandbox may have caused this.]" in call["reply"]["text"]
    assert call["reply"]["text"].endswith("[Changed while it ran: created new.txt, deleted old.txt]")
    assert call["changedDuring"] == {
        "files": [{"path": "new.txt", "change": "created"}, {"path": "old.txt", "change": "deleted"}],
        "more": 0,
        "exact": True,
    }
    assert ended["changed"] == []
    assert ended["during"] == [
        {"path": "new.txt", "change": "created", "callId": call["callId"]},
        {"path": "old.txt", "change": "deleted", "callId": call["callId"]},
    ]


def test_confined_command_sees_neither_the_state_directory_nor_the_server(servers: ServerProcesses) -> None:
    """O1, O4, case 142: the journals and the server's environment are out of its reach, as root too."""
    client = confined(servers)
    call, _ = run(client, f"ls -a {servers.state}; cat /proc/*/environ | tr '\\0' '\\n' | grep -c {SANDBOX}=required")
    lines = call["reply"]["text"].splitlines()
    assert "sessions" not in lines
    assert "0" in lines, "no process that it sees has the server's environment"


def test_git_works_in_the_sandbox_but_not_where_it_chooses_programs(servers: ServerProcesses) -> None:
    """O1: commit and checkout work; what changes the configuration or a hook fails, and the reply says what that is."""
    client = confined(servers)
    git = "git -c user.name=A -c user.email=a@b"
    os.system(f"git init -q {servers.root}")
    servers.workspace.write("a.txt", "1")
    call, _ = run(
        client, f"{git} add a.txt && {git} commit -q -m one && {git} checkout -q -b other && git log --oneline"
    )
    assert "one" in call["reply"]["text"]
    assert "[exit code 0]" in call["reply"]["text"]
    for command in ("git config core.editor evil", "touch .git/hooks/pre-commit && git status"):
        call, ended = run(client, command)
        assert "[exit code 0]" not in call["reply"]["text"], command
        assert "This changes how git runs programs." in call["reply"]["text"], command
        assert "protected" not in ended
    assert "evil" not in (servers.root / ".git" / "config").read_text()


def test_network_of_a_confined_command_is_its_own(servers: ServerProcesses) -> None:
    """O1, `deny`: it has a loopback of its own, and reaches no server of another command."""
    client = confined(servers)
    own = "s=socket.create_server(('127.0.0.1',0));socket.create_connection(s.getsockname());print('reached')"
    serve = f'python3 -c "import socket;{own}"'
    call, _ = run(client, serve)
    assert "reached" in call["reply"]["text"]
    call, _ = run(client, "cat /proc/net/dev | grep -c : ")
    assert call["reply"]["text"].startswith("1\n")


def test_unconfined_command_asks_and_then_runs_with_the_user_s_rights(servers: ServerProcesses) -> None:
    """O3: in mode `auto` it asks all the same; allowed, it writes where the user can."""
    target = servers.workspace.base / "outside.txt"
    command, environment = calling_server_command(servers.state)
    client = servers.start_command(command, {**environment, SANDBOX: "required"}, {"mode": "auto"})
    asked: list[Json] = []

    def allow(params: Json) -> Json:
        asked.append(params)
        return {"title": "Allow once"}

    client.answer_with("window/showMessageRequest", allow)
    text = (
        f'run_command {{"command": "echo x > {target}", "unconfined": true, "why": "It writes beside the workspace."}}'
    )
    answer = client.say(text)
    assert answer["reason"] == "done"
    (question,) = asked
    assert question["message"].startswith("Run outside the sandbox: echo. ")
    assert [action["title"] for action in question["actions"]] == ["Allow once", "Reject"]
    assert "It writes beside the workspace." in question["message"]
    assert target.read_text() == "x\n"


def test_confined_command_ends_with_a_killed_server(servers: ServerProcesses) -> None:
    """O1, E5: when the server is killed, its confined command is gone, and nothing of it is left to find."""
    client = confined(servers)
    session = client.ours("session/create", title="Killed")
    client.send_prompt(session, "run touch begun; sleep 300")
    client.wait_for(lambda: servers.content("begun") is not None or None, 20, "the command has begun")
    client.process.send_signal(signal.SIGKILL)
    client.process.wait(20)
    again = confined(servers)
    opened = again.ours("session/open", sessionId=session["sessionId"])
    (call,) = [call for message in opened["messages"] for call in message.get("calls", ())]
    assert call["state"] == "unknown"
    assert call["sandbox"] == {"kind": "bubblewrap", "sealed": False}
    found = again.command("recovery.inspect", {"sessionId": session["sessionId"], "attemptId": call["attemptId"]})
    assert found["inspection"]["survivors"] == []
    assert not (servers.state / "sessions" / session["sessionId"] / "tmp").exists()


def test_folder_of_sandbox_write_can_be_written(servers: ServerProcesses) -> None:
    """O1: `sandbox.write` adds a root, and what changes there is named too."""
    cache = servers.workspace.base / "cache"
    cache.mkdir()
    call, _ = run(confined(servers, sandbox={"write": [str(cache)]}), f"echo x > {cache}/kept")
    assert (cache / "kept").read_text() == "x\n"
    assert [one["path"] for one in call["changedDuring"]["files"]] == [str(cache / "kept")]
