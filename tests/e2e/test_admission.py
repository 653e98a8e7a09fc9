"""A first effect waits for the doubts of its folder, whatever path leads there (A8, B1, cases 163, 164)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import TypedClient
from tests.support.process_server import PRESENT, ServerProcesses, server_command, server_processes
from tests.support.raw_client import Json
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = linux_only

WRITE = 'write a.txt with "first\\n"'
LATER = 'write a.txt with "later\\n"'
SOMEBODYS = "somebody's\n"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        yield found


@pytest.fixture
def doubt(servers: ServerProcesses) -> str:
    """The session whose write stays uncertain: somebody changed the file since."""
    session_id = servers.kill_in_turn(WRITE, PRESENT)
    servers.workspace.write("a.txt", SOMEBODYS)
    return session_id


def is_held_back(client: TypedClient) -> None:
    """The turn of the first prompt asks about the doubt; refused, it changes nothing."""
    turn = client.ask_turn(LATER)
    question = client.question()
    assert "an earlier effect" in question["params"]["message"]
    client.answer_to(question, "Refuse")
    assert "refused: denied" in client.command_result("ask", turn)["text"]


def test_first_prompt_right_after_the_start_is_held_back(servers: ServerProcesses, doubt: str) -> None:
    """Case 163: the prompt comes with the first bytes, before the scan can have ended."""
    is_held_back(servers.start())
    assert (servers.root / "a.txt").read_text() == SOMEBODYS


def test_client_that_never_says_initialized_is_held_back(servers: ServerProcesses, doubt: str) -> None:
    """Case 163: then nobody starts the scan. The first effect does."""
    command, environment = server_command(servers.state, ())
    client = TypedClient(command, environment)
    servers.clients.append(client)
    client.workspace = servers.workspace
    folders = [{"uri": servers.workspace.uri, "name": "work"}]
    options = {"mode": "auto"}
    given: Json = {"processId": None, "rootUri": None, "capabilities": {}}
    client.request("initialize", {**given, "workspaceFolders": folders, "initializationOptions": options})
    is_held_back(client)
    assert (servers.root / "a.txt").read_text() == SOMEBODYS


def test_folder_opened_through_a_link_shows_and_holds_the_doubt(servers: ServerProcesses, doubt: str) -> None:
    """Case 164, A8: the message, the diagnostic at the document as this client spells it, its code actions, the list,
    and the question."""
    link = servers.workspace.base / "link"
    os.symlink(servers.root, link)
    client = servers.start(folders=[link.as_uri()])
    client.workspace = Workspace(link, servers.workspace.state)
    client.wait_diagnostic("a.txt", "uncertain-write")
    told = client.notification("window/showMessage")
    assert "1 earlier effect is uncertain" in told["message"]
    assert [action["title"] for action in client.code_actions("a.txt")] == ["Steadyhand: Inspect"]
    listed = client.command("recovery.list")["uncertain"]
    assert [effect["sessionId"] for effect in listed] == [doubt]
    is_held_back(client)
    assert (servers.root / "a.txt").read_text() == SOMEBODYS


def test_folder_under_two_paths_shows_the_doubt_at_both(servers: ServerProcesses, doubt: str) -> None:
    """Case 164: a document may be open under either path."""
    link = servers.workspace.base / "link"
    os.symlink(servers.root, link)
    client = servers.start(folders=[servers.workspace.uri, link.as_uri()])
    client.wait_diagnostic("a.txt", "uncertain-write")
    client.workspace = Workspace(link, servers.workspace.state)
    client.wait_diagnostic("a.txt", "uncertain-write")


def test_folder_added_later_shows_the_doubt(servers: ServerProcesses, doubt: str) -> None:
    """Case 163, A8: the client adds the folder after the start."""
    other = servers.workspace.base / "other"
    other.mkdir()
    client = servers.start(folders=[other.as_uri()])
    client.own("session/list")
    added = [{"uri": servers.workspace.uri, "name": "work"}]
    client.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": added, "removed": []}})
    client.wait_diagnostic("a.txt", "uncertain-write")


def test_session_is_created_for_the_folder_that_a_path_leads_to(servers: ServerProcesses) -> None:
    """Case 164, S7: the client names its folder by another path. The session has the client's spelling."""
    link = servers.workspace.base / "link"
    os.symlink(servers.root, link)
    client = servers.start()
    assert client.own("session/create", workspace=link.as_uri())["workspace"] == servers.workspace.uri
