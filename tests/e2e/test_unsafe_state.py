"""A state directory or a session that other users control, over the protocol (row O5, case 147)."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyhand_protocol import methods
from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import ErrorAnswer, Json
from tests.support.systems import posix_only

pytestmark = posix_only

ID = "5" * 32
MESSAGE_S_MAX = 60
PARAMS: dict[str, Json] = {
    "session/create": {},
    "session/list": {},
    "session/open": {"sessionId": ID},
    "session/close": {"sessionId": ID},
    "session/setMode": {"sessionId": ID, "mode": "ask"},
    "session/setModel": {"sessionId": ID, "provider": "practice", "name": "practice"},
    "session/rename": {"sessionId": ID, "title": "x"},
    "session/rebind": {"sessionId": ID, "workspace": "file:///x"},
    "session/delete": {"sessionId": ID},
    "session/compact": {"sessionId": ID, "epoch": ID},
    "session/fork": {"sessionId": ID},
    "session/export": {"sessionId": ID, "format": "json"},
    "usage": {"sessionId": ID},
    "checkpoint/list": {"sessionId": ID},
    "checkpoint/rewind": {"sessionId": ID, "epoch": ID, "turnId": ID, "what": "both"},
    "review/list": {"sessionId": ID},
    "review/resolve": {"sessionId": ID, "epoch": ID, "action": "keep", "all": True},
    "queue/edit": {"sessionId": ID, "clientMessageId": "c", "remove": True},
    "queue/resume": {"sessionId": ID, "epoch": ID},
    "turn/start": {"sessionId": ID, "epoch": ID, "clientMessageId": "c", "text": "x"},
    "turn/steer": {"sessionId": ID, "epoch": ID, "turnId": ID, "clientMessageId": "c", "text": "x"},
    "turn/revise": {"sessionId": ID, "epoch": ID, "turnId": ID, "clientMessageId": "c", "text": "x"},
    "turn/status": {"sessionId": ID, "clientMessageId": "c"},
    "turn/cancel": {"sessionId": ID, "turnId": ID},
    "turn/events": {"sessionId": ID, "epoch": ID, "after": 0},
    "recovery/snapshot": {"sessionId": ID},
    "recovery/resolve": {
        "sessionId": ID,
        "runtimeEpoch": ID,
        "revision": "0" * 64,
        "attemptId": ID,
        "action": "inspect",
    },
}
"""Params of each method that works on sessions; `model/list` and `model/check` do not."""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    (tmp_path / "open").mkdir()
    with server_processes(tmp_path) as servers:
        servers.workspace.state = tmp_path.resolve() / "open" / "state"
        yield servers


def refusal(client: CheckedClient, method: str, params: Json) -> Json:
    """The `readOnly` of the error that a request is refused with; its code and kind are checked."""
    with pytest.raises(ErrorAnswer) as refused:
        client.ours(method, **params)
    assert (refused.value.code, refused.value.data["kind"]) == (-32059, "journalBroken")
    shown: Json = refused.value.data["readOnly"]
    assert shown["reason"] == "unsafe"
    return shown


def test_every_session_method_has_params_here() -> None:
    """A new method must be added to the table."""
    built = {
        row.name.removeprefix("steadyhand/") for row in methods.METHODS if row.direction == "to_server" and row.built
    }
    assert built - {"model/list", "model/check"} == set(PARAMS)


def test_refused_state_directory_answers_every_request_and_is_used_once_corrected(servers: ServerProcesses) -> None:
    """Row O5: one message has the command that corrects it, and every session method answers `unsafe`. Nothing is made
    there. After the correction the same server creates a session."""
    above = servers.state.parent
    above.chmod(0o777)
    client = servers.start_checked()
    shown = client.notification("window/showMessage", limit_s=MESSAGE_S_MAX)
    assert shown["type"] == 1
    assert f"chmod o-w {above}" in shown["message"]
    for method, params in PARAMS.items():
        assert f"chmod o-w {above}" in refusal(client, method, params)["text"]
    assert not servers.state.exists()
    assert len(client.shown()) == 1
    above.chmod(0o755)
    session = client.ours("session/create")
    assert [each["sessionId"] for each in client.ours("session/list")["sessions"]] == [session["sessionId"]]


def test_refused_session_is_listed_alone_and_not_opened(servers: ServerProcesses) -> None:
    """Row O5: a session folder that was replaced by a link is listed as `unsafe` and never opened; the start says so.
    The other session works."""
    first = servers.start_checked()
    bad, good = (first.ours("session/create")["sessionId"] for _ in range(2))
    first.close()
    folder = servers.state / "sessions" / bad
    folder.rename(servers.root / "moved")
    folder.symlink_to(servers.root / "moved")
    client = servers.start_checked()
    assert f"rm {folder}" in client.notification("window/showMessage", limit_s=MESSAGE_S_MAX)["message"]
    listed = {each["sessionId"]: each.get("readOnly") for each in client.ours("session/list")["sessions"]}
    assert listed[good] is None
    assert listed[bad]["reason"] == "unsafe"
    assert refusal(client, "session/open", {"sessionId": bad}) == listed[bad]
    assert "readOnly" not in client.ours("session/open", sessionId=good)["session"]


def test_tightened_modes_are_told_once(servers: ServerProcesses) -> None:
    """Row O5: what others could write is closed to them, and one message names it."""
    first = servers.start_checked()
    session_id = first.ours("session/create")["sessionId"]
    first.close()
    journal = servers.state / "sessions" / session_id / "journal.jsonl"
    for path in (servers.state, journal):
        path.chmod(0o777)
    client = servers.start_checked()
    told = client.notification("window/showMessage", limit_s=MESSAGE_S_MAX)["message"]
    assert f"{servers.state} (mode 0777, now 0700), {journal} (mode 0777, now 0600)" in told
    assert [stat.S_IMODE(path.stat().st_mode) for path in (servers.state, journal)] == [0o700, 0o600]
    client.ours("session/list")
    client.ours("session/open", sessionId=session_id)
    assert len(client.shown()) == 1
