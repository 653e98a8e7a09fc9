"""`make bench-full`: the rows of docs/benchmarks.md, of this tree and, with BEFORE=path, of another one beside it.

Both trees do the same in turns, in one run, asked by the same client and the same provider (`servers`, `provider`).
Times are processor time of the server and its children that ended, unless a row says wall. Each value is the median of
`ROUNDS`. The raw values go to the file that `--raw` names, as JSON. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.provider import calls, says, words
from tests.bench.servers import Measured, measured, p99, round_trips
from tests.support.journals import begun, ident, journal, prompt, proposes, ran
from tests.support.journals import says as answers

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 3
deltas = 2_000
deltas_per_s = 1_000.0
files_searched = 20_000
sessions_listed = 300
records_opened = 100_000
edited_bytes = 50_000_000
Values = Mapping[str, float]
Row = Callable[[Path, Path], Values]
"""Measure one tree in a folder of its own; name → value."""


def calling(tool: str, arguments: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    """A provider that calls this tool once in each turn."""

    def answer(body: dict[str, Any]) -> Any:
        return says() if body["messages"][-1]["role"] == "tool" else calls(tool, arguments)

    return answer


def turn_of(server: Measured, session: dict[str, Any]) -> tuple[str, float]:
    """Run a turn; its id and the processor time that it took."""
    server.idle()
    before = server.used_s()
    turn = server.begin(session, "go")
    server.ended(turn)
    return turn, server.used_s() - before


def streaming(tree: Path, folder: Path) -> Values:
    """2,000 deltas, a thousand a second; a turn of ten deltas is subtracted."""
    count = 10
    with measured(tree, folder, lambda _: words(count, deltas_per_s)) as server:
        session = server.create()
        turn_of(server, session)
        _, few = turn_of(server, session)
        count = deltas
        turn, many = turn_of(server, session)
        told = sum(event["kind"] == "text" for event in server.events(turn))
        server.idle()
        with round_trips(server) as idle:
            time.sleep(2)
        with round_trips(server) as beside:
            server.ended(server.begin(session, "go"))
    return {
        "notifications for 2,000 deltas": told,
        "µs a delta": (many - few) / (deltas - 10) * 1e6,
        "p99 of another request beside it / idle": p99(beside) / p99(idle),
    }


def many_files(workspace: Path) -> None:
    for number in range(files_searched):
        path = workspace / f"part{number % 100}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"line {number} {line}\n" for line in range(40)))


def searching(tree: Path, folder: Path) -> Values:
    """A search that finds nothing, and the cancel of one, 0.3 s after it began."""
    with measured(tree, folder, calling("search_text", {"pattern": "needle"})) as server:
        many_files(server.workspace)
        session = server.create()
        turn_of(server, session)
        _, searched = turn_of(server, session)
        turn = server.begin(session, "go")
        server.client.notification(
            "steadyhand/turn/event",
            that=lambda one: (
                one["turnId"] == turn and one["event"]["kind"] == "call" and one["event"]["call"]["state"] == "proposed"
            ),
        )
        time.sleep(0.3)
        begun_at = time.perf_counter()
        server.client.request("steadyhand/turn/cancel", {"sessionId": session["sessionId"], "turnId": turn})
        server.ended(turn)
        cancelled = time.perf_counter() - begun_at
        found = {"search of 20,000 files, s": searched, "cancel of it, wall ms": cancelled * 1e3}
        if rg := shutil.which("rg"):
            before = _children_s()
            subprocess.run([rg, "needle", str(server.workspace)], check=False, stdout=subprocess.DEVNULL)
            found["search / ripgrep alone"] = searched / (_children_s() - before)
    return found


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def listing(tree: Path, folder: Path) -> Values:
    """300 closed sessions, whose summaries are there."""
    state = folder / "state" / "sessions"
    for number in range(sessions_listed):
        path = state / ident(f"listed {number}")
        path.mkdir(parents=True, mode=0o700)
        (path / "journal.jsonl").write_bytes(journal([*begun(), prompt(f"t{number}"), answers(f"t{number}", "done")]))
    for path in (folder / "state", state):
        path.chmod(0o700)
    with measured(tree, folder, lambda _: says()) as server:
        server.client.request("steadyhand/session/list", {})
        server.idle()
        before = server.used_s()
        listed = server.client.request("steadyhand/session/list", {})["sessions"]
        assert len(listed) == sessions_listed
        return {"session/list, µs a session": (server.used_s() - before) / sessions_listed * 1e6}


def opening(tree: Path, folder: Path) -> Values:
    """A journal of 100,000 records, opened for the first time, beside `json.loads` of its lines."""
    records = begun()
    for number in range(records_opened // 6):
        call, turn = f"c{number}", f"t{number}"
        records += [
            prompt(turn), proposes(turn, call), *ran(call, turn), answers(turn, f"done {number}"),
        ]  # fmt: skip
    content = journal(records[:records_opened])
    path = folder / "state" / "sessions" / ident("session")
    path.mkdir(parents=True, mode=0o700)
    for one in (folder / "state", path.parent):
        one.chmod(0o700)
    with measured(tree, folder, lambda _: says()) as server:
        server.idle()
        (path / "journal.jsonl").write_bytes(content)
        with round_trips(server) as beside:
            before = server.used_s()
            server.client.request("steadyhand/session/open", {"sessionId": ident("session"), "tail": 20}, 600)
            used = server.used_s() - before
        begun_at = time.process_time()
        for line in content.splitlines():
            json.loads(line)
        loads = time.process_time() - begun_at
        return {
            "open 100,000 records, s": used,
            "open / json.loads of its lines": used / loads,
            "longest other request meanwhile, wall ms": max(beside) * 1e3,
            "peak memory / bytes of the journal": server.peak() / len(content),
        }


def editing(tree: Path, folder: Path) -> Values:
    """One line of a file of 50 MB."""
    edit = {"path": "large.txt", "edits": [{"old": "line 700000 of it", "new": "another line"}]}
    with measured(tree, folder, calling("edit_file", edit)) as server:
        lines = (f"line {number} of it and more\n" for number in range(edited_bytes // 28))
        (server.workspace / "large.txt").write_text("".join(lines))
        session = server.create()
        _, used = turn_of(server, session)
        return {"edit_file in 50 MB, s": used, "its peak memory, MB": server.peak() / 1e6}


def idling(tree: Path, folder: Path) -> Values:
    """After a session was made."""
    with measured(tree, folder, lambda _: says()) as server:
        server.create()
        server.idle()
        return {"idle memory, MB": server.resident() / 1e6}


def verb(tree: Path, folder: Path) -> Values:
    """`steadyhand sessions` with no session."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'server'}:{tree / 'protocol'}"}
    command = [sys.executable, "-m", "steadyhand", "sessions", "--state-dir", str(folder)]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    before = _children_s()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return {"a verb of the command line, ms": (_children_s() - before) * 1e3}


