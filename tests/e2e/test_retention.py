"""Room on disk over stdio: two starts, the doctor, the list of checkpoints and a rewind (row K6).

The journal is made in this process at a time long ago, and its 200 later turns are appended as records. The days
between the two starts are put into `retention.json`.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.domain.records.record import Ended, Record
from steadyhand.journal.format import read_journal, write_lines
from steadyhand.session.changes.review import Selection, keep
from tests.support.in_process_server import practice_server
from tests.support.journals import ident, prompt
from tests.support.killed_runs import SESSION
from tests.support.lsp_clients import TypedClient
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = linux_only

TURNS = 200


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        servers.workspace.write("a.txt", "old\n")
        anyio.run(make_old_session, servers.workspace)
        yield servers


async def make_old_session(workspace: Workspace) -> None:
    async with practice_server(workspace) as server:
        session = await server.session()
        assert session.session_id == SESSION
        await server.say(session, "replace old with new in a.txt\nrun seq 1 9000")
        await keep(session, session.epoch, Selection(every=True))
    later: list[Record] = []
    for number in range(TURNS):
        later += [prompt(f"later {number}", f"prompt {number}"), Ended(turn_id=ident(f"later {number}"), reason="done")]
    content = workspace.journal(SESSION)
    loaded = read_journal(content)
    more, _, _ = write_lines(later, loaded.next_seq, loaded.last_sum, loaded.records[-1].at)
    (workspace.session_directory(SESSION) / "journal.jsonl").write_bytes(content + more)


def start(servers: ServerProcesses) -> TypedClient:
    client = servers.start()
    client.notify("initialized", {})
    return client


def wait_for(client: TypedClient, expected: dict[str, int]) -> None:
    def look() -> Any:
        return client.command("doctor", 60)["retention"] == expected or None

    client.wait_for(look, 60, f"{expected}")


def stored(servers: ServerProcesses) -> list[str]:
    folder = servers.workspace.session_directory(SESSION)
    return [path.name for name in ("checkpoints", "outputs") for path in (folder / name).iterdir()]


def test_contents_of_an_old_turn_are_named_by_one_start_and_removed_by_a_later_one(servers: ServerProcesses) -> None:
    """K6, G4: the real clock, 201 turns, two processes. The journal has the same bytes; the list says `expired`, and a
    rewind leaves the file with that reason."""
    journal = servers.workspace.journal(SESSION)
    assert len(stored(servers)) == 2
    client = start(servers)
    wait_for(client, {"named": 2, "removed": 0})
    client.close()
    servers.clients.remove(client)

    file = servers.workspace.session_directory(SESSION) / "retention.json"
    named = json.loads(file.read_text())
    earlier = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=7, minutes=1)
    at = f"{earlier:%Y-%m-%dT%H:%M:%S}.000Z"
    file.write_text(
        json.dumps({**named, **{name: dict.fromkeys(named[name], at) for name in ("checkpoints", "outputs")}})
    )
    assert len(stored(servers)) == 2

    client = start(servers)
    wait_for(client, {"named": 0, "removed": 2})
    assert stored(servers) == []
    assert servers.workspace.journal(SESSION) == journal
    opened = client.opened(SESSION)
    assert opened["damaged"] == 0
    (turn,) = client.own("checkpoint/list", sessionId=SESSION)["turns"]
    assert turn["expired"] is True
    epoch = opened["session"]["epoch"]
    done = client.own("checkpoint/rewind", 60, sessionId=SESSION, epoch=epoch, turnId=turn["turnId"], what="files")
    assert {"path": "a.txt", "why": "expired"} in done["left"]
    assert servers.content("a.txt") == "new\n"
