"""After a restart the server shows uncertain effects, though nobody opens a session (row A8).

The clients here send `initialize` and `initialized` and then only listen.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.lsp_clients import TypedClient, never
from tests.support.process_server import PRESENT, ServerProcesses, server_processes
from tests.support.raw_client import UNANSWERED
from tests.support.systems import linux_only

pytestmark = linux_only

MESSAGE = "window/showMessage"
free_s_max = 10.0


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        found.workspace.write("b.txt", "old\n")
        yield found


def make_uncertain(servers: ServerProcesses, name: str = "a.txt") -> str:
    """A session whose write stays uncertain; no server has seen it since."""
    session_id = servers.kill_in_turn(f"write {name} with new", PRESENT)
    servers.workspace.write(name, "somebody's\n")
    return session_id


def make_two_uncertain(servers: ServerProcesses) -> tuple[str, str]:
    """Two such sessions; the first already has its verdict."""
    first = make_uncertain(servers)
    client = servers.start()
    client.wait_diagnostic("a.txt", "uncertain-write")
    assert client.shut_down() == 0
    return first, make_uncertain(servers, "b.txt")


def test_start_shows_two_uncertain_sessions_in_one_message(servers: ServerProcesses) -> None:
    """A8: diagnostics at both files, one message in all, the sessions reported as open here; nothing is repeated."""
    first, second = make_two_uncertain(servers)
    client = servers.start()
    client.wait_diagnostic("a.txt", "uncertain-write")
    client.wait_diagnostic("b.txt", "uncertain-write")
    (told,) = client.notifications(MESSAGE) or [client.notification(MESSAGE)]
    assert told["type"] == 2
    assert "2 earlier effects are uncertain" in told["message"]
    assert "write_file: a.txt" in told["message"]
    assert "write_file: b.txt" in told["message"]
    assert {told["sessionId"] for told in client.notifications("steadyhand/session/changed")} == {first, second}
    never(lambda: client.notifications(MESSAGE)[1:] or None, client)
    assert (servers.root / "a.txt").read_text() == "somebody's\n"


def test_start_leaves_sessions_without_uncertain_effects_closed(servers: ServerProcesses) -> None:
    """A8: a session without an uncertain effect is neither opened nor mentioned."""
    client = servers.start()
    assert client.say("write c.txt with c")["reason"] == "done"
    assert client.shut_down() == 0
    client = servers.start()
    never(lambda: [told for told in client.messages if told.get("method") != "window/logMessage"][1:] or None, client)


def message_or_diagnostic(client: TypedClient) -> object:
    return client.notifications(MESSAGE) or client.diagnostics("a.txt")


def test_start_scans_only_sessions_of_the_open_folders(servers: ServerProcesses) -> None:
    """A8: a session of another folder stays closed, and so does every session without a folder."""
    session_id = make_uncertain(servers)
    journal = servers.workspace.journal(session_id)
    for folders in ([], [(servers.workspace.base / "elsewhere").as_uri()]):
        client = servers.start(folders=folders)
        never(partial(message_or_diagnostic, client), client, 1)
    assert servers.workspace.journal(session_id) == journal


def test_start_takes_over_a_session_when_the_old_window_ends(servers: ServerProcesses) -> None:
    """A8, J11: the old process still holds the session when the new one starts; the new one opens it as soon as it is
    free."""
    session_id = make_uncertain(servers)
    old = servers.start()
    old.wait_diagnostic("a.txt", "uncertain-write")
    new = servers.start()
    never(lambda: new.diagnostics("a.txt"), new, 1)
    assert new.notifications(MESSAGE) == [], "of a session owned elsewhere nothing is said"
    old.process.kill()
    new.wait_diagnostic("a.txt", "uncertain-write", free_s_max)
    assert new.snapshot(session_id)["calls"]
    assert len(servers.having(session_id, "result")) == 1, "the verdict is recorded once (C4)"


def test_start_leaves_a_session_of_another_window_alone(servers: ServerProcesses) -> None:
    """A8, J11: a second window says nothing and writes nothing while the first one lives."""
    session_id = make_uncertain(servers)
    first = servers.start()
    first.wait_diagnostic("a.txt", "uncertain-write")
    journal = servers.workspace.journal(session_id)
    second = servers.start()
    never(lambda: second.notifications(MESSAGE) or second.diagnostics("a.txt"), second, free_s_max + 1)
    assert second.notifications("steadyhand/session/changed") == []
    assert servers.workspace.journal(session_id) == journal
    assert first.snapshot(session_id)["runtimeEpoch"]


def test_start_releases_a_session_without_a_finding(servers: ServerProcesses) -> None:
    """A8: the session is opened only for its open call, which did not run; then another process can hold it at once."""
    session_id = servers.kill_in_turn("write a.txt with new", {"verb": "write", "carries": "started"})
    first = servers.start()
    first.wait_for(lambda: servers.having(session_id, "result") or None, 20)
    second = servers.start(folders=[])
    opened = second.opened(session_id)["session"]
    assert "readOnly" not in opened
    assert opened["epoch"]
    assert first.notifications(MESSAGE) == []
    assert first.diagnostics("a.txt") is None


def test_start_keeps_a_session_with_a_settled_effect(servers: ServerProcesses) -> None:
    """A8, B3: an effect that is shown as settled keeps its session open here."""
    session_id = servers.kill_in_turn("write a.txt with new", PRESENT)
    first = servers.start()
    first.wait_diagnostic("a.txt", "checked-write")
    second = servers.start(folders=[])
    assert second.opened(session_id)["session"]["readOnly"]["reason"] == "owned"


def test_start_scan_waits_for_the_configuration(servers: ServerProcesses) -> None:
    """A8: the scan begins with the first answer to `workspace/configuration`."""
    make_uncertain(servers)
    able = {"workspace": {"configuration": True}}
    client = servers.start(capabilities=able)
    asked = client.question("workspace/configuration")
    assert client.diagnostics("a.txt") is None
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": [None]})
    client.wait_diagnostic("a.txt", "uncertain-write")


@pytest.mark.parametrize(
    "silent", ["workspace/configuration", "client/registerCapability", "workspace/codeLens/refresh"]
)
def test_start_scan_waits_at_most_two_seconds_for_settings(servers: ServerProcesses, silent: str) -> None:
    """A8: the server waits 2 s for settings that do not come; no other open request delays the diagnostics."""
    make_uncertain(servers)
    able = {
        "workspace": {
            "configuration": True,
            "textDocumentContent": {"dynamicRegistration": True},
            "codeLens": {"refreshSupport": True},
        }
    }
    client = servers.start(capabilities=able)
    for method in ("workspace/configuration", "client/registerCapability", "workspace/codeLens/refresh"):
        answer = UNANSWERED if method == silent else [None] if method.endswith("configuration") else None
        client.answer_with(method, partial(_given, answer))
    waiting = [each for each in client.server_requests if each["method"] != silent]
    for each in waiting:
        result = [None] if each["method"].endswith("configuration") else None
        client.send({"jsonrpc": "2.0", "id": each["id"], "result": result})
    client.wait_diagnostic("a.txt", "uncertain-write", 20)
    assert client.command("recovery.list")["uncertain"]
    _moves(client, 20)


def _given(answer: object, _: object) -> object:
    return answer


def _moves(client: TypedClient, limit_s: float) -> None:
    """Assert that a later change is published as soon."""
    (call,) = client.command("recovery.list")["uncertain"]
    looked = client.inspected(call["sessionId"], call["attemptId"])
    client.resolve(looked["snapshot"], call["attemptId"], "waive", looked["inspection"]["inspectionId"])
    client.wait_diagnostic("a.txt", None, limit_s)


@pytest.mark.parametrize("summary", ["missing", "garbage", "another version", "stale", "wrong types", "a folder"])
def test_start_reads_the_journal_if_the_summary_is_wrong(servers: ServerProcesses, summary: str) -> None:
    """A8: the summary is a cache: if it is missing, wrong or of another journal, the server folds the session, and
    shows the uncertain effect."""
    session_id = make_uncertain(servers)
    path = servers.workspace.session_directory(session_id) / "summary.json"
    stale = path.read_bytes() if path.exists() else b"{}"
    path.unlink(missing_ok=True)
    contents = {
        "garbage": b"\x00\xff" * 100,
        "another version": stale.replace(b'"v":1', b'"v":2'),
        "stale": stale,
        "wrong types": b'{"v":1,"bytes":"x","sum":[],"model":7}',
    }
    if summary in contents:
        path.write_bytes(contents[summary])
    elif summary == "a folder":
        path.mkdir()
    servers.start().wait_diagnostic("a.txt", "uncertain-write")


def test_start_shows_other_sessions_beside_an_unreadable_one(servers: ServerProcesses) -> None:
    """S6, A8: beside a session whose journal is a folder, another session is shown as always."""
    make_uncertain(servers)
    broken = servers.state / "sessions" / ("0" * 32)
    (broken / "journal.jsonl").mkdir(parents=True)
    servers.start().wait_diagnostic("a.txt", "uncertain-write")