ROWS: Sequence[Row] = (streaming, searching, listing, opening, editing, idling, verb)


def main() -> int:
    """Always 0: a measurement does not fail."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path)
    parser.add_argument("--raw", type=Path)
    parser.add_argument("rows", nargs="*")
    given = parser.parse_args()
    trees = {"before": given.before.resolve()} if given.before else {}
    trees["now"] = ROOT
    raw: dict[str, dict[str, list[float]]] = {}
    for row in ROWS:
        if given.rows and row.__name__ not in given.rows:
            continue
        for _ in range(ROUNDS):
            for name, tree in trees.items():
                with tempfile.TemporaryDirectory(prefix="steadyhand-bench-") as folder:
                    for what, value in row(tree, Path(folder)).items():
                        raw.setdefault(what, {}).setdefault(name, []).append(value)
        _show(raw, trees)
        raw_rows = json.dumps({"load": os.getloadavg(), "threads": threading.active_count(), "rows": raw}, indent=1)
        if given.raw:
            given.raw.write_text(raw_rows)
    return 0


def _show(raw: Mapping[str, Mapping[str, Sequence[float]]], trees: Mapping[str, Path]) -> None:
    for what, values in raw.items():
        shown = "".join(f"{statistics.median(values[name]):>14.1f}" for name in trees)
        print(f"{what:<52}{shown}", flush=True)
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
