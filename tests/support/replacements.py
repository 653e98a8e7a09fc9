"""A write of one file that a test disturbs at each of its operations.

A test covers all operations of the body: its disturbance comes before (or after) the first, then the second, and so on
until the body ends undisturbed. `assert_old_or_new` states what must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from steadyhand.domain.records.record import Check, Evidence
from steadyhand.domain.recovery.postcondition import check_all_paths
from steadyhand.ports.disk import Disk
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import Tool, ToolContext, ToolOutcome
from steadyhand.tools.registry import intended_content
from steadyhand.tools.writes.postcondition_check import check_paths, make_durable, remove_temporary
from tests.support.tool_calls import ToolWorkspace, arguments, gathered, planned, running

OLD, NEW = b"old line\nsecond\n", b"new line\nsecond\n"
FIELDS = {"path": "d/f.txt", "content": NEW.decode()}
NAME = "d/f.txt"
THEIRS = b"somebody else's work\n"
OPERATIONS_MAX = 400


class Crash(BaseException):
    """Stands for the death of the process: nothing of ours runs after it."""


def carry_out(
    workspace: ToolWorkspace, disk: Disk | None = None, cancelled: Callable[[], bool] = lambda: False
) -> tuple[ToolOutcome | OSError | None, Evidence]:
    """Run the write over a disk. The evidence was gathered undisturbed. None means that it crashed."""
    outcome, evidence = carry_out_call(WriteFile(), FIELDS, workspace, workspace.tool_context(disk), cancelled)
    return outcome, evidence[0]


def carry_out_call(
    tool: Tool,
    fields: Mapping[str, object],
    workspace: ToolWorkspace,
    disturbed: ToolContext,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[ToolOutcome | OSError | None, tuple[Evidence, ...]]:
    """Gather undisturbed, then run over the disk of `disturbed`. None means that it crashed."""
    call = planned(tool, workspace.tool_context(), **fields)
    evidence = gathered(call)
    object.__setattr__(call, "_tool_context", disturbed)

    async def body() -> ToolOutcome | OSError | None:
        try:
            return await call.run(running(evidence, cancelled))
        except OSError as error:
            return error
        except Crash:
            return None

    return anyio.run(body), evidence


def workspaces(tmp_path: Path, existed: bool) -> Iterator[tuple[int, ToolWorkspace]]:
    """One fresh workspace after the other, numbered from 1. The caller stops when its number was not reached."""
    return numbered(tmp_path, lambda workspace: workspace.write(NAME, OLD) if existed else None)


def numbered(tmp_path: Path, lay: Callable[[ToolWorkspace], object]) -> Iterator[tuple[int, ToolWorkspace]]:
    """One fresh workspace after the other, each with what `lay` puts into it."""
    for number in range(1, OPERATIONS_MAX):
        workspace = ToolWorkspace.under(tmp_path / str(number))
        lay(workspace)
        yield number, workspace
    pytest.fail("the operations never end")


def content_now(workspace: ToolWorkspace) -> bytes | None:
    path = workspace.root / NAME
    return path.read_bytes() if path.exists() else None


def recover(workspace: ToolWorkspace, evidence: Evidence) -> tuple[Check, tuple[str, ...]]:
    """The result of recovery on a healthy disk: temporary files first, then the check, then durability."""
    context = workspace.tool_context()
    intended = intended_content(context, "write_file", arguments(**FIELDS).canonical, evidence)
    assert intended == NEW
    kept = remove_temporary(context, evidence, intended)
    found = check_all_paths(one.check for one in check_paths(context, (evidence,)))
    assert make_durable(context, (evidence,))
    return found, kept


def assert_old_or_new(workspace: ToolWorkspace, outcome: ToolOutcome | OSError | None, evidence: Evidence) -> Check:
    """The content is old or new and nothing else. The check says which, nothing is left behind, and a reported success
    is true.
    """
    found_check, kept = recover(workspace, evidence)
    assert content_now(workspace) in (NEW, OLD if evidence.existed else None)
    assert found_check == ("satisfied" if content_now(workspace) == NEW else "unchanged")
    assert kept == ()
    assert workspace.beside() == []
    if isinstance(outcome, ToolOutcome):
        assert (outcome.outcome == "returned") == (content_now(workspace) == NEW)
    return found_check


def save_by_rename(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    saved = path.with_name("save")
    saved.write_bytes(THEIRS)
    saved.replace(path)


def save_in_place(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(THEIRS)


SAVES = [save_by_rename, save_in_place]


def crash_from(number: int, crashed: list[int]) -> Callable[[int, str], None]:
    def before(count: int, name: str) -> None:
        # The system closes the descriptors of a dead process. Every other operation would be done after its death.
        if name != "close" and count >= number:
            crashed.append(count)
            raise Crash

    return before
