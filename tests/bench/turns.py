"""The cost of a turn late in a session: one small write a turn, in a real server with the practice model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.process_server import server_command
from tests.support.raw_client import RawClient

turns_measured = 300
turns_compared = 10
first_compared = 5
"""The turns before it are not compared: they read what a process reads once."""


def turn_costs(base: Path, used_by: Callable[[int], float]) -> tuple[list[float], list[float]]:
    """Seconds of processor time of the last turns and of the first ones. `used_by`: those of a process so far."""
    command, environment = server_command(base / "state")
    workspace = base / "workspace"
    workspace.mkdir()
    uri = workspace.as_uri()
    used: list[float] = []
    with RawClient(command, environment) as client:
        client.initialize({"workspaceFolders": [{"uri": uri, "name": "bench"}]})
        session = client.request("steadyhand/session/create", {"workspace": uri})
        client.request("steadyhand/session/setMode", {"sessionId": session["sessionId"], "mode": "auto"})
        for number in range(turns_measured):
            before = used_by(client.process.pid)
            _turn(client, session, number)
            used.append(used_by(client.process.pid) - before)
        client.shut_down()
    return used[-turns_compared:], used[first_compared : first_compared + turns_compared]


def _turn(client: RawClient, session: dict[str, str], number: int) -> None:
    prompt = {
        "sessionId": session["sessionId"],
        "epoch": session["epoch"],
        "clientMessageId": str(number),
        "text": f"write file{number}.txt with line {number}",
    }
    turn = client.request("steadyhand/turn/start", prompt)["turnId"]

    def is_end(told: dict[str, object]) -> bool:
        event = told["event"]
        return told["turnId"] == turn and isinstance(event, dict) and event["kind"] == "ended"

    client.notification("steadyhand/turn/event", that=is_end)
