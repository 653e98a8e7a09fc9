"""A server of a tree of this repository, driven by a measured provider, and what it uses meanwhile."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.bench.provider import Answering, provider
from tests.support.raw_client import RawClient

turn_s_max = 600.0


class Measured:
    """One server process with a client. `tree`: the root of a checkout."""

    def __init__(self, tree: Path, folder: Path, environment: dict[str, str]) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.uri = self.workspace.as_uri()
        command = [sys.executable, "-m", "steadyhand", "--state-dir", str(folder / "state")]
        paths = f"{tree / 'server'}:{tree / 'protocol'}"
        self.client = RawClient(
            command,
            {"PYTHONPATH": paths, "STEADYHAND_SANDBOX": "off", "STEADYHAND_MODE": "auto", **environment},
            cwd=folder,
        )
        self.client.answer_with("window/workDoneProgress/create", lambda _: None)
        self.client.initialize({"workspaceFolders": [{"uri": self.uri, "name": "bench"}]})

    def create(self) -> dict[str, Any]:
        session: dict[str, Any] = self.client.request("steadyhand/session/create", {"workspace": self.uri})
        return session

    def begin(self, session: dict[str, Any], text: str) -> str:
        """Send a prompt; its turn."""
        prompt = {
            "sessionId": session["sessionId"],
            "epoch": session["epoch"],
            "clientMessageId": f"c{time.monotonic_ns()}",
            "text": text,
        }
        return str(self.client.request("steadyhand/turn/start", prompt)["turnId"])

    def ended(self, turn: str) -> dict[str, Any]:
        """Wait for the end of a turn."""
        told: dict[str, Any] = self.client.notification(
            "steadyhand/turn/event",
            turn_s_max,
            lambda one: one["turnId"] == turn and one["event"]["kind"] == "ended",
        )
        return told

    def events(self, turn: str) -> list[dict[str, Any]]:
        """What was told of a turn so far."""
        return [one["event"] for one in self.client.notifications("steadyhand/turn/event") if one["turnId"] == turn]

    def used_s(self) -> float:
        """Seconds of processor time, of the process and of its children that ended."""
        times = psutil.Process(self.client.process.pid).cpu_times()
        tasks = Path(f"/proc/{self.client.process.pid}/task")
        own = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9
        return own + float(times.children_user + times.children_system)

    def resident(self) -> int:
        """Bytes in memory."""
        return int(psutil.Process(self.client.process.pid).memory_info().rss)

    def peak(self) -> int:
        """The most bytes that were in memory."""
        status = Path(f"/proc/{self.client.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def idle(self) -> None:
        """Wait until the process does nothing any more."""
        before = -1.0
        while (now := self.used_s()) - before > 0.003:
            before = now
            time.sleep(0.3)


@contextmanager
def measured(tree: Path, folder: Path, answering: Answering) -> Iterator[Measured]:
    """A server of this tree, asked by a client, with this provider."""
    folder.mkdir(parents=True, exist_ok=True)
    with provider(answering) as environment:
        server = Measured(tree, folder, environment)
        with server.client:
            yield server
            server.client.shut_down()


@contextmanager
def round_trips(server: Measured) -> Iterator[list[float]]:
    """Ask where a prompt of another session stands, again and again, until the context ends; the seconds of each."""
    found: list[float] = []
    params = {"sessionId": server.create()["sessionId"], "clientMessageId": "none"}
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.wait(0.01):
            begun = time.perf_counter()
            server.client.request("steadyhand/turn/status", params, turn_s_max)
            found.append(time.perf_counter() - begun)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield found
    finally:
        is_over.set()
        asking.join()


def p99(times: Sequence[float]) -> float:
    """The 99th percentile; of few, the largest."""
    return statistics.quantiles(times, n=100, method="inclusive")[98] if len(times) > 1 else times[0]
