"""L4: the installed program under an interposer, killed and failed at each system call below the port.

tests/prove/interposer.c wraps the C library (LD_PRELOAD). It counts the calls that change files below one folder, and
kills, fails or shortens the n-th call, for n from 1 until a run is unharmed. So the layer also covers I/O that bypasses
the port. One run under both, the interposer and a disk that logs, has to show the same operations in both logs.

Without a C compiler, or outside Linux, the layer says so and is skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from steadyhand.journal.format import read_journal
from tests.crash import promises
from tests.crash.promises import COUNTER, WORDS, Left, lay_out, opened, temporary
from tests.prove.kills import scratch
from tests.prove.tally import Tally
from tests.support.forks import run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.journals import whole_records
from tests.support.process_server import server_command
from tests.support.raw_client import ErrorAnswer, LimitReached, RawClient
from tests.support.workspace import Workspace

SOURCE = Path(__file__).with_name("interposer.c")
compile_s_max = 60
answer_s_max = 60.0
calls_max = 1000
torn_each = 3
faults_each = 16
"""The program is killed at every call. One write in `torn_each` is torn. One call in `faults_each` fails with EIO, and
one write in `faults_each` fails in three more ways."""
_named = ("create", "write", "rename", "unlink", "truncate")
_as_called = {"rename_new": "rename", "rename_to": "rename", "exchange": "rename", "make_folder": "mkdir"}


def interposer(folder: Path) -> Path | str:
    """The compiled interposer, or why there is none."""
    if sys.platform != "linux":
        return "LD_PRELOAD is of Linux"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return "there is no C compiler (cc, gcc or clang)"
    library = folder / "interposer.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=compile_s_max, check=False)
    return library if done.returncode == 0 else f"the compiler failed: {done.stderr.strip()[:200]}"


def kill_the_installed(tally: Tally, part: int, parts: int, each: int = 1) -> None:
    """`states` counts runs of the program."""
    folder = scratch()
    try:
        library = interposer(folder)
        if isinstance(library, str):
            tally.skipped = library
            return
        calls = _unharmed(folder, library, tally)
        for number, call in enumerate(calls, 1):
            if number % (parts * each) != part:
                continue
            is_write = call.startswith("write ")
            acts = ["kill", *(["torn"] if is_write and number // parts % torn_each == 0 else [])]
            if number // parts % faults_each == 0:
                acts += ["EIO", *(["ENOSPC", "EINTR", "short"] if is_write else [])]
            for act in acts:
                _one(folder, library, number, call, act, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unharmed(folder: Path, library: Path, tally: Tally) -> list[str]:
    """Every call of the scenario; the disk of the same run must have the same calls in its log."""
    workspace = lay_out(Workspace.under(folder / "unharmed"))
    calls, port = folder / "calls", folder / "port"
    command, environment = server_command(workspace.state, [{"log": str(port)}])
    _play(workspace, command, {**environment, **_preloaded(library, workspace, PROVE_LOG=str(calls))})
    found = calls.read_text().splitlines()
    below = Counter(_call(line) for line in found if line.split()[0] in _named)
    asked = Counter(_call(line) for line in port.read_text().splitlines() if _verb(line) in _named)
    for gone in ("owner.lock", COUNTER):  # the file of the lock belongs to the adapter, the counter to the command
        for verb in _named:
            below.pop((verb, gone), None)
    tally.states += 1
    if below != asked:
        tally.violation("the program changes files without its port", f"{below - asked} {asked - below}")
    if workspace.files() != WORDS.last_files:
        tally.violation("the scenario goes wrong under the interposer", "unharmed")
    return found


def _verb(line: str) -> str:
    verb = line.split()[0]
    return _as_called.get(verb, verb)


def _call(line: str) -> tuple[str, str]:
    """The verb and the last name of its path."""
    words = line.split()
    target = words[3] if len(words) > 3 and words[2] == "->" else words[1]
    return _verb(line), target.rpartition("/")[2]


def _preloaded(library: Path, workspace: Workspace, **more: str) -> dict[str, str]:
    return {"LD_PRELOAD": str(library), "PROVE_DIR": str(workspace.base), **more}


def _play(workspace: Workspace, command: list[str], environment: Mapping[str, str]) -> None:
    """Play the scenario over the protocol, as far as it goes."""
    with RawClient(command, environment) as client:
        try:
            folders = {
                "workspaceFolders": [{"uri": workspace.uri, "name": "work"}],
                "initializationOptions": {"mode": "auto"},
            }
            client.initialize(folders, answer_s_max)
            asked = {"command": "steadyhand.ask", "arguments": [{"text": WORDS.prompt}]}
            client.request("workspace/executeCommand", asked, answer_s_max)
            client.shut_down(answer_s_max)
        except (ErrorAnswer, LimitReached, BrokenPipeError, AssertionError):
            return  # killed or refused; only the disk is judged


def _one(folder: Path, library: Path, number: int, call: str, act: str, tally: Tally) -> None:
    workspace = lay_out(Workspace.under(folder / f"{number}-{act}"))
    where = f"{act} at call {number}: {call.replace(str(folder), '')}"
    command, environment = server_command(workspace.state)
    _play(workspace, command, {**environment, **_preloaded(library, workspace, PROVE_N=str(number), PROVE_ACT=act)})
    tally.states += 1
    for name, content in WORDS.before.items():
        if workspace.files().get(name) not in (content, WORDS.after[name]):
            tally.violation("a file is neither old nor new", where)
    try:
        for session in (
            sorted((workspace.state / "sessions").iterdir()) if (workspace.state / "sessions").is_dir() else []
        ):
            if whole_records(workspace.journal(session.name)):
                run_in_fork(lambda name=session.name: _later(workspace, name))  # type: ignore[misc]  # bound at once
    except AssertionError as broken:
        tally.violation(f"a promise is broken: {str(broken).strip().splitlines()[-1][:200]}", where)
    shutil.rmtree(workspace.base, ignore_errors=True)


async def _later(workspace: Workspace, session_id: str) -> None:
    """The next two process runs."""
    left = Left.of(workspace, session_id)
    async with practice_server(workspace, run=2) as server:
        first = await opened(server, session_id)
    promises._said_once(first.ledger, read_journal(first.journal).records)
    promises._nothing_done_by_opening(left, first)
    started, ended = left.having("started"), left.having("result")
    for call_id, (_, files) in left.proposed.items():
        happened = any(first.files.get(name) != WORDS.before[name] for name in files or ())
        state = first.states[call_id]
        assert not happened or call_id in started, "an effect without a durable start"
        if call_id in started and call_id not in ended:
            assert state == "unknown", f"a call that may have run is called {state}"
        if state == "returned" and files is not None:
            assert happened, "a call is called returned and its effect is not there"
    async with practice_server(workspace, run=3) as server:
        await server.open(session_id)
    assert workspace.journal(session_id) == first.journal, "opening again wrote something"
    assert not [name for name in workspace.files() if temporary(name)], "a temporary file is left behind"
