"""`make bench`: four measurements, each beside a yardstick that is measured in turns with it, in the same run.

    start       spawn to the answer of `initialize`     against an empty Python, and Python with `lsprotocol` imported
    durable     *started* and *result* of one call      against the same bytes, appended and synced by a loop in C
    recovery    opening a session of 20,000 records     against `json.loads` of its lines
    prefix      what of each request of a long session the one before had, for both kinds of provider (prefix.py)
    search      `search_text` with ripgrep              against the same search without it, which says the same

Times depend on the machine and on what else it does; the ratios are what to compare. Nothing is asserted. The files
lie where `TMPDIR` says; on a file system in memory the second row says little.
"""

from __future__ import annotations

import json
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

from steadyhand.adapters.clock import SystemClock
from steadyhand.adapters.disk import system_disk
from steadyhand.adapters.ripgrep import Ripgrep
from steadyhand.core.record import Record
from steadyhand.journal.format import FIRST_PREV, write_line, write_lines
from steadyhand.journal.log import JOURNAL, Journal
from steadyhand.tools.search_text import SearchText
from tests.bench.prefix import prefix_lines
from tests.support.ground import Yard, planned, running
from tests.support.journals import AT, begun, ends, ident, intends, prompt, proposes, ran, replies, says, starts
from tests.support.killed_server import shipped
from tests.support.raw_client import RawClient
from tests.support.turns import Place, rig

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
    """One line of the table. `times_s`: seconds, of which the median counts; none: `note` says why."""

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


# Start.


def start(base: Path) -> list[Line]:
    """A server as an editor starts it, until it has answered."""
    servers: list[float] = []
    empty: list[float] = []
    types: list[float] = []
    for number in range(starts_measured):
        servers.append(_until_initialized(base / f"state-{number}"))
        empty.append(timed(lambda: _python("pass")))
        types.append(timed(lambda: _python("import lsprotocol.types")))
    return [
        Line("spawn to the answer of initialize", servers),
        Line("  an empty Python", empty),
        Line("  Python with lsprotocol imported", types),
    ]


def _until_initialized(state: Path) -> float:
    command, environment = shipped(state)
    begun_at = time.perf_counter()
    with RawClient(command, environment) as client:
        client.initialize()
        took = time.perf_counter() - begun_at
        client.shut_down()
    return took


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


# Durable.


def durable(base: Path) -> list[Line]:
    """Journal and C loop in turns of a few calls, on the same disk."""
    first: list[Record] = [starts("call")]
    second: list[Record] = [ends("call"), replies("call")]
    sizes = [sum(len(write_line(record, 1, FIRST_PREV, AT)[0]) for record in part) for part in (first, second)]
    limit = _compiled(base)
    ours: list[float] = []
    theirs: list[float] = []
    disk = system_disk()
    folder = disk.open_folder(str(base))
    journal, _ = Journal.create(disk, SystemClock(), folder, begun())
    for _ in range(calls_measured // calls_per_round):
        for _ in range(calls_per_round):
            ours.append(timed(lambda: (journal.append(first, True), journal.append(second, True))))
        if limit is not None:
            theirs += _of_the_disk(limit, base / "limit", sizes)
    journal.close()
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
    """A long session that died while a file was written; opened anew each time."""
    place = Place.under(base / "long")
    content, _, _ = write_lines(tuple(_long_story()), 1, FIRST_PREV, AT)
    session = place.session(ident("session"))
    session.mkdir(parents=True)
    ours: list[float] = []
    plain: list[float] = []
    for life in range(1, openings_measured + 1):
        (session / JOURNAL).write_bytes(content)
        (session / "summary.json").unlink(missing_ok=True)
        ours.append(anyio.run(_opening, place, life))
        plain.append(timed(lambda: [json.loads(line) for line in content.splitlines()]))
    count = content.count(b"\n")
    return [
        Line(f"opening a session of {count:,} records ({len(content) / 1e6:.1f} MB)", ours),
        Line("  json.loads of its lines", plain),
    ]


def _long_story() -> Iterator[Record]:
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


async def _opening(place: Place, life: int) -> float:
    async with rig(place, life=life) as house:
        begun_at = time.perf_counter()
        await house.open(ident("session"))
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
        yard = Yard.under(base / f"{files}")
        for number in range(files):
            needle = b"a needle\n" if number % (files // 10) == 0 else b""
            content = b"".join(b"word%05d and more of it\n" % (number * 31 + line) for line in range(size // 24))
            yard.write(f"part{number % 40}/f{number}.py", content + needle)
        plain: list[float] = []
        ours: list[float] = []
        for _ in range(searches_measured):
            for times, found in ((plain, None), (ours, text_filter)):
                call = planned(SearchText(), attrs.evolve(yard.ground(), text_filter=found), pattern="needle")
                times.append(timed(lambda call=call: anyio.run(call.run, running())))  # type: ignore[misc]
        lines += [Line(f"search_text in {what}, with ripgrep", ours), Line("  without it", plain)]
    return lines


# The table.


def shown(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def table(lines: Sequence[Line]) -> Iterator[str]:
    """The line of a measurement against each indented one that follows it."""
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
        for measure in (start, durable, recovery, search):
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
