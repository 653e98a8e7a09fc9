"""`make bench`: measurements, each beside a yardstick that is measured in turns with it, in the same run.

    start       spawn to the answer of `initialize`, to the first request answered and to the first prompt accepted;
    exit        the answered `shutdown` to the end of the process;
    verb        `steadyhand sessions`, all of it        each the processor time, against that of an empty Python
    turns       a turn with one small write, late in a session, against the same early in it: processor time (turns.py)
    durable     *started* and *result* of one call      against the same bytes, appended and synced by a loop in C
    recovery    opening a session of 20,000 records     against `json.loads` of its lines
    search      `search_text` with ripgrep              against the same search without it, which finds the same
    sandbox     a command that does nothing, in each sandbox of this machine, against the same without one (sandbox.py)
    prefix      what each request of a long session has in common with the previous one, for both kinds of provider
                (prefix.py)

Times depend on the machine and on its other load; compare the ratios. Nothing is asserted. The files are where `TMPDIR`
says; on a file system in memory the second row means little.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import anyio
import attrs
import psutil

from steadyhand.adapters.clock import SystemClock
from steadyhand.adapters.disk.posix import system_disk
from steadyhand.adapters.ripgrep import Ripgrep
from steadyhand.domain.records.record import Record
from steadyhand.journal.format import FIRST_PREV, write_line, write_lines
from steadyhand.journal.journal import JOURNAL, Journal
from steadyhand.session.storage.lock import take_lock
from steadyhand.tools.builtin.search_text import SearchText
from tests.bench.prefix import prefix_lines
from tests.bench.sandbox import sandbox_starts
from tests.bench.turns import first_compared, turn_costs, turns_compared, turns_measured
from tests.support.in_process_server import practice_server
from tests.support.journals import AT, begun, ends, ident, intends, prompt, proposes, ran, replies, says, starts
from tests.support.process_server import server_command
from tests.support.raw_client import RawClient
from tests.support.tool_calls import ToolWorkspace, planned, running
from tests.support.workspace import Workspace

starts_measured = 7
calls_measured = 300
calls_per_round = 30
records_recovered = 20_000
openings_measured = 5
turns_recorded = 60
searches_measured = 7
SEARCHED = (
    ("5,000 files of 10 KB", 5_000, 10_000),
    ("1,000 of 100 KB", 1_000, 100_000),
    ("100 of 2 MB", 100, 2_000_000),
)
c_source = Path(__file__).with_name("durable_limit.c")


@attrs.frozen
class Line:
    """One line of the table. `times_s`: seconds, of which the median counts; if there are none, `note` says why."""

    what: str
    times_s: Sequence[float] = ()
    note: str = ""

    @property
    def median_s(self) -> float:
        return statistics.median(self.times_s)


def timed(act: Callable[[], object]) -> float:
    begun_at = time.perf_counter()
    act()
    return time.perf_counter() - begun_at


# Start, exit, verb.


def start(base: Path) -> list[Line]:
    """A server, started as an editor starts it, until it has answered, accepted a prompt and ended; and one verb."""
    names = ("initialize", "request", "prompt", "exit")
    served: dict[str, list[float]] = {name: [] for name in names}
    verbs: list[float] = []
    empty: list[float] = []
    for number in range(starts_measured + 1):
        found = _served(base / f"state-{number}", base)
        verb = _used_by(lambda number=number: _verb(base / f"state-{number}"))  # type: ignore[misc]
        nothing = _used_by(lambda: _python("pass"))
        if number:  # the first run compiles what is not compiled yet
            for name, used in zip(names, found, strict=True):
                served[name].append(used)
            verbs.append(verb)
            empty.append(nothing)
    reference = Line("  an empty Python, processor time", empty)
    return [
        Line("start: processor time from the spawn to the answer of `initialize`", served["initialize"]),
        reference,
        Line("start: to the first request answered", served["request"]),
        reference,
        Line("start: to the first prompt accepted", served["prompt"]),
        reference,
        Line("exit: processor time from the answered `shutdown` to the end", served["exit"]),
        reference,
        Line("verb: processor time of `steadyhand sessions`", verbs),
        reference,
    ]


def _served(state: Path, folder: Path) -> tuple[float, float, float, float]:
    """Seconds of processor time: from the spawn to the answers of `initialize`, a request, a prompt; of the end."""
    command, environment = server_command(state)
    before = _of_children()
    with RawClient(command, environment) as client:
        uri = folder.as_uri()
        client.initialize({"workspaceFolders": [{"uri": uri, "name": "bench"}]})
        initialized = _of_process(client.process.pid)
        session = client.request("steadyhand/session/create", {"workspace": uri})
        created = _of_process(client.process.pid)
        prompt = {
            "sessionId": session["sessionId"],
            "epoch": session["epoch"],
            "clientMessageId": "1",
            "text": "say hi",
        }
        client.request("steadyhand/turn/start", prompt)
        prompted = _of_process(client.process.pid)
        client.notification("steadyhand/turn/event", that=lambda told: told["event"]["kind"] == "ended")
        client.request("shutdown")
        down = _of_process(client.process.pid)
        client.notify("exit")
        client.wait_exit()
    return initialized, created, prompted, _of_children() - before - down


def _of_process(pid: int) -> float:
    """Seconds of processor time that a living process has used."""
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.is_dir():
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _used_by(act: Callable[[], object]) -> float:
    """Seconds of processor time of the processes that it runs to their end."""
    before = _of_children()
    act()
    return _of_children() - before


def _verb(state: Path) -> None:
    command, environment = server_command(state)
    program = [*command[: command.index("--state-dir")], "sessions", "--state-dir", str(state)]
    subprocess.run(program, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, check=True)


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


# Turns.


def turns(base: Path) -> list[Line]:
    """A turn late in a session beside an early one."""
    late, early = turn_costs(base, _of_process)
    first = first_compared + 1
    return [
        Line(f"turn: the {turns_measured - turns_compared + 1}st to {turns_measured}th of a session", late),
        Line(f"  the {first}th to {first + turns_compared - 1}th", early),
    ]


# Durable.


def durable(base: Path) -> list[Line]:
    """The journal and the C loop take turns of a few calls, on the same disk."""
    first: list[Record] = [starts("call")]
    second: list[Record] = [ends("call"), replies("call")]
    sizes = [sum(len(write_line(record, 1, FIRST_PREV, AT)[0]) for record in part) for part in (first, second)]
    limit = _compiled(base)
    ours: list[float] = []
    theirs: list[float] = []
    disk = system_disk()
    folder = disk.open_folder(str(base))
    held = take_lock(disk, folder, str(base))
    assert held is not None
    journal, _ = Journal.create(disk, SystemClock(), held, begun())
    for _ in range(calls_measured // calls_per_round):
        for _ in range(calls_per_round):
            ours.append(timed(lambda: (journal.append(first, True), journal.append(second, True))))
        if limit is not None:
            theirs += _of_the_disk(limit, base / "limit", sizes)
    journal.close()
    held.lock.release()
    disk.close(folder)
    where = f"started {sizes[0]} bytes, result and reply {sizes[1]} bytes"
    return [
        Line(f"the journal of one call ({where})", ours),
        Line("  the same bytes, a loop in C", theirs, "" if limit else "skipped: no C compiler (cc) on this machine"),
    ]


def _compiled(base: Path) -> Path | None:
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    program = base / "durable_limit"
    subprocess.run([compiler, "-O2", "-o", str(program), str(c_source)], check=True)
    return program


def _of_the_disk(program: Path, file: Path, sizes: Sequence[int]) -> list[float]:
    command = [str(program), str(file), str(calls_per_round), *map(str, sizes)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return [int(line) / 1e9 for line in answer.stdout.split()]


# Recovery.


def recovery(base: Path) -> list[Line]:
    """A long session whose server died while it wrote a file; opened again each time."""
    workspace = Workspace.under(base / "long")
    content, _, _ = write_lines(tuple(_long_session()), 1, FIRST_PREV, AT)
    session = workspace.session_directory(ident("session"))
    session.mkdir(parents=True)
    ours: list[float] = []
    plain: list[float] = []
    for run in range(1, openings_measured + 1):
        (session / JOURNAL).write_bytes(content)
        (session / "summary.json").unlink(missing_ok=True)
        ours.append(anyio.run(_opening, workspace, run))
        plain.append(timed(lambda: [json.loads(line) for line in content.splitlines()]))
    count = content.count(b"\n")
    return [
        Line(f"opening a session of {count:,} records ({len(content) / 1e6:.1f} MB)", ours),
        Line("  json.loads of its lines", plain),
    ]


def _long_session() -> Iterator[Record]:
    yield from islice(_turns(), records_recovered - 2)
    yield intends("last", "last turn")
    yield starts("last")


def _turns() -> Iterator[Record]:
    yield from begun()
    for number in range(records_recovered):
        turn, call = f"turn {number}", f"call {number}"
        yield prompt(turn, "do the next thing")
        yield proposes(turn, call)
        yield from ran(call, turn)
        yield says(turn, "That is done.")


async def _opening(workspace: Workspace, run: int) -> float:
    async with practice_server(workspace, run=run) as server:
        begun_at = time.perf_counter()
        await server.open(ident("session"))
        return time.perf_counter() - begun_at


# Search.


def search(base: Path) -> list[Line]:
    """A rare text in source files and in large logs."""
    program = shutil.which("rg")
    if program is None:
        return [Line("search_text with ripgrep", note="skipped: no ripgrep (rg) on this machine")]
    text_filter = Ripgrep(lambda: {"PATH": str(Path(program).parent)})
    lines: list[Line] = []
    for what, files, size in SEARCHED:
        workspace = ToolWorkspace.under(base / f"{files}")
        for number in range(files):
            needle = b"a needle\n" if number % (files // 10) == 0 else b""
            content = b"".join(b"word%05d and more of it\n" % (number * 31 + line) for line in range(size // 24))
            workspace.write(f"part{number % 40}/f{number}.py", content + needle)
        plain: list[float] = []
        ours: list[float] = []
        for _ in range(searches_measured):
            for times, found in ((plain, None), (ours, text_filter)):
                call = planned(
                    SearchText(), attrs.evolve(workspace.tool_context(), text_filter=found), pattern="needle"
                )
                times.append(timed(lambda call=call: anyio.run(call.run, running())))  # type: ignore[misc]
        lines += [Line(f"search_text in {what}, with ripgrep", ours), Line("  without it", plain)]
    return lines


# Sandbox.


def sandbox(base: Path) -> list[Line]:
    """Each kind of confined command beside the plain one."""
    if sys.platform != "linux":
        return [Line("a command in a sandbox", note="skipped: no sandbox for this system")]
    status, measured = sandbox_starts(base)
    *confined, (plain, plain_times) = measured
    if not confined:
        return [Line("a command in a sandbox", note=f"skipped: {status.why}")]
    return [line for name, times in confined for line in (Line(name, times), Line(plain, plain_times))]


# The table.


def shown(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def table(lines: Sequence[Line]) -> Iterator[str]:
    """The line of a measurement, compared with each indented line that follows it."""
    measured = lines[0]
    width = 92
    for line in lines:
        measured = measured if line.what.startswith(" ") else line
        if not line.times_s:
            yield f"{line.what:<{width}}{line.note}"
            continue
        ratio = "" if line is measured else f"x {measured.median_s / line.median_s:.2f}"
        spread = f"{shown(min(line.times_s))} … {shown(max(line.times_s))}"
        yield f"{line.what:<{width}}{shown(line.median_s):>9}  {ratio:<9}{spread}  (n = {len(line.times_s)})"


def main() -> int:
    """Always 0: a measurement does not fail."""
    print("median, how many times the yardstick, smallest and largest\n")
    with tempfile.TemporaryDirectory(prefix="steadyhand-bench-") as base:
        for measure in (start, turns, durable, recovery, search, sandbox):
            folder = Path(base) / measure.__name__
            folder.mkdir()
            print("\n".join(table(measure(folder))), flush=True)
            print()
        folder = Path(base) / "prefix"
        folder.mkdir()
        for line in prefix_lines(folder, turns_recorded):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
