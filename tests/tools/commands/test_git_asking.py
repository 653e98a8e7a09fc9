"""Questions to git before a command (rows O1, O2): bounded, and no answer where git gives none."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.ports.processes import Finished
from steadyhand.ports.sandbox import Confinement, SandboxFailed
from steadyhand.tools.commands.git_asking import ANSWER_BYTES_MAX, ASKING_S_MAX, ask_git, replaced_protected_files
from tests.support.fakes import FakeProcesses, Script
from tests.support.tool_calls import ToolWorkspace

pytestmark = pytest.mark.anyio

READING = Confinement("landlock", ("/w",), is_reading=True)
FAILED = Finished(exit_code=1, signal=None, timed_out=False, left=(), group_empty=True)


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        (Script(output=[b"a", b"b"]), b"ab"),
        (Script(output=[b"a"], finished=FAILED), None),
        (Script(not_started=SandboxFailed("no")), None),
        (Script(output=[b"x" * ANSWER_BYTES_MAX]), b"x" * ANSWER_BYTES_MAX),
        (Script(output=[b"x" * ANSWER_BYTES_MAX, b"x"]), None),
    ],
)
async def test_answer_of_git_is_bounded_and_none_where_it_fails(
    tmp_path: Path, script: Script, answer: bytes | None
) -> None:
    """I13, O2: a question that git does not answer in bounds counts as not asked."""
    processes = FakeProcesses(otherwise=script)
    context = ToolWorkspace.under(tmp_path).tool_context(processes=processes)
    assert await ask_git(context, "git x", "/w", {"A": "1"}, READING) == answer
    (run,) = processes.runs
    assert (run.timeout_s, run.confinement, run.environment["A"]) == (ASKING_S_MAX, READING, "1")


async def test_nothing_is_asked_without_protected_files_or_without_mounts(tmp_path: Path) -> None:
    """O1: only bubblewrap has mount points, and a repository's own folder is protected in another way."""
    processes = FakeProcesses(otherwise=Script())
    context = ToolWorkspace.under(tmp_path).tool_context(processes=processes)
    for confinement in (
        None,
        Confinement("landlock", ("/w",), protected=("/w/AGENTS.md",)),
        Confinement("bubblewrap", ("/w",), protected=("/w/.git",)),
    ):
        assert await replaced_protected_files(context, "git merge x", "/w", confinement) == ()
    assert processes.runs == []
