"""A call ran, and the end of its acknowledged *started* is gone: the server says that it may have run (case 134)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from steadyhand.session.service.registry import SessionSnapshot
from tests.crash.promises import SESSION, lay_out
from tests.support.editor import ScriptedEditor
from tests.support.faults import DyingDisk, Matches, Operation, carries
from tests.support.forks import run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.journals import whole_records
from tests.support.killed_runs import kill_in_turn
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.anyio, pytest.mark.timeout(240)]

WRITE, COMMAND = "write old.txt with x", "run echo ran >> counter.txt"
READING = {WRITE: ["returned"], COMMAND: []}
"""The states of the calls before the one that was cut: the model reads a file before it writes it."""
LOST_BYTES = 17


@pytest.fixture
def workspace(in_memory: Path) -> Workspace:
    return lay_out(Workspace.under(in_memory / "place"))


def cut_start(workspace: Workspace, prompt: str) -> None:
    """Run the call up to its result, kill the server there, and cut the last bytes of its *started* off."""
    kill_in_turn(workspace, prompt, carries("result"))
    path = workspace.session_directory(SESSION) / "journal.jsonl"
    assert whole_records(path.read_bytes())[-1]["kind"] == "started"
    path.write_bytes(path.read_bytes()[:-LOST_BYTES])


def states_of(view: SessionSnapshot) -> list[str]:
    """The states of the calls that a client sees, in their order."""
    return [call.state for message in view.messages for call in message.calls or ()]


@pytest.mark.parametrize("prompt", [WRITE, COMMAND])
async def test_call_whose_start_was_cut_may_have_run(workspace: Workspace, prompt: str) -> None:
    """Case 134, C2, B1: the call is unknown, and its text for the model says so. It holds back the same call. The next
    opening finds nothing new."""
    cut_start(workspace, prompt)
    done = workspace.files()
    for run in (2, 3):
        editor = ScriptedEditor()
        async with practice_server(workspace, run=run, editor=editor) as server:
            view = await server.open(SESSION)
            assert states_of(view) == [*READING[prompt], "unknown"]
            assert len(view.snapshot.calls) == 1
            if run == 3:
                await server.say(SESSION, prompt, "again")
                assert len(editor.held_back_questions) == 1
        assert workspace.files() == done
    verdicts = [record for record in whole_records(workspace.journal(SESSION)) if record["kind"] == "result"]
    assert [verdict["outcome"] for verdict in verdicts] == ["unknown_after_restart", "refused"]


def appends(operation: Operation) -> bool:
    return operation.verb == "write" and operation.target.endswith("journal.jsonl")


def truncates(operation: Operation) -> bool:
    return operation.verb == "truncate" and operation.target.endswith("journal.jsonl")


KILLS: list[tuple[str, Matches, bool]] = [
    ("before the cut", truncates, False),
    ("after the cut", truncates, True),
    ("before the verdict", appends, False),
    ("after the verdict", appends, True),
]


@pytest.mark.parametrize(("where", "matches", "after"), KILLS, ids=[where for where, _, _ in KILLS])
async def test_opening_killed_around_the_cut_says_the_same_next_time(
    workspace: Workspace, where: str, matches: Matches, after: bool
) -> None:
    """Case 134, I5: the opening that cuts the torn line is killed. The next one says that the call may have run."""
    cut_start(workspace, WRITE)

    async def dies() -> None:
        async with practice_server(workspace, run=2, disk=DyingDisk(matches, after)) as server:
            await server.open(SESSION)

    assert run_in_fork(dies).signal == signal.SIGKILL
    async with practice_server(workspace, run=3) as server:
        view = await server.open(SESSION)
        assert states_of(view) == [*READING[WRITE], "unknown"]
    kinds = [record["kind"] for record in whole_records(workspace.journal(SESSION))]
    assert kinds.count("result") == 1
