"""The chat lines of recovery: `/recovery`, and `/recovery ACTION [ID]` (docs/protocol.md; rows B4, A8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import TypedClient, only
from tests.support.process_server import PRESENT, ServerProcesses, server_processes
from tests.support.systems import linux_only

pytestmark = linux_only


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as found:
        found.workspace.write("a.txt", "old\n")
        yield found


def make_uncertain(servers: ServerProcesses, count: int = 1) -> tuple[TypedClient, str, list[str]]:
    """A client, a session, and its uncertain attempts, oldest first."""
    session_id = servers.kill_in_turn("write a.txt with new", PRESENT)
    servers.workspace.write("a.txt", "somebody's\n")
    client = servers.start()
    for number in range(1, count):
        client.snapshot(session_id)
        assert client.shut_down() == 0
        servers.kill_in_turn(f"write f{number}.txt with new", PRESENT, session_id=session_id)
        servers.workspace.write(f"f{number}.txt", "somebody's\n")
        client = servers.start()
    attempts = [call["attemptId"] for call in client.snapshot(session_id)["calls"]]
    assert len(attempts) == count
    return client, session_id, attempts


def say(client: TypedClient, session_id: str, line: str) -> str:
    """The answer to a line; its turn ends with `done` in each case."""
    ended = client.say(line, sessionId=session_id)
    assert ended["reason"] == "done"
    assert ended["changed"] == []
    return str(ended["text"])


def test_recovery_line_lists_uncertain_effects_without_the_model(servers: ServerProcesses) -> None:
    """docs/protocol.md: number, first 8 digits, title, check, actions; no model is asked."""
    client, session_id, (first, second) = make_uncertain(servers, 2)
    assert say(client, session_id, "/recovery").splitlines() == [
        f"1. {first[:8]} write_file: a.txt: conflict (inspect)",
        f"2. {second[:8]} write_file: f1.txt: conflict (inspect)",
    ]
    assert len(servers.having(session_id, "usage")) == 4, "a reading and a write in each of the two killed turns"


def test_recovery_line_with_nothing_uncertain_says_so(servers: ServerProcesses) -> None:
    """docs/protocol.md: a line is answered with a sentence if there is nothing to decide."""
    client = servers.start()
    session_id = client.own("session/create")["sessionId"]
    for line in ("/recovery", "/recovery confirm", "/recovery inspect abcd"):
        assert say(client, session_id, line) == "Nothing is uncertain."


@pytest.mark.parametrize(("action", "settled"), [("confirm", "user_confirmed"), ("waive", "waived"), ("reject", None)])
def test_decision_line_inspects_first_and_acts_when_repeated(
    servers: ServerProcesses, action: str, settled: str | None
) -> None:
    """docs/protocol.md: without an inspection the line inspects and shows the finding; the same line again acts on
    it."""
    client, session_id, (attempt_id,) = make_uncertain(servers)
    line = f"/recovery {action} {attempt_id[:4]}"
    said = say(client, session_id, line)
    assert "neither as it was before nor as intended" in said
    assert "This describes the file now" in said
    assert f"/recovery {action} again" in said
    assert servers.having(session_id, "settlement") == servers.having(session_id, "reject") == []
    assert "write_file: a.txt" in say(client, session_id, line)
    if settled is None:
        assert only(client.snapshot(session_id))["state"] == "rejected"
    else:
        (record,) = servers.having(session_id, "settlement")
        assert (record["settled"], record["by"]) == (settled, "user")


def test_inspect_line_inspects_each_time_and_never_decides(servers: ServerProcesses) -> None:
    """docs/protocol.md: inspect never decides."""
    client, session_id, _ = make_uncertain(servers)
    assert "neither" in say(client, session_id, "/recovery inspect")
    servers.workspace.write("a.txt", "new")
    assert "has the intended content now" in say(client, session_id, "/recovery inspect")
    assert only(client.snapshot(session_id))["state"] == "unknown"


def test_decision_line_after_a_change_inspects_again(servers: ServerProcesses) -> None:
    """A5: the second line settles nothing and shows the new finding; the third line acts on it."""
    client, session_id, _ = make_uncertain(servers)
    say(client, session_id, "/recovery confirm")
    servers.workspace.write("a.txt", "new")
    said = say(client, session_id, "/recovery confirm")
    assert said.startswith("Not done:")
    assert "has the intended content now" in said
    say(client, session_id, "/recovery confirm")
    assert [record["settled"] for record in servers.having(session_id, "settlement")] == ["checked_present"]


def test_id_prefix_selects_the_attempt(servers: ServerProcesses) -> None:
    """docs/protocol.md: a unique prefix of 4 or more digits, or the whole id; it may be omitted if there is just one
    effect."""
    client, session_id, (first, second) = make_uncertain(servers, 2)
    said = say(client, session_id, "/recovery waive")
    assert "There are 2" in said
    assert first[:8] in said
    assert second[:8] in said
    assert "at least 4" in say(client, session_id, f"/recovery waive {first[:3]}")
    assert "No uncertain effect" in say(client, session_id, "/recovery waive zzzz")
    assert servers.having(session_id, "inspection") == []
    for given in (second[:4].upper(), second):
        say(client, session_id, f"/recovery waive {given}")
    assert only(client.snapshot(session_id))["attemptId"] == first
    assert first[:8] in say(client, session_id, "/recovery")


def test_ambiguous_id_prefix_does_nothing_and_lists(servers: ServerProcesses) -> None:
    """docs/protocol.md: if more than one id has the prefix, nothing is done and the list is shown."""
    client, session_id, (first, second) = make_uncertain(servers, 2)
    assert client.shut_down() == 0
    path = servers.workspace.session_directory(session_id) / "journal.jsonl"
    twin = first[:6] + ("0" if first[6] != "0" else "1") + second[7:]
    path.write_bytes(_resealed(path.read_bytes().replace(second.encode(), twin.encode())))
    client = servers.start()
    said = say(client, session_id, f"/recovery waive {first[:6]}")
    assert "More than one" in said
    assert first[:8] in said
    assert twin[:8] in said
    assert servers.having(session_id, "inspection") == []
    assert "/recovery waive again" in say(client, session_id, f"/recovery waive {first[:7]}")


def _resealed(content: bytes) -> bytes:
    """The same lines with correct checksums, as docs/journal-format.md defines them."""
    import zlib

    lines, before = [], b"00000000"
    for line in content.splitlines():
        rest = line[len(b'{"sum":"00000000",') :]
        rest = b'"prev":"' + before + rest[len(b'"prev":"00000000') :]
        before = b"%08x" % zlib.crc32(rest)
        lines.append(b'{"sum":"' + before + b'",' + rest + b"\n")
    return b"".join(lines)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/recovery undo", "Say /recovery"),
        ("/recovery confirm 1234 5678", "Say /recovery"),
        ("/recovery retry", "Retry is switched off"),
        ("/help", "/recovery"),
    ],
)
def test_invalid_recovery_line_says_why_and_inspects_nothing(servers: ServerProcesses, line: str, says: str) -> None:
    """docs/protocol.md: a sentence says what cannot be done, and nothing is inspected for it."""
    client, session_id, _ = make_uncertain(servers)
    assert says in say(client, session_id, line)
    assert servers.having(session_id, "inspection") == servers.having(session_id, "settlement") == []


def test_recovery_line_beside_a_running_turn_is_refused_at_once(servers: ServerProcesses) -> None:
    """A3, B4: while a turn runs and is not parked, the line is answered at once, with a refusal."""
    session_id = servers.kill_in_turn("write a.txt with new", PRESENT)
    servers.workspace.write("a.txt", "somebody's\n")
    go, reached = servers.workspace.base / "go", servers.workspace.base / "reached"
    wait = ["/bin/sh", "-c", f"touch '{reached}'; until [ -e '{go}' ]; do sleep 0.02; done"]
    client = servers.start({"verb": "create", "target": "b.txt", "run": wait, "then": "go on"})
    turn = client.ask_turn("write b.txt with b", sessionId=session_id)
    client.wait_for(lambda: True if reached.exists() else None, 20)
    assert say(client, session_id, "/recovery inspect") == "Not done: A turn is running; wait for it or stop it."
    assert "1. " in say(client, session_id, "/recovery")
    go.touch()
    assert client.command_result("ask", turn)["reason"] == "done"


def test_recovery_line_lists_settled_effects_until_the_next_turn(servers: ServerProcesses) -> None:
    """B3: a settled effect is not hidden until the next turn of the user starts."""
    session_id = servers.kill_in_turn("write a.txt with new", PRESENT)
    client = servers.start()
    client.wait_diagnostic("a.txt", "checked-write")
    assert "checked_present (inspect)" in say(client, session_id, "/recovery")
